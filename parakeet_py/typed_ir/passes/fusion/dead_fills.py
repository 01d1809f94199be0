"""Fills that are never read: new memory filled with a constant, every element of which is stored to before it is read.

    a = map i < n: yield 0.0                    a = alloc (n)
    map i < n: a[i] := f(i)             ->      map i < n: a[i] := f(i)

So begins many a loop that computes an array element by element. Where only one branch stores to every element (a loop
with its checks hoisted, say), the other one is given the fill. A check that fails on the way leaves the function, and
nothing has seen the memory yet.
"""

from __future__ import annotations

from dataclasses import replace

from parakeet_py.base.grammar import with_blocks
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Let, Operand, Var


def drop_lost_fills(block: Block) -> Block:
    """The block, loops and branches in it too, with memory that is only made where it would be filled for nothing."""
    statements = list(block.statements)
    changed = False
    for place, let in enumerate(statements):
        op = let.op
        if isinstance(op, ir.For | ir.While | ir.If):
            inner = with_blocks(op, drop_lost_fills)
            if inner is not op:
                statements[place], changed = Let(let.outs, inner, let.pos), True
        if isinstance(op, ir.Map) and len(let.outs) == 1 and not op.body.statements and _is_number(op.body.results[0]):
            rest = _overwritten(statements[place + 1 :], let, op)
            if rest is not None:
                statements[place:] = [Let(let.outs, ir.Alloc(op.extents), let.pos), *rest]
                changed = True
    return Block(tuple(statements), block.results) if changed else block


def _is_number(operand: Operand) -> bool:
    return isinstance(operand, Const)


def _overwritten(statements: list[Let], filled: Let, fill: ir.Map) -> list[Let] | None:
    """What follows a fill, for memory without; None if it may be read before all of it is stored to."""
    (array,) = filled.outs
    for place, let in enumerate(statements):
        op = let.op
        if isinstance(op, ir.Dim) or not _mentions(let, array):
            continue
        if isinstance(op, ir.Map):
            return statements if _stores_all(op, array, fill.extents) else None
        if isinstance(op, ir.If) and array is not op.condition:
            then, orelse = (_overwritten(list(branch.statements), filled, fill) for branch in (op.then, op.orelse))
            if then is None and orelse is None:
                return None
            branches = [
                branch if rest is not None else replace(branch, statements=(_fill(filled, fill), *branch.statements))
                for branch, rest in ((op.then, then), (op.orelse, orelse))
            ]
            if then is not None:
                branches[0] = replace(branches[0], statements=tuple(then))
            if orelse is not None:
                branches[1] = replace(branches[1], statements=tuple(orelse))
            new = Let(let.outs, ir.If(op.condition, branches[0], branches[1], op.seldom), let.pos)
            return [*statements[:place], new, *statements[place + 1 :]]
        return None
    return None


def _stores_all(op: ir.Map, array: Var, extents: tuple[Operand, ...]) -> bool:
    """Whether a Map stores to every element of an array and does nothing else with it."""
    mine = [let for let in op.body.statements if _mentions(let, array)]
    if op.extents != extents or array in op.body.results or not mine:
        return False
    return all(
        isinstance(let.op, ir.Store) and let.op.indices == op.indices and let.op.value is not array for let in mine
    )


def _fill(filled: Let, fill: ir.Map) -> Let:
    """The fill as stores into memory that is there."""
    indices = tuple(Var(index.name, index.type) for index in fill.indices)
    store = Let((), ir.Store(filled.outs[0], indices, fill.body.results[0]), filled.pos)
    return Let((), ir.Map(fill.extents, indices, Block((store,))), filled.pos)


def _mentions(let: Let, array: Var) -> bool:
    if array in ir.operands_of(let.op):
        return True
    return any(
        array in block.results or any(_mentions(inner, array) for inner in block.statements)
        for block in ir.blocks_of(let.op)
    )
