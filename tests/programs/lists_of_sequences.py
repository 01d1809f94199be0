"""Lists whose items are lists, tuples or arrays: tables, rows in several lists, arrays of several lengths, pairs."""

from __future__ import annotations

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising


@program([(arr("f8", 5),), (arr("f8", 0),)])
def pairs(x):
    found = []
    for i, value in enumerate(x):
        found.append((i, value * 0.5))
    total = 0.0
    for i, value in found:
        total += i * value
    return np.array(found) if found else np.zeros((0, 2)), total


@program([(arr("f8", 3),)])
def arrays_of_known_number(x):
    parts = []
    for k in range(4):
        parts.append(x * k)
    return np.stack(parts), len(parts)


@program([(4,), (0,)])
def grid_of_lists(n):
    grid = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            grid[i][j] = i * j
    return grid, len(grid)


@program([([1, 2, 3, 4], [2, 4, 3, 4]), ([1], [])])
def longest_common_subsequence(a, b):
    n, m = len(a), len(b)
    best = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                best[i][j] = best[i - 1][j - 1] + 1
            else:
                best[i][j] = max(best[i - 1][j], best[i][j - 1])
    return best[n][m]


@program([(4,)])
def rows_and_copies_of_rows(n):
    grid = [[0] * n for _ in range(n)]
    row = grid[1]
    copied = [r[:] for r in grid]
    row[2] = 7
    grid[1][0] = 3
    return grid, sum(row), copied


@program([(4,)], fell_back=True)
def rows_and_one_of_them(n):
    grid = [[0] * n for _ in range(n)]
    row = grid[1]
    grid[1][0] = 3
    return grid, row


@program([(4,)], fell_back=True)
def one_row_many_times(n):
    row = [0] * n
    grid = [row for _ in range(n)]
    grid[0][1] = 5
    return grid, row


@program([(4,)], fell_back=True)
def rows_shared_by_lists(n):
    grid = [[0] * n for _ in range(n)]
    other, third = list(grid), grid[1:]
    grid[1][0] = 3
    return grid, other, third, [r for r in grid]


@program([(4,), raising(IndexError, 2)], message=True)
def outside_of_the_grid(n):
    grid = [[0.0] * n for _ in range(n)]
    grid[-1][-2] = 5.0
    grid[3][1] = 1.0
    return grid


