"""The text of a failure, with as few run-time arguments as it can have.

A check's message is a format string over operands. The record of a failure in a running call has room for
`MOST_ARGUMENTS` words, and shapes in a message easily have more axes than that; most of them are known, or are the same
as others. `compact` writes known integers into the text and mentions every other operand once. Axes that still find no
room are shown as `?`.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.types import PYINT

MOST_ARGUMENTS = 6


def compact(message: str, args: Sequence[ir.Operand]) -> tuple[str, tuple[ir.Operand, ...]]:
    """The message over fewer arguments, and these."""
    kept: list[ir.Operand] = []
    text = ""
    for literal, field, spec, conversion in string.Formatter().parse(message):
        text += literal.replace("{", "{{").replace("}", "}}")
        if field is None:
            continue
        operand = args[int(field)]
        plain = not spec and not conversion
        if plain and isinstance(operand, ir.Const) and operand.type == PYINT:
            text += str(int(operand.value.real))
            continue
        if operand not in kept and plain and len(kept) == MOST_ARGUMENTS:
            text += "?"
            continue
        if operand not in kept:
            kept.append(operand)
        text += f"{{{kept.index(operand)}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}"
    return text, tuple(kept)
