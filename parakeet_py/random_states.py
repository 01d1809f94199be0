"""The state of NumPy's legacy generator as arrays, so that compiled code draws from the stream that Python draws from.

`np.random.rand` and its relatives belong to one `RandomState` over a Mersenne Twister (MT19937: Matsumoto and Nishimura
1998), whose struct is 624 words and the position among them. `key` and `position` are views of that very memory: what
compiled code draws is missing afterwards for Python, and the other way round. They are hidden arguments of functions
that draw. Where the memory does not hold what `get_state` tells, `known` is False and such calls are Python's.
"""

from __future__ import annotations

import ctypes

import numpy as np

WORDS = 624


def _memory() -> tuple[np.ndarray, np.ndarray]:
    """The key and the position of the generator behind `np.random.rand`; empty arrays if they are not found."""
    empty = np.empty(0, np.uint32), np.empty(0, np.int32)
    try:
        state = getattr(np.random.rand, "__self__")  # noqa: B009
        address = state._bit_generator.ctypes.state_address
        name, key, position = state.get_state()[:3]
    except (AttributeError, ImportError, ValueError):
        return empty
    if name != "MT19937":
        return empty
    words = np.ctypeslib.as_array((ctypes.c_uint32 * WORDS).from_address(address))
    place = np.ctypeslib.as_array((ctypes.c_int32 * 1).from_address(address + 4 * WORDS))
    same = np.array_equal(words, key) and int(place[0]) == int(position)
    return (words, place) if same else empty


key, position = _memory()
known = key.size == WORDS
