"""Which files and folders the disk cache trusts, what it does without any, and what people are told of it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from parakeet_py import accelerate, options
from parakeet_py.base import cache_files, config
from parakeet_py.base.cache_files import read_file, trusted_folder, write_file
from parakeet_py.cli import app
from parakeet_py.hybrid.devices import calibration
from parakeet_py.llvm.engine import disk_cache

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX owners and permissions")
KEY = disk_cache.digest("a key of these tests")
ROOT = Path(__file__).parents[3]
NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with options(cache=True, cache_dir=tmp_path / "cache"):
        yield tmp_path / "cache"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    cache_files._warn.cache_clear()
    with caplog.at_level(logging.WARNING, "parakeet_py"):
        yield caplog


# ---- files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "file")
    for data in (b"", b"x", bytes(range(256)) * 5000):
        assert write_file(path, data)
        found = read_file(path)
        assert found is not None and found[0] == data and found[1].st_size == len(data)
        assert (read_file(path, 10) or [b"?"])[0] == data[:10]
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("mode", [0o622, 0o620, 0o602, 0o666, 0o777])
def test_a_file_that_others_may_write_to_is_none(folder: Path, mode: int) -> None:
    disk_cache.put(KEY, b"code")
    path = folder / f"{KEY}.parakeet"
    path.chmod(mode)
    assert disk_cache.get(KEY) is None
    path.chmod(0o644)
    assert disk_cache.get(KEY) == b"code"


def test_a_file_planted_while_the_folder_was_open_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_cache.put(KEY, b"code")
    own, fstat = os.geteuid(), os.fstat

    def of_another(descriptor: int) -> Any:
        status = list(fstat(descriptor))
        status[4] = own + 1
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", of_another)
    assert disk_cache.get(KEY) is None
    monkeypatch.undo()
    with options(cache=True, cache_dir=folder):
        assert disk_cache.get(KEY) == b"code"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_none(folder: Path) -> None:
    disk_cache.put(KEY, b"code")
    os.chown(folder / f"{KEY}.parakeet", NOBODY, NOBODY)
    assert disk_cache.get(KEY) is None
    assert disk_cache.put(KEY, b"new") and disk_cache.get(KEY) == b"new"


def test_what_is_no_regular_file_is_none_at_once(folder: Path, tmp_path: Path) -> None:
    disk_cache.put(KEY, b"code")
    path = folder / f"{KEY}.parakeet"
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    for make in (os.mkfifo, os.mkdir, lambda it: os.symlink(elsewhere, it), lambda it: os.link(elsewhere, it)):
        make(path)
        assert disk_cache.get(KEY) is None
        os.rmdir(path) if path.is_dir() else path.unlink()
    elsewhere.rename(path)
    assert disk_cache.get(KEY) == b"code"


def test_a_huge_sparse_file_is_none(folder: Path) -> None:
    disk_cache.put(KEY, b"code")
    path = folder / f"{KEY}.parakeet"
    for size in (cache_files.MAX_FILE, cache_files.MAX_FILE + 1, 1 << 40):
        os.truncate(path, size)
        assert disk_cache.get(KEY) is None
    assert disk_cache.put(KEY, b"code") and disk_cache.get(KEY) == b"code"


def test_what_would_not_be_read_again_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_files, "MAX_FILE", 1000)
    assert not disk_cache.put(KEY, b"x" * 1000)
    assert list(folder.iterdir()) == []


def test_all_readers_are_as_careful(folder: Path) -> None:
    trusted_folder(os.fspath(folder))
    path = folder / calibration.FILE
    assert write_file(os.fspath(path), b'{"cpu": [1e9, 0, 1e-6]}')
    calibration.forget()
    assert calibration.stored("cpu") == (1e9, 0.0, 1e-6)
    path.chmod(0o666)
    calibration.forget()
    assert calibration.stored("cpu") is None
    path.unlink()
    os.mkfifo(path)
    calibration.forget()
    assert calibration.stored("cpu") is None
    calibration.forget()


# ---- folders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720])
def test_a_folder_above_that_others_may_write_to(tmp_path: Path, said: pytest.LogCaptureFixture, mode: int) -> None:
    above = tmp_path / "above"
    inner = above / "inner" / "cache"
    inner.mkdir(parents=True, mode=0o700)
    inner.chmod(0o700)
    with options(cache=True, cache_dir=inner):
        assert disk_cache.put(KEY, b"code")
        above.chmod(mode)
        assert disk_cache.get(KEY) is None and not disk_cache.put(KEY, b"code")
        above.chmod(mode | 0o1000)  # sticky: entries of others cannot be renamed
        assert disk_cache.get(KEY) == b"code"
        above.chmod(0o755)
        assert disk_cache.get(KEY) == b"code"
    (record,) = said.records
    assert f"others may write to {above}" in record.getMessage()
    assert "PARAKEET_CACHE_DIR" in record.getMessage()


def test_the_folder_itself_may_not_be_sticky(folder: Path) -> None:
    disk_cache.put(KEY, b"code")
    folder.chmod(0o1777)
    assert disk_cache.get(KEY) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["above", "link", "folder"])
def test_folders_and_links_of_another_user(tmp_path: Path, said: pytest.LogCaptureFixture, place: str) -> None:
    real = tmp_path / "above" / "cache"
    real.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "above")
    given = {"above": tmp_path / "above", "link": link, "folder": real}[place]
    with options(cache=True, cache_dir=link / "cache"):
        assert disk_cache.put(KEY, b"code") and disk_cache.get(KEY) == b"code"
        os.chown(given, NOBODY, NOBODY, follow_symlinks=False)
        assert disk_cache.get(KEY) is None and not disk_cache.put(KEY, b"code")
    assert f"{given} belongs to another user" in said.text


def test_links_are_followed_to_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "open" / "mine").mkdir(parents=True)
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(tmp_path / "open" / ".." / "open" / "mine")
    (tmp_path / "round").symlink_to("round")
    path = os.fspath(tmp_path / "first" / "cache")
    assert trusted_folder(path) == path
    (tmp_path / "open").chmod(0o777)
    assert trusted_folder(path) is None
    assert trusted_folder(os.fspath(tmp_path / "round" / "cache")) is None


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_what_is_made_is_for_this_user_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with options(cache=True, cache_dir=tmp_path / "a" / "b" / "c"):
            assert disk_cache.put(KEY, b"code") and disk_cache.get(KEY) == b"code"
    finally:
        os.umask(before)
    for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"):
        assert path.stat().st_mode & 0o077 == 0


def test_nothing_is_made_below_what_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert trusted_folder(os.fspath(tmp_path / "open" / "a" / "b")) is None
    assert list((tmp_path / "open").iterdir()) == []


# ---- processes in odd surroundings -----------------------------------------------------------------------------------

SCRIPT = """
import os, pathlib, resource, sys, numpy as np
from parakeet_py import accelerate, options
from parakeet_py.base import cache_files
from parakeet_py.llvm.engine import disk_cache

