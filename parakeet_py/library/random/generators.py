"""The methods of `np.random.Generator` over PCG64: the numbers that NumPy would draw next, from its own state.

PCG64 is O'Neill's 128-bit congruential generator with the output function XSL-RR ("PCG: A Family of Simple Fast
Space-Efficient Statistically Good Algorithms for Random Number Generation", 2014). Integers below a bound are drawn as
Lemire does ("Fast Random Integer Generation in an Interval", 2019), normal and exponential numbers by ziggurats
(`parakeet_py.library.random.ziggurat`). The first parameter of each method is the state: four words of 64 bits, lower
halves first, of the state and the increment; then whether half a drawn word is left, and that half.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.base.errors import OTHER_BITS
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
    load,
    on_device,
    python_scalar,
    reshape,
    store,
)
from parakeet_py.library.random import ziggurat
from parakeet_py.library.random.pcg64 import (
    HALF,
    LOWER,
    double_of,
    fill_at_once,
    fill_below_at_once,
    stepped,
    upper_product,
    word_of,
)
from parakeet_py.library.random.ziggurats_at_once import fill_exponential_at_once, fill_normal_at_once
from parakeet_py.library.registry import method, procedure, static

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@static
def has_known_ziggurats():
    return ziggurat.known


def next_word(state):
    """The next 64 bits."""
    words, _left = state
    check(words.shape[0] == 4, "Deoptimize", OTHER_BITS)
    low, high = stepped(load(words, 0), load(words, 1), load(words, 2), load(words, 3))
    store(words, 0, low)
    store(words, 1, high)
    return word_of(low, high)


def next_half(state):
    """The next 32 bits: of a word that is drawn, the lower half first."""
    _words, left = state
    if load(left, 0) != np.uint32(0):
        store(left, 0, np.uint32(0))
        return cast(load(left, 1), "uint64")
    word = next_word(state)
    store(left, 0, np.uint32(1))
    store(left, 1, cast(word >> HALF, "uint32"))
    return word & LOWER


def next_double(state):
    """The next number of [0, 1), of 53 bits."""
    return double_of(next_word(state))


def drawn_doubles(state, size, start, width):
    """One Python float, or an array of numbers of [start, start + width) in C order; on devices side by side."""
    if size is None:
        return python_scalar(start + width * next_double(state))
    words, _left = state
    check(words.shape[0] == 4, "Deoptimize", OTHER_BITS)
    shape = tuple(size) if is_sequence(size) else (size,)
    made = allocate(shape, "float64")
    line = reshape(made, (size_of(shape),))
    if on_device():
        table = hidden_array("parakeet_py.library.random.pcg64_jumps", "jumps")
        fill_at_once(line, words, table, start, width)
    else:
        for i in range(line.shape[0]):
            line[i] = start + width * next_double(state)
    return made


def next_below(state, span):
    """A number of [0, span]: the upper half of a product, drawn again where that would favour some numbers."""
    count = span + np.uint64(1)
    if span <= LOWER:
        while True:
            product = next_half(state) * count
            rest = product & LOWER
            if rest >= count or rest >= (LOWER - span) % count:
                return product >> HALF
    while True:
        word = next_word(state)
        if span == ALL:
            return word
        rest = word * count
        if rest >= count or rest >= (ALL - span) % count:
            return upper_product(word, count)


def next_normal(state):
    if not has_known_ziggurats():
        hand_back("a ziggurat that is not known")
    inside = hidden_array("parakeet_py.library.random.ziggurat", "normal_inside")
    width = hidden_array("parakeet_py.library.random.ziggurat", "normal_width")
    height = hidden_array("parakeet_py.library.random.ziggurat", "normal_height")
    while True:
        word = next_word(state)
        layer = cast(word & np.uint64(0xFF), "int64")
        place = word >> np.uint64(9) & np.uint64(0xFFFFFFFFFFFFF)
        found = cast(cast(place, "int64"), "float64") * load(width, layer)
        if word & np.uint64(0x100) != np.uint64(0):
            found = -found
        if place < load(inside, layer):
            return found
        if layer == 0:
            beyond = next_beyond(state)
            return -beyond if place >> np.uint64(8) & np.uint64(1) != np.uint64(0) else beyond
        one, other = load(height, layer - 1), load(height, layer)
        if (one - other) * next_double(state) + other < np.exp(-0.5 * found * found):
            return found


@procedure
def next_beyond(state):
    """A normal number beyond the last layer (Marsaglia 1964)."""
    while True:
        beyond = -(1.0 / ziggurat.NORMAL_TAIL) * np.log1p(-next_double(state))
        over = -np.log1p(-next_double(state))
        if over + over > beyond * beyond:
            return ziggurat.NORMAL_TAIL + beyond


def next_exponential(state):
    if not has_known_ziggurats():
        hand_back("a ziggurat that is not known")
    inside = hidden_array("parakeet_py.library.random.ziggurat", "exponential_inside")
    width = hidden_array("parakeet_py.library.random.ziggurat", "exponential_width")
    height = hidden_array("parakeet_py.library.random.ziggurat", "exponential_height")
    while True:
        word = next_word(state) >> np.uint64(3)
        layer = cast(word & np.uint64(0xFF), "int64")
        place = word >> np.uint64(8)
        found = cast(cast(place, "int64"), "float64") * load(width, layer)
        if place < load(inside, layer):
            return found
        if layer == 0:
            return ziggurat.EXPONENTIAL_TAIL - np.log1p(-next_double(state))
        one, other = load(height, layer - 1), load(height, layer)
        if (one - other) * next_double(state) + other < np.exp(-found):
            return found


# ---- methods ---------------------------------------------------------------------------------------------------------


def must_be_double(dtype, out):
    if dtype is not np.float64 or out is not None:
        hand_back("random numbers of other dtypes, or into an array that is there")


def number(value):
    """A parameter of a distribution, as a float."""
    if is_array(value) or is_sequence(value):
        hand_back("parameters of random numbers in arrays")
    return float(value)


def is_not_below_zero(value):
    """What NumPy takes for a width: -0.0 is none, NaN is one."""
    return np.isnan(value) | np.logical_not(np.signbit(value))


def is_nothing(size):
    """Are no numbers asked for?"""
    if size is None:
        return False
    return size_of(tuple(size) if is_sequence(size) else (size,)) == 0


@method("generator.random")
def generator_random(state, size=None, dtype=np.float64, out=None):
    must_be_double(dtype, out)
    return drawn_doubles(state, size, 0.0, 1.0)


@method("generator.uniform")
def generator_uniform(state, low=0.0, high=1.0, size=None):
    low, width = number(low), number(high) - number(low)
    check(np.isfinite(width), "OverflowError", "high - low range exceeds valid bounds")
    check(is_not_below_zero(width), "ValueError", "high - low < 0")
    return drawn_doubles(state, size, low, width)


def drawn_from_ziggurat(state, size, is_normal, draw, start, scale, is_standard):
    """One Python float, or an array of start + scale * numbers in C order; on devices side by side."""
    if size is None:
        return python_scalar(draw())
    if not has_known_ziggurats():
        hand_back("a ziggurat that is not known")
    words, _left = state
    check(words.shape[0] == 4, "Deoptimize", OTHER_BITS)
    shape = tuple(size) if is_sequence(size) else (size,)
    made = allocate(shape, "float64")
    line = reshape(made, (size_of(shape),))
    if on_device():
        table = hidden_array("parakeet_py.library.random.pcg64_jumps", "jumps")
        name = "normal" if is_normal else "exponential"
        inside = hidden_array("parakeet_py.library.random.ziggurat", name + "_inside")
        width = hidden_array("parakeet_py.library.random.ziggurat", name + "_width")
        height = hidden_array("parakeet_py.library.random.ziggurat", name + "_height")
        if is_normal:
            fill_normal_at_once(line, words, table, inside, width, height, start, scale, is_standard)
        else:
            fill_exponential_at_once(line, words, table, inside, width, height, start, scale, is_standard)
    else:
        for i in range(line.shape[0]):
            line[i] = draw()
    return made


@method("generator.standard_normal")
def generator_standard_normal(state, size=None, dtype=np.float64, out=None):
    must_be_double(dtype, out)
    return drawn_from_ziggurat(state, size, True, lambda: next_normal(state), 0.0, 1.0, True)


@method("generator.normal")
def generator_normal(state, loc=0.0, scale=1.0, size=None):
    loc, scale = number(loc), number(scale)
    check(is_not_below_zero(scale), "ValueError", "scale < 0")
    return drawn_from_ziggurat(state, size, True, lambda: loc + scale * next_normal(state), loc, scale, False)


@method("generator.standard_exponential")
def generator_standard_exponential(state, size=None, dtype=np.float64, method="zig", out=None):
    must_be_double(dtype, out)
    if method != "zig":
        hand_back("exponential numbers by inversion")
    return drawn_from_ziggurat(state, size, False, lambda: next_exponential(state), 0.0, 1.0, True)


@method("generator.exponential")
def generator_exponential(state, scale=1.0, size=None):
    scale = number(scale)
    check(is_not_below_zero(scale), "ValueError", "scale < 0")
    return drawn_from_ziggurat(state, size, False, lambda: scale * next_exponential(state), -0.0, scale, False)


def whole(bound):
    if is_array(bound) or is_sequence(bound) or dtype_of(bound).kind != "i":
        hand_back("random integers between other numbers than ints")
    return cast(bound, "int64")


@method("generator.integers")
def generator_integers(state, low, high=None, size=None, dtype=np.int64, endpoint=False):
    if (dtype is not np.int64 and dtype is not int) or not is_known(endpoint):
        hand_back("random integers of other dtypes")
    if high is None:
        first, last = cast(0, "int64"), whole(low)
    else:
        first, last = whole(low), whole(high)
    right = (first <= last if endpoint else first < last) | is_nothing(size)
    if high is None:
        check(right, "ValueError", "high < 0" if endpoint else "high <= 0")
    else:
        check(right, "ValueError", "low > high" if endpoint else "low >= high")
    start = cast(first, "uint64")
    span = cast(last, "uint64") - start - np.uint64(0 if endpoint else 1)
    if size is None:
        found = next_integer(state, start, span)
        return python_scalar(found) if dtype is int else found
    shape = tuple(size) if is_sequence(size) else (size,)
    if on_device():
        if span != np.uint64(0) and span < LOWER and size_of(shape) > 0:
            words, left = state
            check(words.shape[0] == 4, "Deoptimize", OTHER_BITS)
            made = allocate(shape, "int64")
            table = hidden_array("parakeet_py.library.random.pcg64_jumps", "jumps")
            fill_below_at_once(reshape(made, (size_of(shape),)), words, left, table, start, span)
            return made
    return drawn_integers(state, start, span, shape)


@procedure
def drawn_integers(state, start, span, shape):
    made = allocate(shape, "int64")
    line = reshape(made, (size_of(shape),))
    for i in range(line.shape[0]):
        line[i] = next_integer(state, start, span)
    return made


def next_integer(state, start, span):
    """An int64 of the interval that begins at `start`; for a single number, nothing is drawn."""
    return cast(start if span == np.uint64(0) else start + next_below(state, span), "int64")


@method("generator.shuffle")
def generator_shuffle(state, x, axis=0):
    if not is_array(x) or x.ndim != 1 or not is_known(axis) or axis != 0:
        hand_back("shuffling what is no array of one axis")
    shuffled(state, x)


def shuffled(state, line):
    for i in range(line.shape[0] - 1, 0, -1):
        j = next_within(state, cast(i, "uint64"))
        held = load(line, i)
        line[i] = load(line, j)
        line[j] = held


def next_within(state, span):
    """An int64 of [0, span]: bits are drawn until they are not above it."""
    mask = span
    for shift in (1, 2, 4, 8, 16, 32):
        mask = mask | mask >> np.uint64(shift)
    while True:
        found = (next_half(state) if span <= LOWER else next_word(state)) & mask
        if found <= span:
            return cast(found, "int64")


@method("generator.permutation")
def generator_permutation(state, x, axis=0):
    if not is_known(axis) or axis != 0 or is_sequence(x):
        hand_back("permuting what is no number or array of one axis")
    if is_array(x):
        if x.ndim != 1:
            hand_back("permuting what is no number or array of one axis")
        made = np.array(x)
    else:
        if dtype_of(x).kind != "i":
            hand_back("permuting what is no number or array of one axis")
        made = np.arange(x)
    shuffled(state, made)
    return made


@method("generator.choice")
def generator_choice(state, a, size=None, replace=True, p=None, axis=0, shuffle=True):
    if not is_known(replace) or not replace or not is_known(axis) or axis != 0 or p is not None or is_sequence(a):
        hand_back("a choice without replacement, with probabilities, or from what is no array")
    if is_array(a) and a.ndim != 1:
        hand_back("a choice of rows")
    if not is_array(a) and dtype_of(a).kind != "i":
        hand_back("a choice from what is no array")
    count = a.shape[0] if is_array(a) else python_scalar(cast(a, "int64"))
    right = (count > 0) | is_nothing(size)
    if is_array(a):
        check(right, "ValueError", "a cannot be empty unless no samples are taken")
    else:
        check(right, "ValueError", "a must be a positive integer unless no samples are taken")
    found = generator_integers(state, 0, count, size)
    if is_array(a):
        return np.take(a, found)
    return python_scalar(found) if size is None else found
