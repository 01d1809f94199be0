"""Making arrays: filled, copied, counted through, spread over an interval."""

from __future__ import annotations

import math

import numpy as np

from parakeet_py.library.intrinsics import (
    as_array,
    assign,
    cast,
    check,
    constant,
    copy,
    dtype_of,
    elementwise,
    generate,
    hand_back,
    is_array,
    is_known,
    is_sequence,
    is_weak,
    is_writeable,
    known_in_order,
    layout_of,
    lies_in_order,
    order_of,
    permute,
    prim,
    standing_for_view,
    surely_strided,
    unsupported,
    wants_view,
)
from parakeet_py.library.registry import helper, implements, method, static
from parakeet_py.library.shared import (
    ALL,
    NO_VALUE,
    fitting,
    integer_limits,
    inverse_axes,
    kind_of,
    result_kind,
    single_axis,
)

NAN = math.nan


@static
def order_name(order, default):
    """C, F, A or K; None stands for what a function does by default."""
    name = default if order is None else order.upper()
    if name not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return name


@static
def wants_fortran(order, layout, rank):
    """Whether a new array is in Fortran order."""
    order_name(order, "K")
    return rank > 1 and (order in ("F", "f") or (order in ("A", "K", "a", "k", None) and layout == "F"))


@static
def new_axes(order, rank, layout="C", kept=None):
    """The axes of a new array from the slowest to the fastest, made like one that has this layout and order."""
    if wants_fortran(order, layout, rank):
        return tuple(reversed(range(rank)))
    return tuple(range(rank)) if kept is None or order not in ("K", "k", None) else kept


@static
def in_c_order(axes):
    return axes == tuple(range(len(axes)))


def shape_tuple(shape):
    """A shape argument as a tuple."""
    if is_sequence(shape):
        return tuple(shape)
    if is_array(shape) and shape.ndim > 0:
        hand_back("a shape given as an array")
    if not is_array(shape) and dtype_of(shape).kind not in ("iub" if is_weak(shape) else "iu"):
        hand_back("a shape that is no integer")
    return (shape,)


def filled(shape, value, axes):
    """A new array with one scalar everywhere, its axes in this order."""
    if in_c_order(axes):
        return generate(shape, lambda *indices: value)
    return permute(generate(tuple([shape[axis] for axis in axes]), lambda *indices: value), inverse_axes(axes))


@static
def check_made(order, device):
    """What NumPy says about the options of its functions that make arrays."""
    if order not in ("C", "F", None):
        raise ValueError("only 'C' or 'F' order is permitted")
    check_device(device)


@static
def check_device(device):
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')


@implements(np.zeros)
def zeros(shape, dtype=float, order="C", *, device=None, like=None):
    check_made(order, device)
    shape = shape_tuple(shape)
    return filled(shape, constant(0, float if dtype is None else dtype), new_axes(order, len(shape)))


@implements(np.empty)
def empty(shape, dtype=float, order="C", *, device=None, like=None):
    return zeros(shape, dtype, order, device=device)


@implements(np.ones)
def ones(shape, dtype=None, order="C", *, device=None, like=None):
    check_made(order, device)
    shape = shape_tuple(shape)
    return filled(shape, constant(1, float if dtype is None else dtype), new_axes(order, len(shape)))


@implements(np.full)
def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    check_made(order, device)
    shape = shape_tuple(shape)
    return full_in(shape, fill_value, dtype, new_axes(order, len(shape)))


def full_in(shape, fill_value, dtype, axes):
    if is_sequence(fill_value):
        fill_value = as_array(fill_value)
    kind = dtype_of(fill_value) if dtype is None else np.dtype(dtype)
    if is_array(fill_value) and fill_value.ndim > 0:
        made = filled(shape, constant(0, kind), axes)
        assign(made, fill_value)
        return made
    if is_array(fill_value):
        fill_value = fill_value[()]
    return filled(shape, cast(fitting(fill_value, kind), kind), axes)


def like_shape(a, shape):
    return a.shape if shape is None else shape_tuple(shape)


def like_order(a, order, shape):
    if len(shape) != a.ndim or a.ndim == 0:
        return new_axes(order, len(shape))
    return new_axes(order, a.ndim, layout_of(a), order_of(a))


@implements(np.zeros_like, np.empty_like)
def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    check_device(device)
    a = as_array(a)
    shape = like_shape(a, shape)
    return filled(shape, constant(0, dtype_of(a) if dtype is None else dtype), like_order(a, order, shape))


