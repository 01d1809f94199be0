"""The functions that exact code is made of: NumPy's inner loops for one element, and the C library's functions.

`options(exact=True)` promises the bits of NumPy and of Python. NumPy's loops for floats are vector code of its own,
whose last bits no other code has, and beside them stands the C library: `math`, and the operators of NumPy's scalars,
call it. Both are primitives of the typed IR, by names that say which function is meant:

| name | is |
|---|---|
| `ufunc.exp.11` | the loop of `np.exp`; a digit for each operand and the result says whether its memory moves |
| `libm.exp` | the C library's function |

Functions of numba's (`native_functions`) are primitives of the same kind, in any code.

A loop gives an element the same bits wherever it stands, with exceptions that were found by trying (AVX-512, NumPy
2.4):

* over memory that goes backwards the C library is called;
* for float16, functions of one operand have vector code only for adjacent elements;
* `power` looks whether the exponent stands still: then squares, roots and reciprocals are what they are;
* some loops treat a single number (all standing still) in another way: squares of complex numbers.

So exact code calls loops over adjacent elements, forwards; `layout_matters` says by trying whether a loop has other
exceptions on this machine.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np

from parakeet_py.base.foreign_code import native_functions
from parakeet_py.base.types import is_complex, is_float

exact: ContextVar[bool] = ContextVar("exact", default=False)  # whether what is specialized gives NumPy's bits

FAMILIES = {"ufunc": "numpy", "special": "scipy.special"}
LIBM = "libm"
_C_NAMES = frozenset({
    *("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp2"),
    *("expm1", "hypot", "log", "log10", "log1p", "log2", "pow", "sin", "sinh", "tan", "tanh"),
})  # fmt: skip
# Of these a computation has one result only, or what the compiler writes for them is what NumPy computes.
_ROUNDED_ONCE = frozenset({
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "divmod", "modf", "frexp", "ldexp"),
    *("negative", "positive", "absolute", "fabs", "sqrt", "square", "reciprocal", "conjugate", "rint", "floor", "ceil"),
    *("trunc", "copysign", "nextafter", "spacing", "minimum", "maximum", "fmin", "fmax", "clip", "sign", "heaviside"),
})  # fmt: skip
_OF_COMPLEX = frozenset({
    *("add", "subtract", "negative", "positive", "conjugate", "rint", "minimum", "maximum", "fmin", "fmax", "clip"),
    "sign",
})  # fmt: skip


def is_loop(name: str) -> bool:
    """Whether a primitive is one of these functions."""
    return name.startswith(("ufunc.", "special.", "libm.", "numba."))


def is_c_function(name: str) -> bool:
    """Whether a primitive is called with numbers, and gives one: no loop over memory."""
    return name.startswith(("libm.", "numba."))


def has_one_result(ufunc: np.ufunc, dtypes: Sequence[str]) -> bool:
    """Whether what the compiler writes for a ufunc has NumPy's bits anyway; `dtypes` of operands, then results."""
    results = dtypes[ufunc.nin :]
    if not any(is_float(name) or is_complex(name) for name in results):
        return True
    return ufunc.__name__ in (_OF_COMPLEX if any(map(is_complex, dtypes)) else _ROUNDED_ONCE)


def family_of(ufunc: np.ufunc) -> str | None:
    """Where a ufunc is found by its name; None if it is not."""
    for family, module in FAMILIES.items():
        if module in sys.modules and getattr(sys.modules[module], ufunc.__name__, None) is ufunc:
            return family
    return None


@lru_cache(maxsize=256)
def ufunc_named(name: str) -> np.ufunc | None:
    """The ufunc of `ufunc.exp`, with or without its digits."""
    family, own = name.split(".")[:2]
    if family not in FAMILIES:
        return None
    try:
        found = getattr(importlib.import_module(FAMILIES[family]), own, None)
    except ImportError:
        return None
    return found if isinstance(found, np.ufunc) and found.signature is None else None


def moves(name: str) -> tuple[bool, ...]:
    """Whether the memory of each operand, and of the result, of a loop moves."""
    return tuple(digit == "1" for digit in name.rpartition(".")[2])


def arity(name: str) -> int:
    """How many operands a function has."""
    if native_functions.is_native(name):
        return len(native_functions.function_of(name).operands)
    if name.startswith("libm."):
        return 2 if name in ("libm.pow", "libm.atan2", "libm.hypot") else 1
    return len(moves(name)) - 1


