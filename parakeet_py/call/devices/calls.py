"""Calls of accelerated functions on devices: compile for the signature, execute the plan, put the result together.

A device alone is a team of one: it has the whole of a function in its own memory (`device_plan_of`), unless that has no
room for it; a team of several, or one that computes in pieces, runs its regions one by one (`team_plan_of`). What has
never been observed, and what cannot be compiled, is done by Python as on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from parakeet_py.base import config
from parakeet_py.base.errors import MissingValue, NoSourceError, NotObservedError, UnsupportedError
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.call.compile import for_devices
from parakeet_py.call.devices.call_cache import look, repeated_of
from parakeet_py.call.devices.recorded_calls import RecordedCalls
from parakeet_py.call.give_back import run_compiled, values_of
from parakeet_py.call.load import read_source
from parakeet_py.hybrid.devices.device import DeviceMemoryError
from parakeet_py.hybrid.devices.device_detection import (
    leaves_of,
    lives_elsewhere,
    some_live_elsewhere,
)
from parakeet_py.hybrid.devices.occupancy_limit import examine, plan_for
from parakeet_py.hybrid.devices.recording import recorded
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.devices.team import Team, team_of
from parakeet_py.hybrid.execute.cpu_only_calls import CpuOnlyCalls
from parakeet_py.hybrid.execute.execution import execute
from parakeet_py.hybrid.execute.task_estimates import TaskEstimates
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.hybrid.plan.host_plan import HostPlan
from parakeet_py.hybrid.plan.team_plan import TeamPlan
from parakeet_py.hybrid.residency.array_interfaces import Interface, device_of
from parakeet_py.hybrid.residency.device_array import DeviceArray, is_stand_in
from parakeet_py.hybrid.residency.resident_arguments import Lent, Residents
from parakeet_py.imp.schedule.effects import stores_only_into_its_own
from parakeet_py.signature.attribute_sources import is_of_times
from parakeet_py.signature.results import result_leaves
from parakeet_py.signature.specs import ArraySpec, RecordsSpec, TupleSpec, columns_of, leaves

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled
    from parakeet_py.call.devices.caller import Dispatcher
    from parakeet_py.signature.specs import Signature, Spec

RECURSIVE = "a function with recursion runs on the CPU"
_checking: ContextVar[bool] = ContextVar("parakeet_py_checking_results", default=False)
OF_NUMBA = "a function that calls numba's runs on the CPU"


def device_plan_of(compiled: Compiled) -> DevicePlan:
    """How a specialization runs in the memory of one device, made once."""
    compiled = without_procedures(compiled)
    if compiled.plan is None:
        compiled.plan = DevicePlan(compiled.typed, compiled.config, compiled.function.__code__.co_filename)
    plan: DevicePlan = compiled.plan
    return plan


def team_plan_of(compiled: Compiled) -> TeamPlan:
    """How a specialization runs in regions, made once."""
    compiled = without_procedures(compiled)
    if compiled.divided is None:
        compiled.divided = TeamPlan(compiled, TaskEstimates)
    plan: TeamPlan = compiled.divided
    return plan


def without_procedures(compiled: Compiled) -> Compiled:
    """A specialization whose calls are all inlined; recursion cannot be, nor calls of numba's code.

    Raises
    ------
    UnsupportedError
        The function is recursive, or calls numba's code.
    """
    compiled = for_devices(compiled)
    if compiled.specialization.calls_numba:
        raise UnsupportedError(OF_NUMBA, compiled.untyped.filename)
    if compiled.typed.procedures:
        raise UnsupportedError(RECURSIVE, compiled.untyped.filename)
    return compiled


def recorded_of(dispatcher: Dispatcher) -> RecordedCalls:
    """A function's calls that are done from schedules."""
    if dispatcher.recorded is None:
        dispatcher.recorded = RecordedCalls(dispatcher)
    found: RecordedCalls = dispatcher.recorded
    return found


def left_of(dispatcher: Dispatcher) -> CpuOnlyCalls:
    """What a function's teams leave to the CPU."""
    if dispatcher.left is None:
        dispatcher.left = CpuOnlyCalls()
    found: CpuOnlyCalls = dispatcher.left
    return found


