"""One call of an accelerated function on a team: of the CPU's threads and devices together, or of one device alone.

Arguments enter (`call_arrays`), the host part runs, and what it makes leaves again. On a device alone all of the host
part works in that device's memory (`device_memory`), where its kernels are launched. On a team it asks at every region
for the results, and the region is cut into parts (`region_runs`). Results stay where they were made until they are
needed elsewhere.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.hybrid.devices.device import DeviceError, DeviceMemoryError
from parakeet_py.hybrid.devices.recording import spoil
from parakeet_py.hybrid.devices.simulated_clock import set_clocks
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.devices.timeline import recording
from parakeet_py.hybrid.devices.transfer_counters import Meter
from parakeet_py.hybrid.execute.call_arrays import DEVICE
from parakeet_py.hybrid.execute.device_loss import Lost, with_losses
from parakeet_py.hybrid.execute.device_memory import DeviceMemory
from parakeet_py.hybrid.execute.region_runs import RegionRuns
from parakeet_py.hybrid.execute.run_record import Schedule, TeamRun
from parakeet_py.hybrid.execute.task_calls import run_tasks
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.hybrid.partition.tasks import Task
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.hybrid.plan.failures import exception_of
from parakeet_py.hybrid.plan.host_plan import HostPlan
from parakeet_py.hybrid.plan.routine_calls import RoutineCall
from parakeet_py.hybrid.plan.team_plan import TeamPlan
from parakeet_py.hybrid.residency.arrays import DeviceView, strides_of
from parakeet_py.hybrid.residency.blocks import (
    HOST,
    SharedArray,
    new_array,
)
from parakeet_py.hybrid.residency.resident_arguments import Lent

OpaqueCallback = Callable[[int, list[Any]], Sequence[Any]]


@hidden
def execute(
    plan: HostPlan,
    team: Team,
    leaves: Sequence[Any],
    opaque: OpaqueCallback | None = None,
    listed: Collection[int] = (),
    lent: Lent | None = None,
) -> list[Any]:
    """Run a plan on leaf arguments; gives the leaves of the result.

    Parameters
    ----------
    opaque : does what is handed back to Python, see `interpreters`
    listed : the results whose elements are looked at when they are put together
    lent : what Python gets of arrays on devices that are in containers
    """
    if isinstance(plan, DevicePlan):
        return Execution(plan, team, opaque, lent).supervised(leaves, listed)
    assert isinstance(plan, TeamPlan)
    handed_back = False

    @hidden
    def call_python(site: int, args: list[Any]) -> Sequence[Any]:
        nonlocal handed_back
        handed_back = True
        assert opaque is not None
        return opaque(site, args)

    @hidden
    def work(members: Team) -> list[Any]:
        set_clocks(members.devices)
        return Execution(plan, members, call_python, lent).supervised(leaves, listed)

    stored = [leaves[number] for number in plan.stored]
    theirs = [leaf for leaf in stored if isinstance(leaf, np.ndarray)]
    return with_losses(team, theirs, work, lambda: not handed_back and len(theirs) == len(stored))


class Execution(RegionRuns):
    """A call in progress: the `Memory` of the host part on a team, and what is done in Python."""

    def __init__(self, plan: Any, team: Team, opaque: OpaqueCallback | None, lent: Lent | None = None) -> None:
        super().__init__(plan, team)
        self.callback, self.lent = opaque, lent
        self.function, self.host = plan.function, plan.host
        if self.alone:
            self.memory = self.work_alone(team.alone)
        else:
            assert self.memories  # those of the call, which goes on in tasks as a copy

    def work_alone(self, device: Any) -> DeviceMemory:
        """The memory of a device that does all of the work."""
        return DeviceMemory(self.plan, Meter(device, self.plan.check), self.callback_alone())

    def callback_alone(self) -> Callable[[int, Sequence[Any]], list[Any]] | None:
        """`opaque_alone`, which does not keep the call and what it uses alive; None if nothing is handed back."""
        if not self.plan.opaque_args:
            return None
        own = weakref.ref(self)

        @hidden
        def opaque(site: int, args: Sequence[Any]) -> list[Any]:
            call = own()
            assert call is not None
            return call.opaque_alone(site, args)

        return opaque

    @hidden
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

    @hidden
    def run(self, leaves: Sequence[Any], listed: Collection[int] = ()) -> list[Any]:
        """The leaves of the result."""
        failed = True
        try:
            values = self.enter(leaves)
            if self.alone:
                given = [self.there(value) if isinstance(value, SharedArray) else value for value in values]
                results: Sequence[Any] = self.run_alone(given)
            else:
                results = self.perform(values)
            kinds = [result.type for result in self.plan.function.results]
            self.bring_back()
            failed = False
            known: dict[int, Any] = {}
            found = [
                self.result(value, kind, number not in listed, known)
                for number, (value, kind) in enumerate(zip(results, kinds, strict=True))
            ]
            for home in self.brought:
                home.brought = True
            return found
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

    @hidden
    def run_alone(self, given: Sequence[Any]) -> Sequence[Any]:
        """Run the host part on a device; what has failed first is raised."""
        try:
            results: Sequence[Any] = self.host(self.memory, *given)
        except DeviceError:
            raise
        except Exception as error:
            found = self.memory.first(error)
            if found is error:
                raise
            raise found from None
        self.memory.look()
        return results

    @hidden
    def opaque_alone(self, site: int, args: Sequence[Any]) -> list[Any]:
        """An operation of Python's, in the midst of what a device does alone."""
        self.memory.look()
        routine = self.plan.routines.get(site)
        failed = None if routine is None else self.memory.routine(routine.name, *routine.sides(args))
        if failed is not None:
            given: list[Any] = routine.given(failed)
            return given
        self.shown |= site not in self.plan.routines or bool(self.memory.changed)
        shared = [self.here(arg) if isinstance(arg, DeviceView) else arg for arg in args]
        self.settle()
        results = self.hand_back(site, shared)
        self.memory.outdated |= {  # the device goes on with what it had
            buffer: partial(root.complete, DEVICE)
            for buffer, root in self.roots.items()
            if root.valid.get(DEVICE) is not root.everything
        }
        same = {id(one): arg for one, arg in zip(shared, args, strict=True)}
        return [
            same.get(id(value)) or self.there(value) if isinstance(value, SharedArray) else value for value in results
        ]

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
        spoil("the host looks at elements")
        array.root.bring(HOST, array.spans(_point(indices)))
        return array.host[indices]

    def store(self, array: SharedArray, indices: tuple[int, ...], value: Any) -> None:
        spoil("the host stores elements")
        array.host[indices] = value
        array.root.wrote(HOST, array.spans(_point(indices)))

    def launch(self, kernel: int, blocks: int, args: tuple[Any, ...]) -> None:
        raise AssertionError("the host part of a function in regions launches nothing itself")

    def failure(self, code: int, args: Sequence[Any]) -> Exception:
        return exception_of(self.function, [self.function.body], code, args)

    @hidden
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

    @hidden
    def perform(self, values: Sequence[Any]) -> Sequence[Any]:
        """Run the host part."""
        results: Sequence[Any] = self.host(self, *values)
        return results

    def scheduled(self, schedule: Schedule) -> None:
        """Tasks are about to be run at the same time."""
        self.schedules.append(schedule)

    @hidden
    def hand_back(self, site: int, args: Sequence[Any]) -> list[Any]:
        """An operation of Python's, which sees its arrays, and all arrays that the call was given or that Python
        knows, where it looks for them, and may change them. What it gives may be one of them, or a view."""
        spoil("something is handed back to Python")
        routine = self.plan.routines.get(site)
        if routine is not None:
            return self.by_routine(routine, args)
        assert self.callback is not None
        given = self.lend(args, self.plan.opaque_args[site])
        roots = self.shown_to_python(arg for arg in args if isinstance(arg, SharedArray))
        for root in roots:
            root.complete(HOST)
        self.leave_to_python()
        try:
            leaves = self.callback(site, given)
        finally:  # what Python has stored before it raised an exception is there, too
            self.taken_back(roots)
        same = {id(host): arg for arg, host in zip(args, given, strict=True) if isinstance(arg, SharedArray)}
        return [
            same[id(leaf)] if id(leaf) in same else self.taken(leaf, kind, roots)
            for leaf, kind in zip(leaves, self.plan.opaque_outs[site], strict=True)
        ]

    def by_routine(self, routine: RoutineCall, args: Sequence[Any]) -> list[Any]:
        """A routine of NumPy's, done by the host."""
        arrays = [arg for arg in args if isinstance(arg, SharedArray)]
        for array in arrays:
            array.root.complete(HOST)
        try:
            return routine.perform([arg.host if isinstance(arg, SharedArray) else arg for arg in args])
        finally:
            for array in arrays[: routine.written]:
                array.root.wrote_all(HOST)


def _point(indices: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((int(index), int(index) + 1) for index in indices)
