"""NumPy's ufuncs, and Python's operators on arrays and NumPy scalars.

Types come from NumPy itself: `ufunc.resolve_dtypes` gives the loop NumPy would run, Python scalars being weak as NEP 50
has it. What the loop computes is in `scalar_functions`. Python scalars among themselves follow Python
(`python_scalars`): ints are exact (overflow raises), division by zero raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.types import DTYPES, PYBOOL, PYINT, Scalar, is_complex, real_dtype
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import powers
from parakeet_py.typed_ir.specialize.arrays.array_store import fit_outputs, store_array, weak_cast
from parakeet_py.typed_ir.specialize.arrays.elementwise import Body, elementwise
from parakeet_py.typed_ir.specialize.arrays.exact_ufuncs import exact_loop
from parakeet_py.typed_ir.specialize.arrays.scalar_functions import Loop, scalar_loop
from parakeet_py.typed_ir.specialize.python import long_ints, python_scalars
from parakeet_py.typed_ir.specialize.values import ArrayV, NeverV, ScalarV, TupleV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


BINARY_UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


UNARY_UFUNCS = {"neg": np.negative, "pos": np.positive, "invert": np.invert, "abs": np.absolute}


_ORDER = ("lt", "le", "gt", "ge")
COMPARISON_NAMES = ("eq", "ne", *_ORDER)
COMPARISONS = frozenset({np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal})


def resolution_type(value: Value) -> Any:
    """What `resolve_dtypes` is given for an argument: a dtype, or int/float/complex for a weak scalar."""
    if isinstance(value, ScalarV) and value.python:
        return {"bool": np.dtype(bool), "int64": int, "float64": float, "complex128": complex}[value.dtype]
    assert isinstance(value, ScalarV | ArrayV)
    return np.dtype(value.dtype)


def call_ufunc(
    s: Context,
    ufunc: np.ufunc,
    args: Sequence[Value],
    *,
    out: Value | None = None,
    dtype: str | None = None,
    where: Value | None = None,
    casting: Any = "same_kind",
    operator: bool = False,
    prim: str | None = None,
) -> Value:
    """`ufunc(*args)` with NumPy's type resolution; several results come as a tuple.

    `operator` says that it is Python's operator that calls it, for which NumPy has rules of its own; `prim`, that this
    primitive is computed instead of the ufunc's.
    """
    if len(args) == 2:
        args = [long_ints.beside(args[0], args[1]), long_ints.beside(args[1], args[0])]
    values = [s.numeric(arg) for arg in args]
    if len(values) != ufunc.nin:
        raise s.unsupported(f"{ufunc.__name__} takes {ufunc.nin} arguments")
    types = [resolution_type(value) for value in values]
    if ufunc in COMPARISONS and all(
        kind is int or (isinstance(kind, np.dtype) and kind.kind in "iu") for kind in types
    ):
        # A Python int is compared by value, however narrow the array's dtype is.
        types = [np.dtype("int64") if kind is int else kind for kind in types]
    if all(isinstance(kind, type) for kind in types):  # which a dtype would be equal to
        types = [np.dtype(kind) for kind in types]
    try:
        wanted: Any = {} if dtype is None else {"signature": (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout}
        weak = any(isinstance(kind, type) for kind in types)
        if weak and casting in ("no", "equiv"):
            raise s.hand_back(f"a Python number, casting={casting!r}")
        rule: Any = (
            "unsafe" if weak and casting != "same_kind" else casting
        )  # NumPy 2.4 crashes on errors about weak types
        loop = ufunc.resolve_dtypes((*types, *[None] * ufunc.nout), casting=rule, **wanted)
        if rule != casting:
            types = [chosen if isinstance(kind, type) else kind for kind, chosen in zip(types, loop, strict=False)]
            loop = ufunc.resolve_dtypes((*types, *[None] * ufunc.nout), casting=casting, **wanted)
    except (TypeError, AttributeError, ValueError) as error:
        raise s.unsupported(str(error)) from None
    names = [kind.name for kind in loop]
    for value, name in zip(values, names, strict=False):
        if isinstance(value, ScalarV | ArrayV) and np.dtype(value.dtype).kind == "c" and np.dtype(name).kind != "c":
            raise s.hand_back("complex numbers made real, with a warning")
    if any(name not in DTYPES for name in names):
        raise s.hand_back(f"{ufunc.__name__} for {names[0]}")
    outputs = [Scalar(name) for name in names[ufunc.nin :]]
    given = () if out is None else out.items if isinstance(out, TupleV) else (out,)
    if where is not None and not isinstance(out, ArrayV):
        raise s.hand_back("where= without out=")
    targets = [_output(s, target) for target in given]
    function = _computing(s, prim, outputs) if prim else exact_loop(s, ufunc, values, targets, names, operator)
    if function is not None and ufunc is np.power and operator and names[0] not in ("float32", "float64"):
        function = powers.chosen(
            s, function, values[0], values[1], lambda one: _quick_power(s, one, values[0], names[0])
        )
    elif function is None and ufunc is np.power:
        function = powers.loop(s, values[0], values[1], names, operator)
    elif function is None:
        function = scalar_loop(s, ufunc, names)
    if len(targets) == 2 and targets[0].roots & targets[1].roots:
        raise s.hand_back("two outputs that share memory")  # which is stored last is NumPy's affair
    values = [  # a Python int that does not fit raises whether or not there are elements
        ScalarV(weak_cast(s, value.operand, name)) if isinstance(value, ScalarV) and value.type == PYINT else value
        for value, name in zip(values, names, strict=False)
    ]

    def body(operands: list[ir.Operand]) -> Sequence[ir.Operand]:
        converted = [weak_cast(s, operand, name) for operand, name in zip(operands, names, strict=False)]
        results = function(converted)
        return [s.builder.cast(result, kind) for result, kind in zip(results, outputs, strict=True)]

    if where is not None:
        return _masked_ufunc(s, body, values, targets[0], where, casting)
    if out is not None:
        for target, kind in zip(targets, outputs, strict=False):
            if not np.can_cast(kind.dtype, target.dtype, casting):  # of this, too, before the shapes
                raise s.unsupported(f"Cannot cast ufunc '{ufunc.__name__}' output to {target.dtype}")
        if not fit_outputs(s, values, targets):
            return NeverV()
        results = elementwise(s, body, values, targets[0] if len(targets) == 1 else None)
        for target, result in zip(targets, results, strict=True):
            store_array(s, target, result, casting=casting, out=True)
        return targets[0] if len(targets) == 1 else TupleV(tuple(targets))
    results = elementwise(s, body, values)
    return results[0] if len(results) == 1 else TupleV(tuple(results))


def _computing(s: Context, prim: str, outputs: Sequence[Scalar]) -> Loop:
    return lambda operands: [s.builder.prim(prim, *operands, type=outputs[0])]


def _quick_power(s: Context, ufunc: np.ufunc, base: Value, dtype: str) -> Loop:
    """The loop of a ufunc that stands for a power, in exact code."""
    kinds = [dtype, dtype]
    return exact_loop(s, ufunc, [base], [], kinds, False) or scalar_loop(s, ufunc, kinds)


def _masked_ufunc(s: Context, body: Body, values: Sequence[Value], out: ArrayV, where: Value, casting: Any) -> Value:
    mask = s.numeric(where)
    if mask.dtype != "bool":
        raise s.hand_back("where= that is no mask")
    if not fit_outputs(s, values, [out], mask):
        return NeverV()
    store_array(s, out, elementwise(s, body, values, out)[0], casting=casting, out=True, mask=mask)
    return out


def _output(s: Context, target: Value) -> ArrayV:
    if not isinstance(target, ArrayV):
        raise s.unsupported("out= must be an array")
    if target.readonly:  # which NumPy looks at before numbers that do not fit, and the shapes
        s.check(ir.Const(False, PYBOOL), "ValueError", "output array is read-only")
    return target


def binary(s: Context, op: str, left: Value, right: Value) -> Value:
    """A Python binary operator or comparison on numeric values."""
    result = long_ints.of_known(op, left, right)
    if result is None and op in COMPARISON_NAMES:
        result = long_ints.compared(s, op, left, right)
    if result is not None:
        return result
    left, right = long_ints.beside(left, right), long_ints.beside(right, left)
    left, right = s.numeric(left), s.numeric(right)
    if isinstance(left, ScalarV) and isinstance(right, ScalarV) and left.python and right.python:
        return python_scalars.python_binary(s, op, left, right)
    if op == "pow" and isinstance(left, ArrayV) and left.dtype == "bool" and _is_two(s, right):
        return call_ufunc(s, np.square, [left])
    shortcut = powers.shortcut(left, right) if op == "pow" else None
    if shortcut is not None:
        return call_ufunc(s, shortcut, [left])
    if op in _ORDER and isinstance(left, ScalarV) and isinstance(right, ScalarV) and not _is_numpy_bool(left):
        for one, other in ((left, right), (right, left)):
            if not one.python and is_complex(one.dtype) and (other.python or np.can_cast(other.dtype, one.dtype)):
                return _complex_order(s, op, left, right, one.dtype)
    return call_ufunc(s, BINARY_UFUNCS[op], [left, right], operator=True)


def _complex_order(s: Context, op: str, left: ScalarV, right: ScalarV, dtype: str) -> Value:
    """A comparison of complex scalars: the real parts decide, or else the imaginary ones. The ufunc, which NumPy's bool
    on the left calls, has no order for what is NaN in part."""
    b, part, truth = s.builder, Scalar(real_dtype(dtype)), Scalar("bool")
    sides = [b.cast(side.operand, Scalar(dtype)) for side in (left, right)]
    reals = [b.prim("real", side, type=part) for side in sides]
    imaginary = [b.prim("imag", side, type=part) for side in sides]
    same = b.prim("eq", *reals, type=PYBOOL)
    return ScalarV(b.select(same, b.prim(op, *imaginary, type=truth), b.prim(op, *reals, type=truth)))


def _is_numpy_bool(value: ScalarV) -> bool:
    return not value.python and value.dtype == "bool"


def _is_two(s: Context, exponent: Value) -> bool:
    """Is this Python's 2? The operator takes squares then, and those of bools are int8 where other powers are int64."""
    if not isinstance(exponent, ScalarV) or exponent.type != PYINT:
        return False
    two = ir.Const(2, PYINT)
    if not isinstance(exponent.operand, ir.Const):
        s.check(s.builder.prim("ne", exponent.operand, two, type=PYBOOL), "Deoptimize", "the square of bools is int8")
    return exponent.operand == two


def inplace(s: Context, op: str, left: Value, right: Value) -> Value:
    """`left op= right`."""
    if isinstance(left, ArrayV):
        right = s.numeric(long_ints.beside(right, left))
        shortcut = powers.shortcut(left, right) if op == "pow" else None
        if shortcut is not None:
            return call_ufunc(s, shortcut, [left], out=left)
        return call_ufunc(s, BINARY_UFUNCS[op], [left, right], out=left, operator=True)
    return binary(s, op, left, right)
