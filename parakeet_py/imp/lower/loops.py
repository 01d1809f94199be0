"""Loop nests over index spaces, and how a space is split between threads.

A region is split along one number. A one-dimensional space is split where it is. In two dimensions the number counts
pieces of rows, `TILE` elements each, so that few long rows are shared as well as many short ones; in more dimensions it
counts the points of the two outer axes. A range [lo, hi) of that number is walked without any division inside: the
bounds of the second loop are cut to the range by a maximum and a minimum.

Within a range the pieces are visited in order, so a check that fails is the first of its range, and the number of its
piece shows which of several ranges failed first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import INT64
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Const, Operand, Var

TILE = 4096
GRAIN_WORK = 4096  # scalar operations below which a range is never split

Inner = Callable[[Operand, Operand], None]


@record
class Axis:
    """One axis of an index space: the typed IR's index variable and the (lowered) extent; for a merged axis, `last` is
    the innermost of the variables it stands for."""

    index: Var
    extent: Operand
    last: Var | None = None

    @property
    def mover(self) -> Var:
        """The variable of the body that moves fastest along the axis."""
        return self.index if self.last is None else self.last


@record
class Split:
    """How a space is counted: `extent` pieces in all, each `size` points; `parts` pieces for one point of axis 0."""

    extent: Operand
    size: Operand
    parts: Operand
    tile: int | None


@record
class Block:
    """A part of an axis."""

    start: Operand
    stop: Operand


def axes_of(indices: Sequence[Var], extents: Sequence[Operand]) -> list[Axis]:
    return [Axis(index, extent) for index, extent in zip(indices, extents, strict=True)]


def split_space(lo: Lowering, axes: Sequence[Axis], tile: int = TILE) -> Split:
    """Decide how to count the pieces of a space of rank >= 1 (emits arithmetic)."""
    first = axes[0].extent
    if len(axes) == 1:
        return Split(first, ONE, ONE, None)
    if len(axes) > 2:
        rest = lo.product(axis.extent for axis in axes[2:])
        return Split(lo.multiply(first, axes[1].extent), rest, lo.maximum(axes[1].extent, ONE), None)
    length = axes[1].extent
    if isinstance(length, Const) and length.whole <= tile:
        return Split(first, length, ONE, tile)
    parts = lo.maximum(lo.ceil_div(length, Const(tile, INT64)), ONE)
    return Split(lo.multiply(first, parts), lo.minimum(length, Const(tile, INT64)), parts, tile)


def order_of(lo: Lowering, axes: Sequence[Axis]) -> Callable[[], Operand]:
    """Writes the number of the piece of the space that the present iteration is in (for checks)."""

    def order() -> Operand:
        outer = lo.operand(axes[0].index)
        if len(axes) == 1:
            return outer
        return lo.add(lo.multiply(outer, axes[1].extent), lo.operand(axes[1].index))

    return order


def walk_range(
    lo: Lowering,
    axes: Sequence[Axis],
    split: Split,
    start: Operand,
    stop: Operand,
    inner: Inner,
    block: Block | None = None,
    pairs: Callable[[Operand, Operand], Operand] | None = None,
) -> None:
    """Loops over the pieces [start, stop) of a space; `inner(first, last)` writes the loop over the last axis.

    With a `block`, of three axes, only this part of the second one. `pairs(low, high)` writes a loop over a part of it
    in another way, and gives where the rest begins.
    """
    if len(axes) == 1:
        inner(start, stop)
        return
    outer, second = axes[0], axes[1]
    whole = start is ZERO and stop is split.extent
    first_row, last_row = start, stop
    if split.parts is not ONE and whole:
        first_row, last_row = ZERO, outer.extent
    elif split.parts is not ONE:
        first_row, last_row = lo.floor_div(start, split.parts), lo.ceil_div(stop, split.parts)

    row = lo.bind(outer.index)

    def body() -> None:
        low: Operand
        high: Operand
        if split.parts is ONE or whole:
            low, high = ZERO, second.extent
        else:
            before = lo.multiply(row, split.parts)
            low = lo.maximum(lo.subtract(start, before), ZERO)
            high = lo.minimum(lo.subtract(stop, before), split.parts)
            if split.tile is not None:
                tile = Const(split.tile, INT64)
                low, high = lo.multiply(low, tile), lo.minimum(lo.multiply(high, tile), second.extent)
        if len(axes) == 2:
            inner(low, high)
            return
        if block is not None:
            low, high = lo.maximum(low, block.start), lo.minimum(high, block.stop)
        if pairs is not None:
            low = pairs(low, high)
        column = lo.bind(second.index)
        lo.loop(
            column,
            low,
            high,
            lambda: nest(lo, axes[2:-1], lambda: inner(ZERO, axes[-1].extent)),
            "independent",
        )

    lo.loop(row, first_row, last_row, body, "independent")


def nest(lo: Lowering, axes: Sequence[Axis], inner: Callable[[], None], kind: str = "independent") -> None:
    """Whole loops over some axes."""
    if not axes:
        inner()
        return
    index = lo.bind(axes[0].index)
    lo.loop(index, ZERO, axes[0].extent, lambda: nest(lo, axes[1:], inner, kind), kind)
