"""Regions that copy adjacent elements, or fill adjacent elements with a constant: the runtime has them ready.

Lists that grow, copies and new arrays need them in nearly every program. As code of their own, each would be a vector
loop with its remainders: several milliseconds of LLVM for what `memmove` does as fast.

    parallel [lo, hi):                          parallel [lo, hi):
        vector i in lo .. hi:                       vector i in lo .. hi:
            x = source[i]                               target[i] := 0.0
            target[i] := x
"""

from __future__ import annotations

import numpy as np

from parakeet_py.base.types import Array
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.arrays import unit_axis
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.typed_ir.ir import Const, Load, Var

_WORD = 8  # bytes of the pattern that a constant is repeated to


def ready_region(scope: Scope, region: ir.Parallel) -> tuple[str, str] | None:
    """The function of the runtime that does what a region does, and its frame; None if there is none."""
    if scope.f.module.checks is not None:
        return None
    match region.body.statements:
        case (ir.For(index, start, stop, Const(value=1), body),) if start == region.lo and stop == region.hi:
            pass
        case _:
            return None
    match body.statements:
        case (ir.Let(out, Load(source, places)), ir.Store(target, stored_at, value)) if out == value:
            if places != (index,) or stored_at != (index,) or _dtype(source) != _dtype(target):
                return None
            if not (_is_run(source) and _is_run(target)):
                return None
            return _ready(scope, "pk_copy", target, scope.array(source)["data"], "ptr")
        case (ir.Store(target, stored_at, Const() as value),) if stored_at == (index,):
            pattern = _pattern(value, _dtype(target))
            return (
                None
                if pattern is None or not _is_run(target)
                else _ready(scope, "pk_fill", target, str(pattern), "i64")
            )
    return None


def _ready(scope: Scope, name: str, target: Var, source: str, kind: str) -> tuple[str, str]:
    f = scope.f
    frame = f.alloca("[3 x i64]", 8)
    words = ((kind, source), ("ptr", scope.array(target)["data"]), ("i64", str(np.dtype(_dtype(target)).itemsize)))
    for slot, (word, value) in enumerate(words):
        place = f.value(f"getelementptr inbounds i8, ptr {frame}, i64 {8 * slot}") if slot else frame
        f.effect(f"store {word} {value}, ptr {place}")
    return f.module.declare("void", name, "ptr, ptr, i64, i64"), frame


def _is_run(array: Var) -> bool:
    """Whether its elements are adjacent, in the order of their one index."""
    return isinstance(array.type, Array) and unit_axis(array.type) == 0 and array.type.rank == 1


def _dtype(array: Var) -> str:
    assert isinstance(array.type, Array)
    return array.type.dtype


def _pattern(value: Const, dtype: str) -> int | None:
    """Eight bytes of an array of this constant, as an integer; None where an element is longer."""
    element = np.array(value.value, dtype).tobytes()
    return int.from_bytes(element * (_WORD // len(element)), "little", signed=True) if len(element) <= _WORD else None
