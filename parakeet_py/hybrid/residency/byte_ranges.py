"""Sets of bytes as sorted bounds: [a, b) and [c, d) are (a, b, c, d), a tuple, or an array of NumPy's of many.

Which bytes of an array's memory are valid somewhere, missing there, written by a part: all are such sets, and all that
is done with them is union, intersection and difference. `bytes_of_box` gives the bytes of a box of elements in an
array of any strides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Spans = tuple[int, ...] | np.ndarray[Any, np.dtype[np.int64]]
NOTHING: Spans = ()
FEW = 32  # bounds that are a tuple
_END = 1 << 62
MANY_SPANS = 1 << 16  # a box of more pieces is taken as one, where that does no harm


def span(start: int, stop: int) -> Spans:
    """One span; nothing if it is empty."""
    return (start, stop) if start < stop else NOTHING


def _spans(bounds: np.ndarray[Any, Any]) -> Spans:
    return bounds if len(bounds) > FEW else tuple(bounds.tolist())


def same(left: Spans, right: Spans) -> bool:
    """Whether two sets have the same bytes."""
    if len(left) != len(right):
        return False
    return left == right if isinstance(left, tuple) else np.array_equal(left, right)


def union(left: Spans, right: Spans) -> Spans:
    if not len(left) or not len(right):
        return left if len(left) else right
    if len(left) == len(right) == 2:  # as most sets are
        (a, b), (c, d) = left, right
        if a <= c and d <= b:
            return left
        if c <= a and b <= d:
            return right
        if a <= d and c <= b:
            return (min(a, c), max(b, d))
    return _merged(left, right, np.logical_or)


def intersection(left: Spans, right: Spans) -> Spans:
    if not len(left) or not len(right):
        return NOTHING
    if len(left) == len(right) == 2:
        (a, b), (c, d) = left, right
        if a <= c and d <= b:
            return right
        return left if c <= a and b <= d else span(max(a, c), min(b, d))
    return _merged(left, right, np.logical_and)


def difference(left: Spans, right: Spans) -> Spans:
    if not len(left) or not len(right):
        return left
    if len(left) == len(right) == 2:
        (a, b), (c, d) = left, right
        if d <= a or b <= c:
            return left
        if c <= a or b <= d:
            return span(a, c) if a < c else span(d, b)
    return _merged(left, right, np.greater)


def _merged(left: Spans, right: Spans, keep: Callable[..., Any]) -> Spans:
    """The bytes for which `keep(in left, in right)`."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return _merged_few(left, right, keep)
    bounds = np.union1d(left, right)
    inside_left = np.searchsorted(left, bounds, side="right") % 2 == 1
    inside_right = np.searchsorted(right, bounds, side="right") % 2 == 1
    inside = keep(inside_left, inside_right)
    changes = inside != np.concatenate(([False], inside[:-1]))
    return _spans(bounds[changes])


def _merged_few(left: tuple[int, ...], right: tuple[int, ...], keep: Callable[..., Any]) -> Spans:
    """The same of few spans, one bound after the other: NumPy takes longer to begin."""
    found: list[int] = []
    i = j = 0
    inside = 0
    both, either = keep is np.logical_and, keep is np.logical_or
    left, right = (*left, _END), (*right, _END)
    while True:
        one, other = left[i], right[j]
        bound = one if one < other else other
        if bound == _END:
            return tuple(found) if len(found) <= FEW else np.array(found, np.int64)
        i += one == bound
        j += other == bound
        now = i & j & 1 if both else (i | j) & 1 if either else i & ~j & 1
        if now != inside:
            found.append(bound)
            inside = now


def size_of(spans: Spans) -> int:
    if len(spans) == 2:
        start, stop = spans
        return stop - start
    if isinstance(spans, tuple):
        return sum(spans[1::2]) - sum(spans[::2])
    return int((spans[1::2] - spans[::2]).sum())


def pieces(spans: Spans) -> Iterator[tuple[int, int]]:
    """The (start, stop) of every span."""
    bounds = spans if isinstance(spans, tuple) else spans.tolist()
    return zip(bounds[::2], bounds[1::2], strict=True)


