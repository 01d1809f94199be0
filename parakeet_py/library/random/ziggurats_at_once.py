"""Normal and exponential numbers of `np.random.Generator` on devices: many at the same time, as NumPy draws them.

A number takes one word, unless it falls beside the sure part of its layer: one of some eighty, an *attempt* that takes
more words, or fails, and the next word begins another. Which words begin an attempt depends on all before. But only
exceptions take more than their own word, so it is enough to look at those:

    exceptions      the places of words that would begin such an attempt, and the words that each would take
    begun           those that no attempt before has taken. One that lies behind all that those before it would take is
                    begun for certain; from there on it is a few steps to each of the others.
    taken           the words that begin an attempt that gives a number: other words, unless an exception that is begun
                    takes them, and exceptions that are begun and do not fail
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import assign, cast, compress, elementwise, generate, load
from parakeet_py.library.random import ziggurat
from parakeet_py.library.random.pcg64 import double_of, first_states, leave, state_at, word_of
from parakeet_py.library.registry import device_procedure

MARGIN = 512  # words that an attempt may take


def word_at(words, table, firsts, place):
    return word_of(*state_at(words, table, firsts, place))


def normal_attempt(words, table, firsts, inside, width, height, begin, limit):
    """A number, how many words it takes, and whether it is one: that of `next_normal`, from the word at a place."""
    word = word_at(words, table, firsts, begin)
    layer = cast(word & np.uint64(0xFF), "int64")
    place = word >> np.uint64(9) & np.uint64(0xFFFFFFFFFFFFF)
    found = cast(cast(place, "int64"), "float64") * load(width, layer)
    if word & np.uint64(0x100) != np.uint64(0):
        found = -found
    used, right = 1, 1
    if place >= load(inside, layer):
        if layer == 0:
            beyond, right = cast(0.0, "float64"), 0
            while right == 0 and begin + used + 2 <= limit:
                one = double_of(word_at(words, table, firsts, begin + used))
                other = double_of(word_at(words, table, firsts, begin + used + 1))
                beyond = -(1.0 / ziggurat.NORMAL_TAIL) * np.log1p(-one)
                over = -np.log1p(-other)
                used = used + 2
                right = 1 if over + over > beyond * beyond else 0
            beyond = ziggurat.NORMAL_TAIL + beyond
            found = -beyond if place >> np.uint64(8) & np.uint64(1) != np.uint64(0) else beyond
        else:
            one, other = load(height, layer - 1), load(height, layer)
            used = 2
            share = double_of(word_at(words, table, firsts, begin + 1))
            right = 1 if (one - other) * share + other < np.exp(-0.5 * found * found) else 0
    return found, used, right


def exponential_attempt(words, table, firsts, inside, width, height, begin, limit):
    """The same of `next_exponential`."""
    word = word_at(words, table, firsts, begin) >> np.uint64(3)
    layer = cast(word & np.uint64(0xFF), "int64")
    place = word >> np.uint64(8)
    found = cast(cast(place, "int64"), "float64") * load(width, layer)
    used, right = 1, 1
    if place >= load(inside, layer):
        used = 2
        share = double_of(word_at(words, table, firsts, begin + 1))
        if layer == 0:
            found = ziggurat.EXPONENTIAL_TAIL - np.log1p(-share)
        else:
            one, other = load(height, layer - 1), load(height, layer)
            right = 1 if (one - other) * share + other < np.exp(-found) else 0
    return found, used, right


def is_normal_exception(inside, word):
    return word >> np.uint64(9) & np.uint64(0xFFFFFFFFFFFFF) >= load(inside, cast(word & np.uint64(0xFF), "int64"))


def is_exponential_exception(inside, word):
    return word >> np.uint64(11) >= load(inside, cast(word >> np.uint64(3) & np.uint64(0xFF), "int64"))


def taken_places(words, table, inside, many, attempt, is_exception):
    """The places of those words, of so many, that begin an attempt that gives a number."""
    firsts = first_states(words, table, many + MARGIN)
    slow = generate((many,), lambda i: is_exception(inside, word_at(words, table, firsts, i)))
    places = compress(slow, np.arange(many))
    used, right = elementwise(lambda begin: attempt(firsts, begin), places)
    ends = places + used
    reached = np.maximum.accumulate(ends) if places.shape[0] > 0 else ends
    numbers = np.arange(places.shape[0])
    certain = elementwise(lambda k: k if k == 0 or load(places, k) >= load(reached, max(k - 1, 0)) else 0, numbers)
    heads = np.maximum.accumulate(certain) if places.shape[0] > 0 else certain

    def is_begun(k):
        end, begun = 0, 0
        for j in range(load(heads, k), k + 1):
            begun = 1 if load(places, j) >= end else 0
            if begun == 1:
                end = load(ends, j)
        return begun

    begun = elementwise(is_begun, numbers)
    marked = elementwise(lambda k, b: k if b == 1 else -1, numbers, begun)
    latest = np.maximum.accumulate(marked) if places.shape[0] > 0 else marked
    rank = np.cumsum(slow)

    def is_taken(i):
        last = load(rank, i) - 1  # the last exception up to here
        found = 1
        if last >= 0:
            if load(places, last) == i:
                found = load(begun, last) * load(right, last)
            else:
                before = load(latest, last)
                if before >= 0:
                    found = 1 if load(ends, before) <= i else 0
        return found == 1

    return compress(generate((many,), is_taken), np.arange(many))


def fill(line, words, table, inside, start, scale, is_standard, attempt, is_exception):
    """Numbers, of `attempt(states, place)`: some more words are looked at than are likely to be taken."""
    count = line.shape[0]
    if count > 0:
        many = count + (count >> 4) + 64

        def counted(firsts, begin):
            _found, used, right = attempt(firsts, begin, many + MARGIN)
            return used, right

        taken = taken_places(words, table, inside, many, counted, is_exception)
        while taken.shape[0] < count:
            many = many + many
            taken = taken_places(words, table, inside, many, counted, is_exception)
        firsts = first_states(words, table, many + MARGIN)

        def number_at(i):
            found, _used, _right = attempt(firsts, load(taken, i), many + MARGIN)
            return found if is_standard else start + scale * found

        assign(line, generate((count,), number_at))
        last = load(taken, count - 1)
        _found, used, _right = attempt(firsts, last, many + MARGIN)
        leave(words, state_at(words, table, firsts, last + used - 1))


@device_procedure("line", "words")
def fill_normal_at_once(line, words, table, inside, width, height, start, scale, is_standard):
    def attempt(firsts, begin, limit):
        return normal_attempt(words, table, firsts, inside, width, height, begin, limit)

    fill(line, words, table, inside, start, scale, is_standard, attempt, is_normal_exception)


@device_procedure("line", "words")
def fill_exponential_at_once(line, words, table, inside, width, height, start, scale, is_standard):
    def attempt(firsts, begin, limit):
        return exponential_attempt(words, table, firsts, inside, width, height, begin, limit)

    fill(line, words, table, inside, start, scale, is_standard, attempt, is_exponential_exception)
