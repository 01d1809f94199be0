"""Lists that a function changes: items in arrays that have room for more.

The frontend makes every change of a list with one owner a new value (`frontend/ownership`). As long as
the number of its items is known that value is a `TupleV`. Where paths with different numbers meet it is a
list in `Columns`: a length and, for each leaf of an item, an array whose first elements are in use. Columns are changed
in place, since the list before a change is never read again, and replaced by columns of one and a half times the size
when they are full. All items have one template, whose leaves are scalars: numbers, numbers of several types, tuples of
such.

A rule that does not know them gets a list of `Rows` that shows the elements in use (`array_lists.shown`): good until
the next change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.arrays import index_entries, indexing
from parakeet_py.typed_ir.specialize.arrays.array_store import (
    copy_array,
    encoded,
    load_leaves,
    new_array,
    store_array,
    store_leaves,
)
from parakeet_py.typed_ir.specialize.arrays.elementwise import generate
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import nested_lists, ragged_arrays
from parakeet_py.typed_ir.specialize.forms import FORMS, Form, is_list
from parakeet_py.typed_ir.specialize.instances import instance_lists
from parakeet_py.typed_ir.specialize.paths import iterables, join
from parakeet_py.typed_ir.specialize.paths.templates import (
    ArrayT,
    RowT,
    Structure,
    Template,
    arrays_in,
    template_of,
    types_of,
    varying,
)
from parakeet_py.typed_ir.specialize.restarts import NotGrown
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    Columns,
    InstanceV,
    ItemAt,
    ItemV,
    ListValue,
    MapV,
    RangeV,
    Rows,
    ScalarV,
    SliceV,
    TextV,
    TupleV,
    Value,
    grows,
    is_ragged,
    is_rows,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

SMALLEST = 8  # elements of a column
NO_ITEMS = "pop from an empty deque"
_ROWS = ("array", "table")  # items of lists that are described as a whole


def has_item_type(value: Value) -> bool:
    """Whether it is a list whose items are described one by one: lists of rows, and tables, are not."""
    return is_list(value) and not (is_rows(value) and (value.array.rank > 1 or value.kind in _ROWS))


def in_columns(value: Value) -> tuple[ScalarV, Sequence[ArrayV]] | None:
    """The length and the columns of a list that is nothing else; None for other values."""
    return (value.length, value.columns) if grows(value) and not value.pools else None


def is_of_scalars(value: Value) -> bool:
    """Is it a list of numbers?"""
    match value:
        case ListValue(form=Rows(kind), columns=(array,)):
            return array.rank == 1 and kind != "table"
        case ListValue(form=Columns(item)):
            return isinstance(item, Scalar)
    return False


def is_table(value: Value) -> bool:
    """A list of tuples, which is shown as the array that NumPy makes of it, and as nothing else."""
    return grows(value) and isinstance(value.item, Structure)


def kind_as_option(value: Value) -> object:
    """What two lists must not have in common that are options of one value; None for what cannot be an option."""
    if is_ragged(value):
        return None
    if is_rows(value) and not has_item_type(value):
        return "list", value.array.dtype, value.array.rank, value.kind
    return "list"


# ---- templates and conversion ----------------------------------------------------------------------------------------


def item_template(s: Context, held: Value, more: Sequence[Value] = ()) -> Template:
    """The template that all items of a list, and some more, fit."""
    templates: list[Template] = []
    match held:
        case ListValue(form=Columns(item)):
            templates.append(item)
        case TupleV(items):
            templates += [template_of(item, varying=True) for item in items]
        case ListValue(form=Rows(kind), columns=(array,)) if kind in ("", array.dtype):
            made: Template = Scalar(array.dtype, kind == "")
            for _ in range(array.rank - 1):
                made = RowT(made)
            templates.append(made)
        case _:
            raise NotGrown.at(s.frame.function, s.builder.pos, f"a change of {s.describe(held)}")
    templates += [template_of(item, varying=True) for item in more]
    return join_items(s, templates)


def join_items(s: Context, templates: Sequence[Template]) -> Template:
    """The least template that fits all these items; its leaves have to be scalars."""
    joined: Template = None
    for template in templates:
        template = nested_lists.normal(varying(template))
        joined = template if joined is None else nested_lists.normal(join.join(s, joined, template))
    instance_lists.note_items(s, joined)
    if joined is not None and not all(isinstance(kind, Scalar) for kind in types_of(joined)):
        raise NotGrown.at(s.frame.function, s.builder.pos, "a list of arrays or objects whose length depends on values")
    return joined


def grown_template(s: Context, left: Structure, right: Structure) -> Structure:
    """The template of a list that has different lengths on two paths."""
    arrays = ragged_arrays.template(s, left, right)
    if arrays is not None:
        return arrays
    items = join_items(s, [*_parts(left), *_parts(right)])
    # What is made a grown list on one path only is new memory, which needs no name of its own beside the other path's.
    some = any(grows(one.like) and len(one.parts) > 1 for one in (left, right))
    roots: frozenset[int] = frozenset() if some else frozenset({s.memory.new_root()})
    for one in (left, right):
        # one that may be an argument is marked as that: Python must get the very list (`inputs.need_whole`)
        roots |= _roots(one) if grows(one.like) else _roots(one) & s.arguments.list_roots.keys()
    columns = [
        ArrayT(Array(kind.dtype, 1, "C"), (None,), roots, False, (False,), ())
        for kind in types_of(items)
        if isinstance(kind, Scalar)
    ]
    parts = (PYINT, *columns, *nested_lists.pool_templates(s, items, roots))
    return Structure(ListValue.grown(py(0), (), items), parts)


def _roots(template: Template) -> frozenset[int]:
    return frozenset().union(*(array.roots for array in arrays_in([template])))


def _parts(template: Structure) -> Sequence[Template]:
    match template.like:
        case ListValue(form=Columns(item)):
            return [item]
        case ListValue(form=Rows(kind), columns=(array,)):
            number = Scalar(array.dtype, kind == "")
            return [number if array.rank == 1 else RowT(number)]
    return template.parts


def of_columns(length: ir.Operand, columns: Sequence[ArrayV], item: Template) -> ListValue:
    """A list whose items have these leaves."""
    return ListValue.grown(ScalarV(length), columns, item)


def key_template(value: MapV) -> Template:
    item: Template = value.entries.item
    if value.kind != "dict" or item is None:
        return item
    assert isinstance(item, Structure)
    return item.parts[0]


def keys(value: MapV) -> ListValue:
    """The keys of a dict, or the items of a set, in order."""
    template = key_template(value)
    return ListValue.grown(value.entries.length, value.entries.columns[: len(types_of(template))], template)


def values(value: MapV) -> ListValue:
    item = value.entries.item
    if item is None:
        return value.entries
    assert isinstance(item, Structure)
    own = len(types_of(item.parts[0]))
    return ListValue.grown(value.entries.length, value.entries.columns[own:], item.parts[1], value.entries.pools)


def with_items(value: Value, item: Template) -> Value:
    """A list in columns, whose leaves are taken to be those of items of another type."""
    return replace(value, form=Columns(item)) if grows(value) else value


def of_characters(s: Context, text: TextV) -> ListValue:
    """The list of all characters of a string."""
    column = s.cast_array(text.codes, "int64")
    return of_columns(text.codes.extents[0], (column,), Structure(CharV(py(0)), (PYINT,)))


def as_grown(s: Context, value: Value, item: Template) -> ListValue:
    """A list of known length, or an array that is a list, with columns of its own."""
    kinds = [kind for kind in types_of(item) if isinstance(kind, Scalar)]
    if grows(value):
        return value if value.item == item else _recoded(s, value, item)
    if is_rows(value) and value.array.rank > 1:
        table = nested_lists.of_table(s, value)
        return table if table.item == item else _recoded(s, table, item)
    if is_rows(value):
        own = copy_array(s, value.array)
        grown = ListValue.grown(ScalarV(own.extents[0]), (own,), Scalar(own.dtype, value.kind == ""))
        return grown if grown.item == item else _recoded(s, grown, item)
    assert isinstance(value, TupleV)
    room = ir.Const(max(SMALLEST, len(value.items)), PYINT)
    columns = [new_array(s, (room,), kind.dtype, "column") for kind in kinds]
    made = ListValue.grown(py(len(value.items)), columns, item, nested_lists.new_pools(s, item))
    for place, part in enumerate(value.items):
        made = _stored(s, made, ir.Const(place, PYINT), part)
    return made


def _stored(s: Context, grown: ListValue, place: ir.Operand, item: Value) -> ListValue:
    """The list with an item in its place."""
    pools = list(grown.pools)
    shared_containers.put(s, item)
    store_leaves(s, grown.columns, place, nested_lists.leaves_in(s, item, grown.item, pools))
    return replace(grown, pools=tuple(pools))


def _recoded(s: Context, grown: ListValue, item: Template) -> ListValue:
    """The same items with a wider template."""
    if nested_lists.has_rows(item):
        return nested_lists.recoded(s, grown, item)
    length = grown.length.operand
    s.instances.list_changes += bool(s.instances.items)
    columns = generate(
        s, (length,), lambda point: encoded(s, join.leaves_of(s, plain_item_at(s, grown, point[0]), item))
    )
    return ListValue.grown(grown.length, columns, item)


def copied(s: Context, grown: ListValue) -> ListValue:
    instance_lists.must_stay(s, grown.item)
    shared_containers.copied(s, grown)
    columns = tuple(copy_array(s, column) for column in grown.columns)
    return replace(grown, columns=columns, pools=nested_lists.copied_pools(s, grown.pools))


# ---- items -----------------------------------------------------------------------------------------------------------


def item_at(s: Context, grown: ListValue, index: ir.Operand) -> Value:
    """The item at a position that is known to be one."""
    if s.instances.items and instance_lists.changes(s, grown.item):
        return _reference(s, grown, index)
    return plain_item_at(s, grown, index)


def _reference(s: Context, grown: ListValue, index: ir.Operand) -> ItemV:
    """The item at a place, as an object that may change there."""
    if not isinstance(grown.item, Structure) or not isinstance(grown.item.like, InstanceV):
        raise s.unsupported("objects that change, in tuples in a list")
    return ItemV(ScalarV(index), grown, s.instances.list_changes, s.loops.looping)


def plain_item_at(s: Context, grown: ListValue, index: ir.Operand) -> Value:
    """The same, as the value that it is now."""
    leaves = load_leaves(s, grown.columns, index, types_of(grown.item))
    item = shared_containers.read(s, nested_lists.value_of(s, grown.item, leaves, list(grown.pools)), grown)
    instance_lists.note_items(s, grown.item)
    return replace(item, token=instance_lists.FROM_LIST) if isinstance(item, InstanceV) else item


def subscript(s: Context, grown: ListValue, index: Value) -> Value:
    if not isinstance(index, SliceV):
        return item_at(s, grown, index_entries.position(s, grown.length.operand, index, "list index out of range"))
    instance_lists.must_stay(s, grown.item)
    shared_containers.copied(s, grown)
    columns = []
    for column in grown.columns:
        part = indexing.read(s, in_use(s, column, grown.length.operand), index)
        assert isinstance(part, ArrayV)
        columns.append(copy_array(s, part))
    if not columns and grown.item is not None:
        raise s.unsupported("a slice of a list of empty lists")
    length = columns[0].extents[0] if columns else ZERO
    return ListValue.grown(ScalarV(length), columns, grown.item, nested_lists.copied_pools(s, grown.pools))


def in_use(s: Context, column: ArrayV, length: ir.Operand, start: ir.Operand = ZERO) -> ArrayV:
    """`length` elements of a column from `start` on."""
    return make_view(s, column, (start,), [(0, length, ONE)])


# ---- changes ---------------------------------------------------------------------------------------------------------


def append(s: Context, grown: ListValue, item: Value) -> ListValue:
    length = grown.length.operand
    longer = _changed(grown, with_room(s, grown, ONE), _counted(s, length, ONE))
    return _stored(s, longer, length, item)


def _changed(grown: ListValue, columns: Sequence[ArrayV], length: ir.Operand) -> ListValue:
    return replace(grown, columns=tuple(columns), length=ScalarV(length))


def _counted(s: Context, length: ir.Operand, more: ir.Operand) -> ir.Operand:
    return s.builder.as_count(s.builder.index_add(length, more))


def room_for(s: Context, needed: ir.Operand) -> ir.Operand:
    """How long a column is made that needs so many elements: appending takes constant time in the mean."""
    b = s.builder
    half = b.prim("floordiv", needed, ir.Const(2, PYINT))
    return b.as_count(b.index_add(b.index_add(needed, half), ir.Const(SMALLEST, PYINT)))


def with_room(s: Context, grown: ListValue, more: ir.Operand) -> tuple[ArrayV, ...]:
    """The columns, larger ones if there is no room for so many more items."""
    b = s.builder
    if not grown.columns:
        return ()
    length = grown.length.operand
    needed = _counted(s, length, more)

    def larger() -> list[Value]:
        room = room_for(s, needed)
        made: list[Value] = []
        for column in grown.columns:
            array = new_array(s, (room,), column.dtype, "column")
            store_array(s, in_use(s, array, length), in_use(s, column, length))
            made.append(array)
        return made

    full = b.prim("gt", needed, grown.columns[0].extents[0], type=PYBOOL)
    chosen = s.branch(full, larger, lambda: list(grown.columns))
    return tuple(column for column in chosen if isinstance(column, ArrayV))


def extend(s: Context, grown: ListValue, items: Value) -> ListValue:
    found = iterables.static_items(items)
    if found is not None:
        grown = as_grown(s, grown, join_items(s, [grown.item, *(template_of(i, varying=True) for i in found)]))
        for item in found:
            grown = append(s, grown, item)
        return grown
    match items:
        case RangeV():
            array = s.as_array(items)
            assert isinstance(array, ArrayV)
            more = ListValue.grown(ScalarV(array.extents[0]), (array,), PYINT)
        case ArrayV(rank=1):
            more = ListValue.grown(ScalarV(items.extents[0]), (items,), Scalar(items.dtype))
        case ListValue(form=Columns() | Rows()):
            more = as_grown(s, items, item_template(s, items))
        case _:
            raise s.unsupported(f"a list extended by {s.describe(items)}")
    template = join_items(s, [grown.item, more.item])
    grown, more = nested_lists.merged(s, as_grown(s, grown, template), as_grown(s, more, template))
    length, count = grown.length.operand, more.length.operand
    columns = with_room(s, grown, count)
    for column, part in zip(columns, more.columns, strict=True):
        s.will_store(column)
        store_array(s, in_use(s, column, count, length), in_use(s, part, count))
    return ListValue.grown(ScalarV(_counted(s, length, count)), columns, template, grown.pools)


def insert(s: Context, grown: ListValue, index: Value, item: Value) -> ListValue:
    b = s.builder
    length, place = grown.length.operand, index_entries.item_place(s, index)
    place = b.select(b.prim("lt", place, ZERO, type=PYBOOL), b.max0(b.prim("add", place, length)), place)
    place = b.index_min(place, length)
    columns = with_room(s, grown, ONE)
    _move(s, columns, place, _counted(s, place, ONE), b.index_sub(length, place))
    longer = _changed(grown, columns, _counted(s, length, ONE))
    return _stored(s, longer, place, item)


def popleft(s: Context, grown: ListValue) -> tuple[Value, Value]:
    """The first item; what is left starts behind it, in columns that are so much shorter."""
    b = s.builder
    length = grown.length.operand
    s.check(b.prim("gt", length, ZERO, type=PYBOOL), "IndexError", NO_ITEMS)
    item = item_at(s, grown, ZERO)
    columns = []
    for column in grown.columns:
        room = _counted(s, column.extents[0], ir.Const(-1, PYINT))
        columns.append(make_view(s, column, (ONE,), [(0, room, ONE)]))
    return item, _changed(grown, columns, _counted(s, length, ir.Const(-1, PYINT)))


def pop(s: Context, grown: ListValue, index: Value | None, empty: str = "pop from empty list") -> tuple[Value, Value]:
    b = s.builder
    length = grown.length.operand
    s.check(b.prim("gt", length, ZERO, type=PYBOOL), "IndexError", empty)
    if index is None or (isinstance(index, ScalarV) and index.operand == ir.Const(-1, PYINT)):
        last = _counted(s, length, ir.Const(-1, PYINT))
        item, pools = nested_lists.popped(s, grown, item_at(s, grown, last))
        return item, replace(grown, length=ScalarV(last), pools=pools)
    place = index_entries.position(s, grown.length.operand, index, "pop index out of range")
    item = item_at(s, grown, place)
    return item, without(s, grown, place)


def without(s: Context, grown: ListValue, place: ir.Operand) -> ListValue:
    b = s.builder
    last = _counted(s, grown.length.operand, ir.Const(-1, PYINT))
    _move(s, grown.columns, _counted(s, place, ONE), place, b.index_sub(last, place))
    return replace(grown, length=ScalarV(last))


def _move(s: Context, columns: Sequence[ArrayV], source: ir.Operand, target: ir.Operand, count: ir.Operand) -> None:
    count = s.builder.max0(count)
    for column in columns:
        s.will_store(column)
        store_array(s, in_use(s, column, count, target), in_use(s, column, count, source))


def replace_item(s: Context, grown: ListValue, index: Value, item: Value) -> ListValue:
    place = index_entries.position(s, grown.length.operand, index, "list assignment index out of range")
    return _stored(s, grown, place, item)


def reversed_list(s: Context, grown: ListValue) -> ListValue:
    b = s.builder
    length = grown.length.operand
    last = b.index_add(length, ONE, -1)
    columns = []
    for column in grown.columns:
        backwards = make_view(s, column, (b.max0(last),), [(0, length, ir.Const(-1, PYINT))])
        columns.append(copy_array(s, backwards))
    return replace(grown, columns=tuple(columns))


def is_uniform(held: TupleV) -> bool:
    """Are all items scalars of one type?"""
    kinds = {item.type if isinstance(item, ScalarV) else None for item in held.items}
    return len(kinds) == 1 and None not in kinds


def of_scalars(s: Context, held: TupleV) -> ListValue:
    """A list whose items are scalars of one type, with a column."""
    return as_grown(s, held, item_template(s, held))


def repeated(s: Context, held: TupleV, count: ScalarV) -> ListValue:
    """held * count, of a list whose items are scalars of one type."""
    b = s.builder
    number = ir.Const(len(held.items), PYINT)
    template = item_template(s, held)
    if nested_lists.has_rows(template):
        raise s.unsupported("a product of a list of lists of different lengths")
    length = b.index_mul(b.max0(b.cast(count.operand, PYINT)), number)
    if len(held.items) == 1:
        columns = generate(s, (length,), lambda point: encoded(s, join.leaves_of(s, held.items[0], template)))
        return ListValue.grown(ScalarV(length), columns, template)
    once = as_grown(s, held, template)

    def element(point: tuple[ir.Var, ...]) -> list[ir.Operand]:
        place = b.prim("mod", point[0], number)
        return [b.emit1(ir.Load(column.var, (place,)), Scalar(column.dtype)) for column in once.columns]

    return ListValue.grown(ScalarV(length), tuple(generate(s, (length,), element)), template)


def _store(s: Context, grown: ListValue, index: Value, value: Value) -> bool:
    if s.frame.namespace.trusted:
        replace_item(s, grown, index, value)
    return s.frame.namespace.trusted


def _places(s: Context, grown: ListValue) -> tuple[ir.Operand, ItemAt]:
    return grown.length.operand, lambda index: item_at(s, grown, index)


def _convert(s: Context, like: ListValue, value: Value) -> Value:
    return as_grown(s, value, like.item) if is_list(value) else value


def _rebuilt(like: ListValue, parts: tuple[Value, ...]) -> ListValue:
    length, *others = parts
    assert isinstance(length, ScalarV)
    columns = tuple(part for part in others if isinstance(part, ArrayV))
    return ListValue.grown(length, columns, like.item, tuple(part for part in others if grows(part)))


FORMS[Columns] = Form(
    lambda one: (one.length, *one.columns, *one.pools),
    _rebuilt,
    lambda one: one.item,
    convert=_convert,
    item=lambda one: one.item,
    nested=lambda one: one.item is not None and shared_containers.is_of_containers(one.item),
    noun="list",
    type=list,
    length=lambda s, value: value.length.operand,
    places=_places,
    subscript=subscript,
    store=_store,
)
