"""Calls of accelerated functions on devices: compile for the signature, run the plan, box the result.

What has never been observed, and what cannot be compiled, is done by Python as on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from parakeet_py.base import config
from parakeet_py.base.errors import NoSourceError, NotObservedError, OpaqueResultChanged, UnsupportedError
from parakeet_py.call.compile import python_may_begin_again
from parakeet_py.call.devices.call_cache import again, look, repeated_of
from parakeet_py.call.devices.caller import RECURSIVE
from parakeet_py.call.interpreters import Log, Undo, box, contents_kept, is_for_python, opaque_of, put_back, values_of
from parakeet_py.hybrid.devices.device import Device, DeviceMemoryError, Machine
from parakeet_py.hybrid.devices.device_detection import leaves_of, lives_elsewhere
from parakeet_py.hybrid.devices.occupancy_limit import examine, plan_for
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.device_run import run
from parakeet_py.hybrid.plan.device_plan import Plan
from parakeet_py.hybrid.residency.array_interfaces import Interface, device_of
from parakeet_py.hybrid.residency.device_arguments import Foreign
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.hybrid.residency.team_arguments import Held
from parakeet_py.imp.schedule.effects import stores_only_into_its_own
from parakeet_py.signature.results import listed

if TYPE_CHECKING:
    from parakeet_py.call.compile import Compiled
    from parakeet_py.call.devices.caller import Dispatcher
    from parakeet_py.signature.specs import Signature


def plan_of(compiled: Compiled) -> Plan:
    """The plan of a specialization, made once."""
    if compiled.typed.procedures:
        raise UnsupportedError(RECURSIVE, compiled.template.filename)
    if compiled.plan is None:
        compiled.plan = Plan(compiled.typed, compiled.config, compiled.function.__code__.co_filename)
    plan: Plan = compiled.plan
    return plan


def place_of(
    dispatcher: Dispatcher, normal: Sequence[Any], asked: dict[int, Interface] | None = None
) -> Machine | Team | None:
    """Where a call in positional form runs that has arrays on devices among its arguments; None if it has none.

    Arrays of other libraries decide, else the settings, else where the first `DeviceArray` is. See `device_of` for
    `asked`.
    """
    chosen = dispatcher.config()
    device = device_of(normal, () if chosen.on_cpu else open_devices(chosen.devices or ""), asked)
    if device is not None:
        return device
    place = next((value._place for value in leaves_of(normal) if type(value) is DeviceArray), None)
    return None if place is None else dispatcher.device() or place


def foreign_arguments(dispatcher: Dispatcher, normal: Sequence[Any]) -> Foreign | Held | None:
    """The arguments of a call in positional form that live on devices; None if they live on none."""
    place = place_of(dispatcher, normal)
    if place is None:
        return None
    return Held(place, normal) if isinstance(place, Team) else Foreign(place, normal)


def call_in_place(dispatcher: Dispatcher, normal: Sequence[Any]) -> tuple[Any] | None:
    """A call in positional form, where its arguments live; None if they live on no device.

    Arrays of the result are of the arguments' library.
    """
    asked: dict[int, Interface] = {}
    place = place_of(dispatcher, normal, asked)
    if place is None:
        return None
    if isinstance(place, Team):
        from parakeet_py.call.devices.team_calls import call_held

        return (call_held(dispatcher, Held(place, normal)),)
    seen = look(dispatcher, normal, place, asked)
    known = None if seen is None else repeated_of(dispatcher).known(dispatcher.config(), seen.facts)
    if known is None or seen is None:
        return (_call_foreign(dispatcher, normal, place),)
    kept: list[Undo] = []
    try:
        return (again(known, seen, place, kept),)
    except Exception as error:
        if not is_for_python(known.compiled, error):
            raise
        foreign = Foreign(place, normal)
        try:
            begun = _begun_again(dispatcher, known.compiled, error, foreign.args, foreign.by_python, kept)
            return (foreign.leaving(begun),)
        finally:
            foreign.done()


def _call_foreign(dispatcher: Dispatcher, normal: Sequence[Any], device: Machine) -> Any:
    """A call on the device that its arguments live on, remembered as what it looks like once all is known of it."""
    foreign = Foreign(device, normal)
    try:
        signature = dispatcher.signature(foreign.args)
        ours = all(type(value) is DeviceArray for value in leaves_of(normal) if lives_elsewhere(value))
        if signature in dispatcher.refused:
            if not ours:  # other libraries' arrays know what Python does with them
                return dispatcher.run_python(tuple(normal))
            return foreign.leaving(foreign.by_python(lambda: dispatcher.run_python(foreign.args)))
        try:
            result = call(dispatcher, foreign.args, device, foreign, signature)
        except (UnsupportedError, NoSourceError) as found:
            if not ours:
                return dispatcher.refuse(tuple(normal), signature, found)
            error = found
            return foreign.leaving(foreign.by_python(lambda: dispatcher.refuse(foreign.args, signature, error)))
        compiled = dispatcher.kept(dispatcher.signature(foreign.args), "both")
        seen = look(dispatcher, normal, device, {})
        if seen is not None and compiled is not None and compiled.plan is not None:
            repeated_of(dispatcher).remember(dispatcher.config(), seen, compiled, compiled.plan)
        return foreign.leaving(result)
    finally:
        foreign.done()


def _begun_again(
    dispatcher: Dispatcher,
    compiled: Compiled,
    error: Exception,
    args: tuple[Any, ...],
    in_python: Callable[[Callable[[], Any]], Any],
    kept: Sequence[Undo] = (),
    log: Log | None = None,
) -> Any:
    """A call that has ended in an exception which is for Python, done by Python; raised if it cannot be undone."""
    unchanged = stores_only_into_its_own(compiled.imp)
    if not (put_back(kept) or python_may_begin_again(compiled, error, unchanged)):
        if unchanged and log is not None and log.tells(error):
            return in_python(lambda: dispatcher.evaluate(args, dispatcher.signature(args), log))
        raise error
    return in_python(lambda: dispatcher.run_python(args))


def call(
    dispatcher: Dispatcher,
    normal: Sequence[Any],
    device: Device,
    foreign: Foreign | None = None,
    signature: Signature | None = None,
) -> Any:
    """A call in positional form, on a device; `signature` is that of the call, if it is known."""
    args = tuple(normal)

    def in_python(work: Callable[[], Any]) -> Any:
        return work() if foreign is None else foreign.by_python(work)

    try:
        compiled = dispatcher.compiled_for_device(args, signature)
    except NotObservedError:
        return in_python(lambda: dispatcher.evaluate(args, dispatcher.signature(args)))
    if compiled.typed.procedures or compiled.specialization.shared_with_python:
        return in_python(
            lambda: config.on_cpu(dispatcher.instance if dispatcher.inner is None else dispatcher.inner, args)
        )
    log = Log()
    made = plan_of(compiled)
    plan = plan_for(made, device)
    leaves = values_of(compiled, args)
    kept = contents_kept(compiled, leaves) if foreign is None else contents_kept(compiled, leaves, foreign.kept)
    if foreign is not None:
        foreign.listed = listed(compiled.specialization.result)
    try:
        results = run(plan, device, leaves, opaque_of(compiled, log), plan.gives_views, foreign)
    except DeviceMemoryError as error:
        if not error.unchanged:
            raise
        from parakeet_py.call.devices.team_calls import call_on_team

        return call_on_team(dispatcher, args, Team((device,), cpu=False))  # which computes in pieces
    except OpaqueResultChanged:
        if plan.stored_params:
            raise
        return in_python(lambda: dispatcher.evaluate(args, dispatcher.signature(args), log))
    except Exception as error:
        if not is_for_python(compiled, error):
            raise
        return _begun_again(dispatcher, compiled, error, args, in_python, kept, log)
    if plan is made:
        examine(compiled, made, device)
    return box(compiled.specialization.result, results, leaves)
