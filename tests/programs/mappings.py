"""Dicts and sets with keys computed at run time."""

import collections
from collections import Counter, defaultdict

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

SOME = arr("i8", 6, values=[1, 2, 1, 3, 2, 2])
NONE = arr("i8", 0)


@program([(SOME,), (NONE,)])
def counted(x):
    counts = {}
    for v in x:
        counts[v] = counts.get(v, 0) + 1
    return counts


@program([(SOME,), (NONE,)])
def most_frequent(x):
    counts = {}
    for v in x:
        k = int(v)
        if k in counts:
            counts[k] += 1
        else:
            counts[k] = 1
    best, times = None, 0
    for k, n in counts.items():
        if n > times:
            best, times = k, n
    return best, times, sum(counts.values()), [k for k in counts if counts[k] > 1]


@program([(SOME,), raising(KeyError, NONE)], message=True)
def missing_key(x):
    table = {}
    for v in x:
        table[int(v)] = 0.5
    total = 0.0
    for i in range(1, 4):
        total += table[i]
    return total


@program([(SOME,), (NONE,)])
def missing_key_caught(x):
    counts = {}
    for v in x:
        try:
            counts[int(v)] += 1
        except KeyError:
            counts[int(v)] = 1
    return counts


@program([(150,), (0,)])
def many_keys(n):
    table = {}
    k = 1
    for i in range(n):
        k = (k * 7919) % 10007
        table[-k * 1000003] = i
    checksum = 0
    for a, b in table.items():
        checksum = (checksum * 31 + a * b) % 1000003
    return checksum, len(table)


@program([(6,), (1,)])
def paths_in_a_grid(n):
    memo = {}
    for i in range(n):
        for j in range(n):
            memo[i, j] = 1 if i == 0 or j == 0 else memo[i - 1, j] + memo[i, j - 1]
    return memo[n - 1, n - 1], len(memo), (0, 0) in memo, (9, 9) in memo


@program([(SOME,), (NONE,)])
def keys_removed(x):
    table = {}
    for i in range(len(x)):
        table[int(x[i])] = (i, x[i] * 0.5)
    taken = (-1, 0.0)
    if 2 in table:
        del table[2]  # noqa: RUF051
    if 3 in table:
        taken = table.pop(3)
    table[2] = (100, -1.0)
    return table, taken


@program([(SOME,), (NONE,)])
def first_places(x):
    first = {}
    total = 0
    for i in range(len(x)):
        total += first.setdefault(int(x[i]), i)
        if len(first) > 2:
            first.clear()
    return first, total


@program([(SOME,), (arr("i8", 3),)])
def any_twice(x):
    seen = set()
    for v in x:
        if v in seen:
            return True
        seen.add(v)
    return False


@program([(10,), (1,)])
def reached(n):
    seen = {0}
    stack = [0]
    order = 0
    while stack:
        u = stack.pop()
        for v in (2 * u + 1, 2 * u + 2):
            if v < n and v not in seen:
                seen.add(v)
                stack.append(v)
                order = order * 7 + v
    return len(seen), order, seen


@program([(SOME,), (NONE,)])
def struck_out(x):
    left = set(range(6))
    for v in x:
        left.discard(int(v))
    left.add(77)
    left.remove(77)
    return len(left), 1 in left, 0 in left


@program([(SOME,), raising(KeyError, NONE)], message=True)
def struck_out_twice(x):
    left = {5, len(x)}
    left.remove(6)
    return len(left)


@program([(SOME,), (NONE,)])
def sets_of_arrays(x):
    return len(set(x)), len({v % 2 for v in x}), 3 in set(x.tolist()), sorted(set(x.tolist()) | {9})


@program([("x",), ("z",)])
def among_constants(name):
    return name in {"x", "y"}, name not in {"x"}


@program([(SOME, 1), (SOME, 5), (NONE, 0)])
def known_keys_first(x, k):
    table = {0: 10, 1: 20}
    if len(x):
        table[int(x[3])] = 30
    return table, table.get(k), table.get(k, -1)


@program([(4,)])
def list_of_a_list(n):
    one = []
    for i in range(n):
        one.append(i)
    other = list(one)
    one[0] = 100
    return other, one, np.array(one)


@program([(SOME,), (NONE,)])
def list_of_tuples(x):
    found = []
    for i in range(len(x)):
        found.append((i, x[i] * 0.5))
    return found


@program([(SOME,)], fell_back=True)
def order_of_a_set(x):
    items = set()
    for v in x:
        items.add(int(v) * 17)
    text = 0
    for v in items:
        text = text * 1000 + v
    return text


@program([(np.array([2.5, 7.0, 11.0, 15.5]), 9.5), (np.array([0.0, -0.0, 3.0]), 3.0), (np.arange(0.0), 1.0)])
def floats_as_keys(a, target):
    seen = {}
    for i in range(len(a)):
        if target - a[i] in seen:
            return seen[target - a[i]], i
        seen[a[i]] = i
    return len(seen), -1


