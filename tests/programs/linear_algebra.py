"""Products of arrays: dot, matmul, outer, inner, trace, in every layout and small size."""

import numpy as np

from tests.arrays import arr
from tests.corpus import large, program, raising

SQUARE = [
    (arr("f8", 4, 4), arr("f8", 4, 4, seed=1)),
    (arr("f4", 4, 4), arr("f4", 4, 4, seed=1)),
    (arr("f8", 4, 4, layout="F"), arr("f8", 4, 4, seed=1)),
    (arr("f8", 4, 4, layout="stepped"), arr("f8", 4, 4, layout="reversed")),
    (arr("i4", 4, 4), arr("i8", 4, 4)),
    (arr("f4", 4, 4), arr("f8", 4, 4)),
    (arr("c16", 4, 4), arr("f8", 4, 4)),
]
RECTANGULAR = [
    (arr("f8", 2, 5), arr("f8", 5, 3)),
    (arr("f8", 0, 5), arr("f8", 5, 3)),
    (arr("f8", 2, 0), arr("f8", 0, 3)),
]
MATRIX_VECTOR = [
    (arr("f8", 3, 4), arr("f8", 4), arr("f8", 3)),
    (arr("f4", 3, 4, layout="F"), arr("f4", 4), arr("f4", 3)),
    (arr("f8", 3, 4, layout="stepped"), arr("f8", 4, layout="reversed"), arr("f8", 3, layout="stepped")),
    (arr("i8", 3, 4), arr("i8", 4), arr("i8", 3)),
]
VECTORS = [
    (arr("f8", 6), arr("f8", 6, seed=1)),
    (arr("f4", 6), arr("f4", 6, layout="reversed")),
    (arr("i4", 6), arr("f8", 6)),
    (arr("i8", 6), arr("i8", 6, seed=1)),
    (arr("c16", 6), arr("c16", 6, seed=1)),
    (arr("b1", 6), arr("b1", 6, seed=1)),
    (arr("f8", 0), arr("f8", 0)),
]
LARGE = [large(arr("f8", 130, 70), arr("f8", 70, 90)), large(arr("f4", 100, 100, layout="F"), arr("f4", 100, 100))]


@program([*SQUARE, *RECTANGULAR], regrouped=16)
def matrix_product(a, b):
    return a @ b


# In lines of whole 16 bytes.
@program([(arr(dtype, 20, 48), arr(dtype, 48, 32)) for dtype in ("u1", "i2", "i4", "i8")])
def integer_product(a, b):
    return a @ b


# The columns that are left out share 16 bytes with others.
@program([(arr("f2", 40, 32), arr("f2", 24, 32)), (arr("i4", 40, 32), arr("i4", 24, 32))], ulp=1)
def product_of_windows(a, b):
    return a[:, :30] @ b[:, :30].T


# Threads of ours and of NumPy's BLAS cut large products at different rows, and on some processors the kernels of BLAS
# add in another order at the end of a part.
@program(LARGE, sums=16)
def large_matrix_product(a, b):
    return a @ b


@program([*SQUARE[:3], *RECTANGULAR], regrouped=16)
def named_products(a, b):
    return np.matmul(a, b), np.dot(a, b), a.dot(b)


@program(MATRIX_VECTOR, sums=16)
def matrix_vector(a, x, y):
    return a @ x, y @ a, np.dot(a, x)


@program(VECTORS, sums=8)
def scalar_products(x, y):
    return x @ y, np.dot(x, y), np.inner(x, y)


@program(VECTORS, sums=8)
def conjugate_product(x, y):
    return np.vdot(x, y)


@program([*VECTORS[:4], (arr("f8", 3), arr("f8", 2)), (arr("f8", 2, 2), arr("f8", 3))])
def outer_products(x, y):
    return np.outer(x, y), np.multiply.outer(x, y)


@program([(arr("f8", 3), arr("f8", 4)), (arr("i4", 3), arr("i4", 3))])
def ufunc_outer(x, y):
    return np.add.outer(x, y), np.minimum.outer(x, y)


@program(
    [
        (arr("f8", 2, 3, 4), arr("f8", 4, 2)),
        (arr("f8", 2, 3, 4), arr("f8", 2, 4, 3)),
        (arr("f4", 2, 1, 3, 4), arr("f4", 5, 4, 2)),
    ],
    regrouped=16,
)
def stacked_products(a, b):
    return a @ b


