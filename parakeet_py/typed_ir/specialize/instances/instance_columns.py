"""Lists of many instances of one class, that are arguments or held by these: attributes are read like columns.

Such a list stays an object. Each attribute that the function reads of its items is a hidden argument, the list of what
all of them hold (`attribute_sources.attribute_column`), which is read into an array at every call. `ps[i]` is a
`RecordV`, whose attributes are elements of columns when they are read. That the items are of one class, and how many
there are, are hidden arguments too, which come first.

It is right as long as the call changes no object, and pays where there are loops in loops: to read a column takes
about as long as Python takes for a loop over the items. Where attributes are assigned (`must_hold`), Python code runs
that may do so, or the walk fails otherwise, it begins again with the items as objects (`ObjectsInList`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.errors import MissingValue
from parakeet_py.base.types import PYFLOAT, PYINT
from parakeet_py.signature.attribute_sources import (
    ARE_INTS,
    AS_FLOATS,
    COUNT,
    OF_ONE_CLASS,
    attribute_column,
    has_method,
    holds_plainly,
    in_class,
)
from parakeet_py.signature.facts import ObjectsInList, Place, place_of
from parakeet_py.signature.specs import Signature, Source
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import index_entries, indexing
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.forms import array_of
from parakeet_py.typed_ir.specialize.instances import instances
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    MethodV,
    ObjectV,
    RecordV,
    ScalarV,
    Static,
    TaggedScalar,
    Value,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def source_of(s: Context, value: Value) -> Source | None:
    """Where a list of many instances of one class is read from; None of other values."""
    found = known_object(s, value) if isinstance(value, ObjectV) else None
    if found is None or found[0] is not list or found[1][0] != "field":
        return None
    source = (*found[1], OF_ONE_CLASS)
    if ObjectsInList(place_of(found[1])) in s.facts.known:
        return None
    if source not in s.arguments.hidden:
        try:
            s.arguments.extended(s.arguments.signature, source)
        except MissingValue:
            return None
        s.taken(source)
    return found[1]


def lists(signature: Signature) -> list[Place]:
    """The lists whose items are read so."""
    return [place_of(one.source[:-1]) for one in signature.hidden if one.source[-1] == OF_ONE_CLASS]


def must_hold(s: Context, impure: bool) -> None:
    """Refuse the walk if what has been read may not hold, or does not pay. `impure`: Python code has run."""
    if lists(s.arguments.signature):
        if impure or s.assigned.before:
            raise s.unsupported("attributes of the items of a list, which may change")
        if not s.arguments.columns_pay:
            raise s.unsupported("attributes of the items of a list, in no loop in a loop")


def length(s: Context, value: Value) -> ir.Operand | None:
    """How many instances there are in a list; None of other values."""
    source = source_of(s, value)
    count = None if source is None else s.taken((*source, COUNT))
    return count.operand if isinstance(count, ScalarV) else None


def at(value: ObjectV, index: ir.Operand) -> RecordV:
    """The item at a place that is in range."""
    return RecordV(value, ScalarV(index), of_list=True)


def subscript(s: Context, value: Value, index: Value) -> RecordV | None:
    """value[index], of a list of instances and an integer."""
    count = length(s, value) if isinstance(value, ObjectV) and isinstance(index, ScalarV) else None
    if count is None or not isinstance(value, ObjectV) or not isinstance(index, ScalarV):
        return None
    if index.dtype not in ("int64", "bool") or not index.python:
        return None
    return at(value, index_entries.check_index(s, index, count, 0, message="list index out of range"))


def class_of(s: Context, value: RecordV) -> type:
    source = source_of(s, value.records)
    held = None if source is None else s.arguments.hidden[(*source, OF_ONE_CLASS)]
    assert isinstance(held, Static) and isinstance(held.object, type)
    return held.object


def attribute(s: Context, value: RecordV, name: str) -> Value:
    """value.name, of an item."""
    cls, source = class_of(s, value), source_of(s, value.records)
    assert source is not None
    if holds_plainly(cls, name):
        s.arguments.columns_pay |= s.loops.looping + s.elements.in_body > 1
        found = _read(s, value, (*source, attribute_column(name))) or _of_two_types(s, value, source, name)
        if found is None:
            raise s.unsupported(f"iteration over a list of {cls.__name__}", _HINT.format(name))
        return found
    raw = in_class(cls, name)
    if has_method(cls, name) and instances.is_found(cls):
        return MethodV(value, name)
    if type(raw) is property and instances.is_found(cls):
        return instances.property_of(s, cls, value, name)
    raise s.unsupported(f".{name} of a {cls.__name__}, an item of a list")


def _read(s: Context, value: RecordV, column: Source) -> Value | None:
    """What a column holds at an item's place; None if it is none of numbers of one type."""
    array, count = array_of(s.taken(column)), length(s, value.records)
    if not isinstance(array, ArrayV) or array.rank != 1 or count is None:
        return None
    return s.as_python(indexing.read(s, replace(array, extents=(count,)), value.index))


def _of_two_types(s: Context, value: RecordV, source: Source, name: str) -> Value | None:
    """The same where some items hold an int, and others a float."""
    numbers, which = ((*source, attribute_column(name, part)) for part in (AS_FLOATS, ARE_INTS))
    if numbers not in s.arguments.hidden:
        try:
            s.arguments.extended(s.arguments.signature, numbers)
        except MissingValue:
            return None
    found, of_ints = _read(s, value, numbers), _read(s, value, which)
    if not isinstance(found, ScalarV) or not isinstance(of_ints, ScalarV):
        return None
    b = s.builder
    tag = b.prim("sub", ir.ONE, of_ints.operand, type=PYINT)
    return TaggedScalar((PYINT, PYFLOAT), tag, (b.cast(found.operand, PYINT), found.operand))


_HINT = "pass an array for each attribute, such as np.array([one.{} for one in items])"


def call_method(s: Context, value: RecordV, name: str, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """value.name(...), of an item whose class has the method."""
    cls = class_of(s, value)
    function = instances.method_of(s, cls, name)
    own = [] if isinstance(in_class(cls, name), staticmethod) else [value]
    return s.call(function, [*own, *args], kwargs)
