"""Windows that are one chunk, or most of one: those of nearly all blocks, so they are found without looking at boxes.

Where a region reads an array in one way and stores nothing into it, a block's window follows axis by axis from the
block's place: what of an axis it takes, and in which chunk that is, is found once for all blocks in a row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parakeet_py.cluster.arrays import LazyArray, Place
from parakeet_py.cluster.graph import is_sliced
from parakeet_py.cluster.planned_call import RegionRun
from parakeet_py.cluster.windows import Snapshot, TaskInputs
from parakeet_py.cluster.worker.buffers import Box, Piece, WindowSpec
from parakeet_py.hybrid.partition.access import Access

if TYPE_CHECKING:
    from parakeet_py.cluster.again import Again


_Span = tuple[int, int, int, int, int]
"""What a window takes of an axis: the first element of the root and the one after the last, the number of the chunk,
where that begins, and its extent."""
_Known = tuple[Box, Place, tuple[int, ...], WindowSpec | None]
"""The box of a window, its chunk, where in that it begins, and the window once there is one."""
_NONE: _Known = (), (-1,), (), None


class _Axis:
    """An axis of a root, and what blocks take of it; None where that is in several chunks."""

    def __init__(self, run: RegionRun, access: Access, array: LazyArray, axis: int, whole: bool) -> None:
        self.run, self.access, self.start, self.step = run, access, array.starts[axis], 0
        self.bounds = array.root.bounds[axis]
        self.whole, self.position = whole, -1
        for position, (own, step) in enumerate(array.axes):
            if own == axis:
                self.position, self.step = position, step
        self.depends = () if whole or self.position < 0 else run.depends_on(access, self.position)
        self._spans: dict[tuple[int, ...], _Span | None] = {}

    def along(self, place: Place) -> _Span | None:
        """What a block takes."""
        key = tuple([place[axis] for axis in self.depends])
        if key not in self._spans:
            self._spans[key] = self._along(place)
        return self._spans[key]

    def _along(self, place: Place) -> _Span | None:
        first, last = self.start, self.start + 1
        if self.whole:
            first, last = 0, self.bounds[-1]
        elif self.position >= 0:
            own = self.run.span(self.access, self.position, place)
            if own is None:
                return None
            ends = self.start + self.step * own[0], self.start + self.step * (own[1] - 1)
            first, last = min(ends), max(ends) + 1
        chunk = bisect_right(self.bounds, first) - 1
        if first >= last or last > self.bounds[chunk + 1]:
            return None
        begin = self.bounds[chunk]
        return first, last, chunk, begin, self.bounds[chunk + 1] - begin


class ChunkWindows:
    """The windows of a root that is read in one way.

    Parameters
    ----------
    together : windows have all of the axes but the first
    known : what calls on arrays that are cut alike have found
    """

    def __init__(
        self,
        run: RegionRun,
        snapshot: Snapshot,
        read: tuple[Access, LazyArray],
        together: bool,
        known: dict[Place, _Known],
    ) -> None:
        self.snapshot, self.known = snapshot, known
        self.axes = [_Axis(run, *read, axis, together and axis > 0) for axis in range(len(snapshot.bounds))]

    def of(self, place: Place, inputs: TaskInputs, again: Again | None) -> WindowSpec | None:
        """The window of a block; None if it is not one chunk, or a slice of one is better sent. `again`: what is known
        of chunks, of a part that may be run again."""
        found = self.known.get(place)
        if found is None:
            found = self.known[place] = self._new(place)
        box, chunk, first, spec = found
        key = self.snapshot.keys.get(chunk)
        if key is None:
            return None
        if again is not None:
            inputs.reads_chunk(key, again)
        at = inputs.place(key)
        if spec is None or spec.pieces[0].place != at:
            spec = WindowSpec(self.snapshot.root.dtype, box, (Piece(at, box, first),), False)
            self.known[place] = box, chunk, first, spec
        return spec

    def _new(self, place: Place) -> _Known:
        box, chunk, first = [], [], []
        size = whole = 1
        for axis in self.axes:
            span = axis.along(place)
            if span is None:
                return _NONE
            lo, hi, number, begin, extent = span
            box.append((lo, hi))
            chunk.append(number)
            first.append(lo - begin)
            size *= hi - lo
            whole *= extent
        return _NONE if is_sliced(size, whole) else (tuple(box), tuple(chunk), tuple(first), None)


def chunk_windows(
    run: RegionRun, snapshot: Snapshot, stored: bool, together: bool, known: dict[Place, _Known]
) -> ChunkWindows | None:
    """What finds a root's windows that are one chunk; None if it is read in several ways, or stored into."""
    reads: Sequence[tuple[Access, LazyArray]] = [one for one in run.reads if one[1].root is snapshot.root]
    return None if stored or len(reads) != 1 else ChunkWindows(run, snapshot, reads[0], together, known)
