"""One call of an accelerated function on a team: the CPU's threads and devices together.

The host part runs as on a single device; at every region it asks for the results, and the region is cut: a way to cut
it is chosen (`fission`), each member gets a range (`team`), what each part needs is brought to where it will run
(`residency.blocks`), the parts run, and their results are joined in the order of the index. Results stay where they
were made until they are needed elsewhere.

All transfers of a region are done before its first part starts, devices are started before the CPU begins its own part
on its threads, and of the parts that fail the first one's exception is raised. If what parts would write meets, which
only a call can tell, the region is cut another way or not at all.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base.tracebacks import placed
from parakeet_py.base.types import Array, Scalar
from parakeet_py.hybrid.devices.device import DeviceError, KernelError
from parakeet_py.hybrid.devices.faults import fault_text
from parakeet_py.hybrid.devices.simulated_clock import set_clocks
from parakeet_py.hybrid.devices.team import Range, Team
from parakeet_py.hybrid.devices.timeline import PART, recorder, recording, span
from parakeet_py.hybrid.execute.device_loss import Lost, member_of, with_losses
from parakeet_py.hybrid.execute.device_run import Call, OpaqueCallback, entering
from parakeet_py.hybrid.execute.guided_self_scheduling import Claims
from parakeet_py.hybrid.execute.part_future import Started
from parakeet_py.hybrid.execute.parts import Parts, add
from parakeet_py.hybrid.execute.run_record import RegionRun, Schedule, TeamRun
from parakeet_py.hybrid.execute.task_calls import run_tasks
from parakeet_py.hybrid.partition.access import Access, Part, Touched
from parakeet_py.hybrid.partition.division import Division
from parakeet_py.hybrid.partition.product_tiles import Cutting, product_parts
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.hybrid.partition.tasks import Task
from parakeet_py.hybrid.plan.placement_cost import costs_of
from parakeet_py.hybrid.plan.team_plan import DividedPlan
from parakeet_py.hybrid.residency.arrays import DeviceView, strides_of
from parakeet_py.hybrid.residency.blocks import (
    HOST,
    Memories,
    Root,
    SharedArray,
    Written,
    new_array,
    of_arguments,
    of_host,
)
from parakeet_py.hybrid.residency.byte_ranges import NOTHING, Spans
from parakeet_py.hybrid.residency.persistent_memory import Home, homes_of_frozen
from parakeet_py.hybrid.residency.team_arguments import Held
from parakeet_py.hybrid.residency.windows import Windows
from parakeet_py.imp import ir as imp
from parakeet_py.typed_ir.interpret import format_failure
from parakeet_py.typed_ir.ir import Dim, Function, Operand, Var, dtype_of
from parakeet_py.typed_ir.places import entries
from parakeet_py.typed_ir.semantics import scalar, strided

FINE = 8  # indices for each member: then no member gets much more or less than it should


def run_divided(
    plan: DividedPlan,
    team: Team,
    leaves: Sequence[Any],
    opaque: OpaqueCallback | None = None,
    held: Held | None = None,
) -> list[Any]:
    """Run a plan on leaf arguments, of which some may be held on the team; gives the leaves of the result."""
    handed_back = False

    def call_python(site: int, args: list[Any]) -> Sequence[Any]:
        nonlocal handed_back
        handed_back = True
        assert opaque is not None
        return opaque(site, args)

    def work(members: Team) -> list[Any]:
        set_clocks(members.devices)
        call = DividedCall(plan, members, call_python, held)
        try:
            with recording(members.devices) as found:
                results = call.run(leaves)
                if found is not None:
                    plan.timeline = found.timeline()
            return results
        finally:
            plan.last_run = call.done()

    stored = [leaves[number] for number in plan.stored if isinstance(leaves[number], np.ndarray)]
    ours = [array for array in stored if held is not None and held.home_of(array) is not None]
    theirs = [array for array in stored if not any(array is one for one in ours)]
    return with_losses(team, theirs, work, lambda: not handed_back and not ours)


class DividedCall:
    """A call in progress: the `Runtime` of its host code."""

    def __init__(self, plan: DividedPlan, team: Team, opaque: OpaqueCallback | None, held: Held | None = None) -> None:
        self.plan, self.team, self.callback, self.held = plan, team, opaque, held
        self.entered: dict[Home, Root] = {}
        self.memories = Memories([*map(member_of, team.devices)])
        self.arguments: list[SharedArray] = []
        self.function, self.host = plan.function, plan.host
        self.runs: list[RegionRun] = []
        self.schedules: list[Schedule] = []
        self.decided: dict[tuple[int, bool], tuple[Range, ...]] = {}
        self.products: dict[tuple[int, int, int], Cutting] = {}
        self.steady_joins = {"combine", "scan"} if plan.config.deterministic else set()
        self.threads = settings.current().thread_count

    def done(self) -> TeamRun:
        """What has been done so far."""
        names = ("cpu", *(device.name for device in self.team.devices))
        return TeamRun(names, tuple(self.runs), dict(self.memories.moved), tuple(self.schedules))

    def run(self, leaves: Sequence[Any]) -> list[Any]:
        params = self.plan.function.params
        places = [number for number, param in enumerate(params) if isinstance(param.type, Array)]
        given = [np.asarray(leaves[number]) for number in places]
        homes = homes_of_frozen(given)
        if self.held is not None:
            homes |= {number: home for number, array in enumerate(given) if (home := self.held.home_of(array))}
        self.entered = {home: home.enter(self.memories, self.team.devices) for home in {*homes.values()}}
        known = {number: self.entered[home] for number, home in homes.items()}
        self.arguments = of_arguments(self.memories, given, known)
        lost = False
        values = [entering(leaf, param.type) for leaf, param in zip(leaves, params, strict=True)]
        for number, array in zip(places, self.arguments, strict=True):
            values[number] = array
        try:
            results = self.perform(values)
            kinds = [result.type for result in self.plan.function.results]
            return [self.result(*given) for given in zip(itertools.count(), results, kinds)]
        except Lost:
            lost = True
            raise
        finally:
            if not lost:
                self.bring_back()
            for home, root in self.entered.items() if not self.memories.rehearsal else ():
                home.leave(root, self.team.devices)

    def bring_back(self) -> None:
        """Let the host see what has been stored into arguments of its own."""
        kept = set(self.entered.values())
        for array in self.arguments:
            if array.root not in kept:
                array.on_host()

    def result(self, number: int, value: Any, kind: object) -> Any:
        """A result; one that the call has made stays where it is if arguments do."""
        if self.held is None or not isinstance(value, SharedArray) or number in self.held.listed:
            return self.leaving(value, kind)
        if any(value.root is array.root for array in self.arguments):
            return value.host if value.root in self.entered.values() else value.on_host()
        self.held.adopt(value, self.team.devices)
        return value.host if value.host.size else value.on_host()

    def leaving(self, value: Any, kind: object) -> Any:
        if isinstance(value, SharedArray):
            return value.on_host()
        if isinstance(kind, Scalar):
            made = scalar(value, kind.dtype)
            return made.item() if kind.python else made
        return value

    # ---- what host code asks for -------------------------------------------------------------------------------------

    def new(self, dtype: str, shape: tuple[int, ...], layout: str) -> SharedArray:
        return new_array(self.memories, dtype, shape, layout)

    def view(
        self, base: SharedArray, starts: Sequence[int], axes: Sequence[tuple[int | None, int, int]]
    ) -> SharedArray:
        shape = tuple(extent for _, extent, _ in axes)
        strides = tuple(0 if source is None else base.host.strides[source] * step for source, _, step in axes)
        return SharedArray(base.root, _view(base.host, starts, shape, strides))

    def reshape(self, base: SharedArray, shape: tuple[int, ...]) -> SharedArray:
        strides = strides_of(shape, base.host.itemsize)
        return SharedArray(base.root, _view(base.host, (0,) * base.host.ndim, shape, strides))

    def stride(self, array: SharedArray, axis: int) -> int:
        return array.host.strides[axis]

    def strided(
        self, base: SharedArray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str
    ) -> SharedArray:
        return SharedArray(base.root, strided(base.host, offset, shape, strides, dtype))

    def load(self, array: SharedArray, indices: tuple[int, ...]) -> Any:
        array.root.bring(HOST, array.spans(_point(indices)))
        return array.host[indices]

    def store(self, array: SharedArray, indices: tuple[int, ...], value: Any) -> None:
        array.host[indices] = value
        array.root.wrote(HOST, array.spans(_point(indices)))

    def launch(self, kernel: int, blocks: int, args: tuple[Any, ...]) -> None:
        raise AssertionError("the host part of a divided function launches nothing itself")

    def failure(self, code: int, args: Sequence[Any]) -> Exception:
        checks = (one for one in imp.walk(self.function.body) if isinstance(one, imp.Check) and one.failure == code)
        kinds = [dtype_of(arg) for check in itertools.islice(checks, 1) for arg in check.args]
        values = [
            np.float64(value) if kind.startswith("float") else np.int64(value)
            for value, kind in zip(args, kinds, strict=False)
        ]
        site = self.function.failures[code]
        return format_failure(site.failure, values).with_traceback(placed(entries(site.pos)))

    def opaque(self, site: int, args: tuple[Any, ...]) -> Sequence[Any]:
        found = self.plan.at(site)
        if found is None:
            return self.hand_back(site, args)
        values = dict(zip(found.args, args, strict=True))
        return self.region(found, values) if isinstance(found, Region) else run_tasks(self, found, values)

    def within(self, task: Task, team: Team | None = None) -> Self:
        """This call as it goes on in a task: shared by all, or by a part of the team that does nothing else then."""
        made = copy.copy(self)
        made.function, made.host = task.function, task.host
        if team is not None:
            made.team, made.runs, made.decided, made.products = team, [], {}, {}
        return made

    def perform(self, values: Sequence[Any]) -> Sequence[Any]:
        """Run the host part."""
        return self.host(self, *values)

    def scheduled(self, schedule: Schedule) -> None:
        """Tasks are about to be run at the same time."""
        self.schedules.append(schedule)

    def hand_back(self, site: int, args: tuple[Any, ...]) -> list[Any]:
        """An operation of Python's, which sees all arrays on the host and may change them."""
        routine = self.plan.routines.get(site)
        roots = {array.root: None for array in (*args, *self.arguments) if isinstance(array, SharedArray)}
        everything = {root: np.array((0, root.size), np.int64) if root.size else NOTHING for root in roots}
        for root, spans in everything.items():
            root.bring(HOST, spans)
        given = [self.leaving(arg, kind) for arg, kind in zip(args, self.plan.opaque_args[site], strict=True)]
        if routine is not None:
            leaves: Sequence[Any] = routine.perform(given)
        else:
            assert self.callback is not None
            leaves = self.callback(site, given)
        for root, spans in everything.items():
            root.wrote(HOST, spans)
        kinds = self.plan.opaque_outs[site]
        return [self._taken(leaf, kind, list(roots)) for leaf, kind in zip(leaves, kinds, strict=True)]

    def _taken(self, leaf: Any, kind: object, roots: Sequence[Root]) -> Any:
        if not isinstance(kind, Array):
            return entering(leaf, kind)
        array = np.asarray(leaf)
        start = array.__array_interface__["data"][0]
        for root in roots:
            if array.size and root.address <= start < root.address + root.size:
                return SharedArray(root, array)
        return of_host(self.memories, array)

    # ---- regions -----------------------------------------------------------------------------------------------------

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
                if isinstance(array, SharedArray) and array.host.size:
                    add(needed, array.root, array.spans())
                    if array.host.flags.writeable:
                        add(written, array.root, array.spans())
            return needed, written

        def spans(access: Access, exact: bool) -> tuple[Root, Spans]:
            array: SharedArray = values[access.array]
            box = part.box(access)
            return array.root, NOTHING if box is None or not array.host.size else array.spans(box, exact)

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
            code = self.plan.on_host(part, disjoint)
            given = [arg.host if isinstance(arg, SharedArray) else arg for arg in args]

            def compute(_: Sequence[Any]) -> list[Any]:
                with span(None, PART, part.name):
                    values = code(given, self.threads)
                return [of_host(self.memories, value) if isinstance(value, np.ndarray) else value for value in values]

            return Started(None, compute)
        plan = self.plan.on_device(part, disjoint)
        call = Call(plan, self.memories.devices[who - 1], None)
        given = [self._there(arg, who, windows) if isinstance(arg, SharedArray) else arg for arg in args]
        kinds = [result.type for result in plan.function.results]

        def tell(lost: Lost) -> None:
            if isinstance(lost.error, DeviceError) and call.device.unfinished:
                lost.error = KernelError(fault_text(plan, call.device, lost.error))

        return Started(
            plan.steps(call, *given), lambda made: [*map(self._made_on, itertools.repeat(who), made, kinds)], tell
        )

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


def _disjoint(args: Sequence[Any], names: Sequence[Var | None], stored: set[Var]) -> bool:
    """Whether arrays that are stored to share no memory with any other argument."""
    arrays = [(name, arg) for name, arg in zip(names, args, strict=True) if isinstance(arg, SharedArray)]
    for position, (name, array) in enumerate(arrays):
        if name not in stored:
            continue
        for other, (_, second) in enumerate(arrays):
            if other != position and second.root is array.root and np.may_share_memory(second.host, array.host):
                return False
    return True


def _point(indices: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((int(index), int(index) + 1) for index in indices)


def _view(base: Any, starts: Sequence[int], shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    if 0 in shape or not base.size:
        start = base[tuple(slice(0, 0) for _ in starts)]
    else:
        start = base[(*(slice(start, start + 1) for start in starts), ...)]
    return np.lib.stride_tricks.as_strided(start, shape, strides)
