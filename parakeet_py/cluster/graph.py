"""The graph of a call: tasks, the Dask collections that they read, and the collections of what comes out.

All tasks of a call are one layer of Dask's; each result is a layer of its own on top of it. When the client has to know
a number before it can go on (a `round`), the chunks that it was computed from and that are still needed are persisted,
so that they are computed once.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask._task_spec import Alias, DataNode, Task, TaskRef
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from parakeet_py.base.errors import ParakeetError
from parakeet_py.base.gc_pause import put_off
from parakeet_py.cluster.again import Again
from parakeet_py.cluster.fusion import fused
from parakeet_py.cluster.worker import resident
from parakeet_py.cluster.worker.given_up import GivenUp, passed_on, tried
from parakeet_py.cluster.worker.tasks import cut

SMALL = 1 << 17  # elements of a chunk that is read as it is, rather than a slice of it as a task of its own
SMALL_VALUE = 1 << 15  # bytes that are sent along with others rather than in a task of their own
LARGE_VALUE = 1 << 62
SLICED = 0.5  # of a chunk: less than that is sent as a slice of its own


class Keys:
    """Keys of a graph as a collection of Dask's: what it computes is a list, what it persists a dict."""

    def __init__(self, graph: HighLevelGraph, name: str, keys: Sequence[Hashable]) -> None:
        self.graph, self.name, self.keys = graph, name, list(keys)

    def __dask_graph__(self) -> HighLevelGraph:
        return self.graph

    def __dask_keys__(self) -> list[Hashable]:
        return self.keys

    def __dask_layers__(self) -> tuple[str, ...]:
        return (self.name,)

    def __dask_tokenize__(self) -> Any:
        return self.name, *map(str, self.keys)

    @staticmethod
    def __dask_optimize__(graph: Any, keys: Any, **settings: Any) -> Any:
        return da.Array.__dask_optimize__(graph, keys, **settings)  # which a setting of Dask's may change

    __dask_scheduler__ = staticmethod(da.Array.__dask_scheduler__)

    def __dask_postcompute__(self) -> tuple[Any, tuple[Any, ...]]:
        return list, ()

    def __dask_postpersist__(self) -> tuple[Any, tuple[Any, ...]]:
        return _persisted, ()


def _persisted(graph: Mapping[Any, Any], *, rename: Any = None) -> dict[Any, Any]:
    return dict(graph)


