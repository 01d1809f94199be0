"""NumPy indexing: what `x[index]` reads and `x[index] = value` writes.

An index is first brought to one entry per axis. Integers and slices make a `View` (or one `Load`); integer arrays and
masks make gathers, with NumPy's rule for where the broadcast index axes go. Every index that is not provably in range
is checked before anything is read or written.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import INT64, PYBOOL, PYINT, TWICE_ROUNDED, Array, Scalar, is_integer
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import Builder
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays import gather_store_order
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array, keep_imaginary, store_array, store_cast
from parakeet_py.typed_ir.specialize.arrays.axis_order import Order, canonical, merged_order, view_order
from parakeet_py.typed_ir.specialize.arrays.elementwise import broadcast_extents, generate, load_broadcast, shape_text
from parakeet_py.typed_ir.specialize.arrays.index_entries import (
    Entry,
    Fixed,
    Gather,
    Mask,
    NewAxis,
    Range,
    axes_taken,
    check_index,
    is_flag,
    parse_index,
    prepared_items,
    whole,
)
from parakeet_py.typed_ir.specialize.arrays.views import make_view, transpose
from parakeet_py.typed_ir.specialize.forms import roots_of
from parakeet_py.typed_ir.specialize.python import long_ints
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, Static, TupleV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


# ---- reading ---------------------------------------------------------------------------------------------------------


def read(s: Context, array: ArrayV, index: Value) -> Value:
    """array[index]."""
    array, index, names = without_flags(s, array, index)
    entries = parse_index(s, array, index, names)
    if any(isinstance(entry, Gather | Mask) for entry in entries):
        return _read_advanced(s, array, entries, names)
    if all(isinstance(entry, Fixed) for entry in entries) and not _has_ellipsis(index):
        indices = tuple(entry.index for entry in entries if isinstance(entry, Fixed))
        return ScalarV(s.builder.emit1(ir.Load(array.var, indices), Scalar(array.dtype)))
    view = basic_view(s, array, entries)
    by_array = any(isinstance(item, ArrayV) for item in _items(index))  # an integer, but what it gives is a copy
    return copy_array(s, view) if by_array else view


def without_flags(s: Context, array: ArrayV, index: Value) -> tuple[ArrayV, Value, Sequence[int]]:
    """The same elements by an index in which a truth value is a mask of one element, for a new axis of the array; and
    the numbers that the axes had."""
    if not any(map(is_flag, _items(index))):
        return array, index, range(array.rank)
    b = s.builder
    items = prepared_items(s, index)
    axes = iter(range(array.rank))
    rest = array.rank - sum(map(axes_taken, items))
    entries: list[Entry] = []
    masks: list[Value] = []
    names: list[int] = []
    for item in items:
        if is_flag(item):
            assert isinstance(item, ScalarV | ArrayV)
            flag = item.operand if isinstance(item, ScalarV) else b.emit1(ir.Load(item.var, ()), Scalar("bool"))
            own = b.cast(flag, Scalar("bool"))
            masks.append(generate(s, (ONE,), functools.partial(_same, own))[0])
            entries.append(NewAxis())
            names.append(-1)
            continue
        masks.append(item)
        taken = rest if isinstance(item, Static) and item.object is Ellipsis else axes_taken(item)
        kept = list(itertools.islice(axes, max(taken, 0)))
        entries.extend(whole(array, axis) for axis in kept)
        names.extend(kept)
    return basic_view(s, array, entries), TupleV(tuple(masks)), names


def _same(element: ir.Operand, indices: Sequence[ir.Operand]) -> list[ir.Operand]:
    """The same element at every point."""
    return [element]


def _items(index: Value) -> tuple[Value, ...]:
    return index.items if isinstance(index, TupleV) else (index,)


def _has_ellipsis(index: Value) -> bool:
    items = _items(index)
    return any(isinstance(item, Static) and item.object is Ellipsis for item in items)


def basic_view(s: Context, array: ArrayV, entries: Sequence[Entry]) -> ArrayV:
    starts: list[ir.Operand] = []
    axes: list[tuple[int | None, ir.Operand, ir.Operand]] = []
    source = 0
    for entry in entries:
        match entry:
            case Fixed(index):
                starts.append(index)
                source += 1
            case Range(start, extent, step):
                starts.append(start)
                axes.append((source, extent, step))
                source += 1
            case NewAxis():
                axes.append((None, ONE, ZERO))
    view = make_view(s, array, starts, axes)
    if not s.frame.namespace.trusted and any(isinstance(entry, NewAxis) for entry in entries):
        s.new_axes.add(view.var)
    return view


def nonzero_indices(s: Context, mask: ArrayV) -> tuple[ir.Operand, list[ArrayV]]:
    """How many elements of an array are true, and their coordinates, one int64 array per axis (C order)."""
    b = s.builder
    indices = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(mask.extents))
    with b.block() as statements:
        element = b.emit1(ir.Load(mask.var, indices), Scalar(mask.dtype))
        keep = b.cast(element, PYBOOL)
        coordinates = tuple(b.cast(index, INT64) for index in indices)
    op = ir.Compress(mask.extents, indices, ir.Block(tuple(statements), (keep, *coordinates)))
    outs = b.emit(op, PYINT, *(Array("int64", 1, "C") for _ in indices), name="where")
    b.as_count(outs[0])
    return outs[0], [ArrayV(out, (outs[0],), frozenset({s.memory.new_root()})) for out in outs[1:]]


def _read_advanced(s: Context, array: ArrayV, entries: list[Entry], names: Sequence[int]) -> Value:
    b = s.builder
    if len(entries) == 1 and isinstance(entries[0], Mask):
        mask = entries[0].array
        indices = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(array.extents))
        with b.block() as statements:
            keep = b.cast(b.emit1(ir.Load(mask.var, indices), Scalar("bool")), PYBOOL)
            element = b.emit1(ir.Load(array.var, indices), Scalar(array.dtype))
        op = ir.Compress(array.extents, indices, ir.Block(tuple(statements), (keep, element)))
        count, out = b.emit(op, PYINT, Array(array.dtype, 1, "C"), name="compress")
        b.as_count(count)
        return ArrayV(out, (count,), frozenset({s.memory.new_root()}))
    plan = plan_gather(s, array, entries, names)
    if not plan.extents:
        with_index = plan.source_index(s, ())
        return ScalarV(b.emit1(ir.Load(array.var, tuple(with_index)), Scalar(array.dtype)))

    # NumPy makes the result with the index axes first and shows it transposed.
    depth, rank = len(plan.gather_extents), len(plan.extents)
    made = [*range(plan.place, plan.place + depth), *range(plan.place), *range(plan.place + depth, rank)]
    place_of = [made.index(axis) for axis in range(rank)]

    def point(indices: tuple[ir.Var, ...]) -> list[ir.Operand]:
        source = plan.source_index(s, [indices[axis] for axis in place_of])
        return [b.emit1(ir.Load(array.var, tuple(source)), Scalar(array.dtype))]

    extents = tuple(plan.extents[axis] for axis in made)
    order = plan.order(b)
    result = generate(s, extents, point, order=order, nonunit=tuple(plan.nonunit[axis] for axis in made))[0]
    return transpose(s, result, place_of)


@record
class GatherPlan:
    """Where each axis of a gather's result comes from. `place` is where the broadcast index axes stand in it,
    `names` are the numbers of the array's axes in messages."""

    array: ArrayV
    entries: tuple[Entry, ...]
    gather_extents: tuple[ir.Operand, ...]
    place: int
    extents: tuple[ir.Operand, ...]
    nonunit: tuple[bool, ...]
    names: tuple[int, ...]

    def order(self, b: Builder) -> tuple[int, ...]:
        """The order of the result's axes, index axes first: they are outermost, the others follow the array's order."""
        depth = len(self.gather_extents)
        kept = len(self.extents) - depth
        if not kept:
            return merged_order(b, [entry.array for entry in self.entries if isinstance(entry, Gather)], depth)
        axes = iter(range(self.array.rank))
        sources = [None if isinstance(entry, NewAxis) else next(axes) for entry in self.entries]
        pairs = zip(self.entries, sources, strict=True)
        shown = [source for entry, source in pairs if isinstance(entry, Range | NewAxis)]
        inner = view_order(self.array, shown) or tuple(range(kept))
        return canonical([*range(depth), *(depth + axis for axis in inner)])

    def source_index(self, s: Context, indices: Sequence[ir.Operand]) -> list[ir.Operand]:
        """The index into the array at a point of the result's index space."""
        b = s.builder
        depth = len(self.gather_extents)
        gather = indices[self.place : self.place + depth]
        rest = [*indices[: self.place], *indices[self.place + depth :]]
        result: list[ir.Operand] = []
        several = sum(isinstance(entry, Gather) for entry in self.entries) > 1
        axis = 0
        for entry in self.entries:
            match entry:
                case Fixed(index):
                    result.append(index)
                case Range(start, _, step):
                    result.append(b.index_add(start, b.index_mul(step, rest.pop(0))))
                case NewAxis():
                    rest.pop(0)
                    continue
                case Gather(array):
                    element = load_broadcast(s, array, gather, self.gather_extents)
                    extent, name = self.array.extents[axis], self.names[axis]
                    result.append(check_index(s, ScalarV(element), extent, name, one_of_several=several))
                case Mask():
                    raise AssertionError("masks have become coordinates")
            axis += 1
        return result


