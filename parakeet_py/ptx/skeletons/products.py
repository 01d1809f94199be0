"""Matrix products on a GPU.

Two matrices: see `tiled_products` and `tensor_core_products`. A matrix and a vector: a reduction along the shared axis.
Inside a thread: loops.
"""

from __future__ import annotations

from parakeet_py.base.types import INT64, Array, Scalar, Type
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.writer import ZERO, array_type
from parakeet_py.ptx.kernels.regions import grid
from parakeet_py.ptx.skeletons.product_operands import of_matmul, zero_of
from parakeet_py.ptx.skeletons.reductions import lower_reduce
from parakeet_py.ptx.skeletons.tensor_core_products import lower_product
from parakeet_py.ptx.skeletons.tiled_products import multiply_add
from parakeet_py.typed_ir.ir import Block, Lambda, Let, Load, Matmul, Prim, Reduce, Var


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
