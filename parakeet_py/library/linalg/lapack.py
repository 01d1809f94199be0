"""np.linalg on top of the very loops that NumPy calls LAPACK through: solving, inverting, factors and eigenvalues.

As in NumPy everything is computed in float64 or complex128 and rounded to the dtype of the arguments at the end. A
routine takes a stack of matrices whose first axis counts them; `stack_of` makes one of whatever is given.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg._linalg import EighResult, SlogdetResult

from parakeet_py.base.exact_loops import exact
from parakeet_py.library.arrays.shape import positions, size_of
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    broadcast_view,
    check,
    copy,
    dtype_of,
    hand_back,
    has_routine,
    named,
    on_device,
    order_of,
    permute,
    reshape,
    routine,
    unsupported,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import converted, inverse_axes, real_kind

ERROR = "numpy.linalg:LinAlgError"


@static
def work_kind(*kinds):
    """The dtype that is computed in."""
    if any(kind == np.float16 for kind in kinds):
        raise TypeError("array type float16 is unsupported in linalg")
    return np.dtype("complex128" if any(kind.kind == "c" for kind in kinds) else "float64")


@static
def final_kind(*kinds):
    """The dtype of results: single precision where all arguments are."""
    single = all(kind.char in "fF" for kind in kinds)
    if any(kind.kind == "c" for kind in kinds):
        return np.dtype("complex64" if single else "complex128")
    return np.dtype("float32" if single else "float64")


@static
def member(name):
    return f"linalg.{name}"


def need(name, *kinds):
    if not has_routine(member(name), *kinds):
        hand_back("a routine that this NumPy does not have")


def stacked(a):
    """An array of matrices."""
    a = as_array(a)
    if a.ndim < 2:
        unsupported("the array must be at least two-dimensional")
    return a


def square(a):
    """An array of square matrices."""
    a = stacked(a)
    check(a.shape[-1] == a.shape[-2], ERROR, "Last 2 dimensions of the array must be square")
    return a


@static
def batch_order(order, rank, core=2):
    """The axes of a stack from the slowest to the fastest, which is their order in results."""
    return tuple(axis for axis in order if axis < rank - core) if rank > core + 1 else tuple(range(rank - core))


@static
def in_turn(order, rank):
    """All axes, those of the stack in an order."""
    return (*order, *range(len(order), rank))


def order_in(a, core=2):
    return batch_order(order_of(a) if a.ndim > 1 else (0,), a.ndim, core)


def stack_of(a, order, core=2):
    """An array with one axis before its last ones, which runs through the others in an order."""
    if a.ndim == core:
        return a[None]
    if a.ndim == core + 1:
        return a
    a = permute(a, in_turn(order, a.ndim))
    return reshape(a, (size_of(a.shape[: a.ndim - core]), *a.shape[a.ndim - core :]))


def unstacked(made, batch, order):
    """The results for the matrices of a batch: without axes, a matrix, vector or scalar."""
    if len(batch) == 0:
        return made[0]
    if len(batch) == 1:
        return made
    made = reshape(made, (*[batch[axis] for axis in order], *made.shape[1:]))
    return permute(made, in_turn(inverse_axes(order), made.ndim))


def succeeded(failed, message):
    check(not failed, ERROR, message)


# ---- systems of equations --------------------------------------------------------------------------------------------


def agreed(left, right):
    check((left == right) | (left == 1) | (right == 1), "Deoptimize", "stacks that do not broadcast")
    return right if left == 1 else left


def batch_extent(x, core, rank, axis):
    """The extent of one of so many batch axes."""
    position = axis - (rank - (x.ndim - core))
    return x.shape[position] if position >= 0 else 1


@static
def later(left, right):
    return max(left, right)


@implements(np.linalg.solve)
def solve(a, b):
    a, b = square(a), as_array(b)
    if b.ndim == 0:
        unsupported("the right-hand side has no axes")
    kind, final = work_kind(dtype_of(a), dtype_of(b)), final_kind(dtype_of(a), dtype_of(b))
    if b.ndim == 1:
        return solved(a, b, 1, "solve1", "(m,m),(m)->(m)", kind, final)
    return solved(a, b, 2, "solve", "(m,m),(m,n)->(m,n)", kind, final)


@static
def mismatch(name, signature):
    return (
        f"{name}: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature {signature} "
        "(size {0} is different from {1})"
    )


def solved(a, b, core, name, signature, kind, final):
    need(name, kind, kind, kind)
    own = b.shape[b.ndim - core]
    check(own == a.shape[-1], "ValueError", mismatch(name, signature), own, a.shape[-1])
    rank = later(a.ndim - 2, b.ndim - core)
    batch = tuple(
        [agreed(batch_extent(a, 2, rank, axis), batch_extent(b, core, rank, axis)) for axis in positions(rank)]
    )
    right = b.shape[b.ndim - core :]
    a, b = converted(a, kind), converted(b, kind)
    if rank > 0:
        a, b = broadcast_view(a, (*batch, *a.shape[-2:])), broadcast_view(b, (*batch, *right))
    order = order_in(a)
    if on_device() and core == 2:  # libraries have right-hand sides one after the other
        out = turned(allocate((size_of(batch), right[1], right[0]), kind))
        failed = routine(member(name), (out,), (stack_of(a, order), in_columns(stack_of(b, order))))
        succeeded(failed, "Singular matrix")
        return converted(unstacked(copy(out, "C"), batch, order), final)
    out = allocate((size_of(batch), *right), kind)
    failed = routine(member(name), (out,), (stack_of(a, order), stack_of(b, order, core)))
    succeeded(failed, "Singular matrix")
    return converted(unstacked(out, batch, order), final)


def turned(a):
    return permute(a, (0, 2, 1))


def in_columns(a):
    """A copy of matrices in column-major order."""
    return turned(copy(turned(a), "C"))


# ---- functions of one matrix -----------------------------------------------------------------------------------------


def matrix_to_matrix(a, name, message):
    """What a routine makes of square matrices: others of their shape."""
    kind = work_kind(dtype_of(a))
    need(name, kind, kind)
    stack = stack_of(converted(a, kind), order_in(a))
    out = allocate(stack.shape, kind)
    failed = routine(member(name), (out,), (stack,))
    succeeded(failed, message)
    return converted(unstacked(out, a.shape[:-2], order_in(a)), final_kind(dtype_of(a)))


@implements(np.linalg.inv)
def inv(a):
    a = square(a)
    if on_device():  # as `gesv` does it for NumPy
        kind = work_kind(dtype_of(a))
        return solved(a, np.eye(a.shape[-1], dtype=kind), 2, "solve", "", kind, final_kind(dtype_of(a)))
    return matrix_to_matrix(a, "inv", "Singular matrix")


@implements(np.linalg.cholesky)
def cholesky(a, /, *, upper=False):
    factor = matrix_to_matrix(square(a), triangle(upper), "Matrix is not positive definite")
    if on_device():  # libraries leave the other triangle as it is
        return np.triu(factor) if upper else np.tril(factor)
    return factor


@static
def triangle(upper):
    if upper:
        return "cholesky_up"
    return "cholesky_lo" if exact.get() else "cholesky_lo_blocked"


@implements(np.linalg.det)
def det(a):
    a = square(a)
    kind = work_kind(dtype_of(a))
    need("det", kind, kind)
    stack = stack_of(converted(a, kind), order_in(a))
    out = allocate((stack.shape[0],), kind)
    routine(member("det"), (out,), (stack,))
    return converted(unstacked(out, a.shape[:-2], order_in(a)), final_kind(dtype_of(a)))


@static
def of_triangle(name, uplo):
    """The routine that reads the lower or the upper triangle."""
    uplo = uplo.upper()
    if uplo not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return f"{name}_lo" if uplo == "L" else f"{name}_up"


@implements(np.linalg.eigvalsh)
def eigvalsh(a, UPLO="L"):
    name = of_triangle("eigvalsh", UPLO)
    a = square(a)
    kind = work_kind(dtype_of(a))
    need(name, kind, real_kind(kind))
    stack = stack_of(converted(a, kind), order_in(a))
    out = allocate(stack.shape[:2], real_kind(kind))
    failed = routine(member(name), (out,), (stack,))
    succeeded(failed, "Eigenvalues did not converge")
    return converted(unstacked(out, a.shape[:-2], order_in(a)), real_kind(final_kind(dtype_of(a))))


@implements(np.linalg.eigh)
def eigh(a, UPLO="L"):
    name = of_triangle("eigh", UPLO)
    a = square(a)
    kind, final = work_kind(dtype_of(a)), final_kind(dtype_of(a))
    real, order = real_kind(kind), order_in(a)
    need(name, kind, real, kind)
    stack = stack_of(converted(a, kind), order)
    values, vectors = allocate(stack.shape[:2], real), allocate(stack.shape, kind)
    failed = routine(member(name), (values, vectors), (stack,))
    succeeded(failed, "Eigenvalues did not converge")
    values, vectors = unstacked(values, a.shape[:-2], order), unstacked(vectors, a.shape[:-2], order)
    return named(EighResult, converted(values, real_kind(final)), converted(vectors, final))


@implements(np.linalg.slogdet)
def slogdet(a):
    a = square(a)
    kind, final = work_kind(dtype_of(a)), final_kind(dtype_of(a))
    real, order = real_kind(kind), order_in(a)
    need("slogdet", kind, kind, real)
    stack = stack_of(converted(a, kind), order)
    signs, logarithms = allocate((stack.shape[0],), kind), allocate((stack.shape[0],), real)
    routine(member("slogdet"), (signs, logarithms), (stack,))
    signs, logarithms = unstacked(signs, a.shape[:-2], order), unstacked(logarithms, a.shape[:-2], order)
    return named(SlogdetResult, converted(signs, final), converted(logarithms, real_kind(final)))
