"""The disk cache: what goes in comes out, whatever is not whole is no entry, and trouble is silent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import parakeet_py
from parakeet_py.base import config
from parakeet_py.llvm.engine import disk_cache


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with config.options(cache=True, cache_dir=tmp_path / "cache"):
        yield tmp_path / "cache"


KEY = disk_cache.digest("a key of the tests")


def entry_file(folder: Path) -> Path:
    (path,) = folder.glob("*.parakeet")
    return path


@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(256)) * 1000])
def test_round_trip(folder: Path, payload: bytes) -> None:
    assert disk_cache.get(KEY) is None
    assert disk_cache.put(KEY, payload)
    assert disk_cache.get(KEY) == payload
    assert disk_cache.put(KEY, payload + b"2", {"exports": ["f"], "n": 3})
    assert disk_cache.load_entry(KEY) == ({"exports": ["f"], "n": 3}, payload + b"2")


def test_only_the_user_may_look(folder: Path) -> None:
    disk_cache.put(KEY, b"code")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert entry_file(folder).stat().st_mode & 0o777 == 0o600


def test_damage_is_no_entry_and_is_overwritten(folder: Path) -> None:
    disk_cache.put(KEY, b"some code" * 10, {"a": 1})
    path = entry_file(folder)
    whole = path.read_bytes()
    for k in range(len(whole)):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :])
        assert disk_cache.get(KEY) is None
    for k in range(0, len(whole), 7):
        path.write_bytes(whole[:k])
        assert disk_cache.get(KEY) is None
    path.write_bytes(whole + b"more")
    assert disk_cache.get(KEY) is None
    disk_cache.put(KEY, b"new")
    assert disk_cache.get(KEY) == b"new"


def test_a_renamed_entry_is_foreign(folder: Path) -> None:
    disk_cache.put(KEY, b"code")
    other = disk_cache.digest("another key")
    path = entry_file(folder)
    path.rename(path.with_name(path.name.replace(KEY, other)))
    assert disk_cache.get(other) is None


def test_switched_off(tmp_path: Path) -> None:
    with config.options(cache=False, cache_dir=tmp_path / "never"):
        assert not disk_cache.put(KEY, b"code")
        assert disk_cache.get(KEY) is None
    assert not (tmp_path / "never").exists()


def test_a_file_in_the_way_is_silently_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with config.options(cache_dir=path):
            assert not disk_cache.put(KEY, b"code")
            assert disk_cache.get(KEY) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory_can_be_read(folder: Path) -> None:
    disk_cache.put(KEY, b"code")
    folder.chmod(0o500)
    try:
        assert disk_cache.get(KEY) == b"code"
        assert not disk_cache.put(KEY, b"other")
    finally:
        folder.chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_directory_others_may_write_is_not_trusted(folder: Path) -> None:
    disk_cache.put(KEY, b"code")
    for mode in (0o770, 0o707, 0o777):
        folder.chmod(mode)
        assert disk_cache.get(KEY) is None
        assert not disk_cache.put(KEY, b"other")
    folder.chmod(0o755)
    assert disk_cache.get(KEY) == b"code"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX owners")
def test_a_directory_of_someone_else_is_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_cache.put(KEY, b"code")
    me = os.geteuid()
    if me == 0:  # what is root's is
        os.chown(folder, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert disk_cache.get(KEY) is None


def test_the_least_recently_used_go_first(folder: Path) -> None:
    keys = [disk_cache.digest("lru", k) for k in range(10)]
    for age, key in enumerate(keys):
        disk_cache.put(key, b"x" * 1000)
        then = time.time() - 10_000 * (10 - age)
        os.utime(folder / f"{key}.parakeet", (then, then))
    assert disk_cache.get(keys[0]) is not None  # used now
    disk_cache.trim(os.fspath(folder), 6 * 4096)
    left = [key for key in keys if disk_cache.get(key) is not None]
    assert keys[0] in left
    assert left[1:] == keys[-len(left) + 1 :]
    assert 2 <= len(left) <= 5


def test_many_small_entries_stay_below_the_limit(folder: Path) -> None:
    with config.options(cache_size=20 * 4096):
        for k in range(70):
            disk_cache.put(disk_cache.digest("small", k), b"x")
    assert 10 <= len(list(folder.iterdir())) <= 20


def test_left_over_temporaries_are_removed(folder: Path) -> None:
    disk_cache.put(KEY, b"code")
    old, new = folder / f"{KEY}.parakeet.1.ab", folder / f"{KEY}.parakeet.2.cd"
    foreign = folder / "notes.txt"
    for path in (old, new, foreign):
        path.write_text("")
    os.utime(old, (1, 1))
    os.utime(foreign, (1, 1))
    disk_cache.trim(os.fspath(folder), 1 << 30)
    assert (old.exists(), new.exists(), foreign.exists()) == (False, True, True)
    assert disk_cache.get(KEY) == b"code"


def test_keys_tell_parts_apart() -> None:
    parts: list[tuple[object, ...]] = [
        (), ("",), (b"",), ("ab",), ("a", "b"), (("a", "b"),), (1,), (True,), (1.0,), ("1",), (None,), ((),), ((1,), 2),
        ((1, 2),), (0.0,), (-0.0,), (1j,),
    ]  # fmt: skip
    assert len({disk_cache.digest(*p) for p in parts}) == len(parts)
    assert disk_cache.digest("x", 1) == disk_cache.digest("x", 1)
    with pytest.raises(TypeError, match="cannot hold a object"):
        disk_cache.digest(object())


def test_an_edit_anywhere_in_the_package_makes_entries_foreign() -> None:
    """Sources of every stage are looked at, whatever folder the cache itself lies in."""
    package = Path(parakeet_py.__file__).parent
    names = {line.split()[0] for line in disk_cache._package().splitlines()}
    assert names == {path.name for path in package.rglob("*.py")}


def test_keys_are_the_same_in_another_process() -> None:
    script = (
        "import numpy; from parakeet_py.llvm.engine import disk_cache; print(disk_cache.digest('x', 1, (2.5, None)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    import numpy  # noqa: F401  (its version is part of keys)

    disk_cache._environment.cache_clear()
    assert done.stdout.strip() == disk_cache.digest("x", 1, (2.5, None))


def test_a_warm_start_does_not_import_llvmlite(folder: Path) -> None:
    script = (
        "import sys; from parakeet_py.llvm.engine import library_archive; "
        "library_archive.installed = lambda: '/dev/null/nothing'; "
        "from parakeet_py.llvm.runtime.native_runtime import runtime; "
        "runtime(); print('llvmlite' in sys.modules)"
    )
    environment = os.environ | {"PARAKEET_CACHE_DIR": os.fspath(folder), "PARAKEET_CACHE": "1"}

    def start() -> str:
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60, env=environment
        )
        return done.stdout.strip()

    assert start() == "True"
    assert start() == "False"
    for path in folder.glob("*.parakeet"):
        path.write_bytes(path.read_bytes()[:-1])
        assert start() == "True"  # damaged: compiled and written again
        assert start() == "False"
