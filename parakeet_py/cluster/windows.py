"""Which elements of which chunks a task needs: boxes of roots, put together from chunks, or slices of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from dask._task_spec import TaskRef

from parakeet_py.cluster.again import Again, Made, Maker
from parakeet_py.cluster.arrays import Place, Root, box_of, places_of
from parakeet_py.cluster.graph import Graph, is_sliced
from parakeet_py.cluster.worker.buffers import Box, Piece, WindowSpec, volume
from parakeet_py.cluster.worker.tasks import assembled


class Snapshot:
    """The chunks of a root as they are now."""

    __slots__ = ("bounds", "keys", "root")

    def __init__(self, root: Root) -> None:
        self.root, self.bounds, self.keys = root, root.bounds, root.keys


class TaskInputs:
    """The keys that one task reads, each once, in the order of its values.

    Attributes
    ----------
    near : of a task that makes an edge again, what others of its task read anyway, else None
    made : and the key of the chunk that it makes the edge of
    direct, inner : chunks that are read as they are; those of them of whose array no slices are read
    depth : how many steps are computed again in it
    home : the chunk that it runs next to, if that is known
    """

    def __init__(
        self, near: frozenset[Hashable] | None = None, made: Maker | None = None, home: Hashable = None
    ) -> None:
        self.places: dict[Hashable, int] = {}
        self.near, self.made = near, made
        self.direct: list[Hashable] = []
        self.inner: list[Hashable] = []
        self.depth = 0
        self.home = home

    def place(self, key: Hashable) -> int:
        return self.places.setdefault(key, len(self.places))

    def reads_chunk(self, key: Hashable, again: Again) -> None:
        """A chunk is read as it is, and no slices of its array are."""
        if self.home is None:
            self.home = again.home(key)
        self.direct.append(key)
        self.inner.append(key)
        self.depth = max(self.depth, again.depth(key))

    def refs(self) -> list[TaskRef]:
        return [TaskRef(key) for key in self.places]


def hull(boxes: Sequence[Box]) -> Box:
    """The least box around some."""
    if len(boxes) == 1:
        return boxes[0]
    return tuple((min(lo for lo, _ in ends), max(hi for _, hi in ends)) for ends in zip(*boxes, strict=True))


Taken = tuple[int, Box, Box, int]
"""What a window takes: the place of a value among those of its task, a box, of which box the value is, and its item."""


def made(taken: Taken) -> Piece:
    """A piece of a window."""
    place, box, outer, item = taken
    return Piece(place, box, tuple(lo - first for (lo, _), (first, _) in zip(box, outer, strict=True)), item)


class ChunkPart(NamedTuple):
    """What a window takes of a chunk, the box `chunk` of `whole` elements: a box of the root, of `size` elements, that
    begins at `at` in the chunk; where a slice may be sent instead, its bounds in the chunk; and whether that is worth
    it."""

    place: Place
    box: Box
    chunk: Box
    at: tuple[int, ...]
    local: Box | None
    size: int
    whole: int
    sliced: bool


class Layout(NamedTuple):
    """A window as extents of chunks say it: its box, whether one of its boxes is all of that, whether it is all of the
    root, and its parts."""

    box: Box
    together: bool
    whole: bool
    pieces: tuple[ChunkPart, ...]


def _layout(bounds: Sequence[Sequence[int]], boxes: Sequence[Box]) -> Layout:
    return _in_one_chunk(bounds, boxes) or _in_several(bounds, boxes)


def _in_one_chunk(bounds: Sequence[Sequence[int]], boxes: Sequence[Box]) -> Layout | None:
    """A window that a single chunk has; None if there is none."""
    box = hull(boxes)
    place, chunk, at = [], [], []
    size = whole = 1
    is_whole = True
    for (lo, hi), b in zip(box, bounds, strict=True):
        number = bisect_right(b, lo) - 1
        if lo >= hi or hi > b[number + 1]:
            return None
        first, last = b[number], b[number + 1]
        place.append(number)
        chunk.append((first, last))
        at.append(lo - first)
        size *= hi - lo
        whole *= last - first
        is_whole = is_whole and lo == 0 and hi == b[-1]
    sent = None
    if len(boxes) == 1:
        sent = tuple([(a, a + hi - lo) for a, (lo, hi) in zip(at, box, strict=True)])
    sliced = sent is not None and is_sliced(size, whole)
    part = ChunkPart(tuple(place), box, tuple(chunk), tuple(at), sent, size, whole, sliced)
    return Layout(box, len(boxes) == 1 or box in boxes, is_whole, (part,))


def _in_several(bounds: Sequence[Sequence[int]], boxes: Sequence[Box]) -> Layout:
    inner: dict[Place, Box] = {}
    for box in dict.fromkeys(boxes):
        if volume(box) == 0 and box:
            continue
        for place in places_of(bounds, box):
            here = tuple(
                (max(lo, b[at]), min(hi, b[at + 1])) for (lo, hi), b, at in zip(box, bounds, place, strict=True)
            )
            if all(lo < hi for lo, hi in here):
                inner[place] = hull((inner[place], here)) if place in inner else here
    found = []
    for place, here in inner.items():
        at = tuple(lo - b[number] for (lo, _), b, number in zip(here, bounds, place, strict=True))
        local = tuple((a, a + hi - lo) for a, (lo, hi) in zip(at, here, strict=True))
        sent = local if len(inner) > 1 or len(boxes) == 1 else None
        chunk = box_of(bounds, place)
        size, whole = volume(here), volume(chunk)
        found.append(ChunkPart(place, here, chunk, at, sent, size, whole, sent is not None and is_sliced(size, whole)))
    box = hull(boxes)
    whole = box == tuple((0, b[-1]) for b in bounds)
    return Layout(box, len(boxes) == 1 or box in boxes, whole, tuple(found))


class Windows:
    """Makes the windows of a region's tasks."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._before = graph.moved
        self._layouts: dict[Any, tuple[Any, Layout]] = {}

    @property
    def moved(self) -> int:
        """Bytes that tasks take from chunks of others since then."""
        return self.graph.moved - self._before

    def spec(
        self, inputs: TaskInputs, snapshot: Snapshot, boxes: Sequence[Box], written: bool, old: bool
    ) -> WindowSpec:
        """A window that holds some boxes of a root; `old`: what is there now is needed."""
        layout = self.layout(snapshot, boxes)
        pieces = self.pieces(inputs, snapshot, layout) if old else ()
        return WindowSpec(snapshot.root.dtype, layout.box, tuple(pieces), written)

    def pieces(self, inputs: TaskInputs, snapshot: Snapshot, layout: Layout) -> list[Piece]:
        """What a window takes of the chunks that the root has now."""
        return [made(one) for one in self.taken(inputs, snapshot, layout)]

    def taken(
        self, inputs: TaskInputs, snapshot: Snapshot, layout: Layout, skipped: Box | None = None, again: bool = False
    ) -> tuple[Taken, ...]:
        """What a window takes of the chunks that the root has now, but for what is skipped; edges of chunks may be
        computed again."""
        whole = self._whole_key(snapshot, layout) if layout.whole else None
        if whole is not None:
            return ((inputs.place(whole), layout.box, layout.box, -1),)
        graph, near_by = self.graph, inputs.near or ()
        remade = graph.again
        found: list[Taken] = []
        moved: list[tuple[int, int, Hashable]] = []
        sent, keys = False, snapshot.keys
        parts: list[tuple[ChunkPart, Hashable, bool]] = []
        direct: list[Hashable] = []
        for part in layout.pieces:
            key = keys.get(part.place)
            if key is None:
                continue
            if skipped is not None:
                key = remade.before(key, part.box, skipped)
            cut = part.sliced and key not in near_by
            parts.append((part, key, cut))
            if again and not cut:
                direct.append(key)
        near = frozenset(direct)
        if direct and inputs.home is None:
            inputs.home = remade.home(direct[0])
        for number, (part, key, cut) in enumerate(parts):
            if cut:
                edge = self._made(inputs, part, key, near, snapshot.root.itemsize) if again else None
                if edge is not None:
                    found.append((inputs.place(edge[0]), part.box, edge[1], -1))
                    continue
                assert part.local is not None
                slice_ = graph.slice(key, part.whole, part.local)
                sent = sent or remade.is_made(key)
                found.append((inputs.place(slice_), part.box, part.box, -1))
            else:
                frame = None if skipped is None else remade.frame(key, part.box, part.at, skipped)
                if frame is not None:
                    direct.clear()
                    own = inputs.place(frame[0])
                    found += [(own, box, box, item) for item, box in enumerate(frame[1])]
                    continue
                found.append((inputs.place(key), part.box, part.chunk, -1))
            if key not in near_by:
                moved.append((part.size, number, key))
        if inputs.near is None:  # the task is where the largest is
            moved = sorted(moved)[:-1] if len(moved) > 1 else []
        for size, _, key in moved:
            graph.move(key, snapshot.root.itemsize * size, inputs.home)
        inputs.direct += direct
        if direct and not sent:
            inputs.inner += direct
            inputs.depth = max([inputs.depth, *map(remade.depth, direct)])
        return tuple(found)

    def _made(
        self, inputs: TaskInputs, part: ChunkPart, key: Hashable, near: frozenset[Hashable], itemsize: int
    ) -> Made | None:
        """A part of a chunk that is computed again, if that is better than to send it."""
        again, local = self.graph.again, part.local
        assert local is not None
        if not again.is_made(key):
            return None
        if inputs.made is None:
            if not near or not again.pays(key, part.size, part.whole):
                return None
            before = self.graph.moved
            made = again.of(key, part.box, again.read_by(near), inputs.home)
            if made is not None:
                inputs.depth = max(inputs.depth, again.depth(key) + 1)
                more = itemsize * volume(part.box) - (self.graph.moved - before)
                again.costs.setdefault(made[0], (self.graph.regions, more))
            return made
        if key not in inputs.made.inner and again.depth(key) >= inputs.made.depth:
            return None
        return again.of(key, part.box, again.read_by(inputs.near or frozenset()), inputs.home)

    def layout(self, snapshot: Snapshot, boxes: Sequence[Box]) -> Layout:
        """A window that holds some boxes of a root, as far as its chunks' extents say it."""
        what = (id(snapshot.bounds), *boxes)
        found = self._layouts.get(what)
        if found is None:
            # the bounds are held, so that no others get their id
            found = self._layouts[what] = snapshot.bounds, _layout(snapshot.bounds, boxes)
        return found[1]

    def _whole_key(self, snapshot: Snapshot, layout: Layout) -> Hashable | None:
        """The key of all of a root in one, if that is what is wanted and it is in several chunks."""
        root = snapshot.root
        if not (layout.together and layout.whole) or len(snapshot.keys) < 2:
            return None
        if root.keys is not snapshot.keys:
            return None
        known = root.whole_key
        if known is None or known[0] != root.version or known[1] not in self.graph.tasks:
            known = root.whole_key = root.version, self.gather(snapshot)
        return known[1]

    def gather(self, snapshot: Snapshot) -> Hashable:
        """A task that puts a root together."""
        root = snapshot.root
        inputs = TaskInputs()
        box = root.whole()
        pieces = tuple(Piece(inputs.place(key), inner, at) for key, inner, at in self._all(snapshot))
        self.graph.moved += root.nbytes
        key = (self.graph.prefix("gather"),)
        spec = WindowSpec(root.dtype, box, pieces, True)
        return self.graph.add(key, assembled, spec, *inputs.refs())

    def _all(self, snapshot: Snapshot) -> list[tuple[Hashable, Box, tuple[int, ...]]]:
        zero = (0,) * len(snapshot.bounds)
        return [(key, box_of(snapshot.bounds, place), zero) for place, key in snapshot.keys.items()]
