"""Lowering keeps the meaning of random programs: loops give what the typed IR gives, for any number of ranges."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_py.base.config import Config
from parakeet_py.imp import ir as imp
from parakeet_py.imp.check import check_function
from parakeet_py.imp.interpret import run_function as run_imp
from parakeet_py.imp.lower.function import lower
from parakeet_py.imp.print import format_function
from parakeet_py.typed_ir.interpret import run_function as run_typed
from parakeet_py.typed_ir.ir import Function
from parakeet_py.typed_ir.pipeline import run_passes
from parakeet_py.typed_ir.print import format_function as format_typed
from tests.property.typed_programs import random_arguments, random_function

seeds = st.integers(0, 2**32 - 1)


def outcome(run: Any, code: Any, args: list[Any], **options: Any) -> list[Any] | tuple[type[Exception], str]:
    """Results and arguments afterwards, or the exception. How far an operator that fails has stored is left open."""
    own = copy.deepcopy(args)
    try:
        return [np.array(value) for value in [*run(code, own, **options), *own]]
    except (ValueError, IndexError, OverflowError) as error:
        return type(error), str(error)


def assert_same_meaning(function: Function, args: list[Any]) -> imp.Function:
    lowered = lower(function)
    text = f"{format_typed(function)}\n{format_function(lowered)}"
    try:
        check_function(lowered)
        wanted = outcome(run_typed, function, args)
        for ranges in (1, 2, 5):
            results = outcome(run_imp, lowered, args, ranges=ranges)
            if isinstance(wanted, tuple) or isinstance(results, tuple):
                assert results == wanted
                continue
            for want, got in zip(wanted, results, strict=True):
                assert want.dtype == got.dtype and want.shape == got.shape
                np.testing.assert_array_equal(got, want)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{text}") from error
    return lowered


@settings(max_examples=60, deadline=None)
@given(seed=seeds, steps=st.integers(1, 12))
def test_unfused(seed: int, steps: int) -> None:
    assert_same_meaning(random_function(seed, steps), random_arguments(seed))


@settings(max_examples=60, deadline=None)
@given(seed=seeds, steps=st.integers(1, 12))
def test_fused(seed: int, steps: int) -> None:
    function = run_passes(random_function(seed, steps), Config(check=True))
    assert_same_meaning(function, random_arguments(seed))
