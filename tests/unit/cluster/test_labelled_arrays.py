"""Calls with arrays of xarray: results have the labels that Python gives them, whatever has computed them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
xarray = pytest.importorskip("xarray")
import dask.array as da  # noqa: E402

from parakeet_py import accelerate  # noqa: E402
from parakeet_py.base.errors import FallbackWarning  # noqa: E402
from parakeet_py.call.interop import labelled_arrays  # noqa: E402


@pytest.fixture(autouse=True)
def _here_and_now(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(labelled_arrays, "LARGE", 0)
    with dask.config.set(scheduler="sync"), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield


VALUES = np.random.default_rng(1).random((6, 4)) + 0.5


def made(chunks: Any = None, start: int = 0, **more: Any) -> Any:
    """A labelled array, of Dask's chunks or NumPy's memory."""
    values = VALUES if chunks is None else da.from_array(VALUES, chunks=chunks)
    coords = {"a": np.arange(start, start + 6), "far": ("a", np.arange(6.0))}
    return xarray.DataArray(values, dims=("a", "b"), coords=coords, **more)


def scaled(x: Any, k: Any) -> Any:
    return np.exp(-x) * k + x**2


def both(x: Any, y: Any) -> Any:
    return (x - y) / (x + 1.0), x > y


def clipped(x: Any) -> Any:
    return x.clip(0.6, 1.0)


ELEMENTWISE: list[tuple[Callable[..., Any], int]] = [(scaled, 1), (both, 2), (clipped, 1)]


def neighbours(x: Any) -> Any:
    return x[1:] + x[:-1]  # by labels, only those that both have


def without_mean(x: Any) -> Any:
    return x - x.mean()


def chosen(x: Any) -> Any:
    return np.where(x > 1, x, 0.0)  # an array of NumPy's


def transposed(x: Any) -> Any:
    return x.T + 1


def asked(x: Any) -> Any:
    return x * 2 if isinstance(x, np.ndarray) else x * 3


def counted(x: Any) -> Any:
    return x * len(x)


def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The results that calls from now on get labels for."""
    found: list[Any] = []
    before = labelled_arrays._labelled
    monkeypatch.setattr(labelled_arrays, "_labelled", lambda *args: found.append(args[1]) or before(*args))
    return found


@pytest.mark.parametrize("chunks", [None, (4, 3)])
@pytest.mark.parametrize(("function", "count"), ELEMENTWISE, ids=lambda one: getattr(one, "__name__", ""))
def test_elementwise(function: Callable[..., Any], count: int, chunks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with_labels = ran(monkeypatch)
    args = [made(chunks, name="depth", attrs={"units": "m"}), made(chunks) * 1.5][:count]
    args += [2.5] if function is scaled else []
    got, want = accelerate(when="now")(function)(*args), function(*args)
    pairs = list(zip(got, want, strict=True)) if function is both else [(got, want)]
    assert len(with_labels) == len(pairs)
    for one, other in pairs:
        assert isinstance(one.data, da.Array if chunks else np.ndarray)
        assert (one.name, one.attrs, one.dims) == (other.name, other.attrs, other.dims)
        assert one.coords.identical(other.coords)
        xarray.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("function", [neighbours, without_mean, chosen, transposed, asked, counted])
def test_what_goes_by_labels_is_left_to_python(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with_labels = ran(monkeypatch)
    for chunks in (None, (4, 3)):
        x = made(chunks)
        got, want = accelerate(when="now")(function)(x), function(x)
        assert type(got) is type(want)
        xarray.testing.assert_identical(xarray.DataArray(got), xarray.DataArray(want))
    assert not with_labels


def test_other_labels_are_aligned() -> None:
    x, y = made(), made(start=2)
    got = accelerate(when="now")(both)(x, y)
    assert got[0].shape == (4, 4)
    for one, other in zip(got, both(x, y), strict=True):
        xarray.testing.assert_identical(one, other)


def test_calls_run_in_python_until_compiling_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    with_labels = ran(monkeypatch)
    fast = accelerate(when="pays")(scaled)
    assert fast(made(), 2.0).equals(scaled(made(), 2.0)) and not with_labels
    monkeypatch.setattr(labelled_arrays, "PAYS", 0.0)
    xarray.testing.assert_allclose(fast(made(), 2.0), scaled(made(), 2.0))
    assert with_labels
