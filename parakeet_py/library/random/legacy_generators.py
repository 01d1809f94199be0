"""Numbers from NumPy's legacy generator and that of `random`: uniform ones and integers, from Python's own streams.

The generator is the Mersenne Twister MT19937 (Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally
equidistributed uniform pseudo-random number generator", 1998), over the memory of the generators themselves
(`random_streams`). A draw is a store to that memory, so draws happen in the order of the program, one after the other.
"""

from __future__ import annotations

import random as python_random

import numpy as np

from parakeet_py.library.arrays.shape import size_of
from parakeet_py.library.intrinsics import (
    allocate,
    cast,
    check,
    dtype_of,
    hand_back,
    hidden_array,
    is_array,
    is_known,
    is_sequence,
    is_weak,
    load,
    python_scalar,
    reshape,
    store,
)
from parakeet_py.library.registry import implements, procedure, static
from parakeet_py.signature import random_streams

WORDS = 624
SHIFT = 397  # between a word and the one that is mixed into it
UPPER = np.uint32(0x80000000)
LOWER = np.uint32(0x7FFFFFFF)
TWIST = np.uint32(0x9908B0DF)


@static
def is_known_state(name):
    return name in random_streams.known


@static
def state_name(name, part):
    return f"{name}_{part}"


def generator(name):
    """The words of a state and the position among them."""
    if not is_known_state(name):
        hand_back("a generator whose state is not known")
    key = hidden_array("parakeet_py.signature.random_streams", state_name(name, "key"))
    return key, hidden_array("parakeet_py.signature.random_streams", state_name(name, "position"))


def twisted(word, after, mixed):
    bits = (word & UPPER) | (after & LOWER)
    return mixed ^ (bits >> np.uint32(1)) ^ ((bits & np.uint32(1)) * TWIST)


@procedure
def renew(key):
    """The next 624 words."""
    for at in range(WORDS - SHIFT):
        store(key, at, twisted(load(key, at), load(key, at + 1), load(key, at + SHIFT)))
    for at in range(WORDS - SHIFT, WORDS - 1):
        store(key, at, twisted(load(key, at), load(key, at + 1), load(key, at + SHIFT - WORDS)))
    store(key, WORDS - 1, twisted(load(key, WORDS - 1), load(key, 0), load(key, SHIFT - 1)))


def tempered(word):
    word = word ^ (word >> np.uint32(11))
    word = word ^ ((word << np.uint32(7)) & np.uint32(0x9D2C5680))
    word = word ^ ((word << np.uint32(15)) & np.uint32(0xEFC60000))
    return word ^ (word >> np.uint32(18))


def next_word(key, position):
    """The next 32 bits."""
    at = cast(load(position, 0), "int64")
    if at >= WORDS:
        renew(key)
        at = cast(0, "int64")
    store(position, 0, cast(at + 1, "int32"))
    return tempered(load(key, at))


def next_words(key, position):
    """The next 64 bits, the first word above the second."""
    at = cast(load(position, 0), "int64")
    if at < WORDS - 1:
        store(position, 0, cast(at + 2, "int32"))
        return cast(tempered(load(key, at)), "uint64") << np.uint64(32) | cast(tempered(load(key, at + 1)), "uint64")
    words = np.uint64(0)
    for _step in range(2):
        words = words << np.uint64(32) | cast(next_word(key, position), "uint64")
    return words


def next_double(key, position):
    """The next number of [0, 1), of 53 bits: 27 of one word and 26 of another."""
    words = next_words(key, position)
    bits = (words >> np.uint64(37)) << np.uint64(26) | (words & np.uint64(0xFFFFFFFF)) >> np.uint64(6)
    return cast(cast(bits, "int64"), "float64") * (1.0 / 9007199254740992.0)


