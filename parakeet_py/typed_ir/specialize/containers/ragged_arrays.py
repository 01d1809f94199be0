"""Lists of arrays whose length depends on values: all elements one after the other, and where each array begins.

A list of arrays of one dtype and rank, of any shapes, is an `ArraysV`: `data` holds the elements of all items in C
order, `used` of them in use; `places` are columns, by item, of where it begins in `data` and of its extents. Appending
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
from parakeet_py.typed_ir.specialize.arrays.array_store import store_array
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.forms import FORMS, Form, parts_of, rebuild
from parakeet_py.typed_ir.specialize.paths import iterables
from parakeet_py.typed_ir.specialize.paths.templates import ArrayT, Structure, Template
from parakeet_py.typed_ir.specialize.restarts import HandBack, NotGrown
from parakeet_py.typed_ir.specialize.values import (
    ArraysV,
    ArrayV,
    ItemAt,
    ListV,
    ScalarV,
    SliceV,
    Static,
    TupleV,
    Value,
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
            case ArraysV() as like:
                kinds.add((like.data.dtype, len(like.places) - 1))
                bases, fresh = bases | like.bases, fresh and like.fresh
                data = one.parts[2]
                assert isinstance(data, ArrayT)
                roots |= data.roots
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

    parts: tuple[Template, ...] = (
        PYINT,
        PYINT,
        column(Array(dtype, 1, "C")),
        *(column(_LINE) for _ in range(rank + 1)),
    )
    nothing = ArrayV(ir.Var("data", Array(dtype, 1, "C")), (ZERO,), frozenset())
    line = ArrayV(ir.Var("places", _LINE), (ZERO,), frozenset())
    return Structure(ArraysV(py(0), py(0), nothing, (line,) * (rank + 1), root, bases, fresh), parts)


def note_append(s: Context, item: Value) -> None:
    """Remember that an array was new when it was appended to a list of known length."""
    if isinstance(item, ArrayV) and _is_new(s, item):
        s.shadows.fresh.add(item.var)


def _all_new(s: Context, items: Sequence[Value], other: Value) -> bool:
    """Are these arrays new ones, each of its own, that an iteration has made or that were there before the loop?"""
    before = other.items if isinstance(other, TupleV) else ()
    arrays = [item for item in items if isinstance(item, ArrayV)]
    roots = frozenset(root for item in arrays for root in item.roots)
    distinct = len(roots) == sum(len(item.roots) for item in arrays)
    return distinct and all(_is_new(s, item, known=item in before or item.var in s.shadows.fresh) for item in arrays)


def _remember(s: Context, value: ArraysV) -> None:
    base, site = s.shadows.made.get(value.root, (frozenset(), s.shadows.site))
    s.shadows.made[value.root] = (base | value.bases, site)


def as_arrays(s: Context, like: ArraysV, value: Value) -> Value:
    """A list of known length as one that grows; other values as they are."""
    if not isinstance(value, TupleV):
        return value
    b = s.builder
    sizes: ir.Operand = ZERO
    for item in value.items:
        sizes = b.index_add(sizes, _size(s, item.extents if isinstance(item, ArrayV) else ()))
    room = ir.Const(max(SMALLEST, len(value.items)), PYINT)
    made = ArraysV(
        py(0),
        py(0),
        _column(s, sizes, like.data.type),
        tuple(_column(s, room, _LINE) for _ in like.places),
        like.root,
        frozenset(),
        True,
    )
    for item in value.items:
        made = append(s, made, item)
    return made


def _column(s: Context, room: ir.Operand, kind: Array) -> ArrayV:
    var = s.builder.emit1(ir.Alloc((room,)), kind, name="column")
    return ArrayV(var, (room,), frozenset({s.memory.new_root()}))


def _size(s: Context, extents: Sequence[ir.Operand]) -> ir.Operand:
    size: ir.Operand = ONE
    for extent in extents:
        size = _counted(s, s.builder.index_mul(size, extent))
    return size


def _counted(s: Context, number: ir.Operand) -> ir.Operand:
    if isinstance(number, ir.Var):
        s.builder.nonnegative.add(number)
        s.builder.small.add(number)
    return number


# ---- changes ---------------------------------------------------------------------------------------------------------


def change(s: Context, held: ArraysV, kind: str, args: Sequence[Value]) -> list[Value]:
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
            last = _counted(s, b.index_add(length, ONE, -1))
            item = item_at(s, held, last)
            used = ScalarV(_counted(s, _load(s, held.places[0], last)))
            return [item, replace(held, length=ScalarV(last), used=used)]
    raise s.unsupported(f".{kind}() of a list of arrays")


def append(s: Context, held: ArraysV, item: Value) -> ArraysV:
    b = s.builder
    rank = len(held.places) - 1
    if not isinstance(item, ArrayV) or (item.dtype, item.rank) != (held.data.dtype, rank) or (item.order and rank > 1):
        raise NotGrown.at(s.frame.function, b.pos, "a list of arrays of different kinds, or in Fortran order")
    try:
        s.shadow(item, _made_here(s, item))
    except HandBack:
        raise s.unsupported("a list of arrays that are stored to or seen elsewhere") from None
    fresh = held.fresh and not item.roots & held.bases and _is_new(s, item)
    length, used = held.length.operand, held.used.operand
    total = _counted(s, b.index_add(used, _size(s, item.extents)))
    longer = _counted(s, b.index_add(length, ONE))
    columns = [held.data, *held.places]
    needs = [total, *(longer for _ in held.places)]
    full = b.logical_or(
        b.prim("gt", total, held.data.extents[0], type=PYBOOL),
        b.prim("gt", longer, held.places[0].extents[0], type=PYBOOL),
    )

    def larger() -> list[Value]:
        made: list[Value] = []
        for column, needed, some in zip(columns, needs, [used, *(length for _ in held.places)], strict=True):
            half = b.prim("floordiv", needed, ir.Const(2, PYINT))
            room = _counted(s, b.index_add(b.index_add(needed, half), ir.Const(SMALLEST, PYINT)))
            own = _column(s, room, column.type)
            store_array(s, _part(s, own, ZERO, some), _part(s, column, ZERO, some))
            made.append(own)
        return made

    chosen = s.branch(full, larger, lambda: list(columns))
    data, *places = (column for column in chosen if isinstance(column, ArrayV))
    store_array(s, replace(_shaped(s, data, used, item.extents), roots=_BARE), item)
    for place, number in zip(places, (used, *item.extents), strict=True):
        b.emit(ir.Store(place.var, (length,), b.cast(number, Scalar("int64"))))
    made = ArraysV(ScalarV(longer), ScalarV(total), data, tuple(places), held.root, held.bases | item.roots, fresh)
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
    return _counted(s, b.cast(b.emit1(ir.Load(column.var, (index,)), Scalar("int64")), PYINT))


def item_at(s: Context, held: ArraysV, index: ir.Operand) -> ArrayV:
    """The item at a position that is known to be one."""
    start, *extents = (_load(s, column, index) for column in held.places)
    return _shaped(s, _shown(held), start, extents)


def _shown(held: ArraysV) -> ArrayV:
    """The elements as the program sees them: what it has appended."""
    return replace(held.data, roots=frozenset({held.root}))


def flat(s: Context, held: ArraysV) -> ArrayV:
    """All elements, one item after the other."""
    return make_view(s, _shown(held), (ZERO,), [(0, held.used.operand, ONE)])


def _subscript(s: Context, held: ArraysV, index: Value) -> Value:
    if not isinstance(index, SliceV):
        return item_at(s, held, index_entries.position(s, held.length.operand, index, "list index out of range"))
    numbers = s.call(Static(np.arange), [held.length], {})
    assert isinstance(numbers, ArrayV)
    made = s.call_library("python_list_part", [held, indexing.read(s, numbers, index)])
    return replace(made, fresh=held.fresh, bases=made.bases | held.bases) if isinstance(made, ArraysV) else made


def is_rows(value: Value) -> TypeGuard[ListV]:
    """Is it a list of arrays of one shape?"""
    return isinstance(value, ListV) and value.items == "array"


def as_result(s: Context, result: Value) -> Value:
    """A result whose lists are put together of new arrays: what else the caller sees is not memory of their items."""
    lists: list[tuple[frozenset[int], bool]] = []
    seen = [s.arguments.param_roots]

    def look(value: Value) -> None:
        if isinstance(value, ArraysV):
            lists.append((value.bases | {value.root}, value.fresh))
            return
        if is_rows(value):
            lists.append((value.array.roots, value.own and not value.array.readonly))
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
        if isinstance(value, ArraysV):
            data, *places = (replace(column, roots=_BARE) for column in (value.data, *value.places))
            return replace(value, root=CHECKED, data=data, places=tuple(places))
        if is_rows(value):
            return ListV(replace(value.array, roots=_BARE), COPIES)
        parts = parts_of(value)
        return rebuild(value, tuple(map(checked, parts))) if parts else value

    return checked(result) if lists else result


def stacked(s: Context, held: ArraysV) -> ListV:
    """The items as the rows of one array."""
    b, length = s.builder, held.length.operand
    s.check(b.prim("gt", length, ZERO, type=PYBOOL), "Deoptimize", "an array of an empty list")
    inner = [_load(s, column, ZERO) for column in held.places[1:]]
    for column, extent in zip(held.places[1:], inner, strict=True):
        alike = s.compare("eq", make_view(s, column, (ZERO,), [(0, length, ONE)]), ScalarV(extent))
        same = s.truth(s.call(Static(np.all), [alike], {}))
        s.check(same, "Deoptimize", "an array of arrays of different shapes")
    extents = (length, *inner)
    kind = Array(held.data.dtype, len(extents), "C")
    rows = b.pure(ir.Reshape(flat(s, held).var, extents), kind, name="rows")
    return ListV(ArrayV(rows, extents, _shown(held).roots), "array")


def _places(s: Context, held: ArraysV) -> tuple[ir.Operand, ItemAt]:
    return held.length.operand, lambda index: item_at(s, held, index)


def _joined(one: ArraysV, other: ArraysV) -> ArraysV:
    if other.bases <= one.bases and (other.fresh or not one.fresh):
        return one
    return replace(one, bases=one.bases | other.bases, fresh=one.fresh and other.fresh)


def _carried(s: Context, value: ArraysV) -> ArraysV:
    """Such a list behind a branch or loop still shows what has been appended on either path."""
    _remember(s, value)
    return value


def _outside(value: ArraysV, before: int, inside: int) -> ArraysV:
    if not any(root > before for root in value.bases):
        return value
    return replace(value, bases=frozenset(root for root in value.bases if root <= before) | {inside})


FORMS[ArraysV] = Form(
    lambda one: (one.length, one.used, one.data, *one.places),
    lambda one, parts: ArraysV(parts[0], parts[1], parts[2], parts[3:], one.root, one.bases, one.fresh),
    lambda one: (one.data.dtype, len(one.places)),
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
