"""Every ufunc of NumPy's namespace, and the methods of ufuncs."""

from __future__ import annotations

import numpy as np

from tests.numpy_table.rows import BOOL, COMPLEX, FLOATS, INTS, NUMBERS, REAL, Family

family = Family("ufuncs")

ELSEWHERE = {"matmul", "vecdot", "vecmat", "matvec", "ldexp", "isnat"}
LOOPS = {"?": BOOL, "i": INTS, "f": FLOATS, "c": COMPLEX}


def dtypes_of(ufunc: np.ufunc) -> str:
    """The dtypes of `NUMBERS` that a ufunc takes."""
    taken = ""
    for dtype in NUMBERS:
        try:
            ufunc.resolve_dtypes((*(np.dtype(dtype),) * ufunc.nin, *(None,) * ufunc.nout))
        except TypeError:
            continue
        taken += dtype
    return taken


# NumPy's own complex powers are that far off; log2(2**a + 2**b) cancels next to zero.
TOLERANT = {"power": 64, "pow": 64, "float_power": 64, "logaddexp": 16, "logaddexp2": 16}
POSITIVE = {"power", "pow"}  # integers to negative powers are an error

UFUNCS = {name: one for name in sorted(dir(np)) if isinstance(one := getattr(np, name), np.ufunc)}

for name, ufunc in UFUNCS.items():
    if name in ELSEWHERE or not dtypes_of(ufunc):
        continue
    operands = ("a", "p" if name in POSITIVE else "b")[: ufunc.nin]
    one = ", ".join(operands)
    calls = [one, *([f"{one}, out=o", f"{one}, out=o, where=m"] if ufunc.nout == 1 else [])]
    calls += ["a, r", "a, 2", "r, p" if name in POSITIVE else "r, a"] if ufunc.nin == 2 else []
    family.row(
        f"np.{name}",
        "; ".join(calls),
        dtypes_of(ufunc),
        "0123",
        ulp=TOLERANT.get(name, 4),
        values="normal special",
    )

family.row("np.ldexp", "a, 2; a, k; a, k, out=o", FLOATS, "123")
family.row("np.matmul", "a, b.T; v, v; q, q; a, r; b, a.T; q, q, out=o", REAL + COMPLEX, "2", sums=8)
family.row("np.vecdot", "a, b; a, r; a, b, axis=0", NUMBERS, "123", sums=8)
family.row("np.matvec", "a, r", NUMBERS, "23", sums=8)
family.row("np.vecmat", "a, a.swapaxes(-1, -2)", NUMBERS, "2", sums=8)

for name in ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "fmax", "fmin"):
    family.row(
        f"np.{name}.reduce", "a; a, {axis}, keepdims=True; a, 0, initial=1, where=m; a, axis=0, out=o", REAL, sums=8
    )
    family.row(f"np.{name}.accumulate", "a; a, {one}; a, 0, out=o", REAL, sums=8)
for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"):
    family.row(f"np.{name}.reduce", "a; a, {one}", INTS)
for name in ("logaddexp", "hypot"):
    family.row(f"np.{name}.reduce", "a; a, {one}", "fd", sums=8)
for name in ("subtract", "divide", "remainder"):
    family.row(f"np.{name}.reduce", "a; a, {one}; a, -1, initial=2, keepdims=True; a, 0, out=o", "ilfd", sums=8)
family.row("np.power.reduce", "p; p, {one}", "bil")
for name in ("add", "subtract", "multiply", "divide", "maximum", "less", "hypot", "arctan2", "power"):
    family.row(f"np.{name}.outer", "a, w; a, 2.5; 2.5, a", REAL, "012")
for name in ("add", "subtract", "multiply", "maximum", "minimum"):
    family.row(
        f"np.{name}.at", f"= np.{name}.at(v, i, 2); = np.{name}.at(v, n, s); = np.{name}.at(v, n, s * 1.5)", "bild", "1"
    )
family.row("np.negative.at", "= np.negative.at(v, np.array([0, 0, 2]))", "ild", "1")
family.row("np.add.reduceat", "a, [0, 2, 1]; a, [0, 1], {one}; v, n", REAL, "123", sums=8)
family.row("np.multiply.reduceat", "v, [0, 2, 1, 5]", "ild", "1", sums=8)
family.row("np.maximum.reduceat", "v, [0, 2, 1, 5]", "ild", "1")
family.row("np.minimum.reduceat", "v, [0, 2, 1, 5]", "ild", "1")
family.row("np.isposinf", "a; a, out=o", REAL, "0123", values="normal special")
family.row("np.isneginf", "a; a, out=o", REAL, "0123", values="normal special")
family.row("np.sinc", "a", REAL, "0123")
family.row("np.i0", "a", "fd", "01")
family.row("np.fix", "a; a, out=o", REAL, "0123", values="normal special")
family.row("np.round", "a; a, 1; a, -1; a, 2, out=o", NUMBERS, "0123", values="normal special")
family.row("np.around", "a; a, 1", NUMBERS, "01")
family.row("np.isclose", "a, b; a, b, rtol=0.1, atol=2; a, b, equal_nan=True", NUMBERS, "0123", values="normal special")
family.row("np.allclose", "a, b; a, a; a, b, 1, 100", NUMBERS, "0123", values="normal special")
family.row("np.array_equal", "a, b; a, a; a, a, equal_nan=True", NUMBERS, "0123", values="normal special")
family.row("np.array_equiv", "a, b; a, a; a, r", NUMBERS, "0123")
family.row("np.isreal", "a", NUMBERS, "0123")
family.row("np.iscomplex", "a", NUMBERS, "0123")
family.row("np.real", "a", NUMBERS, "0123")
family.row("np.imag", "a", NUMBERS, "0123")
family.row("np.angle", "a; a, deg=True", NUMBERS, "0123")
family.row("np.nan_to_num", "a; a, nan=1.5, posinf=3", NUMBERS, "0123", values="normal special")
family.row("np.real_if_close", "a", NUMBERS, "12")
family.row("np.unwrap", "a; a, axis=0; a, discont=4", "ilfd", "12")
family.row(
    "np.clip",
    "a, 1, 3; a, None, 2; a, 1, None; a, 1, 3, out=o; a, b, 5; a, min=1, max=2",
    REAL,
    "0123",
    values="normal special",
)
