"""A call whose leaf arguments are Dask arrays, NumPy arrays and scalars: its graph, and its results as collections."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.base import tokenize

from parakeet_py.base.types import Array
from parakeet_py.cluster.answers import Answer, reasons, with_answers
from parakeet_py.cluster.arrays import LazyArray, LazyScalar, Root
from parakeet_py.cluster.call_settings import CallSettings
from parakeet_py.cluster.fusion import CONSTANT
from parakeet_py.cluster.graph import Graph
from parakeet_py.cluster.host_ops.reshape import materialized
from parakeet_py.cluster.host_walk import HostWalk
from parakeet_py.cluster.plan import ClusterPlan
from parakeet_py.cluster.worker import scalars, tasks
from parakeet_py.hybrid.execute.call_arrays import entering

SMALL = 1 << 20  # bytes of NumPy arrays that are not cut
LARGE = 1 << 26  # bytes of those that had better not travel with a graph


class ClusterCall:
    """One call on Dask.

    Parameters
    ----------
    leaves : the leaf arguments; arrays are Dask's or NumPy's
    names : what they are called
    seed : what else the call depends on
    """

    def __init__(
        self, plan: ClusterPlan, leaves: Sequence[Any], names: Sequence[str], settings: CallSettings, seed: Any
    ) -> None:
        self.plan, self.settings = plan, settings
        self.graph = Graph(plan.name, tokenize(seed, plan.identity, settings.chunk_bytes, _same(leaves), *leaves))
        self.entered: dict[int, Root] = {}
        self.overlapping = _overlapping(leaves)
        self.leaves = list(leaves)
        hints: dict[int, list[int]] = {}
        values = [self._enter(*one, hints) for one in zip(leaves, plan.function.params, names, strict=True)]
        self.walk = HostWalk(plan, self.graph, settings, hints)
        self.results = self.walk.run(values)

    def release(self) -> None:
        """The results are there: let go of the arguments, and of chunks that rounds have computed."""
        self.graph.release()
        for root in self.entered.values():
            root.given = None
        self.leaves.clear()

    # ---- arguments ---------------------------------------------------------------------------------------------------

    def _enter(self, leaf: Any, param: Any, name: str, hints: dict[int, list[int]]) -> Any:
        if not isinstance(param.type, Array):
            return entering(leaf, param.type)
        if id(leaf) not in self.entered:
            self.entered[id(leaf)] = self._root(leaf, name)
        root = self.entered[id(leaf)]
        for extent, bounds in zip(root.shape, root.bounds, strict=True):
            if len(bounds) > 2:
                hints.setdefault(extent, bounds[1:-1])
        return LazyArray.of(root)

    def _root(self, leaf: Any, name: str) -> Root:
        array = leaf
        if isinstance(leaf, np.ndarray) and leaf.nbytes <= CONSTANT:
            root = Root(leaf.shape, leaf.dtype.name, leaf.itemsize, tuple((extent,) for extent in leaf.shape))
            root.keys[(0,) * leaf.ndim] = self.graph.data((self.graph.prefix("array"),), np.array(leaf, order="C"))
            return self._given(root, leaf, name)
        if isinstance(leaf, np.ndarray):
            if leaf.nbytes > LARGE and any(isinstance(one, da.Array) for one in self.leaves):
                self.settings.travels(self.plan.name, name, leaf.nbytes)
            large = leaf.nbytes > SMALL and leaf.nbytes > self.settings.chunk_bytes // 2
            with_limit = {"limit": self.settings.chunk_bytes, "dtype": leaf.dtype, "shape": leaf.shape}
            chunks = da.core.normalize_chunks("auto", **with_limit) if large else leaf.shape
            array = da.from_array(leaf, chunks=chunks or -1, name=None if leaf.nbytes <= SMALL else False)
        root = Root(array.shape, array.dtype.name, array.dtype.itemsize, array.chunks)
        self.graph.read(array)
        for place in itertools.product(*(range(len(extents)) for extents in array.chunks)):
            root.keys[place] = (array.name, *place)
        return self._given(root, leaf, name)

    def _given(self, root: Root, leaf: Any, name: str) -> Root:
        root.given, root.name = leaf, name
        if id(leaf) in self.overlapping:
            root.frozen = "stores into arrays that share memory with others"
        return root

    # ---- results -----------------------------------------------------------------------------------------------------

    def collections(
        self, listed: Collection[int] = (), answer: Answer | None = None, fixed: bool = False
    ) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """The leaves of the result: Dask arrays, and scalars that are known; `listed` ones are computed. Then the
        arguments that have been stored into, with Dask arrays of what they hold then. `answer` lets Python do the call
        where tasks give it up, which is an error without; `fixed`: parts of the result are known already.

        Raises
        ------
        Exception
            Tasks give the call up, after which what is known already may be something else.
        """
        fixed = fixed or any(not isinstance(one, LazyArray | LazyScalar) or _is_known(one) for one in self.results)
        if answer is not None and fixed and self.graph.doubtful:
            self._settle_doubts()
        values = [self.walk.number(value) if number in listed else value for number, value in enumerate(self.results)]
        found: list[Any] = list(values)
        wanted: list[tuple[dict[Any, Any], Any, np.dtype[Any]]] = []
        places: list[int] = []
        same: dict[int, int] = {}
        for number, value in enumerate(values):
            if isinstance(value, LazyArray) and id(value) in same:
                found[number] = None
                continue
            if isinstance(value, LazyArray):
                given = value.root.given
                if given is not None and value.root.version == 0 and value.is_whole():
                    found[number] = given
                    continue
                same[id(value)] = number
                wanted.append(self._chunks(value))
                places.append(number)
            elif isinstance(value, LazyScalar) and not value.known:
                key = self.graph.add((self.graph.prefix("scalar"),), scalars.as_array, TaskRef(value.key), value.dtype)
                wanted.append(({(): key}, (), np.dtype(value.dtype)))
                places.append(number)
            elif isinstance(value, LazyScalar):
                found[number] = value.value
        self._copy_shared(wanted)
        changed = [root for root in self.entered.values() if root.version]
        wanted += [self._chunks(LazyArray.of(root)) for root in changed]
        self._guard(wanted)
        if self.graph.doubtful:
            labels = [*((place, None) for place in places), *((None, root.given) for root in changed)]
            with_answers(self.graph, wanted, None if answer is None else answer(labels))
        arrays = self.graph.arrays(wanted) if wanted else []
        stored = [(root.given, array) for root, array in zip(changed, arrays[len(places) :], strict=True)]
        for number, array in zip(places, arrays, strict=False):
            found[number] = array
        for number, value in enumerate(values):
            if isinstance(value, LazyArray) and id(value) in same:
                found[number] = found[same[id(value)]]
        for number in listed:
            if isinstance(found[number], da.Array):
                found[number] = np.asarray(found[number].compute())
        return found, stored

    def _settle_doubts(self) -> None:
        """Wait until it is known that no task gives the call up."""
        for error in self.walk.round([], reasons(self.graph)):
            if error is not None:
                raise error
        self.graph.doubtful.clear()

    def _chunks(self, value: LazyArray) -> tuple[dict[Any, Any], Any, np.dtype[Any]]:
        root = value.root
        dtype = np.dtype(root.dtype)
        if root.counts is not None:
            return dict(root.keys), ((float("nan"),) * len(root.keys),), dtype
        array = self.walk.ready(value)
        if array.root.chunks is None:
            array.root.cut(tuple((extent,) for extent in array.root.shape))
        whole = materialized(self.walk, array)
        keys = {}
        for place in itertools.product(*(range(len(bounds) - 1) for bounds in whole.root.bounds)):
            key = whole.root.keys.get(place)
            if key is None:
                shape = tuple(b[at + 1] - b[at] for b, at in zip(whole.root.bounds, place, strict=True))
                key = self.graph.add((self.graph.prefix("new"), *place), tasks.fresh, shape, root.dtype)
            keys[place] = key
        return keys, whole.root.chunks, dtype

    def _copy_shared(self, wanted: Sequence[tuple[dict[Any, Any], Any, np.dtype[Any]]]) -> None:
        """Chunks of results that are those of arguments, or of another result, become copies, as the caller
        may change what has been computed."""
        seen: set[Hashable] = set()
        for keys, _, _ in wanted:
            prefix = ""
            for place, key in keys.items():
                if key not in seen and isinstance(self.graph.tasks.get(key), Task):
                    seen.add(key)
                    continue
                prefix = prefix or self.graph.prefix("copy")
                keys[place] = self.graph.add((prefix, *place), tasks.copied, TaskRef(key))

    def _guard(self, wanted: Sequence[tuple[dict[Any, Any], Any, np.dtype[Any]]]) -> None:
        """Let results wait for checks that none of them needs otherwise."""
        checks = [*self.walk.checks, *self.walk.may_raise]
        if not checks:
            return
        needed = self.graph.ancestors(key for keys, _, _ in wanted for key in keys.values())
        left = [key for key in checks if key in self.graph.tasks and key not in needed]
        if not left:
            return
        if not wanted:
            self.walk.round([], left)
            return
        prefix = self.graph.prefix("checked")
        for number, (keys, _, _) in enumerate(wanted):
            for place, key in keys.items():
                keys[place] = self.graph.add(
                    (f"{prefix}-{number}", *place), tasks.after, TaskRef(key), *map(TaskRef, left)
                )


def _is_known(value: LazyArray | LazyScalar) -> bool:
    return isinstance(value, LazyScalar) and value.known


def _same(leaves: Sequence[Any]) -> tuple[int, ...]:
    """For each array the first one that is the same object: stores into it show wherever it is given, but not in
    another of the same name."""
    first: dict[int, int] = {}
    arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray | da.Array)]
    return tuple(first.setdefault(id(array), number) for number, array in enumerate(arrays))


def _overlapping(leaves: Sequence[Any]) -> set[int]:
    """The ids of NumPy arrays that may have memory in common with another leaf."""
    arrays = list({id(leaf): leaf for leaf in leaves if isinstance(leaf, np.ndarray) and leaf.size}.values())
    pairs = [pair for pair in itertools.combinations(arrays, 2) if np.may_share_memory(*pair)]
    return {id(array) for pair in pairs for array in pair}
