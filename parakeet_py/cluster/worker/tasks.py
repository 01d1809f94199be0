"""What tasks do: a part of a region over a block, how partial results are joined, how chunks are put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base import routines
from parakeet_py.cluster.worker.buffers import (
    Box,
    ViewSlot,
    WindowSpec,
    indexed,
    machine_view,
    numpy_view,
    window,
)
from parakeet_py.cluster.worker.kernel import Kernel
from parakeet_py.cluster.worker.resident import device_here, on_host
from parakeet_py.hybrid.plan.host_memory import empty


class Arguments(NamedTuple):
    """What all tasks of a region have alike.

    Attributes
    ----------
    filled : the dtypes of the arrays that a part fills
    free : its arguments after these
    rows : if a part can be run on some rows of its block: of each window the least and the greatest row, counted from
        the row of the index space, that is touched along the first axis of the array; None if that is not all
    """

    filled: tuple[str, ...]
    free: tuple[Any, ...]
    rows: tuple[tuple[int, int] | None, ...] | None = None


class Value(NamedTuple):
    """An argument of one of several tasks that are one: what it is among the values, or an item of that."""

    place: int
    item: int = -1


class Stretch(NamedTuple):
    """Some of a block along its first axis, counted from the block's beginning, and the windows that only it has, in
    the places of the block's."""

    first: int
    last: int
    windows: tuple[WindowSpec | None, ...]


def run_part(
    kernel: Kernel,
    common: Arguments,
    los: tuple[int, ...],
    counts: tuple[int, ...],
    windows: tuple[WindowSpec, ...],
    stretches: tuple[Stretch, ...],
    *values: Any,
) -> Any:
    """A part over one block: the arrays that it fills, its results, and the windows that it stores into, in order.

    A block whose window would be put together from its own chunk and slices of neighbours runs in `stretches`: most of
    it reads the chunk where it is.
    """
    device = device_here()
    if device is not None:
        found = kernel.on_device(device, common, los, counts, windows, values)
        if found is not None:
            return found[0] if len(found) == 1 else tuple(found)
    alone = {number for stretch in stretches for number, own in enumerate(stretch.windows) if own is not None}
    buffers: list[Any] = [
        None if number in alone else window(spec, values, kernel.together, kernel.anywhere)
        for number, spec in enumerate(windows)
    ]
    filled = [empty(counts, dtype) for dtype in common.filled]
    results: list[Any] = []
    if not stretches:
        free = free_arguments(common.free, windows, buffers, values)
        results = kernel([*los, *counts, *filled, *free])
    for first, last, own in stretches:
        specs = [spec if mine is None else mine for spec, mine in zip(windows, own, strict=True)]
        held = [
            buffer if mine is None else window(mine, values, kernel.together, kernel.anywhere)
            for buffer, mine in zip(buffers, own, strict=True)
        ]
        some = [array[first:last] for array in filled]
        free = free_arguments(common.free, specs, held, values)
        kernel([los[0] + first, *los[1:], last - first, *counts[1:], *some, *free])
    stored = [buffer for buffer, spec in zip(buffers, windows, strict=True) if spec.written]
    found = [*filled, *results, *stored]
    return found[0] if len(found) == 1 else tuple(found)


def free_arguments(
    slots: Sequence[Any], windows: Sequence[WindowSpec], buffers: Sequence[Any], values: Sequence[Any]
) -> list[Any]:
    """The arguments of a part after its block and what it fills; None where there is no slot."""
    return [
        machine_view(slot, windows, buffers)
        if isinstance(slot, ViewSlot)
        else None
        if slot is None
        else values[slot.place]
        if slot.place >= 0
        else slot[0]
        for slot in slots
    ]


def take(value: Any, place: int) -> Any:
    """One of the results of a task."""
    return value[place]


def cut(value: Any, bounds: tuple[tuple[int, int], ...]) -> Any:
    """A slice of a chunk, for another one's window; the memory of most of a chunk is not held by it."""
    found = np.asarray(value[tuple(slice(lo, hi) for lo, hi in bounds)])
    return found.copy() if 2 * found.nbytes <= value.nbytes else found


def copied(value: Any) -> Any:
    """A chunk that belongs to one result alone."""
    return np.array(on_host(value))


def framed(value: Any, boxes: tuple[Box, ...]) -> tuple[Any, ...]:
    """Some slices of a chunk."""
    return tuple(np.array(cut(value, bounds)) for bounds in boxes)


def assembled(spec: WindowSpec, *values: Any) -> Any:
    """An array, or a chunk of one, from others."""
    return window(spec, values)


def fresh(shape: tuple[int, ...], dtype: str) -> Any:
    """A chunk of an array to which nothing has been stored: its elements are unspecified."""
    return np.zeros(shape, dtype)


