"""Loops of dot products: which become products of matrices, and that these read what the loop reads, at any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.call.interpreters import run_typed
from parakeet_py.typed_ir.ir import Function
from parakeet_py.typed_ir.passes.loops import products
from tests.corpus import Program, all_programs, assert_same, outcome
from tests.programs import loop_products as corpus

PRODUCTS = (
    corpus.triangular_product,
    corpus.products_of_columns,
    corpus.products_with_columns_behind,
    corpus.rows_times_a_matrix_in_place,
    corpus.symmetric_product,
    corpus.rows_times_a_vector,
    corpus.forward_substitution,
    corpus.factors,
    corpus.square_root,
    corpus.orthogonal_columns,
    corpus.vector_read_before_it_changes,
    corpus.row_changed_after_it_is_read,
    corpus.products_summed_up,
)
LOOPS = (
    corpus.backward_substitution,
    corpus.vector_read_while_it_changes,
    corpus.vector_changed_by_the_first_iteration_alone,
    corpus.row_changed_before_it_is_read,
    corpus.row_behind_changed,
    corpus.sliding_products,
    corpus.band_times_a_vector,
    corpus.changed_products,
    corpus.products_until,
    corpus.sums_in_the_order_of_the_loop,
    corpus.sums_in_numpys_order,
)
PROGRAMS = [one for one in all_programs() if one.name.startswith("loop_products.")]


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the pass changed each of the functions it was given since."""
    seen: list[bool] = []
    done = products._Raiser.function

    def watch(self: Any, function: Function) -> Function:
        result = done(self, function)
        seen.append(self.raised)
        return result

    monkeypatch.setattr(products._Raiser, "function", watch)
    return seen


def arguments(function: Callable[..., Any]) -> tuple[Any, ...]:
    """Of the largest case: what is done with few columns is written out."""
    (program,) = [one for one in PROGRAMS if one.function is function]
    return max((case.make()[0] for case in program.cases if case.raises is None), key=_size)


def _size(args: tuple[Any, ...]) -> int:
    return max(arg.size if arg.dtype == np.float64 else 0 for arg in args if isinstance(arg, np.ndarray))


@pytest.mark.parametrize("function", PRODUCTS, ids=lambda one: one.__name__)
def test_a_loop_of_products_is_raised(function: Callable[..., Any], raised: list[bool]) -> None:
    accelerate(function).typed_ir(*arguments(function))
    assert any(raised)


@pytest.mark.parametrize("function", LOOPS, ids=lambda one: one.__name__)
def test_what_only_looks_like_one_stays(function: Callable[..., Any], raised: list[bool]) -> None:
    accelerate(function).typed_ir(*arguments(function))
    assert not any(raised)


@pytest.mark.parametrize("group", [1, 2, 5])
@pytest.mark.parametrize("program", PROGRAMS, ids=repr)
def test_groups_of_all_sizes_give_what_the_loop_gives(
    program: Program, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "FEWEST", 1)
    monkeypatch.setattr(products, "NARROWEST", 1)
    monkeypatch.setattr(products, "GROUP", group)
    monkeypatch.setattr(products, "GROUP_WITH_REST", group)
    for case in program.cases:
        if not case.native_only:
            args = case.make()[0]
            expected = outcome(program.function, case.make()[0])
            actual = outcome(lambda *given: run_typed(accelerate(program.function), given), args)
            assert_same(expected, actual, sums=program.sums)


def test_what_is_read_ahead_is_not_what_the_loop_leaves_out() -> None:
    """Zero times NaN: the triangle that is not summed up may hold anything."""
    a, b = np.tril(np.ones((50, 50)), -1), np.ones((50, 40))
    a[np.triu_indices(50)] = np.nan
    accelerate(corpus.triangular_product)(1.0, a, b)
    assert np.isfinite(b).all()
