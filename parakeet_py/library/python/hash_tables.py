"""Hash tables of dicts and sets whose keys are integers, floats, or tuples of them (see
`typed_ir/specialize/containers/hash_maps.py`).

The entries lie in columns, in the order of insertion. A table of 2**k places, at least half of them free, finds them
(open addressing, linear probing: Knuth, The Art of Computer Programming, volume 3, section 6.4): a place is 0, or the
number of an entry plus 1. The hash is a multiplicative one (ibid.), whose high half is folded into the low one.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import allocate, cast, constant, dtype_of, generate, load, prim, store
from parakeet_py.library.registry import helper, procedure

MOST = 1 << 46  # places of a table, more than any memory has: with it, making one cannot fail for its size
FACTOR = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, odd


def place_of(keys, mask):
    """Where the search for a key begins: an np.int64, whose arithmetic wraps, as all that has to do with places."""
    h = constant(FACTOR, np.uint64)
    half = constant(32, np.uint64)
    for key in keys:
        h = (h ^ cast(key, np.uint64)) * constant(FACTOR, np.uint64)
        h = h ^ (h >> half)
    return cast(h & cast(mask, np.uint64), np.int64)


def mask_of(table):
    return cast(table.shape[0] - 1, np.int64)


def entry_at(table, place):
    """The number of the entry at a place, -1 for none."""
    return load(table, place) - constant(1, np.int64)


def next_place(place, mask):
    return (place + constant(1, np.int64)) & mask


def word_of(value):
    """An integer as it is, a float as the integer that has the same bits; zeros of both signs are one."""
    if dtype_of(value).kind == "f":
        return int(prim("bits", prim("add", cast(value, np.float64), constant(0.0, np.float64))))
    return int(value)


def keys_at(columns, entry):
    return [word_of(load(column, entry)) for column in columns]


def is_entry(columns, keys, entry):
    same = True
    for column, key in zip(columns, keys):
        same = same and word_of(load(column, entry)) == key
    return same


@helper
def find_entry(table, columns, keys):
    """The number of the entry of a key, or -1, and the place in the table where it is or would be."""
    mask = mask_of(table)
    place = place_of(keys, mask)
    entry = entry_at(table, place)
    while entry >= 0 and not is_entry(columns, keys, entry):
        place = next_place(place, mask)
        entry = entry_at(table, place)
    return int(entry), int(place)


@helper
def empty_table(places):
    return generate((places,), lambda i: constant(0, np.int64))


@procedure
@helper
def table_of(columns, count):
    """A table for the first entries of columns, with room for as many again."""
    places = constant(16, np.int64)
    while places < 4 * count:
        places = places + places
    table = empty_table(min(max(int(places), 16), MOST))
    mask = mask_of(table)
    for entry in range(count):
        place = place_of(keys_at(columns, entry), mask)
        while load(table, place) != 0:
            place = next_place(place, mask)
        store(table, place, entry + 1)
    return table


@procedure
@helper
def distinct(items):
    """The different integers of an array in the order in which they come first, as a column and its length, and a
    table for them."""
    count = items.shape[0]
    places = 16
    while places < 2 * count:
        places = 2 * places
    table = empty_table(places)
    column = allocate((count,), dtype_of(items))
    found = 0
    for i in range(count):
        item = load(items, i)
        entry, place = find_entry(table, [column], [int(item)])
        if entry < 0:
            store(column, found, item)
            found = found + 1
            store(table, place, found)
    return column, found, table


@procedure
@helper
def chosen_entries(columns, count, others, table, there):
    """Of the first `count` entries those whose keys have an entry in the other columns, or (`there` is False) have
    none: columns, and how many they are."""
    made = [allocate((count,), dtype_of(column)) for column in columns]
    found = 0
    for entry in range(count):
        other, _ = find_entry(table, others, keys_at(columns, entry))
        if (other >= 0) == there:
            for column, own in zip(made, columns):
                store(column, found, load(own, entry))
            found = found + 1
    return made, found


@procedure
@helper
def are_entries(columns, count, others, table, there):
    """Have the keys of all the first `count` entries an entry in the other columns, or (`there` is False) has none?"""
    entry = 0
    while entry < count and (find_entry(table, others, keys_at(columns, entry))[0] >= 0) == there:
        entry = entry + 1
    return entry == count


@procedure
@helper
def entries_of_both(columns, count, others, more):
    """The first `count` entries, and behind them the first `more` of the others, as columns."""
    made = [allocate((count + more,), dtype_of(column)) for column in columns]
    for entry in range(count):
        for column, own in zip(made, columns):
            store(column, entry, load(own, entry))
    for entry in range(more):
        for column, own in zip(made, others):
            store(column, count + entry, load(own, entry))
    return made
