"""Which elements of which chunks a task needs: boxes of roots, put together from chunks, or slices of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from dask._task_spec import TaskRef

from parakeet_py.cluster.arrays import Place, Root, box_of, places_of
from parakeet_py.cluster.graph import Graph
from parakeet_py.cluster.worker.buffers import Box, Piece, WindowSpec
from parakeet_py.cluster.worker.tasks import assembled


class Snapshot:
    """The chunks of a root as they are now."""

    __slots__ = ("bounds", "keys", "root")

    def __init__(self, root: Root) -> None:
        self.root, self.bounds, self.keys = root, root.bounds, root.keys


class TaskInputs:
    """The keys that one task reads, each once, in the order of its values."""

    def __init__(self) -> None:
        self.places: dict[Hashable, int] = {}

    def place(self, key: Hashable) -> int:
        return self.places.setdefault(key, len(self.places))

    def refs(self) -> list[TaskRef]:
        return [TaskRef(key) for key in self.places]


def hull(boxes: Sequence[Box]) -> Box:
    """The least box around some."""
    if len(boxes) == 1:
        return boxes[0]
    return tuple((min(lo for lo, _ in ends), max(hi for _, hi in ends)) for ends in zip(*boxes, strict=True))


def volume(box: Box) -> int:
    """How many elements a box has."""
    size = 1
    for lo, hi in box:
        size *= max(hi - lo, 0)
    return size


class ChunkPart(NamedTuple):
    """What a window takes of a chunk: a box of the root that begins at `at` in the chunk; where a slice may be sent
    instead, its bounds in the chunk."""

    place: Place
    box: Box
    at: tuple[int, ...]
    local: Box | None
    shape: tuple[int, ...]


class Layout(NamedTuple):
    """A window as extents of chunks say it: its box, whether one of its boxes is all of that, and its parts."""

    box: Box
    together: bool
    pieces: tuple[ChunkPart, ...]


def _layout(bounds: Sequence[Sequence[int]], boxes: Sequence[Box]) -> Layout:
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
        shape = tuple(b[number + 1] - b[number] for b, number in zip(bounds, place, strict=True))
        local = tuple((a, a + hi - lo) for a, (lo, hi) in zip(at, here, strict=True))
        found.append(ChunkPart(place, here, at, local if len(inner) > 1 or len(boxes) == 1 else None, shape))
    box = hull(boxes)
    return Layout(box, len(boxes) == 1 or box in boxes, tuple(found))


class Windows:
    """Makes the windows of a region's tasks, and counts what they take from chunks of others.

    Attributes
    ----------
    moved : bytes of pieces but for the largest one of each window, which tasks run next to
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.moved = 0
        self._layouts: dict[Any, tuple[Any, Layout]] = {}

    def spec(
        self, inputs: TaskInputs, snapshot: Snapshot, boxes: Sequence[Box], written: bool, old: bool
    ) -> WindowSpec:
        """A window that holds some boxes of a root; `old`: what is there now is needed."""
        return self.of_layout(inputs, snapshot, self.layout(snapshot, boxes), written, old)

    def of_layout(self, inputs: TaskInputs, snapshot: Snapshot, layout: Layout, written: bool, old: bool) -> WindowSpec:
        """A window of a layout, of the chunks that the root has now."""
        root = snapshot.root
        box, pieces = layout.box, []
        whole = self._whole_key(snapshot, layout) if old else None
        if whole is not None:
            pieces.append(Piece(inputs.place(whole), box, (0,) * len(box)))
        elif old:
            for place, here, at, local, shape in layout.pieces:
                key = snapshot.keys.get(place)
                if key is None:
                    continue  # nothing has been stored there
                part = None if local is None else self.graph.slice(key, shape, local)
                if part is None:
                    pieces.append(Piece(inputs.place(key), here, at))
                else:
                    pieces.append(Piece(inputs.place(part), here, (0,) * len(at)))
            if len(pieces) > 1:
                sizes = sorted([volume(piece.box) for piece in pieces])
                self.moved += root.itemsize * sum(sizes[:-1])
        return WindowSpec(root.dtype, box, tuple(pieces), written)

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
        if not layout.together or len(snapshot.keys) < 2 or layout.box != root.whole():
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
        self.moved += root.nbytes
        key = (self.graph.prefix("gather"),)
        spec = WindowSpec(root.dtype, box, pieces, True)
        return self.graph.add(key, assembled, spec, *inputs.refs())

    def _all(self, snapshot: Snapshot) -> list[tuple[Hashable, Box, tuple[int, ...]]]:
        zero = (0,) * len(snapshot.bounds)
        return [(key, box_of(snapshot.bounds, place), zero) for place, key in snapshot.keys.items()]
