"""The disk cache on file systems that are full, that cannot be written to, and that two users share: calls are right,
nothing is left half written, and what one user has written is no entry of another's."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may do so")
OTHER = 54321  # a user
FACTOR = 4.0


def scaled(x: Any, power: int) -> Any:
    return (x[1:] - x[:-1]) * FACTOR**power


def call(folder: Path) -> bool:
    """Call the function with a fresh object around it; was it on the disk?"""
    with options(cache=True, cache_dir=os.fspath(folder)):
        function: Any = accelerate(scaled)
        x = np.arange(5.0) ** 2
        np.testing.assert_array_equal(function(x, 2), scaled(x, 2))
        assert not function.fell_back
        (made,) = function.specializations
        return bool(made.from_disk)


@pytest.fixture(scope="module", autouse=True)
def _all_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Children need not import the compiler, nor may other users."""
    folder = tmp_path_factory.mktemp("cache")
    assert not call(folder) and call(folder)


def in_child(work: Callable[[], object]) -> object:
    """What `work()` gives in a forked process, as a bool."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            status = int(bool(work()))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1)
    return status == 1


def whole_entries(folder: Path) -> list[Path]:
    """The entries; a file that is half of one is an error."""
    found = sorted(folder.glob("*"))
    assert all(path.suffix != ".tmp" for path in found)
    return [path for path in found if path.suffix == ".parakeet"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that all users can look into."""
    with tempfile.TemporaryDirectory(prefix="parakeet-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def mounted(place: Path) -> Iterator[Callable[[str], None]]:
    """Mounts a file system in memory there, or the same one with other options."""

    def mount(given: str) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root may mount file systems")
        command = ["mount", "-t", "tmpfs", "-o", given, "tmpfs", os.fspath(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    yield mount
    subprocess.run(["umount", os.fspath(place)], capture_output=True, check=False)


def limited(folder: Path, size: int) -> bool:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return call(folder)


@pytest.mark.parametrize("size", [0, 3000])
def test_no_file_may_be_so_large(place: Path, size: int) -> None:
    folder = place / "cache"
    for _ in range(2):
        assert not in_child(lambda: limited(folder, size))
    whole_entries(folder)
    assert not in_child(lambda: call(folder))
    assert in_child(lambda: call(folder))


@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux does")
def test_a_full_file_system(place: Path, mounted: Callable[[str], None]) -> None:
    mounted("size=1m,mode=755")
    folder, filler = place / "cache", place / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
    for _ in range(2):
        assert not in_child(lambda: call(folder))
    if folder.exists():
        assert whole_entries(folder) == []
    filler.unlink()
    assert not in_child(lambda: call(folder))
    assert in_child(lambda: call(folder))


@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux does")
def test_a_read_only_file_system(place: Path, mounted: Callable[[str], None]) -> None:
    mounted("mode=755")
    folder, other = place / "cache", place / "other"
    assert not in_child(lambda: call(folder))
    mounted("remount,ro")
    before = whole_entries(folder)
    assert in_child(lambda: call(folder)) and before == whole_entries(folder)
    assert not in_child(lambda: call(other)) and not other.exists()


def as_other(work: Callable[[], object]) -> bool:
    os.setgroups([])
    os.setgid(OTHER)
    os.setuid(OTHER)
    return bool(work())


@as_root
def test_two_users(place: Path) -> None:
    """What is root's is trusted by others, if they may read it, and not written to; what another's is, is not."""
    folder, shared = place / "cache", place / "shared"
    assert not in_child(lambda: call(folder)) and folder.stat().st_mode & 0o777 == 0o700
    assert not in_child(lambda: as_other(lambda: call(folder)))  # it may not look
    folder.chmod(0o755)
    before = {path: path.read_bytes() for path in whole_entries(folder)}
    in_child(lambda: as_other(lambda: call(folder)))
    assert {path: path.read_bytes() for path in whole_entries(folder)} == before

    shared.mkdir()
    shared.chmod(0o1777)  # others may write to it: no place for a cache
    for _ in range(2):
        assert not in_child(lambda: as_other(lambda: call(shared))) and not in_child(lambda: call(shared))
    assert not list(shared.iterdir())

    own = shared / "own"
    assert not in_child(lambda: as_other(lambda: call(own)))
    assert in_child(lambda: as_other(lambda: call(own)))
    assert not in_child(lambda: call(own))  # another user's, who could have written anything
