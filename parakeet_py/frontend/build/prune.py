"""Drop the flags that are never read.

Conversion gives every `If` an out for each name its branches bind differently, and every loop a parameter for each
name it binds, whether it is needed or not. Here demand is propagated from the effects (all operators but closures
may have one, as nothing is typed yet) through the merges: an out, a loop parameter or a closure that no effect and no
result depends on is dropped, with its block results. What stays are exactly the merges that carry a used value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from parakeet_py.base.grammar import with_blocks
from parakeet_py.frontend import ssa
from parakeet_py.frontend.ssa import Block, Let, Op, Operand, Var

_T = TypeVar("_T")


def prune(body: Block) -> Block:
    """The body of a function without needless merges."""
    demand = _Demand()
    demand.roots(body)
    demand.need(body.results)
    demand.propagate()
    return _rebuild(body, demand.needed)


class _Demand:
    def __init__(self) -> None:
        self.needed: set[Var] = set()
        self.sources: dict[Var, list[Operand]] = {}  # what a merge's out needs when it is needed itself
        self.pending: list[Var] = []

    def need(self, wanted: tuple[Operand, ...]) -> None:
        for operand in wanted:
            if isinstance(operand, Var) and operand not in self.needed:
                self.needed.add(operand)
                self.pending.append(operand)

    def propagate(self) -> None:
        while self.pending:
            for operand in self.sources.get(self.pending.pop(), ()):
                self.need((operand,))

    def roots(self, block: Block) -> None:
        for let in block.statements:
            match let.op:
                case ssa.MakeClosure():
                    self.sources[let.outs[0]] = list(ssa.operands_of(let.op))
                    continue
                case ssa.If(condition, then, orelse):
                    self.need((condition,))
                    for out, a, b in zip(let.outs, then.results, orelse.results, strict=True):
                        self.sources[out] = [a, b]
                case (
                    ssa.For(params=params, inits=inits, body=body, stoppable=stoppable)
                    | ssa.While(params=params, inits=inits, body=body, stoppable=stoppable)
                ):
                    skip = int(stoppable)
                    self.need(body.results[:skip])
                    if isinstance(let.op, ssa.For):
                        self.need((let.op.iterable,))
                    else:
                        self.need(let.op.condition.results)
                    outs, nexts = let.outs[skip:], body.results[skip:]
                    for param, init, out, following in zip(params, inits, outs, nexts, strict=True):
                        self.sources[out] = [param]
                        self.sources[param] = [init, following]
                case op:
                    self.need(ssa.operands_of(op))
            for inner in ssa.blocks_of(let.op):
                self.roots(inner)
                if not isinstance(let.op, ssa.If | ssa.For | ssa.While):
                    self.need(inner.results)


def _rebuild(block: Block, needed: set[Var]) -> Block:
    statements = []
    for let in block.statements:
        op: Op = let.op
        outs = let.outs
        match op:
            case ssa.MakeClosure() | ssa.Itself() if outs[0] not in needed:
                continue
            case ssa.If(condition, then, orelse):
                keep = [out in needed for out in outs]
                outs = _kept(outs, keep)
                op = ssa.If(
                    condition,
                    Block(_rebuild(then, needed).statements, _kept(then.results, keep)),
                    Block(_rebuild(orelse, needed).statements, _kept(orelse.results, keep)),
                )
            case (
                ssa.For(params=params, inits=inits, body=body, stoppable=stoppable)
                | ssa.While(params=params, inits=inits, body=body, stoppable=stoppable)
            ):
                skip = int(stoppable)
                keep = [out in needed or param in needed for out, param in zip(outs[skip:], params, strict=True)]
                kept_body = Block(_rebuild(body, needed).statements, _kept(body.results, [True] * skip + keep))
                outs = _kept(outs, [True] * skip + keep)
                params, inits = _kept(params, keep), _kept(inits, keep)
                if isinstance(op, ssa.For):
                    op = replace(op, params=params, inits=inits, body=kept_body)
                else:
                    condition_block = _rebuild(op.condition, needed)
                    op = replace(op, params=params, inits=inits, body=kept_body, condition=condition_block)
            case _:
                op = with_blocks(op, lambda inner: _rebuild(inner, needed))
        statements.append(let if op is let.op else Let(outs, op, let.pos))
    return Block(tuple(statements), block.results)


def _kept(items: tuple[_T, ...], keep: list[bool]) -> tuple[_T, ...]:
    return tuple(item for item, kept in zip(items, keep, strict=True) if kept)
