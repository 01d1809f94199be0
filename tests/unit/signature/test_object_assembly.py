"""Results that are more than tuples and lists of leaves: dicts, sets, lists in columns, put together at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import DeviceArray, accelerate, asdevice, options
from parakeet_py.signature.object_assembly import Assembled, ContainerT, LeafT, StaticT
from parakeet_py.signature.results import ResultLeaf, ResultTuple, listed
from parakeet_py.signature.serialization import from_json, to_json


def several(x: Any, k: int) -> Any:
    pairs = list(zip(x.tolist(), range(len(x)), strict=True))
    seen = {1, 2, int(k)}
    return (
        {"same": x, "view": x[1:], "new": x * 2, "number": k, "items": x.tolist(), "pairs": pairs},
        seen,
        [x.sum(), k],
    )


@pytest.mark.parametrize("devices", [None, "emulated", "cpu,emulated*2"])
def test_what_is_in_a_dict_is_what_a_tuple_would_hold(devices: str | None) -> None:
    f: Any = accelerate(several)
    x = np.arange(5.0)
    for _ in range(2):
        with options(devices=devices):
            found, *others = f(x, 3)
        assert repr((found, *others)) == repr(several(x, 3))
        assert found["same"] is x and np.shares_memory(found["view"], x)
        assert found["new"].flags.writeable and not np.shares_memory(found["new"], x)
    found["view"][0] = 7.0
    assert x[1] == 7.0
    assert f.opaque_calls == [] and not f.fell_back


def test_of_arrays_on_devices_only_what_is_listed_is_fetched() -> None:
    f: Any = accelerate(several)
    x = np.arange(5.0)
    held = asdevice(x, "emulated")
    for _ in range(2):
        found, _, numbers = f(held, 3)
    assert isinstance(found["new"], DeviceArray)
    np.testing.assert_array_equal(np.asarray(found["new"]), x * 2)
    assert found["items"] == x.tolist() and found["pairs"][2] == (2.0, 2) and float(numbers[0]) == 10.0


def test_leaves_that_are_looked_at() -> None:
    pairs = ContainerT("zipped", (ContainerT("list_of", (LeafT(0),)), ContainerT("list_of", (LeafT(1),))), (tuple,))
    made = Assembled(ContainerT("dict", (LeafT(2), pairs, StaticT("text")), ("a", 2, None)))
    assert made.looked_at == {0, 1}
    x = np.arange(2.0)
    assert made(x, x + 1, x) == {"a": x, 2: [(0.0, 1.0), (1.0, 2.0)], None: "text"}
    leaves = (
        ResultLeaf(0, "array", "float64", False, 1),
        ResultLeaf(1, "array", "float64", False, 1),
        ResultLeaf(2, "object"),
    )
    tree = ResultTuple(leaves, "tuple", made)
    assert listed(tree) == {0, 1}
    again: Any = from_json(to_json(tree))
    assert again.items == leaves and again.type(x, x + 1, x) == made(x, x + 1, x)
