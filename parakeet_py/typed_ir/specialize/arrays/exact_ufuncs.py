"""Ufuncs in exact code: their loops are NumPy's own, element by element (see `base.exact_loops`).

Where NumPy would call another function by how the operands lie in memory, the call is handed back, since fused code
does not see that any more: arrays that go backwards, if it is known; if only the run tells, Python begins the call
again. Operators between NumPy's scalars are no loops: powers are the C library's, products of complex numbers the plain
formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base import exact_loops
from parakeet_py.base.types import PYBOOL, PYINT, Scalar, is_complex
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays.powers import is_one_exponent
from parakeet_py.typed_ir.specialize.arrays.scalar_functions import Loop
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def exact_loop(
    s: Context, ufunc: np.ufunc, values: Sequence[Value], outs: Sequence[Value], names: Sequence[str], operator: bool
) -> Loop | None:
    """What a ufunc computes for elements of these dtypes with NumPy's bits; None where the usual code has them."""
    if not exact_loops.exact.get() or exact_loops.has_one_result(ufunc, names):
        return None
    if operator and all(isinstance(value, ScalarV) for value in values):
        return _of_scalars(s, ufunc, values, names)
    kinds = tuple(names[: ufunc.nin])
    if ufunc is np.power and kinds[0] == "float16":
        return _half_power(s)
    family = exact_loops.family_of(ufunc)
    name = f"{family}.{ufunc.__name__}"
    if family is None or ufunc.nout > 1 or exact_loops.result_dtype(name, kinds) != names[ufunc.nin]:
        raise s.hand_back(f"{ufunc.__name__} of {kinds[0]}, whose loop is not known, in exact code")
    by_layout, alone = exact_loops.layout_matters(name, kinds)
    arrays = [value for value in (*values, *outs) if isinstance(value, ArrayV) and value.rank > 0]
    if by_layout and (kinds == ("float16",) or any(array.layout != "C" for array in arrays)):
        raise s.hand_back(f"{ufunc.__name__} of {kinds[0]}, whose last bits depend on the layout, in exact code")
    for array, kind in zip((*values, *outs), (*names[: len(values)], *names[ufunc.nin :]), strict=False):
        if isinstance(array, ArrayV) and array.dtype == kind:  # others are converted first, to a buffer
            _goes_forwards(s, array, ufunc)
    still = not arrays and alone
    steps = ["0" if still else "1"] * ufunc.nargs
    if ufunc is np.power and is_one_exponent(values[0], values[1], operator):
        steps[1] = "0"
    full = f"{name}.{''.join(steps)}"
    result = Scalar(names[ufunc.nin])
    return lambda operands: [s.builder.pure(ir.Prim(full, tuple(operands)), result)]


def _of_scalars(s: Context, ufunc: np.ufunc, values: Sequence[Value], names: Sequence[str]) -> Loop | None:
    """What an operator computes between NumPy's scalars."""
    kind = names[0]
    if ufunc is np.power and kind == "float16":
        return _half_power(s)
    if ufunc is np.power and not is_complex(kind):
        return lambda operands: [s.builder.prim("pow", *operands)]
    if ufunc is np.multiply:
        return lambda operands: [s.builder.prim("mul", *operands)]
    return exact_loop(s, ufunc, values, [], names, False)


def _half_power(s: Context) -> Loop:
    """Powers of float16 are those of float32, by the C library, rounded."""
    b, single, half = s.builder, Scalar("float32"), Scalar("float16")

    def body(operands: list[ir.Operand]) -> Sequence[ir.Operand]:
        return [b.cast(b.prim("pow", *[b.cast(operand, single) for operand in operands]), half)]

    return body


def _goes_forwards(s: Context, array: ArrayV, ufunc: np.ufunc) -> None:
    """See to it that no stride of an array is negative."""
    if array.layout != "A" or array.rank == 0:
        return
    b = s.builder
    definition = b.definition.get(array.var)
    while isinstance(definition, ir.View):
        steps = [axis.step for axis in definition.axes]
        if any(isinstance(step, ir.Const) and step.whole < 0 for step in steps):
            raise s.hand_back(f"{ufunc.__name__} of an array that goes backwards, in exact code")
        if not all(isinstance(step, ir.Const) for step in steps):
            break
        base = definition.base
        if getattr(base.type, "layout", "A") != "A":
            return
        definition = b.definition.get(base)
    for axis, extent in enumerate(array.extents):
        if extent != ONE:
            stride = b.pure(ir.Stride(array.var, axis), PYINT)
            forwards = b.prim("ge", stride, ZERO, type=PYBOOL)
            single = b.prim("le", extent, ONE, type=PYBOOL)
            s.check(b.logical_or(forwards, single), "Deoptimize", "an array that goes backwards, in exact code")
