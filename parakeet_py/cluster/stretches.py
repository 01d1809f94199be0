"""Blocks of a Map in stretches along their first axis, so that chunks need not be copied to stand beside their halos.

A window with a halo is put together from the block's own chunk and slices of neighbours: a copy of the whole chunk for
some rows more. Where only the first and the last rows of a block read a halo, these get windows of their own, and what
is between reads the chunk where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parakeet_py.base.types import itemsize
from parakeet_py.cluster.arrays import LazyArray, Place
from parakeet_py.cluster.planned_call import RegionRun
from parakeet_py.cluster.windows import Snapshot, hull
from parakeet_py.cluster.worker.buffers import Box, Piece, WindowSpec, clipped, is_in, volume
from parakeet_py.cluster.worker.tasks import Stretch
from parakeet_py.hybrid.partition.access import Access
from parakeet_py.typed_ir import ir

LEAST = 1 << 18  # bytes of a window that is worth it
Cuts = tuple[tuple[int, int, tuple[Box | None, ...]], ...]  # first and last row, and boxes of windows by their numbers


def stretches_of(
    run: RegionRun,
    snapshots: Sequence[Snapshot],
    place: Place,
    specs: Sequence[WindowSpec],
    known: dict[object, Any],
) -> tuple[Stretch, ...]:
    """The stretches of a block; none if it had better run in one. `known` has what an equal block was told, and holds
    the windows."""
    what = "stretches", place, *map(id, specs)
    found: tuple[Stretch, ...] | None = known.get(what)
    if found is None:
        found = known[what] = _stretches(run, snapshots, place, specs, known)
    return found


def _stretches(
    run: RegionRun,
    snapshots: Sequence[Snapshot],
    place: Place,
    specs: Sequence[WindowSpec],
    known: dict[object, Any],
) -> tuple[Stretch, ...]:
    large = [
        number
        for number, spec in enumerate(specs)
        if len(spec.pieces) > 1 and not spec.written and volume(spec.box) * itemsize(spec.dtype) >= LEAST
    ]
    if not large or not isinstance(run.region.op, ir.Map) or 0 not in run.cut:
        return ()
    key = "cuts", place
    if key not in known:
        known[key] = _cuts(run, snapshots, place, specs, large)
    return tuple(
        Stretch(
            first,
            last,
            tuple(None if box is None else clipped(spec, box) for spec, box in zip(specs, boxes, strict=True)),
        )
        for first, last, boxes in known[key]
    )


def _cuts(
    run: RegionRun, snapshots: Sequence[Snapshot], place: Place, specs: Sequence[WindowSpec], large: Sequence[int]
) -> Cuts:
    lo, hi = run.axes[0][place[0]], run.axes[0][place[0] + 1]
    before = behind = 0
    for number in large:
        own = _own(specs[number])
        for axis in _first_axes(run, snapshots[number]):
            before = max(before, own.box[axis][0] - specs[number].box[axis][0])
            behind = max(behind, specs[number].box[axis][1] - own.box[axis][1])
    if not before + behind or before + behind >= (hi - lo) // 2:
        return ()
    found = []
    inside = 0
    for first, last in ((0, before), (before, hi - lo - behind), (hi - lo - behind, hi - lo)):
        if first == last:
            continue
        boxes: list[Box | None] = [None] * len(specs)
        for number in large:
            some = _boxes(run, snapshots[number], place, (lo + first, lo + last))
            boxes[number] = hull(some) if some else tuple((start, start) for start, _ in specs[number].box)
            box = boxes[number]
            inside += first == before and box is not None and is_in(box, _own(specs[number]).box)
        found.append((first, last, tuple(boxes)))
    return tuple(found) if inside else ()


def _own(spec: WindowSpec) -> Piece:
    return max(spec.pieces, key=lambda piece: volume(piece.box))


def _reads(run: RegionRun, snapshot: Snapshot) -> list[tuple[Access, LazyArray]]:
    return [(access, array) for access, array in run.reads if array.root is snapshot.root]


def _first_axes(run: RegionRun, snapshot: Snapshot) -> set[int]:
    """The axes of a root that follow the first axis of the index space."""
    return {
        axis
        for access, array in _reads(run, snapshot)
        for axis, form in enumerate(run.space.forms(access, array))
        if form is not None and form.axis == 0
    }


def _boxes(run: RegionRun, snapshot: Snapshot, place: Place, rows: tuple[int, int]) -> list[Box]:
    bounds = {axis: (run.axes[axis][at], run.axes[axis][at + 1]) for axis, at in enumerate(place)}
    part = run.space.part({**bounds, 0: rows})
    found: dict[Box, None] = {}
    for access, array in _reads(run, snapshot):
        box = [(start, start + 1) for start in array.starts]
        spans = [part.along(index, extent) for index, extent in zip(access.indices, array.shape, strict=True)]
        if any(span is None for span in spans):
            continue
        for span, (axis, step) in zip(spans, array.axes, strict=True):
            if axis >= 0 and span is not None:
                ends = array.starts[axis] + step * span[0], array.starts[axis] + step * (span[1] - 1)
                box[axis] = min(ends), max(ends) + 1
        found[tuple(box)] = None
    return list(found)
