"""What is told from where files of the package lie."""

from __future__ import annotations

import os

import parakeet_py
from parakeet_py import options
from parakeet_py.base import package
from parakeet_py.base.frames.tracebacks import is_own
from parakeet_py.call import library_ir_cache
from parakeet_py.library.arrays.shape import size_of
from parakeet_py.llvm.engine import disk_cache


def test_folder() -> None:
    assert os.path.samefile(package.FOLDER, os.path.dirname(parakeet_py.__file__))


def test_the_library_is_kept() -> None:
    with options(cache=True, check=0):
        assert library_ir_cache._is_kept(size_of.__code__)
        assert not library_ir_cache._is_kept(is_own.__code__)


def test_digests_cover_all_sources() -> None:
    sources = {line.split()[0] for line in disk_cache._package().splitlines()}
    assert {"doctor.py", "errors.py", "dispatcher.py", "shape.py"} <= sources
