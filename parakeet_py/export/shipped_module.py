"""The Python module of an exported library: one file, which needs NumPy and the library beside it.

`python_module` writes the names below and the function itself into a copy of this file. Arguments are compared with the
signatures as the compiler sees them; the library checks the rest, such as memory that overlaps.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

# ---- what the library holds ------------------------------------------------------------------------------------------

NAME: str = ""
# For each signature its types in words, those of the parameters, words of arguments and of results, the leaves of the
# result (kind, dtype, Python's own type?, rank, view?, read-only?, slot), the result, failures.
SIGNATURES: tuple[Any, ...] = ()

# ---- the library -----------------------------------------------------------------------------------------------------

_BAD_ARGUMENT, _NO_MEMORY, _NO_CPU, _NEEDS_PYTHON = 3, 1, 2, 4


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(Path(__file__).resolve().parent / f"lib{NAME}.so"))
    words = ctypes.c_void_p
    for name, result, arguments in (
        ("call", ctypes.c_int, (ctypes.c_int, words, words)),
        ("free", None, (ctypes.c_void_p,)),
        ("last_failure", ctypes.c_int, (words,)),
        ("last_message", ctypes.c_char_p, ()),
    ):
        function = getattr(library, f"{NAME}_{name}")
        function.restype, function.argtypes = result, arguments
    return library


_library = _load() if NAME else ctypes.CDLL(None)


def _function(name: str) -> Any:
    return getattr(_library, f"{NAME}_{name}", None)


_call, _free, _last_failure, _last_message = map(_function, ("call", "free", "last_failure", "last_message"))

# ---- arguments -------------------------------------------------------------------------------------------------------

_SCALARS: dict[type, str] = {bool: "?", int: "q", float: "d", complex: "dd"}
_PYTHON = {"bool": bool, "int64": int, "float64": float, "complex128": complex}


def _layout(array: Any) -> str:
    flags = array.flags
    if flags.c_contiguous:
        return "C"
    if flags.f_contiguous:
        return "F"
    return "S" if array.strides[-1] == array.itemsize else "A"


def _order(array: Any, unit: Sequence[bool]) -> tuple[int, ...]:
    """The axes from the largest stride to the smallest; empty if they are in that order. Those with a stride of 0 are
    where NumPy's iterator has them."""
    steps = [0 if one else abs(step) for step, one in zip(array.strides, unit, strict=True)]
    axes = [axis for axis, one in enumerate(unit) if not one]
    if all(steps[axis] for axis in axes):
        moved = dict(zip(axes, sorted(axes, key=lambda axis: -steps[axis]), strict=True))
        order = [moved.get(axis, axis) for axis in range(len(unit))]
    else:
        order = []
        for axis in range(len(unit))[::-1]:  # those found stand from the slowest to the fastest
            place = 0
            for other, found in enumerate(order if steps[axis] else ()):
                if 0 < steps[found] <= steps[axis]:
                    break
                if steps[found]:
                    place = other + 1
            order.insert(place, axis)
    return () if order == [*range(len(unit))] else tuple(order)


def _fits(
    value: Any,
    dtype: str,
    layout: str,
    unit: tuple[bool, ...],
    writeable: Any,
    inner: int,
    order: Sequence[int],
    still: Sequence[int],
) -> bool:
    """Is this an array that a signature is for?"""
    if type(value) is not np.ndarray or value.ndim != len(unit) or value.dtype != np.dtype(dtype):
        return False
    shape = value.shape
    return bool(
        value.flags.aligned
        and writeable in (None, value.flags.writeable)
        and tuple(extent == 1 for extent in shape) == unit
        and (not inner or shape[-1] == inner)  # code that is made for other last extents takes any
        and (
            _layout(value) == layout or (layout == "A" and _layout(value) == "S")
        )  # A: any strides but those of C and F
        and (_order(value, unit) if layout in "SA" else ()) == order
        and (
            layout not in "SA"
            or all((step == 0) == (at in still) for at, step in enumerate(value.strides) if not unit[at])
        )
    )


def _same(expected: Any, value: Any) -> bool:
    """Is this the value that a signature is for?"""
    if isinstance(expected, np.dtype):
        return isinstance(value, np.dtype) and expected == value
    if type(expected) is not type(value):
        return False
    if isinstance(expected, tuple):
        return len(expected) == len(value) and all(map(_same, expected, value))
    if isinstance(expected, float | complex):
        return repr(expected) == repr(value)
    return bool(expected is value if isinstance(expected, type) else expected == value)