def plan_gather(s: Context, array: ArrayV, entries: Sequence[Entry], names: Sequence[int]) -> GatherPlan:
    """Masks become coordinates, integers beside arrays join the broadcast, and the result's axes are placed."""
    spread: list[Entry] = []
    for entry in entries:
        if isinstance(entry, Mask):
            _, coordinates = nonzero_indices(s, entry.array)
            spread.extend(Gather(coordinate) for coordinate in coordinates)
        else:
            spread.append(entry)
    gathers = [entry.array for entry in spread if isinstance(entry, Gather)]
    gather_extents, gather_nonunit = broadcast_extents(s, gathers, indices=True)
    advanced = [position for position, entry in enumerate(spread) if isinstance(entry, Gather | Fixed)]
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    place = 0
    kept: list[tuple[ir.Operand, bool]] = []
    source = 0
    for position, entry in enumerate(spread):
        if together and position == advanced[0]:
            place = len(kept)
        match entry:
            case Range(_, extent, _, is_whole):
                kept.append((extent, is_whole and array.is_nonunit(source)))
            case NewAxis():
                kept.append((ONE, False))
        source += not isinstance(entry, NewAxis)
    extents = [extent for extent, _ in kept]
    nonunit = [flag for _, flag in kept]
    if any(isinstance(entry, Gather) for entry in entries):
        _check_some(s, extents)
    extents[place:place] = gather_extents
    nonunit[place:place] = gather_nonunit
    return GatherPlan(array, tuple(spread), gather_extents, place, tuple(extents), tuple(nonunit), tuple(names))


