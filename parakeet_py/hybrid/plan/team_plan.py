"""A specialization for a team: its host part, its regions, and the code of every part that has been needed.

A `TeamPlan` is made once for each specialization, from the typed IR after fusion. The parts of a region are compiled
when a member first runs one: to machine code for the CPU, to PTX for devices. Each exists in up to two forms: one for
calls in which what it stores to overlaps nothing else that it is given, one for all calls.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from parakeet_py.hybrid.partition.regions import Region, cut_regions
from parakeet_py.hybrid.partition.tasks import Group
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.hybrid.plan.host_parts import HostPart
from parakeet_py.hybrid.plan.host_plan import HostPlan
from parakeet_py.hybrid.plan.part_cost import Rates, Speed, cpu_speed
from parakeet_py.hybrid.plan.routine_calls import as_calls
from parakeet_py.hybrid.residency.windows import spread
from parakeet_py.signature.results import sets_attributes
from parakeet_py.typed_ir.ir import Function

if TYPE_CHECKING:
    from parakeet_py.hybrid.plan.compiled import Compiled


class TeamPlan(HostPlan):
    """How a specialization runs on a team whose members share its regions.

    Attributes
    ----------
    sites, first : the regions and groups of tasks, and the number of the first among the opaque calls of the host part
    regions : the regions alone
    stored : the positions of the leaf arguments that are stored to
    rates : what parts have taken so far
    estimates : what foresees the seconds of calls and tasks, from a plan and a team
    schedules : who has had which tasks, by what the choice rests on
    cpu_factor : how many times faster the CPU is at this function than is assumed, as `cpu_only_calls` has found out
    regroups : a team sums in another order than the CPU alone
    shows : what a call does shows, beside its result: it stores to arguments, sets attributes, or leaves some operation
        to Python
    identity : what tells the function and its types from others, in this process and the next
    """

    def __init__(self, compiled: Compiled, estimates: Callable[[Any, Any], Any]) -> None:
        function, routines = as_calls(compiled.typed, team=True)
        host, self.sites, self.first = cut_regions(function)
        super().__init__(host, compiled.config, compiled.function.__code__.co_filename, routines)
        self.regions = tuple(site for site in self.sites if isinstance(site, Region))
        self.stored = sorted(compiled.specialization.stored_params)
        self.rates = Rates()
        self.estimates = estimates
        self.schedules: dict[Any, Any] = {}
        self.cpu_factor = 1.0
        divisions = [division for region in self.regions for division in region.divisions]
        self.regroups = any(one.join in ("combine", "scan") or one.rounds for one in divisions)
        hands_back = any(site < self.first and site not in routines for site in self.opaque_args)
        self.shows = bool(self.stored) or hands_back or sets_attributes(compiled.specialization.result)
        self._typed = compiled.typed
        self._lock = threading.RLock()
        self._made: dict[tuple[str, int, bool], Any] = {}
        self._kept: list[Function] = []  # their ids are keys
        self._spread: dict[int, Function | None] = {}

    @cached_property
    def identity(self) -> str:
        numbers: dict[str, str] = {}  # of variables, which are others in each process
        return re.sub(r"\.\d+\b", lambda found: numbers.setdefault(found[0], f".{len(numbers)}"), repr(self._typed))

    def cpu_speed(self, threads: int) -> Speed:
        """How fast so many threads of the CPU are at this function."""
        found = cpu_speed(threads)
        return found._replace(operations=found.operations * self.cpu_factor)

    def at(self, site: int) -> Region | Group | None:
        """What stands at an opaque call of the host part: a region, or tasks; None if it is one of the user's."""
        return self.sites[site - self.first] if site >= self.first else None

    def on_host(self, part: Function, disjoint: bool) -> HostPart:
        """The machine code of a part."""
        found: HostPart = self._code("host", part, disjoint)
        return found

    def on_device(self, part: Function, disjoint: bool) -> DevicePlan:
        """A part for devices."""
        found: DevicePlan = self._code("device", part, disjoint)
        return found

    def spread(self, part: Function) -> Function | None:
        """A part in the form for packed windows; None if there is none."""
        with self._lock:
            if id(part) not in self._spread:
                self._kept.append(part)
                self._spread[id(part)] = spread(part)
            return self._spread[id(part)]

    def _code(self, where: str, part: Function, disjoint: bool) -> Any:
        key = where, id(part), disjoint
        with self._lock:
            if key not in self._made:
                function = replace(part, disjoint=disjoint)
                self._kept.append(part)
                self._made[key] = (
                    HostPart(function, self.config)
                    if where == "host"
                    else DevicePlan(function, self.config, self.filename)
                )
            return self._made[key]