def call():
    exec(compile("def f(x):\\n    return x[1:] * 2.0 + x[:-1]", "program", "exec"), globals())
    made = accelerate(f)
    x = np.arange(1000.0)
    assert made(x).tobytes() == f(x).tobytes() and not made.fell_back
"""
END = """
call()
print(disk_cache.directory())
"""


def process(tmp_path: Path, before: str = "", **variables: str | None) -> str:
    """The folder of the cache that a new process finds, which calls an accelerated function."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PARAKEET_")}
    environment["PARAKEET_WHEN"] = "now"
    environment |= {"PYTHONPATH": os.fspath(ROOT), "PARAKEET_CACHE": "1", "XDG_CACHE_HOME": ""}
    environment |= {name: value for name, value in variables.items() if value is not None}
    for name in [name for name, value in variables.items() if value is None]:
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + before + END],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("home", ["relative", ".", "", "../up"])
def test_a_home_that_is_not_absolute_is_none(tmp_path: Path, home: str) -> None:
    assert process(tmp_path, HOME=home) == "None"
    assert list(tmp_path.iterdir()) == []
    assert process(tmp_path, HOME=home, PARAKEET_CACHE_DIR="~/cache") == "None"
    assert list(tmp_path.iterdir()) == []
    assert process(tmp_path, HOME=home, PARAKEET_CACHE_DIR=os.fspath(tmp_path / "c")) == os.fspath(tmp_path / "c")


def test_a_home_that_is_not_there(tmp_path: Path) -> None:
    assert process(tmp_path, HOME="/proc/nothing/here") == "None"
    assert process(tmp_path, HOME="/dev/null") == "None"


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in ("~", "relative", ""):
        monkeypatch.setattr(os.path, "expanduser", lambda path, found=found: found)
        assert config.home() is None
        with options(cache=True, cache_dir=None):
            monkeypatch.setenv("XDG_CACHE_HOME", "relative")
            assert disk_cache.directory() is None
        with options(cache=True, cache_dir="~/x"):
            assert disk_cache.directory() is None


@pytest.mark.parametrize("limit", [0, 100, 5000])
def test_a_file_system_that_is_full(tmp_path: Path, limit: int) -> None:
    cache = tmp_path / "cache"
    full = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    assert process(tmp_path, before=full, PARAKEET_CACHE_DIR=os.fspath(cache)) == os.fspath(cache)
    assert all(path.suffix == ".parakeet" and path.stat().st_size > 0 for path in cache.iterdir())
    assert process(tmp_path, PARAKEET_CACHE_DIR=os.fspath(cache)) == os.fspath(cache)
    assert len(list(cache.iterdir())) > 1


