"""`math` on Python ints: divisors, roots, factorials; the methods of ints.

Python ints are 64 bits wide in compiled code: what does not fit raises OverflowError (see docs/semantics.md).
"""

from __future__ import annotations

import math

import numpy as np

from parakeet_py.library.intrinsics import (
    cast,
    check,
    constant,
    dtype_of,
    hand_back,
    is_array,
    is_sequence,
    is_weak,
    prim,
    python_scalar,
)
from parakeet_py.library.registry import helper, implements


def whole(x):
    """A Python int or bool (or NumPy integer, but no bool of NumPy's) as an int64."""
    if is_sequence(x):
        hand_back("an integer function of a list or a tuple")
    if dtype_of(x).kind not in "iub" or (dtype_of(x).kind == "b" and not is_weak(x)):
        hand_back("an integer function of something else")
    if is_array(x) and x.ndim > 0:
        hand_back("an integer from an array with axes")
    if dtype_of(x) == np.uint64:
        check(x <= constant((1 << 63) - 1, np.uint64), "Deoptimize", "an integer beyond 64 bits")
    return cast(x, np.int64)


def greatest_divisor(a, b):
    a = prim("abs_checked", a)
    b = prim("abs_checked", b)
    while b != constant(0, np.int64):
        rest = prim("mod", a, b)
        a = b
        b = rest
    return a


@implements(math.gcd)
def gcd(*integers):
    found = constant(0, np.int64)
    for value in integers:
        found = greatest_divisor(found, whole(value))
    return python_scalar(found)


@implements(math.lcm)
def lcm(*integers):
    found = constant(1, np.int64)
    for value in integers:
        number = whole(value)
        divisor = greatest_divisor(found, number)
        # a quotient by 0 is 0 here, and lcm(0, 0) is 0
        found = prim("abs_checked", prim("mul_checked", prim("floordiv", found, divisor), number))
    return python_scalar(found)


@implements(math.isqrt)
def isqrt(n):
    n = whole(n)
    zero = constant(0, np.int64)
    one = constant(1, np.int64)
    check(n >= zero, "ValueError", "isqrt() argument must be nonnegative")
    root = cast(prim("sqrt", cast(n, np.float64)), np.int64)
    # the float is at most one off, and its square may not fit
    root = prim("minimum", root, constant(3037000499, np.int64))
    root = prim("select", root * root > n, root - one, root)
    above = root + one
    fits = above <= constant(3037000499, np.int64)
    square = prim("select", fits, above * above, zero)
    root = prim("select", prim("and", fits, square <= n), above, root)
    return python_scalar(root)


@implements(math.factorial)
def factorial(n):
    n = whole(n)
    check(n >= constant(0, np.int64), "ValueError", "factorial() not defined for negative values")
    found = constant(1, np.int64)
    factor = constant(1, np.int64)
    while factor < n:
        factor = factor + constant(1, np.int64)
        found = prim("mul_checked", found, factor)
    return python_scalar(found)


@implements(math.perm)
def perm(n, k=None):
    if k is None:
        return factorial(n)
    n = whole(n)
    k = whole(k)
    zero = constant(0, np.int64)
    check(n >= zero, "ValueError", "n must be a non-negative integer")
    check(k >= zero, "ValueError", "k must be a non-negative integer")
    found = prim("select", k > n, zero, constant(1, np.int64))
    step = prim("select", k > n, k, zero)
    while step < k:
        found = prim("mul_checked", found, n - step)
        step = step + constant(1, np.int64)
    return python_scalar(found)


@implements(math.comb)
def comb(n, k):
    n = whole(n)
    k = whole(k)
    zero = constant(0, np.int64)
    one = constant(1, np.int64)
    check(n >= zero, "ValueError", "n must be a non-negative integer")
    check(k >= zero, "ValueError", "k must be a non-negative integer")
    fewest = prim("minimum", k, n - k)
    found = prim("select", k > n, zero, one)
    step = prim("select", k > n, fewest, zero)
    while step < fewest:
        # found * (n - step) is divisible by step + 1; common divisors go first, so that only the result has to fit
        factor = n - step
        step = step + one
        common = greatest_divisor(factor, step)
        factor = prim("floordiv", factor, common)
        found = prim("mul_checked", prim("floordiv", found, prim("floordiv", step, common)), factor)
    return python_scalar(found)


@helper
def int_bit_length(n):
    rest = prim("abs_checked", whole(n))
    length = constant(0, np.int64)
    for shift in (32, 16, 8, 4, 2, 1):
        amount = constant(shift, np.int64)
        if prim("shr", rest, amount) != constant(0, np.int64):
            rest = prim("shr", rest, amount)
            length = length + amount
    return python_scalar(length + rest)


@helper
def int_bit_count(n):
    return int(np.bitwise_count(prim("abs_checked", whole(n))))


@helper
def int_pow(base, exponent, modulus):
    base = whole(base)
    rest = whole(exponent)
    modulus = whole(modulus)
    zero = constant(0, np.int64)
    one = constant(1, np.int64)
    check(modulus != zero, "ValueError", "pow() 3rd argument cannot be 0")
    check(rest >= zero, "Deoptimize", "pow with a modulus and a negative exponent")
    result = prim("mod", one, modulus)
    square = prim("mod", base, modulus)
    while rest > zero:
        if prim("and", rest, one) != zero:
            result = prim("mod", prim("mul_checked", result, square), modulus)
        rest = prim("shr", rest, one)
        if rest > zero:
            square = prim("mod", prim("mul_checked", square, square), modulus)
    return python_scalar(result)
