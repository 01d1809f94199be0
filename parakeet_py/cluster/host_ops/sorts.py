"""Sorts of arrays in several chunks: lines that lie in one chunk each, after the array has been cut anew if need be,
and long lines in pieces.

Lines in one chunk each are sorted block by block. Where there are as many lines as chunks along them, or more, whole
lines are put together from slices first. A few long lines become sorted chunks; in some rounds, a small task asks all
of these where the chunks of the result begin (`worker.sorting`); each then gives a piece for each chunk of the result,
and a task puts a chunk together from its pieces.

Sorts are stable whatever is asked for, as on GPUs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any

from dask._task_spec import TaskRef

from parakeet_py.base import routines
from parakeet_py.cluster.arrays import LazyArray, Root
from parakeet_py.cluster.planned_call import PlannedCall
from parakeet_py.cluster.products import store_array
from parakeet_py.cluster.report import RegionReport
from parakeet_py.cluster.windows import Snapshot, TaskInputs, Windows
from parakeet_py.cluster.worker import buffers, sorting

SAMPLES = 4096  # that a rank takes from all runs in a round


def is_cut(call: PlannedCall, name: str, arrays: Sequence[LazyArray]) -> bool:
    """Whether a routine is a sort of an array that is large and in several chunks."""
    family, lines = routines.family(name), arrays[-1]
    if family not in ("sort", "argsort") or lines.root.chunks is None or not call.is_large(lines.root):
        return False
    if family == "argsort":
        places = arrays[0]
        if not (places.root.is_index and places.root.version == 0 and _covers(places)):
            return False
    return _covers(lines) and all(lines.shape)


def _covers(lines: LazyArray) -> bool:
    """Whether lines are all of an array with at most one axis more than they have."""
    root, ((first, step), (along, unit)) = lines.root, lines.axes
    if along < 0 or unit != 1 or any(lines.starts) or lines.shape[1] != root.shape[along]:
        return False
    if first < 0:
        return len(root.shape) == 1 and lines.shape[0] == 1
    return len(root.shape) == 2 and step == 1 and lines.shape[0] == root.shape[first]


def run_sort(call: PlannedCall, name: str, line: int, arrays: Sequence[LazyArray]) -> None:
    """Sort lines in place, or find the places of their elements in order, in blocks or in pieces."""
    target, lines = arrays[0], arrays[-1]
    call.may_store(target.root, line)
    before = len(call.graph.tasks)
    windows = Windows(call.graph)
    (first, _), (along, _) = lines.axes
    inner = _apart(lines.root.bounds[along])
    outer = _apart(lines.root.bounds[first]) if first >= 0 else [0, 1]
    count = lines.shape[0]
    if len(inner) > 2 and count >= len(inner) - 1:
        outer, inner = [count * at // (len(inner) - 1) for at in range(len(inner))], [0, lines.shape[1]]
    if len(inner) == 2:
        made = _sorted_blocks(call, windows, target, lines, outer)
        join = "side by side"
    else:
        made = _sorted_lines(call, windows, target, lines, inner)
        join = "partitions"
    blocks = tuple(len(extents) for extents in made.chunks or ())
    _store(call, target, made)
    call.told(RegionReport(name, line, blocks, join, len(call.graph.tasks) - before, windows.moved))


def _apart(bounds: Sequence[int]) -> list[int]:
    """Boundaries of chunks without empty ones, unless there is nothing else."""
    found = sorted({*bounds})
    return found if len(found) > 1 else [*found, *found]


def _store(call: PlannedCall, target: LazyArray, made: Root) -> None:
    """Let what is sorted be the array."""
    root = target.root
    if target.is_whole():
        assert made.chunks is not None
        root.cut(made.chunks)
        root.keys = made.keys
        root.changed()
    elif len(root.shape) == 1:
        assert made.chunks is not None
        root.cut(made.chunks[1:])
        root.keys = {place[1:]: key for place, key in made.keys.items()}
        root.changed()
    else:
        store_array(call, target, LazyArray.of(made))


def _block(
    windows: Windows, inputs: TaskInputs, snapshot: Snapshot, lines: LazyArray, box: Sequence[tuple[int, int]]
) -> tuple[buffers.WindowSpec, buffers.ViewSlot]:
    part = lines.view([lo for lo, _ in box], [(axis, hi - lo, 1) for axis, (lo, hi) in enumerate(box)])
    spec = windows.spec(inputs, snapshot, [part.box()], False, True)
    return spec, buffers.ViewSlot(0, part.starts, part.axes, part.shape, part.root.itemsize)


def _shape(lines: LazyArray, *extents: int) -> tuple[int, ...]:
    """Of a chunk with so many lines of such a length."""
    return extents if len(lines.root.shape) == 2 else extents[1:]


def _new(lines: LazyArray, *bounds: Sequence[int]) -> Root:
    chunks = tuple(tuple(b - a for a, b in itertools.pairwise(along)) for along in bounds)
    return Root(lines.shape, lines.root.dtype, lines.root.itemsize, chunks)


def _sorted_blocks(
    call: PlannedCall, windows: Windows, target: LazyArray, lines: LazyArray, outer: Sequence[int]
) -> Root:
    """Blocks of whole lines."""
    snapshot, prefix, extent = Snapshot(lines.root), call.graph.prefix("sort"), lines.shape[1]
    made = _new(target, outer, [0, extent])
    function = sorting.sorted_rows if target is lines else sorting.places_in_order
    for number, (lo, hi) in enumerate(itertools.pairwise(outer)):
        inputs = TaskInputs()
        what = _block(windows, inputs, snapshot, lines, [(lo, hi), (0, extent)])
        given = *what, _shape(target, hi - lo, extent), *inputs.refs()
        made.keys[number, 0] = call.graph.add((prefix, number), function, *given)
    return made


def _sorted_lines(
    call: PlannedCall, windows: Windows, target: LazyArray, lines: LazyArray, inner: Sequence[int]
) -> Root:
    """Lines whose pieces are sorted side by side."""
    made = _new(target, range(lines.shape[0] + 1), inner)
    snapshot, prefix = Snapshot(lines.root), call.graph.prefix("sort")
    for row in range(lines.shape[0]):
        runs: list[Hashable] = []
        for number, ends in enumerate(itertools.pairwise(inner)):
            inputs = TaskInputs()
            spec, slot = _block(windows, inputs, snapshot, lines, [(row, row + 1), ends])
            key = f"{prefix}-run", row, number
            given: tuple[Any, ...]
            if target is lines:
                given = spec, slot, (ends[1] - ends[0],), *inputs.refs()
                runs.append(call.graph.add(key, sorting.sorted_rows, *given))
            else:
                runs.append(call.graph.add(key, sorting.sorted_with_places, spec, slot, ends[0], *inputs.refs()))
        keys = _partitions(call, runs, list(inner), (prefix, row), target)
        made.keys |= {(row, number): key for number, key in enumerate(keys)}
        call.graph.moved += lines.shape[1] * lines.root.itemsize
    return made


def _partitions(
    call: PlannedCall, runs: Sequence[Hashable], inner: Sequence[int], name: tuple[str, int], lines: LazyArray
) -> list[Hashable]:
    """The chunks of a sorted line, from sorted runs."""
    graph, (prefix, row), ranks = call.graph, name, tuple(inner[1:-1])
    most = max(SAMPLES // len(runs), 64)
    bounds: Hashable | None = None

    def asked(turn: int) -> list[TaskRef]:
        known = None if bounds is None else TaskRef(bounds)
        return [
            TaskRef(
                graph.add((f"{prefix}-told", row, turn, number), sorting.told, TaskRef(run), known, len(ranks), most)
            )
            for number, run in enumerate(runs)
        ]

    turns = rounds_for(inner[-1], most)
    for turn in range(turns):
        known = None if bounds is None else TaskRef(bounds)
        bounds = graph.add((f"{prefix}-closer", row, turn), sorting.closer, ranks, known, *asked(turn))
    assert bounds is not None
    cut = graph.add((f"{prefix}-cuts", row), sorting.cuts, ranks, TaskRef(bounds), *asked(turns))
    found = []
    for chunk, (lo, hi) in enumerate(itertools.pairwise(inner)):
        pieces = []
        for number, run in enumerate(runs):
            key = f"{prefix}-piece", row, chunk, number
            graph.apart.add(key)
            pieces.append(TaskRef(graph.add(key, sorting.piece, TaskRef(run), TaskRef(cut), number, chunk)))
        shape = _shape(lines, 1, hi - lo)
        found.append(graph.add((f"{prefix}-merged", row, chunk), sorting.merged, shape, *pieces))
    return found


def rounds_for(length: int, most: int) -> int:
    """How often runs have to be asked until the elements of all ranks are known: elements between the bounds become
    fewer by half the number of samples of a run, until runs tell them all; then a round finds the element."""
    return 2 + math.ceil(max(math.log(max(length / most, 1.0), most / 2), 0.0))
