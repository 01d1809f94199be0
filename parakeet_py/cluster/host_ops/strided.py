"""Views by strides, of arrays that are put together for them."""

from __future__ import annotations

import numpy as np
from dask._task_spec import TaskRef

from parakeet_py.base.types import itemsize
from parakeet_py.cluster.arrays import LazyArray, Root
from parakeet_py.cluster.host_ops.reshape import materialized
from parakeet_py.cluster.planned_call import PlannedCall
from parakeet_py.cluster.worker import tasks


def check_order(call: PlannedCall, root: Root) -> None:
    """Strides are those of an array in C order.

    Raises
    ------
    UnsupportedError
        It is an argument that is not.
    """
    if isinstance(root.given, np.ndarray) and not root.given.flags.c_contiguous:
        raise call.unsupported(f"asks for the strides of {root.name}, which is not in C order")


def strided(
    call: PlannedCall, base: LazyArray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str
) -> LazyArray:
    """The array whose elements lie at `offset + sum(index * strides)` bytes from the beginning of a view."""
    check_order(call, base.root)
    memory = LazyArray.of(base.root)
    steps = [memory.stride(axis) for axis in range(len(base.starts))]
    first = offset + sum(start * step for start, step in zip(base.starts, steps, strict=True))
    whole = materialized(call, memory, together=True)
    made = Root(shape, dtype, itemsize(dtype), tuple((extent,) for extent in shape))
    made.frozen = "stores through strides"
    (place,) = whole.root.keys.values()
    key = call.graph.add((call.graph.prefix("strided"),), tasks.strided, TaskRef(place), first, shape, strides, dtype)
    made.keys = {(0,) * len(shape): key}
    version, source = base.root.version, base

    def refresh() -> None:
        nonlocal version
        if source.root.refresh is not None:
            source.root.refresh()
        if source.root.version != version:
            version = source.root.version
            made.keys = strided(call, source, offset, shape, strides, dtype).root.keys
            made.version += 1

    made.source, made.refresh = source.root, refresh
    return LazyArray.of(made)
