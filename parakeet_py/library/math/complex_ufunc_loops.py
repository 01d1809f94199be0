"""Loops of the complex ufuncs, over scalars: ordering, exponentials, powers, trigonometry.

complex64 is computed in float64 and rounded once. The inverse functions follow W. Kahan, "Branch cuts for complex
elementary functions" (1987); order is lexicographic, as NumPy has it.
"""

from __future__ import annotations

import math

import numpy as np

from parakeet_py.library.intrinsics import cast, constant, dtype_of, prim
from parakeet_py.library.registry import scalar_function_of

INFINITY = math.inf
NAN = math.nan
SCALE = 2.0**55
LN2 = math.log(2)
LOG2E = 1 / math.log(2)
LOG10E = 1 / math.log(10)


def parts(z):
    """Real and imaginary part in float64."""
    return cast(prim("real", z), "float64"), cast(prim("imag", z), "float64")


def made(real, imag, like):
    """A complex number of the dtype of `like`."""
    return cast(prim("complex", real, imag), dtype_of(like))


# ---- order -----------------------------------------------------------------------------------------------------------


def ordered(x, y, decide, ties):
    """Lexicographic comparison: real parts decide unless an imaginary part is NaN; of equal ones the others."""
    real, imag = prim("real", x), prim("imag", x)
    other_real, other_imag = prim("real", y), prim("imag", y)
    known = ~(prim("isnan", imag) | prim("isnan", other_imag))
    return (decide(real, other_real) & known) | ((real == other_real) & ties(imag, other_imag))


@scalar_function_of(np.less)
def less(x, y):
    return ordered(x, y, lambda a, b: a < b, lambda a, b: a < b)


@scalar_function_of(np.less_equal)
def less_equal(x, y):
    return ordered(x, y, lambda a, b: a < b, lambda a, b: a <= b)


@scalar_function_of(np.greater)
def greater(x, y):
    return ordered(x, y, lambda a, b: a > b, lambda a, b: a > b)


@scalar_function_of(np.greater_equal)
def greater_equal(x, y):
    return ordered(x, y, lambda a, b: a > b, lambda a, b: a >= b)


def is_nan(z):
    return prim("isnan", prim("real", z)) | prim("isnan", prim("imag", z))


@scalar_function_of(np.maximum)
def maximum(x, y):
    return prim("select", is_nan(x) | greater_equal(x, y), x, y)


@scalar_function_of(np.minimum)
def minimum(x, y):
    return prim("select", is_nan(x) | less_equal(x, y), x, y)


@scalar_function_of(np.fmax)
def fmax(x, y):
    return prim("select", is_nan(y) | greater_equal(x, y), x, y)


@scalar_function_of(np.fmin)
def fmin(x, y):
    return prim("select", is_nan(y) | less_equal(x, y), x, y)


def complex_clip(x, low, high):
    """Bounds are compared by real parts, then by imaginary ones, also beside NaN: not as `maximum` and `minimum` do."""

    def below(a, b):
        real, imag = prim("real", a), prim("imag", a)
        other_real, other_imag = prim("real", b), prim("imag", b)
        return prim("select", real == other_real, imag < other_imag, real < other_real)

    raised = prim("select", is_nan(x) | below(low, x), x, low)
    return prim("select", is_nan(raised) | below(raised, high), raised, high)


@scalar_function_of(np.rint)
def rint(z):
    return prim("complex", prim("rint", prim("real", z)), prim("rint", prim("imag", z)))


def complex_reciprocal(z):
    x, y = prim("real", z), prim("imag", z)
    one = constant(1, dtype_of(x))
    flat = abs(y) <= abs(x)
    ratio = prim("select", flat, y / x, x / y)
    scale = prim("select", flat, x + y * ratio, x * ratio + y)
    return prim(
        "complex",
        prim("select", flat, one, ratio) / scale,
        prim("neg", prim("select", flat, ratio, one)) / scale,
    )


