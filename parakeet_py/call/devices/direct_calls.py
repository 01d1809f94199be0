"""Calls whose arrays all live on one device, and that hand nothing back to Python, where their specialization is known.

All that is left to do is the host part (`hybrid.plan.host_code`): no signature is made, nothing enters or leaves the
device. Calls that come again with the same extents are done from schedules (`recorded_calls`); those whose extents are
others each time are done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.call.devices.call_cache import Known, look, repeated_of
from parakeet_py.call.give_back import is_for_python, run_compiled
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.occupancy_limit import examine, plan_for
from parakeet_py.hybrid.devices.transfer_counters import Meter
from parakeet_py.hybrid.execute.call_arrays import entering, leaving
from parakeet_py.hybrid.execute.device_memory import DeviceMemory
from parakeet_py.hybrid.residency.arrays import Buffer, DeviceView, Layout
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.hybrid.residency.persistent_memory import Home
from parakeet_py.hybrid.residency.resident_arguments import Residents
from parakeet_py.imp.schedule.effects import stores_only_into_its_own
from parakeet_py.signature.results import ResultLeaf, assemble

if TYPE_CHECKING:
    from parakeet_py.call.devices.caller import Dispatcher
    from parakeet_py.hybrid.devices.team import Team
    from parakeet_py.hybrid.plan.device_plan import DevicePlan


def known(dispatcher: Dispatcher, args: Sequence[Any], device: Any, place: Team) -> tuple[Known, list[Any]] | None:
    """What is known of a call whose arrays live at a place, and its leaf arguments; None if it is not done here."""
    seen = look(dispatcher, args, device, {})
    if seen is None or type(seen.kind) is not DeviceArray or seen.foreign or seen.kind._place != place:
        return None
    found = repeated_of(dispatcher).known(dispatcher.config(), seen.facts)
    if found is None or not found.direct or dispatcher.is_patched():
        return None
    return found, [seen.values[number] for number in found.places]


@hidden
def run(dispatcher: Dispatcher, known: Known, leaves: Sequence[Any], args: tuple[Any, ...], team: Team) -> Any:
    """The result of a call in positional form, whose leaf arguments these are."""
    compiled, device = known.compiled, team.alone
    plan: DevicePlan = plan_for(compiled.plan, device)
    memory = DeviceMemory(plan, Meter(device, plan.check))
    homes: dict[Buffer, Home] = {}  # where memory is between calls
    given = []
    for leaf, param in zip(leaves, plan.function.params, strict=True):
        if type(leaf) is DeviceArray:
            there = leaf.on(device)
            there.given = leaf
            homes[there.buffer] = leaf._home
            given.append(there)
        else:
            given.append(entering(leaf, param.type))
    memory.given.update(homes)
    try:
        results = _host_part(plan, memory, given)
    except Exception as error:
        if not is_for_python(compiled, error):
            raise
        failed = error
    else:
        device.submit()  # what looks at the results waits
        if compiled.plan is plan:
            examine(compiled, plan, device)
        found = [
            _result(value, result.type, homes, team)
            for value, result in zip(results, plan.function.results, strict=True)
        ]
        tree = compiled.specialization.result
        return found[0] if is_one_array(tree) else assemble(tree, found, leaves, as_result)

    @hidden
    def given_up(opaque: Any) -> Sequence[Any]:
        raise failed

    with Residents(team, next(leaf for leaf in leaves if type(leaf) is DeviceArray), {}) as residents:
        own = stores_only_into_its_own(compiled.imp)
        python, array = residents.by_python, residents.array
        return run_compiled(dispatcher, compiled, args, leaves, given_up, lambda: own, in_python=python, array=array)


@hidden
def _host_part(plan: DevicePlan, memory: DeviceMemory, given: Sequence[Any]) -> Sequence[Any]:
    """Run the host part; what has failed first is raised."""
    try:
        results: Sequence[Any] = plan.host(memory, *given)
        memory.look()
    except DeviceError as error:
        fault = memory.fault(error)
        if fault is error:
            raise
        raise fault from error
    except Exception as error:
        found = memory.first(error)
        if found is error:
            raise
        raise found from None
    finally:
        plan.last_run = memory.device.run()
    return results


def _result(value: Any, kind: Any, homes: dict[Buffer, Home], team: Team) -> Any:
    """A result of the host part as the caller has it."""
    if type(value) is not DeviceView:
        return leaving(value, kind)
    if value.given is None:
        home = homes.get(value.buffer)
        if home is None:
            home = homes[value.buffer] = Home.on(team.alone, value.buffer)
        layout = Layout(np.dtype(value.dtype), value.shape, value.strides, not value.readonly)
        value.given = DeviceArray(home, team, layout, value.offset)
    return value.given


def is_one_array(tree: Any) -> bool:
    """Whether a result is an array as the host part has it."""
    return type(tree) is ResultLeaf and tree.kind == "array" and not tree.view and not tree.readonly


def as_result(value: Any, new: bool, readonly: bool) -> Any:
    """An array of a result, see `assemble`."""
    return value._view(not readonly) if new else value
