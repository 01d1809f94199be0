"""Tuples and lists of known items, at a place that is known when the program runs: `adjacent[u]`, `zip(x, names)`.

What is known item by item becomes a table where it is asked for: a column for each leaf of an item. Rows, lists or
tuples of numbers of any length, lie one behind the other in columns, with the places where they begin: a row is a view
of these, which nothing can change or see as a whole.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import PYINT, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import array_lists, dynamic_lists
from parakeet_py.typed_ir.specialize.forms import roots_of
from parakeet_py.typed_ir.specialize.instances import instance_lists
from parakeet_py.typed_ir.specialize.values import ItemAt, ScalarV, TupleV, Value, py

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def item_at(s: Context, value: TupleV) -> ItemAt | None:
    """Gives the item at a position that is one; None if the items have no type in common."""
    if not value.items:
        return None
    if _is_row(value.items[0]) and all(map(_is_row, value.items)):
        rows = _rows(s, [row for row in value.items if isinstance(row, TupleV)])
        if rows is not None or any(row.kind == "list" for row in value.items if isinstance(row, TupleV)):
            return rows
    instance_lists.table_of(s, value.items)
    try:
        template = dynamic_lists.item_template(s, TupleV(value.items, "list"))
    except UnsupportedError:
        return None
    table = dynamic_lists.as_grown(s, TupleV(value.items, "list"), template)
    return lambda index: dynamic_lists.item_at(s, table, index)


def not_a_row(s: Context, value: Value) -> None:
    """Refuse a row where others would see that it is not the very list that stands there."""
    if s.memory.rows and roots_of(value) & s.memory.rows:
        raise s.unsupported("a list in a list, chosen when the program runs, that others see")


def _is_row(value: Value) -> bool:
    return isinstance(value, TupleV) and value.named is None and value.kind == "list"


def _rows(s: Context, rows: list[TupleV]) -> ItemAt | None:
    """Gives the row at a position."""
    b = s.builder
    items = TupleV(tuple(item for row in rows for item in row.items), "list")
    try:
        template = dynamic_lists.item_template(s, items)
    except UnsupportedError:
        return None
    template = template or PYINT
    flat = dynamic_lists.as_grown(s, items, template)
    s.memory.rows |= frozenset(root for column in flat.columns for root in column.roots)
    ends = [0, *itertools.accumulate(len(row.items) for row in rows)]
    places = dynamic_lists.as_grown(s, TupleV(tuple(map(py, ends)), "list"), PYINT)

    def place(index: ir.Operand) -> ir.Operand:
        found = dynamic_lists.item_at(s, places, index)
        assert isinstance(found, ScalarV)
        return b.as_count(found.operand)

    def row_at(index: ir.Operand) -> Value:
        start = place(index)
        count = b.max0(b.index_sub(place(b.index_add(index, ONE)), start))
        columns = tuple(make_view(s, column, (start,), [(0, count, ONE)]) for column in flat.columns)
        row = dynamic_lists.of_columns(count, columns, template)
        return array_lists.shown(s, row) if isinstance(template, Scalar) else row

    return row_at
