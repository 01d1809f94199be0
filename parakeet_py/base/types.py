"""The types of the typed IR: machine scalars, arrays and opaque Python objects.

Tuples, slices, None, functions and modules never reach the typed IR: the specializer keeps them apart and only their
leaves become variables. A Python scalar and a NumPy scalar of the same machine type are different types, because
NEP 50 promotes them differently and results are boxed differently.

Array layouts form a chain of knowledge: `C` (C-contiguous), `F` (Fortran-contiguous, rank >= 2), `S` (last axis has
stride == itemsize, rows anywhere), `A` (anything). `C` implies `S`; `join` forgets what two arrays do not share.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.base.fast_dataclass import record

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
TWICE_ROUNDED = ("float32", "complex64")  # what an int of Python's is made by way of a double
DTYPES = ("bool", *INTEGERS, *FLOATS, *COMPLEX)
ARRAYS = (np.ndarray, np.memmap)
"""The classes of arrays that are compiled: views of a memmap are memmaps, all other results are arrays."""


@record
class Scalar:
    """A machine scalar. `python` marks an exact Python bool/int/float/complex (weak under NEP 50)."""

    dtype: str
    python: bool = False

    def __repr__(self) -> str:
        return _PYTHON_NAMES[self.dtype] if self.python else self.dtype


@record
class Array:
    """An array of `rank` >= 0 axes; layout is one of C, F, S, A."""

    dtype: str
    rank: int
    layout: str = "C"

    def __repr__(self) -> str:
        return f"{self.dtype}[{self.rank}{self.layout}]"


@record
class Object:
    """A Python object that only opaque calls and results may touch."""

    def __repr__(self) -> str:
        return "object"


Type = Scalar | Array | Object

_PYTHON_NAMES = {"bool": "pybool", "int64": "pyint", "float64": "pyfloat", "complex128": "pycomplex"}

PYBOOL = Scalar("bool", True)
PYINT = Scalar("int64", True)
PYFLOAT = Scalar("float64", True)
PYCOMPLEX = Scalar("complex128", True)
BOOL = Scalar("bool")
INT64 = Scalar("int64")
FLOAT64 = Scalar("float64")
OBJECT = Object()


def is_integer(dtype: str) -> bool:
    return dtype in INTEGERS


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def is_complex(dtype: str) -> bool:
    return dtype in COMPLEX


def is_unsigned(dtype: str) -> bool:
    return dtype.startswith("u")


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return np.dtype(dtype).itemsize


def real_dtype(dtype: str) -> str:
    """The dtype of the parts of a complex dtype; other dtypes unchanged."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def same_bits(dtype: str) -> str:
    """The signed integer dtype as wide as a float dtype, and the other way round."""
    return dtype.replace("float", "int") if is_float(dtype) else dtype.replace("int", "float")


def join_layouts(left: str, right: str) -> str:
    """What is known of an array that may have either layout."""
    if left == right:
        return left
    if {left, right} == {"C", "S"}:
        return "S"
    return "A"
