"""The system's C compiler, which links what has been exported."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from parakeet_py.base import machine
from parakeet_py.export.errors import ExportError
from parakeet_py.export.runtime import Threads

_COMPILERS = ("cc", "gcc", "clang")
_MOST_LINES = 20


def compiler(processor: str = machine.PROCESSOR) -> str | None:
    """The C compiler for a processor: what CC names, or else the first of the usual names that is there, which for
    another processor are those of cross compilers; None if there is none."""
    wanted = os.environ.get("CC")
    own = _COMPILERS if processor == machine.PROCESSOR else (f"{processor}-linux-gnu-gcc",)
    for name in (wanted,) if wanted else own:
        found = shutil.which(shlex.split(name)[0]) if name.strip() else None
        if found:
            return name
    return None


def command(
    name: str, objects: Sequence[str], needs: Sequence[str], threads: Threads, flags: Sequence[str], cc: str = "cc"
) -> list[str]:
    """The command that makes the library of the files beside it. `needs` are symbols of C libraries."""
    libraries = ["-lmvec"] if any(one.startswith("_ZGV") for one in needs) else []
    if threads == "pool":
        libraries.append("-Wl,-z,nodelete")  # its threads never end
    if threads == "openmp":
        libraries.append("-fopenmp")
    base = [*shlex.split(cc), "-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden", "-shared", "-o", f"lib{name}.so"]
    return [*base, f"{name}.c", *objects, *flags, *libraries, "-lm", "-pthread"]


def run(command: Sequence[str], folder: Path) -> None:
    """Run a compiler in a folder.

    Raises
    ------
    ExportError
        It fails; the text is what it says.
    """
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, errors="replace")
    except OSError as error:
        raise ExportError(f"{command[0]} cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).splitlines()[:_MOST_LINES])
        raise ExportError(f"{shlex.join(command)}\nfailed in {folder}:\n{said}")
