"""Lists of many instances of one class, that are arguments or held by these: attributes are read like columns.

Such a list stays an object. Each attribute that the function reads of its items is a hidden argument, the list of what
all of them hold (`attribute_sources.attribute_column`), which is read into an array at every call. `ps[i]` is a
`RecordV`, whose attributes are elements of columns when they are read. That the items are of one class, and how many
there are, are hidden arguments too, which come first.

Attributes that the function assigns are columns of the call's own (`AssignedColumn`), with a column of bools that says
whose have been assigned; these get what the columns hold when the call ends (`SetColumns`). That is right where all
items are different objects, none of which the function has under another name.

It is right as long as nothing else changes the objects, and pays where there are loops in loops: to read a column takes
about as long as Python takes for a loop over the items. Where other attributes are assigned (`must_hold`), Python code
runs that may do so, or the walk fails otherwise, it begins again with the items as objects (`ObjectsInList`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.errors import MissingValue
from parakeet_py.base.types import BOOL, PYFLOAT, PYINT
from parakeet_py.signature.attribute_sources import (
    ARE_APART,
    ARE_INTS,
    AS_FLOATS,
    COUNT,
    IS_ASSIGNED,
    IS_METHOD,
    MANY,
    OF_ONE_CLASS,
    TEXT_ENDS,
    attribute_column,
    has_method,
    holds_plainly,
    in_class,
    is_plain,
)
from parakeet_py.signature.facts import ObjectsInList, Place, place_of
from parakeet_py.signature.specs import FunctionSpec, ObjectSpec, Signature, Source, Spec, StaticSpec, TupleSpec
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import array_store, index_entries, indexing
from parakeet_py.typed_ir.specialize.arrays.elementwise import generate
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.forms import array_of
from parakeet_py.typed_ir.specialize.instances import assigned_attributes, instances
from parakeet_py.typed_ir.specialize.restarts import AssignedColumn
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    MethodV,
    ObjectV,
    RecordV,
    ScalarV,
    Static,
    TaggedScalar,
    Value,
    py,
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
    """The lists whose items are read so, those of `text_columns` too."""
    return [place_of(one.source[:-1]) for one in signature.hidden if one.source[-1] in (OF_ONE_CLASS, TEXT_ENDS)]


def short_lists(signature: Signature) -> list[Place]:
    """The lists whose items are known one by one and could be read so."""
    specs: list[tuple[Place, Spec]] = [*enumerate(signature.params)]
    specs += [(place_of(one.source), one.spec) for one in signature.hidden if one.source[0] == "field"]
    return [place for place, spec in specs if _is_short_list(spec)]


def _is_short_list(spec: Spec) -> bool:
    if not isinstance(spec, TupleSpec) or spec.kind != "list" or len(spec.items) <= MANY:
        return False
    kinds = {item.type for item in spec.items if isinstance(item, ObjectSpec)}
    return all(isinstance(item, ObjectSpec) for item in spec.items) and len(kinds) == 1 and is_plain(*kinds)


def must_hold(s: Context, impure: bool) -> None:
    """Refuse the walk if what has been read may not hold, or does not pay. `impure`: Python code has run."""
    if lists(s.arguments.signature):
        if impure or s.assigned.before:
            raise s.unsupported("attributes of the items of a list, which may change")
        _must_stand_alone(s)
        if not s.arguments.columns_pay:
            raise s.unsupported("attributes of the items of a list, in no loop in a loop")


def _must_stand_alone(s: Context) -> None:
    """Refuse the walk if items that are assigned may be other objects of the function, too, or Python may go on."""
    for source in dict.fromkeys(column[:-1] for column in s.assigned.columns):
        held = s.arguments.hidden[(*source, OF_ONE_CLASS)]
        assert isinstance(held, Static)
        others = [spec for spec in s.arguments.signature.params if _has_objects_of(spec, held.object)]
        for one in s.arguments.signature.hidden:
            same = one.source[-1] == OF_ONE_CLASS and one.source[:-1] != source and one.spec == StaticSpec(held.object)
            if same or _has_objects_of(one.spec, held.object):
                others.append(one.spec)
        if others or s.python.sites:
            raise s.unsupported("assignment to attributes of the items of a list, which may have other names")


def _has_objects_of(spec: Spec, cls: object) -> bool:
    match spec:
        case ObjectSpec(kind):
            return kind is cls
        case TupleSpec(items):
            return any(_has_objects_of(item, cls) for item in items)
        case FunctionSpec():
            return any(_has_objects_of(item, cls) for item in (*spec.cells, *spec.defaults))
    return False


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


def begin(s: Context) -> None:
    """Make the columns that the function assigns."""
    for one in s.facts.known.of(AssignedColumn):
        list_of = one.column[:-1]
        if ObjectsInList(place_of(list_of)) in s.facts.known:
            continue
        array, count = array_of(s.taken(one.column)), s.taken((*list_of, COUNT))
        if not isinstance(array, ArrayV) or not isinstance(count, ScalarV):
            continue
        own = array_store.copy_array(s, replace(array, extents=(count.operand,)))

        def no(indices: tuple[ir.Var, ...]) -> list[ir.Operand]:
            return [ir.Const(False, BOOL)]

        s.assigned.columns[one.column] = own, generate(s, own.extents, no)[0]


def set_attribute(s: Context, value: RecordV, name: str, new: Value) -> None:
    """value.name = new, of an item."""
    cls, source, text = class_of(s, value), source_of(s, value.records), f"assignment to the attribute .{name}"
    assert source is not None
    raw = in_class(cls, name)
    if type(raw) is property and raw.fset is not None and instances.is_found(cls):
        instances.property_of(s, cls, value, name, "fset", [new])
        return
    assigned_attributes.only_outside(s, text)
    if s.procedures.active:
        raise s.unsupported(f"{text} in a recursion")
    column = (*source, attribute_column(name))
    for needed in (ARE_APART, attribute_column(name, IS_ASSIGNED)):
        try:
            s.arguments.extended(s.arguments.signature, (*source, needed))
        except MissingValue:
            raise s.unsupported(f"{text} of {s.describe(value)}") from None
        s.taken((*source, needed))
    if column not in s.assigned.columns:
        if AssignedColumn(column) in s.facts.known:  # it is none of numbers of one type
            raise s.unsupported(f"{text} of {s.describe(value)}")
        s.taken(column)
        s.facts.note(AssignedColumn(column))
        return
    s.arguments.columns_pay |= s.loops.looping + s.elements.in_body > 1
    held, chosen = s.assigned.columns[column]
    if not isinstance(new, ScalarV) or not new.python or new.dtype != held.dtype:
        raise s.unsupported(f"{text}, which holds values of several types")
    indexing.write(s, held, value.index, new)
    indexing.write(s, chosen, value.index, py(True))


def _read(s: Context, value: RecordV, column: Source) -> Value | None:
    """What a column holds at an item's place; None if it is none of numbers of one type."""
    if column in s.assigned.columns:
        return s.as_python(indexing.read(s, s.assigned.columns[column][0], value.index))
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
    cls, source = class_of(s, value), source_of(s, value.records)
    needed = (*source, attribute_column(name, IS_METHOD)) if source is not None else ()
    try:
        s.arguments.extended(s.arguments.signature, needed)
    except MissingValue:
        raise s.unsupported(f".{name}() of a {cls.__name__}, an item of a list") from None
    s.taken(needed)
    function = instances.method_of(s, cls, name)
    own = [] if isinstance(in_class(cls, name), staticmethod) else [value]
    return s.call(function, [*own, *args], kwargs)
