"""Putting arrays together and taking them apart: concatenate and stack, split, repeat, tile, roll."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from parakeet_py.library.arrays.shape import atleast_1d, atleast_2d, positions, ravel, three_or_more
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    as_numeric,
    assign,
    broadcast_view,
    check,
    copy,
    dtype_of,
    extent_is_one,
    generate,
    hand_back,
    has_known_length,
    is_array,
    is_known,
    is_sequence,
    load,
    may_overlap,
    on_device,
    order_of,
    permute,
    reshape,
    unsupported,
)
from parakeet_py.library.reductions.searching import insertion_point
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.shared import (
    ALL,
    NO_VALUE,
    into,
    inverse_axes,
    kind_of,
    must_be_array,
    must_be_int,
    result_kind,
    single_axis,
)

MANY = 9  # repeats that are stored in a loop of their own, where their number is not known before


@static
def joined_kind(dtype, casting, *kinds):
    """The dtype of arrays put together; a Python scalar among them is weak."""
    found = result_kind(*kinds) if dtype is None else np.dtype(dtype)
    for kind in kinds:
        if isinstance(kind, np.dtype) and not np.can_cast(kind, found, casting):
            raise TypeError(f"Cannot cast array data from {kind!r} to {found!r} according to the rule {casting!r}")
    return found


@static
def joined_axis(axis, ranks):
    """The normalized axis along which arrays are put together."""
    if not ranks:
        raise ValueError("need at least one array to concatenate")
    if ranks[0] == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    if len(set(ranks)) != 1:
        raise ValueError("all the input arrays must have same number of dimensions")
    return normalize_axis_index(axis, ranks[0])


@static
def mismatch_message(axis, position):
    return (
        "all the input array dimensions except for the concatenation axis must match exactly, but along dimension "
        f"{axis}, the array at index 0 has size {{0}} and the array at index {position} has size {{1}}"
    )


@static
def other_positions(rank, axis):
    return tuple(own for own in range(rank) if own != axis)


def items_of(arrays):
    if not is_sequence(arrays):
        hand_back("a sequence of arrays whose length is not known")
    return tuple([as_array(a) for a in tuple(arrays)])


@static
def front_to(axis, rank):
    """The axes of an array whose first one becomes the one at `axis`."""
    return (*range(1, axis + 1), 0, *range(axis + 1, rank))


def rows_of(arrays, what="concatenate"):
    """The arrays of a sequence of unknown length, as one array."""
    rows = as_array(arrays)
    if rows.ndim == 0:
        hand_back("a sequence of arrays that is none")
    if rows.ndim > 2 and order_of(rows) != positions(rows.ndim):
        hand_back("arrays that are not in C order, put together")
    check(rows.shape[0] > 0, "ValueError", f"need at least one array to {what}")
    return rows


def stacked_rows(rows, axis, kind):
    """The rows of an array along a new axis at another place."""
    moved = permute(rows, front_to(axis, rows.ndim))
    made = allocate(moved.shape, kind)
    assign(made, moved)
    return made


def joined_rows(rows, axis, dtype=None, casting="same_kind"):
    """The rows of an array one after the other, along an axis of theirs."""
    kind = joined_kind(dtype, casting, dtype_of(rows))
    if axis is None:
        return ravel(stacked_rows(rows, 0, kind))
    axis = joined_axis(axis, (rows.ndim - 1,))
    made = stacked_rows(rows, axis, kind)
    shape = made.shape
    return reshape(made, shape[:axis] + (shape[axis] * shape[axis + 1],) + shape[axis + 2 :])


def must_be_apart(out, arrays):
    """NumPy puts one array after the other in the output, and sees what it has put there before."""
    for a in arrays:
        if out is not None and may_overlap(out, a):
            hand_back("arrays put together in memory of their own")


@implements(np.concatenate, np.concat)
def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    if out is None and not has_known_length(arrays):
        return joined_rows(rows_of(arrays), axis, dtype, casting)
    given, arrays = arrays, items_of(arrays)
    kinds = tuple([dtype_of(a) for a in arrays])
    if axis is None:
        kinds = tuple([kind_of(as_numeric(a)) for a in given])
        arrays = tuple([ravel(a) for a in arrays])
        axis = 0
    axis = joined_axis(axis, tuple([a.ndim for a in arrays]))
    must_be_apart(out, arrays)
    kind = joined_kind(dtype, casting, *kinds)
    first = arrays[0]
    total = 0
    for position, a in enumerate(arrays):
        for own in other_positions(first.ndim, axis):
            check(
                first.shape[own] == a.shape[own],
                "ValueError",
                mismatch_message(own, position),
                first.shape[own],
                a.shape[own],
            )
        total = total + a.shape[axis]
    made = allocate(first.shape[:axis] + (total,) + first.shape[axis + 1 :], kind, order_of(*arrays))
    start = 0
    for a in arrays:
        stop = start + a.shape[axis]
        assign(made[(ALL,) * axis + (slice(start, stop),)], a)
        start = stop
    return made if out is None else into(out, made, casting, "Output array is the wrong shape")


@static
def stack_axis(axis, rank):
    return normalize_axis_index(axis, rank + 1)


@implements(np.stack)
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    if out is None and not has_known_length(arrays):
        rows = rows_of(arrays, "stack")
        return stacked_rows(rows, stack_axis(axis, rows.ndim - 1), joined_kind(dtype, casting, dtype_of(rows)))
    arrays = items_of(arrays)
    if len(arrays) == 0:
        unsupported("need at least one array to stack")
    first = arrays[0]
    kind = joined_kind(dtype, casting, *[dtype_of(a) for a in arrays])
    axis = stack_axis(axis, first.ndim)
    must_be_apart(out, arrays)
    for a in arrays:
        if a.ndim != first.ndim:
            unsupported("all input arrays must have the same shape")
        for own in positions(first.ndim):
            check(first.shape[own] == a.shape[own], "ValueError", "all input arrays must have the same shape")
    order = order_of(*[a[(ALL,) * axis + (None,)] for a in arrays])
    made = allocate(first.shape[:axis] + (len(arrays),) + first.shape[axis:], kind, order)
    for position, a in enumerate(arrays):
        assign(made[(ALL,) * axis + (position, Ellipsis)], a)
    return made if out is None else into(out, made, casting, "Output array is the wrong shape")


@implements(np.vstack)
def vstack(tup, *, dtype=None, casting="same_kind"):
    if not has_known_length(tup):
        rows = rows_of(tup)
        if rows.ndim == 1:
            rows = rows[:, None]
        return joined_rows(rows[:, None] if rows.ndim == 2 else rows, 0, dtype, casting)
    return concatenate([atleast_2d(a) for a in items_of(tup)], 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup, *, dtype=None, casting="same_kind"):
    if not has_known_length(tup):
        rows = rows_of(tup)
        return joined_rows(rows[:, None] if rows.ndim == 1 else rows, 0 if rows.ndim <= 2 else 1, dtype, casting)
    arrays = tuple([atleast_1d(a) for a in items_of(tup)])
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup):
    if not has_known_length(tup):
        rows = rows_of(tup)
        return joined_rows(rows[(ALL,) + three_or_more(rows.ndim - 1)], 2)
    return concatenate([a[three_or_more(a.ndim)] for a in items_of(tup)], 2)


@implements(np.column_stack)
def column_stack(tup):
    if not has_known_length(tup):
        rows = rows_of(tup)
        if rows.ndim == 1:
            rows = rows[:, None]
        return joined_rows(rows[:, :, None] if rows.ndim == 2 else rows, 1)
    return concatenate([as_column(a) for a in items_of(tup)], 1)


def as_column(a):
    if a.ndim == 0:
        return a[None, None]
    return a[:, None] if a.ndim == 1 else a


@implements(np.append)
def append(arr, values, axis=None):
    return concatenate((as_array(arr), as_array(values)), axis)


# ---- taking apart ----------------------------------------------------------------------------------------------------


@static
def section_axis(axis, rank):
    return normalize_axis_index(axis, rank)


def sections(a, bounds, axis):
    return [a[(ALL,) * axis + (slice(start, stop),)] for start, stop in zip(bounds[:-1], bounds[1:])]


@implements(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    a = as_array(ary)
    axis = section_axis(axis, a.ndim)
    extent = a.shape[axis]
    if is_sequence(indices_or_sections):
        return sections(a, (0, *indices_or_sections, extent), axis)
    if is_array(indices_or_sections):
        hand_back("a split at positions in an array")
    count = static_count(indices_or_sections)
    size = extent // count
    extras = extent % count
    return sections(a, tuple([k * size + min(k, extras) for k in positions(count + 1)]), axis)


@static
def static_count(count):
    if not isinstance(count, int | np.integer):
        raise TypeError("sections that are no int")
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    return int(count)


@implements(np.split)
def split(ary, indices_or_sections, axis=0):
    a = as_array(ary)
    if not is_sequence(indices_or_sections):
        must_be_array(ary)
        divides = a.shape[section_axis(axis, a.ndim)] % static_count(indices_or_sections) == 0
        check(divides, "ValueError", "array split does not result in an equal division")
    return array_split(a, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary, indices_or_sections):
    must_be_array(ary)
    a = as_array(ary)
    if a.ndim == 0:
        unsupported("hsplit only works on arrays of 1 or more dimensions")
    return split(a, indices_or_sections, 1 if a.ndim > 1 else 0)


@implements(np.vsplit)
def vsplit(ary, indices_or_sections):
    must_be_array(ary)
    a = as_array(ary)
    if a.ndim < 2:
        unsupported("vsplit only works on arrays of 2 or more dimensions")
    return split(a, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary, indices_or_sections):
    must_be_array(ary)
    a = as_array(ary)
    if a.ndim < 3:
        unsupported("dsplit only works on arrays of 3 or more dimensions")
    return split(a, indices_or_sections, 2)


FEW = 8  # repeats of an element stored at once

# ---- repetition ------------------------------------------------------------------------------------------------------


@implements(np.repeat)
@method("repeat")
def repeat(a, repeats, axis=None):
    a = as_array(a)
    repeats = repeats if not is_sequence(repeats) or len(repeats) != 1 else repeats[0]
    if axis is None or a.ndim == 0:
        a = ravel(a)
        axis = 0 if axis is None else axis
    axis = single_axis(axis, a.ndim)
    if is_array(repeats):
        must_be_safe_counts(repeats)
    if is_sequence(repeats) or (is_array(repeats) and repeats.ndim > 0):
        return repeated_each(a, as_array(repeats), axis)
    if dtype_of(repeats).kind == "f":
        check(abs(repeats) < 2.0**62, "Deoptimize", "np.repeat as often as no integer can say")
    count = int(repeats)
    check(count * a.shape[axis] >= 0, "ValueError", "negative dimensions are not allowed")
    before, extent, behind = a.shape[:axis], a.shape[axis], a.shape[axis + 1 :]
    shape = before + (extent * count,) + behind
    if a.ndim > 1 and extent_is_one(a, axis):
        return generate(shape, lambda *i: load(a, *i[:axis], 0, *i[axis + 1 :]))
    if on_device():
        return generate(shape, lambda *i: load(a, *i[:axis], i[axis] // count, *i[axis + 1 :]))
    places = allocate(shape, dtype_of(a))
    if not is_known(count) and a.ndim == 1 and count < MANY:
        one_by_one(a, generate((1,), lambda k: count), places, extent, True)
        return places
    once = axis + 1
    apart = (*before, extent, max(count, 0), *behind)
    assign(reshape(places, apart), generate(apart, lambda *i: load(a, *i[:once], *i[once + 1 :])))
    return places


def repeated_at(a, ends, j, line):
    """The element that comes to a place, or its number; `ends` are the ends of all."""
    k = insertion_point(lambda i: load(ends, i), ends.shape[0], j, False)
    return load(a, k) if line else k


def one_by_one(a, repeats, places, extent, line):
    """Store the repeats of one element after the other, or their numbers."""
    total, own = places.shape[0], repeats.shape[0]
    stop = 0
    for k in range(extent):
        start = stop
        stop += int(load(repeats, min(k, own - 1)))
        value = load(a, k) if line else k
        if 0 <= start and start + FEW <= total:  # few are stored in one go, whether wanted or overwritten by the next
            for j in positions(FEW):
                places[start + j] = value
            start += FEW
        if 0 <= start < stop <= total:
            for place in range(start, stop):
                places[place] = value


def must_be_safe_counts(repeats):
    """Arrays of counts are cast safely, those without axes too; scalars are not."""
    if dtype_of(repeats).kind not in "iub" or dtype_of(repeats) == np.uint64:
        hand_back("repeats that are not integers")


def repeated_each(a, repeats, axis):
    """Repeats that differ from element to element."""
    if repeats.ndim != 1:
        unsupported("object too deep for desired array")
    must_be_safe_counts(repeats)
    extent, own = a.shape[axis], repeats.shape[0]
    message = "operands could not be broadcast together with shape ({0},) ({1},)"
    check((own == extent) | (own == 1), "ValueError", message, extent, own)
    negative = np.any(repeats < 0) & ((own != 1) | (extent > 0))
    check(~(negative & (own == 1)), "ValueError", "negative dimensions are not allowed")
    check(~negative, "ValueError", "repeats may not contain negative values.")
    total = int(np.sum(repeats, dtype=np.int64)) * (extent if own == 1 else 1)
    line = a.ndim == 1
    places = allocate((total,), dtype_of(a) if line else "int64")
    if on_device():
        ends = np.cumsum(generate((extent,), lambda k: int(load(repeats, min(k, own - 1)))))
        assign(places, generate(places.shape, lambda j: repeated_at(a, ends, j, line)))
    else:
        one_by_one(a, repeats, places, extent, line)
    if line:
        return places
    shape = a.shape[:axis] + (total,) + a.shape[axis + 1 :]
    return generate(shape, lambda *i: load(a, *i[:axis], int(load(places, i[axis])), *i[axis + 1 :]))


@static
def tile_index(rank, wanted):
    return (None,) * max(0, wanted - rank) + (Ellipsis,)


@implements(np.tile)
def tile(A, reps):
    a = as_array(A)
    reps = tuple(reps) if is_sequence(reps) else (reps,)
    if len(reps) < a.ndim:
        reps = (1,) * (a.ndim - len(reps)) + reps
    if len(reps) > a.ndim:
        a = a[tile_index(a.ndim, len(reps))]
    if a.ndim == 0:
        return copy(a)
    index, spread, shape = (), (), ()
    for extent, count in zip(a.shape, reps):
        must_be_int(count)
        check(count >= 0, "ValueError", "negative dimensions are not allowed")
        index, spread, shape = (*index, None, ALL), (*spread, count, extent), (*shape, count * extent)
    return reshape(copy(broadcast_view(a[index], spread), "C"), shape)


# ---- roll ------------------------------------------------------------------------------------------------------------


@static
def roll_axes(axis, rank, shifts):
    """(axis, which shift) of each shift, axes normalized."""
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,) * shifts
    if len(axes) != shifts and shifts != 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    return tuple((normalize_axis_index(own, rank), 0 if shifts == 1 else n) for n, own in enumerate(axes))


@implements(np.roll)
def roll(a, shift, axis=None):
    a = as_array(a)
    if axis is None:
        if is_sequence(shift):
            hand_back("a roll of flattened data by several shifts")
        flat = roll(ravel(a), shift, 0)
        return flat if a.ndim == 1 else flat.reshape(a.shape)
    shifts = tuple(shift) if is_sequence(shift) else (shift,)
    totals = list((0,) * a.ndim)
    for own, which in roll_axes(axis, a.ndim, len(shifts)):
        totals = totals[:own] + [totals[own] + int(shifts[which])] + totals[own + 1 :]
    offsets = [offset_of(total, extent) for total, extent in zip(totals, a.shape)]
    axes = order_of(a) if a.ndim > 1 else (0,)
    return permute(shifted(permute(a, axes), [offsets[axis] for axis in axes]), inverse_axes(axes))


def shifted(a, offsets):
    extents = a.shape
    return generate(extents, lambda *i: load(a, *[rolled(j, offset, n) for j, offset, n in zip(i, offsets, extents)]))


def offset_of(total, extent):
    """How far back an element of a rolled axis comes from, at least 0 and less than the extent."""
    return 0 if is_known(total) and total == 0 else total % max(extent, 1)


def rolled(index, offset, extent):
    if is_known(offset) and offset == 0:
        return index
    source = index - offset
    return source if source >= 0 else source + extent


__all__ = ["NO_VALUE"]
