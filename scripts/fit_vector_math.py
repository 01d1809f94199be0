"""Fit the polynomials of `parakeet_py/llvm/math/coefficients.py` in high precision and write that file.

    python scripts/fit_vector_math.py

Each polynomial minimizes the largest weighted error on its interval: Chebyshev interpolation where the weight is flat,
and Lawson's iteration (weighted least squares, the weights following the error) where it is not. The error that is
reached is written next to the coefficients.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import Any

import mpmath as mp

mp.mp.dps = 50
Function = Callable[[Any], Any]
TARGET = Path(__file__).parent.parent / "parakeet_py" / "llvm" / "math" / "coefficients.py"


def chebyshev(low: Any, high: Any, count: int) -> list[Any]:
    """Chebyshev points of an interval."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def value(coefficients: list[Any], x: Any) -> Any:
    return mp.polyval(coefficients[::-1], x)


def interpolate(f: Function, low: Any, high: Any, degree: int) -> list[Any]:
    """Coefficients (constant first) of the interpolant at the Chebyshev points."""
    points = chebyshev(low, high, degree + 1)
    matrix = mp.matrix([[x**j for j in range(degree + 1)] for x in points])
    return list(mp.lu_solve(matrix, mp.matrix([f(x) for x in points])))


def lawson(f: Function, weight: Function, low: Any, high: Any, degree: int, rounds: int = 40) -> list[Any]:
    """Coefficients of the polynomial with the smallest max |weight (p - f)| (C. L. Lawson, 1961)."""
    points = chebyshev(low, high, 8 * (degree + 1))
    middle, half = (low + high) / 2, (high - low) / 2
    basis = [[mp.chebyt(j, (x - middle) / half) for j in range(degree + 1)] for x in points]
    wanted, weights = [f(x) for x in points], [weight(x) for x in points]
    share = [mp.mpf(1) / len(points)] * len(points)
    found = mp.matrix(degree + 1, 1)
    for _ in range(rounds):
        normal, right = mp.matrix(degree + 1, degree + 1), mp.matrix(degree + 1, 1)
        for row, y, w, s in zip(basis, wanted, weights, share, strict=True):
            factor = s * w * w
            for i in range(degree + 1):
                right[i] += factor * row[i] * y
                for j in range(i, degree + 1):
                    normal[i, j] += factor * row[i] * row[j]
        for i in range(degree + 1):
            for j in range(i):
                normal[i, j] = normal[j, i]
        found = mp.lu_solve(normal, right)
        errors = [w * abs(mp.fdot(row, list(found)) - y) for row, y, w in zip(basis, wanted, weights, strict=True)]
        total = mp.fsum(s * e for s, e in zip(share, errors, strict=True))
        share = [s * e / total for s, e in zip(share, errors, strict=True)]
    # from Chebyshev polynomials to powers
    samples = chebyshev(low, high, degree + 1)
    matrix = mp.matrix([[x**j for j in range(degree + 1)] for x in samples])
    right = mp.matrix(
        [mp.fsum(found[j] * mp.chebyt(j, (x - middle) / half) for j in range(degree + 1)) for x in samples]
    )
    return list(mp.lu_solve(matrix, right))


def largest(f: Function, weight: Function, coefficients: list[float], low: Any, high: Any) -> Any:
    """The largest weighted error of the rounded polynomial."""
    points = [low + (high - low) * mp.mpf(i) / 600 for i in range(601)]
    exact = [mp.mpf(c) for c in coefficients]
    return max(abs(weight(x) * (value(exact, x) - f(x))) for x in points)


def flat(x: Any) -> Any:
    return mp.mpf(1)


def near_zero(f: Function, at_zero: Any) -> Function:
    """A function whose formula cancels near 0."""
    return lambda x: at_zero if abs(x) < mp.mpf("1e-14") else f(x)


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0005")
QUARTER_PI = mp.pi / 4 * mp.mpf("1.0005")
ERF_SPLIT, ERF_END, ERF_CENTRE = mp.mpf(1), mp.mpf(6), 2
ERF32_END = mp.mpf(4)

exp_tail = near_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf("0.5"))
exp2_tail = near_zero(lambda r: (mp.mpf(2) ** r - 1) / r, mp.log(2))
sin_tail = near_zero(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mp.mpf(1) / 6)
cos_tail = near_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24)
erf_tail = near_zero(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1)


def log_tail(z: Any) -> Any:
    """log((1+s)/(1-s)) = 2 s + s z tail(z), z = s*s."""
    if abs(z) < mp.mpf("1e-14"):
        return mp.mpf(2) / 3
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) / s - 2) / z


def log_far(z: Any) -> Any:
    """tail(z) = 2/3 + z far(z)."""
    return mp.mpf(2) / 5 if abs(z) < mp.mpf("1e-14") else (log_tail(z) - mp.mpf(2) / 3) / z


def log_near(d: Any) -> Any:
    """log(1 + d) = d - d*d/2 + d*d*d near(d)."""
    return THIRD if abs(d) < mp.mpf("1e-12") else (mp.log(1 + d) - d + d * d / 2) / d**3


