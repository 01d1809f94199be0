"""Comprehensions, computed where they stand, and generator expressions, computed when something consumes them.

Over items of known length they are unrolled into a tuple or list. Over a range or an array they become a `Map` (with a
condition: a `Compress`), and the list stays an array until a list is needed. Items that are arrays or lists become
the rows of one array. Where they are views of other memory it is deferred (`deferred_views`): it holds what they show,
as long as it is not stored to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import PYBOOL, PYINT, Array, Scalar
from parakeet_py.frontend import ssa
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import may_raise
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.arrays import array_store
from parakeet_py.typed_ir.specialize.arrays.array_store import store_array
from parakeet_py.typed_ir.specialize.arrays.elementwise import generate
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import array_lists, dynamic_lists
from parakeet_py.typed_ir.specialize.forms import is_list, roots_of
from parakeet_py.typed_ir.specialize.instances import assigned_attributes, instance_lists, instances
from parakeet_py.typed_ir.specialize.paths import generators, iterables, iterator_consumption, join, tagged_scalars
from parakeet_py.typed_ir.specialize.paths.templates import EitherT, Structure, template_of, types_of, varying
from parakeet_py.typed_ir.specialize.restarts import ArrayElements, Sequential
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    ComprehensionV,
    NeverV,
    RangeV,
    RefV,
    ScalarV,
    TaggedScalar,
    TimeV,
    TupleV,
    Value,
    lift,
    py,
)

FEW = 16  # arrays of a list of known length
TRUE = ir.Const(True, PYBOOL)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_ItemAt = Callable[[ir.Operand], Value]


def as_list(s: Context, value: Value) -> Value:
    """A comprehension computed: a tuple or list when its length is known, else one of run-time length."""
    if iterator_consumption.is_lazy(value):
        return generators.as_list(s, value)
    return compute(s, value) if isinstance(value, ComprehensionV) else value


def compute(s: Context, value: ComprehensionV) -> Value:
    """The list of a comprehension: a `TupleV` if its length is known."""
    if iterator_consumption.is_lazy(value.iterable):
        return generators.as_list(s, value) if value.kind != "tuple" and not value.flatten else _grown(s, value)
    mark = s.checkpoint()
    try:
        return _at_once(s, value)
    except Sequential:
        if value.flatten or iterables.static_items(value.iterable) is not None:
            raise
        s.rollback(mark)
        if assigned_attributes.carried(s):
            return _grown(s, value)  # a loop that carries what its elements assign
        return _one_by_one(s, value)
    except LengthDepends:
        if value.kind == "tuple":
            raise s.unsupported("a tuple whose length depends on data") from None
        s.rollback(mark)
        return _grown(s, value)
    except ArrayElements:
        if value.kind == "tuple":
            raise
        s.rollback(mark)
        return _of_arrays(s, value)


def _chosen(s: Context, value: ComprehensionV, items: Sequence[Value]) -> Value:
    """The list of those of some items that are wanted."""
    held: Value = TupleV((), "list")
    for number, item in enumerate(items):
        with s.loops.for_type(number):
            wanted = ir.Const(True, PYBOOL) if value.condition is None else s.truth(s.call(value.condition, [item], {}))

        def added(number: int = number, item: Value = item, before: Value = held) -> list[Value]:
            with s.loops.for_type(number):
                return s.changed("append", before, s.settle([s.call(value.element, [item], {})]))

        def kept(before: Value = held) -> list[Value]:
            return [before]

        if isinstance(wanted, ir.Const):
            (held,) = added() if wanted.value else kept()
        else:
            (held,) = s.branch(wanted, added, kept)
    return held


class LengthDepends(Exception):
    """Which of known items are wanted depends on values."""


def _of_arrays(s: Context, value: ComprehensionV) -> Value:
    """A list of arrays of any shape: of known length if the loop is over a few known numbers."""
    match value.iterable:
        case RangeV(ScalarV(ir.Const() as start), ScalarV(ir.Const() as stop), ScalarV(ir.Const() as step)):
            numbers = range(*(int(bound.value.real) for bound in (start, stop, step)))
            if len(numbers) <= FEW:
                return compute(s, replace(value, iterable=TupleV(tuple(map(py, numbers)))))
    return _grown(s, value)


def _grown(s: Context, value: ComprehensionV) -> Value:
    """A list that grows in a loop; a column of the items is iterated as an array is."""
    items = value.iterable
    known = iterables.static_items(items)
    if isinstance(items, TupleV) and dynamic_lists.is_uniform(items) and not value.flatten:
        mark = s.checkpoint()
        try:
            return _at_once(s, replace(value, iterable=array_lists.shown(s, dynamic_lists.of_scalars(s, items))))
        except Sequential:
            s.rollback(mark)
    if known is not None and not value.flatten:
        return _chosen(s, value, known)
    parts = [items, value.element, value.condition or lift(None), lift(value.flatten)]
    return s.call_plain("python_list", parts)


def _at_once(s: Context, value: ComprehensionV) -> Value:
    """One operator over all items."""
    if value.kind not in ("list", "generator", "tuple", "inner"):
        raise s.unsupported(f"a {value.kind} comprehension")
    items = iterables.static_items(value.iterable)
    if items is not None and value.kind == "list" and isinstance(value.iterable, RangeV) and _stores_in_rows(s):
        items = None
    kind = "tuple" if value.kind == "tuple" else "list"
    if items is not None:
        made: list[Value] = []
        for item in items:
            with s.loops.for_type(len(made)):
                if value.condition is not None:
                    chosen = s.truth(s.call(value.condition, [item], {}))
                    if not isinstance(chosen, ir.Const):
                        raise LengthDepends
                    if not chosen.value:
                        continue
                result = s.call(value.element, [item], {})
            if value.flatten:
                made.extend(s.sequence(result))
            elif isinstance(result, ComprehensionV):
                raise s.unsupported("a list of iterators")
            else:
                made.append(result)
        return TupleV(tuple(made), kind)
    if value.flatten:
        return _flattened(s, value)
    length, item_at = iterables.positions(s, value.iterable)
    if value.condition is not None:
        return _filtered(s, value, length, item_at)
    rows = _rows(s, value, length, item_at)
    if rows is not None:
        return rows
    elements: list[ScalarV | TaggedScalar] = []

    def point(indices: tuple[ir.Var, ...]) -> list[ir.Operand]:
        with s.element_function():
            elements.append(_scalar(s, s.call(value.element, [item_at(indices[0])], {})))
            return _leaves(s, elements[-1])

    return _as_list(s, generate(s, (length,), point), elements[-1])


def _one_by_one(s: Context, value: ComprehensionV) -> Value:
    """A loop over the items, which stores the elements that are wanted."""
    b = s.builder
    length, item_at = iterables.positions(s, value.iterable)
    mark = s.checkpoint()
    index = s.index_var("i", length)
    with b.block():
        like = _scalar(s, s.call(value.element, [item_at(index)], {}))
    s.rollback(mark)
    if isinstance(like, TaggedScalar):
        raise s.unsupported("a comprehension with elements of several types, computed one by one")
    out = b.emit1(ir.Alloc((length,)), Array(like.dtype, 1, "C"), name="items")
    index = s.index_var("i", length)
    count = ir.Var("count", PYINT)
    with b.block() as statements:
        item = item_at(index)

        def keep() -> list[Value]:
            element = _scalar(s, s.call(value.element, [item], {}))
            assert isinstance(element, ScalarV)
            b.emit(ir.Store(out, (count,), b.cast(element.operand, like.type)))
            return [ScalarV(b.index_add(count, ONE))]

        if value.condition is None:
            (found,) = keep()
        else:
            wanted = s.truth(s.call(value.condition, [item], {}))
            (found,) = s.branch(wanted, keep, lambda: [ScalarV(count)])
        assert isinstance(found, ScalarV)
        body = ir.Block(tuple(statements), (found.operand,))
    (made,) = b.emit(ir.For(index, ZERO, length, ONE, (count,), (ZERO,), body), PYINT, name="count")
    b.as_count(made)
    array = ArrayV(out, (length,), frozenset({s.memory.new_root()}))
    return _as_list(s, [make_view(s, array, (ZERO,), [(0, made, ONE)])], like)


def _stores_in_rows(s: Context) -> bool:
    """Does the function assign items of items, so that a list of lists should be an array?"""
    frame = s.frames[-2] if s.frame.function.name in ("element", "condition") else s.frame
    made = {let.outs[0] for let in frame.function.statements() if isinstance(let.op, ssa.Subscript)}
    return any(isinstance(let.op, ssa.SetItem) and let.op.object in made for let in frame.function.statements())


def _rows(s: Context, value: ComprehensionV, length: ir.Operand, item_at: _ItemAt) -> Value | None:
    """A comprehension whose elements are arrays of one shape: they become the rows of one array, filled in a loop."""
    b = s.builder
    mark, before, held = s.checkpoint(), s.memory.newest, assigned_attributes.carried(s)
    index = s.index_var("i", length)
    with b.block():
        item = s.call(value.element, [shared_containers.in_turn(s, item_at(index), 1)], {})
        shared_containers.put(s, item, 1)
        if isinstance(item, ComprehensionV):
            raise s.unsupported("a list of iterators")
        if any(new is not old for new, old in zip(assigned_attributes.carried(s), held, strict=False)):
            raise Sequential.at(s.frame.function, b.pos, "an assignment by the elements of a comprehension")
        record = _record(s, item, before)
        empty = isinstance(item, TupleV) and item == TupleV((), "list")
        item = first = array_lists.shown(s, item) if record is None else item
        if record is None and (isinstance(item, TupleV) or is_list(item)):
            first = s.as_array(item)
    s.rollback(mark)
    if empty:
        return dynamic_lists.of_columns(length, (), Structure(TupleV((), "list"), ()))
    if record is not None:
        return _of_tuples(s, value, record)
    if not isinstance(first, ArrayV):
        return None
    if first.order and first.rank > 1:
        raise s.unsupported("a comprehension of arrays that are not in C order")
    shown = frozenset(root for root in s.deferred_views.behind(roots_of(item)) if root <= before)
    inner = [b.hoisted(extent) for extent in first.extents]
    if None in inner:
        raise ArrayElements.at(s.frame.function, b.pos, "a comprehension whose elements are arrays of varying shape")
    own = tuple(extent for extent in inner if extent is not None)
    extents = (length, *own)
    room = (length, *map(b.max0, own))  # an element that cannot have such extents raises before it is stored
    out = b.emit1(ir.Alloc(room), Array(first.dtype, len(extents), "C"), name="rows")
    array = ArrayV(out, extents, frozenset({s.memory.new_root()}))
    index = s.index_var("i", length)
    with b.block() as statements:
        row = array_lists.shown(s, s.call(value.element, [item_at(index)], {}))
        axes: list[tuple[int | None, ir.Operand, ir.Operand]] = [
            (axis + 1, extent, ONE) for axis, extent in enumerate(own)
        ]
        store_array(s, make_view(s, array, (index, *(ZERO,) * first.rank), axes), s.numeric(row))
    b.emit(ir.For(index, ZERO, length, ONE, (), (), ir.Block(tuple(statements))))
    if shown:
        array = replace(array, roots=s.deferred_view(replace(first, roots=shown)))
    if first.readonly:
        array = replace(array, readonly=True)
    return array_lists.of_rows(array, item, own=not shown)


def _record(s: Context, item: Value, before: int) -> Structure | None:
    """The template of an element that is a tuple of scalars, or an instance with such attributes; None for others."""
    if not (isinstance(item, TupleV) and item.kind == "tuple") and not (
        instances.is_instance(item) or isinstance(item, CharV)
    ):
        return None
    instance_lists.note(s, item)
    if not isinstance(item, RefV) or item.made.root <= before:
        instance_lists.table_of(s, [item])
    (item,) = s.leaving(s.settle([item]), before)
    template = varying(template_of(item, varying=True))
    kinds = types_of(template)
    scalars = bool(kinds) and all(isinstance(kind, Scalar) for kind in kinds)
    return template if scalars and isinstance(template, Structure) else None


def _of_tuples(s: Context, value: ComprehensionV, template: Structure) -> Value:
    """A list of tuples: a column for each of their parts, all computed by one operator."""
    mark = s.checkpoint()
    length, item_at = iterables.positions(s, value.iterable)

    def point(indices: tuple[ir.Var, ...]) -> list[ir.Operand]:
        with s.element_function():
            (element,) = s.settle([s.call(value.element, [item_at(indices[0])], {})])
            (element,) = s.leaving([element], s.elements.element_roots)
            return array_store.encoded(s, join.leaves_of(s, element, template))

    try:
        return dynamic_lists.of_columns(length, generate(s, (length,), point), template)
    except Sequential:
        s.rollback(mark)
        return _grown(s, value)


def _filtered(s: Context, value: ComprehensionV, length: ir.Operand, item_at: _ItemAt) -> Value:
    b = s.builder
    assert value.condition is not None
    index = s.index_var("i", length)
    with b.block() as statements, s.element_function():
        item = item_at(index)
        keep = s.truth(s.call(value.condition, [item], {}))
        result = _guarded(s, keep, lambda: _scalar(s, s.call(value.element, [item], {})))
        leaves = _leaves(s, result)
    return _compressed(s, (length,), (index,), statements, keep, result, leaves)


def _compressed(
    s: Context,
    space: tuple[ir.Operand, ...],
    indices: tuple[ir.Var, ...],
    statements: Sequence[ir.Let],
    keep: ir.Operand,
    result: ScalarV | TaggedScalar,
    leaves: Sequence[ir.Operand],
) -> Value:
    """The list of the elements that are wanted."""
    b = s.builder
    if isinstance(keep, ir.Const):
        keep = ir.Const(keep.value, PYBOOL)
    op = ir.Compress(space, indices, ir.Block(tuple(statements), (keep, *leaves)))
    count, *outs = b.emit(op, PYINT, *(Array(ir.dtype_of(leaf), 1, "C") for leaf in leaves), name="list")
    b.as_count(count)
    return _as_list(s, [ArrayV(out, (count,), frozenset({s.memory.new_root()})) for out in outs], result)


def _guarded(s: Context, wanted: ir.Operand, element: Callable[[], ScalarV | TaggedScalar]) -> ScalarV | TaggedScalar:
    """An element that is computed only where it is wanted, if computing it could raise."""
    b = s.builder
    mark, start = s.checkpoint(), len(b.scopes[-1].statements)
    result = element()
    never = isinstance(wanted, ir.Const) and not wanted.value
    if not never and (isinstance(wanted, ir.Const) or not may_raise(b.scopes[-1].statements[start:])):
        return result
    s.rollback(mark)
    if never:
        kinds = result.kinds if isinstance(result, TaggedScalar) else (result.type,)
        zeros = tuple(ir.Const(np.dtype(kind.dtype).type(0).item(), kind) for kind in kinds)
        return TaggedScalar(kinds, ZERO, zeros) if isinstance(result, TaggedScalar) else ScalarV(zeros[0])
    nothing: Value = NeverV()
    if isinstance(result, ScalarV):
        nothing = ScalarV(ir.Const(np.dtype(result.dtype).type(0).item(), result.type))
    (found,) = s.branch(wanted, lambda: [element()], lambda: [nothing])
    return _scalar(s, found)


def _flattened(s: Context, value: ComprehensionV) -> Value:
    """Several loops in one comprehension: one index space, if no length depends on another loop's item."""
    b = s.builder
    extents: list[ir.Operand] = []
    conditional = False

    def descend(
        level: ComprehensionV, indices: tuple[ir.Var, ...], wanted: ir.Operand
    ) -> tuple[ir.Operand, ScalarV | TaggedScalar | None]:
        """Whether the point is wanted, and its element (None until all lengths are known)."""
        nonlocal conditional
        start = len(b.scopes[-1].statements)
        length, item_at = iterables.positions(s, level.iterable)
        if not indices:
            extents.append(length)
            return TRUE, None
        item = item_at(indices[0])
        also: ir.Operand = TRUE
        if level.condition is not None:
            conditional = True
            also = s.truth(s.call(level.condition, [item], {}))
        if not isinstance(wanted, ir.Const) and may_raise(b.scopes[-1].statements[start:]):
            raise s.unsupported("a condition in a comprehension that may raise, after another condition")
        wanted = b.logical_and(wanted, also)
        if not level.flatten:
            return wanted, _guarded(s, wanted, lambda: _scalar(s, s.call(level.element, [item], {})))
        start = len(b.scopes[-1].statements)
        inner = s.call(level.element, [item], {})
        if not isinstance(inner, ComprehensionV):  # it is never there
            text = "a comprehension in which what an inner loop goes through raises"
            raise ArrayElements.at(s.frame.function, b.pos, text)
        if wanted != TRUE and may_raise(b.scopes[-1].statements[start:]):
            text = "a comprehension in which what an inner loop goes through may raise, after a condition"
            raise ArrayElements.at(s.frame.function, b.pos, text)
        return descend(inner, indices[1:], wanted)

    while True:
        mark = s.checkpoint()
        indices = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(extents))
        with b.block() as statements, s.element_function():
            keep, result = descend(value, indices, TRUE)
            leaves = [] if result is None else _leaves(s, result)
        if result is not None:
            break
        raises = may_raise(statements)
        s.rollback(mark)
        inside = extents.pop()
        length = b.hoisted(inside)
        if length is None or (raises and length != inside):  # it may be what raises
            text = "a comprehension in which the length of a loop depends on the item of another"
            raise ArrayElements.at(s.frame.function, b.pos, text)
        extents.append(length)
    space = tuple(extents)
    if not conditional:
        kinds = [ir.dtype_of(leaf) for leaf in leaves]
        op = ir.Map(space, indices, ir.Block(tuple(statements), tuple(leaves)))
        outs = b.emit(op, *(Array(kind, len(space), "C") for kind in kinds), name="items")
        total: ir.Operand = ONE
        for extent in space:
            total = b.index_mul(total, extent)
        flat = [
            b.pure(ir.Reshape(out, (total,)), Array(kind, 1, "C"), name="list")
            for out, kind in zip(outs, kinds, strict=True)
        ]
        return _as_list(s, [ArrayV(one, (total,), frozenset({s.memory.new_root()})) for one in flat], result)
    return _compressed(s, space, indices, statements, keep, result, leaves)


