"""Views as arrays of their own, and reshaped arrays: the same elements in C order under other extents.

Chunks are ranges of whole rows, so both arrays are cut along their first axis with more than one index. The new array
is made of the chunks that the old one has now. When the old one has changed, it is made again; when something is stored
into the new one, the old one gets its chunks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from dask._task_spec import TaskRef

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


def reshaped(call: Any, base: LazyArray, shape: Sequence[int]) -> LazyArray:
    """All of an array under other extents."""
    if tuple(shape) == base.shape:
        return base
    whole = base.is_whole()
    made = Root(shape, base.root.dtype, base.root.itemsize)
    version = -1

    def refresh() -> None:
        nonlocal version
        source = base.root
        if source.refresh is not None:
            source.refresh()
        if source.version != version:
            version = source.version
            _fill(call, base if whole and source.keys else materialized(call, base), made)
            made.version += 1

    def wrote() -> None:
        nonlocal version
        _fill(call, LazyArray.of(made), base.root)
        base.root.changed()
        version = base.root.version

    refresh()
    made.source, made.refresh = base.root, refresh
    if whole:
        made.wrote = wrote
        made.frozen = base.root.frozen
        made.given, made.name = (base.root.given, base.root.name)
    else:
        made.frozen = "stores into parts of arrays that are reshaped"
    return LazyArray.of(made)


def _fill(call: Any, source: LazyArray, target: Root) -> None:
    """Give a root the elements of another in C order."""
    root = source.root
    if not target.size:
        target.cut(tuple((extent,) for extent in target.shape))
        key = call.graph.add((call.graph.prefix("reshape"),), tasks.fresh, target.shape, target.dtype)
        target.keys = {(0,) * len(target.shape): key}
        return
    axis, rows = _rows(root.shape)
    if any(len(bounds) > 2 for number, bounds in enumerate(root.bounds) if number != axis):
        root = _in_rows(call, source, axis)
    size = root.size // rows if rows else 0
    flat = [bound * size for bound in (root.bounds[axis] if axis >= 0 else [0, 1])]
    places = [tuple(number if at == axis else 0 for at in range(len(root.shape))) for number in range(len(flat) - 1)]
    keys = [root.keys.get(place) for place in places]
    own_axis, own_rows = _rows(target.shape)
    own = target.size // own_rows
    bounds = sorted({(bound + own // 2) // own for bound in flat})
    prefix = call.graph.prefix("reshape")
    target.cut(
        tuple(
            tuple(b - a for a, b in itertools.pairwise(bounds)) if number == own_axis else (extent,)
            for number, extent in enumerate(target.shape)
        )
    )
    target.keys = {}
    for number, (lo, hi) in enumerate(itertools.pairwise(bounds)):
        place = tuple(number if at == own_axis else 0 for at in range(len(target.shape)))
        shape = tuple(hi - lo if at == own_axis else extent for at, extent in enumerate(target.shape))
        pieces, refs = [], []
        for (first, last), key in zip(itertools.pairwise(flat), keys, strict=True):
            start, stop = max(lo * own, first), min(hi * own, last)
            if start < stop:
                if key is None:  # never stored to
                    key = call.graph.add((f"{prefix}-new", *place, first), tasks.fresh, (last - first,), target.dtype)
                pieces.append((start - first, stop - first))
                refs.append(TaskRef(key))
        nbytes = math.prod(shape) * target.itemsize
        given = shape, tuple(pieces), *refs
        target.keys[place] = call.graph.add((prefix, *place), tasks.joined_rows, *given, nbytes=nbytes)


def _rows(shape: Sequence[int]) -> tuple[int, int]:
    """The first axis with several indices, and how many; (-1, 1) if there is none."""
    for axis, extent in enumerate(shape):
        if extent != 1:
            return axis, extent
    return -1, 1


def _in_rows(call: Any, source: LazyArray, axis: int) -> Root:
    """An array with chunks of whole rows."""
    from parakeet_py.cluster.windows import Snapshot, TaskInputs, Windows

    root = source.root
    bounds = root.bounds[axis]
    chunks = tuple(
        tuple(b - a for a, b in itertools.pairwise(bounds)) if number == axis else (extent,)
        for number, extent in enumerate(root.shape)
    )
    made = Root(root.shape, root.dtype, root.itemsize, chunks)
    windows, snapshot, prefix = Windows(call.graph), Snapshot(root), call.graph.prefix("rows")
    for number, ends in enumerate(itertools.pairwise(bounds)):
        box = tuple(ends if at == axis else (0, extent) for at, extent in enumerate(root.shape))
        place = tuple(number if at == axis else 0 for at in range(len(root.shape)))
        inputs = TaskInputs()
        spec = windows.spec(inputs, snapshot, [box], True, True)
        made.keys[place] = call.graph.add((prefix, *place), tasks.assembled, spec, *inputs.refs())
    return made
