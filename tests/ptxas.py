"""ptxas and nvdisasm, from PATH or from NVIDIA's packages, which the extra `test` installs, and what they are given."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from parakeet_py.base.errors import NotObservedError, UnsupportedError
from parakeet_py.call.devices.calls import device_plan_of
from parakeet_py.hybrid.plan.device_plan import USUAL, Form

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
FORMS = {"sm_75": Form(False, False), "sm_86": Form(True, False), "sm_100": Form(True, True, 2)}
HEADER = re.compile(r"^\.(version|target|address_size).*\n", re.MULTILINE)


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


def kernels(function: Any, args: tuple[Any, ...], architecture: str) -> list[str]:
    """The PTX of all kernels of a call, in the form that an architecture stands for; none if it is not compiled."""
    dispatcher = function._dispatcher
    try:
        plan = device_plan_of(dispatcher.compiled_for_device(dispatcher.positional(args, {})))
    except (NotObservedError, UnsupportedError):
        return []
    form = FORMS.get(architecture, USUAL)
    return [
        plan.ptx(architecture, number, form if kernel.divisible else form._replace(parts=1))
        for number, kernel in enumerate(plan.kernels)
    ]


def assemble(texts: list[str], architecture: str, folder: Path) -> None:
    """Have ptxas assemble kernels, in as few runs as their device functions (which may be the same) allow."""
    plain = [text for text in texts if ".func" not in text]
    files = [text for text in texts if ".func" in text]
    if plain:
        files.append(plain[0] + "".join(HEADER.sub("", text) for text in plain[1:]))
    for number, text in enumerate(files):
        path = folder / f"{architecture}_{number}.ptx"
        path.write_text(text)
        command = [PTXAS or "ptxas", f"-arch={architecture}", str(path), "-o", "/dev/null"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert found.returncode == 0, f"{found.stderr}\n{text}"