@program([(arr("f8", 9), 2.0), (arr("f4", 5), 1.0), (np.array([0.0, -0.0, 1.0, -1.0]), 1.0)])
def counted_floats(a, k):
    counts = {}
    for x in a:
        y = x * 0 if x < k else x
        counts[y] = counts.get(y, 0) + 1
    return counts, len(counts)


@program([(arr("f8", 6),), (np.array([1.0, 1.0, 2.0]),)])
def pairs_with_floats(a):
    best = {}
    seen = set()
    for i in range(len(a)):
        best[i % 2, a[i]] = i
        seen.add(abs(a[i]))
    return best, len(seen), 1.0 in seen


@program([(np.array([1.0, np.nan, np.nan]),)])
def a_nan_as_a_key(a):
    counts = {}
    for x in a:
        counts[x] = counts.get(x, 0) + 1
    return len(counts), sum(counts.values())


@program([(SOME, arr("f8", 6)), (SOME, arr("f8", 3)), (NONE, SOME)])
def dict_of_pairs(keys, values):
    return dict(zip(keys, values, strict=False)), dict(enumerate(values)), dict(enumerate(keys, 4))


@program([([1, 5, 2, 1, 5, 1],), (np.array([1, 5, 2, 1]),)])
def counted_one_by_one(xs):
    c = Counter()
    for x in xs:
        c[x] += 1
    return sorted(c.items()), c[77], len(c), 1 in c


@program([([1, 5, 2, 1, 5, 1],), (np.array([1, 5, 2, 1]),)])
def counted_at_once(xs):
    c = collections.Counter(xs)
    return c.most_common(1)[0][0], c.most_common(), c.most_common(2)


@program([([1, 5, 2, 1, 5, 1],)])
def most_common_of_all(xs):
    c = Counter(xs)
    best = max(c, key=c.get)
    top = max(c.values())
    return best, [k for k in c if c[k] == top], sorted(c.items(), key=lambda kv: (-kv[1], kv[0]))


@program([("hello world",)])
def counted_letters(s):
    c = Counter(s)
    return c["l"], len(c), c["z"], sum(c.values())


@program([([1, 5, 2, 1, 5, 1],), ([4],)])
def sums_of_classes(xs):
    d = defaultdict(int)
    for x in xs:
        d[x % 3] += x
    return dict(d), max(d.values()), sum(d.values())


@program([(np.array([1, 5, 2, 1]),), (np.array([1.5, 2.5, 1.5]),)])
def sums_by_float(xs):
    d = defaultdict(float)
    for x in xs:
        d[x] += x * 0.5
    return sorted(d), dict(d)


@program([(np.array([1, 5, 2, 1]),)])
def defaults_that_stay(xs):
    d = defaultdict(int)
    t = 0
    for x in xs:
        t += d[x + 1]
        d[x] += len(d)
    return t, len(d), list(d.items()), sorted(d, key=lambda k: d.get(k, 0)), 3 in d


@program([(np.array([1, 5, 2, 1]),)])
def defaults_of_a_lambda(xs):
    d = defaultdict(lambda: 10)
    for x in xs:
        d[x] -= 1
    k = xs[0]
    while d[k] > 5:
        d[k] -= 2
    return list(d.values()), list(d)


@program([(np.array([[0, 1], [1, 2], [0, 1]]),)])
def counted_pairs(edges):
    d = defaultdict(int)
    for a, b in edges:
        d[(a, b)] += 1
        d[(b, a)] += 1
    return sorted(d.items())


@program([(np.array([1, 5, 2, 1]),)])
def deleted_while_listed(xs):
    d = {}
    for x in xs:
        d[x] = d.get(x, 0) + 1
    for k in list(d):
        if d[k] == 1:
            del d[k]
    last = d.pop(1)
    return d, last


@program([([1, 5, 2],)], opaque=None)
def counter_given_back(xs):
    return Counter(xs)


@program([(np.array([1, 2, 3]), np.array([3, 4, 2])), (np.array([1, 2]), np.array([2, 1, 1])), (NONE, SOME)])
def sets_of_two(a, b):
    s, t = set(a), set(b)
    sizes = len(s & t), len(s | t), len(s ^ t), sum(s)
    return sizes, sorted(s - t), sorted(s ^ t), s <= t, s < t, s == t, s != t, s >= t, s > t, max(t)


@program([([1, 2, 3], [3, 4, 2]), ([5], [5])])
def sets_by_methods(a, b):
    s, t = set(a), set(b)
    parts = sorted(s.intersection(t)), sorted(s.union(t)), len(s.difference(t)), min(s.symmetric_difference({9}))
    return parts, s.issubset(t), s.issuperset(t), s.isdisjoint(t), 2 in s & t