def complex_sign(z):
    """z / |z|; 0 of 0, the axis of an infinity that lies on one."""
    x, y = prim("real", z), prim("imag", z)
    one, zero = constant(1, dtype_of(x)), constant(0, dtype_of(x))
    endless_x, endless_y = prim("isinf", x), prim("isinf", y)
    x = prim("select", endless_x, prim("copysign", one, x), prim("select", endless_y, zero, x))
    y = prim("select", endless_y, prim("copysign", one, y), prim("select", endless_x, zero, y))
    size = prim("hypot", x, y)
    x = prim("select", size == zero, zero, x)
    y = prim("select", size == zero, zero, y)
    size = prim("select", endless_x & endless_y, x / zero - x / zero, prim("select", size == zero, one, size))
    return prim("complex", x / size, y / size)


# ---- exponentials ----------------------------------------------------------------------------------------------------


def exp_parts(x, y):
    """exp(x + iy); the factor is split so that it overflows only where the result does."""
    large = prim("isfinite", x) & (abs(x) > 700.0)
    half = prim("exp", prim("select", large, x * 0.5, x))
    rest = prim("select", large, half, constant(1.0, "float64"))
    still = y == 0.0
    real = half * prim("select", still, constant(1.0, "float64"), prim("cos", y)) * rest
    imag = prim("select", still, y, half * prim("sin", y) * rest)
    unclear = ~prim("isfinite", y)
    gone = unclear & (x == -INFINITY)
    zero = constant(0.0, "float64")
    real = prim("select", gone, zero, prim("select", unclear & (x == INFINITY), constant(INFINITY, "float64"), real))
    return real, prim("select", gone, prim("copysign", zero, y), imag)


@scalar_function_of(np.exp)
def exp(z):
    x, y = parts(z)
    real, imag = exp_parts(x, y)
    return made(real, imag, z)


@scalar_function_of(np.exp2)
def exp2(z):
    # The product is rounded in the type of the loop, as NumPy does.
    real, imag = exp_parts(cast(prim("real", z) * LN2, "float64"), cast(prim("imag", z) * LN2, "float64"))
    return made(real, imag, z)


@scalar_function_of(np.expm1)
def expm1(z):
    x, y = parts(z)
    half = prim("sin", y * 0.5)
    real = prim("expm1", x) * prim("cos", y) - 2.0 * half * half
    return made(real, prim("exp", x) * prim("sin", y), z)


def square_and_error(x):
    """x * x and what rounding took from it (Dekker's product)."""
    split = 134217729.0 * x
    high = split - (split - x)
    low = x - high
    square = x * x
    return square, ((high * high - square) + 2.0 * high * low) + low * low


def log_parts(x, y):
    """log(x + iy), accurate also next to the unit circle."""
    a, b = abs(x), abs(y)
    large, small = prim("maximum", a, b), prim("minimum", a, b)
    near = (large > 0.7) & (large < 1.5) & (small < 1.5)
    u, u_error = square_and_error(prim("select", near, large, constant(1.0, "float64")))
    v, v_error = square_and_error(prim("select", near, small, constant(0.0, "float64")))
    beside_one = 0.5 * prim("log1p", ((u - 1.0) + v) + (u_error + v_error))
    huge = large > 1e300
    scale = prim("select", huge, constant(0.0625, "float64"), constant(1.0, "float64"))
    size = prim("log", prim("hypot", x * scale, y * scale))
    size = prim("select", huge, size + 4.0 * LN2, size)
    return prim("select", near, beside_one, size), prim("atan2", y, x)


@scalar_function_of(np.log)
def log(z):
    x, y = parts(z)
    real, imag = log_parts(x, y)
    return made(real, imag, z)


@scalar_function_of(np.log2)
def log2(z):
    x, y = parts(z)
    real, imag = log_parts(x, y)
    return made(real * LOG2E, imag * LOG2E, z)


@scalar_function_of(np.log10)
def log10(z):
    x, y = parts(z)
    real, imag = log_parts(x, y)
    return made(real * LOG10E, imag * LOG10E, z)


@scalar_function_of(np.log1p)
def log1p(z):
    # In the type of the loop: NumPy forms 1 + z first, too.
    x, y = prim("real", z) + constant(1, dtype_of(prim("real", z))), prim("imag", z)
    return prim("complex", prim("log", prim("hypot", x, y)), prim("atan2", y, x))


