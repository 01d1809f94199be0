"""One call of an accelerated function on a team: of the CPU's threads and devices together, or of one device alone.

Arguments enter as arrays that several memories may have (`residency.blocks`), the host part runs, and what it makes
leaves again. On a device alone all of the host part works in that device's memory (`device_memory`), where its kernels
are launched. On a team it asks at every region for the results, and the region is cut: a way to cut it is chosen
(`fission`), each member gets a range (`team`), what each part needs is brought to where it will run, the parts run, and
their results are joined in the order of the index. Results stay where they were made until they are needed elsewhere.

All transfers of a region are done before its first part starts, devices are started before the CPU begins its own part
on its threads, and of the parts that fail the first one's exception is raised. If what parts would write meets, which
only a call can tell, the region is cut another way or not at all.
"""

from __future__ import annotations

import copy
import itertools
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base.types import Array, Scalar
from parakeet_py.hybrid.devices.device import DeviceError, DeviceMemoryError
from parakeet_py.hybrid.devices.simulated_clock import set_clocks
from parakeet_py.hybrid.devices.team import Range, Team
from parakeet_py.hybrid.devices.timeline import PART, recorder, recording, span
from parakeet_py.hybrid.devices.transfer_counters import Meter
from parakeet_py.hybrid.execute.device_loss import Lost, member_of, with_losses
from parakeet_py.hybrid.execute.device_memory import DeviceMemory
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
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.hybrid.plan.failures import exception_of
from parakeet_py.hybrid.plan.host_plan import HostPlan
from parakeet_py.hybrid.plan.placement_cost import costs_of
from parakeet_py.hybrid.plan.team_plan import TeamPlan
from parakeet_py.hybrid.residency.arrays import Buffer, DeviceView, Layout, strides_of
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
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.hybrid.residency.persistent_memory import Home, homes_of_frozen
from parakeet_py.hybrid.residency.resident_arguments import array_of
from parakeet_py.hybrid.residency.windows import Windows
from parakeet_py.typed_ir.ir import Dim, Function, Operand, Var
from parakeet_py.typed_ir.semantics import scalar

OpaqueCallback = Callable[[int, list[Any]], Sequence[Any]]
FINE = 8  # indices for each member: then no member gets much more or less than it should
WASTE = 2  # an array is packed if the memory from its first to its last byte is more than so many times its own
_ARRAYS = DeviceView, SharedArray
DEVICE = 1  # the number of the memory of a device alone


def execute(
    plan: HostPlan,
    team: Team,
    leaves: Sequence[Any],
    opaque: OpaqueCallback | None = None,
    listed: Collection[int] = (),
) -> list[Any]:
    """Run a plan on leaf arguments; gives the leaves of the result.

    Parameters
    ----------
    opaque : does what is handed back to Python, see `interpreters`
    listed : the results whose elements are looked at when they are put together
    """
    if isinstance(plan, DevicePlan):
        return Execution(plan, team, opaque).supervised(leaves, listed)
    assert isinstance(plan, TeamPlan)
    handed_back = False

    def call_python(site: int, args: list[Any]) -> Sequence[Any]:
        nonlocal handed_back
        handed_back = True
        assert opaque is not None
        return opaque(site, args)

    def work(members: Team) -> list[Any]:
        set_clocks(members.devices)
        return Execution(plan, members, call_python).supervised(leaves, listed)

    stored = [leaves[number] for number in plan.stored]
    theirs = [leaf for leaf in stored if isinstance(leaf, np.ndarray)]
    return with_losses(team, theirs, work, lambda: not handed_back and len(theirs) == len(stored))


