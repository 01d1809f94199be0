"""Writing GPU regions: who a thread is, and which point of an index space it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.types import INT64, Scalar
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.loops import Axis
from parakeet_py.imp.writer import ZERO
from parakeet_py.typed_ir.ir import Cast, Const, Operand, Var

THREADS = 256  # of a block
WARP = 32


def grid_of_blocks(
    lo: Lowering,
    blocks: Operand,
    name: str,
    body: Callable[[Var, Var], None],
    threads: int = THREADS,
    contract: bool = False,
    product: tuple[Var, Var, Var] | None = None,
    at_once: bool = False,
) -> None:
    """A region of so many blocks; `body(block, thread)` writes what a thread does."""
    lo.in_region = True
    lo.push()
    try:
        block, thread = (lo.let(which, INT64, imp.Lane(which)) for which in ("block", "thread"))
        number = index_of(lo, block, thread, threads)
        lo.order = lambda: number
        body(block, thread)
    finally:
        region = lo.pop()
        lo.in_region, lo.order = False, None
    lo.sink.append(imp.Grid(blocks, threads, region, name, contract, product, at_once))


def grid(lo: Lowering, points: Operand, name: str, body: Callable[[Var], None]) -> None:
    """A region with a thread for each of `points` points; `body(point)` writes what it does."""

    def some(block: Var, thread: Var) -> None:
        point = index_of(lo, block, thread)
        lo.order = lambda: point
        lo.when(lo.compare("lt", point, points), lambda: body(point))

    grid_of_blocks(lo, lo.ceil_div(points, Const(THREADS, INT64)), name, some)


def index_of(lo: Lowering, block: Var, thread: Var, threads: int = THREADS) -> Var:
    """The number of a thread in its grid."""
    return lo.prim("add", lo.prim("mul", block, Const(threads, INT64)), thread)


def split32(lo: Lowering, number: Operand, size: Operand) -> tuple[Operand, Operand]:
    """Quotient and remainder of a block's number, which fits in 32 bits as whatever counts blocks does."""
    return _split(lo, number, size, Scalar("uint32"))


def _split(lo: Lowering, number: Operand, size: Operand, kind: Scalar) -> tuple[Operand, Operand]:
    """Quotient and remainder of numbers that are not negative."""
    if isinstance(size, Const):
        quotient = lo.floor_div(number, size)
        return quotient, lo.subtract(number, lo.multiply(quotient, size))
    left, right = (lo.let("n", kind, Cast(operand)) for operand in (number, size))
    ratio = lo.prim("floordiv", left, right, type_=kind)
    rest = lo.prim("sub", left, lo.prim("mul", ratio, right, type_=kind), type_=kind)
    return lo.let("q", INT64, Cast(ratio)), lo.let("r", INT64, Cast(rest))


def walked(lo: Lowering, axes: Sequence[Axis]) -> list[Axis]:
    """The axes along which there can be more than one point; the others' indices are 0."""
    for axis in axes:
        if _single(axis):
            lo.alias(axis.index, ZERO)
    return [axis for axis in axes if not _single(axis)]


def _single(axis: Axis) -> bool:
    return isinstance(axis.extent, Const) and axis.extent.value == 1


def unravel(lo: Lowering, axes: Sequence[Axis], point: Operand, of_blocks: bool = False) -> None:
    """Bind the index variables of a space to those of its point number `point`, in C order; `of_blocks` if there are
    no more points than blocks."""
    left = point
    kind = Scalar("uint32" if of_blocks else "uint64")
    for position in range(len(axes) - 1, 0, -1):
        axis = axes[position]
        left, rest = _split(lo, left, axis.extent, kind)
        lo.alias(axis.index, rest)
    if axes:
        lo.alias(axes[0].index, left)
