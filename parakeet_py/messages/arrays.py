"""What is unusual about an array that is not compiled, and how to make an ordinary one of it.

Also what is in a list of objects that compiled loops do not go through.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import ARRAYS
from parakeet_py.signature.specs import ObjectSpec, spec_of

ITERATED_LIST: Final = "iteration over a list"
_GENERATED: Final = "iteration over a generator"  # such as the rows of a table
ITERATED_ARRAY: Final = "iteration over a ndarray"
UNUSUAL_ARRAY: Final = "an array of an unusual kind, whose dtype is not known when this is compiled"


def with_array_named(error: UnsupportedError, names: Sequence[str], args: Sequence[Any]) -> UnsupportedError:
    """The error, with what the first unusual array, or the list, among the arguments is and what to do with it."""
    if error.message == ITERATED_LIST:
        return _with_list_named(error, names, args)
    if error.message not in (UNUSUAL_ARRAY, ITERATED_ARRAY):
        return _with_library_named(error, names, args)
    for name, value in zip(names, args, strict=False):
        found = _first_unusual(name, value)
        if found is not None:
            place, array = found
            what, hint = _kind_of(array, place)
            message = f"`{place}` is {what}, which is not compiled as an array"
            return UnsupportedError(message, error.filename, error.pos, error.lines, hint, first_line=error.first_line)
    return error


def _with_library_named(error: UnsupportedError, names: Sequence[str], args: Sequence[Any]) -> UnsupportedError:
    """The error, with what to do about an array of another library that it is about: in the host's memory NumPy can
    have the same elements as an array of its own."""
    if not (error.message.startswith("iteration over ") or "in a loop" in error.message):
        return error
    for name, value in zip(names, args, strict=False):
        kind = type(value)
        named = re.search(rf"\b{re.escape(kind.__name__)}\b", error.message)
        if _is_array_of_others(kind) and (named or (error.message == _GENERATED and hasattr(value, "columns"))):
            made = f"np.asarray({name})" if not hasattr(value, "columns") else f"columns, as np.asarray({name}[...])"
            hint = f"compute with {made}, made in the function or before the call"
            return UnsupportedError(
                error.message, error.filename, error.pos, error.lines, hint, first_line=error.first_line
            )
    return error


def _is_array_of_others(kind: type) -> bool:
    shares = hasattr(kind, "__array__") or hasattr(kind, "__dlpack__")
    return shares and kind.__module__.partition(".")[0] != "numpy"


def _with_list_named(error: UnsupportedError, names: Sequence[str], args: Sequence[Any]) -> UnsupportedError:
    """The error, with the classes of the items, if one argument can be meant."""
    found = [(name, one) for name, one in zip(names, args, strict=False) if type(one) is list and one]
    found = [(name, one) for name, one in found if isinstance(spec_of(one), ObjectSpec)]
    if len(found) != 1:
        return error
    name, listed = found[0]
    classes = sorted({type(item).__qualname__ for item in listed})
    what = " and ".join(classes) if len(classes) <= 2 else f"{', '.join(classes[:2])} and others"
    hint = error.hint
    attributes = [key for key, held in getattr(listed[0], "__dict__", {}).items() if isinstance(held, int | float)]
    if classes == ["str"]:
        hint = f"pass what the loop needs of them as an array, such as np.array([len(one) for one in {name}])"
    elif classes == ["list"] or classes == ["tuple"]:
        hint = f"pass their items as one array, np.concatenate({name}), and their lengths as another"
    elif len(classes) == 1 and attributes:
        hint = f"pass an array for each attribute, such as np.array([one.{attributes[0]} for one in {name}])"
    message = f"iteration over a list of {what}"
    return UnsupportedError(message, error.filename, error.pos, error.lines, hint, first_line=error.first_line)


def _first_unusual(place: str, value: Any) -> tuple[str, np.ndarray[Any, Any]] | None:
    if isinstance(value, list | tuple):
        parts = (_first_unusual(f"{place}[{index}]", item) for index, item in enumerate(value))
        return next((part for part in parts if part is not None), None)
    if isinstance(value, np.ndarray) and isinstance(spec_of(value), ObjectSpec):
        return place, value
    return None


def _kind_of(array: np.ndarray[Any, Any], name: str) -> tuple[str, str]:
    """What an array is, and what to do instead."""
    dtype = array.dtype
    if isinstance(array, np.ma.MaskedArray):
        return "a masked array", f"pass {name}.filled(0) and {name}.mask, or {name}.compressed()"
    if type(array) not in ARRAYS:
        cls = type(array)
        return f"a {cls.__module__}.{cls.__qualname__}", f"pass np.asarray({name}), if it is an array of numbers"
    if dtype.names:
        fields = ", ".join(f"{name}[{field!r}]" for field in dtype.names[:2])
        more = " and so on" if len(dtype.names) > 2 else ""
        return (
            f"a structured array (of {', '.join(dtype.names)})",
            f"use its fields, or pass them as arrays: {fields}{more}",
        )
    if not dtype.isnative and dtype.kind not in "USTV":
        return f"an array of {dtype.name} in another byte order ({dtype.str})", f"pass {name}.astype({dtype.name!r})"
    if dtype.kind in "mM":
        own = "pass it as an argument of its own, or " if dtype.str[-1] == "]" and "[" in name else "pass "
        return f"an array of {dtype.name}", f"{own}{name}.view('int64'), which is the same memory"
    if dtype.kind == "O":
        return "an array of Python objects", f"pass {name}.astype(float), or int, if these are numbers"
    if dtype.kind in "USTV":
        text = "bytes" if dtype.kind == "V" else "strings"
        return f"an array of {text} ({dtype})", f"pass numbers: np.unique({name}, return_inverse=True)[1]"
    if dtype.name in ("longdouble", "clongdouble", "float128", "complex256", "float96", "complex192"):
        narrow = "float64" if dtype.kind == "f" else "complex128"
        return f"an array of {dtype.name}", f"pass {name}.astype({narrow!r})"
    if not array.flags.aligned:
        return "an array that is not aligned in memory", f"pass {name}.copy()"
    return f"an array of {dtype.name} whose elements share memory or that has metadata", f"pass {name}.copy()"
