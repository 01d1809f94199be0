"""Unroll axes of two, three or four elements (coordinates, colour channels, corners), and loops of a few iterations.

A loop of three iterations inside a long one keeps the long one from being vectorized. Where the extent of an operator's
last axis is such a constant, the axis is taken out of the index space:

* a reduction over it becomes arithmetic in the body (`x*x + y*y + z*z`), combined in order;
* a reduction that keeps it becomes one with several accumulators, a `Map` then puts its results side by side;
* a `Map` over it stores its elements one after the other.

The first two come before the second fusion (what they leave fuses with its consumers), the last one after it.

An inner loop that stays a loop, since every iteration needs the one before (`for dj in range(-1, 2): total += ...`), is
written out when it has at most eight iterations: what the body does for one value of the index is then decided where it
depends on nothing else, and tests that remain are ones that the loops around can be cut at.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.base.types import PYINT, Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Operand, Var, dtype_of
from parakeet_py.typed_ir.rewrite import Rewriter, fresh_copy

MAX_EXTENT = 4
MAX_STATEMENTS = 160  # of an unrolled body
MAX_TURNS = 8


def unroll_reductions(function: Function) -> Function:
    """Take short last axes out of reductions."""
    return _Reductions().function(function)


def unroll_maps(function: Function) -> Function:
    """Take short last axes out of maps."""
    return _Maps().function(function)


def unroll_loops(function: Function) -> Function:
    """Write out inner loops of a few iterations."""
    if not any(isinstance(let.op, ir.For) and _turns(let.op) for let in function.statements()):
        return function
    return _Loops().function(function)


def _short(extents: Sequence[Operand], axes: int = 1) -> int:
    """How many elements there are along the last axes, if each is short, else 0."""
    count = 1
    for extent in extents[-axes:]:
        size = extent.whole if isinstance(extent, Const) else 0
        count *= size if 2 <= size <= MAX_EXTENT else 0
    return count if extents else 0


def _fits(block: Block, copies: int) -> bool:
    return copies * sum(1 for _ in ir.walk(block)) <= MAX_STATEMENTS


def _instance(block: Block, index: Var, value: int) -> Block:
    """A fresh copy of a block at one value of an index."""
    return fresh_copy(block, {index: Const(value, PYINT)})


def _applied(function: ir.Lambda, args: Sequence[Operand]) -> Block:
    """The body of a lambda for given arguments, as a fresh block."""
    return fresh_copy(function.body, dict(zip(function.params, args, strict=True)))


class _Reductions(Rewriter):
    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.Reduce):
            axes = 1 if not op.runs else len(op.reduced_extents)
            count = _short(op.reduced_extents, axes)
            if not count and axes > 1:
                axes, count = 1, _short(op.reduced_extents)
            if count and _fits(op.body, count) and _adds_in_order(op, axes, count):
                return self._again(_reduced_axes(let, op, axes))
            count = _short(op.extents)
            if count and op.reduced_extents and _fits(op.body, count):
                return self._again(_kept_axis(let, op, count))
        return self.descend(let)

    def _again(self, lets: Sequence[Let]) -> Sequence[Let]:
        done: list[Let] = []
        for let in lets:
            changed = self.statement(let)
            done.extend([let] if changed is None else changed)
        return done


def _adds_in_order(op: ir.Reduce, axes: int, count: int) -> bool:
    """May `count` contributions side by side be combined first, one after the other?"""
    if not op.runs:
        return True
    row, chunk = op.runs
    whole = axes == len(op.reduced_extents)
    if chunk == ir.ONE:
        return whole
    one_run = chunk == ir.ZERO and (row == Const(count, PYINT) or (whole and row == ir.ZERO))
    if len(op.reduced_extents) > 1 and not one_run:
        return False
    # pairwise, halves are added in float32, and others in accumulators, from some number on
    most = {"float16": 0, "complex64": 3, "complex128": 3}
    return all(count <= most.get(dtype_of(init), 7) for init in op.inits)


def _reduced_axes(let: Let, op: ir.Reduce, axes: int) -> list[Let]:
    """Combine the contributions along the last reduced axes in the body."""
    statements: list[Let] = []
    combined: tuple[Operand, ...] = ()
    extents, indices = op.reduced_extents[-axes:], op.reduced_indices[-axes:]
    for place in itertools.product(*[range(int(extent.whole)) for extent in extents if isinstance(extent, Const)]):
        numbers = [Const(number, PYINT) for number in place]
        copy = fresh_copy(op.body, dict(zip(indices, numbers, strict=True)))
        statements.extend(copy.statements)
        if not combined:
            combined = copy.results
            continue
        joined = _applied(op.combine, (*combined, *copy.results))
        statements.extend(joined.statements)
        combined = joined.results
    if op.reduced_extents[:-axes]:
        body = Block(tuple(statements), combined)
        rest = replace(
            op,
            reduced_extents=op.reduced_extents[:-axes],
            reduced_indices=op.reduced_indices[:-axes],
            body=body,
            runs=(ir.ZERO, ir.ONE) if op.runs else (),
        )
        return [Let(let.outs, rest, let.pos)]
    last = _applied(op.combine, (*op.inits, *combined))
    body = Block((*statements, *last.statements), last.results)
    if op.extents:
        return [Let(let.outs, ir.Map(op.extents, op.indices, body), let.pos)]
    # A reduction inside a body, or of an array of one short axis: plain statements.
    return [*body.statements, *_bound(let, body.results)]


def _bound(let: Let, results: Sequence[Operand]) -> list[Let]:
    """Bind the outs of a statement to operands."""
    from parakeet_py.typed_ir.ir import Cast

    return [Let((out,), Cast(result), let.pos) for out, result in zip(let.outs, results, strict=True)]


def _kept_axis(let: Let, op: ir.Reduce, count: int) -> list[Let]:
    """One reduction with an accumulator for each place of the last kept axis."""
    statements: list[Let] = []
    contributions: list[Operand] = []
    for number in range(count):
        copy = _instance(op.body, op.indices[-1], number)
        statements.extend(copy.statements)
        contributions.extend(copy.results)
    width = len(op.inits)
    kinds = [init.type for init in op.inits] * count
    accumulators = [Var("acc", kind) for kind in kinds]
    arrivals = [Var("x", kind) for kind in kinds]
    folded: list[Let] = []
    results: list[Operand] = []
    for number in range(count):
        part = slice(number * width, (number + 1) * width)
        joined = _applied(op.combine, (*accumulators[part], *arrivals[part]))
        folded.extend(joined.statements)
        results.extend(joined.results)
    combine = ir.Lambda((*accumulators, *arrivals), Block(tuple(folded), tuple(results)))
    extents, indices = op.extents[:-1], op.indices[:-1]
    rank = len(extents)
    types = [_element(out) for out in let.outs] * count
    outs = tuple(Var(let.outs[0].name, Array(kind.dtype, rank, "C") if rank else kind) for kind in types)
    reduce = ir.Reduce(
        extents,
        indices,
        op.reduced_extents,
        op.reduced_indices,
        Block(tuple(statements), tuple(contributions)),
        op.inits * count,
        combine,
        op.runs,
    )
    lets = [Let(outs, reduce, let.pos)]
    lets += [Let((out,), ir.Alloc(op.extents), let.pos) for out in let.outs]
    points = tuple(Var(index.name, index.type) for index in indices)
    stores: list[Let] = []
    for position, part_out in enumerate(outs):
        number, which = divmod(position, width)
        value: Operand = part_out
        if rank:
            value = Var("t", types[position])
            stores.append(Let((value,), ir.Load(part_out, points), let.pos))
        stores.append(Let((), ir.Store(let.outs[which], (*points, Const(number, PYINT)), value), let.pos))
    return [*lets, *(stores if not rank else [Let((), ir.Map(extents, points, Block(tuple(stores))), let.pos)])]


def _element(array: Var) -> Scalar:
    kind = array.type
    assert isinstance(kind, Array)
    return Scalar(kind.dtype)


def _turns(op: ir.For) -> range | None:
    """The indices of a loop that hands scalars on, if they are known and few."""
    if not op.params or op.stoppable or not all(isinstance(param.type, Scalar) for param in op.params):
        return None
    bounds = [operand.whole for operand in (op.start, op.stop, op.step) if isinstance(operand, Const)]
    if len(bounds) != 3:
        return None
    turns = range(*bounds)
    return turns if 1 <= len(turns) <= MAX_TURNS else None


class _Loops(Rewriter):
    """Innermost loops first, so that a nest of short ones becomes straight code."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if not isinstance(op, (ir.For, ir.While, ir.Map)):
            return self.descend(let)
        turns = _turns(op) if isinstance(op, ir.For) and self.inside else None
        self.inside += 1
        new = self.descend(let)
        self.inside -= 1
        op = op if new is None else new[-1].op
        if turns is None or not isinstance(op, ir.For) or not _is_straight(op.body) or not _fits(op.body, len(turns)):
            return new
        return [*(new[:-1] if new else ()), *_written_out(let, op, turns)]


