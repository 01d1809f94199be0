"""Parts that run one after another in a task, a strip of rows at a time: what is between stays in the cache.

    a := part 1 of all rows              for each strip of rows:
    b := part 2 of all rows of a   ->        a := part 1 of the strip
    c := part 3 of all rows of b             b := part 2 of the strip of a
                                             c[strip] := part 3 of the strip of b

Parts of `Map`s and of `Reduce`s that keep their first axis can be cut there as a block is cut from an operator: points
do not depend on each other, and a part takes where its rows begin and how many there are. A part joins the ones before
it if all that it reads of theirs are the rows that it makes itself (`Arguments.rows` says which rows follow those of
the index space). What nothing else reads has the memory of one strip.

Where a part fails, all of them run again, one after another: the first one that fails is the one that raises.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base.types import Array
from parakeet_py.cluster.worker.buffers import ViewSlot, WindowSpec, window
from parakeet_py.cluster.worker.kernel import Kernel
from parakeet_py.cluster.worker.tasks import Arguments, Stretch, Value, free_arguments, joined_rows, run_part, take
from parakeet_py.hybrid.plan.host_memory import empty
from parakeet_py.hybrid.plan.host_parts import PreparedCall

LEAST = 1 << 20  # bytes of what parts give each other and read: less is in the cache anyway
STRIP = 1 << 21  # bytes of these in a strip

Step = tuple[Any, tuple[Any, ...]]


class Given(NamedTuple):
    """What an earlier part gives: the part's number, which of its values it is, and, if that has become one line of
    elements, how many of them a row has."""

    part: int
    number: int
    flat: int = 0


class _Part:
    """One part of a line.

    Attributes
    ----------
    each : how many of its rows are made beside one of the first part's
    windows, stretches, values : see `tasks.run_part`; values of earlier parts of the line are `Given`
    read : the windows that are one of these values
    full : the numbers of values that are wanted when all strips are done
    all : its values
    """

    def __init__(self, args: Sequence[Any], values: Sequence[Any]) -> None:
        self.kernel: Kernel = args[0]
        self.common: Arguments = args[1]
        self.los: tuple[int, ...] = args[2]
        self.counts: tuple[int, ...] = args[3]
        self.windows: tuple[WindowSpec, ...] = args[4]
        self.stretches: tuple[Stretch, ...] = args[5]
        self.values, self.each = values, 1
        self.read: dict[int, Given] = {}
        self.full: set[int] = set()
        self.all: list[Any] = []
        self.results = len(self.kernel.function.body.results)
        self.written = [number for number, spec in enumerate(self.windows) if spec.written]

    @property
    def count(self) -> int:
        """How many values it gives: arrays that it fills, results, windows that it stores into."""
        return len(self.common.filled) + self.results + len(self.written)

    def joins(self, parts: Sequence[_Part]) -> bool:
        """Whether it can run strip by strip with some parts before it."""
        if self.common.rows is None or not self.counts or not self.counts[0]:
            return False
        if parts:
            self.each, odd = divmod(self.counts[0], parts[0].counts[0])
            if odd or not self.each:
                return False
        for slot in self.common.free:
            if not isinstance(slot, ViewSlot) and slot.place >= 0 and isinstance(self.values[slot.place], Given):
                return False
        for number, spec in enumerate(self.windows):
            given = [value for piece in spec.pieces if isinstance(value := self.values[piece.place], Given)]
            if not given:
                continue
            whole = len(spec.pieces) == 1 and spec.pieces[0].box == spec.box and not any(spec.pieces[0].at)
            if spec.written or self.stretches or not whole or not self._is_own(number):
                return False
            before = parts[given[0].part]
            if not before.is_of_rows(given[0].number) or self.each != before.each * (given[0].flat or 1):
                return False
            self.read[number] = given[0]
        return True

    def _is_own(self, number: int) -> bool:
        """Whether the window `number` has a row for each of the block's, which is all that this one touches."""
        spec, rows = self.windows[number], self.common.rows
        along = None if rows is None else rows[number]
        if along is None or along[0] != along[1]:
            return False
        first = self.los[0] + along[0]
        return spec.box[0] == (first, first + self.counts[0])

    def is_of_rows(self, number: int) -> bool:
        """Whether a value has a row for each of the block's, which is complete once the part has made that."""
        at = number - len(self.common.filled) - self.results
        return at < 0 or self._is_own(self.written[at])

    def size_of(self, number: int) -> int:
        """How many elements a value has."""
        at = number - len(self.common.filled)
        if at < 0:
            return math.prod(self.counts)
        if at < self.results:
            kind = self.kernel.function.body.results[at].type
            return math.prod(self.counts[: kind.rank]) if isinstance(kind, Array) else 1
        return math.prod(hi - lo for lo, hi in self.windows[self.written[at - self.results]].box)

    def row_bytes(self, seen: set[int]) -> int:
        """About how many bytes of arrays belong to a row, but for those that others have counted."""
        each = math.prod(self.counts[1:])
        size = sum(np.dtype(dtype).itemsize * each for dtype in self.common.filled) + 8 * self.results
        size *= self.each
        for number, spec in enumerate(self.windows):
            given = [id(value) for piece in spec.pieces if not isinstance(value := self.values[piece.place], Given)]
            if number in self.read or (given and seen.issuperset(given)):
                continue
            seen.update(given)
            if spec.box and spec.box[0][1] - spec.box[0][0] >= self.counts[0]:
                size += np.dtype(spec.dtype).itemsize * math.prod(hi - lo for lo, hi in spec.box[1:]) * self.each
        return size

    # ---- strips ------------------------------------------------------------------------------------------------------

    def begin(self, strip: int, parts: Sequence[_Part]) -> None:
        """Make the arrays and calls of all strips, the first of which are of the first one."""
        rows, together, strip = self.counts[0], self.kernel.together, strip * self.each
        values = [parts[one.part].given(one) if isinstance(one, Given) else one for one in self.values]
        short = {number for number, one in self.read.items() if parts[one.part].is_short(one.number)}
        specs = list(self.windows)
        for number in short:
            first = specs[number].box[0][0]
            specs[number] = specs[number]._replace(box=((first, first + strip), *specs[number].box[1:]))
        alone = {number for one in self.stretches for number, own in enumerate(one.windows) if own is not None}
        buffers: list[Any] = [
            None
            if number in alone
            else values[spec.pieces[0].place]
            if number in short
            else window(spec, values, together, self.kernel.anywhere)
            for number, spec in enumerate(specs)
        ]
        filled = [
            empty((strip if self.is_short(number) else rows, *self.counts[1:]), dtype)
            for number, dtype in enumerate(self.common.filled)
        ]
        self.made = [
            empty((rows, *self.counts[1 : result.type.rank]), result.type.dtype)
            for result in self.kernel.function.body.results
            if isinstance(result.type, Array)
        ]
        self.all = [*filled, *self.made, *(buffers[number] for number in self.written)]
        self.filled = [
            (array.__array_interface__["data"][0], array.strides[0], self.is_short(number))
            for number, array in enumerate(filled)
        ]
        self.calls: list[tuple[int, int, PreparedCall, list[tuple[int, int, int]]]] = []
        for first, last, own in self.stretches or (Stretch(0, rows, (None,) * len(specs)),):
            some = [spec if mine is None else mine for spec, mine in zip(specs, own, strict=True)]
            held = [
                buffer if mine is None else window(mine, values, together, self.kernel.anywhere)
                for buffer, mine in zip(buffers, own, strict=True)
            ]
            free = free_arguments(self.common.free, some, held, values)
            call = self.kernel.prepared([*self.los, *self.counts, *filled, *free])
            head = len(self.los) + len(self.counts) + len(filled)
            moving = [
                (head + number, argument.__array_interface__["data"][0], held[slot.window].strides[0])
                for number, (slot, argument) in enumerate(zip(self.common.free, free, strict=True))
                if isinstance(slot, ViewSlot) and slot.window in short
            ]
            self.calls.append((first, last, call, moving))

    def given(self, one: Given) -> Any:
        """A value, or what there is of it at a time."""
        return self.all[one.number].reshape(-1) if one.flat else self.all[one.number]

    def is_short(self, number: int) -> bool:
        """Whether a value has memory for one strip alone."""
        return number < len(self.common.filled) and number not in self.full

    def run(self, lo: int, hi: int) -> None:
        """Make the values of a strip."""
        lo, hi = lo * self.each, hi * self.each
        extent = len(self.los)
        head = extent + len(self.counts)
        for first, last, call, moving in self.calls:
            a, b = max(first, lo), min(last, hi)
            if a >= b:
                continue
            call.set_int(0, self.los[0] + a)
            call.set_int(extent, b - a)
            for number, (address, stride, short) in enumerate(self.filled, head):
                call.set_array(number, address + (a - lo if short else a) * stride, b - a)
            for param, address, stride in moving:
                call.move(param, address - lo * stride)
            call(into=[made[a:b] for made in self.made] if self.made else ())

    def value(self) -> Any:
        """What the part gives, as `tasks.run_part` does; what is not wanted is None."""
        found = [None if self.is_short(number) else array for number, array in enumerate(self.all)]
        return found[0] if len(found) == 1 else tuple(found)


