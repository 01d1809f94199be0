"""The words of PCG64: one after the other, and for devices many at the same time.

On a device each number is found for itself. The state that a run of 256 words begins with is a few jumps away
(`pcg64_jumps`), each word of the run one more. Where a number may take more than a word, more words are looked at than
are wanted, those that begin a number are found, and the last one says where the next number begins.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import assign, cast, compress, elementwise, generate, load, prim, store
from parakeet_py.library.registry import device_procedure

MULTIPLIER_HIGH = np.uint64(0x2360ED051FC65DA4)
MULTIPLIER = np.uint64(0x4385DF649FCCF645)  # its lower half
HALF = np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)
UNIT = 1.0 / 9007199254740992.0


def upper_product(a, b):
    """The upper half of the 128 bits of a product."""
    return prim("mul_high", a, b)


def stepped(low, high, more_low, more_high):
    """The state after this one, whose increment is `more`."""
    product = low * MULTIPLIER
    high = upper_product(low, MULTIPLIER) + low * MULTIPLIER_HIGH + high * MULTIPLIER + more_high
    low = product + more_low
    return low, high + cast(low < product, "uint64")


def word_of(low, high):
    """The 64 bits that a state gives."""
    mixed, turn = high ^ low, high >> np.uint64(58)
    return mixed >> turn | mixed << ((np.uint64(64) - turn) & np.uint64(63))


def double_of(word):
    """A number of [0, 1), of 53 bits of a word."""
    return cast(cast(word >> np.uint64(11), "int64"), "float64") * UNIT


def jumped(table, row, low, high, more_low, more_high):
    """The state so many steps after this one as a row of the table of jumps says."""
    times_low, times_high, sum_low, sum_high = (
        load(table, row, 0),
        load(table, row, 1),
        load(table, row, 2),
        load(table, row, 3),
    )
    first, second = low * times_low, more_low * sum_low
    high = upper_product(low, times_low) + low * times_high + high * times_low
    high = high + upper_product(more_low, sum_low) + more_low * sum_high + more_high * sum_low
    low = first + second
    return low, high + cast(low < first, "uint64")


def first_states(words, table, count):
    """The state that each run of 256 of so many words begins with: lower halves, upper halves."""
    more_low, more_high = load(words, 2), load(words, 3)
    first_low, first_high = stepped(load(words, 0), load(words, 1), more_low, more_high)

    def state_before(run):
        low, high = first_low, first_high
        for level in range(4):
            row = 256 * (level + 1) + (run >> 8 * level & 255)
            low, high = jumped(table, row, low, high, more_low, more_high)
        return low, high

    return elementwise(state_before, np.arange((count + 255) >> 8))


def state_at(words, table, firsts, place):
    """The state that gives a word."""
    lows, highs = firsts
    run = place >> 8
    return jumped(table, place & 255, load(lows, run), load(highs, run), load(words, 2), load(words, 3))


def half_at(words, table, firsts, left_over, place):
    """A half of the words that are to come; what is left over is the one before."""
    word = word_of(*state_at(words, table, firsts, max(place, 0) >> 1))
    half = word & LOWER if place & 1 == 0 else word >> HALF
    return left_over if place < 0 else half


def leave(words, state):
    low, high = state
    store(words, 0, low)
    store(words, 1, high)


@device_procedure("line", "words")
def fill_at_once(line, words, table, start, width):
    """Numbers of [start, start + width): of each run of 256 the first state is found, then each number for itself."""
    count = line.shape[0]
    if count > 0:
        firsts = first_states(words, table, count)

        def number_at(place):
            return start + width * double_of(word_of(*state_at(words, table, firsts, place)))

        assign(line, generate((count,), number_at))
        leave(words, state_at(words, table, firsts, count - 1))


def taken_halves(words, left_over, table, many, before, bound, least):
    """The places of those halves, of so many, whose products' lower parts are at least `least`."""
    firsts = first_states(words, table, (many + 1) >> 1)

    def is_taken(i):
        return (half_at(words, table, firsts, left_over, i - before) * bound & LOWER) >= least

    return compress(generate((many,), is_taken), np.arange(many))


@device_procedure("line", "words", "left")
def fill_below_at_once(line, words, left, table, start, span):
    """Integers of [start, start + span], of less than 32 bits: more halves of words are drawn than there are to be
    numbers, those are chosen that `next_below` would not draw again, and the last one says where the next begins."""
    count = line.shape[0]
    bound = span + np.uint64(1)
    least = (LOWER - span) % bound
    before = 1 if load(left, 0) != np.uint32(0) else 0  # a half is left
    left_over = cast(load(left, 1), "uint64")
    share = cast(cast(least, "int64"), "float64") / 4294967296.0  # of halves that are drawn in vain
    wanted = cast(count, "float64")
    many = count
    if least != np.uint64(0):
        many = cast((wanted + 8.0 * np.sqrt(wanted * share) + 30.0) / (1.0 - share), "int64")
    taken = taken_halves(words, left_over, table, many, before, bound, least)
    while taken.shape[0] < count:
        many = many + many
        taken = taken_halves(words, left_over, table, many, before, bound, least)
    firsts = first_states(words, table, (many + 1) >> 1)

    def number_at(i):
        half = half_at(words, table, firsts, left_over, load(taken, i) - before)
        return cast(start + (half * bound >> HALF), "int64")

    assign(line, generate((count,), number_at))
    last = load(taken, count - 1) - before
    if last >= 0:
        state = state_at(words, table, firsts, last >> 1)
        leave(words, state)
        store(left, 1, cast(word_of(*state) >> HALF, "uint32"))
    store(left, 0, cast(1 if last >= 0 and last & 1 == 0 else 0, "uint32"))