def test_a_file_system_that_cannot_be_written(tmp_path: Path) -> None:
    for place in ("/proc/cache", "/sys/cache", "/dev/null/cache"):
        assert process(tmp_path, PARAKEET_CACHE_DIR=place) == "None"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_two_users_on_one_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert process(tmp_path, PARAKEET_CACHE_DIR=os.fspath(cache)) == os.fspath(cache)
    before = {path: path.read_bytes() for path in cache.iterdir()}
    assert before
    for mode in (0o700, 0o755, 0o777):
        cache.chmod(mode)
        become = f"""
with options(cache_dir={os.fspath(tmp_path / str(mode))!r}):
    call()  # what is imported on the way could not be read by another user
os.seteuid({NOBODY})
"""
        assert process(tmp_path, before=become, PARAKEET_CACHE_DIR=os.fspath(cache)) == "None"
    assert {path: path.read_bytes() for path in cache.iterdir()} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_roots_cache_is_read_by_others() -> None:
    """As that of an image, which is filled while it is built, and run by a user of its own."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        cache = Path(name) / "cache"
        become = f"""
call()
names = [os.fspath(path) for path in pathlib.Path({os.fspath(cache)!r}).iterdir()]
os.chmod({os.fspath(cache)!r}, 0o755)
os.seteuid({NOBODY})
assert names and not any(map(cache_files.read_file, names))  # each is written for its owner alone
os.seteuid(0)
for name in names:
    os.chmod(name, 0o644)
os.seteuid({NOBODY})
assert all(map(cache_files.read_file, names)) and not cache_files.write_file(names[0], b"")
"""
        assert process(Path(name), before=become, PARAKEET_CACHE_DIR=os.fspath(cache)) == os.fspath(cache)


# ---- how much there is, and what people see of it --------------------------------------------------------------------


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["cache", *arguments])
    return done.exit_code, done.output


def test_the_command_lists_and_deletes(folder: Path) -> None:
    def doubled_and_more(x: Any) -> Any:
        return x * 2 + 1

    with options(check=False):
        accelerate(doubled_and_more)(np.arange(3.0))
    disk_cache.put(KEY, b"x" * 5000, title="two\nlines \x1b[31m")
    code, listed = run("--list")
    assert code == 0 and "doubled_and_more(float64[1 axis])" in listed and "two lines  [31m" in listed
    count = len(list(folder.iterdir()))
    assert len(listed.splitlines()) == count
    for arguments in ((), ("--size",)):
        code, text = run(*arguments)
        assert code == 0 and f"{count} entries" in text and "at most 1.1 GB" in text and os.fspath(folder) in text
    (folder / "notes.txt").write_text("mine")
    code, text = run("--clear")
    assert code == 0 and f"{count} files deleted" in text
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert "0 entries" in run()[1]


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    assert run("--size", "--list")[0] == 2
    with options(cache=False):
        assert run() == (2, "the disk cache is switched off (PARAKEET_CACHE=0)\n")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with options(cache=True, cache_dir=tmp_path / "open"):
        code, text = run("--clear")
        assert code == 2 and "there is no cache" in text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), ("1000", 1000), ("10b", 10), ("500MB", 500_000_000), ("500 mb", 500_000_000), ("2G", 2_000_000_000),
        ("1GiB", 1 << 30), ("1.5KiB", 1536), (".5 TB", 500_000_000_000), (" 3k ", 3000),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    with options(cache_size=text) as settings:
        assert settings.cache_size == size


@pytest.mark.parametrize("text", ["", "MB", "1 iB", "-1", "1e9", "1 EB", "one", "1GB2"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a size such as 500MB, 2GB or 1\.5GiB"), options(cache_size=text):
        pass


def test_sizes_of_other_types() -> None:
    with options(cache_size=5) as settings:
        assert settings.cache_size == 5
    with pytest.raises(ValueError, match="cache_size is a number of bytes, not -1"), options(cache_size=-1):
        pass
    for value in (None, True, 1.5):
        with pytest.raises(TypeError, match="the setting cache_size cannot be"), options(cache_size=value):
            pass


def test_nothing_is_kept_in_a_cache_of_no_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "TRIM_EVERY", 1)
    with options(cache_size=0):
        assert disk_cache.put(KEY, b"code")
        assert disk_cache.get(KEY) is None


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("chekc", "check"),
        ("Strict", "strict"),
        ("cachedir", "cache_dir"),
        ("thread", "threads"),
        ("fast_math", "fastmath"),
    ],
)
def test_misspelt_options_are_told_the_nearest(name: str, nearest: str) -> None:
    message = rf"'{name}' is not a setting; did you mean '{nearest}'\? the settings are"
    with pytest.raises(TypeError, match=message), options(**{name: True}):
        pass


def test_misspelt_options_of_the_decorator() -> None:
    misspelt: Any = {"stirct": True}
    with pytest.raises(TypeError, match=r"accelerate\(\) has no option 'stirct'; did you mean 'strict'\? the options"):
        accelerate(**misspelt)
    with pytest.raises(TypeError, match=r"accelerate\(\) has no option 'zzz'; the options are background, chunks, "):
        accelerate(**{"zzz": 1})
