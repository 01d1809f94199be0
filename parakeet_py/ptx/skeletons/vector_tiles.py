"""Maps over two and more axes whose lines are whole runs of 16 bytes: a thread takes a run of neighbouring points in
each of a few lines.

Elements that lie side by side are loaded and stored together, and what the points of a thread share, along a line and
from line to line, stays in its registers: for 4 x 4 points a stencil of five reads six lines, of each the run and what
is beside it.

This needs every array that moves along *x* to do so by one element, and its lines to be whole runs, which the host asks
before it launches: else, and where there are too few points to keep a GPU busy so, it launches the kernel of
`tiled_maps`. Half runs are tried where whole ones do not fit, as in `u[:, 1:] - u[:, :-1]`. Runs begin where those of
the array that is stored to do.

Inside of the kernel arrays are written with lines of (n >> k) << k elements, which are n, so that LLVM sees how they
are aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, INT64, Array, itemsize
from parakeet_py.imp.lower.builder import Lowering, Outs
from parakeet_py.imp.lower.loops import Axis
from parakeet_py.imp.schedule.loop_order import Access, Study, access_cost, coefficient, static_cost
from parakeet_py.imp.writer import ZERO, array_type
from parakeet_py.ptx.kernels.points_per_thread import VECTOR_BYTES
from parakeet_py.ptx.kernels.regions import THREADS, grid_of_blocks
from parakeet_py.ptx.skeletons.tiled_maps import Blocks, Shape, directions, lower_tiles
from parakeet_py.typed_ir.ir import Const, Operand, Prim, Reshape, Var

POINTS = 16  # of a thread
MAX_UNROLLED = 256  # operations of all points of a thread together
LEAST_BLOCKS = 128  # fewer would leave multiprocessors without work

At = Callable[[Sequence[Callable[[], None]]], None]


@record
class Run:
    """`width` neighbouring points along x, in each of `rows` lines; runs begin `behind` points before a multiple."""

    width: int
    rows: int
    behind: int


def lower_lines(lo: Lowering, found: Study, axes: Sequence[Axis], every: Sequence[Axis], outs: Outs, at: At) -> None:
    """A region over two and more axes, as runs or as `tiled_maps` has it; see `lower_tiles` for what is given."""
    x, y, transposed = directions(lo, found, axes, every, outs)
    points = lo.product(axis.extent for axis in axes)

    def choose(possible: Sequence[Run]) -> None:
        if not possible:
            lower_tiles(lo, found, axes, every, outs, at)
            return
        run = possible[0]
        least = LEAST_BLOCKS * THREADS * run.width * run.rows
        enough = lo.compare("ge", points, Const(least, INT64))
        fits = lo.prim("and", enough, are_whole(lo, found, x, outs, run), type_=BOOL)
        lo.when(fits, lambda: lower_runs(lo, found, axes, x, y, outs, run, at), lambda: choose(possible[1:]))

    choose([] if transposed else runs(lo, found, x, every, outs))


def runs(lo: Lowering, found: Study, x: Axis, every: Sequence[Axis], outs: Outs) -> list[Run]:
    """The runs that a thread may take, the longest first; none if the body or an array does not allow them."""
    if not found.simple or (found.has_check and lo.checking):
        return []
    kept = [out for out in outs if out is not None]
    moved = [access for access in found.accesses if access_cost(found, access, x.mover) > 0]
    if any(_offset(found, access, x) is None for access in moved) or (kept and every[-1] is not x):
        return []
    arrays = [*(access.array for access in moved), *kept]
    if any(array_type(array).layout != "C" for array in arrays):
        return []
    behind = {_offset(found, access, x) for access in moved if access.store} | ({0} if kept else set())
    whole = VECTOR_BYTES // max((itemsize(array_type(array).dtype) for array in arrays), default=VECTOR_BYTES)
    made = []
    for width in (whole, whole // 2):
        most = min(POINTS, MAX_UNROLLED // max(static_cost(found.block), 1))
        if width > 1 and width <= most and len({(offset or 0) % width for offset in behind}) == 1:
            made.append(Run(width, most // width, (max(offset or 0 for offset in behind)) % width))
    return made


def lower_runs(
    lo: Lowering, found: Study, axes: Sequence[Axis], x: Axis, y: Axis, outs: Outs, run: Run, at: At
) -> None:
    """A region in which each thread has a run in several lines; `at` writes the body at points."""
    width, rows, behind = (Const(value, INT64) for value in (run.width, run.rows, run.behind))
    columns = lo.ceil_div(lo.add(x.extent, behind), width)
    shape = Shape.fitting(lo, columns, y.extent, run.rows)
    blocks = Blocks.of(lo, axes, x, y, columns, shape, run.rows)

    def some(block: Var, thread: Var) -> None:
        lane, row, left, top = blocks.place(lo, block, thread)
        column, start = lo.add(left, lane), lo.add(top, lo.multiply(row, rows))
        first = lo.subtract(lo.multiply(column, width), behind)
        stop_x, stop_y = lo.add(first, width), lo.add(start, rows)

        def point(down: Operand, along: Operand) -> None:
            lo.alias(y.index, down)
            lo.alias(x.index, along)

        def whole() -> None:
            places = [
                (lo.add(start, Const(down, INT64)), lo.add(first, Const(along, INT64)))
                for down in range(run.rows)
                for along in range(run.width)
            ]
            at([partial(point, *place) for place in places])

        def rest() -> None:
            down, along = lo.index("y"), lo.index("x")
            begin, end = lo.maximum(first, ZERO) if run.behind else first, lo.minimum(stop_x, x.extent)

            def line() -> None:
                lo.loop(along, begin, end, lambda: at([lambda: point(down, along)]), "vector")  # not unrolled

            lo.loop(down, start, lo.minimum(stop_y, y.extent), line, "vector")

        inside = lo.prim("and", lo.compare("le", stop_x, x.extent), lo.compare("le", stop_y, y.extent), type_=BOOL)
        if run.behind:
            inside = lo.prim("and", inside, lo.compare("ge", first, ZERO), type_=BOOL)
        with _in_whole_lines(lo, found, x, outs, run.width):
            lo.when(inside, whole, rest)

    grid_of_blocks(lo, blocks.count, "map", some)


def are_whole(lo: Lowering, found: Study, x: Axis, outs: Outs, run: Run) -> Operand:
    """Whether the lines of all arrays are whole runs; asked by the host."""
    arrays = [array for array in _moved(lo, found, x, outs) if array_type(array).rank > 1]
    extents = [lo.extent(array, array_type(array).rank - 1) for array in arrays]
    rests = [lo.prim("and", extent, Const(run.width - 1, INT64)) for extent in dict.fromkeys(extents)]
    result: Operand = Const(True, BOOL)
    for place, rest in enumerate(rests):
        whole = lo.compare("eq", rest, ZERO)
        result = lo.prim("and", result, whole, type_=BOOL) if place else whole
    return result


@contextmanager
def _in_whole_lines(lo: Lowering, found: Study, x: Axis, outs: Outs, width: int) -> Iterator[None]:
    """Within, the arrays that move along x are written with lines that are seen to be whole runs."""
    bits = Const(width.bit_length() - 1, INT64)
    made: dict[Var, Var] = {}
    for array in _moved(lo, found, x, outs):
        kind = array_type(array)
        if kind.rank > 1:
            extents = [lo.extent(array, axis) for axis in range(kind.rank)]
            extents[-1] = lo.prim("shl", lo.prim("shr", extents[-1], bits), bits)
            made[array] = lo.let(array.name, Array(kind.dtype, kind.rank, "C"), Reshape(array, tuple(extents)))
    shaped, merged = lo.shaped, lo.merged
    lo.shaped = shaped | {name: made[array] for name, array in shaped.items() if array in made} | made
    lo.merged = {
        made.get(array, array): [(pattern, made.get(other, other), places) for pattern, other, places in known]
        for array, known in merged.items()
    }
    try:
        yield
    finally:
        lo.shaped, lo.merged = shaped, merged


def _moved(lo: Lowering, found: Study, x: Axis, outs: Outs) -> list[Var]:
    """The arrays that move along x."""
    moved = [access for access in found.accesses if access_cost(found, access, x.mover) > 0]
    accessed = [lo.element(access.array, access.indices)[0] for access in moved]
    return list(dict.fromkeys([*accessed, *(out for out in outs if out is not None)]))


def _offset(found: Study, access: Access, x: Axis) -> int | None:
    """How far from the point's own place along x an access is made; None if that is not known, or it does not move by
    one element."""
    if not access.indices:
        return None
    place = access.indices[-1]
    if access_cost(found, access, x.mover) != 1 or coefficient(found, place, x.mover) != 1:
        return None
    offset = 0
    while place is not x.mover:
        match found.definitions.get(place):  # type: ignore[arg-type]
            case Prim("add", (inner, Const() as by)) | Prim("add", (Const() as by, inner)):
                place, offset = inner, offset + by.whole
            case Prim("sub", (inner, Const() as by)):
                place, offset = inner, offset - by.whole
            case _:
                return None
    return offset
