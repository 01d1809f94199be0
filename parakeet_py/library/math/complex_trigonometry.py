"""Loops of the complex trigonometric and hyperbolic ufuncs and their inverses, over scalars.

Circular functions are hyperbolic ones of the argument turned by 90 degrees. The inverse functions follow W. Kahan,
"Branch cuts for complex elementary functions, or much ado about nothing's sign bit" (1987).
"""

from __future__ import annotations

import math

import numpy as np

from parakeet_py.library.intrinsics import prim
from parakeet_py.library.math.complex_ufunc_loops import made, parts, sqrt_parts
from parakeet_py.library.registry import scalar_function_of

ZERO, ONE, HALF_PI, INFINITY, LN2 = 0.0, 1.0, math.pi / 2, math.inf, math.log(2)


def sinh_parts(x, y):
    wild = ~prim("isfinite", y)
    real = prim("select", wild & prim("isinf", x), abs(x), prim("sinh", x) * prim("cos", y))
    real = prim("select", wild & (x == 0.0), x, real)
    return real, prim("select", y == 0.0, y, prim("cosh", x) * prim("sin", y))


def cosh_parts(x, y):
    wild = ~prim("isfinite", y)
    real = prim("select", wild & prim("isinf", x), abs(x), prim("cosh", x) * prim("cos", y))
    zero = prim("copysign", y, prim("copysign", ONE, x) * prim("copysign", ONE, y))
    imag = prim("select", wild & (x == 0.0), ZERO, prim("sinh", x) * prim("sin", y))
    return real, prim("select", y == 0.0, zero, imag)


def tanh_parts(x, y):
    far = abs(x) > 22.0
    near_x = prim("select", far, ONE, x)
    t = prim("tan", y)
    beta = 1.0 + t * t
    s = prim("sinh", near_x)
    rho = prim("sqrt", 1.0 + s * s)
    below = 1.0 + beta * s * s
    calm = prim("isfinite", y) | prim("isinf", x)
    decay = prim("select", prim("isfinite", y), 4.0 * prim("sin", y) * prim("cos", y), prim("copysign", ONE, y))
    real = prim("select", far & calm, prim("copysign", ONE, x), beta * rho * s / below)
    imag = prim("select", far & calm, decay * prim("exp", -2.0 * abs(x)), t / below)
    return prim("select", x == 0.0, x, real), prim("select", y == 0.0, y, imag)


@scalar_function_of(np.sinh)
def sinh(z):
    x, y = parts(z)
    real, imag = sinh_parts(x, y)
    return made(real, imag, z)


@scalar_function_of(np.cosh)
def cosh(z):
    x, y = parts(z)
    real, imag = cosh_parts(x, y)
    return made(real, imag, z)


@scalar_function_of(np.tanh)
def tanh(z):
    x, y = parts(z)
    real, imag = tanh_parts(x, y)
    return made(real, imag, z)


@scalar_function_of(np.sin)
def sin(z):
    x, y = parts(z)
    real, imag = sinh_parts(prim("neg", y), x)
    return made(imag, prim("neg", real), z)


@scalar_function_of(np.cos)
def cos(z):
    x, y = parts(z)
    real, imag = cosh_parts(prim("neg", y), x)
    return made(real, imag, z)


@scalar_function_of(np.tan)
def tan(z):
    x, y = parts(z)
    real, imag = tanh_parts(prim("neg", y), x)
    return made(imag, prim("neg", real), z)


def endless(x, y):
    return prim("isinf", x) | prim("isinf", y)


def asin_parts(x, y):
    ar, ai = sqrt_parts(1.0 - x, prim("neg", y))
    br, bi = sqrt_parts(1.0 + x, y)
    real = prim("atan2", x, prim("select", endless(x, y), abs(y), ar * br - ai * bi))
    imag = prim("select", endless(x, y), prim("copysign", INFINITY, y), prim("asinh", ar * bi - ai * br))
    return prim("select", (x == 0.0) & prim("isnan", y), x, real), imag


@scalar_function_of(np.arcsin)
def arcsin(z):
    x, y = parts(z)
    real, imag = asin_parts(x, y)
    return made(real, imag, z)


@scalar_function_of(np.arcsinh)
def arcsinh(z):
    x, y = parts(z)
    real, imag = asin_parts(prim("neg", y), x)
    return made(imag, prim("neg", real), z)


@scalar_function_of(np.arccos)
def arccos(z):
    x, y = parts(z)
    ar, ai = sqrt_parts(1.0 - x, prim("neg", y))
    br, bi = sqrt_parts(1.0 + x, y)
    real = prim("select", (x == 0.0) & prim("isnan", y), HALF_PI, 2.0 * prim("atan2", ar, br))
    real = prim("select", endless(x, y), prim("atan2", abs(y), x), real)
    imag = prim("select", endless(x, y), prim("copysign", INFINITY, prim("neg", y)), prim("asinh", br * ai - bi * ar))
    return made(real, imag, z)


@scalar_function_of(np.arccosh)
def arccosh(z):
    x, y = parts(z)
    ar, ai = sqrt_parts(x - 1.0, y)
    br, bi = sqrt_parts(x + 1.0, y)
    real = prim("select", endless(x, y), INFINITY, prim("asinh", ar * br + ai * bi))
    imag = prim("select", (x == 0.0) & prim("isnan", y), HALF_PI, 2.0 * prim("atan2", ai, br))
    return made(real, prim("select", endless(x, y), prim("atan2", y, x), imag), z)


def atanh_parts(x, y):
    a = abs(x)
    large = prim("fmax", a, abs(y))
    far = large > 1e150
    aside = 1.0 - a
    real = 0.25 * prim("log1p", 4.0 * a / (aside * aside + y * y))
    # Beside 1 the distance is |y|, whose square is too small: log(4 / y^2) / 4
    beside = (aside == 0.0) & (abs(y) < 1e-100)
    real = prim("select", beside, 0.5 * (LN2 - prim("log", abs(y))), real)
    imag = 0.5 * prim("atan2", 2.0 * y, aside * (1.0 + a) - y * y)
    share = (a / large) * (a / large) + (y / large) * (y / large)
    real = prim("select", far, prim("select", endless(x, y), ZERO, a / large / share / large), real)
    real = prim("select", (x == 0.0) & prim("isnan", y), ZERO, real)
    right = far & ~prim("isnan", y) & (endless(x, y) | ~prim("isnan", x))
    return prim("copysign", real, x), prim("select", right, prim("copysign", HALF_PI, y), imag)


@scalar_function_of(np.arctanh)
def arctanh(z):
    x, y = parts(z)
    real, imag = atanh_parts(x, y)
    return made(real, imag, z)


@scalar_function_of(np.arctan)
def arctan(z):
    x, y = parts(z)
    real, imag = atanh_parts(prim("neg", y), x)
    return made(imag, prim("neg", real), z)
