"""Tuples, lists, zip, enumerate, reversed and comprehensions."""

import math

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

PAIRS = [(arr("f8", 4), arr("f8", 4, seed=1)), (arr("i4", 3), arr("f4", 5)), (arr("f8", 0), arr("f8", 2))]


@program(PAIRS)
def zipped(x, y):
    total = 0.0
    for a, b in zip(x, y):  # noqa: B905
        total += a * b
    return total


@program(PAIRS)
def enumerated(x, y):
    last = -1
    total = 0
    for i, v in enumerate(x, 2):
        total = total + i * v
        last = i
    return last, total, y


@program(PAIRS)
def enumerated_zip(x, y):
    out = np.zeros(min(len(x), len(y)))
    for i, (a, b) in enumerate(zip(x, y)):  # noqa: B905
        out[i] = a - b
    return out


@program(PAIRS)
def reversed_iteration(x, y):
    value = 0.0
    for v in reversed(x):
        value = value * 0.5 + v
    for i in reversed(range(3)):
        value = value * 2 + i
    return value


@program([(arr("f8", 3, 2),), (arr("i4", 2, 3, layout="F"),)])
def iterated_rows(a):
    total = np.zeros(a.shape[1])
    for row in a:
        total += row
    return total


@program([(1, 2.5), (arr("f8", 3), 2)])
def tuple_values(a, b):
    t = (a, b, 3)
    first, second = t[:2]
    return t[1], t[-1], len(t), (*t[::-1], b), first, second


@program([((1, 2.5),), ((arr("f8", 3), 2),), ((3, 4),)])
def tuple_argument(pair):
    a, b = pair
    return a * b, pair


@program([((1, (2, 3.5)),), ((arr("f8", 2), (arr("f8", 2, seed=1), 2)),)])
def nested_tuple_argument(tree):
    a, (b, c) = tree
    return a + b * c


@program([(2, 3.5), (1, 2)])
def loop_over_tuple(a, b):
    """Items of different types: the loop is unrolled."""
    total = 0
    for v in (a, b, 2, a * b):
        total = total + v
    return total


@program([(4,), (0,), (1,)])
def list_comprehension(n):
    return np.array([i * i + 0.5 for i in range(n)])


@program([(4,), (1,)])
def list_comprehension_as_list(n):
    return [i * 2 for i in range(n)]


@program([(arr("f8", 5), 0.0), (arr("i4", 5), 2)])
def filtered_comprehension(x, limit):
    return sum([v * 2 for v in x if v > limit])


@program([(arr("f8", 5), 0.0), (arr("i4", 5), 2)])
def generator_consumed(x, limit):
    return sum(v * v for v in x), max(abs(v) for v in x), any(v > limit for v in x), all(v < 100 for v in x)


@program([(3, 2), (2, 0)])
def nested_comprehension(n, m):
    return np.array([[i * 10 + j for j in range(m)] for i in range(n)])


@program([(arr("f8", 3), arr("f8", 2)), (arr("i4", 2), arr("i4", 2))])
def product_comprehension(x, y):
    return np.array([a * b for a in x for b in y])


@program([(arr("f8", 4), 3), (arr("f4", 4), 2)], ulp=1, fell_back=None)
def list_of_arrays(x, n):
    rows = [x * k for k in range(n)]
    return np.array(rows), rows[1], len(rows)


@program([(1, 2.5), (3, 4)])
def list_values(a, b):
    items = [a, b]
    return items[0] + items[-1], len(items), items


@program([(5,), (0,)], fell_back=None)
def list_appended(n):
    items = []
    for i in range(n):
        if i % 2:
            items.append(i * 0.5)
    return items, len(items)


@program([(3, 1.5), (0, 2.0), (2, 7)])
def list_repeated(n, value):
    return [value] * n, np.array([value] * (n + 1))


