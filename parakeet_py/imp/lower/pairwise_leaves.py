"""Leaves of the tree in which floats are added: at most `LEAF` units of contributions each.

A unit is 8 numbers, or 4 complex ones (half precision is summed in single). A leaf has as many accumulators as a unit
has numbers, and takes a unit at a time, by one vector operation. Its accumulators are combined as a balanced tree; then
what is left of the last unit is added one by one. (`pairwise_sums` has the tree of the leaves.)

Most contributions are added as they are computed. They go through a buffer on the stack, which is filled as they come
best, where computing them takes several loops, checks, or elementary functions (whose vector forms have lanes of their
own number), and where something else is accumulated meanwhile: a maximum beside a sum, by any grouping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import INT64, Scalar, is_complex, is_float
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import Combination, declare
from parakeet_py.imp.lower.extrema import accumulate
from parakeet_py.imp.lower.loops import Axis
from parakeet_py.imp.schedule.loop_order import Study, is_dear
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import HALF_POWERS, Block, Cast, Const, Operand, Prim, Var

LEAF = 16  # units

Values = list[Operand]
Element = Callable[[Operand], Values]  # writes the contribution at a place


@record
class Part:
    """A result that is accumulated; `ordered`: by an operation that rounds."""

    name: str
    kind: Scalar
    neutral: Operand
    ordered: bool


@record
class Runs:
    """The contributions of one result, and how they are to be combined."""

    with_: Combination
    found: Study
    body: Block
    axes: list[Axis]
    vector: bool  # whether the body can be vector code
    row: Operand
    chunk: Operand
    parts: tuple[Part, ...]
    unit: int
    sequential: bool
    direct: bool  # whether contributions are added as they are computed

    @property
    def ordered(self) -> list[Part]:
        return [part for part in self.parts if part.ordered]


def runs_of(
    lo: Lowering, with_: Combination, found: Study, body: Block, axes: list[Axis], vector: bool, runs: Sequence[Operand]
) -> Runs:
    row, chunk = [_index(operand) for operand in lo.operands(runs)] if runs else (ZERO, ZERO)
    assert with_.names is not None
    parts = tuple(map(_part, with_.names, with_.types, with_.inits))
    unit = 4 if any(part.ordered and is_complex(part.kind.dtype) for part in parts) else 8
    functions = any(isinstance(op, Prim) and _is_function(op) for op in found.definitions.values())
    direct = vector and len(axes) == 1 and all(part.ordered for part in parts) and not functions
    # GPUs have no such function; a complex product is none of its parts
    awkward = bool(lo.special) or any(part.name == "mul" and is_complex(part.kind.dtype) for part in parts)
    return Runs(with_, found, body, axes, vector, row, chunk, parts, unit, awkward or chunk == ONE, direct)


def _is_function(op: Prim) -> bool:
    """Whether an operation has a vector form of its own number of lanes: half powers are roots and divisions."""
    return is_dear(op.name) and not (
        op.name == "pow" and isinstance(op.args[1], Const) and op.args[1].value in HALF_POWERS
    )


def _index(operand: Operand) -> Operand:
    return Const(operand.whole, INT64) if isinstance(operand, Const) else operand


def _part(name: str, dtype: str, init: Operand) -> Part:
    if name not in ("add", "mul") or not (is_float(dtype) or is_complex(dtype)):
        return Part(name, Scalar(dtype), init, False)
    kind = Scalar("float32" if dtype == "float16" else dtype)
    value = 1.0 if name == "mul" else complex(-0.0, -0.0) if is_complex(dtype) else -0.0
    return Part(name, kind, Const(value, kind), True)


# ---- numbers ---------------------------------------------------------------------------------------------------------


def widened(lo: Lowering, part: Part, value: Operand) -> Operand:
    return value if value.type == part.kind else lo.let("x", part.kind, Cast(value))


def narrowed(lo: Lowering, value: Operand, dtype: str) -> Operand:
    """The value of a result of this dtype."""
    kind = Scalar(dtype)
    return value if value.type == kind else lo.let("x", kind, Cast(value))


def combined(
    lo: Lowering, parts: Sequence[Part], left: Sequence[Operand], right: Sequence[Operand], reassoc: bool = False
) -> Values:
    return [
        lo.let("acc", part.kind, Prim(part.name, (one, other)), reassoc)
        for part, one, other in zip(parts, left, right, strict=True)
    ]


def stack(lo: Lowering, parts: Sequence[Part], extent: int) -> list[Var]:
    return [lo.stack_array("sums", part.kind.dtype, extent) for part in parts]


def store(lo: Lowering, arrays: Sequence[Var], place: Operand, values: Sequence[Operand]) -> None:
    for array, value in zip(arrays, values, strict=True):
        lo.store(array, (place,), value)


def load(lo: Lowering, arrays: Sequence[Var], place: Operand) -> Values:
    return [lo.load(array, place) for array in arrays]


# ---- leaves ----------------------------------------------------------------------------------------------------------


def leaf(lo: Lowering, runs: Runs, length: Operand, element: Element, whole: Operand | None = None) -> Values:
    """Combine the ordered parts of so many contributions, `whole` units if that is given."""
    parts, unit = runs.ordered, Const(runs.unit, INT64)
    units = lo.floor_div(length, unit) if whole is None else whole
    sums: Values = [part.neutral for part in parts]
    if units != ZERO:
        lanes = in_units(lo, runs, units, element)
        level = [load(lo, lanes, Const(lane, INT64)) for lane in range(runs.unit)]
        while len(level) > 1:
            level = [combined(lo, parts, one, other) for one, other in zip(level[::2], level[1::2], strict=True)]
        (sums,) = level
    if whole is not None:
        return sums
    return rest(lo, runs, lo.multiply(units, unit), length, sums, element)


def in_units(lo: Lowering, runs: Runs, units: Operand, element: Element) -> list[Var]:
    """The accumulators of the ordered parts, after so many whole units."""
    parts, unit = runs.ordered, Const(runs.unit, INT64)
    lanes = stack(lo, parts, runs.unit)
    for lane in range(runs.unit):
        store(lo, lanes, Const(lane, INT64), [part.neutral for part in parts])
    number, index = lo.index("unit"), lo.index("lane")

    def one_lane() -> None:
        values = element(lo.add(lo.multiply(number, unit), index))
        store(lo, lanes, index, combined(lo, parts, load(lo, lanes, index), values))

    lo.loop(number, ZERO, units, lambda: lo.loop(index, ZERO, unit, one_lane, "lanes"), "serial")
    return lanes


def rest(lo: Lowering, runs: Runs, before: Operand, length: Operand, sums: Values, element: Element) -> Values:
    """The sums, and the contributions from `before` on, one by one."""
    if before == length:
        return sums
    parts = runs.ordered
    cells = [lo.declare("sum", part.kind, value) for part, value in zip(parts, sums, strict=True)]
    place = lo.index("place")

    def one() -> None:
        after = combined(lo, parts, [lo.read(cell) for cell in cells], element(place))
        lo.write_all(list(zip(cells, after, strict=True)))

    lo.loop(place, before, length, one, "few")
    return [lo.read(cell) for cell in cells]


def one_leaf(lo: Lowering, runs: Runs, start: Operand, length: Operand, whole: Operand | None = None) -> Values:
    """Combine at most `LEAF` units of contributions from a place on, `whole` ones of them if that is given."""
    if runs.direct:
        return leaf(lo, runs, length, lambda number: computed(lo, runs, lo.add(start, number)), whole)
    buffers, others = buffered(lo, runs, start, length, LEAF)
    return together(lo, runs, leaf(lo, runs, length, lambda number: load(lo, buffers, number)), others)


# ---- contributions ---------------------------------------------------------------------------------------------------


def computed(lo: Lowering, runs: Runs, place: Operand) -> Values:
    """The contributions at a place."""
    lo.alias(runs.axes[0].index, place)
    return [widened(lo, part, value) for part, value in zip(runs.parts, lo.lower_block(runs.body), strict=True)]


def together(lo: Lowering, runs: Runs, sums: Values, others: Sequence[Cell]) -> Values:
    """The ordered parts and the others, each in its place."""
    left, right = iter(sums), iter(others)
    return [next(left) if part.ordered else lo.read(next(right)) for part in runs.parts]


def buffered(
    lo: Lowering, runs: Runs, start: Operand, length: Operand, most: int
) -> tuple[Sequence[Var], Sequence[Cell]]:
    """Buffers with the ordered parts of `length` contributions from a place on, at most `most` units and a rest; and
    cells that the others have been combined into."""
    buffers = stack(lo, runs.ordered, (most + 1) * runs.unit)
    cells = declare(lo, runs.with_)
    _fill(lo, runs, buffers, cells, start, length)
    return buffers, [cell for part, cell in zip(runs.parts, cells, strict=True) if not part.ordered]


def _fill(
    lo: Lowering, runs: Runs, buffer: Sequence[Var], cells: Sequence[Cell], start: Operand, length: Operand
) -> None:
    """Store the contributions of [start, start + length) side by side; combine what needs no order into cells."""
    *outer, inner = runs.axes
    kind = "vector" if runs.vector else "serial"

    def line(index: Var, low: Operand, high: Operand, place: Operand, offset: Operand) -> None:
        """For `index` in [low, high): the contribution at `place` of the inner axis, to its place in the buffer."""

        def keep(values: Sequence[Operand]) -> Sequence[Operand | None]:
            left = iter(buffer)
            for part, value in zip(runs.parts, values, strict=True):
                if part.ordered:
                    lo.store(next(left), (lo.add(offset, index),), widened(lo, part, value))
            return [None if part.ordered else value for part, value in zip(runs.parts, values, strict=True)]

        def loop(step: Callable[[], None]) -> None:
            def one() -> None:
                lo.alias(inner.index, lo.add(place, index))
                step()

            lo.loop(index, low, high, one, kind)

        accumulate(lo, runs.with_, cells, runs.body, loop, keep)

    if not outer:
        line(lo.index("place"), ZERO, length, start, ZERO)
        return
    size = lo.maximum(inner.extent, ONE)
    stop = lo.add(start, length)
    row = lo.index("row")

    def one_row() -> None:
        left: Operand = row
        for axis in reversed(outer[1:]):
            before = lo.floor_div(left, lo.maximum(axis.extent, ONE))
            lo.alias(axis.index, lo.subtract(left, lo.multiply(before, axis.extent)))
            left = before
        lo.alias(outer[0].index, left)
        base = lo.multiply(row, size)
        low = lo.maximum(lo.subtract(start, base), ZERO)
        high = lo.minimum(lo.subtract(stop, base), size)
        line(lo.index("place"), low, high, ZERO, lo.subtract(base, start))

    lo.loop(row, lo.floor_div(start, size), lo.ceil_div(stop, size), one_row, "serial")
