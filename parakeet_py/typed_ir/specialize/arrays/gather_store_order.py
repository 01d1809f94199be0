"""In which order `x[integer arrays] = values` stores: of several stores to one element the last one stays.

NumPy iterates over the broadcast index arrays in their own order in memory ("K" order), together with the values, where
the index leaves no other axes or only axes of extent 1; and in C order where each index selects several elements. Its
iterator goes backwards along an axis along which some operand goes backwards and none goes forwards, except for one
index array with one axis. Index arrays and values that overlap the target are copied first, which changes their order;
here it is only known whether they may. Where the order is not known for certain, Python has to run it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import Builder
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays.axis_order import Order, canonical, sorted_axes, stride_ranks
from parakeet_py.typed_ir.specialize.values import ArrayV

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


@record
class _Operand:
    """What the iterator sees of an array along the index axes: numbers ordered as its strides (0: none is known), in
    each way in which the array may come, and whether the strides may be negative."""

    strides: tuple[tuple[int, ...], ...]
    may_descend: tuple[bool, ...]


def order_of(
    s: Context,
    target: ArrayV,
    gathers: Sequence[ArrayV],
    value: ArrayV,
    shape: Sequence[tuple[ir.Operand, bool]],
    index_axes: Sequence[int],
) -> Order:
    """The axes of the index's result from the slowest to the fastest, empty for C order.

    `shape` gives their extents, and whether these are known to differ from 1; `index_axes` are those of the broadcast
    index arrays.
    """
    kept = [axis for axis in range(len(shape)) if axis not in index_axes]
    if all(extent == ONE for extent in value.extents) or any(shape[axis][1] for axis in kept):
        return ()  # one value for all, or C order
    b, depth = s.builder, len(index_axes)
    operands = [_operand(b, target, gather, depth, range(depth)) for gather in gathers]
    operands.append(_operand(b, target, value, len(shape), index_axes))
    orders = {sorted_axes(ways, depth) for ways in itertools.product(*(operand.strides for operand in operands))}
    if any(shape[axis][0] != ONE for axis in kept):
        orders.add(())
    if len(orders) > 1:
        raise s.hand_back("stores by index arrays in an order that depends on extents or overlap")
    if (depth > 1 or len(gathers) > 1) and any(_may_be_backwards(operands, axis) for axis in range(depth)):
        raise s.hand_back("stores by index arrays that may run backwards")
    order = orders.pop()
    return canonical([*(index_axes[axis] for axis in order), *kept]) if order else ()


def _operand(b: Builder, target: ArrayV, array: ArrayV, rank: int, axes: Sequence[int]) -> _Operand:
    own = stride_ranks(b, array, rank)
    ways = {tuple(own[axis] for axis in axes)}
    if array.roots & target.roots and array.order:
        copied = [*([0] * (rank - array.rank)), *(array.rank - axis for axis in range(array.rank))]
        ways.add(tuple(copied[axis] * (own[axis] > 0) for axis in axes))
    first = rank - array.rank
    descends = tuple(axis >= first and _may_descend(b, array.var, axis - first) for axis in axes)
    return _Operand(tuple(ways), descends)


def _may_be_backwards(operands: Sequence[_Operand], axis: int) -> bool:
    """Is there an operand that may run backwards along an index axis, and none that is known to run forwards?"""
    forwards = any(way[axis] and not operand.may_descend[axis] for operand in operands for way in operand.strides)
    return not forwards and any(operand.may_descend[axis] for operand in operands)


def _may_descend(b: Builder, array: ir.Var, axis: int) -> bool:
    """May the stride of this axis be negative?"""
    kind = array.type
    assert isinstance(kind, Array)
    if kind.layout in ("C", "F") or (kind.layout == "S" and axis == kind.rank - 1):
        return False
    view = b.definition.get(array)
    if not isinstance(view, ir.View):
        return True
    shown = view.axes[axis]
    if shown.source is None or shown.step == ZERO:
        return False
    descends = not isinstance(shown.step, ir.Const) or shown.step.value.real < 0
    return descends or _may_descend(b, view.base, shown.source)
