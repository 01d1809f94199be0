"""np.linalg.qr, and eigenvalues of general matrices.

The routine `qr_r_raw` leaves R above the diagonal of the matrices it is given and the reflections that make up Q below
it (LAPACK's geqrf); others put Q together from these (orgqr, ungqr). Whether a real matrix has real eigenvalues is seen
when it runs, and NumPy's result has the dtype that fits: these calls are left to NumPy.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg._linalg import EigResult, QRResult

from parakeet_py.library.arrays.shape import reversed_axes, swapped
from parakeet_py.library.intrinsics import (
    allocate,
    assign,
    check,
    copy,
    dtype_of,
    hand_back,
    named,
    order_of,
    permute,
    routine,
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
from parakeet_py.library.shared import converted

FAILED = "Incorrect argument found while performing QR factorization"


@static
def qr_mode(mode):
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    return mode


def as_given(made, a):
    """Matrices in Fortran order if the given ones are."""
    return copy(made, "F") if order_of(a) == reversed_axes(a.ndim) else made


@implements(np.linalg.qr)
def qr(a, mode="reduced"):
    mode = qr_mode(mode)
    a = stacked(a)
    kind, final, order = work_kind(dtype_of(a)), final_kind(dtype_of(a)), order_in(a)
    need("qr_r_raw", kind, kind)
    need("qr_reduced", kind, kind, kind)
    need("qr_complete", kind, kind, kind)
    batch, rows, columns = a.shape[:-2], a.shape[-2], a.shape[-1]
    least = min(rows, columns)
    given = stack_of(a, order)
    stack = allocate(given.shape, kind)
    assign(stack, given)
    factors = allocate((stack.shape[0], least), kind)
    failed = routine(member("qr_r_raw"), (stack, factors), ())
    succeeded(failed, FAILED)
    whole = as_given(unstacked(stack, batch, order), a)
    if mode == "r":
        return converted(np.triu(whole[..., :least, :]), final)
    if mode == "raw":
        whole = converted(whole, final)
        return permute(whole, swapped(-1, -2, whole.ndim)), converted(unstacked(factors, batch, order), final)
    if mode == "complete":
        q = allocate((stack.shape[0], rows, rows), kind)
        if rows > columns:
            failed = routine(member("qr_complete"), (q,), (stack, factors))
        else:
            failed = routine(member("qr_reduced"), (q,), (stack, factors))
        upper = np.triu(whole)
    else:
        q = allocate((stack.shape[0], rows, least), kind)
        failed = routine(member("qr_reduced"), (q,), (stack, factors))
        upper = np.triu(whole[..., :least, :])
    succeeded(failed, FAILED)
    return named(QRResult, converted(unstacked(q, batch, order), final), converted(upper, final))


# ---- eigenvalues of general matrices ---------------------------------------------------------------------------------


def general(a):
    """Complex square matrices of finite numbers."""
    a = square(a)
    if dtype_of(a).kind != "c":
        hand_back("eigenvalues of real matrices, which may be real or complex")
    check(np.isfinite(a).all(), ERROR, "Array must not contain infs or NaNs")
    return a


@implements(np.linalg.eigvals)
def eigvals(a):
    a = general(a)
    kind, order = work_kind(dtype_of(a)), order_in(a)
    need("eigvals", kind, kind)
    stack = stack_of(converted(a, kind), order)
    out = allocate(stack.shape[:2], kind)
    failed = routine(member("eigvals"), (out,), (stack,))
    succeeded(failed, "Eigenvalues did not converge")
    return converted(unstacked(out, a.shape[:-2], order), final_kind(dtype_of(a)))


@implements(np.linalg.eig)
def eig(a):
    a = general(a)
    kind, final, order = work_kind(dtype_of(a)), final_kind(dtype_of(a)), order_in(a)
    need("eig", kind, kind, kind)
    stack = stack_of(converted(a, kind), order)
    values, vectors = allocate(stack.shape[:2], kind), allocate(stack.shape, kind)
    failed = routine(member("eig"), (values, vectors), (stack,))
    succeeded(failed, "Eigenvalues did not converge")
    values, vectors = unstacked(values, a.shape[:-2], order), unstacked(vectors, a.shape[:-2], order)
    return named(EigResult, converted(values, final), converted(vectors, final))
