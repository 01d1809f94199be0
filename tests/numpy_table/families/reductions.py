"""Sums, extrema, moments, counts, cumulative ones, order statistics."""

from __future__ import annotations

from tests.numpy_table.rows import FLOATS, INTS, NUMBERS, REAL, Family

family = Family("reductions")

for name in ("sum", "prod"):
    for owner, a in (("np", "a, "), ("ndarray", "")):
        family.row(
            f"{owner}.{name}",
            f"{a}axis={{axis}}, keepdims={{flag}}; {a}axis=0, dtype=np.float32; {a}axis=0, out=o; "
            f"{a}axis=-1, initial=2, where=m",
            NUMBERS,
            "0123",
            sums=8,
        )
for name in ("max", "min"):
    for owner, a in (("np", "a, "), ("ndarray", "")):
        family.row(
            f"{owner}.{name}",
            f"{a}axis={{axis}}, keepdims={{flag}}; {a}axis=0, out=o; {a}axis=-1, initial=2, where=m",
            NUMBERS,
            "0123",
            values="normal special",
        )
family.row("np.amax", "a; a, {axis}", NUMBERS, "12")
family.row("np.amin", "a; a, {axis}", NUMBERS, "12")
for name in ("all", "any"):
    for owner, a in (("np", "a, "), ("ndarray", "")):
        family.row(
            f"{owner}.{name}",
            f"{a}axis={{axis}}, keepdims={{flag}}; {a}axis=0, out=o; {a}axis=-1, where=m",
            NUMBERS,
            "0123",
        )
for name in ("mean",):
    for owner, a in (("np", "a, "), ("ndarray", "")):
        family.row(
            f"{owner}.{name}",
            f"{a}axis={{axis}}, keepdims={{flag}}; {a}axis=0, dtype=np.float32; {a}axis=0, out=o; {a}axis=-1, where=m",
            NUMBERS,
            "0123",
            sums=8,
        )
for name in ("var", "std"):
    for owner, a in (("np", "a, "), ("ndarray", "")):
        family.row(
            f"{owner}.{name}",
            f"{a}axis={{axis}}, keepdims={{flag}}; {a}axis=0, ddof=1; {a}axis=0, out=o; {a}axis=-1, where=m; "
            f"{a}axis=0, correction=1; {a}mean=2.0; {a}axis=0, where=m, mean=1.5, keepdims=True",
            NUMBERS,
            "0123",
            sums=64,
        )
for name in ("argmax", "argmin"):
    for owner, a in (("np", "a, "), ("ndarray", "")):
        calls = f"{a}axis={{one}}, keepdims={{flag}}; {a}axis=0, out=o; {a}axis=None"
        family.row(f"{owner}.{name}", calls, NUMBERS, "0123", values="normal special")
family.row("np.ptp", "a, axis={axis}, keepdims={flag}; a, axis=0, out=o", NUMBERS[1:], "123", values="normal special")
family.row("np.count_nonzero", "a; a, axis={axis}, keepdims={flag}", NUMBERS, "0123", values="normal special")
for name in ("cumsum", "cumprod"):
    for owner, a in (("np", "a, "), ("ndarray", "")):
        family.row(
            f"{owner}.{name}", f"{a}axis=None; {a}axis={{one}}; {a}axis=0, dtype=np.float32; {a}axis=0, out=o", NUMBERS,
            "0123", sums=8, ulp=8,
        )  # fmt: skip
family.row("np.cumulative_sum", "v; a, axis=0; v, include_initial=True", NUMBERS, "12", sums=8)
family.row("np.cumulative_prod", "v; a, axis=0; v, include_initial=True", NUMBERS, "12", sums=8, ulp=8)
for name in ("nansum", "nanprod", "nanmax", "nanmin"):
    family.row(
        f"np.{name}", "a; a, axis={axis}, keepdims={flag}; a, axis=0, out=o; a, axis=0, initial=1, where=m", NUMBERS,
        "0123", sums=8, values="normal special",
    )  # fmt: skip
for name in ("nanmean", "nanvar", "nanstd"):
    more = "" if name == "nanmean" else "; a, 0, ddof=1, where=m; a, 0, correction=1; a, mean=2.0; a, -1, mean=r[:1]"
    family.row(
        f"np.{name}", f"a; a, axis={{axis}}, keepdims={{flag}}; a, axis=0, out=o; a, axis=0, where=m{more}", NUMBERS,
        "0123", sums=64, values="normal special",
    )  # fmt: skip
for name in ("nanargmax", "nanargmin"):
    family.row(f"np.{name}", "a; a, axis={one}, keepdims={flag}", REAL, "123", values="normal special")
family.row("np.nancumsum", "a; a, axis={one}", NUMBERS, "123", sums=8, values="normal special")
family.row("np.nancumprod", "a; a, axis={one}", NUMBERS, "123", sums=8, ulp=8)
for name in ("median", "nanmedian"):
    family.row(
        f"np.{name}", "a; a, axis={axis}, keepdims={flag}; a, axis=0, out=o", REAL, "0123", values="normal special",
        sums=4,
    )  # fmt: skip
for name, q in (("quantile", 0.3), ("percentile", 30), ("nanquantile", 0.3), ("nanpercentile", 30)):
    family.row(
        f"np.{name}",
        f"a, {q}; a, {q}, axis={{axis}}, keepdims={{flag}}; a, [{q}, {q * 2}], axis=0; v, {q}, method={{quantile}}",
        INTS + FLOATS,
        "0123",
        values="normal special",
        sums=8,
    )
family.row(
    "np.average",
    "a; a, axis={axis}; a, weights=p; a, axis=-1, weights=p, returned=True; v, returned=True; "
    "a, 0, returned=True; a, -1, [1, 2, 3, 4][: a.shape[-1]], True; a, 0, None, True, keepdims=True",
    "ilefdD",
    "123",
    sums=16,
)
family.row(
    "np.cov",
    "a; v; a, rowvar=False; v, v; a, bias=True; a, ddof=0; v, fweights=n; v, aweights=t; a, b; a, b, False; "
    "v, t, bias=True; a, aweights=r ** 2; a, aweights=r ** 2, ddof=2; v, fweights=n, ddof=0; "
    "np.abs(a), dtype=np.float32; v, c",
    "ilfdD",
    "2",
    sums=32,
)
family.row(
    "np.corrcoef", "a; v; v, v; a, rowvar=False; a, b; np.abs(v), t, dtype=np.float32", "ilfdD", "2", sums=32, ulp=64
)
