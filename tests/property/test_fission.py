"""Fission keeps the meaning: every operator of random programs, cut along any axis at any place, again and again."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_py.typed_ir.check import check_function
from parakeet_py.typed_ir.ir import Function
from parakeet_py.typed_ir.passes.fusion.fuse import fuse
from parakeet_py.typed_ir.print import format_function
from tests.property.divided import at_random, divide
from tests.property.test_passes import observe
from tests.property.typed_programs import random_arguments, random_function

seeds = st.integers(0, 2**32 - 1)


def assert_close(before: Function, after: Function, seed: int) -> None:
    """Equal but for what regrouping a sum of floats changes."""
    check_function(after)
    args = random_arguments(seed)
    for order in (None, random.Random(1)):
        for want, got in zip(observe(before, args), observe(after, args, order), strict=True):
            text = f"{format_function(before)}\n{format_function(after)}"
            assert want.dtype == got.dtype and want.shape == got.shape, text
            if want.dtype.kind == "U":
                assert want == got, text
            else:
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9, err_msg=text)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, fused=st.booleans(), times=st.integers(1, 3))
def test_random_programs_keep_their_meaning(seed: int, fused: bool, times: int) -> None:
    before = random_function(seed)
    if fused:
        before = fuse(before)
    source = random.Random(seed)
    after = before
    for _ in range(times):
        after, _ = divide(after, at_random(source, 8))
    assert_close(before, after, seed)