def _add_array(array: Any, words: list[int], arrays: list[Any]) -> bool:
    arrays.append(array)
    words += (0, array.__array_interface__["data"][0], *array.shape, *array.strides)
    return True


def _take(spec: tuple[Any, ...], value: Any, words: list[int], arrays: list[Any]) -> bool:
    """Add the words of an argument; False if it is none that the signature is for."""
    match spec:
        case ("array", *facts):
            return _fits(value, *facts) and _add_array(value, words, arrays)
        case ("scalar", dtype, True):
            if type(value) is not _PYTHON[dtype] or (type(value) is int and not -(2**63) <= value < 2**63):
                return False
            parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
            words += struct.unpack(f"{len(parts)}q", struct.pack(_SCALARS[type(value)], *parts).ljust(8, b"\0"))
            return True
        case ("scalar", dtype, _):
            if type(value) is not np.dtype(dtype).type:
                return False
            data = value.tobytes()
            words += struct.unpack(f"{(len(data) + 7) // 8}q", data.ljust(8, b"\0"))
            return True
        case ("none",):
            return value is None
        case ("value", expected):
            return _same(expected, value)
        case ("items", kind, items):
            if type(value).__name__ == kind and isinstance(value, slice | range):
                value = (value.start, value.stop, value.step)
            elif type(value).__name__ != kind or not isinstance(value, tuple | list) or len(value) != len(items):
                return False
            return all([_take(item, one, words, arrays) for item, one in zip(items, value, strict=True)])
        case ("numbers", dtype):
            return _take_numbers(value, dtype, words, arrays)
        case ("text",):
            if type(value) is not str:
                return False
            return _add_array(np.frombuffer(value.encode("utf-32-le", "surrogatepass"), np.uint32), words, arrays)
    raise AssertionError(spec)


def _take_numbers(value: Any, dtype: str, words: list[int], arrays: list[Any]) -> bool:
    """A list of numbers, as an array."""
    if type(value) is not list or len(value) <= 4 or {*map(type, value)} != {_PYTHON[dtype]}:
        return False
    try:
        return _add_array(np.array(value, dtype), words, arrays)
    except OverflowError:
        return False


# ---- results ---------------------------------------------------------------------------------------------------------


class _Memory:
    """Memory of the library's, or of an argument, that an array is about to show."""

    def __init__(self, interface: dict[str, Any], owner: int, of: Any) -> None:
        self.__array_interface__ = interface
        self.owner, self.of = owner, of

    def __del__(self, free: Any = _free) -> None:
        if self.owner:
            free(self.owner)


_MADE: dict[str, Callable[..., Any]] = {
    "list_of": lambda array: array.tolist(),
    "items_of": list,
    "dict_of": dict,
    "set_of": set,
    "tuples_of": lambda *columns: list(zip(*columns, strict=True)),
    "lists_of": lambda *columns: list(map(list, zip(*columns, strict=True))),
}


class _Results:
    """The results of a call; each leaf is one object, however often it is part of the whole."""

    def __init__(self, leaves: Sequence[Any], words: Any, arrays: list[Any]) -> None:
        self.leaves, self.words, self.arrays = leaves, words, arrays
        self.made: dict[int, Any] = {}
        for index, (kind, *_) in enumerate(leaves):
            if kind == "array":
                self.leaf(index)  # all are taken, as each has to be freed

    def leaf(self, index: int) -> Any:
        if index not in self.made:
            kind, dtype, python, rank, view, readonly, slot = self.leaves[index]
            if kind == "array":
                self.made[index] = self.array(dtype, rank, view, readonly, self.words[slot : slot + 4 + 2 * rank])
            else:
                scalar = np.frombuffer(self.words, dtype, 1, 8 * slot)[0]
                self.made[index] = scalar.item() if python else scalar
        return self.made[index]

    def array(self, dtype: str, rank: int, view: bool, readonly: bool, words: list[int]) -> Any:
        same, of, owner, data = words[:4]
        shape, strides = tuple(words[4 : 4 + rank]), tuple(words[4 + rank :])
        if same and not view and same <= len(self.arrays):
            return self.arrays[same - 1]
        base = self.arrays[of - 1] if 0 < of <= len(self.arrays) else None
        fixed = readonly or bool(of and (base is None or not base.flags.writeable))
        interface = {"version": 3, "typestr": np.dtype(dtype).str, "shape": shape, "data": (data or 64, fixed)}
        if 0 not in shape:
            interface["strides"] = strides
        return np.asarray(_Memory(interface, owner, base))

    def tree(self, tree: tuple[Any, ...]) -> Any:
        """The object that a result is."""
        match tree:
            case ("leaf", index):
                return self.leaf(index)
            case ("value", value):
                return value
            case ("tuple" | "list" as kind, items):
                made = map(self.tree, items)
                return tuple(made) if kind == "tuple" else list(made)
            case ("dict", keys, items):
                return dict(zip(keys, map(self.tree, items), strict=True))
            case ("list_of", index, whole):
                return list(self.leaf(index)) if whole else self.leaf(index).tolist()
            case ("rows", items, index):
                held = self.tree(items)
                return [held[first:end] for first, end in itertools.pairwise(self.leaf(index).tolist())]
            case ("made", kind, items):
                return _MADE[kind](*map(self.tree, items))
            case ("either", index, choices):
                return self.tree(choices[int(self.leaf(index))])
        raise AssertionError(tree)


