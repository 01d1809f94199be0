"""The text that a kernel's printf makes."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|j|z|t|L)?([diouxXeEfFgGaAcsp%])")


def format_text(template: str, read: Callable[[int, int], bytes], string: Callable[[int], str]) -> str:
    """C's printf over a buffer in which each argument lies at a multiple of its size.

    Parameters
    ----------
    template : str
        The format.
    read : callable
        Bytes of the buffer, by offset and count.
    string : callable
        The text at an address.
    """
    place = 0

    def take(size: int) -> bytes:
        nonlocal place
        place = -(-place // size) * size
        found = read(place, size)
        place += size
        return found

    def one(match: re.Match[str]) -> str:
        flags, width, precision, length, letter = match.groups()
        if letter == "%":
            return "%"
        width = str(struct.unpack("<i", take(4))[0]) if width == "*" else width or ""
        precision = str(struct.unpack("<i", take(4))[0]) if precision == "*" else precision
        spec = "%" + flags + width + (f".{precision}" if precision is not None else "")
        if letter in "eEfFgGaA":
            value = struct.unpack("<d", take(8))[0]
            return value.hex() if letter in "aA" else str((spec + letter) % value)
        if letter == "s":
            return str((spec + "s") % string(struct.unpack("<Q", take(8))[0]))
        if letter == "p":
            return hex(struct.unpack("<Q", take(8))[0])
        if letter == "c":
            return str((spec + "s") % chr(take(4)[0]))
        wide = length in ("l", "ll", "j", "z", "t")
        code = ("q" if wide else "i") if letter in "di" else ("Q" if wide else "I")
        number = struct.unpack("<" + code, take(8 if wide else 4))[0]
        return str((spec + ("d" if letter in "diu" else letter)) % number)

    return _CONVERSION.sub(one, template)
