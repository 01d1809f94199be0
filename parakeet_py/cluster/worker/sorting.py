"""Tasks of a line that is sorted in pieces: sorted runs, where they are cut, and what is put together from them.

The line's chunks are sorted each on its own. Chunk k of the result begins at a rank that is known; what is sought is
how many elements of each run come before it. Between two bounds on the element of that rank, every run tells some of
its elements; from these follow closer bounds, until the element itself is known (multiple selection by samples, after
Frederickson and Johnson's selection in sorted columns). Equal elements stand in the order of the runs, so the whole is
as stable as the sorts are. Values are compared by NumPy's own sorting functions: NaN is last.

An `argsort` is the same with runs of two arrays, the values and their places in the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.cluster.worker.buffers import ViewSlot, WindowSpec, numpy_view

Values = np.ndarray[Any, Any]
Run = Values | tuple[Values, Values]
Counts = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


class Bounds(NamedTuple):
    """What is known of the elements of some ranks: they are not before `low` nor behind `high`, and are `low` where it
    is `found`."""

    low: Values
    high: Values
    found: np.ndarray[Any, np.dtype[np.bool_]]


class Told(NamedTuple):
    """What a run tells for one rank: how many of its elements are before the lower bound, not behind it, before the
    upper bound; and some of those in between, with their places."""

    before: int
    through: int
    last: int
    places: Counts
    samples: Values


def sorted_rows(spec: WindowSpec, slot: ViewSlot, shape: tuple[int, ...], *values: Any) -> Values:
    """The lines of a block, each sorted, as a chunk of its shape."""
    return np.sort(np.broadcast_to(numpy_view(spec, slot, values), slot.shape), axis=-1, kind="stable").reshape(shape)


def sorted_with_places(spec: WindowSpec, slot: ViewSlot, first: int, *values: Any) -> Run:
    """A piece of a line, sorted, and the places of its elements in the line; it begins at `first`."""
    line = numpy_view(spec, slot, values).reshape(-1)
    order = np.argsort(line, kind="stable")
    return line[order], order + first


def places_in_order(spec: WindowSpec, slot: ViewSlot, shape: tuple[int, ...], *values: Any) -> Values:
    """The places of the elements of a block's lines, in order, as a chunk of its shape."""
    lines = np.broadcast_to(numpy_view(spec, slot, values), slot.shape)
    return np.argsort(lines, axis=-1, kind="stable").reshape(shape)


def told(run: Run, bounds: Bounds | None, ranks: int, most: int) -> tuple[Told, ...]:
    """What a run tells of each rank between the bounds that are known so far."""
    values = _values(run)
    if bounds is None:
        places = _spread(0, values.size, most)
        return (Told(0, 0, values.size, places, values[places]),) * ranks
    before = np.searchsorted(values, bounds.low, "left")
    through = np.searchsorted(values, bounds.low, "right")
    last = np.maximum(np.searchsorted(values, bounds.high, "left"), through)
    answers = []
    for number in range(ranks):
        first, stop = int(through[number]), int(last[number])
        places = _spread(first, first if bounds.found[number] else stop, most)
        answers.append(Told(int(before[number]), first, stop, places, values[places]))
    return tuple(answers)


def _values(run: Run) -> Values:
    return run[0] if isinstance(run, tuple) else run


def _spread(first: int, stop: int, most: int) -> Counts:
    """Places in a range, its ends among them; all, if they are not too many."""
    if stop - first <= most:
        return np.arange(first, stop)
    return np.unique(np.linspace(first, stop - 1, most).astype(np.int64))


def closer(ranks: tuple[int, ...], bounds: Bounds | None, *runs: Sequence[Told]) -> Bounds:
    """Closer bounds on the elements of some ranks, from what all runs have told."""
    found: list[tuple[Any, Any, bool]] = []
    for number, rank in enumerate(ranks):
        own = [run[number] for run in runs]
        if bounds is None:
            found.append(_between(rank, None, own))
            continue
        low, high = bounds.low[number], bounds.high[number]
        if bounds.found[number] or rank < sum(one.through for one in own):
            found.append((low, low, True))
        elif rank >= sum(one.last for one in own):
            found.append((high, high, True))
        else:
            found.append(_between(rank, (low, high), own))
    dtype = runs[0][0].samples.dtype
    lows, highs, flags = zip(*found, strict=True)
    return Bounds(np.array(lows, dtype), np.array(highs, dtype), np.array(flags, np.bool_))


def _between(rank: int, known: tuple[Any, Any] | None, runs: Sequence[Told]) -> tuple[Any, Any, bool]:
    """Closer bounds on the element of a rank that is behind the lower and before the upper one."""
    samples = np.sort(np.concatenate([run.samples for run in runs]), kind="stable")
    at_most = np.zeros(samples.size, np.int64)  # elements before each sample
    at_least = np.zeros(samples.size, np.int64)  # elements that are not behind it
    for run in runs:
        ends = np.append(run.places, run.last)
        at_most += ends[np.searchsorted(run.samples, samples, "left")]
        starts = np.insert(run.places + 1, 0, run.through)
        at_least += starts[np.searchsorted(run.samples, samples, "right")]
    lower = int(np.searchsorted(at_most, rank, "right")) - 1
    upper = int(np.searchsorted(at_least, rank, "right"))
    low = samples[lower] if lower >= 0 or known is None else known[0]
    high = samples[upper] if upper < samples.size or known is None else known[1]
    return low, high, lower >= 0 and upper <= lower


def cuts(ranks: tuple[int, ...], bounds: Bounds, *runs: Sequence[Told]) -> Counts:
    """How many elements of each run come before some ranks: an array of ranks and runs.

    Raises
    ------
    AssertionError
        The elements of the ranks are not known.
    """
    assert bounds.found.all()
    found = np.zeros((len(ranks), len(runs)), np.int64)
    for number, rank in enumerate(ranks):
        before = np.array([run[number].before for run in runs])
        equal = np.array([run[number].through for run in runs]) - before
        left = rank - before.sum() - (np.cumsum(equal) - equal)  # that equal ones of this run and later ones make up
        found[number] = before + np.clip(left, 0, equal)
    return found


def piece(run: Run, cut: Counts, number: int, chunk: int) -> Run:
    """What a run has of a chunk of the result."""
    first = cut[chunk - 1, number] if chunk else 0
    last = cut[chunk, number] if chunk < len(cut) else _values(run).size
    return (run[0][first:last], run[1][first:last]) if isinstance(run, tuple) else run[first:last]


def merged(shape: tuple[int, ...], *pieces: Run) -> Values:
    """A chunk of the result."""
    values = np.concatenate([_values(one) for one in pieces])
    places = [one[1] for one in pieces if isinstance(one, tuple)]
    if not places:
        return np.sort(values, kind="stable").reshape(shape)
    found: Values = np.concatenate(places)[np.argsort(values, kind="stable")].reshape(shape)
    return found
