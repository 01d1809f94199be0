"""Comprehensions and generator expressions, computed when something consumes them.

Over items of known length they are unrolled into a tuple or list. Over a range or an array they become a `Map` (with a
condition: a `Compress`), and the list stays an array until somebody wants a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.typed_ir import control, ir
from parakeet_py.typed_ir.array_store import store_array
from parakeet_py.typed_ir.elementwise import generate
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.types import PYBOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir.values import ArrayV, ComprehensionV, ListV, ScalarV, TupleV, Value
from parakeet_py.typed_ir.views import make_view

TRUE = ir.Const(True, PYBOOL)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer


def compute(s: Specializer, value: ComprehensionV) -> Value:
    """The list of a comprehension: a `TupleV` of known length or a `ListV`."""
    if value.kind not in ("list", "generator", "tuple"):
        raise s.unsupported(f"a {value.kind} comprehension")
    items = control.static_items(value.iterable)
    kind = "tuple" if value.kind == "tuple" else "list"
    if items is not None:
        made: list[Value] = []
        for item in items:
            if value.condition is not None:
                chosen = s.truth(s.call(value.condition, [item], {}))
                if not isinstance(chosen, ir.Const):
                    raise s.unsupported("a comprehension whose length depends on data, over a tuple")
                if not chosen.value:
                    continue
            result = s.call(value.element, [item], {})
            if isinstance(result, ComprehensionV):
                result = compute(s, result)
            if value.flatten:
                made.extend(s.sequence(result))
            else:
                made.append(result)
        return TupleV(tuple(made), kind)
    if value.flatten:
        return _flattened(s, value)
    length, item_at = control.positions(s, value.iterable)
    if value.condition is not None:
        return _filtered(s, value, length, item_at)
    if value.condition is None:
        rows = _rows(s, value, length, item_at)
        if rows is not None:
            return rows
    element_kind: list[Scalar] = []

    def point(indices: tuple[ir.Var, ...]) -> list[ir.Operand]:
        with s.element_function():
            result = s.call(value.element, [item_at(indices[0])], {})
        element_kind[:] = [_scalar(s, result).type]
        return [_scalar(s, result).operand]

    array = generate(s, (length,), point)[0]
    return _as_list(s, array, element_kind[0])


def _rows(s: Specializer, value: ComprehensionV, length: ir.Operand, item_at) -> Value | None:  # type: ignore[no-untyped-def]
    """A comprehension whose elements are arrays of one shape: they become the rows of one array, filled in a loop."""
    b = s.builder
    mark = b.mark()
    index = s.index_var("i", length)
    with b.block():
        first = s.call(value.element, [item_at(index)], {})
        if isinstance(first, ComprehensionV):
            first = compute(s, first)
        if isinstance(first, TupleV | ListV):
            first = s.as_array(first)
    b.rollback(mark)
    if not isinstance(first, ArrayV):
        return None
    inner = [b.hoisted(extent) for extent in first.extents]
    if None in inner:
        raise s.unsupported("a comprehension whose elements are arrays of varying shape")
    own = tuple(extent for extent in inner if extent is not None)
    extents = (length, *own)
    out = b.emit1(ir.Alloc(extents), Array(first.dtype, len(extents), "C"), name="rows")
    array = ArrayV(out, extents, frozenset({s.new_root()}))
    index = s.index_var("i", length)
    with b.block() as statements:
        row = s.call(value.element, [item_at(index)], {})
        axes: list[tuple[int | None, ir.Operand, ir.Operand]] = [
            (axis + 1, extent, ONE) for axis, extent in enumerate(own)
        ]
        store_array(s, make_view(s, array, (index, *(ZERO,) * first.rank), axes), s.numeric(row))
    b.emit(ir.For(index, ZERO, length, ONE, (), (), ir.Block(tuple(statements))))
    return ListV(array, "array")


def _filtered(s: Specializer, value: ComprehensionV, length: ir.Operand, item_at) -> Value:  # type: ignore[no-untyped-def]
    b = s.builder
    assert value.condition is not None
    index = s.index_var("i", length)
    with b.block() as statements, s.element_function():
        item = item_at(index)
        keep = s.truth(s.call(value.condition, [item], {}))
        result = _scalar(s, s.call(value.element, [item], {}))
    if isinstance(keep, ir.Const):
        keep = ir.Const(keep.value, PYBOOL)
    op = ir.Compress((length,), (index,), ir.Block(tuple(statements), (keep, result.operand)))
    count, out = b.emit(op, PYINT, Array(result.dtype, 1, "C"), name="list")
    b.nonnegative.add(count)
    b.small.add(count)
    return _as_list(s, ArrayV(out, (count,), frozenset({s.new_root()})), result.type)


def _flattened(s: Specializer, value: ComprehensionV) -> Value:
    """Several loops in one comprehension: one index space, if no length depends on another loop's item."""
    b = s.builder
    extents: list[ir.Operand] = []
    conditional = False

    def descend(level: ComprehensionV, indices: tuple[ir.Var, ...]) -> tuple[ir.Operand, ScalarV | None]:
        """Whether the point is wanted, and its element (None until all lengths are known)."""
        nonlocal conditional
        length, item_at = control.positions(s, level.iterable)
        if not indices:
            extents.append(length)
            return TRUE, None
        item = item_at(indices[0])
        wanted: ir.Operand = TRUE
        if level.condition is not None:
            conditional = True
            wanted = s.truth(s.call(level.condition, [item], {}))
        inner = s.call(level.element, [item], {})
        if not level.flatten:
            return wanted, _scalar(s, inner)
        assert isinstance(inner, ComprehensionV)
        also, result = descend(inner, indices[1:])
        return b.logical_and(wanted, also), result

    while True:
        mark = b.mark()
        indices = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(extents))
        with b.block() as statements, s.element_function():
            keep, result = descend(value, indices)
        if result is not None:
            break
        b.rollback(mark)
        length = b.hoisted(extents.pop())
        if length is None:
            raise s.unsupported("a comprehension in which the length of a loop depends on the item of another")
        extents.append(length)
    space = tuple(extents)
    if not conditional:
        out = b.emit1(
            ir.Map(space, indices, ir.Block(tuple(statements), (result.operand,))),
            Array(result.dtype, len(space), "C"),
            name="items",
        )
        total: ir.Operand = ONE
        for extent in space:
            total = b.index_mul(total, extent)
        flat = b.pure(ir.Reshape(out, (total,)), Array(result.dtype, 1, "C"), name="list")
        return _as_list(s, ArrayV(flat, (total,), frozenset({s.new_root()})), result.type)
    if isinstance(keep, ir.Const):
        keep = ir.Const(keep.value, PYBOOL)
    op = ir.Compress(space, indices, ir.Block(tuple(statements), (keep, result.operand)))
    count, out = b.emit(op, PYINT, Array(result.dtype, 1, "C"), name="list")
    b.nonnegative.add(count)
    b.small.add(count)
    return _as_list(s, ArrayV(out, (count,), frozenset({s.new_root()})), result.type)


def _scalar(s: Specializer, value: Value) -> ScalarV:
    if isinstance(value, ComprehensionV):
        value = compute(s, value)
    number = s.numeric(value)
    if not isinstance(number, ScalarV):
        raise s.unsupported("a comprehension over run-time lengths whose elements are not scalars")
    return number


def _as_list(s: Specializer, array: ArrayV, kind: Scalar) -> Value:
    if not kind.python:
        return ListV(array, np.dtype(kind.dtype).name)
    return ListV(array)
