"""What each scalar primitive and cast computes, bit for bit: shared by constant folding and the interpreter.

Values are NumPy scalars of exactly the operand's dtype. Integer arithmetic is done in Python integers and wrapped,
so it shows the rule rather than inheriting it; floating point is NumPy's own. `evaluate` raises OverflowError where a
checked operation does not fit, and nothing else.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from parakeet_py.base import exact_loops
from parakeet_py.base.types import DTYPES, INTEGERS, is_complex, is_unsigned, itemsize, same_bits

Value = Any  # a NumPy scalar

OVERFLOW = "Python integer result does not fit in 64 bits"
OTHER_TYPE = "a loop that has not run leaves a value of another type"
TOO_DEEP = "maximum recursion depth exceeded"


def integer_bounds(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    bits = 8 * itemsize(dtype)
    return (0, (1 << bits) - 1) if is_unsigned(dtype) else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


_BOUNDS = {dtype: integer_bounds(dtype) for dtype in INTEGERS}
_TYPES: dict[str, Any] = {dtype: np.dtype(dtype).type for dtype in DTYPES}
_NAMES: dict[type, str] = {type_: dtype for dtype, type_ in _TYPES.items()}


def wrap(value: int, dtype: str) -> Value:
    """`value` modulo the width of the dtype."""
    low, high = _BOUNDS[dtype]
    return _TYPES[dtype](value if low <= value <= high else (value - low) % (high - low + 1) + low)


def fits(value: int, dtype: str = "int64") -> bool:
    low, high = _BOUNDS[dtype]
    return low <= value <= high


def _floordiv(x: int, y: int) -> int:
    return x // y if y else 0


def _mod(x: int, y: int) -> int:
    return x % y if y else 0


def _fmod(x: int, y: int) -> int:
    return (abs(x) % abs(y)) * (-1 if x < 0 else 1) if y else 0


_INTEGER: dict[str, Callable[..., int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "mul_high": lambda x, y: x * y >> 64,
    "neg": lambda x: -x,
    "abs": abs,
    "floordiv": _floordiv,
    "mod": _mod,
    "fmod": _fmod,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "not": lambda x: ~x,
    "minimum": min,
    "maximum": max,
    "fmin": min,
    "fmax": max,
}
_COMPARE: dict[str, Callable[[Value, Value], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    if x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf if x > 0 or math.floor(x) % 2 == 0 else -math.inf


def _lgamma(x: float) -> float:
    if x <= 0 and x == math.floor(x):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def _in_double(function: Callable[[float], float]) -> Callable[[Value], Value]:
    return lambda x: x.dtype.type(function(float(x)))


_FLOAT: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.absolute,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "fmod": np.fmod,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "at_least": lambda x, y: y if x == y else np.maximum(x, y),
    "at_most": lambda x, y: y if x == y else np.minimum(x, y),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _in_double(math.erf),
    "erfc": _in_double(math.erfc),
    "gamma": _in_double(_gamma),
    "lgamma": _in_double(_lgamma),
    "pow": operator.pow,  # as numbers have it
    "power": np.power,
    "atan2": np.arctan2,
    "real": np.real,
    "imag": np.imag,
    "conj": np.conjugate,
    "not": np.logical_not,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _shift(name: str, x: int, y: int, dtype: str) -> int:
    if not 0 <= y < 8 * itemsize(dtype):
        return -1 if name == "shr" and x < 0 else 0
    return x << y if name == "shl" else x >> y


def evaluate(name: str, args: list[Value]) -> Value:
    """The result of primitive `name`.

    Raises
    ------
    OverflowError
        A checked operation whose exact result is no int64.
    """
    with np.errstate(all="ignore"):
        return evaluate_quietly(name, args)


def evaluate_quietly(name: str, args: list[Value]) -> Value:
    """`evaluate`, for those who have turned NumPy's warnings off already."""
    compare = _COMPARE.get(name)
    if compare is not None:
        return np.bool_(compare(args[0], args[1]))
    if name == "select":
        return args[1] if args[0] else args[2]
    if exact_loops.is_loop(name):
        return exact_loops.evaluate(name, args)
    if name == "on_device":
        return args[0]
    dtype = _NAMES.get(type(args[-1])) or args[-1].dtype.name
    if name in ("bits", "from_bits"):
        return args[0].view(same_bits(dtype))
    if dtype in _BOUNDS:
        numbers = [int(arg) for arg in args]
        function = _INTEGER.get(name)
        if function is not None:
            return wrap(function(*numbers), dtype)
        if name in ("shl", "shr"):
            return wrap(_shift(name, numbers[0], numbers[1], dtype), dtype)
        exact = _INTEGER[name.removesuffix("_checked")](*numbers)
        if not fits(exact):
            raise OverflowError(OVERFLOW)
        return np.int64(exact)
    if name == "complex":
        result = np.empty((), "complex64" if dtype == "float32" else "complex128")
        result.real, result.imag = args
        return result[()]
    function = _FLOAT.get(name) or getattr(np, name)
    return function(*args)


def convert(value: Value, dtype: str) -> Value:
    """What `Cast` gives: `ndarray.astype`, with the real part taken of a complex number cast to a real dtype."""
    if value.dtype.kind == "c" and not is_complex(dtype) and dtype != "bool":
        value = value.real
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)[()]


def scalar(value: Any, dtype: str) -> Value:
    """A Python number as a NumPy scalar of `dtype`."""
    return _TYPES[dtype](value)


class _Memory:
    """Memory that NumPy makes an array of."""

    def __init__(self, owner: np.ndarray[Any, Any], interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def strided(
    base: np.ndarray[Any, Any], offset: int, shape: Sequence[int], strides: Sequence[int], dtype: str
) -> np.ndarray[Any, Any]:
    """An array over the memory of another, `offset` bytes from its first element."""
    place = base.__array_interface__["data"][0] + offset
    interface = {"data": (place, False), "shape": tuple(shape), "strides": tuple(strides), "version": 3}
    return np.asarray(_Memory(base, {**interface, "typestr": np.dtype(dtype).str}))


_T = TypeVar("_T")


def pairwise(values: Sequence[_T], combine: Callable[[_T, _T], _T], unit: int) -> _T:
    """Combine some values in the order of NumPy's sums; `unit`: 4 for complex numbers, 8 for others."""
    groups, rest = divmod(len(values), unit)
    if len(values) > 16 * unit:
        half = groups // 2 * unit
        return combine(pairwise(values[:half], combine, unit), pairwise(values[half:], combine, unit))
    if groups == 0:
        return functools.reduce(combine, values)
    lanes = [functools.reduce(combine, values[lane : groups * unit : unit]) for lane in range(unit)]
    while len(lanes) > 1:
        lanes = [combine(left, right) for left, right in zip(lanes[::2], lanes[1::2], strict=True)]
    return functools.reduce(combine, values[len(values) - rest :], lanes[0])
