"""The parts of one region in one call: who has which, what each needs and writes, how their results are joined."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from parakeet_py.hybrid.access import Part
from parakeet_py.hybrid.device import Machine
from parakeet_py.hybrid.division import Division
from parakeet_py.hybrid.losses import Lost
from parakeet_py.hybrid.regions import Region
from parakeet_py.hybrid.residency import HOST, Root, SharedArray, of_host
from parakeet_py.hybrid.spans import NOTHING, Spans, intersection, union
from parakeet_py.hybrid.streaming import Windows, no_memory, stream
from parakeet_py.hybrid.team import Range
from parakeet_py.typed_ir.ir import Function, Scatter, Var
from parakeet_py.typed_ir.types import Array

if TYPE_CHECKING:
    from parakeet_py.hybrid.executor import DividedCall

Written = dict[Root, Spans]


def add(found: Written, root: Root, spans: Spans) -> None:
    if len(spans):
        found[root] = union(found.get(root, NOTHING), spans)


class Parts:
    """The parts of one region, cut in one way."""

    def __init__(
        self, call: DividedCall, region: Region, division: Division, values: dict[Var, Any], ranges: Sequence[Range]
    ) -> None:
        self.call, self.region, self.division, self.values, self.ranges = call, region, division, values, ranges
        self.whole: list[SharedArray] = []
        self.stored = {access.array for access in division.touched.writes}
        if division.join == "histogram":
            self.stored = set()
        self.streamed: set[int] = set()  # parts that a device computes in pieces
        self.needed: list[Written] = []
        self.written: list[Written] = []
        for _, lo, hi in ranges:
            part = Part(division.touched, values, division.index, lo, hi)
            needed, written = call.touched(division.touched, part, values)
            if division.join == "histogram":
                written = {}
            self.needed.append(needed)
            self.written.append(written)

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
        division, op = self.division, self.division.op
        if division.join in ("concatenate", "scan") and not isinstance(op, Scatter):
            self.make_results()
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
        arrays = [out for out in self.region.outs if isinstance(out.type, Array)]
        if not arrays:
            return
        extents = self.division.op.extents  # type: ignore[union-attr]
        shape = [self.call.extent(extent, self.values) for extent in extents]
        for out in arrays:
            assert isinstance(out.type, Array)
            self.whole.append(self.call.new(out.type.dtype, tuple(shape), out.type.layout))
        self._fills()

    def _fills(self) -> None:
        """Parts write their ranges of the results."""
        for written, (_, lo, hi) in zip(self.written, self.ranges, strict=True):
            for array in self.whole:
                box = tuple((lo, hi) if axis == self.division.axis else (0, n) for axis, n in enumerate(array.shape))
                if array.host.size:
                    add(written, array.root, array.spans(box, True))

    def piece(self, part: Range) -> Parts:
        """Another part of the same region, for the same results."""
        made = Parts(self.call, self.region, self.division, self.values, [part])
        made.whole = self.whole
        made._fills()
        return made

    def bring(self, extra: Sequence[Sequence[Any]] = ()) -> None:
        """Bring what every part needs to where it will run, and more arguments of each."""
        for number, more in enumerate(extra or [()] * len(self.ranges)):
            who = self.ranges[number][0]
            try:
                self._make_room(number)
            except Lost as lost:
                if not no_memory(lost) or self.division.join != "concatenate":
                    raise
                self.streamed.add(number)
                continue
            for array in more:
                if isinstance(array, SharedArray) and array.host.size:
                    array.root.bring(who, array.spans())

    def _make_room(self, number: int) -> None:
        """Bring what one part needs, and make place for what it writes; others' copies go if there is none."""
        who = self.ranges[number][0]
        while True:
            try:
                for root, spans in self.needed[number].items():
                    root.bring(who, spans)
                for root in self.written[number] if who != HOST else ():
                    root.copy_on(who)
                return
            except Lost as lost:
                keep = {*self.needed[number], *self.written[number]}
                if not no_memory(lost) or not self.call.memories.evict(who, keep):
                    raise

    def start(
        self, number: int, function: Function, more: Sequence[Any], windows: Windows | None = None
    ) -> Callable[[], list[Any]]:
        """Start a part; gives what waits for its results."""
        who, lo, hi = self.ranges[number]
        division = self.division
        args = [lo, hi, *more, *self.whole, *(self.values[var] for var in division.free)]
        names: list[Var | None] = [*[None] * (2 + len(more) + len(self.whole)), *division.free]
        return self.call.launch_part(who, function, args, names, self.stored, windows)

    def has_written(self, number: int) -> None:
        """A part has run; one that was streamed has told it already."""
        for root, spans in self.written[number].items() if number not in self.streamed else ():
            root.wrote(self.ranges[number][0], spans)

    def _all(self, function: Function, extra: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Run a function for every range, with more arguments for each; gives their results in order."""
        call, division = self.call, self.division
        self.bring(extra)
        waiting: list[tuple[int, _Clock | None, Callable[[], list[Any]]]] = []
        results: list[list[Any]] = [[] for _ in self.ranges]
        failed: dict[int, Exception] = {}
        order = sorted(range(len(self.ranges)), key=lambda number: self.ranges[number][0] == HOST)  # the CPU last
        for number in order:
            clock = _Clock(call, division, self.ranges[number]) if function is division.part else None
            if number in self.streamed:
                try:
                    stream(self, number)
                except Lost:
                    raise
                except Exception as error:
                    failed[number] = error
                    continue
                wait: Callable[[], list[Any]] = list
            else:
                wait = self.start(number, function, extra[number] if extra else ())
            waiting.append((number, clock, wait))
            if clock is not None:
                clock.stop()
        for number, clock, wait in waiting:
            try:
                if clock is not None:
                    clock.begin()
                results[number] = wait()
                if clock is not None:
                    clock.learn()
            except Lost:
                raise
            except Exception as error:
                failed[number] = error
            self.has_written(number)
        if failed:
            raise failed[min(failed)]
        return results

    def _on_host(self, function: Function, args: Sequence[Any], stored: bool = False) -> list[Any]:
        """A join, on the host; with `stored` it stores to its first argument."""
        for arg in args:
            if isinstance(arg, SharedArray):
                arg.on_host()
        params = list(function.params)
        return self.call.launch_part(HOST, function, args, params, {params[0]} if stored else set())()

    def _combined(self, partial: Sequence[list[Any]]) -> list[Any]:
        assert self.division.combine is not None
        accumulated = partial[0]
        for more in partial[1:]:
            accumulated = self._on_host(self.division.combine, [*accumulated, *more])
        return accumulated

    def _scanned(self, totals: list[list[Any]]) -> list[Any]:
        combine, after = self.division.combine, self.division.after
        assert combine is not None and after is not None
        if len(totals) > 1:
            before = [totals[0]]
            for more in totals[1:-1]:
                before.append(self._on_host(combine, [*before[-1], *more]))
            self.ranges, self.written = self.ranges[1:], self.written[1:]
            self.needed = self.written  # parts change what they have made
            self._all(after, before)
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
        if target.host.size:
            target.root.wrote(HOST, target.spans(exact=True))
        return []


class _Clock:
    """Measures a part, if that is wanted."""

    def __init__(self, call: DividedCall, division: Division, part: Range) -> None:
        self.who, lo, hi = part
        self.count, self.key = hi - lo, id(division.part)
        self.rates = call.plan.rates
        self.device = None if self.who == HOST else cast(Machine, call.team.devices[self.who - 1])
        self.name = "cpu" if self.device is None else self.device.name
        self.wanted = self.rates.wanted(self.key, self.name)
        self.begun = 0.0
        self.end: Any = None
        self.start = self.device.mark() if self.wanted and self.device is not None else None

    def stop(self) -> None:
        """Everything has been given to the device."""
        if self.wanted and self.device is not None:
            self.end = self.device.mark()

    def learn(self) -> None:
        """The part has run."""
        if not self.wanted:
            return
        if self.device is None:
            seconds = time.perf_counter() - self.begun
        else:
            seconds = self.device.seconds(self.start, self.end)
        self.rates.learn(self.key, self.name, self.count, seconds)

    def begin(self) -> None:
        """The CPU begins."""
        self.begun = time.perf_counter()
