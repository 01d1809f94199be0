"""Choosing, searching, sorting, sets, bits."""

from __future__ import annotations

from tests.numpy_table.rows import INTS, NUMBERS, REAL, Family

family = Family("selection")
SPECIAL = "normal special"

family.row("np.where", "m; m, a, b; m, a, 0; m, 1, 2.5; a, r, b", NUMBERS, "123")
family.row("np.nonzero", "a; m", NUMBERS, "123", values=SPECIAL)
family.row("ndarray.nonzero", "", NUMBERS, "123")
family.row("np.flatnonzero", "a; m", NUMBERS, "0123")
family.row("np.argwhere", "a; m", NUMBERS, "0123")
family.row("np.select", "[m, a > 1], [a, b]; [m], [a], 5; [m, ~m], [a, b], default=7", REAL, "123")
family.row(
    "np.choose",
    "n % 3, [s, v, t]; n, [s, v, t], mode='wrap'; n, [s, v, t], mode='clip'; n % 3, [s, v, t], out=o; "
    "n * 7 - 9, [s, v, t], mode='wrap'; n * 7 - 9, [s, v, t], mode='clip'",
    "ild",
    "1",
)
family.row("ndarray.choose", "= (n % 3).choose([s, v, t]); = n.choose([s, v, t], mode='clip')", "ild", "1")
family.row(
    "np.piecewise",
    "a, [a < 0, a >= 0], [-1, 1]; a, [a < 0], [lambda x: -x, lambda x: x * 2]; v, v > 1, [5, np.cumsum]; "
    "a, [a < 1, a > 2], [lambda x, y: x * y, 9], 3",
    "ilfd",
    "12",
)
family.row(
    "np.take",
    "a, i; a, 0; a, i, axis=0; a, [0, 0], axis=-1; a, i * 3, axis=0, mode='wrap'; a, i * 3, axis=0, mode='clip'; "
    "a, i, axis=0, out=o",
    NUMBERS,
    "123",
)
family.row("ndarray.take", "i; i, 0", NUMBERS, "123")
family.row(
    "np.put",
    "= np.put(v, i, 5); = np.put(v, [1, 2], w); = np.put(a, [0, 3], [7, 8]); = np.put(v, n * 9, w, mode='clip'); "
    "a, k, w, 'wrap'; v, n * 2, w; a, [0, -1], 2.5; a, [], 1; a, i, []",
    NUMBERS,
    "123",
)
family.row("ndarray.put", "[1, 2], [3, 4]; [1, 0], 5", NUMBERS, "12")
family.row("np.place", "a, m, [1, 2, 3]; a, m, 2.5; a, n, w; a, m, b; a.T, m, w; a, m, []", NUMBERS, "123")
family.row(
    "np.putmask", "a, m, 5; a, m, b; a, m, [1, 2]; a, k, 2; v, n, w; a, m, 2.5; a, m, []; a.T, m, b", NUMBERS, "123"
)
family.row("np.copyto", "a, b; a, 3; a, r; a, b, where=m", NUMBERS, "0123")
family.row("np.compress", "[True, False, True], a; [True, False, True], a, axis=0; c, v", NUMBERS, "123")
family.row("ndarray.compress", "[True, False], 0", NUMBERS, "123")
family.row("np.extract", "m, a; a > 1, a", NUMBERS[:-2], "0123")
family.row(
    "np.take_along_axis",
    "a, k, -1; a, k, axis=-1; a, np.argsort(a, 0), 0; a, i, None; a, k * 0, 0; a, k[:1], -1; a, k * 3; a, k.T, 0",
    NUMBERS,
    "123",
)
family.row("np.put_along_axis", "a, k, 5, -1; a, k, b, -1; a, k[..., :1], 2, -1; a, k * 3, 2, -1", NUMBERS, "123")
family.row(
    "np.apply_along_axis",
    "lambda x: x.sum(), 0, a; np.cumsum, -1, a; lambda x: x * 2, 0, a; "
    "lambda x, k: x[:1] + k, -1, a, 3; np.sort, 0, a; np.median, -1, a; lambda x: (x[0], x[-1]), 0, a",
    "ild",
    "123",
    sums=8,
)
family.row("np.apply_over_axes", "np.sum, a, [0]; np.max, a, (0, -1); np.cumsum, a, 0", "ild", "23", sums=8)
family.row(
    "np.vectorize",
    "= np.vectorize(lambda x: x + 1)(a); "
    "= np.vectorize(lambda x, y: x if x > y else y)(a, r); = np.vectorize(lambda x: (x > 1, x / 2))(a)",
    "?bhilBHIefd",
    "0123",
)
for name in ("sort", "argsort"):
    family.row(
        f"np.{name}",
        "a; a, axis={one}, kind={kind}; a, axis=None, stable=True",
        NUMBERS,
        "123",
        values=SPECIAL,
    )
