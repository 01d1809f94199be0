"""Interpreters whose objects machine code cannot read: functions run in Python, and a message says why."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from parakeet_py import FallbackWarning, UnsupportedError, accelerate
from parakeet_py.llvm.runtime import object_layout
from parakeet_py.llvm.runtime.object_layout import Layout, check_interpreter

OFFSETS = [name for name in vars(Layout) if name.isupper()]


@pytest.fixture(autouse=True)
def checked_anew() -> Iterator[None]:
    object_layout._unsuitable.cache_clear()
    yield
    object_layout._unsuitable.cache_clear()


def test_this_interpreter() -> None:
    check_interpreter()


@pytest.mark.parametrize("name", [one for one in OFFSETS if one not in ("HEADER", "TYPE")])
def test_each_offset_is_compared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bytes further there is something else, or nothing that is equal."""
    monkeypatch.setattr(Layout, name, getattr(Layout, name) + 8)
    with pytest.raises(UnsupportedError, match=r"the layout of objects in Python .* is not known"):
        check_interpreter()


@pytest.mark.parametrize("cause", ["layout", "free-threaded"])
def test_functions_run_in_python(cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if cause == "layout":
        monkeypatch.setattr(Layout, "LIST_ITEMS", Layout.LIST_ITEMS + 8)
    else:
        monkeypatch.setattr(sys, "version", f"{sys.version.split()[0]} free-threading build")

    def f(x: np.ndarray, factor: int = 2) -> float:
        return float((x * factor).sum())

    g = accelerate(f, when="now")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert [g(np.arange(5.0)), g(np.arange(5.0)), g(np.arange(3), factor=3)] == [20.0, 20.0, 9.0]
    assert g.fell_back
    assert {w.category for w in warned} == {FallbackWarning}
    assert cause.replace("layout", "is not known") in str(warned[0].message)
    assert "unknown-interpreter" in str(warned[0].message)
    with pytest.raises(UnsupportedError):
        accelerate(f, strict=True)(np.arange(5.0))