@program([(arr("f8", 3), 2), (arr("f8", 5), 1)])
def dictionary_lookup(x, k):
    weights = {1: 0.5, 2: 2.0}
    return x * weights[k]


@program([(arr("f8", 2, 3),), (arr("i4", 4, 1),)])
def shape_unpacked(a):
    rows, columns = a.shape
    out = np.empty((columns, rows))
    for i in range(rows):
        for j in range(columns):
            out[j, i] = a[i, j] * 2
    return out


@program([raising(ValueError, (1, 2, 3)), raising(ValueError, (1,))], message=True, fell_back=None)
def unpack_wrong_count(t):
    a, b = t
    return a + b


@program([raising(ValueError, arr("f8", 3)), raising(ValueError, arr("f8", 1))], message=True)
def unpack_array_of_wrong_length(x):
    a, b = x
    return a + b


@program([(arr("f8", 2),), (arr("i4", 2, 2),)])
def unpack_array(x):
    a, b = x
    return a - b


@program([raising(IndexError, (1, 2), 2), raising(IndexError, (1, 2), -3)], message=True)
def tuple_index_out_of_range(t, i):
    return t[i]


@program([((1, 2, 3), 1), ((1.5, 2, 3), -1)])
def tuple_index_by_argument(t, i):
    return t[i]


@program([((1, 2), (1, 2)), ((1, 2), (1, 3)), ((1,), (1, 2)), ((2, 0), (1, 5))])
def tuple_comparisons(s, t):
    return s == t, s != t, s < t, s + t, s * 2


@program([(3,), (0,), (1,)])
def array_of_maybe_empty_list(n):
    """np.array([]) is of float64, and of one axis, whatever the list might have held."""
    rows = np.array([[i, 1] for i in range(n)])
    return np.array([i for i in range(n)]), rows, np.array(range(n)), np.array([i for i in range(n)], dtype=np.int64)


