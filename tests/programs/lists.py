"""Lists that a function makes and changes: append, pop, insert, items assigned, work lists, and lists that escape."""

from __future__ import annotations

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

NUMBERS = [(arr("f8", 7),), (arr("f8", 0),), (arr("f4", 5),), (arr("i4", 9),)]


@program(NUMBERS)
def chosen(x):
    found = []
    for value in x:
        if value > 0:
            found.append(value * 2)
    return found


@program(NUMBERS)
def chosen_array(x):
    found = []
    for value in x:
        if value > 0:
            found.append(value)
    return np.array(found)


@program(NUMBERS)
def split_in_two(x):
    places, rest = [], []
    for i, value in enumerate(x):
        if value > 0:
            places.append(i)
        else:
            rest.append(float(value))
    return places, rest, len(places) - len(rest)


@program([(27,), (1,), (6,)])
def collatz(n):
    path = [n]
    while path[-1] != 1:
        last = path[-1]
        path.append(last // 2 if last % 2 == 0 else 3 * last + 1)
    return path


@program([(arr("f8", 40),), (arr("f8", 1),), (arr("f8", 0),)])
def quicksort_with_a_stack(x):
    x = x.copy()
    todo = [(0, len(x) - 1)]
    while todo:
        low, high = todo.pop()
        if low >= high:
            continue
        pivot = x[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        todo.append((low, j))
        todo.append((i, high))
    return x


@program([(arr("?", 6, 6),), (arr("?", 3, 3),), (arr("?", 1, 1),)])
def breadth_first(adjacent):
    n = adjacent.shape[0]
    distance = np.full(n, -1)
    distance[0] = 0
    queue = [0]
    head = 0
    while head < len(queue):
        node = queue[head]
        head += 1
        for other in range(n):
            if adjacent[node, other] and distance[other] < 0:
                distance[other] = distance[node] + 1
                queue.append(other)
    return distance, queue


@program([(30,), (2,), (1,)])
def sieve(n):
    prime = [True] * (n + 1)
    prime[0] = False
    prime[1] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
    return [i for i in range(n + 1) if prime[i]], prime


@program(NUMBERS)
def squares_in_place(x):
    result = [0.0] * len(x)
    for i in range(len(x)):
        result[i] = float(x[i]) ** 2
    for i in range(len(result)):
        result[i] += 1.0
    return result


@program([(arr("i8", 6),), (arr("i8", 1),)])
def ints_then_floats(x):
    total = [0]
    for value in x:
        total.append(total[-1] + int(value) * 0.5)
    return np.array(total), total[0], total[-1], len(total)


@program([(arr("f8", 9),), (arr("f8", 1),)])
def insertion(x):
    ordered = []
    for value in x:
        place = 0
        while place < len(ordered) and ordered[place] < value:
            place += 1
        ordered.insert(place, value)
    return np.array(ordered), ordered[0], ordered[-1], sum(ordered), min(ordered), ordered[:2], ordered[::-1]


@program([(arr("f8", 5), 2), (arr("f8", 5), -1), (arr("f8", 5), -9)])
def insert_anywhere(x, where):
    items = list(x)
    items.insert(where, 7.5)
    items.insert(0, 1.5)
    return np.array(items)


@program([(arr("f8", 5), 0), (arr("f8", 5), -2), raising(IndexError, arr("f8", 5), 5)], message=True)
def pop_anywhere(x, where):
    items = list(x)
    item = items.pop(where)
    return item, items.pop(), len(items), items


@program([(arr("f8", 5),)])
def changed_while_it_waits(x):
    items = list(x)
    return items, items.pop(), len(items)


@program([raising(IndexError, 3), (0,)], message=True)
def pop_too_often(n):
    items = [1, 2]
    for _ in range(n):
        items.pop()
    return items


@program([raising(IndexError, arr("f8", 3), 4), (arr("f8", 3), -1)], message=True)
def items_out_of_range(x, where):
    items = []
    for value in x:
        items.append(float(value))
    items[where] = 0.0
    return items


@program([raising(IndexError, arr("f8", 3), 4), (arr("f8", 3), -1), (arr("f8", 3), 1)], message=True)
def deleted(x, where):
    items = list(x)
    del items[where]
    return items


@program([(arr("f8", 4),), (arr("f8", 0),)])
def extended(x):
    items = [1.5]
    for _ in range(3):
        items.extend([2.0, 3.0])
        items += [4.0]
    items.reverse()
    items.extend(list(map(float, x)))
    return items


@program([(4,), (0,)])
def extended_by_range(n):
    items = [0]
    items.extend(range(n))
    items += range(n, 2 * n)
    return items


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


@program([(6,), (0,)])
def made_anew_in_a_loop(n):
    lengths = np.zeros(n, dtype=np.int64)
    for i in range(n):
        divisors = []
        for k in range(1, i + 2):
            if (i + 1) % k == 0:
                divisors.append(k)
        lengths[i] = sum(divisors) * 10 + len(divisors)
    return lengths


@program([(arr("i8", 6), 3), (arr("i8", 6), 99)])
def found_in(x, limit):
    seen = []
    repeated = 0
    for value in x:
        item = int(value) % 3
        if item in seen:
            repeated += 1
        else:
            seen.append(item)
        if len(seen) >= limit:
            return seen, -1
    return seen, repeated


@program([(5,), (0,)])
def cleared(n):
    items = []
    kept = 0
    for i in range(n):
        items.append(i)
        if len(items) == 2:
            kept += items[0] * items[1]
            items.clear()
    return items, kept


@program([(arr("f8", 6),)])
def read_in_a_comprehension(x):
    items = []
    for value in x:
        items.append(float(value))
        items[0] = 2.5
    doubled = [item * 2 for item in items]
    items.append(1.0)
    return doubled, [items[i] + items[-1] for i in range(len(items))], any(item > 0 for item in items)


@program([(arr("f8", 6), True), (arr("f8", 6), False)])
def on_some_paths(x, more):
    items = []
    if more:
        for value in x:
            items.append(value)
    else:
        items = [0.5]
    while not items:
        items.append(1.0)
    return np.asarray(items), len(items)


@program([(arr("f8", 5),)])
def swapped(x):
    items = list(x)
    for i in range(len(items) // 2):
        j = len(items) - 1 - i
        items[i], items[j] = items[j], items[i]
    return items


@program([(arr("f8", 5),)])
def kept_apart_from_arrays(x):
    items = []
    for value in x:
        items.append(float(value))
    before = np.asarray(items)
    items[0] = 100.0
    before[1] = 50.0
    return before, items, np.sum(items)


@program([(arr("f8", 5),)])
def two_names(x):
    items = []
    other = items
    for value in x:
        items.append(value)
    return other


@program([(arr("f8", 5),)], fell_back=True)
def changed_while_walked(x):
    items = [1, 2]
    for item in items:
        if len(items) < 5:
            items.append(item + 1)
    return items


def _keep(items):
    return items


@program([(arr("f8", 5),)], fell_back=True)
def given_to_a_function(x):
    items = []
    for value in x:
        items.append(value)
    kept = _keep(items)
    items.append(0.5)
    return kept


@program([(4,)], fell_back=None)
def of_several_types(n):
    items = []
    for i in range(n):
        if i % 2:
            items.append(i * 0.5)
        else:
            items.append(i)
    return items[0], items[1], len(items)


@program([(3, 2.5), (0, 1.0), (-2, 0.5), (500, 1.5)])
def repeated(n, value):
    pairs = [value, 2 * value] * n
    return pairs, n * [1], np.array([1.0, 2e-9, 3e-9] * 4000).shape, [0, 1] * 3


@program([(arr("f8", 3),)], opaque=None)
def long_sequences(x):
    return len((1, 2.0) * 2000), np.array([True, False] * 1000)[:3], x


@program(
    [
        ([1], [2]),
        ([1, 2], [2.5]),
        ([1, 2], [0.5, 3.0]),
        ([], [1]),
        (arr("i8", 3), [1, 2, 3]),
        ([1.0, 2.0], arr("f8", 2)),
    ],
    fell_back=None,
    opaque=None,
    mutates=(0,),
)
def augmented_argument(a, k):
    """What `+=` does to a list all of its names see."""
    z = a
    z += k
    return a, z


@program([([1], [2]), ([1, 2], [0.5, 3.0])], fell_back=True, mutates=(0,))
def summed_after_it_has_grown(a, k):
    a += k
    return sum(a)


@program([([3.0],), ([4.0, 5.0],)])
def augmented_by_another_name(k):
    items = [1.0, 2.0]
    same = items
    items += k
    return same


@program([([3.0, 4.0],), (arr("f8", 2),), (np.float64(2.0),)], kernels=None)
def extended_and_added_to(k):
    """`+=` is `extend` for lists; NumPy adds."""
    items = [1.0, 2.0]
    items += k
    return items


@program([(arr("f8", 4),), (arr("i8", 0),)])
def extended_by_arrays(x):
    items = [1.0]
    items.extend(x)
    items += [2.0]
    return np.array(items)


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


@program([(arr("i8", 5, values=[3, 1, 2, 5, 4]),), (arr("i8", 0),)])
def bubbles(x):
    items = x.tolist()
    n = len(items)
    for i in range(n):
        for j in range(n - 1 - i):
            if items[j] > items[j + 1]:
                items[j], items[j + 1] = items[j + 1], items[j]
    return items, x


@program([(arr("i8", 3, values=[3, 1, 2]),)], mutates=(0,))
def names_and_copies_of_a_list(x):
    items = x.tolist()
    same, part, copied, text = items, items[:], list(items), f"{items} {x}"
    items[0] = 100
    x[1] = 50
    return items, sum(same), part, copied, text


@program([(arr("i8", 3, values=[3, 1, 2]),)], opaque=None, fell_back=None)
def names_of_a_list_given_back(x):
    items = x.tolist()
    same = items
    items[0] = 100
    return items, same


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


_kept = []


def _keep(items):
    return eval("_kept.append(items)")


@program([(arr("i8", 3),)], fell_back=None, opaque=None)
def kept_by_python(x):
    _kept.clear()
    items = x.tolist()
    _keep(items)
    items[0] = 100
    return _kept[0]


@program([(arr("i8", 3), arr("i8", 4)), (arr("i8", 0), arr("i8", 1))])
def edit_distance(a, b):
    """The list of one round is that of the last one in the next."""
    last = list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        row = [i]
        for j in range(1, len(b) + 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])))
        last = row
    return last[-1]


