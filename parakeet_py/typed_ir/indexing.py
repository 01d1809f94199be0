"""NumPy indexing: what `x[index]` reads and `x[index] = value` writes.

An index is first brought to one entry per axis. Integers and slices make a `View` (or one `Load`); integer arrays and
masks make gathers, with NumPy's rule for where the broadcast index axes go. Every index that is not provably in range
is checked before anything is read or written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.record import record
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.axis_order import canonical, merged_order, view_order
from parakeet_py.typed_ir.builder import Builder
from parakeet_py.typed_ir.elementwise import (
    ONE,
    ZERO,
    broadcast_extents,
    generate,
    load_broadcast,
    shape_text,
    store_array,
    store_cast,
    transpose,
)
from parakeet_py.typed_ir.types import INT64, PYBOOL, PYINT, Array, Scalar, is_integer
from parakeet_py.typed_ir.values import (
    ArrayV,
    ComprehensionV,
    ListV,
    RangeV,
    ScalarV,
    SliceV,
    Static,
    TupleV,
    Value,
    is_none,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer


@record
class Fixed:
    """An integer: the axis disappears."""

    index: ir.Operand


@record
class Range:
    start: ir.Operand
    extent: ir.Operand
    step: ir.Operand
    whole: bool = False


@record
class NewAxis:
    pass


@record
class Gather:
    """An integer array (signed or unsigned), values still to be wrapped and checked."""

    array: ArrayV


@record
class Mask:
    array: ArrayV


Entry = Fixed | Range | NewAxis | Gather | Mask


def make_view(
    s: Specializer,
    base: ArrayV,
    starts: Sequence[ir.Operand],
    axes: Sequence[tuple[int | None, ir.Operand, ir.Operand]],
) -> ArrayV:
    """A view; `axes` are (source axis or None, extent, step)."""
    layout = _view_layout(base, axes)
    op = ir.View(base.var, tuple(starts), tuple(ir.ViewAxis(source, extent, step) for source, extent, step in axes))
    var = s.builder.pure(op, Array(base.dtype, len(axes), layout), name="view")
    nonunit = tuple(
        source is not None and base.is_nonunit(source) and extent == base.extents[source]
        for source, extent, step in axes
    )
    extents = tuple(extent for _, extent, _ in axes)
    order = view_order(base, [source for source, _, _ in axes])
    return ArrayV(var, extents, base.roots, base.readonly, nonunit, order)


def _view_layout(base: ArrayV, axes: Sequence[tuple[int | None, ir.Operand, ir.Operand]]) -> str:
    """The layout of a view, looking past axes of extent 1 (whose stride never matters)."""
    kept = [(source, extent, step) for source, extent, step in axes if extent != ONE]
    if any(source is None for source, _, _ in kept):
        return "A"
    sources = [source for source, _, _ in kept if source is not None]
    if not kept:
        return "C"
    full = [
        extent == base.extents[source] and step == ONE for (_, extent, step), source in zip(kept, sources, strict=True)
    ]
    unit = {axis for axis, extent in enumerate(base.extents) if extent == ONE}
    last = max((axis for axis in range(base.rank) if axis not in unit), default=0)

    def contiguous(order: Sequence[int], flags: Sequence[bool], steps_first_one: bool) -> bool:
        # Outermost kept axis may be cut (step 1); every later base axis must be kept whole and in order.
        if not steps_first_one or not all(flags[1:]):
            return False
        wanted = [axis for axis in range(order[0], base.rank) if axis not in unit]
        return list(order) == wanted

    forward = base.layout
    backward = {"C": "F", "F": "C"}.get(base.layout)
    if forward == "C" and contiguous(sources, full, kept[0][2] == ONE):
        return "C"
    if forward == "C" and len(kept) > 1 and contiguous(sources[::-1], full[::-1], kept[-1][2] == ONE):
        return "F"
    if backward == "C":
        # A Fortran array is a C array of the reversed axes.
        mirrored = [base.rank - 1 - source for source in sources]
        unit_mirrored = {base.rank - 1 - axis for axis in unit}

        def reversed_contiguous(order: Sequence[int], flags: Sequence[bool], first_one: bool) -> bool:
            if not first_one or not all(flags[1:]):
                return False
            return list(order) == [axis for axis in range(order[0], base.rank) if axis not in unit_mirrored]

        if reversed_contiguous(mirrored, full, kept[0][2] == ONE):
            return "C"
        if len(kept) > 1 and reversed_contiguous(mirrored[::-1], full[::-1], kept[-1][2] == ONE):
            return "F"
    last_axis = axes[-1]
    if base.layout == "S":
        last = base.rank - 1  # the axis with stride == itemsize, also if its extent is 1
    if base.layout in ("C", "S") and last_axis[0] == last and last_axis[2] == ONE and last_axis[1] != ONE:
        return "C" if len(kept) == 1 and len(axes) == 1 else "S"
    return "A"


# ---- from Python index to entries ------------------------------------------------------------------------------------


def parse_index(s: Specializer, array: ArrayV, index: Value) -> list[Entry]:
    """One entry per axis of the array, plus new axes."""
    items = list(index.items) if isinstance(index, TupleV) and index.kind == "tuple" else [index]
    consumed = 0
    ellipsis = None
    prepared: list[Value] = []
    for position, item in enumerate(items):
        if isinstance(item, Static) and item.object is Ellipsis:
            if ellipsis is not None:
                raise s.unsupported("an index can only have a single ellipsis ('...')")
            ellipsis = position
            prepared.append(item)
            continue
        if isinstance(item, ComprehensionV) and item.kind == "list":
            item = s.as_list(item)
        if isinstance(item, ListV):
            item = item.array  # an empty list as well: it is an index of integers
        if isinstance(item, TupleV | RangeV):
            item = s.as_array(item, "int64" if isinstance(item, RangeV) else None)
            if isinstance(item, ArrayV) and item.extents == (ZERO,) and item.dtype == "float64":
                item = s.cast_array(item, "int64")
        prepared.append(item)
        if is_none(item):
            continue
        if isinstance(item, ArrayV) and item.dtype == "bool":
            consumed += item.rank
        else:
            consumed += 1
    if consumed > array.rank:
        raise s.unsupported(
            f"too many indices for array: array is {array.rank}-dimensional, but {consumed} were indexed"
        )
    if ellipsis is None:
        prepared.append(Static(Ellipsis))
    entries: list[Entry] = []
    axis = 0
    for item in prepared:
        if isinstance(item, Static) and item.object is Ellipsis:
            for _ in range(array.rank - consumed):
                entries.append(whole(array, axis))
                axis += 1
            continue
        if is_none(item):
            entries.append(NewAxis())
            continue
        if isinstance(item, SliceV):
            entries.append(slice_entry(s, array.extents[axis], item))
            axis += 1
            continue
        if isinstance(item, ArrayV) and item.dtype == "bool":
            if item.rank == 0:
                raise s.hand_back("0-d boolean index")
            for own in range(item.rank):
                extent = array.extents[axis + own]
                message = (
                    f"boolean index did not match indexed array along axis {axis + own}; "
                    f"size of axis is {{0}} but size of corresponding boolean axis is {{1}}"
                )
                if not s.builder.same(extent, item.extents[own]):
                    agree = s.builder.prim("eq", extent, item.extents[own], type=PYBOOL)
                    # NumPy lets an axis of a mask that has no elements pass for any other.
                    some = s.builder.logical_or(s.builder.prim("ne", item.extents[own], ZERO, type=PYBOOL), agree)
                    s.check(some, "Deoptimize", "a mask without elements for an array with some")
                    s.check(agree, "IndexError", message, [extent, item.extents[own]])
                    s.builder.learn_equal(extent, item.extents[own])
            entries.append(Mask(item))
            axis += item.rank
            continue
        if isinstance(item, ArrayV) and item.rank > 0:
            if not is_integer(item.dtype):
                raise s.unsupported("arrays used as indices must be of integer (or boolean) type")
            entries.append(Gather(item))
            axis += 1
            continue
        scalar = s.numeric(item)
        if scalar.dtype == "bool":
            raise s.hand_back("a bool as an index")
        if isinstance(scalar, ArrayV):
            scalar = ScalarV(s.builder.emit1(ir.Load(scalar.var, ()), Scalar(scalar.dtype)))
        if not isinstance(scalar, ScalarV) or not (is_integer(scalar.dtype)):
            raise s.unsupported(
                "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
                "are valid indices"
            )
        entries.append(Fixed(check_index(s, scalar, array.extents[axis], axis)))
        axis += 1
    return entries


def whole(array: ArrayV, axis: int) -> Range:
    return Range(ZERO, array.extents[axis], ONE, whole=True)


def check_index(s: Specializer, index: ScalarV, extent: ir.Operand, axis: int, *, rank: int = 2) -> ir.Operand:
    """Wrap a negative index around and make sure that it is in range; returns the index to use."""
    b = s.builder
    operand = b.cast(index.operand, PYINT)
    message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
    if b.at_least_zero(b.form(operand)):
        if not b.provably_lt(operand, extent):
            s.check(b.prim("lt", operand, extent, type=PYBOOL), "IndexError", message, [operand, extent])
        return operand
    if isinstance(operand, ir.Const):  # negative
        wrapped = b.index_add(operand, extent)
        if not b.at_least_zero(b.form(wrapped)):
            s.check(b.prim("ge", wrapped, ZERO, type=PYBOOL), "IndexError", message, [operand, extent])
            if isinstance(wrapped, ir.Var):
                b.nonnegative.add(wrapped)
        return wrapped
    negative = b.prim("lt", operand, ZERO, type=PYBOOL)
    wrapped = b.select(negative, b.prim("add", operand, extent), operand)
    inside = b.logical_and(b.prim("ge", wrapped, ZERO, type=PYBOOL), b.prim("lt", wrapped, extent, type=PYBOOL))
    s.check(inside, "IndexError", message, [operand, extent])
    if isinstance(wrapped, ir.Var):
        b.nonnegative.add(wrapped)
        b.small.add(wrapped)
        b.upper[wrapped] = (b.form(extent)[0], b.form(extent)[1] - 1)
    return wrapped


def slice_entry(s: Specializer, extent: ir.Operand, item: SliceV) -> Range:
    """Python's slice rules (`slice.indices`) on a symbolic extent."""
    b = s.builder
    if not is_none(item.step) and _constant(item.step) is None:
        return _dynamic_slice(s, extent, item)
    step = 1 if is_none(item.step) else s.static_int(item.step, "the step of a slice")
    if step == 0:
        raise s.unsupported("slice step cannot be zero")
    if step > 0:
        start = ZERO if is_none(item.lower) else _clamp(s, item.lower, extent, ZERO, extent)
        stop = extent if is_none(item.upper) else _clamp(s, item.upper, extent, ZERO, extent)
        if is_none(item.lower) and is_none(item.upper) and step == 1:
            return Range(ZERO, extent, ONE, whole=True)
        length = _length(s, item, extent, start, stop, step)
        return Range(start, length, ir.Const(step, PYINT))
    minus_one = ir.Const(-1, PYINT)
    last = b.index_add(extent, minus_one)
    start = last if is_none(item.lower) else _clamp(s, item.lower, extent, minus_one, last)
    stop = minus_one if is_none(item.upper) else _clamp(s, item.upper, extent, minus_one, last)
    length = _counted(s, b.index_sub(start, stop), -step)
    return Range(start, length, ir.Const(step, PYINT))


