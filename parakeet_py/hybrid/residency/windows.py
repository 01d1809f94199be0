"""Windows of arrays on a device: memory for what one piece of a region touches, and no more.

A `Stretch` is the memory from the first byte that is touched to the last, as it lies on the host. Where a piece touches
columns of a matrix, that is nearly the whole of it, so there is a second kind: a `Packed` window is a box of elements
whose rows lie together. The part must not know then how far apart rows are: `spread` gives a form of it that asks.

Either can be filled with what the piece needs and emptied of what it has written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from parakeet_py.base.types import Array
from parakeet_py.hybrid.devices.device import Device
from parakeet_py.hybrid.devices.team import Range
from parakeet_py.hybrid.partition.access import Access, Box, Part
from parakeet_py.hybrid.partition.division import Bounds, Division
from parakeet_py.hybrid.residency.arrays import GRANULE, Buffer, DeviceView, memory_of
from parakeet_py.hybrid.residency.blocks import Root, SharedArray, Written
from parakeet_py.hybrid.residency.byte_ranges import NOTHING, Spans, in_rows, rows_of, size_of, union
from parakeet_py.typed_ir.ir import Dim, Function, Load, Store, Var, blocks_of, walk
from parakeet_py.typed_ir.rewrite import free_in_op, fresh_copy

APART = 0.5  # of the memory of a stretch that arrays share, if each has its own


class Stretch(NamedTuple):
    """`size` bytes of a root from `start` on, as they lie on the host."""

    root: Root
    start: int
    size: int
    needed: Spans
    written: Spans

    def view(self, buffer: Buffer, array: SharedArray) -> DeviceView:
        """An array of the root in the window; only elements inside may be touched."""
        return DeviceView(buffer, array.offset - self.start, array.dtype.name, array.shape, array.strides)

    def fill(self, device: Device, address: int) -> int:
        """Copy what is needed from the host; gives how many bytes."""
        host = memory_of(self.root.address, self.root.size)
        for rows in rows_of(self.needed) if len(self.needed) else ():
            device.copy_in(address + rows.start - self.start, in_rows(host, rows), rows.pitch)
        return size_of(self.needed)

    def empty(self, device: Device, address: int) -> int:
        """Copy what has been written to the host; gives how many bytes."""
        host = memory_of(self.root.address, self.root.size)
        for rows in rows_of(self.written) if len(self.written) else ():
            device.copy_out(in_rows(host, rows), address + rows.start - self.start, rows.pitch)
        return size_of(self.written)


class Packed(NamedTuple):
    """A box of an array's elements, its rows together.

    Attributes
    ----------
    order : its axes, those first along which elements are farthest apart
    strides : on the device, in that order
    needed : whether the elements are needed
    written : the boxes that are written
    """

    array: SharedArray
    box: Box
    order: tuple[int, ...]
    strides: tuple[int, ...]
    needed: bool
    written: tuple[Box, ...]

    @property
    def size(self) -> int:
        low, high = self.box[self.order[0]]
        return (high - low) * self.strides[0]

    def view(self, buffer: Buffer, array: SharedArray) -> DeviceView:
        """The array in the window; only elements inside may be touched."""
        strides = dict(zip(self.order, self.strides, strict=True))
        offset = -sum(low * strides[axis] for axis, (low, _) in enumerate(self.box))
        own = tuple(strides[axis] for axis in range(len(self.box)))
        return DeviceView(buffer, offset, array.dtype.name, array.shape, own)

    def fill(self, device: Device, address: int) -> int:
        """Copy what is needed from the host; gives how many bytes."""
        size = 0
        for place, rows in self._rows(self.box) if self.needed else ():
            device.copy_in(address + place, rows, self.strides[-2])
            size += rows.size
        return size

    def empty(self, device: Device, address: int) -> int:
        """Copy what has been written to the host; gives how many bytes."""
        size = 0
        for box in self.written:
            for place, rows in self._rows(box):
                device.copy_out(rows, address + place, self.strides[-2])
                size += rows.size
        return size

    def _rows(self, box: Box) -> Iterable[tuple[int, np.ndarray[Any, Any]]]:
        """The rows of a box, as bytes, and where they begin in the window."""
        host = self.array.host[tuple(slice(*bounds) for bounds in box)].transpose(self.order)
        steps = zip(self.order, self.strides, strict=True)
        first = sum((box[axis][0] - self.box[axis][0]) * step for axis, step in steps)
        for index in np.ndindex(host.shape[:-2]):
            plane = host[index]
            place = first + sum(number * step for number, step in zip(index, self.strides, strict=False))
            yield (
                place,
                np.lib.stride_tricks.as_strided(
                    plane[:1, :1].view(np.uint8),
                    (plane.shape[0], plane.shape[1] * plane.itemsize),
                    (plane.strides[0], 1),
                ),
            )


Extent = Stretch | Packed


class Window(NamedTuple):
    """What one piece touches of some arrays, in memory of the device."""

    extent: Extent
    buffer: Buffer

    def view(self, array: SharedArray) -> DeviceView:
        return self.extent.view(self.buffer, array)


Windows = dict[SharedArray, Window]
Extents = list[tuple[Extent, list[SharedArray]]]


class Piece(Protocol):
    """A region cut into one part, as far as windows know it."""

    @property
    def division(self) -> Division: ...

    @property
    def values(self) -> dict[Var, Any]: ...

    @property
    def whole(self) -> list[SharedArray]: ...

    @property
    def again(self) -> bool: ...

    @property
    def ranges(self) -> Sequence[Range]: ...

    @property
    def across(self) -> Sequence[Bounds]: ...

    @property
    def needed(self) -> list[Written]: ...

    @property
    def written(self) -> list[Written]: ...


def extents(piece: Piece, alike: set[Root], packed: bool) -> Extents:
    """What a piece touches, and of which arrays, but for those that all pieces need alike; with `packed` in boxes where
    that can be done.

    Arrays of one root share a stretch; each has its own if nothing is written there and that is much less.
    """
    division, values = piece.division, piece.values
    touched = [_Of(piece, None, array) for array in piece.whole]
    touched += [_Of(piece, var, values[var]) for var in division.free if isinstance(values[var], SharedArray)]
    members: dict[Root, list[_Of]] = {}
    for one in touched:
        if one.array.root not in alike:
            members.setdefault(one.array.root, []).append(one)
    found: Extents = []
    for root, some in members.items():
        needed, written = piece.needed[0].get(root, NOTHING), piece.written[0].get(root, NOTHING)
        shared = _stretch(root, needed, written)
        apart: list[Extent] = []
        if len(some) == 1:
            apart = [(packed and some[0].packed()) or shared]
        elif not len(written) and division.touched.traced:
            apart = [(packed and one.packed()) or _stretch(root, one.spans(), NOTHING) for one in some]
        if len(some) > 1 and (not apart or sum(one.size for one in apart) > APART * shared.size):
            found.append((shared, [one.array for one in some]))
        else:
            found += [(extent, [one.array]) for extent, one in zip(apart, some, strict=True)]
    return found


def _stretch(root: Root, needed: Spans, written: Spans) -> Stretch:
    spans = union(needed, written)
    start = int(spans[0]) // GRANULE * GRANULE if len(spans) else 0
    return Stretch(root, start, int(spans[-1]) - start if len(spans) else 1, needed, written)


class _Of:
    """What a piece touches of one array: an argument of the region, or (without `var`) a result."""

    def __init__(self, piece: Piece, var: Var | None, array: SharedArray) -> None:
        self.array, division = array, piece.division
        self.needed = var is not None or piece.again
        _, lo, hi = piece.ranges[0]
        if var is None:
            self.written = [tuple((lo, hi) if axis == division.axis else (0, n) for axis, n in enumerate(array.shape))]
            self.boxes = self.written
            return
        second = piece.across[0] if piece.across else ()
        part = Part(division.touched, piece.values, division.bounds(lo, hi, *second))
        self.written = _boxes(part, division.touched.writes, var)
        self.boxes = [*_boxes(part, division.touched.reads, var), *self.written]

    def spans(self) -> Spans:
        found = NOTHING
        for box in self.boxes if self.array.size else ():
            found = union(found, self.array.spans(box))
        return found

    def packed(self) -> Packed | None:
        """The box of all; None if it cannot be packed."""
        strides, itemsize = self.array.strides, self.array.dtype.itemsize
        order = tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))
        if not self.boxes or len(strides) < 2 or min(strides) < 0 or strides[order[-1]] != itemsize:
            return None
        both = [([lo for lo, _ in ends], [hi for _, hi in ends]) for ends in zip(*self.boxes, strict=True)]
        box = tuple((min(starts), max(stops)) for starts, stops in both)
        inner = [box[axis][1] - box[axis][0] for axis in order]
        packed = [itemsize]
        row = -(-inner[-1] * itemsize // GRANULE) * GRANULE
        for extent in reversed(inner[:-1]):
            packed.append(row)
            row *= extent
        return Packed(self.array, box, order, tuple(reversed(packed)), self.needed, tuple(self.written))


def _boxes(part: Part, accesses: Iterable[Access], var: Var) -> list[Box]:
    found = (part.box(access) for access in accesses if access.array is var)
    return [box for box in found if box is not None]


def spread(function: Function) -> Function | None:
    """A part that takes arrays whose rows lie anywhere; None if it does more with them than touch elements."""
    arrays = {param for param in function.params if isinstance(param.type, Array) and param.type.rank > 1}
    for let in walk(function.body):
        blocks = blocks_of(let.op)
        passed = {*getattr(let.op, "inits", ()), *(result for block in blocks for result in block.results)}
        used = passed if blocks else {*free_in_op(let.op)}
        if arrays & used and not isinstance(let.op, Load | Store | Dim):
            return None
    params = tuple(Var(param.name, _spread_type(param.type)) for param in function.params)
    known: dict[Var, Any] = dict(zip(function.params, params, strict=True))
    return replace(function, params=params, body=fresh_copy(function.body, known))


def _spread_type(kind: Any) -> Any:
    if not isinstance(kind, Array) or kind.rank < 2:
        return kind
    return replace(kind, layout={"C": "S", "F": "A"}.get(kind.layout, kind.layout))
