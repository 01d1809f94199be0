"""Scans and compressions on a GPU: tiles of one line, in the order of the line.

A block scans a *tile* of `THREADS * ROUNDS` elements: in every round neighbouring threads take neighbouring elements;
warps scan by shuffles; the totals of all warps in all rounds are scanned by one warp through shared memory.

One long line is scanned in a single pass with decoupled look-back (Merrill and Garland, "Single-pass Parallel Prefix
Scan with Decoupled Look-back", 2016): blocks take tiles by a ticket, publish the total of their tile, and look back
over the totals of earlier tiles until one has published its prefix. Where the combine rounds (sums and products of
floats), a block waits for the prefix of the tile just before instead: then the grouping, and with it every bit of the
result, is the same in every run.

Several lines are scanned by a block each, tile after tile, if they are contiguous and long; else by a thread each.

Compress is two passes: count the kept points of every tile, scan the counts, fill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.imp import compress as compress_on_cpu
from parakeet_py.imp import ir as imp
from parakeet_py.imp import scans as on_cpu
from parakeet_py.imp.builder import Lowering
from parakeet_py.imp.combine import Combination, combination, combine, declare
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.loops import axes_of
from parakeet_py.imp.schedule import study
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.regions import THREADS, WARP, grid, grid_of_blocks, unravel
from parakeet_py.typed_ir.ir import Block, Compress, Const, Lambda, Let, Operand, Prim, Scan, Var
from parakeet_py.typed_ir.types import INT64, Array

ROUNDS = 8
WARPS = THREADS // WARP
TILE = THREADS * ROUNDS
TOTALS = ROUNDS * WARPS
BLOCK_LINE = 128  # elements of a line from which a block works on it
NOTHING, TOTAL, PREFIX = 0, 1, 2  # what a tile has published

Values = Callable[[Operand], Sequence[Operand]]  # the contributions at a place of the line


def lower_scan(lo: Lowering, outs: tuple[Var, ...], op: Scan) -> None:
    """A scan as GPU regions; inside of others, and where it may fail, as on the CPU."""
    found = study(op.body)
    if lo.in_region or found.has_check or found.has_opaque or not found.simple:
        on_cpu.lower_scan(lo, outs, op)
        return
    extents = lo.operands(op.extents)
    arrays = [lo.new_array(out.name, array_type(out), extents, lo.bind(out)) for out in outs]
    with_ = combination(lo, op.combine, op.inits)
    axes = axes_of(op.indices, extents)
    along = axes[op.axis]
    others = [axis for axis in axes if axis is not along]

    def at(place: Operand) -> list[Operand]:
        return [place if axis is along else lo.operand(axis.index) for axis in axes]

    def values(place: Operand) -> Sequence[Operand]:
        lo.alias(along.index, place)
        return lo.lower_block(op.body)

    def store(place: Operand, results: Sequence[Operand]) -> None:
        lo.store_outs(arrays, at(place), results)

    if not others:
        _one_line(lo, with_, along.extent, values, store, op.inclusive)
        return
    lines = lo.product(axis.extent for axis in others)

    def by_thread() -> None:
        def line(number: Var) -> None:
            unravel(lo, others, number)
            cells = declare(lo, with_)
            place = lo.index("k")

            def step() -> None:
                before = [lo.read(cell) for cell in cells]
                after = combine(lo, with_, before, values(place))
                store(place, after if op.inclusive else before)
                lo.write_all(list(zip(cells, after, strict=True)))

            lo.loop(place, ZERO, along.extent, step)

        grid(lo, lines, "scan lines", line)

    def by_block() -> None:
        def line(block: Var, thread: Var) -> None:
            unravel(lo, others, block)
            carry = declare(lo, with_)
            tile = lo.index("tile")

            def step() -> None:
                start = lo.multiply(tile, Const(TILE, INT64))
                scanned = _Tile(lo, with_, thread, start, along.extent, values)
                before = [lo.read(cell) for cell in carry]
                scanned.finish(before, store, op.inclusive)
                lo.write_all(list(zip(carry, combine(lo, with_, before, scanned.total()), strict=True)))
                lo.emit(imp.Barrier("block"))  # the shared totals are written again

            lo.loop(tile, ZERO, lo.ceil_div(along.extent, Const(TILE, INT64)), step)

        grid_of_blocks(lo, lines, "scan lines by block", line)

    if along is axes[-1]:
        lo.when(lo.compare("ge", along.extent, Const(BLOCK_LINE, INT64)), by_block, by_thread)
    else:
        by_thread()


# ---- one tile --------------------------------------------------------------------------------------------------------


class _Tile:
    """A tile that a block has scanned up to its own start: what is before it comes later.

    Every thread keeps, for each round, its element combined with those of the lanes before it; the shared totals hold,
    for each warp in each round, everything of the tile before it, and last the total of the tile.
    """

    def __init__(
        self, lo: Lowering, with_: Combination, thread: Var, start: Operand, stop: Operand, values: Values
    ) -> None:
        self.lo, self.with_, self.thread, self.start, self.stop = lo, with_, thread, start, stop
        self.own = [lo.stack_array("own", dtype, ROUNDS) for dtype in with_.types]
        self.shared = [
            lo.let("totals", Array(dtype, 1, "C"), imp.NewArray((Const(TOTALS + 1, INT64),), "shared"))
            for dtype in with_.types
        ]
        self.lane = lo.let("lane", INT64, imp.Lane("lane"))
        self.warp = lo.floor_div(thread, Const(WARP, INT64))
        self._warps(values)
        lo.emit(imp.Barrier("block"))
        lo.when(lo.compare("eq", self.warp, ZERO), self._totals)
        lo.emit(imp.Barrier("block"))

    def place(self, number: Operand) -> Operand:
        """The place in the line of a thread's element of a round."""
        lo = self.lo
        return lo.add(lo.add(self.start, lo.multiply(number, Const(THREADS, INT64))), self.thread)

    def _warps(self, values: Values) -> None:
        lo, with_ = self.lo, self.with_
        number = lo.index("round")

        def one() -> None:
            place = self.place(number)
            cells = declare(lo, with_)
            lo.when(
                lo.compare("lt", place, self.stop),
                lambda: lo.write_all(list(zip(cells, values(place), strict=True))),
            )
            _scan_warp(lo, with_, cells, self.lane)
            scanned = [lo.read(cell) for cell in cells]
            lo.store_outs(self.own, (number,), scanned)
            slot = lo.add(lo.multiply(number, Const(WARPS, INT64)), self.warp)
            last = lo.compare("eq", self.lane, Const(WARP - 1, INT64))
            lo.when(last, lambda: lo.store_outs(self.shared, (slot,), scanned))

        lo.loop(number, ZERO, Const(ROUNDS, INT64), one)

    def _totals(self) -> None:
        """One warp turns the totals of all warps into what is before each."""
        lo, with_ = self.lo, self.with_
        each = TOTALS // WARP
        first = lo.multiply(self.lane, Const(each, INT64))
        cells = declare(lo, with_)
        index = lo.index("k")

        def gather() -> None:
            given = [lo.load(array, lo.add(first, index)) for array in self.shared]
            lo.write_all(list(zip(cells, combine(lo, with_, [lo.read(c) for c in cells], given), strict=True)))

        lo.loop(index, ZERO, Const(each, INT64), gather)
        _scan_warp(lo, with_, cells, self.lane)
        through = [lo.read(cell) for cell in cells]
        last = lo.compare("eq", self.lane, Const(WARP - 1, INT64))
        running = _from_lane_before(lo, with_, through, self.lane)
        again = lo.index("k")

        def spread() -> None:
            slot = lo.add(first, again)
            given = [lo.load(array, slot) for array in self.shared]
            before = [lo.read(cell) for cell in running]
            lo.store_outs(self.shared, (slot,), before)
            lo.write_all(list(zip(running, combine(lo, with_, before, given), strict=True)))

        lo.loop(again, ZERO, Const(each, INT64), spread)
        lo.when(last, lambda: lo.store_outs(self.shared, (Const(TOTALS, INT64),), through))

    def total(self) -> list[Var]:
        """The total of the tile."""
        return [self.lo.load(array, Const(TOTALS, INT64)) for array in self.shared]

    def finish(
        self,
        before: Sequence[Operand],
        store: Callable[[Operand, Sequence[Operand]], None],
        inclusive: bool,
    ) -> None:
        """Store the results, given what is before the tile."""
        lo, with_ = self.lo, self.with_
        number = lo.index("round")

        def one() -> None:
            slot = lo.add(lo.multiply(number, Const(WARPS, INT64)), self.warp)
            outer = combine(lo, with_, before, [lo.load(array, slot) for array in self.shared])
            own = [lo.load(array, number) for array in self.own]
            if not inclusive:
                own = [lo.read(cell) for cell in _from_lane_before(lo, with_, own, self.lane)]
            results = combine(lo, with_, outer, own)
            place = self.place(number)
            lo.when(lo.compare("lt", place, self.stop), lambda: store(place, results))

        lo.loop(number, ZERO, Const(ROUNDS, INT64), one)