@program([(arr("f8", 3, 3),), (arr("i4", 2, 4),), (arr("f4", 3, 2, layout="F"),)], regrouped=8)
def traces(a):
    return np.trace(a), a.trace(), np.trace(a, 1)


@program([(arr("f8", 3, 4),), (arr("f4", 3, 4, layout="F"),)], regrouped=16)
def gram_matrix(a):
    return a.T @ a, a @ a.T


@program(
    [
        (arr("f8", 3, 4), arr("f8", 4, 5), arr("f8", 3, 5), 1.5, 0.5),
        (arr("f4", 2, 2), arr("f4", 2, 2), arr("f4", 2, 2), 2, 1),
    ],
    regrouped=16,
    mutates=(2,),
)
def gemm(a, b, c, alpha, beta):
    c[:] = alpha * a @ b + beta * c


@program(
    [(arr("f8", 4, 3), arr("f8", 3, 2), arr("f8", 2, 4)), (arr("f4", 2, 2), arr("f4", 2, 2), arr("f4", 2, 2))],
    regrouped=64,
)
def chain(a, b, c):
    return a @ b @ c


@program([(arr("f8", 3, 4), arr("f8", 4)), (arr("i8", 3, 2), arr("i8", 2))], regrouped=16, mutates=(1,))
def product_into_operand(a, x):
    x[:3] = a[:, : len(x)] @ x if len(x) > 3 else (a @ x)[: len(x)]


@program(
    [(arr("f8", 3, 4), arr("f8", 4, 5)), (arr("f4", 3, 4), arr("f4", 4, 3)), (arr("i4", 2, 2), arr("i4", 2, 2))],
    regrouped=16,
)
def product_by_loops(a, b):
    n, m, k = a.shape[0], b.shape[1], a.shape[1]
    c = np.zeros((n, m), a.dtype)
    for i in range(n):
        for j in range(m):
            for p in range(k):
                c[i, j] += a[i, p] * b[p, j]
    return c


@program([(arr("f8", 3, 4), arr("f8", 4, 3)), (arr("f4", 2, 5), arr("f4", 5, 2))], regrouped=16)
def product_by_broadcast(a, b):
    return np.sum(a[:, :, None] * b[None, :, :], axis=1)


@program([(arr("f8", 3), arr("f8", 3, seed=1)), (arr("i4", 4, 3), arr("f8", 3))], opaque=None)
def cross_product(x, y):
    return np.cross(x, y)


@program([(arr("f8", 3, 4), arr("f8", 4, 2)), (arr("f8", 3, 4), arr("f8", 4, 1))], opaque=None, sums=16)
def einsum(a, b):
    return np.einsum("ij,jk->ik", a, b), np.tensordot(a, b, axes=1), np.kron(a, b)


@program(
    [raising(ValueError, arr("f8", 3), arr("f8", 4)), raising(ValueError, arr("f8", 3, 4), arr("f8", 3))], message=True
)
def product_mismatch(a, b):
    return np.dot(a, b)


@program([raising(ValueError, arr("f8", 3, 3), 2.0)], message=True, fell_back=None)
def matmul_of_scalar(a, b):
    return a @ b


@program([(arr("f8", 3, 3), 2.0), (3, 4.0), (arr("f8", 4), np.float64(2))])
def dot_of_scalar(a, b):
    return np.dot(a, b), np.inner(a, b)


_ODD = [np.nan, np.inf, -2.0, 0.0, -0.0, -np.inf]


@program(
    [
        *((arr(dtype, 2, 3, values=_ODD), number) for dtype in ("f4", "f8", "c16") for number in (0, -0.0, False)),
        (arr("f8", 6, values=_ODD), 1.0),
        (arr("f8", 1, values=[np.nan]), 0),
        (arr("f8", 1, 1, values=[np.inf]), 0),
        (arr("f8", 2, 3, 1, values=_ODD), 0),
        (arr("f4", 5, values=[1e-30, -1e-30, 0.0, -0.0, np.inf]), np.float32(-1e-30)),
        (arr("f8", 1, 5, values=[1e-200, -1e-200, 0.0, -0.0, np.nan]), -1e-200),
    ]
)
def dot_of_zero(a, b):
    one, other = np.dot(a, b), np.dot(b, a)
    return one, other, np.inner(a, b), np.signbit(one.real)


