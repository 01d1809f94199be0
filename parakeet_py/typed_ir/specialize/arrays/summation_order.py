"""In which order NumPy adds up an array of floats along some axes.

Its iterator goes through the array as it lies in memory, and neighbouring axes along which memory goes on are one.
Where the fastest axis is kept, element after element is added to the results. Otherwise runs of contributions are
summed pairwise, and the sums of the runs are added one after the other. A run is as long as the fastest axis, except
that

* elements of another dtype than that of the sum are converted in buffers of `BUFFER` elements, each of which is a run;
* where memory does not go on and the fastest axis is short, elements are copied into such buffers, too. A buffer holds
  whole rows, of as many axes as fit.

`Reduce.runs` says it with two numbers; most often they are known when the function is compiled.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays.strided import is_single, stride_of
from parakeet_py.typed_ir.specialize.values import ArrayV

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

BUFFER = 8192  # elements (np.setbufsize is not looked at)
SHORT = BUFFER // 2  # extent of an axis up to which it is worth a copy

_TRUE = ir.Const(True, PYBOOL)


def runs_of(s: Context, array: ArrayV, reduced: Collection[int], dtype: str) -> tuple[ir.Operand, ir.Operand]:
    """Rows and chunks (see `Reduce.runs`) of a sum in a dtype over some axes."""
    b = s.builder
    converted = array.dtype != dtype
    alone: ir.Operand = _TRUE  # whether the fastest axis is reduced
    grows: ir.Operand = _TRUE  # whether the row goes on to the next axis
    joined_all = True
    core: ir.Operand = ONE  # elements of a row along its axes but the slowest
    shape: ir.Operand = ONE  # the slowest axis of the row, as far as memory goes on
    stride: ir.Operand | None = None
    for axis in reversed(array.axes_by_stride):
        extent = array.extents[axis]
        if axis not in reduced:
            single = is_single(s, array, axis)
            if stride is None:
                alone = b.logical_and(alone, single)
            else:
                grows = b.logical_and(grows, single)
            continue
        step = stride_of(s, array, axis)
        if stride is None:
            shape, stride = extent, step
            continue
        empty = b.logical_or(is_single(s, array, axis), _equal(s, shape, ONE))
        joined = b.logical_or(empty, _equal(s, step, b.index_mul(stride, shape)))
        size = b.index_mul(core, shape)
        small = _less(s, size, BUFFER)
        if not converted:
            small = b.logical_and(small, b.logical_or(_less(s, ONE, core), _less(s, shape, SHORT + 1)))
        grows = b.logical_and(grows, b.logical_or(joined, small))
        joined_all = joined_all and grows == _TRUE
        stride = b.select(_equal(s, shape, ONE), step, b.select(joined, stride, step))
        core = b.select(grows, b.select(joined, core, size), core)
        shape = b.select(grows, b.select(joined, b.index_mul(shape, extent), extent), shape)
    row = ZERO if joined_all else b.index_mul(core, shape)
    chunk: ir.Operand = ZERO
    if converted or core != ONE:
        buffers = (
            b.prim("floordiv", ir.Const(BUFFER, PYINT), core, type=PYINT) if core != ONE else ir.Const(BUFFER, PYINT)
        )
        chunk = b.index_mul(core, buffers)
        if not converted:
            chunk = b.select(_equal(s, core, ONE), ZERO, chunk)
    return row, b.select(alone, chunk, ONE)


def _equal(s: Context, left: ir.Operand, right: ir.Operand) -> ir.Operand:
    if s.builder.same(left, right):
        return _TRUE
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return ir.Const(False, PYBOOL)
    return s.builder.prim("eq", left, right, type=PYBOOL)


def _less(s: Context, left: ir.Operand, right: ir.Operand | int) -> ir.Operand:
    if isinstance(right, int):
        right = ir.Const(right, PYINT)
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return ir.Const(left.whole < right.whole, PYBOOL)
    return s.builder.prim("lt", left, right, type=PYBOOL)
