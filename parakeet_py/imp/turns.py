"""Index-set splitting: a loop whose body branches on its index becomes loops that do not branch.

In `np.roll` an element comes from `i - shift`, or from `i - shift + n` where that is negative. Such a condition turns
once along the loop: it is false for all indices below some point and true from there on, or the other way round. Cut
at that point, each of the two loops knows the condition and drops the branch; what was a gather through a chosen index
is a copy of contiguous memory. With several conditions the cuts are nested; a piece that turns out empty costs a
comparison.

A condition turns where it compares the index, or a difference `index - offset` that cannot wrap around, with something
that the loop does not change. Bodies with elementary functions are left alone: their vector and scalar forms may round
differently, so what is computed with which must follow from the index alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from parakeet_py.imp.builder import Lowering
from parakeet_py.imp.schedule import DEAR, Study, static_cost
from parakeet_py.imp.writer import ONE
from parakeet_py.record import record
from parakeet_py.typed_ir.ir import Const, If, Operand, Prim, Var, walk
from parakeet_py.typed_ir.types import INT64, PYINT

MOST = 2  # cuts of one loop: there are twice as many copies of the body for each
COPY_COST = 40  # bodies up to this cost are copied
SHORT = 32  # known extents below this are not worth cutting

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@record
class Turn:
    """A condition that is `above` for all indices from `bound` on (`after`: from the one after it), else the other."""

    condition: Var
    bound: Operand
    after: bool
    above: bool


def turning(found: Study, index: Var, extent: Operand) -> list[Turn]:
    """The branches of a body that turn along the loop over `index`, if it pays to cut there."""
    short = isinstance(extent, Const) and int(extent.value) < SHORT  # type: ignore[arg-type]
    dear = any(isinstance(op, Prim) and op.name in DEAR for op in found.definitions.values())
    if short or dear or static_cost(found.block) > COPY_COST:
        return []
    branches = [let.op for let in walk(found.block) if isinstance(let.op, If)]
    conditions = dict.fromkeys(op.condition for op in branches if op.then.statements or op.orelse.statements)
    conditions |= dict.fromkeys(op.args[0] for op in _chosen_places(found))
    turns = [_turn(found, condition, index) for condition in conditions if isinstance(condition, Var)]
    return [turn for turn in turns if turn is not None][:MOST]


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
    return None


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
    point = lo.minimum(lo.operand(turn.bound), stop)
    if turn.after:
        point = lo.minimum(lo.add(point, ONE), stop)
    point = lo.maximum(point, start)
    for first, last, value in ((start, point, not turn.above), (point, stop, turn.above)):
        lo.decided[turn.condition] = Const(value, turn.condition.type)  # type: ignore[arg-type]
        cut_loop(lo, others, first, last, loop)
    del lo.decided[turn.condition]