class Strips:
    """Parts of a task that run strip by strip.

    Attributes
    ----------
    rows : of a strip
    steps : how many steps of the task they are
    """

    def __init__(self, parts: Sequence[_Part], made: Sequence[Given | _Part], rows: int) -> None:
        self.parts, self.made, self.rows = parts, made, rows
        self.steps = len(made)

    def run(self) -> list[Any]:
        """The values of the steps."""
        rows, strip = self.parts[0].counts[0], self.rows
        for part in self.parts:
            part.begin(strip, self.parts)
        for lo in range(0, rows, strip):
            for part in self.parts:
                part.run(lo, min(lo + strip, rows))
        values = [part.value() for part in self.parts]
        found = []
        for one in self.made:
            if isinstance(one, _Part):
                found.append(values[self.parts.index(one)])
            else:
                value = values[one.part]
                value = value[one.number] if self.parts[one.part].count > 1 else value
                found.append(value.reshape(-1) if one.flat and value is not None else value)
        return found


def strips_of(steps: Sequence[Step], first: int, values: Sequence[Any], wanted: Collection[int]) -> Strips | None:
    """The parts from the step `first` on that had better run strip by strip, if there are several.

    Parameters
    ----------
    values : what is given to the task, and what the steps before have made
    wanted : the places of values that the task gives
    """
    parts: list[_Part] = []
    made: list[Given | _Part] = []
    base = len(values)

    def given(arg: Any) -> Any:
        if type(arg) is not Value:
            return arg
        if arg.place < base:
            return values[arg.place] if arg.item < 0 else values[arg.place][arg.item]
        one = made[arg.place - base]
        if not isinstance(one, _Part):
            return one if arg.item < 0 else None
        if arg.item < 0 and one.count > 1:
            return None
        return Given(parts.index(one), max(arg.item, 0))

    for function, args in steps[first:]:
        if function is take and type(args[0]) is Value and args[0].place >= base:
            one = made[args[0].place - base]
            if not isinstance(one, _Part):
                break
            made.append(Given(parts.index(one), args[1]))
            continue
        if function is joined_rows and type(args[2]) is Value and args[2].place >= base:
            line = _flat(args, given(args[2]), parts)
            if line is None:
                break
            made.append(line)
            continue
        if function is not run_part:
            break
        values_of = [given(arg) for arg in args[6:]]
        part = _Part([given(args[0]), *args[1:]], values_of)
        if any(value is None for value in values_of) or not part.joins(parts):
            break
        parts.append(part)
        made.append(part)
    while made and not isinstance(made[-1], _Part):
        made.pop()
    if len(parts) < 2:
        return None
    seen: set[int] = set()
    each = max(sum(part.row_bytes(seen) for part in parts), 1)
    rows = max(STRIP // each, 1)
    if each * parts[0].counts[0] < LEAST or 2 * rows > parts[0].counts[0]:
        return None
    _want(parts, made, base, steps[first + len(made) :], wanted)
    return Strips(parts, made, rows)


def _flat(args: Sequence[Any], one: Any, parts: Sequence[_Part]) -> Given | None:
    """A value of a part, all of it, as one line of elements."""
    shape, pieces = args[:2]
    if not isinstance(one, Given) or one.flat or len(args) != 3 or len(shape) != 1:
        return None
    part = parts[one.part]
    if part.each != 1 or not part.is_of_rows(one.number) or pieces != ((0, part.size_of(one.number)),):
        return None
    return Given(one.part, one.number, shape[0] // part.counts[0])


def _want(
    parts: Sequence[_Part],
    made: Sequence[Given | _Part],
    base: int,
    later: Sequence[Step],
    wanted: Collection[int],
) -> None:
    """Note which values of parts are wanted when all strips are done."""
    uses = [(place, -1) for place in wanted]
    uses += [(arg.place, arg.item) for _, args in later for arg in args if type(arg) is Value]
    for function, args in later:
        if function is take and type(args[0]) is Value:
            uses.remove((args[0].place, args[0].item))
            uses.append((args[0].place, args[1]))
    for place, item in uses:
        if not base <= place < base + len(made):
            continue
        one = made[place - base]
        if isinstance(one, _Part):
            one.full |= set(range(one.count)) if item < 0 else {item}
        else:
            parts[one.part].full.add(one.number)
