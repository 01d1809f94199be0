"""Blocks of rows, for stencils in three dimensions.

    for i: for j: for k:  out[i, j, k] = f(a[i - 1, j, k], a[i, j - 1, k], ..., a[i + 1, j, k])

Each plane of `a` is read three times, as i - 1, i and i + 1. Between two of these times as many numbers are touched as
the planes in use have, which may be more than a cache holds. So j is cut into blocks:

    for block in 0 .. J by B: for i: for j in block: for k: ...

The points of a map are independent, so that their order does not matter (where no check can fail). It is done with B
rows of all planes in use in the second-level cache, if the planes in use do not fit into it: 16 x 1000 x 100 float64
takes 0.76 of its time. Blocks for the first-level cache gain nothing where two rows are computed at a time
(`unroll_and_jam`).

It is decided when the program runs: mostly, all rows are one block. Blocks are parallel loops of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import BOOL, INT64, Array, itemsize
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.loops import Axis
from parakeet_py.imp.schedule.loop_order import Study, coefficient
from parakeet_py.imp.writer import ONE
from parakeet_py.typed_ir.ir import Const, Operand, Var

ROOM = 512 << 10  # bytes in use that stay in a cache of the second level


def rows_of_blocks(lo: Lowering, axes: Sequence[Axis], found: Study) -> Operand | None:
    """How many rows of the second axis are a block (emits arithmetic); None where no plane is read again."""
    if len(axes) != 3 or found.has_check or not found.simple or lo.in_region:
        return None
    in_use, of_arrays = _bytes_at_one_place(found, *(axis.mover for axis in axes))
    if in_use == of_arrays:
        return None
    _, rows, places = (axis.extent for axis in axes)
    row = lo.maximum(lo.multiply(places, Const(in_use, INT64)), ONE)
    plane = lo.multiply(rows, row)
    each = lo.floor_div(Const(ROOM, INT64), row)
    pay = lo.prim(
        "and",
        lo.compare("gt", plane, Const(3 * ROOM // 2, INT64)),
        lo.compare("ge", each, Const(8, INT64)),
        type_=BOOL,
    )
    blocks = lo.maximum(lo.ceil_div(rows, lo.maximum(each, ONE)), ONE)
    blocks = lo.prim("select", pay, blocks, ONE)
    half = lo.ceil_div(rows, lo.add(blocks, blocks))  # two rows are computed at a time
    return lo.maximum(lo.add(half, half), ONE)


def _bytes_at_one_place(found: Study, plane: Var, row: Var, place: Var) -> tuple[int, int]:
    """The bytes of one place in all planes that are in use, and in all arrays; (0, 0) where that is not clear."""
    touched: dict[tuple[Var, Operand], int] = {}
    for access in found.accesses:
        kind = access.array.type
        moved = [[coefficient(found, index, each) for index in access.indices] for each in (plane, row, place)]
        if access.array in found.views or any(None in steps for steps in moved):
            return 0, 0
        if isinstance(kind, Array) and all(sum(map(abs, filter(None, steps))) == 1 for steps in moved):
            (outer,) = (index for index, step in zip(access.indices, moved[0], strict=True) if step)
            touched[access.array, outer] = itemsize(kind.dtype)
    return sum(touched.values()), sum({array: size for (array, _), size in touched.items()}.values())
