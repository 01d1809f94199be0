"""Where the bytes of arrays are: in the memory of the host, of devices, or of several at once.

A `Root` is one piece of memory with arrays in it: an argument (several, if they overlap), or an array that a call has
made. It exists on the host, and as a copy on each device that has needed some of it. For each of these memories it
keeps the bytes that are valid there, as the MSI protocol does for the lines of caches:

    valid in one memory only        Modified
    valid in several                Shared
    not valid in a memory           Invalid there

`bring` makes bytes valid in a memory by copying those that are not; `wrote` says that a memory has changed some, which
makes them invalid everywhere else. Nothing else moves data, so halos move alone and nothing moves twice. The blocks of
the protocol are as large as what is done with them in one go: a row, a halo, half an array.

The bytes of new memory are undefined, and count as valid everywhere.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from parakeet_py.hybrid.devices.device import Device
from parakeet_py.hybrid.devices.recording import spoil, stored
from parakeet_py.hybrid.partition.access import Box
from parakeet_py.hybrid.residency.arrays import (
    Buffer,
    DeviceView,
    Layout,
    Window,
    memory_of,
    name_of_dtype,
    reserved,
    strides_of,
)
from parakeet_py.hybrid.residency.arrays import span as reach
from parakeet_py.hybrid.residency.byte_ranges import (
    Spans,
    bytes_in_box,
    difference,
    in_rows,
    intersection,
    pieces,
    rows_of,
    size_of,
    span,
    union,
)

SLACK = 32  # a window has room for so many times less on both sides
HOST = 0  # the number of the host's memory; devices are counted from 1


class Memories:
    """The memories of a call, and the bytes that have moved between them.

    Attributes
    ----------
    devices : the devices, memory 1, 2...
    moved : bytes by (from, to)
    rehearsal : bytes are counted, but none moves
    marks : of the devices, set when members began to work at the same time
    """

    def __init__(self, devices: Sequence[Device], rehearsal: bool = False) -> None:
        self.devices = tuple(devices)
        self.rehearsal = rehearsal
        self.lock = threading.RLock()  # for all that is said here and in roots of who has what; not while bytes move
        self.kept = [threading.RLock() for _ in range(len(self.devices) + 1)]  # while others copy from a memory
        self.moved: dict[tuple[int, int], int] = {}
        self.marks: dict[int, Any] = {}
        self.roots: weakref.WeakSet[Root] = weakref.WeakSet()

    def evict(self, memory: int, keep: Collection[Root]) -> bool:
        """Give up copies in a device's memory, all but some: those that others have too, else the others.

        Returns whether there were any.
        """
        with self.lock:
            here = [root for root in self.roots if memory in root.copies and root not in keep]
        clean = [root for root in here if not len(root.alone(memory))]
        for root in clean or here:
            root.give_up(memory)
        return bool(here)

    def set_marks(self) -> None:
        """Members are about to work at the same time: what devices have now, others may copy while they do."""
        if self.rehearsal or len(self.devices) < 2:
            return
        with self.lock:
            for root in self.roots:
                root.settled = dict(root.valid)
        self.marks = {number: device.mark() for number, device in enumerate(self.devices, 1)}

    def count(self, source: int, target: int, size: int) -> None:
        with self.lock:
            if size:
                self.moved[source, target] = self.moved.get((source, target), 0) + size


class Root:
    """Memory with arrays in it: `size` bytes at `address` on the host, kept alive by `owner`.

    Attributes
    ----------
    address : reserved when it is first asked for, where None was given
    owner : the arrays of the host that lie there, each within what it owns or is a view of
    home : where the bytes are between calls, if they outlive this one; it is what reserves the address then
    valid : the bytes that are valid in each memory
    everything : all its bytes
    copies : the memory on each device that has needed some
    settled : the bytes that each memory had when marks were last set, and that have not been written since
    """

    __slots__ = (
        "__weakref__",
        "_address",
        "copies",
        "everything",
        "home",
        "memories",
        "owner",
        "settled",
        "size",
        "valid",
    )

    def __init__(
        self, memories: Memories, address: int | None, size: int, owner: Sequence[np.ndarray[Any, Any]], fresh: bool
    ) -> None:
        self.memories = memories
        self._address, self.size, self.owner = address, size, owner
        self.home: Any = None
        self.everything = span(0, size)
        where = range(len(memories.devices) + 1) if fresh else (HOST,)
        self.valid: dict[int, Spans] = dict.fromkeys(where, self.everything)
        self.copies: dict[int, Buffer] = {}
        self.settled: dict[int, Spans] = {}
        memories.roots.add(self)

    @classmethod
    def on(cls, memories: Memories, memory: int, buffer: Buffer) -> Root:
        """The root of bytes that are on a device only."""
        made = cls(memories, None, buffer.size, (), False)
        made.valid, made.copies = {memory: made.everything}, {memory: buffer}
        return made

    @property
    def address(self) -> int:
        if self._address is None:
            with self.memories.lock:
                if self._address is None:
                    self._reserve(reserved(max(self.size, 1)))
        assert self._address is not None
        return self._address

    @property
    def is_on_host(self) -> bool:
        """Whether there is memory of the host for it."""
        return self._address is not None

    def host_bytes(self) -> np.ndarray[Any, Any]:
        """All bytes on the host."""
        address = self.address
        if len(self.owner) == 1 and self.owner[0].nbytes == self.size and self.owner[0].flags.forc:
            return self.owner[0].ravel("K").view(np.uint8)
        return memory_of(address, self.size)

    def _reserve(self, memory: np.ndarray[Any, Any]) -> None:
        if self.home is not None:
            self._address, self.owner = self.home.address, self.home.owner
            return
        self.owner = (memory,)
        self._address = int(memory.__array_interface__["data"][0])

    def host_array(self, layout: Layout, offset: int) -> np.ndarray[Any, Any]:
        """An array in this memory on the host, its elements valid or not."""
        shape, writeable = layout.shape, layout.writeable
        if 0 in shape:
            found = _without_elements(layout)
        else:
            first = self._address is None and self.home is None and not offset
            own = self._reserve_for(layout) if first else None
            found = self._part(layout, self.address + offset) if own is None else own
        if not writeable:
            found.flags.writeable = False
        return found

    def _reserve_for(self, layout: Layout) -> np.ndarray[Any, Any] | None:
        """Memory that belongs to one array, if that is all of it, as it does to a new array of NumPy's."""
        dtype, shape, strides, _ = layout
        for order in ("C", "F"):
            if strides == strides_of(shape, dtype.itemsize, order) and math.prod(shape) * dtype.itemsize == self.size:
                devices = self.memories.devices
                found = devices[0].host_array(shape, dtype, order) if devices else np.empty(shape, dtype, order)
                with self.memories.lock:
                    if self._address is None:
                        self._reserve(found)
                        return found
        return None

    def _part(self, layout: Layout, address: int) -> np.ndarray[Any, Any]:
        """A view of what lies there, whose base is the array that owns the memory, as that of NumPy's views is."""
        dtype, shape, strides, writeable = layout
        low, size = reach(shape, strides, dtype.itemsize)
        for owner in map(whole_of, self.owner):
            first, end = byte_bounds(owner)
            if first <= address + low <= address + low + size <= end and (not writeable or owner.flags.writeable):
                whole = owner if owner.flags.c_contiguous else owner.T
                if whole.flags.c_contiguous:
                    return np.ndarray(shape, dtype, whole, address - first, strides)
        return np.asarray(_View(self.owner, address, layout))

    def complete(self, memory: int) -> None:
        """Make all bytes valid in a memory."""
        valid = self.valid
        if valid.get(memory) is self.everything:
            return
        if len(valid) == 1 and HOST in (memory, *valid) and valid.get(next(iter(valid))) is self.everything:
            self._copy_all(next(iter(valid)), memory)
        else:
            self.bring(memory, self.everything)
        valid[memory] = self.everything

    def _copy_all(self, source: int, target: int) -> None:
        """Copy all bytes between the host and a device."""
        if self.size and not self.memories.rehearsal:
            memory = source if target == HOST else target
            if target != HOST:
                self._has_room(memory, self.everything)
            buffer, device = self.copy_on(memory), self.memories.devices[memory - 1]
            host = self.host_bytes()
            if target == HOST:
                device.copy_out(host, buffer.address)
            else:
                device.copy_in(buffer.address, host)
        self.memories.count(source, target, self.size)

    def wrote_all(self, memory: int) -> None:
        """A memory has changed all bytes."""
        if self.home is not None:
            stored()
        with self.memories.lock:
            self.valid, self.settled = {memory: self.everything}, {}

    def bring(self, memory: int, wanted: Spans) -> None:
        """Make bytes valid in a memory."""
        missing = self._missing(memory, wanted)
        while len(missing):
            with self.memories.lock:
                others = [other for other in sorted(self.valid) if other != memory]
                some = (len(intersection(missing, self.valid[other])) for other in others)
                source = next(other for other, found in zip(others, some, strict=True) if found)
            with self.memories.kept[source]:  # another task may be about to give up its copy
                found = intersection(missing, self.valid.get(source, _NONE))
                if len(found):
                    self._copy(source, memory, found)
            missing = difference(missing, found)
            if not len(missing):
                missing = self._missing(memory, wanted)

    def _missing(self, memory: int, wanted: Spans) -> Spans:
        with self.memories.lock:
            return difference(wanted, self.valid.get(memory, _NONE))

    def wrote(self, memory: int, changed: Spans) -> None:
        """A memory has changed bytes."""
        if self.home is not None:
            stored()
        with self.memories.lock:
            for other in self.valid:
                if other != memory:
                    self.valid[other] = difference(self.valid[other], changed)
            for other in self.settled:
                self.settled[other] = difference(self.settled[other], changed)
            self.valid[memory] = union(self.valid.get(memory, _NONE), changed)

    def copy_on(self, memory: int) -> Buffer:
        """This memory's copy on a device, made when it is first needed."""
        found = self.copies.get(memory)
        if found is None:
            found = self.copies[memory] = Buffer(self.memories.devices[memory - 1], self.size)
        return found

    def window_on(self, memory: int, wanted: Spans) -> None:
        """Have memory on a device for some bytes, where there is no room for all of them.

        A copy that has none of them is given up for it; one that has some is enlarged, if it is a window already.
        """
        device, before = self.memories.devices[memory - 1], self.copies.get(memory)
        start, stop = (int(wanted[0]), int(wanted[-1])) if len(wanted) else (0, 0)
        if isinstance(before, Window):
            if before.start <= start and stop <= before.stop:
                return
            start, stop = min(start, before.start), max(stop, before.stop)
        elif before is not None:
            if len(self.valid.get(memory, _NONE)) and self.valid[memory] is not self.everything:
                return
            before = None
            del self.copies[memory]
        spoil("memory for a part of an array")
        more = (stop - start) // SLACK  # so that other halos find room, too
        start, stop = max(start - more, 0), min(stop + more, self.size)
        made = Window(device, self.size, start, stop)
        with self.memories.lock:
            valid = intersection(self.valid.get(memory, _NONE), span(made.start, made.stop))
        if before is not None:
            for low, high in pieces(valid):
                device.copy_within(made.address + low, before.address + low, high - low)  # type: ignore[attr-defined]
        with self.memories.lock:
            self.copies[memory], self.valid[memory] = made, valid

    def give_up_empty(self, memory: int) -> None:
        """Give up a copy on a device that has nothing of value."""
        valid = self.valid.get(memory, _NONE)
        if not isinstance(self.copies.get(memory), Window) and (valid is self.everything or not len(valid)):
            if valid is self.everything and len(self.valid) == 1:
                return
            self.copies.pop(memory, None)

    def _has_room(self, memory: int, some: Spans) -> None:
        """See to it that there is memory on a device for some bytes."""
        if isinstance(self.copies.get(memory), Window):
            self.window_on(memory, some)

    def alone(self, memory: int) -> Spans:
        """The bytes that are valid in one memory only."""
        with self.memories.lock:
            found = self.valid.get(memory, _NONE)
            for other, spans in self.valid.items():
                found = found if other == memory else difference(found, spans)
            return found

    def give_up(self, memory: int) -> None:
        """Give up the copy on a device; the host gets what no other memory has."""
        with self.memories.kept[memory]:
            self.bring(HOST, self.alone(memory))
            with self.memories.lock:
                self.valid.pop(memory, None)
                self.copies.pop(memory, None)

    def _copy(self, source: int, target: int, some: Spans) -> None:
        if source != HOST and target != HOST and self._copy_over(source, target, some):
            return
        if source != HOST and target != HOST:  # by way of the host
            self._copy(source, HOST, difference(some, self.valid.get(HOST, _NONE)))
            source = HOST
        if not self.memories.rehearsal:
            host = memory_of(self.address, self.size)
            memory = source if target == HOST else target
            if target != HOST:
                self._has_room(memory, some)
            buffer, device = self.copy_on(memory), self.memories.devices[memory - 1]
            for rows in rows_of(some):
                if target == HOST:
                    device.copy_out(in_rows(host, rows), buffer.address + rows.start, rows.pitch)
                else:
                    device.copy_in(buffer.address + rows.start, in_rows(host, rows), rows.pitch)
        self.memories.count(source, target, size_of(some))
        with self.memories.lock:
            self.valid[target] = union(self.valid.get(target, _NONE), some)

    def _copy_over(self, source: int, target: int, some: Spans) -> bool:
        """Copy from one device to another directly, if they can."""
        reader, giver = self.memories.devices[target - 1], self.memories.devices[source - 1]
        if not reader.reaches(giver):
            return False
        if not self.memories.rehearsal:
            self._has_room(target, some)
            theirs, ours = self.copies[source], self.copy_on(target)
            settled = intersection(some, self.settled.get(source, _NONE))
            for after, spans in ((self.memories.marks.get(source), settled), (None, difference(some, settled))):
                for rows in rows_of(spans):
                    reader.copy_over(ours.address + rows.start, giver, theirs.address + rows.start, rows, after)
        self.memories.count(source, target, size_of(some))
        with self.memories.lock:
            self.valid[target] = union(self.valid.get(target, _NONE), some)
        return True