@program([(arr("f8", 5, 5),), (arr("f8", 3, 3, layout="F"),)], ulp=1, mutates=(0,))
def lower_triangle_by_loops(a):
    for i in range(a.shape[0]):
        for j in range(i + 1, a.shape[1]):
            a[i, j] = 0
        a[i, : i + 1] /= 2 + a[i, i] * a[i, i]


@program(
    [
        (arr("i8", 3, 3, layout="F"), arr("i8", 3, 3, layout="F")),
        (arr("f8", 3, 3, layout="F"), arr("f8", 3, 3)),
        (arr("u1", 2, 3, 3, layout="F"), arr("u1", 2, 3, 3, layout="F")),
    ],
    regrouped=16,
)
def products_in_fortran_order(x, y):
    """Products are in C order whatever their operands are."""
    return x @ y, np.matmul(x, y), np.dot(x, y[0])


@program(
    [(arr("f8", 4, 4), arr("f8", 4)), (arr("f4", 3, 3), arr("f4", 3)), (arr("c16", 3, 3), arr("f8", 3))],
    opaque=0,
    regrouped=256,
)
def solved_by_factors(a, b):
    """A system of equations in two ways, its determinant and the eigenvalues of its normal matrix."""
    m = a + 9 * np.eye(len(b))
    normal = m @ m.conj().T
    lower = np.linalg.cholesky(normal)
    return np.linalg.solve(m, b), np.linalg.inv(m) @ b, np.linalg.det(m), lower, np.linalg.eigvalsh(normal)


@program([(arr("f8", 5, 3, 3),), (arr("f8", 0, 3, 3),)], opaque=0, regrouped=256)
def stack_of_matrices(a):
    m = a + 9 * np.eye(3)
    total = np.zeros(3)
    for i in range(len(m)):
        total += np.linalg.solve(m[i], m[i, 0])
    return np.linalg.inv(m), np.linalg.det(m), total


@program([(arr("f8", 3, 3),), raising(np.linalg.LinAlgError, arr("f8", 3, 3, values=[0]))], message=True)
def inverse_of_what_may_be_singular(a):
    nothing = (a - a) / (a - a)  # sets the flag by which LAPACK tells of failure
    return np.linalg.inv(a), np.isnan(nothing).all()


@program([raising(np.linalg.LinAlgError, arr("f8", 3, 4))], message=True)
def determinant_of_no_square(a):
    return np.linalg.det(a)


@program([(arr("f8", 6, 8),), (arr("f4", 3, 7),), (arr("c16", 2, 6),), large(arr("f8", 600, 100))], opaque=0, sums=64)
def spectra(x):
    """Transforms of lines, of columns and of both."""
    whole = np.fft.fft2(x)
    back = np.fft.ifft(np.fft.fft(x, axis=0), axis=0)
    power = np.zeros(x.shape[1] // 2 + 1, x.real.dtype)
    for i in range(len(x)):
        power += np.abs(np.fft.rfft(x[i].real)) ** 2
    return whole, back, power, np.fft.irfft(np.fft.rfft(x.real), x.shape[1])


SIGNALS = [(arr(kind, *shape),) for kind in ("f2", "f4", "c8", "f8", "i2", "b1") for shape in ((30,), (4, 9))]


@program([*SIGNALS, (arr("f4", 5, 6, layout="F"),), large(arr("f4", 65_536))], opaque=0)
def spectra_of_single_precision(x):
    """Without a norm the factor is an int, and the loop that of double precision, rounded once."""
    found = (
        np.fft.fft(x),
        np.fft.ifft(x, 12),
        np.fft.rfft(x.real),
        np.fft.irfft(x),
        np.fft.hfft(x),
        np.fft.ihfft(x.real),
    )
    return (*found, np.fft.fftn(x), np.fft.ifftn(x), np.fft.rfftn(x.real), np.fft.irfftn(x))


@program(SIGNALS, opaque=0)
def spectra_with_a_norm(x):
    """A norm's factor is of the array's precision, which is that of the loop if both have the loop's own types."""
    one = np.fft.fft(x, norm="ortho"), np.fft.ifft(x, norm="forward"), np.fft.rfft(x.real, 7, norm="ortho")
    other = np.fft.irfft(x, norm="ortho"), np.fft.hfft(x, norm="backward"), np.fft.rfftn(x.real, norm="forward")
    return one, other, np.fft.fftn(x, norm="ortho")


@program([(arr("f8", 4, 3),), (arr("f4", 2, 3, 3),), (arr("c16", 3, 5),)], opaque=0, regrouped=256)
def decomposed(a):
    """Named tuples, their fields and their items."""
    found = np.linalg.svd(a, full_matrices=False)
    symmetric = np.linalg.eigh(a @ np.matrix_transpose(a.conj()))
    back = (found.U * found.S[..., None, :]) @ found.Vh
    return back, found.S, np.linalg.pinv(a), np.linalg.matrix_rank(a), symmetric.eigenvalues, symmetric[0]


@program([(arr("f8", 6, 3), arr("f8", 6)), (arr("f4", 5, 5), arr("f8", 5, 2))], opaque=0, regrouped=512)
def least_squares(a, b):
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond=None)
    return x, residuals, rank, s, np.linalg.norm(a, 2), np.linalg.cond(a)