def drawn(draw, size):
    """One Python float, or an array of numbers in C order."""
    if size is None:
        return python_scalar(draw())
    shape = tuple(size) if is_sequence(size) else (size,)
    made = allocate(shape, "float64")
    line = reshape(made, (size_of(shape),))
    for i in range(line.shape[0]):
        line[i] = draw()
    return made


@implements(np.random.random, np.random.random_sample, np.random.sample, np.random.ranf)
def random(size=None):
    key, position = generator("numpy")
    return drawn(lambda: next_double(key, position), size)


@implements(np.random.rand)
def rand(*shape):
    return random(None if len(shape) == 0 else shape)


@implements(np.random.uniform)
def uniform(low=0.0, high=1.0, size=None):
    if is_array(low) or is_array(high) or is_sequence(low) or is_sequence(high):
        hand_back("uniform numbers between arrays")
    low, high = float(low), float(high)
    check(np.isfinite(high - low), "OverflowError", "Range exceeds valid bounds")
    key, position = generator("numpy")
    return drawn(lambda: low + (high - low) * next_double(key, position), size)


@implements(np.random.randint)
def randint(low, high=None, size=None, dtype=int):
    if size is not None or dtype is not int or not (is_weak(low) and (high is None or is_weak(high))):
        hand_back("random integers in arrays, of other dtypes or with bounds of NumPy")
    if dtype_of(low).kind != "i" or (high is not None and dtype_of(high).kind != "i"):
        hand_back("random integers between numbers that are no ints")
    high_given = high is not None
    if high is None:
        low, high = 0, low
    check(low < high, "ValueError", "low >= high" if high_given else "high <= 0")
    span = high - 1 - low
    if span == 0:
        return low
    return low + python_scalar(bounded(*generator("numpy"), span))


def bounded(key, position, span):
    """An int of [0, span]: bits are drawn until they are not above it."""
    mask = span
    for shift in (1, 2, 4, 8, 16, 32):
        mask = mask | (mask >> shift)
    if span <= 0xFFFFFFFF:
        found = cast(next_word(key, position), "int64") & mask
        while found > span:
            found = cast(next_word(key, position), "int64") & mask
    else:
        found = cast(next_words(key, position), "int64") & mask
        while found > span:
            found = cast(next_words(key, position), "int64") & mask
    return found


# ---- Python's module -------------------------------------------------------------------------------------------------


def bits_below(key, position, count):
    """An int of [0, count), as Python finds it: the upper bits of words are drawn until they are below."""
    width = count.bit_length()
    found = drawn_bits(key, position, width)
    while found >= count:
        found = drawn_bits(key, position, width)
    return found


def drawn_bits(key, position, width):
    """So many random bits, as an int64; of two words the first is below the second."""
    if width <= 32:
        return cast(next_word(key, position), "int64") >> (32 - width)
    low = cast(next_word(key, position), "int64")
    return low | (cast(next_word(key, position), "int64") >> (64 - width)) << 32


@implements(python_random.random)
def random_of_python():
    return python_scalar(next_double(*generator("python")))


@implements(python_random.uniform)
def uniform_of_python(a, b):
    if is_array(a) or is_array(b) or not (is_weak(a) and is_weak(b)):
        hand_back("random.uniform of other than Python's numbers")
    return a + (b - a) * random_of_python()


@implements(python_random.randint)
def randint_of_python(a, b):
    return randrange_of_python(a, b + 1)


@implements(python_random.randrange)
def randrange_of_python(start, stop=None, step=1):
    must_be_ints(start, 0 if stop is None else stop)
    if not is_weak(step) or not is_known(step) or step != 1:
        hand_back("random.randrange with a step")
    if stop is None:
        start, stop = 0, start
    count = stop - start
    check(count > 0, "ValueError", "empty range for randrange()")
    return start + python_scalar(bits_below(*generator("python"), count))


def must_be_ints(*numbers):
    for number in numbers:
        if is_array(number) or not is_weak(number) or dtype_of(number).kind != "i":
            hand_back("random integers between other numbers than Python's ints")