# ---- calls -----------------------------------------------------------------------------------------------------------

_RANGE_ERROR = (34, "Numerical result out of range")


def _exception(code: int, failures: Sequence[Any]) -> Exception:
    """What a call is ended by that has failed."""
    message = (_last_message() or b"").decode("utf-8", "replace")
    if code == _NO_MEMORY:
        return MemoryError(message)
    if code == _NO_CPU:
        return RuntimeError(message)
    words = (ctypes.c_int64 * 6)()
    name, template, formats = failures[_last_failure(words)]
    if code == _NEEDS_PYTHON:
        return OverflowError(message) if name == "OverflowError" else RuntimeError(message)
    module, _, qualname = name.rpartition(":")
    try:
        kind: Any = importlib.import_module(module or "builtins")
        for part in qualname.split("."):
            kind = getattr(kind, part)
    except (ImportError, AttributeError):  # an exception of the program that this was exported from
        return RuntimeError(f"{name}: {message}")
    if not template:
        return kind()  # type: ignore[no-any-return]
    if template == str(_RANGE_ERROR):
        return kind(*_RANGE_ERROR)  # type: ignore[no-any-return]
    values = [
        struct.unpack("d", struct.pack("q", word))[0] if how == "f" else word
        for word, how in zip(words, formats, strict=False)
    ]
    return kind(values[0] if kind is KeyError and template == "{0}" else template.format(*values))  # type: ignore[no-any-return]


_ORDERS = {"C": "", "F": "Fortran order", "S": "rows", "A": "strided"}  # the words of the signatures


def _describe(value: Any) -> str:
    """An argument in words: what signatures look at."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        facts = (
            _ORDERS[_layout(value)],
            "" if flags.writeable else "read-only",
            "" if flags.aligned else "not aligned",
        )
        known = ", ".join(filter(None, facts))
        return f"{value.dtype}{list(value.shape)}" + (f" ({known})" if known else "")
    if isinstance(value, tuple):
        return f"({', '.join(map(_describe, value))})"
    if value is None or type(value) is str:
        return repr(value)
    return value.__name__ if isinstance(value, type) else type(value).__name__


def _strided(specs: Sequence[Any]) -> int:
    """How many arrays with any strides a signature has, for which others may know more."""
    return sum(
        (spec[0] == "array" and spec[2] == "A") or (_strided(spec[2]) if spec[0] == "items" else 0) for spec in specs
    )


_TRIED = sorted(enumerate(SIGNATURES, 1), key=lambda one: _strided(one[1][1]))


def _run(*args: Any) -> Any:
    """A call in positional form."""
    refused = ""
    for number, (_, specs, slots, room, leaves, tree, failures) in _TRIED:
        words: list[int] = []
        arrays: list[Any] = []
        if not all([_take(spec, value, words, arrays) for spec, value in zip(specs, args, strict=True)]):
            continue
        arguments, results = (ctypes.c_int64 * max(slots, 1))(*words), (ctypes.c_int64 * max(room, 1))()
        code = _call(number, arguments, results)
        if code == 0:
            return _Results(leaves, results, arrays).tree(tree)
        if code != _BAD_ARGUMENT:
            raise _exception(code, failures)
        refused = f": {(_last_message() or b'').decode('utf-8', 'replace')}"
    given, known = ", ".join(map(_describe, args)), "; ".join(f"({text})" for text, *_ in SIGNATURES)
    raise TypeError(f"{NAME}: no exported signature is for ({given}){refused}; there are {known}")


run: Callable[..., Any] = _run