def _check_some(s: Context, extents: Sequence[ir.Operand]) -> None:
    """Indices are looked at when an element is; where axes beside them have none, NumPy looks at them all the same."""
    b = s.builder
    for extent in extents:
        if not b.provably_lt(ZERO, extent):
            some = b.prim("lt", ZERO, extent, type=PYBOOL)
            s.check(some, "Deoptimize", "index arrays beside an axis without elements")


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(s: Context, array: ArrayV, index: Value, value: Value) -> None:
    """array[index] = value."""
    b = s.builder
    if array.readonly:  # NumPy asks before it looks at the index
        s.check(ir.Const(False, PYBOOL), "ValueError", "assignment destination is read-only")
        return
    array, index, names = without_flags(s, array, index)
    entries = parse_index(s, array, index, names)
    sequence = not isinstance(value, ArrayV | ScalarV)
    seen = sequence and bool(roots_of(value) & array.roots)
    each = is_integer(array.dtype) or array.dtype in TWICE_ROUNDED  # Python converts the numbers of a list one by one
    value = s.numeric(long_ints.beside(value, array), array.dtype if each else None)
    if not any(isinstance(entry, Gather | Mask) for entry in entries):
        if all(isinstance(entry, Fixed) for entry in entries) and not (
            _has_ellipsis(index) and isinstance(value, ArrayV)
        ):
            s.will_store(array)
            one = isinstance(value, ScalarV)
            if isinstance(value, ArrayV) and value.rank == 0:
                value = ScalarV(b.emit1(ir.Load(value.var, ()), Scalar(value.dtype)))
            if not isinstance(value, ScalarV):
                raise s.unsupported("setting an array element with a sequence")
            indices = tuple(entry.index for entry in entries if isinstance(entry, Fixed))
            b.emit(ir.Store(array.var, indices, store_cast(s, value.operand, Scalar(array.dtype), one=one)))
            return
        view = basic_view(s, array, entries)
        if seen:
            raise s.hand_back("a sequence with views of what it is stored to")  # NumPy stores one after the other
        if sequence and isinstance(value, ArrayV) and value.rank > view.rank:
            raise s.hand_back("a sequence nested more deeply than the place has axes")  # Python refuses it
        store_array(s, view, value)
        return
    keep_imaginary(s, value.dtype, array.dtype)
    s.will_store(array)
    if len(entries) == 1 and isinstance(entries[0], Mask):
        if isinstance(value, ScalarV) or value.rank == 0:
            store_array(s, array, value, mask=entries[0].array)
            return
        _write_masked(s, array, entries[0].array, value)
        return
    _write_gather(s, array, entries, value, names)


