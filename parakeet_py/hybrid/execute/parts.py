"""The parts of one region in one call: who has which, what each needs and writes, how their results are joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.base.types import Array
from parakeet_py.hybrid.devices.team import Range
from parakeet_py.hybrid.execute.device_loss import Lost
from parakeet_py.hybrid.execute.member_threads import Stop, together
from parakeet_py.hybrid.execute.part_future import Started
from parakeet_py.hybrid.execute.part_runs import PartRun
from parakeet_py.hybrid.execute.streaming import UNDER_WAY, fits, no_memory
from parakeet_py.hybrid.execute.team_call import TeamCall
from parakeet_py.hybrid.partition.access import Part
from parakeet_py.hybrid.partition.division import Bounds, Division
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.hybrid.plan.placement_cost import operations_of
from parakeet_py.hybrid.residency.arrays import Window
from parakeet_py.hybrid.residency.blocks import HOST, Root, SharedArray, Written, of_host
from parakeet_py.hybrid.residency.byte_ranges import NOTHING, Spans, difference, intersection, size_of, union
from parakeet_py.hybrid.residency.windows import Windows
from parakeet_py.typed_ir.ir import Function, Map, Reduce, Scan, Scatter, Var

MUCH = 1 << 20  # bytes that are worth a thread to bring them


def add(found: Written, root: Root, spans: Spans) -> None:
    if len(spans):
        found[root] = union(found.get(root, NOTHING), spans)


class Parts:
    """The parts of one region, cut in one way.

    Attributes
    ----------
    ranges : who has what
    across : the ranges of the second axis, if there is one
    again : parts change what they have made, and need nothing else
    streamed : the parts that a device computes in pieces
    has_room : there is memory for what parts need and write, but for those
    computed : the ranges that results are of, and who has what was computed: of what is streamed, the host
    """

    def __init__(
        self,
        call: TeamCall,
        region: Region,
        division: Division,
        values: dict[Var, Any],
        ranges: Sequence[Range],
        across: Sequence[Bounds] = (),
    ) -> None:
        self.call, self.region, self.division, self.values = call, region, division, values
        self.ranges, self.across = ranges, across
        self.whole: list[SharedArray] = []
        self.stored = {access.array for access in division.touched.writes}
        if division.join == "histogram":
            self.stored = set()
        self.again = self.has_room = False
        self.streamed: set[int] = set()
        self.computed: list[Range] = []
        self.stop = Stop()
        self.needed: list[Written] = []
        self.written: list[Written] = []
        for number, (_, lo, hi) in enumerate(ranges):
            part = Part(division.touched, values, division.bounds(lo, hi, *self._second(number)))
            needed, written = call.touched(division.touched, part, values)
            if division.join == "histogram":
                written = {}
            self.needed.append(needed)
            self.written.append(written)

    def _second(self, number: int) -> Bounds | tuple[()]:
        """The range of the second axis that a part has, if there is one."""
        return self.across[number] if self.across else ()

    def points(self, number: int) -> int:
        """How many indices a part has, of both axes if two are cut."""
        _, lo, hi = self.ranges[number]
        first, last = self._second(number) or (0, 1)
        return (hi - lo) * (last - first)

    def independent(self) -> bool:
        """Whether no two parts write the same bytes."""
        if len(self.ranges) == 1:
            return True
        if not self.division.touched.traced:
            return False
        seen: Written = {}
        for written in self.written:
            for root, spans in written.items():
                if root in seen and len(intersection(seen[root], spans)):
                    return False
                add(seen, root, spans)
        return True

    def run(self) -> list[Any]:
        self.make_results()
        self._make_room()
        best = self._in_small_enough_pieces() if self.streamed else self
        best.has_room = not self.streamed  # looking for that gives memory up
        return best._run()

    def _run(self) -> list[Any]:
        division = self.division
        partial = self._all(division.part, ())
        match division.join:
            case "concatenate":
                return [*self.whole]
            case "combine":
                return self._combined(partial)
            case "scan":
                return self._scanned(partial)
            case "compress":
                return self._joined(partial)
            case "histogram":
                return self._taken_in(partial)
        raise AssertionError(division.join)

    def make_results(self) -> None:
        """The arrays that parts fill together, if they do."""
        op = self.division.op
        if self.division.join not in ("concatenate", "scan") or isinstance(op, Scatter):
            return
        arrays = [out for out in self.region.outs if isinstance(out.type, Array)]
        if not arrays:  # a product stores into an array that is there
            return
        assert isinstance(op, Map | Reduce | Scan)
        shape = [self.call.extent(extent, self.values) for extent in op.extents]
        for out in arrays:
            assert isinstance(out.type, Array)
            self.whole.append(self.call.new(out.type.dtype, tuple(shape), out.type.layout))
        self._fills()

    def _fills(self) -> None:
        """Parts write their ranges of the results."""
        self.has_room = False
        for written, (_, lo, hi) in zip(self.written, self.ranges, strict=True):
            for array in self.whole:
                box = tuple((lo, hi) if axis == self.division.axis else (0, n) for axis, n in enumerate(array.shape))
                if array.size:
                    add(written, array.root, array.spans(box, True))

    def piece(self, part: Range, number: int = 0) -> Parts:
        """Another part of the same region, for the same results; of a second axis it has what part `number` has."""
        across = self.across[number : number + 1]
        made = Parts(self.call, self.region, self.division, self.values, [part], across)
        made.fill(self.whole, self.again)
        return made

    def fill(self, whole: list[SharedArray], again: bool = False) -> None:
        """Let parts write into results that exist; `again`: they are there, and parts change them."""
        self.whole, self.again = whole, again
        self._fills()
        self.needed = self.written if again else self.needed

    def bring(self) -> None:
        """Bring what every part needs to where it will run."""
        self._make_room()
        for number in range(len(self.ranges)):
            if number not in self.streamed:
                self.deliver(number, ())

    def _make_room(self) -> None:
        """Make place for what parts need and write on their devices; what does not fit even so will be streamed."""
        if self.has_room:
            return
        self.has_room = True
        for number, (who, _, _) in enumerate(self.ranges):
            try:
                self._reserve(number) if who != HOST else None
            except Lost as lost:
                if not no_memory(lost):
                    raise
                self.streamed.add(number)

    def _in_small_enough_pieces(self) -> Parts:
        """This, or the region cut in another way, if an index is too much for a device to stream."""
        ways = [self]
        for pieces in (UNDER_WAY, 1):
            for parts in ways:
                if all(fits(parts, number, pieces) for number in parts.streamed):
                    run = self.call.runs[-1]
                    ranges, across = tuple(parts.ranges), tuple(parts.across)
                    division = parts.division
                    changed = run._replace(join=division.join, axis=division.axis, ranges=ranges, across=across)
                    self.call.runs[-1] = run if parts is self else changed
                    return parts
                if parts is self and len(ways) == 1:
                    ways += self._other_ways()
        return self

    def _other_ways(self) -> list[Parts]:
        """The region cut along other axes."""
        call, found = self.call, []
        for division in self.region.divisions:
            ranges = call.ranges(division, self.values) if division is not self.division else ()
            parts = Parts(call, self.region, division, self.values, ranges)
            if ranges and parts.independent():
                parts.make_results()
                parts._make_room()
                found.append(parts)
        return found

    def _reserve(self, number: int) -> None:
        """Have memory for what a part needs and writes where it will run: for all of each array, else for its part."""
        who = self.ranges[number][0]
        touched: Written = {}
        for root, spans in (*self.needed[number].items(), *self.written[number].items()):
            add(touched, root, spans)
        whole = True
        while True:
            try:
                for root, spans in touched.items():
                    if whole and not isinstance(root.copies.get(who), Window):
                        root.copy_on(who)
                    else:
                        root.window_on(who, spans)
                return
            except Lost as lost:
                if not no_memory(lost):
                    raise
                if self.call.memories.evict(who, touched):
                    continue
                if not whole:
                    raise
                whole = False
                for root in touched:  # what has been made for all of an array, and has nothing yet
                    root.give_up_empty(who)

    def deliver(self, number: int, more: Sequence[Any]) -> None:
        """Bring what a part needs, and more arguments of it, to where it will run."""
        who = self.ranges[number][0]
        for root, spans in self.needed[number].items():
            root.bring(who, spans)
        for array in more:
            if isinstance(array, SharedArray) and array.size:
                array.root.bring(who, array.spans())

    def _worth_a_crew(self) -> bool:
        """Whether members should not wait for what others are brought: there is much of it, and no member writes what
        another one is brought."""
        if len(self.ranges) == 1:
            return False
        missing = sum(
            size_of(difference(spans, root.valid.get(who, NOTHING)))
            for (who, _, _), needed in zip(self.ranges, self.needed, strict=True)
            for root, spans in (needed.items() if who != HOST else ())
        )
        if missing < MUCH and not self.streamed:
            return False
        return not any(
            len(intersection(spans, written.get(root, NOTHING)))
            for number, needed in enumerate(self.needed)
            for other, written in enumerate(self.written)
            for root, spans in (needed.items() if other != number else ())
        )

    def prepare(self, number: int, function: Function, more: Sequence[Any] = ()) -> None:
        """Compile a part for the member that will run it, so that what it takes is not counted as its own."""
        self.call.prepare(self.ranges[number][0], function, *self._arguments(number, function, more), self.stored)

    def start(self, number: int, function: Function, more: Sequence[Any], windows: Windows | None = None) -> Started:
        """Start a part, as far as it need not wait for its device."""
        args, names = self._arguments(number, function, more)
        who = self.ranges[number][0]
        told = None if who == HOST else getattr(self.call.team.devices[who - 1], "told", None)
        if told is not None:  # a device of set speed that computes nothing
            told(operations_of(self.call, self.division, self.values, who) * self.points(number))
        return self.call.launch_part(who, function, args, names, self.stored, windows)

    def _arguments(self, number: int, function: Function, more: Sequence[Any]) -> tuple[list[Any], list[Var | None]]:
        """The arguments of a part, and what they are called outside."""
        _, lo, hi = self.ranges[number]
        division = self.division
        own = [lo, hi, *self._second(number), *more, *self.whole]
        return [*own, *(self.values[var] for var in division.free)], [*[None] * len(own), *division.free]

    def has_written(self, number: int) -> None:
        """A part has run."""
        for root, spans in self.written[number].items():
            root.wrote(self.ranges[number][0], spans)

    def _all(self, function: Function, extra: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Run a function for every range, with more arguments for each; gives their results in order."""
        self._make_room()
        runs = [
            PartRun(self, numbers, function, [extra[number] if extra else () for number in numbers])
            for numbers in self._together()
        ]
        if self._worth_a_crew():
            runs[0].bring()  # before any part writes to the host's memory
            together([run.all for run in runs], self.stop)
        else:
            for run in runs:
                run.bring()
            devices = [run for run in runs if run.who != HOST]
            for run in devices:
                run.begin()
            for run in devices:  # none waits for a number of another one's
                run.launch()
            for run in runs:  # the CPU begins now
                run.end()
        failed = [run.error for run in runs if run.error is not None]
        if failed:
            raise failed[0]
        self.computed = [(HOST if run.streamed else who, lo, hi) for run in runs for (who, lo, hi), _ in run.results]
        return [results for run in runs for _, results in run.results]

    def _together(self) -> list[list[int]]:
        """The numbers of parts, those together that one device streams after each other."""
        found: list[list[int]] = []
        for number, (who, _, _) in enumerate(self.ranges):
            last = found[-1][-1] if found else None
            if number in self.streamed and last in self.streamed and self.ranges[last][0] == who:
                found[-1].append(number)
            else:
                found.append([number])
        return found

    def _on_host(self, function: Function, args: Sequence[Any], stored: bool = False) -> list[Any]:
        """A join, on the host; with `stored` it stores to its first argument."""
        for arg in args:
            if isinstance(arg, SharedArray):
                arg.on_host()
        params = list(function.params)
        return self.call.launch_part(HOST, function, args, params, {params[0]} if stored else set())()

    def _combined(self, partial: Sequence[list[Any]]) -> list[Any]:
        accumulated = partial[0]
        for more in partial[1:]:
            accumulated = self.total(accumulated, more)
        return accumulated

    def total(self, accumulated: Sequence[Any], more: Sequence[Any]) -> list[Any]:
        """Partial results with those of the next part taken in."""
        assert self.division.combine is not None
        return self._on_host(self.division.combine, [*accumulated, *more])

    def _scanned(self, totals: list[list[Any]]) -> list[Any]:
        after = self.division.after
        assert after is not None
        if len(totals) > 1:
            before = [totals[0]]
            for more in totals[1:-1]:
                before.append(self.total(before[-1], more))
            others = Parts(self.call, self.region, self.division, self.values, self.computed[1:])
            others.fill(self.whole, again=True)
            others._all(after, before)
        return [*self.whole]

    def _joined(self, partial: Sequence[list[Any]]) -> list[Any]:
        columns = zip(*partial, strict=True)
        counts = next(columns)
        joined = [np.concatenate([array.on_host() for array in column]) for column in columns]
        return [sum(counts), *(of_host(self.call.memories, array) for array in joined)]

    def _taken_in(self, partial: Sequence[list[Any]]) -> list[Any]:
        assert self.division.combine is not None and isinstance(self.division.op, Scatter)
        target: SharedArray = self.values[self.division.op.target]
        for (copy,) in partial:
            self._on_host(self.division.combine, [target, copy], stored=True)
        if target.size:
            target.root.wrote(HOST, target.spans(exact=True))
        return []
