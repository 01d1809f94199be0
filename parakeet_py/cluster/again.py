"""Halos that are computed again, so that several steps of a stencil are one task of each chunk.

A task that needs the edge of a neighbour's chunk waits for all of it, and for a slice of it. Where the part that made
the chunk may be run on any block, the task can make the edge itself, from what that part has read:

    chunk p of step 2  <-  chunk p of step 1, last row of chunk p - 1 of step 1         (4 tasks wait for each other)
    last row of chunk p - 1 of step 1  <-  last two rows of chunk p - 1, first of chunk p, of step 0

Then nothing but chunk p of step 2 reads chunk p of step 1, and both become one task (see `fusion`), which reads slices
of step 0 that are twice as wide: half as many tasks, and as many bytes. It is called overlapped tiling (Krishnamoorthy
et al., *Effective automatic parallelization of stencil computations*, PLDI 2007). Elements have the bits that they have
in their chunk, as each is computed alone. How many steps become one is said by `depth`: it grows while the edges are
small beside the chunk.

Elements of a chunk that a store leaves as they are (the borders of a grid) are those of an older chunk; they are read
from that, and from a *frame* of it if they are few, so that no task needs the chunk of two steps before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from dask._task_spec import TaskRef

from parakeet_py.cluster.worker import tasks
from parakeet_py.cluster.worker.buffers import Box, is_in, volume, without

if TYPE_CHECKING:
    from parakeet_py.cluster.graph import Graph

AGAIN = 1 / 16  # of a chunk: edges that are larger are sent
DEPTH = 1  # steps that are computed again in a task: a second one takes three times as many tasks to build
FRAME = 1 / 4  # of a chunk: more than that is read as it is
LEAST = 1 << 17  # elements of a chunk that has a frame

Made = tuple[Hashable, Box]


class Maker(NamedTuple):
    """What made a chunk.

    Attributes
    ----------
    run : makes a box of the chunk, or more, for a task that reads some keys anyway; None if it cannot
    direct : keys that it has read as they are
    inner : those of them that it alone may be going to read
    depth : how many steps are computed again in its task
    home : the first chunk that it comes from, where its task runs
    """

    run: Callable[[Box, frozenset[Hashable], Hashable], Made | None]
    direct: tuple[Hashable, ...]
    inner: tuple[Hashable, ...]
    depth: int
    home: Hashable


class Again:
    """What is known of the chunks of a graph.

    Attributes
    ----------
    edges : keys of tasks that make edges again, and frames; for edges that others read, of which chunk, and where in it
    costs : what it costs to send these instead: the region that reads them, and how many bytes more
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.edges: dict[Hashable, tuple[Hashable, Box] | None] = {}
        self.costs: dict[Hashable, tuple[int, int]] = {}
        self._makers: dict[Hashable, Maker] = {}
        self._made: dict[tuple[Hashable, Box, frozenset[Hashable]], Made | None] = {}
        self._older: dict[Hashable, tuple[Hashable, Box]] = {}
        self._frames: dict[tuple[Hashable, Box, Box], tuple[Hashable, tuple[Box, ...]] | None] = {}

    def forget(self) -> None:
        """Tasks have been dropped: what chunks were made of may not be there any more."""
        self._makers.clear()
        self._made.clear()
        self._older.clear()
        self._frames.clear()

    # ---- edges -------------------------------------------------------------------------------------------------------

    def learn(self, key: Hashable, maker: Maker) -> None:
        """A chunk has been made."""
        self._makers[key] = maker

    def maker(self, key: Hashable) -> Maker:
        """What has made a chunk."""
        return self._makers[key]

    def depth(self, key: Hashable) -> int:
        """How many steps are computed again in the task that made a chunk."""
        maker = self._makers.get(key)
        return 0 if maker is None else maker.depth

    def home(self, key: Hashable) -> Hashable:
        """The first chunk that one comes from."""
        maker = self._makers.get(key)
        return key if maker is None else maker.home

    def is_made(self, key: Hashable) -> bool:
        """Whether a chunk may be made again."""
        return key in self._makers

    def pays(self, key: Hashable, part: int, whole: int) -> bool:
        """Whether so much of a chunk had better be made again than sent."""
        maker = self._makers.get(key)
        return maker is not None and maker.depth < DEPTH and (maker.depth + 1) * part <= AGAIN * whole

    def read_by(self, keys: frozenset[Hashable]) -> frozenset[Hashable]:
        """What the makers of chunks have read as it is."""
        return frozenset(one for key in keys if key in self._makers for one in self._makers[key].direct)

    def of(self, key: Hashable, box: Box, near: frozenset[Hashable], home: Hashable) -> Made | None:
        """A box of a chunk for a task that reads `near` anyway: the key of it or of more, and what that is."""
        what = key, box, near
        if what not in self._made:
            self._made[what] = self._makers[key].run(box, near, home)
        return self._made[what]

    # ---- what stores leave -------------------------------------------------------------------------------------------

    def left(self, key: Hashable, older: Hashable, box: Box) -> None:
        """A chunk differs from an older one in a box alone."""
        first = self._older.get(older)
        self._older[key] = first if first is not None and first[1] == box else (older, box)

    def before(self, key: Hashable, box: Box, skipped: Box) -> Hashable:
        """The oldest chunk that is known to equal one in a box, but for what is skipped."""
        older = self._older.get(key)
        if older is None:
            return key
        common = [(max(lo, a), min(hi, b)) for (lo, hi), (a, b) in zip(box, older[1], strict=True)]
        inside = any(lo >= hi for lo, hi in common) or is_in(common, skipped)
        return older[0] if inside else key

    def frame(
        self, key: Hashable, box: Box, at: tuple[int, ...], skipped: Box
    ) -> tuple[Hashable, tuple[Box, ...]] | None:
        """What a chunk has in a box, which begins at `at` in it, but for what is skipped, as a value of its own: its
        key and the boxes of its items; None if that is too much."""
        what = key, box, skipped
        if what not in self._frames:
            self._frames[what] = self._framed(key, box, at, skipped)
        return self._frames[what]

    def _framed(
        self, key: Hashable, box: Box, at: tuple[int, ...], skipped: Box
    ) -> tuple[Hashable, tuple[Box, ...]] | None:
        boxes = tuple(without(box, skipped))
        whole = volume(box)
        if whole <= LEAST or sum(map(volume, boxes)) > FRAME * whole:
            return None
        local = tuple(
            tuple((lo - first + a, hi - first + a) for (lo, hi), (first, _), a in zip(one, box, at, strict=True))
            for one in boxes
        )
        made = (self.graph.prefix("frame"),)
        self.edges[made] = None
        return self.graph.add(made, tasks.framed, TaskRef(key), local), boxes
