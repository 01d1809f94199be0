"""Lists of lists that a function changes: adjacency lists, buckets, results that grow by lists.

A list that is an item of another one (`templates.RowT`) is three numbers in the columns of that list: where its items
begin in a pool, how many they are, and how many there is room for. The pool, itself a list that grows, holds
the items of all rows, each row in one piece. A row that is full moves to the end of the pool, with room for more than
twice as many items, so that appending takes constant time in the mean. Rows of rows have a pool of the pool.

That nothing else sees a row when it changes is the frontend's promise (`frontend/ownership`): a row taken out shows
the pool, good until the next change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array, new_array, store_array
from parakeet_py.typed_ir.specialize.arrays.elementwise import generate
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import dynamic_lists
from parakeet_py.typed_ir.specialize.forms import parts_of, rebuild
from parakeet_py.typed_ir.specialize.paths import join
from parakeet_py.typed_ir.specialize.paths.templates import ArrayT, RowT, Structure, Template, describe, types_of
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    Columns,
    ListValue,
    NeverV,
    Rows,
    ScalarV,
    TupleV,
    UnboundV,
    Value,
    grows,
    is_rows,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

ROOT = -(1 << 40)  # the memory of all rows that are taken out: marks what Python must not see as a list of its own
LEAVES = 3  # a row's numbers: start, count, room
FEW = 4  # items that are appended one by one


# ---- templates -------------------------------------------------------------------------------------------------------


def has_rows(template: Template) -> bool:
    match template:
        case RowT():
            return True
        case Structure(TupleV(), parts):
            return any(map(has_rows, parts))
    return False


def is_table_of_rows(value: Value, other: Value) -> bool:
    """Is a list of lists of one length an array on one path, and a list of rows on the other?"""
    if not is_rows(value) or value.array.rank != 2 or value.kind not in ("", value.array.dtype):
        return False
    return grows(other) and isinstance(other.item, RowT)


def row_templates(template: Template) -> list[RowT]:
    """The rows in an item, in the order of their pools."""
    match template:
        case RowT():
            return [template]
        case Structure(TupleV(), parts):
            return [row for part in parts for row in row_templates(part)]
    return []


def normal(template: Template) -> Template:
    """The template of an item, in which lists of no known length are rows."""
    match template:
        case Structure(ListValue(form=Columns(item))):
            return RowT(normal(item))
        case Structure(ListValue(form=Rows(kind), columns=(array,))) if kind in ("", array.dtype):
            made: Template = Scalar(array.dtype, not kind)
            for _ in range(array.rank):
                made = RowT(made)
            return made
        case Structure(TupleV() as like, parts):
            return Structure(like, tuple(map(normal, parts)))
    return template


def joined(s: Context, left: Template, right: Template) -> Template:
    """The least template that fits two items, one of which is a row."""
    return RowT(dynamic_lists.join_items(s, [*_inner(s, left), *_inner(s, right)]))


def _inner(s: Context, template: Template) -> Sequence[Template]:
    match normal(template):
        case RowT(item):
            return [item]
        case Structure(TupleV(kind="list"), parts):
            return parts
    raise s.unsupported(f"a list of lists and of {describe(template)}")


def as_row(s: Context, template: Template) -> RowT:
    """The template of an item that is to be a list of any length."""
    return RowT(dynamic_lists.join_items(s, _inner(s, template)))


def pool_templates(s: Context, item: Template, roots: frozenset[int]) -> list[Template]:
    found: list[Template] = []
    for row in row_templates(item):
        columns = [
            ArrayT(Array(kind.dtype, 1, "C"), (None,), roots, False, (False,), ())
            for kind in types_of(row.item)
            if isinstance(kind, Scalar)
        ]
        parts = (PYINT, *columns, *pool_templates(s, row.item, roots))
        found.append(Structure(ListValue.grown(py(0), (), row.item), parts))
    return found


# ---- pools -----------------------------------------------------------------------------------------------------------


def new_pools(s: Context, item: Template) -> tuple[ListValue, ...]:
    return tuple(dynamic_lists.as_grown(s, TupleV((), "list"), row.item) for row in row_templates(item))


def copied_pools(s: Context, pools: Sequence[ListValue]) -> tuple[ListValue, ...]:
    return tuple(dynamic_lists.copied(s, pool) for pool in pools)


def recoded(s: Context, grown: ListValue, item: Template) -> ListValue:
    """The same items with a wider template, in which there are rows."""
    columns, pools = _recoded(s, grown.length, grown.item, item, list(grown.columns), list(grown.pools))
    if columns[0] in grown.columns and not all(column in grown.columns for column in columns):
        # new columns have no room for more items, and it is the first one that is asked
        columns[0] = make_view(s, columns[0], (ZERO,), [(0, grown.length.operand, ONE)])
    return ListValue.grown(grown.length, tuple(columns), item, tuple(pools))


def _recoded(
    s: Context,
    length: ScalarV,
    old: Template,
    new: Template,
    columns: list[ArrayV],
    pools: list[ListValue],
) -> tuple[list[ArrayV], list[ListValue]]:
    """The columns and pools of a part of the items; those it had are taken from the lists."""
    if isinstance(new, RowT):
        if isinstance(old, RowT):
            own = [columns.pop(0) for _ in range(LEAVES)]
            return own, [dynamic_lists.as_grown(s, pools.pop(0), new.item)]
        if old is None or isinstance(old, Structure):
            parts = old.parts if isinstance(old, Structure) else ()
            if has_rows(old):
                raise s.unsupported("lists of lists in a list, of different lengths")
            return _of_records(s, length, parts, new, columns)
    if isinstance(new, Structure) and has_rows(new):
        parts = old.parts if isinstance(old, Structure) else (None,) * len(new.parts)
        made: tuple[list[ArrayV], list[ListValue]] = [], []
        for before, after in zip(parts, new.parts, strict=True):
            own, inner = _recoded(s, length, before, after, columns, pools)
            made[0].extend(own)
            made[1].extend(inner)
        return made
    own = [columns.pop(0) for _ in types_of(old)]
    plain = ListValue.grown(length, tuple(own), old)
    if old == new:
        return own, []
    return list(dynamic_lists.as_grown(s, plain, new).columns), []


def _of_records(
    s: Context, length: ScalarV, parts: Sequence[Template], new: RowT, columns: list[ArrayV]
) -> tuple[list[ArrayV], list[ListValue]]:
    """Rows that all have the same few items, one after the other in a pool."""
    b = s.builder
    many = ir.Const(len(parts), PYINT)
    total = b.index_mul(length.operand, many)
    kinds = types_of(new.item)
    memory = [new_array(s, (b.max0(total),), kind.dtype, "column") for kind in kinds if isinstance(kind, Scalar)]
    for place, part in enumerate(parts):
        own = ListValue.grown(length, tuple(columns.pop(0) for _ in types_of(part)), part)
        given = dynamic_lists.as_grown(s, own, new.item).columns
        for column, values in zip(memory, given, strict=True):
            target = make_view(s, column, (ir.Const(place, PYINT),), [(0, length.operand, many)])
            store_array(s, target, make_view(s, values, (ZERO,), [(0, length.operand, ONE)]))
    if has_rows(new.item):
        raise s.unsupported("lists of lists in a list, of different lengths")
    return _even(s, length, many), [ListValue.grown(ScalarV(total), tuple(memory), new.item)]


def _even(s: Context, length: ScalarV, many: ir.Operand) -> list[ArrayV]:
    """The numbers of rows of so many items each, one after the other."""
    b = s.builder

    def element(point: tuple[ir.Var, ...]) -> list[ir.Operand]:
        count = b.cast(many, Scalar("int64"))
        return [b.cast(b.index_mul(point[0], many), Scalar("int64")), count, count]

    return generate(s, (length.operand,), element)


def of_table(s: Context, value: ListValue) -> ListValue:
    """A list of lists of one length, which has been an array."""
    b, array = s.builder, value.array
    length, many = array.extents[0], array.extents[1]
    if array.rank > 2:
        raise s.unsupported("a list of lists of lists that change")
    own = copy_array(s, array)
    total = b.index_mul(length, many)
    line = b.pure(ir.Reshape(own.var, (total,)), Array(array.dtype, 1, "C"), name="items")
    kind = Scalar(array.dtype, not value.kind)
    pool = ListValue.grown(ScalarV(total), (ArrayV(line, (total,), own.roots),), kind)
    return ListValue.grown(ScalarV(length), tuple(_even(s, ScalarV(length), many)), RowT(kind), (pool,))


def merged(s: Context, mine: ListValue, other: ListValue) -> tuple[ListValue, ListValue]:
    """Two lists with one template; the rows of the other one put into the pools of the first."""
    b = s.builder
    if not mine.pools:
        return mine, other
    if any(row.item != mine.item or has_rows(row.item) for row in row_templates(mine.item)) and (
        not isinstance(mine.item, RowT) or has_rows(mine.item.item)
    ):
        raise s.unsupported("a list of such items, extended")
    (pool,), (more,) = mine.pools, other.pools
    offset = pool.length.operand
    length = other.length.operand
    starts = other.columns[0]

    def element(point: tuple[ir.Var, ...]) -> list[ir.Operand]:
        start = b.emit1(ir.Load(starts.var, (point[0],)), Scalar("int64"))
        return [b.cast(b.index_add(b.cast(start, PYINT), offset), Scalar("int64"))]

    moved = generate(s, (length,), element)[0]
    pools = (dynamic_lists.extend(s, pool, more),)
    return replace(mine, pools=pools), replace(other, columns=(moved, *other.columns[1:]), pools=pools)


# ---- items -----------------------------------------------------------------------------------------------------------


def leaves_in(s: Context, value: Value, template: Template, pools: list[ListValue]) -> list[ir.Operand]:
    """The leaves of an item, whose rows are put into the pools; these are taken from the front of the list, and put
    back at its end."""
    match template:
        case RowT():
            pool = pools.pop(0)
            if isinstance(value, UnboundV | NeverV) or (isinstance(value, TupleV) and not value.items):
                pools.append(pool)
                return [ZERO, ZERO, ZERO]
            start = pool.length.operand
            longer = _put(s, pool, value)
            pools.append(longer)
            count = s.builder.index_sub(longer.length.operand, start)
            return [start, count, count]
        case Structure(TupleV(), parts) if has_rows(template):
            values = parts_of(value) if not isinstance(value, UnboundV | NeverV) else (value,) * len(parts)
            return [leaf for part, own in zip(parts, values, strict=True) for leaf in leaves_in(s, own, part, pools)]
    return join.leaves_of(s, value, template)


def _put(s: Context, pool: ListValue, row: Value) -> ListValue:
    """The pool with the items of a row at its end."""
    if isinstance(row, TupleV) and (len(row.items) <= FEW or has_rows(pool.item)):
        for item in row.items:
            pool = dynamic_lists.append(s, pool, item)
        return pool
    if has_rows(pool.item):
        raise s.unsupported("a list of lists of lists whose lengths depend on values")
    return dynamic_lists.extend(s, pool, dynamic_lists.as_grown(s, row, pool.item))


def value_of(s: Context, template: Template, leaves: list[ir.Operand], pools: list[ListValue]) -> Value:
    """The item of these leaves, which are taken from the front of the lists."""
    match template:
        case RowT():
            start, count, _ = (leaves.pop(0) for _ in range(LEAVES))
            return _view(s, pools.pop(0), s.builder.as_count(start), s.builder.as_count(count))
        case Structure(TupleV() as like, parts) if has_rows(template):
            return rebuild(like, tuple(value_of(s, part, leaves, pools) for part in parts))
    return join.value_of(s, template, leaves)  # type: ignore[arg-type]


def _view(s: Context, pool: ListValue, start: ir.Operand, count: ir.Operand) -> Value:
    """A row as a list."""
    columns = []
    for column in pool.columns:
        part = make_view(s, column, (start,), [(0, count, ONE)])
        columns.append(replace(part, roots=part.roots | {ROOT}))
    match pool.item:
        case None:
            return TupleV((), "list")
        case Scalar(dtype, python):
            return ListValue.rows(columns[0], "" if python else dtype)
    return ListValue.grown(ScalarV(count), columns, pool.item, pool.pools)


def load(s: Context, column: ArrayV, place: ir.Operand) -> ir.Operand:
    """One of the numbers of a row."""
    b = s.builder
    return s.builder.as_count(b.cast(b.emit1(ir.Load(column.var, (place,)), Scalar("int64")), PYINT))


def compact(s: Context, grown: ListValue) -> tuple[ArrayV, ListValue]:
    """All items of a list of rows, one after the other, and where each row begins, with the end of the last one."""
    b, length = s.builder, grown.length.operand
    (pool,) = grown.pools
    ends = new_array(s, (b.as_count(b.index_add(length, ONE)),), "int64", "column")
    index, before = s.index_var("i", length), ir.Var("place", PYINT)
    b.as_count(before)
    with b.block() as statements:
        b.emit(ir.Store(ends.var, (index,), b.cast(before, Scalar("int64"))))
        after = b.index_add(before, load(s, grown.columns[1], index))
        body = ir.Block(tuple(statements), (after,))
    (total,) = b.emit(ir.For(index, ZERO, length, ONE, (before,), (ZERO,), body), PYINT, name="total")
    b.as_count(total)
    b.emit(ir.Store(ends.var, (length,), b.cast(total, Scalar("int64"))))
    columns = tuple(new_array(s, (total,), column.dtype, "column") for column in pool.columns)
    index = s.index_var("i", length)
    with b.block() as statements:
        first = load(s, ends, index)
        start, count = (load(s, grown.columns[leaf], index) for leaf in range(2))
        for target, column in zip(columns, pool.columns, strict=True):
            source = make_view(s, column, (start,), [(0, count, ONE)])
            store_array(s, make_view(s, target, (first,), [(0, count, ONE)]), source)
        body = ir.Block(tuple(statements))
    if columns:
        b.emit(ir.For(index, ZERO, length, ONE, (), (), body))
    return ends, ListValue.grown(ScalarV(total), columns, pool.item, pool.pools)


def not_for_python(s: Context, value: ListValue) -> None:
    """Refuse a row where Python code would get a list that is not the one that stands there."""
    if any(ROOT in column.roots for column in value.columns):
        raise s.unsupported("a list in a list that changes, given to Python")


def popped(s: Context, grown: ListValue, item: Value) -> tuple[Value, tuple[ListValue, ...]]:
    """An item that is taken from the end of a list: its rows are copied, what lies at the end of the pool is free."""
    if not grown.pools:
        return item, ()
    copies = _copied(s, item)
    if not isinstance(grown.item, RowT):
        return copies, grown.pools
    (pool,) = grown.pools
    b = s.builder
    last = grown.length.operand
    last = b.index_add(last, ONE, -1)
    start, _, room = (load(s, grown.columns[leaf], last) for leaf in range(LEAVES))
    used = pool.length.operand
    at_end = b.prim("eq", b.index_add(start, room), used, type=PYBOOL)
    return copies, (replace(pool, length=ScalarV(s.builder.as_count(b.select(at_end, start, used)))),)


def _copied(s: Context, item: Value) -> Value:
    match item:
        case ListValue():
            return replace(item, columns=tuple(copy_array(s, column) for column in item.columns))
        case TupleV():
            return rebuild(item, tuple(_copied(s, part) for part in item.items))
    return item
