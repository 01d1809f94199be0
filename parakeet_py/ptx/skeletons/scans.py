"""Scans on a GPU, by tiles (see `scan_tiles`).

**One line** is scanned in a single pass with decoupled look-back (Merrill and Garland, "Single-pass Parallel Prefix
Scan with Decoupled Look-back", 2016), in a form whose grouping, and with it every bit of the result, is the same in
every run. Blocks take tiles by a ticket and publish the total of theirs. `THREADS` tiles are a group: a block reads the
totals of all earlier tiles of its group at once, a thread each, as soon as they are there, and combines them in order;
what is before the group is published by the last tile of the group before, and awaited by one thread. So waiting goes
from group to group, not from tile to tile. Totals and marks travel together (`published`).

**Several lines**: a block for each long line, a warp for each shorter one, tile after tile; a thread for each very
short one, and for lines across which memory is contiguous. Few lines that are longer still are scanned one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from parakeet_py.base.types import BOOL, INT64, Array
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower import scans as on_cpu
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import Combination, combination, combine, declare
from parakeet_py.imp.lower.loops import axes_of
from parakeet_py.imp.schedule.loop_order import study
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.combining import across_block
from parakeet_py.ptx.kernels.points_per_thread import at_points, neighbours
from parakeet_py.ptx.kernels.published import awaited, publish, words_of
from parakeet_py.ptx.kernels.regions import THREADS, WARP, grid, grid_of_blocks, index_of, unravel
from parakeet_py.ptx.skeletons.scan_tiles import WARPS, AtOnce, Store, Tile, Values, rounds_of
from parakeet_py.typed_ir.ir import Const, Operand, Scan, Var

WARP_LINE, BLOCK_LINE = 16, 1024  # elements of a line from which a warp, a block works on it
FEW_LINES, LONG_LINE = 64, 1 << 15  # at most so many lines of at least so many elements are scanned one by one
GROUP = THREADS  # tiles of a group


def lower_scan(lo: Lowering, outs: tuple[Var, ...], op: Scan) -> None:
    """A scan as GPU regions; inside of others, and where it may fail, as on the CPU."""
    found = study(op)
    if lo.in_region or found.has_check or found.has_opaque or found.has_array:
        on_cpu.lower_scan(lo, outs, op)
        return
    extents = lo.operands(op.extents)
    arrays = [lo.new_array(out.name, array_type(out), extents, lo.bind(out)) for out in outs]
    with_ = combination(lo, op.combine, op.inits)
    axes = axes_of(op.indices, extents)
    along = axes[op.axis]
    others = [axis for axis in axes if axis is not along]
    length = Const(THREADS * rounds_of(with_), INT64)

    def values(place: Operand) -> Sequence[Operand]:
        lo.alias(along.index, place)
        return lo.lower_block(op.body)

    def store(place: Operand, results: Sequence[Operand]) -> None:
        indices = [place if axis is along else lo.operand(axis.index) for axis in axes]
        lo.store_outs(arrays, indices, results)

    def at_once(places: Sequence[Operand]) -> list[Sequence[Operand]]:
        results: list[Sequence[Operand]] = []
        visits = [partial(lo.alias, along.index, place) for place in places]
        at_points(lo, found, op.body, visits, results.append)
        return results

    if not others:
        width = min(neighbours(found, op.body, along.index, arrays), rounds_of(with_))
        _one_line(lo, with_, along.extent, values, store, op.inclusive, width=width, at_once=at_once)
        return
    lines = lo.product(axis.extent for axis in others)

    def one_by_one() -> None:
        number = lo.index("line")

        def line() -> None:
            _one_line(lo, with_, along.extent, values, store, op.inclusive, lambda: unravel(lo, others, number))

        lo.loop(number, ZERO, lines, line)

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

    def tiles(thread: Operand, size: Operand, by_warp: bool) -> None:
        """Scan a line tile after tile."""
        carry = declare(lo, with_)
        tile = lo.index("tile")

        def step() -> None:
            start = lo.multiply(tile, size)
            scanned = Tile(lo, with_, thread, start, along.extent, values, by_warp=by_warp)
            before = [lo.read(cell) for cell in carry]
            scanned.finish(before, store, op.inclusive)
            lo.write_all(list(zip(carry, combine(lo, with_, before, scanned.total()), strict=True)))
            lo.emit(imp.Barrier("warp" if by_warp else "block"))  # the shared memory is written again

        lo.loop(tile, ZERO, lo.ceil_div(along.extent, size), step)

    def by_warp() -> None:
        def some(block: Var, thread: Var) -> None:
            number = lo.floor_div(index_of(lo, block, thread), Const(WARP, INT64))
            size = Const(WARP * rounds_of(with_), INT64)

            def line() -> None:
                unravel(lo, others, number)
                tiles(thread, size, True)

            lo.when(lo.compare("lt", number, lines), line)

        grid_of_blocks(lo, lo.ceil_div(lines, Const(WARPS, INT64)), "scan lines by warp", some)

    def by_block() -> None:
        def line(block: Var, thread: Var) -> None:
            unravel(lo, others, block, True)
            tiles(thread, length, False)

        grid_of_blocks(lo, lines, "scan lines by block", line)

    def several() -> None:
        if along is axes[-1]:
            by_length = lambda: lo.when(lo.compare("ge", along.extent, Const(WARP_LINE, INT64)), by_warp, by_thread)  # noqa: E731
            lo.when(lo.compare("ge", along.extent, Const(BLOCK_LINE, INT64)), by_block, by_length)
        else:
            few = lo.compare("lt", lo.multiply(lines, Const(WARP, INT64)), along.extent)
            lo.when(few, by_block, by_thread)

    few, long = (
        lo.compare("le", lines, Const(FEW_LINES, INT64)),
        lo.compare("ge", along.extent, Const(LONG_LINE, INT64)),
    )
    lo.when(lo.prim("and", few, long, type_=BOOL), one_by_one, several)


# ---- one line --------------------------------------------------------------------------------------------------------


def _one_line(
    lo: Lowering,
    with_: Combination,
    size: Operand,
    values: Values,
    store: Store,
    inclusive: bool,
    enter: Callable[[], None] = lambda: None,
    width: int = 1,
    at_once: AtOnce | None = None,
) -> None:
    """Scan a line by all blocks; `enter` writes what a thread does first. For `width`, `at_once` see `Tile`."""
    length = Const(THREADS * rounds_of(with_), INT64)
    tiles = lo.ceil_div(size, length)
    groups = lo.ceil_div(tiles, Const(GROUP, INT64))
    # the total of each tile, then what is before each group, then the ticket counter
    words = Const(sum(map(words_of, with_.types)), INT64)
    tickets = lo.multiply(lo.add(tiles, groups), words)
    size_of_state = lo.add(tickets, ONE)
    state = lo.new_array("state", Array("int64", 1, "C"), (size_of_state,))
    grid(lo, size_of_state, "clear", lambda number: lo.store(state, (number,), ZERO))

    def total_of(tile: Operand) -> Operand:
        return lo.multiply(tile, words)

    def before(group: Operand) -> Operand:
        return lo.multiply(lo.add(tiles, group), words)

    def tile(block: Var, thread: Var) -> None:
        enter()
        ticket = lo.let("ticket", Array("int64", 1, "C"), imp.NewArray((ONE,), "shared"))
        shared = [lo.let("before", Array(dtype, 1, "C"), imp.NewArray((ONE,), "shared")) for dtype in with_.types]
        first = lo.compare("eq", thread, ZERO)

        def draw() -> None:
            lo.store(ticket, (ZERO,), lo.let("ticket", INT64, imp.Atomic("add", state, (tickets,), ONE)))

        lo.when(first, draw)
        lo.emit(imp.Barrier("block"))
        number = lo.load(ticket, ZERO)
        scanned = Tile(lo, with_, thread, lo.multiply(number, length), size, values, width=width, at_once=at_once)
        group = lo.floor_div(number, Const(GROUP, INT64))
        start = lo.multiply(group, Const(GROUP, INT64))
        follower = lo.compare("eq", lo.subtract(number, start), Const(GROUP - 1, INT64))
        lo.when(first, lambda: publish(lo, state, total_of(number), scanned.total()))
        cells = declare(lo, with_)
        earlier = lo.add(start, thread)

        def one() -> None:
            lo.write_all(list(zip(cells, awaited(lo, state, total_of(earlier), with_.types), strict=True)))

        lo.when(lo.compare("lt", earlier, number), one)
        across_block(lo, with_, cells, thread)

        def finish() -> None:
            def outer() -> None:
                given = awaited(lo, state, before(group), with_.types)
                lo.write_all(
                    list(zip(cells, combine(lo, with_, given, [lo.read(cell) for cell in cells]), strict=True))
                )

            lo.when(lo.compare("gt", group, ZERO), outer)
            prefix = [lo.read(cell) for cell in cells]
            lo.store_outs(shared, (ZERO,), prefix)

            def next_group() -> None:
                through = combine(lo, with_, prefix, scanned.total())
                publish(lo, state, before(lo.add(group, ONE)), through)

            more = lo.compare("lt", lo.add(number, ONE), tiles)
            lo.when(lo.prim("and", follower, more, type_=BOOL), next_group)

        lo.when(first, finish)
        lo.emit(imp.Barrier("block"))
        scanned.finish([lo.load(array, ZERO) for array in shared], store, inclusive)

    grid_of_blocks(lo, tiles, "scan", tile)