def _dynamic_slice(s: Specializer, extent: ir.Operand, item: SliceV) -> Range:
    """A slice whose step is known at run time only: both directions are computed and one is chosen."""
    b = s.builder
    number = s.numeric(item.step)
    if not isinstance(number, ScalarV) or not is_integer(number.dtype):
        raise s.unsupported("slice indices must be integers or None or have an __index__ method")
    step = b.cast(number.operand, PYINT)
    s.check(b.prim("ne", step, ZERO, type=PYBOOL), "ValueError", "slice step cannot be zero")
    forward = b.prim("gt", step, ZERO, type=PYBOOL)
    up = slice_entry(s, extent, SliceV(item.lower, item.upper, py(1)))
    down = slice_entry(s, extent, SliceV(item.lower, item.upper, py(-1)))
    span = b.select(forward, up.extent, down.extent)
    size = b.select(forward, step, b.prim("neg", step))
    extended = b.prim("sub", b.prim("add", span, size), ONE)
    length = b.prim("floordiv", extended, size)
    # A step beyond the span selects one element; the sum above must not wrap.
    huge = b.prim("gt", size, ir.Const(1 << 47, PYINT), type=PYBOOL)
    length = b.select(huge, b.prim("minimum", span, ONE), length)
    if isinstance(length, ir.Var):
        b.nonnegative.add(length)
        b.small.add(length)
    return Range(b.select(forward, up.start, down.start), length, step)


