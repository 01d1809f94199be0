"""What a region would cost each member of a team, from its operations, its bytes and where they are."""

from __future__ import annotations

import math
from typing import Any

from parakeet_py.hybrid.execute.team_call import TeamCall
from parakeet_py.hybrid.partition.access import Part
from parakeet_py.hybrid.partition.division import Division
from parakeet_py.hybrid.plan.part_cost import Cost, Speed, device_speed
from parakeet_py.hybrid.residency.blocks import HOST, Written
from parakeet_py.hybrid.residency.byte_ranges import NOTHING, difference, size_of
from parakeet_py.imp.schedule.loop_order import static_cost
from parakeet_py.typed_ir.ir import Block, Compress, Const, For, Let, Map, Matmul, Op, Reduce, Scan, Scatter, Var
from parakeet_py.typed_ir.rewrite import NOWHERE

POINT = 10  # operations that a device does for a point of an index space before those of its body: a thread, addresses
BLOCK = 256  # threads that a device begins at once, however few have something to do


def costs_of(call: TeamCall, division: Division, values: dict[Var, Any], extent: int, steady: bool) -> list[Cost]:
    """What it would cost each member of a call's team, in the order of their memories.

    With `steady` nothing counts that differs between equal calls: measured seconds, and where bytes are.
    """
    team = call.team
    if not extent:
        return [Cost(0.0, 1.0)] * (len(team.devices) + team.cpu)
    one, all_ = (
        call.touched(division.touched, Part(division.touched, values, division.bounds(0, hi)), values)[0]
        for hi in (1, extent)
    )
    found = []
    operations = {on_host: operations_of(call, division, values, HOST if on_host else 1) for on_host in (True, False)}
    for who in range(0 if team.cpu else 1, len(team.devices) + 1):
        device = None if who == HOST else team.devices[who - 1]
        speed = call.plan.cpu_speed(call.threads) if device is None else device_speed(device)
        fixed, each = beginning(speed, who), operations[who == HOST] / speed.operations
        measured = call.plan.rates.cost(id(division.part), "cpu" if device is None else device.name)
        if measured is not None and not steady:
            fixed, each = measured
        if speed.link:
            last = missing(all_, who, steady)
            first, copies = (missing(one, who, steady), len(all_)) if last else (0, 0)
            fixed += first / speed.link + copies * speed.start
            each += (last - first) / speed.link / max(extent - 1, 1)
        found.append(Cost(fixed, each))
    return found


def beginning(speed: Speed, who: int) -> float:
    """Seconds that a part costs in any case."""
    return speed.start if who == HOST else speed.start + BLOCK * POINT / speed.operations


def missing(needed: Written, who: int, steady: bool) -> int:
    """Bytes that would have to be brought; `steady`: if all were on the host."""
    valid = (NOTHING if steady else root.valid.get(who, NOTHING) for root in needed)
    return sum(size_of(difference(spans, known)) for spans, known in zip(needed.values(), valid, strict=True))


def operations_of(call: TeamCall, division: Division, values: dict[Var, Any], who: int) -> float:
    """Scalar operations for an index of the split axis, or for an element of a tile, where `who` computes it."""
    op = division.op
    begin = 0 if who == HOST else POINT
    cost = 2 * values[op.left].shape[-1] if isinstance(op, Matmul) else max(division.cost, 1) + begin
    if division.across is not None:
        return float(cost)
    return float(points_of(call, division, values) * cost / max(call.extent(division.extent, values), 1))


def operations_in_turn(call: TeamCall, op: Op, values: dict[Var, Any]) -> float:
    """Scalar operations of an operator that is not cut, about."""
    match op:
        case For(start=start, stop=stop, step=Const(value=step), body=body):
            try:
                count = (call.extent(stop, values) - call.extent(start, values)) // int(step.real)
            except (KeyError, TypeError):  # computed inside, or not known yet
                count = 1
            return float(max(count, 1) * static_cost(body))
        case Map() | Scan() | Compress() | Scatter() | Reduce():
            extents = (*op.extents, *getattr(op, "reduced_extents", ()))
            return float(math.prod(call.extent(one, values) for one in extents) * static_cost(op.body))
    return float(static_cost(Block((Let((), op, NOWHERE),))))


def points_of(call: TeamCall, division: Division, values: dict[Var, Any]) -> int:
    """How many points the index space has."""
    op = division.op
    if isinstance(op, Matmul):
        return math.prod(values[op.out].shape)
    extents = (*getattr(op, "extents", ()), *getattr(op, "reduced_extents", ()))
    return math.prod(call.extent(one, values) for one in extents)
