"""Settings: the environment, `options`, and how many threads there are."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from parakeet_py.base import config
from parakeet_py.base.config import Config, current, options


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for name in [name for name in os.environ if name.startswith("PARAKEET_")]:
        monkeypatch.delenv(name)
    yield monkeypatch
    monkeypatch.undo()
    config.reload()


def test_defaults(environment: pytest.MonkeyPatch) -> None:
    assert config.reload() == Config()
    assert current().thread_count >= 1
    assert current().cache
    assert current().deterministic


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PARAKEET_NUM_THREAD", "did you mean 'PARAKEET_NUM_THREADS'?"),
        ("PARAKEET_THREADS", "did you mean 'PARAKEET_NUM_THREADS'?"),
        ("PARAKEET_DEVICE", "did you mean 'PARAKEET_DEVICES'?"),
        ("PARAKEET_cache", "did you mean 'PARAKEET_CACHE'?"),
        ("PARAKEET_STRCIT", "did you mean 'PARAKEET_STRICT'?"),
        ("PARAKEET_XYZZYXYZZYXYZZY", "there are PARAKEET_NUM_THREADS, PARAKEET_CHECK, "),
    ],
)
def test_unknown_variables_warn(environment: pytest.MonkeyPatch, name: str, text: str) -> None:
    environment.setenv(name, "1")
    with pytest.warns(UserWarning) as caught:
        config.reload()
    (warning,) = caught
    assert str(warning.message).startswith(f"the environment variable {name} is no setting of parakeet_py; {text}")
    assert warning.filename == __file__


def test_variables_of_others_do_not_warn(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("PARAKEETS", "1")
    environment.setenv("PARAKEET_TEST_GPU", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.reload()


def test_import_star_leaves_builtins_alone() -> None:
    import builtins

    import parakeet_py

    assert not [name for name in parakeet_py.__all__ if hasattr(builtins, name)]
    assert callable(parakeet_py.map) and parakeet_py.map is not map
    for name in ("ClusterWarning", "DeviceWarning", "FallbackWarning"):  # which users filter
        assert issubclass(getattr(parakeet_py, name), UserWarning) and name in parakeet_py.__all__
    assert issubclass(parakeet_py.GatherLimitError, parakeet_py.UnsupportedError)


def test_every_variable(environment: pytest.MonkeyPatch) -> None:
    variables = {
        "NUM_THREADS": "3",
        "CHECK": "1",
        "STRICT": "yes",
        "CACHE": "0",
        "CACHE_DIR": "/some/where",
        "DEVICES": "cpu,cuda:0",
        "SPLIT": "0.25",
        "DETERMINISTIC": "off",
        "CONTRACT": "true",
        "FASTMATH": "ON",
        "LIBDEVICE": "1",
        "DEBUG": "2",
        "PRINT": "fuse, cse,",
        "STOP": "fuse",
        "TIMELINE": "yes",
    }
    for name, text in variables.items():
        environment.setenv("PARAKEET_" + name, text)
    assert config.reload() == Config(
        threads=3, check=True, strict=True, cache=False, cache_dir="/some/where", devices="cpu,cuda:0",
        split=0.25, deterministic=False, contract=True, fastmath=True, libdevice=True, debug=2,
        print_passes=("fuse", "cse"), stop_pass="fuse", timeline=True,
    )  # fmt: skip
    assert current().thread_count == 3


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("NUM_THREADS", "many", "PARAKEET_NUM_THREADS='many': expected a whole number"),
        ("NUM_THREADS", "0", "PARAKEET_NUM_THREADS='0': threads must be between 1 and 1024, not 0"),
        ("CHECK", "maybe", "PARAKEET_CHECK='maybe': expected one of 1, 0, true, false, yes, no, on, off"),
        ("DEBUG", "9", "PARAKEET_DEBUG='9': debug must be between 0 and 4, not 9"),
    ],
)
def test_a_bad_variable_is_named(environment: pytest.MonkeyPatch, variable: str, text: str, message: str) -> None:
    environment.setenv("PARAKEET_" + variable, text)
    with pytest.raises(ValueError, match=message):
        config.reload()


def test_empty_variables_are_not_set(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("PARAKEET_NUM_THREADS", " ")
    assert config.reload() == Config()


def test_options_nest_and_end() -> None:
    before = current()
    with options(threads=1, check=True) as outer:
        assert (outer.threads, outer.check) == (1, True)
        with options(threads=2, cache_dir="~/x", print_passes="a,b"):
            assert (current().threads, current().check) == (2, True)
            assert current().cache_dir == os.path.expanduser("~/x")
            assert current().print_passes == ("a", "b")
        assert current() == outer
        with pytest.raises(RuntimeError, match="mine"), options(threads=None):
            raise RuntimeError("mine")
        assert current() == outer
    assert current() == before


def test_open_blocks_are_counted_for_native_code() -> None:
    count = ctypes.c_int64.from_address(config.open_blocks_address())
    before = count.value
    with options(threads=1), options(threads=2):
        assert count.value == before + 2
    with pytest.raises(TypeError), options(nothing=1):
        pass
    assert count.value == before


def test_options_belong_to_their_thread() -> None:
    seen: list[Config] = []
    with options(threads=7):
        thread = threading.Thread(target=lambda: seen.append(current()))
        thread.start()
        thread.join()
    assert seen[0].threads != 7


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"thread": 1},
            TypeError,
            "'thread' is not a setting; did you mean 'threads'. the settings are threads, check",
        ),
        ({"threads": "2"}, TypeError, "the setting threads cannot be '2'; it is a whole number, or None"),
        ({"threads": True}, TypeError, "the setting threads cannot be True"),
        ({"threads": 0}, ValueError, "threads must be between 1 and 1024, not 0"),
        ({"check": "1"}, TypeError, "the setting check cannot be '1'"),
        ({"check": 3}, ValueError, "check must be between 0 and 2, not 3"),
        ({"debug": None}, TypeError, "the setting debug cannot be None"),
        ({"print_passes": (1,)}, TypeError, "the setting print_passes cannot be"),
        ({"split": True}, TypeError, "the setting split cannot be True"),
        ({"devices": "cpu,emulated", "split": 1.5}, ValueError, "split is a share, between 0 and 1, not 1.5"),
        (
            {"split": 0.5},
            ValueError,
            "split=0.5 is the share of devices other than the CPU, but devices='cpu' names none",
        ),
        ({"devices": "emulated*2", "split": 0.5}, ValueError, "split=0.5 leaves a share to the CPU, which devices="),
    ],
)
def test_bad_options(changes: dict[str, object], error: type[Exception], message: str) -> None:
    before = current()
    with pytest.raises(error, match=message), options(**changes):
        pass
    assert current() == before


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_quota_of_version_2(tmp_path: Path) -> None:
    write(tmp_path / "cgroup", "0::/a/b\n")
    write(tmp_path / "fs/a/b/cpu.max", "max 100000\n")
    assert config._cgroup_quota(str(tmp_path / "fs"), str(tmp_path / "cgroup")) is None
    write(tmp_path / "fs/a/cpu.max", "250000 100000\n")
    assert config._cgroup_quota(str(tmp_path / "fs"), str(tmp_path / "cgroup")) == 2.5
    write(tmp_path / "fs/cpu.max", "150000 100000\n")
    assert config._cgroup_quota(str(tmp_path / "fs"), str(tmp_path / "cgroup")) == 1.5


def test_quota_of_version_1(tmp_path: Path) -> None:
    write(tmp_path / "cgroup", "5:memory:/x\n4:cpu,cpuacct:/x\n")
    write(tmp_path / "fs/cpu/x/cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "fs/cpu/x/cpu.cfs_period_us", "100000\n")
    assert config._cgroup_quota(str(tmp_path / "fs"), str(tmp_path / "cgroup")) is None
    write(tmp_path / "fs/cpu/x/cpu.cfs_quota_us", "50000\n")
    assert config._cgroup_quota(str(tmp_path / "fs"), str(tmp_path / "cgroup")) == 0.5


def test_no_quota_to_read(tmp_path: Path) -> None:
    assert config._cgroup_quota(str(tmp_path), str(tmp_path / "nothing")) is None


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity")
def test_threads_follow_the_affinity_mask() -> None:
    script = """if True:
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        from parakeet_py.base.config import current
        print(current().thread_count)"""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PARAKEET_")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=clean)
    assert done.stdout.strip() == "1"


def test_settings_do_not_import_the_compiler() -> None:
    script = "import sys, parakeet_py.base.config; print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(("text", "level"), [("0", 0), ("off", 0), ("1", 1), ("true", 1), ("2", 2)])
def test_levels_of_checks(text: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAKEET_CHECK", text)
    try:
        assert config.reload().check == level
        with options(check=bool(level)) as inside:
            assert inside.check == min(level, 1)
            assert not inside.checked
        with options(check=2) as inside:
            assert inside.checked
    finally:
        monkeypatch.undo()
        config.reload()


@pytest.mark.parametrize("text", ["3", "-1", "two"])
def test_no_level_of_checks(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAKEET_CHECK", text)
    with pytest.raises(ValueError, match="PARAKEET_CHECK="):
        config.reload()
    monkeypatch.undo()
    config.reload()
