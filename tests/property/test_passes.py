"""Every pass of the typed IR keeps the meaning of random programs: same results, same stores, bit for bit."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_py.base.config import Config
from parakeet_py.typed_ir.check import check_function
from parakeet_py.typed_ir.interpret import run_function
from parakeet_py.typed_ir.ir import Function
from parakeet_py.typed_ir.pipeline import PASSES, run_passes
from parakeet_py.typed_ir.print import format_function
from tests.property.typed_programs import random_arguments, random_function

seeds = st.integers(0, 2**32 - 1)


def observe(function: Function, args: list[Any], order: random.Random | None = None) -> list[Any]:
    """What a caller sees of a call: the results or the exception, and what became of the arguments."""
    args = copy.deepcopy(args)
    try:
        results = [np.array(value) for value in run_function(function, args, order=order)]
    except (IndexError, ValueError, OverflowError) as error:
        results = [np.array(repr(error))]
    return results + [np.array(arg) for arg in args]


def assert_same_meaning(before: Function, after: Function, args: list[Any], what: str) -> None:
    check_function(after)
    for order in (None, random.Random(1)):
        for want, got in zip(observe(before, args), observe(after, args, order), strict=True):
            text = f"{what}\n{format_function(before)}\n{format_function(after)}"
            assert want.dtype == got.dtype and want.shape == got.shape, text
            if want.dtype.kind == "U":
                assert want == got, text
                continue
            assert np.array_equal(want, got, equal_nan=True), text


def names() -> dict[str, Callable[[Function], Function]]:
    return {one.name: one.run for one in PASSES}


@pytest.mark.parametrize("name", list(names()))
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_pass_keeps_the_meaning(name: str, seed: int) -> None:
    before = random_function(seed)
    check_function(before)
    assert_same_meaning(before, names()[name](before), random_arguments(seed), name)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, steps=st.integers(1, 14))
def test_pipeline_keeps_the_meaning(seed: int, steps: int) -> None:
    before = random_function(seed, steps)
    after = run_passes(before, Config(check=True))
    assert_same_meaning(before, after, random_arguments(seed), "all passes")
