"""Sinking: pure operators move down to their first use, so that checks come before them.

The specializer emits checks where they arise, between the operators of one expression. After this pass what a check
has found out (two extents are equal, an index is in range) holds for the operators that follow, a failing check costs
no work, and a producer stands next to its consumer. An operator never moves past a write to what it reads, nor past
its uses; the order of effects stays.
"""

from __future__ import annotations

from parakeet_py.base.fast_dataclass import record
from parakeet_py.typed_ir.ir import PARALLEL, Alloc, Block, Function, Let, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.rewrite import Rewriter, free_in_op


def sink_operators(function: Function) -> Function:
    """Move pure array operators and allocations down to where they are needed."""
    return _Sinker(function).function(function)


@record(frozen=False)
class _Delayed:
    let: Let
    reads: set[Var]


class _Sinker(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)

    def block(self, block: Block) -> Block:
        block = super().block(block)
        if not any(isinstance(let.op, (Alloc, *PARALLEL)) for let in block.statements[:-1]):
            return block
        statements: list[Let] = []
        delayed: dict[int, _Delayed] = {}
        maker: dict[Var, int] = {}

        def place(position: int) -> None:
            found = delayed.pop(position, None)
            if found is not None:
                need(found.let)
                statements.append(found.let)

        def need(let: Let) -> None:
            for position in sorted({maker[var] for var in free_in_op(let.op) if var in maker}):
                place(position)

        for position, let in enumerate(block.statements):
            if isinstance(let.op, (Alloc, *PARALLEL)):
                effects = self.aliases.effects(let.op)
                if effects.pure and not effects.overflows:
                    delayed[position] = _Delayed(let, effects.reads)
                    maker.update((out, position) for out in let.outs)
                    continue
                writes = effects.writes
            else:
                writes = self.aliases.effects(let.op).writes
            need(let)
            if writes:
                for other in [other for other, one in delayed.items() if not one.reads.isdisjoint(writes)]:
                    place(other)
            statements.append(let)
        for position in list(delayed):
            place(position)
        if all(map(lambda new, old: new is old, statements, block.statements)):
            return block
        return Block(tuple(statements), block.results)
