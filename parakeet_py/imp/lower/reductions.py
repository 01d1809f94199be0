"""Reduce: sums and their like, the same for any number of threads.

The order in which floats are added and multiplied depends on the extents only: `pairwise_sums` has it. Other combines
than sums and products give the same result for any grouping: a long run is cut into chunks of `CHUNK` contributions,
these into at most `BLOCKS` blocks which threads share out, and the blocks' partial results are combined in order.

Three ways, by the extents and by which axis the accesses of the body move along with unit stride:

* no kept axes: blocks of the whole space, partial results on the stack (`_whole`); in a loop of the program what is
  cheap and has one block at most (a sum of floats: one leaf) is done in place, as starting a region takes as long as
  some thirty contributions;
* a reduced axis moves by one: for each kept point, in parallel, a run in cells (`_rows`); where there are few kept
  points and long runs, each run is done as above instead;
* the last kept axis moves by one, or both do in one index (a window that slides): tiles of columns, row after row into
  the result (`_columns`, in columns.py), which is also NumPy's order.

An any or all stops at the end of the leaf that decided it. Where an extremum is (argmin) is found by `extrema`; another
combine that takes whole contributions or leaves them skips leaves that would change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, INT64, Array, Scalar, itemsize
from parakeet_py.imp.ir import Break, Cell
from parakeet_py.imp.lower import free_sums, pairwise_rows
from parakeet_py.imp.lower.builder import Lowering, Outs
from parakeet_py.imp.lower.combine import Combination, combination, declare, fold, fold_in_order, takes
from parakeet_py.imp.lower.count_flags import count, counted
from parakeet_py.imp.lower.extrema import accumulate, arg_extremum, arg_run, buffered_run, is_buffered
from parakeet_py.imp.lower.extremum_lanes import LANE_BYTES, ArgExtremum, Run, short_runs
from parakeet_py.imp.lower.loops import Axis, axes_of, nest, order_of, split_space, walk_range
from parakeet_py.imp.lower.map import map_nest
from parakeet_py.imp.lower.pairwise_sums import Runs, in_parallel, one_result, runs_of
from parakeet_py.imp.schedule.axis_merging import merge, merged_outs
from parakeet_py.imp.schedule.loop_order import Study, coefficient, slides, static_cost, stride_cost, study, work
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.typed_ir.ir import Const, Let, Op, Operand, Reduce, Var, blocks_of

LEAF = 1024
CHUNK = 8192
SIEVE = 128  # leaf of a selective combine
SIEVE_BLOCK = 131072
ARG_BLOCK = 32768  # the same for argmin and argmax, whose leaves are dear only when they are taken
SIEVE_COST = 40  # in bodies up to this cost
BLOCKS = 512
LONG_RUN = 65536  # contributions of one kept point from which it is worth sharing between threads
FEW_POINTS = 64
FEW_COLUMNS = 16
COPY_COST = 14  # bodies cheaper than this are written twice, to choose a way when the extents are known


@record
class Reduction:
    """A Reduce being lowered: its combination and reduced axes, what its body does."""

    op: Reduce
    with_: Combination
    found: Study
    axes: list[Axis]
    checked: bool
    extremum: ArgExtremum | None  # whose place a selective combine finds

    @property
    def vector(self) -> bool:
        """Whether a run can be a vector loop."""
        return self.with_.names is not None and self.found.simple and not self.checked

    def runs(self, lo: Lowering) -> Runs:
        """How floats are added or multiplied."""
        return runs_of(lo, self.with_, self.found, self.op.body, self.axes, self.vector, self.op.runs)


def lower_reduce(lo: Lowering, outs: tuple[Var, ...], op: Reduce) -> None:
    red = _reduction(lo, op)
    extents = lo.operands(op.extents)
    if extents:
        _kept(lo, outs, red, extents)
        return
    cells = _one_run(lo, red) if lo.in_region or not red.axes else _whole(lo, red)
    for out, cell in zip(outs, cells, strict=True):
        if isinstance(out.type, Array):
            array = lo.new_array(out.name, out.type, (), lo.bind(out))
            lo.store(array, (), lo.read(cell))
        else:
            lo.emit_read(lo.bind(out), cell)


def _reduction(lo: Lowering, op: Reduce) -> Reduction:
    found = study(op)
    with_ = combination(lo, op.combine, op.inits)
    axes = axes_of(op.reduced_indices, lo.operands(op.reduced_extents))
    return Reduction(op, with_, found, axes, found.has_check and lo.checking, arg_extremum(with_))


# ---- one run of contributions ----------------------------------------------------------------------------------------


def _one_run(lo: Lowering, red: Reduction) -> list[Cell]:
    """Combine all contributions of the reduced axes in order, here."""
    if red.with_.inexact and red.axes:
        runs = red.runs(lo)
        return free_sums.here(lo, runs) if free_sums.is_free(runs, red.op.runs) else one_result(lo, runs)
    cells = declare(lo, red.with_)
    if not red.axes:
        fold(lo, red.with_, cells, lo.lower_block(red.op.body))
        return cells
    last = red.axes[-1]
    nest(lo, red.axes[:-1], lambda: _leaves(lo, red, ZERO, last.extent, cells), "serial")
    return cells


def _leaves(lo: Lowering, red: Reduction, start: Operand, stop: Operand, cells: Sequence[Cell]) -> None:
    """Loop over [start, stop) of the last reduced axis, leaf by leaf where it may end early."""
    decided = red.with_.decided
    if _skips(red):
        _sieve(lo, red, start, stop, cells)
        return
    short = isinstance(stop, Const) and stop.whole <= LEAF
    if short or decided is None:
        _run(lo, red, start, stop, cells)
        return

    def leaf_body() -> None:
        end = lo.minimum(lo.add(first, Const(LEAF, INT64)), stop)
        inner = declare(lo, red.with_)
        _run(lo, red, first, end, inner)
        fold(lo, red.with_, cells, [lo.read(cell) for cell in inner])
        value: Operand = lo.read(cells[0])
        if not decided:
            value = lo.prim("not", value, type_=BOOL)
        lo.when(value, lambda: lo.emit(Break()))

    first = lo.index("leaf")
    lo.loop(first, start, stop, leaf_body, "serial", Const(LEAF, INT64))


def _skips(red: Reduction) -> bool:
    """Whether it pays to look for leaves that change nothing."""
    extent = red.axes[-1].extent
    small = isinstance(extent, Const) and extent.whole <= (8 if red.extremum else SIEVE)
    cheap = red.found.simple and not red.checked and static_cost(red.op.body) <= SIEVE_COST
    skipping = red.extremum is not None or red.with_.taken is not None
    return red.with_.names is None and skipping and cheap and not small


def _sieve(lo: Lowering, red: Reduction, start: Operand, stop: Operand, cells: Sequence[Cell]) -> None:
    """A selective combine: after the first leaf, visit only leaves in which something would be taken."""
    if red.extremum is not None:
        run = Run(red.with_, red.extremum, cells, red.op.body, red.axes[-1], start, stop)
        arg_run(lo, run, not red.op.extents)
        return
    first, conditions = lo.index("leaf"), red.with_.taken
    assert conditions is not None

    def leaf_body() -> None:
        end = lo.minimum(lo.add(first, Const(SIEVE, INT64)), stop)
        look = lo.declare("look", BOOL, lo.compare("eq", first, start))
        before = [lo.read(cell) for cell in cells]

        def test() -> None:
            taken = takes(lo, red.with_, conditions, before, lo.lower_block(red.op.body))
            lo.write(look, lo.prim("or", lo.read(look), taken, type_=BOOL))

        def tests() -> None:
            lo.loop(lo.bind(red.axes[-1].index), first, end, test, "vector")

        later = lo.compare("ne", first, start)
        lo.when(later, tests)
        lo.when(lo.read(look), lambda: _run(lo, red, first, end, cells))

    lo.loop(first, start, stop, leaf_body, "serial", Const(SIEVE, INT64))


def _run(lo: Lowering, red: Reduction, start: Operand, stop: Operand, cells: Sequence[Cell]) -> None:
    index = red.axes[-1].index
    flag = counted(red.found, red.op.body) if red.with_.names == ("add",) and not red.checked else None
    if flag is not None:
        count(lo, cells[0], red.op.body, flag, index, start, stop)
    elif (run := _buffered(red, start, stop, cells)) is not None:
        buffered_run(lo, run, lambda low, high, store: _keys(lo, run, low, high, store))
    elif red.vector:
        accumulate(lo, red.with_, cells, red.op.body, lambda step: lo.loop(lo.bind(index), start, stop, step, "vector"))
    else:
        point = lambda: fold_in_order(lo, red.with_, cells, lo.lower_block(red.op.body))  # noqa: E731
        lo.loop(lo.bind(index), start, stop, point, "serial")


def _buffered(red: Reduction, start: Operand, stop: Operand, cells: Sequence[Cell]) -> Run | None:
    """The run of an extremum whose place is wanted, if its keys are computed by loops that cannot fail."""
    extent = red.axes[-1].extent
    small = isinstance(extent, Const) and extent.whole <= 8
    if red.extremum is None or red.checked or small or not any(map(blocks_of, _operations(red))):
        return None
    run = Run(red.with_, red.extremum, cells, red.op.body, red.axes[-1], start, stop)
    return run if is_buffered(run) else None


def _keys(lo: Lowering, run: Run, start: Operand, stop: Operand, store: Callable[[Operand, Operand], None]) -> None:
    """Compute the keys of [start, stop), and store them."""
    key = run.body.results[run.found.key]

    def alone() -> None:
        index = lo.bind(run.axis.index)
        place = run.found.key
        lo.loop(index, start, stop, lambda: store(index, lo.lower_block(run.body)[place]), "serial")

    match run.body.statements:
        case (Let(outs=(out,), op=Reduce() as op),) if out is key and not op.extents:
            red = _reduction(lo, op)
            if red.with_.inexact and red.axes and pairwise_rows.serves(runs := red.runs(lo)):
                take = lambda at, values: store(at, values[0])  # noqa: E731
                pairwise_rows.sums_of_rows(lo, runs, run.axis.index, start, stop, take, alone)
                return
    alone()


def _operations(red: Reduction) -> list[Op]:
    return [let.op for let in red.op.body.statements]


# ---- no kept axes ----------------------------------------------------------------------------------------------------


def _whole(lo: Lowering, red: Reduction) -> list[Cell]:
    """Blocks of the whole space in parallel, then their partial results."""
    merged = lo.merged
    (axes,) = merge(lo, red.found, red.axes)
    if red.vector and not (red.with_.inexact and red.op.runs):
        # These primitives commute: the axis along which memory moves by one goes inside.
        costs = [stride_cost(red.found, axis.mover) for axis in axes]
        best = min(range(len(axes)), key=lambda axis: (costs[axis], -axis))
        axes = [*axes[:best], *axes[best + 1 :], axes[best]]
    cells = _blocks(lo, replace(red, axes=axes))
    lo.merged = merged
    return cells


def _blocks(lo: Lowering, red: Reduction) -> list[Cell]:
    with_, axes = red.with_, red.axes
    if with_.inexact:
        runs = red.runs(lo)
        return (free_sums.in_parallel if free_sums.is_free(runs, red.op.runs) else in_parallel)(lo, runs)
    if not (lo.repeated and red.vector and len(axes) == 1 and static_cost(red.op.body) <= COPY_COST):
        return _in_blocks(lo, red)
    extent, cells = axes[0].extent, declare(lo, with_)

    def long() -> None:
        lo.write_all([(cell, lo.read(whole)) for cell, whole in zip(cells, _in_blocks(lo, red), strict=True)])

    short = lo.compare("le", extent, Const(CHUNK, INT64))
    lo.when(short, lambda: _leaves(lo, red, ZERO, extent, cells), long)
    return cells


def _in_blocks(lo: Lowering, red: Reduction) -> list[Cell]:
    with_, axes = red.with_, red.axes
    split = split_space(lo, axes, CHUNK)
    # A block begins by visiting its first leaf in full: where most leaves are skipped, blocks are long.
    size = (ARG_BLOCK if red.extremum else SIEVE_BLOCK) if _skips(red) else CHUNK
    chunk, most = Const(size, INT64), Const(BLOCKS, INT64)
    if len(axes) == 1:
        chunks = lo.ceil_div(split.extent, chunk)
        share = lo.multiply(lo.maximum(lo.ceil_div(chunks, most), ONE), chunk)
    else:
        enough = lo.floor_div(chunk, lo.maximum(split.size, ONE))
        share = lo.maximum(lo.maximum(lo.ceil_div(split.extent, most), enough), ONE)
    count = lo.ceil_div(split.extent, share)
    partials = [lo.stack_array("partial", dtype, BLOCKS) for dtype in with_.types]
    block = lo.index("block")

    def body(low: Operand, high: Operand) -> None:
        def one() -> None:
            start = lo.multiply(block, share)
            stop = lo.minimum(lo.add(start, share), split.extent)
            cells = declare(lo, with_)
            walk_range(lo, axes, split, start, stop, lambda a, b: _leaves(lo, red, a, b, cells))
            for partial, cell in zip(partials, cells, strict=True):
                lo.store(partial, (block,), lo.read(cell))

        lo.loop(block, low, high, one, "independent")

    per_block = work(lo, red.found, (split.size, lo.minimum(share, split.extent)))
    lo.region(count, ONE, per_block, body, order_of(lo, axes), "reduce")
    return _sequence(lo, with_, partials, count)


def _sequence(lo: Lowering, with_: Combination, partials: Sequence[Var], count: Operand) -> list[Cell]:
    """Combine partial results in order."""
    cells = declare(lo, with_)
    block = lo.index("block")
    lo.loop(block, ZERO, count, lambda: fold(lo, with_, cells, [lo.load(p, block) for p in partials]))
    return cells


# ---- kept axes -------------------------------------------------------------------------------------------------------


def _kept(lo: Lowering, outs: tuple[Var, ...], red: Reduction, extents: tuple[Operand, ...]) -> None:
    op, found = red.op, red.found
    arrays = lo.new_outs(outs, extents)
    space = axes_of(op.indices, extents)
    merged = lo.merged
    kept, axes = merge(lo, found, space, red.axes)
    red = replace(red, axes=axes)

    def rows(red: Reduction) -> None:
        merged_arrays = merged_outs(lo, arrays, space, kept)
        if lo.in_region or not red.axes or len(kept) > 1 or not found.simple or _costly(red):
            _rows(lo, red, kept, merged_arrays)
        else:
            _rows_or_runs(lo, red, kept, merged_arrays)

    def columns(red: Reduction) -> None:
        from parakeet_py.imp.lower.column_reductions import reduce_columns

        # The tiles are the accumulators: every out needs its memory, asked for or not.
        pairs = zip(arrays, outs, strict=True)
        whole = [a if a is not None else lo.new_array(o.name, array_type(o), extents) for a, o in pairs]
        in_order = red.with_.inexact and bool(op.runs)
        reduce_columns(lo, red.with_, found, op.body, kept, red.axes, whole, in_order)

    def in_any_order(red: Reduction) -> None:
        few: Operand = _ALL_ROWS
        if red.axes and found.simple and not found.has_check:
            few = _few_columns(lo, red, kept[-1], len(outs))
        lo.when(few, lambda: rows(red), lambda: columns(red))

    if not (red.with_.inexact and op.runs and red.axes):
        in_any_order(red)
    else:
        one_by_one = _equal(lo, lo.operand(op.runs[1]), ONE)
        in_order = replace(red, op=replace(op, runs=(ZERO, ONE)))
        lo.when(one_by_one, lambda: in_any_order(in_order), lambda: rows(red))
    lo.merged = merged


_ALL_ROWS, _NO_ROWS = Const(True, BOOL), Const(False, BOOL)


def _few_columns(lo: Lowering, red: Reduction, column: Axis, results: int) -> Operand:
    """Whether an inner loop over what is reduced is better than one over kept points, the columns."""
    along, down = (stride_cost(red.found, axis.mover) for axis in (column, red.axes[-1]))
    if red.with_.inexact and red.op.runs == (ZERO, ONE) and along <= down + 2 * results:
        return _NO_ROWS  # a sum in order is no vector loop
    if slides(red.found, column.mover, red.axes[-1].mover) and along <= down:
        return _less(lo, column.extent, FEW_COLUMNS)  # else the window is shorter than its way, or runs backwards
    # columns accumulate in memory: a load and a store for each accumulator
    return _NO_ROWS if along + 2 * results < down else _ALL_ROWS


def _costly(red: Reduction) -> bool:
    """Whether the body should not be written twice."""
    return red.found.has_check or static_cost(red.op.body) > COPY_COST


def _rows(lo: Lowering, red: Reduction, kept: list[Axis], arrays: Outs) -> None:
    """One run for each kept point."""

    def point() -> None:
        indices = [lo.operand(axis.index) for axis in kept]
        lo.store_outs(arrays, indices, [lo.read(cell) for cell in _one_run(lo, red)])

    contributions = lo.product(axis.extent for axis in red.axes) if not lo.in_region else ONE

    def whole() -> None:
        map_nest(lo, kept, red.found, True, point, contributions)

    if red.with_.inexact and red.axes and pairwise_rows.serves(runs := red.runs(lo)):
        _rows_by_eights(lo, red, runs, kept, arrays, point, contributions)
        return
    if red.extremum is None or not _points_in_lanes(lo, red, kept[-1]):
        whole()
        return

    def lanes() -> None:
        last, run = kept[-1], red.axes[0]

        def store(place: Operand, values: Sequence[Operand]) -> None:
            lo.store_outs(arrays, [*(lo.operand(axis.index) for axis in kept[:-1]), place], values)

        def piece(start: Operand, stop: Operand) -> None:
            short_runs(lo, red.with_, red.op.body, last, run, start, stop, store)

        map_nest(lo, kept, red.found, True, point, contributions, piece=piece)

    longest = Const(LANE_BYTES // itemsize(red.with_.types[red.extremum.key]), INT64)
    lo.when(_less(lo, red.axes[0].extent, longest), lanes, whole)


def _rows_by_eights(
    lo: Lowering,
    red: Reduction,
    runs: Runs,
    kept: list[Axis],
    arrays: Outs,
    point: Callable[[], None],
    contributions: Operand,
) -> None:
    last = kept[-1].index

    def take(place: Operand, values: Sequence[Operand]) -> None:
        lo.store_outs(arrays, [*(lo.operand(axis.index) for axis in kept[:-1]), place], values)

    def piece(start: Operand, stop: Operand) -> None:
        alone = lambda: lo.loop(lo.bind(last), start, stop, point, "independent")  # noqa: E731
        pairwise_rows.sums_of_rows(lo, runs, last, start, stop, take, alone)

    map_nest(lo, kept, red.found, True, point, contributions, piece=piece)


def _points_in_lanes(lo: Lowering, red: Reduction, point: Axis) -> bool:
    """Whether short runs can be made side by side: what points read lies at equal distances."""
    simple = red.found.simple and not red.checked and not lo.in_region and len(red.axes) == 1
    indices = [index for access in red.found.accesses for index in access.indices]
    return simple and all(coefficient(red.found, index, point.mover) is not None for index in indices)


def _rows_or_runs(lo: Lowering, red: Reduction, kept: list[Axis], arrays: Outs) -> None:
    """Few kept points with long runs: each run in parallel; else the kept points in parallel."""
    points = lo.product(axis.extent for axis in kept)
    length = lo.product(axis.extent for axis in red.axes)
    few = _less(lo, points, FEW_POINTS)
    long = _less(lo, Const(LONG_RUN, INT64), length)

    def runs() -> None:
        def point() -> None:
            indices = [lo.operand(axis.index) for axis in kept]
            lo.store_outs(arrays, indices, [lo.read(cell) for cell in _blocks(lo, red)])

        nest(lo, kept, point, "serial")

    both: Operand
    if isinstance(few, Const) and isinstance(long, Const):
        both = Const(bool(few.value and long.value), BOOL)
    else:
        both = lo.prim("and", few, long, type_=BOOL)
    lo.when(both, runs, lambda: _rows(lo, red, kept, arrays))


def _equal(lo: Lowering, left: Operand, right: Const) -> Operand:
    return Const(left.whole == right.whole, BOOL) if isinstance(left, Const) else lo.compare("eq", left, right)


def _less(lo: Lowering, left: Operand, right: Operand | int) -> Operand:
    if isinstance(right, int):
        right = Const(right, INT64)
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(left.whole < right.whole, Scalar("bool"))
    return lo.compare("lt", left, right)
