"""Membership: which elements of an array are among others.

A table lookup where integers lie close together, as in NumPy, else a binary search in what is sorted. Only where the
numbers are said to be different ones, and are not, an answer of NumPy's depends on the way it is found: by merging.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.joining import concatenate
from parakeet_py.library.arrays.shape import positions, ravel
from parakeet_py.library.intrinsics import (
    as_array,
    cast,
    check,
    constant,
    dtype_of,
    elementwise,
    generate,
    is_known,
    load,
    reduce_axes,
    reshape,
    scatter,
)
from parakeet_py.library.reductions.reductions import identity_of
from parakeet_py.library.reductions.searching import insertion_point
from parakeet_py.library.reductions.sorting import in_own_memory, less, places_in_order, sorted_line, taken
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import converted, mapped, result_kind

FEW = 8  # numbers that others are compared with one after the other, rather than looked up in a table
SOME = 64  # rather than searched


def latest(old, new):
    return new


@static
def checked_kind(kind, integers):
    """Which way to find members is asked for."""
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    if kind == "table" and not integers:
        raise ValueError("The 'table' method is only supported for boolean or integer arrays.")
    return kind


@static
def widest_range(kind):
    """The distance of two numbers up to which NumPy makes a table."""
    return int(np.iinfo("uint8" if kind.kind == "b" else kind).max)


def range_of(a):
    """The least and the greatest of some integers."""
    kind = dtype_of(a)
    return reduce_axes(
        a,
        (0,),
        (constant(identity_of(np.minimum, kind), kind), constant(identity_of(np.maximum, kind), kind)),
        lambda x, i: (x, x),
        lambda a, b, c, d: (np.minimum(a, c), np.maximum(b, d)),
    )


TOO_WIDE = (
    "You have specified kind='table', but the range of values in `ar2` or `ar1` exceed the maximum integer of the "
    "datatype. Please set `kind` to None or 'sort'."
)


def found_in_table(element, test, low, width):
    """Whether integers, of any shape, are among others that lie in a range. Distances are taken modulo 2**64."""
    table = np.zeros(width + 1, np.bool_)
    base, last = cast(low, "uint64"), cast(width, "uint64")
    scatter(table, elementwise(lambda x: cast(cast(x, "uint64") - base, "int64"), test), constant(True, "bool"), latest)

    def is_there(x):
        place = cast(x, "uint64") - base
        return load(table, int(place)) if place <= last else constant(False, "bool")

    return mapped(is_there, element)


def found_by_search(element, test):
    """Whether numbers are among others: a binary search in what is sorted."""
    kind = result_kind(dtype_of(element), dtype_of(test))
    ordered = sorted_line(in_own_memory(converted(test, kind)))
    count = ordered.shape[0]

    def is_there(x):
        x = cast(x, kind)
        place = lower_bound(ordered, count, x)
        return load(ordered, min(place, count - 1)) == x if count > 0 else constant(False, "bool")

    return mapped(is_there, element)


def equal_to_any(element, test):
    """Whether numbers are among a few others, compared with each of them."""
    kind = result_kind(dtype_of(element), dtype_of(test))
    tests = test.shape[0]
    if is_known(tests):

        def is_there(x):
            found = constant(False, "bool")
            for k in positions(tests):
                found = found | (cast(x, kind) == cast(load(test, k), kind))
            return found

        return mapped(is_there, element)
    found = as_array(mapped(lambda x: constant(False, "bool"), element))
    for k in range(tests):
        one = load(test, k)
        found |= element == one
    return found


def lower_bound(ordered, count, x):
    """The first place whose element does not come before a number."""
    if dtype_of(x).kind != "c":
        return insertion_point(lambda i: load(ordered, i), count, x, True)
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if less(load(ordered, middle), x):
            low = middle + 1
        else:
            high = middle
    return low


def found_by_merge(element, test, invert):
    """NumPy's answer where it takes all numbers for different ones: whether the next in order is equal."""
    both = concatenate((element, test))
    order = places_in_order(both, "stable")
    both = taken(both, order)
    last = both.shape[0] - 1

    def flag(k):
        same = load(both, k) == load(both, min(k + 1, last))
        return cast((~same if invert else same) if k < last else constant(invert, "bool"), "bool")

    found = np.zeros(both.shape, np.bool_)
    scatter(found, order, generate(both.shape, flag), latest)
    return found[: element.shape[0]]


@static
def exactly_compared(kind, other):
    """Whether a dtype that two are converted to distinguishes all of their numbers."""
    found = np.result_type(kind, other)
    return found.kind in "biu" or all(own.kind in "fc" or own.itemsize < found.itemsize for own in (kind, other))


@static
def both_integers(kind, other):
    return kind.kind in "biu" and other.kind in "biu"


def inverted(found, invert):
    return as_array(~found if invert else found)


def within_floats(a):
    """Whether float64 holds all of some integers."""
    return np.all((a <= 2**53) & (a >= -(2**53) if dtype_of(a).kind == "i" else a >= 0))


def as_int64(a):
    check(within_floats(a), "Deoptimize", "signed among unsigned integers, some of them large")
    return converted(a, "int64")


def membership(element, test, assume_unique, invert, kind):
    """Whether each element of an array is in a 1-D array."""
    integers = both_integers(dtype_of(element), dtype_of(test))
    kind = checked_kind(kind, integers)
    if integers and result_kind(dtype_of(element), dtype_of(test)).kind == "f":
        return membership(as_int64(element), as_int64(test), assume_unique, invert, kind)
    count, tests = element.size, test.shape[0]
    if kind != "table" and tests <= FEW:
        return inverted(equal_to_any(element, test), invert)
    if integers and kind != "sort":
        if kind == "table" and tests == 0:
            return as_array(mapped(lambda x: constant(invert, "bool"), element))
        low, high = range_of(test)
        width, limit = cast(high, "uint64") - cast(low, "uint64"), widest_range(dtype_of(test))
        if kind == "table":
            check(width <= limit, "RuntimeError", TOO_WIDE)
        if width <= limit and (kind == "table" or width <= 6 * (count + tests)):
            return inverted(found_in_table(element, test, low, int(width)), invert)
    if not exactly_compared(dtype_of(element), dtype_of(test)) and dtype_of(element).kind in "iu":
        check(within_floats(element), "Deoptimize", "integers that floats do not hold")
    few = tests < 10 * count**0.145
    if assume_unique and not few:
        return reshape(found_by_merge(ravel(element), test, invert), element.shape)
    if tests <= SOME:
        return inverted(equal_to_any(element, test), invert)
    return inverted(found_by_search(element, test), invert)


@implements(np.isin)
def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    return membership(as_array(element), ravel(as_array(test_elements)), assume_unique, bool(invert), kind)
