"""How the results of a region's blocks become values of the host part."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from dask._task_spec import TaskRef

from parakeet_py.base.types import Array, Scalar, itemsize
from parakeet_py.cluster.arrays import Chunks, LazyArray, LazyScalar, Place, Root
from parakeet_py.cluster.planned_call import PlannedCall
from parakeet_py.cluster.windows import Snapshot, TaskInputs, Windows
from parakeet_py.cluster.worker import buffers, scalars, tasks
from parakeet_py.hybrid.partition.block_parts import BlockPart
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Function, Var

SPLIT_EVERY = 8  # partial results that one task combines

Blocks = dict[Place, list[Hashable]]


class Joins:
    """The results of one region.

    Attributes
    ----------
    takes_tuples : results of a block stay together under one key
    """

    def __init__(
        self,
        call: PlannedCall,
        region: Region,
        part: BlockPart | None,
        axes: Sequence[Sequence[int]],
        extents: Sequence[int],
        cut: Sequence[int],
    ) -> None:
        self.call, self.region, self.part, self.graph = call, region, part, call.graph
        self.axes, self.extents, self.cut = axes, extents, cut
        op = region.op
        self.reduces = isinstance(op, ir.Reduce) and any(axis >= len(op.extents) for axis in cut)
        self.scans = isinstance(op, ir.Scan) and op.axis in cut
        self.takes_tuples = (self.scans and (part is None or part.totals is None)) or (
            self.reduces and len(region.outs) > 1
        )

    def results(self, blocks: Blocks) -> list[Any]:
        """The values of the region's results."""
        match self.region.op:
            case ir.Reduce(extents=kept) if self.reduces:
                return self._combined(len(kept), blocks)
            case ir.Reduce(extents=kept):
                return self._side_by_side(blocks, len(kept))
            case ir.Scan(axis=axis) if self.scans and (self.part is None or self.part.totals is None):
                return self._scanned(axis, blocks)
            case ir.Compress():
                return self._compressed(blocks)
            case ir.Map() | ir.Scan() | ir.Scatter():
                return self._side_by_side(blocks, len(self.axes))
            case _:
                (keys,) = blocks.values()
                return [self._scalar(key, out) for key, out in zip(keys, self.region.outs, strict=True)]

    # ---- side by side ------------------------------------------------------------------------------------------------

    def _chunks(self, rank: int) -> Chunks:
        return tuple(tuple(b - a for a, b in itertools.pairwise(bounds)) for bounds in self.axes[:rank])

    def _root(self, out: Var, rank: int, keys: Mapping[Place, Hashable]) -> LazyArray:
        assert isinstance(out.type, Array)
        root = Root(self.extents[:rank], out.type.dtype, itemsize(out.type.dtype), self._chunks(rank))
        root.keys.update((place, key) for place, key in keys.items() if key is not None)
        return LazyArray.of(root)

    @staticmethod
    def _scalar(key: Hashable, out: Var) -> LazyScalar:
        assert isinstance(out.type, Scalar)
        return LazyScalar(key, out.type.dtype, out.type.python)

    def _side_by_side(self, blocks: Blocks, rank: int) -> list[Any]:
        found: list[Any] = []
        for number, out in enumerate(self.region.outs):
            if not isinstance(out.type, Array):
                (keys,) = blocks.values()
                found.append(self._scalar(keys[number], out))
            else:
                found.append(self._root(out, rank, {place[:rank]: keys[number] for place, keys in blocks.items()}))
        return found

    # ---- partial results ---------------------------------------------------------------------------------------------

    def tree(self, combine: Function, keys: Sequence[Hashable], place: Place, prefix: str) -> Hashable:
        """Partial results combined in their order, several by each task."""
        _, kernel_key = self.call.kernel(combine, True)
        left, level = list(keys), 0
        while len(left) > 1:
            groups = [left[at : at + SPLIT_EVERY] for at in range(0, len(left), SPLIT_EVERY)]
            left = [
                group[0]
                if len(group) == 1
                else self.graph.add(
                    (prefix, *place, level, number),
                    tasks.combined,
                    TaskRef(kernel_key),
                    *map(TaskRef, group),
                    nbytes=self.graph.bytes_of(group),
                )
                for number, group in enumerate(groups)
            ]
            level += 1
        return left[0]

    def _combined(self, kept: int, blocks: Blocks) -> list[Any]:
        assert self.part is not None and self.part.combine is not None
        outs = self.region.outs
        lines: dict[Place, list[Hashable]] = {}
        for place, keys in blocks.items():  # in index order
            lines.setdefault(place[:kept], []).append(keys[0])
        prefix = self.graph.prefix("combine")
        totals = {place: self.tree(self.part.combine, keys, place, prefix) for place, keys in lines.items()}
        several: dict[Place, list[Hashable]] = {}
        for place, key in totals.items():
            several[place] = [key]
            if len(outs) > 1:
                several[place] = [
                    self.graph.add(
                        (f"{prefix}-{number}", *place),
                        tasks.take,
                        TaskRef(key),
                        number,
                        nbytes=self.graph.bytes_of((key,)),
                    )
                    for number in range(len(outs))
                ]
        return self._side_by_side(several, kept)

    def befores(self, totals: Sequence[Hashable]) -> list[Hashable]:
        """What comes before each block of a line but the first, from what blocks add up to."""
        assert self.part is not None and self.part.combine is not None
        _, kernel_key = self.call.kernel(self.part.combine, True)
        prefix = self.graph.prefix("before")
        found: list[Hashable] = []
        for number in range(1, len(totals) + 1):
            first = (number - 1) // SPLIT_EVERY * SPLIT_EVERY
            parts = [*found[first - 1 : first], *totals[first:number]]
            if len(parts) > 1:
                refs = map(TaskRef, parts)
                parts = [self.graph.add((prefix, number), tasks.combined, TaskRef(kernel_key), *refs, nbytes=16)]
            found += parts
        return found

    def _scanned(self, axis: int, blocks: Blocks) -> list[Any]:
        part, count = self.part, len(self.region.outs)
        assert part is not None and part.combine is not None and part.after is not None
        _, combine_key = self.call.kernel(part.combine, True)
        _, after_key = self.call.kernel(part.after, True)
        prefix, name = self.graph.prefix("before"), self.graph.prefix("scan")
        totals: dict[Place, Hashable] = {}
        found: Blocks = {}
        last = len(self.axes[axis]) - 2
        for place, (key, *_) in blocks.items():
            line = (*place[:axis], *place[axis + 1 :])
            before = totals.get(line)
            refs = [] if before is None else [TaskRef(before)]
            if place[axis] < last:
                own = self.graph.add((f"{prefix}-own", *place), tasks.totals_of, count, TaskRef(key))
                totals[line] = own
                if before is not None:
                    pair = TaskRef(before), TaskRef(own)
                    code = TaskRef(combine_key)
                    totals[line] = self.graph.add((prefix, *place), tasks.totals_before, code, count, *pair)
            made = self.graph.add((name, *place), tasks.scanned_after, TaskRef(after_key), count, TaskRef(key), *refs)
            found[place] = [made]
            if count > 1:
                found[place] = [
                    self.graph.add((f"{name}-{number}", *place), tasks.take, TaskRef(made), number)
                    for number in range(count)
                ]
        return self._side_by_side(found, len(self.axes))

    def _compressed(self, blocks: Blocks) -> list[Any]:
        counts = [keys[0] for keys in blocks.values()]
        total = counts[0]
        if len(counts) > 1:
            total = self.graph.add((self.graph.prefix("count"),), scalars.summed, *map(TaskRef, counts))
        extent = LazyScalar(total, "int64", True)
        found: list[Any] = [extent]
        for number, out in enumerate(self.region.outs[1:], 1):
            assert isinstance(out.type, Array)
            root = Root((), out.type.dtype, itemsize(out.type.dtype))
            root.shape = (extent,)  # type: ignore[assignment]
            root.counts = counts
            root.keys = {(at,): keys[number] for at, keys in enumerate(blocks.values())}
            found.append(LazyArray(root, (0,), ((0, 1),), (extent,)))
        return found

    # ---- copies of a target ------------------------------------------------------------------------------------------

    def private(self, values: Mapping[Var, Any], blocks: Blocks) -> list[Any]:
        """Take what blocks have scattered into copies into the target."""
        op, part = self.region.op, self.part
        assert isinstance(op, ir.Scatter) and part is not None and part.combine is not None
        target: LazyArray = values[op.target]
        self.call.may_store(target.root, self.region.line)
        prefix = self.graph.prefix("combine")
        total = self.tree(part.combine, [keys[0] for keys in blocks.values()], (), prefix)
        root = target.root
        snapshot, inputs = Snapshot(root), TaskInputs()
        windows = Windows(self.graph)
        spec = windows.spec(inputs, snapshot, [root.whole()], True, True)
        self.call.check_size(self.region.line, root.nbytes)
        _, kernel_key = self.call.kernel(part.combine, True)
        view = buffers.ViewSlot(0, target.starts, target.axes, target.shape, root.itemsize)
        key = self.graph.add(
            (f"{prefix}-target",),
            tasks.taken_in,
            TaskRef(kernel_key),
            spec,
            view,
            TaskRef(total),
            *inputs.refs(),
            nbytes=root.nbytes,
        )
        root.cut(tuple((extent,) for extent in root.shape))
        root.keys = {(0,) * len(root.shape): key}
        root.changed()
        return []
