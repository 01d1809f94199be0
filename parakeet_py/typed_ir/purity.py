"""What is known of functions that are not compiled: which leave arguments alone, which give memory of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from parakeet_py.random_states import given_left, given_words
from parakeet_py.typed_ir.values import ArrayV, MethodV, Static, Value

_HEAP_TYPE = 1 << 9  # of a class statement
_PURE_MODULES = ("numpy", "numpy.linalg", "numpy.fft", "scipy.special", "scipy.linalg", "scipy.fft", "math")
_FRESH_MODULES = ("numpy.linalg", "numpy.fft", "scipy.special", "scipy.fft")
_PURE_BUILTINS = frozenset(
    map(id, (abs, bool, complex, divmod, float, hash, int, isinstance, len, list, pow, repr, round, str, tuple, type))
)
_PURE_WITHOUT_KEYS = frozenset(map(id, (max, min, sorted, sum)))
_IMPURE = ("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis")
_STORING_METHODS = frozenset(
    ["byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "setflags", "sort"]
)


def is_pure(target: Any, count: int, keywords: Sequence[str]) -> bool:
    """Is it known that a function changes none of its arguments, when called with so many and these keywords?"""
    if isinstance(target, np.ufunc):
        return "out" not in keywords and count <= target.nin
    if (
        target is given_words
        or target is given_left
        or target is np.random.default_rng
        or id(target) in _PURE_BUILTINS
        or (id(target) in _PURE_WITHOUT_KEYS and not keywords)
    ):
        return True
    if isinstance(getattr(target, "__self__", None), np.ufunc):
        return target.__name__ != "at" and count <= 2 and "out" not in keywords  # operands, or an array and its axis
    if type(getattr(target, "__self__", None)) is np.ndarray:
        name = target.__name__
        return not name.startswith("__") and name not in _STORING_METHODS and "out" not in keywords
    if getattr(target, "__module__", None) not in _PURE_MODULES or getattr(target, "__name__", "") in _IMPURE:
        return False
    return not any(keyword == "out" or keyword.startswith("overwrite") for keyword in keywords)


def may_store(operation: str, values: Sequence[Value], keywords: Sequence[str]) -> bool:
    """May an operation done by Python change the arrays it is given?"""
    kind = operation.partition(":")[0]
    if kind != "call":
        return kind in ("set_item", "inplace")
    match values[0]:
        case MethodV(ArrayV(), name):
            return name in _STORING_METHODS or "out" in keywords
        case Static(target):
            return not is_pure(target, len(values) - 1, keywords)
    return True


def is_fresh(target: Any, keywords: Sequence[str]) -> bool:
    """Is it known that what a function gives shares no memory with anything?"""
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", None)
    return module in _FRESH_MODULES and "out" not in keywords and name not in ("matrix_transpose", "diagonal")


def has_python_methods(cls: type) -> bool:
    """May instances run Python code when a function in C looks at them, by their class or as generators do?"""
    return bool(cls.__flags__ & _HEAP_TYPE) or issubclass(cls, Iterator)


def holds_array(value: Any) -> bool:
    """Can an operation on a value change an array?"""
    if isinstance(value, tuple | list):
        return any(map(holds_array, value))
    if isinstance(value, dict):
        return any(map(holds_array, value.values()))
    return isinstance(value, np.ndarray) or isinstance(getattr(value, "__self__", None), np.ndarray)
