"""Parts whose data exceed a device's memory: computed there in pieces that fit, from the host and back to it.

A piece has a *window* of every array that it touches (`windows`). What it needs is copied there, what it has written
goes back to the host, and so does what it gives (a partial sum, what it has selected), which is joined as if each piece
were a part. Pieces of a scan come in the order of the index, so each takes in the totals of those before while it is
still on the device: its data go there and back once. What all pieces need alike (the other factor of a product, all
bodies of a simulation) is brought once instead.

Pieces go through four stages, each in a lane of the device:

    filled    what it needs is being copied to the device
    begun     its kernels are launched, up to where the host must know a number (how many elements are selected, the
              total of a scan, whether something has failed)
    settled   the number is there, and all is launched that depends on it
    finished  what it has written is on the host

While one is filled, the one before it is computed and the results of the one before that are copied back; a piece that
the host has to ask something is given one more turn to answer. What waits (to settle, to finish) is asked when other
work has been given to the device. Pieces are halved until all of these fit; if they become no smaller by that, fewer
are under way. Where three of a single index do not fit, the region is cut along another axis.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parakeet_py.hybrid.devices.device import Device, DeviceMemoryError
from parakeet_py.hybrid.execute.device_loss import Lost
from parakeet_py.hybrid.execute.part_future import Started
from parakeet_py.hybrid.partition.division import Bounds
from parakeet_py.hybrid.residency.arrays import Buffer
from parakeet_py.hybrid.residency.blocks import HOST, Root, SharedArray
from parakeet_py.hybrid.residency.byte_ranges import NOTHING, Spans, intersection, same, union
from parakeet_py.hybrid.residency.windows import Window, Windows, extents

if TYPE_CHECKING:
    from parakeet_py.hybrid.devices.team import Range
    from parakeet_py.hybrid.execute.parts import Parts
    from parakeet_py.typed_ir.ir import Function

UNDER_WAY = 3
LANES = 4  # of pieces that have to be asked something there is one more
WORTH = 0.5  # of the memory that windows would take, if they are packed


def no_memory(lost: Lost) -> bool:
    """Whether a device is lost for this only: what was asked of it does not fit."""
    return isinstance(lost.error, DeviceMemoryError)


def stream(
    parts: Parts, numbers: Sequence[int], function: Function, more: Sequence[Sequence[Any]]
) -> list[tuple[Range, list[Any]]]:
    """Compute parts of a region that one device has, in pieces, by a function that takes `more` of each of them; gives
    the range and the results of each piece; of a scan, of all together."""
    found = _Stream(parts, numbers[0], function)
    for number, values in zip(numbers, more, strict=True):
        found.run(number, values)
    return found.end()


def fits(parts: Parts, number: int, count: int) -> bool:
    """Whether a device has memory for so many pieces of one index of its part."""
    who, lo, _ = parts.ranges[number]
    _give_up(parts, number)
    alike = _alike(parts, number)
    piece = parts.piece((who, lo, lo + 1), number)
    _, packed = _forms(piece, [parts.division.part], alike)
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
        if root not in written and same(spans, first.get(root, NOTHING))  # all need together what one needs
    }


def _size(piece: Parts, alike: set[Root], packed: bool) -> int:
    """The memory that a piece takes."""
    return sum(extent.size for extent, _ in extents(piece, alike, packed))


def _forms(piece: Parts, functions: Sequence[Function], alike: set[Root]) -> tuple[Sequence[Function], bool]:
    """The forms of functions that pieces like this one are computed by, and whether their windows are packed."""
    forms = [form for form in map(piece.call.plan.spread, functions) if form is not None]
    if len(forms) < len(functions) or _size(piece, alike, True) > WORTH * _size(piece, alike, False):
        return functions, False
    return forms, True


@dataclass(slots=True)
class _Running:
    """A piece under way; `started` once it is begun. Of a scan, its totals are the `results` once they are known, and
    `before` those of the pieces before that have been taken in."""

    piece: Parts
    more: Sequence[Any]
    windows: Windows
    lane: int
    started: Started | None = None
    settled: bool = False
    results: list[Any] | None = None
    before: Sequence[Any] = ()


class _Stream:
    """Parts that are computed in pieces, by one device.

    Attributes
    ----------
    alike : what all pieces need alike, and is on the device
    packed : windows are boxes, and the functions are in the form for that
    after : takes the totals of the pieces before into a piece, if they are those of a scan
    running : the pieces under way
    most : how many there may be
    todo : the ranges of a part that are left, the next one last
    count, size : how many indices pieces have; what those took of which there was too little memory
    results : of the pieces that are done
    before : the totals of a scan so far
    """

    def __init__(self, parts: Parts, number: int, function: Function) -> None:
        self.parts = parts
        self.who, lo, _ = parts.ranges[number]
        self.memories = parts.call.memories
        self.device: Device = self.memories.devices[self.who - 1]
        self.running: deque[_Running] = deque()
        self.most = LANES
        self.todo: list[Bounds] = []
        self.count = 1
        self.size: int | None = None
        self.results: list[tuple[Range, list[Any]]] = []
        self.before: list[Any] | None = None
        self.filled = 0
        _give_up(parts, number)
        self.alike = self._bring_what_is_alike(number)
        functions = [function]
        if function is parts.division.part and parts.division.after is not None:
            functions.append(parts.division.after)
            parts.prepare(number, parts.division.after)
        one = parts.piece((self.who, lo, lo + 1), number)
        (self.function, *after), self.packed = _forms(one, functions, self.alike)
        self.after = after[0] if after else None

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
        """Do the pieces of a part; the last ones are not finished."""
        _, lo, end = self.parts.ranges[number]
        self.count, self.size = -(-(end - lo) // UNDER_WAY), None
        self.todo = [(lo, end)]
        if _arrays(more):
            self.end()
            self._bring(more)
            self.device.synchronize()  # before other lanes look
        while (self.todo or self._unsettled()) and not self.parts.stop.asked:
            try:
                self._turn(number, more)
            except Lost as lost:
                if not no_memory(lost):
                    raise
                self._take_back(lost)
        if _arrays(more):
            self.end()
            self._give_up(more)

    def _turn(self, number: int, more: Sequence[Any]) -> None:
        """Take all pieces under way a stage further, and the next one in."""
        self._go_on()
        if not self.todo:
            return
        lo, end = self.todo[-1]
        piece = self.parts.piece((self.who, lo, min(lo + self.count, end)), number)
        while self.running and (len(self.running) >= self.most or self._waits(piece)):
            self._finish()
        try:
            self._fill(piece, more)
        except Lost as lost:
            if not no_memory(lost) or (self.count == 1 and not self.running):
                raise
            size = _size(piece, self.alike, self.packed)
            smaller = self.size is None or size < 0.75 * self.size
            if self.count > 1 and (smaller or not self.running):
                self.size, self.count = size, -(-self.count // 2)
            if self.running:
                self._finish()
            return
        self.todo.pop()
        if piece.ranges[0][2] < end:
            self.todo.append((piece.ranges[0][2], end))
        if len(self.running) >= self._wanted():
            self._finish()

    def end(self) -> list[tuple[Range, list[Any]]]:
        """The results, once all pieces are done."""
        while self.running:
            self._finish()
        return self.results

    def _unsettled(self) -> bool:
        return any(not one.settled for one in self.running)

    def _go_on(self) -> None:
        """Settle what has been begun, then begin what has been filled."""
        for one in self.running:
            if one.started is not None:
                self._settle(one)
        for one in self.running:
            if one.started is None:
                self._begin(one)

    def _wanted(self) -> int:
        """How many pieces keep the device at work: one more if what has been begun last has to be asked something."""
        begun = [one for one in self.running if one.started is not None]
        return UNDER_WAY if not begun or begun[-1].settled else LANES

    def _take_back(self, lost: Lost) -> None:
        """Begin anew with the pieces that are not settled, as there is no memory for what they make: smaller ones, or
        fewer at a time. The host has seen nothing of them."""
        under_way = len(self.running)
        if self.count == 1 and under_way <= 1:
            raise lost
        while self.running and not self.running[-1].settled:
            self.todo.append(self.running.pop().piece.ranges[0][1:])
        self.end()
        if self.count > 1:
            self.count = -(-self.count // 2)
        else:
            self.most = under_way - 1

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

    def _fill(self, piece: Parts, more: Sequence[Any]) -> None:
        """Fill the windows of a piece."""
        for root, spans in piece.needed[0].items():
            root.bring(HOST, spans)
        lane = 1 + self.filled % LANES
        with self.device.lane(lane):
            windows: Windows = {}
            for extent, arrays in extents(piece, self.alike, self.packed):
                window = Window(extent, Buffer(self.device, extent.size))
                windows |= dict.fromkeys(arrays, window)
                self.memories.count(HOST, self.who, extent.fill(self.device, window.buffer.address))
        self.running.append(_Running(piece, more, windows, lane))
        self.filled += 1

    def _bring(self, values: Sequence[Any]) -> None:
        for array in _arrays(values):
            array.root.bring(self.who, array.spans())

    def _give_up(self, values: Sequence[Any]) -> None:
        for array in _arrays(values):
            array.root.give_up(self.who)

    def _begin(self, one: _Running) -> None:
        """Start a piece."""
        with self.device.lane(one.lane):
            one.started = one.piece.start(0, self.function, one.more, one.windows)
            one.settled = one.started.launched and self.after is None

    def _settle(self, one: _Running) -> None:
        """Launch all that is left to launch of a piece; of a scan, take the totals before into it."""
        if one.settled:
            return
        assert one.started is not None
        with self.device.lane(one.lane):
            one.started.launch_all()
            if self.after is not None:
                one.results = one.started()
                self._take_in(one)
        one.settled = True

    def _take_in(self, one: _Running) -> None:
        """Take the totals of the pieces before into one, and its own into them."""
        assert self.after is not None and one.results is not None
        if self.before is None:
            self.before = one.results
            return
        one.before = self.before
        self._bring(one.before)
        one.piece.start(0, self.after, self.before, one.windows)()
        self.before = self.parts.total(self.before, one.results)

    def _finish(self) -> None:
        """Bring the results of the oldest piece under way to the host."""
        one = self.running[0]
        if one.started is None:
            self._begin(one)
        self._settle(one)
        assert one.started is not None
        self.running.popleft()
        with self.device.lane(one.lane):
            results = one.started() if one.results is None else one.results
            for window in {id(window): window for window in one.windows.values()}.values():
                self.memories.count(self.who, HOST, window.extent.empty(self.device, window.buffer.address))
            for root, spans in one.piece.written[0].items():
                root.wrote(HOST, spans)
            self._give_up(one.before)
        who, lo, hi = one.piece.ranges[0]
        if self.after is None:
            self.results.append(((who, lo, hi), results))
        else:
            assert self.before is not None
            first = self.results[0][0][1] if self.results else lo
            self.results = [((who, first, hi), self.before)]


def _arrays(values: Sequence[Any]) -> list[SharedArray]:
    return [value for value in values if isinstance(value, SharedArray) and value.size]
