"""NumPy's compiled loops, such as those of linear algebra: one task each, but for sorts of large arrays."""

from __future__ import annotations

from typing import Any

from dask._task_spec import TaskRef

from parakeet_py.base import routines
from parakeet_py.base.types import Scalar
from parakeet_py.cluster.arrays import LazyArray
from parakeet_py.cluster.host_ops.sorts import is_cut, run_sort
from parakeet_py.cluster.planned_call import PlannedCall
from parakeet_py.cluster.report import RegionReport
from parakeet_py.cluster.windows import Snapshot, TaskInputs, Windows
from parakeet_py.cluster.worker import tasks
from parakeet_py.cluster.worker.buffers import ViewSlot


def run_routine(call: PlannedCall, routine: Any, given: list[LazyArray]) -> list[Any]:
    """A routine on arrays: first those that it stores into; gives whether it has failed, if it says so."""
    arrays = [call.ready(array) for array in given]
    if is_cut(call, routine.name, arrays):
        run_sort(call, routine.name, routine.line, arrays)
        return []
    windows, inputs, graph = Windows(call.graph), TaskInputs(), call.graph
    roots = list({id(array.root): array.root for array in arrays}.values())
    written = {id(array.root) for array in arrays[: routine.written]}
    specs = []
    for root in roots:
        if root.chunks is None:
            root.cut(tuple((extent,) for extent in root.shape))
        if id(root) in written:
            call.may_store(root, routine.line)
        if len(root.keys) > 1:
            call.check_size(routine.line, root.nbytes)
        specs.append(windows.spec(inputs, Snapshot(root), [root.whole()], id(root) in written, True))
    numbers = {id(root): number for number, root in enumerate(roots)}
    slots = tuple(
        ViewSlot(numbers[id(array.root)], array.starts, array.axes, array.shape, array.root.itemsize)
        for array in arrays
    )
    prefix = graph.prefix(routine.name.replace(".", "-"))
    before = len(graph.tasks)
    key = graph.add((prefix,), tasks.run_routine, routine.name, routine.written, tuple(specs), slots, *inputs.refs())
    for number, root in enumerate(root for root in roots if id(root) in written):
        root.cut(tuple((extent,) for extent in root.shape))
        made = graph.add((f"{prefix}-{number}",), tasks.take, TaskRef(key), number + 1)
        root.keys = {(0,) * len(root.shape): made}
        root.changed()
    call.told(RegionReport(routine.name, routine.line, (), "one task", len(graph.tasks) - before, windows.moved))
    if not routines.reports(routine.name):
        return []
    return [call.lazy(Scalar("bool"), "failed", tasks.take, TaskRef(key), 0)]
