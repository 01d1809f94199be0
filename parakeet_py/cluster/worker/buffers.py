"""Buffers of a task: windows of arrays, and how parts of regions and NumPy see arrays in them.

A window holds a box of an array's elements. Machine code indexes arrays as if they were all there, so the address that
it is given is where element 0 would be; only elements of the box are touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.plan.host_memory import empty

Box = tuple[tuple[int, int], ...]


class ScalarSlot(NamedTuple):
    """A scalar argument of a part: known, or the value at a place among those of the task."""

    value: Any
    place: int = -1


class ViewSlot(NamedTuple):
    """An array argument of a part: a view of a window's array.

    Attributes
    ----------
    window : its number; -1 if no element is touched
    starts : where the view begins along each axis of the window's array
    axes : of the view: the axis of the window's array, or -1, and the step along it
    shape, itemsize : of the view
    """

    window: int
    starts: tuple[int, ...]
    axes: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    itemsize: int


class Piece(NamedTuple):
    """What a window takes of a value of its task, or of an item of that: a box of the array, whose first element is at
    `at` in the value."""

    place: int
    box: Box
    at: tuple[int, ...]
    item: int = -1

    def of(self, values: Sequence[Any]) -> Any:
        """The value."""
        return values[self.place] if self.item < 0 else values[self.place][self.item]


class WindowSpec(NamedTuple):
    """A window of one task: its box, where elements come from, whether the part stores into it, a box of elements that
    are not needed, as the part stores into all of them and reads none, and what it is filled with at first."""

    dtype: str
    box: Box
    pieces: tuple[Piece, ...]
    written: bool
    skipped: Box | None = None
    fill: Any = None


class MachineArray:
    """An array as machine code sees it: the address of element 0, extents and strides."""

    __slots__ = ("__array_interface__", "buffer", "shape", "strides")

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], buffer: Any) -> None:
        self.__array_interface__ = {"data": (address, False)}
        self.shape, self.strides, self.buffer = shape, strides, buffer


def volume(box: Sequence[tuple[int, int]]) -> int:
    """How many elements a box has."""
    size = 1
    for lo, hi in box:
        size *= max(hi - lo, 0)
    return size


def is_in(box: Sequence[tuple[int, int]], outer: Sequence[tuple[int, int]]) -> bool:
    """Whether all of a box is in another one."""
    return all(a <= lo and hi <= b for (lo, hi), (a, b) in zip(box, outer, strict=True))


def clipped(spec: WindowSpec, box: Box) -> WindowSpec:
    """A window of some of another one's box, from the same values."""
    found = []
    for piece in spec.pieces:
        here = tuple((max(lo, a), min(hi, b)) for (lo, hi), (a, b) in zip(piece.box, box, strict=True))
        if all(lo < hi for lo, hi in here):
            moved = tuple(a + new - old for a, (old, _), (new, _) in zip(piece.at, piece.box, here, strict=True))
            found.append(piece._replace(box=here, at=moved))
    return WindowSpec(spec.dtype, box, tuple(found), spec.written)


def window(
    spec: WindowSpec, values: Sequence[Any], together: bool = False, anywhere: bool = False
) -> np.ndarray[Any, Any]:
    """The buffer of a window, which nothing else changes if the part stores into it. `together`: contiguous;
    `anywhere`: it need not be aligned, as chunks that have come with a message may not be."""
    box = spec.box
    if len(spec.pieces) == 1 and not spec.written and spec.pieces[0].box == box:
        at = spec.pieces[0].at
        found = np.asarray(spec.pieces[0].of(values), spec.dtype)
        if any(at) or found.shape != tuple(hi - lo for lo, hi in box):
            found = found[tuple(slice(a, a + hi - lo) for a, (lo, hi) in zip(at, box, strict=True))]
        rows = found.ndim == 0 or found.size == 0 or found.strides[-1] == found.itemsize
        moves = 0 not in found.strides  # of what has been broadcast, axes of extent 1 too have none
        aligned = anywhere or found.flags.aligned
        if rows and moves and aligned and not (together and not found.flags.c_contiguous):
            return found
        return np.array(found, order="C")
    made = empty([hi - lo for lo, hi in box], spec.dtype)
    if spec.fill is not None:
        made.fill(spec.fill)
    for piece in spec.pieces:
        whole, value = piece.box, np.asarray(piece.of(values))
        origin = [a - lo for a, (lo, _) in zip(piece.at, whole, strict=True)]
        for inner in (whole,) if spec.skipped is None else without(whole, spec.skipped):
            target = tuple(slice(lo - first, hi - first) for (lo, hi), (first, _) in zip(inner, box, strict=True))
            source = tuple(slice(lo + shift, hi + shift) for shift, (lo, hi) in zip(origin, inner, strict=True))
            made[target] = value[source]
    return made


def without(whole: Box, skipped: Box) -> list[Box]:
    """The boxes that are left of one without another."""
    common = [(max(lo, a), min(hi, b)) for (lo, hi), (a, b) in zip(whole, skipped, strict=True)]
    if not all(lo < hi for lo, hi in common):
        return [whole]
    found, left = [], list(whole)
    for axis, (lo, hi) in enumerate(common):
        first, last = left[axis]
        for ends in ((first, lo), (hi, last)):
            if ends[0] < ends[1]:
                found.append((*left[:axis], ends, *left[axis + 1 :]))
        left[axis] = lo, hi
    return found


def machine_view(
    slot: ViewSlot, windows: Sequence[WindowSpec], buffers: Sequence[np.ndarray[Any, Any]]
) -> MachineArray:
    if slot.window < 0:
        return MachineArray(0, slot.shape, packed_strides(slot.shape, slot.itemsize), None)
    buffer, box = buffers[slot.window], windows[slot.window].box
    strides = buffer.strides
    address = buffer.__array_interface__["data"][0]
    for start, (lo, _), stride in zip(slot.starts, box, strides, strict=True):
        address += (start - lo) * stride
    own = tuple(0 if axis < 0 else strides[axis] * step for axis, step in slot.axes)
    return MachineArray(address, slot.shape, own, buffer)


def packed_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides of a C-contiguous array."""
    strides, size = [], itemsize
    for extent in reversed(shape):
        strides.append(size)
        size *= max(extent, 1)
    return tuple(reversed(strides))


def numpy_view(spec: WindowSpec, slot: ViewSlot, values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """A view of a window's array, as NumPy has it."""
    return indexed(window(spec, values), spec.box, slot)


def indexed(buffer: np.ndarray[Any, Any], box: Box, slot: ViewSlot) -> np.ndarray[Any, Any]:
    """A view of the array whose box a buffer holds; axes along which memory does not move have extent 1."""
    index: list[Any] = [start - lo for start, (lo, _) in zip(slot.starts, box, strict=True)]
    for (axis, step), extent in zip(slot.axes, slot.shape, strict=True):
        if axis >= 0:
            stop = index[axis] + step * extent
            index[axis] = slice(index[axis], None if stop < 0 else stop, step) if extent else slice(0, 0)
    found = np.asarray(buffer)[(*index, ...)]
    own = [axis for axis, _ in slot.axes if axis >= 0]
    found = np.transpose(found, [sorted(own).index(axis) for axis in own])
    return found[(*(np.newaxis if axis < 0 else slice(None) for axis, _ in slot.axes), ...)]
