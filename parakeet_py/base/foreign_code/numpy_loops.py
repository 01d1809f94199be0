"""Where NumPy keeps its compiled inner loops: sorting functions of dtypes, loops of generalized ufuncs.

The sorting functions of a dtype stand in the structure `PyArray_ArrFuncs` (numpy/ndarraytypes.h) that the C API's
`PyDataType_GetArrFuncs` gives: after 21 casts and 12 other functions come three that sort and three that argsort,

    int sort(void *line, npy_intp count, void *array)        int argsort(void *line, npy_intp *places, npy_intp count,
                                                                         void *array)

of which simple dtypes do not look at `array`. The loops of a gufunc stand in its `PyUFuncObject` (numpy/ufuncobject.h):

    void loop(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)

Both layouts are NumPy's public interface. They cannot be checked for a future NumPy, so nothing found is
used before it has shown what it is: a gufunc's fields have to agree with its attributes, and a sorting function has to
put a line in NumPy's order. Generated code names what it calls by symbols beginning with `pk_numpy`; `resolve` gives
their addresses to the loader, so cached code holds none.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np

from parakeet_py.base import exact_loops, routines
from parakeet_py.base.foreign_code import native_functions

PREFIX = "pk_numpy"
own_sorts: ContextVar[bool] = ContextVar("own_sorts", default=False)  # what is specialized sorts without NumPy
_GET_ARRAY_FUNCTIONS = 365  # PyDataType_GetArrFuncs in the table of the C API
_FIRST_SORT = 21 + 12
_WORDS = ctypes.POINTER(ctypes.c_void_p)


class _Ufunc(ctypes.Structure):
    """What follows the object's header in a PyUFuncObject, as far as it matters."""

    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", _WORDS),
        ("data", _WORDS),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_char)),
    )


def symbol(name: str, dtypes: tuple[str, ...], what: str = "loop") -> str:
    """The symbol of a routine for arrays of these dtypes (inputs, then outputs), or of its loop's data."""
    return ".".join((PREFIX, what, name, *dtypes))


def available(name: str, dtypes: tuple[str, ...]) -> bool:
    """Whether this NumPy has a routine for these dtypes, which code may call."""
    if own_sorts.get() and name.partition(".")[0] in ("sort", "argsort"):
        return False
    return _find(name, dtypes) is not None


def has_data(name: str, dtypes: tuple[str, ...]) -> bool:
    """Whether a loop is called with data of its own."""
    found = _find(name, dtypes)
    return found is not None and bool(found[1])


def resolve(full: str) -> int | None:
    """The address that a symbol stands for; None if it is not one of ours."""
    parts = full.split(".")
    if len(parts) < 4 or parts[0] != PREFIX:
        return None
    if parts[2] == native_functions.FAMILY:
        return native_functions.address(parts[3])
    if parts[2] == exact_loops.LIBM:
        return exact_loops.c_address(f"libm.{parts[3]}", parts[4])
    found = _find(f"{parts[2]}.{parts[3]}", tuple(parts[4:]))
    return None if found is None else found[parts[1] == "data"]


@lru_cache(maxsize=256)
def _find(name: str, dtypes: tuple[str, ...]) -> tuple[int, int] | None:
    """The addresses of a routine and of the data it is called with."""
    try:
        if routines.family(name) in ("sort", "argsort"):
            address = _sorting_function(name, dtypes[0])
            return None if address is None else (address, 0)
        number = routines.loop_number(name, dtypes)
        found = None if number is None else routines.gufunc(name)
        fields = None if found is None else _fields_of(found)
    except (AttributeError, ValueError, TypeError):
        return None
    if fields is None or number is None:
        return None
    address = fields.functions[number]
    return (address, fields.data[number] or 0 if fields.data else 0) if address else None


def _fields_of(ufunc: np.ufunc) -> _Ufunc | None:
    fields = _Ufunc.from_address(id(ufunc) + object.__basicsize__)
    counts = (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes)
    if (fields.nin, fields.nout, fields.nargs, fields.ntypes) != counts or fields.name != ufunc.__name__.encode():
        return None
    numbers = b"".join(fields.types[place] for place in range(ufunc.nargs * ufunc.ntypes))
    chars = "".join(ufunc.types).replace("->", "")
    return fields if numbers == bytes(np.dtype(char).num for char in chars) and fields.functions else None


# ---- sorting ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _array_functions() -> Callable[[Any], int | None] | None:
    """The C API's function that gives the table of a dtype's functions."""
    if int(np.__version__.partition(".")[0]) != 2:
        return None
    capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), _WORDS)
    address = table[_GET_ARRAY_FUNCTIONS]
    return ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(address) if address else None


def _sorting_function(name: str, dtype: str) -> int | None:
    """The function that does what NumPy does when asked for a kind of sort, which may be that of another kind."""
    family, _, wanted = name.partition(".")
    give, kind = _array_functions(), np.dtype(dtype)
    words = None if give is None or kind.kind not in "biufc" else give(kind)
    if not words:
        return None
    first = _FIRST_SORT + (len(routines.KINDS) if family == "argsort" else 0)
    own = routines.KINDS.index(wanted)
    for slot in dict.fromkeys((own, *range(len(routines.KINDS)))):
        address: int | None = ctypes.cast(words, _WORDS)[first + slot]
        if address and _does(address, family == "argsort", kind, wanted):
            return address
    return None


def _does(address: int, places: bool, kind: np.dtype[Any], wanted: Any) -> bool:
    """Whether a function brings a line with many equal elements in the order that NumPy does."""
    line = (np.arange(300) * 7919 % 101 % 23).astype(kind)
    given, order = line.copy(), np.arange(len(line), dtype=np.intp)
    arguments = (given.ctypes.data, *([order.ctypes.data] if places else []))
    kinds = (*(ctypes.c_void_p for _ in arguments), ctypes.c_ssize_t, ctypes.c_void_p)
    good = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)(*arguments, len(line), None) == 0
    if places:
        return good and bool((given == line).all() and (order == np.argsort(line, kind=wanted)).all())
    return good and bool((given == np.sort(line, kind=wanted)).all())
