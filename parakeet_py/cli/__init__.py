"""The command line: `parakeet bench`, `parakeet bench-gpu`, `parakeet explain FILE.py:FUNCTION`, `parakeet export
FILE.py:FUNCTION`, `parakeet doctor`, `parakeet cache`.

Commands import what they need when they run, so that `--help` is quick. This is the only package that prints.
"""

from __future__ import annotations

from parakeet_py.cli import bench, functions, machine
from parakeet_py.cli.app import app


def main() -> None:
    """Run the command line."""
    app()


__all__ = ["app", "bench", "functions", "machine", "main"]
