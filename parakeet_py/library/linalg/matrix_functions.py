"""Linear algebra put together from products and norms: the array API's norms, powers and chains of matrices."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import atleast_2d, ravel
from parakeet_py.library.intrinsics import (
    as_array,
    assign,
    cast,
    check,
    constant,
    dtype_of,
    hand_back,
    is_known,
    is_sequence,
    reshape,
    unsupported,
)
from parakeet_py.library.linalg.matrices import vector_norm as norm_along
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import into, reduction_axes


@implements(np.linalg.vector_norm)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    x = as_array(x)
    if is_sequence(axis):
        x = x if dtype_of(x).kind in "fc" else cast(x, "float64")
        return norm_along(x, ord, reduction_axes(axis, x.ndim), keepdims)
    if axis is not None:
        return np.linalg.norm(x, ord, axis, keepdims)
    made = np.linalg.norm(ravel(x), ord, 0)
    return as_array(made)[(None,) * x.ndim] if keepdims else made


@implements(np.linalg.matrix_norm)
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    return np.linalg.norm(x, ord, (-2, -1), keepdims)


@static
def three_message():
    return "Both input arrays must be (arrays of) 3-dimensional vectors, but they are {0} and {1} dimensional instead."


@implements(np.linalg.cross)
def cross(x1, x2, /, *, axis=-1):
    a, b = as_array(x1), as_array(x2)
    left, right = a.shape[axis], b.shape[axis]
    check((left == 3) & (right == 3), "ValueError", three_message(), left, right)
    return np.cross(a, b, axis=axis)


@implements(np.linalg.diagonal)
def diagonal(x, /, *, offset=0):
    return np.diagonal(x, offset, -2, -1)


# ---- powers and chains -----------------------------------------------------------------------------------------------


@implements(np.linalg.matrix_power)
def matrix_power(a, n):
    a = as_array(a)
    if a.ndim < 2:
        unsupported("a matrix has two axes at least")
    check(a.shape[-1] == a.shape[-2], "Deoptimize", "a power of a matrix that is not square")
    if dtype_of(as_array(n)).kind not in "iu":
        unsupported("exponent must be an integer")
    if is_known(n):
        return known_power(a, n)
    check(n > 1, "Deoptimize", "a power of a matrix below 2")
    left = int(n)
    if left == 3:  # NumPy multiplies these two in another order
        return np.matmul(np.matmul(a, a), a)
    z = a + constant(0, dtype_of(a)) if dtype_of(a).kind != "b" else a | a
    while left % 2 == 0:
        z = np.matmul(z, z)
        left = left // 2
    made = z
    left = left // 2
    while left > 0:
        z = np.matmul(z, z)
        if left % 2 == 1:
            made = np.matmul(made, z)
        left = left // 2
    return made


@static
def bits_of(n):
    """The binary digits of a number, from the lowest."""
    return tuple(digit == "1" for digit in reversed(f"{n:b}"))


def known_power(a, n):
    if n < 0:
        return known_power(np.linalg.inv(a), -n)
    if n == 0:
        made = np.empty_like(a)
        assign(made, np.eye(a.shape[-2], dtype=dtype_of(a)))
        return made
    if n == 1:
        return a
    if n == 3:  # NumPy multiplies these two in another order
        return np.matmul(np.matmul(a, a), a)
    digits = bits_of(n)
    return squared_on(a, digits[1:]) if not digits[0] else multiplied_on(a, a, digits[1:])


def squared_on(z, digits):
    """The power without the factors of its lowest digits."""
    z = np.matmul(z, z)
    return multiplied_on(z, z, digits[1:]) if digits[0] else squared_on(z, digits[1:])


def multiplied_on(made, z, digits):
    """What is made so far, times the powers of the digits that are left."""
    for digit in digits:
        z = np.matmul(z, z)
        if digit:
            made = np.matmul(made, z)
    return made


@implements(np.linalg.multi_dot)
def multi_dot(arrays, *, out=None):
    if len(arrays) < 2:
        unsupported("Expecting at least two arrays.")
    if len(arrays) == 2:
        return np.dot(arrays[0], arrays[1], out)
    if len(arrays) > 3 or out is not None:
        hand_back("a chain of more than three matrices, whose best order is found at run time")
    a, b, c = [as_array(one) for one in arrays]
    first, last = a.ndim, c.ndim
    a = atleast_2d(a) if first == 1 else a
    c = atleast_2d(c).T if last == 1 else c
    if a.ndim != 2 or b.ndim != 2 or c.ndim != 2:
        unsupported("matrices of two axes are needed")
    from_left = a.shape[0] * b.shape[1] * (a.shape[1] + c.shape[1])
    from_right = b.shape[0] * c.shape[1] * (a.shape[0] + b.shape[1])
    made = np.dot(np.dot(a, b), c) if from_left < from_right else np.dot(a, np.dot(b, c))
    if first == 1 and last == 1:
        return made[0, 0]
    return reshape(made, (made.size,)) if first == 1 or last == 1 else made


# ---- products of vectors and matrices --------------------------------------------------------------------------------


@static
def mismatch(name, signature):
    return (
        f"{name}: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature {signature} "
        "(size {0} is different from {1})"
    )


@implements(np.matvec)
def matvec(x1, x2, /, out=None):
    a, b = as_array(x1), as_array(x2)
    if a.ndim < 2 or b.ndim < 1:
        unsupported("matvec: Input operand does not have enough dimensions")
    check(a.shape[-1] == b.shape[-1], "ValueError", mismatch("matvec", "(m,n),(n)->(m)"), b.shape[-1], a.shape[-1])
    made = np.matmul(a, b[..., None])[..., 0] if b.ndim > 1 else np.matmul(a, b)
    return made if out is None else into(out, as_array(made))


@implements(np.vecmat)
def vecmat(x1, x2, /, out=None):
    a, b = as_array(x1), as_array(x2)
    if a.ndim < 1 or b.ndim < 2:
        unsupported("vecmat: Input operand does not have enough dimensions")
    check(a.shape[-1] == b.shape[-2], "ValueError", mismatch("vecmat", "(n),(n,m)->(m)"), b.shape[-2], a.shape[-1])
    a = np.conjugate(a) if dtype_of(a).kind == "c" else a
    made = np.matmul(a[..., None, :], b)[..., 0, :] if a.ndim > 1 else np.matmul(a, b)
    return made if out is None else into(out, as_array(made))