@program([(5,), (0,)])
def frontiers(n):
    frontier = [1]
    total = 0
    while frontier:
        found = []
        for u in frontier:
            total += u
            if u * 2 <= n:
                found.append(u * 2)
                found.append(u * 2 + 1)
        frontier = found
    return total


@program([(5,), (0,)])
def ways_by_sum(n):
    ways = {0: 1}
    for _ in range(n):
        new = {}
        for k, v in ways.items():
            new[k] = new.get(k, 0) + v
            new[k + 1] = new.get(k + 1, 0) + v
        ways = new
    return ways


@program([(5,), (0,), (2,)], fell_back=True)
def two_names_for_one_list(n):
    items = [0]
    last = [1]
    for i in range(5):
        last = items
        if i == n:
            break
        items = [i]
    items.append(7)
    return items, last


@program([(6,), (1,), (0,)])
def merged(n):
    a, b = list(range(0, n, 2)), list(range(1, n, 2))
    out = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] < b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    return out + a[i:] + b[j:]


@program([(4,), (0,)])
def one_after_the_other(n):
    items = []
    for i in range(n):
        items.append(i)
    longer, before, same = items + [7], [0] + items, items + []  # noqa: RUF005
    items.append(50)
    return items, longer, before, same


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


@program([(arr("i2", 3), 2), (arr("i2", 3), 1)])
def items_of_another_type_by_the_path(a, k):
    given = a if k > 1 else a * 1.5
    larger = [max(x, k) for x in given]
    return len(larger)


