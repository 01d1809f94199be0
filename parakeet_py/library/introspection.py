"""What an array is: its shape, size and kind; NumPy's rules of promotion."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import as_array, as_numeric, dtype_of, is_sequence
from parakeet_py.library.registry import implements
from parakeet_py.library.shared import kind_of, result_kind, single_axis


@implements(np.shape)
def shape_function(a):
    return as_array(a).shape


@implements(np.ndim)
def ndim(a):
    return as_array(a).ndim


@implements(np.size)
def size(a, axis=None):
    a = as_array(a)
    return a.size if axis is None else a.shape[single_axis(axis, a.ndim)]


@implements(np.result_type)
def result_type(*arrays_and_dtypes):
    return result_kind(*[own_kind(one) for one in arrays_and_dtypes])


def own_kind(value):
    if isinstance(value, (np.dtype, type, str)):
        return np.dtype(value)
    return kind_of(as_numeric(value))


@implements(np.isscalar)
def isscalar(element):
    return not is_sequence(element) and not isinstance(element, np.ndarray)


@implements(np.iscomplexobj)
def iscomplexobj(x):
    return dtype_of(as_array(x)).kind == "c"


@implements(np.isrealobj)
def isrealobj(x):
    return dtype_of(as_array(x)).kind != "c"
