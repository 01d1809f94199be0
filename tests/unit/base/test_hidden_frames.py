"""Functions without a visible frame: short ones, and long ones in which jumps go far."""

from __future__ import annotations

import dis
import itertools
import sys
from typing import Any

import pytest

from parakeet_py.base.frames.code_room import with_room
from parakeet_py.base.frames.hidden_frames import hidden

TEXT = """
def f(n, look):
    total = 0.0
    try:
        for i in range(n):
            if i == 1 and n == 7:
                return "early", look()
            FILL
        if n == 3:
            raise KeyError(n)
        if n == 4:
            return look(), total
        FILL
        if n == 5:
            raise ValueError("leaves")
    except KeyError as error:
        if total < 0:
            return None
        FILL
        return error.args, total, look()
    finally:
        total = -total
        FILL
    while total < 10:
        total += 1000
        if look is None:
            continue
        FILL
    if n == 0:
        return None
    FILL
    return [i for i in range(n) if i % 2], total, look()
"""


def made(lines: int) -> Any:
    """A function with all that jumps, between so many lines of sums."""
    text = ""
    for line in TEXT.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        fill = [f"{indent}total += {k} * n" for k in range(lines)] or [f"{indent}pass"]
        text += "\n".join(fill if line.strip() == "FILL" else [line]) + "\n"
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    return namespace["f"]


def look() -> list[str]:
    """The functions between this one and the test."""
    found, frame = [], sys._getframe(1)
    while frame.f_code.co_name != "outcome":
        found.append(frame.f_code.co_name)
        assert frame.f_back is not None
        frame = frame.f_back
    return found


def outcome(function: Any, n: int) -> Any:
    try:
        return function(n, look)
    except ValueError as error:
        entries, at = [], error.__traceback__
        while at is not None:
            entries.append(at.tb_frame.f_code.co_name)
            at = at.tb_next
        return str(error), entries


@pytest.mark.parametrize("lines", [0, 3, 20, 60, 200])
def test_short_and_long(lines: int) -> None:
    """What it gives is the same, and no frame of it shows, however far its returns and handlers are."""
    plain, without = made(lines), hidden(made(lines))
    for n in range(9):
        expected, got = outcome(plain, n), outcome(without, n)
        assert got == _without_f(expected)
        assert "'f'" not in str(got)


def _without_f(value: Any) -> Any:
    if isinstance(value, list) and "f" in value:
        return [item for item in value if item != "f"]
    return tuple(map(_without_f, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize("lines", [0, 3, 60])
def test_room_before_returns(lines: int) -> None:
    """Code with a unit more before each return does the same; lines are those of the statements."""
    plain, other = made(lines), made(lines)
    code = other.__code__
    returns = [one.offset // 2 for one in dis.get_instructions(code) if one.opname in ("RETURN_VALUE", "RETURN_CONST")]
    other.__code__ = with_room(code, returns)
    assert len(other.__code__.co_code) >= len(code.co_code) + 2 * len(returns)
    for n in range(9):
        assert outcome(plain, n) == outcome(other, n)
    before, after = ([line for _, line in dis.findlinestarts(one) if line] for one in (code, other.__code__))
    assert [line for line, _ in itertools.groupby(before)] == [line for line, _ in itertools.groupby(after)]


def test_too_long() -> None:
    function = made(1000)
    code = function.__code__
    assert hidden(function).__code__ is code
