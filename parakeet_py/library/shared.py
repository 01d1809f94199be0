"""What the library's functions share: axes, dtype rules and result handling.

The `@static` functions run while a program is compiled, on known values, and take NumPy's rules from NumPy itself; an
exception they raise means that the call is an error, which Python is then left to raise.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from parakeet_py.library.intrinsics import (
    as_array,
    assign,
    broadcast_view,
    cast,
    check,
    copy,
    dtype_of,
    generate,
    hand_back,
    is_array,
    is_sequence,
    is_weak,
    is_writeable,
    layout_of,
    load,
)
from parakeet_py.library.registry import static

NO_VALUE = np._NoValue
ALL = slice(None)
SAME = "equiv"  # the casting of functions that compute in another way when `out` has another dtype


@static
def reduction_axes(axis, rank):
    """The axes to reduce, sorted."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, list) or any(isinstance(one, bool) for one in (axis if isinstance(axis, tuple) else (axis,))):
        raise TypeError("an integer is required")
    if rank == 0 and axis in (0, -1, ()):
        return ()
    return tuple(sorted(normalize_axis_tuple(axis, rank)))


@static
def single_axis(axis, rank):
    if isinstance(axis, bool):  # which some functions take for a number
        raise TypeError("an integer is required for the axis")
    return normalize_axis_index(operator.index(axis), rank)


def must_be_int(value):
    """Leave it to NumPy what it makes of a number that should be an int, or that its own arithmetic wraps around."""
    if is_array(value) or dtype_of(value).kind not in "iub":
        hand_back("a number that should be an int")
    if not is_weak(value) and dtype_of(value) != np.int64:
        hand_back("an integer of another type than int64, whose arithmetic is NumPy's")


@static
def other_axes(axes, rank):
    return tuple(axis for axis in range(rank) if axis not in axes)


@static
def inverse_axes(axes):
    """Where each axis stands in an order of axes."""
    return tuple(axes.index(axis) for axis in range(len(axes)))


@static
def keeping_index(axes, rank):
    """The index that puts reduced axes back with extent 1."""
    return tuple(None if axis in axes else ALL for axis in range(rank))


@static
def index_at(axis, item):
    """The index of one axis, the ones before taken whole."""
    return (ALL,) * axis + (item,)


@static
def insert_index(axes, rank):
    """The index that inserts new axes at positions of the result."""
    return tuple(None if axis in axes else ALL for axis in range(rank + len(axes)))


@static
def real_kind(kind):
    return np.empty(0, kind).real.dtype


@static
def checked_dtype(dtype):
    return np.dtype(dtype)


@static
def result_kind(*kinds):
    """np.result_type; an int, float or complex *type* stands for a weak Python scalar."""
    weak = {int: 0, float: 0.0, complex: 0j}
    return np.result_type(*(weak.get(kind, kind) for kind in kinds))


@static
def weak_type(kind):
    """What a Python scalar of a dtype counts as among NumPy dtypes."""
    return {"b": np.dtype(bool), "i": int, "f": float, "c": complex}[kind.kind]


def kind_of(value):
    """What a value counts as in `result_kind`."""
    return weak_type(dtype_of(value)) if is_weak(value) else dtype_of(value)


@static
def check_output_cast(source, target, casting):
    if not np.can_cast(source, target, casting):
        raise TypeError(f"Cannot cast from {source} to {target} with casting rule {casting!r}")


@static
def product_of_ranks(rank, expected):
    if rank != expected:
        raise ValueError("the output has the wrong number of dimensions")


def must_be_array(a):
    """For functions that ask their argument for its shape before they make an array of it."""
    if is_sequence(a) or is_weak(a):
        hand_back("a list or a Python number, which has no shape")


def must_be_writeable(a, message="output array is read-only"):
    """Refuse an array that NumPy would not store to, in the words that it has for it there."""
    if not is_writeable(a):
        check(False, "ValueError", message)


def into(out, result, casting="same_kind", shape_message="output array does not have the right shape"):
    """Store a result in `out=`, which is then the value of the call."""
    if casting == SAME and dtype_of(out) != dtype_of(result):
        hand_back("out= of another dtype than the result's")
    check_output_cast(dtype_of(result), dtype_of(out), casting)
    product_of_ranks(out.ndim, result.ndim)
    for own, wanted in zip(out.shape, result.shape):
        check(own == wanted, "ValueError", shape_message)
    must_be_writeable(out)
    assign(out, result)
    return out


def not_scalar_into(a, out):
    """NumPy leaves its scalars to methods of theirs, which fill `out` and yet give a scalar."""
    if out is not None and not is_array(a) and not is_sequence(a) and not is_weak(a):
        hand_back("a NumPy scalar with out=")


def finish(result, axes, rank, keepdims, out):
    """A reduction's value: with its axes put back if they are kept, in `out` if it is given."""
    if keepdims:
        result = as_array(result)[keeping_index(axes, rank)]
    if out is None:
        return result
    return into(out, as_array(result), SAME)


def count_along(a, axes):
    """The number of elements a reduction takes in."""
    count = 1
    for axis in axes:
        count = count * a.shape[axis]
    return count


def fitting(value, kind):
    """A Python int that an integer dtype can hold."""
    if is_weak(value) and dtype_of(value).kind == "i" and kind.kind in "iu":
        low, high = integer_limits(kind)
        check((value >= low) & (value <= high), "OverflowError", out_of_bounds(kind), value)
    return value


def stored(value, kind):
    """A number of the user's as an element of a dtype: what an integer dtype cannot hold is refused as by a store."""
    return load(as_array([value], kind), 0)


@static
def out_of_bounds(kind):
    return f"Python integer {{0}} out of bounds for {kind}"


@static
def integer_limits(kind):
    """The limits of an integer dtype, as far as int64 goes."""
    limits = np.iinfo(kind)
    return max(int(limits.min), -(2**63)), min(int(limits.max), 2**63 - 1)


@static
def one_mode(mode):
    """What is done with indices out of range."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    return mode


def expanded(value, shape):
    """An array or scalar as a view of a shape."""
    return broadcast_view(as_array(value), shape)


def mapped(function, value):
    """A function of scalars over an array, the results in C order, or of a scalar."""
    if is_array(value) and value.ndim > 0:
        return generate(value.shape, lambda *place: function(load(value, *place)))
    return function(value[()] if is_array(value) else value)


def in_order(value):
    """An array in C order, the same one if it is already."""
    return copy(value, "C") if is_array(value) and layout_of(value) != "C" else value


def converted(value, kind):
    """An array or scalar in a dtype; what has it already stays as it is."""
    if dtype_of(value) == kind and (is_array(value) or not is_weak(value)):
        return value
    return cast(value, kind)
