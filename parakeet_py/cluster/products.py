"""Products of matrices by blocks: rows of the left factor's chunks, columns of the right one's, and the inner extent.

A task multiplies some chunks along the inner extent, and what several tasks have of one block of the result is added as
a tree, in the order of the index.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from typing import Any

from dask._task_spec import TaskRef

from parakeet_py.cluster.arrays import LazyArray, Root
from parakeet_py.cluster.grid import Form
from parakeet_py.cluster.host_ops.reshape import materialized
from parakeet_py.cluster.planned_call import PlannedCall
from parakeet_py.cluster.report import RegionReport
from parakeet_py.cluster.windows import Snapshot, TaskInputs, Windows
from parakeet_py.cluster.worker import buffers, tasks
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Var

SPLIT_EVERY = 4  # blocks that one task adds
AT_ONCE = 1 << 20  # bytes of factors: chunks that are smaller are multiplied several at once


def run_product(call: PlannedCall, region: Region, values: Mapping[Var, Any]) -> None:
    """out = left @ right, in blocks."""
    op = region.op
    assert isinstance(op, ir.Matmul)
    out = call.ready(values[op.out])
    left, right = (_simple(call, values[factor]) for factor in (op.left, op.right))
    call.may_store(out.root, region.line)
    graph, windows = call.graph, Windows(call.graph)
    before = len(graph.tasks)
    snapshots = Snapshot(left.root), Snapshot(right.root)
    rows = _bounds(left, 0) if len(left.shape) == 2 else None
    columns = _bounds(right, 1) if len(right.shape) == 2 else None
    inner = _inner(call, left, right, rows, columns)
    prefix = graph.prefix("matmul")
    kept = [along for along in (rows, columns) if along is not None]
    keys: dict[tuple[int, ...], Hashable] = {}
    for place in itertools.product(*(range(len(along) - 1) for along in kept)):
        ends = [(along[at], along[at + 1]) for along, at in zip(kept, place, strict=True)]
        partial: list[Hashable] = []
        for number, depth in enumerate(itertools.pairwise(inner)):
            inputs = TaskInputs()
            own = [ends[0], depth] if rows is not None else [depth]
            other = [depth, ends[-1]] if columns is not None else [depth]
            specs = [
                _spec(windows, inputs, snapshot, factor, box)
                for snapshot, factor, box in zip(snapshots, (left, right), (own, other), strict=True)
            ]
            partial.append(graph.add((prefix, *place, number), tasks.product, *specs, *inputs.refs()))
        level = 0
        while len(partial) > 1:
            groups = [partial[at : at + SPLIT_EVERY] for at in range(0, len(partial), SPLIT_EVERY)]
            partial = [
                group[0]
                if len(group) == 1
                else graph.add((f"{prefix}-sum", *place, level, at), tasks.added, *map(TaskRef, group))
                for at, group in enumerate(groups)
            ]
            level += 1
        keys[place] = partial[0]
    _store(call, out, kept, keys)
    blocks = tuple(len(along) - 1 for along in (*kept, inner))
    join = "combine" if len(inner) > 2 else "side by side"
    call.told(RegionReport(region.name, region.line, blocks, join, len(graph.tasks) - before, windows.moved))


def _simple(call: PlannedCall, value: LazyArray) -> LazyArray:
    """A factor as a view that moves by single steps along the axes of its root."""
    array = call.ready(value)
    if array.root.chunks is None:
        array.root.cut(tuple((extent,) for extent in array.root.shape))
    if all(axis >= 0 and step == 1 for axis, step in array.axes):
        return array
    return materialized(call, array)


def _bounds(array: LazyArray, axis: int) -> list[int]:
    """Where the chunks of a factor are cut along one of its axes."""
    source, step = array.axes[axis]
    form, extent = Form(0, step, array.starts[source], array.starts[source]), array.shape[axis]
    return [0, *sorted({at for b in array.root.bounds[source][1:-1] if 0 < (at := form.cut_at(b)) < extent}), extent]


def _inner(
    call: PlannedCall, left: LazyArray, right: LazyArray, rows: list[int] | None, columns: list[int] | None
) -> list[int]:
    """How the inner extent is cut: at chunks of the larger factor, several at once where they are small."""
    larger, axis = (left, len(left.shape) - 1) if left.root.nbytes >= right.root.nbytes else (right, 0)
    bounds = _bounds(larger, axis)
    high = max((b - a for a, b in itertools.pairwise(rows)), default=1) if rows else 1
    wide = max((b - a for a, b in itertools.pairwise(columns)), default=1) if columns else 1
    most = max(AT_ONCE // max((high + wide) * left.root.itemsize, 1), 1)
    found = [0]
    for before, bound in itertools.pairwise(bounds):
        if bound - found[-1] > most and before > found[-1]:
            found.append(before)
    return [*found, bounds[-1]]


def _spec(
    windows: Windows, inputs: TaskInputs, snapshot: Snapshot, array: LazyArray, box: list[tuple[int, int]]
) -> Any:
    """The window of a factor, and how it is a view of it."""
    part = array.view([lo for lo, _ in box], [(number, hi - lo, 1) for number, (lo, hi) in enumerate(box)])
    spec = windows.spec(inputs, snapshot, [part.box()], False, True)
    return spec, buffers.ViewSlot(0, part.starts, part.axes, part.shape, part.root.itemsize)


def _store(call: PlannedCall, out: LazyArray, kept: list[list[int]], keys: dict[tuple[int, ...], Hashable]) -> None:
    """Store the blocks of a product into an array."""
    chunks = tuple(tuple(b - a for a, b in itertools.pairwise(along)) for along in kept)
    if out.is_whole():
        out.root.cut(chunks)
        out.root.keys = keys
        out.root.changed()
        return
    made = Root(out.shape, out.root.dtype, out.root.itemsize, chunks)
    made.keys = keys
    store_array(call, out, LazyArray.of(made))


def store_array(call: PlannedCall, target: LazyArray, source: LazyArray) -> None:
    """Store all of an array into a view of a root, whose chunks stay where they are."""
    root, graph = target.root, call.graph
    if root.chunks is None:
        root.cut(tuple((extent,) for extent in root.shape))
    windows, snapshot, prefix = Windows(graph), Snapshot(root), graph.prefix("store")
    new = Snapshot(source.root)
    keys = dict(root.keys)
    for place in itertools.product(*(range(len(bounds) - 1) for bounds in root.bounds)):
        ranges = _inside(target, tuple((b[at], b[at + 1]) for b, at in zip(root.bounds, place, strict=True)))
        if ranges is None:
            continue
        inputs = TaskInputs()
        box = tuple((b[at], b[at + 1]) for b, at in zip(root.bounds, place, strict=True))
        spec = windows.spec(inputs, snapshot, [box], True, True)
        given = windows.spec(inputs, new, [tuple(ranges)], False, True)
        part = target.view([lo for lo, _ in ranges], [(n, hi - lo, 1) for n, (lo, hi) in enumerate(ranges)])
        slot = buffers.ViewSlot(0, part.starts, part.axes, part.shape, root.itemsize)
        keys[place] = graph.add((prefix, *place), tasks.stored, spec, slot, given, *inputs.refs())
    root.keys = keys
    root.changed()


def _inside(target: LazyArray, box: buffers.Box) -> list[tuple[int, int]] | None:
    """The ranges of a view's indices whose elements are in a box of its root; None if none are."""
    for axis, (start, (lo, hi)) in enumerate(zip(target.starts, box, strict=True)):
        if all(source != axis for source, _ in target.axes) and not lo <= start < hi:
            return None
    found = []
    for (axis, step), extent in zip(target.axes, target.shape, strict=True):
        if axis < 0:
            found.append((0, extent))
            continue
        (lo, hi), start = box[axis], target.starts[axis]
        form = Form(0, step, start, start)
        ends = sorted((form.cut_at(lo), form.cut_at(hi)))
        first, last = max(ends[0], 0), min(ends[1], extent)
        if first >= last:
            return None
        found.append((first, last))
    return found
