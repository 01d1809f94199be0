"""Which elements of which chunks a task needs: boxes of roots, put together from chunks, or slices of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

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


class Windows:
    """Makes the windows of a region's tasks, and counts what they take from chunks of others.

    Attributes
    ----------
    moved : bytes of pieces but for the largest one of each window, which tasks run next to
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.moved = 0
        self._pieces: dict[Any, tuple[Any, list[tuple[Hashable, Box, tuple[int, ...]]]]] = {}

    def spec(
        self, inputs: TaskInputs, snapshot: Snapshot, boxes: Sequence[Box], written: bool, old: bool
    ) -> WindowSpec:
        """A window that holds some boxes of a root; `old`: what is there now is needed."""
        root = snapshot.root
        box = hull(boxes)
        pieces: list[Piece] = []
        if old:
            whole = self._whole_key(snapshot, boxes)
            if whole is not None:
                pieces.append(Piece(inputs.place(whole), box, (0,) * len(box)))
            else:
                found = self._of_chunks(snapshot, boxes)
                pieces = [Piece(inputs.place(key), inner, at) for key, inner, at in found]
                if len(found) > 1:
                    sizes = sorted(volume(inner) for _, inner, _ in found)
                    self.moved += root.itemsize * sum(sizes[:-1])
        return WindowSpec(root.dtype, box, tuple(pieces), written)

    def _of_chunks(self, snapshot: Snapshot, boxes: Sequence[Box]) -> list[tuple[Hashable, Box, tuple[int, ...]]]:
        """The pieces of boxes: the key of a chunk or of a slice of it, which box, and where that begins in it."""
        what = (id(snapshot.keys), *boxes)
        found = self._pieces.get(what)
        if found is None:
            # the chunks are held, so that no others get their id
            found = self._pieces[what] = snapshot.keys, self._cut_out(snapshot, boxes)
        return found[1]

    def _cut_out(self, snapshot: Snapshot, boxes: Sequence[Box]) -> list[tuple[Hashable, Box, tuple[int, ...]]]:
        bounds = snapshot.bounds
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
        found: list[tuple[Hashable, Box, tuple[int, ...]]] = []
        for place, here in inner.items():
            key = snapshot.keys.get(place)
            if key is None:
                continue  # nothing has been stored there
            at = tuple(lo - b[number] for (lo, _), b, number in zip(here, bounds, place, strict=True))
            shape = [b[number + 1] - b[number] for b, number in zip(bounds, place, strict=True)]
            local = tuple((a, a + hi - lo) for a, (lo, hi) in zip(at, here, strict=True))
            part = self.graph.slice(key, shape, local) if len(inner) > 1 or len(boxes) == 1 else None
            found.append((key, here, at) if part is None else (part, here, (0,) * len(at)))
        return found

    def _whole_key(self, snapshot: Snapshot, boxes: Sequence[Box]) -> Hashable | None:
        """The key of all of a root in one, if that is what is wanted and it is in several chunks."""
        root = snapshot.root
        if len(snapshot.keys) < 2 or hull(boxes) != root.whole() or root.keys is not snapshot.keys:
            return None
        if len(boxes) > 1 and root.whole() not in boxes:
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
