"""A row program: one kernel for operators that follow each other along the rows of the same space (`row_groups`).

A warp or a block has a row. Each operator is a pass over it: a reduction is combined in the registers of the threads,
then between them, and every thread gets the result; an operator over elements gives each thread its own. What a later
pass reads of those stays in registers, as each thread has the same elements in every pass. Inputs are read again in
each pass, from the L1 cache, where the row still is.

| rows | who has one | elements that are read again |
|---|---|---|
| below 16 elements, or fewer than 256 rows of 32 768 and more | operators apart, a kernel each | in memory |
| of up to 256 (where nothing is kept in registers 1024) | a warp | up to 8 of a lane in registers |
| of up to 2048 | a block | up to 8 of a thread in registers |
| longer | a block | in memory, which L2 answers for; every thread reads what it has written |

The order in which contributions are combined depends on the length of a row alone, as in `reductions_by_axis`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from parakeet_py.base.types import BOOL, INT64, Array, Scalar
from parakeet_py.imp import ir as imp
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering, Outs
from parakeet_py.imp.lower.loops import axes_of
from parakeet_py.imp.schedule.loop_order import static_cost, study
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.combining import (
    Combine,
    across_block,
    across_warp,
    ahead,
    any_order,
    cells_of,
    combine_of,
    stride,
    take,
)
from parakeet_py.ptx.kernels.regions import THREADS, WARP, grid_of_blocks, index_of, unravel, walked
from parakeet_py.ptx.kernels.row_groups import Member, RowGroup
from parakeet_py.ptx.skeletons.reductions_by_axis import BLOCK_ROW, FEW_ROWS, LONG_ROW, WARP_ROW
from parakeet_py.typed_ir import ir as typed
from parakeet_py.typed_ir.ir import Const, Operand, Var

ROUNDS = 8  # elements of a thread that stay in registers
MAX_UNROLLED = 512  # operations of all of them together

Apart = Callable[[Lowering, Member, Outs], None]  # computes one operator, into arrays


@dataclass
class Values:
    """What the members of a row program have computed, for the loads of later ones: see `load`."""

    known: dict[Var, Callable[[], Operand]] = field(default_factory=dict)

    def load(self, lo: Lowering, outs: tuple[Var, ...], op: typed.Load) -> bool:
        """Take an element from registers, if it is there."""
        found = self.known.get(op.array)
        if found is not None:
            lo.alias(outs[0], found())
        return found is not None


def lower_rows(lo: Lowering, group: RowGroup, values: Values, apart: Apart) -> None:
    """The operators of a group, where the last one stands."""
    program = _Program(lo, group, values)
    length, points = program.length, program.points
    small = lo.compare("lt", length, Const(WARP_ROW, INT64))
    few = lo.compare("lt", points, Const(FEW_ROWS, INT64))
    long = lo.prim("and", few, lo.compare("ge", length, Const(LONG_ROW, INT64)), type_=BOOL)

    def separately() -> None:
        for member in group.members:
            extents = lo.operands(member.op.extents)
            arrays = [
                program.arrays[out] if out in program.arrays else lo.new_outs([out], extents)[0] for out in member.outs
            ]
            apart(lo, member, arrays)

    if program.is_ordered:
        separately()
    else:
        lo.when(lo.prim("or", small, long, type_=BOOL), separately, program.together)


class _Program:
    """One group, and the ways to share its rows out."""

    def __init__(self, lo: Lowering, group: RowGroup, values: Values) -> None:
        self.lo, self.group, self.values = lo, group, values
        assert group.length is not None
        self.length, self.kept = lo.operand(group.length), lo.operands(group.kept)
        self.points = lo.product(self.kept)
        self.arrays: dict[Var, Var] = {}
        self.combines: dict[Var, Combine] = {}
        for member in group.members:
            for out in member.outs:
                if out in group.leaving:
                    (array,) = lo.new_outs([out], lo.operands(member.op.extents))
                    if array is not None:
                        self.arrays[out] = array
            if isinstance(member.op, typed.Reduce):
                self.combines[member.outs[0]] = combine_of(lo, member.op.combine, member.op.inits)
        cost = max(static_cost(member.op.body) for member in group.members)
        self.rounds = max(1, min(ROUNDS, MAX_UNROLLED // max(cost, 1)))
        self.held: dict[Var, Var] = {}  # memory of elements that are read again, where there is some

    @property
    def is_ordered(self) -> bool:
        """Whether some combine takes contributions in their order, which costs a run for each thread."""
        return not all(map(any_order, self.combines.values()))

    def together(self) -> None:
        """One kernel, by the length of a row."""
        lo = self.lo
        if not self.group.read_again:
            by_warp = lambda: self.by_warp(0)  # noqa: E731
            lo.when(lo.compare("lt", self.length, Const(BLOCK_ROW, INT64)), by_warp, lambda: self.by_block(0))
            return
        fits = [lo.compare("le", self.length, Const(team * self.rounds, INT64)) for team in (WARP, THREADS)]

        def longer() -> None:
            lo.when(fits[1], lambda: self.by_block(self.rounds), self.in_memory)

        lo.when(fits[0], lambda: self.by_warp(self.rounds), longer)

    def in_memory(self) -> None:
        """Elements that are read again are in memory, each read by the thread that has written it."""
        for out in self.group.read_again:
            own = self.arrays.get(out)
            self.held[out] = own or self.lo.new_array("held", array_type(out), (*self.kept, self.length))
        self.by_block(0)
        self.held = {}

    # ---- who has a row -----------------------------------------------------------------------------------------------

    def by_warp(self, rounds: int) -> None:
        lo = self.lo

        def some(block: Var, thread: Var) -> None:
            lane = lo.let("lane", INT64, imp.Lane("lane"))
            number = lo.floor_div(index_of(lo, block, thread), Const(WARP, INT64))

            def combined(with_: Combine, cells: Sequence[Cell]) -> list[Operand]:
                across_warp(lo, with_, cells)
                own = [lo.read(cell) for cell in cells]
                return [lo.let("row", one.type, imp.Shuffle("index", one, ZERO)) for one in own]

            row = lambda: self.row(number, False, lane, WARP, rounds, combined)  # noqa: E731
            lo.when(lo.compare("lt", number, self.points), row)

        grid_of_blocks(lo, lo.ceil_div(self.points, Const(THREADS // WARP, INT64)), "rows by warp", some)

    def by_block(self, rounds: int) -> None:
        lo = self.lo

        def some(block: Var, thread: Var) -> None:
            first = lo.compare("eq", thread, ZERO)

            def combined(with_: Combine, cells: Sequence[Cell]) -> list[Operand]:
                across_block(lo, with_, cells, thread)
                shared = [lo.let("row", Array(dtype, 1, "C"), imp.NewArray((ONE,), "shared")) for dtype in with_.types]
                lo.when(first, lambda: lo.store_outs(shared, (ZERO,), [lo.read(cell) for cell in cells]))
                lo.emit(imp.Barrier("block"))
                return [lo.load(one, ZERO) for one in shared]

            self.row(block, True, thread, THREADS, rounds, combined)

        grid_of_blocks(lo, self.points, "rows by block", some)

    # ---- a row -------------------------------------------------------------------------------------------------------

    def row(
        self,
        number: Operand,
        of_blocks: bool,
        member: Var,
        members: int,
        rounds: int,
        combined: Callable[[Combine, Sequence[Cell]], list[Operand]],
    ) -> None:
        """All passes over a row, as one of the threads that have it."""
        lo, known = self.lo, self.values.known
        first = self.group.members[0]
        axes = axes_of(first.rows[: len(self.kept)], self.kept)
        unravel(lo, walked(lo, axes), number, of_blocks)
        place = tuple(lo.operand(axis.index) for axis in axes)
        leads = lo.compare("eq", member, ZERO)
        self.registers: dict[Var, list[Cell]] = {}
        for one in self.group.members:
            for index, value in zip(one.rows, (*place, *[ZERO] * len(one.rows)), strict=False):
                lo.alias(index, value)
            if one.kind == "rows":
                self.give_rows(one, place, lo.lower_block(one.op.body), leads)
            elif isinstance(one.op, typed.Reduce):
                self.give_rows(one, place, self.reduced(one, place, (member, members, rounds), combined), leads)
            else:
                self.elements(one, place, (member, members, rounds))
        known.clear()

    def give_rows(self, one: Member, place: Sequence[Operand], found: Sequence[Operand], leads: Operand) -> None:
        """Numbers of the row: for the threads of later passes, and in memory if other operators read them."""
        lo = self.lo
        targets = [(self.arrays[out], value) for out, value in zip(one.outs, found, strict=False) if out in self.arrays]
        for out, value in zip(one.outs, found, strict=False):
            self.values.known[out] = lambda value=value: value  # type: ignore[misc]
        if targets:
            ones = (ZERO,) * (array_type(targets[0][0]).rank - len(place))

            def leave() -> None:
                for array, value in targets:
                    lo.store(array, (*place, *ones), value)

            lo.when(leads, leave)

    def reduced(
        self,
        one: Member,
        place: Sequence[Operand],
        team: tuple[Var, int, int],
        combined: Callable[[Combine, Sequence[Cell]], list[Operand]],
    ) -> list[Operand]:
        lo, with_ = self.lo, self.combines[one.outs[0]]
        cells = cells_of(lo, with_)

        def contribution(at: Operand) -> None:
            take(lo, with_, cells, lo.lower_block(one.op.body), at)

        self.each(one, place, team, contribution)
        return combined(with_, cells)

    def elements(self, one: Member, place: Sequence[Operand], team: tuple[Var, int, int]) -> None:
        lo, rounds = self.lo, team[2]
        again = [out for out in one.outs if out in self.group.read_again]
        if rounds:
            for out in again:
                kind = Scalar(array_type(out).dtype)
                self.registers[out] = [lo.declare("held", kind, _zero(kind)) for _ in range(rounds)]
        self.round = 0

        def element(at: Operand) -> None:
            for out, value in zip(one.outs, lo.lower_block(one.op.body), strict=True):
                if out in self.arrays:
                    lo.store(self.arrays[out], (*place, at), value)
                if out in self.registers:
                    lo.write(self.registers[out][self.round], value)
                elif out in self.held and out not in self.arrays:
                    lo.store(self.held[out], (*place, at), value)

        self.each(one, place, team, element)
        for out in again:
            if rounds:
                self.values.known[out] = lambda out=out: lo.read(self.registers[out][self.round])  # type: ignore[misc]
            else:
                self.values.known[out] = lambda out=out: lo.load(self.held[out], *place, self.at)  # type: ignore[misc]

    def each(
        self, one: Member, place: Sequence[Operand], team: tuple[Var, int, int], visit: Callable[[Operand], None]
    ) -> None:
        """A pass over the elements of a thread."""
        lo = self.lo
        member, members, rounds = team

        def at(here: Operand) -> None:
            self.at = here
            lo.alias(one.place, here)
            visit(here)

        if not rounds:
            count = ahead(study(one.op))
            stride(lo, member, self.length, Const(members, INT64), static_cost(one.op.body), at, count)
            return
        for number in range(rounds):
            self.round = number
            here = lo.add(member, Const(number * members, INT64))
            lo.when(lo.compare("lt", here, self.length), lambda here=here: at(here))  # type: ignore[misc]


def _zero(kind: Scalar) -> Const:
    if kind.dtype == "bool":
        return Const(False, kind)
    if kind.dtype.startswith("complex"):
        return Const(0j, kind)
    return Const(0.0 if kind.dtype.startswith("float") else 0, kind)
