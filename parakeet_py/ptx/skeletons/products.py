"""Matrix products on a GPU.

Two matrices: see `tiled_products` and `tensor_core_products`. Many pairs of matrices, which a map goes through: tiles
of all of them in one launch. A matrix and a vector: a reduction along the shared axis. Inside a thread: loops.
"""

from __future__ import annotations

from collections.abc import Callable

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import INT64, Array, Scalar, Type
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.loops import axes_of
from parakeet_py.imp.writer import ZERO, array_type
from parakeet_py.ptx.kernels.regions import grid, unravel, walked
from parakeet_py.ptx.skeletons.product_operands import Factor, Product, of_matmul, zero_of
from parakeet_py.ptx.skeletons.reductions import lower_reduce
from parakeet_py.ptx.skeletons.tensor_core_products import lower_product
from parakeet_py.ptx.skeletons.tiled_products import multiply_add, tiled_batch
from parakeet_py.typed_ir.ir import (
    Block,
    Const,
    Lambda,
    Let,
    Load,
    Map,
    Matmul,
    Operand,
    Prim,
    Reduce,
    Var,
    View,
    ViewAxis,
)

OF_LIBRARIES = frozenset(("float32", "float64", "complex64", "complex128"))  # dtypes whose batches they multiply
_STILL, _ONE = Const(0, INT64), Const(1, INT64)
SLIM = 8  # the least extent from which a block computes a product of a batch


def lower_matmul(lo: Lowering, outs: tuple[Var, ...], op: Matmul, tf32: bool = False) -> None:
    """A matrix product as GPU regions; inside of others, loops. `tf32`: tensor cores may do those of float32."""
    if lo.hidden is not None and not lo.hidden(op.out):
        return
    left, right, out = (lo.array(var) for var in (op.left, op.right, op.out))
    if lo.in_region:
        _loops(lo, left, right, out)
    elif array_type(out).rank == 2:
        lower_product(lo, of_matmul(lo, op), tf32)
    else:
        _by_vector(lo, left, right, out)


# ---- a map over products ---------------------------------------------------------------------------------------------


@record
class Batch:
    """A map that does nothing but multiply matrices, one pair for each point; `views` say which."""

    views: tuple[Let, ...]
    product: Matmul
    extents: tuple[Operand, Operand, Operand]  # rows, columns, depth


def batch_of(op: Map) -> Batch | None:
    """A map as products of pairs of matrices; None if it is none, or extents differ from pair to pair."""
    *views, last = op.body.statements or (None,)
    if last is None or not isinstance(last.op, Matmul) or op.body.results:
        return None
    product = last.op
    known = {let.outs[0]: let.op for let in views if isinstance(let.op, View)}
    matrices = product.left, product.right, product.out
    if len(known) != len(views) or any(array_type(array).rank != 2 for array in matrices):
        return None
    if any(view.base in known for view in known.values()) or product.out not in known:
        return None
    inside = {*op.indices, *known}
    if any(axis.extent in inside for view in known.values() for axis in view.axes):
        return None
    rows, columns = (axis.extent for axis in known[product.out].axes)
    shared = (product.left, 1), (product.right, 0)
    depths = [known[array].axes[axis].extent for array, axis in shared if array in known]
    return Batch(tuple(views), product, (rows, columns, depths[0])) if depths else None


def _side(op: Map, batch: Batch, array: Var, rows: Operand, columns: Operand) -> View | None:
    """One matrix of each pair as one array with the axes of the map in front, along which it may stand still; None if
    that is no view."""
    found = next((let.op for let in batch.views if array in let.outs), None)
    across = {index: ViewAxis(None, extent, _STILL) for index, extent in zip(op.indices, op.extents, strict=True)}
    if found is None:  # the same for all
        axes = ViewAxis(0, rows, _ONE), ViewAxis(1, columns, _ONE)
        return View(array, (_STILL, _STILL), (*across.values(), *axes))
    assert isinstance(found, View)
    starts = list(found.starts)
    for axis, start in enumerate(starts):
        if start not in across:
            continue
        assert isinstance(start, Var)
        if across[start].source is not None or any(one.source == axis for one in found.axes):
            return None
        across[start] = ViewAxis(axis, across[start].extent, _ONE)
        starts[axis] = _STILL
    return View(found.base, tuple(starts), (*across.values(), *found.axes))


def _whole(lo: Lowering, op: Map, batch: Batch) -> tuple[Var, Var, Var] | None:
    """All left, right and resulting matrices as one array each, for a library of the device."""
    rows, columns, depth = batch.extents
    product = batch.product
    dtypes = {array_type(array).dtype for array in (product.left, product.right, product.out)}
    if len(dtypes) > 1 or not dtypes <= OF_LIBRARIES:
        return None
    sides = (product.left, rows, depth), (product.right, depth, columns), (product.out, rows, columns)
    made: list[Var] = []
    for array, down, across in sides:
        view = _side(op, batch, array, down, across)
        if view is None:
            return None
        kind = Array(array_type(array).dtype, len(op.indices) + 2, "A")
        made.append(Var("matrices", kind))
        lo.lower_block(Block((Let((made[-1],), view, lo.pos),), ()))
    left, right, out = map(lo.array, made)
    return left, right, out


def lower_batch(lo: Lowering, op: Map, batch: Batch, apart: Callable[[], None]) -> None:
    """Products of many pairs of matrices as one region; slim ones `apart`, each by one thread."""
    extents = lo.operands(op.extents)
    rows, columns, depth = lo.operands(batch.extents)
    axes = walked(lo, axes_of(op.indices, extents))

    def product_of(number: Operand) -> Product:
        unravel(lo, axes, number, True)
        lo.lower_block(Block(batch.views, ()))
        left, right, out = (lo.array(array) for array in (batch.product.left, batch.product.right, batch.product.out))
        return Product(Factor(left, False), Factor(right, True), out, rows, columns, depth, True)

    def together() -> None:
        dtype = array_type(batch.product.out).dtype
        tiled_batch(lo, (rows, columns, depth), dtype, lo.product(extents), product_of, _whole(lo, op, batch))

    least = lo.minimum(rows, lo.minimum(columns, depth))
    lo.when(lo.compare("ge", least, Const(SLIM, INT64)), together, apart)


# ---- in a thread -----------------------------------------------------------------------------------------------------


def _loops(lo: Lowering, left: Var, right: Var, out: Var) -> None:
    """One thread computes everything."""
    rank, zero = array_type(out).rank, zero_of(array_type(out).dtype)
    rows, columns = array_type(left).rank == 2, array_type(right).rank == 2
    indices = [lo.index("i") for _ in range(rank)]

    def element() -> None:
        total, k = lo.declare("acc", zero.type, zero), lo.index("k")

        def step() -> None:
            first = lo.load(left, *((indices[0], k) if rows else (k,)))
            second = lo.load(right, *((k, indices[-1]) if columns else (k,)))
            lo.write(total, multiply_add(lo, first, second, lo.read(total)))

        lo.loop(k, ZERO, lo.extent(left, array_type(left).rank - 1), step)
        lo.store(out, indices, lo.read(total))

    def nest(position: int) -> None:
        if position == rank:
            element()
        else:
            lo.loop(indices[position], ZERO, lo.extent(out, position), lambda: nest(position + 1))

    nest(0)


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
    reduce = Reduce((extent,), (place,), (inner,), (k,), body, (zero_of(array_type(out).dtype),), add)
    lower_reduce(lo, (result,), reduce)
    # the reduction makes its own memory: copy what it found
    grid(lo, extent, "copy", lambda number: lo.store(out, (number,), lo.load(lo.array(result), number)))
