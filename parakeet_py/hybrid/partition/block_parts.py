"""Parts over blocks: operators cut along several axes at once, for chunks that stand alone.

`fission` cuts an operator along one axis, and its parts share arrays of the whole result. Where every part has memory
of its own, as on the workers of a cluster, an operator is cut into a grid of blocks. A `BlockPart` is a typed function
of where a block begins along the axes that are cut (`los`), of its extents along all axes (`counts`) and of what the
operator takes from outside, whose indices stay those of the whole:

| operator | (los, counts, *filled, *free) -> | how results of blocks are joined |
|---|---|---|
| Map | fills arrays of the block's extents, stores | side by side |
| Reduce | partial results over the block | side by side along kept axes, `combine` along reduced ones |
| Scan | scanned block, and its totals if the scanned axis is cut | `after` takes in the totals of the blocks before |
| Compress | count, and what is kept | one after the other |
| Scatter | stores | side by side |
| Scatter, `private` | stores, into a copy of the target that began with the identity | `combine`, the target last |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, COMPLEX, FLOATS, PYINT, Array, Scalar
from parakeet_py.frontend.ssa import Pos
from parakeet_py.hybrid.partition.part_functions import applied, combine_function, fresh_lambda, identity_of, standalone
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Lambda, Operand, Prim, Var, dtype_of
from parakeet_py.typed_ir.rewrite import free_in_op, fresh_copy
from parakeet_py.typed_ir.writer import Writer

_CHEAP = 4  # statements of contributions that are made twice

Space = ir.Map | ir.Reduce | ir.Scan | ir.Compress | ir.Scatter


@record
class BlockPart:
    """An operator over one block of its index space.

    Attributes
    ----------
    function : (*los of the cut axes, *counts, *filled, *free) -> results
    filled : the dtypes of the arrays that it is given to fill, whose extents are the counts
    combine : joins two partial results, if there are any
    totals : of an inclusive scan of one line whose contributions cost little: (*los, *counts, *free) -> what a block
        adds up to; the function takes what comes before a block as its last argument, and gives the array alone
    unused : numbers of outs of the operator that the function does not give
    after : of a scan that is cut along its axis: (*counts, *totals before, *scanned, *filled) fills arrays with what is
        scanned, the totals taken in
    """

    function: Function
    filled: tuple[str, ...] = ()
    combine: Function | None = None
    after: Function | None = None
    totals: Function | None = None
    unused: frozenset[int] = frozenset()


def space_of(op: Space) -> tuple[tuple[Var, ...], tuple[Operand, ...]]:
    """The index variables and extents of an operator, of a Reduce the kept axes first."""
    if isinstance(op, ir.Reduce):
        return (*op.indices, *op.reduced_indices), (*op.extents, *op.reduced_extents)
    return op.indices, op.extents


def any_order(combine: Lambda) -> bool:
    """Whether contributions may be combined in another order: exactly, or as sums and products of floats may."""
    if identity_of(combine) is not None:
        return True
    body = combine.body
    if len(body.statements) != 1 or len(combine.params) != 2:
        return False
    op = body.statements[0].op
    known = isinstance(op, Prim) and op.name in ("add", "mul", "minimum", "maximum", "fmin", "fmax")
    return known and body.results == body.statements[0].outs and dtype_of(combine.params[0]) in (*FLOATS, *COMPLEX)


def private_identity(combine: Lambda) -> Const | None:
    """What copies of a target begin with whose contributions are combined later; None if that may show. Sums of floats
    are regrouped; -0.0 is what changes none of them."""
    exact = identity_of(combine)
    if exact is not None or not any_order(combine):
        return exact
    op, dtype = combine.body.statements[0].op, dtype_of(combine.params[0])
    assert isinstance(op, Prim)
    zero = -0.0 if dtype in FLOATS else complex(-0.0, -0.0)
    return {"add": Const(zero, Scalar(dtype)), "mul": Const(1.0 if dtype in FLOATS else 1 + 0j, Scalar(dtype))}.get(
        op.name
    )


def block_part(
    op: Space,
    outs: tuple[Var, ...],
    line: int,
    name: str,
    cut: Sequence[int],
    private: bool = False,
    unused: frozenset[int] = frozenset(),
) -> BlockPart:
    """The part of an operator over blocks that are cut along some axes.

    Parameters
    ----------
    outs : of the operator
    cut : axes of its index space (of a Reduce, kept axes come first)
    private : of a Scatter: parts are given copies of the target
    unused : numbers of outs that nothing reads, which a Reduce along axes that are not cut need not give
    """
    return _Maker(op, outs, Pos(line, 0, line, 0), name, tuple(cut), unused).made(private)


class _Maker:
    def __init__(
        self,
        op: Space,
        outs: tuple[Var, ...],
        pos: Pos,
        name: str,
        cut: tuple[int, ...],
        unused: frozenset[int] = frozenset(),
    ) -> None:
        self.unused = unused
        self.op, self.outs, self.pos, self.name, self.cut = op, outs, pos, name, cut
        self.indices, _ = space_of(op)
        self.free = tuple(free_in_op(op))
        self.los = {axis: Var("lo", PYINT) for axis in cut}
        self.counts = tuple(Var("n", PYINT) for _ in self.indices)

    def made(self, private: bool) -> BlockPart:
        op, w = self.op, Writer(self.pos)
        match op:
            case ir.Map():
                filled = tuple(Var(out.name, out.type) for out in self.outs)
                self._map(w, filled)
                return BlockPart(self._function(w, filled, ()), tuple(map(dtype_of, filled)))
            case ir.Reduce() if self.unused and all(axis < len(op.extents) for axis in self.cut):
                given = tuple(out for number, out in enumerate(self._emit(w)) if number not in self.unused)
                return BlockPart(self._function(w, (), given), unused=self.unused)
            case ir.Reduce():
                function = self._function(w, (), self._emit(w))
                kinds = [result.type for result in function.body.results]
                return BlockPart(function, combine=combine_function(op.combine, kinds, self.name))
            case ir.Scan() if self.cut and _starts_anywhere(op):
                return self._from_before(w, op)
            case ir.Scan() if op.axis in self.cut:
                outs = self._emit(w)
                totals = self._totals(w, op, outs)
                kinds = [total.type for total in totals]
                combine = combine_function(op.combine, kinds, self.name)
                return BlockPart(self._function(w, (), (*outs, *totals)), combine=combine, after=self._after(op))
            case ir.Scan() | ir.Compress():
                return BlockPart(self._function(w, (), self._emit(w)))
            case ir.Scatter() if private:
                w.let(self._restricted())
                kind = Array(dtype_of(op.target), _rank(op.target))
                return BlockPart(self._function(w, (), ()), combine=combine_function(op.combine, [kind], self.name))
            case ir.Scatter():
                w.let(self._restricted())
                return BlockPart(self._function(w, (), ()))
        raise AssertionError(op)

    def _function(self, w: Writer, filled: Sequence[Var], results: Sequence[Operand]) -> Function:
        params = (*self.los.values(), *self.counts, *filled, *self.free)
        return standalone(self.name, params, w.block(*results))

    def _restricted(self) -> Space:
        """The operator over the block, its indices counted from 0."""
        op, inner = self.op, Writer(self.pos)
        fresh = [Var(old.name, PYINT) for old in self.indices]
        known: dict[Var, Operand] = {}
        for axis, (old, new) in enumerate(zip(self.indices, fresh, strict=True)):
            lo = self.los.get(axis)
            known[old] = new if lo is None else inner.prim("add", new, lo, type_=PYINT, title=old.name)
        copied = fresh_copy(op.body, known)
        body = Block((*inner.statements, *copied.statements), copied.results)
        if isinstance(op, ir.Reduce):
            kept = len(op.extents)
            runs = () if any(axis >= kept for axis in self.cut) else op.runs
            return ir.Reduce(
                self.counts[:kept],
                tuple(fresh[:kept]),
                self.counts[kept:],
                tuple(fresh[kept:]),
                body,
                op.inits,
                fresh_lambda(op.combine),
                runs,
            )
        changed = replace(op, extents=self.counts, indices=tuple(fresh), body=body)
        if isinstance(changed, ir.Map | ir.Compress):
            return changed
        return replace(changed, combine=fresh_lambda(changed.combine))

    def _emit(self, w: Writer) -> tuple[Var, ...]:
        outs = tuple(Var(out.name, out.type) for out in self.outs)
        w.let(self._restricted(), *outs)
        return outs

    def _map(self, w: Writer, filled: Sequence[Var]) -> None:
        """A Map that stores its results into the arrays of the block."""
        op = self._restricted()
        assert isinstance(op, ir.Map)
        inner = Writer(self.pos)
        inner.statements += op.body.statements
        for array, value in zip(filled, op.body.results, strict=True):
            inner.store(array, list(op.indices), value)
        w.let(ir.Map(op.extents, op.indices, inner.block()))

    def _from_before(self, w: Writer, op: ir.Scan) -> BlockPart:
        """A scan of one line in two passes: what blocks add up to, then each block from what comes before it."""
        kind = Scalar(dtype_of(op.inits[0]))
        before, (out,) = Var("before", kind), self.outs
        restricted, inner = self._restricted(), Writer(self.pos)
        assert isinstance(restricted, ir.Scan)
        inner.statements += restricted.body.statements
        (own,) = restricted.body.results
        (joined,) = applied(inner, op.combine, [before, own])
        first = inner.prim("eq", restricted.indices[0], ir.ZERO, type_=BOOL)
        scanned = Var(out.name, out.type)
        w.let(replace(restricted, body=inner.block(inner.prim("select", first, joined, own, type_=own.type))), scanned)
        params = (*self.los.values(), *self.counts, *self.free, before)
        combine = combine_function(op.combine, [kind], self.name)
        totals = _Maker(op, self.outs, self.pos, self.name, self.cut).total()
        return BlockPart(standalone(self.name, params, w.block(scanned)), combine=combine, totals=totals)

    def total(self) -> Function:
        """What a block of a line adds up to."""
        op, w = self._restricted(), Writer(self.pos)
        assert isinstance(op, ir.Scan)
        total = Var("total", Scalar(dtype_of(op.inits[0])))
        w.let(ir.Reduce((), (), op.extents, op.indices, op.body, op.inits, op.combine), total)
        return self._function(w, (), (total,))

    # ---- scans -------------------------------------------------------------------------------------------------------

    def _totals(self, w: Writer, op: ir.Scan, outs: Sequence[Var]) -> tuple[Operand, ...]:
        """What a scanned block adds up to along the axis, which has at least one index in it."""
        lines = [Var(index.name, PYINT) for axis, index in enumerate(op.indices) if axis != op.axis]
        extents = [count for axis, count in enumerate(self.counts) if axis != op.axis]
        last = w.prim("sub", self.counts[op.axis], ir.ONE, type_=PYINT)
        point: list[Operand] = [*lines[: op.axis], last, *lines[op.axis :]]
        inner = Writer(self.pos)
        values: list[Operand] = [inner.load(out, *point) for out in outs]
        if not op.inclusive:
            known: dict[Var, Operand] = {}
            for axis, (old, at) in enumerate(zip(op.indices, point, strict=True)):
                known[old] = inner.prim("add", at, self.los[axis], type_=PYINT) if axis in self.los else at
            contribution = fresh_copy(op.body, known)
            inner.statements += contribution.statements
            values = applied(inner, op.combine, [*values, *contribution.results])
        if not lines:
            w.statements += inner.statements
            return tuple(values)
        totals = tuple(Var("total", Array(dtype_of(out), len(lines))) for out in outs)
        w.let(ir.Map(tuple(extents), tuple(lines), inner.block(*values)), *totals)
        return totals

    def _after(self, op: ir.Scan) -> Function:
        """Take the totals of the blocks before into every element of a scanned block, which fills another one."""
        rank, w = len(op.indices), Writer(self.pos)
        counts = tuple(Var("n", PYINT) for _ in range(rank))
        kinds = [dtype_of(init) for init in op.inits]
        before = tuple(Var("before", Array(kind, rank - 1) if rank > 1 else Scalar(kind)) for kind in kinds)
        scanned = tuple(Var(out.name, Array(dtype_of(out), rank)) for out in self.outs)
        filled = tuple(Var(out.name, Array(dtype_of(out), rank)) for out in self.outs)

        def take_in(v: Writer, *point: Operand) -> None:
            line = [*point[: op.axis], *point[op.axis + 1 :]]
            totals = [v.load(one, *line) if isinstance(one.type, Array) else one for one in before]
            own = [v.load(array, *point) for array in scanned]
            for array, value in zip(filled, applied(v, op.combine, [*totals, *own]), strict=True):
                v.store(array, point, value)

        w.map(counts, take_in)
        return standalone(self.name, (*counts, *before, *scanned, *filled), w.block())


def _starts_anywhere(op: ir.Scan) -> bool:
    """Whether blocks had better be scanned from what comes before them: a line, and contributions cost little."""
    cheap = all(
        isinstance(let.op, ir.Load | ir.Cast) or (isinstance(let.op, Prim) and let.op.name not in ir.ELEMENTARY)
        for let in op.body.statements
    )
    return (
        len(op.indices) == len(op.inits) == 1
        and op.inclusive
        and isinstance(op.inits[0], Const)
        and dtype_of(op.body.results[0]) == dtype_of(op.inits[0])
        and cheap
        and len(op.body.statements) <= _CHEAP
    )


def _rank(array: Var) -> int:
    assert isinstance(array.type, Array)
    return array.type.rank
