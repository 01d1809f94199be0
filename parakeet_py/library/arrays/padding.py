"""np.pad: constants, ramps, statistics and repetitions of an array around it.

One axis after another, as in NumPy: an axis is padded for all of those before it, and only along the array itself for
those after it, so that corners get what the last axis puts there.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import positions
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    assign,
    cast,
    check,
    dtype_of,
    generate,
    hand_back,
    is_array,
    is_sequence,
    layout_of,
    python_scalar,
    unsupported,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import ALL, NO_VALUE, must_be_int, stored


def pair_of(given, axis):
    """What an argument says of both ends of one axis."""
    if not is_sequence(given):
        return given, given
    own = given[axis] if len(given) > 1 and is_sequence(given[0]) else given
    own = own[0] if is_sequence(own[0]) else own
    return (own[0], own[0]) if len(own) == 1 else (own[0], own[1])


def source_of(index, before, extent, mode):
    """Where an element of a padded axis comes from."""
    place = index - before
    if mode == "edge":
        return min(max(place, 0), extent - 1)
    if mode == "wrap":
        return place % extent
    if mode == "symmetric":
        place = place % (2 * extent)
        return place if place < extent else 2 * extent - 1 - place
    place = place % max(2 * (extent - 1), 1)
    return place if place < extent else 2 * (extent - 1) - place


@static
def empty_axis(axis):
    return f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"


OPTIONS = {"constant": "constant_values", "linear_ramp": "end_values", "reflect": "reflect_type"}
OPTIONS |= {"symmetric": "reflect_type"} | dict.fromkeys(("maximum", "minimum", "mean", "median"), "stat_length")


@static
def check_options(mode, *given):
    """Which keyword arguments a mode takes; `given` are the names of those that are there."""
    if mode not in (*OPTIONS, "empty", "edge", "wrap"):
        raise ValueError(f"mode '{mode}' is not supported")
    if any(name != OPTIONS.get(mode) for name in given):
        raise ValueError(f"unsupported keyword arguments for mode '{mode}'")


@static
def names_of_given(*flags):
    names = ("constant_values", "end_values", "reflect_type", "stat_length")
    return tuple(name for name, flag in zip(names, flags, strict=True) if flag)


@implements(np.pad)
def pad(
    array,
    pad_width,
    mode="constant",
    *,
    constant_values=NO_VALUE,
    end_values=NO_VALUE,
    reflect_type=NO_VALUE,
    stat_length=NO_VALUE,
):
    a = as_array(array)
    if is_array(pad_width) or isinstance(pad_width, dict) or a.ndim == 0 or not isinstance(mode, str):
        hand_back("np.pad with these arguments")
    given = names_of_given(
        constant_values is not NO_VALUE,
        end_values is not NO_VALUE,
        reflect_type is not NO_VALUE,
        stat_length is not NO_VALUE,
    )
    check_options(mode, *given)
    values = constant_values if mode == "constant" else end_values if mode == "linear_ramp" else stat_length
    if is_array(values):
        hand_back("np.pad with values in an array")
    for pairs in (pad_width, values):
        if are_rows(pairs) and len(pairs) != a.ndim:
            unsupported("np.pad needs one pair, or one for each axis")
    widths = tuple([pair_of(pad_width, axis) for axis in positions(a.ndim)])
    for before, after in widths:
        must_be_int(before)
        must_be_int(after)
        if dtype_of(before).kind == "b" or dtype_of(after).kind == "b":
            hand_back("np.pad by a bool")
        check((before >= 0) & (after >= 0), "ValueError", "index can't contain negative values")
    shape = tuple([before + extent + after for (before, after), extent in zip(widths, a.shape)])
    inner = tuple([slice(before, before + extent) for (before, _), extent in zip(widths, a.shape)])
    made = allocate(shape, dtype_of(a), "F" if layout_of(a) == "F" else "C")
    assign(made[inner], a)
    if mode == "empty":
        return made
    if mode != "constant":
        for axis, (before, after) in enumerate(widths):
            check((a.shape[axis] > 0) | (before + after == 0), "ValueError", empty_axis(axis))
        if a.size == 0:
            return made
    for axis, (before, after) in enumerate(widths):
        region = made[(*(ALL,) * (axis + 1), *inner[axis + 1 :])]
        extent = a.shape[axis]
        if mode == "constant":
            first, last = pair_of(0 if values is NO_VALUE else values, axis)
            rows, kind = are_rows(values), dtype_of(a)
            set_ends(region, axis, before, extent, constant_of(first, kind, rows), constant_of(last, kind, rows))
        elif mode == "linear_ramp":
            first, last = pair_of(0 if values is NO_VALUE else values, axis)
            ramps(region, axis, before, extent, after, first, last)
        elif mode in ("maximum", "minimum", "mean", "median"):
            lengths = pair_of(None if values is NO_VALUE else values, axis)
            statistics(region, axis, before, extent, lengths, mode)
        elif reflect_type == "odd":
            if extent == 1:
                fill_ends(region, axis, before, extent, after, "edge")
            else:
                reflect_odd(region, axis, before, after, extent, mode == "symmetric")
        else:
            fill_ends(region, axis, before, extent, after, mode)
    return made


def constant_of(value, kind, rows):
    """A constant as NumPy stores it: unsigned integers wrap around, unless each axis has a pair of its own."""
    if rows:
        return stored(python_scalar(value), kind)
    return stored(value, kind) if kind.kind == "i" else cast(value, dtype_of(value))


def are_rows(values):
    """Whether each axis has constants of its own."""
    return is_sequence(values) and len(values) > 1 and is_sequence(values[0])


def along(axis, start, stop):
    return (*(ALL,) * axis, slice(start, stop))


def set_ends(region, axis, before, extent, first, last):
    assign(region[along(axis, 0, before)], first)
    assign(region[along(axis, before + extent, None)], last)


def ramps(region, axis, before, extent, after, first, last):
    """From values at the ends to the edges of the array, in steps of equal size."""
    kind = dtype_of(region)
    left, right = region[(*(ALL,) * axis, before)], region[(*(ALL,) * axis, before + extent - 1)]
    assign(region[along(axis, 0, before)], np.linspace(first, left, before, endpoint=False, dtype=kind, axis=axis))
    ramp = np.linspace(last, right, after, endpoint=False, dtype=kind, axis=axis)
    assign(region[along(axis, before + extent, None)], np.flip(ramp, axis))


def statistics(region, axis, before, extent, lengths, mode):
    """Both ends filled with a statistic of the elements next to them."""
    first, last = [extent if length is None else min(length, extent) for length in lengths]
    if mode == "maximum" or mode == "minimum":
        check((first > 0) & (last > 0), "ValueError", "stat_length of 0 yields no value for padding")
    left = statistic(region[along(axis, before, before + first)], axis, mode)
    if lengths[0] is None and lengths[1] is None:
        set_ends(region, axis, before, extent, left, left)
    else:
        right = statistic(region[along(axis, before + extent - last, before + extent)], axis, mode)
        set_ends(region, axis, before, extent, left, right)


def statistic(part, axis, mode):
    if mode == "maximum":
        return part.max(axis, keepdims=True)
    if mode == "minimum":
        return part.min(axis, keepdims=True)
    found = part.mean(axis, keepdims=True) if mode == "mean" else np.median(part, axis, keepdims=True)
    return np.rint(found) if dtype_of(part).kind in "iu" else found


def reflect_odd(region, axis, left, right, period, with_edge):
    """Reflections about the edges, turned upside down there: chunk by chunk until both ends are full."""
    size = region.shape[axis]
    while left > 0 or right > 0:
        length = size - left - right
        if with_edge:
            offset, length = 1, length // period * period
        else:
            offset, length = 0, (length - 1) // (period - 1) * (period - 1)
        if left > 0:
            count = min(length, left)
            start = left - offset + 1
            chunk = np.flip(region[along(axis, start, start + count)], axis)
            edge = region[along(axis, left, left + 1)]
            assign(region[along(axis, left - count, left)], 2 * edge - chunk)
            left = left - count
        if right > 0:
            count = min(length, right)
            stop = size - right + offset - 1
            chunk = np.flip(region[along(axis, stop - count, stop)], axis)
            edge = region[along(axis, size - right - 1, size - right)]
            assign(region[along(axis, size - right, size - right + count)], 2 * edge - chunk)
            right = right - count


def fill_ends(made, axis, before, extent, after, mode):
    """Both ends of one axis of a padded array, from what is between them."""
    front = generate((before,), lambda i: before + source_of(i, before, extent, mode))
    back = generate((after,), lambda i: before + source_of(i + before + extent, before, extent, mode))
    whole = (ALL,) * axis
    assign(made[(*whole, slice(0, before))], made[(*whole, front)])
    assign(made[(*whole, slice(before + extent, None))], made[(*whole, back)])