def _write_masked(s: Context, array: ArrayV, mask: ArrayV, value: ArrayV) -> None:
    """array[mask] = 1-D value: the k-th true element gets value[k]."""
    b = s.builder
    if value.rank > 1:
        raise s.hand_back("mask assignment of a value with several axes")
    count, coordinates = nonzero_indices(s, mask)
    extent = value.extents[0]
    if extent != ONE and not b.same(extent, count):
        agree = b.logical_or(b.prim("eq", extent, count, type=PYBOOL), b.prim("eq", extent, ONE, type=PYBOOL))
        message = (
            "NumPy boolean array indexing assignment cannot assign {0} input values to the {1} output values where "
            "the mask is true"
        )
        s.check(agree, "ValueError", message, [extent, count])
    if value.roots & array.roots:
        value = copy_array(s, value)
    point = s.index_var("k", count)
    with b.block() as statements:
        target = [b.emit1(ir.Load(coordinate.var, (point,)), INT64) for coordinate in coordinates]
        own = ZERO if extent == ONE else b.select(b.prim("eq", extent, ONE, type=PYBOOL), ZERO, point)
        if b.same(extent, count):
            own = point
        element = b.emit1(ir.Load(value.var, (own,)), Scalar(value.dtype))
        b.emit(ir.Store(array.var, tuple(target), b.cast(element, Scalar(array.dtype))))
    b.emit(ir.Map((count,), (point,), ir.Block(tuple(statements))))


def _write_gather(
    s: Context, array: ArrayV, entries: list[Entry], value: ScalarV | ArrayV, names: Sequence[int]
) -> None:
    """array[int arrays...] = value, in NumPy's order: for a repeated index the last value stays."""
    b = s.builder
    plan = plan_gather(s, array, entries, names)
    extents = plan.extents
    if not extents:
        raise s.hand_back("scalar gather assignment")
    order: Order = ()
    if isinstance(value, ArrayV) and value.rank > len(extents):
        raise s.hand_back("a value with more axes than the index selects")
    if isinstance(value, ArrayV):
        for axis, extent in enumerate(value.extents):
            wanted = extents[len(extents) - value.rank + axis]
            if extent != ONE and not b.same(extent, wanted):
                agree = b.logical_or(b.prim("eq", extent, wanted, type=PYBOOL), b.prim("eq", extent, ONE, type=PYBOOL))
                message = (
                    f"shape mismatch: value array of shape {shape_text(value.rank, 0)} could not be broadcast to "
                    f"indexing result of shape {shape_text(len(extents), value.rank)}"
                )
                s.check(agree, "ValueError", message, [*value.extents, *extents])
        gathers = [entry.array for entry in plan.entries if isinstance(entry, Gather)]
        shape = list(zip(extents, plan.nonunit, strict=True))
        index_axes = range(plan.place, plan.place + len(plan.gather_extents))
        order = gather_store_order.order_of(s, array, gathers, value, shape, index_axes)
        if value.roots & array.roots:
            value = copy_array(s, value)
    kind = Scalar(array.dtype)
    scalar = store_cast(s, value.operand, kind, one=False) if isinstance(value, ScalarV) else None
    # All indices are resolved (and checked) before the first store: an index error leaves the array as it was.
    checked = generate(
        s,
        extents,
        lambda indices: [b.cast(index, INT64) for index in plan.source_index(s, indices)],
        order=order,
        nonunit=plan.nonunit,
    )
    in_order = order or range(len(extents))
    points = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(extents))
    with b.block() as statements:
        target = [b.emit1(ir.Load(one.var, points), INT64) for one in checked]
        element: ir.Operand
        if scalar is None:
            assert isinstance(value, ArrayV)
            element = b.cast(load_broadcast(s, value, points, extents), kind)
        else:
            element = scalar
    results = (ir.Const(True, PYBOOL), *target, element)
    old, new = ir.Var("old", kind), ir.Var("new", kind)
    combine = ir.Lambda((old, new), ir.Block((), (new,)))
    ordered = tuple(extents[axis] for axis in in_order), tuple(points[axis] for axis in in_order)
    b.emit(ir.Scatter(array.var, *ordered, ir.Block(tuple(statements), results), combine))
