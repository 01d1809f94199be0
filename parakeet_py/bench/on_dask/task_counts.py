"""How many tasks a program is: those that workers run, and those of its graphs before Dask makes one of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask
import dask.array as da
import distributed
from dask._task_spec import Alias, DataNode
from distributed.diagnostics.plugin import SchedulerPlugin

_built: list[int] = []  # tasks of each graph that the scheduler, a thread of this process, has got


def _optimized(graph: Any, keys: Any, **settings: Any) -> Any:
    """Dask's own optimisation of a graph of arrays, which is counted first; it travels by name."""
    held = Alias, DataNode, distributed.Future
    _built.append(sum(not isinstance(node, held) for node in dict(graph).values()))
    return da.optimization.optimize(graph, keys, **settings)


class Tasks(NamedTuple):
    """The tasks of a program: those that workers run, and those of its graphs as they are built."""

    run: int
    built: int


class Counter(SchedulerPlugin):  # type: ignore[misc]
    """Counts tasks."""

    name = "count"

    def __init__(self) -> None:
        self.run = 0

    def transition(self, key: Any, start: str, finish: str, *args: Any, **more: Any) -> None:
        if start == "processing" and finish == "memory":
            self.run += 1

    def of(self, function: Callable[..., Any], given: Sequence[Any]) -> Tasks:
        """The tasks of a program."""
        wait(given)
        self.run = 0
        _built.clear()
        with dask.config.set(array_optimize=_optimized):
            wait(dask.persist(function(*given)))
        return Tasks(self.run, sum(_built))


def wait(arrays: Any) -> None:
    """Until arrays are there.

    Raises
    ------
    Exception
        One that a task has raised.
    """
    held = [one for one in arrays if hasattr(one, "dask")]
    distributed.wait(held)
    for future in distributed.futures_of(held):
        if future.status == "error":
            future.result()