def combined(kernel: Kernel, *partials: Any) -> Any:
    """Partial results in index order, combined."""
    function = kernel.function
    count = len(function.params) // 2
    total = _several(partials[0], count)
    for more in partials[1:]:
        total = kernel([*map(_rows, total), *map(_rows, _several(more, count))])
    return total[0] if count == 1 else tuple(total)


def _several(value: Any, count: int) -> list[Any]:
    return [value] if count == 1 else [*value]


def _rows(value: Any) -> Any:
    value = on_host(value)
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) and value.ndim else value


def scanned_after(kernel: Kernel, count: int, block: Any, *before: Any) -> Any:
    """A scanned block (its arrays, then its totals) with the totals of the blocks before it taken in."""
    arrays = [on_host(one) for one in block[:count]]
    if before:
        filled = [empty(one.shape, one.dtype) for one in arrays]
        totals = _several(before[0], count)
        kernel([*arrays[0].shape, *map(_rows, totals), *arrays, *filled])
        arrays = filled
    return arrays[0] if count == 1 else tuple(arrays)


def totals_of(count: int, block: Any) -> Any:
    """The totals of a scanned block, which are sent instead of it."""
    totals = block[count:]
    return totals[0] if count == 1 else tuple(totals)


def totals_before(kernel: Kernel, count: int, before: Any, total: Any) -> Any:
    """The totals of all blocks up to a scanned one, given those before it and its own."""
    totals = kernel([*map(_rows, _several(before, count)), *map(_rows, _several(total, count))])
    return totals[0] if count == 1 else tuple(totals)


def taken_in(kernel: Kernel, spec: WindowSpec, slot: ViewSlot, total: Any, *values: Any) -> Any:
    """All of an array, with what has been scattered into copies of a view of it combined with that view."""
    made = window(spec, values)
    target = indexed(made, spec.box, slot)
    (target[...],) = kernel([_rows(np.ascontiguousarray(target).reshape(target.shape)), _rows(total)])
    return made


def stored_element(chunk: Any, at: tuple[int, ...], value: Any) -> Any:
    """A chunk with one element changed."""
    made = np.array(chunk)
    made[at] = value
    return made


def product(left: tuple[WindowSpec, ViewSlot], right: tuple[WindowSpec, ViewSlot], *values: Any) -> Any:
    """A block of a product of matrices."""
    return np.matmul(numpy_view(*left, values), numpy_view(*right, values))


def stored(spec: WindowSpec, slot: ViewSlot, given: WindowSpec, *values: Any) -> Any:
    """A window with an array stored into a view of it."""
    made = window(spec, values)
    indexed(made, spec.box, slot)[...] = window(given, values)
    return made


def added(*values: Any) -> Any:
    """Blocks of products, added in order."""
    total = on_host(values[0]) + on_host(values[1])
    for value in map(on_host, values[2:]):
        total += value
    return total


def after(value: Any, *checks: Any) -> Any:
    """A chunk that is given only if checks have passed."""
    return value


def viewed(spec: WindowSpec, slot: ViewSlot, *values: Any) -> Any:
    """A view of a window's array, contiguous."""
    return np.array(np.broadcast_to(numpy_view(spec, slot, values), slot.shape), order="C")


def strided(base: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> Any:
    """A view by strides of an array in one chunk, contiguous."""
    if 0 in shape:
        return np.empty(shape, dtype)
    flat = np.ascontiguousarray(base).reshape(-1).view(np.uint8)
    return np.array(np.ndarray(shape, dtype, flat, offset, strides), order="C")


def joined_rows(shape: tuple[int, ...], pieces: tuple[tuple[int, int], ...], *values: Any) -> Any:
    """A chunk of a reshaped array, from ranges of elements of others in C order."""
    flat = [np.ascontiguousarray(value).reshape(-1)[lo:hi] for (lo, hi), value in zip(pieces, values, strict=True)]
    return (flat[0] if len(flat) == 1 else np.concatenate(flat)).reshape(shape)


def run_routine(
    name: str, written: int, specs: tuple[WindowSpec, ...], slots: tuple[ViewSlot, ...], *values: Any
) -> tuple[Any, ...]:
    """A compiled loop of NumPy's: whether it has failed, and the windows that it has stored into."""
    buffers = [window(spec, values) for spec in specs]
    arrays = []
    for slot in slots:
        buffer, box = buffers[slot.window], specs[slot.window].box
        offset = sum((start - lo) * s for start, (lo, _), s in zip(slot.starts, box, buffer.strides, strict=True))
        strides = tuple(0 if axis < 0 else buffer.strides[axis] * step for axis, step in slot.axes)
        flat = buffer.reshape(-1).view(np.uint8)
        arrays.append(np.ndarray(slot.shape, buffer.dtype, flat, offset, strides))
    failed = routines.run(name, arrays[:written], arrays[written:])
    return bool(failed), *(buffer for buffer, spec in zip(buffers, specs, strict=True) if spec.written)
