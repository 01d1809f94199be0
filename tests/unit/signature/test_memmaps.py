"""Memmaps as arguments: arrays whose views are memmaps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import FallbackWarning, accelerate
from parakeet_py.call.explain.report import describe_spec
from parakeet_py.signature.specs import ArraySpec, ObjectSpec, spec_of
from parakeet_py.typed_ir.specialize.observed import observed_spec


def mapped(path: Path, mode: Any = "r+", dtype: str = "f8") -> np.ndarray[Any, Any]:
    """A map of a file of its own."""
    file = path / str(len(list(path.iterdir())))
    np.arange(24.0).astype(dtype).tofile(file)
    return np.memmap(file, dtype=dtype, mode=mode, shape=(6, 4))


def total(a):
    s = 0.0
    for row in a:
        for v in row:
            s += v
    return s


def smear(a):
    a[1:] += a[:-1]
    a[0, 0] = 7.0


COMPILED: list[Callable[[Any], Any]] = [
    total,
    smear,
    lambda a: a * 2 + 1,
    lambda a: (a, a[2:5], a.T, a[None, ::2, ::-1]),
    lambda a: a.reshape(-1)[3:],
    lambda a: (a[1, 2], a.sum(), a.sum(axis=0), a[[1, 2]], a.tolist()),
    lambda a: isinstance(a, np.ndarray),
    lambda a: [a[0], 2.0][0],
]


@pytest.mark.parametrize("mode", ["r+", "r", "c"])
@pytest.mark.parametrize("function", COMPILED)
def test_results_are_those_of_numpy(function: Any, mode: str, tmp_path: Path) -> None:
    f = accelerate(when="now")(function)
    for _ in range(2):
        ours, theirs = mapped(tmp_path, mode), mapped(tmp_path, mode)
        try:
            expected = function(theirs)
        except ValueError as error:  # read-only
            with pytest.raises(ValueError, match=str(error)):
                f(ours)
            continue
        same(f(ours), expected)
        assert np.array_equal(ours, theirs)
    assert f.fell_back is False and f.opaque_calls == []


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, tuple | list):
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, np.ndarray):
        assert found.tolist() == expected.tolist() and found.strides == expected.strides
        assert found.flags.writeable == expected.flags.writeable
        if isinstance(expected, np.memmap):
            assert (found.mode, found.offset) == (expected.mode, expected.offset)
            assert found.filename is not None and found._mmap is not None
    else:
        assert found == expected


def test_views_keep_the_file_open_and_write_to_it(tmp_path: Path) -> None:
    f = accelerate(when="now")(lambda a: a[1:])
    view = f(mapped(tmp_path))
    view[0, 0] = 99.0
    view.flush()
    assert np.fromfile(view.filename)[4] == 99.0


def test_what_only_memmaps_have_is_left_to_python(tmp_path: Path) -> None:
    x = mapped(tmp_path)
    for function in (
        lambda a: type(a),
        lambda a: isinstance(a, np.memmap),
        lambda a: hasattr(a, "flush"),
        lambda a: a.flush(),
        lambda a: a.filename,
    ):
        f = accelerate(when="now")(function)
        with pytest.warns(FallbackWarning, match="of a numpy.memmap"):
            assert f(x) == function(x)
    assert accelerate(strict=True)(lambda a: isinstance(a, np.ndarray))(x) is True


def test_overlapping_memmaps(tmp_path: Path) -> None:
    def shift(a, b):
        for i in range(len(b)):
            a[i] = b[i] + 1

    x = mapped(tmp_path).reshape(-1)
    y = np.array(x)
    f = accelerate(when="now")(shift)
    f(x[1:], x[:-1])
    shift(y[1:], y[:-1])
    assert np.array_equal(x, y) and f.fell_back is False


def test_specs(tmp_path: Path) -> None:
    spec = spec_of(mapped(tmp_path))
    assert (
        isinstance(spec, ArraySpec) and spec.mapped and describe_spec(spec) == "float64[2 axes, last axis of 4, memmap]"
    )
    assert spec != spec_of(np.array(mapped(tmp_path)))
    assert spec_of(mapped(tmp_path, dtype=">f8")) == ObjectSpec(np.memmap)
    assert observed_spec(mapped(tmp_path)) == ObjectSpec(np.memmap, True)


def test_python_may_give_memmaps(tmp_path: Path) -> None:
    x = mapped(tmp_path)

    def f(n):
        return opened(n).sum() + n

    def opened(n):
        return np.memmap(x.filename, dtype="f8", mode="r", shape=(6, 4))[:n]

    g = accelerate(when="now")(f)
    for n in (3, 4, 2):
        assert g(n) == x[:n].sum() + n
