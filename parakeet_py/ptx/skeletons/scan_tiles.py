"""One tile of a scan: what a block, or a warp, scans in one go.

Every thread has `rounds` neighbouring elements in registers, so that almost all of a scan is plain arithmetic: a thread
scans its own elements, and only the totals of threads go between the lanes of a warp by shuffles, those of warps
through shared memory. Elements come and go through shared memory as well: neighbouring threads load and store
neighbouring elements. Runs of `rounds` elements are one element apart there, so that threads that each take their own
element of a run do not meet in one bank.

A whole tile of a line that lies side by side in memory is loaded and stored by `width` elements at a time, 16 bytes of
the largest of its arrays.

A tile is scanned up to its own start; what is before it comes later, with `finish`. The grouping depends on the
extents alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.types import INT64, Array, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import Combination, combine, declare, fold
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.ptx.kernels.regions import THREADS, WARP
from parakeet_py.typed_ir.ir import Const, Operand, Prim, Var

WARPS = THREADS // WARP
REGISTER_BYTES = 64  # of a thread's elements

Values = Callable[[Operand], Sequence[Operand]]  # the contributions at a place of the line
Store = Callable[[Operand, Sequence[Operand]], None]  # leaves the results of a place
AtOnce = Callable[[Sequence[Operand]], Sequence[Sequence[Operand]]]  # the contributions at several places


def rounds_of(with_: Combination) -> int:
    """Elements of a thread: as many as its registers and the shared memory of a block hold well."""
    size = sum(itemsize(dtype) for dtype in with_.types)
    return max(2, min(16, REGISTER_BYTES // size))


class Tile:
    """A tile that a team, all threads of a block or of a warp, has scanned up to its own start."""

    def __init__(
        self,
        lo: Lowering,
        with_: Combination,
        thread: Operand,
        start: Operand,
        stop: Operand,
        values: Values,
        *,
        by_warp: bool = False,
        width: int = 1,
        at_once: AtOnce | None = None,
    ) -> None:
        self.lo, self.with_, self.start, self.stop = lo, with_, start, stop
        self.rounds = rounds_of(with_)
        self.width = width
        self.lane = lo.let("lane", INT64, imp.Lane("lane"))
        self.warp = lo.floor_div(thread, Const(WARP, INT64))
        self.by_warp = by_warp
        self.team = WARP if by_warp else THREADS
        self.member = self.lane if by_warp else thread
        self.slots = [self._shared("elements", dtype, THREADS * (self.rounds + 1)) for dtype in with_.types]
        self.first = lo.multiply(self.warp, Const(WARP * (self.rounds + 1), INT64)) if by_warp else ZERO
        self._bring(values, at_once)
        self._meet()
        mine = lo.add(self.first, lo.multiply(self.member, Const(self.rounds + 1, INT64)))
        self.places = [lo.add(mine, Const(number, INT64)) for number in range(self.rounds)]
        self.own = [[lo.load(array, place) for array in self.slots] for place in self.places]
        through: Sequence[Operand] = self.own[0]
        for values_ in self.own[1:]:
            through = combine(lo, with_, through, values_)
        cells = [lo.declare("acc", value.type, value) for value in through]
        scan_warp(lo, with_, cells, self.lane)
        self.through = [lo.read(cell) for cell in cells]
        self.totals: list[Var] = []
        if by_warp:
            return
        self.totals = [self._shared("totals", dtype, WARPS) for dtype in with_.types]
        last = lo.compare("eq", self.lane, Const(WARP - 1, INT64))
        lo.when(last, lambda: lo.store_outs(self.totals, (self.warp,), self.through))
        lo.emit(imp.Barrier("block"))

    def _shared(self, name: str, dtype: str, count: int) -> Var:
        return self.lo.let(name, Array(dtype, 1, "C"), imp.NewArray((Const(count, INT64),), "shared"))

    def _meet(self) -> None:
        self.lo.emit(imp.Barrier("warp" if self.by_warp else "block"))

    def _each(self, visit: Callable[[Operand, Operand], None]) -> None:
        """Visit the elements of the team, neighbouring threads neighbouring ones: place in the line, and slot."""
        kind = "serial" if self.width == 1 else "vector"  # not unrolled: of a line's last tile
        lo = self.lo
        number = lo.index("round")

        def one() -> None:
            element = lo.add(lo.multiply(number, Const(self.team, INT64)), self.member)
            run = lo.floor_div(element, Const(self.rounds, INT64))
            visit(lo.add(self.start, element), lo.add(self.first, lo.add(element, run)))

        lo.loop(number, ZERO, Const(self.rounds, INT64), one, kind)

    def _by_runs(
        self, visit: Callable[[Sequence[Operand], Sequence[Operand]], None], apart: Callable[[], None]
    ) -> None:
        """Visit runs of `width` elements, places and slots, if the tile is whole; else do it `apart`."""
        lo, width = self.lo, self.width
        if width == 1:
            apart()
            return
        number = lo.index("run")

        def run() -> None:
            first = lo.multiply(lo.add(lo.multiply(number, Const(self.team, INT64)), self.member), Const(width, INT64))
            slot = lo.add(self.first, lo.add(first, lo.floor_div(first, Const(self.rounds, INT64))))
            steps = [Const(step, INT64) for step in range(width)]
            place = lo.add(self.start, first)
            visit([lo.add(place, step) for step in steps], [lo.add(slot, step) for step in steps])

        end = lo.add(self.start, Const(self.team * self.rounds, INT64))
        runs = Const(self.rounds // width, INT64)
        lo.when(lo.compare("le", end, self.stop), lambda: lo.loop(number, ZERO, runs, run), apart)

    def _bring(self, values: Values, at_once: AtOnce | None) -> None:
        lo = self.lo

        def run(places: Sequence[Operand], slots: Sequence[Operand]) -> None:
            assert at_once is not None
            for slot, found in zip(slots, at_once(places), strict=True):
                lo.store_outs(self.slots, (slot,), found)

        def one(place: Operand, slot: Operand) -> None:
            cells = declare(lo, self.with_)
            inside = lo.compare("lt", place, self.stop)
            lo.when(inside, lambda: lo.write_all(list(zip(cells, values(place), strict=True))))
            lo.store_outs(self.slots, (slot,), [lo.read(cell) for cell in cells])

        self._by_runs(run, lambda: self._each(one))

    def total(self) -> Sequence[Operand]:
        """The total of the tile."""
        lo = self.lo
        if self.by_warp:
            last = Const(WARP - 1, INT64)
            return [lo.let("total", value.type, imp.Shuffle("index", value, last)) for value in self.through]
        return self._warps(Const(WARPS, INT64))

    def _warps(self, count: Operand) -> list[Operand]:
        """The totals of the first warps."""
        lo = self.lo
        cells = declare(lo, self.with_)
        number = lo.index("warp")
        take = lambda: fold(lo, self.with_, cells, [lo.load(array, number) for array in self.totals])  # noqa: E731
        lo.loop(number, ZERO, count, take, "vector")  # not unrolled where the count varies
        return [lo.read(cell) for cell in cells]

    def finish(self, before: Sequence[Operand], store: Store, inclusive: bool) -> None:
        """Store the results, given what is before the tile."""
        lo, with_ = self.lo, self.with_
        lanes = [lo.read(cell) for cell in from_lane_before(lo, with_, self.through, self.lane)]
        outer = before if self.by_warp else combine(lo, with_, before, self._warps(self.warp))
        running: Sequence[Operand] = combine(lo, with_, outer, lanes)
        for place, values in zip(self.places, self.own, strict=True):
            after = combine(lo, with_, running, values)
            lo.store_outs(self.slots, (place,), after if inclusive else running)
            running = after
        self._meet()

        def run(places: Sequence[Operand], slots: Sequence[Operand]) -> None:
            results = [[lo.load(array, slot) for array in self.slots] for slot in slots]
            for place, values in zip(places, results, strict=True):
                store(place, values)

        def one(place: Operand, slot: Operand) -> None:
            inside = lo.compare("lt", place, self.stop)
            lo.when(inside, lambda: store(place, [lo.load(array, slot) for array in self.slots]))

        self._by_runs(run, lambda: self._each(one))


def scan_warp(lo: Lowering, with_: Combination, cells: Sequence[Cell], lane: Var) -> None:
    """Combine every lane's cells with those of all lanes before it."""
    distance = 1
    while distance < WARP:
        own = [lo.read(cell) for cell in cells]
        amount = Const(distance, INT64)
        others = [lo.let("other", value.type, imp.Shuffle("up", value, amount)) for value in own]
        both = combine(lo, with_, others, own)
        far = lo.compare("ge", lane, amount)
        lo.write_all(
            [
                (cell, lo.let("acc", old.type, Prim("select", (far, new, old))))
                for cell, old, new in zip(cells, own, both, strict=True)
            ]
        )
        distance *= 2


def from_lane_before(lo: Lowering, with_: Combination, values: Sequence[Operand], lane: Var) -> list[Cell]:
    """Cells with the values of the lane before; the identity in the first lane."""
    first = lo.compare("eq", lane, ZERO)
    cells = []
    for value, init in zip(values, with_.inits, strict=True):
        other = lo.let("other", value.type, imp.Shuffle("up", value, ONE))
        cells.append(
            lo.declare("before", value.type, lo.let("before", value.type, Prim("select", (first, init, other))))
        )
    return cells
