"""Loops of ufuncs that are not primitives, over scalars of the loop's dtypes."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import cast, constant, dtype_of, prim
from parakeet_py.library.registry import helper, scalar_function_of


@helper
def int_power(base, exponent):  # type: ignore[no-untyped-def]
    """Python's int ** non-negative int, by squaring."""
    result = 1
    while exponent > 0:
        if exponent & 1:
            result = result * base
        exponent = exponent >> 1
        if exponent > 0:
            base = base * base
    return result


@scalar_function_of(np.sign)
def sign(x):  # type: ignore[no-untyped-def]
    kind = dtype_of(x)
    if kind.kind == "u":
        return cast(x > constant(0, kind), kind)
    zero = constant(0, kind)
    if kind.kind == "f":
        one = constant(1, kind)
        signed = prim("select", x > zero, one, prim("select", x < zero, prim("neg", one), zero))
        return prim("select", prim("isnan", x), x, signed)
    return prim("sub", cast(x > zero, kind), cast(x < zero, kind))
