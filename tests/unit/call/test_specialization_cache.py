"""Calls over a disk cache that is damaged, foreign, shared or not to be used: always right, and mended."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, doctor, options
from parakeet_py.base import config
from parakeet_py.llvm.engine import disk_cache

FACTOR = 3.0
SHIFT = 1.0


def scaled(x: Any, power: int) -> Any:
    return (x[1:] + x[:-1]) * FACTOR**power + SHIFT


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with options(cache=True, cache_dir=os.fspath(tmp_path / "cache")):
        yield tmp_path / "cache"


def call() -> bool:
    """Call the function with a fresh object around it; was it on the disk?"""
    function: Any = accelerate(scaled)
    x = np.arange(5.0)
    np.testing.assert_array_equal(function(x, 2), scaled(x, 2))
    assert not function.fell_back
    (made,) = function.specializations
    return bool(made.from_disk)


def entries(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.glob("*.parakeet"))}


def test_calls_come_from_the_disk(folder: Path) -> None:
    assert not call()
    before = entries(folder)
    assert len(before) >= 2  # what is known of the function, and its code
    assert call()
    assert entries(folder) == before


def test_functions_that_close_over_themselves(folder: Path) -> None:
    def made() -> Any:
        @accelerate
        def factorial(n: int) -> int:
            return 1 if n < 2 else n * factorial(n - 1)

        return factorial

    for from_disk in (False, True):
        function = made()
        assert (function(15), function(25)) == (1307674368000, 15511210043330985984000000)
        assert not function.fell_back and [one.from_disk for one in function.specializations] == [from_disk]


def flipped(data: bytes, randomness: random.Random) -> bytes:
    place = randomness.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << randomness.randrange(8))]) + data[place + 1 :]


def cut(data: bytes, randomness: random.Random) -> bytes:
    header = int.from_bytes(data[8:12], "little")
    ends = [0, 1, 7, 8, 11, 12, 19, 20, 51, 52, 52 + header // 2, 52 + header, 53 + header, len(data) - 1]
    return data[: randomness.choice([end for end in ends if end < len(data)])]


def replaced(data: bytes, randomness: random.Random) -> bytes:
    start = randomness.randrange(len(data))
    return data[:start] + randomness.randbytes(len(data) - start)


def grown(data: bytes, randomness: random.Random) -> bytes:
    return data + randomness.randbytes(randomness.randrange(1, 100))


@pytest.mark.parametrize("damage", [flipped, cut, replaced, grown])
def test_damaged_entries_are_ignored_and_written_again(
    folder: Path, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    call()
    whole = entries(folder)
    randomness = random.Random(7)
    for path in whole:
        for _ in range(6):
            broken = damage(whole[path], randomness)
            path.write_bytes(broken)
            call()
            assert call()  # whatever was broken has been written again
            assert path.read_bytes() != broken or path.read_bytes() == whole[path]


def test_entries_in_each_others_place(folder: Path) -> None:
    call()
    whole = entries(folder)
    contents = list(whole.values())
    for path, other in zip(whole, contents[1:] + contents[:1], strict=True):
        path.write_bytes(other)
    assert not call()
    assert call()


def test_entries_that_cannot_be_read_or_written(folder: Path) -> None:
    call()
    for path in entries(folder):
        path.unlink()
        path.mkdir()
    for _ in range(2):
        assert not call()
    assert not list(folder.glob("*.parakeet.*"))  # no temporaries are left


@pytest.mark.parametrize(
    "metadata", [{}, {"pairs": 5}, {"result": "?"}, {"result": {"is": "Signature"}}, {"failures": 1}]
)
def test_entries_of_an_unknown_form(folder: Path, metadata: dict[str, Any]) -> None:
    call()
    for path in entries(folder):
        key = path.name.removesuffix(".parakeet")
        entry = disk_cache.load_entry(key)
        assert entry is not None
        disk_cache.put(key, entry.payload, entry.metadata | metadata if metadata else {})
    call()
    assert call()


def test_code_that_cannot_be_loaded(folder: Path) -> None:
    call()
    for path in entries(folder):
        key = path.name.removesuffix(".parakeet")
        entry = disk_cache.load_entry(key)
        assert entry is not None
        if entry.payload:
            disk_cache.put(key, entry.payload[: len(entry.payload) // 2], entry.metadata)
    call()
    assert call()


@pytest.mark.parametrize("what", ["_cpu", "_llvmlite", "_libc_version", "_package"])
def test_other_machines_and_versions_have_entries_of_their_own(
    folder: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call()
    before = entries(folder)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(disk_cache, what, lambda: ("another",))
            disk_cache._environment.cache_clear()
            assert not call()
            assert call()
            assert before.items() < entries(folder).items()
    finally:
        disk_cache._environment.cache_clear()
    assert call()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX owners and permissions")
def test_folders_that_are_not_to_be_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call()
    me = os.geteuid()
    with monkeypatch.context() as patch:
        if me == 0:  # what is root's is trusted, and root can give it away
            os.chown(folder, 1, -1)
        else:
            patch.setattr(os, "geteuid", lambda: me + 1)
        assert not call()
    if me == 0:
        os.chown(folder, 0, -1)
    folder.chmod(0o777)
    assert not call()
    folder.chmod(0o700)
    assert call()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with options(cache=True, cache_dir=os.fspath(tmp_path / "file" / "cache")):
        for _ in range(2):
            assert not call()


def test_the_folder_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call()
    size = max(len(data) for data in entries(folder).values())
    monkeypatch.setattr(disk_cache, "TRIM_EVERY", 1)
    for k in range(12):
        with options(cache_size=4 * size):
            disk_cache.put(disk_cache.digest("filler", k), b"x" * size)
        assert sum(map(len, entries(folder).values())) <= 4 * size + 100
    call()
    assert call()


def test_the_doctor_tells_of_it(folder: Path) -> None:
    call()
    text = {finding.topic: finding.text for finding in doctor.examine()}["disk cache"]
    assert f"{len(entries(folder))} entries" in text and os.fspath(folder) in text
    assert f"at most {config.current().cache_size / 1e6:.0f} MB" in text


SCRIPT = """
import sys, numpy as np
sys.path.insert(0, {folder!r})
from program import f
x = np.arange(100000.0)
assert f(x).tobytes() == f.__wrapped__(x).tobytes() and not f.fell_back
print(f.specializations[0].from_disk)
"""
PROGRAM = """
from parakeet_py import accelerate
@accelerate
def f(x):
    return x[1:] * 2.0 + x[:-1]
