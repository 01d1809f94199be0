"""Parts whose data exceed a device's memory: computed there in pieces that fit, from the host and back to it.

A piece has a *window* of every array that it touches: memory on the device for the bytes from the first to the last
that it needs or writes, and no more. What it needs is copied into its windows, what it has written goes back to the
host. What all pieces need alike (the other factor of a product, all bodies of a simulation) is brought once instead.

Three pieces are under way at a time, each in a lane of the device: while one is filled, the one before it is computed
and the results of the one before that are copied back. Pieces are halved until three fit; if they become no smaller
by that, fewer are under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.arrays import GRANULE, Buffer, DeviceView, memory_of
from parakeet_py.hybrid.device import Device, DeviceMemoryError
from parakeet_py.hybrid.losses import Lost
from parakeet_py.hybrid.residency import HOST, Root, SharedArray
from parakeet_py.hybrid.spans import NOTHING, Spans, pieces, size_of, union

if TYPE_CHECKING:
    from parakeet_py.hybrid.parts import Parts

UNDER_WAY = 3


class Window(NamedTuple):
    """Memory on a device for the bytes of a root from `start` on."""

    buffer: Buffer
    start: int

    def view(self, array: SharedArray) -> DeviceView:
        """An array of the root; only elements in the window may be touched."""
        offset = array.host.__array_interface__["data"][0] - array.root.address if array.host.size else 0
        host = array.host
        return DeviceView(self.buffer, offset - self.start, host.dtype.name, array.shape, host.strides)


Windows = dict[Root, Window]


def no_memory(lost: Lost) -> bool:
    """Whether a device is lost for this only: what was asked of it does not fit."""
    return isinstance(lost.error, DeviceMemoryError)


def stream(parts: Parts, number: int) -> None:
    """Compute one of the parts of a region, whose results are concatenated, in pieces."""
    _Stream(parts, number).run()


class _Running(NamedTuple):
    piece: Parts
    windows: Windows
    wait: Callable[[], list[Any]]


class _Stream:
    """One part that is computed in pieces.

    Attributes
    ----------
    alike : what all pieces need alike, and is on the device
    running : the pieces under way
    """

    def __init__(self, parts: Parts, number: int) -> None:
        self.parts, self.number = parts, number
        self.who, self.lo, self.hi = parts.ranges[number]
        self.memories = parts.call.memories
        self.device: Device = self.memories.devices[self.who - 1]
        self.running: deque[_Running] = deque()
        self.started = 0
        for root in {**parts.needed[number], **parts.written[number]}:
            root.give_up(self.who)
        self.alike = self._bring_what_is_alike(number)

    def _bring_what_is_alike(self, number: int) -> set[Root]:
        first = self.parts.piece((self.who, self.lo, self.lo + 1), number).needed[0]
        written = self.parts.written[number]
        found: set[Root] = set()
        for root, spans in self.parts.needed[number].items():
            if root in written or not np.array_equal(spans, first.get(root, NOTHING)):
                continue  # what all need together is not what one needs
            try:
                root.bring(self.who, spans)
            except Lost as lost:
                if not no_memory(lost):
                    raise
                root.give_up(self.who)
                continue
            found.add(root)
        if found:
            self.device.synchronize()  # before other lanes look
        return found

    def run(self) -> None:
        lo, count = self.lo, -(-(self.hi - self.lo) // UNDER_WAY)
        size = None
        while lo < self.hi and not self.parts.stop.asked:
            piece = self.parts.piece((self.who, lo, min(lo + count, self.hi)), self.number)
            try:
                self._start(piece)
            except Lost as lost:
                if not no_memory(lost) or (count == 1 and not self.running):
                    raise
                smaller = size is None or self._size(piece) < 0.75 * size
                if self.running:
                    self._finish()
                if count > 1 and (smaller or not self.running):
                    size, count = self._size(piece), -(-count // 2)
                continue
            lo = piece.ranges[0][2]
            if len(self.running) == UNDER_WAY:
                self._finish()
        while self.running:
            self._finish()

    def _start(self, piece: Parts) -> None:
        """Fill the windows of a piece and start it."""
        for root, spans in piece.needed[0].items():
            root.bring(HOST, spans)
        with self.device.lane(1 + self.started % UNDER_WAY):
            windows = {
                root: Window(Buffer(self.device, size), start) for root, (start, size) in self._extents(piece).items()
            }
            for root, spans in piece.needed[0].items():
                if root in self.alike:
                    continue
                window, host = windows[root], memory_of(root.address, root.size)
                for start, stop in pieces(spans):
                    self.device.copy_in(window.buffer.address + start - window.start, host[start:stop])
                self.memories.count(HOST, self.who, size_of(spans))
            wait = piece.start(0, self.parts.division.part, (), windows)
        self.running.append(_Running(piece, windows, wait))
        self.started += 1

    def _extents(self, piece: Parts) -> dict[Root, tuple[int, int]]:
        """Where the window of each array begins, and its size."""
        touched: dict[Root, Spans] = dict(piece.needed[0])
        for root, spans in piece.written[0].items():
            touched[root] = union(touched.get(root, NOTHING), spans)
        found = {}
        for array in (*piece.whole, *(piece.values[var] for var in piece.division.free)):
            if isinstance(array, SharedArray) and array.root not in self.alike:
                spans = touched.get(array.root, NOTHING)
                start = int(spans[0]) // GRANULE * GRANULE if len(spans) else 0
                found[array.root] = start, int(spans[-1]) - start if len(spans) else 1
        return found

    def _size(self, piece: Parts) -> int:
        return sum(size for _, size in self._extents(piece).values())

    def _finish(self) -> None:
        """Bring the results of the oldest piece under way to the host."""
        piece, windows, wait = self.running.popleft()
        with self.device.lane(1 + (self.started - len(self.running) - 1) % UNDER_WAY):
            wait()
            for root, spans in piece.written[0].items():
                window, host = windows[root], memory_of(root.address, root.size)
                for start, stop in pieces(spans):
                    self.device.copy_out(host[start:stop], window.buffer.address + start - window.start)
                self.memories.count(self.who, HOST, size_of(spans))
                root.wrote(HOST, spans)