@program([(arr("b1", 1, 1), 0), (arr("b1", 2, 1), 3)], opaque=None)
def list_of_a_range_that_is_empty(b, k):
    for _ in b:
        items = list(range(k))
    return (b, len(items)) if k > 2 else (-1, items)


@program([(arr("f8", 2, 3), 4), (arr("f8", 0, 3), 4)], fell_back=None)
def rows_beside_a_set(c, k):
    return {1, k}, list(map(lambda x: x, c)), {"row": [x[1:] for x in c]}


@program([(arr("f8", 2, 3),)], fell_back=None)
def tuple_of_rows(c):
    return tuple(x for x in c)


@program([([3, 1, 2],), (np.array([3, 1, 2]),), ([0.5, -1.0],), ([],)])
def a_parameter_copied_first(a):
    a = list(a)
    for i in range(1, len(a)):
        key, j = a[i], i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    a.append(7)
    return len(a), a[0]


@program([([3, 1, 2, 5], 1), ([3, 1, 2, 5], 7), ([1.5], 0)])
def slices_of_lists(a, k):
    a = a[k:] + a[:k]
    for i in range(len(a)):
        a[i] += i
    return a, a[-k:], a[::2]


@program([(arr("f8", 5),), (arr("i4", 3),)], mutates=(0,))
def slices_of_arrays_are_views(a):
    b = a[1:]
    b[0] = 9
    for i in range(len(b)):
        b[i] += i
    b += 1
    c = a.copy()
    c[:2] = 0
    c += b[0]
    return b, c


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