def place_of(dispatcher: Dispatcher, normal: Sequence[Any], asked: dict[int, Interface] | None = None) -> Team | None:
    """Where a call in positional form runs that has arrays on devices among its arguments, the hidden ones included;
    None if it has none.

    Arrays of other libraries decide, else the settings, else where the first `DeviceArray` is. See `device_of` for
    `asked`.
    """
    own, others = None, False
    values = [*normal, *_hidden_on_devices(dispatcher, normal)] if dispatcher.knowledge.facts.hidden else normal
    for value in values:
        if type(value) is DeviceArray:
            own = own or value._place
        elif lives_elsewhere(value):
            others = True
    if others:
        own = next((value._place for value in leaves_of(values) if type(value) is DeviceArray), None)
        chosen = dispatcher.config()
        device = device_of(values, () if chosen.on_cpu else open_devices(chosen.devices or ""), asked)
        if device is not None:
            return team_of(device)
    return None if own is None else dispatcher.device() or own


def _hidden_on_devices(dispatcher: Dispatcher, normal: Sequence[Any]) -> list[Any]:
    """The hidden arguments of a call that live on devices."""
    found = []
    for source in dispatcher.knowledge.facts.hidden:
        try:
            value = read_source(dispatcher.function, source, normal)
        except MissingValue:
            continue
        if lives_elsewhere(value):
            found.append(value)
    return found


def residents_of(
    dispatcher: Dispatcher, normal: Sequence[Any], team: Team, asked: dict[int, Interface] | None = None
) -> Residents:
    """The arguments of a call in positional form that live on devices."""
    values = [*normal, *_hidden_on_devices(dispatcher, normal)] if dispatcher.knowledge.facts.hidden else normal
    if not some_live_elsewhere(values):
        return Residents(team, None, {})
    return Residents.among(team, values, asked, dispatcher.function)


@hidden
def run_python(dispatcher: Dispatcher, normal: tuple[Any, ...]) -> Any:
    """The plain Python function on arguments some of which live on devices."""
    team = place_of(dispatcher, normal)
    if team is None:
        return dispatcher.run_python(normal)
    with residents_of(dispatcher, normal, team) as residents:
        return residents.refused(dispatcher.run_python, normal)


@hidden
def call(
    dispatcher: Dispatcher,
    normal: Sequence[Any],
    team: Team,
    asked: dict[int, Interface] | None = None,
    in_regions: bool = False,
) -> Any:
    """A call in positional form, on a team; what it makes stays there if arguments live on devices.

    Parameters
    ----------
    asked : what some arguments have said of themselves, see `device_of`
    in_regions : a device alone runs region after region, too
    """
    args = tuple(normal)
    if not dispatcher.config().check or _checking.get():
        return _result(dispatcher, args, team, asked, in_regions)
    token = _checking.set(True)  # what Python is lent within the call may be results there
    try:
        result = _result(dispatcher, args, team, asked, in_regions)
    finally:
        _checking.reset(token)
    assert not any(map(is_stand_in, leaves_of((result,)))), "memory that is only reserved is part of a result"
    return result


@hidden
def _result(
    dispatcher: Dispatcher, args: tuple[Any, ...], team: Team, asked: dict[int, Interface] | None, in_regions: bool
) -> Any:
    device, elsewhere = team.alone, some_live_elsewhere(args)
    if elsewhere and not in_regions:
        seen = look(dispatcher, args, device or team, asked or {})
        known = None if seen is None else repeated_of(dispatcher).known(dispatcher.config(), seen.facts)
        if seen is not None and known is not None:
            with Residents(team, seen.kind, seen.foreign, function=dispatcher.function) as residents:
                leaves = [seen.values[place] for place in known.places]
                return _run(dispatcher, known.compiled, args, leaves, team, residents, in_regions)
    with residents_of(dispatcher, args, team, asked) as residents:
        signature = dispatcher.signature(args)
        if signature in dispatcher.refused:
            return residents.refused(dispatcher.run_python, args)
        try:
            return _call(dispatcher, args, team, residents, signature, in_regions)
        except (UnsupportedError, NoSourceError) as found:
            error = found
        return residents.refused(hidden(lambda args: dispatcher.refuse(args, signature, error)), args)


