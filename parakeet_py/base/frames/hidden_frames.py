"""Functions that run between a caller and the user's function, without a visible frame.

Python code can look at its callers: `sys._getframe(1)`, `warnings.warn(..., stacklevel=2)`, `inspect.stack()`, the
`findCaller` of `logging`, the module that `namedtuple` puts its class into. While Python runs a call of an accelerated
function, functions of this package are on the stack, between the caller and the user's function. `hidden` makes a
function of which nothing shows there, nor in tracebacks.

CPython itself has frames that are not shown: those that have not come to their first RESUME yet, the instruction with
which all Python functions begin. Walks of the stack and tracebacks leave out each frame whose present instruction lies
before the first RESUME in its code (`_PyFrame_IsIncomplete`). So a function is hidden by a RESUME that stands behind
all of its code:

    JUMP_FORWARD begin
    body:   ...                     each return is a jump to `return`, each exception that leaves is caught at `leave`
    begin:  RESUME
            JUMP_BACKWARD body
    leave:  RERAISE
    return: RETURN_VALUE

Tools (`sys.setprofile`, `sys.monitoring`) get the events of its beginning and end as ever, and find its frame then.

A return that is too far from the end to jump there, over a hundred instructions, in one step or from return to return,
gets room for a longer argument. In other implementations and in versions that are not known, functions stay as they
are, and so do those of tens of thousands of instructions.
"""

from __future__ import annotations

import inspect
import opcode
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, Final, TypeVar

from parakeet_py.base.frames.code_room import Range, no_places, ranges_of, table_of, with_room

F = TypeVar("F", bound=Callable[..., Any])

HIDES: Final = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info < (3, 16)
_SUSPENDED: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_OF_RESUME: Final = 1 if sys.version_info < (3, 15) else 2  # units, with its cache
_OF_JUMP: Final = 2 if sys.version_info < (3, 13) else 3  # units of a jump back, with its cache and a long argument
_LONGEST: Final = 100_000  # bytes of code: jumps have two bytes for units of two
_BACK: Final = _OF_RESUME + _OF_JUMP
_RETURNS: Final = [opcode.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in opcode.opmap]


def hidden(function: F) -> F:
    """Let no frame of a function (no generator) show; gives the function."""
    if HIDES:
        assert isinstance(function, FunctionType) and not function.__code__.co_flags & _SUSPENDED
        function.__code__ = _hidden(function.__code__)
    return function


@lru_cache(maxsize=64)
def _hidden(code: CodeType) -> CodeType:
    if len(code.co_code) > _LONGEST:
        return code
    near = _rearranged(code, False)
    if near is not None:
        return near
    returns = [at for at, one in enumerate(code.co_code[::2]) if one in _RETURNS]
    far = _rearranged(with_room(code, returns), True)
    assert far is not None
    return far


def _rearranged(code: CodeType, has_room: bool) -> CodeType | None:
    """The code as it is hidden; None if a return is too far from the end, and has no room for the way."""
    body = bytearray(code.co_code)
    size = len(body) // 2
    begin = next(at for at in range(0, len(body), 2) if body[at] == opcode.opmap["RESUME"])
    body[begin : begin + 2 * _OF_RESUME] = _instruction("NOP") * _OF_RESUME
    leave = 2 + size + _BACK
    units = _far("JUMP_FORWARD", size) + body + _instruction("RESUME") + bytes(2 * _OF_RESUME - 2)
    units += _far("JUMP_BACKWARD", size + _BACK)
    units += bytes(2 * leave - len(units)) + _instruction("RERAISE")
    if not _move_returns(units, 2 + size, has_room):
        return None
    ranges = [
        (start + 2, count, target + 2, depth) for start, count, target, depth in ranges_of(code.co_exceptiontable)
    ]
    behind = len(units) // 2 - size - 2
    return code.replace(
        co_code=bytes(units),
        co_exceptiontable=bytes(table_of(_all_caught(ranges, 2 + size, leave))),
        co_linetable=no_places(2) + code.co_linetable + no_places(behind),
        co_stacksize=code.co_stacksize + 1,
    )


def _move_returns(units: bytearray, end: int, has_room: bool) -> bool:
    """Let returns before a unit be jumps to such behind all others: at once if there is room before each, else as far
    as they reach, one by way of another, which does the same, as there is but the result on the stack. Gives whether
    that has been done."""
    ways: dict[bytes, list[int]] = {}
    for at in reversed([at for at, code in enumerate(units[: 2 * end : 2]) if code in _RETURNS]):
        one = bytes(units[2 * at : 2 * at + 2])
        if one not in ways:
            ways[one] = [len(units) // 2]
            units += one
        if has_room:
            units[2 * at - 2 : 2 * at + 2] = _far("JUMP_FORWARD", ways[one][0] - at - 1)
            continue
        distances = [way - at - 1 for way in ways[one] if way - at <= 256]
        if not distances:
            return False
        units[2 * at : 2 * at + 2] = _instruction("JUMP_FORWARD", max(distances))
        ways[one].append(at)
    return True


def _instruction(name: str, argument: int = 0) -> bytearray:
    return bytearray([opcode.opmap[name], argument])


def _far(jump: str, distance: int) -> bytearray:
    return _instruction("EXTENDED_ARG", distance >> 8) + _instruction(jump, distance & 255)


def _all_caught(ranges: Iterable[Range], end: int, leave: int) -> Iterator[Range]:
    """Exception handlers and, for all units up to the end that have none, the one that lets exceptions leave."""
    at = 0
    for one in (*ranges, (end, 0, 0, 0)):
        if at < one[0]:
            yield at, one[0] - at, leave, 0
        if one[1]:
            yield one
        at = one[0] + one[1]
