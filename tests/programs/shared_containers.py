"""Lists, dicts, sets and arrays that stand in a result, or in a result and an argument, several times: each is one."""

from __future__ import annotations

from collections import Counter

from tests.arrays import arr
from tests.corpus import program

NUMBERS = [(0,), (1,), (3,)]
TWO_LISTS = [([1, 2], [3, 4, 5], 0), ([1, 2], [3, 4, 5], 1), ([1, 2], [3, 4, 5], 3)]


def either_way(inputs, **claims):
    return program(inputs, opaque=None, fell_back=None, **claims)


@either_way(NUMBERS)
def twice(n):
    known, grown, spread = [n], [], list(range(n))
    for i in range(n):
        grown.append(i)
    return known, grown, spread, known, [grown, grown], {"a": spread, "b": (spread, known)}


@either_way(NUMBERS)
def dicts_and_sets_twice(n):
    pair, grown, few, many = {1: n}, {}, {1, n}, set()
    for i in range(n):
        grown[i] = i
        many.add(i)
    return pair, pair, grown, [grown], few, few, many, (many, Counter([1, n]))


@either_way(NUMBERS)
def chosen_among_those_made(n):
    one = [1.0, n]
    other = one if n > 1 else [2.0, n]
    third = one
    for i in range(n):
        third = other if i == 1 else third
    return one, other, third


@either_way(TWO_LISTS)
def bound_in_a_loop(a, b, n):
    chosen = None
    for i in range(n):
        chosen = a if i % 2 else b
    return chosen


@either_way(TWO_LISTS)
def exchanged_in_a_loop(a, b, n):
    for _ in range(n):
        a, b = b, a
    return a, len(b)


@either_way([([[1, 2], [3], [4, 5, 6]], 0), ([[1, 2], [3], [4, 5, 6]], 2), ([[1, 2], [3], [4, 5, 6]], 9)])
def longest_row_of_an_argument(rows, n):
    found = []
    for row in rows:
        if len(row) > n:
            found = row
    return found


@either_way(TWO_LISTS)
def arguments_collected_in_a_loop(a, b, n):
    found = []
    for i in range(n):
        found.append(a if i % 2 else b)
    return found


@either_way(NUMBERS)
def one_row_several_times(n):
    row = [0] * n
    appended = []
    for _ in range(n):
        appended.append(row)
    return [[0]] * n, [row for _ in range(n)], appended


@either_way(NUMBERS)
def one_row_under_several_keys(n):
    row = [n]
    rows = {}
    for i in range(n):
        rows[i] = row
    return rows


@either_way(NUMBERS)
def rows_and_one_of_them(n):
    rows = [[i, i * 2 % 3] for i in range(n + 1)]
    best = max(rows, key=lambda row: row[1])
    return rows, best, rows[-1]


@either_way(NUMBERS)
def rows_of_any_length_and_one_of_them(n):
    rows = [[i] * i for i in range(n)]
    longest = []
    for row in rows:
        if len(row) > len(longest):
            longest = row
    return rows, longest


@either_way(NUMBERS)
def dict_of_rows_and_one_of_them(n):
    rows = {0: [7]}
    for i in range(n):
        rows[i % 2] = [i]
    grown = {}
    for i in range(n + 1):
        grown.setdefault(i % 2, []).append(i)
    return rows, rows[0], grown, grown[0]


@either_way(NUMBERS)
def rows_gathered(n):
    rows = []
    for i in range(n):
        rows.append([i] * (i + 1))
    gathered = []
    for i in range(n):
        gathered.append(rows[i // 2])
    return gathered, [rows[i // 2] for i in range(n)]


@either_way(NUMBERS)
def rows_and_lists_of_the_same_rows(n):
    rows = [[i] for i in range(n)]
    return rows, sorted(rows), rows[1:], list(rows), [row for row in rows if row[0] > 1], rows + rows


@program(NUMBERS)
def rows_of_another_list(n):
    """Each of them is an item once: they are rows of the result alone."""
    rows = []
    for i in range(n):
        rows.append([i] * (i + 1))
    kept, popped = [], []
    for row in rows:
        if len(row) > 1:
            kept.append(row)
    for i in range(n):
        popped.append([i])
        kept.append(popped.pop())
    return kept


@either_way(NUMBERS)
def rows_read_by_a_loop_that_is_repeated(n):
    rows = []
    for i in range(n):
        rows.append([i] * 2)
    found = []
    for _ in range(2):
        for row in rows:
            found.append(row)
    return found


@either_way(NUMBERS)
def row_of_the_iteration_before(n):
    row = [1]
    rows = []
    for i in range(n):
        before = row
        row = [i]
        rows.append(before)
        rows.append(row)
    return rows


ARRAYS = [(arr("f8", 4), 0), (arr("f8", 4), 1), (arr("f8", 4), 3), (arr("f8", 0), 2), (arr("i4", 3, 2), 2)]


@program(ARRAYS)
def arrays_exchanged(x, n):
    one = x + 1
    other = one
    for _ in range(n):
        one, other = other, one
    return one, other


@program(ARRAYS)
def array_chosen_among_those_made(x, n):
    one = x + 1
    other = one if n > 1 else x + 2
    third = other
    for i in range(n):
        if i == 2:
            third = one
    return one, other, third


@program(ARRAYS)
def array_bound_again_while(x, n):
    one = x + 1
    other, third = one, one[:]
    while n > 0:
        other = one
        n -= 1
    return one, other, third
