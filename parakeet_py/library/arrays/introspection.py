"""What an array is: its shape, size and kind; NumPy's rules of promotion."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from parakeet_py.library.intrinsics import as_array, as_numeric, dtype_of, is_sequence, unsupported
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import kind_of, result_kind


@implements(np.shape)
def shape_function(a):
    return as_array(a).shape


@implements(np.ndim)
def ndim(a):
    return as_array(a).ndim


@static
def counted_axes(axis, rank):
    if isinstance(axis, tuple) and np.lib.NumpyVersion(np.__version__) < "2.4.0":
        raise TypeError("'tuple' object cannot be interpreted as an integer")
    return normalize_axis_tuple(axis, rank)


@implements(np.size)
def size(a, axis=None):
    a = as_array(a)
    if axis is None:
        return a.size
    count = 1
    for own in counted_axes(axis, a.ndim):
        count = count * a.shape[own]
    return count


@implements(np.result_type)
def result_type(*arrays_and_dtypes):
    return result_kind(*[own_kind(one) for one in arrays_and_dtypes])


def own_kind(value):
    if isinstance(value, (np.dtype, type, str)):
        return np.dtype(value)
    if is_sequence(value):
        unsupported("a sequence, which is the description of a dtype here")
    return kind_of(as_numeric(value))


@static
def common_kind(kinds):
    return np.common_type(*[np.zeros(0, kind) for kind in kinds])


@implements(np.common_type)
def common_type(*arrays):
    return common_kind(tuple([dtype_of(as_array(a)) for a in arrays]))


@implements(np.iterable)
def iterable(y):
    return True if is_sequence(y) else as_array(y).ndim > 0


@implements(np.isscalar)
def isscalar(element):
    return isinstance(element, (np.generic, bool, int, float, complex, str, bytes))


@implements(np.iscomplexobj)
def iscomplexobj(x):
    return dtype_of(as_array(x)).kind == "c"


@implements(np.isrealobj)
def isrealobj(x):
    return dtype_of(as_array(x)).kind != "c"
