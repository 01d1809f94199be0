"""What a parallel operator moves: of each array, how many elements a point of the index space loads and stores.

An element that is accessed in a loop within a point, or by an operator as a whole, counts as `ENDLESS`: as often as the
array has elements. What is made inside does not count.
"""

from __future__ import annotations

from collections.abc import Iterator

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.passes.fusion.cost import ENDLESS, cost_of

OPERATORS = (*ir.PARALLEL, ir.Matmul, ir.Routine)


@record
class Traffic:
    """Elements of each array for a point, loaded and stored; `work`: scalar operations for a point."""

    loaded: dict[ir.Var, int]
    stored: dict[ir.Var, int]
    work: int


def traffic(let: ir.Let) -> Traffic:
    """What a statement of one of the `OPERATORS` moves and computes."""
    op = let.op
    made: set[ir.Var] = set()
    loaded = dict.fromkeys(ir.arrays_read(op), ENDLESS)
    stored = dict.fromkeys([*(out for out in let.outs if isinstance(out.type, Array)), *ir.arrays_written(op)], ENDLESS)
    for one, nested in (found for block in ir.blocks_of(op) for found in _inside(block)):
        made.update(one.outs)
        for arrays, counts in ((ir.arrays_read(one.op), loaded), (ir.arrays_written(one.op), stored)):
            for array in arrays:
                counts[array] = counts.get(array, 0) + (ENDLESS if nested else 1)
    kept = [{array: count for array, count in counts.items() if array not in made} for counts in (loaded, stored)]
    if isinstance(op, ir.Matmul):
        work = 2
    elif isinstance(op, ir.Routine):
        work = ENDLESS
    else:
        work = sum(cost_of(_without_stores(block)).work for block in ir.blocks_of(op))
    return Traffic(kept[0], kept[1], work)


def _without_stores(block: ir.Block) -> ir.Block:
    """A block that only computes; which branch is taken is not known, so both count."""
    statements: list[ir.Let] = []
    for let in block.statements:
        if isinstance(let.op, ir.If):
            inner = [_without_stores(one) for one in (let.op.then, let.op.orelse)]
            let = ir.Let(let.outs, ir.If(let.op.condition, inner[0], inner[1]), let.pos)
        if not isinstance(let.op, ir.Store | ir.View):
            statements.append(let)
    return ir.Block(tuple(statements), block.results)


def _inside(block: ir.Block, nested: bool = False) -> Iterator[tuple[ir.Let, bool]]:
    """The statements of an operator's block; of each, whether it is in a loop or operator within."""
    for let in block.statements:
        yield let, nested
        for inner in ir.blocks_of(let.op):
            yield from _inside(inner, nested or not isinstance(let.op, ir.If))
