"""One specialization of a function: what every stage of the compiler has made of it.

`explain()`, the text functions, the interpreters and devices start from here.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Literal

from parakeet_py.base import config as settings
from parakeet_py.frontend import ssa
from parakeet_py.imp import ir as imp
from parakeet_py.signature.positional import parameter_names
from parakeet_py.signature.results import listed
from parakeet_py.signature.specs import AS_ARRAY, ObjectSpec, Signature, Source, StaticSpec, leaves
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.pipeline import PassReport
from parakeet_py.typed_ir.specialize.opaque.sites import CONTINUE
from parakeet_py.typed_ir.specialize.specializer import Specialization

Extents = Literal["both", "usual", "general"]


@dataclass(slots=True)
class Compiled:
    """One specialization and what every stage made of it."""

    function: FunctionType
    untyped: ssa.Function
    call_signature: Signature
    specialization: Specialization
    typed: ir.Function
    imp: imp.Function
    config: settings.Config
    passes: PassReport
    times: dict[str, float] = field(default_factory=dict)
    plan: Any = None  # how it runs on other devices, once it has
    divided: Any = None  # how a team runs it, once one has
    clustered: Any = None  # how it runs on Dask, once it has
    written_out: Compiled | None = None  # without calls of the library's procedures, see `compile.for_devices`
    overflows_late: bool = False  # may ints leave 64 bits where something has shown, and Python cannot go on there?
    kept: tuple[int, ...] | None = None  # `give_back.kept_arguments`, once they have been asked for
    clocked: array[int] | None = None  # the table of timed kernels, see `explain.roofline`
    listed: frozenset[int] = frozenset()  # the results whose elements are looked at when they are put together

    def __post_init__(self) -> None:
        self.listed = listed(self.specialization.result)

    @property
    def signature(self) -> Signature:
        """The signature without distinctions that do not matter to this code."""
        return self.specialization.signature

    @property
    def read_after_opaque(self) -> tuple[tuple[Source, bool], ...]:
        """The hidden arguments (data, not functions) that an operation handed back to Python must not replace; of each,
        whether it must not replace the items either, because compiled code reads them."""
        if all(site.operation == CONTINUE for site in self.specialization.opaque_sites):
            return ()
        late = self.specialization.read_late
        hidden = self.specialization.signature.hidden
        data = [one for one in hidden if one.source in late and not isinstance(one.spec, StaticSpec)]
        return tuple((one.source, not isinstance(one.spec, ObjectSpec)) for one in data)

    @property
    def unfused(self) -> ir.Function:
        """The typed function as the specializer made it."""
        return self.specialization.function


def _name_of(source: Source, cells: Sequence[str]) -> str:
    last = source[-1]
    return cells[last] if source[0] == "cell" and isinstance(last, int) else str(last)


def leaf_names(compiled: Compiled) -> list[str]:
    """What to call the leaf arguments of a function: x, points[0], the name of a global."""
    signature = compiled.signature
    names = parameter_names(compiled.function.__code__)
    names += [_name_of(hidden.source, compiled.function.__code__.co_freevars) for hidden in signature.hidden]
    return [
        names[leaf.path[0]] + "".join(f"[{index}]" for index in leaf.path[1:] if index != AS_ARRAY)
        for leaf in leaves(signature)
    ]
