"""The tasks of a region, one for each block of its index space, and those that make the edges of chunks again."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Mapping, Sequence

from dask._task_spec import TaskRef

from parakeet_py.base.types import Array, Scalar, itemsize
from parakeet_py.cluster.again import Made, Maker
from parakeet_py.cluster.arrays import Block, LazyArray, LazyScalar, Place, Root, box_of
from parakeet_py.cluster.chunk_windows import chunk_windows
from parakeet_py.cluster.graph import LARGE_VALUE, SMALL_VALUE
from parakeet_py.cluster.planned_call import RegionRun
from parakeet_py.cluster.stores import Stores
from parakeet_py.cluster.stretches import stretches_of
from parakeet_py.cluster.windows import Layout, Taken, TaskInputs, made
from parakeet_py.cluster.worker import tasks
from parakeet_py.cluster.worker.buffers import Box, ScalarSlot, ViewSlot, WindowSpec, volume
from parakeet_py.cluster.worker.given_up import may_give_up
from parakeet_py.cluster.worker.tasks import Arguments, Stretch
from parakeet_py.hybrid.partition.block_parts import private_identity
from parakeet_py.hybrid.partition.fission import may_fail
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Function, Var, dtype_of

SHORT = 4  # extent of a last axis that machine code knows


class BlockTasks:
    """The tasks of a part of a region.

    Parameters
    ----------
    function, filled, free : the part, the dtypes of the arrays that it fills, and its arguments after these
    before : what comes before blocks of a scan, which is the last argument then

    Attributes
    ----------
    repeats : the part may be run again on any block
    """

    def __init__(
        self,
        run: RegionRun,
        function: Function,
        filled: tuple[str, ...],
        free: Sequence[Var],
        stores: Stores,
        before: Mapping[Place, Hashable] | None = None,
    ) -> None:
        names = run.region.args
        assert len(names) == len(free) - bool(before)
        self.run, self.call, self.graph, self.stores, self.before = run, run.call, run.graph, stores, before
        self.function, self.filled = function, filled
        self.roots = list({id(array.root): array.root for _, array in (*run.reads, *run.writes)}.values())
        self.snapshots = [stores.snapshot(root) for root in self.roots]
        self.kernel, self.kernel_key = run.call.kernel(function, self._apart(), self._extents(free))
        cut = self._cut_alike()
        self.layouts = run.call.layouts.setdefault(cut, {})
        self.one_chunk = [
            chunk_windows(
                run,
                snapshot,
                id(snapshot.root) in stores.roots,
                self.kernel.together,
                run.call.layouts.setdefault(f"{number} {cut}", {}),
            )
            for number, snapshot in enumerate(self.snapshots)
        ]
        lazy = [value for var in names if isinstance(value := run.values[var], LazyScalar)]
        self.scalars = list(dict.fromkeys(value.key for value in lazy))  # the first values of every task
        self.copied = copied = copy_of_target(run, len(self.roots))
        slots = tuple(copied[1] if copied and var is copied[0] else self._slot(var) for var in names)
        if "rows" not in self.layouts:
            self.layouts["rows"] = rows_of(run, self.roots)
        self.common = Arguments(filled, slots, self.layouts["rows"])
        self.is_map = isinstance(run.region.op, ir.Map)
        self.prefix = self.graph.prefix(type(run.region.op).__name__.lower())
        stored = sum(id(root) in stores.roots for root in self.roots)
        self.given = len(filled) + len(function.body.results)
        self.count = self.given + stored + (copied is not None)
        results = function.body.results
        self.is_scalar = not filled and all(isinstance(result.type, Scalar) for result in results)
        self.each = sum(map(itemsize, filled)) + sum(itemsize(dtype_of(result)) for result in results)
        self.raises, self.gives_up = may_fail(function.body), may_give_up(function)
        self.repeats = (
            self.is_map
            and run.region.touched.traced
            and bool(run.cut)
            and not (run.private or before or self.raises or self.gives_up)
            and (not stored or (stored == 1 and not self.given))
        )
        self._edges = itertools.count()

    def all(self, places: Sequence[Place] | None = None) -> dict[Place, list[Hashable]]:
        """A task for each block, or for some; gives the keys of what it fills and of its results."""
        if places is None:
            places = list(itertools.product(*(range(len(bounds) - 1) for bounds in self.run.axes)))
        made = {place: self._block(place) for place in places}
        self.stores.finish()
        return made

    def _block(self, place: Place) -> list[Hashable]:
        inputs, own = self._inputs(), self.common
        if self.before:
            initial = getattr(self.run.region.op, "inits", (None,))[0]
            assert isinstance(initial, ir.Const)
            at = inputs.place(self.before[place]) if place in self.before else -1
            own = own._replace(free=(*own.free, ScalarSlot(initial.value, at)))
        again = self.graph.again if self.repeats else None
        specs = [
            (windows and windows.of(place, inputs, again)) or self._window(inputs, number, place)
            for number, windows in enumerate(self.one_chunk)
        ]
        if self.copied is not None:
            specs.append(self.copied[2])
        key: Hashable = (self.prefix, *place) if place else (self.prefix,)
        what = "block", id(self.function), place
        block = self.layouts.get(what)
        if block is None:
            los, counts = self._bounds(place)
            block = self.layouts[what] = los, counts, self._bytes(counts, specs)
        los, counts, nbytes = block
        stretches: tuple[Stretch, ...] = ()
        if self.is_map and not self.kernel.together and any([len(spec.pieces) > 1 for spec in specs]):
            stretches = stretches_of(self.run, self.snapshots, place, specs, self.layouts)
        given = own, los, counts, tuple(specs), stretches, *inputs.refs()
        self.graph.add(key, tasks.run_part, TaskRef(self.kernel_key), *given, gives_up=self.gives_up, nbytes=nbytes)
        if self.is_map and nbytes <= SMALL_VALUE:
            self.graph.trivial.add(key)
        if self.raises:
            self.call.may_raise.append(key)
        keys = self._several(key, place, nbytes)
        stored = [number for number, (_, spec) in enumerate(zip(self.roots, specs, strict=False)) if spec.written]
        split = self.count - len(stored)
        for number, at in enumerate(stored, split):
            target, chunks = self.layouts["chunks", at, place]
            if self.stores.made(self.roots[at], target, chunks, specs[at], keys[number]):
                self._learn(keys[number], number, place, inputs)
        for number in range(split):
            self._learn(keys[number], number, place, inputs)
        unused = self.run.unused
        if not unused:
            return keys[:split]
        own_keys = iter(keys[:split])
        return [None if number in unused else next(own_keys) for number in range(split + len(unused))]

    def _inputs(
        self, near: frozenset[Hashable] | None = None, made: Maker | None = None, home: Hashable = None
    ) -> TaskInputs:
        inputs = TaskInputs(near, made, home)
        for scalar in self.scalars:
            inputs.place(scalar)
        return inputs

    def _bounds(self, place: Block) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where a block begins along the axes that are cut, and its extents."""
        bounds = [self.run.ends(axis, at) for axis, at in enumerate(place)]
        return tuple([bounds[axis][0] for axis in self.run.cut]), tuple([hi - lo for lo, hi in bounds])

    def _bytes(self, counts: Sequence[int], specs: Sequence[WindowSpec]) -> int:
        """How much a task gives at most, of an operator; a large number if that is not known."""
        op = self.run.region.op
        if not isinstance(op, ir.PARALLEL):
            return LARGE_VALUE
        size = sum([itemsize(spec.dtype) * volume(spec.box) for spec in specs if spec.written])
        shape = () if self.run.private else counts[: len(op.extents)] if isinstance(op, ir.Reduce) else counts
        if self.is_scalar:
            shape = ()
        return size + self.each * math.prod(shape)

    def _several(self, key: Hashable, place: Place, nbytes: int) -> list[Hashable]:
        """The keys of each of a task's results."""
        if self.count == 1 or (self.run.takes_tuples and self.count > 0):
            return [key] if self.count == 1 else [key, *[None] * (self.count - 1)]
        found = []
        for number in range(self.count):
            own = f"{self.prefix}-{number}", *place
            found.append(self.graph.add(own, tasks.take, TaskRef(key), number, nbytes=nbytes))
        return found

    # ---- edges of chunks ---------------------------------------------------------------------------------------------

    def _learn(self, key: Hashable, number: int, place: Place, inputs: TaskInputs) -> None:
        """A chunk can be made again, or a box of it."""
        if self.repeats:
            run = functools.partial(self._again, key, number, place)
            self.graph.again.learn(
                key, Maker(run, tuple(inputs.direct), tuple(inputs.inner), inputs.depth, inputs.home)
            )

    def _again(
        self, chunk: Hashable, number: int, place: Place, box: Box, near: frozenset[Hashable], home: Hashable
    ) -> Made | None:
        """A task that makes a box of a chunk."""
        what = "again", number, place, box
        if what not in self.layouts:
            self.layouts[what] = self._part_of(number, place, box)
        found = self.layouts[what]
        if found is None:
            return None
        block, target, made, local = found
        inputs = self._inputs(near, self.graph.again.maker(chunk), home)
        specs = [self._window(inputs, one, block, target) for one in range(len(self.roots))]
        if target is not None and any(spec.written and spec.box != target for spec in specs):
            return None  # the part reads more of the array that it stores into
        los, counts = self._bounds(block)
        at = next(self._edges)
        given = self.common, los, counts, tuple(specs), (), *inputs.refs()
        key = self.graph.add((f"{self.prefix}-again", at), tasks.run_part, TaskRef(self.kernel_key), *given)
        if self.count > 1:
            self.graph.again.edges[key] = None
            key = self.graph.add((f"{self.prefix}-again-{number}", at), tasks.take, TaskRef(key), number)
        self.graph.again.edges[key] = chunk, local
        return key, made

    def _part_of(self, number: int, place: Place, box: Box) -> tuple[Block, Box | None, Box, Box] | None:
        """The block that makes a box of a chunk, what of a root that is stored into it makes, if it is one, what that
        is of the chunk's array, and of the chunk; None if it is not known."""
        run, target = self.run, None
        if number < self.given:
            block: Block = tuple(
                box[axis] if axis in run.cut else (0, extent) for axis, extent in enumerate(run.extents)
            )
            made = tuple(run.ends(axis, at) for axis, at in enumerate(block))
            outer = box_of(run.axes, place)
        else:
            root = next(root for root in self.roots if id(root) in self.stores.roots)
            followed = self._stores_of(root, place, box)
            if followed is None:
                return None
            block = followed
            target = made = self.stores.around(root, block, box)
            outer = self.stores.box(root, place) or made
        local = tuple((lo - first, hi - first) for (lo, hi), (first, _) in zip(made, outer, strict=True))
        return block, target, made, local

    def _stores_of(self, root: Root, place: Place, box: Box) -> Block | None:
        """The block of elements that a task has stored into a box; None if there are none, or it is not known."""
        block: list[int | tuple[int, int]] = [(0, extent) for extent in self.run.extents]
        for axis, form in enumerate(self.stores.roots[id(root)].target.forms):
            if form is None or form.axis not in self.run.cut:
                continue
            if form.factor != 1 or form.low != form.high:
                return None
            lo, hi = self.run.ends(form.axis, place[form.axis])
            lo, hi = max(lo, box[axis][0] - form.low), min(hi, box[axis][1] - form.low)
            if lo >= hi:
                return None
            block[form.axis] = lo, hi
        return tuple(block)

    # ---- arguments ---------------------------------------------------------------------------------------------------

    def _apart(self) -> bool:
        """Whether what is stored into overlaps no other argument."""
        views: dict[int, int] = {}
        for array in self.run.arrays.values():
            views[id(array.root)] = views.get(id(array.root), 0) + 1
        return all(views.get(root, 1) == 1 for root in self.stores.roots)

    def _extents(self, free: Sequence[Var]) -> tuple[tuple[int, int, int], ...]:
        """The last axes of arrays of points or the like: with their extents known, rows lie at known places. None if
        there are other arrays with axes, whose rows may then lie anywhere."""
        found = []
        first = len(self.function.params) - len(free)
        for number, (var, name) in enumerate(zip(free, self.run.region.args, strict=False), first):
            value = self.run.values[name]
            if not isinstance(var.type, Array) or var.type.rank < 2:
                continue
            if not isinstance(value, LazyArray) or (var.type.layout, var.type.rank) != ("C", 2):
                return ()
            if not 1 < value.shape[1] <= SHORT:
                return ()
            found.append((number, 1, value.shape[1]))
        return tuple(found)

    def _slot(self, var: Var) -> ScalarSlot | ViewSlot:
        value = self.run.values[var]
        if isinstance(value, LazyScalar):
            return ScalarSlot(None, self.scalars.index(value.key))
        if not isinstance(value, LazyArray):
            return ScalarSlot(value)
        window = next((number for number, root in enumerate(self.roots) if root is value.root), -1)
        return ViewSlot(window, value.starts, value.axes, value.shape, value.root.itemsize)

    def _cut_alike(self) -> str:
        """What is the same when the region runs again on arrays of the same extents and chunks, for which what is known
        of its windows holds."""
        run = self.run
        numbers = {id(root): number for number, root in enumerate(self.roots)}
        views = [
            (access.array, numbers[id(array.root)], array.starts, array.axes, array.shape)
            for access, array in (*run.reads, *run.writes)
        ]
        known = [value for value in run.values.values() if not isinstance(value, LazyArray | LazyScalar)]
        grids = [
            (root.shape, *map(tuple, snapshot.bounds))
            for root, snapshot in zip(self.roots, self.snapshots, strict=True)
        ]
        stored = [[*map(tuple, root.bounds)] for root in self.roots]
        return repr((id(run.region), self.kernel.together, run.private, run.axes, views, known, grids, stored))

    def _window(self, inputs: TaskInputs, number: int, place: Block, target: Box | None = None) -> WindowSpec:
        """The window of a root; `target`: what of a root that is stored into is made, if that is no chunk."""
        snapshot, windows = self.snapshots[number], self.run.windows
        root = snapshot.root
        where = number, place, target
        known = self.layouts.get(where)
        if known is None:
            known = self.layouts[where] = self._new_layout(number, place, target)
        layout, written, old, skipped, specs = known
        taken = windows.taken(inputs, snapshot, layout, skipped, self.repeats) if layout is not None and old else ()
        spec: WindowSpec | None = next((spec for other, spec in specs if other == taken), None)
        if spec is None:
            box = tuple((0, 0) for _ in root.shape) if layout is None else layout.box
            spec = WindowSpec(root.dtype, box, tuple(map(made, taken)), written, skipped)
            specs.append((taken, spec))  # its `id` is a key of others
        if layout is not None and layout.whole and len(snapshot.keys) > 1:
            self.call.check_size(self.run.region.line, volume(spec.box) * root.itemsize)
        return spec

    def _new_layout(
        self, number: int, place: Block, target: Box | None
    ) -> tuple[Layout | None, bool, bool, Box | None, list[tuple[tuple[Taken, ...], WindowSpec]]]:
        """The layout of a window, whether it is stored into, whether what is there now is needed, and of what box it
        is not; and the windows so far, by what they take: there are few."""
        snapshot = self.snapshots[number]
        root = snapshot.root
        boxes = self.run.boxes(self.run.reads, root, place)
        if id(root) not in self.stores.roots:
            target = None
        elif target is None:
            target = self.stores.box(root, tuple(at for at in place if isinstance(at, int)))
            if target is not None:
                self.layouts["chunks", number, place] = target, self.stores.chunks(root, target)
        old, skipped = True, None
        if target is not None:
            skipped = None if boxes else self.stores.stored_for_sure(root, place)
            old = skipped is None or skipped != target
            boxes = [target, *boxes]
        if not boxes:
            return None, False, False, None, []
        if self.kernel.together:
            boxes = [(box[:1] + root.whole()[1:]) for box in boxes]
        layout = self.run.windows.layout(snapshot, boxes)
        return layout, target is not None, old, skipped if old else None, []


