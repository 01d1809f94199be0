"""One region as tasks of Dask's: a grid of blocks, a task for each, and how their results are joined.

| operator | blocks | join |
|---|---|---|
| Map | any axis, unless several would store into one chunk | chunks of results, and of what is stored into |
| Reduce | kept axes; reduced ones, the first alone where order counts | a tree of `combine`s in index order |
| Scan | any axis | along the scanned one, totals from block to block, then a task that takes them in |
| Compress | the first axis | chunks whose extents only their tasks know |
| Scatter | where blocks store into chunks of their own; else into copies | `combine`, as a tree |

Everything else is one task, which needs all that the region reads in one place: what that may be is limited
(`gather_limit`), and a warning says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from parakeet_py.base.gc_pause import put_off
from parakeet_py.base.types import Array, itemsize
from parakeet_py.cluster.arrays import Block, LazyArray, LazyScalar, Place, Root
from parakeet_py.cluster.block_tasks import BlockTasks
from parakeet_py.cluster.grid import Shaped, Space, Target, boundaries, targets_of
from parakeet_py.cluster.joins import Joins
from parakeet_py.cluster.planned_call import PlannedCall
from parakeet_py.cluster.report import RegionReport
from parakeet_py.cluster.stores import Stores
from parakeet_py.cluster.windows import Windows
from parakeet_py.cluster.worker.buffers import Box
from parakeet_py.hybrid.partition.access import Access, Index
from parakeet_py.hybrid.partition.block_parts import any_order, private_identity, space_of
from parakeet_py.hybrid.partition.fission import may_fail
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Function, Var


def run_region(call: PlannedCall, region: Region, values: Mapping[Var, Any]) -> list[Any]:
    """The results of a region as values of the host part."""
    return RegionTasks(call, region, values).run()


class RegionTasks:
    """A region in one call.

    Attributes
    ----------
    axes : where each axis of the index space is cut, ends included
    cut : the axes that are
    free : what the part takes from outside
    """

    def __init__(self, call: PlannedCall, region: Region, values: Mapping[Var, Any]) -> None:
        self.call, self.region, self.graph = call, region, call.graph
        self.before = len(self.graph.tasks)
        self.values = {var: call.ready(one) if isinstance(one, LazyArray) else one for var, one in values.items()}
        self.arrays = {var: one for var, one in self.values.items() if isinstance(one, LazyArray)}
        op, touched = region.op, region.touched
        self.indices: tuple[Var, ...] = ()
        self.extents: tuple[int, ...] = ()
        if isinstance(op, ir.PARALLEL):
            self.indices, extents = space_of(op)
            self.extents = tuple(call.number(self._operand(extent)) for extent in extents)
        for var, one in self.values.items():  # a round may have been for some
            if isinstance(one, LazyScalar) and one.known:
                self.values[var] = one.value
        known: dict[Var, Any] = {
            var: Shaped(one.shape) if isinstance(one, LazyArray) else one
            for var, one in self.values.items()
            if not isinstance(one, LazyScalar)
        }
        self.space = Space(touched, self.indices, self.extents, known)
        self.reads = self._accesses(touched.reads)
        self.writes = self._accesses(touched.writes)
        if not touched.traced:
            everything = [(Access(var, (None,) * len(one.shape)), one) for var, one in self.arrays.items()]
            self.reads += everything
            self.writes += [(access, one) for access, one in everything if one.root.given is None]
        for root in {id(array.root): array.root for _, array in self.writes}.values():
            call.may_store(root, region.line)
        self.windows = Windows(self.graph)
        self.axes: list[list[int]] = []
        self.cut: tuple[int, ...] = ()
        self.private, self.unused = False, frozenset[int]()
        self._deps: dict[tuple[int, int], tuple[int, ...]] = {}
        self._spans: dict[Any, tuple[int, int] | None] = {}

    def _accesses(self, accesses: Sequence[Access]) -> list[tuple[Access, LazyArray]]:
        found = [(access, self.arrays[access.array]) for access in accesses if access.array in self.arrays]
        return list({(access.array, access.indices): (access, array) for access, array in found}.values())

    def _operand(self, operand: ir.Operand) -> Any:
        return self.values[operand] if isinstance(operand, Var) else operand.whole

    @property
    def takes_tuples(self) -> bool:
        """See `RegionRun`."""
        return self.joins.takes_tuples

    # ---- how it is cut -----------------------------------------------------------------------------------------------

    def run(self) -> list[Any]:
        copies = self._copies()
        if copies is not None:
            self._tell("the same chunks")
            return copies
        targets = self._cut()
        op, region = self.region.op, self.region
        if isinstance(op, ir.PARALLEL):
            part = self.call.part(region, self.cut, self.private)
            function, filled, self.unused = part.function, part.filled, part.unused
            free = function.params[len(self.cut) + len(self.extents) + len(filled) :]
        else:
            part, function, filled, free = None, region.whole, (), region.whole.params
        self.joins = Joins(self.call, region, part, self.axes, self.extents, self.cut)
        stores = Stores(self, targets)
        with put_off():
            before = {} if part is None or part.totals is None else self._before(part.totals, free[:-1], stores)
            blocks = BlockTasks(self, function, filled, free, stores, before).all()
        results = self.joins.private(self.values, blocks) if self.private else self.joins.results(blocks)
        if isinstance(op, ir.Map) and not op.body.statements and op.body.results == op.indices[-1:]:
            results[0].root.is_index = True
        self._tell()
        return results

    def _copies(self) -> list[Any] | None:
        """The results of a region that does nothing but copy arrays: chunks never change, so these have the same."""
        op = self.region.op
        if not isinstance(op, ir.Map) or not op.body.results:
            return None
        loads: dict[Any, LazyArray] = {}
        for let in op.body.statements:
            if not isinstance(let.op, ir.Load) or let.op.indices != op.indices or len(let.outs) != 1:
                return None
            array = self.values.get(let.op.array)
            if isinstance(array, LazyArray) and array.is_whole() and array.shape == self.extents:
                loads[let.outs[0]] = array
        if not all(result in loads for result in op.body.results):
            return None
        found = []
        for result in op.body.results:
            root = loads[result].root
            if root.chunks is None or root.counts is not None or len(root.keys) < math.prod(map(len, root.chunks)):
                return None
            made = Root(root.shape, root.dtype, root.itemsize, root.chunks)
            made.keys.update(root.keys)
            made.is_index = root.is_index
            found.append(LazyArray.of(made))
        self.axes = [list(bounds) for bounds in found[0].root.bounds]
        return found

    def _cut(self) -> list[Target]:
        op = self.region.op
        for _, array in (*self.reads, *self.writes):
            if array.root.chunks is None:
                array.root.cut(tuple((extent,) for extent in array.root.shape))
        forbidden: set[int] = set()
        if not self.region.touched.traced:
            forbidden.update(range(len(self.extents)))
        targets = targets_of(self.space, self.writes, forbidden)
        if isinstance(op, ir.Scatter) and self.region.touched.traced and len(forbidden) >= len(self.extents):
            self.private = private_identity(op.combine) is not None and all(self.extents)
        reads = self.reads
        if self.private:
            assert isinstance(op, ir.Scatter)
            forbidden, targets = set(), []
            self.reads = reads = [one for one in self.reads if one[0].array is not op.target]
            self.writes = []
        allowed = self._allowed(forbidden)
        self.axes = boundaries(self.space, reads, targets, allowed, self.call.hints)
        self._cut_large(allowed)
        self.cut = tuple(axis for axis, bounds in enumerate(self.axes) if len(bounds) > 2)
        return targets

    def _allowed(self, forbidden: set[int]) -> tuple[int, ...]:
        """The axes that may be cut."""
        op, rank = self.region.op, len(self.extents)
        if not isinstance(op, ir.PARALLEL) or not all(self.extents):
            return ()
        axes = set(range(rank)) - forbidden
        combine = getattr(op, "combine", None)
        joined = {
            ir.Reduce: set(range(len(op.extents), rank)),
            ir.Scan: {getattr(op, "axis", 0)},
            ir.Scatter: set(range(rank)),
        }.get(type(op), set())
        if combine is not None and may_fail(combine.body):
            axes -= joined
        if isinstance(op, ir.Reduce) and not any_order(op.combine):
            axes -= set(range(len(op.extents) + 1, rank))
        if isinstance(op, ir.Compress):
            axes &= {0}
        return tuple(sorted(axes))

    def _cut_large(self, allowed: Sequence[int]) -> None:
        """Cut what reads no chunks, but makes much, along its longest axis."""
        if any(len(bounds) > 2 for bounds in self.axes) or not allowed or not isinstance(self.region.op, ir.Map):
            return
        size = max((itemsize(out.type.dtype) for out in self.region.outs if isinstance(out.type, Array)), default=0)
        for extent in self.extents:
            size *= extent
        count = -(-size // self.call.chunk_bytes)
        axis = max(allowed, key=lambda one: self.extents[one])
        extent = self.extents[axis]
        if count > 1 and extent > 1:
            step = max(-(-extent // count), 1)
            self.axes[axis] = [*range(0, extent, step), extent]

    def _tell(self, join: str = "side by side") -> None:
        op, region = self.region.op, self.region
        if isinstance(op, ir.Reduce) and any(axis >= len(op.extents) for axis in self.cut):
            join = "combine"
        elif isinstance(op, ir.Scan) and op.axis in self.cut:
            join = "scan"
        elif isinstance(op, ir.Compress):
            join = "compress"
        elif self.private:
            join = "histogram"
        blocks = tuple(len(bounds) - 1 for bounds in self.axes)
        tasks = len(self.graph.tasks) - self.before
        moved = self.windows.moved
        if not self.cut and tasks:
            join = "one task"
        self.call.told(RegionReport(region.name, region.line, blocks, join, tasks, moved))

    # ---- boxes -------------------------------------------------------------------------------------------------------

    def boxes(self, accesses: Sequence[tuple[Access, LazyArray]], root: Root, place: Block) -> list[Box]:
        """The boxes of a root that accesses touch in a block."""
        found: dict[Box, None] = {}
        for access, array in accesses:
            if array.root is root:
                box = self._box(access, array, place)
                if box is not None:
                    found[box] = None
        return list(found)

    def _box(self, access: Access, array: LazyArray, place: Block) -> Box | None:
        found = [(start, start + 1) for start in array.starts]
        for position, (index, (axis, step)) in enumerate(zip(access.indices, array.axes, strict=True)):
            own = self._span(access, position, index, array.shape[position], place)
            if own is None:
                return None
            if axis >= 0:
                start = array.starts[axis]
                ends = start + step * own[0], start + step * (own[1] - 1)
                found[axis] = min(ends), max(ends) + 1
        return tuple(found)

    def span(self, access: Access, position: int, place: Block) -> tuple[int, int] | None:
        """See `RegionRun`."""
        return self._span(access, position, access.indices[position], self.arrays[access.array].shape[position], place)

    def depends_on(self, access: Access, position: int) -> tuple[int, ...]:
        """See `RegionRun`."""
        deps = self._deps.get((id(access), position))
        if deps is None:
            deps = tuple(sorted(self.space.axes_of(access.indices[position])))
            self._deps[id(access), position] = deps
        return deps

    def _span(self, access: Access, position: int, index: Index, extent: int, place: Block) -> tuple[int, int] | None:
        """The range of an index along one axis in a block; blocks that have the same range of what it depends on have
        the same."""
        deps = self.depends_on(access, position)
        key = id(access), position, tuple([place[axis] for axis in deps])
        if key not in self._spans:
            self._spans[key] = self._new_span(index, extent, deps, place)
        return self._spans[key]

    def _new_span(self, index: Index, extent: int, deps: tuple[int, ...], place: Block) -> tuple[int, int] | None:
        form = self.space.form(index)
        if form is None:
            return self.space.part({axis: self.ends(axis, place[axis]) for axis in deps}).along(index, extent)
        low, high = form.low, form.high
        if form.axis >= 0:
            lo, hi = self.ends(form.axis, place[form.axis])
            if lo >= hi:
                return None
            first, last = form.factor * lo, form.factor * (hi - 1)
            low, high = (low + first, high + last) if form.factor > 0 else (low + last, high + first)
        low, high = max(low, 0), min(high, extent - 1)
        return None if low > high else (low, high + 1)

    def ends(self, axis: int, at: int | tuple[int, int]) -> tuple[int, int]:
        """The bounds of a block along an axis."""
        return at if isinstance(at, tuple) else (self.axes[axis][at], self.axes[axis][at + 1])

    def _before(self, totals: Function, free: Sequence[Var], stores: Stores) -> dict[Place, Hashable]:
        """What comes before each block of a scan but the first."""
        places = list(itertools.product(*(range(len(bounds) - 1) for bounds in self.axes)))
        found = BlockTasks(self, totals, (), free, stores).all(places[:-1])
        return dict(zip(places[1:], self.joins.befores([key for (key,) in found.values()]), strict=True))