@program(
    [(arr("f8", 5, 3),), (arr("f4", 3, 5, layout="F"),), (arr("c16", 2, 3, 3),), (arr("i8", 4, 4, layout="stepped"),)],
    opaque=0,
)
def orthogonal_factors(a):
    """The very bits of NumPy, as it is the same LAPACK."""
    q, r = np.linalg.qr(a)
    return q, r, np.linalg.qr(a, "complete"), np.linalg.qr(a, "r"), np.linalg.qr(a, mode="raw")


@program([(arr("c16", 3, 3),), (arr("c8", 2, 3, 3),)], opaque=0)
def complex_eigenvalues(a):
    values, vectors = np.linalg.eig(a)
    return values, vectors, np.linalg.eigvals(a)


@program([raising(np.linalg.LinAlgError, arr("c16", 3, 3, values=[np.nan]))], message=True)
def eigenvalues_of_nan(a):
    return np.linalg.eigvals(a)


@program([(arr("f8", 3, 3),), (arr("f4", 3, 3, layout="F"),), (arr("f8", 3, 3, values=[1.0]),)], regrouped=256, ulp=64)
def conditions(a):
    norms = [np.linalg.cond(a + 4 * np.eye(3), p) for p in (None, 1, -1, np.inf, "fro", "nuc")]
    ranks = np.linalg.matrix_rank(a, tol=0.5), np.linalg.matrix_rank(a, hermitian=True), np.linalg.matrix_rank(a[0])
    return norms, ranks, np.linalg.cond(a * 0, 1), np.linalg.matrix_power(a, 6), np.linalg.matrix_power(a, 5)


@program([(arr("f8", 9), arr("f8", 9, seed=1)), (arr("f4", 8), arr("i8", 8))], regrouped=1024, opaque=0)
def fitted(x, y):
    slope, start = np.polyfit(x, y, 1)
    both = np.polyfit(x, np.stack([y, x * 2], axis=1), 2)
    return slope * x + start, both, np.polyfit(x, y, 2, w=abs(x) + 1, cov=True), np.polyfit(x, y, 1, full=True)


@program([raising(TypeError, arr("f8", 3), arr("f8", 4))], message=True)
def fit_of_other_lengths(x, y):
    return np.polyfit(x, y, 1)


EINSUM = [
    (arr("f8", 3, 3), arr("f8", 3, 3, seed=1), arr("f8", 2, 3, 3)),
    (arr("f8", 3, 3, layout="F"), arr("f8", 3, 3, layout="F", seed=1), arr("f8", 2, 3, 3, layout="F")),
    (arr("i4", 3, 3), arr("f4", 3, 3, layout="F"), arr("i8", 2, 3, 3)),
    (arr("c16", 3, 3, layout="readonly"), arr("c16", 3, 3), arr("f8", 2, 3, 3, layout="reversed")),
]


@program(EINSUM, sums=16, opaque=0)
def named_indices(a, b, t):
    """Ellipses, diagonals, implicit results, lists of numbers."""
    return (
        (np.einsum("ii", a), np.einsum("ii->i", a) + 1, np.einsum("...ii->i...", t) * 2, np.einsum("tii", t)),
        (np.einsum("...j->...", t), np.einsum("...ij,jk", t, a), np.einsum("...i,...i", t, b), np.einsum("ba", a)),
        (np.einsum("tij,tjk->tik", t, t), np.einsum("tij,tkj->kti", t, t), np.einsum("tij,j->it", t, a[0])),
        (np.einsum(a, [0, 1], b, [1, 2], [2, 0]), np.einsum(t, [Ellipsis, 3], [Ellipsis]), np.einsum(a, [1, 1])),
        (np.einsum("ij,jk,kl->il", a, b, a), np.einsum("ij, kj", a, b, optimize=True), np.einsum("ii,ij->j", a, b)),
        (np.einsum("ij,kj->ik", a, b, out=np.zeros((3, 3), np.complex128)), np.einsum("...,...->...", a, b)),
    )


