"""NumPy's shortcuts for powers of arrays by one exponent: `x ** 2` is a product, `x ** 0.5` a square root.

There are two, and both have to be followed, since pow has other last bits, and other values of -0.0 and -inf:

- the operator, given an array of floats or complex numbers and exactly Python's `-1`, `2` or `0.5`, calls reciprocal,
  square or sqrt (`shortcut`; where only the run tells the number, `loop_of_operator` chooses among the results);
- the loops of power for float32 and float64, given the same exponent for all elements, whatever kind of number it is,
  do so by themselves, for 0 and 1, too: the primitive `power`. Scalars have no loop: `np.float64(2) ** 0.5` is C's pow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import PYBOOL, PYFLOAT, PYINT, Scalar, is_complex
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE
from parakeet_py.typed_ir.specialize.arrays.scalar_functions import Loop, scalar_loop
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_OF_INT: dict[float, np.ufunc] = {2: np.square, -1: np.reciprocal}
_OF_FLOAT: dict[float, np.ufunc] = {0.5: np.sqrt}


def _shortcuts(left: Value, right: Value) -> dict[float, np.ufunc]:
    """The ufuncs that the operator calls, by exponent."""
    if not (isinstance(left, ArrayV) and np.dtype(left.dtype).kind in "fc" and isinstance(right, ScalarV)):
        return {}
    return _OF_INT if right.type == PYINT else _OF_FLOAT if right.type == PYFLOAT else {}


def shortcut(left: Value, right: Value) -> np.ufunc | None:
    """The ufunc that `left ** right` calls in the place of power, if the exponent is known."""
    if (
        isinstance(right, ScalarV)
        and isinstance(right.operand, ir.Const)
        and not isinstance(right.operand.value, complex)
    ):
        return _shortcuts(left, right).get(right.operand.value)
    return None


def is_one_exponent(left: Value, right: Value, operator: bool) -> bool:
    """Whether a loop of power is given the same exponent for all elements."""
    if operator and isinstance(left, ScalarV) and isinstance(right, ScalarV):
        return False
    if not isinstance(right, ArrayV) or right.rank == 0:
        return True
    alone = isinstance(left, ArrayV) and left.rank == right.rank and all(extent == ONE for extent in left.extents)
    return all(extent == ONE for extent in right.extents) and not alone


def loop(s: Context, left: Value, right: Value, names: Sequence[str], operator: bool) -> Loop:
    """What a loop of power computes for elements of these dtypes."""
    kind = Scalar(names[0])
    if kind.dtype in ("float32", "float64"):
        if is_one_exponent(left, right, operator):
            return lambda operands: [s.builder.prim("power", *operands, type=kind)]
        return scalar_loop(s, np.power, names)
    general = scalar_loop(s, np.power, names)
    if not operator or (kind.dtype != "float16" and not is_complex(kind.dtype)):
        return general
    return chosen(s, general, left, right, lambda ufunc: scalar_loop(s, ufunc, [kind.dtype, kind.dtype]))


def chosen(s: Context, general: Loop, left: Value, right: Value, loop_of: Callable[[np.ufunc], Loop]) -> Loop:
    """The operator's loop where the exponent may turn out to have a shortcut, whose result it gives then."""
    shortcuts = _shortcuts(left, right)
    if not shortcuts or not isinstance(right, ScalarV) or isinstance(right.operand, ir.Const):
        return general
    b = s.builder
    tests: list[tuple[ir.Operand, Loop]] = []
    for exponent, ufunc in shortcuts.items():
        known = ir.Const(int(exponent) if right.type == PYINT else exponent, right.type)
        test = b.prim("eq", right.operand, known, type=PYBOOL)
        tests.append((test, loop_of(ufunc)))

    def body(operands: list[ir.Operand]) -> Sequence[ir.Operand]:
        result = general(operands)[0]
        for test, quick in tests:
            result = b.select(test, quick(operands[:1])[0], result)
        return [result]

    return body
