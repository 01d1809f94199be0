"""Room in the code of functions: units inserted before instructions, which jumps, handlers and lines follow.

A jump that spans inserted units grows; one that needs a longer argument than it has room for gets an EXTENDED_ARG,
which is another insertion, until none is needed.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Collection, Iterable, Iterator
from types import CodeType

Range = tuple[int, int, int, int]  # of an exception table: units from, so many; the handler; depth and flag
_NO_PLACE = 0x80 | 15 << 3  # an entry of the table of positions, for up to eight units, less one


def with_room(code: CodeType, before: Iterable[int]) -> CodeType:
    """The same code with a NOP before each of these instructions, counted in units of two bytes.

    What jumps to one of them jumps to its NOP. They must be such as may stand behind any other: returns, say, but no
    CALL, which CPython takes to follow its PRECALL.
    """
    jumps = list(_jumps(code))
    asked = set(before)
    wide: set[int] = set()
    while True:
        room = sorted(asked | wide)
        short = {
            start for start, at, target, argument in jumps if _grown(room, at, target, argument) >= _room(start, at)
        }
        if short <= wide:
            break
        wide |= short
    units = bytearray()
    spans = {at: (start, _grown(room, at, target, argument)) for start, at, target, argument in jumps}
    for at in range(len(code.co_code) // 2):
        if at in asked or at in wide:
            units += bytes([opcode.opmap["NOP"], 0])
        units += code.co_code[2 * at : 2 * at + 2]
        if at in spans:
            start, argument = spans[at]
            for back in range(at - start + (start in wide) + 1):
                place = len(units) - 2 * back - 2
                if back:
                    units[place] = opcode.opmap["EXTENDED_ARG"]
                units[place + 1] = argument >> 8 * back & 255
    ranges = [
        (moved(room, start), moved(room, start + count) - moved(room, start), moved(room, target), depth)
        for start, count, target, depth in ranges_of(code.co_exceptiontable)
    ]
    return code.replace(
        co_code=bytes(units),
        co_exceptiontable=bytes(table_of(ranges)),
        co_linetable=bytes(_lines(code.co_linetable, room)),
    )


def moved(room: Collection[int], unit: int) -> int:
    """Where a unit is, or the NOP before it, once there is room before some."""
    return unit + sum(one < unit for one in room)


def _jumps(code: CodeType) -> Iterator[tuple[int, int, int, int]]:
    """Of each jump: its first EXTENDED_ARG, itself, its target, its argument."""
    start = None
    for one in dis.get_instructions(code):
        at = one.offset // 2
        start = at if start is None else start
        if one.opname == "EXTENDED_ARG":
            continue
        if one.opcode in dis.hasjrel:
            assert one.arg is not None and isinstance(one.argval, int)
            yield start, at, one.argval // 2, one.arg
        start = None


def _grown(room: Collection[int], at: int, target: int, argument: int) -> int:
    low, high = (at + 1, target) if target > at else (target, at + 1)
    return argument + sum(low <= one < high for one in room)


def _room(start: int, at: int) -> int:
    """Arguments are less than this in a jump with so many units."""
    return 1 << 8 * (at - start + 1)


# ---- exception tables (CPython, Objects/exception_handling_notes.txt) ------------------------------------------------


def ranges_of(table: bytes) -> Iterator[Range]:
    """The ranges of an exception table."""
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    yield from zip(*[iter(numbers)] * 4, strict=True)


def table_of(ranges: Iterable[Range]) -> Iterator[int]:
    """The bytes of an exception table."""
    for one in ranges:
        mark = 128  # at the first byte
        for number in one:
            for shift in range(max(number.bit_length() - 1, 0) // 6 * 6, -1, -6):
                yield mark | (64 if shift else 0) | number >> shift & 63
                mark = 0


# ---- tables of positions (CPython, Objects/locations.md) -------------------------------------------------------------


def no_places(units: int) -> bytes:
    """So many units without a position."""
    return bytes(_NO_PLACE | min(units - done, 8) - 1 for done in range(0, units, 8))


def _lines(table: bytes, room: Collection[int]) -> Iterator[int]:
    """A table with units inserted, which have no position; before the entry that has the unit they stand before."""
    left = sorted(room, reverse=True)
    starts = [at for at, byte in enumerate(table) if byte & 128]
    unit = 0
    for at, end in zip(starts, [*starts[1:], len(table)], strict=True):
        length = (table[at] & 7) + 1
        while left and left[-1] < unit + length:
            yield from no_places(1)
            left.pop()
        yield from table[at:end]
        unit += length
