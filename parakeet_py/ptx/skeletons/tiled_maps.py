"""Maps over spaces of two and more axes: tiles, one for each block.

Lanes of a warp lie along the axis *x* in which most accesses move by one element, so that a warp reads and writes whole
lines of memory; a thread takes `ROWS` neighbouring points of a second axis *y*, and what two of them load is loaded
once (a stencil reads six rows for four, not twelve). A block covers 32 x 32 points; where x is short, or y, the same
256 threads are spread along the other axis, so that few of them find nothing to do. Only the number of a block is
divided, in 32 bits, once for each thread.

**Transposed reads.** An array that lies along y, while others lie along x, would be read an element from each line. The
block brings its tile of it into shared memory first, lanes along y, and takes elements from there, lanes along x. A row
of the tile is 33 elements long, so that neither meets in one bank. This is done for loads that every point makes, from
arrays that the body does not store to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import INT64, Array, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower.builder import Lowering, Outs
from parakeet_py.imp.lower.loops import Axis
from parakeet_py.imp.schedule.loop_order import Access, Study, access_cost, coefficient, static_cost
from parakeet_py.imp.writer import ONE, array_type
from parakeet_py.ptx.kernels.regions import THREADS, WARP, grid_of_blocks, split32
from parakeet_py.typed_ir.ir import Cast, Const, Load, Operand, Prim, Var

ROWS = 4  # points of a thread along y
MAX_UNROLLED = 256  # operations of all points of a thread together
SIDE = 32  # of a tile in shared memory
SHARED_BYTES = 32 << 10  # of all tiles of a block
BRINGING = 2  # what a read through shared memory costs, as `access_cost` counts


def lower_tiles(
    lo: Lowering,
    found: Study,
    axes: Sequence[Axis],
    every: Sequence[Axis],
    outs: Outs,
    at: Callable[[Sequence[Callable[[], None]]], None],
) -> None:
    """A region over two and more axes; `at` writes the body at points, given what sets the index variables to each.

    The outs are arrays over `every` axis, also those along which there is only one point.
    """
    x, y, transposed = directions(lo, found, axes, every, outs)
    simple = found.simple and not (found.has_check and lo.checking)
    rows = ROWS if transposed or (simple and ROWS * static_cost(found.block) <= MAX_UNROLLED) else 1
    shape = Shape.square(rows) if transposed else Shape.fitting(lo, x.extent, y.extent, rows)
    blocks = Blocks.of(lo, axes, x, y, x.extent, shape, rows)

    def tile(block: Var, thread: Var) -> None:
        lane, row, left, top = blocks.place(lo, block, thread)
        tiles = [_bring(lo, found, x, y, (left, top), (lane, row), access) for access in transposed]
        if tiles:
            lo.emit(imp.Barrier("block"))
        column = lo.add(left, lane)
        start = lo.add(top, lo.multiply(row, Const(rows, INT64)))
        lo.alias(x.index, column)

        def go(place: Operand) -> None:
            lo.alias(y.index, place)
            for access, array in zip(transposed, tiles, strict=True):
                _redirect(lo, access, array, (lane, lo.subtract(place, top)))

        def some() -> None:
            at([partial(go, lo.add(start, Const(number, INT64))) for number in range(rows)])

        def rest_of_them() -> None:
            place = lo.index("y")
            lo.loop(place, start, y.extent, lambda: at([lambda: go(place)]), "vector")  # not unrolled

        whole = lo.compare("le", lo.add(start, Const(rows, INT64)), y.extent)
        lo.when(
            lo.compare("lt", column, x.extent),
            lambda: lo.when(whole, some, rest_of_them if rows > 1 else None),
        )

    merged, lo.merged = lo.merged, {array: list(known) for array, known in lo.merged.items()}
    try:
        grid_of_blocks(lo, blocks.count, "map", tile)
    finally:
        lo.merged = merged


def _number(lo: Lowering, axes: Sequence[Axis]) -> Operand:
    """The number of the present point, in C order."""
    number: Operand = lo.operand(axes[0].index)
    for axis in axes[1:]:
        number = lo.add(lo.multiply(number, axis.extent), lo.operand(axis.index))
    return number


# ---- which axes ------------------------------------------------------------------------------------------------------


def directions(
    lo: Lowering, found: Study, axes: Sequence[Axis], every: Sequence[Axis], outs: Outs
) -> tuple[Axis, Axis, list[Access]]:
    """The axes x and y, and the loads that are made through shared memory."""
    best: tuple[int, Axis, Axis, list[Access]] | None = None
    for position in reversed(range(len(axes))):
        x = axes[position]
        stores = sum(16 for out in outs if out is not None and every[_unit(out)] is not x)
        costs = [access_cost(found, access, x.mover) for access in found.accesses]
        beside = axes[position - 1] if position else axes[1]
        for y in dict.fromkeys([beside, *(axis for axis in axes if axis is not x)]):
            moved = _transposed(lo, found, x, y)
            cost = stores + sum(
                BRINGING if access in moved else cost for access, cost in zip(found.accesses, costs, strict=True)
            )
            if best is None or cost < best[0]:
                best = cost, x, y, moved
    assert best is not None
    return best[1:]


def _unit(out: Var) -> int:
    """The axis of the space along which elements of an out are neighbours."""
    return 0 if array_type(out).layout == "F" else -1


def _transposed(lo: Lowering, found: Study, x: Axis, y: Axis) -> list[Access]:
    """The different loads that move along y by one element and along x from line to line."""
    if not found.simple or (found.has_check and lo.checking):
        return []
    every = [let.op for let in found.block.statements if isinstance(let.op, Load)]
    stored = {found.root(access.array) for access in found.accesses if access.store}
    moved: list[Access] = []
    size = 0
    for access in found.accesses:
        if access.store or access in moved or access.array in found.inside or found.root(access.array) in stored:
            continue
        kind = array_type(access.array)
        if kind.rank < 2 or kind.layout == "A" or Load(access.array, access.indices) not in every:
            continue
        unit = 0 if kind.layout == "F" else kind.rank - 1
        along = [coefficient(found, index, y.mover) for index in access.indices]
        across = [coefficient(found, index, x.mover) for index in access.indices]
        if along.pop(unit) != 1 or across.pop(unit) != 0:
            continue
        if any(step != 0 for step in along) or all(step == 0 for step in across):
            continue
        size += itemsize(kind.dtype) * SIDE * (SIDE + 1)
        if size <= SHARED_BYTES and all(_plain(found, index) for index in access.indices):
            moved.append(access)
    return moved


def _plain(found: Study, index: Operand) -> bool:
    """Whether an index can be written before the body: sums and products of what is known there."""
    if isinstance(index, Const) or index not in found.inside:
        return True
    match found.definitions.get(index):
        case Prim("add" | "sub" | "mul", args):
            return all(_plain(found, arg) for arg in args)
        case Cast(arg):
            return _plain(found, arg)
    return False


# ---- how a block lies ------------------------------------------------------------------------------------------------


@record
class Shape:
    """A block of `width` x `height` threads: powers of two with the logarithms `across` and `down` (which counts the
    points of a thread, too)."""

    width: Operand
    height: Operand
    across: Operand
    down: Operand

    @staticmethod
    def square(rows: int) -> Shape:
        height = THREADS // SIDE
        logarithms = SIDE.bit_length() - 1, (height * rows).bit_length() - 1
        width_, height_, across, down = (Const(value, INT64) for value in (SIDE, height, *logarithms))
        return Shape(width_, height_, across, down)

    @staticmethod
    def fitting(lo: Lowering, x: Operand, y: Operand, rows: int) -> Shape:
        """Blocks 32 wide; narrower where x is short, wider where y is."""
        whole = THREADS.bit_length() - 1
        across: Operand = Const(WARP.bit_length() - 1, INT64)
        for halved in (2, 1, 0):
            across = _either(lo, y, rows << halved, Const(whole - halved, INT64), across)
        across = _either(lo, x, 8, Const(3, INT64), _either(lo, x, WARP, Const(WARP.bit_length() - 1, INT64), across))
        across = _either(lo, x, 2, ONE, across)
        if isinstance(across, Const):
            width = 1 << across.whole
            shape = Const(width, INT64), Const(THREADS // width, INT64)
        else:
            shape = lo.prim("shl", ONE, across), lo.prim("shr", Const(THREADS, INT64), across)  # type: ignore[assignment]
        points = Const(whole + rows.bit_length() - 1, INT64)
        return Shape(*shape, across, lo.subtract(points, across))


@record
class Blocks:
    """The blocks of a space: `across` and `down` how many there are along x and y, `others` the axes behind these.

    Each has `shape` threads, of which each takes `rows` points along y.
    """

    axes: Sequence[Axis]
    others: Sequence[Axis]
    shape: Shape
    rows: int
    across: Operand
    down: Operand
    count: Operand

    @staticmethod
    def of(lo: Lowering, axes: Sequence[Axis], x: Axis, y: Axis, columns: Operand, shape: Shape, rows: int) -> Blocks:
        """Blocks for all of a space; `columns` threads lie along x."""
        others = [axis for axis in axes if axis is not x and axis is not y]
        across = _parts(lo, columns, shape.width, shape.across)
        down = _parts(lo, y.extent, lo.multiply(shape.height, Const(rows, INT64)), shape.down)
        count = lo.product((across, down, *(axis.extent for axis in others)))
        return Blocks(axes, others, shape, rows, across, down, count)

    def place(self, lo: Lowering, block: Var, thread: Var) -> tuple[Operand, Operand, Operand, Operand]:
        """Where a thread is in its block, along x and y, and where that begins; sets the indices of other axes."""
        lo.order = lambda: _number(lo, self.axes)
        rest, x_tile = split32(lo, block, self.across)
        if self.others:
            rest, y_tile = split32(lo, rest, self.down)
            for axis in reversed(self.others[1:]):
                rest, here = split32(lo, rest, axis.extent)
                lo.alias(axis.index, here)
            lo.alias(self.others[0].index, rest)
        else:
            y_tile = rest
        lane = lo.prim("and", thread, lo.subtract(self.shape.width, ONE))
        row = lo.prim("shr", thread, self.shape.across)
        left = lo.multiply(x_tile, self.shape.width)
        top = lo.multiply(lo.multiply(y_tile, self.shape.height), Const(self.rows, INT64))
        return lane, row, left, top


def _either(lo: Lowering, extent: Operand, limit: int, then: Operand, orelse: Operand) -> Operand:
    """`then` if extent <= limit."""
    if isinstance(extent, Const):
        return then if extent.whole <= limit else orelse
    if then is orelse:
        return then
    return lo.prim("select", lo.compare("le", extent, Const(limit, INT64)), then, orelse)


def _parts(lo: Lowering, extent: Operand, size: Operand, logarithm: Operand) -> Operand:
    """The number of parts of `size` = 2 ** `logarithm` that hold an extent."""
    if isinstance(size, Const):
        return lo.ceil_div(extent, size)
    return lo.prim("shr", lo.add(extent, lo.subtract(size, ONE)), logarithm)


# ---- through shared memory -------------------------------------------------------------------------------------------


def _bring(
    lo: Lowering,
    found: Study,
    x: Axis,
    y: Axis,
    corner: tuple[Operand, Operand],
    thread: tuple[Operand, Operand],
    access: Access,
) -> Var:
    """Copy a tile of an array to shared memory, as array[along x, along y]; gives the array."""
    (left, top), (lane, row) = corner, thread
    extents = Const(SIDE, INT64), Const(SIDE + 1, INT64)
    array = lo.let("tile", Array(array_type(access.array).dtype, 2, "C"), imp.NewArray(extents, "shared"))
    place = lo.add(top, lane)
    lo.alias(y.index, place)

    def lines() -> None:
        for part in range(0, SIDE, THREADS // SIDE):
            line = lo.add(row, Const(part, INT64))
            column = lo.add(left, line)
            lo.alias(x.index, column)

            def copy(line: Operand = line) -> None:
                source, indices = lo.element(access.array, access.indices)
                value = lo.load(source, *(_written(lo, found, index) for index in indices))
                lo.store(array, (line, lane), value)

            lo.when(lo.compare("lt", column, x.extent), copy)

    lo.when(lo.compare("lt", place, y.extent), lines)
    return array


def _written(lo: Lowering, found: Study, index: Operand) -> Operand:
    """Write an index that is `_plain`."""
    if isinstance(index, Const) or index not in found.inside:
        return lo.operand(index)
    match found.definitions[index]:
        case Prim(name, args):
            return lo.prim(name, *(_written(lo, found, arg) for arg in args), type_=index.type)
        case Cast(arg):
            inner = _written(lo, found, arg)
            return inner if inner.type == index.type else lo.let("t", index.type, Cast(inner))


def _redirect(lo: Lowering, access: Access, array: Var, indices: tuple[Operand, ...]) -> None:
    """From here on the access is made to another array."""
    known = lo.merged.setdefault(lo.array(access.array), [])
    known[:] = [(access.indices, array, indices), *(pattern for pattern in known if pattern[0] != access.indices)]