@implements(np.ones_like)
def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    check_device(device)
    a = as_array(a)
    shape = like_shape(a, shape)
    return filled(shape, constant(1, dtype_of(a) if dtype is None else dtype), like_order(a, order, shape))


@implements(np.ndarray)
def ndarray(shape, dtype=float, buffer=None, offset=0, strides=None, order=None):
    if buffer is not None or strides is not None:
        hand_back("an ndarray over other memory")
    return np.empty(shape, dtype, "C" if order is None else order)


@implements(np.full_like)
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    check_device(device)
    a = as_array(a)
    shape = like_shape(a, shape)
    return full_in(shape, fill_value, dtype_of(a) if dtype is None else dtype, like_order(a, order, shape))


# ---- copies and conversions ------------------------------------------------------------------------------------------


@static
def leading_axes(rank, wanted):
    """The index that brings an array to at least so many axes."""
    return (None,) * max(0, wanted - rank) + (Ellipsis,)


@implements(np.array)
def array(a, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None):
    if copy is False:
        must_do_as_it_is(a, dtype, order)
    made = converted_array(a, dtype, order_name(order, "K"), copy is not False and copy is not None)
    return made[leading_axes(made.ndim, ndmin)] if ndmin > made.ndim else made


@static
def is_same(kind, dtype):
    """Whether an array of a kind is one of a dtype; `long` and `long long` are equal, but not the same."""
    return kind == np.dtype(dtype) and kind.char == np.dtype(dtype).char


def converted_array(a, dtype, order, always):
    """np.array or np.asarray; `always` makes a new array of one that would do."""
    if is_weak(a):
        kind = dtype_of(a) if dtype is None else np.dtype(dtype)
        if dtype_of(a).kind == "f" and kind.kind in "iu":
            all_fit(a, kind)
        return as_array(cast(fitting(a, kind), kind))
    fresh = not is_array(a)
    made = as_array(a, dtype)
    if dtype is not None and not is_same(dtype_of(made), dtype):
        fresh = True
        made = cast(made, dtype)
    if always and not fresh:
        return copied(made, order)
    return made if order == "A" else in_memory_order(made, order)


def in_memory_order(a, order):
    """The array itself if it lies in that order (which one row or column does in both), else a copy."""
    if fits_order(order, layout_of(a), a.ndim):
        return a
    if may_lie_in_both(order, layout_of(a)):
        return known_in_order(a, "F") if a.flags.f_contiguous else copy(a, "F")
    if surely_strided(a):
        return copy(a, order)
    if wants_view() and is_writeable(a):
        if order in ("C", "F"):
            return known_in_order(a, order) if lies_in_order(a, order) else copy(a, order)
        return a if lies_in_order(a, "C") | lies_in_order(a, "F") else copy(a, order)
    return standing_for_view(copy(a, order), a, is_writeable(a))


@static
def may_lie_in_both(order, layout):
    return order == "F" and layout == "C"


@implements(np.asarray, np.asanyarray)
def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    check_device(device)
    if copy is False:
        must_do_as_it_is(a, dtype, order)
    return converted_array(a, dtype, order_name(order, "K"), copy is True)


def must_do_as_it_is(a, dtype, order):
    """NumPy refuses to copy, if it is asked to, what cannot stay as it is."""
    if not is_array(a) or (dtype is not None and not is_same(dtype_of(a), dtype)) or order in ("C", "F"):
        hand_back("copy=False of what may have to be copied")


@implements(np.ascontiguousarray)
def ascontiguousarray(a, dtype=None, *, like=None):
    made = as_array(a, dtype)
    if made.ndim == 0:
        made = made[None]
    if dtype is not None and not is_same(dtype_of(made), dtype):
        made = cast(made, dtype)
    return in_memory_order(made, "C")


@implements(np.asfortranarray)
def asfortranarray(a, dtype=None, *, like=None):
    made = converted_array(a, dtype, "F", False)
    return made[None] if made.ndim == 0 else made


@helper
def all_fit(numbers, kind):
    """Leave a sequence to Python if an integer dtype cannot hold one of its numbers."""
    low, high = integer_limits(kind)
    if dtype_of(numbers).kind == "f":
        fit = (numbers > low - 1.0) & (numbers < high + 1.0)
    else:
        fit = (numbers >= low) & (numbers <= high)
    check(np.all(fit), "Deoptimize", "a number that an integer dtype cannot hold")


