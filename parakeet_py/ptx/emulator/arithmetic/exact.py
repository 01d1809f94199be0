"""Rounding with whole numbers: slow, exact, for the values that fast error-free arithmetic cannot reach.

A finite float is m * 2^e with whole m and e. Sums, products, quotients and roots of such are computed with Python's
integers, with one more bit that says whether anything is left, and rounded once to the wanted format and mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format: bits of the significand (the hidden one counted), exponent of the largest."""

    precision: int
    largest: int

    @property
    def smallest(self) -> int:
        """Exponent of the last place of the smallest subnormal number."""
        return 2 - self.largest - self.precision


FORMATS = {
    "f8": Format(53, 1023),
    "f4": Format(24, 127),
    "f2": Format(11, 15),
    "bf16": Format(8, 127),
}


def round_ratio(negative: bool, numerator: int, denominator: int, exponent: int, form: Format, mode: str) -> float:
    """numerator / denominator * 2^exponent (both positive) in a format no wider than float64.

    Returns
    -------
    float
        The rounded value; infinite, or the largest finite number, if it is beyond the format, as the mode says.
    """
    # Scale so that the quotient has a few bits more than the significand, the last of which remembers the rest.
    shift = form.precision + 3 - (numerator.bit_length() - denominator.bit_length())
    scaled = numerator << shift if shift > 0 else numerator
    divisor = denominator << -shift if shift < 0 else denominator
    quotient, rest = divmod(scaled, divisor)
    return _round(negative, (quotient << 1) | (rest != 0), exponent - shift - 1, form, mode)


def _round(negative: bool, magnitude: int, exponent: int, form: Format, mode: str) -> float:
    """magnitude * 2^exponent, whose last bit is sticky, rounded."""
    drop = max(magnitude.bit_length() - form.precision, form.smallest - exponent)
    if drop > 0:
        kept, lost = magnitude >> drop, magnitude & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        match mode:
            case "rn":
                up = lost > half or (lost == half and kept & 1 == 1)
            case "rna":
                up = lost >= half
            case "rm":
                up = negative and lost > 0
            case "rp":
                up = not negative and lost > 0
            case _:
                up = False
        magnitude, exponent = kept + up, exponent + drop
    if magnitude and magnitude.bit_length() + exponent - 1 > form.largest:
        inward = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        value = math.ldexp((1 << form.precision) - 1, form.largest - form.precision + 1) if inward else math.inf
    else:
        value = math.ldexp(magnitude, exponent)
    return -value if negative else value


def _parts(value: float) -> tuple[int, int]:
    """A finite float as whole m and e with value m * 2^e."""
    numerator, denominator = value.as_integer_ratio()
    return numerator, 1 - denominator.bit_length()


def fma(a: float, b: float, c: float, form: Format, mode: str) -> float:
    """a * b + c of finite floats, rounded once."""
    (ma, ea), (mb, eb), (mc, ec) = _parts(a), _parts(b), _parts(c)
    exponent = min(ea + eb, ec)
    total = (ma * mb << (ea + eb - exponent)) + (mc << (ec - exponent))
    if total == 0:
        product_negative = math.copysign(1, a) * math.copysign(1, b) < 0
        if ma * mb == 0 and mc == 0 and product_negative == (math.copysign(1, c) < 0):
            return -0.0 if product_negative else 0.0
        return -0.0 if mode == "rm" else 0.0
    return round_ratio(total < 0, abs(total), 1, exponent, form, mode)


def div(a: float, b: float, form: Format, mode: str) -> float:
    """a / b of finite floats, b not zero."""
    (ma, ea), (mb, eb) = _parts(a), _parts(b)
    if ma == 0:
        return math.copysign(0.0, a) * math.copysign(1.0, b)
    return round_ratio((ma < 0) != (mb < 0), abs(ma), abs(mb), ea - eb, form, mode)


def sqrt(a: float, form: Format, mode: str) -> float:
    """The root of a finite float that is not negative."""
    mantissa, exponent = _parts(a)
    if mantissa == 0:
        return a
    shift = 2 * form.precision + 8
    shift += (exponent - shift) & 1
    scaled = mantissa << shift
    root = math.isqrt(scaled)
    return _round(False, (root << 1) | (root * root != scaled), (exponent - shift) // 2 - 1, form, mode)


_FUNCTIONS: dict[str, Callable[..., float]] = {"fma": fma, "div": div, "sqrt": sqrt}


def apply(operation: str, operands: tuple[Array, ...], nearest: Array, mode: str, where: Array | None = None) -> Array:
    """Replace `nearest` by the exact rounding in the lanes `where` (all), as far as operands and result are finite.

    What is infinite or NaN for other reasons than size has no rounding and stays.
    """
    arrays = np.broadcast_arrays(*operands)
    result = np.array(np.broadcast_to(nearest, arrays[0].shape))
    form = FORMATS[f"f{result.dtype.itemsize}"]
    chosen = np.isfinite(arrays[0])
    for array in arrays[1:]:
        chosen = chosen & np.isfinite(array)
    if operation == "div":
        chosen = chosen & (arrays[1] != 0)
    elif operation == "sqrt":
        chosen = chosen & ~(arrays[0] < 0)
    if where is not None:
        chosen = chosen & where
    function = _FUNCTIONS[operation]
    flat = result.reshape(-1)
    columns = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
    for lane in np.flatnonzero(chosen).tolist():
        flat[lane] = function(*(float(column[lane]) for column in columns), form, mode)
    return flat.reshape(result.shape)