@program([(5,), (1,)])
def backtracking_with_a_list(n):
    count, columns, row, c = 0, [], 0, 0
    while True:
        while c < n and any(columns[r] == c or abs(columns[r] - c) == row - r for r in range(row)):
            c += 1
        if c < n:
            columns.append(c)
            row, c = row + 1, 0
            if row == n:
                count += 1
                row -= 1
                c = columns.pop() + 1
        elif row == 0:
            return count
        else:
            row -= 1
            c = columns.pop() + 1


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


SIX = [3, 1, 2, 5, 4, 2]


@program([(SIX, 1, 3), (SIX, 3, 1), (SIX, -2, 10), ([], 0, 0), ((4.0, 5.0), None, None)])
def parts_replaced(items, a, b):
    one = list(items)
    other = list(items)
    one[a:b] = [10, 20, 30]
    del other[a:b]
    other[1:1] = one[:2]
    return one, other, len(other)


@program([(20,), (5,), (3,)])
def sieve_by_slices(n):
    prime = [True] * n
    prime[0:2] = [False, False]
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = [False] * len(prime[i * i :: i])
    return [i for i, flag in enumerate(prime) if flag]


@program([(4,), raising(ValueError, 5)], message=True)
def step_of_another_size(n):
    items = [i for i in range(n)]
    items[::2] = [0, 0]
    return items


@program([(SIX,), ([],), ([1, 2.5, 3],), (("a", "bc"),), (list(range(40)),)], fell_back=None)
def wanted_items_of_an_argument(items):
    chosen = [v for v in items if v != 2]
    return chosen, sum(1 for v in items if v == 2), len([v for v in chosen if v != 1])


@program([([(1, 2.0), (3, 4.0)],), ([(5, 1.0)],)])
def wanted_pairs(pairs):
    return [b for a, b in pairs if a > 1], [(a, b) for a, b in pairs if b > 2]


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


