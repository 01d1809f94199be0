"""Functions of elements over broadcast arrays: one `Map` for each operation.

`generate` makes arrays from a function of the index, `elementwise` from a scalar function of broadcast arguments. The
result's axes are in memory as NumPy would lay them out. Fusing the `Map`s is the passes' work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from parakeet_py.base.types import Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays.axis_order import Order, canonical, inverse, merged_order
from parakeet_py.typed_ir.specialize.arrays.views import transpose
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

Body = Callable[[list[ir.Operand]], Sequence[ir.Operand]]


def shape_text(rank: int, first: int) -> str:
    """A shape as NumPy prints it, with format fields numbered from `first`."""
    if rank == 1:
        return f"({{{first}}},)"
    return "(" + ",".join(f"{{{first + axis}}}" for axis in range(rank)) + ")"


def broadcast_extents(
    s: Context, arrays: Sequence[ArrayV], named: Sequence[Value] = (), *, indices: bool = False
) -> tuple[tuple[ir.Operand, ...], tuple[bool, ...]]:
    """The broadcast shape of arrays (with the check that there is one) and which extents are known not to be 1.

    `named` are all operands that the error message names, if these are more (scalars, the output of an in-place
    operation); `indices` says that it is index arrays that are broadcast.
    """
    b = s.builder
    rank = max(array.rank for array in arrays)
    extents: list[ir.Operand] = []
    nonunits: list[bool] = []
    for axis in range(rank):
        extent: ir.Operand = ONE
        nonunit = False
        for array in arrays:
            own = axis - (rank - array.rank)
            if own < 0:
                continue
            other, other_nonunit = array.extents[own], array.is_nonunit(own)
            if other == ONE:
                continue
            if extent == ONE:
                extent, nonunit = other, other_nonunit
            elif b.same(extent, other):
                nonunit = nonunit or other_nonunit
            else:
                agree = b.prim("eq", extent, other)
                if not other_nonunit:
                    agree = b.logical_or(agree, b.prim("eq", other, ONE))
                if not nonunit:
                    agree = b.logical_or(agree, b.prim("eq", extent, ONE))
                _check_broadcast(s, agree, named or arrays, indices)
                if nonunit and other_nonunit:
                    b.learn_equal(extent, other)
                elif nonunit:
                    pass
                elif other_nonunit:
                    extent, nonunit = other, True
                else:
                    merged = b.select(b.prim("eq", extent, ONE), other, extent)
                    b.as_count(merged)
                    extent = merged
        extents.append(extent)
        nonunits.append(nonunit)
    return tuple(extents), tuple(nonunits)


def _check_broadcast(s: Context, agree: ir.Operand, operands: Sequence[Value], indices: bool) -> None:
    args: list[ir.Operand] = []
    shapes = []
    for operand in operands:
        extents = operand.extents if isinstance(operand, ArrayV) else ()
        shapes.append(shape_text(len(extents), len(args)))
        args.extend(extents)
    what = "shape mismatch: indexing arrays" if indices else "operands"
    message = f"{what} could not be broadcast together with shapes {' '.join(shapes)} "
    s.check(agree, "IndexError" if indices else "ValueError", message, args)


def load_broadcast(
    s: Context, array: ArrayV, indices: Sequence[ir.Operand], extents: Sequence[ir.Operand]
) -> ir.Operand:
    """The element of `array` at a point of a broadcast index space (called while the body is open)."""
    b = s.builder
    own: list[ir.Operand] = []
    for axis, extent in enumerate(array.extents):
        index = indices[len(indices) - array.rank + axis]
        target = extents[len(extents) - array.rank + axis]
        if extent == ONE:
            own.append(ZERO)
        elif array.is_nonunit(axis) or b.same(extent, target):
            own.append(index)
        else:
            own.append(b.select(b.prim("eq", extent, ONE), ZERO, index))
    return b.emit1(ir.Load(array.var, tuple(own)), Scalar(array.dtype))


def generate(
    s: Context,
    extents: Sequence[ir.Operand],
    body: Callable[[tuple[ir.Var, ...]], Sequence[ir.Operand]],
    *,
    order: Order = (),
    nonunit: tuple[bool, ...] = (),
) -> list[ArrayV]:
    """New arrays from a function of the index, with their axes in this order in memory."""
    b = s.builder
    extents = tuple(extents)
    rank = len(extents)
    indices = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(extents))
    with b.block() as statements:
        results = tuple(body(indices))
    order = order or tuple(range(rank))
    op = ir.Map(
        tuple(extents[axis] for axis in order),
        tuple(indices[axis] for axis in order),
        ir.Block(tuple(statements), results),
    )
    outs = b.emit(op, *(Array(ir.dtype_of(result), rank, "C") for result in results), name="map")
    made = []
    for out in outs:
        root = s.memory.new_root()
        array = ArrayV(out, op.extents, frozenset({root}), nonunit=tuple(nonunit[a] for a in order) if nonunit else ())
        made.append(transpose(s, array, inverse(order)) if canonical(order) else array)
    return made


def elementwise(s: Context, body: Body, args: Sequence[Value], out: ArrayV | None = None) -> list[Value]:
    """Apply a scalar function to broadcast arguments; 0-d arrays and scalars give NumPy scalars.

    `out` is the only array that the result is for, where `fit_outputs` has checked it. If it is an argument, too, the
    result has its shape, and each element comes from that same element of it: the operation can be done in place.
    """
    arrays = [arg for arg in args if isinstance(arg, ArrayV)]
    if all(array.rank == 0 for array in arrays):
        return [ScalarV(result) for result in body([scalar_operand(s, arg) for arg in args])]
    if out is not None and any(array.var is out.var for array in arrays):
        extents, nonunit = out.extents, tuple(out.is_nonunit(axis) for axis in range(out.rank))
    else:
        extents, nonunit = broadcast_extents(s, arrays, args)
    order = merged_order(s.builder, arrays, len(extents))

    def point(indices: tuple[ir.Var, ...]) -> Sequence[ir.Operand]:
        operands = []
        for arg in args:
            if isinstance(arg, ArrayV):
                operands.append(load_broadcast(s, arg, indices, extents))
            else:
                operands.append(scalar_operand(s, arg))
        return body(operands)

    return list(generate(s, extents, point, order=order, nonunit=nonunit))


def scalar_operand(s: Context, value: Value) -> ir.Operand:
    """The operand of a scalar or 0-d array."""
    match value:
        case ScalarV(operand):
            return operand
        case ArrayV(rank=0):
            return s.builder.emit1(ir.Load(value.var, ()), Scalar(value.dtype))
        case _:
            raise s.unsupported(f"a scalar is needed here, not {s.describe(value)}")