@implements(np.copy)
def copy_function(a, order="K", subok=False):
    return converted_array(a, None, order_name(order, "K"), True)


@method("copy")
def copy_method(a, order="C"):
    return copied(a, order_name(order, "C"))


@method("__copy__")
def copy_special(a):
    return copy(a, "K")


@static
def fits_order(order, layout, rank):
    """Whether an array of a layout is in an order as it is."""
    if order == "A":
        return layout in ("C", "F")
    return order == "K" or layout == ("C" if rank < 2 else order)


@static
def check_cast(source, target, casting):
    if not np.can_cast(source, target, casting):
        raise TypeError(f"Cannot cast array data from {source!r} to {target!r} according to the rule {casting!r}")


@method("astype")
def astype(a, dtype, order="K", casting="unsafe", subok=True, copy=True):
    check_cast(dtype_of(a), np.dtype(dtype), casting)
    order = order_name(order, "K")
    if is_same(dtype_of(a), dtype):
        return copied(a, order) if copy else in_memory_order(a, order)
    made = cast(a, dtype)
    return made if fits_order(order, layout_of(made), a.ndim) else copied(made, order)


@implements(np.astype)
def astype_function(x, dtype, /, *, copy=True, device=None):
    check_device(device)
    return astype(x, dtype, copy=copy)


def copied(a, order):
    """A copy in an order; "A" is Fortran order of what lies in that order and not in C order, too."""
    if order == "A" and layout_of(a) not in ("C", "F"):
        return copy(a, "F") if a.flags.fnc else copy(a, "C")
    return copy(a, order)


@method("fill")
def fill(a, value, /):
    if is_sequence(value) or (is_array(value) and value.ndim > 0):
        unsupported("a sequence as the scalar of fill")
    assign(a, value, True)


# ---- sequences of numbers --------------------------------------------------------------------------------------------


@static
def range_kind(*kinds):
    """The dtype np.arange gives to numbers of these dtypes."""
    found = np.result_type(np.int64, *kinds)
    return np.dtype("int64") if found.kind in "iub" else found


@static
def are_narrow(first, last):
    """Are these integers whose difference NumPy computes in fewer than 64 bits, or without a sign?"""
    return first.kind in "iu" and last.kind in "iu" and (first != np.int64 or last != np.int64)


