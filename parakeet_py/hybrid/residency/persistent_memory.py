"""Memory that outlives calls: where the bytes of a `DeviceArray`, or of a frozen array of NumPy's, are between them.

Within a call the bytes of an array are kept track of by a `Root` (residency), which numbers memories as the call does.
A `Home` keeps the same by device, and the copies on devices alive: a call enters with what it holds, and leaves what it
has made of it. Bytes on a device that is not in the call come to the host first, if no other memory has them.

Memory of the host stands behind each home. It is reserved when its address is asked for, and takes no place until
bytes come there: an array that stays on its device costs the host nothing.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from parakeet_py.hybrid.devices.device import Device
from parakeet_py.hybrid.residency.arrays import Buffer, contents_of, memory_of, reserved
from parakeet_py.hybrid.residency.blocks import HOST, Memories, Root
from parakeet_py.hybrid.residency.byte_ranges import NOTHING, Spans, difference, pieces, span, union
from parakeet_py.hybrid.residency.fingerprint import fingerprint

_reserving = threading.Lock()
Place = Device | None  # a device's memory, or the host's


class Home:
    """`size` bytes at `address` on the host, kept alive by `owner`, and their copies on devices.

    Attributes
    ----------
    address : reserved when it is first asked for, where None was given
    brought : a call has brought it to devices before
    aligned : how many bytes behind the beginning of a page the address is, if it is reserved
    valid : the bytes that are valid in each memory
    copies : the memory on each device that has a copy
    frozen : the bytes never change
    everything : all bytes
    first : the array whose memory it was first, as long as there is that array
    """

    __slots__ = (
        "__weakref__",
        "_address",
        "aligned",
        "brought",
        "copies",
        "everything",
        "first",
        "frozen",
        "owner",
        "size",
        "valid",
    )

    def __init__(
        self, address: int | None, size: int, owner: Sequence[np.ndarray[Any, Any]] = (), frozen: bool = False
    ) -> None:
        self._address, self.size, self.owner, self.frozen = address, size, owner, frozen
        self.aligned, self.brought = 0, False
        self.first: weakref.ref[Any] | None = None
        self.everything = span(0, size)
        self.valid: dict[Place, Spans] = {None: self.everything}
        self.copies: dict[Place, Buffer] = {}

    @classmethod
    def on(cls, device: Device, buffer: Buffer) -> Home:
        """The home of bytes that are on a device only."""
        everything = span(0, buffer.size)
        return cls.made(buffer.size, everything, {device: everything}, {device: buffer})

    @classmethod
    def made(cls, size: int, everything: Spans, valid: dict[Place, Spans], copies: dict[Place, Buffer]) -> Home:
        """The home of bytes that are where a call like one before has left them."""
        made = object.__new__(cls)
        made._address, made.size, made.owner, made.frozen, made.aligned = None, size, (), False, 0
        made.brought = False
        made.everything, made.valid, made.copies, made.first = everything, valid, copies, None
        return made

    @classmethod
    def of(cls, root: Root, devices: Sequence[Device]) -> Home:
        """The home of what a call has made."""
        made = cls(root.address if root.is_on_host else None, root.size, root.owner)
        made.leave(root, devices)
        root.home = made
        return made

    @property
    def address(self) -> int:
        if self._address is None:
            with _reserving:
                if self._address is None:
                    memory = reserved(max(self.size, 1) + self.aligned)
                    self.owner = (memory,)
                    self._address = int(memory.__array_interface__["data"][0]) + self.aligned
        return self._address

    @property
    def is_on_host(self) -> bool:
        """Whether there is memory of the host for it."""
        return self._address is not None

    def has(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether an array of the host lies here."""
        place: int = array.__array_interface__["data"][0]
        return self.address <= place < self.address + max(self.size, 1)

    def lies_at(self, device: Device, address: int) -> bool:
        """Whether an address on a device is one of these bytes."""
        copy = self.copies.get(device)
        return copy is not None and copy.address <= address < copy.address + max(copy.size, 1)

    def is_only_on(self, device: Device) -> bool:
        """Whether all bytes are valid on a device, and nowhere else."""
        return len(self.valid) == 1 and self.valid.get(device) is self.everything and device in self.copies

    def is_whole_on(self, device: Device) -> bool:
        """Whether all bytes are valid on a device."""
        return self.valid.get(device) is self.everything and device in self.copies

    def enter(self, memories: Memories, devices: Sequence[Device]) -> Root:
        """The root of these bytes in a call, whose memory `number + 1` is that of `devices[number]`."""
        members: list[Place] = [None, *devices]
        known = NOTHING
        for place in members:
            known = union(known, self.valid.get(place, NOTHING))
        for other in [place for place in self.valid if place is not None and place not in members]:
            missing = difference(self.valid[other], known)
            if len(missing) and not memories.rehearsal:
                outside = self._root(Memories([other]), [None, other])
                outside.bring(HOST, missing)
                self.valid = {**self.valid, None: union(self.valid.get(None, NOTHING), missing)}
        root = self._root(memories, members)
        if memories.rehearsal:
            root.valid[HOST] = union(root.valid[HOST], difference(span(0, self.size), known))
        else:  # the root may give them up
            self._without(members)
        return root

    def _without(self, members: Sequence[Place]) -> None:
        """What others may have as well stays as it is: `valid` is never changed in place."""
        self.valid = {place: spans for place, spans in self.valid.items() if place not in members}
        self.copies = {place: buffer for place, buffer in self.copies.items() if place not in members}

    def _root(self, memories: Memories, members: Sequence[Place]) -> Root:
        root = Root(memories, self._address, self.size, self.owner, False)
        root.home, root.everything = self, self.everything
        root.valid = {number: self.valid.get(place, NOTHING) for number, place in enumerate(members)}
        root.copies = {number: self.copies[place] for number, place in enumerate(members) if place in self.copies}
        return root

    def leave(self, root: Root, devices: Sequence[Device]) -> None:
        """Remember what a call has made of its root; what others had of bytes that may change is given up."""
        members: list[Place] = [None, *devices]
        if self.frozen:
            self._without(members)
        else:
            self.valid, self.copies = {}, {}
        for number, spans in root.valid.items():
            if len(spans) == 2 and spans[0] <= 0 and spans[1] >= self.size:
                self.valid[members[number]] = self.everything
            elif len(spans):
                self.valid[members[number]] = spans
        self.copies |= {members[number]: buffer for number, buffer in root.copies.items()}

    def again(self, root: Root, devices: Sequence[Device]) -> None:
        """Let a call go on with a root that it has left, wherever the bytes have come meanwhile; the copies that the
        call has on its devices stay those that it uses."""
        for number, device in enumerate(devices, 1):
            own, other = root.copies.get(number), self.copies.get(device)
            if own is not None and other is not None and other is not own:
                self.bring(None, self.everything)
                self.valid = {place: spans for place, spans in self.valid.items() if place is not device}
                self.copies = {place: copy for place, copy in self.copies.items() if place is not device}
        entered = self.enter(root.memories, devices)
        lost = {number for number in root.copies if number not in entered.copies}
        root.valid = {number: spans for number, spans in entered.valid.items() if number not in lost}
        root.copies, root.settled = {**entered.copies, **root.copies}, {}

    def kept(self) -> Callable[[], None]:
        """What makes all bytes again what they are now, where they are now; of those in several memories, in one."""
        known, kept = NOTHING, []
        for place in sorted(self.valid, key=lambda place: place is None):  # devices copy faster
            some = difference(self.valid[place], known)
            known = union(known, some)
            stretches = [(low, high - low) for low, high in pieces(some)]
            begin = self._begin(place) if stretches else 0
            kept.append((place, some, [(low, contents_of(place, begin + low, size)) for low, size in stretches]))

        def undo() -> None:
            self.valid = {}
            for place, some, contents in kept:
                begin = self._begin(place) if contents else 0
                for low, put in contents:
                    put(begin + low)
                self.valid[place] = some

        return undo

    def _begin(self, place: Place) -> int:
        """Where these bytes begin in a memory."""
        if place is None:
            return self.address
        if place not in self.copies:
            self.copies[place] = Buffer(place, self.size)
        return self.copies[place].address

    def bring(self, place: Place, wanted: Spans, writes: bool = False) -> None:
        """Make bytes valid somewhere; with `writes`, there alone."""
        devices = [device for device in {**self.valid, **self.copies, place: None} if device is not None]
        root = self._root(Memories(devices), [None, *devices])
        number = HOST if place is None else 1 + devices.index(place)
        root.bring(number, wanted)
        if writes:
            root.wrote(number, wanted)
        if number:
            root.copy_on(number)
        self.leave(root, devices)


