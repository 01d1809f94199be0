"""A guard against kernels that keep a GPU idle: too fused, they need so many registers that few threads fit.

The driver says, once it has compiled a kernel, how many of its blocks a multiprocessor holds at once. If that is less
than a quarter of its threads (of K-means fused into one kernel, say: it hides no latency then), the function is
compiled again with its operators apart, and if the worst of those kernels fits at least twice as often, later calls on
this device run them.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from parakeet_py.hybrid.plan import Plan
from parakeet_py.typed_ir.pipeline import run_passes

if TYPE_CHECKING:
    from parakeet_py.compile import Compiled
    from parakeet_py.hybrid.device import Device

STARVED = 0.25  # of the threads that a multiprocessor can hold
BETTER = 2.0
LAST_PASS = "parallelize"  # the one before fusion

_log = logging.getLogger("parakeet_py")


class Resources(NamedTuple):
    """What a kernel takes on a device.

    Attributes
    ----------
    registers, local : of a thread; `local` are bytes of memory for what has no register
    shared : bytes of a block
    occupancy : the threads that a multiprocessor holds at once, of those that it could
    """

    registers: int
    local: int
    shared: int
    occupancy: float


def plan_for(plan: Plan, device: Device) -> Plan:
    """The plan to run on a device: this one, or what the guard has put in its place."""
    return plan.instead.get(id(device), plan)


def examine(compiled: Compiled, plan: Plan, device: Device) -> None:
    """Look at the kernels that a call has loaded for the first time; later calls may get another plan."""
    loaded = plan.take_loaded()
    ask = getattr(device, "resources", None)
    if ask is None or not loaded or id(device) in plan.instead:
        return
    for number, module in loaded:
        kernel = plan.kernels[number]
        found: Resources | None = ask(module, kernel.name, kernel.threads)
        if found is None:
            continue
        plan.resources[number] = found
        if found.occupancy < STARVED and not kernel.single:
            plan.instead[id(device)] = _apart(compiled, plan, device, ask, found)
            return


def _apart(compiled: Compiled, plan: Plan, device: Device, ask: Any, starved: Resources) -> Plan:
    """The plan with operators apart, if it is better."""
    unfused = run_passes(compiled.unfused, replace(compiled.config, stop_pass=LAST_PASS))
    other = Plan(unfused, compiled.config, plan.filename)
    if len(other.kernels) <= len(plan.kernels):
        return plan
    for number, kernel in enumerate(other.kernels):
        if kernel.single:
            continue
        found: Resources = ask(other.module(device, number), kernel.name, kernel.threads)
        other.resources[number] = found
        if found.occupancy < BETTER * starved.occupancy:
            return plan
    _log.info(
        "%s: a fused kernel takes %d registers, %.0f%% of the threads fit; its operators run apart on %s",
        plan.function.name,
        starved.registers,
        100 * starved.occupancy,
        device.name,
    )
    return other
