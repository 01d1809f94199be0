"""Convolution and correlation of sequences, polynomials, and sums written with indices (einsum)."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    as_numeric,
    assign,
    cast,
    check,
    constant,
    dtype_of,
    elementwise,
    generate,
    hand_back,
    is_array,
    layout_of,
    load,
    on_device,
    reduce_axes,
    unsupported,
)
from parakeet_py.library.reductions.reductions import accumulator_kind
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import result_kind

# ---- convolution -----------------------------------------------------------------------------------------------------


def convolved(a, v, count, first):
    """Elements first, first + 1, ... of the full convolution of two vectors, the first not shorter than the other."""
    kind = result_kind(dtype_of(a), dtype_of(v))
    length, width = a.shape[0], v.shape[0]
    low = min(max(width - 1 - first, 0), count)
    high = max(min(length - first, count), low)
    made = allocate((count,), kind)
    assign(made[:low], at_the_ends(a, v, low, first, kind))
    assign(made[low:high], in_the_middle(a, v, high - low, first + low, kind))
    assign(made[high:], at_the_ends(a, v, count - high, first + high, kind))
    return made


def in_the_middle(a, v, count, first, kind):
    """Elements to which all of the shorter vector contributes."""
    products = generate((count, v.shape[0]), lambda i, j: product_of(a, first + i - j, v, j, kind))
    return sum_along(products, 1, kind)


def at_the_ends(a, v, count, first, kind):
    length, width = a.shape[0], v.shape[0]

    def element(i):
        at = i + first
        low = max(0, at - length + 1)
        many = max(min(width, at + 1) - low, 0)
        return sum_along(generate((many,), lambda j: product_of(a, at - low - j, v, low + j, kind)), 0, kind)

    return generate((count,), element)


def product_of(a, i, v, j, kind):
    wide = accumulator_kind(np.add, kind)
    return np.multiply(cast(load(a, i), wide), cast(load(v, j), wide))


def sum_along(products, axis, kind):
    zero = constant(0, accumulator_kind(np.add, kind))
    (total,) = reduce_axes(products, (axis,), (zero,), lambda x, j: (x,), lambda s, x: (np.add(s, x),))
    return total


@static
def check_mode(mode):
    if mode not in ("valid", "same", "full"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")


def span(mode, long, short):
    """How many elements of the full convolution of two lengths a mode keeps, and the first of them."""
    check_mode(mode)
    if mode == "full":
        return long + short - 1, 0
    if mode == "valid":
        return long - short + 1, short - 1
    return long, (short - 1) // 2


def vector_of(a):
    a = as_array(a)
    if a.ndim > 1:
        unsupported("object too deep for desired array")
    return a[None] if a.ndim == 0 else a


def convolved_in_order(a, v, count, first):
    """The same for vectors of which either may be the longer one.

    What NumPy's products of complex numbers that are not finite add up to is BLAS's: whether it multiplies zeros too.
    """
    if result_kind(dtype_of(a), dtype_of(v)).kind == "c":
        finite = np.all(np.isfinite(a)) & np.all(np.isfinite(v))
        check(finite, "Deoptimize", "complex numbers in a convolution that are not finite")
    if dtype_of(a) == dtype_of(v) and layout_of(a) == layout_of(v):
        if a.shape[0] < v.shape[0]:
            a, v = v, a
        return convolved(a, v, count, first)
    return convolved(a, v, count, first) if a.shape[0] >= v.shape[0] else convolved(v, a, count, first)


@implements(np.convolve)
def convolve(a, v, mode="full"):
    a, v = vector_of(a), vector_of(v)
    check(a.shape[0] > 0, "ValueError", "a cannot be empty")
    check(v.shape[0] > 0, "ValueError", "v cannot be empty")
    long, short = max(a.shape[0], v.shape[0]), min(a.shape[0], v.shape[0])
    count, first = span(mode, long, short)
    return convolved_in_order(a, v, count, first)


@implements(np.correlate)
def correlate(a, v, mode="valid"):
    a, v = as_array(a), as_array(v)
    if a.ndim == 0 or v.ndim == 0:
        unsupported("object of too small depth for desired array")
    a, v = vector_of(a), vector_of(v)
    check(a.shape[0] > 0, "ValueError", "first array argument cannot be empty")
    check(v.shape[0] > 0, "ValueError", "second array argument cannot be empty")
    v = np.conjugate(v)[::-1] if dtype_of(v).kind == "c" else v[::-1]
    long, short = max(a.shape[0], v.shape[0]), min(a.shape[0], v.shape[0])
    count, first = span(mode, long, short)
    if mode == "same":
        first = short - 1 - first if a.shape[0] < v.shape[0] else first
    return convolved_in_order(a, v, count, first)


@implements(np.polyval)
def polyval(p, x):
    p, x = as_array(p), as_numeric(x)
    if p.ndim != 1:
        hand_back("np.polyval of polynomials with several axes")
    check(p.shape[0] > 0, "Deoptimize", "a polynomial without coefficients")
    kind = result_kind(dtype_of(p), dtype_of(x))

    def value(point):
        at = cast(point, kind)
        total = constant(0, kind)
        for i in range(p.shape[0]):
            total = np.add(np.multiply(total, at), cast(load(p, i), kind))
        return total

    if on_device() or not is_array(x) or x.ndim == 0:
        return elementwise(value, x)
    total, at = np.zeros_like(x, kind), cast(x, kind)
    for i in range(p.shape[0]):  # operators on the points: in vectors, tile by tile
        total = np.add(np.multiply(total, at), cast(load(p, i), kind))
    return total