class Rows(NamedTuple):
    """Spans of one length at equal distances.

    Attributes
    ----------
    start : of the first
    width : bytes of each
    pitch : from the start of one to that of the next; 0 if there is one only
    height : how many there are
    """

    start: int
    width: int
    pitch: int
    height: int

    @property
    def first(self) -> Rows:
        """The first one alone."""
        return Rows(self.start, self.width, 0, 1)


def rows_of(spans: Spans) -> Iterator[Rows]:
    """The spans in order, as few groups that lie regularly: what one pitched copy moves."""
    if not len(spans):
        return
    if len(spans) == 2:
        start, stop = spans
        yield Rows(start, stop - start, 0, 1)
        return
    spans = np.asarray(spans, np.int64)
    starts, widths = spans[::2], spans[1::2] - spans[::2]
    steps = np.diff(starts)
    breaks = np.flatnonzero((widths[1:] != widths[:-1]) | np.concatenate(([False], steps[1:] != steps[:-1]))) + 1
    first = 0
    for end in (*breaks.tolist(), len(starts)):
        if end <= first:
            continue
        if end - first == 1 and end < len(starts) and widths[end] == widths[first]:
            continue  # the first of those that follow, whose distance is another one
        pitch = int(steps[first]) if end - first > 1 else 0
        yield Rows(int(starts[first]), int(widths[first]), pitch, end - first)
        first = end


def in_rows(memory: np.ndarray[Any, Any], rows: Rows) -> np.ndarray[Any, Any]:
    """The bytes of rows: one axis if there is one row, else two."""
    start, width, pitch, height = rows
    if height == 1:
        return memory[start : start + width]
    return np.ndarray((height, width), np.uint8, memory, start, (pitch, 1))


def bytes_of_box(array: np.ndarray[Any, Any], base: int, box: tuple[tuple[int, int], ...], exact: bool) -> Spans:
    """`bytes_in_box` of an array of the host, counted from the address `base`."""
    return bytes_in_box(array.__array_interface__["data"][0] - base, array.strides, array.itemsize, box, exact)


def bytes_in_box(
    first: int, all_strides: Sequence[int], itemsize: int, box: tuple[tuple[int, int], ...], exact: bool
) -> Spans:
    """The bytes of the elements in a box of an array whose element 0 is at byte `first`.

    Without `exact`, a box of very many pieces is taken with everything between them.
    """
    axes = []
    for (start, stop), stride in zip(box, all_strides, strict=True):
        if start >= stop:
            return NOTHING
        first += start * stride
        if stop - start > 1 and stride:
            if stride < 0:
                first += (stop - start - 1) * stride
            axes.append((abs(stride), stop - start))
    run = itemsize
    outer: list[tuple[int, int]] = []
    for stride, extent in sorted(axes):
        if stride <= run and not outer:
            run = (extent - 1) * stride + run  # neighbours, or overlapping themselves
        else:
            outer.append((stride, extent))
    if not outer:
        return (first, first + run)
    count = 1
    for _, extent in outer:
        count *= extent
    if count > MANY_SPANS and not exact:
        return span(first, first + run + sum((extent - 1) * stride for stride, extent in outer))
    starts = np.array([first], np.int64)
    for stride, extent in reversed(outer):
        starts = (starts[:, None] + np.arange(extent, dtype=np.int64) * stride).ravel()
    starts.sort()
    bounds = np.empty(2 * len(starts), np.int64)
    bounds[::2], bounds[1::2] = starts, starts + run
    apart = np.concatenate(([True], bounds[2::2] > np.maximum.accumulate(bounds[1:-1:2])))
    if apart.all():
        return _spans(bounds)
    ends = np.maximum.accumulate(bounds[1::2])
    last = np.concatenate((np.flatnonzero(apart)[1:] - 1, [len(starts) - 1]))
    return _spans(np.column_stack((starts[apart], ends[last])).ravel())
