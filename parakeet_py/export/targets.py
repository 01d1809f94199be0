"""The processors that exported code is made for: levels of x86-64, and AArch64.

A level is a set of instructions that a processor has or lacks as a whole (the x86-64 psABI names them). A library may
have code for several; which one runs is decided when it is first called. `features` are those that our own code asks
for by name; LLVM knows the others by the name of the level. Code for AArch64 asks for the base of ARMv8,
which all of them have.
"""

from __future__ import annotations

from functools import lru_cache

from parakeet_py.base import machine
from parakeet_py.base.fast_dataclass import record
from parakeet_py.export.errors import ExportError
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.engine.host_info import HostInfo

_V2 = "+cx16,+popcnt,+sse3,+sse4.1,+sse4.2,+ssse3"
_V3 = f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
_V4 = f"{_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"


@record
class Target:
    """A processor, or a level of one.

    Attributes
    ----------
    name : as users write it
    processor : as `base/machine.py` names it
    level : its number, from 1 on
    cpu : LLVM's name of it
    features : LLVM's feature string
    vector_bits : widest vectors
    """

    name: str
    processor: str
    level: int
    cpu: str
    features: str
    vector_bits: int

    @property
    def suffix(self) -> str:
        """Of symbols."""
        return f"v{self.level}"

    def host(self) -> HostInfo:
        """The processor as the code generator sees it."""
        if self.processor == machine.PROCESSOR:
            here = compiler.host()
            triple, layout = here.triple, here.data_layout
        else:
            triple = f"{self.processor}-unknown-linux-gnu"
            layout = _data_layout(triple)
        return HostInfo(self.cpu, self.features, self.vector_bits, triple, layout)


@lru_cache(maxsize=8)
def _data_layout(triple: str) -> str:
    """How another machine lays data out; LLVM is made ready for it."""
    llvm = compiler.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        return str(llvm.Target.from_triple(triple).create_target_machine().target_data)
    except RuntimeError as error:
        raise ExportError(f"this LLVM makes no code for {triple}: {error}") from None


TARGETS = {
    one.name: one
    for one in (
        Target("x86-64-v2", "x86_64", 2, "x86-64-v2", _V2, 128),
        Target("x86-64-v3", "x86_64", 3, "x86-64-v3", _V3, 256),
        Target("x86-64-v4", "x86_64", 4, "x86-64-v4", _V4, 512),
        Target("aarch64", "aarch64", 1, "generic", "+fp-armv8,+neon", 128),
    )
}


def targets(names: str | None) -> tuple[Target, ...]:
    """The targets that a text such as "x86-64-v2,x86-64-v4" names, lowest first; if there is none, all of this machine.

    Raises
    ------
    ExportError
        One is not known, none is named, or they are of two processors.
    """
    if names is None:
        return tuple(one for one in TARGETS.values() if one.processor == machine.PROCESSOR)
    found = {name.strip() for name in names.split(",") if name.strip()}
    unknown = sorted(found - TARGETS.keys())
    if unknown or not found:
        what = f"no target {', '.join(unknown)}" if unknown else "no target is named"
        raise ExportError(f"{what}; there are {', '.join(TARGETS)}")
    chosen = tuple(target for name, target in TARGETS.items() if name in found)
    if len({target.processor for target in chosen}) > 1:
        raise ExportError("a library is for one processor: export twice, x86-64 and aarch64 into folders of their own")
    return chosen


def check_platform() -> None:
    """Refuse to export where what is made could not be linked.

    Raises
    ------
    ExportError
        This is not Linux on x86-64 or AArch64.
    """
    if not machine.LINUX or not (machine.X86 or machine.AARCH64):
        here = f"{machine.SYSTEM} on {machine.PROCESSOR}"
        raise ExportError(f"libraries are exported on and for Linux on x86-64 and AArch64; this is {here}")
