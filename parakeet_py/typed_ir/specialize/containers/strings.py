"""Strings that are arguments, as arrays of code points: iterated, indexed, sliced, compared.

A string is known by value at first, as names of modes are. Where a function looks at one character after the other,
that would mean another version for each string: it starts again with the argument as a `TextV`, an array that is read
from the string at every call (`signature.TextSpec`). Its characters are numbers (`CharV`), also as keys of dicts and
sets. What is not here (methods, new strings) is for strings that are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import PYBOOL, PYINT, Scalar
from parakeet_py.signature.facts import Characters
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import index_entries, indexing
from parakeet_py.typed_ir.specialize.paths.templates import Structure, Template
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    ScalarV,
    SliceV,
    Static,
    TextV,
    TupleV,
    Value,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def need(s: Context, value: Value) -> None:
    """Start again with a string that is an argument as a `TextV`; do nothing about other values."""
    found = s.arguments.texts.get(id(value))
    if found is not None and found[0] is value:
        s.facts.restart(Characters(found[1]))


def is_text(value: Value) -> bool:
    return isinstance(value, TextV | CharV)


def char_at(s: Context, text: TextV, index: ir.Operand) -> CharV:
    """The character at a place that there is."""
    b = s.builder
    s.arguments.columns_pay |= s.loops.looping + s.elements.in_body > 1
    code = b.cast(b.emit1(ir.Load(text.codes.var, (index,)), Scalar(text.codes.dtype)), PYINT)
    b.as_count(code)
    return CharV(ScalarV(code))


def subscript(s: Context, text: Value, index: Value) -> Value:
    """text[index]"""
    text = _as_text(s, text)
    if isinstance(index, SliceV):
        part = indexing.read(s, text.codes, index)
        assert isinstance(part, ArrayV)
        return TextV(part)
    number = s.numeric(index)
    if not isinstance(number, ScalarV) or not (number.python and number.dtype in ("int64", "bool")):
        raise s.unsupported(f"{s.describe(index)} as an index of a string")
    place = index_entries.check_index(s, number, text.codes.extents[0], 0, message="string index out of range")
    return char_at(s, text, place)


def _as_text(s: Context, value: Value) -> TextV:
    """A character as a string of one."""
    if isinstance(value, TextV):
        return value
    assert isinstance(value, CharV)
    made = s.as_array(TupleV((value.code,)), "uint32")
    assert isinstance(made, ArrayV)
    return TextV(made)


def length(s: Context, value: Value) -> Value:
    return ScalarV(value.codes.extents[0]) if isinstance(value, TextV) else py(1)


def are_characters(template: Template) -> bool:
    """Are these items of a list characters?"""
    return isinstance(template, Structure) and isinstance(template.like, CharV)


def codes_of(value: str) -> list[int]:
    return [ord(one) for one in value]


def compare(s: Context, op: str, left: Value, right: Value) -> Value:
    """left op right, one of which is a string, or a character, of an argument."""
    b = s.builder
    for one in (left, right):
        if not is_text(one) and not (isinstance(one, Static) and isinstance(one.object, str)):
            if op in ("eq", "ne") and isinstance(one, ScalarV | Static | TupleV):
                if isinstance(one, ScalarV) and not one.python:
                    raise s.unsupported("a comparison of a string and a NumPy scalar")
                return py(op == "ne")
            raise s.unsupported(f"a comparison of {s.describe(left)} and {s.describe(right)}")
    codes = [_code(one) for one in (left, right)]
    if codes[0] is not None and codes[1] is not None:
        return ScalarV(b.prim(op, codes[0], codes[1], type=PYBOOL))
    if op not in ("eq", "ne"):
        raise s.unsupported(f"an order of {s.describe(left)} and {s.describe(right)}")
    if any(isinstance(one, CharV) and isinstance(other, Static) for one, other in ((left, right), (right, left))):
        return py(op == "ne")  # of a string of another length
    arrays = [_array(s, one) for one in (left, right)]
    same = s.truth(s.call(Static(np.array_equal), list(arrays), {}))
    return ScalarV(same if op == "eq" else b.prim("not", same, type=PYBOOL))


def _code(value: Value) -> ir.Operand | None:
    """The number of a character; None for strings of other or unknown lengths."""
    match value:
        case CharV(code):
            return code.operand
        case Static(str() as text) if len(text) == 1:
            return ir.Const(ord(text), PYINT)
    return None


def _array(s: Context, value: Value) -> ArrayV:
    if isinstance(value, Static):
        codes = np.array(codes_of(value.object), np.uint32)
        made = s.call(
            Static(np.array), [TupleV(tuple(py(int(code)) for code in codes))], {"dtype": Static(codes.dtype)}
        )
        assert isinstance(made, ArrayV)
        return made
    return _as_text(s, value).codes


def contains(s: Context, text: Value, item: Value) -> ir.Operand:
    """item in text: of a single character."""
    b = s.builder
    if not isinstance(text, Static) and isinstance(item, Static):
        code = _code(item)
        if code is None:
            raise s.unsupported("`in` a string, of one of other length")
        item = CharV(ScalarV(code))
    if not isinstance(item, CharV):
        raise s.unsupported(f"`in` a string, of {s.describe(item)}")
    if isinstance(text, Static):
        found: ir.Operand = ir.Const(False, PYBOOL)
        for number in sorted(set(codes_of(text.object))):
            here = b.prim("eq", item.code.operand, ir.Const(number, PYINT), type=PYBOOL)
            found = b.logical_or(found, here)
        return found
    codes = _as_text(s, text).codes
    return s.truth(s.call(Static(np.any), [s.compare("eq", codes, item.code)], {}))


def as_key(value: Value) -> Value:
    """A key of a dict or set that is a character, known or not."""
    if isinstance(value, Static) and type(value.object) is str and len(value.object) == 1:
        return CharV(py(ord(value.object)))
    return value


def code_point(s: Context, value: Value) -> Value:
    """ord(value)"""
    if isinstance(value, TextV):
        one = s.builder.prim("eq", value.codes.extents[0], ir.ONE, type=PYBOOL)
        count = value.codes.extents[0]
        text = "ord() expected a character, but string of length {0} found"
        s.check(one, "TypeError", text, [count])
        return char_at(s, value, ir.ZERO).code
    assert isinstance(value, CharV)
    return value.code
