"""Scalars whose type depends on the path come back with the type they have in Python."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.base.errors import FallbackWarning
from parakeet_py.base.types import PYFLOAT, PYINT, Scalar
from parakeet_py.call import interpreters
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.paths import tagged_scalars, tags
from parakeet_py.typed_ir.specialize.paths.templates import union_of_kinds
from parakeet_py.typed_ir.specialize.values import NONE, ScalarV, SliceV, TaggedScalar, TupleV

empty, some = np.zeros(0), np.array([1.5, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _no_fallback() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield


def same(function: Any, *calls: tuple[Any, ...]) -> None:
    made = accelerate(function)
    for args in calls:
        found, expected = made(*args), function(*args)
        assert (repr(found), type(found)) == (repr(expected), type(expected)), args
        for run in (interpreters.run_typed, interpreters.run_imp):
            assert repr(run(made, args)) == repr(expected), (run, args)
    assert made.fell_back is False
    assert len(made.opaque_calls) == 0


def test_sum_of_nothing() -> None:
    def total(x: Any) -> Any:
        s = 0
        for v in x:
            s += v
        return s

    for dtype in ("f8", "f4", "i8", "i4", "u1", "c16", "c8", "f2"):
        same(total, (empty.astype(dtype),), (np.arange(3).astype(dtype),))


def test_python_float_and_numpy_float() -> None:
    def total(x: Any) -> Any:
        s = 0.0
        for i in range(x.shape[0]):
            s = s + x[i]
        return s, s * 2, -s, s > 1, abs(s)

    same(total, (some,), (empty,), (np.float32([1, 2]),), (np.float32([]),))


def test_branches() -> None:
    def pick(c: bool, n: int) -> Any:
        x = n if c else 2.5
        return x, x + 1, x * 2, x / 2, x // 2, x == n, [x, (x, 1)]

    same(pick, (True, 3), (False, 3), (True, 2**60 + 1))


def test_bools_and_ints() -> None:
    def pick(k: int) -> Any:
        x = k > 2 if k > 1 else k
        y = x + 1
        return x, y, not x, -x

    same(pick, (0,), (1,), (2,), (3,))


def test_three_types() -> None:
    def pick(k: int) -> Any:
        if k == 0:
            x = k
        elif k == 1:
            x = 2.5
        else:
            x = 1j
        return x, x * 2

    same(pick, (0,), (1,), (2,))


def test_only_sometimes() -> None:
    def positive(x: Any) -> Any:
        s = 0
        for v in x:
            if v > 0:
                s += v
        return s, s + 1

    same(positive, (some,), (-np.abs(some),), (empty,), (np.array([1, 2]),), (np.array([-1]),))


def test_nested_loops() -> None:
    def rows(a: Any) -> Any:
        s = 0
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                s += a[i, j]
        return s

    same(rows, (np.ones((2, 3)),), (np.ones((2, 0)),), (np.ones((0, 2)),))


def test_inner_sums_that_are_stored() -> None:
    def means(a: Any) -> Any:
        out = np.zeros(a.shape[0])
        for i in range(a.shape[0]):
            s = 0.0
            for j in range(a.shape[1]):
                s += a[i, j]
            out[i] = s / a.shape[1]
        return out

    same(means, (np.arange(6.0).reshape(2, 3),))
    with pytest.raises(ZeroDivisionError):
        accelerate(means)(np.ones((2, 0)))


def test_while() -> None:
    def halve(x: Any, n: int) -> Any:
        k = 0
        while k < n:
            k = k + x[0]
        return k

    same(halve, (np.array([1.5]), 4), (np.array([1.5]), 0), (np.array([2]), 3), (np.array([2]), -1))


def test_search() -> None:
    def first(x: Any, limit: float) -> Any:
        found = -1
        for v in x:
            if v > limit:
                found = v
                break
        return found

    same(first, (some, 0.0), (some, 2.0), (some, 9.0), (empty, 0.0))


def test_types_that_take_turns() -> None:
    def turns(x: Any) -> Any:
        s = 1
        for v in x:
            s = s * 2 if v > 0 else 0.5
        return s

    same(turns, (some,), (-some,), (np.abs(some),), (empty,))


def test_numpy_and_python_bools() -> None:
    def all_positive(x: Any) -> Any:
        ok = True
        for v in x:
            ok = ok and v > 0
        return ok, not ok

    same(all_positive, (some,), (np.abs(some),), (empty,))


def test_large_ints_stay_exact() -> None:
    def grow(x: Any, n: int) -> Any:
        s = n
        for v in x:
            s = s + v
        return s

    big = 2**60 + 1
    same(grow, (empty, big), (some, 3), (np.zeros(0, "i8"), big), (np.arange(3), big))


def test_inside_functions_of_the_user() -> None:
    def double(v: Any) -> Any:
        return v * 2

    def pick(c: bool) -> Any:
        x = 1 if c else 2.5
        return double(x), (lambda v: v + 1)(x), max(x, 2), np.sqrt(x), float(x), int(x)

    same(pick, (True,), (False,))


def test_stored_in_arrays() -> None:
    def put(c: bool, n: int) -> Any:
        a, b = np.zeros(2), np.zeros(2, np.int64)
        x = n if c else 0.5
        a[0] = x
        b[0] = x
        return a, b

    same(put, (True, 3), (False, 3), (True, 2**60 + 1))


# ---- the value itself ------------------------------------------------------------------------------------------------


def tagged() -> TaggedScalar:
    return TaggedScalar((PYINT, PYFLOAT), ir.Var("tag", PYINT), (ir.Const(3, PYINT), ir.Const(3.0, PYFLOAT)))


@pytest.mark.parametrize("name", ["operand", "type", "dtype", "python"])
def test_there_is_no_operand_without_a_choice(name: str) -> None:
    value = tagged()
    with pytest.raises(AttributeError):
        getattr(value, name)
    assert not isinstance(value, ScalarV)
    assert tags.option(value, 0).type == PYINT
    assert tagged_scalars.converted(value).type == PYFLOAT


def test_what_is_replaced_in_containers() -> None:
    value, one = tagged(), ScalarV(ir.Const(3, PYINT))
    held = TupleV((value, SliceV(NONE, value, NONE), TupleV((one,), "list")))
    assert list(tags.inside(held, TaggedScalar)) == [value, value]
    made = tags.replaced(held, value, one)
    assert made == TupleV((one, SliceV(NONE, one, NONE), TupleV((one,), "list")))
    assert tags.replaced(held.items[2], value, one) is held.items[2]


def test_the_widest_comes_last() -> None:
    short, double = Scalar("float32"), Scalar("float64")
    assert union_of_kinds((short, PYINT), (PYFLOAT,)) == (PYINT, PYFLOAT, short)
    assert union_of_kinds((double,), (Scalar("uint8"), Scalar("bool"))) == (
        Scalar("bool"),
        Scalar("uint8"),
        double,
    )
    assert union_of_kinds((PYINT, PYFLOAT, short), (double, Scalar("uint8"))) is None
    assert tagged_scalars.is_exact(Scalar("int32"), double) and not tagged_scalars.is_exact(PYINT, double)


# ---- results ---------------------------------------------------------------------------------------------------------


def test_a_result_beside_its_own_parts() -> None:
    def larger(k: Any) -> Any:
        m = max(k, 2.5)
        return m, float(m), [m, m], {"m": m}

    made = accelerate(larger)
    for k in (3, 1, 10**6, True):
        for _ in range(100):
            assert repr(made(k)) == repr(larger(k))
    number, _, listed, entries = made(10**6)
    assert number is listed[0] is listed[1] is entries["m"]
    assert made.fell_back is False


def test_references_to_chosen_results() -> None:
    def chosen(x: Any, k: int) -> Any:
        m = None
        if k == 1:
            m = 10**6
        if k > 1:
            m = x[0]
        return m, [m], (m, m)

    made = accelerate(chosen)
    for k in range(3):
        for _ in range(500):
            made(some, k)
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(5000):
            made(some, k)
        gc.collect()
        assert sys.getallocatedblocks() - before < 1000
        if k > 1:  # a constant is held by the code, too
            assert sys.getrefcount(made(some, k)[0]) == sys.getrefcount(chosen(some, k)[0])


# ---- rules -----------------------------------------------------------------------------------------------------------


def test_choice_between_equal_truths_of_two_types() -> None:
    def both(x: Any) -> Any:
        return np.where(x > 0, x == x, True), np.where(x > 0, x != x, False)

    made = accelerate(both)
    assert repr(made(some)) == repr(both(some))


def test_literals_beyond_64_bits() -> None:
    def doubled(k: int) -> Any:
        m = [k - 1.5, -(2**63)][-1] if k % 2 == 0 else k - 1.5
        return sum([m, m])

    made = accelerate(doubled)
    for k in (3, 2, 5):
        assert repr(made(k)) == repr(doubled(k))
