"""From LLVM IR to PTX text, for one GPU architecture.

PTX is made at the lowest ISA version that knows the architecture, so that the oldest possible driver accepts it. The
text depends on the IR and the architecture alone; it is kept in memory and, by content, in the disk cache.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Any

from parakeet_py.base import config as settings
from parakeet_py.base.errors import CodegenError
from parakeet_py.llvm.engine import compiler, disk_cache
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.ptx import libdevice

TRIPLE = "nvptx64-nvidia-cuda"
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_103", "sm_110", "sm_120")
DEFAULT = "sm_80"
_FEATURES = {"sm_75": "+ptx65"}  # the version that has matrices in registers; the architecture is known from 6.3 on
OWN = "a"  # ends the name of an architecture with instructions that no later one has
_ANY_NAME = "any_kernel_"
_DEBUG = re.compile(r"^//.*\n|^\s*\n", re.MULTILINE)

_lock = threading.Lock()
_texts: dict[tuple[str, str], str] = {}


@lru_cache(maxsize=1)
def _target() -> Any:
    llvm = compiler.binding()
    with _lock:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE)


def _machine(architecture: str) -> Any:
    return _target().create_target_machine(cpu=architecture, features=_FEATURES.get(architecture, ""), opt=3)


@lru_cache(maxsize=32)
def gpu(architecture: str = DEFAULT) -> HostInfo:
    """An architecture, as the code generator sees it.

    Raises
    ------
    ValueError
        An architecture that LLVM would not know.
    """
    known = ARCHITECTURES
    if architecture not in known:
        raise ValueError(f"{architecture!r} is not a GPU architecture that can be compiled for: {', '.join(known)}")
    return HostInfo(architecture, "", 128, TRIPLE, str(_machine(architecture).target_data))


def number(architecture: str) -> int:
    """The number of an architecture, such as 90."""
    return int(architecture.removeprefix("sm_").removesuffix(OWN))


@lru_cache(maxsize=32)
def isa(architecture: str) -> tuple[int, int]:
    """The version of PTX that kernels for an architecture are written in."""
    found = re.search(r"^\.version (\d+)\.(\d+)$", _compile("", architecture), re.MULTILINE)
    assert found is not None
    return int(found[1]), int(found[2])


def newest_isa(driver: tuple[int, int]) -> tuple[int, int]:
    """The newest PTX that a driver takes, by the version of CUDA that it is for, 12.0 or later."""
    major, minor = driver
    return (8, minor - (minor > 5)) if major == 12 else (major - 4, minor)  # 12.5 and 12.6 have the same


def compile_ptx(text: str, architecture: str = DEFAULT, name: str = "") -> str:
    """The PTX of a module of LLVM IR text; what has been compiled before, by whatever process, comes from the cache.

    With the name of its kernel, it is also found under any other: many functions have the same kernels.

    Raises
    ------
    CodegenError
        LLVM does not accept the text: an error of the code generator.
    """
    if name:
        return compile_ptx(text.replace(name, _ANY_NAME), architecture).replace(_ANY_NAME, name)
    key = text, architecture
    with _lock:
        known = _texts.get(key)
    if known is not None:
        return known
    stamp = libdevice.stamp() if libdevice.calls(text) else ""
    on_disk = disk_cache.digest("ptx", text, architecture, stamp) if settings.current().uses_disk else None
    stored = disk_cache.get(on_disk) if on_disk is not None else None
    if stored is None:
        made = _compile(text, architecture)
        if on_disk is not None:
            disk_cache.put(on_disk, made.encode(), title=f"PTX for {architecture}")
    else:
        made = stored.decode()
    with _lock:
        _texts[key] = made
    return made


def _compile(text: str, architecture: str) -> str:
    llvm = compiler.binding()
    machine = _machine(architecture)
    try:
        # the layout comes first: a load or store that says no alignment has that of its type
        layout = f'target datalayout = "{gpu(architecture).data_layout}"\ntarget triple = "{TRIPLE}"\n'
        context = llvm.create_context()
        module = llvm.parse_assembly(layout + text, context)
        if libdevice.calls(text):
            libdevice.link(module, machine, context)
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"LLVM refuses the generated code: {error}") from error
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = False
    compiler.run_pipeline(module, machine, options)
    return _DEBUG.sub("", machine.emit_assembly(module))