def odd_tail(f: Function, at_zero: Any) -> Function:
    """tail of an odd function: f(x) = x + x z tail(z), z = x*x."""

    def tail(z: Any) -> Any:
        x = mp.sqrt(z)
        return (f(x) / x - 1) / z

    return near_zero(tail, at_zero)


def log2_erfc(t: Any) -> Any:
    return mp.log(mp.erfc(t + ERF_CENTRE), 2)


def erfc(t: Any) -> Any:
    return mp.erfc(t + ERF_CENTRE)


def scaled_erfc(t: Any) -> Any:
    """erfc(x) = exp(-x*x) g(t) / (x + 3), t = (x - 3)/(x + 3)."""
    x = 3 * (1 + t) / (1 - t)
    return (x + 3) * mp.exp(x * x) * mp.erfc(x)


def erfc_variable(x: str) -> Any:
    return (mp.mpf(x) - 3) / (mp.mpf(x) + 3)


def stirling_tail(z: Any) -> Any:
    """lgamma(x) = (x - 1/2) log(x) - x + log(2 pi)/2 + tail(z)/x, z = 1/(x*x)."""
    if abs(z) < mp.mpf("1e-9"):
        return mp.mpf(1) / 12 - z / 360
    x = 1 / mp.sqrt(z)
    return (mp.loggamma(x) - (x - mp.mpf("0.5")) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x


TWELFTH, THIRD, SIXTH = mp.mpf(1) / 12, mp.mpf(1) / 3, mp.mpf(1) / 6
AFTER_ONE = 1 - mp.euler  # the derivative of gamma and of its logarithm at 2
gamma_tail = near_zero(lambda t: (mp.gamma(2 + t) - 1) / t, AFTER_ONE)
lgamma_tail = near_zero(lambda t: mp.loggamma(2 + t) / t, AFTER_ONE)
UNIT, QUARTER, AROUND_TWO = mp.mpf("1.0005"), mp.mpf("0.2501"), mp.mpf("0.5001")
ERFC_LOW, ERFC_END, ERFC32_END = erfc_variable("0.5"), erfc_variable("27.3"), erfc_variable("10.1")

# numbers around 1, in 16 parts by the first bits of their mantissa: the fourth but last has 1 in its middle
PARTS, BEFORE_ONE, REST = 16, mp.mpf(29) / 3, mp.mpf("0.0299")
S_LIMIT = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mp.mpf("1.0005")
# name: (what it is, function, weight, low, high, degree for float64, degree for float32)
FITS: dict[str, tuple[str, Function, Function, Any, Any, int, int]] = {
    "EXP": ("exp(r) = 1 + r + r*r*p(r)", exp_tail, flat, -HALF_LN2, HALF_LN2, 9, 4),
    "EXPM1": ("exp(r) - 1 = r + r*r*p(r)", exp_tail, flat, -HALF_LN2, HALF_LN2, 10, 5),
    "EXP2": ("2**r = 1 + r*p(r)", exp2_tail, flat, -mp.mpf("0.5003"), mp.mpf("0.5003"), 11, 6),
    "SIN": ("sin(r) = r + r*z*p(z), z = r*r", sin_tail, flat, mp.mpf(0), QUARTER_PI**2, 5, 2),
    "COS": ("cos(r) = 1 - z/2 + z*z*p(z), z = r*r", cos_tail, flat, mp.mpf(0), QUARTER_PI**2, 5, 2),
    "LOG": ("log((1+s)/(1-s)) = 2*s + s*z*p(z), z = s*s", log_tail, flat, mp.mpf(0), S_LIMIT**2, 6, 3),
    "TAN": ("tan(r) = r + r*z*p(z), z = r*r", odd_tail(mp.tan, THIRD), flat, mp.mpf(0), QUARTER_PI**2, 14, 6),
    "ATAN": ("atan(x) = x + x*z*p(z), z = x*x", odd_tail(mp.atan, -THIRD), flat, mp.mpf(0), UNIT, 19, 9),
    "ERF_SMALL": ("erf(x) = x + x*p(z), z = x*x", erf_tail, flat, mp.mpf(0), ERF_SPLIT**2, 11, 6),
    "ERF_LARGE": ("erf(t + 2) = 1 - 2**p(t)", log2_erfc, erfc, ERF_SPLIT - ERF_CENTRE, ERF_END - ERF_CENTRE, 17, 7),
    "LOG_FAR": ("p(z) of LOG = 2/3 + z*q(z)", log_far, flat, mp.mpf(0), S_LIMIT**2, 7, 3),
    "LOG_NEAR": ("log(1+d) = d - d*d/2 + d*d*d*p(d)", log_near, flat, -REST, REST, 8, 3),
    "SINH": ("sinh(x) = x + x*z*p(z), z = x*x", odd_tail(mp.sinh, SIXTH), flat, mp.mpf(0), UNIT, 6, 3),
    "ASIN": ("asin(x) = x + x*z*p(z), z = x*x", odd_tail(mp.asin, SIXTH), flat, mp.mpf(0), QUARTER, 12, 5),
    "ASINH": ("asinh(x) = x + x*z*p(z), z = x*x", odd_tail(mp.asinh, -SIXTH), flat, mp.mpf(0), QUARTER, 12, 4),
    "ATANH": ("atanh(x) = x + x*z*p(z), z = x*x", odd_tail(mp.atanh, THIRD), flat, mp.mpf(0), QUARTER, 13, 5),
    "ERFC": ("erfc(x) = exp(-x*x)*p((x - 3)/(x + 3))/(x + 3)", scaled_erfc, flat, ERFC_LOW, ERFC_END, 22, 9),
    "GAMMA": ("gamma(2 + t) = 1 + t*p(t)", gamma_tail, flat, -AROUND_TWO, AROUND_TWO, 19, 9),
    "LGAMMA": ("lgamma(2 + t) = t*p(t)", lgamma_tail, flat, -AROUND_TWO, AROUND_TWO, 18, 9),
    "STIRLING": (
        *("lgamma(x) = (x - 1/2)*log(x) - x + log(2*pi)/2 + p(1/(x*x))/x", stirling_tail, flat),
        *(mp.mpf(0), TWELFTH**2, 5, 1),
    ),
}
# where the interval of float32 is another
ENDS32 = {"ERF_LARGE": ERF32_END - ERF_CENTRE, "ERFC": ERFC32_END}
PAIRED = {"ERFC": 3, "LGAMMA": 2}  # how many first coefficients are needed in twice the precision


def fit(name: str, degree: int, high: Any) -> tuple[list[Any], list[float], Any]:
    _, f, weight, low, _, _, _ = FITS[name]
    found = interpolate(f, low, high, degree) if weight is flat else lawson(f, weight, low, high, degree)
    rounded = [float(c) for c in found]
    return found, rounded, largest(f, weight, rounded, low, high)


def table_lines(name: str, numbers: list[float]) -> list[str]:
    """The lines of a table."""
    rows = wrap(" ".join(map(repr, numbers)), 112, break_on_hyphens=False)
    return [f'{name} = _numbers("""', *(f"    {row}" for row in rows), '""")']


def single(number: Any) -> float:
    """A number as a float32."""
    rounded: float = struct.unpack("f", struct.pack("f", float(number)))[0]
    return rounded


def reciprocals(suffix: str, place: int, rounded: Callable[[Any], float]) -> list[str]:
    """The lines of the tables of reciprocals: of the middle of each part, and the logarithm of what they are from, the
    first part of which is a multiple of 2**-place."""

    def bound(part: int) -> Any:
        away = (part - BEFORE_ONE) / PARTS
        return 1 + (away / 2 if away < 0 else away)

    names = ("RECIPROCAL", "RECIPROCAL_LOG", "RECIPROCAL_LOG_LOW")
    tables: dict[str, list[float]] = {name + suffix: [] for name in names}
    for part in range(PARTS):
        low, high = bound(part), bound(part + 1)
        reciprocal = 1.0 if low < 1 < high else rounded(2 / (low + high))
        assert max(abs(low * reciprocal - 1), abs(high * reciprocal - 1)) < REST
        log = -mp.log(mp.mpf(reciprocal))
        short = mp.nint(log * 2**place) / 2**place
        for table, number in zip(tables.values(), (reciprocal, short, log - short), strict=True):
            table.append(rounded(number) + 0.0)
    lines = [f"# 1/c for 16 numbers c around 1, and log(c) in two parts, the first a multiple of 2**-{place}"]
    for name, numbers in tables.items():
        lines += [*table_lines(name, numbers), ""]
    return lines


def main() -> None:
    lines = [
        '"""Polynomial coefficients of the vector math library, constant term first.',
        "",
        "Written by scripts/fit_vector_math.py. The number after a table is the largest error of its polynomial (times",
        "the weight that the function's accuracy gives it), in units of 2**-53.",
        '"""',
        "",
        "",
        "def _numbers(text: str) -> tuple[float, ...]:",
        "    return tuple(map(float, text.split()))",
        "",
        "",
    ]
    for name, (formula, _, _, _, high, wide, narrow) in FITS.items():
        for suffix, degree in (("64", wide), ("32", narrow)):
            end = ENDS32.get(name, high) if suffix == "32" else high
            found, coefficients, error = fit(name, degree, end)
            print(name, suffix, degree, mp.nstr(error * 2**53, 3), flush=True)
            lines += [f"# {formula}", *table_lines(name + suffix, coefficients)]
            lines[-1] += f"  # {mp.nstr(error * 2**53, 3)}"
            lines.append("")
            if name in PAIRED:
                low = [float(exact - mp.mpf(c)) for exact, c in zip(found, coefficients, strict=True)]
                lines += [f"# what rounding took from the first of {name}{suffix}"]
                lines += [f"{name}_LOW{suffix} = ({', '.join(map(repr, low[: PAIRED[name]]))})", ""]
    lines += [*reciprocals("", 42, float), *reciprocals("_SINGLE", 16, single)]
    TARGET.write_text("\n".join(lines[:-1]) + "\n")


if __name__ == "__main__":
    main()
