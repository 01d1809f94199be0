"""Is this result NumPy's result: the same structure, types, dtypes, shapes, and values within the program's tolerance.

`difference` returns None for yes and one sentence for no. With `exact_types=False` (the peers), a Python scalar may
stand for a NumPy scalar and a list for a tuple: what another system returns is its own affair as long as the numbers
are right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parakeet_py.bench.program import Array, Tolerance


def difference(
    expected: Any, actual: Any, tolerance: Tolerance, *, exact_types: bool = True, what: str = "result"
) -> str | None:
    """The first difference between `expected` (NumPy's) and `actual`, or None.

    Parameters
    ----------
    expected, actual : array, scalar, None, or tuples of these
    tolerance : Tolerance
    exact_types : bool
        Demand the types and dtypes of `expected`, and ignore `tolerance.peer_mismatch`.
    what : str
        How the sentence calls the value.
    """
    if isinstance(expected, tuple):
        if not isinstance(actual, tuple if exact_types else (tuple, list)) or len(actual) != len(expected):
            return f"{what} is {_kind(actual)}, not {_kind(expected)}"
        for i, (one, other) in enumerate(zip(expected, actual, strict=True)):
            found = difference(one, other, tolerance, exact_types=exact_types, what=f"{what}[{i}]")
            if found:
                return found
        return None
    if expected is None or actual is None:
        return None if expected is actual else f"{what} is {_kind(actual)}, not {_kind(expected)}"
    if exact_types and type(expected) is not type(actual):
        return f"{what} is {_kind(actual)}, not {_kind(expected)}"
    return _values(np.asarray(expected), np.asarray(actual), tolerance, exact_types, what)


def _values(expected: Array, actual: Array, tolerance: Tolerance, exact_types: bool, what: str) -> str | None:
    if expected.shape != actual.shape:
        return f"{what} has shape {actual.shape}, not {expected.shape}"
    if expected.dtype != actual.dtype and (exact_types or expected.dtype.kind != actual.dtype.kind):
        return f"{what} has dtype {actual.dtype}, not {expected.dtype}"
    if expected.dtype.kind in "fc":
        good = np.isclose(actual, expected, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True)
    else:
        good = np.asarray(expected == actual)
    bad = int(good.size - np.count_nonzero(good))
    allowed = 0.0 if exact_types else tolerance.peer_mismatch * good.size
    if bad <= allowed:
        return None
    at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(good))[0]) if good.ndim else ()
    place = f"[{', '.join(map(str, at))}]" if at else ""
    return f"{bad} of {good.size} values differ: {what}{place} is {actual[at]!r}, not {expected[at]!r}"


def _kind(value: Any) -> str:
    match value:
        case None:
            return "None"
        case np.ndarray():
            return f"an array of {value.dtype}"
        case tuple() | list():
            return f"a {type(value).__name__} of {len(value)}"
        case _:
            return f"a {type(value).__name__}"
