"""A `Map` within a `Map` becomes one over both index spaces.

    map j < m:                              map j < m:
        t = r[j]                                s[j] := r[j]
        s[j] := t                   ->      map j < m, i < n:
        map i < n:                              a[i, j] := a[i, j] - q[i] * r[j]
            a[i, j] := a[i, j] - q[i] * t

Then the order of the two is free: below, the one along which memory lies is made the inner one, and vectors and threads
take from both. What the inner `Map` needs of the outer one's scalars is computed at each of its points (or before both
where that is the same for all), so it has to be cheap, and its elements must not be among those that either stores.

The stores before and after the inner `Map` go to `Map`s of their own. Iterations are independent, so what comes first
in each of them may come first for all. With several inner `Map`s there would be as many passes over their arrays, and
rows that the first has left in cache be gone for the second: these stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Function, Let, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.fusion.cost import cost_of
from parakeet_py.typed_ir.rewrite import NOWHERE, Rewriter, free_in_op, fresh_copy

_MOST_SCALARS = 8  # recomputed at every point of a joined index space, unless the compiler below moves them


def collapse_maps(function: Function) -> Function:
    """Join `Map`s that contain little but another one."""
    if not any(isinstance(let.op, ir.Map) and _inner(let.op) is not None for let in function.statements()):
        return function
    return _Collapser(function).function(function)


class _Collapser(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)

    def statement(self, let: Let) -> Sequence[Let] | None:
        new = self.descend(let)
        made = new[0] if new else let
        joined = joined_maps(made.op, self.aliases) if isinstance(made.op, ir.Map) else None
        return new if joined is None else [Let(one.outs, one.op, let.pos) for one in joined]


def _inner(op: ir.Map) -> int | None:
    """The place of the only operator in a body that gives nothing, if it is a `Map` that only stores."""
    if op.body.results:
        return None
    inner = [at for at, let in enumerate(op.body.statements) if ir.blocks_of(let.op)]
    if len(inner) != 1 or not isinstance(op.body.statements[inner[0]].op, ir.Map):
        return None
    return None if op.body.statements[inner[0]].outs else inner[0]


def joined_maps(op: ir.Map, aliases: Aliases | None = None) -> list[Let] | None:
    """The statements that stand for a `Map` around another one: scalars that are the same for all points, `Map`s of
    what is stored before and after the inner one, and the joined one; None if it stays. Without `aliases` (which know
    all arrays in it), elements are neither read nor stored beside the inner one."""
    at = _inner(op)
    if at is None:
        return None
    inner = op.body.statements[at].op
    assert isinstance(inner, ir.Map)
    before, after = op.body.statements[:at], op.body.statements[at + 1 :]
    allowed = (ir.Prim, ir.Cast, ir.Dim) if aliases is None else (ir.Prim, ir.Cast, ir.Dim, ir.Load, ir.Store)
    if not all(isinstance(let.op, allowed) for let in (*before, *after)):
        return None
    stores = any(isinstance(let.op, ir.Store) for let in before)
    scalars = _needed([op.body.statements[at]], before) if stores or after else list(before)
    late = _needed(after, before)  # what is stored after the inner `Map` is computed of
    if max(len(scalars), len(late)) > _MOST_SCALARS:
        return None
    loads = [let.op for let in (*scalars, *late) if isinstance(let.op, ir.Load)]
    if aliases is not None and loads:
        written = [array for let in ir.walk(op.body) for array in ir.arrays_written(let.op)]
        if any(aliases.may_alias(load.array, array) for load in loads for array in written):
            return None
        if not cost_of(Block(tuple(scalars))).cheap:
            return None
    outside: list[Let] = []
    inside: list[Let] = []
    bound = set(op.indices)
    for let in scalars:
        fixed = bound.isdisjoint(ir.operands_of(let.op)) and not isinstance(let.op, ir.Load)
        if fixed and not stores and not after and not (isinstance(let.op, ir.Prim) and let.op.name in ir.CHECKED):
            outside.append(let)
        else:
            inside.append(let)
            bound.update(let.outs)
    if not bound.isdisjoint(inner.extents):
        return None
    made = list(outside)
    if stores:
        made.append(_map(op, before))
    body = Block((*inside, *inner.body.statements))
    made.append(Let((), ir.Map((*op.extents, *inner.extents), (*op.indices, *inner.indices), body), NOWHERE))
    if any(isinstance(let.op, ir.Store) for let in after):
        made.append(_map(op, (*late, *after)))
    # Each binds its own variables.
    return made if len(made) == len(outside) + 1 else list(fresh_copy(Block(tuple(made))).statements)


def _map(op: ir.Map, statements: Sequence[Let]) -> Let:
    return Let((), ir.Map(op.extents, op.indices, Block(tuple(statements))), NOWHERE)


def _needed(users: Sequence[Let], beside: Sequence[Let]) -> list[Let]:
    """The statements that others are computed from."""
    wanted: set[Var] = {item for let in users for item in free_in_op(let.op)}
    found: list[Let] = []
    for let in reversed(beside):
        if not wanted.isdisjoint(let.outs):
            found.append(let)
            wanted.update(item for item in ir.operands_of(let.op) if isinstance(item, Var))
    return found[::-1]