class Execution:
    """A call in progress: the `Memory` of the host part on a team, and what enters, leaves and is done in Python.

    Attributes
    ----------
    alone : the host part works in the memory of one device
    memories : of the team, and which bytes have moved between them
    arguments : the arrays of the host among the arguments
    entered : the roots of bytes that outlive the call, by where these are between calls
    stays : results stay on the devices, as some argument lives there
    shown : others may have seen what the call has done so far
    visible : the memory of the call's own that Python has been shown
    roots, homes, constant : of a device alone: what its memory is a copy of, where that is between calls, and the
        arguments that are not stored to
    """

    def __init__(self, plan: Any, team: Team, opaque: OpaqueCallback | None) -> None:
        self.plan, self.team, self.callback = plan, team, opaque
        self.alone = isinstance(plan, DevicePlan)
        self.function, self.host = plan.function, plan.host
        self.arguments: list[SharedArray] = []
        self.packed: list[tuple[np.ndarray[Any, Any], SharedArray]] = []
        self.entered: dict[Home, Root] = {}
        self.visible: dict[Root, None] = {}
        self.stays = self.shown = False
        self.constant: set[Root] = set()
        self.shared: dict[int, tuple[DeviceView, SharedArray]] = {}
        self.roots: dict[Buffer, Root] = {}
        self.homes: dict[Buffer, Home] = {}
        if self.alone:
            self.memory = self.work_alone(team.alone)
            return
        self.runs: list[RegionRun] = []
        self.schedules: list[Schedule] = []
        self.decided: dict[tuple[int, bool], tuple[Range, ...]] = {}
        self.products: dict[tuple[int, int, int], Cutting] = {}
        self.steady_joins = {"combine", "scan"} if plan.config.deterministic else set()
        self.threads = settings.current().thread_count
        assert self.memories  # those of the call, which goes on in tasks as a copy

    def work_alone(self, device: Any) -> DeviceMemory:
        """The memory of a device that does all of the work."""
        return DeviceMemory(self.plan, Meter(device, self.plan.check), self.callback_alone())

    def callback_alone(self) -> Callable[[int, Sequence[Any]], list[Any]] | None:
        """`opaque_alone`, which does not keep the call and what it uses alive; None if nothing is handed back."""
        if not self.plan.opaque_args:
            return None
        own = weakref.ref(self)

        def opaque(site: int, args: Sequence[Any]) -> list[Any]:
            call = own()
            assert call is not None
            return call.opaque_alone(site, args)

        return opaque

    @cached_property
    def memories(self) -> Memories:
        return self.memories_of([self.memory.device] if self.alone else [*map(member_of, self.team.devices)])

    def memories_of(self, devices: Sequence[Any]) -> Memories:
        return Memories(devices)

    def supervised(self, leaves: Sequence[Any], listed: Collection[int]) -> list[Any]:
        """Do all of the call's work, recorded on request; errors of the device say what it was doing."""
        try:
            with recording(self.team.devices) as found:
                results = self.run(leaves, listed)
                if found is not None:
                    self.plan.timeline = found.timeline()
            return results
        except DeviceMemoryError as error:
            error.unchanged = self.alone and not self.shown
            raise
        except DeviceError as error:
            fault = self.memory.fault(error) if self.alone else error
            if fault is error:
                raise
            raise fault from error
        finally:
            self.plan.last_run = self.done()

    def done(self) -> Any:
        """What has been done so far."""
        if self.alone:
            return self.memory.device.run()
        names = ("cpu", *(device.name for device in self.team.devices))
        return TeamRun(names, tuple(self.runs), dict(self.memories.moved), tuple(self.schedules))

    def run(self, leaves: Sequence[Any], listed: Collection[int] = ()) -> list[Any]:
        """The leaves of the result."""
        failed = True
        try:
            values = self.enter(leaves)
            if self.alone:
                given = [self.there(value) if isinstance(value, SharedArray) else value for value in values]
                results: Sequence[Any] = self.host(self.memory, *given)
            else:
                results = self.perform(values)
            kinds = [result.type for result in self.plan.function.results]
            self.bring_back()
            failed = False
            known: dict[int, Any] = {}
            return [
                self.result(value, kind, number not in listed, known)
                for number, (value, kind) in enumerate(zip(results, kinds, strict=True))
            ]
        except (Lost, DeviceError):  # nothing on the device can be trusted any more
            failed = False
            raise
        except DeviceMemoryError:
            failed = self.shown
            raise
        finally:
            try:
                if failed:
                    self.bring_back()
            finally:
                self.leave_homes()

    # ---- arguments ---------------------------------------------------------------------------------------------------

    def enter(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaf arguments as values of the host part."""
        params = self.plan.function.params
        values: list[Any] = []
        arrays: list[np.ndarray[Any, Any]] = []
        places: list[int] = []
        for number, (leaf, param) in enumerate(zip(leaves, params, strict=True)):
            if not isinstance(param.type, Array):
                values.append(entering(leaf, param.type))
                continue
            resident = leaf if type(leaf) is DeviceArray else None if type(leaf) is np.ndarray else array_of(leaf)
            if resident is not None:
                self.stays = self.shown = True
                values.append(self.resident(resident, leaf))
                continue
            values.append(None)
            places.append(number)
            arrays.append(np.asarray(leaf))
        if not arrays:
            return values
        frozen = homes_of_frozen(arrays)
        for number, home in frozen.items():
            values[places[number]] = self.frozen(home, arrays[number])
        places = [place for number, place in enumerate(places) if number not in frozen]
        entered = self.of_arguments([array for number, array in enumerate(arrays) if number not in frozen])
        for place, array in zip(places, entered, strict=True):
            values[place] = array
        if self.alone:
            stored = {values[place].root for place in places if params[place] in self.plan.stored_params}
            self.constant = {array.root for array in entered} - stored
        return values

    def of_arguments(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[SharedArray]:
        """Arrays of the host; on a device alone, what lies far apart is packed if no view of it is asked for."""
        self.arguments = of_arguments(self.memories, arrays)
        if not self.alone or self.plan.gives_views or self.plan.asks_strides or self.plan.opaque_args:
            return self.arguments
        for number, (array, shared) in enumerate(zip(arrays, self.arguments, strict=True)):
            root = shared.root
            if root.size > WASTE * array.nbytes and len(root.owner) == 1:
                together = of_host(self.memories, np.ascontiguousarray(array).reshape(array.shape))
                self.packed.append((array, together))
                self.arguments[number] = together
        return self.arguments

    def resident(self, array: DeviceArray, given: Any) -> Any:
        """An argument that lives on devices."""
        if not self.alone:
            return SharedArray(self.root_of(array._home), array._layout, array._offset, array._array, given)
        there = array.on(self.team.alone)
        there.given = given
        self.homes[there.buffer] = array._home
        return there

    def frozen(self, home: Home, array: np.ndarray[Any, Any]) -> Any:
        """A read-only array of NumPy's that stays on devices from its first call on."""
        home.owner = (array,)
        root = self.root_of(home)
        home.owner = ()
        return SharedArray.of(root, array, array)

    def root_of(self, home: Home) -> Root:
        """The root of bytes that outlive the call."""
        root = self.entered.get(home)
        if root is None:
            root = self.entered[home] = home.enter(self.memories, self.team.devices)
        return root

    def leave_homes(self) -> None:
        """Let bytes that outlive the call be where it has brought them."""
        for home, root in self.entered.items():
            home.leave(root, self.team.devices)

    # ---- between a device alone and the others -----------------------------------------------------------------------

    def there(self, array: SharedArray) -> DeviceView:
        """An array in the memory of the device, complete."""
        root = array.root
        root.complete(DEVICE)
        found = array.on_device(DEVICE)
        self.roots[found.buffer] = root
        return found

    def here(self, array: DeviceView) -> SharedArray:
        """An array of the device's memory as one that others may have."""
        if id(array) in self.shared:
            return self.shared[id(array)][1]
        root = self.roots.get(array.buffer)
        if root is None:
            home = self.homes.get(array.buffer)
            root = Root.on(self.memories, DEVICE, array.buffer) if home is None else self.root_of(home)
            self.roots[array.buffer] = root
        layout = Layout(np.dtype(array.dtype), array.shape, array.strides, not array.readonly)
        host = array.given if type(array.given) is np.ndarray else None
        found = SharedArray(root, layout, array.offset, host, array.given)
        self.shared[id(array)] = array, found
        return found

    def settle(self) -> None:
        """Take down what kernels have stored to."""
        for buffer in self.memory.changed:
            root = self.roots.get(buffer)
            if root is not None and root not in self.constant:
                root.wrote_all(DEVICE)
        self.memory.changed.clear()

    def opaque_alone(self, site: int, args: Sequence[Any]) -> list[Any]:
        """An operation of Python's, in the midst of what a device does alone."""
        self.shown |= site not in self.plan.routines or bool(self.memory.changed)
        shared = [self.here(arg) if isinstance(arg, DeviceView) else arg for arg in args]
        self.settle()
        results = self.hand_back(site, shared)
        for root in self.roots.values():  # the device goes on with what it had
            root.complete(DEVICE)
        same = {id(one): arg for one, arg in zip(shared, args, strict=True)}
        return [
            same.get(id(value)) or self.there(value) if isinstance(value, SharedArray) else value for value in results
        ]

    # ---- results -----------------------------------------------------------------------------------------------------

    def bring_back(self) -> None:
        """Let the host see what has been stored into its arrays."""
        if self.alone:
            self.settle()
        for array in self.arguments:
            array.on_host()
        for root in self.visible:
            root.complete(HOST)
        for given, together in self.packed:
            if given.flags.writeable and together.root.valid.get(DEVICE) is not None:
                np.copyto(given, together.host)

    def result(self, value: Any, kind: object, stays: bool, known: dict[int, Any]) -> Any:
        """A result as Python sees it; `known` has those that are it already."""
        if isinstance(value, _ARRAYS):
            if id(value) not in known:
                known[id(value)] = value, self.array(value, stays and self.stays)
            return known[id(value)][1]
        return leaving(value, kind)

    def array(self, value: DeviceView | SharedArray, stays: bool) -> Any:
        """An array that leaves; what the call has made `stays` on the devices."""
        given = value.given
        if given is not None and (stays or type(given) is np.ndarray):
            return given
        if isinstance(value, DeviceView):
            if stays and value.buffer not in self.roots:
                home = self.homes.get(value.buffer)
                if home is None:
                    home = self.homes[value.buffer] = Home.on(self.team.alone, value.buffer)
                layout = Layout(np.dtype(value.dtype), value.shape, value.strides, not value.readonly)
                return DeviceArray(home, self.team, layout, value.offset)
            value = self.here(value)
        root = value.root
        if not stays or any(root is one.root for one in self.arguments) or (root.home is not None and root.home.frozen):
            return value.on_host()
        if root.home is None:
            self.entered[Home.of(root, self.team.devices)] = root
        return DeviceArray(root.home, self.team, value.layout, value.offset)

    # ---- what the host part asks for ---------------------------------------------------------------------------------

    def new(self, dtype: str, shape: tuple[int, ...], layout: str) -> SharedArray:
        return new_array(self.memories, dtype, shape, layout)

    def view(
        self, base: SharedArray, starts: Sequence[int], axes: Sequence[tuple[int | None, int, int]]
    ) -> SharedArray:
        offset = sum(start * stride for start, stride in zip(starts, base.strides, strict=True))
        shape = tuple(extent for _, extent, _ in axes)
        strides = tuple(0 if source is None else base.strides[source] * step for source, _, step in axes)
        return base.place(shape, strides, offset)

    def reshape(self, base: SharedArray, shape: tuple[int, ...]) -> SharedArray:
        return base.place(shape, strides_of(shape, base.dtype.itemsize), 0)

    def stride(self, array: SharedArray, axis: int) -> int:
        return array.strides[axis]

    def strided(
        self, base: SharedArray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str
    ) -> SharedArray:
        return base.place(shape, strides, offset, dtype)

    def load(self, array: SharedArray, indices: tuple[int, ...]) -> Any:
        array.root.bring(HOST, array.spans(_point(indices)))
        return array.host[indices]

    def store(self, array: SharedArray, indices: tuple[int, ...], value: Any) -> None:
        array.host[indices] = value
        array.root.wrote(HOST, array.spans(_point(indices)))

    def launch(self, kernel: int, blocks: int, args: tuple[Any, ...]) -> None:
        raise AssertionError("the host part of a function in regions launches nothing itself")

    def failure(self, code: int, args: Sequence[Any]) -> Exception:
        return exception_of(self.function, [self.function.body], code, args)

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
        results: Sequence[Any] = self.host(self, *values)
        return results

    def scheduled(self, schedule: Schedule) -> None:
        """Tasks are about to be run at the same time."""
        self.schedules.append(schedule)

    def hand_back(self, site: int, args: Sequence[Any]) -> list[Any]:
        """An operation of Python's, which sees its arrays, and all arrays of the host that the call was given, in the
        host's memory, and may change them. What it gives may be a view of them."""
        routine = self.plan.routines.get(site)
        arrays = [arg for arg in args if isinstance(arg, SharedArray)]
        roots = {array.root: None for array in arrays}
        changed = {array.root: None for array in arrays[: routine.written]} if routine is not None else roots
        if routine is None:
            roots |= {array.root: None for array in self.arguments}
            changed = roots
            self.visible |= {root: None for root in roots if root.home is None}
        for root in roots:
            root.complete(HOST)
        given = [
            arg.host if isinstance(arg, SharedArray) else leaving(arg, kind)
            for arg, kind in zip(args, self.plan.opaque_args[site], strict=True)
        ]
        if routine is not None:
            leaves: Sequence[Any] = routine.perform(given)
        else:
            assert self.callback is not None
            leaves = self.callback(site, given)
        for root in changed:
            root.wrote_all(HOST)
        same = {id(host): arg for arg, host in zip(args, given, strict=True) if isinstance(arg, SharedArray)}
        kinds = self.plan.opaque_outs[site]
        return [
            same[id(leaf)] if id(leaf) in same else self._taken(leaf, kind, list(roots))
            for leaf, kind in zip(leaves, kinds, strict=True)
        ]

    def _taken(self, leaf: Any, kind: object, roots: Sequence[Root]) -> Any:
        if not isinstance(kind, Array):
            return entering(leaf, kind)
        array = np.asarray(leaf)
        start = array.__array_interface__["data"][0]
        for root in roots:
            if array.size and root.address <= start < root.address + root.size:
                return SharedArray.of(root, array)
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
        kinds = [result.type for result in plan.function.results]

        def tell(lost: Lost) -> None:
            lost.error = memory.fault(lost.error)

        return Started(
            plan.steps(memory, *given), lambda made: [*map(self._made_on, itertools.repeat(who), made, kinds)], tell
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
            if other != position and second.root is array.root and array.meets(second):
                return False
    return True


def _point(indices: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((int(index), int(index) + 1) for index in indices)


def entering(value: Any, kind: object) -> Any:
    """An argument, or what Python has given, as host code keeps values of its type."""
    if not isinstance(kind, Scalar):
        return value
    made = scalar(value, kind.dtype)
    return made.item() if kind.dtype in ("int64", "bool") else made


def leaving(value: Any, kind: object) -> Any:
    """A value of host code as Python sees it."""
    if not isinstance(kind, Scalar):
        return value
    made = scalar(value, kind.dtype)
    return made.item() if kind.python else made