class _Frozen(NamedTuple):
    """What is kept of a read-only array: itself, its home, and the fingerprint of what has been brought from there."""

    array: weakref.ref[Any]
    home: Home
    fingerprint: object


_frozen: dict[int, _Frozen] = {}
atexit.register(_frozen.clear)  # those of the package's own arrays, while devices can still free memory


def homes_of_frozen(arrays: Sequence[Any]) -> dict[int, Home]:
    """The homes of those arguments of a call that are frozen and share no memory with others, by position."""
    found: dict[int, Home] = {}
    for number, array in enumerate(arrays):
        if not _is_frozen(array):
            _frozen.pop(id(array), None)
        elif not any(np.may_share_memory(array, other) for place, other in enumerate(arrays) if place != number):
            found[number] = _home_of_frozen(array)
    return found


def _is_frozen(array: np.ndarray[Any, Any]) -> bool:
    flags = array.flags
    return not flags.writeable and flags.owndata and array.size > 0 and type(array) is np.ndarray


def _home_of_frozen(array: np.ndarray[Any, Any]) -> Home:
    """The home of a read-only array that owns its data, kept as long as the array is and has the same bytes."""
    key = id(array)
    low, high = byte_bounds(array)
    now = fingerprint(memory_of(low, high - low))
    found = _frozen.get(key)
    if found is None or found.array() is not array or found.fingerprint != now:
        home = Home(low, high - low, frozen=True)
        found = _frozen[key] = _Frozen(weakref.ref(array, lambda _: _forget(key, home)), home, now)
    return found.home


def _forget(key: int, home: Home) -> None:
    if key in _frozen and _frozen[key].home is home:
        del _frozen[key]
