"""Fission: the ways in which a fused operator can be cut into parts, and how the parts' results are joined.

Every `Division` cuts the index space of one operator along one axis. Its `part` is a typed function of a range
[lo, hi) of that axis and of what the operator takes from outside; it knows nothing of devices. `join` says what
becomes of the parts' results, in the order of the index:

| operator | axis | join |
|---|---|---|
| Map, Matmul | any (of the result) | `concatenate`: every part fills its range of the results |
| Reduce | kept | `concatenate` |
| Reduce | the first reduced; any, if the combine is exact | `combine`: the operator's own, over partial results |
| Scan | across | `concatenate` |
| Scan | along | `scan`: parts scan alone and give their totals, then take in the totals of the parts before them |
| Compress | the first | `compress`: counts are added, results stand one after the other |
| Scatter | any where parts write different elements | `concatenate` |
| Scatter, exact combine | any | `histogram`: parts fill copies of the target that begin with the identity |

A `concatenate` part writes into arrays that hold the whole result, so that nothing has to be put together where parts
share a memory. Which elements a part reads and writes is `access.Touched`; `Division.inputs` is the short form.

An operator that may fail is cut along its outermost axis only, so that the first part that fails has the first failure;
one that may fail and stores into memory that is seen when the call has failed (an argument's, or what Python has been
given) is not cut, as all its checks come before its first store.
Nor is one whose combine may fail: what overflows depends on the grouping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from parakeet_py.base.types import PYINT, Array, Scalar
from parakeet_py.frontend.ssa import Pos
from parakeet_py.hybrid.partition.access import Touched
from parakeet_py.hybrid.partition.division import Division
from parakeet_py.hybrid.partition.part_functions import applied, combine_function, fresh_lambda, identity_of, standalone
from parakeet_py.hybrid.partition.product_parts import product
from parakeet_py.imp.schedule.loop_order import static_cost
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Op, Operand, Var, dtype_of
from parakeet_py.typed_ir.rewrite import free_in_op, fresh_copy
from parakeet_py.typed_ir.writer import Writer

Space = ir.Map | ir.Reduce | ir.Scan | ir.Compress | ir.Scatter


def divisions(let: Let, name: str = "part", seen: Callable[[Var], bool] = lambda array: True) -> tuple[Division, ...]:
    """All ways to cut an operator, best first: without a join, along outer axes; `seen`: whether others see an array
    of the outside when the call has failed."""
    op = let.op
    if isinstance(op, ir.Matmul):
        return tuple(product(op, axis, name) for axis in range(_rank(op.out)))
    if not isinstance(op, Space):
        return ()
    maker = _Maker(op, let.outs, let.pos, name, seen)
    return tuple(sorted(maker.all(), key=lambda one: one.join != "concatenate"))


def may_fail(block: Block) -> bool:
    """Whether something in a block may raise."""
    return any(isinstance(let.op, ir.Check) or _overflows(let.op) for let in ir.walk(block))


def _overflows(op: Op) -> bool:
    return isinstance(op, ir.Prim) and op.name.endswith("_checked")


def _rank(array: Var) -> int:
    assert isinstance(array.type, Array)
    return array.type.rank


class _Maker:
    """Makes the divisions of one operator."""

    def __init__(self, op: Space, outs: tuple[Var, ...], pos: Pos, name: str, seen: Callable[[Var], bool]) -> None:
        self.op, self.outs, self.pos, self.name, self.seen = op, outs, pos, name, seen
        self.free = tuple(free_in_op(op))
        self.touched = Touched(op)
        self.indices, self.extents = op.indices, op.extents
        if isinstance(op, ir.Reduce):
            self.indices, self.extents = (*op.indices, *op.reduced_indices), (*op.extents, *op.reduced_extents)

    def all(self) -> list[Division]:
        op = self.op
        fails = may_fail(op.body)
        combine = getattr(op, "combine", None)
        if combine is not None and may_fail(combine.body):
            return []
        if fails and self.stores_where_it_is_seen():
            return []
        axes = range(min(1, len(self.indices))) if fails else range(len(self.indices))
        return [one for axis in axes for one in self.along(axis)]

    def stores_where_it_is_seen(self) -> bool:
        made = {out for let in ir.walk(self.op.body) for out in let.outs}
        targets = [array for let in ir.walk(self.op.body) for array in ir.arrays_written(let.op)]
        targets += ir.arrays_written(self.op)
        return any(target not in made and self.seen(target) for target in targets)

    def along(self, axis: int) -> list[Division]:
        match self.op:
            case ir.Map():
                return [self.division(axis, "concatenate", self.function(self.map_part(axis)))]
            case ir.Reduce(extents=kept):
                if axis < len(kept):
                    return [self.division(axis, "concatenate", self.function(self.copied_part(axis)))]
                if axis > len(kept) and identity_of(self.op.combine) is None:
                    return []  # contributions would be combined in another order
                part = self.function(self.partial(axis), into=False)
                return [self.division(axis, "combine", part, combine=self.reduce_combine(part))]
            case ir.Scan(axis=along):
                if axis != along:
                    return [self.division(axis, "concatenate", self.function(self.copied_part(axis)))]
                part = self.function(self.scan_part())
                after = self.scan_after(part)
                combine = combine_function(self.op.combine, [r.type for r in part.body.results], self.name)
                return [self.division(axis, "scan", part, after=after, combine=combine)]
            case ir.Compress():
                return (
                    [self.division(axis, "compress", self.function(self.partial(axis), into=False))]
                    if axis == 0
                    else []
                )
            case ir.Scatter():
                found = [self.division(axis, "concatenate", self.function(self.partial(axis), into=False))]
                identity = identity_of(self.op.combine)
                if identity is not None:
                    part = self.function(self.histogram_part(axis, identity), into=False)
                    found.append(self.division(axis, "histogram", part, combine=self.histogram_combine()))
                return found
        raise AssertionError(self.op)

    def division(
        self, axis: int, join: str, part: Function, after: Function | None = None, combine: Function | None = None
    ) -> Division:
        index, extent, cost = self.indices[axis], self.extents[axis], static_cost(self.op.body)
        rounds = isinstance(self.op, ir.Reduce | ir.Scan) and identity_of(self.op.combine) is None
        return Division(
            self.op, axis, extent, index, self.touched, join, self.free, part, after, combine, cost, rounds=rounds
        )

    # ---- parts -------------------------------------------------------------------------------------------------------

    def function(
        self, write: Callable[[Writer, Var, Var, tuple[Var, ...]], Sequence[Operand]], into: bool = True
    ) -> Function:
        """The function of a part; `write(writer, lo, hi, whole results)` writes its body."""
        lo, hi = Var("lo", PYINT), Var("hi", PYINT)
        whole = tuple(Var(out.name, out.type) for out in self.outs if isinstance(out.type, Array)) if into else ()
        writer = Writer(self.pos)
        results = tuple(write(writer, lo, hi, whole))
        return standalone(self.name, (lo, hi, *whole, *self.free), writer.block(*results))

    def restricted(self, w: Writer, axis: int, lo: Var, hi: Var) -> Op:
        """The operator over [lo, hi) of an axis, its indices counted from 0."""
        op = self.op
        extent = w.prim("sub", hi, lo, type_=PYINT, title="n")
        index, inner = Var(self.indices[axis].name, PYINT), Writer(self.pos)
        place = inner.prim("add", index, lo, type_=PYINT, title=index.name)
        known: dict[Var, Operand] = {self.indices[axis]: place}
        indices, extents = list(self.indices), list(self.extents)
        for number, old in enumerate(indices):
            indices[number] = index if number == axis else Var(old.name, old.type)
            known.setdefault(old, indices[number])
        extents[axis] = extent
        copied = fresh_copy(op.body, known)
        body = Block((*inner.statements, *copied.statements), copied.results)
        if isinstance(op, ir.Reduce):
            kept = len(op.extents)
            return ir.Reduce(
                tuple(extents[:kept]),
                tuple(indices[:kept]),
                tuple(extents[kept:]),
                tuple(indices[kept:]),
                body,
                op.inits,
                fresh_lambda(op.combine),
                op.runs if axis < kept else (),
            )
        changed = replace(op, extents=tuple(extents), indices=tuple(indices), body=body)
        return (
            changed
            if isinstance(changed, ir.Map | ir.Compress)
            else replace(changed, combine=fresh_lambda(changed.combine))
        )

    def emit(self, w: Writer, axis: int, lo: Var, hi: Var) -> tuple[Var, ...]:
        outs = tuple(Var(out.name, out.type) for out in self.outs)
        w.let(self.restricted(w, axis, lo, hi), *outs)
        return outs

    def partial(self, axis: int) -> Callable[[Writer, Var, Var, tuple[Var, ...]], Sequence[Operand]]:
        """The operator over the range: its results are the part's."""
        return lambda w, lo, hi, whole: self.emit(w, axis, lo, hi)

    def map_part(self, axis: int) -> Callable[[Writer, Var, Var, tuple[Var, ...]], Sequence[Operand]]:
        """A Map that stores its results into their places."""

        def write(w: Writer, lo: Var, hi: Var, whole: tuple[Var, ...]) -> Sequence[Operand]:
            op = self.restricted(w, axis, lo, hi)
            assert isinstance(op, ir.Map)
            inner = Writer(self.pos)
            inner.statements += op.body.statements
            if whole:
                place = list(op.indices)
                place[axis] = inner.prim("add", place[axis], lo, type_=PYINT)
                for array, value in zip(whole, op.body.results, strict=True):
                    inner.store(array, place, value)
            w.let(ir.Map(op.extents, op.indices, inner.block()))
            return ()

        return write

    def copied_part(self, axis: int) -> Callable[[Writer, Var, Var, tuple[Var, ...]], Sequence[Operand]]:
        """The operator over the range, then its results copied into their places."""

        def write(w: Writer, lo: Var, hi: Var, whole: tuple[Var, ...]) -> Sequence[Operand]:
            outs = self.emit(w, axis, lo, hi)
            self.place(w, axis, lo, hi, outs, whole)
            return ()

        return write

    def place(self, w: Writer, axis: int, lo: Var, hi: Var, made: Sequence[Var], whole: Sequence[Var]) -> None:
        """Copy arrays made for the range [lo, hi) of an axis into arrays of the whole space."""
        kept = self.op.extents
        extents = list(kept)
        extents[axis] = w.prim("sub", hi, lo, type_=PYINT)

        def copy(v: Writer, *point: Operand) -> None:
            target = list(point)
            target[axis] = v.prim("add", point[axis], lo, type_=PYINT)
            for source, array in zip(made, whole, strict=True):
                v.store(array, target, v.load(source, *point))

        w.map(extents, copy)

    # ---- reductions --------------------------------------------------------------------------------------------------

    def reduce_combine(self, part: Function) -> Function:
        assert isinstance(self.op, ir.Reduce)
        return combine_function(self.op.combine, [r.type for r in part.body.results], self.name)

    # ---- scans -------------------------------------------------------------------------------------------------------

    def scan_part(self) -> Callable[[Writer, Var, Var, tuple[Var, ...]], Sequence[Operand]]:
        """The range scanned alone, and its totals: the identity if it is empty."""
        op = self.op
        assert isinstance(op, ir.Scan)
        axis = op.axis

        def write(w: Writer, lo: Var, hi: Var, whole: tuple[Var, ...]) -> Sequence[Operand]:
            outs = self.emit(w, axis, lo, hi)
            self.place(w, axis, lo, hi, outs, whole)
            lines = [Var(index.name, PYINT) for number, index in enumerate(op.indices) if number != axis]
            extents = [extent for number, extent in enumerate(op.extents) if number != axis]
            count = w.prim("sub", hi, lo, type_=PYINT)
            some = w.prim("minimum", count, ir.ONE, type_=PYINT)
            last = w.prim("sub", count, ir.ONE, type_=PYINT)
            unused, inner = Var("k", PYINT), Writer(self.pos)
            point = [*lines[:axis], last, *lines[axis:]]
            values: list[Operand] = [inner.load(out, *point) for out in outs]
            if not op.inclusive:
                known: dict[Var, Operand] = dict(zip(op.indices, point, strict=True))
                known[op.indices[axis]] = inner.prim("add", last, lo, type_=PYINT)
                contribution = fresh_copy(op.body, known)
                inner.statements += contribution.statements
                values = applied(inner, op.combine, [*values, *contribution.results])
            totals = tuple(
                Var("total", Array(dtype_of(out), len(lines)) if lines else Scalar(dtype_of(out))) for out in outs
            )
            w.let(
                ir.Reduce(
                    tuple(extents),
                    tuple(lines),
                    (some,),
                    (unused,),
                    inner.block(*values),
                    op.inits,
                    fresh_lambda(op.combine),
                ),
                *totals,
            )
            return totals

        return write

    def scan_after(self, part: Function) -> Function:
        """Take the totals of the parts before into every element of the range."""
        op = self.op
        assert isinstance(op, ir.Scan)
        axis = op.axis
        lo, hi = Var("lo", PYINT), Var("hi", PYINT)
        before = tuple(Var("before", result.type) for result in part.body.results)
        whole = tuple(Var(out.name, out.type) for out in self.outs)
        w = Writer(self.pos)
        extents = list(op.extents)
        extents[axis] = w.prim("sub", hi, lo, type_=PYINT)

        def take_in(v: Writer, *point: Operand) -> None:
            place = list(point)
            place[axis] = v.prim("add", point[axis], lo, type_=PYINT)
            line = [*point[:axis], *point[axis + 1 :]]
            totals = [v.load(one, *line) if isinstance(one.type, Array) else one for one in before]
            own = [v.load(array, *place) for array in whole]
            for array, value in zip(whole, applied(v, op.combine, [*totals, *own]), strict=True):
                v.store(array, place, value)

        w.map(extents, take_in)
        return standalone(self.name, (lo, hi, *before, *whole, *self.free), w.block())

    # ---- histograms --------------------------------------------------------------------------------------------------

    def histogram_part(
        self, axis: int, identity: Const
    ) -> Callable[[Writer, Var, Var, tuple[Var, ...]], Sequence[Operand]]:
        """The range scattered into a copy of the target that holds the identity everywhere."""
        op = self.op
        assert isinstance(op, ir.Scatter)
        target = op.target

        def write(w: Writer, lo: Var, hi: Var, whole: tuple[Var, ...]) -> Sequence[Operand]:
            extents = [w.dim(target, number) for number in range(_rank(target))]
            copy = w.map1(extents, lambda v, *point: identity, title=target.name)
            restricted = self.restricted(w, axis, lo, hi)
            assert isinstance(restricted, ir.Scatter)
            w.let(replace(restricted, target=copy))
            return (copy,)

        return write

    def histogram_combine(self) -> Function:
        op = self.op
        assert isinstance(op, ir.Scatter)
        target = Var(op.target.name, op.target.type)
        copy = Var("part", Array(dtype_of(target), _rank(target)))
        w = Writer(self.pos)
        extents = [w.dim(copy, number) for number in range(_rank(copy))]

        def take_in(v: Writer, *point: Operand) -> None:
            (value,) = applied(v, op.combine, [v.load(target, *point), v.load(copy, *point)])
            v.store(target, point, value)

        w.map(extents, take_in)
        return standalone(self.name, (target, copy), w.block())
