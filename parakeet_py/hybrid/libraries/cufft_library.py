"""cuFFT by its C interface, for machines that have the library (a CUDA toolkit, CuPy or PyTorch bring it) and not
`nvmath-python`: the few calls of `nvmath.bindings.cufft` that `cufft` makes, under the same names.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from parakeet_py.hybrid.libraries.device_library import call_of, loaded

_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
_EXTENTS = ctypes.POINTER(ctypes.c_longlong)
_PLAN = (_INT, _INT, _EXTENTS, *(_EXTENTS, _LONG, _LONG) * 2, _INT, _LONG, ctypes.POINTER(ctypes.c_size_t))
_TRANSFORMS = ("c2c", "r2c", "c2r", "z2z", "d2z", "z2d")


class Library:
    """The calls of a loaded library.

    Raises
    ------
    AttributeError
        It is another version, without one of these calls.
    """

    def __init__(self, library: Any) -> None:
        self._create = call_of(library, "cufftCreate", ctypes.POINTER(_INT))
        self._make_plan = call_of(library, "cufftMakePlanMany64", *_PLAN)
        self.set_stream = call_of(library, "cufftSetStream", _INT, _POINTER)
        self.destroy = call_of(library, "cufftDestroy", _INT)
        for name in _TRANSFORMS:
            direction = (_INT,) if name in ("c2c", "z2z") else ()
            function = call_of(library, f"cufftExec{name.upper()}", _INT, _POINTER, _POINTER, *direction)
            setattr(self, f"exec_{name}", function)

    def create(self) -> int:
        plan = _INT()
        self._create(ctypes.byref(plan))
        return plan.value

    def make_plan_many64(self, plan: int, rank: int, n: Sequence[int], inembed: Sequence[int], *given: Any) -> int:
        step, distance, onembed, *rest = given
        size = ctypes.c_size_t()
        inside, outside = ((_LONG * rank)(*extents) for extents in (inembed, onembed))
        extents = (_LONG * rank)(*n)
        self._make_plan(plan, rank, extents, inside, step, distance, outside, *rest, ctypes.byref(size))
        return size.value


def find() -> Library:
    """The library, see `device_library.loaded`, which says what is raised if there is none."""
    return Library(loaded("cufft"))