def _scalar(s: Context, value: Value) -> ScalarV | TaggedScalar:
    if instances.is_instance(value) or isinstance(value, CharV | TimeV):
        raise LengthDepends
    if isinstance(value, TaggedScalar):
        return value
    number = None if isinstance(value, ComprehensionV) else s.numeric(value)
    if isinstance(number, ArrayV):
        text = "a comprehension over run-time lengths whose elements are arrays"
        raise ArrayElements.at(s.frame.function, s.builder.pos, text)
    if not isinstance(number, ScalarV):
        raise s.unsupported("a comprehension over run-time lengths whose elements are not scalars")
    return number


def _leaves(s: Context, element: ScalarV | TaggedScalar) -> list[ir.Operand]:
    """The elements of the columns that an element fills."""
    if isinstance(element, ScalarV):
        return [element.operand]
    return tagged_scalars.leaves(s, element, element.kinds)


def _as_list(s: Context, columns: Sequence[ArrayV], element: ScalarV | TaggedScalar) -> Value:
    """The list of such elements; where some may be ints and others floats, the columns tell them apart."""
    if isinstance(element, TaggedScalar):
        return dynamic_lists.of_columns(columns[0].extents[0], columns, EitherT(element.kinds))
    return array_lists.of_scalars(columns[0], element.type)
