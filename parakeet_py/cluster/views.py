"""Views of roots as arrays of their own: what a call gives, and what has to be contiguous."""

from __future__ import annotations

import itertools
from typing import Any

from parakeet_py.cluster.arrays import LazyArray, Root
from parakeet_py.cluster.grid import Form
from parakeet_py.cluster.windows import Snapshot, TaskInputs, Windows
from parakeet_py.cluster.worker import buffers, tasks


def materialized(call: Any, array: LazyArray, together: bool = False) -> LazyArray:
    """A view as all of a root of its own, in one chunk if it is to be `together`."""
    root = array.root
    if array.is_whole() and not (together and len(root.keys) != 1) and root.keys:
        return array
    if root.chunks is None:
        root.cut(tuple((extent,) for extent in root.shape))
    bounds = [
        _boundaries(root, axis, step, array.starts[axis], extent) if axis >= 0 and not together else [0, extent]
        for (axis, step), extent in zip(array.axes, array.shape, strict=True)
    ]
    chunks = tuple(tuple(b - a for a, b in itertools.pairwise(along)) for along in bounds)
    made = Root(array.shape, root.dtype, root.itemsize, chunks)
    windows, snapshot, prefix = Windows(call.graph), Snapshot(root), call.graph.prefix("view")
    for place in itertools.product(*(range(len(along) - 1) for along in bounds)):
        inputs = TaskInputs()
        los = [along[at] for along, at in zip(bounds, place, strict=True)]
        counts = tuple(along[at + 1] - along[at] for along, at in zip(bounds, place, strict=True))
        part = array.view(los, [(number, count, 1) for number, count in enumerate(counts)])
        spec = windows.spec(inputs, snapshot, [part.box()], False, True)
        slot = buffers.ViewSlot(0, part.starts, part.axes, counts, root.itemsize)
        made.keys[place] = call.graph.add((prefix, *place), tasks.viewed, spec, slot, *inputs.refs())
    return LazyArray.of(made)


def _boundaries(root: Root, axis: int, step: int, start: int, extent: int) -> list[int]:
    form = Form(0, step, start, start)
    inner = {at for bound in root.bounds[axis][1:-1] if step and 0 < (at := form.cut_at(bound)) < extent}
    return [0, *sorted(inner), extent]
