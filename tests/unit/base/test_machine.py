"""What other systems take in place of what Linux on x86-64 has, taken here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
RUNS = """
from parakeet_py.base import machine
from parakeet_py.llvm.engine import object_loader
from parakeet_py.llvm.runtime import error_state, thread_pool

assert machine.PORTABLE
assert not object_loader.supported() and not thread_pool.has_pool() and not error_state.HAS_FLAGS

import sys
import pytest

sys.exit(pytest.main(sys.argv[1:]))
"""


def test_portable_forms() -> None:
    """A share of the corpus, with LLVM's linker, one thread for regions and no flags of floating point."""
    args = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/test_programs.py", "-k", "native or checked"]
    done = subprocess.run(
        [sys.executable, "-c", RUNS, *args, "--share", "60"],
        env={**os.environ, "PARAKEET_PORTABLE": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
