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
