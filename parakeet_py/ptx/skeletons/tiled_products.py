"""Products of two matrices on a GPU.

A block computes a tile of the result; slices of the matrices, `depth` elements along the shared axis, go through shared
memory, and a thread keeps `side` x `side` sums in registers. What it multiplies lies in runs of 16 bytes, one load
each; runs of one thread are half a tile or more apart, so that neighbouring threads read neighbouring runs and no two
meet in a bank. While a slice is multiplied, the next is on its way into registers: by runs of 16 bytes, too, where both
matrices lie without gaps in lines of whole runs, element by element otherwise. Sums are the same, bit for bit.

Single precision has tiles of 128 x 128 where the result has enough of them to occupy a GPU, everything else 64 x 64.
Where even those are few and the shared axis is long, several blocks take parts of it, and what they leave is added up.

Multiplications and additions of a `Matmul` are fused whatever the settings: the order in which a product of matrices
adds up is not specified, and fused sums are closer to the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, INT64, Array, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.regions import THREADS, grid, grid_of_blocks, split32
from parakeet_py.ptx.skeletons.product_operands import Factor, Product, ends_there, flat, zero_of
from parakeet_py.typed_ir.ir import Cast, Const, Operand, Prim, Var

ACROSS = 16  # threads along a side of a tile
MANY_TILES = 264  # large tiles that occupy a GPU; fewer blocks than this share out the depth
PART = 256  # elements of the shared axis that are worth a block of their own
WHOLE = 16  # elements of the shared axis of which parts are multiples
RUN_BYTES = 16


Store = Callable[[Operand, Operand, Operand, Operand], None]  # part, row, column, value
Extents = tuple[Operand, Operand, Operand]  # rows, columns, depth


@record
class _Form:
    """How a block works: `side` x `side` sums for each thread, slices `depth` deep."""

    side: int
    depth: int

    @property
    def tile(self) -> int:
        return self.side * ACROSS


SMALL, LARGE = _Form(4, 16), _Form(8, 8)


def multiply_add(lo: Lowering, left: Operand, right: Operand, total: Operand) -> Var:
    product = lo.let("t", left.type, Prim("mul", (left, right)))
    return lo.let("acc", left.type, Prim("add", (total, product)))


def tiled_product(lo: Lowering, product: Product) -> None:
    """out = left @ right for matrices."""
    rows, columns = product.rows, product.columns
    if product.batch is not None:

        def product_of(number: Operand) -> Product:
            product.bind(lo, number)
            return product

        extents = rows, columns, product.depth
        tiled_batch(lo, extents, product.dtype, product.count(lo), product_of, contract=product.whole)
        return

    def to_out(part: Operand, row: Operand, column: Operand, value: Operand) -> None:
        product.store(lo, row, column, value)

    def small() -> None:
        in_parts(lo, product, SMALL.tile, lambda store, parts: _launch(lo, product, SMALL, store, parts))

    if product.dtype != "float32":
        small()
        return
    enough = lo.compare("ge", tiles_of(lo, rows, columns, LARGE.tile), Const(MANY_TILES // 2, INT64))
    lo.when(enough, lambda: _launch(lo, product, LARGE, to_out, ONE), small)


def tiled_batch(
    lo: Lowering,
    extents: Extents,
    dtype: str,
    count: Operand,
    product_of: Callable[[Operand], Product],
    whole: tuple[Var, Var, Var] | None = None,
    contract: bool = True,
) -> None:
    """Products of so many pairs of matrices of the same extents: each block computes a tile of one of them.
    `product_of` writes, inside of the region, which matrices a number means; `whole` are all of them, for a library."""
    rows, columns, _ = extents

    def launch(form: _Form) -> None:
        tiles = tiles_of(lo, rows, columns, form.tile)

        def body(block: Var, thread: Var) -> None:
            number, tile = split32(lo, block, tiles)
            product = product_of(number)

            def to_out(part: Operand, row: Operand, column: Operand, value: Operand) -> None:
                product.store(lo, row, column, value)

            _Tile(lo, product, form, (None, None), (tile, thread)).run(to_out, ONE, tiles, ONE)

        grid_of_blocks(lo, lo.multiply(tiles, count), "matmul batch", body, contract=contract, product=whole)

    if dtype != "float32":
        launch(SMALL)
        return
    tiles = lo.multiply(tiles_of(lo, rows, columns, LARGE.tile), count)
    large = lo.compare("ge", tiles, Const(MANY_TILES // 2, INT64))
    for extent in (rows, columns):  # a tile that is half empty is no gain
        large = lo.prim("and", large, lo.compare("gt", extent, Const(SMALL.tile, INT64)), type_=BOOL)
    lo.when(large, lambda: launch(LARGE), lambda: launch(SMALL))


def in_parts(lo: Lowering, product: Product, tile: int, launch: Callable[[Store, Operand], None]) -> None:
    """Launch a kernel for the tiles of a product, or one for parts of a long shared axis and one that adds them up."""
    out, rows, columns = product.out, product.rows, product.columns
    room = lo.floor_div(Const(MANY_TILES, INT64), lo.maximum(tiles_of(lo, rows, columns, tile), ONE))
    parts = lo.minimum(lo.floor_div(product.depth, Const(PART, INT64)), room)

    def some() -> None:
        partial = lo.new_array("partial", Array(product.dtype, 3, "C"), (parts, rows, columns))
        launch(lambda part, row, column, value: lo.store(partial, (part, row, column), value), parts)
        _add_up(lo, partial, out, parts)

    several: Operand = lo.compare("gt", parts, ONE)
    if product.whole:  # a library knows better
        offer = lo.let("offered", BOOL, imp.Offered(product.left.array, product.right.array, out))
        several = lo.prim("and", several, lo.prim("not", offer, type_=BOOL), type_=BOOL)

    def whole() -> None:
        launch(lambda part, row, column, value: lo.store(out, (row, column), value), ONE)

    if isinstance(product.depth, Const) and product.depth.whole < 2 * PART:
        whole()
    else:
        lo.when(several, some, whole)


def factors_of(product: Product) -> tuple[Factor, Factor]:
    return product.left, product.right


def _loads_runs(product: Product) -> bool:
    """Whether loads of runs save more than it costs to find them, and to take them apart: slices of both matrices would
    be turned if both lie along the shared axis."""
    factors = factors_of(product)
    if product.dtype == "float64" or 2 * itemsize(product.dtype) > RUN_BYTES:
        return False  # of doubles tensor cores multiply matrices that lie so
    if SMALL.depth * SMALL.tile * itemsize(product.dtype) < RUN_BYTES * THREADS:
        return False  # a slice has fewer runs than there are threads
    if all(factor.along for factor in factors):
        return False
    return all(factor.dtype == product.dtype and array_type(factor.array).layout in "CF" for factor in factors)


def in_whole_runs(lo: Lowering, product: Product) -> Operand:
    """Whether lines of both matrices, which lie without gaps, are of whole runs, and nothing is left out of them."""
    lengths = [
        lo.extent(factor.array, 0 if array_type(factor.array).layout == "F" else 1) for factor in factors_of(product)
    ]
    left, right = (
        _is_multiple(lo, length, factor.dtype) for length, factor in zip(lengths, factors_of(product), strict=True)
    )
    return lo.prim("and", ends_there(lo, product), lo.prim("and", left, right, type_=BOOL), type_=BOOL)


def _is_multiple(lo: Lowering, count: Operand, dtype: str) -> Operand:
    """Whether so many elements are whole runs."""
    rest = lo.prim("and", count, Const(RUN_BYTES // itemsize(dtype) - 1, INT64))
    return lo.compare("eq", rest, ZERO)


def tiles_of(lo: Lowering, rows: Operand, columns: Operand, down: int, across: int | None = None) -> Operand:
    """Tiles of `down` rows and `across` columns, or as many."""
    tiles = Const(down, INT64), Const(down if across is None else across, INT64)
    return lo.multiply(lo.ceil_div(rows, tiles[0]), lo.ceil_div(columns, tiles[1]))


def _add_up(lo: Lowering, partial: Var, out: Var, parts: Operand) -> None:
    zero = zero_of(array_type(out).dtype)
    rows, columns = lo.extent(out, 0), lo.extent(out, 1)

    def element(number: Var) -> None:
        row = lo.floor_div(number, lo.maximum(columns, ONE))
        column = lo.subtract(number, lo.multiply(row, columns))
        total, part = lo.declare("acc", zero.type, zero), lo.index("part")

        def one() -> None:
            value = lo.load(partial, part, row, column)
            lo.write(total, lo.let("acc", zero.type, Prim("add", (lo.read(total), value))))

        lo.loop(part, ZERO, parts, one)
        lo.store(out, (row, column), lo.read(total))

    grid(lo, lo.multiply(rows, columns), "matmul last", element)


def _launch(lo: Lowering, product: Product, form: _Form, store: Store, parts: Operand) -> None:
    tiles = tiles_of(lo, product.rows, product.columns, form.tile)
    share = share_of(lo, product.depth, parts, WHOLE)

    def launch(by_runs: bool) -> None:
        lines = [flat(lo, factor) if by_runs else None for factor in factors_of(product)]

        def body(block: Var, thread: Var) -> None:
            _Tile(lo, product, form, lines, (block, thread)).run(store, parts, tiles, share)

        name = "matmul by runs" if by_runs else "matmul"
        launch_tiles(lo, product, name, lo.multiply(tiles, parts), parts, body)

    if _loads_runs(product):
        lo.when(in_whole_runs(lo, product), lambda: launch(True), lambda: launch(False))
    else:
        launch(False)


def share_of(lo: Lowering, depth: Operand, parts: Operand, multiple: int) -> Operand:
    """Elements of the shared axis that each part has, but for the last ones: a multiple of so many."""
    if parts is ONE:
        return ONE
    whole = Const(multiple, INT64)
    return lo.multiply(lo.ceil_div(lo.ceil_div(depth, parts), whole), whole)


def launch_tiles(
    lo: Lowering, product: Product, name: str, blocks: Operand, parts: Operand, body: Callable[[Var, Var], None]
) -> None:
    """A region for the tiles of a product."""
    whole = product.whole and parts is ONE and product.batch is None
    matrices = (product.left.array, product.right.array, product.out) if whole else None
    name = name if parts is ONE else f"{name} parts"
    grid_of_blocks(lo, blocks, name, body, contract=product.whole, product=matrices)


class _Tile:
    """What a thread does; `lines`: the matrices as `flat` gives them, if they are loaded by runs."""

    def __init__(
        self,
        lo: Lowering,
        product: Product,
        form: _Form,
        lines: Sequence[tuple[Var, Operand] | None],
        lane: tuple[Operand, Var],
    ) -> None:
        self.lo, self.product, self.form, self.lines = lo, product, form, lines
        self.block, self.thread = lane
        self.dtype = product.dtype
        self.zero = zero_of(self.dtype)
        self.run_length = max(1, min(form.side, RUN_BYTES // itemsize(self.dtype)))
        self.rows, self.columns, self.depth = product.rows, product.columns, product.depth

    def run(self, store: Store, parts: Operand, tiles: Operand, share: Operand) -> None:
        lo, form = self.lo, self.form
        side = Const(form.tile, INT64)
        part, number = (ZERO, self.block) if parts is ONE else split32(lo, self.block, tiles)
        tile_row, tile_column = split32(lo, number, lo.ceil_div(self.columns, side))
        top, start = lo.multiply(tile_row, side), lo.multiply(tile_column, side)
        if parts is not ONE and any(self.lines):  # the host has seen that it is of whole runs: now LLVM sees it, too
            run = Const(RUN_BYTES // itemsize(self.dtype), INT64)
            share = lo.multiply(lo.floor_div(share, run), run)
        first = lo.multiply(part, share)
        self.stop = lo.minimum(lo.add(first, share), self.depth) if parts is not ONE else self.depth
        # rows are 16 bytes longer than the tile: threads that store a column do not meet in one bank
        pitch = form.tile + max(1, RUN_BYTES // itemsize(self.dtype))
        self.pitch = Const(pitch, INT64)
        extents = (Const(form.depth * pitch, INT64),)
        lefts, rights = (
            lo.let(name, Array(self.dtype, 1, "C"), imp.NewArray(extents, "shared")) for name in ("lefts", "rights")
        )
        y = lo.floor_div(self.thread, Const(ACROSS, INT64))
        x = lo.prim("and", self.thread, Const(ACROSS - 1, INT64))
        sums = [[lo.declare("acc", self.zero.type, self.zero) for _ in self._runs(x)] for _ in self._runs(y)]
        base = lo.declare("k", INT64, first)

        def fetch(at: Operand) -> list[tuple[Var, tuple[Operand, Operand], Cell]]:
            found = []
            sides = (lefts, (top, self.rows)), (rights, (start, self.columns))
            for factor, line, (target, limits) in zip(factors_of(self.product), self.lines, sides, strict=True):
                if line is None:
                    found += self._fetch(factor, target, at, limits)
                else:
                    found += self._fetch_runs(factor, line, target, at, limits)
            return found

        staged = fetch(first)
        lo.push()
        going = lo.compare("lt", lo.read(base), self.stop)
        head = lo.pop()
        lo.push()
        for target, (deep, other), cell in staged:
            lo.store(target, (lo.add(lo.multiply(deep, self.pitch), other),), lo.read(cell))
        lo.emit(imp.Barrier("block"))
        later = lo.add(lo.read(base), Const(form.depth, INT64))
        for (_, _, cell), (_, _, fresh) in zip(staged, fetch(later), strict=True):
            lo.write(cell, lo.read(fresh))
        k = lo.index("k")

        def multiply() -> None:
            down, across = (self._loaded(matrix, k, thread) for matrix, thread in ((lefts, y), (rights, x)))
            for row, one in zip(sums, down, strict=True):
                for cell, other in zip(row, across, strict=True):
                    lo.write(cell, multiply_add(lo, one, other, lo.read(cell)))

        lo.loop(k, ZERO, Const(form.depth, INT64), multiply)
        lo.emit(imp.Barrier("block"))
        lo.write(base, later)
        lo.emit(imp.While(head, going, lo.pop()))
        for row, down_ in zip(sums, self._runs(y), strict=True):
            for cell, across_ in zip(row, self._runs(x), strict=True):
                self._leave(store, part, lo.add(top, down_), lo.add(start, across_), cell)

    def _leave(self, store: Store, part: Operand, row: Operand, column: Operand, cell: Cell) -> None:
        lo = self.lo
        inside = lo.prim("and", lo.compare("lt", row, self.rows), lo.compare("lt", column, self.columns), type_=BOOL)
        lo.when(inside, lambda: store(part, row, column, lo.read(cell)))

    def _own(self, thread: Operand) -> tuple[Operand, list[Operand]]:
        """The elements of a tile's side that a thread of a side has: the first, and how far behind it they are. Runs of
        16 bytes."""
        length = self.run_length
        distances = [
            Const(run * ACROSS * length + element, INT64)
            for run in range(self.form.side // length)
            for element in range(length)
        ]
        return self.lo.multiply(thread, Const(length, INT64)), list(distances)

    def _runs(self, thread: Operand) -> Sequence[Operand]:
        """The same as places."""
        own, distances = self._own(thread)
        return [self.lo.add(own, distance) for distance in distances]

    def _loaded(self, matrix: Var, k: Operand, thread: Operand) -> list[Operand]:
        """What a thread takes of a line of a slice. The distances come last, or LLVM would not see neighbours in them:
        it has (thread >> 3) | 1 for what follows 2 * (thread >> 4)."""
        lo = self.lo
        own, distances = self._own(thread)
        first = lo.add(lo.multiply(k, self.pitch), own)
        return [lo.load(matrix, lo.add(first, distance)) for distance in distances]

    def _fetch(
        self, factor: Factor, target: Var, at: Operand, limits: tuple[Operand, Operand]
    ) -> list[tuple[Var, tuple[Operand, Operand], Cell]]:
        """Start to load a slice; gives what goes where in shared memory: (along the shared axis, along the other)."""
        lo, form, along = self.lo, self.form, factor.along
        start, limit = limits
        found = []
        for part in range(form.depth * form.tile // THREADS):
            number = lo.add(self.thread, Const(part * THREADS, INT64))
            fast, slow = (form.depth, form.tile) if along else (form.tile, form.depth)
            assert fast * slow == form.depth * form.tile
            outer = lo.floor_div(number, Const(fast, INT64))
            inner = lo.prim("and", number, Const(fast - 1, INT64))
            deep, other = (inner, outer) if along else (outer, inner)
            k, place = lo.add(at, deep), lo.add(start, other)
            cell = lo.declare("value", self.zero.type, self.zero)
            inside = lo.prim("and", lo.compare("lt", k, self.stop), lo.compare("lt", place, limit), type_=BOOL)
            indices = factor.place(lo, place, k)

            def get(cell: Cell = cell, indices: tuple[Operand, ...] = indices) -> None:
                found = lo.load(factor.array, *indices)
                lo.write(cell, found if factor.dtype == self.dtype else lo.let("value", self.zero.type, Cast(found)))

            lo.when(inside, get)
            found.append((target, (deep, other), cell))
        return found

    def _fetch_runs(
        self,
        factor: Factor,
        line: tuple[Var, Operand],
        target: Var,
        at: Operand,
        limits: tuple[Operand, Operand],
    ) -> list[tuple[Var, tuple[Operand, Operand], Cell]]:
        """The same by runs of 16 bytes: those that begin inside the matrix end there."""
        lo, form, along = self.lo, self.form, factor.along
        start, limit = limits
        elements, length = line
        run = RUN_BYTES // itemsize(self.dtype)
        runs = lo.floor_div(length, Const(run, INT64))  # of a line of the matrix
        fast, slow = (form.depth, form.tile) if along else (form.tile, form.depth)
        found = []
        for part in range(fast * slow // run // THREADS):
            number = lo.add(self.thread, Const(part * THREADS, INT64))
            outer = lo.floor_div(number, Const(fast // run, INT64))
            own = lo.multiply(lo.prim("and", number, Const(fast // run - 1, INT64)), Const(run, INT64))
            deep, other = (own, outer) if along else (outer, own)
            k, place = lo.add(at, deep), lo.add(start, other)
            row, column = (place, k) if along else (k, place)
            cells = [lo.declare("value", self.zero.type, self.zero) for _ in range(run)]
            inside = lo.prim("and", lo.compare("lt", k, self.stop), lo.compare("lt", place, limit), type_=BOOL)

            def get(cells: list[Cell] = cells, row: Operand = row, column: Operand = column) -> None:
                place = lo.add(lo.multiply(row, runs), lo.floor_div(column, Const(run, INT64)))
                first = lo.multiply(place, Const(run, INT64))
                for element, cell in enumerate(cells):
                    lo.write(cell, lo.load(elements, lo.add(first, Const(element, INT64))))

            lo.when(inside, get)
            for element, cell in enumerate(cells):
                here = lo.add(own, Const(element, INT64))
                found.append((target, (here, outer) if along else (outer, here), cell))
        return found