def _scan_warp(lo: Lowering, with_: Combination, cells: Sequence[Cell], lane: Var) -> None:
    """Combine every lane's cells with those of all lanes before it."""
    distance = 1
    while distance < WARP:
        own = [lo.read(cell) for cell in cells]
        amount = Const(distance, INT64)
        others = [lo.let("other", value.type, imp.Shuffle("up", value, amount)) for value in own]
        both = combine(lo, with_, others, own)
        far = lo.compare("ge", lane, amount)
        lo.write_all(
            [
                (cell, lo.let("acc", old.type, Prim("select", (far, new, old))))
                for cell, old, new in zip(cells, own, both, strict=True)
            ]
        )
        distance *= 2


def _from_lane_before(lo: Lowering, with_: Combination, values: Sequence[Operand], lane: Var) -> list[Cell]:
    """Cells with the values of the lane before; the identity in the first lane."""
    first = lo.compare("eq", lane, ZERO)
    cells = []
    for value, init in zip(values, with_.inits, strict=True):
        other = lo.let("other", value.type, imp.Shuffle("up", value, ONE))
        cells.append(
            lo.declare("before", value.type, lo.let("before", value.type, Prim("select", (first, init, other))))
        )
    return cells


# ---- one line --------------------------------------------------------------------------------------------------------


