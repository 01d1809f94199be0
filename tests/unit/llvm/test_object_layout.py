"""Interpreters whose objects machine code cannot read: how that is found, and a build for which nothing is compiled."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from parakeet_py import FallbackWarning, UnsupportedError, accelerate, options
from parakeet_py.doctor import examine
from parakeet_py.llvm.runtime import object_layout
from parakeet_py.llvm.runtime.object_layout import Layout, check_interpreter, unknown_layout

OFFSETS = [name for name in vars(Layout) if name.isupper()]


@pytest.fixture(autouse=True)
def checked_anew() -> Iterator[None]:
    object_layout._unsuitable.cache_clear()
    unknown_layout.cache_clear()
    yield
    object_layout._unsuitable.cache_clear()
    unknown_layout.cache_clear()


def test_this_interpreter() -> None:
    check_interpreter()
    assert unknown_layout() == ""


@pytest.mark.parametrize("name", [one for one in OFFSETS if one not in ("HEADER", "TYPE")])
def test_each_offset_is_compared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bytes further there is something else, or nothing that is equal."""
    monkeypatch.setattr(Layout, name, getattr(Layout, name) + 8)
    assert unknown_layout().startswith("the layout of objects in Python ")


def test_free_threaded_builds_run_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version", f"{sys.version.split()[0]} free-threading build")

    def f(x: np.ndarray, factor: int = 2) -> float:
        return float((x * factor).sum())

    g = accelerate(f, when="now")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert [g(np.arange(5.0)), g(np.arange(5.0)), g(np.arange(3), factor=3)] == [20.0, 20.0, 9.0]
    assert g.fell_back
    assert {w.category for w in warned} == {FallbackWarning}
    assert "free-threaded" in str(warned[0].message)
    assert "unknown-interpreter" in str(warned[0].message)
    with pytest.raises(UnsupportedError):
        accelerate(f, strict=True)(np.arange(5.0))
    assert "free-threaded" in str(g.explain(np.arange(5.0)))
    with options(devices="emulated"), pytest.raises(UnsupportedError):
        accelerate(f, strict=True)(np.arange(5.0))
    text, good = next((one.text, one.good) for one in examine() if one.topic == "entry")
    assert not good and text.startswith("functions run in Python: ") and "free-threaded" in text
