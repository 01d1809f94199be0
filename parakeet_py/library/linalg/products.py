"""Products of vectors and matrices: matmul, dot, inner, outer, vdot, tensordot, kron, cross.

Floating-point matrices go to the BLAS; integers, bools and float16 (summed in float32, as NumPy does) are reductions of
broadcast products.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from parakeet_py.base.exact_loops import exact
from parakeet_py.library.arrays.shape import positions, ravel, reshaped_memory, size_of
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    as_numeric,
    cast,
    check,
    constant,
    dtype_of,
    elementwise,
    extent_is_one,
    hand_back,
    has_routine,
    is_array,
    is_weak,
    layout_of,
    matmul_into,
    permute,
    reduce_axes,
    reshape,
    routine,
    unsupported,
)
from parakeet_py.library.reductions.reductions import accumulator_kind
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.shared import ALL, SAME, converted, in_order, into, result_kind

CORE = "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
VECTORS = "vecdot: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
VECTORS = VECTORS + "(n),(n)->() (size {0} is different from {1})"
CORE = CORE + "(n?,k),(k,m?)->(n?,m?) (size {0} is different from {1})"


@static
def is_blas_kind(kind):
    return kind.kind in "fc" and kind != np.float16


def contract(a, b, axis, kind):
    """The sum of the products of two arrays that broadcast, over one axis."""
    wide = accumulator_kind(np.add, kind)
    products = elementwise(lambda x, y: np.multiply(cast(x, wide), cast(y, wide)), a, b)
    zero = constant(0, wide)
    (total,) = reduce_axes(products, (axis,), (zero,), lambda x, *at: (x,), lambda s, x: (np.add(s, x),))
    return total if wide == kind else cast(total, kind)


@static
def is_exact(kind):
    """Whether products have to have the bits of NumPy's loop."""
    return exact.get() and is_blas_kind(kind)


def by_numpy(a, b, kind):
    """The product of vectors and matrices by the very loop of NumPy's, which calls its BLAS."""
    if not has_routine("gufunc.matmul", kind, kind, kind):
        hand_back("a product, in exact code")
    rows, columns = a.shape[:-1], b.shape[1:]
    out = allocate((1, a.shape[0] if a.ndim > 1 else 1, b.shape[1] if b.ndim > 1 else 1), kind)
    left, right = converted(a, kind), converted(b, kind)
    left = left[None, None, :] if a.ndim == 1 else left[None, :, :]
    right = right[None, :, None] if b.ndim == 1 else right[None, :, :]
    routine("gufunc.matmul", (out,), (left, right))
    shape = rows + columns
    return reshape(out, shape) if shape else out[0, 0, 0]


def vectors(a, b, kind):
    """The scalar product of two vectors of equal length."""
    return contract(a, b, 0, kind)


def matrices(a, b, kind):
    """The product of operands of ranks (2, 2), (2, 1) or (1, 2) whose extents fit."""
    if not is_blas_kind(kind):
        if a.ndim == 1:
            return contract(a[:, None], b, 0, kind)
        if b.ndim == 1:
            return contract(a, b, 1, kind)
        return in_order(contract(a[:, :, None], b[None, :, :], 1, kind))
    shape = (a.shape[:-1] if a.ndim > 1 else ()) + (b.shape[1:] if b.ndim > 1 else ())
    out = allocate(shape, kind)
    matmul_into(out, converted(a, kind), converted(b, kind))
    return out


# ---- matmul ----------------------------------------------------------------------------------------------------------


def batch_extent(x, rank, axis):
    """The extent of one of so many batch axes."""
    position = axis - (rank - (x.ndim - 2))
    return x.shape[position] if position >= 0 else 1


def agreed(left, right):
    check((left == right) | (left == 1) | (right == 1), "ValueError", "operands could not be broadcast together")
    return right if left == 1 else left


def batch_into(out, a, b):
    """Matrix products one after another."""
    if out.ndim == 2:
        matmul_into(out, a, b)
    else:
        for i in range(out.shape[0]):
            batch_into(out[i], batch_item(a, out.ndim, i), batch_item(b, out.ndim, i))


