"""The states of random generators that are objects, as arrays.

A `Generator` over PCG64 (what `np.random.default_rng` makes) has a state of four words of 64 bits, and half a word that
is left over from the last one that was cut in two; `state_of` gives both. The streams without an object are
`random_streams`.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator  # which takes long to import: functions without generators do without

State = tuple[np.ndarray, np.ndarray]
_states: weakref.WeakKeyDictionary[Any, State | None] = weakref.WeakKeyDictionary()  # by the lock, which nothing shares


def state_of(generator: Generator) -> State | None:
    """The arrays of a generator over PCG64; None for others.

    The first holds the state and the increment, each its lower half first, the second whether half a word is left, and
    that half.

    Raises
    ------
    AttributeError
        This is no generator.
    """
    if type(generator) is not np.random.Generator:
        raise AttributeError("state")
    lock = generator.bit_generator.lock
    try:
        return _states[lock]
    except KeyError:
        found = _states[lock] = _of_pcg64(generator.bit_generator)
        return found


def given_words(generator: Generator) -> np.ndarray:
    """The first of these arrays, of nothing for other generators; it keeps the generator, which may have no name."""
    found = _of_pcg64(generator.bit_generator, generator)
    return np.empty(0, np.uint64) if found is None else found[0]


def given_left(generator: Generator) -> np.ndarray:
    """The second, likewise."""
    found = _of_pcg64(generator.bit_generator, generator)
    return np.empty(0, np.uint32) if found is None else found[1]


_WORDS, _LEFT = ctypes.c_uint64 * 4, ctypes.c_uint32 * 2  # of a state of PCG64
_POINTER = ctypes.sizeof(ctypes.c_void_p)


def _word_at(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def _of_pcg64(bits: Any, owner: object = None) -> State | None:
    place = _place_of_state() if type(bits) is np.random.PCG64 else None
    return None if place is None else _pcg64_at(_word_at(id(bits) + place), owner)


def _pcg64_at(address: int, owner: object = None) -> State:
    """The arrays of a state, which keep an owner of its memory."""
    words: Any = _WORDS.from_address(_word_at(address))
    left: Any = _LEFT.from_address(address + _POINTER)
    words.owner = left.owner = owner
    return np.ndarray((4,), np.uint64, words), np.ndarray((2,), np.uint32, left)


@functools.cache
def _place_of_state() -> int | None:
    """Where in an object of PCG64 the address of its state is; None if it, or the state, is not as expected.

    To ask an object takes tens of microseconds, which is long beside making one.
    """
    places = set()
    for seed in range(2):
        bits = np.random.PCG64(seed)
        np.random.Generator(bits).integers(9, dtype=np.uint32)
        address = bits.ctypes.state_address
        size = np.random.PCG64.__basicsize__
        found = [at for at in range(0, size, _POINTER) if _word_at(id(bits) + at) == address]
        words, left = _pcg64_at(address)
        told: Any = bits.state
        expected = [
            half for name in ("state", "inc") for half in (told["state"][name] % 2**64, told["state"][name] >> 64)
        ]
        if not found or words.tolist() != expected or left.tolist() != [told["has_uint32"], told["uinteger"]]:
            return None
        places.add(found[0])
    return places.pop() if len(places) == 1 else None
