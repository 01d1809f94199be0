"""Parts whose data exceed a device's memory: computed there in pieces that fit, from the host and back to it.

A piece has a *window* of every array that it touches (`windows`). What it needs is copied there, what it has written
goes back to the host, and so does what it gives (a partial sum, the totals of a scan, what it has selected), which is
joined as if each piece were a part. What all pieces need alike (the other factor of a product, all bodies of a
simulation) is brought once instead.

Three pieces are under way at a time, each in a lane of the device: while one is filled, the one before it is computed
and the results of the one before that are copied back. Pieces are halved until three fit; if they become no smaller
by that, fewer are under way. Where three of a single index do not fit, the region is cut along another axis.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.arrays import Buffer
from parakeet_py.hybrid.device import Device, DeviceMemoryError
from parakeet_py.hybrid.losses import Lost
from parakeet_py.hybrid.residency import HOST, Root, SharedArray
from parakeet_py.hybrid.spans import NOTHING, Spans, intersection, union
from parakeet_py.hybrid.windows import Window, Windows, extents

if TYPE_CHECKING:
    from parakeet_py.hybrid.parts import Parts
    from parakeet_py.hybrid.team import Range
    from parakeet_py.typed_ir.ir import Function

UNDER_WAY = 3
WORTH = 0.5  # of the memory that windows would take, if they are packed


def no_memory(lost: Lost) -> bool:
    """Whether a device is lost for this only: what was asked of it does not fit."""
    return isinstance(lost.error, DeviceMemoryError)


def stream(
    parts: Parts, numbers: Sequence[int], function: Function, more: Sequence[Sequence[Any]]
) -> list[tuple[Range, list[Any]]]:
    """Compute parts of a region that one device has, in pieces, by a function that takes `more` of each of them; gives
    the range and the results of each piece."""
    found = _Stream(parts, numbers[0], function, parts.again)
    for number, values in zip(numbers, more, strict=True):
        found.run(number, values)
    return found.end()


def fits(parts: Parts, number: int, count: int) -> bool:
    """Whether a device has memory for so many pieces of one index of its part."""
    who, lo, _ = parts.ranges[number]
    _give_up(parts, number)
    alike = _alike(parts, number)
    piece = parts.piece((who, lo, lo + 1), number)
    _, packed = _form(piece, parts.division.part, alike)
    size = count * _size(piece, alike, packed) + sum(root.size for root in alike)
    try:
        Buffer(parts.call.memories.devices[who - 1], size)
    except Lost as lost:
        if not no_memory(lost):
            raise
        return False
    return True


def _give_up(parts: Parts, number: int) -> None:
    """Give up what a part touches on its device."""
    for root in {**parts.needed[number], **parts.written[number]}:
        root.give_up(parts.ranges[number][0])


def _alike(parts: Parts, number: int) -> set[Root]:
    """What all pieces of a part need alike, and none of them writes."""
    who, lo, _ = parts.ranges[number]
    first = parts.piece((who, lo, lo + 1), number).needed[0]
    written = parts.written[number]
    return {
        root
        for root, spans in parts.needed[number].items()
        if root not in written and np.array_equal(spans, first.get(root, NOTHING))  # all need together what one needs
    }


def _size(piece: Parts, alike: set[Root], packed: bool) -> int:
    """The memory that a piece takes."""
    return sum(extent.size for extent, _ in extents(piece, alike, packed))


def _form(piece: Parts, function: Function, alike: set[Root]) -> tuple[Function, bool]:
    """The form of a function that pieces like this one are computed by, and whether its windows are packed."""
    form = piece.call.plan.spread(function)
    if form is None or _size(piece, alike, True) > WORTH * _size(piece, alike, False):
        return function, False
    return form, True


class _Running(NamedTuple):
    piece: Parts
    more: Sequence[Any]
    windows: Windows
    wait: Callable[[], list[Any]]


class _Stream:
    """Parts that are computed in pieces, by one device; `ready`: the parts are pieces already.

    Attributes
    ----------
    alike : what all pieces need alike, and is on the device
    packed : windows are boxes, and the function is in the form for that
    running : the pieces under way
    results : of those that are done
    """

    def __init__(self, parts: Parts, number: int, function: Function, ready: bool) -> None:
        self.parts, self.ready = parts, ready
        self.who, lo, _ = parts.ranges[number]
        self.memories = parts.call.memories
        self.device: Device = self.memories.devices[self.who - 1]
        self.running: deque[_Running] = deque()
        self.results: list[tuple[Range, list[Any]]] = []
        self.started = 0
        _give_up(parts, number)
        self.alike = set() if ready else self._bring_what_is_alike(number)
        one = parts.piece((self.who, lo, lo + 1), number)
        self.function, self.packed = _form(one, function, self.alike)

    def _bring_what_is_alike(self, number: int) -> set[Root]:
        found: set[Root] = set()
        for root in _alike(self.parts, number):
            try:
                root.bring(self.who, self.parts.needed[number][root])
            except Lost as lost:
                if not no_memory(lost):
                    raise
                root.give_up(self.who)
                continue
            found.add(root)
        if found:
            self.device.synchronize()  # before other lanes look
        return found

    def run(self, number: int, more: Sequence[Any]) -> None:
        """Start the pieces of a part."""
        _, lo, end = self.parts.ranges[number]
        count = end - lo if self.ready else -(-(end - lo) // UNDER_WAY)
        size = None
        while lo < end and not self.parts.stop.asked:
            piece = self.parts.piece((self.who, lo, min(lo + count, end)), number)
            while self.running and self._waits(piece):
                self._finish()
            try:
                self._start(piece, more)
            except Lost as lost:
                if not no_memory(lost) or (count == 1 and not self.running):
                    raise
                smaller = size is None or self._size(piece) < 0.75 * size
                if self.running:
                    self._finish()
                if count > 1 and not (self.ready and self.running) and (smaller or not self.running):
                    size, count = self._size(piece), -(-count // 2)
                continue
            lo = piece.ranges[0][2]
            if len(self.running) == UNDER_WAY:
                self._finish()

    def end(self) -> list[tuple[Range, list[Any]]]:
        """The results, once all pieces are done."""
        while self.running:
            self._finish()
        return self.results

    def _waits(self, piece: Parts) -> bool:
        """Whether a piece needs or writes what one under way writes, as in sums that meet in an element."""
        theirs: dict[Root, Spans] = {}
        for one in self.running:
            for root, spans in one.piece.written[0].items():
                theirs[root] = union(theirs.get(root, NOTHING), spans)
        return any(
            root in theirs and len(intersection(spans, theirs[root]))
            for touched in (piece.written[0], piece.needed[0])
            for root, spans in touched.items()
        )

    def _start(self, piece: Parts, more: Sequence[Any]) -> None:
        """Fill the windows of a piece and start it."""
        for root, spans in piece.needed[0].items():
            root.bring(HOST, spans)
        with self.device.lane(1 + self.started % UNDER_WAY):
            windows: Windows = {}
            for extent, arrays in extents(piece, self.alike, self.packed):
                window = Window(extent, Buffer(self.device, extent.size))
                windows |= dict.fromkeys(arrays, window)
                self.memories.count(HOST, self.who, extent.fill(self.device, window.buffer.address))
            for array in _arrays(more):
                array.root.bring(self.who, array.spans())
            wait = piece.start(0, self.function, more, windows)
        self.running.append(_Running(piece, more, windows, wait))
        self.started += 1

    def _size(self, piece: Parts) -> int:
        return _size(piece, self.alike, self.packed)

    def _finish(self) -> None:
        """Bring the results of the oldest piece under way to the host."""
        piece, more, windows, wait = self.running.popleft()
        with self.device.lane(1 + (self.started - len(self.running) - 1) % UNDER_WAY):
            self.results.append((piece.ranges[0], wait()))
            for window in {id(window): window for window in windows.values()}.values():
                self.memories.count(self.who, HOST, window.extent.empty(self.device, window.buffer.address))
            for root, spans in piece.written[0].items():
                root.wrote(HOST, spans)
            for array in _arrays(more):
                array.root.give_up(self.who)


def _arrays(values: Sequence[Any]) -> list[SharedArray]:
    return [value for value in values if isinstance(value, SharedArray) and value.host.size]
