"""Polynomials given by their coefficients, the highest power first; powers side by side (vander)."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import atleast_1d
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    cast,
    check,
    constant,
    dtype_of,
    hand_back,
    is_array,
    is_known,
    unsupported,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import converted, must_be_int, result_kind


def combined(ufunc, a1, a2):
    """Two polynomials added or subtracted: where only one has coefficients, the other's are zero."""
    a, b = atleast_1d(as_array(a1)), atleast_1d(as_array(a2))
    if a.ndim != 1 or b.ndim != 1:
        hand_back("polynomials with several axes")
    left, right = a.shape[0], b.shape[0]
    short = min(left, right)
    alone = max(left, right) - short
    made = allocate((short + alone,), result_kind(dtype_of(a), dtype_of(b)))
    if left > right:
        made[:alone] = ufunc(a[:alone], constant(0, dtype_of(b)))
    else:
        made[:alone] = ufunc(constant(0, dtype_of(a)), b[:alone])
    made[alone:] = ufunc(a[left - short :], b[right - short :])
    return made


@implements(np.polyadd)
def polyadd(a1, a2):
    return combined(np.add, a1, a2)


@implements(np.polysub)
def polysub(a1, a2):
    return combined(np.subtract, a1, a2)


def without_leading_zeros(c):
    """The coefficients from the first that is not zero; one zero if there is none."""
    c = atleast_1d(as_array(c))
    if c.ndim > 1:
        unsupported("Polynomial must be 1d only.")
    length = c.shape[0]
    check(length > 0, "Deoptimize", "a polynomial without coefficients")
    first = 0
    while first < length - 1 and c[first] == 0:
        first += 1
    return c[first:]


@implements(np.polymul)
def polymul(a1, a2):
    return np.convolve(without_leading_zeros(a1), without_leading_zeros(a2))


@implements(np.polydiv)
def polydiv(u, v):
    u, v = atleast_1d(as_array(u)) + 0.0, atleast_1d(as_array(v)) + 0.0
    if u.ndim != 1 or v.ndim != 1:
        hand_back("polynomials with several axes")
    check(u.shape[0] > 0, "IndexError", "index 0 is out of bounds for axis 0 with size 0")
    kind = result_kind(dtype_of(u), dtype_of(v))
    scale = 1.0 / v[0]
    m, n = u.shape[0] - 1, v.shape[0] - 1
    q = np.zeros((max(m - n + 1, 1),), kind)
    r = cast(u, kind)
    for k in range(m - n + 1):
        d = scale * r[k]
        q[k] = d
        r[k : k + n + 1] -= d * v
    first = 0
    while first < m and np.allclose(r[first], 0, rtol=1e-14):
        first += 1
    return q, r[first:]


def known_order(m):
    """How often to derive or integrate."""
    if not is_known(m):
        hand_back("an order that is not known when compiling")
    if m < 0:
        unsupported("an order that is negative")
    return int(m)


@implements(np.polyder)
def polyder(p, m=1):
    p = as_array(p)
    if p.ndim != 1:
        hand_back("polynomials with several axes")
    if known_order(m) == 0:
        return p
    degree = p.shape[0] - 1
    return polyder(p[:-1] * np.arange(degree, 0, -1), m - 1)


@implements(np.polyint)
def polyint(p, m=1, k=None):
    p = as_array(p)
    if p.ndim != 1:
        hand_back("polynomials with several axes")
    count = known_order(m)
    if count == 0:
        return p
    constants = np.zeros((count,)) if k is None else atleast_1d(as_array(k))
    if k is not None and count > 1 and (not is_array(as_array(k)) or as_array(k).ndim == 0):
        constants = constants[0] * np.ones((count,))
    elif k is not None and count > 1:
        check(constants.shape[0] != 1, "Deoptimize", "one constant for several integrals")
    message = "k must be a scalar or a rank-1 array of length 1 or >m."
    check(constants.shape[0] >= count, "ValueError", message)
    return integrated(p, count, constants, 0)


def integrated(p, count, constants, at):
    """The integral, `count` times, with constants from `at` on."""
    if count == 0:
        return p
    terms = p / np.arange(p.shape[0], 0, -1)
    return integrated(np.concatenate((terms, constants[at : at + 1])), count - 1, constants, at + 1)