def batch_item(x, rank, i):
    if x.ndim < rank:
        return x
    return x[0 if x.shape[0] == 1 else i]


def batches(a, b, kind):
    if not is_blas_kind(kind):
        return in_order(contract(a[..., :, :, None], b[..., None, :, :], batch_axis(a.ndim, b.ndim), kind))
    if b.ndim == 2 and layout_of(a) == "C":  # the rows of all matrices are those of one
        out = allocate((*a.shape[:-1], b.shape[1]), kind)
        rows = size_of(a.shape[:-1])
        a = reshape(converted(a, kind), (rows, a.shape[-1]))
        matmul_into(reshape(out, (rows, b.shape[1])), a, converted(b, kind))
        return out
    rank = max(a.ndim, b.ndim) - 2
    batch = tuple([agreed(batch_extent(a, rank, axis), batch_extent(b, rank, axis)) for axis in positions(rank)])
    out = allocate((*batch, a.shape[-2], b.shape[-1]), kind)
    batch_into(out, converted(a, kind), converted(b, kind))
    return out


@static
def batch_axis(left, right):
    return max(left, right) - 1


@static
def product_kind(left, right):
    return np.matmul.resolve_dtypes((left, right, None))[-1]


@implements(np.matmul)
def matmul(x1, x2, /, out=None):
    a, b = as_numeric(x1), as_numeric(x2)
    if not is_array(a) or not is_array(b):
        unsupported("matmul: Input operand does not have enough dimensions")
    if a.ndim == 0 or b.ndim == 0:
        unsupported("matmul: Input operand does not have enough dimensions")
    kind = product_kind(dtype_of(a), dtype_of(b))
    rows = b.shape[0] if b.ndim == 1 else b.shape[-2]
    check(rows == a.shape[-1], "ValueError", CORE, rows, a.shape[-1])
    if is_exact(kind) and a.ndim <= 2 and b.ndim <= 2:
        result = by_numpy(a, b, kind)
    elif a.ndim == 1 and b.ndim == 1:
        result = vectors(a, b, kind)
    elif a.ndim <= 2 and b.ndim <= 2:
        result = matrices(a, b, kind)
    elif a.ndim == 1:
        result = batches(a[None, :], b, kind)[..., 0, :]
    elif b.ndim == 1:
        result = batches(a, b[:, None], kind)[..., 0]
    else:
        result = batches(a, b, kind)
    return result if out is None else into(out, as_array(result))


@implements(np.vecdot)
def vecdot(x1, x2, /, out=None, *, axis=-1):
    a, b = as_array(x1), as_array(x2)
    if a.ndim == 0 or b.ndim == 0:
        unsupported("vecdot: Input operand does not have enough dimensions")
    if axis != -1:
        a, b = np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)
    check(a.shape[-1] == b.shape[-1], "ValueError", VECTORS, b.shape[-1], a.shape[-1])
    kind = product_kind(dtype_of(a), dtype_of(b))
    result = contract(np.conjugate(a) if dtype_of(a).kind == "c" else a, b, batch_axis(a.ndim, b.ndim), kind)
    return result if out is None else into(out, as_array(result))


# ---- dot and its relatives -------------------------------------------------------------------------------------------


def strong(value):
    """A Python scalar as the NumPy scalar it becomes; sequences as arrays."""
    value = as_numeric(value)
    return cast(value, dtype_of(value)) if is_weak(value) else value


def rank_of(value):
    return value.ndim if is_array(value) else 0


@static
def shape_fields(rank, first):
    if rank == 1:
        return f"({{{first}}},)"
    return "(" + ",".join(f"{{{first + axis}}}" for axis in range(rank)) + ")"


@static
def misaligned(left, right, axis, other):
    """NumPy's message; the arguments are the extents of both, then those of the two axes."""
    last = left + right
    return (
        f"shapes {shape_fields_of(left, 0)} and {shape_fields_of(right, left)} not aligned: "
        f"{{{last}}} (dim {axis}) != {{{last + 1}}} (dim {other})"
    )


shape_fields_of = shape_fields


