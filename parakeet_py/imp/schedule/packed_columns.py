"""Columns that a reduction reads again for every point that it keeps are first put side by side.

    for i: reduce over j: f(x[j, 0], x[j, 1], x[i, 0], ...)

    ->   c0, c1 := map j: x[j, 0], x[j, 1]          for i: reduce over j: f(c0[j], c1[j], x[i, 0], ...)

Eight coordinates that lie three apart are loaded as three vectors and sorted by two permutations, for every `i` anew: a
tenth to a fifth of the time of such a body (forces between all pairs of bodies). The copy is made once, at the price
of one more point of a body that has `LEAST` operations, so that it does no harm where few points are kept; where there
are none, nothing is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from parakeet_py.base.types import BOOL, Array
from parakeet_py.imp.schedule.loop_order import static_cost
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ZERO, Block, Function, Let, Load, Operand, Reduce, Var, binders_of
from parakeet_py.typed_ir.rewrite import Rewriter, bound_in
from parakeet_py.typed_ir.writer import Writer

LEAST = 20


def pack_columns(function: Function) -> Function:
    """Copy columns before the reductions that read them again and again."""
    if not any(let.op.__class__ is Reduce for let in function.statements()):
        return function
    return _Packer().function(function)


class _Packer(Rewriter):
    def statement(self, let: Let) -> Sequence[Let] | None:
        if isinstance(let.op, Reduce):
            return _packed(let, let.op)
        return None if isinstance(let.op, ir.PARALLEL) else self.descend(let)


def _packed(let: Let, op: Reduce) -> Sequence[Let] | None:
    if not op.extents or len(op.reduced_indices) != 1 or static_cost(op.body) < LEAST:
        return None
    (extent,), (index,) = op.reduced_extents, op.reduced_indices
    inside = {*bound_in(op.body), *binders_of(op)}
    loads = [one.op for one in op.body.statements if isinstance(one.op, Load) and _is_column(one.op, index, inside)]
    if not loads or any(isinstance(one.op, ir.Check) for one in ir.walk(op.body)):  # which may be of the places read
        return None
    columns = list(dict.fromkeys(loads))
    w = Writer(let.pos)
    kept = [w.prim("ne", size, ZERO, type_=BOOL) for size in op.extents]
    count = w.prim("select", reduce(lambda one, other: w.prim("and", one, other), kept), extent, ZERO)

    def elements(inner: Writer, place: Var) -> list[Operand]:
        return [inner.load(one.array, *[place if at is index else at for at in one.indices]) for one in columns]

    copies = dict(zip(columns, w.map([count], elements, "column"), strict=True))
    statements = [
        Let(one.outs, Load(copies[one.op], (index,)), one.pos) if one.op in copies else one
        for one in op.body.statements
    ]
    body = Block(tuple(statements), op.body.results)
    return [*w.statements, Let(let.outs, replace(op, body=body), let.pos)]


def _is_column(op: Load, index: Var, inside: set[Var]) -> bool:
    """Does a load go down a column, which is the same at every kept point?"""
    kind = op.array.type
    assert isinstance(kind, Array)
    along = [axis for axis, at in enumerate(op.indices) if at is index]
    others = [at for at in op.indices if at is not index]
    if len(along) != 1 or op.array in inside or not inside.isdisjoint(others):
        return False
    return kind.layout == "A" or along[0] != (0 if kind.layout == "F" else kind.rank - 1)
