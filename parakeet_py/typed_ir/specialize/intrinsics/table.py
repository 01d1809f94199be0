"""What words of the accelerated language mean to the specializer: the table of their handlers, and what handlers share.

A word is a function of `library/intrinsics.py` without a Python body. Its handler takes the specializer and the values
of the arguments, emits operators of the typed IR, and gives the value of the call. `intrinsics.py` fills the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.lazy_modules import LateTable
from parakeet_py.base.types import DTYPES, PYBOOL, PYINT, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize.arrays.array_store import new_array
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, TupleV, Value, py

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

Handler = Callable[..., Value]
HANDLERS: LateTable[int, Handler] = LateTable()


def handles(word: Any) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS[id(word)] = handler
        return handler

    return register


def dtype_name(s: Context, value: Value) -> str:
    """The name of a known dtype."""
    found = s.static(value, "a dtype")
    try:
        name: str = np.dtype(found).name
    except TypeError as error:
        raise s.unsupported(str(error)) from None
    if name not in DTYPES or not np.dtype(found).isnative or np.dtype(found).char != np.dtype(name).char:
        raise s.hand_back(f"dtype {name}" if np.dtype(found).names is None else "a dtype of records")
    return name


def extents_of(s: Context, value: Value) -> tuple[ir.Operand, ...]:
    """A shape argument as int operands; negative extents raise."""
    items = value.items if isinstance(value, TupleV) else (value,)
    b = s.builder
    extents: list[ir.Operand] = []
    for item in items:
        number = s.numeric(item)
        if not isinstance(number, ScalarV):
            raise s.unsupported("a shape must be made of integers")
        if np.dtype(number.dtype).kind not in "iu":
            known = {"float64": "float", "complex128": "complex", "bool": "bool"}
            own = known[number.dtype] if number.python else f"numpy.{number.dtype}"
            if own == "bool":
                raise s.unsupported("a shape must be made of integers")
            message = f"'{own}' object cannot be interpreted as an integer"
            if own == "numpy.bool":
                message = "an integer is required"
            s.check(ir.Const(False, PYBOOL), "TypeError", message)
            number = py(0)
        operand = b.cast(number.operand, PYINT)
        if not b.at_least_zero(b.form(operand)):
            s.check(b.prim("ge", operand, ZERO, type=PYBOOL), "ValueError", "negative dimensions are not allowed")
        if isinstance(operand, ir.Var):
            if operand not in b.small:
                fits = b.prim("lt", operand, ir.Const(1 << 47, PYINT), type=PYBOOL)
                s.check(fits, "Deoptimize", "an array that is too big")
            b.learn_extent(operand)
        extents.append(operand)
    return tuple(extents)


def rank0(s: Context, operand: ir.Operand) -> ArrayV:
    """A new 0-d array."""
    made = new_array(s, (), ir.dtype_of(operand), "scalar")
    s.builder.emit(ir.Store(made.var, (), s.builder.cast(operand, Scalar(made.dtype))))
    return made