def _one_line(
    lo: Lowering,
    with_: Combination,
    size: Operand,
    values: Values,
    store: Callable[[Operand, Sequence[Operand]], None],
    inclusive: bool,
) -> None:
    tiles = lo.ceil_div(size, Const(TILE, INT64))
    # state[0] is the ticket counter, state[1 + tile] what the tile has published
    state = lo.new_array("state", Array("int64", 1, "C"), (lo.add(tiles, ONE),))
    totals, prefixes = (
        [lo.new_array(name, Array(dtype, 1, "C"), (tiles,)) for dtype in with_.types] for name in ("total", "prefix")
    )
    grid(lo, lo.add(tiles, ONE), "clear", lambda number: lo.store(state, (number,), ZERO))

    def tile(block: Var, thread: Var) -> None:
        ticket = lo.let("ticket", Array("int64", 1, "C"), imp.NewArray((ONE,), "shared"))
        before = [lo.let("before", Array(dtype, 1, "C"), imp.NewArray((ONE,), "shared")) for dtype in with_.types]
        first = lo.compare("eq", thread, ZERO)

        def draw() -> None:
            lo.store(ticket, (ZERO,), lo.let("ticket", INT64, imp.Atomic("add", state, (ZERO,), ONE)))

        lo.when(first, draw)
        lo.emit(imp.Barrier("block"))
        number = lo.load(ticket, ZERO)
        scanned = _Tile(lo, with_, thread, lo.multiply(number, Const(TILE, INT64)), size, values)

        def publish(arrays: Sequence[Var], what: Sequence[Operand], status: int) -> None:
            lo.store_outs(arrays, (number,), what)
            lo.emit(imp.Barrier("fence"))
            lo.let("done", INT64, imp.Atomic("store", state, (lo.add(number, ONE),), Const(status, INT64)))

        def look_back() -> None:
            total = scanned.total()
            exact = not with_.inexact
            found = declare(lo, with_)
            if exact:
                publish(totals, total, TOTAL)
            place = lo.declare("place", INT64, number)

            def earlier() -> None:
                here = lo.read(place)
                status = lo.let("status", INT64, imp.Atomic("load", state, (here,), ZERO))

                def take(arrays: Sequence[Var], next_place: Operand) -> None:
                    lo.emit(imp.Barrier("fence"))
                    index = lo.subtract(here, ONE)
                    given = [
                        lo.let("given", init.type, imp.Atomic("load", array, (index,), init))
                        for array, init in zip(arrays, with_.inits, strict=True)
                    ]
                    own = [lo.read(cell) for cell in found]
                    lo.write_all(list(zip(found, combine(lo, with_, given, own), strict=True)))
                    lo.write(place, next_place)

                lo.when(lo.compare("eq", status, Const(PREFIX, INT64)), lambda: take(prefixes, ZERO))
                if exact:
                    lo.when(lo.compare("eq", status, Const(TOTAL, INT64)), lambda: take(totals, lo.subtract(here, ONE)))

            lo.push()
            waiting = lo.compare("gt", lo.read(place), ZERO)
            head = lo.pop()
            lo.push()
            earlier()
            lo.emit(imp.While(head, waiting, lo.pop()))
            prefix = [lo.read(cell) for cell in found]
            publish(prefixes, combine(lo, with_, prefix, total), PREFIX)
            lo.store_outs(before, (ZERO,), prefix)

        lo.when(first, look_back)
        lo.emit(imp.Barrier("block"))
        scanned.finish([lo.load(array, ZERO) for array in before], store, inclusive)

    grid_of_blocks(lo, tiles, "scan", tile)


