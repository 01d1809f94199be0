"""A guard against kernels that keep a GPU idle: they need so many registers that few of their threads fit.

The driver says, once it has compiled a kernel, how many of its blocks a multiprocessor holds at once. Large blocks
leave registers over: where less than half of the threads fit, and more would fit in smaller blocks, later launches
have them (of kernels whose threads have nothing to do with each other). If what fits then is still less than a quarter
(of K-means fused into one kernel, say: it hides no latency), the function is compiled again with its operators apart,
and if the worst of those kernels fits at least twice as often, later calls on this device run them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from parakeet_py.base.debug_log import log
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.typed_ir.pipeline import run_passes

if TYPE_CHECKING:
    from parakeet_py.hybrid.devices.device import Device
    from parakeet_py.hybrid.plan.compiled import Compiled

ROOMY = 0.5  # of the threads that a multiprocessor can hold: enough, whatever the size of blocks
FITTER = 1.2  # how much better smaller blocks must fit
SMALLEST = 32  # threads of a block
STARVED = 0.25  # of the threads that a multiprocessor can hold
BETTER = 2.0
LAST_PASS = "parallelize"  # the one before fusion


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


def plan_for(plan: DevicePlan, device: Device) -> DevicePlan:
    """The plan to run on a device: this one, or what the guard has put in its place."""
    return plan.instead.get(id(device), plan)


def examine(compiled: Compiled, plan: DevicePlan, device: Device) -> None:
    """Look at the kernels that a call has loaded for the first time; later calls may get another plan."""
    loaded = plan.take_loaded()
    ask = getattr(device, "resources", None)
    if ask is None or not loaded or id(device) in plan.instead:
        return
    for number, module in loaded:
        kernel = plan.kernels[number]
        found: Resources | None = ask(module, kernel.name, kernel.threads)
        if found is None or (id(device), number) in plan.parts:
            continue
        found = _in_smaller_blocks(plan, number, device, partial(ask, module, kernel.name), found)
        plan.resources[number] = found
        if found.occupancy < STARVED and not kernel.single:
            plan.instead[id(device)] = _apart(compiled, plan, device, ask, found)
            return


def _in_smaller_blocks(plan: DevicePlan, number: int, device: Device, ask: Any, whole: Resources) -> Resources:
    """What a kernel takes in blocks of the best size; later launches have that size."""
    kernel = plan.kernels[number]
    best, best_parts, parts = whole, 1, 2
    while whole.occupancy < ROOMY and kernel.divisible and kernel.threads // parts >= SMALLEST:
        found: Resources | None = ask(kernel.threads // parts)
        if found is not None and found.occupancy >= FITTER * best.occupancy:
            best, best_parts = found, parts
        parts *= 2
    if best_parts > 1:
        plan.parts[id(device), number] = best_parts
    return best


def _apart(compiled: Compiled, plan: DevicePlan, device: Device, ask: Any, starved: Resources) -> DevicePlan:
    """The plan with operators apart, if it is better."""
    unfused = run_passes(compiled.unfused, replace(compiled.config, stop_pass=LAST_PASS))
    other = DevicePlan(unfused, compiled.config, plan.filename)
    if len(other.kernels) <= len(plan.kernels):
        return plan
    for number, kernel in enumerate(other.kernels):
        if kernel.single:
            continue
        found: Resources | None = ask(other.module(device, number), kernel.name, kernel.threads)
        if found is None:
            return plan
        other.resources[number] = found
        if found.occupancy < BETTER * starved.occupancy:
            return plan
    log.info(
        "%s: a fused kernel takes %d registers, %.0f%% of the threads fit; its operators run apart on %s",
        plan.function.name,
        starved.registers,
        100 * starved.occupancy,
        device.name,
    )
    return other