def _length(
    s: Specializer, item: SliceV, extent: ir.Operand, start: ir.Operand, stop: ir.Operand, step: int
) -> ir.Operand:
    """Number of elements; a[c:-d] has max(n - c - d, 0) whether or not the bounds had to be clamped."""
    b = s.builder
    lower = 0 if is_none(item.lower) else _constant(item.lower)
    upper = 0 if is_none(item.upper) else _constant(item.upper)
    if lower is not None and lower >= 0 and (is_none(item.upper) or (upper is not None and upper < 0)):
        assert upper is not None
        span = b.index_add(extent, ir.Const(upper - lower, PYINT))
        return _counted(s, span, step)
    return _counted(s, b.index_sub(stop, start), step)


def _counted(s: Specializer, span: ir.Operand, step: int) -> ir.Operand:
    b = s.builder
    span = b.max0(span)
    if step == 1:
        return span
    counted = b.index_add(span, ir.Const(step - 1, PYINT))
    if isinstance(counted, ir.Const):
        return ir.Const(int(counted.value.real) // step, PYINT)
    result = b.prim("floordiv", counted, ir.Const(step, PYINT))
    if isinstance(result, ir.Var):
        b.nonnegative.add(result)
        b.small.add(result)
        b.upper.setdefault(result, b.form(span))
    return result


def _constant(value: Value) -> int | None:
    if isinstance(value, ScalarV) and isinstance(value.operand, ir.Const):
        return int(value.operand.value.real)
    return None


def _clamp(s: Specializer, value: Value, extent: ir.Operand, low: ir.Operand, high: ir.Operand) -> ir.Operand:
    b = s.builder
    scalar = s.numeric(value)
    if isinstance(scalar, ArrayV) and scalar.rank == 0:
        scalar = ScalarV(b.emit1(ir.Load(scalar.var, ()), Scalar(scalar.dtype)))
    if not isinstance(scalar, ScalarV) or not (is_integer(scalar.dtype) or scalar.type == PYBOOL):
        raise s.unsupported("slice indices must be integers or None or have an __index__ method")
    operand = b.cast(scalar.operand, PYINT)
    if b.at_least_zero(b.form(operand)):
        return b.index_min(operand, high)
    if isinstance(operand, ir.Const):
        return b.index_max(b.index_add(operand, extent), low)
    negative = b.prim("lt", operand, ZERO, type=PYBOOL)
    shifted = b.prim("maximum", b.prim("add", operand, extent), low)
    cut = b.prim("minimum", operand, high)
    result = b.select(negative, shifted, cut)
    if isinstance(result, ir.Var):
        b.small.add(result)
        b.upper[result] = b.form(high)
        if low == ZERO:
            b.nonnegative.add(result)
        else:
            b.lower[result] = b.form(low)
    return result


# ---- reading ---------------------------------------------------------------------------------------------------------


def read(s: Specializer, array: ArrayV, index: Value) -> Value:
    """array[index]."""
    entries = parse_index(s, array, index)
    if any(isinstance(entry, Gather | Mask) for entry in entries):
        return _read_advanced(s, array, entries)
    if all(isinstance(entry, Fixed) for entry in entries) and not _has_ellipsis(index):
        indices = tuple(entry.index for entry in entries if isinstance(entry, Fixed))
        return ScalarV(s.builder.emit1(ir.Load(array.var, indices), Scalar(array.dtype)))
    return basic_view(s, array, entries)


def _has_ellipsis(index: Value) -> bool:
    items = index.items if isinstance(index, TupleV) else (index,)
    return any(isinstance(item, Static) and item.object is Ellipsis for item in items)


def basic_view(s: Specializer, array: ArrayV, entries: Sequence[Entry]) -> ArrayV:
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
    return make_view(s, array, starts, axes)


def nonzero_indices(s: Specializer, mask: ArrayV) -> tuple[ir.Operand, list[ArrayV]]:
    """How many elements of an array are true, and their coordinates, one int64 array per axis (C order)."""
    b = s.builder
    indices = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(mask.extents))
    with b.block() as statements:
        element = b.emit1(ir.Load(mask.var, indices), Scalar(mask.dtype))
        keep = b.cast(element, PYBOOL)
        coordinates = tuple(b.cast(index, INT64) for index in indices)
    op = ir.Compress(mask.extents, indices, ir.Block(tuple(statements), (keep, *coordinates)))
    outs = b.emit(op, PYINT, *(Array("int64", 1, "C") for _ in indices), name="where")
    b.nonnegative.add(outs[0])
    b.small.add(outs[0])
    return outs[0], [ArrayV(out, (outs[0],), frozenset({s.new_root()})) for out in outs[1:]]