@static
def coefficient_kind(kind):
    """The dtype of the coefficients of a polynomial with such zeros."""
    return np.dtype(np.mintypecode(kind.char))


@implements(np.poly)
def poly(seq_of_zeros):
    zeros = atleast_1d(as_array(seq_of_zeros))
    if zeros.ndim != 1:
        hand_back("the characteristic polynomial of a matrix")
    kind = coefficient_kind(dtype_of(zeros))
    if kind.kind == "c":
        hand_back("a polynomial with complex zeros")  # its coefficients are real if they come in pairs
    count = zeros.shape[0]
    check(count > 0, "Deoptimize", "the polynomial without zeros is the number 1")
    zeros = converted(zeros, kind)
    made = np.zeros((count + 1,), kind)
    made[0] = 1
    for k in range(count):
        zero = -zeros[k]
        for j in range(k + 1, 0, -1):
            made[j] = made[j] + zero * made[j - 1]
    return made


@static
def kind_of_powers(kind):
    return np.promote_types(kind, int)


@implements(np.vander)
def vander(x, N=None, increasing=False):
    x = as_array(x)
    if x.ndim != 1:
        unsupported("x must be a one-dimensional array or sequence.")
    count = x.shape[0] if N is None else N
    must_be_int(count)
    made = np.ones((x.shape[0], count), kind_of_powers(dtype_of(x)))
    columns = made if increasing else made[:, ::-1]
    rest = columns[:, 1:]
    bases = np.broadcast_to(converted(x, dtype_of(made))[:, None], rest.shape)
    rest[...] = np.multiply.accumulate(bases, axis=1)
    return made


# ---- fitting ---------------------------------------------------------------------------------------------------------


@static
def precision_of(kind):
    return np.finfo(kind).eps


def weighted(values, w):
    return np.multiply(values, w[:, None]) if values.ndim == 2 else np.multiply(values, w)


@implements(np.polyfit)
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """Least squares over the powers of x, each scaled to length 1, as NumPy does it."""
    x, y, order = np.add(as_array(x), 0.0), np.add(as_array(y), 0.0), int(deg) + 1
    check(order > 0, "ValueError", "expected deg >= 0")
    if x.ndim != 1:
        unsupported("expected 1D vector for x")
    check(x.size > 0, "TypeError", "expected non-empty vector for x")
    if y.ndim < 1 or y.ndim > 2:
        unsupported("expected 1D or 2D array for y")
    check(x.shape[0] == y.shape[0], "TypeError", "expected x and y to have same length")
    if rcond is None:
        rcond = np.multiply(x.shape[0], constant(precision_of(dtype_of(x)), dtype_of(x)))
    powers = np.vander(x, order)
    if w is not None:
        w = np.add(as_array(w), 0.0)
        if w.ndim != 1:
            unsupported("expected a 1-d array for weights")
        check(w.shape[0] == y.shape[0], "TypeError", "expected w and y to have the same length")
        powers, y = converted(weighted(powers, w), dtype_of(powers)), converted(weighted(y, w), dtype_of(y))
    scale = np.sqrt((powers * powers).sum(axis=0))
    powers = powers / scale
    c, residuals, rank, s = np.linalg.lstsq(powers, y, rcond)
    c = (c.T / scale).T
    if full:
        return c, residuals, rank, s, rcond
    check(rank == order, "Deoptimize", "a fit that NumPy warns of")
    if not cov:
        return c
    base = np.linalg.inv(np.dot(powers.T, powers))
    base = base / np.outer(scale, scale)
    if not (isinstance(cov, str) and cov == "unscaled"):
        message = "the number of data points must exceed order to scale the covariance matrix"
        check(x.shape[0] > order, "ValueError", message)
        return c, (base * (residuals / (x.shape[0] - order)) if y.ndim == 1 else several(base, residuals, x, order))
    return c, base if y.ndim == 1 else base[:, :, None]


def several(base, residuals, x, order):
    """The covariances of the coefficients of several fits."""
    return base[:, :, None] * (residuals / (x.shape[0] - order))