_NONE: Spans = span(0, 0)


Written = dict[Root, Spans]


def _without_elements(layout: Layout) -> np.ndarray[Any, Any]:
    dtype, shape, strides, _ = layout
    for order in ("C", "F"):
        if strides == strides_of(shape, dtype.itemsize, order):
            return np.empty(shape, dtype, "F" if order == "F" else "C")
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)


class _View:
    """A view of memory of the host, kept alive by its owner."""

    def __init__(self, owner: Any, address: int, layout: Layout) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not layout.writeable),
            "typestr": layout.dtype.str,
            "shape": layout.shape,
            "strides": layout.strides,
        }


def whole_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that owns the memory of another."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class SharedArray:
    """An array whose elements may be in several memories, at a place in a root.

    Attributes
    ----------
    given : the argument that it is, if it is one: an array of NumPy's, a `DeviceArray`, one of another library
    host : it in the memory of the host, its elements valid or not; made when it is first asked for
    """

    __slots__ = ("_host", "given", "layout", "offset", "root", "shape")

    def __init__(
        self, root: Root, layout: Layout, offset: int, host: np.ndarray[Any, Any] | None = None, given: Any = None
    ) -> None:
        self.root, self.layout, self.offset = root, layout, offset
        self.shape = layout.shape
        self._host = host
        self.given = given

    @classmethod
    def of(cls, root: Root, host: np.ndarray[Any, Any], given: Any = None) -> SharedArray:
        """An array of the host that lies in a root."""
        offset = host.__array_interface__["data"][0] - root.address if host.size else 0
        return cls(root, layout_of(host), offset, host, given)

    @property
    def host(self) -> np.ndarray[Any, Any]:
        if self._host is None:
            self._host = self.root.host_array(self.layout, self.offset)
        return self._host

    @property
    def has_host(self) -> bool:
        """Whether it has been asked for in the memory of the host."""
        return self._host is not None

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.layout.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        return self.layout.strides

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.layout.dtype.itemsize

    def place(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dtype: Any = None) -> SharedArray:
        """Other elements of the same memory."""
        own = self.layout
        layout = Layout(own.dtype if dtype is None else np.dtype(dtype), shape, strides, own.writeable)
        return SharedArray(self.root, layout, self.offset + offset)

    def spans(self, box: Box | None = None, exact: bool = False) -> Spans:
        """The bytes of the elements in a box, or of all."""
        whole = tuple((0, extent) for extent in self.shape)
        dtype, _, strides, _ = self.layout
        return bytes_in_box(self.offset, strides, dtype.itemsize, whole if box is None else box, exact)

    def meets(self, other: SharedArray) -> bool:
        """Whether the extents of two arrays of a root meet."""
        (low, size), (first, length) = (reach(one.shape, one.strides, one.dtype.itemsize) for one in (self, other))
        low, first = low + self.offset, first + other.offset
        return bool(size and length) and low < first + length and first < low + size

    def on_host(self) -> np.ndarray[Any, Any]:
        """The array, its elements valid."""
        host, root = self.host, self.root
        if host.size and root.valid.get(HOST) is not root.everything:
            if host.nbytes == root.size:
                root.complete(HOST)
            else:
                root.bring(HOST, self.spans())
        return host

    def on_device(self, memory: int) -> DeviceView:
        """The array in a device's memory; its elements are there if they have been brought."""
        dtype, shape, strides, writeable = self.layout
        buffer = self.root.copy_on(memory)
        return DeviceView(buffer, self.offset, name_of_dtype(dtype), shape, strides, self.given, not writeable)


