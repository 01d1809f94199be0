"""`cmath` on Python's numbers: the loops of NumPy's complex functions, and Python's exceptions.

A function raises ValueError where its result is not defined at an infinity or a pole, and OverflowError where numbers
give something infinite; NumPy gives NaN and infinity there. What else is said of special values is C99's, in both.
"""

from __future__ import annotations

import cmath
import math

import numpy as np

from parakeet_py.library.intrinsics import cast, check, constant, dtype_of, hand_back, is_array, prim, python_scalar
from parakeet_py.library.math import complex_trigonometry as trigonometry
from parakeet_py.library.math import complex_ufunc_loops as loops
from parakeet_py.library.registry import helper, implements, plain, static


def complex_of(z):
    """A number as complex128."""
    if is_array(z) and z.ndim > 0:
        hand_back("a complex number from an array with axes")
    return cast(z, np.complex128)


def real_of(x):
    if dtype_of(x).kind == "c" or (is_array(x) and x.ndim > 0):
        hand_back("a real number from something else")
    return cast(x, np.float64)


def is_finite(z):
    x, y = loops.parts(z)
    return prim("isfinite", x) & prim("isfinite", y)


def is_zero(z):
    x, y = loops.parts(z)
    return (x == constant(0.0, np.float64)) & (y == constant(0.0, np.float64))


def refuse(bad):
    check(prim("not", bad), "ValueError", "math domain error")


def result_of(z, result):
    """The result for Python; numbers must not have become infinite."""
    check(prim("not", is_finite(z)) | is_finite(result), "OverflowError", "math range error")
    return python_scalar(result)


