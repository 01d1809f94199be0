"""Exceptions that compiled code raises: which, with what text.

`raise`, `assert` and f-strings make messages: format strings over operands (`MessageV`). A check's message has as few
operands as it can: the record of a failure in a running call has room for `MOST_ARGUMENTS` words, and shapes in a
message easily have more axes than that; most of them are known, or are the same as others. `compact` writes known
integers into the text and mentions every other operand once. Axes that still find no room are shown as `?`.
"""

from __future__ import annotations

import builtins
import re
import string
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.frontend import ssa
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.types import PYBOOL, PYFLOAT, PYINT
from parakeet_py.typed_ir.values import (
    ErrorV,
    MessageV,
    NeverV,
    ScalarV,
    Static,
    TupleV,
    Unknown,
    Value,
    is_known,
    known,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer

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


def raise_value(s: Specializer, value: Value) -> Value:
    match value:
        case Static(type() as kind) if issubclass(kind, BaseException):
            s.check(ir.Const(False, PYBOOL), _exception_name(s, kind), "")
        case ErrorV(kind, message, args):
            s.check(ir.Const(False, PYBOOL), _exception_name(s, kind), message, args)
        case _:
            raise s.unsupported(f"raise of {s.describe(value)}")
    return NeverV()


def assert_true(s: Specializer, condition: ssa.Operand, message: ssa.Block | None) -> None:
    truth = s.truth(s.value(condition))
    if isinstance(truth, ir.Const) and truth.value:
        return
    text = MessageV("")
    if message is not None:
        found = s.run(message)[0]
        text = message_of(s, found)
    s.check(truth, "AssertionError", text.template, text.args)


def message_of(s: Specializer, value: Value) -> MessageV:
    match value:
        case MessageV():
            return value
        case Static(str() as text):
            return MessageV(text.replace("{", "{{").replace("}", "}}"))
        case ScalarV(operand) if value.python and not isinstance(operand, ir.Const):
            return MessageV("{0}", (operand,))
        case TupleV(items, kind) if not is_known(value) and all(
            isinstance(item, ScalarV) and item.python and item.dtype in ("int64", "float64") for item in items
        ):
            inner = ", ".join(f"{{{position}!r}}" for position in range(len(items)))
            if kind == "tuple":
                inner = f"({inner},)" if len(items) == 1 else f"({inner})"
            else:
                inner = f"[{inner}]"
            return MessageV(inner, tuple(item.operand for item in items if isinstance(item, ScalarV)))
    try:
        return MessageV(str(known(value)).replace("{", "{{").replace("}", "}}"))
    except Unknown:
        raise s.unsupported(f"a message made of {s.describe(value)}") from None


def format_string(s: Specializer, parts: Sequence[tuple[ssa.Operand, str, str]]) -> MessageV:
    template = ""
    args: list[ir.Operand] = []
    for operand, conversion, spec in parts:
        value = s.value(operand)
        if isinstance(value, ScalarV) and isinstance(value.operand, ir.Var):
            kind = np.dtype(value.dtype).kind
            if (kind not in "iu" and value.dtype != "float64") or (conversion == "r" and not value.python):
                raise s.unsupported(f"{s.describe(value)} in a message")
            suffix = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            template += f"{{{len(args)}{suffix}}}"
            args.append(s.builder.cast(value.operand, PYINT if kind in "iu" else PYFLOAT))
            continue
        if not is_known(value) and isinstance(value, TupleV | MessageV) and not spec and conversion != "r":
            inner = message_of(s, value)
            template += _renumbered(inner.template, len(args))
            args.extend(inner.args)
            continue
        found = s.static(value, "a part of a message")
        text = repr(found) if conversion == "r" else str(found) if conversion == "s" else found
        template += format(text, spec).replace("{", "{{").replace("}", "}}")
    return MessageV(template, tuple(args))


def _renumbered(template: str, first: int) -> str:
    """A template whose fields are numbered from `first` on."""
    return re.sub(r"(?<!\{)\{(\d+)", lambda match: f"{{{int(match[1]) + first}", template)


def _exception_name(s: Specializer, kind: type[BaseException]) -> str:
    name: str = kind.__name__
    if getattr(builtins, name, None) is not kind:
        raise s.unsupported(f"raise of {name}, which is not a builtin exception")
    return name
