"""Selections by one mask: their lengths are equal, and they are made together.

    z[m] = z[m] ** 2 + c[m]     is     p = z[m]; q = c[m]       (two `Compress`)
                                       p and q broadcast?        (their lengths)
                                       r = p ** 2 + q            (`Map` over the length)
                                       k = where(m)              (another `Compress`)
                                       z[k] = r                  (`Map` that stores)

`share_counts` gives selections by the same mask, of memory that has not been written meanwhile, one length; the checks
and choices of broadcasting go then, as extents are equal (`simplify`). Much of what is left becomes an update in place
(`masked_updates`); selections that stay are made together where the first of them is (`join_selections`), an array that
is only read once.

*Masks* are the same where they are the same array, or arrays of flags that are computed by the same expression
(`x[x > 0] = f(x[x > 0])`), which nothing has written to, and nothing reads but as flags.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ZERO, Block, Function, Let, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.rewrite import Rewriter, free_in_op, fresh_copy, substitute

Mask = tuple[Var, ir.Indices]  # the array of flags, and the extents that are gone through


def share_counts(function: Function) -> Function:
    """Let selections by the same mask have one length."""
    if sum(isinstance(let.op, ir.Compress) for let in function.statements()) < 2:
        return function
    return _Counts(function).function(function)


def equal_counts(function: Function) -> dict[Var, Var]:
    """The lengths of selections by a mask that has been used before, and that of the first of these."""
    found = _Counts(function)
    found.function(function)
    return {count: known for count, known in found.replacement.items() if isinstance(known, Var)}


def join_selections(function: Function) -> Function:
    """Make selections by one mask together."""
    if sum(isinstance(let.op, ir.Compress) for let in function.statements()) < 2:
        return function
    return _Joiner(function).function(function)


def mask_of(op: ir.Compress) -> Mask | None:
    """The mask of a selection whose flag is an element of an array, at its own indices."""
    flag = op.body.results[0]
    for let in op.body.statements:
        if let.outs == (flag,):
            return (let.op.array, op.extents) if isinstance(let.op, ir.Load) and let.op.indices == op.indices else None
    return None


class _Counts(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.counts: dict[Mask, Var] = {}
        self.computed: dict[_Expression, Var] = {}  # expressions -> the masks that they gave
        self.plain = _only_read(function)

    def block(self, block: Block) -> Block:
        outer = self.counts, self.computed
        self.counts, self.computed = dict(self.counts), dict(self.computed)
        new = super().block(block)
        self.counts, self.computed = outer
        return new

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.PARALLEL) and not isinstance(op, ir.Compress):
            self.forget(op)
            new = self.descend(let)
            if isinstance(op, ir.Map) and len(let.outs) == 1 and self.is_mask(let.outs[0]):
                made = new[0].op if new else op
                assert isinstance(made, ir.Map)
                expression = _expression(made)
                known = let.outs[0] if expression is None else self.computed.setdefault(expression, let.outs[0])
                if known is not let.outs[0]:
                    self.replacement[let.outs[0]] = known
            return new
        if isinstance(op, ir.For | ir.While | ir.If):
            self.forget(op)  # before it, too: another iteration may have written
        new = self.descend(let)
        if isinstance(op, ir.Compress):
            made = new[0].op if new else op
            assert isinstance(made, ir.Compress)
            mask = mask_of(made)
            if mask is not None:
                known = self.counts.setdefault(mask, let.outs[0])
                if known is not let.outs[0]:
                    self.replacement[let.outs[0]] = known
        else:
            self.forget(op)
        return new

    def forget(self, op: ir.Op) -> None:
        """Masks in memory that an operator may write."""
        effects = self.aliases.effects(op)
        if effects.writes or effects.calls:
            written = effects.writes | (self.aliases.world if effects.calls else frozenset())
            self.counts = {
                mask: count for mask, count in self.counts.items() if self.aliases.atoms(mask[0]).isdisjoint(written)
            }
            self.computed = {
                expression: mask for expression, mask in self.computed.items() if self.stays(expression, written)
            }

    def is_mask(self, array: Var) -> bool:
        return dtype_of(array) == "bool" and array in self.plain

    def stays(self, expression: _Expression, written: Set[Var]) -> bool:
        return all(self.aliases.atoms(array).isdisjoint(written) for array in expression.reads)


@record
class _Expression:
    """What a `Map` computes of the elements of some arrays, whatever its variables are called."""

    extents: tuple[Operand, ...]
    body: tuple[object, ...]
    reads: tuple[Var, ...]


def _expression(op: ir.Map) -> _Expression | None:
    names: dict[Operand, object] = {index: axis for axis, index in enumerate(op.indices)}
    body: list[object] = []
    reads: dict[Var, None] = {}
    for let in op.body.statements:
        if not isinstance(let.op, ir.Prim | ir.Cast | ir.Load):
            return None
        reads |= dict.fromkeys(ir.arrays_read(let.op))
        name = let.op.name if isinstance(let.op, ir.Prim) else let.op.__class__
        body.append((name, let.outs[0].type, *[names.get(one, one) for one in ir.operands_of(let.op)]))
        names[let.outs[0]] = ("value", len(names))
    body += [names.get(one, one) for one in op.body.results]
    return _Expression(op.extents, tuple(body), tuple(reads))


def _only_read(function: Function) -> set[Var]:
    """The arrays that operators make, and that are used element by element only, for reading."""
    made: set[Var] = set()
    otherwise = {one for one in function.body.results if isinstance(one, Var)}
    for let in function.statements():
        if isinstance(let.op, ir.Map | ir.Compress):
            made.update(let.outs)
        if not isinstance(let.op, ir.Load | ir.Dim):
            otherwise.update(one for one in ir.operands_of(let.op) if isinstance(one, Var))
        for block in ir.blocks_of(let.op):
            otherwise.update(one for one in block.results if isinstance(one, Var))
    return made - otherwise


# ---- selections together ---------------------------------------------------------------------------------------------


@record(frozen=False)
class _Selection:
    """A selection that others may join: its place, what is bound behind it, and what has been written since."""

    at: int
    bound: set[Var]
    written: set[Var]


class _Joiner(Rewriter):
    """Selections by one mask go to where the first of them is, if what they select is there already."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.plain = _only_read(function)

    def statement(self, let: Let) -> Sequence[Let] | None:
        return None if isinstance(let.op, ir.PARALLEL) and not self.replacement else self.descend(let)

    def block(self, block: Block) -> Block:
        block = super().block(block)
        known: dict[Mask, _Selection] = {}
        statements: list[Let] = []
        joined = False
        for let in block.statements:
            op = let.op
            mask = mask_of(op) if isinstance(op, ir.Compress) else None
            first = known.get(mask) if mask is not None else None
            if first is not None and isinstance(op, ir.Compress) and self.may_join(op, first):
                statements[first.at] = _joined(statements[first.at], let, op)
                length = ir.Prim("add", (statements[first.at].outs[0], ZERO))
                statements.append(Let(let.outs[:1], length, let.pos))
                joined = True
            else:
                if mask is not None:
                    known[mask] = _Selection(len(statements), set(), set())
                statements.append(let)
            effects = self.aliases.effects(op)
            for selection in known.values():
                selection.bound.update(let.outs)
                selection.written |= effects.writes | (self.aliases.world if effects.calls else frozenset())
        if not joined:
            return block
        same = dict(pair for let in statements if isinstance(let.op, ir.Compress) for pair in self.twins(let, let.op))
        return substitute(Block(tuple(statements), block.results), same)

    def twins(self, let: Let, op: ir.Compress) -> Iterable[tuple[Var, Var]]:
        """Arrays that a selection makes of the elements of one array, and that are only read."""
        elements = {one.outs[0]: one.op for one in op.body.statements if isinstance(one.op, ir.Load)}
        made: dict[ir.Load, Var] = {}
        for out, result in zip(let.outs[1:], op.body.results[1:], strict=True):
            element = elements.get(result) if isinstance(result, Var) else None
            if element is not None and out in self.plain:
                twin = made.setdefault(element, out)
                if twin is not out:
                    yield out, twin

    def may_join(self, op: ir.Compress, first: _Selection) -> bool:
        free = free_in_op(op)
        if not first.bound.isdisjoint(free):
            return False
        return all(self.aliases.atoms(one).isdisjoint(first.written) for one in free)


def _joined(first: Let, let: Let, op: ir.Compress) -> Let:
    """A selection that makes the arrays of another one, too."""
    before = first.op
    assert isinstance(before, ir.Compress)
    mapping: dict[Var, Operand] = dict(zip(op.indices, before.indices, strict=True))
    more = fresh_copy(op.body, mapping)
    body = Block((*before.body.statements, *more.statements), (*before.body.results, *more.results[1:]))
    return Let((*first.outs, *let.outs[1:]), replace(before, body=body), first.pos)
