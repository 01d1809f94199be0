"""Interval arithmetic of int64 primitives, in exact integers: results that leave int64 mean an overflow."""

from __future__ import annotations

from collections.abc import Sequence

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
MOST_TURNS = 1 << 60  # of a `while` loop: nine years of them, at one in a cycle, come first

Interval = tuple[int, int]
FULL: Interval = (LEAST, GREATEST)


def hull(left: Interval, right: Interval) -> Interval:
    return min(left[0], right[0]), max(left[1], right[1])


def of_primitive(name: str, args: Sequence[Interval]) -> Interval:
    """What a primitive gives for arguments in these intervals (`select`: the two values), as far as this can tell."""
    a, b = args[0]
    c, d = args[-1]
    match name.removesuffix("_checked"):
        case "add":
            return a + c, b + d
        case "sub":
            return a - d, b - c
        case "mul":
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case "neg":
            return -b, -a
        case "abs":
            return max(a, -b, 0), max(abs(a), abs(b))
        case "minimum":
            return min(a, c), min(b, d)
        case "maximum":
            return max(a, c), max(b, d)
        case "select":
            return hull((a, b), (c, d))
        case "floordiv" if c > 0:
            quotients = (a // c, a // d, b // c, b // d)
            return min(quotients), max(quotients)
        case "floordiv" if a > LEAST:
            size = max(abs(a), abs(b))
            return -size, size
        case "mod":
            least, greatest = min(c + 1, 0), max(d - 1, 0)  # Python's signs; x % 0 is 0
            if a >= 0 and c > 0:
                greatest = min(greatest, b)
            return least, greatest
        case "and" if a >= 0 or c >= 0:
            return 0, min(high for low, high in args if low >= 0)
        case "or" | "xor" if a >= 0 and c >= 0:
            return 0, (1 << max(b, d).bit_length()) - 1
        case "shr" if c >= 0:
            return min(a, 0) if a < 0 else a >> min(d, 63), max(b, 0) if b < 0 else b >> min(c, 63)
        case "shl" if c >= 0 and d < 63:
            low, high = min(a << c, a << d), max(b << c, b << d)
            return (low, high) if low >= LEAST and high <= GREATEST else FULL
    return FULL
