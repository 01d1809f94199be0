"""Single elements that the host part loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dask._task_spec import TaskRef

from parakeet_py.base.types import Scalar
from parakeet_py.cluster.arrays import LazyArray, box_of, places_of
from parakeet_py.cluster.planned_call import PlannedCall, given
from parakeet_py.cluster.worker import scalars, tasks


def load(call: PlannedCall, array: LazyArray, indices: Sequence[int], kind: Scalar) -> Any:
    """An element: known where it is that of a NumPy array, else a lazy scalar."""
    array = call.ready(array)
    at = _place(array, indices)
    root = array.root
    if isinstance(root.given, np.ndarray) and root.version == 0:
        return scalars.element(root.given, at, root.dtype)
    (place,) = places_of(root.bounds, tuple((one, one + 1) for one in at)) if root.keys else ((),)
    key = root.keys.get(place)
    if key is None:
        return scalars.kept(0, root.dtype)  # never stored: its bits are unspecified
    local = tuple(one - bounds[number] for one, bounds, number in zip(at, root.bounds, place, strict=True))
    return call.lazy(kind, "element", scalars.element, TaskRef(key), local, root.dtype)


def store(call: PlannedCall, array: LazyArray, indices: Sequence[int], value: Any, line: int) -> None:
    """Let one chunk have another element."""
    array = call.ready(array)
    root, graph = array.root, call.graph
    call.may_store(root, line)
    at = _place(array, indices)
    if root.chunks is None:
        root.cut(tuple((extent,) for extent in root.shape))
    (place,) = places_of(root.bounds, tuple((one, one + 1) for one in at))
    box = box_of(root.bounds, place)
    key = root.keys.get(place)
    prefix = graph.prefix("store")
    if key is None:
        key = graph.add((f"{prefix}-new", *place), tasks.fresh, tuple(hi - lo for lo, hi in box), root.dtype)
    local = tuple(one - lo for one, (lo, _) in zip(at, box, strict=True))
    made = graph.add((prefix, *place), tasks.stored_element, TaskRef(key), local, given(value))
    root.keys = {**root.keys, place: made}
    root.changed()


def _place(array: LazyArray, indices: Sequence[int]) -> tuple[int, ...]:
    """Where an element is in the root."""
    at = list(array.starts)
    for index, (axis, step) in zip(indices, array.axes, strict=True):
        if axis >= 0:
            at[axis] += step * index
    return tuple(at)
