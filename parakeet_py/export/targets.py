"""The processors that exported code is made for: levels of x86-64.

A level is a set of instructions that a processor has or lacks as a whole (the x86-64 psABI names them). A library may
have code for several; which one runs is decided when it is first called. `features` are those that our own code asks
for by name; LLVM knows the others by the name of the level.
"""

from __future__ import annotations

import platform
import sys

from parakeet_py.base.fast_dataclass import record
from parakeet_py.export.errors import ExportError
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.engine.host_info import HostInfo

_V2 = "+cx16,+popcnt,+sse3,+sse4.1,+sse4.2,+ssse3"
_V3 = f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
_V4 = f"{_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"


@record
class Target:
    """A level of x86-64.

    Attributes
    ----------
    name : as users write it
    level : its number
    features : LLVM's feature string
    vector_bits : widest vectors
    """

    name: str
    level: int
    features: str
    vector_bits: int

    @property
    def suffix(self) -> str:
        """Of symbols."""
        return f"v{self.level}"

    def host(self) -> HostInfo:
        """The processor as the code generator sees it."""
        here = compiler.host()
        return HostInfo(self.name, self.features, self.vector_bits, here.triple, here.data_layout)


TARGETS = {
    one.name: one
    for one in (
        Target("x86-64-v2", 2, _V2, 128),
        Target("x86-64-v3", 3, _V3, 256),
        Target("x86-64-v4", 4, _V4, 512),
    )
}


def targets(names: str | None) -> tuple[Target, ...]:
    """The targets that a text such as "x86-64-v2,x86-64-v4" names, lowest first; all of them if there is none.

    Raises
    ------
    ExportError
        One is not known, or none is named.
    """
    if names is None:
        return tuple(TARGETS.values())
    found = {name.strip() for name in names.split(",") if name.strip()}
    unknown = sorted(found - TARGETS.keys())
    if unknown or not found:
        what = f"no target {', '.join(unknown)}" if unknown else "no target is named"
        raise ExportError(f"{what}; there are {', '.join(TARGETS)}")
    return tuple(target for name, target in TARGETS.items() if name in found)


def check_platform() -> None:
    """Refuse to export where what is made could not be linked.

    Raises
    ------
    ExportError
        This is not Linux on x86-64.
    """
    machine = platform.machine().lower()
    if sys.platform != "linux" or machine not in ("x86_64", "amd64"):
        raise ExportError(f"libraries are exported on and for Linux on x86-64; this is {sys.platform} on {machine}")