@implements(cmath.exp)
def exp(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    refuse(prim("isinf", y) & (prim("isfinite", x) | (x == constant(loops.INFINITY, np.float64))))
    return result_of(z, loops.exp(z))


def log_of(z):
    refuse(is_zero(z))
    return loops.log(z)


@implements(cmath.log)
def log(z, base=None):
    above = log_of(complex_of(z))
    if base is None:
        return python_scalar(above)
    below = log_of(complex_of(base))
    refuse(is_zero(below))
    return python_scalar(above) / python_scalar(below)


@implements(cmath.log10)
def log10(z):
    z = complex_of(z)
    refuse(is_zero(z))
    return python_scalar(loops.log10(z))


@implements(cmath.sqrt)
def sqrt(z):
    return python_scalar(loops.sqrt(complex_of(z)))


# ---- trigonometry ----------------------------------------------------------------------------------------------------


@implements(cmath.sinh)
def sinh(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    refuse(prim("isinf", y) & prim("not", prim("isnan", x)))
    return result_of(z, trigonometry.sinh(z))


@implements(cmath.cosh)
def cosh(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    refuse(prim("isinf", y) & prim("not", prim("isnan", x)))
    return result_of(z, trigonometry.cosh(z))


@implements(cmath.tanh)
def tanh(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    refuse(prim("isinf", y) & prim("isfinite", x))
    result = trigonometry.tanh(z)
    end = prim("isinf", x) & prim("not", prim("isfinite", y))  # the sign of zero is left open there
    real, imag = loops.parts(result)
    return python_scalar(loops.made(real, prim("select", end, constant(0.0, np.float64), imag), result))


@implements(cmath.sin)
def sin(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    refuse(prim("isinf", x) & prim("not", prim("isnan", y)))
    return result_of(z, trigonometry.sin(z))


@implements(cmath.cos)
def cos(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    refuse(prim("isinf", x) & prim("not", prim("isnan", y)))
    return result_of(z, trigonometry.cos(z))


@implements(cmath.tan)
def tan(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    refuse(prim("isinf", x) & prim("isfinite", y))
    result = trigonometry.tan(z)
    end = prim("isinf", y) & prim("not", prim("isfinite", x))
    real, imag = loops.parts(result)
    return python_scalar(loops.made(prim("select", end, constant(0.0, np.float64), real), imag, result))


@implements(cmath.asin)
def asin(z):
    return python_scalar(trigonometry.arcsin(complex_of(z)))


@implements(cmath.acos)
def acos(z):
    return python_scalar(trigonometry.arccos(complex_of(z)))


@implements(cmath.atan)
def atan(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    refuse((x == constant(0.0, np.float64)) & (prim("abs", y) == constant(1.0, np.float64)))
    return python_scalar(trigonometry.arctan(z))


@implements(cmath.asinh)
def asinh(z):
    return python_scalar(trigonometry.arcsinh(complex_of(z)))


@implements(cmath.acosh)
def acosh(z):
    return python_scalar(trigonometry.arccosh(complex_of(z)))


@implements(cmath.atanh)
def atanh(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    refuse((y == constant(0.0, np.float64)) & (prim("abs", x) == constant(1.0, np.float64)))
    return python_scalar(trigonometry.arctanh(z))


# ---- polar coordinates -----------------------------------------------------------------------------------------------


@implements(cmath.phase)
def phase(z):
    x, y = loops.parts(complex_of(z))
    return python_scalar(prim("atan2", y, x))


@implements(cmath.polar)
def polar(z):
    z = complex_of(z)
    x, y = loops.parts(z)
    size = prim("hypot", x, y)
    check(prim("not", is_finite(z)) | prim("isfinite", size), "OverflowError", "math range error")
    return python_scalar(size), python_scalar(prim("atan2", y, x))


@implements(cmath.rect)
def rect(r, phi):
    r = real_of(r)
    phi = real_of(phi)
    zero = constant(0.0, np.float64)
    known = prim("not", prim("isnan", r))
    refuse(prim("isinf", phi) & known & (r != zero))
    real = r * prim("cos", phi)
    imag = r * prim("sin", phi)
    # No angle: the number itself; without one that is known a length of 0 is 0, and an infinite one stays so.
    real = prim("select", phi == zero, r, real)
    flat = prim("select", known, phi * prim("copysign", constant(1.0, np.float64), r), zero)
    imag = prim("select", phi == zero, flat, imag)
    lost = prim("not", prim("isfinite", phi))
    real = prim("select", lost & (r == zero), zero, real)
    imag = prim("select", lost & (r == zero), zero, imag)
    real = prim("select", lost & prim("isinf", r), constant(loops.INFINITY, np.float64), real)
    return python_scalar(loops.made(real, imag, constant(0j, np.complex128)))


# ---- powers ----------------------------------------------------------------------------------------------------------


@helper
def complex_power(z, w):
    """z ** w of complex numbers of Python's: by multiplications where the exponent is a small whole number."""
    if w.imag == 0.0 and abs(w.real) <= 100.0 and w.real == math.floor(w.real):
        rest = int(abs(w.real))
        result = 1 + 0j
        power = z
        while rest > 0:
            if rest % 2 == 1:
                result = result * power
            rest = rest // 2
            power = power * power
        if w.real <= 0.0:
            if result == 0:
                raise ZeroDivisionError(no_power_of_zero())
            result = (1 + 0j) / result
    elif z == 0:
        if w.imag != 0.0 or w.real < 0.0:
            raise ZeroDivisionError(no_power_of_zero())
        result = 0j
    else:
        size = math.hypot(z.real, z.imag)
        angle = math.atan2(z.imag, z.real)
        length = power_of(size, w.real)
        turn = angle * w.real
        if w.imag != 0.0:
            length = length * power_of(math.e, -angle * w.imag)
            turn = turn + w.imag * math.log(size)
        if math.isinf(turn):  # which C's cosine reports as Python's zero is
            raise ZeroDivisionError(no_power_of_zero())
        result = complex(length * cosine(turn), length * sine(turn))
    if math.isinf(result.real) or math.isinf(result.imag):
        raise OverflowError("complex exponentiation")
    return result


@static
def no_power_of_zero():
    """In the words of the running version, which a patch release of 3.13 has changed."""
    try:
        return str(0j**-1)
    except ZeroDivisionError as error:
        return str(error)


# What C has, which gives infinity or NaN where `math` raises.


def power_of(x, y):
    return python_scalar(prim("pow", cast(x, np.float64), cast(y, np.float64)))


def cosine(x):
    return python_scalar(prim("cos", cast(x, np.float64)))


def sine(x):
    return python_scalar(prim("sin", cast(x, np.float64)))


# ---- questions -------------------------------------------------------------------------------------------------------


@implements(cmath.isnan)
def isnan(z):
    return python_scalar(loops.is_nan(complex_of(z)))


@implements(cmath.isinf)
def isinf(z):
    x, y = loops.parts(complex_of(z))
    return python_scalar(prim("isinf", x) | prim("isinf", y))


@implements(cmath.isfinite)
def isfinite(z):
    return python_scalar(is_finite(complex_of(z)))


@plain(cmath.isclose)
def isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError("tolerances must be non-negative")
    x = complex(a)
    y = complex(b)
    if x == y:
        return True
    if cmath.isinf(x) or cmath.isinf(y):
        return False
    apart = abs(x - y)
    return apart <= rel_tol * abs(y) or apart <= rel_tol * abs(x) or apart <= abs_tol