def _read_advanced(s: Specializer, array: ArrayV, entries: list[Entry]) -> Value:
    b = s.builder
    if len(entries) == 1 and isinstance(entries[0], Mask):
        mask = entries[0].array
        indices = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(array.extents))
        with b.block() as statements:
            keep = b.cast(b.emit1(ir.Load(mask.var, indices), Scalar("bool")), PYBOOL)
            element = b.emit1(ir.Load(array.var, indices), Scalar(array.dtype))
        op = ir.Compress(array.extents, indices, ir.Block(tuple(statements), (keep, element)))
        count, out = b.emit(op, PYINT, Array(array.dtype, 1, "C"), name="compress")
        b.nonnegative.add(count)
        b.small.add(count)
        return ArrayV(out, (count,), frozenset({s.new_root()}))
    plan = plan_gather(s, array, entries)
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
    """Where each axis of a gather's result comes from. `place` is where the broadcast index axes stand in it."""

    array: ArrayV
    entries: tuple[Entry, ...]
    gather_extents: tuple[ir.Operand, ...]
    place: int
    extents: tuple[ir.Operand, ...]
    nonunit: tuple[bool, ...]

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

    def source_index(self, s: Specializer, indices: Sequence[ir.Operand]) -> list[ir.Operand]:
        """The index into the array at a point of the result's index space."""
        b = s.builder
        depth = len(self.gather_extents)
        gather = indices[self.place : self.place + depth]
        rest = [*indices[: self.place], *indices[self.place + depth :]]
        result: list[ir.Operand] = []
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
                    result.append(check_index(s, ScalarV(element), self.array.extents[axis], axis))
                case Mask():
                    raise AssertionError("masks have become coordinates")
            axis += 1
        return result


