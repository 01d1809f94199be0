"""Lists of arrays whose length depends on values: all elements one after the other, and where each array begins.

A list of arrays of one dtype and rank, of any shapes, is `Ragged`: its pool holds the elements of all items in C order;
its columns are, by item, where it begins in the pool, and its extents. Appending
copies the array. That cannot be distinguished from keeping it as long as its memory is not stored to afterwards, so the
items stand for views of the arrays that have been appended (`deferred_views`). What a list shows to NumPy's functions
is one array with the items as its rows, if they have one shape; else Python runs the call.

A list that is returned is put together by Python, of new arrays. They have to be new in the function as well: `fresh`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from parakeet_py.base.types import PYBOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays import index_entries, indexing
from parakeet_py.typed_ir.specialize.arrays.array_store import new_array, store_array
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import dynamic_lists
from parakeet_py.typed_ir.specialize.forms import FORMS, Form, parts_of, rebuild
from parakeet_py.typed_ir.specialize.paths import iterables
from parakeet_py.typed_ir.specialize.paths.templates import ArrayT, Structure
from parakeet_py.typed_ir.specialize.restarts import HandBack, NotGrown
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ItemAt,
    ListValue,
    Ownership,
    Ragged,
    ScalarV,
    SliceV,
    Static,
    TupleV,
    Value,
    is_ragged,
    is_rows,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

COPIES = "copies"  # what such a list of rows holds
CHECKED = 0  # the root of a list that Python may make of copies
SMALLEST = 8  # items there is room for
_LINE = Array("int64", 1, "C")
_BARE: frozenset[int] = frozenset()  # the list's own stores are not stores of the program's


# ---- templates -------------------------------------------------------------------------------------------------------


def template(s: Context, left: Structure, right: Structure) -> Structure | None:
    """The template of a list that has different lengths on two paths; None if it is no list of arrays of one kind."""
    kinds: set[tuple[str, int]] = set()
    root = s.memory.new_root()
    roots = frozenset({s.memory.new_root()})
    bases: frozenset[int] = frozenset()
    fresh = True
    for one in (left, right):
        match one.like:
            case ListValue(form=Ragged() as form) as like:
                kinds.add((_data(like).dtype, len(like.columns) - 1))
                bases, fresh = bases | form.bases, fresh and form.fresh
                pool = one.parts[-1]
                assert isinstance(pool, Structure) and isinstance(pool.parts[1], ArrayT)
                roots |= pool.parts[1].roots
            case TupleV(kind="list") as like:
                for item in one.parts:
                    if not isinstance(item, ArrayT):
                        return None
                    kinds.add((item.type.dtype, item.type.rank))
                    bases |= item.roots
                fresh = fresh and _all_new(s, like.items, right.like if one is left else left.like)
            case _:
                return None
    if len(kinds) != 1 or ("", 0) in kinds:
        return None
    ((dtype, rank),) = kinds
    if rank == 0:
        return None

    def column(kind: Array) -> ArrayT:
        return ArrayT(kind, (None,), roots, False, (False,), ())

    kind = Array(dtype, 1, "C")
    nothing = ArrayV(ir.Var("data", kind), (ZERO,), frozenset())
    line = ArrayV(ir.Var("places", _LINE), (ZERO,), frozenset())
    elements = ListValue.grown(py(0), (nothing,), Scalar(dtype))
    like = ListValue(py(0), (line,) * (rank + 1), Ragged(root, bases, fresh), (elements,))
    lines = [column(_LINE) for _ in like.columns]
    return Structure(like, (PYINT, *lines, Structure(elements, (PYINT, column(kind)))))


def _data(value: ListValue) -> ArrayV:
    """The elements of all items."""
    (pool,) = value.pools
    return pool.array


def _used(value: ListValue) -> ir.Operand:
    """How many elements are in use."""
    (pool,) = value.pools
    return pool.length.operand


def _form(value: ListValue) -> Ragged:
    assert isinstance(value.form, Ragged)
    return value.form


def _made(
    value: ListValue, length: ir.Operand, used: ir.Operand, columns: Sequence[ArrayV] = (), form: Ragged | None = None
) -> ListValue:
    """The list with so many items and elements, and (if they are given) other columns, the elements first."""
    data, *places = columns or (_data(value), *value.columns)
    pool = ListValue.grown(ScalarV(used), (data,), Scalar(data.dtype))
    return ListValue(ScalarV(length), tuple(places), form or _form(value), (pool,))


def note_append(s: Context, item: Value) -> None:
    """Remember that an array was new when it was appended to a list of known length."""
    if isinstance(item, ArrayV) and _is_new(s, item):
        s.deferred_views.fresh.add(item.var)


def _all_new(s: Context, items: Sequence[Value], other: Value) -> bool:
    """Are these arrays new ones, each of its own, that an iteration has made or that were there before the loop?"""
    before = other.items if isinstance(other, TupleV) else ()
    arrays = [item for item in items if isinstance(item, ArrayV)]
    roots = frozenset(root for item in arrays for root in item.roots)
    distinct = len(roots) == sum(len(item.roots) for item in arrays)
    return distinct and all(
        _is_new(s, item, known=item in before or item.var in s.deferred_views.fresh) for item in arrays
    )


def _remember(s: Context, value: ListValue) -> None:
    form = _form(value)
    base, site = s.deferred_views.made.get(form.root, (frozenset(), s.deferred_views.site))
    s.deferred_views.made[form.root] = (base | form.bases, site)


def as_arrays(s: Context, like: ListValue, value: Value) -> Value:
    """A list of known length as one that grows; other values as they are."""
    if not isinstance(value, TupleV):
        return value
    b = s.builder
    sizes: ir.Operand = ZERO
    for item in value.items:
        sizes = b.index_add(sizes, _size(s, item.extents if isinstance(item, ArrayV) else ()))
    room = ir.Const(max(SMALLEST, len(value.items)), PYINT)
    data = new_array(s, (sizes,), _data(like).dtype, "column")
    columns = [data, *(new_array(s, (room,), "int64", "column") for _ in like.columns)]
    made = _made(like, ZERO, ZERO, columns, Ragged(_form(like).root, frozenset(), True))
    for item in value.items:
        made = append(s, made, item)
    return made


def _size(s: Context, extents: Sequence[ir.Operand]) -> ir.Operand:
    size: ir.Operand = ONE
    for extent in extents:
        size = s.builder.as_count(s.builder.index_mul(size, extent))
    return size


# ---- changes ---------------------------------------------------------------------------------------------------------


def change(s: Context, held: ListValue, kind: str, args: Sequence[Value]) -> list[Value]:
    match kind, args:
        case "append", [item]:
            return [append(s, held, item)]
        case "extend", [items]:
            found = iterables.static_items(items)
            for item in found or ():
                held = append(s, held, item)
            if found is not None:
                return [held]
        case "clear", []:
            return [TupleV((), "list")]
        case "pop", []:
            b, length = s.builder, held.length.operand
            s.check(b.prim("gt", length, ZERO, type=PYBOOL), "IndexError", "pop from empty list")
            last = b.as_count(b.index_add(length, ONE, -1))
            item = item_at(s, held, last)
            return [item, _made(held, last, s.builder.as_count(_load(s, held.array, last)))]
    raise s.unsupported(f".{kind}() of a list of arrays")


def append(s: Context, held: ListValue, item: Value) -> ListValue:
    b = s.builder
    rank, form = len(held.columns) - 1, _form(held)
    if (
        not isinstance(item, ArrayV)
        or (item.dtype, item.rank) != (_data(held).dtype, rank)
        or (item.order and rank > 1)
    ):
        raise NotGrown.at(s.frame.function, b.pos, "a list of arrays of different kinds, or in Fortran order")
    try:
        s.deferred_view(item, _made_here(s, item))
    except HandBack:
        raise s.unsupported("a list of arrays that are stored to or seen elsewhere") from None
    fresh = form.fresh and not item.roots & form.bases and _is_new(s, item)
    length, used = held.length.operand, _used(held)
    total = b.as_count(b.index_add(used, _size(s, item.extents)))
    longer = b.as_count(b.index_add(length, ONE))
    columns = [_data(held), *held.columns]
    needs = [total, *(longer for _ in held.columns)]
    full = b.logical_or(
        b.prim("gt", total, columns[0].extents[0], type=PYBOOL),
        b.prim("gt", longer, columns[1].extents[0], type=PYBOOL),
    )

    def larger() -> list[Value]:
        made: list[Value] = []
        for column, needed, some in zip(columns, needs, [used, *(length for _ in held.columns)], strict=True):
            own = new_array(s, (dynamic_lists.room_for(s, needed),), column.dtype, "column")
            store_array(s, _part(s, own, ZERO, some), _part(s, column, ZERO, some))
            made.append(own)
        return made

    chosen = s.branch(full, larger, lambda: list(columns))
    data, *places = (column for column in chosen if isinstance(column, ArrayV))
    store_array(s, replace(_shaped(s, data, used, item.extents), roots=_BARE), item)
    for place, number in zip(places, (used, *item.extents), strict=True):
        b.emit(ir.Store(place.var, (length,), b.cast(number, Scalar("int64"))))
    form = Ragged(form.root, form.bases | item.roots, fresh)
    made = _made(held, longer, total, (data, *places), form)
    _remember(s, made)
    return made


def _made_here(s: Context, item: ArrayV) -> bool:
    """Is this memory that the present iteration has made, so that what is stored there by others is other memory?"""
    b, var = s.builder, item.var
    while isinstance(op := b.definition.get(var), ir.View | ir.Reshape):
        var = op.base
    return isinstance(op, ir.Map | ir.Alloc) and any(var in let.outs for let in b.scopes[-1].statements)


def _is_new(s: Context, item: ArrayV, known: bool = False) -> bool:
    """Is the array new, and made by this iteration? `known`: it is no matter by which."""
    b = s.builder
    if item.readonly or not isinstance(b.definition.get(item.var), ir.Map | ir.Alloc):
        return False
    return known or not s.loops.looping or any(item.var in let.outs for let in b.scopes[-1].statements)


def _part(s: Context, column: ArrayV, start: ir.Operand, length: ir.Operand) -> ArrayV:
    return make_view(s, replace(column, roots=_BARE), (start,), [(0, length, ONE)])


def _shaped(s: Context, data: ArrayV, start: ir.Operand, extents: Sequence[ir.Operand]) -> ArrayV:
    """The elements from `start` on as an array of these extents."""
    line = make_view(s, data, (start,), [(0, _size(s, extents), ONE)])
    if len(extents) == 1:
        return line
    kind = Array(data.dtype, len(extents), "C")
    return ArrayV(s.builder.pure(ir.Reshape(line.var, tuple(extents)), kind, name="item"), tuple(extents), data.roots)


# ---- what it holds ---------------------------------------------------------------------------------------------------


def _load(s: Context, column: ArrayV, index: ir.Operand) -> ir.Operand:
    b = s.builder
    return s.builder.as_count(b.cast(b.emit1(ir.Load(column.var, (index,)), Scalar("int64")), PYINT))


def item_at(s: Context, held: ListValue, index: ir.Operand) -> ArrayV:
    """The item at a position that is known to be one."""
    start, *extents = (_load(s, column, index) for column in held.columns)
    return _shaped(s, _shown(held), start, extents)


def _shown(held: ListValue) -> ArrayV:
    """The elements as the program sees them: what it has appended."""
    return replace(_data(held), roots=frozenset({_form(held).root}))


def flat(s: Context, held: ListValue) -> ArrayV:
    """All elements, one item after the other."""
    return make_view(s, _shown(held), (ZERO,), [(0, _used(held), ONE)])


def _subscript(s: Context, held: ListValue, index: Value) -> Value:
    if not isinstance(index, SliceV):
        return item_at(s, held, index_entries.position(s, held.length.operand, index, "list index out of range"))
    numbers = s.call(Static(np.arange), [held.length], {})
    assert isinstance(numbers, ArrayV)
    made = s.call_library("python_list_part", [held, indexing.read(s, numbers, index)])
    if not is_ragged(made):
        return made
    own, other = _form(made), _form(held)
    return replace(made, form=Ragged(own.root, own.bases | other.bases, other.fresh))


def is_of_arrays(value: Value) -> TypeGuard[ListValue]:
    """Is it a list of arrays of one shape?"""
    return is_rows(value) and value.kind == "array"


def as_result(s: Context, result: Value) -> Value:
    """A result whose lists are put together of new arrays: what else the caller sees is not memory of their items."""
    lists: list[tuple[frozenset[int], bool]] = []
    seen = [s.arguments.param_roots]

    def look(value: Value) -> None:
        if is_ragged(value):
            form = _form(value)
            lists.append((form.bases | {form.root}, form.fresh))
            return
        if is_of_arrays(value):
            lists.append((value.array.roots, value.ownership is Ownership.OWN and not value.array.readonly))
            return
        if isinstance(value, ArrayV):
            seen.append(value.roots)
        for inner in parts_of(value):
            look(inner)

    look(result)
    for own, fresh in lists:
        if not fresh or any(own & roots for roots in seen):
            raise s.unsupported("a list of arrays that are seen elsewhere, as a result")
        seen.append(own)

    def checked(value: Value) -> Value:
        if is_ragged(value):
            columns = [replace(column, roots=_BARE) for column in (_data(value), *value.columns)]
            form = replace(_form(value), root=CHECKED)
            return _made(value, value.length.operand, _used(value), columns, form)
        if is_of_arrays(value):
            return ListValue.rows(replace(value.array, roots=_BARE), COPIES)
        parts = parts_of(value)
        return rebuild(value, tuple(map(checked, parts))) if parts else value

    return checked(result) if lists else result


def stacked(s: Context, held: ListValue) -> ListValue:
    """The items as the rows of one array."""
    b, length = s.builder, held.length.operand
    s.check(b.prim("gt", length, ZERO, type=PYBOOL), "Deoptimize", "an array of an empty list")
    inner = [_load(s, column, ZERO) for column in held.columns[1:]]
    for column, extent in zip(held.columns[1:], inner, strict=True):
        alike = s.compare("eq", make_view(s, column, (ZERO,), [(0, length, ONE)]), ScalarV(extent))
        same = s.truth(s.call(Static(np.all), [alike], {}))
        s.check(same, "Deoptimize", "an array of arrays of different shapes")
    extents = (length, *inner)
    kind = Array(_data(held).dtype, len(extents), "C")
    rows = b.pure(ir.Reshape(flat(s, held).var, extents), kind, name="rows")
    return ListValue.rows(ArrayV(rows, extents, _shown(held).roots), "array")


def _places(s: Context, held: ListValue) -> tuple[ir.Operand, ItemAt]:
    return held.length.operand, lambda index: item_at(s, held, index)


def _joined(one: ListValue, other: ListValue) -> ListValue:
    own, its = _form(one), _form(other)
    form = Ragged(own.root, own.bases | its.bases, own.fresh and its.fresh)
    return one if form == own else replace(one, form=form)


def _carried(s: Context, value: ListValue) -> ListValue:
    """Such a list behind a branch or loop still shows what has been appended on either path."""
    _remember(s, value)
    return value


def _outside(value: ListValue, before: int, inside: int) -> ListValue:
    form = _form(value)
    if not any(root > before for root in form.bases):
        return value
    bases = frozenset(root for root in form.bases if root <= before) | {inside}
    return replace(value, form=replace(form, bases=bases))


def _rebuilt(like: ListValue, parts: tuple[Value, ...]) -> ListValue:
    length, *columns, pool = parts
    assert isinstance(length, ScalarV) and isinstance(pool, ListValue)
    arrays = tuple(column for column in columns if isinstance(column, ArrayV))
    return ListValue(length, arrays, like.form, (pool,))


FORMS[Ragged] = Form(
    lambda one: (one.length, *one.columns, *one.pools),
    _rebuilt,
    lambda one: (_data(one).dtype, len(one.columns)),
    _joined,
    as_arrays,
    _carried,
    _outside,
    noun="list of arrays",
    type=list,
    length=lambda s, value: value.length.operand,
    places=_places,
    subscript=_subscript,
    change=change,
)
