"""Interchange: a loop around a pointwise operator runs tile by tile, with the tile in cache.

    for t in range(rounds):            map tile:                          # in parallel, once
        z = map i: f(z[i], t)    ->        map i in tile: Z[i] := z[i]
                                           for t in range(rounds):
                                               map i in tile: Z[i] := f(Z[i], t)

Escape-time fractals and ray tracing written with whole arrays, relaxation of independent cells, any `z = where(...)` in
a loop: each round otherwise reads and writes all arrays through memory and starts the threads anew. It is done where
the loop contains scalars and one `Map`, whose outs are what the loop carries, and everything that changes from round to
round (carried arrays, arrays stored to) is touched at the point of the index space only. Points then do not depend on
each other, so the order of rounds and points can be exchanged; each tile runs its rounds in order.

A loop that may not run at all leaves the very arrays that it started from. Where those are seen elsewhere, too,
the nest is run under a condition.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYBOOL, PYINT, Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.fusion.cost import cost_of
from parakeet_py.typed_ir.rewrite import Rewriter, Uses, free_in_op, fresh_copy, is_const, substitute
from parakeet_py.typed_ir.writer import Writer, index_const

_TILE = 1024  # points: a few arrays of this size stay in the first-level cache
_MOST_WORK = 60  # of the scalars of a round, which every tile computes again


def interchange_loops(function: Function) -> Function:
    """Run loops of pointwise operators tile by tile."""
    if not any(isinstance(let.op, ir.For) for let in function.statements()):
        return function
    return _Interchanger(function).function(function)


@record(frozen=False)
class _Nest:
    """A loop that can be exchanged with the `Map` inside it."""

    loop: ir.For
    before: list[Let]  # scalars of a round
    inner: ir.Map
    carried: list[tuple[Var, Operand, int]]  # parameter, its start, the result of the map that follows it


class _Interchanger(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.uses = Uses(function.body).data
        self.dims: dict[Var, tuple[Var, int]] = {}
        self.extents: dict[Var, tuple[Operand, ...]] = {}
        for let in function.statements():
            op = let.op
            if isinstance(op, ir.Dim):
                self.dims[let.outs[0]] = (op.array, op.axis)
            elif isinstance(op, ir.Map | ir.Alloc | ir.Reduce | ir.Scan):
                self.extents.update((out, op.extents) for out in let.outs)

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.For):
            nest = self.nest(let, op)
            if nest is not None:
                made = self.exchanged(let, nest)
                return self.where_it_runs(let, nest, made) if self.must_run(nest) else made
        return self.descend(let)

    # ---- conditions ----

    def nest(self, let: Let, op: ir.For) -> _Nest | None:
        body = op.body
        operators = [inner for inner in body.statements if isinstance(inner.op, ir.Map)]
        if op.stoppable or len(operators) != 1 or not body.statements or body.statements[-1] is not operators[0]:
            return None
        last = operators[0]
        made = last.op
        assert isinstance(made, ir.Map)
        before = list(body.statements[:-1])
        effects = self.aliases.effects(op)
        if effects.fails or effects.calls or effects.overflows or not (op.params or effects.writes):
            return None
        if not all(isinstance(inner.op, ir.Prim | ir.Cast | ir.Dim | ir.Load) for inner in before):
            return None
        if cost_of(Block(tuple(before))).work > _MOST_WORK or any(
            isinstance(one.op, ir.For) for one in ir.walk(made.body)
        ):
            return None
        local = {op.index, *op.params, *(out for inner in before for out in inner.outs)}
        if not local.isdisjoint(made.extents) or not made.extents:
            return None
        carried = self.carried(op, last)
        if carried is None or not self.pointwise(op, before, made, effects.writes):
            return None
        return _Nest(op, before, made, carried)

    def carried(self, op: ir.For, last: Let) -> list[tuple[Var, Operand, int]] | None:
        """How the results of the map are carried; every parameter must be one of them, of the same shape throughout."""
        made = last.op
        assert isinstance(made, ir.Map)
        found: list[tuple[Var, Operand, int]] = []
        for param, init, result in zip(op.params, op.inits, op.body.results, strict=True):
            if result not in last.outs or not isinstance(init, Var) or not isinstance(param.type, Array):
                return None
            if not self.has_extents(init, made.extents) or param.type.layout != "C":
                return None
            found.append((param, init, last.outs.index(result)))
        return found if len({position for *_, position in found}) == len(last.outs) == len(found) else None

    def has_extents(self, array: Var, extents: tuple[Operand, ...]) -> bool:
        if self.extents.get(array) == extents:
            return True
        return all(
            isinstance(extent, Var) and self.dims.get(extent) == (array, axis) for axis, extent in enumerate(extents)
        )

    def pointwise(self, op: ir.For, before: list[Let], made: ir.Map, writes: set[Var]) -> bool:
        """Is all that changes from round to round touched at the map's own point only?"""
        changing = set(op.params)
        touched: dict[Var, None] = {}
        for let in ir.walk(made.body):
            inner = let.op
            if isinstance(inner, ir.Load | ir.Store):
                touched[inner.array] = None
                array_changes = inner.array in changing or not self.aliases.atoms(inner.array).isdisjoint(writes)
                if array_changes and inner.indices != made.indices:
                    return False
                if isinstance(inner, ir.Store) and inner.array in changing:
                    return False
            elif any(isinstance(operand, Var) and isinstance(operand.type, Array) for operand in ir.operands_of(inner)):
                return False
        for let in before:
            if not changing.isdisjoint(free_in_op(let.op)):
                return False
            if isinstance(let.op, ir.Load) and not self.aliases.atoms(let.op.array).isdisjoint(writes):
                return False
        # One descriptor for each memory that is stored to: equal indices are then equal elements.
        stored = [array for array in touched if not self.aliases.atoms(array).isdisjoint(writes)]
        for number, array in enumerate(stored):
            if any(self.aliases.may_alias(array, other) for other in stored[:number]):
                return False
        # What is carried is copied; the arrays it starts from must not be stored to meanwhile.
        return not any(isinstance(init, Var) and not self.aliases.atoms(init).isdisjoint(writes) for init in op.inits)

    def must_run(self, nest: _Nest) -> bool:
        """Would it show that the results are copies, if there were no rounds?"""
        loop = nest.loop
        bounds = (loop.start, loop.stop, loop.step)
        if all(isinstance(bound, Const) for bound in bounds):
            return not range(*(int(bound.value.real) for bound in bounds if isinstance(bound, Const)))
        starts = [init for _, init, _ in nest.carried if isinstance(init, Var)]
        return any(start not in self.extents or self.uses.get(start, 0) > 1 for start in starts)

    # ---- rewriting ----

    def where_it_runs(self, let: Let, nest: _Nest, made: list[Let]) -> list[Let]:
        """The nest if the loop has rounds, else what it starts from."""
        loop = nest.loop
        writer = Writer(let.pos)
        start, stop, step = self.operands((loop.start, loop.stop, loop.step))
        runs: Operand
        if isinstance(step, Const):
            runs = writer.prim("lt" if step.value.real > 0 else "gt", start, stop, type_=PYBOOL)
        else:
            up = writer.prim("gt", step, index_const(0), type_=PYBOOL)
            ahead = writer.prim("lt", start, stop, type_=PYBOOL)
            back = writer.prim("gt", start, stop, type_=PYBOOL)
            runs = writer.prim("select", up, ahead, back, type_=PYBOOL)
        results = tuple([self.replacement.pop(out) for out in let.outs])
        kept = self.operands(tuple([init for _, init, _ in nest.carried]))
        writer.let(ir.If(runs, Block(tuple(made), results), Block((), kept)), *let.outs)
        return writer.statements

    def exchanged(self, let: Let, nest: _Nest) -> list[Let]:
        writer = Writer(let.pos)
        made = nest.inner
        extents = tuple([self.operand(extent) for extent in made.extents])
        rank = len(extents)
        sizes = _tile_sizes(writer, extents)
        counts = [_ceiling(writer, extent, size) for extent, size in zip(extents, sizes, strict=True)]
        copies = []
        for (param, _, _), out in zip(nest.carried, let.outs, strict=True):
            assert isinstance(param.type, Array)
            copy = writer.alloc(param.type.dtype, *extents, title=param.name)
            self.replacement[out] = copy
            copies.append(copy)
        tile = Writer(let.pos)
        tiles = tuple([Var("tile", PYINT) for _ in range(rank)])
        lows, lengths = [], []
        for axis in range(rank):
            low: Operand = tiles[axis]
            length: Operand = index_const(1)
            if not is_const(sizes[axis], 1):
                low = tile.prim("mul", low, sizes[axis], type_=PYINT)
                rest = tile.prim("sub", extents[axis], low, type_=PYINT)
                length = tile.prim("minimum", rest, sizes[axis], type_=PYINT)
            lows.append(low)
            lengths.append(length)

        def over_tile(w: Writer, body: Block) -> None:
            """map i in tile: body, which is in terms of the map's own indices."""
            inner = Writer(let.pos)
            indices = tuple([Var("i", PYINT) for _ in range(rank)])
            mapping: dict[Var, Operand] = {}
            for index, low, old in zip(indices, lows, made.indices, strict=True):
                mapping[old] = inner.prim("add", index, low, title="i", type_=PYINT)
            copied = fresh_copy(body, mapping)
            w.let(ir.Map(tuple(lengths), indices, Block((*inner.statements, *copied.statements))))

        for (_, init, _), copy in zip(nest.carried, copies, strict=True):
            start = Writer(let.pos)
            source = self.operand(init)
            assert isinstance(source, Var)
            start.store(copy, made.indices, start.load(source, *made.indices))
            over_tile(tile, start.block())
        rounds = Writer(let.pos)
        rounds.statements += nest.before
        renamed: dict[Var, Operand] = {param: copy for (param, _, _), copy in zip(nest.carried, copies, strict=True)}
        point = substitute(made.body, renamed)
        stores = tuple(
            [
                Let((), ir.Store(copy, made.indices, point.results[position]), let.pos)
                for (_, _, position), copy in zip(nest.carried, copies, strict=True)
            ]
        )
        over_tile(rounds, Block((*point.statements, *stores)))
        loop = nest.loop
        tile.let(ir.For(loop.index, loop.start, loop.stop, loop.step, (), (), rounds.block()))
        applied = substitute(tile.block(), self.replacement)
        writer.let(ir.Map(tuple(counts), tiles, applied))
        return writer.statements


def _tile_sizes(writer: Writer, extents: tuple[Operand, ...]) -> list[Operand]:
    """One point along leading axes, a row of at most `_TILE` along the last, rows to fill the tile before it."""
    sizes: list[Operand] = [index_const(1)] * len(extents)
    sizes[-1] = index_const(_TILE)
    if len(extents) > 1:
        row = writer.prim("minimum", extents[-1], index_const(_TILE), type_=PYINT)
        row = writer.prim("maximum", row, index_const(1), type_=PYINT)
        sizes[-2] = writer.prim("floordiv", index_const(_TILE), row, type_=PYINT)
    return sizes


def _ceiling(writer: Writer, extent: Operand, size: Operand) -> Operand:
    """How many tiles cover an axis."""
    if is_const(size, 1):
        return extent
    rounded = writer.prim("add", extent, writer.prim("sub", size, index_const(1), type_=PYINT), type_=PYINT)
    return writer.prim("floordiv", rounded, size, type_=PYINT)
