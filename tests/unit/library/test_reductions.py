"""Reductions of the library against NumPy: every dtype, shape, axis, and the ways to ask for them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.library.reductions import ufunc_methods
from parakeet_py.typed_ir.specialize.python import builtin_reductions
from tests.helpers.library_run import Cases, numbers

CASES = Cases()

DTYPES = ["f8", "f4", "f2", "i1", "u1", "i4", "i8", "?", "c8", "c16", "u8"]
SHAPES = [(5,), (3, 4), (2, 3, 4), (0,), (0, 3), (3, 0), (1,), (1, 4)]


def arguments() -> list[Any]:
    made = [numbers(dtype, *shape) for dtype in DTYPES for shape in (SHAPES if dtype in ("f8", "i4") else SHAPES[:3])]
    cube = numbers("f8", 2, 3, 4)
    made += [np.asfortranarray(cube), cube[:, ::-1, ::2], cube.transpose(1, 0, 2)]
    special = numbers("f8", 3, 4)
    special[1, 2] = special[2, 0] = np.nan
    infinite = special.copy()
    infinite[1, 2:] = [-np.inf, np.inf]
    return [*made, special, infinite, infinite.astype("f4")]


def sums(a):
    return np.sum(a), a.sum(axis=0), a.sum(axis=-1, keepdims=True), np.sum(a, keepdims=True)


def products(a):
    return np.prod(a), a.prod(axis=0)


def means(a):
    return a.mean(), np.mean(a, axis=0), np.mean(a, axis=-1, keepdims=True)


def extrema(a):
    return a.min(), np.max(a, axis=0), np.amax(a, axis=-1), np.amin(a, axis=0, keepdims=True)


def spreads(a):
    return a.var(), np.std(a, axis=0), np.var(a, axis=-1, ddof=1, keepdims=True), np.std(a)


def places_of_extrema(a):
    return a.argmax(), np.argmin(a, axis=0), np.argmax(a, axis=-1), np.argmin(a, keepdims=True)


def truths_and_counts(a):
    return a.all(), np.any(a, axis=0), np.count_nonzero(a), np.count_nonzero(a, axis=0), np.all(a, axis=-1)


def peak_to_peak(a):
    return np.ptp(a), np.ptp(a, axis=0)


def with_initial(a):
    return np.sum(a, initial=3), np.max(a, initial=2), np.prod(a, axis=0, initial=2)


def where_positive(a):
    return np.sum(a, where=a > 0), np.max(a, initial=2, where=a > 0), np.any(a, where=a > 0)


def means_where(a, mask):
    return np.mean(a, where=mask), a.mean(axis=0, where=mask), np.mean(a, axis=1, keepdims=True, where=mask)


for dtype in ("f8", "f4", "f2", "i4", "c16"):
    CASES.add(means_where, numbers(dtype, 3, 4), numbers("f8", 3, 4, seed=2) > 0, ulps=8)
CASES.add(means_where, numbers("f8", 3, 4), np.array([True, False, True, True]), ulps=8)
CASES.add(means_where, numbers("f8", 3, 4), True)

for own in (sums, products, means, extrema, spreads, places_of_extrema):
    CASES.each(own, arguments(), ulps=16)
for own in (truths_and_counts, peak_to_peak, with_initial, where_positive):
    CASES.each(own, arguments()[::3], ulps=16)


def in_dtype(a):
    return np.sum(a, dtype="float32"), np.mean(a, dtype="float32"), np.sum(a, axis=0, dtype=np.int16)


CASES.each(in_dtype, [numbers(dtype, 3, 4) for dtype in ("f8", "f2", "i1", "?")], ulps=16)


def several_axes(a):
    return a.sum(axis=(0, 2)), np.max(a, axis=(-1, 0)), np.mean(a, (0, 1, 2)), np.sum(a, axis=())


CASES.add(several_axes, numbers("f8", 2, 3, 4))


def axis_from_argument(a, axis):
    return a.sum(axis=axis)


for axis in (1, (0, 1), -1, 3):
    CASES.add(axis_from_argument, numbers("f8", 2, 3, 4), axis)


def into_output(a, out):
    return np.sum(a, axis=0, out=out)


for dtype in ("f8", "f4", "i8"):
    CASES.add(into_output, numbers(dtype, 2, 3), np.zeros(3, dtype))
CASES.add(into_output, numbers("f8", 2, 3), np.zeros(4), message=False)


def of_scalars(x):
    return np.sum(x), np.max(x), np.mean(x), np.argmax(x), np.any(x), np.std(x)


CASES.each(of_scalars, [3, 2.5, np.float32(2), np.array(3), True, [1, 2, 3.0], np.float16(2), ((1, 2), (3, 4))])


def running(a):
    return np.cumsum(a), a.cumsum(axis=0), np.cumprod(a, axis=-1), np.cumsum(a, 1, dtype=complex), np.nancumsum(a)


def differences(a):
    return np.diff(a), np.diff(a, axis=0), np.diff(a, 2), np.diff(a, prepend=0), np.diff(a, append=a, axis=0)


for dtype in ("f8", "i4", "?", "i1", "f4", "c16", "u2"):
    for own in (running, differences):
        CASES.add(own, numbers(dtype, 3, 4), ulps=8)
for own in (running, differences):
    CASES.each(own, [numbers("f8", 4, 3).T, np.zeros((3, 0)), -np.zeros((2, 2))], ulps=8)


def without_nan(a):
    return np.nansum(a), np.nanmean(a, axis=0), np.nanmin(a), np.nanmax(a, axis=1), np.nanvar(a, axis=0), np.nanstd(a)


holed = numbers("f8", 3, 5)
holed[0, 2] = np.nan
holed[2] = np.nan
CASES.each(without_nan, [holed, holed.astype("f4"), np.arange(6).reshape(2, 3)], ulps=32)


def by_methods_of_ufuncs(a):
    return (
        np.add.reduce(a),
        np.multiply.reduce(a, axis=1),
        np.maximum.reduce(a, axis=None),
        np.logical_and.reduce(a),
        np.add.accumulate(a),
        np.maximum.accumulate(a, axis=1),
        np.hypot.reduce(a * 1.0),
    )


CASES.each(by_methods_of_ufuncs, [numbers("f8", 3, 4), np.arange(6).reshape(2, 3), numbers("?", 2, 3)], ulps=16)


def by_pythons_builtins(a):
    return min(a), max(a), sum(a)


CASES.each(
    by_pythons_builtins,
    [numbers("f8", 5), np.arange(5), np.array([np.nan, 1, 2]), np.array([1, np.nan, 0]), np.zeros(0), np.array([True])],
    ulps=0,
)


def of_lists(n):
    return sum([i * 0.1 for i in range(n)], 0.0), sum([i for i in range(n)]), max([i * i % 7 for i in range(n)])


CASES.each(of_lists, [10, 1, 0], ulps=0)


def averages(a, w):
    return np.average(a), np.average(a, axis=1, weights=w), np.average(a, axis=-1, weights=w, keepdims=True)


for weights in (np.arange(5.0), np.arange(5), np.zeros(5), np.ones(4)):
    CASES.add(averages, numbers("f8", 4, 5), weights, ulps=8)


@pytest.mark.parametrize("function", CASES.functions())
def test_typed_ir(function: Callable[..., Any]) -> None:
    CASES.check_typed_ir(function)


@pytest.mark.parametrize("function", CASES.functions())
def test_native(function: Callable[..., Any]) -> None:
    CASES.check_native(function)


def test_sum_of_floats_carries_a_compensation(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python's since 3.12, for items that are known and others, as long as they are floats and ints of Python's."""
    monkeypatch.setattr(ufunc_methods, "sys", SimpleNamespace(version_info=(3, 12)))

    @accelerate(when="now")
    def sums(items: list[float], a: float, b: float) -> object:
        some = [v for v in items if v != 0]
        return (
            sum(items),
            sum([a, b, 1, -a]),
            sum(some, 1.0),
            sum(some, 1),
            sum(some, True),
            sum([a, np.float32(b), -a]),
        )

    found = sums([1e16, 1.0, -1e16, -0.0] * 3, 1e16, 1.0)
    assert found == (3.0, 1.0, 4.0, 3.0, 0.0, np.float32(0))
    assert not sums.fell_back


def test_sums_of_complex_numbers_with_compensation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's carry one since 3.14."""

    def added(xs, n):
        return (
            sum([v * 1j for v in xs]),
            sum([xs[0] * 1j, 1j, 2.0, -xs[0] * 1j]),
            sum([v * 1j for v in [1.0] * n], -0.5),
        )

    for more in (False, True):
        monkeypatch.setattr(builtin_reductions, "compensates", lambda found=more: found)
        monkeypatch.setattr(builtin_reductions, "compensates_more", lambda found=more: found)
        f = accelerate(added)
        assert f([1e16, 1.0, -1e16], 40) == ((1j, 2 + 1j, -0.5 + 40j) if more else (0j, 2 + 0j, -0.5 + 40j))
        assert not f.opaque_calls and not f.fell_back
