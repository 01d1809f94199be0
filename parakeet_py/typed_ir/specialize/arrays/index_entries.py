"""What an index says: `x[i, 1:-1, None, mask]` as one entry per axis.

Integers are wrapped and checked, slices become start, extent and step as `slice.indices` gives them; integer arrays and
masks are kept for `indexing`, which reads and writes with the entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYBOOL, PYINT, Scalar, is_integer
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.forms import form_of
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ComprehensionV,
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
    from parakeet_py.typed_ir.specialize.context import Context


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


def prepared_items(s: Context, index: Value) -> list[Value]:
    """The items of an index, sequences among them as arrays, with an ellipsis."""
    items = list(index.items) if isinstance(index, TupleV) and index.kind == "tuple" else [index]
    prepared: list[Value] = []
    for item in items:
        if _is_ellipsis(item) and any(map(_is_ellipsis, prepared)):
            raise s.unsupported("an index can only have a single ellipsis ('...')")
        if isinstance(item, ComprehensionV) and item.kind == "list":
            item = s.as_list(item)
        item = form_of(item).elements(item) or item  # an empty list as well: it is an index of integers
        if isinstance(item, TupleV | RangeV):
            item = s.as_array(item, "int64" if isinstance(item, RangeV) else None)
            if isinstance(item, ArrayV) and item.extents == (ZERO,) and item.dtype == "float64":
                item = s.cast_array(item, "int64")
        prepared.append(item)
    if not any(map(_is_ellipsis, prepared)):
        prepared.append(Static(Ellipsis))
    return prepared


def _is_ellipsis(item: Value) -> bool:
    return isinstance(item, Static) and item.object is Ellipsis


def is_flag(item: Value) -> bool:
    """Is this a truth value: an index that selects all or nothing along an axis of its own?"""
    return isinstance(item, ScalarV | ArrayV) and item.dtype == "bool" and (isinstance(item, ScalarV) or not item.rank)


def axes_taken(item: Value) -> int:
    """How many axes of the array an item of an index stands for, an ellipsis left out."""
    if is_none(item) or _is_ellipsis(item) or is_flag(item):
        return 0
    return item.rank if isinstance(item, ArrayV) and item.dtype == "bool" else 1


def parse_index(s: Context, array: ArrayV, index: Value, names: Sequence[int]) -> list[Entry]:
    """One entry per axis of the array, plus new axes. `names` are the numbers of its axes in messages."""
    prepared = prepared_items(s, index)
    consumed = sum(map(axes_taken, prepared))
    if consumed > array.rank:
        raise s.unsupported(
            f"too many indices for array: array is {array.rank}-dimensional, but {consumed} were indexed"
        )
    entries: list[Entry] = []
    axis = 0
    for item in prepared:
        if _is_ellipsis(item):
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
            for own in range(item.rank):
                extent = array.extents[axis + own]
                message = (
                    f"boolean index did not match indexed array along axis {names[axis + own]}; "
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
        if isinstance(scalar, ArrayV):
            scalar = ScalarV(s.builder.emit1(ir.Load(scalar.var, ()), Scalar(scalar.dtype)))
        if not isinstance(scalar, ScalarV) or not (is_integer(scalar.dtype)):
            raise s.unsupported(
                "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
                "are valid indices"
            )
        _check_size(s, scalar, "OverflowError", "Python int too large to convert to C long")
        entries.append(Fixed(check_index(s, scalar, array.extents[axis], names[axis])))
        axis += 1
    return entries


def whole(array: ArrayV, axis: int) -> Range:
    return Range(ZERO, array.extents[axis], ONE, whole=True)


def check_index(
    s: Context, index: ScalarV, extent: ir.Operand, axis: int, *, message: str = "", one_of_several: bool = False
) -> ir.Operand:
    """Wrap a negative index around and make sure that it is in range (or else this IndexError); the index to use.

    `one_of_several`: it stands in one of several index arrays, each of which NumPy goes through before the next one.
    """
    b = s.builder
    operand = b.cast(index.operand, PYINT) if not message else item_place(s, index, message)
    message = message or f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
    if b.at_least_zero(b.form(operand)):
        if not b.provably_lt(operand, extent):
            s.check(
                b.prim("lt", operand, extent, type=PYBOOL),
                "IndexError",
                message,
                [operand, extent],
                of_library=one_of_several,
            )
        return operand
    if isinstance(operand, ir.Const):  # negative
        wrapped = b.index_add(operand, extent)
        if not b.at_least_zero(b.form(wrapped)):
            s.check(
                b.prim("ge", wrapped, ZERO, type=PYBOOL),
                "IndexError",
                message,
                [operand, extent],
                of_library=one_of_several,
            )
            b.learn_extent(wrapped)
        return wrapped
    negative = b.prim("lt", operand, ZERO, type=PYBOOL)
    wrapped = b.select(negative, b.prim("add", operand, extent), operand)
    inside = b.logical_and(b.prim("ge", wrapped, ZERO, type=PYBOOL), b.prim("lt", wrapped, extent, type=PYBOOL))
    s.check(inside, "IndexError", message, [operand, extent], of_library=one_of_several)
    terms, constant = b.form(extent)
    b.learn_extent(wrapped, (terms, constant - 1))
    return wrapped


NO_INDEX = "cannot fit 'numpy.uint64' into an index-sized integer"


def item_place(s: Context, index: Value, message: str = "") -> ir.Operand:
    """The int that an index of a list, a tuple, a string or a range is, before negative ones are wrapped around.

    A `bool` of NumPy's is none; nor is what does not fit: ranges say that such an index is out of range, methods (which
    have no message for it) that it is too large, all others that it cannot be an index.
    """
    number = s.numeric(index)
    if not isinstance(number, ScalarV) or not (is_integer(number.dtype) or number.type == PYBOOL):
        raise s.unsupported(f"{s.describe(index)} as an index of a list")
    if message.startswith("range"):
        _check_size(s, number, "IndexError", message)
    elif message in ("", "pop index out of range"):
        _check_size(s, number, "OverflowError", "Python int too large to convert to C ssize_t")
    else:
        _check_size(s, number, "IndexError", NO_INDEX)
    return s.builder.cast(number.operand, PYINT)


def position(s: Context, length: ir.Operand, index: Value, message: str) -> ir.Operand:
    """The place in a list of this length that a Python index names; IndexError with this message if there is none."""
    b = s.builder
    operand = item_place(s, index, message)
    if b.at_least_zero(b.form(operand)):
        if not b.provably_lt(operand, length):
            s.check(b.prim("lt", operand, length, type=PYBOOL), "IndexError", message)
        return operand
    negative = b.prim("lt", operand, ZERO, type=PYBOOL)
    wrapped = b.select(negative, b.prim("add", operand, length), operand)
    inside = b.logical_and(b.prim("ge", wrapped, ZERO, type=PYBOOL), b.prim("lt", wrapped, length, type=PYBOOL))
    s.check(inside, "IndexError", message)
    b.learn_extent(wrapped)
    return wrapped


def _check_size(s: Context, index: ScalarV, exception: str, message: str) -> None:
    """An index of 64 bits without a sign may be none of those with one."""
    if index.dtype == "uint64":
        s.check(s.builder.prim("le", index.operand, _LARGEST, type=PYBOOL), exception, message)


_LONGEST = (1 << 63) - 1  # the longest step of a slice, in both directions; longer ones are cut, as in CPython
_LARGEST = ir.Const(_LONGEST, Scalar("uint64"))


def slice_entry(s: Context, extent: ir.Operand, item: SliceV) -> Range:
    """Python's slice rules (`slice.indices`) on a symbolic extent."""
    b = s.builder
    if not is_none(item.step) and _constant(item.step) is None:
        return _dynamic_slice(s, extent, item)
    step = 1 if is_none(item.step) else s.static_int(item.step, "the step of a slice")
    if step == 0:
        raise s.unsupported("slice step cannot be zero")
    step = max(min(step, _LONGEST), -_LONGEST)
    start, stop = slice_bounds(s, extent, item, step)
    if is_none(item.lower) and is_none(item.upper) and step == 1:
        return Range(ZERO, extent, ONE, whole=True)
    if step > 0:
        length = _length(s, item, extent, start, stop, step)
    else:
        length = _counted(s, b.index_sub(start, stop), -step)
    return Range(start, length, ir.Const(step, PYINT))


