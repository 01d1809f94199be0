"""Whether a function gives arrays whose elements are made of those at the same place in its arguments."""

from __future__ import annotations

from parakeet_py.base.types import Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Function, Var, blocks_of

_SCALARS = (ir.Prim, ir.Cast, ir.Check)


def is_elementwise(function: Function) -> bool:
    """Whether a function, as the specializer has made it, is nothing but operations on elements at the same place.

    Its arrays all have the same rank then, and an element of a result depends on elements of the arguments that have
    the same indices, on scalars, and on extents only where these have to be equal.
    """
    ranks = {param.type.rank for param in function.params if isinstance(param.type, Array)}
    extents: set[Var] = set()
    return len(ranks) == 1 and 0 not in ranks and _block(function.body, ranks.pop(), extents)


def _block(block: Block, rank: int, extents: set[Var]) -> bool:
    """Whether statements of the host part are; `extents` may be compared and be extents, and nothing else."""
    for let in block.statements:
        match let.op:
            case ir.Dim():
                extents.update(let.outs)
            case ir.Check():
                pass
            case ir.Prim("eq" | "ne" | "le" | "lt" | "ge" | "gt" | "and" | "or" | "not"):
                if not extents.isdisjoint(let.op.args):
                    extents.update(let.outs)  # a truth about extents
            case ir.Prim(args=args):
                if not extents.isdisjoint(args):
                    return False
            case ir.Cast(arg):
                if arg in extents:
                    return False
            case ir.If(condition, then, orelse):
                if condition in extents or not (_block(then, rank, extents) and _block(orelse, rank, extents)):
                    return False
            case ir.Map(of, indices, body):
                if len(of) != rank or not _body(body, indices, extents):
                    return False
            case _:
                return False
    return all(not isinstance(result, Var) or result not in extents for result in block.results)


def _body(body: Block, indices: tuple[Var, ...], extents: set[Var]) -> bool:
    """Whether what a Map does with elements reads those at its own indices, and these for nothing else."""
    hidden = {*indices, *extents}
    for let in ir.walk(body):
        match let.op:
            case ir.Load(indices=at):
                if tuple(at) != tuple(indices):
                    return False
            case ir.Prim() | ir.Cast() | ir.Check():
                args = let.op.args if not isinstance(let.op, ir.Cast) else (let.op.arg,)
                if not hidden.isdisjoint(args):
                    return False
            case ir.If() if blocks_of(let.op):
                pass
            case _:
                return False
    return hidden.isdisjoint(body.results)