def _is_straight(block: Block) -> bool:
    """Nothing that loops, fails or leaves for Python."""
    return not any(
        isinstance(let.op, (ir.For, ir.While, ir.Opaque, ir.Call, ir.Check, ir.Alloc, *ir.PARALLEL))
        for let in ir.walk(block)
    )


def _written_out(let: Let, op: ir.For, turns: range) -> list[Let]:
    statements: list[Let] = []
    values = op.inits
    for index in turns:
        mapping: dict[Var, Operand] = dict(zip(op.params, values, strict=True))
        copy = fresh_copy(op.body, mapping | {op.index: Const(index, PYINT)})
        statements.extend(copy.statements)
        values = copy.results
    return [*statements, *_bound(let, values)]


class _Maps(Rewriter):
    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.Map) and len(op.extents) > 1:
            count = _short(op.extents)
            if count and _fits(op.body, count):
                return _unrolled_map(let, op, count)
        return self.descend(let)


def _unrolled_map(let: Let, op: ir.Map, count: int) -> list[Let]:
    lets = [Let((out,), ir.Alloc(op.extents), let.pos) for out in let.outs]
    statements: list[Let] = []
    for number in range(count):
        copy = _instance(op.body, op.indices[-1], number)
        statements.extend(copy.statements)
        place: tuple[Operand, ...] = (*op.indices[:-1], Const(number, PYINT))
        for out, result in zip(let.outs, copy.results, strict=True):
            statements.append(Let((), ir.Store(out, place, result), let.pos))
    return [*lets, Let((), ir.Map(op.extents[:-1], op.indices[:-1], Block(tuple(statements))), let.pos)]