def aligned(a, b, axis, other):
    left, right = a.shape[axis], b.shape[other]
    message = misaligned(a.ndim, b.ndim, axis, other)
    check(left == right, "ValueError", message, *a.shape, *b.shape, left, right)


def as_rows(a):
    """An array of rank 2 or more as a C-order matrix of its last axis."""
    if a.ndim == 2:
        return a
    a = in_order(a)
    return reshape(a, (size_of(a.shape[:-1]), a.shape[-1]))


def over_last_axes(a, b):
    """The contraction of the last axes of two arrays: a.shape[:-1] + b.shape[:-1]."""
    kind = result_kind(dtype_of(a), dtype_of(b))
    if a.ndim == 1 and b.ndim == 1:
        return vectors(a, b, kind)
    left = a if a.ndim == 1 else as_rows(a)
    right = b if b.ndim == 1 else permute(as_rows(b), (1, 0))
    product = matrices(left, right, kind)
    if a.ndim <= 2 and b.ndim <= 2:
        return product
    return reshape(product, a.shape[:-1] + b.shape[:-1])


@static
def second_last_to_end(rank):
    return (*range(rank - 2), rank - 1, rank - 2)


@implements(np.dot)
@method("dot")
def dot(a, b, out=None):
    a, b = strong(a), strong(b)
    if rank_of(a) == 0 or rank_of(b) == 0:
        result = scaled(a, b)
    else:
        aligned(a, b, a.ndim - 1, max(b.ndim - 2, 0))
        if is_multiple(a, b):
            result = multiple(a, b)
        else:
            result = over_last_axes(a, permute(b, second_last_to_end(b.ndim)) if b.ndim > 1 else b)
    if out is None:
        return result
    result = as_array(result)
    if out.ndim != result.ndim or layout_of(out) != "C":
        hand_back("np.dot into an array that may not be acceptable")
    return into(out, result, SAME, "output array has wrong dimensions")


def scaled(a, b):
    """A product with a number: BLAS leaves a matrix in C order, the ufunc anything in the order of its operand.

    BLAS adds multiples to zeros (`axpy`), and nothing where the number is zero, whatever it would multiply; a single
    element is multiplied. Multiples are added before they are rounded: zeros are positive but for those of underflows.
    """
    product = np.multiply(a, b)
    if dtype_of(product).char not in "fdFD" or max(rank_of(a), rank_of(b)) not in (1, 2):
        return product
    zero = dtype_of(product).type(0)
    number, other = (a, b) if rank_of(a) == 0 else (b, a)
    if dtype_of(product).char in "fd":
        added = np.where((number != 0) & ((product != 0) | (other != 0)), product, zero)
    else:
        added = np.where(number == 0, zero, product + zero)
    return in_order(np.where(product.size == 1, product, added))


def is_single(a):
    """Is it known that an array has one element?"""
    return all([extent_is_one(a, axis) is True for axis in positions(a.ndim)])


def is_multiple(a, b):
    """Does NumPy take the product of two arrays for that of an array and a number?"""
    if a.ndim > 2 or b.ndim > 2 or not is_blas_kind(result_kind(dtype_of(a), dtype_of(b))):
        return False
    return is_single(a) or is_single(b)


def multiple(a, b):
    """`np.dot` of arrays of which one has a single element."""
    shape = a.shape[:-1] + b.shape[1:]
    left, right = ravel(a), ravel(b)
    product = scaled(left[0], right) if is_single(a) else scaled(left, right[0])
    return reshape(product, shape) if shape else product[0]


@implements(np.inner)
def inner(a, b, /):
    a, b = strong(a), strong(b)
    if rank_of(a) == 0 or rank_of(b) == 0:
        return scaled(a, b)
    turned = permute(b, second_last_to_end(b.ndim)) if b.ndim > 1 else b  # as NumPy does, and says in its message
    aligned(a, turned, a.ndim - 1, max(b.ndim - 2, 0))
    return multiple(a, turned) if is_multiple(a, turned) else over_last_axes(a, b)


