"""Parts whose data exceed a device's memory: computed there in pieces that fit, from the host and back to it.

A piece has a *window* of every array that it touches: memory on the device for the bytes from the first to the last
that it needs or writes, and no more. What it needs is copied into its windows, what it has written goes back to the
host. The windows of two pieces exist at a time where there is room for two, so that one is filled and started before
the results of the one before it are waited for; pieces become smaller until they fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from parakeet_py.hybrid.arrays import GRANULE, Buffer, DeviceView, memory_of
from parakeet_py.hybrid.device import DeviceMemoryError
from parakeet_py.hybrid.losses import Lost
from parakeet_py.hybrid.residency import HOST, Root, SharedArray
from parakeet_py.hybrid.spans import NOTHING, pieces, size_of, union

if TYPE_CHECKING:
    from parakeet_py.hybrid.parts import Parts


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
    who, lo, hi = parts.ranges[number]
    count = max((hi - lo) // 2, 1)
    running: tuple[Parts, Windows, Callable[[], list[Any]]] | None = None
    while lo < hi:
        piece = parts.piece((who, lo, min(lo + count, hi)))
        try:
            windows = _windows(piece)
            _fill(piece, windows)
            wait = piece.start(0, parts.division.part, (), windows)
        except Lost as lost:
            windows = {}
            if not no_memory(lost):
                raise
            if running is not None:  # its windows are in the way
                _finish(*running)
                running = None
            elif count > 1:
                count = -(-count // 2)
            else:
                raise
            continue
        if running is not None:
            _finish(*running)
        running = piece, windows, wait
        lo = piece.ranges[0][2]
    if running is not None:
        _finish(*running)


def _windows(piece: Parts) -> Windows:
    who, device = piece.ranges[0][0], piece.call.memories.devices[piece.ranges[0][0] - 1]
    touched = dict(piece.needed[0])
    for root, spans in piece.written[0].items():
        touched[root] = union(touched.get(root, spans), spans)
    found: Windows = {}
    for array in (*piece.whole, *(piece.values[var] for var in piece.division.free)):
        if not isinstance(array, SharedArray) or array.root in found:
            continue
        spans = touched.get(array.root, NOTHING)
        start = int(spans[0]) // GRANULE * GRANULE if len(spans) else 0
        size = int(spans[-1]) - start if len(spans) else 1
        if who in array.root.copies and array.root.copies[who].size >= array.root.size:
            array.root.give_up(who)
        found[array.root] = Window(Buffer(device, size), start)
    return found


def _fill(piece: Parts, windows: Windows) -> None:
    who = piece.ranges[0][0]
    device = piece.call.memories.devices[who - 1]
    for root, spans in piece.needed[0].items():
        root.bring(HOST, spans)
        window, host = windows[root], memory_of(root.address, root.size)
        for start, stop in pieces(spans):
            device.copy_in(window.buffer.address + start - window.start, host[start:stop])
        piece.call.memories.count(HOST, who, size_of(spans))


def _finish(piece: Parts, windows: Windows, wait: Callable[[], list[Any]]) -> None:
    who = piece.ranges[0][0]
    device = piece.call.memories.devices[who - 1]
    wait()
    for root, spans in piece.written[0].items():
        window, host = windows[root], memory_of(root.address, root.size)
        for start, stop in pieces(spans):
            device.copy_out(host[start:stop], window.buffer.address + start - window.start)
        piece.call.memories.count(who, HOST, size_of(spans))
        root.wrote(HOST, spans)
    windows.clear()
