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

from dask._task_spec import TaskRef

from parakeet_py.base.gc_pause import put_off
from parakeet_py.base.types import Array, Scalar, itemsize
from parakeet_py.cluster.arrays import LazyArray, LazyScalar, Place, Root, box_of
from parakeet_py.cluster.graph import LARGE_VALUE, SMALL_VALUE
from parakeet_py.cluster.grid import Shaped, Space, Target, boundaries, targets_of
from parakeet_py.cluster.joins import Joins
from parakeet_py.cluster.part_arguments import copy_of_target, rows_of
from parakeet_py.cluster.planned_call import PlannedCall
from parakeet_py.cluster.report import RegionReport
from parakeet_py.cluster.stores import Stores
from parakeet_py.cluster.stretches import stretches_of
from parakeet_py.cluster.windows import Layout, Snapshot, TaskInputs, Windows, volume
from parakeet_py.cluster.worker import tasks
from parakeet_py.cluster.worker.buffers import Box, ScalarSlot, ViewSlot, WindowSpec
from parakeet_py.cluster.worker.given_up import may_give_up
from parakeet_py.cluster.worker.tasks import Arguments
from parakeet_py.hybrid.partition.access import Access, Index
from parakeet_py.hybrid.partition.block_parts import any_order, private_identity, space_of
from parakeet_py.hybrid.partition.fission import may_fail
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Function, Var, dtype_of


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

    # ---- how it is cut -----------------------------------------------------------------------------------------------

    def run(self) -> list[Any]:
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
            blocks = self._tasks(function, filled, free, stores, before=before)
        results = self.joins.private(self.values, blocks) if self.private else self.joins.results(blocks)
        if isinstance(op, ir.Map) and not op.body.statements and op.body.results == op.indices[-1:]:
            results[0].root.is_index = True
        self._tell()
        return results

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

    def _tell(self) -> None:
        op, region = self.region.op, self.region
        join = "side by side"
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
        self.call.told(RegionReport(region.name, region.line, blocks, join if self.cut else "one task", tasks, moved))

    # ---- boxes -------------------------------------------------------------------------------------------------------

    def boxes(self, accesses: Sequence[tuple[Access, LazyArray]], root: Root, place: Place) -> list[Box]:
        """The boxes of a root that accesses touch in a block."""
        found: dict[Box, None] = {}
        for access, array in accesses:
            if array.root is root:
                box = self._box(access, array, place)
                if box is not None:
                    found[box] = None
        return list(found)

    def _box(self, access: Access, array: LazyArray, place: Place) -> Box | None:
        found = [(start, start + 1) for start in array.starts]
        for position, (index, (axis, step)) in enumerate(zip(access.indices, array.axes, strict=True)):
            own = self._span(id(access), position, index, array.shape[position], place)
            if own is None:
                return None
            if axis >= 0:
                start = array.starts[axis]
                ends = start + step * own[0], start + step * (own[1] - 1)
                found[axis] = min(ends), max(ends) + 1
        return tuple(found)

    def _span(self, access: int, position: int, index: Index, extent: int, place: Place) -> tuple[int, int] | None:
        """The range of an index along one axis in a block; blocks that have the same range of what it depends on have
        the same."""
        deps = self._deps.get((access, position))
        if deps is None:
            deps = self._deps[access, position] = tuple(sorted(self.space.axes_of(index)))
        key = access, position, tuple([place[axis] for axis in deps])
        if key not in self._spans:
            bounds = {axis: (self.axes[axis][place[axis]], self.axes[axis][place[axis] + 1]) for axis in deps}
            self._spans[key] = self.space.part(bounds).along(index, extent)
        return self._spans[key]

    # ---- tasks -------------------------------------------------------------------------------------------------------

    def _tasks(
        self,
        function: Function,
        filled: tuple[str, ...],
        free: Sequence[Var],
        stores: Stores,
        places: Sequence[Place] | None = None,
        before: Mapping[Place, Hashable] | None = None,
    ) -> dict[Place, list[Hashable]]:
        """A task for each block, or for some; gives the keys of what it fills and of its results. `before`: what comes
        before blocks of a scan, which is the last argument then."""
        names = self.region.args
        assert len(names) == len(free) - bool(before)
        roots = list({id(array.root): array.root for _, array in (*self.reads, *self.writes)}.values())
        numbers = {id(root): number for number, root in enumerate(roots)}
        snapshots = [stores.snapshot(root) for root in roots]
        layouts = self._layouts(roots, snapshots)
        kernel, kernel_key = self.call.kernel(function, self._apart(stores))
        lazy = [value for var in names if isinstance(value := self.values[var], LazyScalar)]
        scalars = list(dict.fromkeys(value.key for value in lazy))  # the first values of every task
        copied = copy_of_target(self, len(roots))
        slots = tuple(copied[1] if copied and var is copied[0] else self._slot(var, numbers, scalars) for var in names)
        common = Arguments(filled, slots, rows_of(self, roots))
        prefix = self.graph.prefix(type(self.region.op).__name__.lower())
        count = len(filled) + len(function.body.results) + sum(id(root) in stores.roots for root in roots)
        count += copied is not None
        made: dict[Place, list[Hashable]] = {}
        unused, initial = self.unused, getattr(self.region.op, "inits", (None,))[0] if before else None
        together, raises, gives_up = kernel.together, may_fail(function.body), may_give_up(function)
        for place in itertools.product(*(range(len(bounds) - 1) for bounds in self.axes)) if places is None else places:
            inputs = TaskInputs()
            for scalar in scalars:
                inputs.place(scalar)
            own = common
            if before:
                assert isinstance(initial, ir.Const)
                at = inputs.place(before[place]) if place in before else -1
                own = common._replace(free=(*slots, ScalarSlot(initial.value, at)))
            bounds = box_of(self.axes, place)
            specs = [
                self._window(inputs, snapshot, stores, place, together, layouts, number)
                for number, snapshot in enumerate(snapshots)
            ]
            if copied is not None:
                specs.append(copied[2])
            los = tuple([bounds[axis][0] for axis in self.cut])
            counts = tuple([hi - lo for lo, hi in bounds])
            key: Hashable = (prefix, *place) if place else (prefix,)
            code = TaskRef(kernel_key)
            nbytes = self._bytes(function, filled, counts, specs)
            stretches = () if together else stretches_of(self, snapshots, place, specs, layouts)
            given = own, los, counts, tuple(specs), stretches, *inputs.refs()
            self.graph.add(key, tasks.run_part, code, *given, gives_up=gives_up, nbytes=nbytes)
            if isinstance(self.region.op, ir.Map) and nbytes <= SMALL_VALUE:
                self.graph.trivial.add(key)
            if raises:
                self.call.may_raise.append(key)
            keys = self._several(key, prefix, place, count, nbytes)
            stored = [(root, spec) for root, spec in zip(roots, specs, strict=False) if spec.written]
            split = count - len(stored)
            for (root, spec), made_key in zip(stored, keys[split:], strict=True):
                stores.made(root, place, spec.box, made_key)
            own_keys = iter(keys[:split])
            made[place] = [None if number in unused else next(own_keys) for number in range(split + len(unused))]
        stores.finish()
        return made

    def _bytes(
        self, function: Function, filled: Sequence[str], counts: Sequence[int], specs: Sequence[WindowSpec]
    ) -> int:
        """How much a task gives at most, of an operator; a large number if that is not known."""
        op = self.region.op
        if not isinstance(op, ir.PARALLEL):
            return LARGE_VALUE
        size = sum(itemsize(spec.dtype) * volume(spec.box) for spec in specs if spec.written)
        shape = () if self.private else counts[: len(op.extents)] if isinstance(op, ir.Reduce) else counts
        if not filled and all(isinstance(result.type, Scalar) for result in function.body.results):
            shape = ()
        each = sum(map(itemsize, filled)) + sum(itemsize(dtype_of(result)) for result in function.body.results)
        return size + each * math.prod(shape)

    def _before(self, totals: Function, free: Sequence[Var], stores: Stores) -> dict[Place, Hashable]:
        """What comes before each block of a scan but the first."""
        places = list(itertools.product(*(range(len(bounds) - 1) for bounds in self.axes)))
        found = self._tasks(totals, (), free, stores, places[:-1])
        return dict(zip(places[1:], self.joins.befores([key for (key,) in found.values()]), strict=True))

    def _several(self, key: Hashable, prefix: str, place: Place, count: int, nbytes: int) -> list[Hashable]:
        """The keys of each of a task's results."""
        if count == 1 or (self.joins.takes_tuples and count > 0):
            return [key] if count == 1 else [key, *[None] * (count - 1)]
        found = []
        for number in range(count):
            own = f"{prefix}-{number}", *place
            found.append(self.graph.add(own, tasks.take, TaskRef(key), number, nbytes=nbytes))
        return found

    def _apart(self, stores: Stores) -> bool:
        """Whether what is stored into overlaps no other argument."""
        views: dict[int, int] = {}
        for array in self.arrays.values():
            views[id(array.root)] = views.get(id(array.root), 0) + 1
        return all(views.get(root, 1) == 1 for root in stores.roots)

    def _slot(self, var: Var, numbers: Mapping[int, int], scalars: Sequence[Hashable]) -> ScalarSlot | ViewSlot:
        value = self.values[var]
        if isinstance(value, LazyScalar):
            return ScalarSlot(None, scalars.index(value.key))
        if not isinstance(value, LazyArray):
            return ScalarSlot(value)
        window = numbers.get(id(value.root), -1)
        return ViewSlot(window, value.starts, value.axes, value.shape, value.root.itemsize)

    def _layouts(self, roots: Sequence[Root], snapshots: Sequence[Snapshot]) -> dict[Any, Any]:
        """What is known of this region's windows, from when it ran before on arrays of the same extents and chunks."""
        numbers = {id(root): number for number, root in enumerate(roots)}
        views = [
            (access.array, numbers[id(array.root)], array.starts, array.axes, array.shape)
            for access, array in (*self.reads, *self.writes)
        ]
        known = [value for value in self.values.values() if not isinstance(value, LazyArray | LazyScalar)]
        grids = [(root.shape, *map(tuple, snapshot.bounds)) for root, snapshot in zip(roots, snapshots, strict=True)]
        stored = [[*map(tuple, stored)] for stored in (root.bounds for root in roots)]
        what = repr((id(self.region), self.private, self.axes, views, known, grids, stored))
        return self.call.layouts.setdefault(what, {})

    def _window(
        self,
        inputs: TaskInputs,
        snapshot: Snapshot,
        stores: Stores,
        place: Place,
        together: bool,
        layouts: dict[Any, Any],
        number: int,
    ) -> WindowSpec:
        root = snapshot.root
        known = layouts.get((number, place))
        if known is None:
            known = layouts[number, place] = self._new_layout(snapshot, stores, place, together)
        layout, written, old, skipped = known
        if layout is None:
            return WindowSpec(root.dtype, tuple((start, start) for start in (0,) * len(root.shape)), (), False)
        spec = self.windows.of_layout(inputs, snapshot, layout, written, old)
        if skipped is not None:
            spec = spec._replace(skipped=skipped)
        if len(snapshot.keys) > 1 and spec.box == root.whole():
            self.call.check_size(self.region.line, volume(spec.box) * root.itemsize)
        return spec

    def _new_layout(
        self, snapshot: Snapshot, stores: Stores, place: Place, together: bool
    ) -> tuple[Layout | None, bool, bool, Box | None]:
        """The layout of a window, whether it is stored into, whether what is there now is needed, and of what box it
        is not."""
        root = snapshot.root
        boxes = self.boxes(self.reads, root, place)
        target = stores.box(root, place)
        old, skipped = True, None
        if target is not None:
            skipped = None if boxes else stores.stored_for_sure(root, place)
            old = skipped is None or skipped != target
            boxes = [target, *boxes]
        if not boxes:
            return None, False, False, None
        if together:
            boxes = [(box[:1] + root.whole()[1:]) for box in boxes]
        return self.windows.layout(snapshot, boxes), target is not None, old, skipped if old else None
