"""What Python needs in order to go on after an operation handed back, if compiled code cannot.

Compiled code meets a result of another type than expected, or a global that has been replaced. Where the call cannot be
replayed from its beginning, Python does the rest of it: `frontend/evaluate/resumed_code.py` runs the function from that
operation on, given the live variables. A `Rest` says how these are put together. Their leaves are passed with the
operands of the operation; arguments of the call are not, as they are there anyway.

There is a `Rest` for operations of the decorated function itself, in branches, `while` loops and loops over ranges, if
the live variables are arguments, scalars, what is known, objects and arrays that Python has given, and tuples of these.
Nothing is computed or made for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parakeet_py.frontend import ssa
from parakeet_py.frontend.evaluate.resumed_code import live_at
from parakeet_py.signature.object_assembly import ContainerT, LeafT, StaticT, Template
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.opaque.operands import template_of
from parakeet_py.typed_ir.specialize.opaque.sites import Rest
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ObjectV,
    RangeV,
    ScalarV,
    Static,
    TaggedScalar,
    TupleV,
    UnboundV,
    Value,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_STORES = (ssa.SetItem, ssa.Inplace, ssa.SetAttribute, ssa.DeleteItem)


def rest_after(s: Context, let: ssa.Let, pure: bool, leaves: list[ir.Operand]) -> Rest | None:
    """What is needed to go on after a statement, if it can be had; its leaves are appended. `pure`: this operation and
    those before it change nothing."""
    frame = s.frames[0]
    way = tuple(frame.way)
    if len(s.frames) > 1 or s.elements.in_body or s.loops.unrolling or not way or way[-1] is not let:
        return None
    function = frame.function
    if function.generator or s.assigned.before or s.instances.made:
        return None
    if any(param.kind != "positional" for param in function.params):
        return None
    if pure and not any(isinstance(one.op, _STORES) for one in function.statements()):
        return None  # the call can be replayed
    loops = [one.op for one in way if isinstance(one.op, ssa.For)]
    live = live_at(function, way)
    ranges = [(s.value(op.iterable), s.value(op.item)) for op in loops]
    if not all(isinstance(items, RangeV) and isinstance(item, ScalarV) for items, item in ranges):
        return None
    values = [s.value(var) for var in live]
    arguments = [s.value(param.var) for param in function.params]
    places = [_argument(value, arguments) for value in values]
    if not all(place is not None or _is_at_hand(s, value) for place, value in zip(places, values, strict=True)):
        return None
    made = [
        LeafT(place) if place is not None else StaticT(None) if isinstance(value, UnboundV) else None
        for place, value in zip(places, values, strict=True)
    ]
    rest = [template_of(s, value, leaves) if one is None else one for one, value in zip(made, values, strict=True)]
    items = []
    for held, item in ranges:
        assert isinstance(held, RangeV)
        parts = [template_of(s, part, leaves) for part in (held.start, held.stop, held.step, item)]
        items.append(ContainerT("range_after", tuple(parts)))
    templates: list[Template] = [
        LeafT(len(leaves) + one.position) if place is not None and isinstance(one, LeafT) else one
        for place, one in zip(places, rest, strict=True)
    ]
    return Rest(_places(function, way), tuple(templates), tuple(items))


def _argument(value: Value, arguments: list[Value]) -> int | None:
    """The number of the argument that a value is."""
    if not isinstance(value, ArrayV | ObjectV | ScalarV) or not isinstance(getattr(value, "var", None), ir.Var):
        return None
    return next((place for place, one in enumerate(arguments) if one == value), None)


def _is_at_hand(s: Context, value: Value) -> bool:
    """Is this a value that Python can be given as it is?"""
    match value:
        case ScalarV() | TaggedScalar() | Static() | UnboundV():
            return True
        case ArrayV(var=var) | ObjectV(var):
            return var in s.python.given
        case TupleV(items, "tuple", None):
            return all(_is_at_hand(s, item) for item in items)
    return False


def _places(function: ssa.Function, way: tuple[ssa.Let, ...]) -> tuple[tuple[int, int], ...]:
    """The way as numbers: of the block in the statement before, and of the statement in the block."""
    found: list[tuple[int, int]] = []
    blocks: tuple[ssa.Block, ...] = (function.body,)
    for let in way:
        found.append(
            next(
                (number, place)
                for number, block in enumerate(blocks)
                for place, one in enumerate(block.statements)
                if one is let
            )
        )
        blocks = ssa.blocks_of(let.op)
    return tuple(found)
