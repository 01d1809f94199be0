"""Values that have to be known when a function is compiled: axes, shapes' lengths, keys.

`static` gives the Python object of such a value. When it is not known, the parameter or the loop index that it is
computed from is asked for by value: specialization starts again with it (`KnownValue`, `WrittenOut`). What comes from
neither is an error for the user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parakeet_py.base.types import PYBOOL, Scalar
from parakeet_py.frontend import ssa
from parakeet_py.signature.attribute_sources import OF_ALL
from parakeet_py.signature.facts import Fact, KnownValue
from parakeet_py.signature.specs import ObjectSpec, Source
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.forms import parts_of
from parakeet_py.typed_ir.specialize.restarts import WrittenOut
from parakeet_py.typed_ir.specialize.values import ObjectV, ScalarV, Unknown, Value, known

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def static(s: Context, value: Value, what: str) -> Any:
    """The Python object of a value that has to be known at compile time."""
    try:
        return known(value)
    except Unknown:
        demand(s, value, what)
    raise AssertionError


def static_int(s: Context, value: Value, what: str) -> int:
    found = static(s, value, what)
    try:
        return int(found.__index__())
    except AttributeError:
        raise s.unsupported(f"{what} must be an integer, not {found!r}") from None


def static_key(s: Context, value: Value) -> Any:
    """The key of a dict of known keys."""
    key = static(s, value, "a dict key")
    try:
        hash(key)
    except TypeError as error:
        raise s.unsupported(f"a dict key: {error}") from None
    return key


def demand(s: Context, value: Value, what: str) -> None:
    """Ask for the parameter or loop index behind a value to be specialized by value."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, ScalarV) and isinstance(part.operand, ir.Var):
            wanted = _wanted(s, part.operand, set())
            if wanted is not None:
                s.facts.restart(wanted, f"{what} has to be known when the function is compiled")
        parts.extend(parts_of(part))
    raise s.unsupported(f"{what} has to be known when the function is compiled", "pass it as an argument")


def _wanted(s: Context, var: ir.Var, seen: set[ir.Var]) -> Fact | None:
    """The fact that would make a variable known."""
    if var in seen:
        return None
    seen.add(var)
    if _is_number_given(s, var):
        return KnownValue(s.arguments.place(s.arguments.leaf_param[var]))
    for frame in reversed(s.frames):
        for loop in _open_loops(s):
            bound = frame.env.get(loop.item)
            if isinstance(bound, ScalarV) and bound.operand is var and id(loop) not in s.loops.unroll:
                return WrittenOut.of(loop)
    op = s.builder.definition.get(var)
    if isinstance(op, ir.If):
        return _wanted_flag(s, op.condition)
    if isinstance(op, ir.Prim | ir.Cast):
        for operand in ir.operands_of(op):
            if isinstance(operand, ir.Var) and (found := _wanted(s, operand, seen)) is not None:
                return found
    return None


def _open_loops(s: Context) -> list[ssa.For]:
    return [
        let.op
        for frame in s.frames
        for let in frame.function.statements()
        if isinstance(let.op, ssa.For) and let.op.item in frame.env
    ]


def demand_flag(s: Context, condition: ir.Operand) -> None:
    """Ask for the truth value among the parameters that a condition is, or is computed from by logic alone: a flag has
    two values, so that a version for each is no burden."""
    wanted = _wanted_flag(s, condition)
    if wanted is not None:
        s.facts.restart(wanted, "a flag has to be known when the function is compiled")


def _wanted_flag(s: Context, condition: ir.Operand) -> Fact | None:
    op = s.builder.definition.get(condition) if isinstance(condition, ir.Var) else None
    for var in ir.operands_of(op) if isinstance(op, ir.Prim) else (condition,):
        if isinstance(var, ir.Var) and _is_number_given(s, var) and var.type == PYBOOL:
            return KnownValue(s.arguments.place(s.arguments.leaf_param[var]))
    return None


def _is_number_given(s: Context, var: ir.Var) -> bool:
    """Is this a parameter that a signature can have by value? NumPy's scalars are not."""
    return var in s.arguments.leaf_param and isinstance(var.type, Scalar) and var.type.python


def is_demandable(s: Context, var: ir.Var) -> bool:
    return _wanted(s, var, set()) is not None


def known_object(s: Context, value: ObjectV) -> tuple[type, Source] | None:
    """The class of an object that an argument or a variable is or holds, and where it is read from."""
    index = s.arguments.leaf_param.get(value.var)
    if index is None or not s.facts.known.fields:
        return None
    spec, place = s.arguments.spec(index), s.arguments.place(index)
    source: Source = ("field", place) if isinstance(place, int) else place
    if not isinstance(spec, ObjectSpec) or (source[0] != "field" and s.facts.known.fields < OF_ALL):
        return None
    if source[0] not in ("field", "global", "cell", "attribute"):
        return None
    return (spec.type, source)
