"""Exceptions that compiled code raises: which, with what text.

`raise`, `assert` and f-strings make messages: format strings over operands (`MessageV`). A check's message has as few
operands as it can: the record of a failure in a running call has room for `MOST_ARGUMENTS` words, and shapes in a
message easily have more axes than that; most of them are known, or are the same as others. `compact` writes known
integers into the text and mentions every other operand once. Axes that still find no room are shown as `?`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.errors import NOT_RAISED, RANGE_ARGS, RANGE_ERROR, name_of_exception
from parakeet_py.base.types import PYBOOL, PYFLOAT, PYINT, Scalar
from parakeet_py.frontend import ssa
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.places import by_way_of
from parakeet_py.typed_ir.specialize.message_arguments import escaped
from parakeet_py.typed_ir.specialize.opaque.opaque import class_of, emit_opaque, is_unchanging, site_key
from parakeet_py.typed_ir.specialize.opaque.operations import Operation
from parakeet_py.typed_ir.specialize.opaque.sites import raise_again, raise_caused, raise_it
from parakeet_py.typed_ir.specialize.paths.iterator_consumption import is_used_at_once
from parakeet_py.typed_ir.specialize.values import (
    ErrorV,
    MessageV,
    NeverV,
    ObjectV,
    ScalarV,
    Static,
    TaggedScalar,
    TupleV,
    UnboundV,
    Value,
    is_known,
    known,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def raise_value(s: Context, value: Value, cause: Value | None = None, *, again: bool = False) -> Value:
    """Raise an exception, from a cause; or `again` the one that is handled."""
    if s.guards and s.guards[-1].ends_in_python():
        s.guards[-1].leave_by_python(s, ir.Const(False, PYBOOL))
        return NeverV()
    if cause is not None:
        return _raise_caused(s, value, cause)
    match value:
        case Static(type() as kind) if issubclass(kind, BaseException):
            if s.guards:
                s.guards[-1].may_make(s, kind)
            s.check(ir.Const(False, PYBOOL), _exception_name(s, kind), "")
        case ErrorV(kind, None, _):
            if not (s.guards and s.guards[-1].catches(kind)):
                raise s.unsupported("an exception made inside `try` and raised outside")
            s.guards[-1].leave_unless(s, ir.Const(False, PYBOOL), ir.Const(s.guards[-1].catches(kind), PYINT))
        case ErrorV(kind, str() as message):
            _raise_from_places(s, value, _exception_name(s, kind), message, again)
        case ObjectV():
            raise_object(s, value, raise_again if again else raise_it)
        case UnboundV():  # the flag says that something was raised, which is nowhere: calls do not come here
            s.check(ir.Const(False, PYBOOL), "SystemError", "no exception to raise")
        case _:
            raise s.unsupported(f"raise of {s.describe(value)}")
    return NeverV()


def _raise_from_places(s: Context, value: ErrorV, name: str, message: str, again: bool) -> None:
    """Raise an exception at the places where it was raised before; if it is not the one that is handled, by way of
    here."""
    b = s.builder
    here = b.pos
    try:
        for number, place in enumerate(value.places):
            last = number == len(value.places) - 1
            b.pos = place if again else by_way_of(here, place)
            elsewhere = b.prim("ne", value.at, ir.Const(number, PYINT), type=PYBOOL)
            s.check(ir.Const(False, PYBOOL) if last else elsewhere, name, message, value.args)
    finally:
        b.pos = here
    if not value.places:
        s.check(ir.Const(False, PYBOOL), name, message, value.args)


def _raise_caused(s: Context, value: Value, cause: Value) -> Value:
    """Let Python raise an exception with a cause."""
    if s.guards and s.guards[-1].keeps:
        raise s.unsupported("an exception with a cause that is caught and looked at")
    objects: list[Value] = [object_of_error(s, value), object_of_error(s, cause)]
    key = site_key(s, s.frame.pos, "Raise")
    emit_opaque(s, Operation("call", (Static(raise_caused), *objects)), key, "raise from", wants_result=False)
    s.check(ir.Const(False, PYBOOL), "Deoptimize", NOT_RAISED)
    return NeverV()


def object_of_error(s: Context, value: Value) -> ObjectV:
    """An exception as a Python object."""
    match value:
        case ObjectV():
            return value
        case Static(type() as kind) if issubclass(kind, BaseException):
            given: list[Value] = []
        case ErrorV(kind, str() as message, args):
            given = arguments_of_error(message, args)
        case _:
            raise s.unsupported(f"raise of {s.describe(value)}")
    reason = f"{kind.__name__}, which has a cause or is one"
    key = site_key(s, s.frame.pos, f"Raise.{kind.__name__}")
    made = emit_opaque(s, Operation("call", (Static(kind), *given)), key, reason)
    assert isinstance(made, ObjectV)
    return made


def arguments_of_error(message: str, args: Sequence[ir.Operand]) -> list[Value]:
    """What an exception is made with, as `exception_with` makes it."""
    if message == RANGE_ERROR:
        return [Static(one) for one in RANGE_ARGS]
    return [_text(message, args)] if message else []


def _text(message: str, args: Sequence[ir.Operand]) -> Value:
    return MessageV(message, tuple(map(ScalarV, args))) if args else Static(message.format())


def text_of_error(s: Context, value: ErrorV) -> Value:
    """str() of an exception."""
    if value.message is None or issubclass(value.exception, KeyError | OSError | SyntaxError | UnicodeError):
        raise s.unsupported(f"the text of a {value.exception.__name__}")
    return _text(value.message, value.args)


def raise_object(s: Context, value: ObjectV, function: Callable[[BaseException], None] = raise_it) -> None:
    """Let Python raise an exception that it has made."""
    key = site_key(s, s.frame.pos, "Raise")
    emit_opaque(s, Operation("call", (Static(function), value)), key, "raise of an object", wants_result=False)


def assert_true(s: Context, condition: ssa.Operand, message: ssa.Block | None) -> None:
    truth = s.truth(s.value(condition))
    if isinstance(truth, ir.Const) and truth.value:
        return
    text: tuple[str, tuple[ir.Operand, ...]] = ("", ())
    if message is not None:
        found = s.run(message)[0]
        if not (is_text(found) or s.frame.namespace.trusted):  # the exception holds the very object
            raise s.unsupported(f"a message made of {s.describe(found)}")
        text = message_of(s, found)
    s.check(truth, "AssertionError", *text)


def is_text(value: Value) -> bool:
    """Is this a string?"""
    return isinstance(value, MessageV) or (is_known(value) and isinstance(known(value), str))


def message_of(s: Context, value: Value) -> tuple[str, tuple[ir.Operand, ...]]:
    """The text of an exception with this value as its argument: a template, and the operands that fill it."""
    args: list[ir.Operand] = []
    if isinstance(value, MessageV):
        text = ""
        for literal, field, spec, conversion in string.Formatter().parse(value.template):
            text += escaped(literal)
            if field is not None:
                text += _field(s, value.args[int(field)], conversion or "", spec or "", args)
        return text, tuple(args)
    if isinstance(value, ScalarV) and not value.python:
        raise s.unsupported(f"a message made of {s.describe(value)}")
    if is_known(value):
        return escaped(str(known(value))), ()
    if not isinstance(value, TupleV | ScalarV):
        raise s.unsupported(f"a message made of {s.describe(value)}")
    return _field(s, value, "", "", args), tuple(args)


def _field(s: Context, value: Value, conversion: str, spec: str, args: list[ir.Operand]) -> str:
    """The template of a value in a message; its operands are appended."""
    if isinstance(value, ScalarV):
        kind = np.dtype(value.dtype).kind
        fits = value.dtype == "float64" or (kind in "iu" and value.dtype != "uint64")
        if fits and (conversion != "r" or value.python):
            args.append(s.builder.cast(value.operand, PYINT if kind in "iu" else PYFLOAT))
            return f"{{{len(args) - 1}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}"
    if isinstance(value, TupleV) and not spec:
        if is_known(value):
            return escaped(str(known(value)))
        if all(
            isinstance(item, ScalarV) and item.python and item.dtype in ("int64", "float64") for item in value.items
        ):
            inner = ", ".join([_field(s, item, "r", "", args) for item in value.items])
            comma = "," if len(value.items) == 1 else ""
            return f"({inner}{comma})" if value.kind == "tuple" else f"[{inner}]"
    raise s.unsupported(f"{s.describe(value)} in a message")


def format_string(s: Context, parts: Sequence[tuple[ssa.Operand, str, str]]) -> Value:
    """An f-string."""
    made = format_values(s, [(s.value(operand), conversion, spec) for operand, conversion, spec in parts])
    return at_once(s, made)


def at_once(s: Context, made: MessageV) -> Value:
    """A formatted string. Where the program keeps it, Python makes it at once from what may change later."""
    if all(is_unchanging(s, arg) for arg in made.args) or (s.out and is_used_at_once(s, s.out)):
        return made
    return s.boxed(made, "text of something that may change")


def format_values(s: Context, parts: Sequence[tuple[Value, str, str]]) -> MessageV:
    """Values, each with its conversion and format, one after the other; those that are known become text at once."""
    template = ""
    args: list[Value] = []
    for value, conversion, spec in parts:
        if isinstance(value, ErrorV):
            if spec or conversion == "r":
                raise s.unsupported("an exception with a format")
            value = text_of_error(s, value)
        if isinstance(value, MessageV) and not spec and conversion != "r":
            template += _renumbered(value.template, len(args))
            args.extend(value.args)
        elif is_known(value):
            found = known(value)
            text = repr(found) if conversion == "r" else str(found) if conversion == "s" else found
            try:
                template += escaped(format(text, spec))
            except (TypeError, ValueError) as error:
                raise s.hand_back(f"a format that raises {type(error).__name__} ({error})") from None
        else:
            if spec:
                _must_format(s, value, conversion, spec)
            suffix = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            template += f"{{{len(args)}{suffix}}}"
            args.append(value)
    return MessageV(template, tuple(args))


def _must_format(s: Context, value: Value, conversion: str, spec: str) -> None:
    """A format is one that numbers of this type have: the text may be made later, where nothing catches an error."""
    samples: list[Any] = []
    match value:
        case ScalarV(type=kind):
            samples = [_one(kind)]
        case TaggedScalar(kinds):
            samples = [_one(kind) for kind in kinds]
        case ObjectV() if is_unchanging(s, value):
            kept = class_of(s, value)
            samples = [] if kept is None else [kept()]
        case _ if s.guards:
            raise s.hand_back(f"a format of {s.describe(value)}, in `try`")
    for sample in samples:
        try:
            format(repr(sample) if conversion == "r" else str(sample) if conversion == "s" else sample, spec)
        except (TypeError, ValueError) as error:
            raise s.hand_back(f"a format that raises {type(error).__name__} ({error})") from None
    if spec.endswith("c"):
        raise s.hand_back("a number as a character")


def _one(kind: Scalar) -> Any:
    one = np.dtype(kind.dtype).type(1)
    return one.item() if kind.python else one


def joined(s: Context, parts: Sequence[Value]) -> MessageV | None:
    """Strings one after the other; None where something else is among them."""
    texts = all(isinstance(part, MessageV) or (isinstance(part, Static) and type(part.object) is str) for part in parts)
    return format_values(s, [(part, "", "") for part in parts]) if texts else None


_PERCENT = re.compile(
    r"%(?:(?P<flags>[-+ 0]*)(?P<width>\d*)(?:\.(?P<digits>\d+))?(?P<kind>[disrfFgGeExX])|(?P<percent>%))"
)


def percent(s: Context, text: str, value: Value) -> MessageV | None:
    """`text % value` as a formatted string; None where it is no simple one."""
    given = list(value.items) if isinstance(value, TupleV) and value.kind == "tuple" else [value]
    parts: list[tuple[Value, str, str]] = []
    end = 0
    for match in _PERCENT.finditer(text):
        between = text[end : match.start()]
        end = match.end()
        parts.append((Static(between + match["percent"] if match["percent"] else between), "", ""))
        if match["percent"]:
            continue
        if "%" in between or not given:
            return None
        spec = _spec_of_percent(match, given[0])
        if spec is None:
            return None
        parts.append((given.pop(0), *spec))
    rest = text[end:]
    if given or "%" in rest:
        return None
    return format_values(s, [*parts, (Static(rest), "", "")])


def _spec_of_percent(match: re.Match[str], value: Value) -> tuple[str, str] | None:
    """The conversion and the format that do the same as a field of a %-format."""
    flags, width, digits, kind = match["flags"], match["width"], match["digits"], match["kind"]
    integer = isinstance(value, ScalarV) and np.dtype(value.dtype).kind in "iu"
    number = isinstance(value, ScalarV) and np.dtype(value.dtype).kind in "iuf"
    if kind in "sr":
        if flags or width or digits:
            return None
        return (kind, "") if not isinstance(value, MessageV) else ("", "")
    if kind in "dixX":
        if not integer or digits or kind in "xX":
            return None
        kind = "d"
    elif not number:
        return None
    sign = "+" if "+" in flags else " " if " " in flags else ""
    align = "<" if "-" in flags and width else ""
    zero = "0" if "0" in flags and not align and width else ""
    return "", f"{align}{sign}{zero}{width}{'.' + digits if digits else ''}{kind}"


def str_format(s: Context, text: str, args: Sequence[Value], kwargs: dict[str, Value]) -> MessageV | None:
    """`text.format(*args, **kwargs)` as a formatted string; None where it is no simple one."""
    parts: list[tuple[Value, str, str]] = []
    automatic = 0
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return None
    for literal, field, spec, conversion in fields:
        parts.append((Static(literal), "", ""))
        if field is None:
            continue
        if "{" in (spec or ""):
            return None
        if field == "":
            field, automatic = str(automatic), automatic + 1
        if field.isdigit() and int(field) < len(args):
            value = args[int(field)]
        elif field in kwargs:
            value = kwargs[field]
        else:
            return None
        parts.append((value, conversion or "", spec or ""))
    return format_values(s, parts)


def _renumbered(template: str, first: int) -> str:
    """A template whose fields are numbered from `first` on."""
    return re.sub(r"(?<!\{)\{(\d+)", lambda match: f"{{{int(match[1]) + first}", template)


def _exception_name(s: Context, kind: type[BaseException]) -> str:
    name = name_of_exception(kind)
    if name is None:
        raise s.unsupported(f"raise of {kind.__name__}, which cannot be found by its name")
    return name