@program([(5,)])
def game_of_life(n):
    cells = [[(i * j) % 2 for j in range(n)] for i in range(n)]
    for _ in range(3):
        new = [[0] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                around = 0
                for a in (-1, 0, 1):
                    for b in (-1, 0, 1):
                        if a or b:
                            around += cells[(i + a) % n][(j + b) % n]
                new[i][j] = 1 if around == 3 or (around == 2 and cells[i][j]) else 0
        cells = new
    return cells


@program([(4,), (0,)])
def list_of_short_lists(n):
    rows = []
    for i in range(n):
        rows.append([i, i + 1])
    return rows


@program([(4,)], fell_back=True)
def row_kept_by_a_name(n):
    rows = []
    for i in range(n):
        row = [i, i]
        rows.append(row)
        row[0] = 9
    return rows


@program([(arr("f8", 2, 3), 4), (arr("f8", 0, 3), 4)], fell_back=None)
def rows_beside_a_set(c, k):
    return {1, k}, list(map(lambda x: x, c)), {"row": [x[1:] for x in c]}


@program([(arr("f8", 2, 3),)], fell_back=None)
def tuple_of_rows(c):
    return tuple(x for x in c)


@program([(3, 4), (0, 2)])
def tables_in_nested_lists(n, m):
    table = [[0 for _ in range(m + 1)] for _ in range(n + 1)]
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                table[i][j] = 1
            else:
                table[i][j] = table[i - 1][j] + table[i][j - 1]
    return table[n][m]


@program([(arr("f8", 6),), (arr("i4", 4),)])
def extreme_pairs(a):
    best, least = (a[0], 0), (a[0], 0)
    for i in range(1, len(a)):
        best = max(best, (a[i], -i))
        least = min((a[i], i % 2), least)
    return best, least


STEPS = [(arr("f8", 3), arr("f8", 3), n) for n in (4, 0, 20)]


@program(STEPS, regrouped=8)
def path_of_arrays(x, v, n):
    """A list of arrays that has its length at run time; as many of one shape are one array."""
    path = [x.copy()]
    for _ in range(n):
        x = x + v * 0.5
        path.append(x)
    return np.array(path), np.vstack(path), np.stack(path, axis=1), np.concatenate(path), len(path), path[-1].sum()


@program(STEPS)
def path_that_may_be_empty(x, v, n):
    path = []
    for i in range(n):
        x = x + v
        if x[0] > 3 * v[0]:
            path.append(x * i)
    return path, len(path)


@program([(arr("f8", 6), 3), (arr("i4", 4), 4), (arr("c8", 3), 0)])
def arrays_of_several_lengths(x, n):
    parts = []
    for i in range(n):
        parts.append(x[i:] * 2)
    total = 0
    for place, part in enumerate(parts):
        total += place * part[0]
    return parts, len(parts), total, [part.size for part in parts[::-1]]


@program([(arr("f8", 6), 3), (arr("f4", 4), 1)])
def arrays_of_several_lengths_joined(x, n):
    return (
        np.concatenate([x[i:] for i in range(n)]),
        np.hstack([np.full(int(abs(v)), v) for v in x[:n]]),
        np.array([x[i : i + 2] for i in range(len(x) - 1)]),
        np.array([v * x for v in x if v > 0.1]).sum(axis=0),
    )


@program([(arr("f8", 3, 3), 3), (arr("f4", 2, 2), 2)])
def stack_of_arrays(a, n):
    waiting = [a]
    total = 0.0
    while waiting:
        last = waiting.pop()
        total += last.sum()
        if len(last) > 1:
            waiting.append(last[: len(last) // 2])
            waiting.append(last[len(last) // 2 :])
    powers = [np.eye(len(a))]
    while len(powers) < n:
        powers.append(powers[-1] @ a)
    return total, np.array(powers), powers[0][0, 0]


@program([(arr("f8", 6), 3), (arr("f8", 6), 0)])
def sums_of_lists_of_arrays(x, n):
    around = sum(np.roll(np.roll(x.reshape(2, 3), i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return around, sum(x[i : i + 2] * j for i in range(3) for j in range(2)), sum([x[:2] + i for i in range(n)])


@program([(arr("f8", 2, 3),)])
def lists_of_rows(a):
    return [row * 2 for row in a], [np.sort(row) for row in a], list(map(np.cumsum, a))


@program([(arr("f8", 3), 3)], fell_back=True, mutates=(0,))
def array_changed_after_it_was_appended(x, n):
    kept = []
    for i in range(n):
        kept.append(x)
        x[0] += i
    return np.array(kept)


@program([(arr("f8", 3), 3)], fell_back=True)
def last_array_changed(x, n):
    kept = []
    for _ in range(n):
        x = x * 2
        kept.append(x)
    x[0] = 7
    return np.array(kept)


@program([(arr("f8", 3), 3)], fell_back=True)
def array_of_a_list_that_is_returned_as_well(x, n):
    kept = []
    for _ in range(n):
        x = x * 2
        kept.append(x)
    return x, kept


@program([(arr("f8", 3), 3)], fell_back=True)
def one_array_in_a_list_many_times(x, n):
    y, kept = x + 1, []
    for _ in range(n):
        kept.append(y)
    return kept


@program([(arr("f8", 3), 3)], fell_back=True)
def array_in_a_list_stored_to(x, n):
    kept = [x * 1]
    for _ in range(n):
        kept.append(x * 2)
        kept[-1][0] = 5
    return np.stack(kept, axis=1)


@program([(arr("c16", 4),), (arr("f8", 4),)], opaque=None, fell_back=None)
def complex_or_real_items(x):
    return [v if v.real > 0 else 0.5 for v in x]


@program([(arr("f8", 3, 4),), (arr("i4", 2, 3),), (arr("f8", 0, 2),), (arr("?", 2, 2),)])
def table_as_lists(a):
    rows = a.tolist()
    return rows, [sum(row) for row in rows], a[None].tolist()


@program([(arr("i8", 3, 4),)])
def items_of_a_table_as_lists(a):
    rows = a.tolist()
    for i in range(len(rows)):
        rows[i][1] = rows[i][0] + rows[i][-1]
    return rows


@program([(arr("i8", 5), arr("f8", 3)), (arr("f4", 2), arr("i8", 4)), (arr("i8", 0), arr("f8", 2))])
def lists_of_pairs(a, b):
    pairs = list(zip(a, b, strict=False))
    again = list(pairs)
    pairs.append((a.size, 0.5))
    return (
        pairs,
        again,
        pairs[:1],
        list(enumerate(b)),
        list(enumerate(a, 2)),
        list(reversed(a)),
        list(zip(b, range(2), strict=False)),
    )


@program([(arr("f8", 4),), (arr("i4", 0),)])
def pairs_in_a_loop(a):
    pairs = [(i, 2 * v) for i, v in enumerate(a)]
    total = 0.0
    for i, v in pairs:
        total += i * v
    for k, (i, v) in enumerate(pairs):
        total += k * v - i
    return total, pairs, np.array(pairs), np.array(list(zip(a, a, strict=False))).shape


@program([(arr("f8", 2, 3),), (arr("i8", 0, 2),)])
def pairs_of_two_loops(a):
    every = [(i, j) for i in range(a.shape[0]) for j in range(a.shape[1])]
    return every, [(i, float(a[i, j])) for i in range(a.shape[0]) for j in range(a.shape[1]) if a[i, j] > 1]


@program([(arr("i8", 3, values=[2, 4, 5]),), raising(ZeroDivisionError, arr("i8", 3, values=[2, 3, 5]))])
def pairs_that_raise(a):
    return [(i, 10 // (int(v) - 3)) for i, v in enumerate(a)]


@program([(arr("f8", 24),)])
def rows_that_numpys_loops_make(x):
    """What sorts, transforms and products store into is new in each turn."""
    spectra = np.array([np.fft.fft(x[i : i + 8] * 0.5) for i in range(0, len(x), 8)])
    rows = [np.sort(x[i : i + 8]) for i in range(0, len(x), 8)]
    return np.stack(rows), spectra.shape, len(rows)


@program([(arr("f8", 24),)], fell_back=None, opaque=None)
def rows_stored_to_after_they_were_appended(x):
    rows, last = [], np.zeros(8)
    for i in range(0, 24, 8):
        last[0] = -50.0
        row = np.sort(x[i : i + 8])
        rows.append(row)
        row[1] = 99.0
        last = row
    return np.array(rows)


@program([(arr("c16", 3, 4), arr("f8", 2, 3))], fell_back=None, mutates=(0,))
def rows_that_show_parts(z, x):
    """Rows of parts of a complex array, and of other readings of its bits, are views."""
    parts = [z[i].real for i in range(2)], [x.view(np.int64) for _ in range(2)], [x.imag for _ in range(2)]
    z[0] = 7
    return parts


@program([(3, 2), (0, 2), (3, 0), (0, -2), raising(ValueError, 3, -2)], message=True)
def rows_of_an_extent_that_may_be_negative(n, k):
    return len([np.zeros(k) for _ in range(n)]), sum([np.ones((2, k)).sum() for _ in range(n)])


@program([(arr("f8", 2, 3),), (arr("i4", 4, layout="reversed"),), (arr("f4", 0, 2),)])
def places_with_their_elements(x):
    found = [(place, v) for place, v in np.ndenumerate(x)]
    return found, [((i, (i, 2.5)), x.size) for i in range(x.ndim)], np.iterable(x), np.iterable(x.size)
