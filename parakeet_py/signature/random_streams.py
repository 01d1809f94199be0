"""The states of NumPy's and Python's own generators as arrays, so that compiled code draws from the very same streams.

`np.random.rand` and its relatives belong to one `RandomState`, `random.random` and its to one `Random`. Both are over a
Mersenne Twister (MT19937: Matsumoto and Nishimura 1998), whose struct in C holds 624 words and the position among them.
The arrays here are views of that memory: what compiled code draws is missing afterwards for Python, and the other way
round. They are hidden arguments of functions that draw. Where the memory does not hold what the generator reports of
its state, `known` has not its name, and such calls are Python's.

This module imports `numpy.random` and `random`, which takes as long as a quarter of all others: it is imported by
functions that draw.
"""

from __future__ import annotations

import ctypes
import random
import sys

import numpy as np

WORDS = 624
_HEADER = object.__basicsize__  # of an object in CPython; `Random` holds the position after it, and then the words


def _views(words: int, position: int) -> tuple[np.ndarray, np.ndarray]:
    """The words and the position at two addresses."""
    return (
        np.ctypeslib.as_array((ctypes.c_uint32 * WORDS).from_address(words)),
        np.ctypeslib.as_array((ctypes.c_int32 * 1).from_address(position)),
    )


def _of_numpy() -> tuple[np.ndarray, np.ndarray] | None:
    """The state behind `np.random.rand`."""
    try:
        state = getattr(np.random.rand, "__self__")  # noqa: B009
        address = state._bit_generator.ctypes.state_address
        name, key, position = state.get_state()[:3]
    except (AttributeError, ImportError, ValueError):
        return None
    if name != "MT19937":
        return None
    views = _views(address, address + 4 * WORDS)
    return views if np.array_equal(views[0], key) and int(views[1][0]) == int(position) else None


def _of_python() -> tuple[np.ndarray, np.ndarray] | None:
    """The state behind `random.random`."""
    holder = getattr(random.random, "__self__", None)
    if (
        type(holder) is not random.Random
        or sys.implementation.name != "cpython"
        or random.Random.__base__.__basicsize__ < _HEADER + 4 + 4 * WORDS  # type: ignore[union-attr]
    ):
        return None
    *key, position = holder.getstate()[1]
    views = _views(id(holder) + _HEADER + 4, id(holder) + _HEADER)
    return views if views[0].tolist() == key and int(views[1][0]) == position else None


_NOTHING = np.empty(0, np.uint32), np.empty(0, np.int32)
_found = {"numpy": _of_numpy(), "python": _of_python()}
known = frozenset(name for name, state in _found.items() if state is not None)
numpy_key, numpy_position = _found["numpy"] or _NOTHING
python_key, python_position = _found["python"] or _NOTHING