"""


def processes(folder: Path, count: int, **variables: str) -> list[str]:
    """What as many processes, started together, say of where their code came from."""
    (folder / "program.py").write_text(PROGRAM)
    root = os.fspath(Path(__file__).parents[3])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PARAKEET_")}
    environment |= {"PARAKEET_WHEN": "now", "PARAKEET_TIERS": "0"}  # quick code may be replaced within the call
    environment |= {"PYTHONPATH": root} | variables
    command = [sys.executable, "-c", SCRIPT.format(folder=os.fspath(folder))]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    said = [one.communicate(timeout=120) for one in running]
    assert not any(err for _, err in said), said
    assert not any(one.returncode for one in running)
    return [out.strip() for out, _ in said]


def test_processes_that_write_the_same_entries(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    processes(tmp_path, 4, PARAKEET_CACHE_DIR=os.fspath(cache))
    assert all(path.suffix == ".parakeet" for path in cache.iterdir())
    written = entries(cache)
    assert processes(tmp_path, 2, PARAKEET_CACHE_DIR=os.fspath(cache)) == ["True", "True"]
    assert entries(cache) == written
    for path in written:  # the runtime of all functions among them
        path.write_bytes(flipped(written[path], random.Random(3)))
    assert processes(tmp_path, 1, PARAKEET_CACHE_DIR=os.fspath(cache)) == ["False"]
    assert processes(tmp_path, 1, PARAKEET_CACHE_DIR=os.fspath(cache)) == ["True"]


def test_variables_of_the_environment(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    places = {"HOME": os.fspath(home), "XDG_CACHE_HOME": ""}
    assert processes(tmp_path, 1, PARAKEET_CACHE="0", **places) == ["False"]
    assert not list(home.iterdir())
    for expected in ("False", "True"):
        assert processes(tmp_path, 1, **places) == [expected]
    assert sys.platform != "linux" or list((home / ".cache" / "parakeet_py").iterdir())


class Unprintable:
    """What must not be asked for a text or a name, as its methods could do anything."""

    def __repr__(self) -> str:
        raise AssertionError("asked for a text")

    def __getattr__(self, name: str) -> Any:
        if name in ("__qualname__", "__name__", "__module__"):
            raise AssertionError("asked for a name")
        raise AttributeError(name)


def test_objects_without_a_name_are_not_asked_for_a_text(folder: Path) -> None:
    def made(held: Any) -> Any:
        return lambda kind, x: x * 2 if kind is Holder and held is not None else 0

    class Holder:
        method = made(Unprintable())

    function: Any = accelerate(made(Unprintable()))
    for _ in range(2):
        assert function(Holder, 3) == 6
    assert not function.fell_back and function.specializations
