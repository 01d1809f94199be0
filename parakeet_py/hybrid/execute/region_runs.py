"""The regions of a call on a team: each is cut, its parts run on the members, and their results are joined.

A way to cut a region is chosen (`fission`), each member gets a range (`team`), what each part needs is brought to where
it will run, the parts run, and their results are joined in the order of the index. All transfers of a region are done
before its first part starts, devices are started before the CPU begins its own part on its threads, and of the parts
that fail the first one's exception is raised. If what parts would write meets, which only a call can tell, the region
is cut another way or not at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base.types import Scalar
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.recording import spoil
from parakeet_py.hybrid.devices.team import Range, Team
from parakeet_py.hybrid.devices.timeline import PART, recorder, span
from parakeet_py.hybrid.execute.call_arrays import CallArrays, entering
from parakeet_py.hybrid.execute.device_loss import Lost
from parakeet_py.hybrid.execute.device_memory import DeviceMemory
from parakeet_py.hybrid.execute.guided_self_scheduling import Claims
from parakeet_py.hybrid.execute.part_future import Started
from parakeet_py.hybrid.execute.parts import Parts, add
from parakeet_py.hybrid.execute.run_record import RegionRun, Schedule
from parakeet_py.hybrid.execute.team_call import TeamCall
from parakeet_py.hybrid.partition.access import Access, Part, Touched
from parakeet_py.hybrid.partition.division import Division
from parakeet_py.hybrid.partition.product_tiles import Cutting, product_parts
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.hybrid.plan.placement_cost import costs_of
from parakeet_py.hybrid.residency.arrays import DeviceView
from parakeet_py.hybrid.residency.blocks import (
    HOST,
    Root,
    SharedArray,
    Written,
    of_host,
)
from parakeet_py.hybrid.residency.byte_ranges import NOTHING, Spans
from parakeet_py.hybrid.residency.windows import Windows
from parakeet_py.typed_ir.ir import Dim, Function, Operand, Var

FINE = 8  # indices for each member: then no member gets much more or less than it should


class RegionRuns(CallArrays, TeamCall):
    """How a call runs its regions.

    Attributes
    ----------
    runs, schedules : what has become of regions and tasks so far
    decided : the ranges of members, by extents and by whether these may not depend on the call
    products : how products of some extents have been cut, by their extents
    threads : of the CPU
    """

    def __init__(self, plan: Any, team: Team) -> None:
        super().__init__(plan, team)
        self.runs: list[RegionRun] = []
        self.schedules: list[Schedule] = []
        self.decided: dict[tuple[int, bool], tuple[Range, ...]] = {}
        self.products: dict[tuple[int, int, int], Cutting] = {}
        self.steady_joins = {"combine", "scan"} if plan.config.deterministic else set()
        self.threads = settings.current().thread_count

    def region(self, region: Region, values: dict[Var, Any]) -> list[Any]:
        """Run a region; gives its results."""
        found = recorder()
        if found is not None:
            found.lines[region.name] = (region.line,)
        parts = self.cut(region, values)
        if parts is None:
            return self.whole(region, values)
        return (Claims.of(parts) or parts).run()

    def cut(self, region: Region, values: dict[Var, Any]) -> Parts | None:
        """The parts of a region; None if it is not cut."""
        for parts in self.ways(region, values):
            if parts.independent():
                join, axis = parts.division.join, parts.division.axis
                run = RegionRun(region.name, region.line, join, axis, tuple(parts.ranges), tuple(parts.across))
                self.runs.append(run)
                return parts
        self.runs.append(RegionRun(region.name, region.line, "whole", -1, (), by=self.team.first))
        return None

    def ways(self, region: Region, values: dict[Var, Any]) -> Iterator[Parts]:
        """The parts of a region, by each way to cut it, best first; none if it has no point."""
        product = product_parts(self, region, values)
        if product is not None:
            yield product
        for division in self.in_order(region, values):
            ranges = self.ranges(division, values)
            if not ranges:
                return
            yield Parts(self, region, division, values, ranges)

    def in_order(self, region: Region, values: dict[Var, Any]) -> Sequence[Division]:
        """The ways to cut a region, best first: outer axes, unless they are so short that shares would be coarse."""
        found, count = region.divisions, len(self.team.only or self.team.members)
        fine = FINE * count
        if count < 2 or len(found) < 2 or self.extent(found[0].extent, values) >= fine:
            return found
        extents = [self.extent(division.extent, values) for division in found]
        best = next((number for number, extent in enumerate(extents) if extent >= fine), extents.index(max(extents)))
        return [found[best], *found[:best], *found[best + 1 :]]

    def ranges(self, division: Division, values: dict[Var, Any], remember: bool = True) -> tuple[Range, ...]:
        """Who gets what: as before in this call for the same extent, so that data stays where it is."""
        extent = self.extent(division.extent, values)
        steady = self.steady(division)
        found = self.decided.get((extent, True)) or self.decided.get((extent, steady))
        if found is None:
            found = self.team.ranges(extent, lambda: costs_of(self, division, values, extent, steady))
            if remember:
                self.decided[extent, steady] = found
        return found

    def steady(self, division: Division) -> bool:
        """Whether a way to cut may depend only on what does not change between equal calls: sums come out with other
        last bits where others compute them."""
        return division.join in self.steady_joins or (self.plan.config.deterministic and division.rounds)

    def whole(self, region: Region, values: dict[Var, Any]) -> list[Any]:
        """The region as it is, by one of the team."""
        who = self.team.first
        needed, written = self.touched_whole(region, values)
        for root, spans in needed.items():
            root.bring(who, spans)
        stored = {access.array for access in region.touched.writes}
        try:
            return self.launch_part(who, region.whole, [values[arg] for arg in region.args], region.args, stored)()
        finally:
            for root, spans in written.items():
                root.wrote(who, spans)

    def touched_whole(self, region: Region, values: Mapping[Var, Any]) -> tuple[Written, Written]:
        """The bytes that a region that is not cut needs, and those that it writes."""
        return self.touched(region.touched, Part(region.touched, values), values)

    def extent(self, extent: Operand | Dim, values: Mapping[Var, Any]) -> int:
        if isinstance(extent, Dim):
            return int(values[extent.array].shape[extent.axis])
        return int(values[extent]) if isinstance(extent, Var) else int(extent.value.real)

    def touched(self, touched: Touched, part: Part, values: Mapping[Var, Any]) -> tuple[Written, Written]:
        """The bytes that a part needs, and those that it writes."""
        needed: Written = {}
        written: Written = {}
        if not touched.traced:
            for array in values.values():
                if isinstance(array, SharedArray) and array.size:
                    add(needed, array.root, array.spans())
                    if array.layout.writeable:
                        add(written, array.root, array.spans())
            return needed, written

        def spans(access: Access, exact: bool) -> tuple[Root, Spans]:
            array: SharedArray = values[access.array]
            box = part.box(access)
            return array.root, NOTHING if box is None or not array.size else array.spans(box, exact)

        for access in touched.reads:
            add(needed, *spans(access, False))
        for access in touched.writes:
            root, some = spans(access, True)
            add(needed, root, some)
            add(written, root, some)
        return needed, written

    def launch_part(
        self,
        who: int,
        part: Function,
        args: Sequence[Any],
        names: Sequence[Var | None],
        stored: set[Var],
        windows: Windows | None = None,
    ) -> Started:
        """Start a part where `who` is, as far as it need not wait; its results are values of the host part.

        `names` are what the arguments are called outside, None for what the executor has made; `stored` are those of
        them that are stored to; `windows` what the device has of the arrays, if that is not all.
        """
        disjoint = _disjoint(args, names, stored)
        if who == HOST:
            spoil("the CPU has a part")
            code = self.plan.on_host(part, disjoint)
            given = [arg.host if isinstance(arg, SharedArray) else arg for arg in args]

            def compute(_: Sequence[Any]) -> list[Any]:
                with span(None, PART, part.name):
                    values = code(given, self.threads)
                return [of_host(self.memories, value) if isinstance(value, np.ndarray) else value for value in values]

            return Started(None, compute)
        plan = self.plan.on_device(part, disjoint)
        memory = DeviceMemory.of_part(plan, self.memories.devices[who - 1])
        given = [self._there(arg, who, windows) if isinstance(arg, SharedArray) else arg for arg in args]
        for one, view in zip(args, given, strict=True):
            if isinstance(one, SharedArray) and one.root.home is not None and isinstance(view, DeviceView):
                memory.given.add(view.buffer)
        kinds = [result.type for result in plan.function.results]

        def tell(lost: Lost) -> None:
            lost.error = memory.fault(lost.error)

        steps = _steps(memory, plan.steps(memory, *given))
        return Started(steps, lambda made: [*map(self._made_on, itertools.repeat(who), made, kinds)], tell)

    def prepare(
        self, who: int, part: Function, args: Sequence[Any], names: Sequence[Var | None], stored: set[Var]
    ) -> None:
        """Compile a part for `who`, see `launch_part`."""
        disjoint = _disjoint(args, names, stored)
        if who == HOST:
            self.plan.on_host(part, disjoint)
            return
        plan, device = self.plan.on_device(part, disjoint), self.memories.devices[who - 1]
        for kernel in range(len(plan.kernels)):
            plan.module(device, kernel)

    def _there(self, array: SharedArray, who: int, windows: Windows | None) -> DeviceView:
        window = None if windows is None else windows.get(array)
        return array.on_device(who) if window is None else window.view(array)

    def _made_on(self, who: int, value: Any, kind: object) -> Any:
        """What a part has made on a device, as a value of the host part."""
        if not isinstance(value, DeviceView):
            return value
        array = value.to_host()
        if isinstance(kind, Scalar):
            return entering(array[()], kind)
        self.memories.count(who, HOST, array.nbytes)
        return of_host(self.memories, array)


def _steps(memory: DeviceMemory, steps: Generator[None, None, Any]) -> Generator[None, None, Any]:
    """The host part of a part, and then a look whether something has failed."""
    try:
        made = yield from steps
        if memory.unseen:
            yield
    except (DeviceError, Lost):
        raise
    except Exception as error:
        raise memory.first(error) from None
    memory.look()
    return made


def _disjoint(args: Sequence[Any], names: Sequence[Var | None], stored: set[Var]) -> bool:
    """Whether arrays that are stored to share no memory with any other argument."""
    arrays = [(name, arg) for name, arg in zip(names, args, strict=True) if isinstance(arg, SharedArray)]
    for position, (name, array) in enumerate(arrays):
        if name not in stored:
            continue
        for other, (_, second) in enumerate(arrays):
            if other != position and second.root is array.root and array.meets(second):
                return False
    return True
