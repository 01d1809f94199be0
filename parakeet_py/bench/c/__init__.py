"""Hand-written C baselines: built where gcc is found, called through ctypes.

The library is compiled once per machine into a `benchmarks` folder in the compiler's own cache, named after a hash of
everything that decides its content: source, flags, compiler version and processor. A failed build is not an error of
the benchmark: the C column then says why it is empty.

Compilation and linking are two steps, because gcc's `-ffast-math` at link time would add start-up code that makes the
whole process flush subnormal numbers to zero, NumPy's results included.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from parakeet_py.base import config
from parakeet_py.llvm.engine import disk_cache

COMPILE_FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC", "-std=gnu11")
LINK_FLAGS = ("-shared", "-fopenmp")
SOURCE = Path(__file__).with_name("baselines.c")


class BuildError(Exception):
    """There is no C baseline on this machine; the message says why."""


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The compiled baselines.

    Raises
    ------
    BuildError
        No gcc, or gcc refused.
    """
    compiler = shutil.which("gcc")
    if compiler is None:
        raise BuildError("gcc not found")
    path = library_path(compiler)
    if not path.exists():
        build(compiler, path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"cannot load the compiled baselines: {error}") from error


def library_path(compiler: str) -> Path:
    """Where the library for this source, compiler and machine is kept."""
    version = subprocess.run([compiler, "-dumpfullversion"], capture_output=True, text=True, check=False).stdout
    parts = [SOURCE.read_text(), *COMPILE_FLAGS, *LINK_FLAGS, version, platform.machine(), _processor()]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return cache_folder() / f"baselines-{digest}.so"


def cache_folder() -> Path:
    """A folder beside the compiler's own cache, writable by this user only; a temporary one where there is no cache."""
    with config.options(cache=True):
        base = disk_cache.directory() or tempfile.mkdtemp(prefix="parakeet_py-")
    folder = Path(base) / "benchmarks"
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def build(compiler: str, path: Path) -> None:
    """Compile and link `SOURCE` to `path`; the file appears whole or not at all."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        object_file = os.path.join(folder, "baselines.o")
        shared = os.path.join(folder, "baselines.so")
        _run([compiler, *COMPILE_FLAGS, "-c", str(SOURCE), "-o", object_file])
        _run([compiler, *LINK_FLAGS, object_file, "-o", shared, "-lmvec", "-lm"])
        os.replace(shared, path)


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["no message"]
        raise BuildError(f"gcc failed: {lines[-1]}")


def _processor() -> str:
    """The processor's model and features, as far as the system reports them: -march=native depends on them."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if line.startswith(("model name", "flags"))]
        return "".join(lines[:2])
    except OSError:
        return platform.processor()
