"""Functions made of ufuncs: tests of closeness and equality, parts of complex numbers, rounding, special values."""

from __future__ import annotations

import math

import numpy as np

from parakeet_py.library.intrinsics import (
    as_array,
    as_numeric,
    assign,
    cast,
    constant,
    copy,
    dtype_of,
    elementwise,
    hand_back,
    is_array,
    is_sequence,
    is_weak,
    layout_of,
    prim,
    ufunc_call,
    unsupported,
)
from parakeet_py.library.reductions.reductions import all_
from parakeet_py.library.registry import helper, implements, method, static
from parakeet_py.library.shared import SAME, converted, into, must_be_int, not_scalar_into, real_kind, result_kind

PI = math.pi
DEGREES = 180 / math.pi


# ---- closeness and equality ------------------------------------------------------------------------------------------


@implements(np.isclose)
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    x, y = as_numeric(a), as_numeric(b)
    if is_weak(y):
        y = float(y) if dtype_of(y).kind in "bi" else y
    else:
        y = converted(y, result_kind(dtype_of(y), float))
    near = np.less_equal(abs(x - y), as_numeric(atol) + as_numeric(rtol) * abs(y))
    result = near & np.isfinite(y) | np.equal(x, y)
    if equal_nan:
        result = result | (np.isnan(x) & np.isnan(y))
    return result


@implements(np.allclose)
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return bool(all_(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1, a2, equal_nan=False):
    a, b = as_array(a1), as_array(a2)
    if a.ndim != b.ndim:
        return False
    agree = True
    for left, right in zip(a.shape, b.shape):
        agree = agree and left == right
    if not agree:
        return False
    equal = a == b
    if equal_nan and dtype_of(a).kind in "fc" and dtype_of(b).kind in "fc":
        equal = equal | (np.isnan(a) & np.isnan(b))
    return bool(all_(equal))


@implements(np.isposinf)
def isposinf(x, out=None):
    x = as_numeric(x)
    return ufunc_call(np.logical_and, np.isinf(x), ~np.signbit(x), out=out)


@implements(np.isneginf)
def isneginf(x, out=None):
    x = as_numeric(x)
    return ufunc_call(np.logical_and, np.isinf(x), np.signbit(x), out=out)


@implements(np.isreal)
def isreal(x):
    x = as_numeric(x)
    if is_weak(x):
        return x.imag == 0
    return np.equal(np.imag(x), 0)


@implements(np.iscomplex)
def iscomplex(x):
    x = as_numeric(x)
    if dtype_of(x).kind == "c" or not is_array(x) or x.ndim == 0:
        return np.not_equal(np.imag(x), 0)
    return np.zeros(x.shape, bool)


# ---- parts of complex numbers ----------------------------------------------------------------------------------------


@implements(np.real)
def real(val):
    return (as_array(val) if is_sequence(val) else val).real


@implements(np.imag)
def imag(val):
    return (as_array(val) if is_sequence(val) else val).imag


@helper
def set_part(a, name, value):
    """a.real = value or a.imag = value."""
    if dtype_of(a).kind == "c":
        part = real_kind(dtype_of(a))
        value = converted(as_numeric(value), part)
        if name == "real":
            assign(a, elementwise(lambda z, v: prim("complex", v, prim("imag", z)), a, value))
        else:
            assign(a, elementwise(lambda z, v: prim("complex", prim("real", z), v), a, value))
    elif name == "real":
        assign(a, value)
    else:
        unsupported("a real array has no imaginary part to set")


@method("conj", "conjugate")
def conj(a):
    return np.conjugate(a) if dtype_of(a).kind == "c" else a


@implements(np.angle)
def angle(z, deg=False):
    z = as_numeric(z)
    if dtype_of(z).kind == "c":
        kind = real_kind(dtype_of(z))
        z = converted(z, dtype_of(z))
        result = np.arctan2(np.imag(z), np.real(z))
        result = converted(result, kind)
    else:
        result = np.arctan2(0, z)
    return result * DEGREES if deg else result


# ---- rounding --------------------------------------------------------------------------------------------------------


@static
def power_of_ten(decimals):
    return 10.0 ** abs(decimals)


def in_order_of(a, result):
    """A result as it is put into a new array, which is in C order unless the operand is in Fortran order."""
    if not is_array(a) or layout_of(a) in ("C", "F") or a.ndim < 2:
        return result
    return copy(result, "C") if layout_of(result) != "C" else result


@static
def copies_integers():
    """Whether rounded integers are a new array, as they are from NumPy 2.4 on."""
    integers = np.arange(2)
    return np.round(integers) is not integers


def rounded(a, decimals, out):
    not_scalar_into(a, out)
    a = as_numeric(a)
    kind = dtype_of(a)
    if kind.kind == "b":
        hand_back("rounding of bools")
    must_be_int(decimals)
    if is_weak(a):
        a = cast(a, kind)
    if decimals >= 0 and kind.kind in "iu":
        if not is_array(a) or a.ndim == 0:
            result = np.positive(a)
        elif copies_integers() or out is not None:
            result = copy(a)
        else:
            result = a
    elif decimals == 0:
        return ufunc_call(np.rint, a, out=out)
    elif kind.kind == "c":
        hand_back("rounding of complex numbers to digits")
    elif decimals > 0:
        scale = power_of_ten(decimals)
        result = in_order_of(a, np.rint(a * scale) / scale)
    else:
        scale = power_of_ten(decimals)
        result = in_order_of(a, converted(np.rint(a / scale) * scale, kind))
    return result if out is None else into(out, as_array(result), SAME)


@implements(np.round, np.around)
@method("round")
def round_(a, decimals=0, out=None):
    return rounded(a, decimals, out)


@implements(np.fix)
def fix(x, out=None):
    return ufunc_call(np.trunc, x, out=out)


# ---- special values --------------------------------------------------------------------------------------------------


@static
def smallest_argument(kind):
    return np.finfo(kind).eps.item() if kind.kind == "f" else 1e-20


@implements(np.sinc)
def sinc(x):
    x = np.multiply(PI, as_numeric(x))
    least = smallest_argument(dtype_of(x))
    y = elementwise(lambda v: prim("select", cast(v, "bool"), v, constant(least, dtype_of(v))), x)
    return np.sin(y) / y


@static
def largest(kind):
    return np.finfo(kind).max.item()


@implements(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    a = as_numeric(x)
    kind = dtype_of(a)
    part = real_kind(kind)
    if is_array(nan) or is_array(posinf) or is_array(neginf):
        hand_back("nan_to_num with arrays of replacements")
    if is_weak(a):
        a = cast(a, kind)
    if kind.kind in "fc":
        missing = cast(nan, part)
        above = cast(largest(part) if posinf is None else posinf, part)
        below = cast(-largest(part) if neginf is None else neginf, part)

        def replaced(v):
            v = prim("select", prim("isnan", v), missing, v)
            infinite = prim("isinf", v)
            return prim("select", infinite, prim("select", v > 0, above, below), v)

        if kind.kind == "c":
            result = elementwise(lambda z: prim("complex", replaced(prim("real", z)), replaced(prim("imag", z))), a)
        else:
            result = elementwise(replaced, a)
    else:
        result = np.positive(a)
    if copy:
        return result
    if not is_array(x):
        hand_back("nan_to_num of numbers without a copy, which NumPy refuses")
    assign(x, result)
    return x[()] if x.ndim == 0 else x
