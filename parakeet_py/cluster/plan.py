"""What is made once of a specialization for calls on Dask arrays: its host part, its regions, and their kernels."""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from parakeet_py.base.config import Config
from parakeet_py.cluster.worker.kernel import Kernel
from parakeet_py.hybrid.partition.block_parts import BlockPart, block_part
from parakeet_py.hybrid.partition.regions import Region, cut_regions, host_steps
from parakeet_py.hybrid.partition.tasks import Group
from parakeet_py.hybrid.plan.routine_calls import as_calls
from parakeet_py.hybrid.residency.windows import spread
from parakeet_py.imp import ir as imp
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.passes.fusion.vertical import fuse_into_scatters
from parakeet_py.typed_ir.print import lines_of
from parakeet_py.typed_ir.rewrite import Uses

if TYPE_CHECKING:
    from parakeet_py.hybrid.plan.compiled import Compiled

LAYOUTS = 1 << 14  # windows of tasks whose layout is kept for the next call
Extents = tuple[tuple[int, int, int], ...]  # of arrays: the number of the parameter, the axis, the extent


class ClusterPlan:
    """How a specialization runs on Dask.

    Attributes
    ----------
    function : the host part
    identity : what has been compiled, and how: the same in every process
    sites, first : regions and groups of tasks, and the number of the first among the opaque calls of the host part
    routines : NumPy's compiled loops, by the numbers of their calls
    layouts : of the windows of regions that have run, for when they run again on arrays that are cut alike
    """

    def __init__(self, compiled: Compiled) -> None:
        function, self.routines = as_calls(fuse_into_scatters(compiled.typed), team=True)
        self.function, self.sites, self.first = cut_regions(function)
        self._used = Uses(function.body).variables
        self.config = compiled.config
        self.identity = identity_of(compiled.typed, self.config)
        self.name, self.filename = compiled.typed.name, compiled.function.__code__.co_filename
        self._lock = threading.RLock()
        self._parts: dict[Any, BlockPart] = {}
        self._kernels: dict[tuple[int, bool, Extents], tuple[Kernel, Hashable]] = {}
        self._steps: dict[int, imp.Function] = {}
        self.layouts: dict[str, dict[Any, Any]] = {}
        self._kept: list[Any] = []  # their ids are keys

    def keep_layouts(self) -> None:
        """Keep what calls have noted about layouts, if it is not too much: other calls may be using it."""
        if sum(map(len, [*self.layouts.values()])) > LAYOUTS:
            self.layouts = {}

    def at(self, site: int) -> Region | Group | None:
        """What stands at an opaque call of the host part: a region, or tasks; None if it is one of the user's."""
        return self.sites[site - self.first] if site >= self.first else None

    def part(self, region: Region, cut: tuple[int, ...], private: bool) -> BlockPart:
        """The part of a region over blocks that are cut along some axes."""
        key = id(region), cut, private
        with self._lock:
            if key not in self._parts:
                assert isinstance(region.op, ir.PARALLEL)
                unused = frozenset(number for number, out in enumerate(region.outs) if out not in self._used)
                self._parts[key] = block_part(region.op, region.outs, region.line, region.name, cut, private, unused)
                self._kept.append(region)
            return self._parts[key]

    def steps(self, region: Region) -> imp.Function:
        """A region as statements of the host part."""
        key = id(region)
        with self._lock:
            if key not in self._steps:
                self._steps[key] = host_steps(region.whole)
                self._kept.append(region)
            return self._steps[key]

    def kernel(self, function: ir.Function, apart: bool, extents: Extents = ()) -> tuple[Kernel, Hashable]:
        """A part with its machine code, and the key that it has in graphs, the same in every process; `extents` are
        known, of arrays that lie together then."""
        key = id(function), apart, extents
        with self._lock:
            if key not in self._kernels:
                self._kept.append(function)
                known = tuple((function.params[number], axis, extent) for number, axis, extent in extents)
                loose = None if extents else spread(function)
                function = replace(function, static_extents=known) if known else function
                chosen = replace(function if loose is None else loose, disjoint=apart, dropped=True)
                together = loose is None and any(getattr(param.type, "rank", 0) > 1 for param in function.params)
                identity = identity_of(chosen, self.config, together, extents)
                kernel = Kernel(chosen, self.config, together, identity)
                self._kernels[key] = kernel, f"{function.name}-code-{identity}"
            return self._kernels[key]


# a variable, or what is quoted, where nothing is one; numbers begin with a digit
_NAMES = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w.])(?P<name>[^\W\d][\w.]*?)\.(?P<number>\d+)\b""")


def identity_of(function: ir.Function, config: Config, *more: object) -> str:
    """A digest of a function, whatever the numbers of its variables, of places in the source, which errors name, and of
    what else its machine code depends on."""
    numbers: dict[str, int] = {}

    def renumbered(found: re.Match[str]) -> str:
        if found["number"] is None:
            return found[0]
        return f"{found['name']}.{numbers.setdefault(found['number'], len(numbers))}"

    lines = [f"{_NAMES.sub(renumbered, line.text)} {line.pos}" for line in lines_of(function)]
    chosen = config.contract, config.fastmath, config.check, function.disjoint, *more
    return blake2b(f"{lines} {chosen}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
