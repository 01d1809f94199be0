"""Dead code: remove what no result and no effect needs.

A mark phase starts at what must happen (checks, calls into Python, stores into memory that is seen from outside, the
function's results) and follows definitions; a sweep phase rebuilds the program from what was marked. Dead are also
results of operators with several, parameters that loops only carry for themselves, memory that is stored to but
never read, with the stores, and fills that are never read (see `dead_fills`).

Loops are taken to end: a `While` without effects and without used results is removed. Checked arithmetic whose
result is not used is removed too; Python's own integers would not have overflowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from parakeet_py.base.grammar import with_blocks
from parakeet_py.base.types import Array
from parakeet_py.typed_ir.ir import (
    Block,
    Call,
    Check,
    Compress,
    For,
    Function,
    If,
    Lambda,
    Let,
    Map,
    Op,
    Opaque,
    Operand,
    Reduce,
    Scan,
    Scatter,
    Var,
    While,
    arrays_read,
    arrays_written,
    blocks_of,
    operands_of,
)
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.fusion.dead_fills import drop_lost_fills
from parakeet_py.typed_ir.rewrite import free_in_op


def eliminate_dead_code(function: Function) -> Function:
    """Remove statements, operator results and loop parameters that nothing needs."""
    mark = _Mark(Aliases(function))
    mark.function(function)
    body = drop_lost_fills(_Sweep(mark).block(function.body, function.body.results))
    if body is function.body:
        return function
    return replace(function, body=body)


class _Mark:
    """Marks statements (by `id`) and variables as needed."""

    def __init__(self, aliases: Aliases) -> None:
        self.aliases = aliases
        self.live: set[int] = set()
        self.needed: set[Var] = set()
        self.owner: dict[Var, Let] = {}  # the statement that binds a variable, as an out or inside
        self.parent: dict[int, Let] = {}  # the statement around a statement
        self.feeds: dict[Var, list[Operand]] = {}  # what is needed if this variable is
        self.waiting: dict[Var, list[Let]] = {}  # atom -> writes that matter once the memory is read
        self.read: set[Var] = set()  # atoms whose contents matter
        self.work: list[Operand] = []

    def function(self, function: Function) -> None:
        self.read |= self.aliases.world
        must: list[Let] = []
        self.block(function.body, None, must)
        for let in must:
            self.statement(let)
        self.contents(function.body.results)
        self.work += function.body.results
        while self.work:
            self.need(self.work.pop())

    def block(self, block: Block, parent: Let | None, must: list[Let]) -> None:
        """Note who binds what and collect what must happen."""
        for let in block.statements:
            op = let.op
            if parent is not None:
                self.parent[id(let)] = parent
            for out in let.outs:
                self.owner[out] = let
            kind = op.__class__
            if kind is Check or kind is Opaque or (isinstance(op, Call) and (op.fails or op.stores)):
                must.append(let)
            elif written := arrays_written(op):
                atoms = frozenset().union(*map(self.aliases.atoms, written))
                if atoms.isdisjoint(self.read) and atoms:
                    for atom in atoms:
                        self.waiting.setdefault(atom, []).append(let)
                else:
                    must.append(let)
            inside = blocks_of(op)
            if inside:
                self.flows(let)
            for inner in inside:
                self.block(inner, let, must)

    def flows(self, let: Let) -> None:
        """What each variable bound by a control or parallel operator is made from."""
        op, outs = let.op, let.outs
        match op:
            case If(_, then, orelse):
                for out, left, right in zip(outs, then.results, orelse.results, strict=True):
                    self.feeds[out] = [left, right]
            case For() | While():
                skip = 1 if op.stoppable else 0
                nexts = op.body.results[skip:]
                for out, param, init, following in zip(outs[skip:], op.params, op.inits, nexts, strict=True):
                    self.feeds[out] = [param]
                    self.feeds[param] = [init, following]
                    self.owner[param] = let
            case Map(body=body) | Scan(body=body) | Reduce(body=body):
                for out, result in zip(outs, body.results, strict=True):
                    self.feeds[out] = [result]
            case Compress(body=body):
                for out, result in zip(outs[1:], body.results[1:], strict=True):
                    self.feeds[out] = [result]

    def need(self, operand: Operand) -> None:
        if not isinstance(operand, Var) or operand in self.needed:
            return
        self.needed.add(operand)
        self.work += self.feeds.get(operand, ())
        owner = self.owner.get(operand)
        if owner is not None:
            self.statement(owner)

    def statement(self, let: Let | None) -> None:
        """Mark a statement, those around it, and what it reads whatever results are used."""
        while let is not None and id(let) not in self.live:
            self.live.add(id(let))
            op = let.op
            match op:
                case For(_, start, stop, step, _, _, body, stoppable):
                    self.work += (start, stop, step)
                    if stoppable:
                        self.work.append(body.results[0])
                case While(_, _, condition, body, stoppable):
                    self.work += condition.results
                    if stoppable:
                        self.work.append(body.results[0])
                case Reduce() | Scan() | Scatter():
                    # Which results are needed together is decided by `combine`; all of them, to be simple.
                    self.work += operands_of(op)
                    self.work += op.body.results
                    self.work += op.combine.body.results
                case Compress(extents, _, body):
                    self.work += extents
                    self.work.append(body.results[0])
                case Opaque(_, args) | Call(_, args):
                    self.contents(args)
                    self.work += args
                case _:
                    self.work += operands_of(op)
            self.contents(arrays_read(op))
            let = self.parent.get(id(let))

    def contents(self, arrays: Iterable[Operand]) -> None:
        """The contents of these arrays matter: so do the writes into their memory."""
        for array in arrays:
            if isinstance(array, Var) and isinstance(array.type, Array):
                for atom in self.aliases.atoms(array) - self.read:
                    self.read.add(atom)
                    for let in self.waiting.pop(atom, ()):
                        self.statement(let)


class _Sweep:
    """Rebuilds blocks without what was not marked."""

    def __init__(self, mark: _Mark) -> None:
        self.mark = mark

    def block(self, block: Block, results: tuple[Operand, ...]) -> Block:
        statements = []
        changed = len(results) != len(block.results)
        for let in block.statements:
            if id(let) not in self.mark.live:
                changed = True
                continue
            new = self.statement(let)
            changed = changed or new is not let
            statements.append(new)
        return Block(tuple(statements), results) if changed else block

    def whole(self, block: Block) -> Block:
        return self.block(block, block.results)

    def statement(self, let: Let) -> Let:
        op, outs = let.op, let.outs
        if not blocks_of(op):
            return let
        kept = [out in self.mark.needed for out in outs]
        new: Op
        match op:
            case If(condition, then, orelse) if not all(kept):
                outs = _select(outs, kept)
                new = If(
                    condition,
                    self.block(then, _select(then.results, kept)),
                    self.block(orelse, _select(orelse.results, kept)),
                    op.seldom,
                )
            case For() | While() if not all(param in self.mark.needed for param in op.params):
                return self.loop(let, op)
            case Map(extents, indices, body) if not all(kept):
                outs = _select(outs, kept)
                new = Map(extents, indices, self.block(body, _select(body.results, kept)))
            case Compress(extents, indices, body) if not all(kept[1:]):
                kept[0] = True
                outs = _select(outs, kept)
                new = Compress(extents, indices, self.block(body, _select(body.results, kept)))
            case Reduce() | Scan() if not all(kept):
                return self.combining(let, op, kept)
            case _:
                new = with_blocks(op, self.whole)
        return let if new is op else Let(outs, new, let.pos)

    def loop(self, let: Let, op: For | While) -> Let:
        kept = [param in self.mark.needed for param in op.params]
        ahead = (True,) if op.stoppable else ()
        body = self.block(op.body, _select(op.body.results, [*ahead, *kept]))
        params, inits = _select(op.params, kept), _select(op.inits, kept)
        outs = _select(let.outs, [*ahead, *kept])
        if isinstance(op, For):
            new: Op = For(op.index, op.start, op.stop, op.step, params, inits, body, op.stoppable)
        else:
            new = While(params, inits, self.whole(op.condition), body, op.stoppable)
        return Let(outs, new, let.pos)

    def combining(self, let: Let, op: Reduce | Scan, kept: list[bool]) -> Let:
        """Drop results that `combine` computes without looking at others."""
        count = len(kept)
        keep = _needed_together(op.combine, kept)
        if all(keep):
            new = with_blocks(op, self.whole)
            return let if new is op else Let(let.outs, new, let.pos)
        params = op.combine.params
        combine_body = _only_for(self.block(op.combine.body, _select(op.combine.body.results, keep)))
        combine = Lambda(_select(params[:count], keep) + _select(params[count:], keep), combine_body)
        body = self.block(op.body, _select(op.body.results, keep))
        inits = _select(op.inits, keep)
        if isinstance(op, Reduce):
            reduced, indices = op.reduced_extents, op.reduced_indices
            smaller: Op = Reduce(op.extents, op.indices, reduced, indices, body, inits, combine, op.runs)
        else:
            smaller = Scan(op.extents, op.indices, op.axis, body, inits, combine, op.inclusive)
        return Let(_select(let.outs, keep), smaller, let.pos)


_T = TypeVar("_T")


def _select(items: tuple[_T, ...], kept: Iterable[bool]) -> tuple[_T, ...]:
    return tuple([item for item, keep in zip(items, kept, strict=True) if keep])


def _only_for(block: Block) -> Block:
    """A block without effects, and without what its results do not need: it reads what is no longer bound."""
    needed = {result for result in block.results if isinstance(result, Var)}
    statements = []
    for let in reversed(block.statements):
        if not needed.isdisjoint(let.outs):
            statements.append(let)
            needed.update(free_in_op(let.op))
    return Block(tuple(reversed(statements)), block.results)


def _needed_together(combine: Lambda, kept: list[bool]) -> list[bool]:
    """Close `kept` under what the kept results of `combine` are computed from."""
    count = len(kept)
    position = {param: index % count for index, param in enumerate(combine.params)}
    sources: dict[Var, set[int]] = {param: {index} for param, index in position.items()}
    for let in combine.body.statements:
        found: set[int] = set()
        for operand in free_in_op(let.op):
            found |= sources.get(operand, set())
        for out in let.outs:
            sources[out] = found
    keep = list(kept)
    changed = True
    while changed:
        changed = False
        for index, result in enumerate(combine.body.results):
            if keep[index] and isinstance(result, Var):
                for other in sources.get(result, ()):
                    if not keep[other]:
                        keep[other] = changed = True
    return keep