# ---- compress --------------------------------------------------------------------------------------------------------


def lower_compress(lo: Lowering, outs: tuple[Var, ...], op: Compress) -> None:
    """Keep points in order: count those of each tile, scan the counts, fill."""
    found = study(op.body)
    axes = axes_of(op.indices, lo.operands(op.extents))
    if lo.in_region or not axes or found.has_check or found.has_opaque or not found.simple:
        compress_on_cpu.lower_compress(lo, outs, op)
        return
    size = lo.product(axis.extent for axis in axes)
    with_ = _counting(lo)
    tiles = lo.ceil_div(size, Const(TILE, INT64))
    counts = lo.new_array("counts", Array("int64", 1, "C"), (tiles,))

    def flags(place: Operand) -> list[Operand]:
        unravel(lo, axes, place)
        return [lo.prim("select", lo.lower_block(op.body)[0], ONE, ZERO)]

    def scanned(block: Var, thread: Var) -> _Tile:
        return _Tile(lo, with_, thread, lo.multiply(block, Const(TILE, INT64)), size, flags)

    def count(block: Var, thread: Var) -> None:
        total = scanned(block, thread).total()
        lo.when(lo.compare("eq", thread, ZERO), lambda: lo.store(counts, (block,), total[0]))

    grid_of_blocks(lo, tiles, "count", count)
    places = lo.new_array("places", Array("int64", 1, "C"), (tiles,))
    whole = lo.new_array("whole", Array("int64", 1, "C"), (ONE,))

    def offsets(block: Var, thread: Var) -> None:
        carry = lo.declare("carry", INT64, ZERO)
        part = lo.index("part")

        def step() -> None:
            start = lo.multiply(part, Const(TILE, INT64))
            tile = _Tile(lo, with_, thread, start, tiles, lambda place: [lo.load(counts, place)])
            before = lo.read(carry)
            tile.finish([before], lambda place, results: lo.store(places, (place,), results[0]), False)
            lo.write(carry, lo.add(before, tile.total()[0]))
            lo.emit(imp.Barrier("block"))

        lo.loop(part, ZERO, lo.ceil_div(tiles, Const(TILE, INT64)), step)
        lo.when(lo.compare("eq", thread, ZERO), lambda: lo.store(whole, (ZERO,), lo.read(carry)))

    grid_of_blocks(lo, ONE, "offsets", offsets)
    total = lo.load(whole, ZERO)
    lo.alias(outs[0], total)
    if len(outs) == 1:
        return
    arrays = [lo.new_array(out.name, array_type(out), (total,), lo.bind(out)) for out in outs[1:]]

    def fill(block: Var, thread: Var) -> None:
        tile = scanned(block, thread)

        def keep(place: Operand, results: Sequence[Operand]) -> None:
            unravel(lo, axes, place)
            kept, *given = lo.lower_block(op.body)
            lo.when(kept, lambda: lo.store_outs(arrays, (results[0],), given))

        tile.finish([lo.load(places, block)], keep, False)

    grid_of_blocks(lo, tiles, "compress", fill)


def _counting(lo: Lowering) -> Combination:
    """Sums of int64."""
    left, right, out = (Var(name, INT64) for name in ("left", "right", "sum"))
    add = Let((out,), Prim("add", (left, right)), lo.pos)
    return combination(lo, Lambda((left, right), Block((add,), (out,))), (ZERO,))