@hidden
def _call(
    dispatcher: Dispatcher,
    args: tuple[Any, ...],
    team: Team,
    residents: Residents,
    signature: Signature,
    in_regions: bool,
) -> Any:
    compiled: Compiled | None = None
    with suppress(NotObservedError):
        compiled = dispatcher.compiled_for_device(args, signature)
    if compiled is None:
        return residents.by_python(hidden(lambda args: dispatcher.evaluate(args, dispatcher.signature(args))), args)
    target = dispatcher.instance if dispatcher.inner is None else dispatcher.inner
    done = compiled.specialization
    on_cpu = done.shared_with_python or done.calls_numba or _is_interleaved(compiled)
    if compiled.typed.procedures or on_cpu:
        return residents.by_python(partial(config.on_cpu, target), args)
    leaves = values_of(compiled, args)
    device = team.alone
    if device is None and residents.kind is None and not in_regions:

        @hidden
        def shared(team: Team) -> Any:
            return _run(dispatcher, compiled, args, leaves, team, residents, in_regions)

        native = partial(config.on_cpu, target, args)
        return left_of(dispatcher).run(args, team, team_plan_of(compiled), leaves, native, shared)
    result = _run(dispatcher, compiled, args, leaves, team, residents, in_regions)
    plan = compiled.divided if device is None else compiled.plan
    if residents.kind is not None and not in_regions and plan is not None:
        seen = look(dispatcher, args, device or team, {})
        if seen is not None and not plan.opaque_args:
            repeated_of(dispatcher).remember(dispatcher.config(), seen, compiled)
    return result


def _is_interleaved(compiled: Compiled) -> bool:
    """Are there columns of records, whose gaps are other columns, arrays of times, or ones that are not aligned?"""
    signature = compiled.signature
    arrays = (leaf.spec for leaf in leaves(signature))
    of_times = any(is_of_times(hidden.source[-1]) for hidden in signature.hidden)
    if of_times or columns_of(signature) or any(isinstance(one, ArraySpec) and not one.aligned for one in arrays):
        return True
    return any(_has_records(site.result) for site in compiled.specialization.opaque_sites)


def _has_records(spec: Spec | None) -> bool:
    return isinstance(spec, RecordsSpec) or (isinstance(spec, TupleSpec) and any(map(_has_records, spec.items)))


@hidden
def _run(
    dispatcher: Dispatcher,
    compiled: Compiled,
    args: tuple[Any, ...],
    leaves: Sequence[Any],
    team: Team,
    residents: Residents,
    in_regions: bool,
) -> Any:
    """A call whose specialization and leaf arguments are known."""
    device = team.alone
    fetched = compiled.listed
    resident = type(residents.kind) is DeviceArray and not residents.foreign and not in_regions
    lent = None if residents.kind is None or not compiled.specialization.opaque_sites else Lent(residents)

    @hidden
    def done(plan: HostPlan, opaque: Any) -> list[Any]:
        """The leaves of the result; the call is recorded, if others like it may be done from a schedule."""
        attempt = recorded_of(dispatcher).attempt(compiled, plan, args, leaves, team) if resident else None
        if attempt is None:
            return execute(plan, team, leaves, opaque, fetched, lent)
        try:
            with recorded(attempt.recorder):
                found = execute(plan, team, leaves, opaque, fetched, lent)
        except BaseException:
            attempt.recorder.discard()
            raise
        attempt.finish(found)
        return found

    @hidden
    def run(opaque: Any) -> list[Any]:
        """The leaves of the result, also those that Python has made in the midst of the call."""
        if lent is None or opaque is None:
            return run_plan(opaque)
        try:
            found = run_plan(opaque)
        finally:
            lent.give_back()
        objects = {one.index for one in result_leaves(compiled.specialization.result) if one.kind == "object"}
        return [residents.object(leaf, args) if at in objects else leaf for at, leaf in enumerate(found)]

    @hidden
    def run_plan(opaque: Any) -> list[Any]:
        if device is not None and not in_regions:
            plan = device_plan_of(compiled)
            chosen = plan_for(plan, device)
            try:
                found = done(chosen, opaque)
            except DeviceMemoryError as error:
                if not error.unchanged:
                    raise
            else:
                if chosen is plan:
                    examine(compiled, plan, device)
                return found
        if in_regions or device is not None:  # in pieces, on a device alone
            return execute(team_plan_of(compiled), team, leaves, opaque, fetched, lent)
        return done(team_plan_of(compiled), opaque)

    return run_compiled(
        dispatcher,
        compiled,
        args,
        leaves,
        run,
        lambda: stores_only_into_its_own(compiled.imp),
        in_python=residents.by_python,
        array=residents.array,
    )
