"""Where ptxas and nvdisasm are: on PATH, or in NVIDIA's packages, which the extra `test` installs."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from pathlib import Path


def find(name: str) -> str | None:
    """The path of a program of CUDA's, or None."""
    on_path = shutil.which(name)
    if on_path is not None:
        return on_path
    for distribution in importlib.metadata.distributions():
        if (distribution.metadata["Name"] or "").startswith("nvidia-cuda-nv"):
            for file in distribution.files or ():
                if file.name in (name, f"{name}.exe"):
                    return str(file.locate())
    return None


PTXAS = find("ptxas")
NVDISASM = find("nvdisasm")


def assembled(ptx: str, target: str, folder: Path) -> tuple[Path, dict[str, tuple[int, int]]]:
    """A module as machine code; of each kernel the bytes that it spills and the registers of a thread."""
    assert PTXAS is not None
    source, code = folder / f"{target}.ptx", folder / f"{target}.cubin"
    source.write_text(ptx)
    command = [PTXAS, "-v", f"-arch={target}", str(source), "-o", str(code)]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = re.findall(r"'(\w+)' for.*?(\d+) bytes spill stores.*?Used (\d+) registers", report, re.DOTALL)
    return code, {name: (int(spilled), int(used)) for name, spilled, used in found}


def instructions(code: Path) -> dict[str, list[str]]:
    """The instructions of each kernel of a module, without predicates and operands: ``LDG.E.128.CONSTANT``..."""
    assert NVDISASM is not None
    text = subprocess.run([NVDISASM, "-c", str(code)], capture_output=True, text=True, check=True).stdout
    kernels: dict[str, list[str]] = {}
    for part in re.split(r"(?m)^\.text\.", text)[1:]:
        name, _, body = part.partition(":")
        kernels[name] = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", body)
    return kernels
