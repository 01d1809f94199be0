"""Messages of checks: the fewest arguments that their text needs at run time."""

from __future__ import annotations

import string
from collections.abc import Sequence

from parakeet_py.base.types import PYINT
from parakeet_py.typed_ir import ir

MOST_ARGUMENTS = 6


def escaped(text: str) -> str:
    """A text as the template of itself."""
    return text.replace("{", "{{").replace("}", "}}")


def compact(message: str, args: Sequence[ir.Operand]) -> tuple[str, tuple[ir.Operand, ...]]:
    """The message over fewer arguments, and these."""
    kept: list[ir.Operand] = []
    text = ""
    for literal, field, spec, conversion in string.Formatter().parse(message):
        text += escaped(literal)
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