def length_of_range(start, stop, step):
    """The number of steps of np.arange, before it is cut off at zero."""
    if dtype_of(start).kind in "iub" and dtype_of(stop).kind in "iub" and dtype_of(step).kind in "iub":
        gap, width = int(stop) - int(start), int(step)
        check(width != 0, "ZeroDivisionError", "division by zero")
        return -(-gap // width)
    gap = stop - start
    count = gap / step
    check(count == count, "ValueError", "arange: cannot compute length")
    length = float(count)  # to compare it with what no float16 holds
    check((length <= 2.0**63) & (length >= -(2.0**63)), "ValueError", "Maximum allowed size exceeded")
    steps = int(prim("ceil", min(max(length, -1.0), 2.0**62)))  # as many are an array that is too big
    too_small = (count == 0) & (gap != 0) & (prim("copysign", 1.0, length) > 0)  # and rounded down to zero
    return steps + int(too_small)


@static
def is_negative_zero(number):
    return number == 0 and bool(np.signbit(number))


@implements(np.arange)
def arange(start=NO_VALUE, stop=None, step=None, dtype=None, *, device=None, like=None):
    check_device(device)
    if stop is None:
        start, stop = 0, start
    elif start is NO_VALUE:
        start = 0
    elif start is None:
        hand_back("np.arange of None")
    if step is None:
        step = 1
    if is_array(start) or is_array(stop) or is_array(step):
        hand_back("np.arange of arrays")
    kind = range_kind(dtype_of(start), dtype_of(stop), dtype_of(step)) if dtype is None else np.dtype(dtype)
    if kind.kind in "bc":
        hand_back("np.arange of bools or complex numbers")
    if are_narrow(dtype_of(start), dtype_of(stop)):
        count = max(length_of_range(0, int(stop - start), step), 0)  # NumPy's difference, which may wrap around
    else:
        count = max(length_of_range(start, stop, step), 0)
    counted = np.dtype("float32") if kind == np.float16 else kind
    first = cast(cast(fitting(start, kind), kind), counted)
    gap = cast(cast(start + step, kind), counted) - first
    if kind.kind == "f":
        gap = prim("select", count > 1, gap, constant(0, counted))  # it may be infinite
    if dtype_of(start).kind == "f" and (not is_known(start) or is_negative_zero(start)):
        return generate(
            (count,), lambda i: cast(prim("select", cast(i, "int64") == 0, first, first + cast(i, counted) * gap), kind)
        )
    return generate((count,), lambda i: cast(first + cast(i, counted) * gap, kind))


@static
def number_of_samples(kind):
    if kind.kind not in "iu":
        raise TypeError(f"{kind} cannot be interpreted as an integer")


@implements(np.linspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    check_device(device)
    if is_sequence(start):
        start = as_array(start)
    if is_sequence(stop):
        stop = as_array(stop)
    working = result_kind(kind_of(start), kind_of(stop), float)
    kind = working if dtype is None else np.dtype(dtype)
    number_of_samples(dtype_of(num))
    count = int(num)
    check(count >= 0, "ValueError", "Number of samples, {0}, must be non-negative.", count)
    if kind.kind in "iu" and working.kind == "c":
        unsupported("complex numbers cannot be rounded down")
    intervals = count - 1 if endpoint else count
    first = cast(start, working)
    last = cast(stop, working)
    gap = last - first
    divisor = cast(max(intervals, 1), working)
    step = gap / divisor

    def sample(i, origin, end, gap, step):
        """Number i: through the step, unless that is too small to be distinguished from zero."""
        place = cast(i, working)
        through_step = prim("select", step == constant(0, working), place / divisor * gap, place * step)
        value = prim("select", cast(intervals > 0, "bool"), through_step, place * gap) + origin
        if endpoint:
            value = prim("select", cast((i == count - 1) & (count > 1), "bool"), end, value)
        if kind.kind in "iu":
            value = prim("floor", value) if working.kind == "f" else value
        return cast(value, kind)

    if is_array(gap) and gap.ndim > 0:
        numbers = generate((count,), lambda i: cast(i, "int64"))
        numbers = numbers[(ALL,) + (None,) * gap.ndim]
        made = elementwise(lambda i, *rest: sample(int(i), *rest), numbers, first, last, gap, step)
        if axis != 0:
            made = np.moveaxis(made, 0, axis)
    else:
        origin, end, width, pace = as_scalar(first), as_scalar(last), as_scalar(gap), as_scalar(step)
        made = generate((count,), lambda i: sample(i, origin, end, width, pace))
        single_axis(axis, 1)
    if not retstep:
        return made
    if is_array(step) and step.ndim > 0:
        hand_back("retstep of arrays")
    if is_known(intervals) and intervals <= 0:
        return made, NAN
    check(intervals > 0, "Deoptimize", "a step that is Python's nan")
    return made, as_scalar(step)


def as_scalar(value):
    return value[()] if is_array(value) else value


@implements(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    if is_sequence(base):
        base = as_array(base)
    if is_array(base) and base.ndim > 0:
        rank = max(np.ndim(start), np.ndim(stop), base.ndim)
        start, stop = np.array(start, ndmin=rank), np.array(stop, ndmin=rank)
        base = np.expand_dims(np.array(base, ndmin=rank), axis)
    made = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return made if dtype is None or is_same(dtype_of(made), dtype) else cast(made, dtype)


@implements(np.geomspace)
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    start, stop = as_array(start), as_array(stop)
    message = "Geometric sequence cannot include zero"
    check((start != 0).all() & (stop != 0).all(), "ValueError", message)
    working = result_kind(dtype_of(start), dtype_of(stop), float, np.dtype(float if dtype is None else dtype))
    start, stop = as_scalar_if_single(cast(start, working)), as_scalar_if_single(cast(stop, working))
    sign = np.sign(start)
    start, stop = start / sign, stop / sign  # turned to positive numbers, and back at the end
    made = logspace(np.log10(start), np.log10(stop), num, endpoint)
    if num > 0:
        made[0] = start
        if num > 1 and endpoint:
            made[-1] = stop
    made *= sign
    made = made if axis == 0 else np.moveaxis(made, 0, axis)
    return made if dtype is None or is_same(working, dtype) else cast(made, dtype)


def as_scalar_if_single(value):
    return value[()] if value.ndim == 0 else value
