"""Index-set splitting: a loop whose body branches on its index becomes loops that do not branch.

In `np.roll` an element comes from `i - shift`, or from `i - shift + n` where that is negative. Such a condition turns
once along the loop: it is false for all indices below some point and true from there on, or the other way round. Cut
at that point, each of the two loops knows the condition and drops the branch; what was a gather through a chosen index
is a copy of contiguous memory. With several conditions the cuts are nested; a piece that turns out empty costs a
comparison.

An equality (`if i == 0`, the diagonal of a matrix) turns twice: it holds for one index, which gets a loop of its own.

A condition turns where it compares the index, or a difference `index - offset` that cannot wrap around, with something
that the loop does not change. Bodies with elementary functions are left alone: their vector and scalar forms may round
differently, so what is computed with which must follow from the index alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import INT64, PYINT
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.schedule.loop_order import Study, is_dear, static_cost
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Const, If, Operand, Prim, Var, scalar_type, walk

MOST = 4  # copies of the body: two for each cut, three for an equality
COPY_COST = 40  # bodies up to this cost are copied
SHORT = 32  # known extents below this are not worth cutting

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@record
class Turn:
    """A condition that is `above` for all indices from `bound` on (`after`: from the one after it), else the other.

    With `single` it is `above` for all indices but `bound + further`.
    """

    condition: Var
    bound: Operand
    after: bool
    above: bool
    single: bool = False
    further: Operand = ZERO


def turning(found: Study, index: Var, extent: Operand) -> list[Turn]:
    """The branches of a body that turn along the loop over `index`, if it pays to cut there."""
    short = isinstance(extent, Const) and extent.whole < SHORT
    dear = any(isinstance(op, Prim) and is_dear(op.name) for op in found.definitions.values())
    if short or dear or static_cost(found.block) > COPY_COST:
        return []
    branches = [let.op for let in walk(found.block) if isinstance(let.op, If)]
    conditions = dict.fromkeys(op.condition for op in branches if op.then.statements or op.orelse.statements)
    conditions |= dict.fromkeys(op.args[0] for op in _chosen_places(found))
    turns: list[Turn] = []
    copies = 1
    for condition in conditions:
        turn = _turn(found, condition, index) if isinstance(condition, Var) else None
        if turn is not None and copies * (2 + turn.single) <= MOST:
            turns.append(turn)
            copies *= 2 + turn.single
    return turns


def _chosen_places(found: Study) -> Iterator[Prim]:
    """The choices between indices: of what lies beyond the other end of an array, for one."""
    for access in found.accesses:
        for place in access.indices:
            definition = found.definitions.get(place) if isinstance(place, Var) else None
            if isinstance(definition, Prim) and definition.name == "select":
                yield definition


def _turn(found: Study, condition: Var, index: Var) -> Turn | None:
    match found.definitions.get(condition):
        case Prim(name, (left, right)) if name in _MIRRORED:
            bound = _meeting(found, left, right, index)
            if bound is None:
                name, bound = _MIRRORED[name], _meeting(found, right, left, index)
            if bound is not None:
                return Turn(condition, bound, name in ("gt", "le"), name in ("gt", "ge"))
        case Prim("eq" | "ne" as name, (left, right)):
            bound = _meeting(found, left, right, index)
            if bound is None:
                bound = _meeting(found, right, left, index)
            if bound is not None:
                return Turn(condition, bound, False, name == "ne", single=True)
            moving, still = (left, right) if left in found.inside else (right, left)
            match found.definitions.get(moving) if isinstance(moving, Var) and _fixed(found, still) else None:
                case Prim("sub", (place, offset)) if place is index and offset is not index and _fixed(found, offset):
                    return Turn(condition, offset, False, name == "ne", single=True, further=still)
    return None


def _fixed(found: Study, operand: Operand) -> bool:
    return operand not in found.inside and operand.type in (INT64, PYINT)


def _meeting(found: Study, moving: Operand, still: Operand, index: Var) -> Operand | None:
    """The index at which `moving` equals `still`, if both are such that there is one."""
    if still is index or still in found.inside or still.type not in (INT64, PYINT):
        return None
    if moving is index:
        return still
    if isinstance(moving, Var) and isinstance(still, Const) and still.value == 0 and moving.type == PYINT:
        match found.definitions.get(moving):
            case Prim("sub", (left, offset)) if left is index and offset is not index and offset not in found.inside:
                return offset if offset.type in (INT64, PYINT) else None
    return None


def cut_loop(
    lo: Lowering, turns: list[Turn], start: Operand, stop: Operand, loop: Callable[[Operand, Operand], None]
) -> None:
    """Write the loop over [start, stop), `loop(first, last)`, for each piece between turns."""
    if not turns:
        loop(start, stop)
        return
    turn, *others = turns
    bound = lo.minimum(lo.add(lo.operand(turn.bound), lo.operand(turn.further)), stop)
    point = lo.maximum(bound, start)
    beyond = lo.maximum(lo.minimum(lo.add(bound, ONE), stop), start) if turn.after or turn.single else point
    if turn.single:
        pieces = [(start, point, turn.above), (point, beyond, not turn.above), (beyond, stop, turn.above)]
    else:
        pieces = [(start, beyond, not turn.above), (beyond, stop, turn.above)]
    for first, last, value in pieces:
        lo.decided[turn.condition] = Const(value, scalar_type(turn.condition))
        cut_loop(lo, others, first, last, loop)
    del lo.decided[turn.condition]
