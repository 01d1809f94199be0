"""Callees that keep a list, dict or array that they are given, which changes later: what they kept changes with it.

Most of these are left to Python as a whole; that is as right as compiling them. What must not be is that the callee has
a copy.
"""

import array
import collections
import functools
import heapq
import itertools
import types

import numpy as np

from tests.corpus import program


class Keeper:
    """Keeps what it is given, and gives it back."""

    def __init__(self, *values):
        self.kept = list(values)

    def array(self, value):
        self.kept.append(value)
        return len(value)

    def __call__(self, value):
        self.kept.append(value)
        return value

    def __add__(self, value):
        self.kept.append(value)
        return self

    def __getitem__(self, value):
        self.kept.append(value)
        return 1

    def __setitem__(self, index, value):
        self.kept.append(value)

    def __eq__(self, value):
        self.kept.append(value)
        return True

    __hash__ = None

    def __contains__(self, value):
        self.kept.append(value)
        return True

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class Slotted:
    """Keeps what it is given in a slot."""

    __slots__ = ("kept",)

    def __init__(self, kept):
        self.kept = kept


_last = []


def _keep(value):
    _last[:] = [value]
    return len(value)


def unknown(value):
    """What a string says is Python's to run."""
    return eval("_keep(value)")


def identity(value):
    """Gives back what it is given."""
    return value


def either(value, other=None):
    """Gives back one of two."""
    return value if other is None else other


def _numbers():
    return (types.SimpleNamespace(array=_keep), 3)


kept = functools.partial(program, [(3,), (0,), (5,)], opaque=None, fell_back=None)


# ---- functools, types, collections ----------------------------------------------------------------------------------


@kept()
def partial_of_len(n):
    a = [1, 2]
    p = functools.partial(len, a)
    a.append(n)
    return p()


@kept()
def partial_of_sum(n):
    a = [1, 2]
    p = functools.partial(sum, a)
    for i in range(n):
        a.append(i)
    return p(), p(10)


@kept()
def partial_of_max_and_sorted(n):
    a = [1, 2]
    p, q = functools.partial(max, a), functools.partial(sorted, a)
    a[0] = n + 5
    return p(), q()


@kept()
def partial_with_a_keyword(n):
    a = [1, 2]
    p = functools.partial(sum, start=0)
    q = functools.partial(lambda x, y: (len(x), y), y=a)
    a.append(n)
    return p(a), q(a)


@kept()
def partial_of_a_set(n):
    s = {1, 2}
    p = functools.partial(len, s)
    s.add(n + 7)
    return p()


@kept()
def partial_of_a_dict(n):
    d = {1: 2}
    p = functools.partial(d.get, 5)
    for i in range(n):
        d[i] = i
    d[5] = 9
    return p(), len(d)


@kept()
def partial_of_a_lambda(n):
    a = [1]
    p = functools.partial(lambda x, k: len(x) + k, a)
    a.append(n)
    return p(3)


@kept()
def partial_in_a_loop(n):
    a, found = [1], []
    for i in range(n):
        p = functools.partial(len, a)
        a.append(i)
        found.append(p())
    return found


@kept()
def partial_of_a_partial(n):
    a = [n]
    p = functools.partial(functools.partial(len), a)
    a.append(n)
    return p()


@kept()
def mapping_proxy_in_a_loop(n):
    d = {}
    v = types.MappingProxyType(d)
    for i in range(n):
        d[i] = i
    return len(v)


@kept()
def mapping_proxy_of_what_there_is(n):
    d = {1: 2}
    v = types.MappingProxyType(d)
    d[n + 3] = 3
    return len(v), v.get(n + 3)


@kept()
def mapping_proxy_given_on(n):
    d = {}
    v = identity(types.MappingProxyType(d))
    d[n] = 1
    return dict(v)


@kept()
def chain_map(n):
    a, d = {1: n}, {2: n}
    c = collections.ChainMap(a, d)
    a[3] = 5
    d[4] = 6
    return len(c), c[3] + c[4]


@kept()
def simple_namespace(n):
    a = [1]
    v = types.SimpleNamespace(a=a)
    a.append(n)
    return len(v.a)


@kept()
def user_list(n):
    a = [1]
    v = collections.UserDict({"a": a})
    a.append(n)
    return len(v["a"])


@kept()
def deque_of_lists(n):
    a = [1]
    q = collections.deque([a])
    a.append(n)
    return len(q[0])


@kept()
def default_dict_of_a_list(n):
    a = [1]
    d = collections.defaultdict(lambda: a)
    a.append(n)
    return len(d[3])


@kept()
def named_tuple(n):
    a = [1]
    t = collections.namedtuple("t", "a n")(a, n)
    a.append(n)
    return len(t.a)


@kept()
def reduce_gives_an_item(n):
    a, b = [1], [2, 3]
    c = functools.reduce(lambda x, y: x if len(x) > len(y) else y, [a, b])
    b.append(n)
    return c


@kept()
def method_type(n):
    a = [1]
    m = types.MethodType(len, a)
    a.append(n)
    return m()


# ---- iterators, generators, views -----------------------------------------------------------------------------------


@kept()
def iterator_of_a_list(n):
    a = [1, 2]
    it = iter(a)
    a.append(n)
    return list(it)


@kept()
def iterator_begun(n):
    a = [1, 2]
    it = iter(a)
    first = next(it)
    a.append(n)
    return first, list(it)


@kept()
def enumerated(n):
    a = [1, 2]
    e = enumerate(a)
    a[0] = n
    return list(e)


@kept()
def zipped_and_mapped(n):
    a = [1, 2]
    z, m = zip(a, a, strict=True), map(lambda v: v + 1, a)
    a.append(n)
    return list(z), list(m)


@kept()
def filtered_and_reversed(n):
    a = [1, 2, 3]
    f, r = filter(None, a), reversed(a)
    a[0] = n
    return list(f), list(r)


@kept()
def generator_expression(n):
    a = [1, 2]
    g = (v + 1 for v in a)
    a.append(n)
    return sum(g)


@kept()
def generator_function(n):
    a = [1, 2]

    def items():
        yield from a

    g = items()
    a.append(n)
    return list(g)


@kept()
def chained(n):
    a, b = [1, 2], [3]
    c = itertools.chain(a, b)
    b.append(n)
    return list(c)


@kept()
def cycled_and_sliced(n):
    a = [1, 2]
    c = itertools.islice(itertools.cycle(a), 5)
    a.append(n)
    return list(c)


@kept()
def teed(n):
    a = [1, 2]
    left, right = itertools.tee(iter(a))
    a.append(n)
    return list(left), sum(right)


@kept()
def merged(n):
    a, b = [1, 4], [2, 3]
    m = heapq.merge(a, b)
    a[1] = n + 4
    return list(m)


@kept()
def dict_views(n):
    d = {1: 2}
    keys, values, items = d.keys(), d.values(), d.items()
    d[n + 5] = 3
    return len(keys), list(values), sorted(items)


@kept()
def memory_view(n):
    b = bytearray(b"abc")
    m = memoryview(b)
    b[0] = 100 + n
    return m[0], bytes(m)


@kept()
def buffer_of_a_bytearray(n):
    b = bytearray(8)
    x = np.frombuffer(b, np.uint8)
    b[3] = n + 1
    return int(x[3]), len(b)


@kept()
def array_of_the_library(n):
    b = array.array("d", [1.0, 2.0])
    x = np.frombuffer(b)
    b[0] = n
    return float(x[0])
