"""Making arrays, grids, triangles, diagonals."""

from __future__ import annotations

from tests.numpy_table.rows import NUMBERS, REAL, Family

family = Family("creation")

for name in ("zeros", "ones"):
    family.row(f"np.{name}", "5; (2, 3), a.dtype; (2, 3), order='F'; a.shape", NUMBERS, "012")
    family.row(f"np.{name}_like", "a; a, float; a, order={order}; a, shape=(2, 3)", NUMBERS, "0123")
family.row("np.empty", "0; = np.empty((2, 3), a.dtype).shape; = np.empty((2, 3), order='F').strides", NUMBERS, "012")
family.row("np.empty_like", "= np.empty_like(a).strides; = np.empty_like(a, float).dtype", NUMBERS, "0123", order=False)
family.row(
    "np.full", "5, 2; (2, 3), 1.5; (3,), a[0], a.dtype; a.shape, 1, order='F'; (2, 4), 3, a.dtype", NUMBERS, "12"
)
family.row("np.full_like", "a, 1; a, 1.5; a, 2, float; a, r; a, 2, order={order}", NUMBERS, "0123")
family.row(
    "np.fromiter", "(x for x in v), v.dtype; v.tolist(), float, 3; (x > 1 for x in v), bool, count=-1", REAL, "1"
)
family.row("np.array", "a; [a, b]; a, dtype=float; a, copy=False; a, ndmin=3; a, order={order}", REAL, "0123")
family.row("np.asarray", "a; a, float; [1, 2.5]; a, order='F'", REAL, "0123")
family.row("np.asanyarray", "a; a, float", REAL, "0123")
family.row("np.ascontiguousarray", "a; a, float", REAL, "0123")
family.row("np.asfortranarray", "a; a, float", REAL, "0123")
family.row("np.require", "a; a, float", REAL, "12")
family.row("np.copy", "a; a, order={order}", NUMBERS, "0123")
family.row("np.astype", "a, np.float32; a, np.int16; a, complex", REAL, "0123")
family.row("np.arange", "7; 1, 9, 2; 0.5, 3; 1, 2, 0.3; 9, 1, -3; 3, dtype=a.dtype; -2.5, 7.25, 0.75", REAL, "1")
family.row(
    "np.linspace",
    "0, 1; 0, 1, 5; 0, 1, 5, endpoint=False; 2, 3, 4, retstep=True; 0, 10, 5, dtype=int; v, w[0], 4; 1, 1, 3; 0, 1, 1",
    "lfdD",
    "1",
)
family.row("np.logspace", "0, 2, 5; 0, 1, 4, base=2; 0, 2, 4, endpoint=False", "d", "1", ulp=8)
family.row(
    "np.geomspace",
    "1, 1000, 4; 1, 256, 9; -1, -8, 4; 1, 1000, 3, endpoint=False; 2, 50, 6, dtype=int",
    "d",
    "1",
    ulp=16,
)
family.row("np.eye", "3; 3, 4; 3, 4, 1; 3, k=-1, dtype=a.dtype; 3, order='F'", NUMBERS, "1")
family.row("np.identity", "3; 3, a.dtype", NUMBERS, "1")
family.row("np.tri", "3; 3, 4; 3, 4, -1; 3, 4, 1, a.dtype", NUMBERS, "1")
family.row("np.tril", "a; a, 1; a, -1", NUMBERS, "123")
family.row("np.triu", "a; a, 1; a, -1", NUMBERS, "123")
family.row("np.diag", "a; a, 1; a, -1", NUMBERS, "12")
family.row("np.diagflat", "a; a, 1; a, -2", NUMBERS, "012")
family.row("np.diagonal", "a; a, 1; a, -1, 1, 0", NUMBERS, "23")
family.row("ndarray.diagonal", "; 1; -1, 1, 0", NUMBERS, "23")
family.row("np.trace", "a; a, 1; a, -1, 1, 0; a, dtype=float", NUMBERS, "23", sums=4)
family.row("ndarray.trace", "; 1", NUMBERS, "23", sums=4)
family.row(
    "np.fill_diagonal",
    "a, 5; a, 5, wrap=True; a, r; a.T, w, True; a.T, 2, wrap=True; q, [1, 2]",
    NUMBERS,
    "2",
)
family.row("np.vander", "v; v, 3; v, 3, increasing=True; v, increasing=True", "ilfdD", "1", ulp=16)
family.row("np.indices", "(2, 3); (4,); (2, 3), dtype=float; (2, 3), sparse=True; a.shape", "d", "123")
family.row("np.fromfunction", "lambda x, y: x + y, (2, 3); lambda x: x * 2, (4,), dtype=int", "d", "1")
family.row(
    "np.meshgrid",
    "v, w; v, w, indexing='ij'; v, w, sparse=True; v; v, w, copy=False; v, w, sparse=True, copy=False",
    NUMBERS,
    "1",
)
family.row(
    "np.mgrid",
    "= np.mgrid[0:3, 1:4]; = np.mgrid[0:5:2]; = np.mgrid[0:1:5j]; = np.mgrid[0:1:0.25, 0:2]; "
    "= np.mgrid[0:1:3j, 1:2:0.1]; = np.mgrid[0:2:3j, 0:4:2j]",
    "d",
    "1",
)
family.row(
    "np.ogrid",
    "= np.ogrid[0:3, 1:4]; = np.ogrid[0:5:2]; = np.ogrid[0:1:5j]; = np.ogrid[0:1:3j, 1:2:0.1]; = np.ogrid[0:1:3j, 2:4]",
    "d",
    "1",
)
family.row("np.r_", "= np.r_[v, 1, w]; = np.r_[0:3, v]; = np.r_[0:1:5j]; = np.r_[1, 2, 3]", REAL, "1")
family.row("np.c_", "= np.c_[v, v]; = np.c_[v, n]", REAL, "1")
family.row("np.s_", "= a[np.s_[1:3]]; = a[np.s_[::2]]", "d", "12")
family.row("np.index_exp", "= a[np.index_exp[1:3]]", "d", "12")
family.row("np.ix_", "i, i; = a[np.ix_([0, 1], [1, 0])]; c, i", "d", "2")
family.row("np.tril_indices", "3; 3, 1; 3, -1, 4", "d", "1")
family.row("np.triu_indices", "3; 3, 1; 3, -1, 4", "d", "1")
family.row("np.tril_indices_from", "a; a, 1", "d", "2")
family.row("np.triu_indices_from", "a; a, 1", "d", "2")
family.row("np.diag_indices", "3; 3, 3", "d", "1")
family.row("np.diag_indices_from", "q", "d", "1")
family.row("np.mask_indices", "3, np.triu; 3, np.tril, 1", "d", "1")
family.row("np.unravel_index", "n, (3, 4); 5, (3, 4); n, (6,); n, (2, 3, 2); n, (3, 4), order='F'", "d", "1")
family.row(
    "np.ravel_multi_index",
    "(n, n), (6, 7); (n, n), (6, 7), order='F'; (n, n), (3, 7), mode='clip'; (n, n), (3, 7), mode='wrap'",
    "d",
    "1",
)
family.row("np.hanning", "5; 1; 0", "d", "1", ulp=16, sums=2)
family.row("np.hamming", "5; 1; 0", "d", "1", ulp=16, sums=2)
family.row("np.bartlett", "5; 1; 6", "d", "1", ulp=16, sums=2)
family.row("np.blackman", "5; 1; 0", "d", "1", ulp=16, sums=2)
family.row("np.kaiser", "5, 2.5; 1, 1.0", "d", "1", ulp=16, sums=2)
