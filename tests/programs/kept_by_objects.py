"""Bound methods, closures and objects of the user's that keep a container which changes later; parameters whose names
are those of functions."""

import bisect
import contextlib
import copy
import functools
import io
import operator
import queue
import statistics
import string
import types
import weakref

import numpy as np

from tests.corpus import program
from tests.programs.kept import Keeper, Slotted, _keep, _last, either, identity, kept, unknown

# ---- bound methods, closures, the user's own ------------------------------------------------------------------------


@kept()
def bound_append(n):
    a = [1]
    add = a.append
    add(n)
    a.append(2)
    return a


@kept()
def bound_get(n):
    d = {1: 2}
    get = d.get
    d[n] = 7
    return get(n)


@kept()
def bound_count_and_len(n):
    a = [1, 2]
    count, length = a.count, a.__len__
    a.append(1)
    a.append(n)
    return count(1), length()


@kept()
def attribute_getter(n):
    a = [3, 1]
    get = operator.methodcaller("index", 1)
    a.insert(0, n + 5)
    return get(a)


@kept()
def lambda_over_a_list(n):
    a = [1]
    f = lambda: len(a)  # noqa: E731
    a.append(n)
    return f()


@kept()
def closures_in_a_list(n):
    a = [1]
    made = [lambda: a[-1], lambda: len(a)]
    a.append(n)
    return [f() for f in made]


@kept()
def default_argument(n):
    a = [1]

    def f(x=a):
        return len(x)

    a.append(n)
    return f(), f([])


@kept()
def nested_function_gives_back(n):
    a = [1]

    def same(v):
        return v

    b = same(a)
    a.append(n)
    return b, b is a


@kept()
def function_gives_back(n):
    a = [1]
    b = either(a)
    a.append(n)
    return len(b)


@kept()
def function_gives_back_a_default(n):
    a = {1: 1}
    b = either(None, a)
    a[n + 2] = 3
    return len(b)


@kept()
def object_of_the_user(n):
    a = [1]
    k = Keeper(a)
    a.append(n)
    return len(k.kept[0])


@kept()
def slot_of_an_object(n):
    a = {1: 1}
    k = Slotted(a)
    a[n + 2] = 2
    return len(k.kept)


@kept()
def called_object(n):
    k, a = Keeper(), [1]
    b = k(a)
    a.append(n)
    return len(b), len(k.kept[0])


@kept()
def unknown_function(n):
    a = [1]
    k = unknown(a)
    for i in range(n):
        a.append(i)
    return k, len(_last[0])


@kept()
def unknown_function_and_a_dict(n):
    d = {1: 1}
    unknown(d)
    for i in range(n):
        d[i] = i
    return len(_last[0]), _last[0] is d


@kept()
def unknown_function_and_a_set(n):
    s = {1}
    unknown(s)
    s.add(n)
    return len(_last[0])


@kept()
def unknown_function_in_a_function(n):
    def put(v):
        return unknown(v)

    a = [1]
    k = put(a)
    a.append(n)
    return k, len(_last[0])


@kept()
def unknown_function_in_a_loop(n):
    a, found = [], []
    for i in range(n):
        a.append(i)
        unknown(a)
        found.append(len(_last[0]))
    return found, len(_last[0]) if n else 0


@kept()
def rows_of_a_list(n):
    rows = [[0], [1]]
    for row in rows:
        unknown(row)
    rows[1].append(n)
    return len(_last[0])


@kept()
def row_by_its_index(n):
    rows = [[0], [1]]
    unknown(rows[0])
    rows[0].append(n)
    return _last[0]


@kept()
def rows_in_an_object_array(n):
    rows = [[0], [1, 2]]
    o = np.array(rows, dtype=object)
    rows[0].append(n)
    return len(o[0])


@kept()
def copied_and_not(n):
    rows = [[0], [1]]
    shallow, deep = copy.copy(rows), copy.deepcopy(rows)
    rows[0].append(n)
    return len(shallow[0]), len(deep[0])


@kept()
def queue_of_the_library(n):
    q, a = queue.SimpleQueue(), [1]
    q.put(a)
    a.append(n)
    return q.get()


@kept()
def exception_keeps(n):
    a = [1]
    e = ValueError(a)
    a.append(n)
    return len(e.args[0])


@kept()
def context_keeps(n):
    a = [1]
    with contextlib.nullcontext(a) as b:
        a.append(n)
        return len(b)


@kept()
def string_kept(n):
    out, a = io.StringIO(), ["a"]
    out.writelines(a)
    a.append("b" * n)
    return out.getvalue(), string.Template("$a").substitute(a=len(a))


@kept()
def weak_value(n):
    k = Keeper()
    d = weakref.WeakValueDictionary()
    d[1] = k
    k.kept.append(n)
    return d[1].kept


@kept()
def sorted_with_a_key_that_keeps(n):
    k, rows = Keeper(), [[3, 1], [1, 2]]
    ordered = sorted(rows, key=k.array)
    rows[0].append(n)
    return ordered, k.kept


