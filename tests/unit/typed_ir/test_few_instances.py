"""Short lists of instances whose items are indexed in loops: known one by one at first, then read like columns."""

from __future__ import annotations

import warnings

from parakeet_py import accelerate
from tests.programs.instance_columns import Body, few_bodies, many


def test_they_are_compiled_when_their_items_one_by_one_are_not() -> None:
    function = accelerate(when="now")(few_bodies)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count in (5, 5, 5, 12, 40, 5):
            here, there = many(Body, count), many(Body, count)
            assert function(here, 3) == few_bodies(there, 3) and here == there
    assert not function.fell_back and not function.opaque_calls and len(function.specializations) == 1
