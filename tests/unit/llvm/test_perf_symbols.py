"""Files that name machine code for profilers."""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from parakeet_py import options
from parakeet_py.llvm.engine import object_loader

pytestmark = pytest.mark.skipif(not object_loader.supported(), reason="code is loaded by LLVM here")

PROGRAM = """
import os
import numpy as np
from parakeet_py import accelerate

@accelerate
def smooth(x, n):
    for i in range(1, n):
        x[i] = 0.5 * (x[i - 1] + x[i])
    return np.sin(x).sum()

def helper(n):
    return n if n < 2 else helper(n - 1) + helper(n - 2)

@accelerate
def recursive(n):
    return helper(n)

smooth(np.ones(5), 5)
recursive(6)
"""
LINE = PROGRAM.splitlines().index("@accelerate") + 1


def run(tmp_path: Path, text: str, **variables: str) -> str:
    """The output of a program in a file of its own, which also prints the numbers of its processes."""
    script = tmp_path / "user.py"
    script.write_text(text)
    environment = {**os.environ, "PARAKEET_CACHE_DIR": str(tmp_path / "cache"), **variables}
    ran = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True, env=environment
    )
    return ran.stdout


def read_map(process: str) -> dict[str, tuple[int, int]]:
    path = Path(f"/tmp/perf-{process}.map")
    lines = path.read_text().splitlines()
    path.unlink()
    found = {}
    for line in lines:
        address, size, name = line.split(" ", 2)
        found[name] = int(address, 16), int(size, 16)
    return found


def check_names(tmp_path: Path, found: dict[str, tuple[int, int]]) -> None:
    file = tmp_path / "user.py"
    smooth = f"py::smooth(float64[1 axis], int):{file}"
    assert {smooth, f"{smooth} [gate]", f"py::recursive(int):{file}", "pk_parallel", "gate.fail"} <= set(found)
    assert any(name.startswith("py::recursive(int)") and "helper" in name for name in found)
    places = sorted(found.values())
    assert all(address > 0 and size > 0 for address, size in places)
    assert all(one + size <= after for (one, size), (after, _) in itertools.pairwise(places))


@pytest.mark.parametrize("again", [False, True], ids=["compiled", "from the cache"])
def test_map(tmp_path: Path, again: bool) -> None:
    text = PROGRAM + "print(os.getpid())"
    process = run(tmp_path, text, PARAKEET_PERF="map").strip()
    if again:
        read_map(process)
        process = run(tmp_path, text, PARAKEET_PERF="map").strip()
    check_names(tmp_path, read_map(process))


def test_fork(tmp_path: Path) -> None:
    """A child has a map of its own, with what it has inherited."""
    more = """
    @accelerate
    def later(x):
        return x + 1

    child = os.fork()
    if child == 0:
        later(3)
        os._exit(0)
    os.waitpid(child, 0)
    print(os.getpid(), child)
    """
    parent, child = run(tmp_path, PROGRAM + textwrap.dedent(more), PARAKEET_PERF="map").split()
    before, after = read_map(parent), read_map(child)
    check_names(tmp_path, before)
    assert set(after) - set(before) == {
        f"py::later(int):{tmp_path / 'user.py'}",
        f"py::later(int):{tmp_path / 'user.py'} [gate]",
    }
    assert before.items() <= after.items()


def test_jitdump(tmp_path: Path) -> None:
    more = "print(os.getpid(), [line.split()[1] for line in open('/proc/self/maps') if '/jit-' in line])"
    process, protection = run(tmp_path, PROGRAM + more, PARAKEET_PERF="jitdump", JITDUMPDIR=str(tmp_path)).split()
    assert protection == "['r-xp']"  # which perf finds the file by
    data = (tmp_path / f"jit-{process}.dump").read_bytes()
    magic, version, size, machine, _, number, nanoseconds, flags = struct.unpack_from("<6I2Q", data)
    assert (magic, version, size, machine, number, flags) == (0x4A695444, 1, 40, 62, int(process), 0)
    at, found, lines, numbers = size, {}, {}, []
    while at < len(data):
        kind, length, when = struct.unpack_from("<2IQ", data, at)
        body = data[at + 16 : at + length]
        assert when >= nanoseconds
        nanoseconds, at = when, at + length
        if kind == 2:
            address, count, first, line, discriminator = struct.unpack_from("<3Q2I", body)
            assert (count, first, discriminator) == (1, address, 0)
            lines[address] = line, body[32:].rstrip(b"\0").decode()
            continue
        assert kind == 0
        _, _, virtual, address, size, index = struct.unpack_from("<2I4Q", body)
        name, code = body[40:].split(b"\0", 1)
        assert virtual == address and len(code) == size
        found[name.decode()] = address, size
        numbers.append(index)
    assert at == len(data) and numbers == list(range(len(numbers)))
    check_names(tmp_path, found)
    file = str(tmp_path / "user.py")
    assert lines[found[f"py::smooth(float64[1 axis], int):{file}"][0]] == (LINE, file)


def test_nothing_is_written_unasked(tmp_path: Path) -> None:
    process = run(tmp_path, PROGRAM + "print(os.getpid())", JITDUMPDIR=str(tmp_path)).strip()
    assert not Path(f"/tmp/perf-{process}.map").exists() and not list(tmp_path.glob("*.dump"))


def test_the_setting() -> None:
    with (
        pytest.raises(ValueError, match="perf is 'map', 'jitdump', 'gdb' or 'kernels', not 'nap'"),
        options(perf="nap"),
    ):
        pass