class Graph:
    """The tasks of a call.

    Attributes
    ----------
    name : of the layer
    tasks : by their keys
    inputs : the Dask arrays whose chunks are read
    rounds : how often the client has waited for numbers
    made : how many tasks there are in all, once the arrays are there
    apart : keys of slices of chunks, which are cut out where the chunks are
    sources, doubtful : keys of tasks that may leave the call to Python; these, and all that read what they give
    small, trivial : keys of values of a few kilobytes; those of them that cost next to nothing to make
    again : what can be computed again
    moved : bytes that tasks take from chunks of others, those that they run next to not counted
    regions, corrections : how many regions there have been; how many bytes more some of them take than they said, by
        their numbers
    """

    def __init__(self, function: str, token: str) -> None:
        self.function, self.token = function, token
        self.name = f"{function}-{token}"
        self.tasks: dict[Any, Any] = {}
        self.inputs: dict[str, Any] = {}
        self.rounds = self.made = 0
        self.doubtful: set[Hashable] = set()
        self.sources: list[Hashable] = []
        self._count = 0
        self.small: set[Hashable] = set()
        self.trivial: set[Hashable] = set()
        self.apart: set[Hashable] = set()
        self.again = Again(self)
        self.moved = self.regions = 0
        self.corrections: Counter[int] = Counter()
        self._sent: dict[tuple[Hashable, Hashable], int] = {}
        self._slices: dict[Any, Hashable] = {}
        self._numbers = itertools.count()  # of slices: a key never means another one

    def prefix(self, kind: str) -> str:
        """A name for the keys of one more group of tasks, the same in every process."""
        self._count += 1
        return f"{self.function}-{kind}-{self.token}-{self._count}"

    def add(
        self, key: Hashable, function: Any, *args: Any, gives_up: bool = False, nbytes: int = LARGE_VALUE
    ) -> Hashable:
        """One task, which may have to leave the call to Python if it `gives_up`, and gives at most `nbytes`, as far as
        that is known; gives its key."""
        task = Task(key, function, *args)
        if nbytes <= SMALL_VALUE:
            self.small.add(key)
        if gives_up or (self.doubtful and not self.doubtful.isdisjoint(task.dependencies)):
            self.doubtful.add(key)
            if gives_up:
                self.sources.append(key)
            task = Task(key, tried if gives_up else passed_on, function, *args)
        self.tasks[key] = task
        return key

    def bytes_of(self, keys: Iterable[Hashable]) -> int:
        """What tasks give that are known to give little: nothing to speak of; else a large number."""
        return 0 if self.small.issuperset(keys) else LARGE_VALUE

    def add_plain(self, key: Hashable, function: Any, *args: Any) -> Hashable:
        """One task that knows what to do with values that others have given up; gives its key."""
        self.tasks[key] = Task(key, function, *args)
        return key

    def data(self, key: Hashable, value: Any) -> Hashable:
        """A value that tasks read."""
        if key not in self.tasks:
            self.tasks[key] = DataNode(key, value)
        return key

    def read(self, array: Any) -> None:
        """Tasks read chunks of a Dask array.

        Raises
        ------
        ParakeetError
            They were on a cluster whose client is closed.
        """
        for layer in array.dask.layers.values():
            first = next(iter(layer.values()), None) if isinstance(layer, MaterializedLayer) else None
            if _is_future(first) and getattr(getattr(first, "client", None), "status", "") == "closed":
                raise ParakeetError(
                    f"chunks that {self.function} reads were computed by a Client of Dask's that is closed: "
                    "make the array again, and call the function before the Client is closed"
                )
        self.inputs[array.name] = array

    def slice(self, key: Hashable, whole: int, bounds: tuple[tuple[int, int], ...]) -> Hashable:
        """The key of a slice of a chunk, which has so many elements."""
        found = self._slices.get((key, bounds))
        if found is None:
            found = (f"{self.function}-halo-{self.token}", next(self._numbers))
            self._slices[key, bounds] = self.add(found, cut, TaskRef(key), bounds)
            if whole > SMALL:
                self.apart.add(found)
        return found

    def move(self, key: Hashable, nbytes: int, home: Hashable) -> None:
        """A task that runs next to a chunk, its `home`, takes so much of another one; a slice is sent once."""
        before = 0 if home is None else self._sent.get((key, home), 0)
        if nbytes > before:
            self.moved += nbytes - before
            self._sent[key, home] = nbytes

    def release(self) -> None:
        """The call is over: let go of arrays and chunks, which references in cycles would keep until Python's next
        search for these."""
        self.tasks = {}
        self.inputs = {}
        self.again.forget()

    # ---- collections -------------------------------------------------------------------------------------------------

    def graph(self) -> HighLevelGraph:
        """All tasks, with those of the inputs."""
        return HighLevelGraph.from_collections(self.name, self.tasks, dependencies=list(self.inputs.values()))

    @put_off()
    def arrays(self, wanted: Sequence[tuple[dict[Any, Hashable], Any, np.dtype[Any]]]) -> list[Any]:
        """Dask arrays of chunks: of each array the keys by place, the extents of chunks, and the dtype.

        A task whose chunk is part of one array alone moves to the layer of that array; nothing is added afterwards.
        """
        shown = Counter(key for keys, _, _ in wanted for key in keys.values())
        reached = self.ancestors(shown)
        self.tasks = {key: task for key, task in self.tasks.items() if key in reached}
        self.tasks = self._in_groups(self.tasks, shown)
        needed = {other for task in self.tasks.values() for other in getattr(task, "dependencies", ())}
        layers: dict[str, dict[Any, Any]] = {}
        for keys, _, _ in wanted:
            name = self.prefix("result")
            layer: dict[Any, Any] = {}
            layers[name] = layer
            for place, key in keys.items():
                own = (name, *place)
                task = self.tasks.get(key)
                if isinstance(task, Task) and key not in needed and shown[key] == 1:
                    layer[own] = _shown(own, self.tasks.pop(key))
                else:
                    layer[own] = Alias(own, key)
        for key in shown:
            task = self.tasks.get(key)
            if isinstance(task, Task):
                self.tasks[key] = _shown(key, task)
        self.made = len(self.tasks) + sum(
            isinstance(task, Task) for layer in layers.values() for task in layer.values()
        )
        below = self.graph()
        depends = {self.name, *below.dependencies[self.name]}
        return [
            da.Array(
                HighLevelGraph(
                    {**below.layers, name: MaterializedLayer(layer)}, {**below.dependencies, name: set(depends)}
                ),
                name,
                chunks,
                meta=np.empty((0,) * len(chunks), dtype),
            )
            for (name, layer), (_, chunks, dtype) in zip(layers.items(), wanted, strict=True)
        ]

    # ---- rounds ------------------------------------------------------------------------------------------------------

    def ancestors(self, keys: Iterable[Hashable]) -> set[Hashable]:
        """The tasks of the call that some need, these included."""
        found: set[Hashable] = set()
        left = [key for key in keys if key in self.tasks]
        while left:
            key = left.pop()
            if key in found:
                continue
            found.add(key)
            left += [other for other in getattr(self.tasks[key], "dependencies", ()) if other in self.tasks]
        return found

    def values(self, wanted: Sequence[Hashable], live: Iterable[Hashable]) -> list[Any]:
        """Compute what some tasks give; those of the `live` chunks that this takes are kept.

        Raises what a task has given up for.
        """
        found = self._values(wanted, live)
        for value in found:
            if type(value) is GivenUp:
                raise value.error
        return found

    def _values(self, wanted: Sequence[Hashable], live: Iterable[Hashable]) -> list[Any]:
        self.rounds += 1
        needed = self.ancestors(wanted)
        kept = [key for key in dict.fromkeys(live) if key in needed]
        kept = [key for key in kept if isinstance(self.tasks[key], Task) and key not in wanted]
        graph = self._fused(needed, {*kept, *wanted})
        if not kept:
            return list(*dask.compute(Keys(graph, self.name, wanted)))
        (held,) = dask.persist(Keys(graph, self.name, [*kept, *wanted]))
        for key, value in held.items():
            self.tasks[key] = value if _is_future(value) else DataNode(key, value)
        return list(*dask.compute(Keys(self.graph(), self.name, wanted)))

    def _fused(self, needed: Collection[Hashable], shown: Collection[Hashable]) -> HighLevelGraph:
        """The tasks that some values need, as what a scheduler gets."""
        tasks = {key: task for key, task in self.tasks.items() if key in needed}
        with put_off():
            tasks = self._in_groups(tasks, shown)
        return HighLevelGraph.from_collections(self.name, tasks, dependencies=list(self.inputs.values()))

    def _in_groups(self, tasks: dict[Any, Any], shown: Collection[Hashable]) -> dict[Any, Any]:
        sent: list[Hashable] = []
        found = fused(tasks, shown, self.apart, self.small, self.trivial, self.again.edges, sent)
        for key in sent:
            region, more = self.again.costs.pop(key, (0, 0))
            self.corrections[region] += more
        return found

    def drop_unneeded(self, keys: Iterable[Hashable]) -> None:
        """Forget the tasks that nothing needs any more."""
        needed = self.ancestors(keys)
        self.tasks = {key: task for key, task in self.tasks.items() if key in needed}
        self._slices = {what: key for what, key in self._slices.items() if key in needed}
        self.again.forget()


def _shown(key: Hashable, task: Task) -> Task:
    """A task under some key whose value others than tasks read: workers may have it on a device."""
    return Task(key, resident.shown, task.func, *task.args, **task.kwargs)


def is_sliced(part: int, whole: int) -> bool:
    """Whether a slice of a chunk is worth a value of its own, given their elements."""
    return part <= SLICED * whole


@functools.lru_cache(maxsize=64)
def _is_future_class(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "distributed"


def _is_future(value: Any) -> bool:
    kind: Any = type(value)
    return _is_future_class(kind)
