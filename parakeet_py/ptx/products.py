"""Matrix products on a GPU.

Two matrices: every block computes a tile of `TILE` x `TILE` elements of the result; it brings slices of `DEPTH` columns
of the left and rows of the right matrix into shared memory, and each of its threads keeps 4 x 4 sums in registers. A
matrix and a vector: a reduction along the shared axis.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.imp import ir as imp
from parakeet_py.imp.builder import Lowering
from parakeet_py.imp.writer import ZERO, array_type
from parakeet_py.ptx.reductions import lower_reduce
from parakeet_py.ptx.regions import THREADS, grid_of_blocks
from parakeet_py.typed_ir.ir import Block, Const, Lambda, Let, Load, Matmul, Operand, Prim, Reduce, Var
from parakeet_py.typed_ir.types import BOOL, INT64, Array, Scalar, Type, is_complex

TILE, DEPTH, SIDE = 64, 16, 4  # of the result, along the shared axis, of a thread
ACROSS = TILE // SIDE  # threads along a side of a tile


def lower_matmul(lo: Lowering, outs: tuple[Var, ...], op: Matmul) -> None:
    """A matrix product as GPU regions; inside of others, loops."""
    if lo.hidden is not None and not lo.hidden(op.out):
        return
    left, right, out = (lo.array(var) for var in (op.left, op.right, op.out))
    if lo.in_region:
        _loops(lo, left, right, out)
    elif array_type(out).rank == 2:
        _tiles(lo, left, right, out)
    else:
        _by_vector(lo, left, right, out)


def _zero(dtype: str) -> Const:
    return Const(0j if is_complex(dtype) else 0.0, Scalar(dtype))


def _loops(lo: Lowering, left: Var, right: Var, out: Var) -> None:
    """One thread computes everything."""
    rank, zero = array_type(out).rank, _zero(array_type(out).dtype)
    rows, columns = array_type(left).rank == 2, array_type(right).rank == 2
    indices = [lo.index("i") for _ in range(rank)]

    def element() -> None:
        total, k = lo.declare("acc", zero.type, zero), lo.index("k")

        def step() -> None:
            first = lo.load(left, *((indices[0], k) if rows else (k,)))
            second = lo.load(right, *((k, indices[-1]) if columns else (k,)))
            lo.write(total, _add(lo, lo.read(total), _multiply(lo, first, second)))

        lo.loop(k, ZERO, lo.extent(left, array_type(left).rank - 1), step)
        lo.store(out, indices, lo.read(total))

    def nest(position: int) -> None:
        if position == rank:
            element()
        else:
            lo.loop(indices[position], ZERO, lo.extent(out, position), lambda: nest(position + 1))

    nest(0)


def _multiply(lo: Lowering, left: Operand, right: Operand) -> Var:
    return lo.let("t", left.type, Prim("mul", (left, right)))


def _add(lo: Lowering, left: Operand, right: Operand) -> Var:
    return lo.let("acc", left.type, Prim("add", (left, right)))


# ---- matrix and vector -----------------------------------------------------------------------------------------------


def _by_vector(lo: Lowering, left: Var, right: Var, out: Var) -> None:
    kind: Type = Scalar(array_type(out).dtype)
    place, k = Var("i", INT64), Var("k", INT64)
    first, second, product, old, new, total = (Var(name, kind) for name in ("x", "y", "xy", "old", "new", "sum"))
    rows = array_type(left).rank == 2
    body = Block(
        (
            Let((first,), Load(left, (place, k) if rows else (k,)), lo.pos),
            Let((second,), Load(right, (k,) if rows else (k, place)), lo.pos),
            Let((product,), Prim("mul", (first, second)), lo.pos),
        ),
        (product,),
    )
    add = Lambda((old, new), Block((Let((total,), Prim("add", (old, new)), lo.pos),), (total,)))
    extent = lo.extent(out, 0)
    inner = lo.extent(left, 1 if rows else 0)
    result = Var("product", Array(array_type(out).dtype, 1, "C"))
    lo.used.add(result)
    reduce = Reduce((extent,), (place,), (inner,), (k,), body, (_zero(array_type(out).dtype),), add)
    lower_reduce(lo, (result,), reduce)
    # the reduction makes its own memory: copy what it found
    from parakeet_py.ptx.regions import grid

    grid(lo, extent, "copy", lambda number: lo.store(out, (number,), lo.load(lo.array(result), number)))


# ---- two matrices ----------------------------------------------------------------------------------------------------


def _tiles(lo: Lowering, left: Var, right: Var, out: Var) -> None:
    dtype = array_type(out).dtype
    zero = _zero(dtype)
    rows, columns, depth = lo.extent(out, 0), lo.extent(out, 1), lo.extent(left, 1)
    side = Const(TILE, INT64)
    across = lo.ceil_div(columns, side)

    def tile(block: Var, thread: Var) -> None:
        tile_row = lo.floor_div(block, lo.maximum(across, Const(1, INT64)))
        tile_column = lo.subtract(block, lo.multiply(tile_row, across))
        top, start = lo.multiply(tile_row, side), lo.multiply(tile_column, side)
        # a row more than the depth, so that threads that store a column do not meet in one bank
        shared = [
            lo.let(name, Array(dtype, 2, "C"), imp.NewArray((Const(DEPTH, INT64), Const(TILE + 1, INT64)), "shared"))
            for name in ("lefts", "rights")
        ]
        y = lo.floor_div(thread, Const(ACROSS, INT64))
        x = lo.subtract(thread, lo.multiply(y, Const(ACROSS, INT64)))
        sums = [[lo.declare("acc", zero.type, zero) for _ in range(SIDE)] for _ in range(SIDE)]
        base = lo.index("k")

        def bring(array: Var, target: Var, row_of: Operand, limit: Operand, column_first: bool) -> None:
            """Copy a slice of a matrix to shared memory, as target[along the shared axis, along the other]."""
            for part in range(DEPTH * TILE // THREADS):
                number = lo.add(thread, Const(part * THREADS, INT64))
                if column_first:  # neighbours along the shared axis
                    other = lo.floor_div(number, Const(DEPTH, INT64))
                    inner = lo.subtract(number, lo.multiply(other, Const(DEPTH, INT64)))
                else:
                    inner = lo.floor_div(number, side)
                    other = lo.subtract(number, lo.multiply(inner, side))
                along, across_ = lo.add(base, inner), lo.add(row_of, other)
                value = lo.declare("value", zero.type, zero)
                inside = lo.prim("and", lo.compare("lt", along, depth), lo.compare("lt", across_, limit), type_=BOOL)
                at: Sequence[Operand] = (across_, along) if column_first else (along, across_)
                lo.when(inside, lambda array=array, at=at, value=value: lo.write(value, lo.load(array, *at)))  # type: ignore[misc]
                lo.store(target, (inner, other), lo.read(value))

        def step() -> None:
            bring(left, shared[0], top, rows, True)
            bring(right, shared[1], start, columns, False)
            lo.emit(imp.Barrier("block"))
            k = lo.index("k")

            def multiply() -> None:
                lefts = [
                    lo.load(shared[0], k, lo.add(lo.multiply(y, Const(SIDE, INT64)), _int(i))) for i in range(SIDE)
                ]
                rights = [lo.load(shared[1], k, lo.add(x, _int(ACROSS * j))) for j in range(SIDE)]
                for i in range(SIDE):
                    for j in range(SIDE):
                        lo.write(sums[i][j], _add(lo, lo.read(sums[i][j]), _multiply(lo, lefts[i], rights[j])))

            lo.loop(k, ZERO, Const(DEPTH, INT64), multiply)
            lo.emit(imp.Barrier("block"))

        lo.loop(base, ZERO, depth, step, "serial", Const(DEPTH, INT64))
        for i in range(SIDE):
            row = lo.add(top, lo.add(lo.multiply(y, Const(SIDE, INT64)), _int(i)))
            for j in range(SIDE):
                column = lo.add(start, lo.add(x, _int(ACROSS * j)))
                inside = lo.prim("and", lo.compare("lt", row, rows), lo.compare("lt", column, columns), type_=BOOL)
                lo.when(
                    inside,
                    lambda row=row, column=column, i=i, j=j: lo.store(out, (row, column), lo.read(sums[i][j])),  # type: ignore[misc]
                )

    grid_of_blocks(lo, lo.multiply(lo.ceil_div(rows, side), across), "matmul", tile)


def _int(value: int) -> Const:
    return Const(value, INT64)