@lru_cache(maxsize=256)
def result_dtype(name: str, dtypes: tuple[str, ...]) -> str | None:
    """The dtype of a function's result; None where it has no loop for exactly these operands."""
    if native_functions.is_native(name):
        return native_functions.result_dtype(name, dtypes)
    if name.startswith("libm."):
        return dtypes[0] if {*dtypes} <= {"float32", "float64"} and len({*dtypes}) == 1 else None
    found = ufunc_named(name)
    if found is None or found.nin != len(dtypes) or found.nout != 1:
        return None
    kinds = tuple(map(np.dtype, dtypes))
    try:
        *given, result = found.resolve_dtypes((*kinds, None))
    except TypeError:
        return None
    return result.name if tuple(given) == kinds else None


# ---- what they compute -----------------------------------------------------------------------------------------------


def evaluate(name: str, args: Sequence[Any]) -> Any:
    """The result for NumPy scalars, without warnings' being turned off."""
    if native_functions.is_native(name):
        return native_functions.evaluate(name, args)
    if name.startswith("libm."):
        kind = args[0].dtype.type
        return kind(_c_function(name, kind is np.float32)(*args))
    found = ufunc_named(name)
    assert found is not None
    *steps, result = moves(name)
    if not result:
        return found(*args)
    # two elements, so that those whose memory stands still are told apart
    return found(*[np.array([arg, arg]) if step else arg for arg, step in zip(args, steps, strict=True)])[0]


@lru_cache(maxsize=64)
def _c_function(name: str, single: bool) -> Callable[..., float]:
    kind = ctypes.c_float if single else ctypes.c_double
    address = c_address(name, "float32" if single else "float64")
    assert address
    return ctypes.CFUNCTYPE(kind, *[kind] * arity(name))(address)


@lru_cache(maxsize=64)
def c_address(name: str, dtype: str) -> int | None:
    """Where a function of the C library is."""
    own = name.removeprefix("libm.")
    if own not in _C_NAMES:
        return None
    try:
        found = getattr(_c_library(), own + ("f" if dtype == "float32" else ""))
    except (AttributeError, OSError):
        return None
    return ctypes.cast(found, ctypes.c_void_p).value


@lru_cache(maxsize=1)
def _c_library() -> ctypes.CDLL:
    from ctypes.util import find_library  # which imports a good deal

    return ctypes.CDLL(find_library("m"))


# ---- what their results depend on ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def layout_matters(name: str, dtypes: tuple[str, ...]) -> tuple[bool, bool]:
    """Whether a loop gives elements of a line other bits by where they stand in it or how far apart, forwards; and
    whether it gives a single number others. `name` without digits, `dtypes` of the operands."""
    found = ufunc_named(name)
    assert found is not None
    if dtypes == ("float16",):
        return True, True
    given = [_numbers(dtype, seed) for seed, dtype in enumerate(dtypes)]
    with np.errstate(all="ignore"):
        whole = found(*given)
        gaps = [_with_gaps(line) for line in given]
        target = np.zeros(2 * len(whole), whole.dtype)[::2]
        found(*gaps, out=target)
        short = np.concatenate([found(*[line[place : place + 3] for line in given]) for place in range(0, 300, 3)])
        still = [np.broadcast_to(line[7:8], line.shape) for line in given]
        same = _same_bits(whole, np.ascontiguousarray(target)) and _same_bits(whole[:300], short)
        if len(given) == 2:
            for number in range(2):
                mixed = [still[place] if place == number else line for place, line in enumerate(given)]
                full = [np.ascontiguousarray(line) for line in mixed]
                same = same and _same_bits(found(*full), found(*mixed))
        single = np.array([found(*numbers) for numbers in zip(*[line[:500] for line in given], strict=True)])
    return not same, not _same_bits(whole[:500], single)


def _numbers(dtype: str, seed: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(seed)
    line = random.normal(size=2000) * np.exp(3 * random.normal(size=2000))
    line[::5] = random.random(400)
    if np.dtype(dtype).kind == "c":
        return (line + 1j * line[::-1]).astype(dtype)
    return line.astype(dtype)


def _with_gaps(line: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = np.zeros(3 * len(line), line.dtype)[::3]
    view[:] = line
    return view


def _same_bits(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    if left.dtype != right.dtype:
        return False
    if left.dtype.kind not in "fc":
        return bool((left == right).all())
    reals = [np.array(side).view(side.real.dtype) for side in (left, right)]
    words = [side.view(f"u{side.itemsize}") for side in reals]
    return bool(((words[0] == words[1]) | (np.isnan(reals[0]) & np.isnan(reals[1]))).all())
