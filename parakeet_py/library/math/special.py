"""The modified Bessel function of order zero, phases without jumps, equivalence of arrays."""

from __future__ import annotations

import math

import numpy as np

from parakeet_py.library.intrinsics import (
    as_array,
    as_numeric,
    cast,
    dtype_of,
    elementwise,
    hand_back,
    unsupported,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import kind_of, result_kind, single_axis

# The Chebyshev coefficients of exp(-x) I0(x), the highest first, as in Cephes and NumPy.
SMALL = (  # of x / 2 - 2, for 0 <= x <= 8
    -4.4153416464793395e-18,
    3.3307945188222384e-17,
    -2.431279846547955e-16,
    1.715391285555133e-15,
    -1.1685332877993451e-14,
    7.676185498604936e-14,
    -4.856446783111929e-13,
    2.95505266312964e-12,
    -1.726826291441556e-11,
    9.675809035373237e-11,
    -5.189795601635263e-10,
    2.6598237246823866e-09,
    -1.300025009986248e-08,
    6.046995022541919e-08,
    -2.670793853940612e-07,
    1.1173875391201037e-06,
    -4.4167383584587505e-06,
    1.6448448070728896e-05,
    -5.754195010082104e-05,
    0.00018850288509584165,
    -0.0005763755745385824,
    0.0016394756169413357,
    -0.004324309995050576,
    0.010546460394594998,
    -0.02373741480589947,
    0.04930528423967071,
    -0.09490109704804764,
    0.17162090152220877,
    -0.3046826723431984,
    0.6767952744094761,
)
LARGE = (  # of 32 / x - 2, times sqrt(x), for x > 8
    -7.233180487874754e-18,
    -4.830504485944182e-18,
    4.46562142029676e-17,
    3.461222867697461e-17,
    -2.8276239805165836e-16,
    -3.425485619677219e-16,
    1.7725601330565263e-15,
    3.8116806693526224e-15,
    -9.554846698828307e-15,
    -4.150569347287222e-14,
    1.54008621752141e-14,
    3.8527783827421426e-13,
    7.180124451383666e-13,
    -1.7941785315068062e-12,
    -1.3215811840447713e-11,
    -3.1499165279632416e-11,
    1.1889147107846439e-11,
    4.94060238822497e-10,
    3.3962320257083865e-09,
    2.266668990498178e-08,
    2.0489185894690638e-07,
    2.8913705208347567e-06,
    6.889758346916825e-05,
    0.0033691164782556943,
    0.8044904110141088,
)


def chebyshev(x, coefficients):
    """The value of a Chebyshev series by Clenshaw's recurrence."""
    b0, b1, b2 = coefficients[0], 0.0, 0.0
    for coefficient in coefficients[1:]:
        b0, b1, b2 = x * b0 - b1 + coefficient, b0, b1
    return 0.5 * (b0 - b2)


def bessel(x):
    if x <= 8.0:
        return np.exp(x) * chebyshev(x / 2.0 - 2.0, SMALL)
    return np.exp(x) * chebyshev(32.0 / x - 2.0, LARGE) / np.sqrt(x)


@implements(np.i0)
def i0(x):
    x = as_array(x)
    kind = dtype_of(x)
    if kind.kind == "c":
        unsupported("i0 not supported for complex values")
    x = x if kind.kind == "f" else cast(x, "float64")
    return as_array(elementwise(lambda v: cast(bessel(np.abs(v)), dtype_of(v)), x))


# ---- phases ----------------------------------------------------------------------------------------------------------

TURN = 2 * math.pi


@implements(np.unwrap)
def unwrap(p, discont=None, axis=-1, *, period=TURN):
    p = as_array(p)
    axis = single_axis(axis, p.ndim)
    gaps = np.diff(p, axis=axis)
    least = period / 2 if discont is None else discont
    kind = result_kind(dtype_of(gaps), kind_of(as_numeric(period)))
    if kind.kind in "iu":
        high, rest = divmod(period, 2)
        ambiguous = rest == 0
    else:
        high, ambiguous = period / 2, True
    low = -high
    wrapped = np.mod(gaps - low, period) + low
    if ambiguous:  # a gap of half a period keeps its sign
        np.copyto(wrapped, high, where=(wrapped == low) & (gaps > 0))
    correction = wrapped - gaps
    np.copyto(correction, 0, where=np.abs(gaps) < least)
    made = np.array(p, copy=True, dtype=kind)
    later = (*(slice(None),) * axis, slice(1, None))
    made[later] = p[later] + correction.cumsum(axis)
    return made


@implements(np.real_if_close)
def real_if_close(a, tol=100):
    a = as_array(a)
    if dtype_of(a).kind == "c":
        hand_back("np.real_if_close of complex numbers: the values decide the dtype")
    return a


# ---- equivalence -----------------------------------------------------------------------------------------------------


@implements(np.array_equiv)
def array_equiv(a1, a2):
    a, b = as_array(a1), as_array(a2)
    count = min(a.ndim, b.ndim)
    fits = True
    for left, right in zip(a.shape[a.ndim - count :], b.shape[b.ndim - count :]):
        fits = fits and (left == right or left == 1 or right == 1)
    return bool((a == b).all()) if fits else False


@static
def letters_of(requirements):
    """The requirements on an array by their letters; None for what depends on more than its layout."""
    names = {"CONTIGUOUS": "C", "C_CONTIGUOUS": "C", "F_CONTIGUOUS": "F", "FORTRAN": "F", "ALIGNED": "A"}
    names |= {"ENSUREARRAY": "E"}
    found = {names.get(one.upper(), one.upper()) for one in requirements or ()}
    if {"C", "F"} <= found:
        raise ValueError('Cannot specify both "C" and "F" order')
    return None if found - set("CFAE") else "".join(sorted(found))


@implements(np.require)
def require(a, dtype=None, requirements=None, *, like=None):
    letters = letters_of(requirements)
    if letters is None:
        hand_back("np.require of memory of its own or that may be written")
    return np.asarray(a, dtype, "C" if "C" in letters else "F" if "F" in letters else "A")
