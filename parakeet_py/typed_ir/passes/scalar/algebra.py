"""Scalar algebra: what one primitive or cast can be replaced by, looking at its arguments and their definitions.

Each rule states its identity; all of them hold for every value of the dtype they are written for: integers wrap, and
for floats NaN, infinities and the sign of zero come out the same (the payload of a NaN may not). `x + 0.0` is no
identity (-0.0 + 0.0 is 0.0), `x + -0.0` is; `x * 0.0` is none.

`simplify_prim` and `simplify_cast` answer an operand (the value is already there), a smaller `Prim` or `Cast`, or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from parakeet_py.base.types import FLOATS, INTEGERS, Scalar, is_complex, is_float, is_integer, is_unsigned, itemsize
from parakeet_py.typed_ir.ir import EXTREMA, Cast, Const, Op, Operand, Prim, Var, dtype_of, scalar_type
from parakeet_py.typed_ir.semantics import convert, evaluate, integer_bounds, scalar

Definitions = Mapping[Var, Op]
Result = Operand | Prim | Cast | None
Rule = Callable[[tuple[Operand, ...], str, Definitions], Result]

COMMUTATIVE = frozenset(
    ["add", "mul", "add_checked", "mul_checked", "and", "or", "xor", "eq", "ne", "minimum", "maximum", "fmin", "fmax"]
)
NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_NEVER_FOLDED = frozenset({"nextafter", "bits", "from_bits", "on_device"})  # a literal NaN has no bits of its own


def simplify_prim(name: str, args: tuple[Operand, ...], out: Scalar, definitions: Definitions) -> Result:
    """What `name(*args)` with a result of type `out` is, if that is simpler."""
    if all([arg.__class__ is Const for arg in args]):
        folded = fold(name, args, out)
        if folded is not None:
            return folded
    ordered = name in EXTREMA and is_float(dtype_of(args[0]))  # of zeros of both signs the second is taken
    if name in COMMUTATIVE and not ordered and _out_of_order(args[0], args[1]):
        args = (args[1], args[0])
        return _simpler(name, args, definitions) or Prim(name, args)
    if name in MIRRORED and args[0].__class__ is Const:
        return Prim(MIRRORED[name], (args[1], args[0]))
    return _simpler(name, args, definitions)


def _simpler(name: str, args: tuple[Operand, ...], definitions: Definitions) -> Result:
    rule = _RULES.get(name)
    return rule(args, dtype_of(args[-1]), definitions) if rule is not None else None


def _out_of_order(left: Operand, right: Operand) -> bool:
    """Variables by age, literals last."""
    if isinstance(left, Const):
        return not isinstance(right, Const)
    return isinstance(right, Var) and right.uid < left.uid


def fold(name: str, args: tuple[Operand, ...], out: Scalar) -> Const | None:
    """The value of a primitive of literals; None where it overflows a checked operation."""
    if name in _NEVER_FOLDED:
        return None
    try:
        value = evaluate(name, [scalar(constant(arg), dtype_of(arg)) for arg in args])
    except OverflowError:
        return None
    return Const(value.item(), out)


def constant(operand: Operand) -> Any:
    """The value of a literal, None for a variable."""
    return operand.value if operand.__class__ is Const else None


def is_value(operand: Operand, value: float) -> bool:
    """Is this literal `value`? The sign of a float zero is looked at."""
    if operand.__class__ is not Const:
        return False
    have = operand.value
    if have != value or isinstance(have, complex):
        return False
    return bool(have) or not isinstance(have, float) or math.copysign(1.0, have) == math.copysign(1.0, value)


def _definition(operand: Operand, definitions: Definitions, name: str) -> tuple[Operand, ...] | None:
    """The arguments of the primitive that defines `operand`, if it is `name`."""
    op = definitions.get(operand) if operand.__class__ is Var else None
    return op.args if op.__class__ is Prim and op.name == name else None


def _add(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    x, y = args
    if is_integer(dtype):
        if is_value(y, 0):  # x + 0 = x
            return x
        inner = _definition(x, definitions, "add")
        if inner is not None and y.__class__ is Const and inner[1].__class__ is Const:  # (x + a) + b = x + (a + b)
            total = fold("add", (inner[1], y), y.type)
            return Prim("add", (inner[0], total)) if total is not None else None
    elif is_float(dtype) and is_value(y, -0.0):  # x + -0.0 = x
        return x
    return None


def _sub(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    x, y = args
    if is_integer(dtype):
        if is_value(y, 0):  # x - 0 = x
            return x
        if x is y:  # x - x = 0
            return Const(0, scalar_type(x))
        if y.__class__ is Const and not is_unsigned(dtype):  # x - a = x + -a
            negative = fold("neg", (y,), y.type)
            return Prim("add", (x, negative)) if negative is not None else None
    elif is_float(dtype) and is_value(y, 0.0):  # x - 0.0 = x
        return x
    return None


def _mul(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    x, y = args
    if not is_complex(dtype):
        if is_value(y, 1):  # x * 1 = x
            return x
        if is_value(y, -1) and not is_unsigned(dtype):  # x * -1 = -x
            return Prim("neg", (x,))
    if is_integer(dtype) and is_value(y, 0):  # x * 0 = 0
        return y
    return None


def _checked(name: str) -> Rule:
    plain = {"add": _add, "sub": _sub, "mul": _mul}[name]

    def rule(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
        result = plain(args, dtype, {})
        return None if isinstance(result, Prim) else result

    return rule


def _div(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    x, y = args
    value = constant(y)
    if not is_float(dtype) or value is None:
        return None
    if value == 1:  # x / 1 = x
        return x
    mantissa, exponent = math.frexp(value) if math.isfinite(value) else (0.0, 0)
    if abs(mantissa) == 0.5 and abs(exponent) < 14:  # x / 2^k = x * 2^-k, both exact in every float dtype
        return Prim("mul", (x, Const(1.0 / value, scalar_type(y))))
    return None


def _floordiv(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    return args[0] if is_integer(dtype) and is_value(args[1], 1) else None  # x // 1 = x


def _mod(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    return Const(0, scalar_type(args[1])) if is_integer(dtype) and is_value(args[1], 1) else None


def _pow(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    x, y = args
    if not is_float(dtype):
        return None
    if is_value(y, 1.0):  # x ** 1 = x
        return x
    if is_value(y, 2.0):  # x ** 2 = x * x, rounded once
        return Prim("mul", (x, x))
    if is_value(y, -1.0):  # x ** -1 = 1 / x, rounded once
        return Prim("div", (Const(1.0, scalar_type(y)), x))
    return None


def _power(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    x, y = args
    exponent = constant(y)
    if exponent == 0.5:  # of -0.0 and -inf, too, which pow takes for 0.0 and inf
        return Prim("sqrt", (x,))
    if exponent == 0:
        return Const(1.0, scalar_type(y))
    return None if exponent is None else _pow(args, dtype, definitions) or Prim("pow", args)


def _neg(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    inner = _definition(args[0], definitions, "neg")  # --x = x
    return inner[0] if inner is not None else None


def _abs(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    if is_complex(dtype):
        return None
    if is_unsigned(dtype) or _definition(args[0], definitions, "abs") is not None:  # | |x| | = |x|
        return args[0]
    inner = _definition(args[0], definitions, "neg")  # |-x| = |x|
    return Prim("abs", inner) if inner is not None else None


def _and(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    x, y = args
    if x is y:
        return x
    value = constant(y)
    if value is None:
        return None
    if dtype == "bool":
        return x if value else y
    return y if value == 0 else x if value == (-1 if not is_unsigned(dtype) else integer_bounds(dtype)[1]) else None


def _or(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    x, y = args
    if x is y:
        return x
    value = constant(y)
    if value is None:
        return None
    if dtype == "bool":
        return y if value else x
    return x if value == 0 else None


def _xor(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    x, y = args
    if dtype == "bool" and constant(y) is not None:
        return Prim("not", (x,)) if constant(y) else x
    return x if is_integer(dtype) and is_value(y, 0) else None


def _not(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    (x,) = args
    op = definitions.get(x) if isinstance(x, Var) else None
    if not isinstance(op, Prim):
        return None
    if op.name == "not":  # not not x = x
        return op.args[0]
    if op.name in NEGATED and (op.name in ("eq", "ne") or not is_float(dtype_of(op.args[0]))):
        return Prim(NEGATED[op.name], op.args)  # not x < y is x >= y, but not where there are NaNs
    return None


def _comparison(name: str, answer: bool) -> Rule:
    def rule(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
        x, y = args
        if x is y and (is_integer(dtype) or dtype == "bool"):  # x <= x, but not for NaN
            return Const(answer, Scalar("bool", True))
        op = definitions.get(x) if isinstance(x, Var) else None
        if isinstance(op, Cast) and is_float(dtype) and constant(y) == 0 and is_integer(dtype_of(op.arg)):
            return Prim(name, (op.arg, Const(0, Scalar(dtype_of(op.arg)))))  # float(i) < 0.0 is i < 0
        return None

    return rule


def _extremum(name: str) -> Rule:
    def rule(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
        x, y = args
        if x is y:  # min(x, x) = x
            return x
        if is_integer(dtype) and y.__class__ is Const:
            inner = _definition(x, definitions, name)
            if inner is not None and inner[1].__class__ is Const:  # min(min(x, a), b) = min(x, min(a, b))
                folded = fold(name, (inner[1], y), y.type)
                return Prim(name, (inner[0], folded)) if folded is not None else None
        return None

    return rule


def _select(args: tuple[Operand, ...], dtype: str, definitions: Definitions) -> Result:
    condition, x, y = args
    if condition.__class__ is Const:
        return x if condition.value else y
    if x is y or x == y:
        return x
    if dtype == "bool" and x.__class__ is Const and y.__class__ is Const:
        if constant(x) == constant(y):  # one truth, Python's and NumPy's
            return x
        return condition if constant(x) else Prim("not", (condition,))
    op = definitions.get(condition) if isinstance(condition, Var) else None
    if not isinstance(op, Prim):
        return None
    if op.name == "not":
        return Prim("select", (op.args[0], y, x))
    if is_integer(dtype) and op.name in ("lt", "le", "gt", "ge"):
        less = op.name in ("lt", "le")
        if op.args == (x, y):  # x if x < y else y = min(x, y)
            return Prim("minimum" if less else "maximum", (x, y))
        if op.args == (y, x):
            return Prim("maximum" if less else "minimum", (x, y))
    return None


_RULES: dict[str, Rule] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "add_checked": _checked("add"),
    "sub_checked": _checked("sub"),
    "mul_checked": _checked("mul"),
    "div": _div,
    "floordiv": _floordiv,
    "mod": _mod,
    "pow": _pow,
    "power": _power,
    "neg": _neg,
    "abs": _abs,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _not,
    "eq": _comparison("eq", True),
    "le": _comparison("le", True),
    "ge": _comparison("ge", True),
    "ne": _comparison("ne", False),
    "lt": _comparison("lt", False),
    "gt": _comparison("gt", False),
    "minimum": _extremum("minimum"),
    "maximum": _extremum("maximum"),
    "at_least": _extremum("at_least"),
    "at_most": _extremum("at_most"),
    "select": _select,
}

# ---- casts -----------------------------------------------------------------------------------------------------------

_PRECISION = {"float16": 11, "float32": 24, "float64": 53}


def exact_cast(source: str, target: str) -> bool:
    """Does every value of `source` have an equal value of `target`?"""
    if source == target or source == "bool":
        return True
    if source in INTEGERS and target in INTEGERS:
        low, high = integer_bounds(source)
        least, greatest = integer_bounds(target)
        return least <= low and high <= greatest
    if source in INTEGERS and target in FLOATS:
        return 8 * itemsize(source) - (not is_unsigned(source)) <= _PRECISION[target]
    return source in FLOATS and target in FLOATS and itemsize(source) <= itemsize(target)


def simplify_cast(arg: Operand, out: Scalar, definitions: Definitions) -> Result:
    """What a cast of `arg` to `out` is, if that is simpler."""
    source = dtype_of(arg)
    if isinstance(arg, Const):
        return _cast_constant(arg, out)
    if source == out.dtype:
        return arg
    op = definitions.get(arg)
    if op.__class__ is Cast:
        inner = op.arg
        if exact_cast(dtype_of(inner), source):  # (T)(U)x = (T)x where U holds every x
            return inner if dtype_of(inner) == out.dtype else Cast(inner)
    return None


def _cast_constant(const: Const, out: Scalar) -> Const | None:
    """A literal of another dtype; a float that does not fit an integer is left for the machine to convert."""
    value = const.value
    if is_integer(out.dtype) and isinstance(value, float | complex):
        low, high = integer_bounds(out.dtype)
        real = value.real
        if not (math.isfinite(real) and low <= real <= high):
            return None
    return Const(convert(scalar(value, const.type.dtype), out.dtype).item(), out)
