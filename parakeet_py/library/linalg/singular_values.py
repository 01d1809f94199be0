"""Singular values and what NumPy makes of them: svd, svdvals, pinv, matrix_rank, cond, lstsq."""

from __future__ import annotations

import numpy as np
from numpy.linalg._linalg import SVDResult

from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    cast,
    check,
    constant,
    dtype_of,
    hand_back,
    is_array,
    named,
    permute,
    routine,
    unsupported,
)
from parakeet_py.library.linalg.lapack import (
    ERROR,
    final_kind,
    member,
    need,
    order_in,
    square,
    stack_of,
    stacked,
    succeeded,
    unstacked,
    work_kind,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import NO_VALUE, converted, in_order, real_kind

FAILED = "SVD did not converge"


@static
def swapped_last(rank):
    return (*range(rank - 2), rank - 1, rank - 2)


@static
def truth(flag):
    return bool(flag)


def values_only(a):
    """The singular values of matrices, in the real dtype of their results."""
    a = stacked(a)
    kind, order = work_kind(dtype_of(a)), order_in(a)
    need("svd", kind, real_kind(kind))
    stack = stack_of(converted(a, kind), order)
    out = allocate((stack.shape[0], min(a.shape[-2], a.shape[-1])), real_kind(kind))
    failed = routine(member("svd"), (out,), (stack,))
    succeeded(failed, FAILED)
    return converted(unstacked(out, a.shape[:-2], order), real_kind(final_kind(dtype_of(a))))


def factors(a, full):
    """u, the singular values and v."""
    a = stacked(a)
    kind, final, order = work_kind(dtype_of(a)), final_kind(dtype_of(a)), order_in(a)
    real = real_kind(kind)
    name = "svd_f" if full else "svd_s"
    need(name, kind, kind, real, kind)
    stack = stack_of(converted(a, kind), order)
    rows, columns = a.shape[-2], a.shape[-1]
    least = min(rows, columns)
    u = allocate((stack.shape[0], rows, rows if full else least), kind)
    s = allocate((stack.shape[0], least), real)
    v = allocate((stack.shape[0], columns if full else least, columns), kind)
    failed = routine(member(name), (u, s, v), (stack,))
    succeeded(failed, FAILED)
    u, s, v = [unstacked(one, a.shape[:-2], order) for one in (u, s, v)]
    return converted(u, final), converted(s, real_kind(final)), converted(v, final)


@implements(np.linalg.svd)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    if truth(hermitian):
        if not truth(compute_uv):
            return absolute_values(a)
        u, s, v = hermitian_factors(a)
        return named(SVDResult, u, s, v)
    if not truth(compute_uv):
        return values_only(a)
    u, s, v = factors(a, truth(full_matrices))
    return named(SVDResult, u, s, v)


def hermitian_factors(a):
    """The factors of a Hermitian matrix, from its eigenvectors: the signs of its eigenvalues are with v."""
    a = stacked(a)
    if a.ndim > 2:
        hand_back("the singular vectors of a stack of Hermitian matrices")
    s, u = np.linalg.eigh(a)
    order = np.argsort(np.abs(s))[::-1]
    u = in_order(u[:, order])
    return u, np.abs(s)[order], np.conjugate(permute(u * np.sign(s)[order], (1, 0)))


@implements(np.linalg.svdvals)
def svdvals(x, /):
    return values_only(x)


@static
def precision_of(kind):
    return np.finfo(kind).eps


@implements(np.linalg.matrix_rank)
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    if (tol is not None and rtol is not None) or is_array(tol) or is_array(rtol):
        hand_back("a rank with several tolerances")
    a = as_array(A)
    if a.ndim < 2:
        return int((a != 0).any())
    s = absolute_values(a) if truth(hermitian) else values_only(a)
    if tol is not None:
        return np.count_nonzero(s > tol, -1)
    kind = dtype_of(s)
    if rtol is None:
        relative = np.multiply(cast(max(a.shape[-2], a.shape[-1]), kind), constant(precision_of(kind), kind))
    else:
        relative = rtol
    return np.count_nonzero(s > np.max(s, -1, None, True, 0) * relative, -1)


def absolute_values(a):
    """The singular values of Hermitian matrices: the sizes of their eigenvalues, the largest first."""
    return np.sort(np.abs(np.linalg.eigvalsh(a)))[..., ::-1]


@implements(np.linalg.pinv)
def pinv(a, rcond=None, hermitian=False, *, rtol=NO_VALUE):
    if rcond is not None and rtol is not NO_VALUE:
        unsupported("`rtol` and `rcond` can't be both set.")
    a = stacked(a)
    check((a.shape[-1] > 0) & (a.shape[-2] > 0), "Deoptimize", "the pseudo-inverse of a matrix without elements")
    given = rtol if rcond is None and rtol is not NO_VALUE else rcond
    if is_array(given):
        hand_back("a pseudo-inverse with several tolerances")
    if given is not None:
        cutoff = cast(given, "float64")
    elif rtol is NO_VALUE:
        cutoff = constant(1e-15, "float64")
    else:
        cutoff = cast(max(a.shape[-2], a.shape[-1]) * precision_of(final_kind(dtype_of(a))), "float64")
    u, s, v = hermitian_factors(np.conjugate(a)) if truth(hermitian) else factors(np.conjugate(a), False)
    large = s > cutoff * np.max(s, -1, None, True)
    inverse = np.where(large, np.divide(1, s), constant(0, dtype_of(s)))
    u, v = permute(u, swapped_last(u.ndim)), permute(v, swapped_last(v.ndim))
    return np.matmul(v, np.multiply(inverse[..., None], u))


@implements(np.linalg.cond)
def cond(x, p=None):
    x = stacked(x)
    check((x.shape[-1] > 0) & (x.shape[-2] > 0), ERROR, "cond is not defined on empty arrays")
    if p is None or p == 2 or p == -2:
        s = values_only(x)
        found = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        found = product_of_norms(square(x), p)
    unknown = np.isnan(found) & ~np.isnan(x).any((-2, -1))
    return np.where(unknown, constant(np.inf, dtype_of(found)), found)[()]


def product_of_norms(x, p):
    """The norm of a matrix times that of its inverse, which is NaN where there is none."""
    kind, order = work_kind(dtype_of(x)), order_in(x)
    need("inv", kind, kind)
    stack = stack_of(converted(x, kind), order)
    out = allocate(stack.shape, kind)
    routine(member("inv"), (out,), (stack,))
    inverse = unstacked(out, x.shape[:-2], order)
    found = np.linalg.norm(x, p, (-2, -1)) * np.linalg.norm(inverse, p, (-2, -1))
    return converted(found, real_kind(final_kind(dtype_of(x))))


@implements(np.linalg.lstsq)
def lstsq(a, b, rcond=None):
    a, b = as_array(a), as_array(b)
    if a.ndim != 2 or b.ndim not in (1, 2):
        unsupported("least squares of matrices only")
    kind, final = work_kind(dtype_of(a), dtype_of(b)), final_kind(dtype_of(a), dtype_of(b))
    real = real_kind(kind)
    need("lstsq", kind, kind, real, kind, real, "int32", real)
    right = b[:, None] if b.ndim == 1 else b
    m, n, count = a.shape[0], a.shape[1], right.shape[1]
    check(m == right.shape[0], ERROR, "Incompatible dimensions")
    check((m > 0) & (n > 0) & (count > 0), "Deoptimize", "least squares without equations")
    scale = constant(precision_of("float64"), "float64") * max(n, m) if rcond is None else cast(rcond, "float64")
    x, residuals = allocate((1, n, count), kind), allocate((1, count), real)
    rank, s = allocate((1,), "int32"), allocate((1, min(m, n)), real)
    matrix, right = converted(a, kind), converted(right, kind)
    failed = routine(member("lstsq"), (x, residuals, rank, s), (matrix[None], right[None], as_array(scale)[None]))
    succeeded(failed, "SVD did not converge in Linear Least Squares")
    kept = residuals[0, : count if (rank[0] == n) & (m > n) else 0]
    solution = x[0, :, 0] if b.ndim == 1 else x[0]
    kind = real_kind(final)
    return cast(solution, final), converted(kept, kind), rank[0], converted(s[0], kind)
