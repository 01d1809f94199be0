"""The states of the generators of NumPy and Python as arrays, so that compiled code draws from the very same streams.

`np.random.rand` and its relatives belong to one `RandomState`, `random.random` and its to one `Random`. Both are over a
Mersenne Twister (MT19937: Matsumoto and Nishimura 1998), whose struct in C holds 624 words and the position among them.
The arrays here are views of that memory: what compiled code draws is missing afterwards for Python, and the other way
round. They are hidden arguments of functions that draw. Where the memory does not hold what the generator tells of its
state, `known` has not its name, and such calls are Python's.

A `Generator` over PCG64 (what `np.random.default_rng` makes) has a state of four words of 64 bits, and half a word that
is left over from the last one that was cut in two; `state_of` gives both.
"""

from __future__ import annotations

import ctypes
import random
import sys
import weakref
from typing import Any

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


# ---- generators that are objects -------------------------------------------------------------------------------------

State = tuple[np.ndarray, np.ndarray]
_states: weakref.WeakKeyDictionary[Any, State | None] = weakref.WeakKeyDictionary()  # by the lock, which nothing shares


def state_of(generator: np.random.Generator) -> State | None:
    """The arrays of a generator over PCG64; None for others.

    The first holds the state and the increment, each its lower half first, the second whether half a word is left, and
    that half.
    """
    lock = generator.bit_generator.lock
    try:
        return _states[lock]
    except KeyError:
        found = _states[lock] = _of_pcg64(generator.bit_generator)
        return found


def given_state(generator: np.random.Generator) -> State:
    """The same, with arrays of nothing for other generators; the arrays keep the generator, which may have no name."""
    if state_of(generator) is None:
        return np.empty(0, np.uint64), np.empty(0, np.uint32)
    return _views_of_pcg64(generator.bit_generator, generator)


def _of_pcg64(bits: Any) -> State | None:
    if type(bits) is not np.random.PCG64:
        return None
    views = _views_of_pcg64(bits)
    told = bits.state
    expected = [half for name in ("state", "inc") for half in (told["state"][name] % 2**64, told["state"][name] >> 64)]
    same = views[0].tolist() == expected and views[1].tolist() == [told["has_uint32"], told["uinteger"]]
    return views if same else None


def _views_of_pcg64(bits: Any, owner: object = None) -> State:
    address = bits.ctypes.state_address
    words: Any = (ctypes.c_uint64 * 4).from_address(ctypes.c_void_p.from_address(address).value or 0)
    left: Any = (ctypes.c_uint32 * 2).from_address(address + ctypes.sizeof(ctypes.c_void_p))
    words.owner = left.owner = owner
    return np.ctypeslib.as_array(words), np.ctypeslib.as_array(left)
