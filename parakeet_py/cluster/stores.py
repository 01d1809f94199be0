"""What the tasks of a region store into: every chunk is made by one of them.

Along the axes of a root that follow an axis of the index space, the root takes the boundaries of the index space as its
chunks; along others, a task has all chunks that it may store into in its window, and gives each of them anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence

from dask._task_spec import TaskRef

from parakeet_py.cluster.arrays import Block, Place, Root, box_of, places_of
from parakeet_py.cluster.grid import Target
from parakeet_py.cluster.planned_call import RegionRun
from parakeet_py.cluster.windows import Snapshot, TaskInputs, hull
from parakeet_py.cluster.worker import tasks
from parakeet_py.cluster.worker.buffers import Box, WindowSpec, volume
from parakeet_py.typed_ir import ir


class _Stored:
    """A root that is stored into: its chunks before and after."""

    def __init__(self, root: Root, target: Target, bounds: list[list[int]]) -> None:
        self.root, self.target, self.bounds = root, target, bounds
        self.snapshot = Snapshot(root)
        self.keys: dict[Place, Hashable] = {}


class Stores:
    """The stores of a region.

    Attributes
    ----------
    roots : what is stored into, by `id`
    """

    def __init__(self, run: RegionRun, targets: Sequence[Target]) -> None:
        self.run = run
        self.roots: dict[int, _Stored] = {}
        body = run.region.op.body if isinstance(run.region.op, ir.Map) else None
        self.always = {
            let.op.array for let in (body.statements if body is not None else ()) if isinstance(let.op, ir.Store)
        }
        for target in targets:
            self.roots[id(target.root)] = self._prepared(target)

    def _prepared(self, target: Target) -> _Stored:
        root = target.root
        bounds = [self._along(root, number, target) for number in range(len(root.shape))]
        if not self.run.cut and bounds != [[0, extent] for extent in root.shape]:
            whole = self._written(root, (0,) * len(self.run.axes))
            if whole is not None and volume(whole) == root.size:
                bounds = [[0, extent] for extent in root.shape]
        mapped = [form is not None and form.axis in self.run.cut for form in target.forms]
        if bounds != root.bounds and not all(mapped) and self.run.cut:
            self.regrid(root, bounds)
        found = _Stored(root, target, bounds)
        if bounds == root.bounds:
            found.keys.update(root.keys)
        return found

    def _along(self, root: Root, number: int, target: Target) -> list[int]:
        """The boundaries of a root along one axis."""
        form = target.forms[number]
        if form is None or form.axis not in self.run.cut:
            return root.bounds[number]
        inner = self.run.axes[form.axis][1:-1]
        if form.factor > 0:
            found = [form.factor * at + form.low for at in inner]
        else:
            found = sorted(form.factor * at + form.high + 1 for at in inner)
        return [0, *found, root.shape[number]]

    def regrid(self, root: Root, bounds: list[list[int]]) -> None:
        """Give a root other chunks."""
        snapshot, keys = Snapshot(root), {}
        prefix = self.run.graph.prefix("rechunk")
        for place in itertools.product(*(range(len(b) - 1) for b in bounds)):
            box = box_of(bounds, place)
            inputs = TaskInputs()
            spec = self.run.windows.spec(inputs, snapshot, [box], True, True)
            if spec.pieces:
                keys[place] = self.run.graph.add((prefix, *place), tasks.assembled, spec, *inputs.refs())
        root.cut(tuple(tuple(b - a for a, b in itertools.pairwise(along)) for along in bounds))
        root.keys = keys

    def snapshot(self, root: Root) -> Snapshot:
        """The chunks of a root that tasks read."""
        stored = self.roots.get(id(root))
        return Snapshot(root) if stored is None else stored.snapshot

    def box(self, root: Root, place: Place) -> Box | None:
        """The box of the chunks that a task makes; None if it makes none of a root."""
        stored = self.roots.get(id(root))
        if stored is None:
            return None
        written = self._written(root, place)
        if written is None:
            written = tuple((0, min(1, extent)) for extent in root.shape)
        found = []
        for number, (bounds, (lo, hi)) in enumerate(zip(stored.bounds, written, strict=True)):
            form = stored.target.forms[number]
            if form is not None and form.axis in self.run.cut:
                at = place[form.axis]
                at = at if form.factor > 0 else len(bounds) - 2 - at
                found.append((bounds[at], bounds[at + 1]))
            else:
                some = [*places_of([bounds], ((lo, hi),))] if root.shape[number] else [(0,)]
                found.append((bounds[some[0][0]], bounds[some[-1][0] + 1]))
        return tuple(found)

    def _written(self, root: Root, place: Block) -> Box | None:
        boxes = self.run.boxes(self.run.writes, root, place)
        return hull(boxes) if boxes else None

    def around(self, root: Root, block: Block, box: Box) -> Box:
        """A box, and all that a block stores into."""
        written = self._written(root, block)
        return box if written is None else hull((box, written))

    def stored_for_sure(self, root: Root, place: Block) -> Box | None:
        """The box into each of whose elements a task stores; None if that is not known."""
        stored = self.roots[id(root)]
        arrays = [access.array for access, array in self.run.writes if array.root is root]
        always = len(arrays) == 1 and arrays[0] in self.always
        return self._written(root, place) if stored.target.full and always else None

    def chunks(self, root: Root, target: Box) -> tuple[Place, ...]:
        """The chunks of the box that a task makes."""
        return () if volume(target) == 0 and target else tuple(places_of(self.roots[id(root)].bounds, target))

    def made(self, root: Root, target: Box, chunks: Sequence[Place], spec: WindowSpec, key: Hashable) -> bool:
        """A task has made the window of a root under a key, with the chunks of its `target`; gives whether that is a
        chunk."""
        stored, box = self.roots[id(root)], spec.box
        if len(chunks) == 1 and box == target:
            stored.keys[chunks[0]] = key
            older = stored.snapshot.keys.get(chunks[0])
            if spec.skipped is not None and older is not None and stored.snapshot.bounds == stored.bounds:
                self.run.graph.again.left(key, older, spec.skipped)
            return True
        prefix = self.run.graph.prefix("chunk")
        for chunk in chunks:
            inner = box_of(stored.bounds, chunk)
            local = tuple((lo - first, hi - first) for (lo, hi), (first, _) in zip(inner, box, strict=True))
            stored.keys[chunk] = self.run.graph.add((prefix, *chunk), tasks.cut, TaskRef(key), local)
        return False

    def finish(self) -> None:
        """All tasks are there: roots have the chunks that these make."""
        for stored in self.roots.values():
            root = stored.root
            root.cut(tuple(tuple(b - a for a, b in itertools.pairwise(along)) for along in stored.bounds))
            root.keys = stored.keys
            root.changed()