@program([(arr("f8", 4, 4),), (arr("f4", 4, 4, layout="F"),)], mutates=(0,), opaque=0)
def diagonal_through_einsum(a):
    """A view of the diagonal, which can be stored to."""
    d = np.einsum("ii->i", a)
    d += 5
    return d, np.einsum("ij->ji", a)


@program(
    [raising(ValueError, arr("f8", 3, 4), arr("f8", 3, 4)), (arr("f8", 3, 4), arr("f8", 4, 1)), (arr("f8", 1, 1),) * 2],
    message=True,
    sums=8,
)
def extents_of_one_index(a, b):
    return np.einsum("ij,jk->ik", a, b)


@program([(arr("f8", 4, 4),), (arr("c8", 3, 3, layout="F"),)], regrouped=256, opaque=0)
def hermitian(a):
    h = a @ a.conj().T - np.eye(len(a), dtype=a.dtype)
    return np.linalg.svd(h, hermitian=True), np.linalg.pinv(h, hermitian=True), np.linalg.svdvals(h)


@program(
    [
        *(raising(ValueError, text, arr("f8", 2, 3), arr("f8", 4, 5)) for text in ("ij,jk", "ij,kj->ik", "...i,...i")),
        *(raising(ValueError, text, arr("f8", 2, 4), arr("f8", 3, 5)) for text in ("ii,jk", "jk,ii->j", "ij,...ii")),
    ],
    message=True,
    mutates=(1,),
    opaque=None,
)
def einsum_after_a_store(text, a, b):
    """NumPy's own exception, although Python could not run the call any more."""
    a[0] = 1
    return np.einsum(text, a, b)


@program([(arr("f8", 3, 5, layout="F"), np.float32(2)), (arr("i4", 2, 3), True)])
def kron_in_the_order_of_its_operands(a, b):
    """One operand without axes leaves the order of the other; of two matrices it is C."""
    return np.kron(b, a), np.kron(a, b), np.kron(a[:-1] + 1, [2]), np.kron(a, a)


@program(
    [
        (np.array(x, dtype), np.array(y, dtype))
        for dtype in ("f8", "f4", "c16", "i8", "f2")
        for x, y in (
            ([-0.0], [0.0]),
            ([[-0.0]], [[2.0, np.inf if dtype[0] in "fc" else 4, 3.0]]),
            ([[3.0], [np.nan if dtype[0] in "fc" else 4]], [0.0]),
            ([[-1.0], [0.0]], [[0.0]]),
            ([-2.0], [[3.0, 0.0]]),
        )
    ]
)
def products_with_one_element(a, b):
    return np.dot(a, b), np.inner(a, b.T), a.dot(b)


def rows_and_columns(n, m):
    return [
        (arr("f8", n, m), arr("f8", m, seed=1), arr("f8", n, seed=2)),
        (arr("c8", n, m), arr("c8", m), arr("c8", n)),
    ]


@program([*rows_and_columns(5, 3), *rows_and_columns(0, 3), *rows_and_columns(3, 0)], sums=256)
def computed_for_a_product(a, x, y):
    """Matrices that nothing but a product reads."""
    scaled = 2 * a
    return (a * a - 1) @ x, (a + y[:, None]) @ x, y @ scaled, (-scaled) @ x + scaled[:, 0] if a.shape[1] else None


MANY = [large(arr("f8", 2100, 130), arr("f8", 130, seed=1), arr("f8", 2100, seed=2))]
RAISING = raising(ValueError, arr("f8", 4, 3), arr("f8", 3), arr("f8", 3))


@program(
    [*rows_and_columns(5, 3), *rows_and_columns(0, 3), *rows_and_columns(3, 0), *MANY, RAISING],
    sums=256,
    mutates=(1,),
)
def two_products_of_a_matrix(a, x, y):
    """Along and across the rows; the second one of another vector, of what the first one gives, of what it changes."""
    both = a @ x, y @ a
    twice = (a @ x) @ a
    x[0:1] = 7
    again = a @ x
    return both, twice, again


@program([*rows_and_columns(5, 3), *MANY, RAISING], sums=256, mutates=(1, 2))
def products_into_arguments(a, x, y):
    y += a @ x
    x -= y @ a
