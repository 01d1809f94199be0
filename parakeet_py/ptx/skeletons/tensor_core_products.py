"""Products of two matrices on tensor cores: of float16, summed in float32; of float32, where TF32 will do; of float64.

A block of eight warps computes 128 x 128 of the result, of float64 128 x 64, as `WarpProduct`s; 64 x 64 where larger
tiles would be too few to occupy a GPU. Slices of the matrices go from memory into shared memory by pieces of 16 bytes,
as they lie, whichever axis that is along: while one is multiplied, the next two or three are on their way, past
registers (`slices`). Threads meet once for each slice: who has passed knows that the slice is there, and that all are
done with the one before, whose place the next to be copied takes.

Large tiles of float16 are a group of four warps' where the GPU has `wgmma` (sm_90a): the same slices, which lie as that
wants, and the same sums, of other places of the tile.

Matrices must lie in lines of whole pieces, that begin whole pieces apart; others have the kernels of `tiled_products`.

Products of float16 are exact in float32; sums are about as close to the truth as those of floats are, though hardware
cuts off where others round. TF32 has the range of float32 and ten bits behind the point: factors are rounded to that
first, to nearest, halves away from zero. Products of float64 are added as fused operations do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, INT64, Array, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.regions import THREADS, WARP, split32
from parakeet_py.ptx.skeletons.product_operands import Factor, Product, ends_there, zero_of
from parakeet_py.ptx.skeletons.tiled_products import (
    MANY_TILES,
    RUN_BYTES,
    WHOLE,
    Store,
    in_parts,
    launch_tiles,
    share_of,
    tiled_product,
    tiles_of,
)
from parakeet_py.typed_ir.ir import Const, Operand, Stride, Var

SLICE_BYTES = 64  # of a line of a slice along the shared axis
SHARED_BYTES = 48 << 10  # of all slices of a block
STAGES = 4  # slices that are there or on their way, if there is room for so many
SMALL = 64  # rows and columns of small tiles
BOX_DEPTH = 64  # of a slice that comes by bulk copies
BOX_AXES = 5  # at most, of an array of which they come
LEAST = 16  # of each extent, from which tensor cores are worth it


@record
class _Form:
    """How a block works: each warp computes `rows` x 16 by `columns` x 8 of the result."""

    rows: int
    columns: int
    warps_across: int
    itemsize: int

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns that a block computes."""
        down = THREADS // WARP // self.warps_across
        return 16 * self.rows * down, 8 * self.columns * self.warps_across

    @property
    def depth(self) -> int:
        """Elements of a slice along the shared axis."""
        return SLICE_BYTES // self.itemsize

    @property
    def stages(self) -> int:
        """Slices that have their place in shared memory."""
        return min(SHARED_BYTES // (SLICE_BYTES * sum(self.tile)), STAGES)


def _forms(product: Product) -> tuple[_Form, _Form]:
    """Small and large tiles."""
    size = itemsize(product.left.dtype)
    large = _Form(2, 4, 2, size) if product.dtype == "float64" else _Form(4, 4, 4, size)
    return _Form(1, 4, 2, size), large


def lower_product(lo: Lowering, product: Product, tf32: bool) -> None:
    """A product of two matrices as GPU regions."""
    if is_tensor_product(product, tf32):
        lo.when(fits(lo, product), lambda: tensor_product(lo, product), lambda: tiled_product(lo, product))
    else:
        tiled_product(lo, product)


def is_tensor_product(product: Product, tf32: bool) -> bool:
    """Whether tensor cores can compute a product, if its lines are of whole pieces."""
    factors = product.left, product.right
    if any(array_type(factor.array).layout not in "CFS" or factor.fast not in factor.axes for factor in factors):
        return False
    dtypes = product.dtype, {factor.dtype for factor in factors}
    known = [("float32", {"float16"}), ("float64", {"float64"})]
    return dtypes in known or (tf32 and dtypes == ("float32", {"float32"}))


def fits(lo: Lowering, product: Product) -> Operand:
    """Whether lines of both matrices are of whole pieces, and it is worth it."""
    found = ends_there(lo, product)
    for factor in (product.left, product.right):
        kind = array_type(factor.array)
        wholes = [lo.multiply(lo.extent(factor.array, factor.fast), Const(itemsize(kind.dtype), INT64))]
        if kind.layout == "S":
            wholes += [lo.let("stride", INT64, Stride(factor.array, axis)) for axis in range(kind.rank - 1)]
        for whole in wholes:
            rest = lo.prim("and", whole, Const(RUN_BYTES - 1, INT64))
            found = lo.prim("and", found, lo.compare("eq", rest, ZERO), type_=BOOL)
    for extent in (product.rows, product.columns, product.depth):
        found = lo.prim("and", found, lo.compare("ge", extent, Const(LEAST, INT64)), type_=BOOL)
    return found


def tensor_product(lo: Lowering, product: Product) -> None:
    """out = left @ right for matrices that fit; of a batch each block computes a tile of one product."""

    small, large = _forms(product)
    assert small.tile == (SMALL, SMALL)
    count = product.count(lo)
    tiles = lo.multiply(tiles_of(lo, product.rows, product.columns, *large.tile), count)
    many = lo.compare("gt", tiles, Const(MANY_TILES // 2, INT64))
    for extent in (product.rows, product.columns):  # a tile that is half empty is no gain
        many = lo.prim("and", many, lo.compare("gt", extent, Const(SMALL, INT64)), type_=BOOL)

    def to_out(part: Operand, row: Operand, column: Operand, value: Operand) -> None:
        product.store(lo, row, column, value)

    def launch(form: _Form, store: Store, parts: Operand) -> None:
        tiles = tiles_of(lo, product.rows, product.columns, *form.tile)
        share = share_of(lo, product.depth, parts, max(form.depth, WHOLE))  # a part is of whole slices

        def body(block: Operand, thread: Var) -> None:
            if product.batch is not None:
                number, block = split32(lo, block, tiles)
                product.bind(lo, number)
            tile = _Tile(lo, product, form, (block, thread))
            tile.grouped = form is large and product.left.dtype == "float16"
            tile.run(store, parts, tiles, share)

        name = "matmul tensor" if form is large else "matmul tensor small"
        name = name if product.batch is None else f"{name} batch"
        launch_tiles(lo, product, name, lo.multiply(lo.multiply(tiles, parts), count), parts, body)

    def few() -> None:
        if product.batch is not None:
            launch(small, to_out, ONE)
            return
        in_parts(lo, product, SMALL, partial(launch, small))

    lo.when(many, lambda: launch(large, to_out, ONE), few)


class _Side:
    """One matrix, as a block brings slices of it into shared memory.

    Attributes
    ----------
    memory : the slices, of lines as the matrix has them
    first, stop : the tile's first line or column, and how many the matrix has
    """

    def __init__(
        self,
        lo: Lowering,
        factor: Factor,
        limits: tuple[Operand, Operand],
        side: int,
        form: _Form,
    ) -> None:
        self.lo, self.factor = lo, factor
        self.first, self.stop = limits
        self.piece = RUN_BYTES // form.itemsize
        self.fast, self.slow = (form.depth, side) if factor.along else (side, form.depth)
        extents = tuple(Const(extent, INT64) for extent in (form.stages, self.slow, self.fast))
        self.memory = lo.let("slices", Array(factor.dtype, 3, "C"), imp.NewArray(extents, "shared"))

    def bring(self, thread: Operand, stage: Operand, at: Operand, stop: Operand) -> None:
        """Begin to copy the slice from `at` of the shared axis, which ends at `stop`; what is not there is 0."""
        lo, across = self.lo, self.fast // self.piece
        for part in range(self.slow * across // THREADS):
            number = lo.add(thread, Const(part * THREADS, INT64))
            line = lo.floor_div(number, Const(across, INT64))
            start = lo.multiply(lo.prim("and", number, Const(across - 1, INT64)), Const(self.piece, INT64))
            deep, other = (start, line) if self.factor.along else (line, start)
            k, place = lo.add(at, deep), lo.add(self.first, other)
            there = lo.prim("and", lo.compare("lt", k, stop), lo.compare("lt", place, self.stop), type_=BOOL)
            k, place = (lo.prim("select", there, index, ZERO) for index in (k, place))
            source = self.factor.place(lo, place, k)
            lo.emit(imp.CopyRun(self.memory, (stage, line, start), self.factor.array, source, there))


class _Tile:
    """What a thread does; `grouped`: warps may multiply in groups of four (`WarpProduct`)."""

    grouped = False

    def __init__(
        self,
        lo: Lowering,
        product: Product,
        form: _Form,
        lane: tuple[Operand, Var],
    ) -> None:
        self.lo, self.product, self.form = lo, product, form
        self.block, self.thread = lane

    def run(self, store: Store, parts: Operand, tiles: Operand, share: Operand) -> None:
        lo, product, form, thread = self.lo, self.product, self.form, self.thread
        part, number = (ZERO, self.block) if parts is ONE else split32(lo, self.block, tiles)
        rows, columns = form.tile
        tile_row, tile_column = split32(lo, number, lo.ceil_div(product.columns, Const(columns, INT64)))
        top, start = lo.multiply(tile_row, Const(rows, INT64)), lo.multiply(tile_column, Const(columns, INT64))
        first = lo.multiply(part, share)
        stop = product.depth if parts is ONE else lo.minimum(lo.add(first, share), product.depth)
        warp = lo.floor_div(thread, Const(WARP, INT64))
        down = lo.multiply(lo.floor_div(warp, Const(form.warps_across, INT64)), Const(16 * form.rows, INT64))
        across = lo.multiply(lo.prim("and", warp, Const(form.warps_across - 1, INT64)), Const(8 * form.columns, INT64))
        zero = zero_of(product.dtype)
        sums = tuple(lo.declare("acc", zero.type, zero) for _ in range(4 * form.rows * form.columns))

        def multiply_slices() -> None:
            sides = (product.left, (top, product.rows), rows), (product.right, (start, product.columns), columns)
            left, right = (_Side(lo, *side, form) for side in sides)
            self._multiply_slices((left, down), (right, across), sums, (first, stop))

        axes = max(array_type(factor.array).rank for factor in (product.left, product.right))
        if self.grouped and parts is ONE and axes <= BOX_AXES:
            boxes = lo.let("boxes", BOOL, imp.Lane("boxes"))
            lo.when(boxes, lambda: self._multiply_boxes(top, start, sums), multiply_slices)
        else:
            multiply_slices()
        top = lo.add(top, down)
        if self.grouped:
            groups = lo.compare("ne", lo.let("groups", INT64, imp.Lane("groups")), ZERO)
            own = lo.multiply(lo.prim("and", warp, Const(3, INT64)), Const(16, INT64))
            top = lo.add(top, lo.prim("select", groups, own, ZERO))
            across = lo.prim("select", groups, ZERO, across)
            self._leave(store, part, top, lo.add(start, across), sums, groups)
        else:
            self._leave(store, part, top, lo.add(start, across), sums)

    def _multiply_boxes(self, top: Operand, start: Operand, sums: tuple[Cell, ...]) -> None:
        """Add the product to sums; the matrices come by bulk copies."""
        lo, product = self.lo, self.product
        left, right = (
            imp.BoxFactor(factor.array, factor.place(lo, place, ZERO), factor.deep, factor.axes[factor.depth_first])
            for factor, place in ((product.left, top), (product.right, start))
        )
        slices = lo.ceil_div(product.depth, Const(BOX_DEPTH, INT64))
        lo.emit(imp.BulkProduct(sums, left, right, slices))

    def _multiply_slices(
        self,
        left_at: tuple[_Side, Operand],
        right_at: tuple[_Side, Operand],
        sums: tuple[Cell, ...],
        limits: tuple[Operand, Operand],
    ) -> None:
        """Add the product to sums, of slices that all threads bring; where in the tile a warp begins is known."""
        lo, form, thread, (first, stop) = self.lo, self.form, self.thread, limits
        ahead = form.stages - 1

        def bring(stage: Operand, at: Operand) -> None:
            for each, _ in (left_at, right_at):
                each.bring(thread, stage, at, stop)

        for stage in range(ahead):
            bring(Const(stage, INT64), lo.add(first, Const(stage * form.depth, INT64)))
            lo.emit(imp.CopyGroup())
        base = lo.declare("k", INT64, first)
        here, free = lo.declare("slice", INT64, ZERO), lo.declare("free", INT64, Const(ahead, INT64))
        lo.push()
        going = lo.compare("lt", lo.read(base), stop)
        head = lo.pop()
        lo.push()
        lo.emit(imp.CopyWait(ahead - 1))
        lo.emit(imp.Barrier("block"))
        later = lo.add(lo.read(base), Const(ahead * form.depth, INT64))
        to = lo.read(free)
        lo.when(lo.compare("lt", later, stop), lambda: bring(to, later))
        lo.emit(imp.CopyGroup())  # also an empty one: groups are counted
        present = lo.read(here)
        factors = [
            imp.WarpFactor(
                each.memory, (present, at, ZERO) if each.factor.along else (present, ZERO, at), each.factor.along
            )
            for each, at in (left_at, right_at)
        ]
        lo.emit(imp.WarpProduct(sums, imp.WarpTile(form.rows, form.columns, form.depth), *factors))
        lo.write(free, present)
        following = lo.add(present, ONE)
        last = lo.compare("eq", following, Const(form.stages, INT64))
        lo.write(here, lo.prim("select", last, ZERO, following))
        lo.write(base, lo.add(lo.read(base), Const(form.depth, INT64)))
        lo.emit(imp.While(head, going, lo.pop()))

    def _leave(
        self,
        store: Store,
        part: Operand,
        top: Operand,
        start: Operand,
        sums: Sequence[Cell],
        groups: Operand | None = None,
    ) -> None:
        lo, product = self.lo, self.product
        lane = lo.let("lane", INT64, imp.Lane("lane"))
        row = lo.add(top, lo.floor_div(lane, Const(4, INT64)))
        column = lo.add(start, lo.multiply(lo.prim("and", lane, Const(3, INT64)), Const(2, INT64)))
        for number, cell in enumerate(sums):
            tile, place = divmod(number, 4)
            tile_row, tile_column = divmod(tile, self.form.columns)
            down: Operand = Const(16 * tile_row, INT64)
            across: Operand = Const(8 * tile_column, INT64)
            if groups is not None and tile_row:
                down = lo.prim("select", groups, ZERO, down)
                across = lo.prim("select", groups, Const(8 * tile, INT64), across)
            i = lo.add(row, lo.add(down, Const(8 * (place // 2), INT64)))
            j = lo.add(column, lo.add(across, Const(place % 2, INT64)))
            inside = lo.compare("lt", i, product.rows), lo.compare("lt", j, product.columns)

            def put(i: Operand = i, j: Operand = j, cell: Cell = cell) -> None:
                store(part, i, j, lo.read(cell))

            lo.when(lo.prim("and", *inside, type_=BOOL), put)
