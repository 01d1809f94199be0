"""The package's own code as part of an installation: what is added is found, whatever is damaged is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parakeet_py import options
from parakeet_py.llvm.engine import disk_cache, library_archive
from parakeet_py.llvm.engine.library_archive import Archive


def filled(folder: Path, **entries: bytes) -> Archive:
    archive = Archive(str(folder), "environment")
    for key, entry in entries.items():
        archive.add(key, entry)
    assert archive.write()
    return archive


def test_round_trip(tmp_path: Path) -> None:
    folder = tmp_path / "share" / "parakeet_py"
    archive = Archive(str(folder), "environment")
    assert archive.find("a") is None and archive.extent() == (0, 0)
    filled(folder, a=b"one", b=b"")
    other = filled(folder, c=bytes(range(256)) * 300)
    for one in (other, Archive(str(folder), "environment")):
        assert [one.find(key) for key in ("a", "c", "d")] == [b"one", bytes(range(256)) * 300, None]
        assert one.extent()[0] == 3
    assert Archive(str(folder), "another").find("a") is None


def test_a_long_table_is_read(tmp_path: Path) -> None:
    filled(tmp_path, **{f"key {number:40}": b"%d" % number for number in range(1000)})
    assert os.path.getsize(Archive(str(tmp_path), "environment").path) > library_archive._FIRST
    assert Archive(str(tmp_path), "environment").find(f"key {999:40}") == b"999"


def test_what_is_added_is_found_before_it_is_written(tmp_path: Path) -> None:
    archive = filled(tmp_path, a=b"one")
    archive.add("b", b"two")
    assert (archive.find("a"), archive.find("b")) == (b"one", b"two")
    assert Archive(str(tmp_path), "environment").find("b") is None
    assert archive.write()


@pytest.mark.parametrize("damage", ["table", "cut", "empty"])
def test_a_damaged_file_has_nothing(tmp_path: Path, damage: str) -> None:
    path = Path(filled(tmp_path, a=b"one").path)
    data = bytearray(path.read_bytes())
    data[50] ^= 1
    path.write_bytes({"table": bytes(data), "cut": path.read_bytes()[:45], "empty": b""}[damage])
    assert Archive(str(tmp_path), "environment").find("a") is None
    assert filled(tmp_path, b=b"two").find("b") == b"two"


def test_a_damaged_entry_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = disk_cache.digest("of this test")
    archive = filled(tmp_path, **{key: disk_cache._encode(key, b"payload", {"n": 1}, "title")})
    monkeypatch.setattr(disk_cache, "archive", lambda: archive)
    assert disk_cache.load_installed(key) == ({"n": 1}, b"payload")
    with options(cache=False):
        assert disk_cache.load_own(key) == ({"n": 1}, b"payload")
    path = Path(archive.path)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert disk_cache.load_installed(key) is None
    with options(cache=False):
        assert disk_cache.load_own(key) is None


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_files_that_others_may_have_written_are_not_read(tmp_path: Path) -> None:
    archive = filled(tmp_path, a=b"one")
    os.chmod(archive.path, 0o666)
    assert Archive(str(tmp_path), "environment").find("a") is None
    os.chmod(archive.path, 0o644)
    assert Archive(str(tmp_path), "environment").find("a") == b"one"
    os.chmod(tmp_path, 0o777)
    assert Archive(str(tmp_path), "environment").find("a") is None
    archive.add("b", b"two")
    assert not archive.write()
    os.chmod(tmp_path, 0o755)
    assert archive.write()


def test_old_files_of_the_same_place_go(tmp_path: Path) -> None:
    for number in range(library_archive._MOST + 3):
        archive = Archive(str(tmp_path), f"sources {number}")
        archive.add("a", b"one")
        assert archive.write()
        os.utime(archive.path, (number, number))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert len(left) == library_archive._MOST and os.path.basename(archive.path) in left


_INSTALLED = """
import sys
from parakeet_py.llvm.engine import library_archive
library_archive.installed = lambda: sys.argv[1]
import numpy as np
import parakeet_py.frontend as frontend
from parakeet_py import accelerate
from parakeet_py.llvm.engine import compiler

read, compiled = [], []
from_source, compile_ir = frontend._read, compiler.compile_ir
frontend._read = lambda function, *rest: read.append(function.__name__) or from_source(function, *rest)
compiler.compile_ir = lambda text, **kind: compiled.append(text) or compile_ir(text, **kind)

@accelerate(when="now")
def spread(x):
    return np.median(x) - x.mean() + np.sort(x)[0]

print(float(spread(np.arange(5.0))), read, len(compiled))
"""


def test_prepared_code_is_neither_read_nor_compiled_again(tmp_path: Path) -> None:
    environment = os.environ | {"PARAKEET_CACHE": "0", "PARAKEET_CHECK": "0", "PARAKEET_NUM_THREADS": "1"}
    folder = str(tmp_path / "installed")

    def run(*command: str) -> str:
        return subprocess.run(
            [sys.executable, *command], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert "entries" in run("-m", "parakeet_py", "prepare", "--into", folder)
    script = tmp_path / "spread.py"
    script.write_text(_INSTALLED)
    assert run(str(script), folder) == "0.0 ['spread'] 1\n"
    assert "spread" not in run(str(script), str(tmp_path / "nothing")).split("[")[1].split("]")[0].replace(
        "'spread'", "", 1
    )
