"""cuFFT by its C interface, for machines that have the library (a CUDA toolkit, CuPy or PyTorch bring it) and not
`nvmath-python`: the few calls of `nvmath.bindings.cufft` that `cufft` makes, under the same names.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
_EXTENTS = ctypes.POINTER(ctypes.c_longlong)
_PLAN = (_INT, _INT, _EXTENTS, *(_EXTENTS, _LONG, _LONG) * 2, _INT, _LONG, ctypes.POINTER(ctypes.c_size_t))
_TRANSFORMS = ("c2c", "r2c", "c2r", "z2z", "d2z", "z2d")


class CufftError(RuntimeError):
    """A call that has failed; the result is one of `cufftResult`."""


class Library:
    """The calls of a loaded library.

    Raises
    ------
    AttributeError
        It is another version, without one of these calls.
    """

    def __init__(self, library: Any) -> None:
        self._create = _call(library, "cufftCreate", ctypes.POINTER(_INT))
        self._make_plan = _call(library, "cufftMakePlanMany64", *_PLAN)
        self._set_stream = _call(library, "cufftSetStream", _INT, _POINTER)
        self._destroy = _call(library, "cufftDestroy", _INT)
        for name in _TRANSFORMS:
            direction = (_INT,) if name in ("c2c", "z2z") else ()
            function = _call(library, f"cufftExec{name.upper()}", _INT, _POINTER, _POINTER, *direction)
            setattr(self, f"exec_{name}", lambda *given, call=function: _checked("cufftExec", call(*given)))

    def create(self) -> int:
        plan = _INT()
        _checked("cufftCreate", self._create(ctypes.byref(plan)))
        return plan.value

    def make_plan_many64(self, plan: int, rank: int, n: Sequence[int], inembed: Sequence[int], *given: Any) -> int:
        step, distance, onembed, *rest = given
        size = ctypes.c_size_t()
        inside, outside = ((_LONG * rank)(*extents) for extents in (inembed, onembed))
        result = self._make_plan(
            plan, rank, (_LONG * rank)(*n), inside, step, distance, outside, *rest, ctypes.byref(size)
        )
        _checked("cufftMakePlanMany64", result)
        return size.value

    def set_stream(self, plan: int, stream: int) -> None:
        _checked("cufftSetStream", self._set_stream(plan, stream))

    def destroy(self, plan: int) -> None:
        _checked("cufftDestroy", self._destroy(plan))


def find() -> Library:
    """The library as cuda-python finds it: already loaded, in a wheel, in conda or in the system.

    Raises
    ------
    ImportError, RuntimeError, OSError, AttributeError
        There is none.
    """
    from cuda.pathfinder import load_nvidia_dynamic_lib

    path = load_nvidia_dynamic_lib("cufft").abs_path
    if path is None:
        raise OSError("libcufft is loaded, from an unknown file")
    return Library(ctypes.CDLL(path))


def _call(library: Any, symbol: str, *types: Any) -> Any:
    function = getattr(library, symbol)
    function.argtypes, function.restype = types, ctypes.c_int
    return function


def _checked(name: str, result: int) -> None:
    if result != 0:
        raise CufftError(f"{name} gives {result}")
