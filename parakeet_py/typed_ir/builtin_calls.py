"""Python's builtin functions and types, and `math`, on abstract values."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py import operators
from parakeet_py.errors import UnsupportedError, name_of_exception
from parakeet_py.typed_ir import control, ir, long_ints
from parakeet_py.typed_ir.array_store import copy_array
from parakeet_py.typed_ir.comprehensions import may_raise
from parakeet_py.typed_ir.elementwise import scalar_operand
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.messages import is_text
from parakeet_py.typed_ir.python_scalars import OVERFLOW, compare, python_binary, python_unary
from parakeet_py.typed_ir.types import BOOL, PYBOOL, PYCOMPLEX, PYFLOAT, PYINT, Scalar, is_complex, is_float
from parakeet_py.typed_ir.ufuncs import binary, call_ufunc
from parakeet_py.typed_ir.values import (
    ArrayV,
    ClosureV,
    ComprehensionV,
    DictV,
    ErrorV,
    IteratorV,
    ListV,
    MethodV,
    ObjectV,
    RangeV,
    ScalarV,
    SliceV,
    Static,
    TupleV,
    Value,
    is_none,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer

BUILTINS: dict[Any, Callable[..., Value]] = {}


def _builtin(*targets: Any) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    def register(handler: Callable[..., Value]) -> Callable[..., Value]:
        for target in targets:
            BUILTINS[target] = handler
        return handler

    return register


@_builtin(len)
def _len(s: Specializer, value: Value) -> Value:
    if isinstance(value, ComprehensionV):
        value = s.as_list(value)
    items = control.static_items(value)
    if items is not None:
        return py(len(items))
    match value:
        case ArrayV(rank=0):
            raise s.unsupported("len() of unsized object")
        case ArrayV():
            return ScalarV(value.extents[0])
        case ListV(array):
            return ScalarV(array.extents[0])
        case RangeV():
            return ScalarV(control.range_length(s, value))
        case ObjectV():
            raise s.hand_back("len of an object")
    raise s.unsupported(f"len() of {s.describe(value)}")


@_builtin(range)
def _range(s: Specializer, *args: Value) -> Value:
    bounds = []
    for arg in args:
        number = s.numeric(arg)
        if not isinstance(number, ScalarV) or np.dtype(number.dtype).kind not in "iub":
            raise s.unsupported(f"{s.describe(arg)} cannot be interpreted as an integer")
        bounds.append(ScalarV(s.builder.cast(number.operand, PYINT)))
    match bounds:
        case [stop]:
            return RangeV(py(0), stop, py(1))
        case [start, stop]:
            return RangeV(start, stop, py(1))
        case [start, stop, step]:
            return RangeV(start, stop, step)
    raise s.unsupported("range expected 1 to 3 arguments")


@_builtin(operators.prange)
def _prange(s: Specializer, *args: Value) -> Value:
    made = _range(s, *args)
    assert isinstance(made, RangeV)
    return RangeV(made.start, made.stop, made.step, parallel=True)


@_builtin(zip)
def _zip(s: Specializer, *items: Value, strict: Value | None = None) -> Value:
    if strict is not None and s.static(strict, "strict"):
        raise s.unsupported("zip(strict=True)")
    return IteratorV("zip", tuple(control.pending(s, item) for item in items))


@_builtin(enumerate)
def _enumerate(s: Specializer, items: Value, start: Value | None = None) -> Value:
    return IteratorV("enumerate", (start or py(0), control.pending(s, items)))


@_builtin(reversed)
def _reversed(s: Specializer, items: Value) -> Value:
    if isinstance(items, RangeV):
        b = s.builder
        step = s.static_int(items.step, "the step of a range")
        length = control.range_length(s, items)
        last = b.index_add(
            items.start.operand, b.index_mul(ir.Const(step, PYINT), b.index_sub(length, ir.Const(1, PYINT)))
        )
        return RangeV(ScalarV(last), ScalarV(b.index_sub(items.start.operand, ir.Const(step, PYINT))), py(-step))
    if isinstance(items, ComprehensionV | IteratorV):
        raise s.unsupported(f"reversed() of {s.describe(items)}")
    return IteratorV("reversed", (items,))


@_builtin(map)
def _map(s: Specializer, function: Value, *iterables: Value) -> Value:
    if len(iterables) == 1:
        return ComprehensionV("generator", iterables[0], function, None, False)
    items = control.static_items(IteratorV("zip", iterables))
    if items is None:
        raise s.unsupported("map over several iterables of run-time length")
    return TupleV(tuple(s.call(function, list(item.items), {}) for item in items if isinstance(item, TupleV)), "list")


@_builtin(tuple, list)
def _sequence(s: Specializer, value: Value | None = None) -> Value:
    raise AssertionError("registered below")


def _make_sequence(kind: str) -> Callable[..., Value]:
    def make(s: Specializer, value: Value | None = None) -> Value:
        if value is None:
            return TupleV((), kind)
        if isinstance(value, ComprehensionV):
            value = s.as_list(value)
        items = control.static_items(value)
        if items is not None:
            return TupleV(tuple(items), kind)
        if kind == "list" and isinstance(value, ListV):
            return value
        if kind == "list" and isinstance(value, RangeV):
            array = s.as_array(value)
            assert isinstance(array, ArrayV)
            return ListV(array)
        if kind == "list" and isinstance(value, ArrayV) and value.rank == 1:
            return ListV(copy_array(s, value), value.dtype)
        return TupleV(tuple(s.sequence(value)), kind)

    return make


BUILTINS[tuple] = _make_sequence("tuple")
BUILTINS[list] = _make_sequence("list")


@_builtin(slice)
def _slice(s: Specializer, *args: Value) -> Value:
    none = lift(None)
    match args:
        case [stop]:
            return SliceV(none, stop, none)
        case [start, stop]:
            return SliceV(start, stop, none)
        case [start, stop, step]:
            return SliceV(start, stop, step)
    raise s.unsupported("slice expected 1 to 3 arguments")


@_builtin(dict)
def _dict(s: Specializer, **items: Value) -> Value:
    return DictV(tuple(items.items()))


@_builtin(isinstance)
def _isinstance(s: Specializer, value: Value, kinds: Value) -> Value:
    wanted = s.static(kinds, "a type")
    return py(issubclass(type_of(s, value), wanted))


@_builtin(type)
def _type(s: Specializer, value: Value) -> Value:
    return Static(type_of(s, value))


@_builtin(callable)
def _callable(s: Specializer, value: Value) -> Value:
    return py(isinstance(value, ClosureV | MethodV) or (isinstance(value, Static) and callable(value.object)))


@_builtin(hasattr)
def _hasattr(s: Specializer, value: Value, name: Value) -> Value:
    return py(hasattr(type_of(s, value), s.static(name, "an attribute's name")))


def type_of(s: Specializer, value: Value) -> type:
    """The Python type of a value."""
    match value:
        case ScalarV():
            if value.python:
                return {"bool": bool, "int64": int, "float64": float, "complex128": complex}[value.dtype]
            return np.dtype(value.dtype).type
        case ArrayV():
            return np.ndarray
        case TupleV(_, kind):
            return tuple if kind == "tuple" else list
        case ListV():
            return list
        case DictV():
            return dict
        case RangeV():
            return range
        case SliceV():
            return slice
        case ClosureV():
            return type(type_of)
        case Static(obj):
            return type(obj)
    raise s.hand_back(f"the type of {s.describe(value)}")


# ---- numbers ---------------------------------------------------------------------------------------------------------


@_builtin(abs)
def _abs(s: Specializer, value: Value) -> Value:
    known_result = long_ints.unary_of_known("abs", value)
    if known_result is not None:
        return known_result
    number = s.numeric(value)
    if isinstance(number, ScalarV) and number.python:
        return python_unary(s, "abs", number)
    return call_ufunc(s, np.absolute, [number])


@_builtin(float)
def _float(s: Specializer, value: Value | None = None) -> Value:
    if value is None:
        return py(0.0)
    if isinstance(value, Static):
        return lift(float(value.object))
    operand = _scalar(s, value)
    if is_complex(ir.dtype_of(operand)):
        raise s.unsupported("float() argument must not be complex")
    return ScalarV(s.builder.cast(operand, PYFLOAT))


@_builtin(int)
def _int(s: Specializer, value: Value | None = None) -> Value:
    if value is None:
        return py(0)
    if isinstance(value, Static):
        return lift(int(value.object))
    operand = _scalar(s, value)
    dtype = ir.dtype_of(operand)
    b = s.builder
    if is_complex(dtype):
        raise s.unsupported("int() argument must not be complex")
    if isinstance(operand, ir.Const) and math.isfinite(operand.value.real):
        return lift(int(operand.value.real))
    if is_float(dtype):
        return ScalarV(float_to_int(s, b.cast(operand, PYFLOAT)))
    if dtype == "uint64":
        limit = ir.Const((1 << 63) - 1, Scalar("uint64"))
        s.check(b.prim("le", operand, limit, type=PYBOOL), "OverflowError", OVERFLOW)
    return ScalarV(b.cast(operand, PYINT))


def float_to_int(s: Specializer, operand: ir.Operand) -> ir.Operand:
    """int(float): NaN and infinity raise as in Python, what does not fit 64 bits raises OverflowError."""
    b = s.builder
    if isinstance(operand, ir.Const) and abs(operand.value.real) < 2.0**63:
        return ir.Const(int(operand.value.real), PYINT)
    s.check(b.prim("not", b.prim("isnan", operand, type=PYBOOL)), "ValueError", "cannot convert float NaN to integer")
    s.check(
        b.prim("not", b.prim("isinf", operand, type=PYBOOL)),
        "OverflowError",
        "cannot convert float infinity to integer",
    )
    low, high = ir.Const(-(2.0**63), PYFLOAT), ir.Const(2.0**63, PYFLOAT)
    inside = b.logical_and(b.prim("ge", operand, low, type=PYBOOL), b.prim("lt", operand, high, type=PYBOOL))
    s.check(inside, "OverflowError", OVERFLOW)
    return b.cast(operand, PYINT)


@_builtin(bool)
def _bool(s: Specializer, value: Value | None = None) -> Value:
    return py(False) if value is None else ScalarV(s.truth(value))


@_builtin(complex)
def _complex(s: Specializer, real: Value | None = None, imag: Value | None = None) -> Value:
    b = s.builder
    if real is None:
        return py(0j)
    first = _scalar(s, real)
    if imag is None:
        return ScalarV(b.cast(first, PYCOMPLEX))
    second = _scalar(s, imag)
    if is_complex(ir.dtype_of(first)) or is_complex(ir.dtype_of(second)):
        raise s.unsupported("complex(complex, ...)")
    return ScalarV(b.prim("complex", b.cast(first, PYFLOAT), b.cast(second, PYFLOAT), type=PYCOMPLEX))


def _scalar(s: Specializer, value: Value) -> ir.Operand:
    number = s.numeric(value)
    if isinstance(number, ArrayV) and number.rank > 0:
        b = s.builder
        one = ir.Const(1, PYINT)
        for extent in number.extents:
            s.check(
                b.prim("eq", extent, one, type=PYBOOL), "TypeError",
                "only 0-dimensional arrays can be converted to Python scalars",
            )  # fmt: skip
        return b.emit1(ir.Load(number.var, (ZERO,) * number.rank), Scalar(number.dtype))
    return scalar_operand(s, number)


@_builtin(pow)
def _pow(s: Specializer, base: Value, exponent: Value, modulus: Value | None = None) -> Value:
    if modulus is not None and not is_none(modulus):
        raise s.hand_back("pow with a modulus")
    return s.binary("pow", base, exponent)


@_builtin(divmod)
def _divmod(s: Specializer, left: Value, right: Value) -> Value:
    a, c = s.numeric(left), s.numeric(right)
    if isinstance(a, ScalarV) and isinstance(c, ScalarV) and a.python and c.python:
        return TupleV((python_binary(s, "floordiv", a, c), python_binary(s, "mod", a, c)))
    return TupleV((call_ufunc(s, np.floor_divide, [a, c]), call_ufunc(s, np.remainder, [a, c])))


@_builtin(round)
def _round(s: Specializer, value: Value, digits: Value | None = None) -> Value:
    number = s.numeric(value)
    b = s.builder
    plain = digits is None or is_none(digits)
    if isinstance(number, ScalarV) and number.dtype in ("int64", "bool") and number.python:
        if plain:
            return ScalarV(b.cast(number.operand, PYINT))
        raise s.hand_back("round of an int to digits")
    if isinstance(number, ScalarV) and plain and np.dtype(number.dtype).kind in "iu":
        return _int(s, number)
    if isinstance(number, ScalarV) and is_float(number.dtype) and plain:
        rounded = b.prim("rint", b.cast(number.operand, PYFLOAT))
        return ScalarV(float_to_int(s, rounded))
    if isinstance(number, ScalarV) and number.python:
        raise s.hand_back("round of a float to digits (Python rounds its decimal value)")
    return s.call(Static(np.round), [number] if plain else [number, digits or py(0)], {})


def _pick(s: Specializer, op: str, items: list[Value], key: Value | None) -> Value:
    """min and max of known items: the first one that wins."""
    best = items[0]
    best_key = best if key is None else s.call(key, [best], {})
    for item in items[1:]:
        item_key = item if key is None else s.call(key, [item], {})
        a, c = s.numeric(item_key), s.numeric(best_key)
        if isinstance(a, ArrayV) or isinstance(c, ArrayV):
            raise s.unsupported("min or max of arrays")
        if a.python and c.python:
            kind = PYFLOAT if "float64" in (a.dtype, c.dtype) else PYINT
            better = compare(s, op, a.operand, c.operand, kind)
        else:
            better = s.truth(binary(s, op, a, c))
        if isinstance(better, ir.Const):
            if better.value:
                best, best_key = item, item_key
            continue
        x, y = item, best
        if (
            isinstance(x, ScalarV)
            and isinstance(y, ScalarV)
            and x.either is None
            and y.either is None
            and x.type == y.type
        ):
            chosen = s.builder.select(better, x.operand, y.operand)
            if x.type == PYINT and isinstance(chosen, ir.Var):
                chosen = (
                    s.builder.index_min(x.operand, y.operand)
                    if op == "lt"
                    else s.builder.index_max(x.operand, y.operand)
                )
            best = ScalarV(chosen)
        else:
            [best] = control.branch(s, better, partial(list, [item]), partial(list, [best]))
        best_key = best if key is None else s.call(key, [best], {})
    return best


def _extremum(op: str, reduction: str) -> Callable[..., Value]:
    def handle(s: Specializer, *args: Value, key: Value | None = None, default: Value | None = None) -> Value:
        if len(args) == 1:
            value = args[0]
            if isinstance(value, ComprehensionV):
                value = s.as_list(value)
            items = control.static_items(value)
            if items is None:
                array = _elements(s, value)
                if key is not None or default is not None or not isinstance(array, ArrayV) or array.rank != 1:
                    raise s.unsupported(f"{reduction}() of {s.describe(value)}")
                result = s.call_library(f"python_{reduction}", [array])
                return (
                    s.as_python(result)
                    if isinstance(value, RangeV) or (isinstance(value, ListV) and not value.items)
                    else result
                )
            if not items:
                if default is not None:
                    return default
                raise s.unsupported(f"{reduction}() iterable argument is empty")
            return _pick(s, op, items, key)
        return _pick(s, op, list(args), key)

    return handle


BUILTINS[min] = _extremum("lt", "min")
BUILTINS[max] = _extremum("gt", "max")


def _elements(s: Specializer, value: Value) -> Value:
    """What a builtin goes through, as an array."""
    if not isinstance(value, ListV):
        return s.numeric(value)
    if value.items == "table":
        raise s.unsupported("a list whose items are of different types")
    return value.array


@_builtin(sum)
def _sum(s: Specializer, value: Value, start: Value | None = None) -> Value:
    total = start or py(0)
    if isinstance(value, ComprehensionV):
        value = s.as_list(value)
    items = control.static_items(value)
    if items is not None:
        for item in items:
            total = s.binary("add", total, item)
        return total
    array = _elements(s, value)
    if not isinstance(array, ArrayV) or (isinstance(value, ListV) and array.rank > 1 and value.items != "array"):
        raise s.unsupported(f"sum() of {s.describe(value)}")
    if isinstance(value, RangeV) or (isinstance(value, ListV) and not value.items):
        name = "python_sum_int" if array.dtype in ("int64", "bool") else "python_sum"
        return s.binary("add", total, s.as_python(s.call_library(name, [array])))
    return s.binary("add", s.call_library("python_sum_rows", [array]), total)


@_builtin(all)
def _all(s: Specializer, value: Value) -> Value:
    return _quantifier(s, value, True)


@_builtin(any)
def _any(s: Specializer, value: Value) -> Value:
    return _quantifier(s, value, False)


def _quantifier(s: Specializer, value: Value, universal: bool) -> Value:
    b = s.builder
    if isinstance(value, ComprehensionV):
        mark, start = b.mark(), len(b.scopes[-1].statements)
        listed = s.as_list(value)
        if may_raise(b.scopes[-1].statements[start:]):  # items after the one that decides must not be computed
            b.rollback(mark)
            parts = [value.iterable, value.element, value.condition or lift(None), lift(value.flatten)]
            return s.call_library("python_all" if universal else "python_any", parts)
        value = listed
    items = control.static_items(value)
    if items is not None:
        result: ir.Operand = ir.Const(universal, PYBOOL)
        for item in items:
            truth = s.truth(item)
            result = b.logical_and(result, truth) if universal else b.logical_or(result, truth)
        return ScalarV(result)
    array = _elements(s, value)
    if isinstance(array, ArrayV) and array.rank == 1:
        found = s.call(Static(np.all if universal else np.any), [array], {})
        return ScalarV(s.truth(found))
    raise s.unsupported(f"{'all' if universal else 'any'}() of {s.describe(value)}")


def build_exception(s: Specializer, kind: type[BaseException], args: list[Value]) -> Value:
    """An exception object: at most one argument, a message. Python makes those that are no failure of a check."""
    if s.guards and s.guards[-1].may_make(s, kind) and not (len(args) == 1 and is_text(args[0])):
        return ErrorV(kind, None)
    if name_of_exception(kind) is None:
        raise s.hand_back(f"{kind.__name__} cannot be found by its name")
    if not args:
        return ErrorV(kind, "")
    if not (s.frames[-1].namespace.trusted or is_text(args[0])):
        raise s.hand_back(f"{kind.__name__} with an argument that is no text")
    if len(args) > 1:
        raise s.hand_back(f"{kind.__name__} with several arguments")
    try:
        return ErrorV(kind, *s.message(args[0]))
    except UnsupportedError as error:
        raise s.hand_back(error.message) from None


# ---- math ------------------------------------------------------------------------------------------------------------


def _math_unary(
    prim: str, domain: Callable[[Specializer, ir.Operand], ir.Operand] | None = None
) -> Callable[..., Value]:
    """A function of `math`: a float result, ValueError outside the domain, OverflowError when it is infinite."""

    def handle(s: Specializer, value: Value) -> Value:
        b = s.builder
        operand = _scalar(s, value)
        if is_complex(ir.dtype_of(operand)):
            raise s.unsupported("must be real number, not complex")
        x = b.cast(operand, PYFLOAT)
        if domain is not None:
            s.check(domain(s, x), "ValueError", "math domain error")
        result = b.prim(prim, x)
        if prim in ("exp", "exp2", "expm1", "sinh", "cosh", "gamma", "lgamma"):
            overflow = b.logical_and(b.prim("isinf", result, type=PYBOOL), b.prim("isfinite", x, type=PYBOOL))
            s.check(b.prim("not", overflow), "OverflowError", "math range error")
        return ScalarV(result)

    return handle


def _at_least(limit: float, *, strict: bool = False) -> Callable[[Specializer, ir.Operand], ir.Operand]:
    def test(s: Specializer, x: ir.Operand) -> ir.Operand:
        b = s.builder
        bad = b.prim("le" if strict else "lt", x, ir.Const(limit, PYFLOAT), type=PYBOOL)
        return b.prim("not", bad)

    return test


def _within_one(s: Specializer, x: ir.Operand) -> ir.Operand:
    b = s.builder
    return b.prim("not", b.prim("gt", b.prim("abs", x), ir.Const(1.0, PYFLOAT), type=PYBOOL))


def _inside_one(s: Specializer, x: ir.Operand) -> ir.Operand:
    b = s.builder
    return b.prim("not", b.prim("ge", b.prim("abs", x), ir.Const(1.0, PYFLOAT), type=PYBOOL))


def _not_infinite(s: Specializer, x: ir.Operand) -> ir.Operand:
    return s.builder.prim("not", s.builder.prim("isinf", x, type=PYBOOL))


for _function, _prim, _domain in (
    (math.sqrt, "sqrt", _at_least(0.0)),
    (math.exp, "exp", None),
    (math.expm1, "expm1", None),
    (math.log2, "log2", _at_least(0.0, strict=True)),
    (math.log10, "log10", _at_least(0.0, strict=True)),
    (math.log1p, "log1p", _at_least(-1.0, strict=True)),
    (math.sin, "sin", _not_infinite),
    (math.cos, "cos", _not_infinite),
    (math.tan, "tan", _not_infinite),
    (math.asin, "asin", _within_one),
    (math.acos, "acos", _within_one),
    (math.atan, "atan", None),
    (math.sinh, "sinh", None),
    (math.cosh, "cosh", None),
    (math.tanh, "tanh", None),
    (math.asinh, "asinh", None),
    (math.acosh, "acosh", _at_least(1.0)),
    (math.atanh, "atanh", _inside_one),
    (math.erf, "erf", None),
    (math.erfc, "erfc", None),
    (math.fabs, "abs", None),
    (math.cbrt, "cbrt", None),
    (math.exp2, "exp2", None),
):
    BUILTINS[_function] = _math_unary(_prim, _domain)


@_builtin(math.log)
def _log(s: Specializer, value: Value, base: Value | None = None) -> Value:
    result = _math_unary("log", _at_least(0.0, strict=True))(s, value)
    if base is None:
        return result
    bottom = _math_unary("log", _at_least(0.0, strict=True))(s, base)
    return s.binary("truediv", result, bottom)


def _math_to_int(prim: str) -> Callable[..., Value]:
    def handle(s: Specializer, value: Value) -> Value:
        operand = _scalar(s, value)
        if not is_float(ir.dtype_of(operand)):
            return _int(s, ScalarV(operand))
        return ScalarV(float_to_int(s, s.builder.prim(prim, s.builder.cast(operand, PYFLOAT))))

    return handle


BUILTINS[math.floor] = _math_to_int("floor")
BUILTINS[math.ceil] = _math_to_int("ceil")
BUILTINS[math.trunc] = _math_to_int("trunc")


def _math_test(prim: str) -> Callable[..., Value]:
    def handle(s: Specializer, value: Value) -> Value:
        return ScalarV(s.builder.prim(prim, s.builder.cast(_scalar(s, value), PYFLOAT), type=PYBOOL))

    return handle


BUILTINS[math.isnan] = _math_test("isnan")
BUILTINS[math.isinf] = _math_test("isinf")
BUILTINS[math.isfinite] = _math_test("isfinite")


def _math_binary(prim: str) -> Callable[..., Value]:
    def handle(s: Specializer, left: Value, right: Value) -> Value:
        b = s.builder
        return ScalarV(b.prim(prim, b.cast(_scalar(s, left), PYFLOAT), b.cast(_scalar(s, right), PYFLOAT)))

    return handle


BUILTINS[math.atan2] = _math_binary("atan2")
BUILTINS[math.hypot] = _math_binary("hypot")
BUILTINS[math.copysign] = _math_binary("copysign")


@_builtin(math.fmod)
def _fmod(s: Specializer, left: Value, right: Value) -> Value:
    b = s.builder
    x, y = b.cast(_scalar(s, left), PYFLOAT), b.cast(_scalar(s, right), PYFLOAT)
    bad = b.logical_or(b.prim("eq", y, ir.Const(0.0, PYFLOAT), type=PYBOOL), b.prim("isinf", x, type=PYBOOL))
    nan = b.logical_or(b.prim("isnan", x, type=PYBOOL), b.prim("isnan", y, type=PYBOOL))
    s.check(b.logical_or(nan, b.prim("not", bad)), "ValueError", "math domain error")
    return ScalarV(b.prim("fmod", x, y))


@_builtin(math.pow)
def _math_pow(s: Specializer, left: Value, right: Value) -> Value:
    b = s.builder
    x, y = b.cast(_scalar(s, left), PYFLOAT), b.cast(_scalar(s, right), PYFLOAT)
    result = b.prim("pow", x, y)
    finite = b.logical_and(b.prim("isfinite", x, type=PYBOOL), b.prim("isfinite", y, type=PYBOOL))
    s.check(
        b.prim("not", b.logical_and(finite, b.prim("isnan", result, type=PYBOOL))), "ValueError", "math domain error"
    )
    zero = b.prim("eq", x, ir.Const(0.0, PYFLOAT), type=PYBOOL)
    infinite = b.logical_and(finite, b.prim("isinf", result, type=PYBOOL))
    s.check(b.prim("not", b.logical_and(infinite, zero)), "ValueError", "math domain error")
    s.check(b.prim("not", infinite), "OverflowError", "math range error")
    return ScalarV(result)


@_builtin(math.radians)
def _radians(s: Specializer, value: Value) -> Value:
    b = s.builder
    return ScalarV(b.prim("mul", b.cast(_scalar(s, value), PYFLOAT), ir.Const(math.pi / 180.0, PYFLOAT)))


@_builtin(math.degrees)
def _degrees(s: Specializer, value: Value) -> Value:
    b = s.builder
    return ScalarV(b.prim("mul", b.cast(_scalar(s, value), PYFLOAT), ir.Const(180.0 / math.pi, PYFLOAT)))


__all__ = ["BOOL", "BUILTINS", "build_exception", "builtins", "type_of"]
