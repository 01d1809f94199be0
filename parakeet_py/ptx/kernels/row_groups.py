"""Finding row programs: operators along one axis that one kernel can compute row by row.

    m = reduce i < n over j < k: x[i, j]               a row i of x is brought together to m[i],
    e = map i < n, j < k: exp(x[i, j] - m[i])          from which and from the row the row of e follows,
    s = reduce i < n over j < k: e[i, j]               from that s[i],
    r = map i < n, j < k: e[i, j] / s[i]               and the row of the result

Operators of a block belong together if their index spaces are the same rows (all axes but the last) of the same length,
and what they read of each other is the row they are at: element [i, j] of what has a row of elements, element [i] of
what has a number for each row. So a row needs nothing of another one, in whatever order rows are computed. Between the
operators there may be scalars, extents and checks: all are pure, so the whole group may be computed where its last
operator stands. A softmax, a normalization, a variance, a cross entropy are such groups after fusion.

What does not pay is left alone: groups in which no reduction is read again by an operator over the elements, and rows
whose elements do not lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from parakeet_py.imp.schedule.loop_order import stride_cost, study
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Const, Operand, Var

MOST = 12  # operators of a group
_QUIET = (ir.Prim, ir.Cast, ir.Dim, ir.Check)  # neither they nor what they read can change in between


@dataclass(frozen=True, slots=True)
class Member:
    """An operator of a group: a `reduce`, a map over `rows` (a number for each), or one over `elements`."""

    outs: tuple[Var, ...]
    op: ir.Map | ir.Reduce
    kind: str

    @property
    def rows(self) -> tuple[Var, ...]:
        """The variables of the row; a map over rows may have more, of axes with one index."""
        return self.op.indices[:-1] if self.kind == "elements" else self.op.indices

    @property
    def place(self) -> Var:
        """The variable of the place in the row."""
        return self.op.reduced_indices[0] if isinstance(self.op, ir.Reduce) else self.op.indices[-1]


@dataclass(slots=True)
class RowGroup:
    """Operators that one kernel computes.

    Attributes
    ----------
    kept, length : the extents of the axes of rows, and of a row
    leaving : results that something outside of the group reads
    read_again : those over elements that a later member reads
    """

    kept: tuple[Operand, ...]
    length: Operand | None = None
    members: list[Member] = field(default_factory=list)
    leaving: set[Var] = field(default_factory=set)
    read_again: set[Var] = field(default_factory=set)

    @property
    def last(self) -> Var:
        return self.members[-1].outs[0]


def row_groups(function: ir.Function) -> dict[Var, RowGroup]:
    """The groups of a function, by the first out of every member."""
    found: list[RowGroup] = []
    _look(function.body, found)
    return {member.outs[0]: group for group in found for member in group.members}


def _look(block: ir.Block, found: list[RowGroup]) -> None:
    groups: list[RowGroup] = []
    group: RowGroup | None = None
    made: dict[Var, str] = {}  # what members of the group give
    for let in block.statements:
        op = let.op
        if group is not None:
            member = _member(group, let.outs, op, made)
            if member is not None:
                group.members.append(member)
                made |= dict.fromkeys(member.outs, "elements" if member.kind == "elements" else "rows")
                continue
            if isinstance(op, _QUIET) and not any(one in made for one in ir.operands_of(op)):
                continue
            groups.append(group)
        group, made = _begun(let.outs, op), {}
        if group is not None:
            (first,) = group.members
            made = dict.fromkeys(first.outs, "elements" if first.kind == "elements" else "rows")
        for inner in () if isinstance(op, ir.Map | ir.Reduce) else ir.blocks_of(op):
            _look(inner, found)
    if group is not None:
        groups.append(group)
    found += [one for one in groups if _pays(one)]
    _note_uses(block, [one for one in groups if _pays(one)])


def _begun(outs: tuple[Var, ...], op: ir.Op) -> RowGroup | None:
    """A group that begins with an operator."""
    if isinstance(op, ir.Reduce) and len(op.reduced_indices) == 1 and op.extents:
        group = RowGroup(op.extents, op.reduced_extents[0])
    elif isinstance(op, ir.Map) and len(op.extents) > 1:
        group = RowGroup(op.extents[:-1], op.extents[-1])
    else:
        return None
    member = _member(group, outs, op, {})
    if member is None:
        return None
    group.members.append(member)
    return group


def _member(group: RowGroup, outs: tuple[Var, ...], op: ir.Op, made: dict[Var, str]) -> Member | None:
    """An operator as a member of a group; None if it is none."""
    if not isinstance(op, ir.Map | ir.Reduce) or not outs or len(group.members) == MOST or not _is_plain(op.body):
        return None
    kept = len(group.kept)
    if isinstance(op, ir.Reduce):
        if op.extents != group.kept or op.reduced_extents != (group.length,):
            return None
        kind = "reduce"
    elif op.extents == (*group.kept, group.length):
        kind = "elements"
    elif op.extents[:kept] == group.kept and all(
        isinstance(one, Const) and one.value == 1 for one in op.extents[kept:]
    ):
        kind = "rows"
    else:
        return None
    member = Member(outs, op, kind)
    rows = member.rows[:kept]
    for let in op.body.statements:
        if isinstance(let.op, ir.Load) and let.op.array in made:
            wanted = (*rows, member.place) if made[let.op.array] == "elements" else rows
            if kind == "rows" and made[let.op.array] == "elements":
                return None
            if let.op.indices[: len(wanted)] != wanted or any(map(_may_move, let.op.indices[len(wanted) :])):
                return None
        elif any(one in made for one in ir.operands_of(let.op)):
            return None
    if kind != "rows":
        found = study(op)
        if found.has_check or stride_cost(found, member.place) > stride_cost(found, rows[-1]):
            return None
    return member


def _may_move(index: Operand) -> bool:
    """Whether an index of an axis with one index may not be 0; a map over such axes has variables there."""
    return isinstance(index, Const) and index.value != 0


def _is_plain(body: ir.Block) -> bool:
    """Whether a body only loads and computes."""
    for let in body.statements:
        if isinstance(let.op, ir.Prim):
            if let.op.name.endswith("_checked"):
                return False
        elif not isinstance(let.op, ir.Load | ir.Cast):
            return False
    return True


def _pays(group: RowGroup) -> bool:
    """Whether a reduction is read again, directly or by what follows for its row, by an operator over elements."""
    numbers: set[Var] = set()
    for member in group.members:
        reads = {let.op.array for let in member.op.body.statements if isinstance(let.op, ir.Load)}
        if member.kind != "rows" and not numbers.isdisjoint(reads):
            return True
        if member.kind == "reduce" or not numbers.isdisjoint(reads):
            numbers.update(member.outs)
    return False


def _note_uses(block: ir.Block, groups: Sequence[RowGroup]) -> None:
    """Note which results are read outside of their group, and which of elements are read again within."""
    for group in groups:
        own = {out for member in group.members for out in member.outs}
        inside = {member.outs[0] for member in group.members}
        for let in block.statements:
            used = own.intersection(_read_by(let.op))
            if let.outs and let.outs[0] in inside:
                group.read_again |= used
            else:
                group.leaving |= used
        group.leaving |= own.intersection(one for one in block.results if isinstance(one, Var))
        over = {out for member in group.members if member.kind == "elements" for out in member.outs}
        group.read_again &= over


def _read_by(op: ir.Op) -> Iterator[Var]:
    yield from (one for one in ir.operands_of(op) if isinstance(one, Var))
    for inner in ir.blocks_of(op):
        for let in inner.statements:
            yield from _read_by(let.op)
        yield from (one for one in inner.results if isinstance(one, Var))