def plan_gather(s: Specializer, array: ArrayV, entries: Sequence[Entry]) -> GatherPlan:
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
    extents[place:place] = gather_extents
    nonunit[place:place] = gather_nonunit
    return GatherPlan(array, tuple(spread), gather_extents, place, tuple(extents), tuple(nonunit))


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(s: Specializer, array: ArrayV, index: Value, value: Value) -> None:
    """array[index] = value."""
    b = s.builder
    entries = parse_index(s, array, index)
    value = s.numeric(value)
    if not any(isinstance(entry, Gather | Mask) for entry in entries):
        if all(isinstance(entry, Fixed) for entry in entries) and not (
            _has_ellipsis(index) and isinstance(value, ArrayV)
        ):
            if array.readonly:
                s.check(ir.Const(False, PYBOOL), "ValueError", "assignment destination is read-only")
                return
            s.will_store(array)
            if isinstance(value, ArrayV) and value.rank == 0:
                value = ScalarV(b.emit1(ir.Load(value.var, ()), Scalar(value.dtype)))
            if not isinstance(value, ScalarV):
                raise s.unsupported("setting an array element with a sequence")
            indices = tuple(entry.index for entry in entries if isinstance(entry, Fixed))
            b.emit(ir.Store(array.var, indices, store_cast(s, value.operand, Scalar(array.dtype))))
            return
        store_array(s, basic_view(s, array, entries), value)
        return
    if array.readonly:
        s.check(ir.Const(False, PYBOOL), "ValueError", "assignment destination is read-only")
        return
    s.will_store(array)
    if len(entries) == 1 and isinstance(entries[0], Mask):
        if isinstance(value, ScalarV) or value.rank == 0:
            store_array(s, array, value, mask=entries[0].array)
            return
        _write_masked(s, array, entries[0].array, value)
        return
    _write_gather(s, array, entries, value)


def _write_masked(s: Specializer, array: ArrayV, mask: ArrayV, value: ArrayV) -> None:
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
    if value.roots & array.roots and value.var not in s.fresh:
        from parakeet_py.typed_ir.elementwise import copy_array

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


def _write_gather(s: Specializer, array: ArrayV, entries: list[Entry], value: ScalarV | ArrayV) -> None:
    """array[int arrays...] = value, in order: for a repeated index the last value stays."""
    b = s.builder
    plan = plan_gather(s, array, entries)
    extents = plan.extents
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
        if value.roots & array.roots and value.var not in s.fresh:
            from parakeet_py.typed_ir.elementwise import copy_array

            value = copy_array(s, value)
    kind = Scalar(array.dtype)
    scalar = store_cast(s, value.operand, kind) if isinstance(value, ScalarV) else None
    # All indices are resolved (and checked) before the first store: an index error leaves the array as it was.
    checked = generate(
        s,
        extents,
        lambda indices: [b.cast(index, INT64) for index in plan.source_index(s, indices)],
        nonunit=plan.nonunit,
    ) if extents else None  # fmt: skip
    if checked is None:
        raise s.hand_back("scalar gather assignment")
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
    b.emit(ir.Scatter(array.var, extents, points, ir.Block(tuple(statements), results), combine))


def as_index_dtype(array: ArrayV) -> bool:
    """True for arrays that may index others."""
    return is_integer(array.dtype) or array.dtype == "bool"


__all__ = ["Array", "basic_view", "check_index", "make_view", "np", "parse_index", "read", "slice_entry", "write"]