# ---- what parts take besides windows of what is there ----------------------------------------------------------------


def copy_of_target(run: RegionRun, number: int) -> tuple[Var, ViewSlot, WindowSpec] | None:
    """What blocks have a copy of, and the window `number` that it is in."""
    if not run.private:
        return None
    op = run.region.op
    assert isinstance(op, ir.Scatter)
    target, identity = run.arrays[op.target], private_identity(op.combine)
    assert identity is not None
    zeros, axes = (0,) * len(target.shape), tuple((axis, 1) for axis in range(len(target.shape)))
    box = tuple((0, extent) for extent in target.shape)
    slot = ViewSlot(number, zeros, axes, target.shape, target.root.itemsize)
    return op.target, slot, WindowSpec(target.root.dtype, box, (), True, None, identity.value)


def rows_of(run: RegionRun, roots: Sequence[Root]) -> tuple[tuple[int, int] | None, ...] | None:
    """See `Arguments.rows`."""
    op = run.region.op
    if 0 not in run.cut or not run.region.touched.traced:
        return None
    keeps = isinstance(op, ir.Reduce) and op.extents and run.cut == (0,)
    if not (isinstance(op, ir.Map) or keeps or run.private):
        return None
    found: list[tuple[int, int] | None] = []
    for root in roots:
        along = [
            next(iter(run.space.forms(access, array)), None)
            for access, array in (*run.reads, *run.writes)
            if array.root is root
        ]
        known = [form for form in along if form is not None and form.axis == 0 and form.factor == 1]
        follow = len(known) == len(along) > 0
        found.append((min(form.low for form in known), max(form.high for form in known)) if follow else None)
    return (*found, None) if run.private else tuple(found)
