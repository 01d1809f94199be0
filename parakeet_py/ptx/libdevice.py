"""NVIDIA's elementary functions: `libdevice`, bitcode that comes with CUDA, in the place of the project's own.

Asked for with `accelerate(libdevice=True)` and used where it is found: what `CUDA_HOME` or `CUDA_PATH` names, a package
of NVIDIA (`nvidia-cuda-nvcc`, `nvidia-nvvm`), or the usual place of a toolkit. In single precision its functions use
the approximate instructions of the hardware; they are as accurate as CUDA's documentation says, mostly within 2 units
in the last place, but are not the functions of the CPU to the bit, as the project's own are.

Of its some 350 functions, those that a kernel calls become a part of its module, before LLVM's passes see it.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from parakeet_py.base.debug_log import log
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, FunctionText
from parakeet_py.llvm.engine import compiler
from parakeet_py.typed_ir.ir import ELEMENTARY

FILE = "libdevice.10.bc"
PREFIX = "__nv_"
_TOOLKITS = ("/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda")
_OWN_NAME = {"gamma": "tgamma"}
FUNCTIONS = ELEMENTARY - {"erfc", "power"}


def _places() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], "nvvm", "libdevice", FILE)
    for distribution in importlib.metadata.distributions():
        if (distribution.metadata["Name"] or "").startswith("nvidia-"):
            for file in distribution.files or ():
                if file.name == FILE:
                    yield Path(str(file.locate()))
    for toolkit in _TOOLKITS:
        yield Path(toolkit, "nvvm", "libdevice", FILE)


@lru_cache(maxsize=1)
def find() -> Path | None:
    """Where the library is; None if it is nowhere."""
    for place in _places():
        if place.is_file():
            return place
    log.info("libdevice is not installed: kernels have the project's own elementary functions")
    return None


def call(f: FunctionText, name: str, dtype: str, arguments: list[str]) -> str | None:
    """Call a function on float32 or float64 values; None if the library has none of that name."""
    if name not in FUNCTIONS:
        return None
    kind = LLVM_TYPE[dtype]
    symbol = PREFIX + _OWN_NAME.get(name, name) + ("f" if dtype == "float32" else "")
    function = f.module.declare(kind, symbol, ", ".join([kind] * len(arguments)), "nounwind memory(none)")
    return f.value(f"call {kind} {function}({', '.join(f'{kind} {argument}' for argument in arguments)})")


def calls(text: str) -> bool:
    """Whether LLVM IR calls functions of the library."""
    return f"@{PREFIX}" in text


def stamp() -> str:
    """What distinguishes one version of the library from another."""
    place = find()
    return "" if place is None else f"{place}:{place.stat().st_size}:{place.stat().st_mtime_ns}"


def link(module: Any, machine: Any, context: Any) -> None:
    """Make what a module calls of the library a part of it."""
    place = find()
    assert place is not None
    llvm = compiler.binding()
    library = llvm.parse_bitcode(place.read_bytes(), context)
    library.triple, library.data_layout = module.triple, module.data_layout
    own = {function.name for function in module.functions if not function.is_declaration}
    module.link_in(library)
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0)))
