"""Clocks around the kernels of a function, for `roofline`: when each begins and ends, its points, the bytes it moves.

A kernel is an operator at the host level; what a serial loop around it repeats are runs of one kernel. Points and bytes
are computed when it runs, since extents may be other ones in each turn: of an array that counts as a whole no more than
the elements that the points access (`traffic`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from parakeet_py.base.types import INT64, Array, itemsize
from parakeet_py.imp.ir import Clock
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Const, Let, Operand, Var
from parakeet_py.typed_ir.passes.analysis.traffic import traffic
from parakeet_py.typed_ir.passes.fusion.cost import ENDLESS


@contextmanager
def timed(lo: Lowering, let: Let) -> Iterator[None]:
    """What is written within is a kernel; operators within it are parts of that."""
    kernels = lo.timed
    assert kernels is not None
    number = len(kernels)
    kernels.append(let)
    points = lo.product(lo.operands(_space(let.op))) if isinstance(let.op, ir.PARALLEL) else None
    moved = ZERO if points is None else _bytes(lo, let, points)
    lo.sink.append(Clock(number, "begin"))
    lo.timed = None
    yield
    lo.timed = kernels
    if points is None:
        points, moved = _whole(lo, let.op)
    lo.sink.append(Clock(number, "end", (points, moved)))


def _space(op: ir.Op) -> tuple[Operand, ...]:
    assert isinstance(op, ir.PARALLEL)
    return op.extents + (op.reduced_extents if isinstance(op, ir.Reduce) else ())


def _bytes(lo: Lowering, let: Let, points: Operand) -> Operand:
    """The bytes that an operator loads and stores."""
    moves = traffic(let)
    total: Operand = ZERO
    extents = let.op.extents if isinstance(let.op, ir.PARALLEL) else ()
    for counts in (moves.loaded, moves.stored):
        for array, each in counts.items():
            if array in let.outs:  # not there yet; of a selection, at most all is kept
                size = lo.product(lo.operands(extents))
            elif not lo.known_outside(array):
                continue
            else:
                size = _size(lo, array)
                if each < ENDLESS:
                    size = lo.minimum(size, lo.multiply(points, Const(each, INT64)))
            total = lo.add(total, lo.multiply(size, Const(itemsize(ir.dtype_of(array)), INT64)))
    return total


def _size(lo: Lowering, array: Var) -> Operand:
    """How many elements an array has."""
    known = lo.array(array)
    assert isinstance(known.type, Array)
    return lo.product(lo.extent(known, axis) for axis in range(known.type.rank))


def _whole(lo: Lowering, op: ir.Op) -> tuple[Operand, Operand]:
    """Points and bytes of a product or routine, which go through whole arrays."""
    arrays = dict.fromkeys((*ir.arrays_read(op), *ir.arrays_written(op)))
    moved: Operand = ZERO
    for array in arrays:
        moved = lo.add(moved, lo.multiply(_size(lo, array), Const(itemsize(ir.dtype_of(array)), INT64)))
    if not isinstance(op, ir.Matmul):
        return ONE, moved
    left = lo.array(op.left)
    assert isinstance(left.type, Array)
    inner = lo.extent(left, left.type.rank - 1)
    return lo.multiply(_size(lo, op.out), inner), moved
