"""Functions that numba has compiled, called from compiled code by their native entries.

A call of one is a primitive of the typed IR, for the types that its operands have: `numba.3.value` is what it gives,
`numba.3.done` whether it has returned, and not raised. 3 is its place in a table of this process, so code with such
calls is not kept on the disk. numba's entries are C functions

    int entry(result *, void **exception, operands...)

of which the result is 0 if the function has returned. Only functions that read and write nothing but these two are
called so, which LLVM has found out when numba had them compiled: they may be called again, in any order or not at all.
What numba raises, Python raises when it runs the call again.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record

FAMILY = "numba"
_DISPATCHER = ("numba.core.registry", "CPUDispatcher")
_OPERANDS = ("int64", "float64", "float32")  # whose values are passed as they are
_RESULTS = {
    **{"int64": ctypes.c_int64, "int32": ctypes.c_int32, "bool": ctypes.c_bool},
    **{"float64": ctypes.c_double, "float32": ctypes.c_float},
}  # which numba makes numbers of Python of
_C_TYPES = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "float32": ctypes.c_float}
_EFFECTS = ("memory(argmem: write)", "memory(argmem: readwrite)", "memory(none)")
VALUE, DONE = "value", "done"


@record(eq=False)
class NativeFunction:
    """A function of numba's, for operands of some dtypes: where its code is, and the dtype of its result."""

    dispatcher: Any
    operands: tuple[str, ...]
    result: str
    address: int
    library: Any  # which keeps the code in memory


_found: list[NativeFunction] = []
_known: dict[tuple[int, tuple[str, ...]], tuple[Any, int | None]] = {}  # by `id`, with the dispatcher, which is kept


def is_dispatcher(kind: type) -> bool:
    """Is this the class of what `numba.njit` gives?"""
    return (kind.__module__, kind.__name__) == _DISPATCHER


def is_native(name: str) -> bool:
    """Is this the name of such a primitive?"""
    return name.startswith("numba.")


def find(dispatcher: Any, operands: Sequence[str]) -> tuple[int, NativeFunction] | None:
    """What numba calls for operands of these dtypes, and its place in the table; None if that is not called so."""
    key = id(dispatcher), tuple(operands)
    if key not in _known:
        made = _look(dispatcher, key[1])
        if made is not None:
            _found.append(made)
        _known[key] = dispatcher, None if made is None else len(_found) - 1
    place = _known[key][1]
    return None if place is None else (place, _found[place])


def _look(dispatcher: Any, operands: tuple[str, ...]) -> NativeFunction | None:
    if not is_dispatcher(type(dispatcher)) or not set(operands) <= set(_OPERANDS):
        return None
    types = importlib.import_module("numba.core.types")
    signature = tuple(getattr(types, dtype) for dtype in operands)
    compiled = dispatcher.overloads.get(signature)
    if compiled is None:
        if not dispatcher._can_compile:
            return None  # numba converts the operands to those of another signature
        try:
            dispatcher.compile(signature)
        except Exception:  # which the call will raise
            return None
        compiled = dispatcher.overloads.get(signature)
    if compiled is None or compiled.objectmode:
        return None
    result = str(compiled.signature.return_type).replace("boolean", "bool")  # as older versions write it
    name = compiled.fndesc.llvm_func_name
    if result not in _RESULTS or tuple(map(str, compiled.signature.args)) != operands:
        return None
    if not _is_pure(compiled.library.get_llvm_str(), name):
        return None
    address = compiled.library.get_pointer_to_function(name)
    return NativeFunction(dispatcher, operands, result, address, compiled.library) if address else None


def _is_pure(text: str, name: str) -> bool:
    """Does LLVM say of a function that it has no effects but on what it is given?"""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("define ") and f"@{name}(" in line:
            group = line.rpartition("#")[2].partition(" ")[0]
            attributes = next((one for one in lines if one.startswith(f"attributes #{group} = ")), "")
            comment = lines[number - 1] if number else ""
            return any(effect in attributes or effect in comment for effect in _EFFECTS)
    return False


def function_of(name: str) -> NativeFunction:
    """The function of a primitive."""
    return _found[int(name.split(".")[1])]


def result_dtype(name: str, operands: tuple[str, ...]) -> str | None:
    """The dtype of a primitive's result; None for other operands than its own."""
    found = function_of(name)
    if found.operands != operands:
        return None
    return found.result if name.endswith(VALUE) else "bool"


def evaluate(name: str, args: Sequence[Any]) -> Any:
    """What a primitive gives for NumPy scalars."""
    found = function_of(name)
    given: list[Any] = [_C_TYPES[dtype] for dtype in found.operands]
    kind: Any = _RESULTS[found.result]
    result, exception = kind(), ctypes.c_void_p()
    entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *given)(found.address)
    status = entry(ctypes.addressof(result), ctypes.addressof(exception), *[arg.item() for arg in args])
    return np.dtype(found.result).type(result.value) if name.endswith(VALUE) else np.bool_(status == 0)


def address(place: str) -> int | None:
    """Where the code of a function in the table is."""
    return _found[int(place)].address if place.isdigit() and int(place) < len(_found) else None
