"""PTX is made once: kept in memory and, by content, in the disk cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from parakeet_py import options
from parakeet_py.llvm.engine import disk_cache
from parakeet_py.ptx import target

TEXT = """
define ptx_kernel void @half(ptr %x) {
  %old = load float, ptr %x
  %new = fmul float %old, 0.5
  store float %new, ptr %x
  ret void
}
"""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The architectures that LLVM has been asked for."""
    found: list[str] = []
    compile_ = target._compile

    def told(text: str, architecture: str) -> str:
        found.append(architecture)
        return compile_(text, architecture)

    monkeypatch.setattr(target, "_compile", told)
    monkeypatch.setattr(target, "_texts", {})
    return found


def test_in_memory(compiled: list[str]) -> None:
    with options(cache=False):
        assert target.compile_ptx(TEXT, "sm_90") is target.compile_ptx(TEXT, "sm_90")
        assert target.compile_ptx(TEXT, "sm_80") != target.compile_ptx(TEXT, "sm_90")
    assert compiled == ["sm_90", "sm_80"]


def test_on_disk(compiled: list[str], tmp_path: Path) -> None:
    with options(cache=True, cache_dir=tmp_path):
        first = target.compile_ptx(TEXT, "sm_90")
        for _ in range(2):
            target._texts.clear()
            assert target.compile_ptx(TEXT, "sm_90") == first
        assert compiled == ["sm_90"]
        target._texts.clear()
        target.compile_ptx(TEXT.replace("0.5", "0.25"), "sm_90")
        assert compiled == ["sm_90", "sm_90"]
    with options(cache=False):
        target._texts.clear()
        assert target.compile_ptx(TEXT, "sm_90") == first
    assert len(compiled) == 3


def test_damage_is_no_entry(compiled: list[str], tmp_path: Path) -> None:
    with options(cache=True, cache_dir=tmp_path):
        first = target.compile_ptx(TEXT, "sm_90")
        (file,) = tmp_path.iterdir()
        file.write_bytes(file.read_bytes()[:-3] + b"???")
        target._texts.clear()
        assert target.compile_ptx(TEXT, "sm_90") == first
    assert compiled == ["sm_90", "sm_90"]
    assert disk_cache.directory() != str(tmp_path)