def slice_bounds(s: Context, extent: ir.Operand, item: SliceV, step: int) -> tuple[ir.Operand, ir.Operand]:
    """Where a slice with a known step begins and ends, as `slice.indices` gives it."""
    if step > 0:
        start = ZERO if is_none(item.lower) else _clamp(s, item.lower, extent, ZERO, extent)
        stop = extent if is_none(item.upper) else _clamp(s, item.upper, extent, ZERO, extent)
        return start, stop
    minus_one = ir.Const(-1, PYINT)
    last = s.builder.index_add(extent, minus_one)
    start = last if is_none(item.lower) else _clamp(s, item.lower, extent, minus_one, last)
    stop = minus_one if is_none(item.upper) else _clamp(s, item.upper, extent, minus_one, last)
    return start, stop


def _dynamic_slice(s: Context, extent: ir.Operand, item: SliceV) -> Range:
    """A slice whose step is known at run time only: both directions are computed and one is chosen."""
    b = s.builder
    number = s.numeric(item.step)
    if not isinstance(number, ScalarV) or not is_integer(number.dtype):
        raise s.unsupported("slice indices must be integers or None or have an __index__ method")
    if number.dtype == "uint64":
        step = b.cast(b.prim("minimum", number.operand, _LARGEST), PYINT)
    else:
        step = b.prim("maximum", b.cast(number.operand, PYINT), ir.Const(-_LONGEST, PYINT))
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
    step = b.select(huge, b.select(forward, ONE, ir.Const(-1, PYINT)), step)
    b.as_count(length)
    return Range(b.select(forward, up.start, down.start), length, step)


