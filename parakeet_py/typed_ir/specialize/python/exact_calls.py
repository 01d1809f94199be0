"""Functions that exact code leaves to Python: what the compiler has for them is as accurate, but other in last bits.

Ufuncs and elementary functions are NumPy's and the C library's (`arrays.exact_ufuncs`, `Builder.prim`); sums in no
particular order are refused where they are made (`intrinsics.operators`). What is left are algorithms of Python's and
NumPy's own.
"""

from __future__ import annotations

import cmath
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.exact_loops import exact
from parakeet_py.base.types import COMPLEX, FLOATS
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, TupleV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_SAME_OF_CMATH = (cmath.phase, cmath.polar, cmath.rect, cmath.isnan, cmath.isinf, cmath.isfinite, cmath.isclose)
_OTHERS = [
    *[one for name, one in vars(cmath).items() if callable(one) and one not in _SAME_OF_CMATH and name[0] != "_"],
    *(math.gamma, math.lgamma),
    *(getattr(math, name) for name in ("sumprod", "fma") if hasattr(math, name)),
]
_OF_INEXACT = [np.einsum]


def other_bits(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """Hand a function back that would not have the bits of Python's; a matcher of `known_calls`."""
    if not exact.get():
        return None
    if any(target is one for one in _OTHERS) or (
        any(target is one for one in _OF_INEXACT) and any(map(_inexact, args))
    ):
        raise s.hand_back(f"{target.__name__}, whose last bits the compiler does not have, in exact code")
    return None


def _inexact(value: Value) -> bool:
    match value:
        case ArrayV() | ScalarV():
            return value.dtype in (*FLOATS, *COMPLEX)
        case TupleV(items):
            return any(map(_inexact, items))
    return False