@program(
    [([3, 1, 2], 1), ([2.5, -1.0], 2.5), (arr("f8", 5), 0), raising(ValueError, [3, 1], 7), ([2, 1.5, 1], 1)],
    fell_back=None,
    opaque=None,
    mutates=(0,),
)
def sorted_copies(a, k):
    """The length is known: where the items go depends on values all the same."""
    one = a.copy()
    one.sort()
    other = list(a)
    other.sort()
    part = a[:]
    part[0] = part[-1]
    if len(a) < 5:
        other.remove(k)
    return one, other, part


@program([([3, 1, 2],), ([2.5, -1.0],), ([],)])
def middle_of_sorted(a):
    line = list(a)
    line.sort()
    line.append(4)
    line.reverse()
    return line[len(line) // 2], line


@program([(arr("f8", 6),), (arr("i4", 6, layout="reversed"),), (arr("f4", 3, 4),)])
def sorted_array(a):
    b = a.copy()
    b.sort()
    c = a.copy()
    c.sort(axis=0)
    return b, c, a.argsort()


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


@program([(np.array([2.0, 1.0, 4.0]),), (np.array([3, -1]),)])
def lists_gone_through_by_maps(x):
    """What `map`, `zip` and their kin take from a list is taken before the call around them ends."""
    found = [x.sum()]
    for v in x:
        found.append(v * found[-1])
    total = sum(map(abs, found))
    found.append(total)
    return max(map(lambda v: v + len(found), found)), list(zip(found, x, strict=False)), sorted(reversed(found))


@program([(arr("i8", 4), 3), (arr("i8", 0), 3)])
def lists_of_what_is_unpacked(n, k):
    ends = [*n, np.int64(k)]
    places = [0, *range(k), *[2 * i for i in range(k)]]
    places.append(k)
    return ends, places, np.array([*n.tolist(), k]), len([*n, *n])


@program([(arr("f8", 2, 3),), (arr("i4", 4, layout="reversed"),), (arr("f4", 0, 2),)])
def places_with_their_elements(x):
    found = [(place, v) for place, v in np.ndenumerate(x)]
    return found, [((i, (i, 2.5)), x.size) for i in range(x.ndim)], np.iterable(x), np.iterable(x.size)


@program([([1.0, 2.0],), ([1.0, 200.0],), ([],), ([3, -4],), ([300, 1],)])
def sum_of_what_is_large(items):
    return sum(v for v in items if v > 100), sum([v > 1 for v in items], True), sum(v * 1j for v in items)


@program(
    [
        ([1, 1], 2.0**53),
        ((1, 1.0, True, -0.0), 2.0**53),
        ((1.0, 1, np.float64(1)), 2.0**53),
        ((1.0, 1), complex(2.0**53, -0.0)),
        ((1, 0.1, 2j, 1e16, complex(1.0, -0.0)), 3),
        ((1j, np.float64(0.1), np.complex128(1)), 1e16),
        ([1] * 60, 2.0**53),
        ([0.1] * 60, complex(1e16, -0.0)),
        ([1e16, 1.0] * 30, 1),
        ([complex(1e16, 1.0), 1j] * 30, -0.5),
        ([3] * 60, 1e16 + 1j),
    ],
    opaque=None,
)
def sums_that_may_carry_a_compensation(items, start):  # of floats from 3.12 on, of ints and complex ones from 3.14 on
    return sum(items, start), sum(items)


@program(
    [(start, arr(dtype, 3)) for start in (0.1, True, np.int16(3), -0.0) for dtype in ("u1", "b1", "f4", "f8")]
    + [(start, arr(dtype, 2, 3)) for start in (0.1, True, np.float32(1)) for dtype in ("u1", "b1", "f8")]
    + [(0.1, [1e16, 1.0, 1.0]), (0.5, [2**53, 1, 1]), (np.uint8(200), [100, 20]), (-0.0, [-0.0]), (True, [])]
)
def sum_from_a_start(start, items):
    return sum(items, start), sum(items, start=start)
