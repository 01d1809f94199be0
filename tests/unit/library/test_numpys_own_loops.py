"""Where NumPy computes in another precision, or by another operation, than its function's name says, results have its
bits: FFTs, which compute in double precision, and powers with exponents that have operations of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate


def same(found: Any, wanted: Any) -> bool:
    return bool(
        found.dtype == wanted.dtype and found.shape == wanted.shape and np.array_equal(found, wanted, equal_nan=True)
    )


def ffts(x: Any, norm: Any) -> Any:
    z = np.fft.fft(x, norm=norm)
    return z, np.fft.ifft(z, norm=norm), np.fft.hfft(z, norm=norm), np.fft.irfft(z, norm=norm)


def of_reals(x: Any, norm: Any) -> Any:
    return np.fft.rfft(x, norm=norm), np.fft.ihfft(x, norm=norm)


def of_tables(x: Any, norm: Any) -> Any:
    z = np.fft.rfft2(x, norm=norm)
    return z, np.fft.fft2(x, norm=norm), np.fft.fftn(x, norm=norm), np.fft.irfft2(z, norm=norm), np.fft.ifftn(z)


@pytest.mark.parametrize("dtype", ["f4", "c8", "f8"])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_ffts(dtype: str, norm: Any) -> None:
    rng = np.random.default_rng(0)
    line, table = rng.standard_normal(4096).astype(dtype), rng.standard_normal((12, 50)).astype(dtype)
    cases: list[tuple[Callable[..., Any], Any]] = [(ffts, line), (ffts, line[:100]), (ffts, line[::3])]
    if dtype != "c8":
        cases += [(of_reals, line), (of_reals, line[:99]), (of_tables, table), (of_tables, table.T)]
    for function, x in cases:
        for found, wanted in zip(accelerate(function)(x, norm), function(x, norm), strict=True):
            assert same(found, wanted)


@pytest.mark.parametrize("exponent", [0.5, -1, -1.0, 0, 1, 1.0, 2, 2.0])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i4", "i8", "u1"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers(exponent: float, dtype: str) -> None:
    def power(x: Any) -> Any:
        return x**exponent

    def in_place(x: Any) -> Any:
        x **= exponent
        return x

    x = (np.random.default_rng(0).standard_normal(1000) * 10).astype(dtype)
    for function in (power, in_place):
        try:
            wanted = function(x.copy())
        except (TypeError, ValueError, OverflowError) as error:
            with pytest.raises(type(error)) as raised:
                accelerate(function)(x.copy())
            assert str(raised.value) == str(error)
        else:
            assert same(accelerate(function)(x.copy()), wanted)
