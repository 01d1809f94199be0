"""Loop-invariant code motion: scalars that are the same in every iteration are computed before the loop.

Moved are primitives, casts and extents that cannot raise, from the bodies of loops and parallel operators, as far out
as their operands allow. Not moved is what stands in a branch (it may never be needed) and what reads memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.grammar import with_blocks
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Function, Let, Op, Var
from parakeet_py.typed_ir.rewrite import Rewriter


def move_invariants(function: Function) -> Function:
    """Compute scalars before the loops they do not depend on."""
    return _Mover().function(function)


class _Mover(Rewriter):
    def statement(self, let: Let) -> Sequence[Let] | None:
        new = self.descend(let)
        made = new[0] if new else let
        if not isinstance(made.op, (ir.For, ir.While, *ir.PARALLEL)):
            return new
        moved: list[Let] = []
        bound: set[Var] = set(ir.binders_of(made.op))
        combine = made.op.combine.body if isinstance(made.op, ir.Reduce | ir.Scan | ir.Scatter) else None

        def strip(block: Block) -> Block:
            return block if block is combine else _strip(block, bound, moved)

        op = with_blocks(made.op, strip)
        return (*moved, Let(made.outs, op, made.pos)) if moved else new


def _strip(block: Block, bound: set[Var], moved: list[Let]) -> Block:
    """The block without what can be moved out, which is added to `moved`; `bound` are the variables of the loop."""
    kept: list[Let] = []
    for let in block.statements:
        if _movable(let.op) and bound.isdisjoint(ir.operands_of(let.op)):
            moved.append(let)
        else:
            kept.append(let)
            bound.update(let.outs)
    return Block(tuple(kept), block.results) if len(kept) < len(block.statements) else block


def _movable(op: Op) -> bool:
    return (isinstance(op, ir.Prim) and op.name not in ir.CHECKED) or isinstance(op, ir.Cast | ir.Dim)
