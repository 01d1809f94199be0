"""cuSOLVER by its C interface, for machines that have the library and not `nvmath-python`: the few calls of
`nvmath.bindings.cusolverDn` that `cusolver` makes, under the same names.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from parakeet_py.hybrid.libraries.device_library import call_of, loaded

_INT, _POINTER = ctypes.c_int, ctypes.c_void_p
_SIZE = ctypes.POINTER(ctypes.c_int)
_GETRF = _POINTER, _INT, _INT, _POINTER, _INT
_GETRS = _POINTER, _INT, _INT, _INT, _POINTER, _INT, _POINTER, _POINTER, _INT, _POINTER
_POTRF = _POINTER, _INT, _INT, _POINTER, _INT
_VALUES = _POINTER, _INT, _INT, _INT, _POINTER, _INT, _POINTER
_CHAR = ctypes.c_byte
_GESVD = _POINTER, _CHAR, _CHAR, _INT, _INT, *(_POINTER, _INT), _POINTER, *(_POINTER, _INT) * 2, _POINTER, _INT


class Library:
    """The calls of a loaded library.

    Raises
    ------
    AttributeError
        It is another version, without one of these calls.
    """

    def __init__(self, library: Any) -> None:
        self._create = call_of(library, "cusolverDnCreate", _POINTER)
        self.set_stream = call_of(library, "cusolverDnSetStream", _POINTER, _POINTER)
        for letter in "sdcz":
            name = f"cusolverDn{letter.upper()}"
            getrf = call_of(library, f"{name}getrf", *_GETRF, _POINTER, _POINTER, _POINTER)
            potrf = call_of(library, f"{name}potrf", *_POTRF, _POINTER, _INT, _POINTER)
            setattr(self, f"{letter}getrf", getrf)
            setattr(self, f"{letter}getrs", call_of(library, f"{name}getrs", *_GETRS))
            setattr(self, f"{letter}potrf", potrf)
            values = "heevd" if letter in "cz" else "syevd"
            setattr(self, f"{letter}{values}", call_of(library, f"{name}{values}", *_VALUES, _POINTER, _INT, _POINTER))
            setattr(self, f"{letter}gesvd", call_of(library, f"{name}gesvd", *_GESVD, _POINTER, _POINTER))
            shapes = ("gesvd", (_POINTER, _INT, _INT)), (values, _VALUES)
            for each, types in (("getrf", _GETRF), ("potrf", _POTRF), *shapes):
                size = call_of(library, f"{name}{each}_bufferSize", *types, _SIZE)
                setattr(self, f"{letter}{each}_buffer_size", _sized(size))

    def create(self) -> int:
        handle = ctypes.c_void_p()
        self._create(ctypes.byref(handle))
        return int(handle.value or 0)


def _sized(call: Callable[..., None]) -> Callable[..., int]:
    """A call that leaves a number where its last argument says."""

    def ask(*given: Any) -> int:
        size = ctypes.c_int()
        call(*given, ctypes.byref(size))
        return size.value

    return ask


def find() -> Library:
    """The library, see `device_library.loaded`, which says what is raised if there is none."""
    return Library(loaded("cusolver"))