def _length(s: Context, item: SliceV, extent: ir.Operand, start: ir.Operand, stop: ir.Operand, step: int) -> ir.Operand:
    """Number of elements; a[c:-d] has max(n - c - d, 0) whether or not the bounds had to be clamped."""
    b = s.builder
    lower = 0 if is_none(item.lower) else _constant(item.lower)
    upper = 0 if is_none(item.upper) else _constant(item.upper)
    if lower is not None and lower >= 0 and (is_none(item.upper) or (upper is not None and upper < 0)):
        assert upper is not None
        span = b.index_add(extent, ir.Const(upper - lower, PYINT))
        return _counted(s, span, step)
    return _counted(s, b.index_sub(stop, start), step)


def _counted(s: Context, span: ir.Operand, step: int) -> ir.Operand:
    b = s.builder
    span = b.max0(span)
    if step == 1:
        return span
    if step > 1 << 47:  # beyond all extents; the sum below must not wrap
        return b.index_min(span, ONE)
    counted = b.index_add(span, ir.Const(step - 1, PYINT))
    if isinstance(counted, ir.Const):
        return ir.Const(int(counted.value.real) // step, PYINT)
    result = b.prim("floordiv", counted, ir.Const(step, PYINT))
    if isinstance(result, ir.Var):
        b.as_count(result)
        b.upper.setdefault(result, b.form(span))
    return result


def _constant(value: Value) -> int | None:
    if isinstance(value, ScalarV) and isinstance(value.operand, ir.Const):
        return int(value.operand.value.real)
    return None


def _clamp(s: Context, value: Value, extent: ir.Operand, low: ir.Operand, high: ir.Operand) -> ir.Operand:
    b = s.builder
    scalar = s.numeric(value)
    if isinstance(scalar, ArrayV) and scalar.rank == 0:
        scalar = ScalarV(b.emit1(ir.Load(scalar.var, ()), Scalar(scalar.dtype)))
    if not isinstance(scalar, ScalarV) or not (is_integer(scalar.dtype) or scalar.type == PYBOOL):
        raise s.unsupported("slice indices must be integers or None or have an __index__ method")
    if scalar.dtype == "uint64":
        place = b.cast(b.prim("minimum", scalar.operand, _LARGEST), PYINT)
        if isinstance(place, ir.Var):
            b.nonnegative.add(place)
        return b.index_min(place, high)
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
