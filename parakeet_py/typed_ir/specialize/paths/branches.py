"""Specialization of branches.

A condition known at compile time picks its branch and leaves no trace. Otherwise both sides are specialized, each with
the facts that its side of the condition brings, and meet in the least template that fits the values of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from parakeet_py.frontend import ssa
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import record_arrays
from parakeet_py.typed_ir.specialize.instances import assigned_attributes
from parakeet_py.typed_ir.specialize.paths import guarded
from parakeet_py.typed_ir.specialize.paths.sides import Side, joined
from parakeet_py.typed_ir.specialize.values import NeverV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def specialize_if(s: Context, op: ssa.If) -> list[Value]:
    condition = s.truth(s.value(op.condition))
    if isinstance(condition, ir.Const):
        return s.run(op.then if condition.value else op.orelse)
    return branch(s, condition, lambda: s.run(op.then), lambda: s.run(op.orelse))


def branch(
    s: Context, condition: ir.Operand, then: Callable[[], list[Value]], orelse: Callable[[], list[Value]]
) -> list[Value]:
    """Emit an `If` whose two sides are given as functions that return their values."""
    if s.guards and s.guards[-1].is_open(s):
        with_exits = _branch(s, condition, lambda: guarded.side(s, then), lambda: guarded.side(s, orelse))
        return guarded.after_branch(s, with_exits)
    return _branch(s, condition, then, orelse)


def _branch(
    s: Context, condition: ir.Operand, then: Callable[[], list[Value]], orelse: Callable[[], list[Value]]
) -> list[Value]:
    b = s.builder
    sides = []
    before, sources, roots = assigned_attributes.carried(s), assigned_attributes.carried_sources(s), s.memory.newest
    for run, holds in ((then, True), (orelse, False)):
        assigned_attributes.take(s, before)
        with b.block() as statements:
            s.learn(condition, holds)
            values = assigned_attributes.with_results(s, run(), len(before))
            settled = s.leaving(s.mergeable(values), roots)
            record_arrays.stay_inside(s, settled, len(b.scopes) - 1)
            sides.append(Side(statements, settled, dict(b.equal), b.scopes[-1]))
    first = len(sides[0].values) - len(before)
    assigned_attributes.must_be_bound(s, sources, *(side.values[first:] for side in sides))
    kept = [
        place
        for place, value in enumerate(before, first)
        if all(side.values[place] is value or isinstance(side.values[place], NeverV) for side in sides)
    ]
    values = joined(s, condition, *(side.without(kept) for side in sides))
    for place in kept:
        values.insert(place, before[place - first])
    return assigned_attributes.taken(s, values, len(before))
