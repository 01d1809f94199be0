"""Functions that are others under another name: the array API's in np.linalg, shifts of spectra, `_from` variants."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import positions
from parakeet_py.library.intrinsics import as_array, check, is_sequence, unsupported
from parakeet_py.library.registry import implements


@implements(np.linalg.outer)
def outer(x1, x2, /):
    x1, x2 = as_array(x1), as_array(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        unsupported("Input arrays must be one-dimensional")
    return np.outer(x1, x2)


@implements(np.linalg.matmul)
def matmul(x1, x2, /):
    return np.matmul(x1, x2)


@implements(np.linalg.tensordot)
def tensordot(x1, x2, /, *, axes=2):
    return np.tensordot(x1, x2, axes)


@implements(np.linalg.vecdot)
def vecdot(x1, x2, /, *, axis=-1):
    return np.vecdot(x1, x2, axis=axis)


@implements(np.linalg.trace)
def trace(x, /, *, offset=0, dtype=None):
    return np.trace(x, offset, -2, -1, dtype)


@implements(np.linalg.matrix_transpose)
def matrix_transpose(x, /):
    return np.matrix_transpose(x)


def shift_axes(axes, rank):
    if axes is None:
        return positions(rank)
    return tuple(axes) if is_sequence(axes) else (axes,)


@implements(np.fft.fftshift)
def fftshift(x, axes=None):
    x = as_array(x)
    own = shift_axes(axes, x.ndim)
    return np.roll(x, tuple([x.shape[axis] // 2 for axis in own]), own)


@implements(np.fft.ifftshift)
def ifftshift(x, axes=None):
    x = as_array(x)
    own = shift_axes(axes, x.ndim)
    return np.roll(x, tuple([-(x.shape[axis] // 2) for axis in own]), own)


@implements(np.tril_indices_from)
def tril_indices_from(arr, k=0):
    arr = as_array(arr)
    if arr.ndim != 2:
        unsupported("input array must be 2-d")
    return np.tril_indices(arr.shape[-2], k, arr.shape[-1])


@implements(np.triu_indices_from)
def triu_indices_from(arr, k=0):
    arr = as_array(arr)
    if arr.ndim != 2:
        unsupported("input array must be 2-d")
    return np.triu_indices(arr.shape[-2], k, arr.shape[-1])


@implements(np.diag_indices_from)
def diag_indices_from(arr):
    arr = as_array(arr)
    if arr.ndim < 2:
        unsupported("input array must be at least 2-d")
    for extent in arr.shape[1:]:
        check(extent == arr.shape[0], "ValueError", "All dimensions of input must be of equal length")
    return np.diag_indices(arr.shape[0], arr.ndim)
