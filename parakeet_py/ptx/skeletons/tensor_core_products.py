"""Products of two matrices on tensor cores: of float16, summed in float32, and of float32 where TF32 will do.

A block computes 128 x 128 of the result by eight warps, 64 x 32 each, as `WarpProduct`s. Slices of the matrices go from
memory into shared memory by pieces of 16 bytes, as they lie, whichever axis that is along; while one is multiplied, the
next is on its way into registers, and goes to the other half of shared memory, so that threads meet once for each.

Matrices must lie without gaps, in lines of whole pieces; others have the kernels of `tiled_products`. Rows of a slice
are one piece longer than their elements: the places that lanes read together are in different banks.

Products of float16 are exact in float32; sums are about as close to the truth as those of floats are, though hardware
cuts off where others round. TF32 has the range of float32 and ten bits behind the point: factors are rounded to that
first, to nearest, halves away from zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import BOOL, INT64, Array, Scalar, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.regions import THREADS, WARP, split32
from parakeet_py.ptx.skeletons.product_operands import Factor, Product, flat, zero_of
from parakeet_py.ptx.skeletons.tiled_products import (
    RUN_BYTES,
    Store,
    in_parts,
    in_whole_runs,
    launch_tiles,
    tiled_product,
    tiles_of,
)
from parakeet_py.typed_ir.ir import Const, Operand, Var

TILE = 128  # rows and columns of the result that a block computes
SLICE_BYTES = 64  # of a line of a slice along the shared axis
WARP_ROWS, WARP_COLUMNS = 4, 4  # of 16 and of 8: what a warp computes
WARPS_ACROSS = TILE // (8 * WARP_COLUMNS)
LEAST = 16  # of each extent, from which tensor cores are worth it


def lower_product(lo: Lowering, product: Product, tf32: bool) -> None:
    """A product of two matrices as GPU regions."""
    if is_tensor_product(product, tf32):
        lo.when(fits(lo, product), lambda: tensor_product(lo, product), lambda: tiled_product(lo, product))
    else:
        tiled_product(lo, product)


def is_tensor_product(product: Product, tf32: bool) -> bool:
    """Whether tensor cores can compute a product, if its lines are of whole pieces."""
    factors = product.left, product.right
    if any(array_type(factor.array).layout not in "CF" for factor in factors) or product.dtype != "float32":
        return False
    dtypes = {factor.dtype for factor in factors}
    return dtypes == {"float16"} or (tf32 and dtypes == {"float32"})


def fits(lo: Lowering, product: Product) -> Operand:
    """Whether lines of both matrices are of whole pieces, and it is worth it."""
    found = in_whole_runs(lo, product)
    for extent in (product.rows, product.columns, product.depth):
        found = lo.prim("and", found, lo.compare("ge", extent, Const(LEAST, INT64)), type_=BOOL)
    return found


def tensor_product(lo: Lowering, product: Product) -> None:
    """out = left @ right for matrices that fit."""

    def launch(store: Store, parts: Operand) -> None:
        lines = [flat(lo, factor) for factor in (product.left, product.right)]
        tiles = tiles_of(lo, product.rows, product.columns, TILE)
        depth = Const(depth_of(product), INT64)  # a part is of whole slices
        share = ONE if parts is ONE else lo.multiply(lo.ceil_div(lo.ceil_div(product.depth, parts), depth), depth)

        def body(block: Var, thread: Var) -> None:
            _Tile(lo, product, lines, block, thread).run(store, parts, tiles, share)

        launch_tiles(lo, product, "matmul tensor", lo.multiply(tiles, parts), parts, body)

    in_parts(lo, product, TILE, launch)


def depth_of(product: Product) -> int:
    """Elements of a slice along the shared axis."""
    return SLICE_BYTES // itemsize(product.left.dtype)


class _Side:
    """One matrix, as a block brings slices of it into shared memory.

    Attributes
    ----------
    memory : both halves of the shared memory, of lines with a gap
    first, stop : the tile's first line or column, and how many the matrix has
    """

    def __init__(
        self, lo: Lowering, factor: Factor, line: tuple[Var, Operand], first: Operand, stop: Operand, depth: int
    ) -> None:
        self.lo, self.factor, self.first, self.stop, self.depth = lo, factor, first, stop, depth
        self.line, length = line
        self.piece = RUN_BYTES // itemsize(factor.dtype)
        self.pieces = lo.floor_div(length, Const(self.piece, INT64))  # of a line of the matrix
        self.fast, self.slow = (depth, TILE) if factor.along else (TILE, depth)
        extents = tuple(Const(extent, INT64) for extent in (2, self.slow, self.fast + self.piece))
        self.memory = lo.let("slices", Array(factor.dtype, 3, "C"), imp.NewArray(extents, "shared"))

    def _places(self, thread: Operand) -> list[tuple[Operand, Operand]]:
        """The lines and pieces of a slice that a thread brings."""
        lo, across = self.lo, self.fast // self.piece
        found: list[tuple[Operand, Operand]] = []
        for part in range(self.slow * across // THREADS):
            number = lo.add(thread, Const(part * THREADS, INT64))
            line = lo.floor_div(number, Const(across, INT64))
            found.append((line, lo.prim("and", number, Const(across - 1, INT64))))
        return found

    def fetch(self, thread: Operand, at: Operand, stop: Operand) -> list[list[Cell]]:
        """Start to load the slice from `at` of the shared axis, which ends at `stop`; what is not there is 0."""
        lo, zero = self.lo, zero_of(self.factor.dtype)
        staged = []
        for line, piece in self._places(thread):
            own = [lo.declare("value", zero.type, zero) for _ in range(self.piece)]
            start = lo.multiply(piece, Const(self.piece, INT64))
            deep, other = (start, line) if self.factor.along else (line, start)
            k, place = lo.add(at, deep), lo.add(self.first, other)
            row, column = (place, k) if self.factor.along else (k, place)
            inside = lo.compare("lt", k, stop), lo.compare("lt", place, self.stop)

            def get(own: list[Cell] = own, row: Operand = row, column: Operand = column) -> None:
                before = lo.multiply(row, self.pieces)
                number = lo.add(before, lo.floor_div(column, Const(self.piece, INT64)))
                first = lo.multiply(number, Const(self.piece, INT64))
                for element, cell in enumerate(own):
                    lo.write(cell, lo.load(self.line, lo.add(first, Const(element, INT64))))

            lo.when(lo.prim("and", *inside, type_=BOOL), get)
            staged.append(own)
        return staged

    def leave(self, thread: Operand, half: Operand, staged: Sequence[Sequence[Cell]]) -> None:
        """Put a slice into one half of shared memory."""
        lo = self.lo
        for (line, piece), own in zip(self._places(thread), staged, strict=True):
            start = lo.multiply(piece, Const(self.piece, INT64))
            values = [self._rounded(lo.read(cell)) for cell in own]
            for element, value in enumerate(values):
                lo.store(self.memory, (half, line, lo.add(start, Const(element, INT64))), value)

    def _rounded(self, value: Var) -> Operand:
        """A factor as tensor cores take it."""
        if self.factor.dtype != "float32":
            return value
        lo, word = self.lo, Scalar("int32")
        near = lo.prim("add", lo.prim("bits", value, type_=word), Const(1 << 12, word), type_=word)
        cut = lo.prim("and", near, Const(-1 << 13, word), type_=word)
        short = lo.prim("from_bits", cut, type_=value.type)
        return lo.prim("select", lo.prim("isnan", value, type_=BOOL), value, short, type_=value.type)


class _Tile:
    """What a thread does."""

    def __init__(
        self,
        lo: Lowering,
        product: Product,
        lines: Sequence[tuple[Var, Operand]],
        block: Var,
        thread: Var,
    ) -> None:
        self.lo, self.product, self.lines, self.block, self.thread = lo, product, lines, block, thread

    def run(self, store: Store, parts: Operand, tiles: Operand, share: Operand) -> None:
        lo, product, thread = self.lo, self.product, self.thread
        side = Const(TILE, INT64)
        part, number = (ZERO, self.block) if parts is ONE else split32(lo, self.block, tiles)
        tile_row, tile_column = split32(lo, number, lo.ceil_div(product.columns, side))
        top, start = lo.multiply(tile_row, side), lo.multiply(tile_column, side)
        depth = depth_of(product)
        first = lo.multiply(part, share)
        stop = product.depth if parts is ONE else lo.minimum(lo.add(first, share), product.depth)
        left = _Side(lo, product.left, self.lines[0], top, product.rows, depth)
        right = _Side(lo, product.right, self.lines[1], start, product.columns, depth)
        warp = lo.floor_div(thread, Const(WARP, INT64))
        down = lo.multiply(lo.floor_div(warp, Const(WARPS_ACROSS, INT64)), Const(16 * WARP_ROWS, INT64))
        across = lo.multiply(lo.prim("and", warp, Const(WARPS_ACROSS - 1, INT64)), Const(8 * WARP_COLUMNS, INT64))
        zero = zero_of(product.dtype)
        sums = tuple(lo.declare("acc", zero.type, zero) for _ in range(4 * WARP_ROWS * WARP_COLUMNS))
        base, half = lo.declare("k", INT64, first), lo.declare("half", INT64, ZERO)
        for each in (left, right):
            each.leave(thread, ZERO, each.fetch(thread, first, stop))
        lo.emit(imp.Barrier("block"))
        lo.push()
        going = lo.compare("lt", lo.read(base), stop)
        head = lo.pop()
        lo.push()
        later = lo.add(lo.read(base), Const(depth, INT64))
        staged = [each.fetch(thread, later, stop) for each in (left, right)]
        here = lo.read(half)
        tile = imp.WarpTile(WARP_ROWS, WARP_COLUMNS, depth)
        factors = [
            imp.WarpFactor(each.memory, (here, at, ZERO) if each.factor.along else (here, ZERO, at), each.factor.along)
            for each, at in ((left, down), (right, across))
        ]
        lo.emit(imp.WarpProduct(sums, tile, *factors))
        other = lo.subtract(ONE, here)
        for each, values in zip((left, right), staged, strict=True):
            each.leave(thread, other, values)
        lo.emit(imp.Barrier("block"))
        lo.write(half, other)
        lo.write(base, later)
        lo.emit(imp.While(head, going, lo.pop()))
        self._leave(store, part, lo.add(top, down), lo.add(start, across), sums)

    def _leave(self, store: Store, part: Operand, top: Operand, start: Operand, sums: Sequence[Cell]) -> None:
        lo, product = self.lo, self.product
        lane = lo.let("lane", INT64, imp.Lane("lane"))
        row = lo.add(top, lo.floor_div(lane, Const(4, INT64)))
        column = lo.add(start, lo.multiply(lo.prim("and", lane, Const(3, INT64)), Const(2, INT64)))
        for number, cell in enumerate(sums):
            tile, place = divmod(number, 4)
            tile_row, tile_column = divmod(tile, WARP_COLUMNS)
            i = lo.add(row, Const(16 * tile_row + 8 * (place // 2), INT64))
            j = lo.add(column, Const(8 * tile_column + place % 2, INT64))
            inside = lo.compare("lt", i, product.rows), lo.compare("lt", j, product.columns)

            def put(i: Operand = i, j: Operand = j, cell: Cell = cell) -> None:
                store(part, i, j, lo.read(cell))

            lo.when(lo.prim("and", *inside, type_=BOOL), put)
