"""How contributions come together on a GPU: in a thread, between the lanes of a warp, between the threads of a block.

A combine of known primitives (sum, minimum, any...) may take contributions in any order, so neighbouring threads take
neighbouring ones. An argmin or argmax may, too, once every accumulator knows the place of what it holds: of two the
earlier one comes first then, wherever it was found (`Placed`). Any other combine gets its contributions in order: every
thread takes a run of its own, and all trees keep the order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parakeet_py.base.types import INT64, Array, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering, Outs
from parakeet_py.imp.lower.combine import Combination, Conditions, combination, combine, takes
from parakeet_py.imp.lower.extrema import arg_extremum
from parakeet_py.imp.schedule.loop_order import Study
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.regions import THREADS, WARP
from parakeet_py.typed_ir.ir import Const, Lambda, Operand, Prim, Var

UNROLLED = 64  # operations of the contributions that a thread asks for together
TOGETHER = 4  # contributions that a thread asks for together
IN_FLIGHT = 32  # bytes that it asks for together, where elements are small

Visit = Callable[[Operand], None]


@dataclass(frozen=True, slots=True)
class Placed:
    """A combine with one more accumulator: the place of the contribution that the others hold, -1 for none."""

    inner: Combination
    taken: Conditions

    @property
    def inits(self) -> tuple[Operand, ...]:
        return (*self.inner.inits, Const(-1, INT64))

    @property
    def types(self) -> list[str]:
        return [*self.inner.types, "int64"]


Combine = Combination | Placed


def combine_of(lo: Lowering, function: Lambda, inits: Sequence[Operand]) -> Combine:
    """A combine as it is done on a GPU."""
    with_ = combination(lo, function, inits)
    found = arg_extremum(with_) if with_.names is None else None
    return with_ if found is None else Placed(with_, found.taken)


def any_order(with_: Combine) -> bool:
    """Whether contributions may come in any order."""
    return isinstance(with_, Placed) or with_.names is not None


def together(lo: Lowering, with_: Combine, left: Sequence[Operand], right: Sequence[Operand]) -> Sequence[Operand]:
    """Two accumulators combined."""
    if not isinstance(with_, Placed):
        return combine(lo, with_, left, right)
    earlier = lo.compare("le", left[-1], right[-1])
    first = [_select(lo, earlier, a, b) for a, b in zip(left, right, strict=True)]
    second = [_select(lo, earlier, b, a) for a, b in zip(left, right, strict=True)]
    better = takes(lo, with_.inner, with_.taken, first[:-1], second[:-1])
    results = combine(lo, with_.inner, first[:-1], second[:-1])
    return [*results, _select(lo, better, second[-1], first[-1])]


def _select(lo: Lowering, condition: Operand, then: Operand, orelse: Operand) -> Operand:
    return lo.let("t", then.type, Prim("select", (condition, then, orelse)))


def take(lo: Lowering, with_: Combine, cells: Sequence[Cell], values: Sequence[Operand], place: Operand) -> None:
    """Combine a contribution, which comes later than all before, into a thread's cells."""
    old = [lo.read(cell) for cell in cells]
    if isinstance(with_, Placed):
        better = takes(lo, with_.inner, with_.taken, old[:-1], values)
        new = [*combine(lo, with_.inner, old[:-1], values), _select(lo, better, place, old[-1])]
    else:
        new = [*combine(lo, with_, old, values)]
    lo.write_all(list(zip(cells, new, strict=True)))


def cells_of(lo: Lowering, with_: Combine) -> list[Cell]:
    """Cells that hold the identity."""
    return [lo.declare("acc", init.type, init) for init in with_.inits]


def memory(lo: Lowering, with_: Combine, extents: Sequence[Operand]) -> list[Var]:
    """Memory for partial results."""
    return [lo.new_array("partial", Array(dtype, len(extents), "C"), extents) for dtype in with_.types]


def store_cells(lo: Lowering, arrays: Outs, place: Sequence[Operand], cells: Sequence[Cell]) -> None:
    """Leave what cells hold in memory; cells that have no array are left out."""
    lo.store_outs(arrays, place, [lo.read(cell) for cell in cells[: len(arrays)]])


# ---- in a thread -----------------------------------------------------------------------------------------------------