family.row("ndarray.sort", "; {one}; kind='stable'", NUMBERS, "123", values=SPECIAL)
family.row("ndarray.argsort", "; 0, {kind}", NUMBERS, "123", values=SPECIAL)
family.row("np.partition", "= np.partition(v, 3)[3]; = np.sort(np.partition(v, 3)[:3])", REAL, "1", values=SPECIAL)
family.row("np.argpartition", "= v[np.argpartition(v, 3)[3]]", REAL, "1", values=SPECIAL)
family.row("ndarray.partition", "= a.partition(3)", "d", "1", order=False)
family.row("np.sort_complex", "v; a", NUMBERS, "12", values=SPECIAL)
family.row("np.lexsort", "(v, n); (n, v); (v,); = np.lexsort(np.stack([v, v[::-1]]))", REAL, "1", values=SPECIAL)
family.row(
    "np.searchsorted",
    "s, a; s, a, side={side}; s, 2; s, [1, 2]; v, w, sorter=np.argsort(v, kind='stable'); "
    "v, 2, 'right', np.argsort(v, kind='stable')",
    REAL,
    "0123",
    values=SPECIAL,
)
family.row("ndarray.searchsorted", "= s.searchsorted(a); = s.searchsorted(a, {side})", REAL, "01")
family.row("np.digitize", "a, t; a, t, right=True; a, t[::-1]; a, [0, 1, 2.5]", REAL, "0123")
family.row(
    "np.interp",
    "a, t, t * 2; a, t, t, left=-1, right=9; a, t, t * 1j; a, t, t * 2, period=3; a, t, t * 1j, period=-29.5",
    REAL,
    "0123",
    ulp=8,
)
family.row("np.bincount", "n; n, minlength=9; n, v; n, weights=t", "ild", "1", sums=4)
family.row(
    "np.histogram",
    "a; a, 5; a, t; a, 4, (0, 3); a, 4, weights=p; a, 4, density=True; a, [0, 1, 3]; a, t, density=True; a, 'auto'; "
    "a, 'sqrt', (0, 3); a, 'fd'",
    INTS + "efd",
    "123",
    ulp=8,
)
family.row(
    "np.histogram_bin_edges",
    "a; a, 5; a, 4, (0, 3); a, 'sturges'; a, 'rice'; a, 'scott'; a, 'doane'; a, t; a, 'auto', (1, 3)",
    INTS + "fd",
    "12",
    ulp=8,
)
family.row(
    "np.histogram2d",
    "v, t; v, t, 4; v, t, [3, 4]; v, t, 3, weights=t; v, t, [s, t]; v, t, [0, 1, 3]; v, t, 5, [[0, 3], [1, 2]]; "
    "v, t, 3, density=True; t, v, (t, 2)",
    "ilfd",
    "1",
    ulp=8,
)
family.row("np.histogramdd", "[v, t], 3; (v, t, s), (2, 3, t); [v, t]; [v], 4, density=True; a, 3", "ilfd", "2", ulp=8)
family.row(
    "np.unique",
    "a; v, return_index=True; v, return_inverse=True; v, return_counts=True; v, True, True, True, equal_nan=False; "
    "a, return_inverse=True, return_counts=True; a, axis=0; v, axis=0; a, True, axis=-1; a, True, True, True, axis=-1",
    NUMBERS,
    "0123",
    values=SPECIAL,
)
for name in ("unique_values", "unique_counts", "unique_inverse", "unique_all"):
    family.row(
        f"np.{name}",
        f"= tuple(np.{name}(v))" if name != "unique_values" else "= np.sort(np.unique_values(v))",
        NUMBERS,
        "1",
        values=SPECIAL,
    )
family.row(
    "np.isin",
    "a, v; a, 2; a, [1, 2]; a, v, invert=True; a, v, assume_unique=True; a, [1, 3], kind='sort'; "
    "a, w, True, True; v, n, kind='table'; n, v; v, n; [1, 2], v; np.tile(v, 3), np.tile(s, 3), True",
    NUMBERS,
    "0123",
    values=SPECIAL,
)
for name, more in (
    ("union1d", "2, v"),
    ("intersect1d", "v, s, return_indices=True; s, n, True; v, s, True, True"),
    ("setdiff1d", "v, s, True"),
    ("setxor1d", "v, s, True"),
):
    family.row(f"np.{name}", f"v, w; a, v; v, [1, 2]; n, v; {more}", NUMBERS, "12", values=SPECIAL)
family.row(
    "np.packbits",
    "= np.packbits(c); = np.packbits(c, bitorder='little'); = np.packbits(m, axis=-1); = np.packbits(a != 0); "
    "a; a, 0; a, -1, 'little'",
    "l?B",
    "0123",
)
family.row(
    "np.unpackbits",
    "= np.unpackbits(a); = np.unpackbits(a, axis=-1); = np.unpackbits(v, bitorder='little'); "
    "= np.unpackbits(v, count=9); a, 0, -3; v, count=9 * v.size; v, -1, 5, 'little'; "
    "a, -1, bitorder='little'; v, count=-99",
    "B",
    "0123",
)
family.row("np.bitwise_count.reduce", "= np.bitwise_count(a)", INTS, "1")
family.row(
    "np.ndenumerate", "= [x for _, x in np.ndenumerate(a)]; = sum(p[0] * x for p, x in np.ndenumerate(a))", "ld", "12"
)
family.row("np.nditer", "= [x * 2 for x in np.nditer(a)]; = sum(x * y for x, y in np.nditer((a, a)))", "ld", "12")
family.row(
    "np.ndindex",
    "= sum([i * j for i, j in np.ndindex(2, 3)]); = [a[p] for p in np.ndindex(a.shape)]; "
    "= [a[p] for p in np.ndindex(*a.shape)]",
    "d",
    "123",
)
