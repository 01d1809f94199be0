"""Python's containers over abstract values: unpacking, items by index, star arguments, dicts of known keys.

A tuple or list of known length is a compile-time value whose items are typed on their own; arrays and lists of unknown
length are read at run time, with Python's checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parakeet_py.base.types import PYBOOL, PYINT, is_integer
from parakeet_py.frontend import ssa
from parakeet_py.signature import enums
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import index_entries, indexing, record_arrays
from parakeet_py.typed_ir.specialize.arrays.flags import flag_at
from parakeet_py.typed_ir.specialize.compile_time_values import is_demandable, static_key
from parakeet_py.typed_ir.specialize.containers import (
    constant_tables,
    dict_items,
    dynamic_lists,
    hash_maps,
    strings,
)
from parakeet_py.typed_ir.specialize.containers.array_lists import item_of
from parakeet_py.typed_ir.specialize.forms import array_of, form_of, is_list
from parakeet_py.typed_ir.specialize.instances import instance_columns, instances, text_columns
from parakeet_py.typed_ir.specialize.paths import iterables, iterator_consumption, loops, tagged_unions
from parakeet_py.typed_ir.specialize.python import named_tuples
from parakeet_py.typed_ir.specialize.python.calls import library_subscript
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    CharV,
    ComprehensionV,
    DictV,
    InstanceV,
    ItemV,
    MethodV,
    NeverV,
    ObjectV,
    RangeV,
    RecordV,
    RefV,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TextV,
    TimeV,
    TupleV,
    Value,
    is_known,
    is_none,
    lift,
    py,
)

FEW = 8  # items of a tuple that are distinguished by tests

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def item_values(s: Context, items: Sequence[ssa.Item]) -> list[Value]:
    made: list[Value] = []
    for item in items:
        if isinstance(item, ssa.Star):
            made.extend(sequence(s, s.value(item.operand)))
        else:
            made.append(s.value(item))
    return made


def list_display(s: Context, items: Sequence[ssa.Item]) -> Value:
    """[a, *b, c]: of known length, or else a list that grows by what is unpacked in it, if that is numbers."""
    parts = [s.value(item.operand if isinstance(item, ssa.Star) else item) for item in items]
    stars = [isinstance(item, ssa.Star) for item in items]
    parts = [
        s.as_list(part) if star and isinstance(part, ComprehensionV) else part
        for part, star in zip(parts, stars, strict=True)
    ]
    found = [known_sequence(s, part) if star else [part] for part, star in zip(parts, stars, strict=True)]
    if None not in found:
        return TupleV(tuple(value for some in found if some is not None for value in some), "list")
    held: Value = TupleV((), "list")
    for part, some in zip(parts, found, strict=True):
        if some is None and not _holds_numbers(part):
            raise _unknown_length(s, part)
        if some is None:
            (held,) = s.changed("extend", held, [part])
        for value in some or ():
            (held,) = s.changed("append", held, [value])
    return held


def _holds_numbers(value: Value) -> bool:
    match value:
        case ArrayV():
            return value.rank == 1
        case RangeV():
            return True
    return dynamic_lists.is_of_scalars(value)


def _unknown_length(s: Context, value: Value) -> Exception:
    return s.unsupported(f"unpacking {s.describe(value)}, whose length is not known when it is compiled")


def sequence(s: Context, value: Value) -> list[Value]:
    """The items of something of known length, for unpacking."""
    found = known_sequence(s, value)
    if found is None:
        raise _unknown_length(s, value)
    return found


def known_sequence(s: Context, value: Value) -> list[Value] | None:
    """The items of something of known length; None if it is not known."""
    if isinstance(value, ComprehensionV):
        value = s.as_list(value)
    value = dict_items.listed(s, value)
    found = iterables.static_items(value)
    if found is not None:
        return found
    array = array_of(value)
    if array is not None and array.rank > 0 and isinstance(array.extents[0], ir.Const):
        count = int(array.extents[0].value.real)
        return [item_of(s, value, indexing.read(s, array, py(position))) for position in range(count)]
    if isinstance(value, RangeV):
        bounds = [bound.operand for bound in (value.start, value.stop, value.step)]
        numbers = [int(bound.value.real) for bound in bounds if isinstance(bound, ir.Const)]
        if len(numbers) == 3 and len(range(*numbers)) <= loops.MAX_UNROLL:
            return [py(number) for number in range(*numbers)]
    return None


def _part_of_range(s: Context, value: RangeV, length: ir.Operand, index: SliceV) -> RangeV:
    b = s.builder
    step = 1 if is_none(index.step) else s.static_int(index.step, "the step of a slice of a range")
    if step == 0:
        raise s.unsupported("slice step cannot be zero")
    start, stop = (
        ScalarV(b.index_add(value.start.operand, b.index_mul(value.step.operand, place)))
        for place in index_entries.slice_bounds(s, length, index, step)
    )
    return RangeV(start, stop, ScalarV(b.index_mul(value.step.operand, ir.Const(step, PYINT))))


def keyword_values(s: Context, kwargs: Sequence[tuple[str | None, ssa.Operand]]) -> dict[str, Value]:
    made: dict[str, Value] = {}
    for name, operand in kwargs:
        value = s.value(operand)
        if name is not None:
            items: tuple[tuple[Any, Value], ...] = ((name, value),)
        elif isinstance(value := dict_items.contents(s, value) or value, DictV):
            items = value.items
        else:
            raise s.unsupported("** of something that is not a dict of known keys")
        for key, item in items:
            if not isinstance(key, str):
                raise s.unsupported("keywords must be strings")
            if key in made:
                raise s.unsupported(f"multiple values for keyword argument '{key}'")
            made[key] = item
    return made


def unpack(s: Context, op: ssa.Unpack) -> list[Value]:
    value = tagged_unions.sole(s, s.shown(op.object), "cannot unpack non-iterable NoneType object")
    wanted = op.before + op.after
    if isinstance(value, ObjectV):
        value = named_tuples.named_fields(s, value) or value
    if isinstance(value, RecordV) and (fields := record_arrays.fields_of(s, value)) is not None:
        value = TupleV(fields)
    array = array_of(value)
    if array is not None and array.rank > 0 and iterables.static_items(value) is None and not op.star:
        extent, expected = array.extents[0], ir.Const(wanted, PYINT)
        b = s.builder
        s.check(
            b.prim("ge", extent, expected, type=PYBOOL), "ValueError",
            f"not enough values to unpack (expected {wanted}, got {{0}})", [extent],
        )  # fmt: skip
        s.check(
            b.prim("le", extent, expected, type=PYBOOL), "ValueError",
            f"too many values to unpack (expected {wanted})",
        )  # fmt: skip
        b.learn_equal(expected, extent)
        parts = [indexing.read(s, array, py(position)) for position in range(wanted)]
        return [item_of(s, value, part) for part in parts]
    if op.star and array is not None and array.rank == 1 and iterables.static_items(value) is None:
        return _unpack_with_star(s, op, value, array.extents[0])
    found = sequence(s, value)
    if op.star:
        if len(found) < wanted:
            raise s.unsupported(f"not enough values to unpack (expected at least {wanted}, got {len(found)})")
        middle = found[op.before : len(found) - op.after]
        return [*found[: op.before], TupleV(tuple(middle), "list"), *found[len(found) - op.after :]]
    if len(found) != wanted:
        word = "too many" if len(found) > wanted else "not enough"
        raise s.unsupported(f"{word} values to unpack (expected {wanted}, got {len(found)})")
    return found


def _unpack_with_star(s: Context, op: ssa.Unpack, value: Value, length: ir.Operand) -> list[Value]:
    """The items of an array or list whose length is not known, those in the middle as a list."""
    b = s.builder
    least = ir.Const(op.before + op.after, PYINT)
    message = f"not enough values to unpack (expected at least {least.value}, got {{0}})"
    s.check(b.prim("ge", length, least, type=PYBOOL), "ValueError", message, [length])
    stop = b.index_sub(length, ir.Const(op.after, PYINT))
    middle = subscript(s, value, SliceV(py(op.before), ScalarV(stop), NONE))
    first = [subscript(s, value, py(place)) for place in range(op.before)]
    last = [subscript(s, value, ScalarV(b.index_add(stop, ir.Const(place, PYINT)))) for place in range(op.after)]
    return [*first, s.call(Static(list), [middle], {}), *last]


def _place(value: Value, index: Value) -> Value:
    """An index, members of IntEnums in it as the numbers that they are; keys of mappings as they are."""
    if not (isinstance(value, ArrayV | TupleV | TimeV) or is_list(value)):
        return index
    match index:
        case Static(member) if (number := enums.number_of(member)) is not None:
            return py(number)
        case TupleV(items, "tuple") if any(isinstance(item, Static) for item in items):
            return TupleV(tuple(_place(value, item) for item in items))
    return index


def subscript(s: Context, value: Value, index: Value) -> Value:
    if isinstance(value, ObjectV):
        value = named_tuples.named_fields(s, value) or value
    index = _place(value, index)
    of_form = form_of(value).subscript
    if of_form is not None:
        return of_form(s, value, index)
    match value:
        case ArrayV():
            return indexing.read(s, value, index)
        case InstanceV() | RefV() | ItemV() if instances.has(value, "__getitem__"):
            return instances.special(s, value, "__getitem__", [index])
        case TupleV(items, kind):
            if isinstance(index, SliceV):
                if kind == "list" and not is_known(index) and dynamic_lists.is_uniform(value):
                    return dynamic_lists.subscript(s, dynamic_lists.of_scalars(s, value), index)
                return TupleV(items[s.static(index, "a slice of a tuple")], kind)
            return _tuple_item(s, value, index)
        case DictV(entries):
            if hash_maps.wants_table(s, value, index):
                return hash_maps.subscript(s, hash_maps.table_for(s, value), index)
            wanted = static_key(s, index)
            for key, item in entries:
                if wanted in {key}:
                    return item
            raise s.unsupported(f"KeyError: {wanted!r}")
        case ComprehensionV() if not iterator_consumption.is_iterator(value) or s.frame.namespace.trusted:
            return subscript(s, s.as_list(value), index)
        case RangeV(start, _, step):
            length = iterables.range_length(s, value)
            if isinstance(index, SliceV):
                return _part_of_range(s, value, length, index)
            number = s.numeric(index)
            if not isinstance(number, ScalarV) or not (is_integer(number.dtype) or number.type == PYBOOL):
                raise s.hand_back(f"{s.describe(index)} as an index of a range")
            b = s.builder
            position = index_entries.check_index(s, number, length, 0, message="range object index out of range")
            return ScalarV(b.index_add(start.operand, b.index_mul(step.operand, position)))
        case TextV() | CharV():
            return strings.subscript(s, value, index)
        case Static(str() as text):
            strings.need(s, value)
            return lift(text[s.static(index, "an index of a string")])
        case ObjectV() if (found := dict_items.item(s, value, index)) is not None:
            return found
        case ObjectV() if (instance := instance_columns.subscript(s, value, index)) is not None:
            return instance
        case ObjectV() if (part := text_columns.subscript(s, value, index)) is not None:
            return part
        case ObjectV() | RecordV() if (found := record_arrays.subscript(s, value, index)) is not None:
            return found
        case MethodV(ArrayV() as array, "flat"):
            return s.call_library("flat_read", [array, index])
        case MethodV(ArrayV() as array, "flags"):
            return flag_at(s, array, s.static(index, "the name of a flag"))
        case MethodV(obj, "at" | "reduce"):
            raise s.unsupported(f"subscript of {s.describe(obj)}")
    handled = library_subscript(s, value, index)
    if handled is not None:
        return handled
    raise s.hand_back(f"{s.describe(value)}[...]")


def _tuple_item(s: Context, value: TupleV, index: Value) -> Value:
    number = s.numeric(index)
    if isinstance(number, ScalarV) and isinstance(number.operand, ir.Var):
        if not value.items and value.kind == "list":
            s.check(ir.Const(False, PYBOOL), "IndexError", "list index out of range")
            return NeverV()
        kinds = {item.type if isinstance(item, ScalarV) else None for item in value.items}
        if len(kinds) == 1 and None not in kinds and not is_demandable(s, number.operand):
            # A small table of scalars indexed at run time.
            if not (is_integer(number.dtype) or number.type == PYBOOL):
                raise s.unsupported(f"{s.describe(index)} as an index of a {value.kind}")
            count = ir.Const(len(value.items), PYINT)
            place = index_entries.check_index(s, number, count, 0, message=f"{value.kind} index out of range")
            return as_scalar_like(s, indexing.read(s, as_array_of(s, value), ScalarV(place)), value.items[0])
        integer = is_integer(number.dtype) or number.type == PYBOOL
        if integer and value.named is None and not is_demandable(s, number.operand):
            mark = s.checkpoint()
            found = constant_tables.item_at(s, value)
            if found is not None:
                count = ir.Const(len(value.items), PYINT)
                return found(index_entries.check_index(s, number, count, 0, message=f"{value.kind} index out of range"))
            s.rollback(mark)
            plain = all(isinstance(item, ArrayV | ScalarV | TaggedScalar | Static) for item in value.items)
            if value.kind == "tuple" and plain and 0 < len(value.items) <= FEW:
                return _one_of(s, value, number)
    position = s.static_int(index, "an index of a tuple")
    if not -len(value.items) <= position < len(value.items):
        s.check(ir.Const(False, PYBOOL), "IndexError", f"{value.kind} index out of range")
        return NeverV()
    return value.items[position]


def _one_of(s: Context, value: TupleV, number: ScalarV) -> Value:
    """The item at a place that is known when the program runs, by tests: `(even, odd)[k % 2]`."""
    count = ir.Const(len(value.items), PYINT)
    place = index_entries.check_index(s, number, count, 0, message=f"{value.kind} index out of range")

    def from_(first: int) -> list[Value]:
        if first == len(value.items) - 1:
            return [value.items[first]]
        here = s.builder.prim("eq", place, ir.Const(first, PYINT), type=PYBOOL)
        return s.branch(here, lambda: [value.items[first]], lambda: from_(first + 1))

    (found,) = from_(0)
    return found


def as_array_of(s: Context, value: TupleV) -> ArrayV:
    array = s.as_array(value)
    assert isinstance(array, ArrayV)
    return array


def as_scalar_like(s: Context, value: Value, like: Value) -> Value:
    if isinstance(like, ScalarV) and isinstance(value, ScalarV):
        return ScalarV(s.builder.cast(value.operand, like.type))
    return value


def set_item(s: Context, target: Value, index: Value, value: Value) -> None:
    index = _place(target, index)
    if isinstance(target, ArrayV):
        indexing.write(s, target, index, value)
        return
    if isinstance(target, MethodV) and target.name == "flat":
        s.call_library("flat_write", [target.object, index, value])
        return
    if isinstance(target, InstanceV | RefV | ItemV) and instances.has(target, "__setitem__"):
        instances.special(s, target, "__setitem__", [index, value])
        return
    if isinstance(target, ObjectV | RecordV) and record_arrays.set_item(s, target, index, value):
        return
    if isinstance(target, ObjectV):
        if dict_items.set_item(s, target, index, value):
            return
        raise s.hand_back("item assignment to an object")
    store = form_of(target).store
    if store is not None and store(s, target, index, value):
        return
    s.need_whole(target)
    raise s.unsupported(f"item assignment to {s.describe(target)}")