def sqrt_parts(x, y):
    """The principal square root of x + iy."""
    a, b = abs(x), abs(y)
    huge = prim("maximum", a, b) > 1e300
    tiny = prim("maximum", a, b) < 1e-290
    one = constant(1.0, "float64")
    scale = prim("select", huge, one * 0.0625, prim("select", tiny, one * SCALE * SCALE, one))
    back = prim("select", huge, one * 4.0, prim("select", tiny, one / SCALE, one))
    a, b = a * scale, b * scale
    root = prim("sqrt", 0.5 * (a + prim("hypot", a, b)))
    zero = constant(0.0, "float64")
    other = prim("select", root == 0.0, zero, b / prim("select", root == 0.0, one, 2.0 * root))
    root, other = root * back, other * back
    right = ~prim("signbit", x)
    real = prim("select", right, root, other)
    imag = prim("copysign", prim("select", right, other, root), y)
    infinity = one * INFINITY
    unbounded = prim("isinf", x)
    real = prim("select", unbounded, prim("select", right, infinity, prim("select", prim("isnan", y), y, zero)), real)
    edge = prim(
        "select", right, prim("select", prim("isnan", y), y, prim("copysign", zero, y)), prim("copysign", infinity, y)
    )
    imag = prim("select", unbounded, edge, imag)
    above = prim("isinf", y)
    lost = prim("isnan", x) & ~above
    real = prim("select", above, infinity, prim("select", lost, x, real))
    imag = prim("select", above, y, prim("select", lost, x, imag))
    return real, imag


@scalar_function_of(np.sqrt)
def sqrt(z):
    x, y = parts(z)
    real, imag = sqrt_parts(x, y)
    return made(real, imag, z)


def infinite_direction(x, y):
    """Of a number with infinite parts: these as ones, others as zeros, with their signs; else the number itself."""
    wide, high = prim("isinf", x), prim("isinf", y)
    zero, one = constant(0.0, dtype_of(x)), constant(1.0, dtype_of(x))
    infinite = wide | high
    real = prim("copysign", prim("select", wide, one, zero), x)
    imag = prim("copysign", prim("select", high, one, zero), y)
    return infinite, prim("select", infinite, real, x), prim("select", infinite, imag, y)


def without_nan(x):
    """Zero in place of NaN, with its sign."""
    return prim("select", prim("isnan", x), prim("copysign", constant(0.0, dtype_of(x)), x), x)


def product(a, b, c, d):
    """(a + ib) * (c + id) as C multiplies: an infinity times anything is one, also beside NaN (C99, annex G.5.1)."""
    infinity = constant(INFINITY, dtype_of(a))
    ac, bd, ad, bc = a * c, b * d, a * d, b * c
    x, y = ac - bd, ad + bc
    left, a, b = infinite_direction(a, b)
    right, c, d = infinite_direction(c, d)
    beyond = prim("isinf", ac) | prim("isinf", bd) | prim("isinf", ad) | prim("isinf", bc)
    lost = prim("isnan", x) & prim("isnan", y) & (left | right | beyond)
    a, b, c, d = without_nan(a), without_nan(b), without_nan(c), without_nan(d)
    return (
        prim("select", lost, infinity * (a * c - b * d), x),
        prim("select", lost, infinity * (a * d + b * c), y),
    )


def complex_power(base, exponent):
    """base ** exponent: by squaring for small whole exponents, else exp(exponent * log(base))."""
    br, bi = parts(exponent)
    one = constant(1, dtype_of(base))
    whole = (bi == 0.0) & (abs(br) < 100.0) & (prim("floor", br) == br)
    left = abs(prim("select", whole, cast(br, "int64"), constant(0, "int64")))
    result = one
    square = base
    while left > 0:
        result = prim("select", left % 2 == 1, result * square, result)
        square = square * square
        left = left // 2
    # Those without a product with 1, which changes infinities.
    for exactly, power in ((1.0, base), (2.0, base * base), (3.0, base * (base * base))):
        result = prim("select", br == exactly, power, result)
    powers = prim("select", br < 0.0, one / result, result)
    x, y = parts(base)
    real, imag = exp_parts(*product(br, bi, *log_parts(x, y)))
    general = prim("select", whole, powers, made(real, imag, base))
    zero = (x == 0.0) & (y == 0.0) & ~((br == 0.0) & (bi == 0.0))
    nothing = made(constant(NAN, "float64"), constant(NAN, "float64"), base)
    return prim("select", zero, prim("select", br > 0.0, one - one, nothing), general)


@scalar_function_of(np.float_power)
def float_power(base, exponent):
    return complex_power(base, exponent)