@implements(np.vdot)
def vdot(a, b, /):
    left, right = ravel(a), ravel(b)
    message = "cannot reshape array of size {1} into shape ({0},)"
    check(left.shape[0] == right.shape[0], "ValueError", message, left.shape[0], right.shape[0])
    kind = result_kind(dtype_of(left), dtype_of(right))
    return vectors(np.conjugate(left) if dtype_of(left).kind == "c" else left, right, kind)


@implements(np.outer)
def outer(a, b, out=None):
    result = np.multiply(ravel(a)[:, None], ravel(b)[None, :])
    return result if out is None else into(out, result)


@static
def contracted_axes(axes, left, right):
    """The axes of both arrays that tensordot sums over."""
    if hasattr(axes, "__iter__"):
        first, second = axes
    else:
        first, second = tuple(range(left - axes, left)), tuple(range(axes))
    first = tuple(first) if hasattr(first, "__iter__") else (first,)
    second = tuple(second) if hasattr(second, "__iter__") else (second,)
    if len(first) != len(second):
        raise ValueError("shape-mismatch for sum")
    first = tuple(normalize_axis_index(operator.index(axis), left) for axis in first)
    second = tuple(normalize_axis_index(operator.index(axis), right) for axis in second)
    if len({*first}) < len(first) or len({*second}) < len(second):
        raise ValueError("an axis summed over twice")
    return first, second


@static
def rest_of(rank, axes):
    return tuple(axis for axis in range(rank) if axis not in axes)


@implements(np.tensordot)
def tensordot(a, b, axes=2):
    a, b = as_array(a), as_array(b)
    first, second = contracted_axes(axes, a.ndim, b.ndim)
    for axis, other in zip(first, second):
        check(a.shape[axis] == b.shape[other], "ValueError", "shape-mismatch for sum")
    kept, others = rest_of(a.ndim, first), rest_of(b.ndim, second)
    count = size_of([a.shape[axis] for axis in first])
    rows, columns = [a.shape[axis] for axis in kept], [b.shape[axis] for axis in others]
    left = reshape(in_order(permute(a, kept + first)), (size_of(rows), count))
    right = reshape(in_order(permute(b, second + others)), (count, size_of(columns)))
    if not rows and not columns:  # a product of two vectors, which is much quicker as such
        return as_array(np.dot(reshape(left, (count,)), reshape(right, (count,))))
    product = matrices(left, right, result_kind(dtype_of(a), dtype_of(b)))
    return reshape(product, (*rows, *columns))


# ---- products of other kinds -----------------------------------------------------------------------------------------


@static
def more_axes(rank, other):
    return (None,) * max(0, other - rank) + (Ellipsis,)


@static
def axes_between(rank, first):
    """The index that puts a new axis before or after each of an array's."""
    return (None, ALL) * rank if first else (ALL, None) * rank


@implements(np.kron)
def kron(a, b):
    a, b = as_array(a), as_array(b)
    rank = max(a.ndim, b.ndim)
    if a.ndim == 0 or b.ndim == 0:
        return np.multiply(a, b)
    a, b = a[more_axes(a.ndim, rank)], b[more_axes(b.ndim, rank)]
    made = np.multiply(a[axes_between(rank, False)], b[axes_between(rank, True)])  # in the order of the operands
    shape = tuple([left * right for left, right in zip(a.shape, b.shape)])
    return reshape(made, shape) if layout_of(made) == "C" else reshaped_memory(made, shape)


@implements(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa, axisb, axisc = axis, axis, axis
    a, b = np.moveaxis(as_array(a), axisa, -1), np.moveaxis(as_array(b), axisb, -1)
    if a.ndim == 0 or b.ndim == 0:
        unsupported("At least one array has zero dimension")
    check((a.shape[-1] == 3) & (b.shape[-1] == 3), "Deoptimize", "a cross product of vectors that have not 3 elements")
    kind = result_kind(dtype_of(a), dtype_of(b))
    a, b = converted(a, kind), converted(b, kind)
    a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
    b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
    made = in_order(np.stack((a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0), -1))  # NumPy's is
    return np.moveaxis(made, -1, axisc)