def layout_of(array: np.ndarray[Any, Any]) -> Layout:
    """The layout of an array of the host."""
    return Layout(array.dtype, array.shape, array.strides, array.flags.writeable)


def new_array(memories: Memories, dtype: str, shape: tuple[int, ...], layout: str = "C") -> SharedArray:
    """An array of unspecified contents."""
    kind = np.dtype(dtype)
    root = Root(memories, None, kind.itemsize * math.prod(shape), (), True)
    return SharedArray(root, Layout(kind, shape, strides_of(shape, kind.itemsize, layout), True), 0)


def of_host(memories: Memories, array: np.ndarray[Any, Any], given: Any = None) -> SharedArray:
    """An array of the host that shares no memory with others."""
    low, high = byte_bounds(array) if array.size else (0, 0)
    return SharedArray.of(Root(memories, low, high - low, (array,), False), array, given)


def of_arguments(memories: Memories, arrays: Sequence[np.ndarray[Any, Any]]) -> list[SharedArray]:
    """Arrays of the host; those that overlap share a root."""
    found: dict[int, SharedArray] = {}
    order = [number for number, array in enumerate(arrays) if array.size]
    order.sort(key=lambda number: byte_bounds(arrays[number]))
    groups: list[tuple[int, int, list[int]]] = []
    for number in order:
        low, high = byte_bounds(arrays[number])
        if groups and low < groups[-1][1]:
            start, end, members = groups.pop()
            groups.append((start, max(end, high), [*members, number]))
        else:
            groups.append((low, high, [number]))
    for low, high, members in groups:
        root = Root(memories, low, high - low, [arrays[number] for number in members], False)
        found |= {number: SharedArray.of(root, arrays[number], arrays[number]) for number in members}
    return [found.get(number) or of_host(memories, array, array) for number, array in enumerate(arrays)]
