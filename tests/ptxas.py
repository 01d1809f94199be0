"""Where ptxas is: on PATH, or in the package `nvidia-cuda-nvcc` (extra `test-gpu`)."""

from __future__ import annotations

import importlib.metadata
import shutil


def find() -> str | None:
    """The path of ptxas, or None."""
    on_path = shutil.which("ptxas")
    if on_path is not None:
        return on_path
    for distribution in importlib.metadata.distributions():
        if (distribution.metadata["Name"] or "").startswith("nvidia-cuda-nvcc"):
            for file in distribution.files or ():
                if file.name in ("ptxas", "ptxas.exe"):
                    return str(file.locate())
    return None


PTXAS = find()
