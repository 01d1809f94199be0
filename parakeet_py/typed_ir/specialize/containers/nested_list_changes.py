"""Changes of lists in a list, or in a dict: `graph[u].append(v)`, `rows[-1][k] = x`, `groups[key].sort()`.

Appending to a row, taking its last item and assigning one are done in the pool (see `nested_lists`). For all else the
row is taken out, changed as a list of its own, and put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays import array_store
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array, store_array
from parakeet_py.typed_ir.specialize.arrays.index_entries import position
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import dynamic_lists, hash_maps
from parakeet_py.typed_ir.specialize.containers.nested_lists import FEW, LEAVES, as_row, has_rows, load
from parakeet_py.typed_ir.specialize.forms import is_list
from parakeet_py.typed_ir.specialize.paths import join
from parakeet_py.typed_ir.specialize.paths.templates import RowT, Structure, template_of, types_of
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    DictV,
    ListValue,
    MapV,
    NeverV,
    ScalarV,
    SliceV,
    TupleV,
    Unknown,
    Value,
    grows,
    is_rows,
    known,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def change(s: Context, held: Value, at: Value, kind: str, args: list[Value]) -> list[Value]:
    """The outs of a change of the item at a place (see `list_changes.change`)."""
    if isinstance(held, TupleV | DictV):
        found = _known_item(held, at)
        if found is not None:
            *item, row = s.changed(kind, found, args)
            return [*item, *s.changed("set", held, [at, row])]
    if is_rows(held) and held.kind != "table" and held.array.rank > 1 and kind == "set":
        s.set_item(s.subscript(held, at), args[0], args[1])  # the memory of the array
        return [held]
    if isinstance(held, ArrayV):
        row = s.subscript(held, at)
        if isinstance(row, ArrayV) and kind == "set":
            s.set_item(row, args[0], args[1])
            return [held]
    if isinstance(held, DictV):
        held = hash_maps.table_for(s, held)
    if isinstance(held, MapV):
        return _of_map(s, held, at, kind, args)
    if not is_list(held) or (is_rows(held) and held.array.rank < 2):
        raise s.unsupported(f"a change of an item of {s.describe(held)}")
    grown = _with_rows(s, held, 0)
    place = position(s, grown.length.operand, at, "list index out of range")
    *item, made = _changed(s, grown, 0, place, kind, args)
    return [*item, made]


def _known_item(held: TupleV | DictV, at: Value) -> Value | None:
    try:
        place = known(at)
        return held.items[place] if isinstance(held, TupleV) else dict(held.items)[place]  # type: ignore[no-any-return]
    except (Unknown, IndexError, KeyError, TypeError):
        return None


def _of_map(s: Context, held: MapV, at: Value, kind: str, args: list[Value]) -> list[Value]:
    if held.kind != "dict":
        raise s.unsupported("a change of an item of a set")
    entry = hash_maps.entry_of(s, held, at)
    if entry is None:
        return [NeverV()] * (2 if kind in _GIVING else 1)
    assert isinstance(held.entries.item, Structure)
    keys = len(types_of(held.entries.item.parts[0]))
    *item, made = _changed(s, _with_rows(s, held.entries, keys), keys, entry, kind, args)
    assert grows(made)
    return [*item, replace(held, entries=made)]


_GIVING = ("pop", "popleft", "popright", "setdefault", "heappop")


def _with_rows(s: Context, held: Value, keys: int) -> ListValue:
    """The list with items (or, behind keys, values) that are rows."""
    item = dynamic_lists.item_template(s, held)
    if keys:
        assert isinstance(item, Structure)
        return dynamic_lists.as_grown(s, held, Structure(item.like, (item.parts[0], as_row(s, item.parts[1]))))
    return dynamic_lists.as_grown(s, held, as_row(s, item))


def _row_of(grown: ListValue) -> RowT:
    item = grown.item.parts[1] if isinstance(grown.item, Structure) else grown.item
    assert isinstance(item, RowT)
    return item


def _holding(s: Context, grown: ListValue, items: Sequence[Value]) -> ListValue:
    """The list, whose rows may hold such items, too."""
    row = _row_of(grown)
    wide = dynamic_lists.join_items(s, [row.item, *(template_of(item, varying=True) for item in items)])
    if wide == row.item:
        return grown
    made = RowT(wide)
    if isinstance(grown.item, Structure):
        return dynamic_lists.as_grown(s, grown, Structure(grown.item.like, (grown.item.parts[0], made)))
    return dynamic_lists.as_grown(s, grown, made)


def _changed(s: Context, grown: ListValue, keys: int, place: ir.Operand, kind: str, args: list[Value]) -> list[Value]:
    """The change of a row, whose numbers begin in the column `keys`: what it gives, and the list."""
    b = s.builder
    match kind, args:
        case ("append", [item]) if not has_rows(_row_of(grown).item):
            grown = _holding(s, grown, [item])
            pool, start, count = _with_room(s, grown, keys, place)
            leaves = join.leaves_of(s, item, pool.item)
            array_store.store_leaves(s, pool.columns, b.index_add(start, count), leaves)
            _store(s, grown, keys + 1, place, b.index_add(count, ONE))
            return [replace(grown, pools=(pool,))]
        case "pop", []:
            start, count = (load(s, grown.columns[keys + leaf], place) for leaf in range(2))
            s.check(b.prim("gt", count, ZERO, type=PYBOOL), "IndexError", "pop from empty list")
            last = s.builder.as_count(b.index_add(count, ONE, -1))
            (pool,) = grown.pools
            item = dynamic_lists.item_at(s, pool, s.builder.as_count(b.index_add(start, last)))
            _store(s, grown, keys + 1, place, last)
            return [item, grown]
        case ("set", [index, item]) if not isinstance(index, SliceV) and not has_rows(_row_of(grown).item):
            grown = _holding(s, grown, [item])
            start, count = (load(s, grown.columns[keys + leaf], place) for leaf in range(2))
            (pool,) = grown.pools
            where = position(s, count, index, "list assignment index out of range")
            leaves = join.leaves_of(s, item, pool.item)
            array_store.store_leaves(s, pool.columns, s.builder.as_count(b.index_add(start, where)), leaves)
            return [grown]
    if has_rows(_row_of(grown).item):
        raise s.unsupported("a change of a list in a list of lists of lists")
    start, count, room = (load(s, grown.columns[keys + leaf], place) for leaf in range(LEAVES))
    (pool,) = grown.pools
    columns = tuple(copy_array(s, make_view(s, one, (start,), [(0, count, ONE)])) for one in pool.columns)
    outs = s.changed(kind, ListValue.grown(ScalarV(count), columns, pool.item), args)
    *given, row = outs
    if isinstance(row, NeverV):
        return outs
    return [*given, _replaced(s, grown, keys, place, row, start, room)]


def _replaced(
    s: Context, grown: ListValue, keys: int, place: ir.Operand, row: Value, start: ir.Operand, room: ir.Operand
) -> ListValue:
    """The list with another row at a place: where the old one was, if it fits."""
    b = s.builder
    template = dynamic_lists.item_template(s, row)
    if template is not None and template != _row_of(grown).item:
        wide = dynamic_lists.join_items(s, [_row_of(grown).item, template])
        made = RowT(wide)
        item = grown.item
        whole = Structure(item.like, (item.parts[0], made)) if isinstance(item, Structure) else made
        grown = dynamic_lists.as_grown(s, grown, whole)
    (pool,) = grown.pools
    row = dynamic_lists.as_grown(s, row, pool.item)
    count = row.length.operand

    def there() -> list[Value]:
        return [ScalarV(start), ScalarV(room), pool]

    def behind() -> list[Value]:
        first = pool.length.operand
        more = s.builder.as_count(b.index_add(count, b.prim("floordiv", count, ir.Const(2, PYINT))))
        return [ScalarV(first), ScalarV(more), _longer(s, pool, more)]

    fits = b.prim("le", count, room, type=PYBOOL)
    first, space, longer = s.branch(fits, there, behind)
    assert isinstance(first, ScalarV) and isinstance(space, ScalarV) and grows(longer)
    begin = s.builder.as_count(first.operand)
    for column, values in zip(longer.columns, row.columns, strict=True):
        s.will_store(column)
        target = make_view(s, column, (begin,), [(0, count, ONE)])
        store_array(s, target, make_view(s, values, (ZERO,), [(0, count, ONE)]))
    for leaf, number in enumerate((begin, count, space.operand)):
        _store(s, grown, keys + leaf, place, number)
    return replace(grown, pools=(longer,))


def _longer(s: Context, pool: ListValue, more: ir.Operand) -> ListValue:
    """The pool with room for so many more items, which are taken to be in use."""
    columns = dynamic_lists.with_room(s, pool, more)
    total = s.builder.as_count(s.builder.index_add(pool.length.operand, more))
    return replace(pool, length=ScalarV(total), columns=columns)


def _with_room(s: Context, grown: ListValue, keys: int, place: ir.Operand) -> tuple[ListValue, ir.Operand, ir.Operand]:
    """The pool, in which there is room behind the items of a row, with the row's start and the number of its items."""
    b = s.builder
    (pool,) = grown.pools
    start, count, room = (load(s, grown.columns[keys + leaf], place) for leaf in range(LEAVES))

    def moved() -> list[Value]:
        first = pool.length.operand
        more = s.builder.as_count(b.index_add(b.index_mul(count, ir.Const(2, PYINT)), ir.Const(FEW, PYINT)))
        longer = _longer(s, pool, more)
        for column in longer.columns:
            target = make_view(s, column, (first,), [(0, count, ONE)])
            s.will_store(column)
            store_array(s, target, make_view(s, column, (start,), [(0, count, ONE)]))
        _store(s, grown, keys, place, first)
        _store(s, grown, keys + 2, place, more)
        return [ScalarV(first), longer]

    full = b.prim("ge", count, room, type=PYBOOL)
    first, made = s.branch(full, moved, lambda: [ScalarV(start), pool])
    assert isinstance(first, ScalarV) and grows(made)
    return made, s.builder.as_count(first.operand), count


def _store(s: Context, grown: ListValue, leaf: int, place: ir.Operand, number: ir.Operand) -> None:
    s.will_store(grown.columns[leaf])
    s.builder.emit(ir.Store(grown.columns[leaf].var, (place,), s.builder.cast(number, Scalar("int64"))))
