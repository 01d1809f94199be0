"""Scatters over one space that share work are one loop: what they put where is found once for each point.

    scatter into counts k < n:  at(x[k]), 1             scatter into counts, sums k < n:
    check ...                                      =>       place = at(x[k])
    scatter into sums k < n:    at(x[k]), w[k]              place, 1;  place, w[k]

as histograms of one array with and without weights do. Each target still gets its values in the order of the points,
or by chunks of so many points at a time, so no bit depends on it.

The first scatter moves down to the second, past checks and whatever neither uses its target nor writes what it reads.
That is done where both targets are memory that the function has made and that no caller sees if a check fails
(`unescaped_arrays`), the bodies are straight-line code that cannot fail, and what they have in common costs more than
`LEAST`. Kernels for GPUs keep them apart: there, updates are what takes the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.grammar import rebuild
from parakeet_py.base.types import is_complex, is_float
from parakeet_py.imp.lower.combine import primitives
from parakeet_py.imp.schedule.loop_order import static_cost
from parakeet_py.typed_ir.ir import (
    PARALLEL,
    Alloc,
    Block,
    BoundIndices,
    Cast,
    Function,
    Indices,
    Lambda,
    Let,
    Load,
    Op,
    Operand,
    Prim,
    Scatter,
    Updates,
    Var,
    dtype_of,
)
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.analysis.unescaped_arrays import private_arrays
from parakeet_py.typed_ir.rewrite import Rewriter, free_in_op

LEAST = 10  # scalar operations that are done once instead of twice


@record
class Scatters:
    """Several scatters at once: the results of the body are those of their bodies, one after the other."""

    targets: tuple[Updates, ...]
    extents: Indices
    indices: BoundIndices
    body: Block
    combines: tuple[Lambda, ...]
    chunks: tuple[int, ...]

    @property
    def chunk(self) -> int:
        return max(self.chunks)

    @classmethod
    def of(cls, *ops: Scatter, body: Block | None = None) -> Scatters:
        first = ops[0]
        targets, combines, chunks = zip(*[(op.target, op.combine, op.chunk) for op in ops], strict=True)
        return cls(targets, first.extents, first.indices, body or first.body, combines, chunks)


def adds_exactly(target: Operand, combine: Lambda) -> bool:
    """Whether the values for an element may come in any order and grouping."""
    dtype = dtype_of(target)
    return not is_float(dtype) and not is_complex(dtype) and primitives(combine) in (("add",), ("or",), ("xor",))


def join_scatters(function: Function) -> Function:
    """Let scatters that find out the same be one."""
    if sum(isinstance(let.op, Scatter) for let in function.statements()) < 2:
        return function
    return _Joiner(function).function(function)


class _Joiner(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.private = private_arrays(function)
        made = [let.outs for let in function.statements() if isinstance(let.op, (Alloc, *PARALLEL))]
        self.made = {out for outs in made for out in outs}

    def statement(self, let: Let) -> Sequence[Let] | None:
        return None if isinstance(let.op, PARALLEL) else self.descend(let)

    def block(self, block: Block) -> Block:
        block = super().block(block)
        statements: list[Let | None] = list(block.statements)
        for start in range(len(statements)):
            alone = [left is let for left, let in zip(statements, block.statements, strict=True)]
            pair = self.partner(block.statements, start, alone) if alone[start] else None
            if pair is not None:
                end, joined = pair
                statements[start], statements[end] = None, Let((), cast(Op, joined), block.statements[end].pos)
        if None not in statements:
            return block
        return Block(tuple([let for let in statements if let is not None]), block.results)

    def partner(self, statements: tuple[Let, ...], start: int, alone: Sequence[bool]) -> tuple[int, Scatters] | None:
        """The next scatter, of those that are still alone, that one may be joined with, and both as one."""
        op = statements[start].op
        if not isinstance(op, Scatter) or not self.movable(op):
            return None
        effects = self.aliases.effects(op)
        for end in range(start + 1, len(statements)):
            other = statements[end].op
            used = self.uses(other, op)
            if isinstance(other, Scatter) and alone[end] and other.extents == op.extents and not used:
                body = None if not self.movable(other) or self.uses(op, other) else _joint(op, other)
                if body is not None:
                    return end, Scatters.of(op, other, body=body)
            between = self.aliases.effects(other)
            if used or between.calls or not effects.reads.isdisjoint(between.writes):
                return None
        return None

    def movable(self, op: Scatter) -> bool:
        effects = self.aliases.effects(op)
        return self.private.get(op.target) in self.made and not (effects.fails or effects.overflows or effects.calls)

    def uses(self, op: Op, scatter: Scatter) -> bool:
        """Whether an operator has to do with the memory that a scatter changes."""
        target = self.private[scatter.target]
        return any(self.private.get(var) is target for var in free_in_op(op))


def _joint(one: Scatter, other: Scatter) -> Block | None:
    """The body of two scatters, if it is enough less than both theirs."""
    kinds = [bool(op.chunk) or adds_exactly(op.target, op.combine) for op in (one, other)]
    if len(one.indices) != 1 or kinds[0] != kinds[1] or (one.chunk and other.chunk and one.chunk != other.chunk):
        return None
    replacement: dict[Operand, Operand] = {other.indices[0]: one.indices[0]}
    known: dict[Any, Var] = {}
    statements: list[Let] = []
    results: list[Operand] = []

    def operand(item: Operand) -> Operand:
        return replacement.get(item, item) if isinstance(item, Var) else item

    for op in (one, other):
        for let in op.body.statements:
            if not isinstance(let.op, (Prim, Cast, Load)):
                return None
            made = rebuild(let.op, operand)
            (out,) = let.outs
            found = known.setdefault((made, out.type), out)
            if found is out:
                statements.append(Let(let.outs, made, let.pos))
            else:
                replacement[out] = found
        results += map(operand, op.body.results)
    body = Block(tuple(statements), tuple(results))
    return body if static_cost(one.body) + static_cost(other.body) - static_cost(body) > LEAST else None