@program([(4, 5), (0, 3), (3, 0), (0, 0), (6, 6)])
def sets_of_pairs_and_floats(n, m):
    """Operators on sets whose items have several columns, or are floats (two zeros are one), or that are empty."""
    pairs, others = set(), set()
    halves, quarters = set(), set()
    for k in range(n):
        pairs.add((k, 2 * k))
        halves.add(-0.5 * k)
    for k in range(m):
        others.add((k, 3 * k))
        quarters.add(0.25 * k - 1.0)
    one = len(pairs | others), sorted(pairs & others), sorted(others - pairs), sorted(pairs ^ others)
    two = len(halves | quarters), sorted(quarters & halves), sorted(halves - quarters), sorted(halves ^ quarters)
    tests = pairs <= others, pairs < others, pairs == others, halves >= quarters, halves != quarters
    return one, two, tests, (0, 0) in pairs & others, -0.5 in halves | quarters, 7.0 in halves ^ quarters


@program([(5, 11), (7, 3)])
def fewest_parts(n, amount):
    fewest = [0] + [float("inf")] * amount
    for a in range(1, amount + 1):
        for c in (1, 2, n):
            if c <= a:
                fewest[a] = min(fewest[a], fewest[a - c] + 1)
    return fewest[amount], fewest


@program([(6,), (3,)], fell_back=True)
def defaults_that_stay_after_an_exception(n):
    d = defaultdict(int)
    try:
        d[n] += int("x") if n > 5 else 1
    except ValueError:
        n = -1
    return dict(d), n


@program([(arr("i8", 7, values=[3, 1, 2, 3, 1, -4, 4]),), (arr("i4", 3, values=[5, 5, 5]),)])
def sets_without_their_order(x):
    """What is asked of the items of a set does not depend on the order in which it is gone through."""
    seen = set()
    for v in x:
        seen.add(int(v))
    longest = 0
    for v in x:
        if int(v) - 1 not in seen:
            length = 1
            while int(v) + length in seen:
                length += 1
            longest = max(longest, length)
    first = sum(v * v for v in seen), max(2 * v for v in seen), min(v for v in seen if v > 0), longest
    return (
        first,
        any(v == 2 for v in seen),
        all(v > -9 for v in seen),
        sorted(abs(v) for v in seen if v + 1 not in seen),
    )


@program([(arr("i8", 4, values=[3, 1, 2, 8]),)], fell_back=None, opaque=None)
def sets_in_their_order(x):
    seen = set(x.tolist())
    return sum(v / 3 for v in seen), max((v for v in seen), key=lambda v: v % 2), sum(9 // v for v in seen)


@program([(np.array([1.5, 3.0]), k) for k in (0, 2)], opaque=None, fell_back=None, raises=TypeError, message=True)
def looked_for_without_a_hash(x, k):
    return np.where(k > 1, x[0], 0.5) in {0: 1, 1: 2}


@program([(np.array([1.5, 3.0]), k) for k in (0, 2)], opaque=None, fell_back=None)
def looked_for_in_lists_and_dicts(x, k):
    some = {0: 1, 2: 2}
    return k in some, (k, 1) in {(0, 1): 3}, np.where(k > 1, x[0], 0.5) in [1.5, 2], x[1] in some


@program(
    [(arr("f8", 2),), ([1, 2],), ((arr("f8", 2), 1),)], opaque=None, fell_back=None, raises=TypeError, message=True
)
def looked_for_in_a_set_written_there(x):
    return x in {1, 2}


@program([(3, 1)], opaque=None, fell_back=None, raises=TypeError, message=True)
def lists_in_a_set_written_there(x, k):
    return x in {k, (1, [k])}


@program(
    [(one, k) for one in (np.float32(0.1), 0.1, 1, True, np.int64(2**53 + 1), 2.0**53, (1, 2)) for k in (1, 3)],
    opaque=None,
    fell_back=None,
)
def equal_by_hash(x, k):
    return (
        x in {0.1, 2.0**53, k},
        x not in {k, 2**53, (1.0, 2)},
        (x, k) in {(0.1, 1), (2.0**53, k)},
        x in (0.1, 2.0**53),
    )


UNHASHABLE = ([], [1], {}, {1: 2}, {1}, arr("i8", 2), ([1],), (1, [2]), bytearray(b"a"), ["a"])


@program([(held, key) for held in ({}, {1: 2}) for key in UNHASHABLE], opaque=None, fell_back=None)
def keys_without_a_hash(held, key):
    said = []
    try:
        said.append(key in held)
    except TypeError as error:
        said.append(str(error))
    try:
        said.append({}.get(key))
    except TypeError as error:
        said.append(str(error))
    return said


@program([(key,) for key in UNHASHABLE], opaque=None, fell_back=None, raises=TypeError, message=True)
def a_dict_of_keys_without_a_hash(key):
    return {key: 1}