@program([(arr("f8", 5), 3), (arr("i4", 2, 3), 0), raising(IndexError, arr("f8", 4), 5)])
def indexed_by_lists(x, n):
    return x[[i // 2 for i in range(n)]], x[range(n)], x[[i for i in range(n) if i % 2 == 0]]


MATRICES = [(arr("f8", 2, 3),), (arr("i4", 3, 2),)]


@program(MATRICES, mutates=(0,))
def list_keeps_values(x):
    """A list comprehension is computed where it stands, a generator where it is used."""
    copies = [v * 1 for v in x[0]]
    rows = [[v for v in row] for row in x]
    later = (v * 1 for v in x[0])
    x[0, 0] = 100
    return sum(copies), np.array(rows), sum(later), sum(list(x[0]))


@program(MATRICES, mutates=(0,))
def generator_in_loop(x):
    """Its items are computed one by one, between the statements of the loop."""
    total = 0
    for i, v in enumerate(x[0, j] for j in range(x.shape[1])):
        total = total * 3 + v
        x[0, -1] = i
    return total


@program(MATRICES, fell_back=None)
def used_up(x):
    pairs, values = zip(x[0], x[1]), (v for v in x[0])  # noqa: B905
    return sum(a * b for a, b in pairs), sum(1 for _ in pairs), sum(values), sum(values)


def _sum_twice(items):
    return sum(items), sum(items)


@program(MATRICES, fell_back=None, opaque=None)
def used_up_by_function(x):
    return _sum_twice(v for v in x[0]), _sum_twice([v for v in x[0]])


@program(MATRICES)
def any_stops(x):
    """Items after the one that decides are not computed."""
    return (
        any(x[0, i] < 100 for i in range(10)),
        all(x[i, j] > 100 for i in range(10) for j in range(10)),
        any(x[0, i] < 100 for i in (0, 7)),
        all(x[0, i] > 100 for i in range(10) if i < 9 or x[i, 0] > 2),
    )


@program([(np.array([1, 3, 5]), 3), (np.array([0, 4, 0, 3]), 0), raising(ZeroDivisionError, np.array([0]), -1)])
def condition_guards_element(x, n):
    counts = [100 // int(v) for v in x if v != n or n < 0]
    return np.array([100 // int(v) for v in x if v != 0]), sum(int(x[i]) for i in range(20) if i < len(x)), len(counts)


@program(MATRICES, fell_back=None, mutates=(0,))
def list_of_views(x):
    """The items are views: they show what is stored later."""
    rows = [x[i] for i in range(x.shape[0])]
    x += 1
    rows[0][1] = 77
    return np.array(rows), rows[0] + rows[1], sum(rows)


@program(MATRICES)
def list_of_views_read(x):
    rows = [x[i] for i in range(x.shape[0])]
    return rows[0] * 2, rows[-1].sum(), np.array(rows), np.array([x[:, j] for j in range(x.shape[1])])


@program([(3,), (1,), (0,)], fell_back=None)
def operators_of_lists(n):
    """What looks like arithmetic is concatenation, repetition, comparison."""
    numbers = [i for i in range(n)]
    return np.array(numbers + numbers), np.array(numbers * 2), numbers == numbers[:], numbers != [1], 2 in numbers


@program([(3,), (1,)])
def two_arrays_of_one_list(n):
    numbers = [i * 2 for i in range(n)]
    first, second = np.array(numbers), np.array(numbers)
    first[0] = 9
    return first, second, numbers


@program([(3,)], fell_back=None)
def rows_of_different_types(n):
    rows = [(i, i * 0.5) for i in range(n)]
    mixed = [i if i % 2 else 0.5 for i in range(n)]
    return rows[1][0], np.array(rows), mixed[1], np.array(mixed)


@program([(arr("f8", 2, 3),)], fell_back=None, opaque=None)
def next_of_generator(x):
    return next(i for i in range(3) if x[0, i] > -100), "".join(c for c in "abc"), sorted(-v for v in x[0])[0]


@program([raising(TypeError, 3)], fell_back=None, opaque=None)
def array_function_of_generator(n):
    return np.sum(i * 2 for i in range(n))


@program([(arr("f8", 2, 3),)])
def list_spread_out(x):
    rows = [x[i] * 2 for i in range(2)]
    a, b = rows
    return np.concatenate([x[i] for i in range(2)]), np.vstack(rows), a + b, np.stack([np.roll(x, s) for s in (-1, 1)])


@program([(arr("f8", 5),), (arr("i4", 3),)], regrouped=16)
def dict_filled_by_name(x):
    stats = {"n": len(x)}
    stats["sum"] = x.sum()
    stats["scaled"] = x * 2
    stats["n"] += 1
    if "sum" in stats and stats.get("none") is None:
        stats["sum"] *= 0.5
    for name in ("low", "high"):
        stats[name] = x.min() if name == "low" else x.max()
    last = stats.pop("high")
    del stats["low"]
    total = 0.0
    for value in stats.values():
        total += np.sum(value)
    return stats, last, total


@program([(arr("f8", 6), 3), (arr("f8", 6), 0)], regrouped=16)
def dict_changed_in_a_loop(x, n):
    best = {"at": -1, "value": 0.0}
    for i in range(n):
        if x[i] > best["value"]:
            best["at"] = i
            best["value"] = x[i]
    return best["at"], best["value"] + 0.0


@program([(30,), (2,), (0,)])
def primes_by_those_before(n):
    """A list that a loop over it changes after it has ended."""
    primes = []
    for k in range(2, n):
        for p in primes:
            if k % p == 0:
                break
        else:
            primes.append(k)
    return primes


@program([(arr("f8", 7),), (arr("f8", 0),), (arr("i8", 5),)])
def filtered(x):
    return list(filter(lambda v: v > 1, x)), sum(filter(None, x)), len(list(filter(lambda v: v < 1, x)))


@program([(np.int64(3),), (np.uint8(2),), raising(TypeError, np.float64(1))], opaque=None, fell_back=None)
def repeated_by_numpy_numbers(n):
    return [0] * n, n * (1, 2), [1.5, 2] * n


@program(
    [
        (arr("f8", 5, values=[3.0, -1.0, 0.0, -0.0, 2.0]),),
        (arr("f8", 0),),
        (arr("f8", 3, values=[1.0, np.nan, 0.0]),),
        (arr("i4", 4),),
    ]
)
def sorted_numbers(x):
    places = sorted(range(len(x)), key=lambda i: x[i])
    return sorted(x), sorted(x.tolist(), reverse=True), places, sorted([3, 1, 2])


@program([(arr("i8", 5, values=[3, 1, 2, 5, 4]),), (arr("i8", 0),)])
def sorted_by_a_key(x):
    """Equal ones keep their order, downwards too."""
    return sorted(x, key=lambda v: v % 2), sorted(x.tolist(), key=lambda v: -(v % 3), reverse=True)


@program([(arr("f8", 5, values=[3.0, -1.0, 0.0, -4.0, 2.0]),), raising(ValueError, arr("f8", 0))], message=True)
def extremes_by_a_key(x):
    return min(range(len(x)), key=lambda i: x[i]), max(x, key=abs)


@program([(arr("f8", 3),), (arr("f8", 0),)])
def extremes_or_a_default(x):
    return max((v for v in x), default=None), min(x.tolist(), default=-1), max(x, key=abs, default=0.0)


@program([(arr("f8", 2), arr("f8", 3)), (arr("f8", 0), arr("f8", 1))])
def map_over_two(x, y):
    return list(map(lambda a, b: a * b, x, y)), sum(map(max, x, y))


@program([(arr("f8", 2), arr("f8", 2)), raising(ValueError, arr("f8", 1), arr("f8", 2))], message=True)
def strict_zip(x, y):
    total = 0.0
    for a, b in zip(x, y, strict=True):
        total += a * b
    return total


@program([(arr("i8", 3, values=[4, 2, 4]), 4), raising(ValueError, arr("i8", 3), 99)], message=True)
def searched_in_a_list(x, item):
    items = []
    for v in x:
        items.append(int(v))
    first, times = items.index(item), items.count(item)
    items.remove(item)
    items.sort()
    copied = items.copy()
    items.append(0)
    return first, times, items, copied


@program([raising(ValueError, arr("i8", 3), 99)], message=True)
def not_to_be_removed(x, item):
    items = [v for v in x]
    items.remove(item)
    return items


@program([(arr("f8", 3),)], opaque=1)
def tuple_of_a_generator(x):
    return tuple(v + 1 for v in x)


@program([("same",), ("full",), ("a",), ("",)])
def part_of_a_text(mode):
    """`in` a string looks for parts of it, not for characters."""
    if mode in "same full":
        return "me" in mode, "q" not in mode
    return mode + "!" not in "same!"


@program([(arr("f8", 3), float("nan"))])
def found_by_identity(a, n):
    return n in (n, 1.0), n in [0.0, n], n not in (1.0, n), a in (a, 2.0)


@program([(arr("f8", 3, 4),), (arr("i2", 2, 3, 2),), (arr("f4", 3, 1, 2, 2),), (arr("f8", 4),)])
def rows_put_together(a):
    """Sequences of arrays whose length is known at run time only."""
    rows = [row * 2 for row in a] if a.ndim > 1 else a
    made = np.stack(a), np.stack(rows, axis=-1), np.vstack(rows), np.hstack(a), np.dstack(rows), np.column_stack(a)
    return (
        made if a.ndim == 1 else (*made, np.concatenate(a), np.concatenate(rows, axis=-1), np.concatenate(a, axis=None))
    )


@program([(arr("f8", 0, 3),)], raises=ValueError, message=True)
def no_rows_put_together(a):
    return np.concatenate(a)


@program([([1, 2, 3], 3), ([2, -5, 4], 0), ([7], 1), ([2, 2], 2)])
def extremes_of_listed_ints_by_a_key(items, k):
    return max(items, key=lambda v: -v), min(items, key=lambda v: (v - k) ** 2), max(items), min(*items, k)


@program(
    [(arr("f8", 4),), (arr("i4", 2),), (arr("f4", 5, layout="stepped"),), raising(ValueError, arr("f8", 1))],
    message=True,
)
def starred_names(x):
    first, *rest, last = x
    *most, end = x.tolist()
    return first, rest, last, most, end, sum(rest)


def _counted(total, i):
    total[0] += i
    return total[0] * 2


@program([(np.zeros(1), 6)], fell_back=None)
def elements_that_store(total, n):
    """What elements store to is one memory: they are computed one after the other."""
    total = total.copy()
    kept = [_counted(total, i) for i in range(n) if _counted(total, 1) > 3]
    some = any(_counted(total, i) > 90 for i in range(n))
    return kept, some, [_counted(total, i) for i in range(n) if i % 2], sum(_counted(total, i) for i in range(n)), total


@program([(np.ones((4, 2)),)], fell_back=None)
def lines_that_store(a):
    total = np.zeros(1)
    return np.apply_along_axis(lambda line: _counted(total, line[0]), 1, a), total


@program([(6,)])
def items_that_are_seen_once(n):
    """The condition stores, and the items are known."""
    seen = np.zeros(n, dtype=bool)

    def first_time(i):
        if seen[i]:
            return False
        seen[i] = True
        return True

    return [i for i in [1, 3, 1, 5, 3] if first_time(i)], seen


@program(
    [
        (arr("f8", 4), arr("f8", 4), 1),
        (arr("f8", 4), arr("f8", 4), -2),
        raising(IndexError, arr("f8", 4), arr("f8", 4), 2),
    ],
    mutates=(0, 1),
)
def one_of_a_tuple(a, b, k):
    made = (a * 2, b[:1])[k]
    (b, a)[k][1:] = 7
    for i in range(5):
        source, target = (a, b)[i % 2], (b, a)[i % 2]
        target[1:] = source[:-1] * 0.5 + i
    return made, (k, 1.5, "x", None)[k], (3, 5, k).count(k), [k, 2, 7].index(7)


@program([(5, 1, 3), (40, -2, 8), (0, 1, 2), (-9, -100, 100)])
def ranges_and_slices_as_results(n, i, j):
    x = range(10, n, 3) if n > 9 else range(n, -4, -2)
    parts = x[i:], x[:j], x[i:j:2], x[::-1], x[j:i:-2], x[::2][::-1]
    return x, parts, [slice(n), slice(i, None, j)], {"all": range(n)}, sum(x[1:]), [k for k in x[:-1]], np.s_[i:, ...]


@program([(1,)], opaque=None, fell_back=None)
def known_numbers_that_are_none(k):
    one, other = float("nan"), float("nan")
    return (
        math.nan in (math.nan, k),
        math.nan in (np.nan, k),
        one in {other},
        one in [k, one],
        [one].count(one),
        {one: k}.get(one),
        {one: k}[one],
        (math.nan,) == (math.nan,),
        (one, k) == (other, k),
    )


@program([(math.nan, 3), (1.5, 3), (1.5, 2)], opaque=None, fell_back=None)
def one_object_that_is_no_number(x, k):
    m = x if k > 2 else 3
    found = [x]
    for _ in range(k):
        found.append(x)
    return m in (x,), (m, k) == (x, k), (m, k) < (x, k), x in found, found.count(x), (x - x) in (x * 2, 1.5)


@program([(arr("f8", 3),)], opaque=None, fell_back=None)
def tuples_of_one_array(a):
    t = (a, 1)
    return t == t, t == (a, 1), (a,) != (a,), [a, 2] < [a, 3], a in (a, 1)