def ahead(found: Study) -> int:
    """How many contributions a thread asks for together, by what it loads for each."""
    size = max((itemsize(array_type(access.array).dtype) for access in found.accesses), default=IN_FLIGHT)
    return min(max(IN_FLIGHT // size, TOGETHER), 2 * TOGETHER)


def stride(
    lo: Lowering, first: Operand, stop: Operand, step: Operand, cost: int, visit: Visit, count: int = TOGETHER
) -> None:
    """Visit first, first + step, ... before stop; `count` at a time, if they are cheap, so that their loads are on
    their way together."""
    while count > 1 and cost * count > UNROLLED:
        count = TOGETHER if count > TOGETHER else 1
    place = lo.declare("k", INT64, first)

    def some(number: int) -> None:
        ahead = lo.multiply(step, Const(number - 1, INT64))
        lo.push()
        going = lo.compare("lt", lo.add(lo.read(place), ahead), stop)
        head = lo.pop()
        lo.push()
        here: Operand = lo.read(place)
        for _ in range(number):
            visit(here)
            here = lo.add(here, step)
        lo.write(place, here)
        lo.emit(imp.While(head, going, lo.pop()))

    if count > 1:
        some(count)
    some(1)


def gather(
    lo: Lowering,
    with_: Combine,
    size: Operand,
    team: tuple[Operand, Operand],
    cost: int,
    visit: Visit,
    count: int = TOGETHER,
) -> None:
    """Visit what the member of a team, (number, of how many), takes of `size` contributions; see `stride`."""
    member, members = team
    if any_order(with_):
        stride(lo, member, size, members, cost, visit, count)
        return
    share = lo.ceil_div(size, members)
    start = lo.multiply(member, share)
    stride(lo, start, lo.minimum(lo.add(start, share), size), ONE, cost, visit)


def take_partial(lo: Lowering, with_: Combine, cells: Sequence[Cell], arrays: Sequence[Var], *place: Operand) -> None:
    """Combine partial results, which come later than all before, into a thread's cells."""
    given = [lo.load(array, *place) for array in arrays]
    lo.write_all(list(zip(cells, together(lo, with_, [lo.read(cell) for cell in cells], given), strict=True)))


# ---- between threads -------------------------------------------------------------------------------------------------


def across_warp(lo: Lowering, with_: Combine, cells: Sequence[Cell], lanes: int = WARP) -> None:
    """Combine the cells of a warp's lanes, in order; lane 0 has the result."""
    distance = 1
    while distance < lanes:
        own = [lo.read(cell) for cell in cells]
        others = [lo.let("other", value.type, imp.Shuffle("down", value, Const(distance, INT64))) for value in own]
        lo.write_all(list(zip(cells, together(lo, with_, own, others), strict=True)))
        distance *= 2


def across_block(lo: Lowering, with_: Combine, cells: Sequence[Cell], thread: Var) -> None:
    """Combine the cells of a block's threads, in order; thread 0 has the result."""
    warps = THREADS // WARP
    across_warp(lo, with_, cells)
    lane = lo.let("lane", INT64, imp.Lane("lane"))
    warp = lo.floor_div(thread, Const(WARP, INT64))
    shared = _shared(lo, with_, warps)
    lo.when(lo.compare("eq", lane, ZERO), lambda: store_cells(lo, shared, (warp,), cells))
    lo.emit(imp.Barrier("block"))

    def finish() -> None:
        def get() -> None:
            lo.write_all([(cell, lo.load(array, lane)) for array, cell in zip(shared, cells, strict=True)])

        lo.when(lo.compare("lt", lane, Const(warps, INT64)), get)
        across_warp(lo, with_, cells, warps)

    lo.when(lo.compare("eq", warp, ZERO), finish)


def across_rows(lo: Lowering, with_: Combine, cells: Sequence[Cell], thread: Var, width: Operand) -> None:
    """Combine the cells of the threads that have the same remainder by `width`; the first `width` have the results."""
    shared = _shared(lo, with_, THREADS)
    store_cells(lo, shared, (thread,), cells)
    lo.emit(imp.Barrier("block"))
    distance = THREADS // 2
    while distance:
        far = Const(distance, INT64)

        def both(far: Const = far) -> None:
            others = [lo.load(array, lo.add(thread, far)) for array in shared]
            own = [lo.read(cell) for cell in cells]
            lo.write_all(list(zip(cells, together(lo, with_, own, others), strict=True)))
            store_cells(lo, shared, (thread,), cells)

        def step(far: Const = far, both: Callable[[], None] = both) -> None:
            lo.when(lo.compare("lt", thread, far), both)
            lo.emit(imp.Barrier("block"))

        if isinstance(width, Const):
            if distance < width.whole:
                break
            step()
        else:
            lo.when(lo.compare("le", width, far), step)
        distance //= 2


def _shared(lo: Lowering, with_: Combine, count: int) -> list[Var]:
    return [
        lo.let("shared", Array(dtype, 1, "C"), imp.NewArray((Const(count, INT64),), "shared")) for dtype in with_.types
    ]
