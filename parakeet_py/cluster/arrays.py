"""The arrays of a call on Dask: chunks that stand for keys of its graph, and views of them.

A `Root` is memory of the program: an array of the call, or one that it makes. Its elements are in chunks of a grid,
each under a key. Storing makes new chunks under other keys, so keys never change what they mean; the root has those of
now.
A `LazyArray` is an array of the program, a view of a root. A `LazyScalar` is a number that some task will give.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from parakeet_py.cluster.worker.buffers import Box, packed_strides

Chunks = tuple[tuple[int, ...], ...]
Place = tuple[int, ...]
Block = tuple[int | tuple[int, int], ...]  # of an index space: along each axis the number of a block, or its bounds


class LazyScalar:
    """A scalar of the host part that a task gives, as host code keeps it; `python` scalars are Python's own.

    Once it is `known`, because a round has computed it, it has its value.
    """

    __slots__ = ("dtype", "key", "known", "python", "value")

    def __init__(self, key: Hashable, dtype: str, python: bool = False) -> None:
        self.key, self.dtype, self.python = key, dtype, python
        self.known, self.value = False, None

    def settle(self, value: Any) -> None:
        """It has been computed."""
        self.known, self.value = True, value


class Root:
    """Memory in chunks.

    Attributes
    ----------
    shape, dtype, itemsize : of the array that it is, in C order
    chunks : extents of chunks along each axis; None before something is stored
    keys : of chunks, by their places; a chunk that is missing has never been stored to
    version : counts what has been stored
    counts : the keys of the extents of chunks along the first axis, where only tasks know them, else None
    given : the argument that it is, if it is one
    name : what the argument is called
    frozen : why nothing can be stored
    source : the array that it is another form of, if it is
    refresh : brings chunks from the array that it is another form of, if that has changed
    wrote : takes chunks that have been stored back to it
    is_index : its elements were the last index of each when it was made
    whole_key : the key of all of it in one, and the version of which it is
    """

    def __init__(self, shape: Sequence[int], dtype: str, itemsize: int, chunks: Chunks | None = None) -> None:
        self.shape, self.dtype, self.itemsize = tuple(shape), dtype, itemsize
        self.keys: dict[Place, Hashable] = {}
        self.version = 0
        self.counts: list[Hashable] | None = None
        self.given: Any = None
        self.name = ""
        self.frozen = ""
        self.source: Root | None = None
        self.refresh: Callable[[], None] | None = None
        self.wrote: Callable[[], None] | None = None
        self.is_index = False
        self.whole_key: tuple[int, Hashable] | None = None
        self.chunks = chunks
        self.bounds: list[list[int]] = []
        if chunks is not None:
            self.cut(chunks)

    def cut(self, chunks: Chunks) -> None:
        """Set the grid."""
        self.chunks = chunks
        self.bounds = [[0, *itertools.accumulate(extents)] for extents in chunks]

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def whole(self) -> Box:
        """The box of all elements."""
        return tuple((0, extent) for extent in self.shape)

    def changed(self) -> None:
        """Something has been stored."""
        self.version += 1
        if self.wrote is not None:
            self.wrote()


class LazyArray:
    """An array of the program: a view of a root.

    Attributes
    ----------
    starts : where it begins, along each axis of the root
    axes : for each of its own axes, the axis of the root (-1: none, memory does not move) and the step
    shape : its extents; an extent that is not known yet is a `LazyScalar`
    """

    __slots__ = ("axes", "root", "shape", "starts")

    def __init__(
        self, root: Root, starts: Sequence[int], axes: Sequence[tuple[int, int]], shape: Sequence[Any]
    ) -> None:
        self.root, self.starts, self.axes, self.shape = root, tuple(starts), tuple(axes), tuple(shape)

    @classmethod
    def of(cls, root: Root) -> LazyArray:
        """All of a root."""
        rank = len(root.shape)
        return cls(root, (0,) * rank, tuple((axis, 1) for axis in range(rank)), root.shape)

    def is_whole(self) -> bool:
        """Whether it is its root, element for element."""
        axes = tuple((axis, 1) for axis in range(len(self.root.shape)))
        return self.axes == axes and not any(self.starts) and self.shape == self.root.shape

    def view(self, starts: Sequence[int], axes: Sequence[tuple[int | None, int, int]]) -> LazyArray:
        """A view as the IR's `View` has it."""
        first = list(self.starts)
        for (axis, step), start in zip(self.axes, starts, strict=True):
            if axis >= 0:
                first[axis] += start * step
        own = []
        for source, _, step in axes:
            axis, factor = (-1, 0) if source is None else self.axes[source]
            own.append((axis, factor * step) if axis >= 0 else (-1, 0))
        return LazyArray(self.root, first, own, tuple(extent for _, extent, _ in axes))

    def stride(self, axis: int) -> int:
        """Bytes along an axis, if the root lay in one memory."""
        source, step = self.axes[axis]
        return 0 if source < 0 else packed_strides(self.root.shape, self.root.itemsize)[source] * step

    def box(self) -> Box:
        """The box of its elements in the root; empty extents give an empty box."""
        found = [(start, start + 1) for start in self.starts]
        for (axis, step), extent in zip(self.axes, self.shape, strict=True):
            if axis >= 0:
                ends = found[axis][0], found[axis][0] + step * (extent - 1)
                found[axis] = (min(ends), max(ends) + 1) if extent else (found[axis][0], found[axis][0])
        return tuple(found)


def box_of(bounds: Sequence[Sequence[int]], place: Place) -> Box:
    """Where a chunk is."""
    return tuple((b[at], b[at + 1]) for b, at in zip(bounds, place, strict=True))


def places_of(bounds: Sequence[Sequence[int]], box: Box) -> Iterator[Place]:
    """The chunks that a box which is not empty meets."""
    ranges = []
    for (lo, hi), b in zip(box, bounds, strict=True):
        first = bisect_right(b, lo) - 1
        last = first
        while b[last + 1] < hi:
            last += 1
        ranges.append(range(first, last + 1))
    return itertools.product(*ranges)