@kept()
def bisected_by_a_key(n):
    a = [1, 3, 5]
    at = bisect.bisect(a, n, key=lambda v: v + len(a))
    a.append(n)
    return at, a


# ---- parameters and their spelling ----------------------------------------------------------------------------------

_objects = [lambda: (Keeper(), 3), lambda: (Keeper(), 0), lambda: (types.SimpleNamespace(array=_keep), 2)]
spelled = functools.partial(program, _objects, opaque=None, fell_back=None)


def kept_by(keeper):
    """What an object keeps."""
    return keeper.kept if isinstance(keeper, Keeper) else _last


@spelled(name="np")
def called_np(np, n):
    rows = [[0, 1], [2]]
    k = np.array(rows)
    rows[0].append(n)
    return k, kept_by(np)


@spelled(name="np_in_a_loop")
def called_np_in_a_loop(np, n):
    rows = [[] for _ in range(3)]
    np.array(rows)
    for i in range(n):
        rows[i % 3].append(i)
    return kept_by(np)


@spelled(name="np_and_a_dict")
def called_np_and_a_dict(np, n):
    rows = {1: [2], 2: [3]}
    np.array(rows)
    for i in range(n):
        rows[1].append(i)
    return kept_by(np)


@spelled(name="len_of_another_kind")
def called_len(np, n):
    len = np.array
    a = [1]
    len(a)
    a.append(n)
    return kept_by(np)


@spelled(name="sorted_of_another_kind")
def called_sorted(np, n):
    sorted = np.array
    rows = [[1]]
    sorted(rows)
    rows[0].append(n)
    return kept_by(np)


@spelled(name="heappush_of_another_kind")
def called_heappush(np, n):
    heappush = lambda a, b: np.array(a)  # noqa: E731
    a = [3]
    heappush(a, 2)
    a.append(n)
    return kept_by(np), a


@program([lambda: (Keeper(), 3), lambda: (Keeper(), 0)], opaque=None, fell_back=None)
def operators_keep(k, n):
    a, d = [1], {1: 2}
    k + a
    k[n] = d
    found = k == a, a in k
    a.append(n)
    d[n + 5] = 1
    return found, k.kept


@program([lambda: (Keeper(), 3), lambda: (Keeper(), 0)], opaque=None, fell_back=None)
def method_that_keeps_a_dict(k, n):
    d = {1: [2]}
    k.array(d)
    for i in range(n):
        d[i + 2] = [i]
    return k.kept


# ---- what functions inside keep of what they share -------------------------------------------------------------------


@kept()
def paths_kept_without_copies(n):
    """The list that is kept changes in calls that come later."""
    found, path = [], []

    def walk(k):
        if k == 0:
            found.append(path)
            return
        for i in range(2):
            path.append(i)
            walk(k - 1)

    walk(n)
    return found


@kept()
def names_and_items_of_one_list(n):
    a = [1]
    b = a
    rows = [[i] for i in range(n)]
    row = rows[0] if n else a
    for i in range(n):
        a.append(i)
        rows[0].append(i)
    b.append(9)
    return a, b, len(row), rows


@kept()
def row_put_in_before_it_changes(n):
    rows = []
    for i in range(n):
        row = [i]
        rows.append(row)
        row.append(i * 2)
    return rows


@kept()
def rows_of_copies(n):
    rows = [[i] for i in range(n + 1)]
    same, other = list(rows), [row[:] for row in rows]
    rows[0].append(5)
    return rows, same, other


@kept()
def rows_shared_by_a_copy(n):
    rows = []
    for i in range(n + 1):
        rows.append([i])
    same = copy.copy(rows)
    rows[0].append(5)
    return rows, same


@kept()
def row_in_the_middle(n):
    rows = []
    for i in range(n + 1):
        rows.append([i])
    middle = statistics.median_low(rows)
    for row in rows:
        row.append(5)
    return middle, rows


@kept()
def rows_in_tuples_shared_by_a_copy(n):
    pairs = []
    for i in range(n + 1):
        pairs.append((i, [i]))
    same = copy.copy(pairs)
    pairs[0][1].append(5)
    return pairs, same


@kept()
def item_read_before_it_changes(n):
    rows = [[1, 2], [3, 4]]
    item, row = rows[0][0], rows[1]
    rows[0][0] = n + 7
    rows[1][0] = n
    return item, row[0], rows


@kept()
def shared_by_two_cells(n):
    a, found = [0], []

    def change(i):
        nonlocal a
        found.append(a)
        a.append(i)
        if i == 2:
            a = [7]

    for i in range(n):
        change(i)
    return found, a


def identity_called_sorted(n):
    a = [3, 1, 2]
    b = sorted(a)
    b.append(n)
    return a, b


kept(name="identity_called_sorted")(
    types.FunctionType(identity_called_sorted.__code__, {**globals(), "sorted": identity}, "identity_called_sorted")
)
