"""Native support for call gates: the parts of entering and leaving compiled code that all functions share.

One module of low-level Python, compiled once per machine and kept in the disk cache: comparing dtypes, looking up
globals, making NumPy arrays of results, raising failures. It is loaded next to the runtime; gates call it by name. All
names begin with `gate.`, so that a gate can stand in one module with code that declares the same C functions.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import types
import warnings
from array import array
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base.frames import tracing
from parakeet_py.base.types import DTYPES
from parakeet_py.llvm.engine import c_symbols
from parakeet_py.llvm.entry import callable_type, small_calls, stub_support
from parakeet_py.llvm.runtime import error_state
from parakeet_py.llvm.runtime.native_runtime import runtime, support_code

_PYTHON_FUNCTIONS = (
    "PyBool_Type PyErr_CheckSignals "
    "PyErr_Clear PyErr_Fetch PyErr_Restore PyErr_Occurred PyTraceBack_Here "
    "PyErr_NormalizeException PyException_SetTraceback "
    "PyGILState_GetThisThreadState PyErr_SetObject PyErr_SetString "
    "PyEval_RestoreThread PyEval_SaveThread PyThreadState_Get "
    "PyExc_SystemError PyComplex_FromDoubles PyDict_GetItemWithError PyFloat_FromDouble PyList_New PyList_GetSlice "
    "PyLong_AsLongLongAndOverflow PyLong_AsLong PyLong_FromLongLong PyLong_FromUnsignedLongLong PyObject_Call "
    "PyObject_RichCompareBool PyObject_Vectorcall PyObject_GetAttr PySequence_List PyTuple_New Py_DecRef "
    "PyContextVar_Get PyDict_Next PyObject_SetAttr PyObject_SetItem PyVectorcall_Call Py_GetRecursionLimit "
    "_PyObject_New"
) + " _PyObject_GetMethod" * stub_support.GETS_METHODS
_RUNTIME_FUNCTIONS = ("pk_detach", "pk_release", "pk_free_all", "pk_stack_floor")
_NUMPY_FUNCTIONS = {  # places in the table of NumPy's C API
    "PyArray_CopyInto": 50,
    "PyArray_Scalar": 60,
    "PyArray_NewCopy": 85,
    "PyArray_ToList": 86,
    "PyArray_NewFromDescr": 94,
    "PyArray_SetBaseObject": 282,
}
_OBJECTS: dict[str, object] = {
    "None": None,
    "True": True,
    "False": False,
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "tuple": tuple,
    "list": list,
    "slice": slice,
    "range": range,
    "function": types.FunctionType,
    "method": types.MethodType,
    "ndarray": np.ndarray,
    "memmap": np.memmap,
    "datetime64": np.datetime64,
    "timedelta64": np.timedelta64,
    "numpy.True": np.True_,
    "numpy.False": np.False_,
}
EXPORTS = (
    "gate.same_dtype",
    "gate.overlaps_itself",
    "gate.equal",
    "gate.global",
    "gate.field",
    "gate.method_of",
    "gate.item",
    "gate.random_state",
    "gate.derived",
    "gate.times",
    "gate.is_time",
    "gate.keys",
    "gate.opaque",
    "gate.fail",
    "gate.ask_threads",
    "gate.watched",
    "gate.now",
    "gate.drop",
    "gate.clean",
    "gate.hand_back",
    "gate.poll",
    "gate.read_list",
    "gate.box_array",
    "gate.lend_array",
    "gate.box_list",
    "gate.box_items",
    "gate.box_rows",
    "gate.count",
    "gate.forward",
    "gate.call",
    "gate.asks_for_errors",
    "gate.flags_set",
)


_FILTERS = sys.intern("filters")

# What `gate.count` calls to count references to objects (void hold(ptr ctx, ptr object, i64 delta)); in checked code.
holds = ctypes.c_void_p(None), ctypes.c_void_p(None)

# What `gate.hand_back` calls: a Python function, and its address as a function of C, for calls that no gate has made.
enters = (ctypes.c_void_p * 2)()


# What gates have been told, so that they need not ask again under the same settings. For each function that they ask:
# its address, that of the settings (of the environment's: of None), how often these had been read, and the answer.
_told = array("q", [0] * 16)
_told_of: list[settings.Config | None] = [None] * 4  # kept, so that no other settings come to lie at their addresses


def _thread_count() -> int:
    """Threads a parallel region of a call made here and now may use, asked by gates if blocks are open.

    0: such calls run on other devices, or in Python, or in a frame that a profiler sees, or as checked or exact machine
    code. Of a team that has the CPU: `small_calls.word`, as the CPU takes small calls.
    """
    return _answer(0)


def _checked_thread_count() -> int:
    """The same, asked by gates of checked machine code."""
    return _answer(1)


def _exact_thread_count() -> int:
    """The same, asked by gates of exact machine code, which takes all calls."""
    return _answer(2)


def _checked_exact_thread_count() -> int:
    return _answer(3)


_ASKED: Final = _thread_count, _checked_thread_count, _exact_thread_count, _checked_exact_thread_count
for _number, _one in enumerate(_ASKED):
    _told[4 * _number] = id(_one)


def _answer(question: int) -> int:
    """The answer of the function of this number; gates are told, if no tool watches this thread."""
    if sys.gettrace() is not None or tracing.wants_frame():
        return 0
    for_checked, for_exact = question & 1 != 0, question & 2 != 0
    block, read = settings.variable().get(), settings.reloads()
    config = settings.current()
    taken = config.enabled and config.checked == for_checked and (for_exact or not config.exact)
    answer = (config.thread_count if config.on_cpu else small_calls.word(config)) if taken else 0
    row = 4 * question
    _told[row + 1] = 0  # other threads may be looking
    _told_of[question] = block
    _told[row + 2], _told[row + 3] = read, answer
    _told[row + 1] = id(block)
    return answer


def of_exact(checked: bool) -> dict[str, int]:
    """What gates of exact machine code mention in the place of what others do."""
    return {"gate.thread_count": id(_checked_exact_thread_count if checked else _exact_thread_count)}


@lru_cache(maxsize=1)
def symbols() -> dict[str, int]:
    """Addresses of the Python and NumPy functions and objects that gates mention, under their names with `gate.`"""
    found = {f"gate.{name}": id(value) for name, value in _OBJECTS.items()}
    for name in _PYTHON_FUNCTIONS.split():
        found[f"gate.{name}"] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    table = (ctypes.c_void_p * 320).from_address(prototype(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None))
    if table[2] != id(np.ndarray):
        raise ImportError("parakeet_py does not know the table of NumPy's C interface")
    for name, index in _NUMPY_FUNCTIONS.items():
        found[f"gate.{name}"] = table[index] or 0
    for name in DTYPES:
        dtype = np.dtype(name)
        found[f"gate.dtype.{name}"] = id(dtype)
        found[f"gate.numpy.{name}"] = id(dtype.type)
    found["gate.clock_gettime"] = c_symbols.resolve("clock_gettime") or 0
    found["gate.tools"] = tracing.places_address()
    found["gate.open_blocks"] = settings.open_blocks_address()
    found["gate.default_threads"] = settings.default_threads_address()
    found["gate.thread_count"] = id(_thread_count)
    found["gate.told"] = _told.buffer_info()[0]
    found["gate.reloads"] = settings.reloads_address()
    found["gate.settings"] = id(settings.variable())
    found["gate.error_state"] = id(error_state.variable())
    found["gate.warnings"] = id(vars(warnings))
    found["gate.filters"] = id(_FILTERS)
    found["gate.hold"] = ctypes.addressof(holds[0])
    found["gate.enters"] = ctypes.addressof(enters)
    return found


_support: Mapping[str, int] | None = None
_checked: Mapping[str, int] | None = None
_lock = threading.Lock()


def support(checked: bool = False) -> Mapping[str, int]:
    """Addresses of everything a gate may refer to, but what is its own; loads the native support on first use.

    That of checked gates counts references by functions that look at what they count.
    """
    global _checked
    if checked:
        unchecked = support()
        if _checked is None:
            with _lock:
                if _checked is None:
                    _checked = _load_checked(unchecked)
        return _checked
    global _support
    if _support is None:
        with _lock:
            if _support is None:
                _support = _load()
    return _support


def _load() -> Mapping[str, int]:
    rt = runtime()
    known = symbols() | {f"gate.{name}": rt.symbols[name] for name in _RUNTIME_FUNCTIONS}
    known["gate.mem_handler"] = id(rt.mem_handler)
    code = support_code("gate support", stub_support.support(), known, EXPORTS, prefix="gate.")
    _kept.append(rt.mem_handler)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(rt.symbols["pk_set_poll"])(code["gate.poll"])
    callable_type.set_support(code["gate.forward"], code["gate.call"])
    return {**known, **code.addresses}


def _load_checked(unchecked: Mapping[str, int]) -> Mapping[str, int]:
    from parakeet_py.llvm.safety import objects

    rt = runtime(checked=True)
    known = dict(unchecked) | {f"gate.{name}": rt.symbols[name] for name in _RUNTIME_FUNCTIONS}
    known["gate.mem_handler"] = id(rt.mem_handler)
    known["gate.thread_count"] = id(_checked_thread_count)
    known["gate.hold"] = ctypes.addressof(holds[1])
    _kept.append(rt.mem_handler)
    known |= objects.functions(known)
    code = support_code("checked gate support", stub_support.support(checked=True), known, EXPORTS, prefix="gate.")
    return {**known, **code.addresses}


_kept: list[Any] = []
