"""Lists of numbers as arguments: from five on they are read into arrays, whatever their length."""

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

FLOATS = [i % 7 - 2.5 for i in range(50)]
INTS = [i * 37 % 101 - 30 for i in range(60)]


@program([(FLOATS,), (INTS,), (INTS[:33],), (INTS[:32],), (INTS[:6],)])
def largest_sum_of_neighbours(a):
    best = here = a[0]
    for v in a[1:]:
        here = max(v, here + v)
        best = max(best, here)
    return best, sum(a), len(a), max(a), a[-1], a[3:6], a[::-1], sorted(a)[:3], a.index(a[5]), a.count(a[0]), 5 in a


@program([(FLOATS, FLOATS), (INTS, INTS), (FLOATS, INTS)])
def products_of_two_lists(a, b):
    copied = list(a)
    copied.append(1)
    copied[0] = 7
    made = np.array(a)
    made[1] = 0
    total = 0
    for i in range(len(b)):
        total += a[i % 30] * b[i]
    return total, [x * y for x, y in zip(a, b, strict=False)], copied, made, np.asarray(b) * 2, np.mean(a), a[1]


@program([(INTS, arr("f8", 9)), raising(IndexError, INTS, arr("f8", 61))], mutates=(1,))
def stores_by_a_list(a, x):
    for i in range(len(x)):
        x[i] += a[i]


@program(
    [([*FLOATS, 1],), ([*INTS, 2**70],), ([True] * 40,), ([*INTS, None],), ([[1, 2]] * 40,), (FLOATS,)],
    fell_back=None,
    opaque=None,
)
def other_long_lists(a):
    found = 0
    for v in a:
        if v == 1:
            found += 1
    return found, len(a)


@program([(INTS,), (FLOATS,)], fell_back=None, opaque=None, mutates=(0,))
def long_lists_that_change(a):
    b = a
    a.append(3)
    b[0] = a[-1]
    a += [4]
    a.sort()
    return b, a is b, (a,), {"a": a}


@program(
    [
        ([4, 3, 0, 2, 0, -5], arr("i8", 2, 2, 2, 2, 2), arr("f8", 7)),
        ([4, 3, 2, 1, 0, -5], arr("i8", 1, 2, 3, 4, 5), arr("f8", 7)),
    ]
)
def short_lists_whose_length_decides(a, x, y):
    p, q, *rest = a
    return np.zeros(len(a)), p + q, rest, np.sum(x, tuple(a[2:4])), [v * 2 for v in a], y[:6] * a, (*a, 1)


@program([([0, 1, 2, 3, 4], arr("f8", 2, 3, 1, 1, 2)), ([4, 3, 2, 1, 0], arr("f8", 2, 3, 1, 1, 2))])
def axes_in_a_short_list(axes, x):
    return x.transpose(axes), np.ones(axes).shape


@program([([3, 1, 2, 7, 5],), ([1.5, 2.0, 3.0, 0.5, 1.0],)], fell_back=None, opaque=None, mutates=(0,))
def short_lists_that_change(a):
    a[1] = a[0]
    a.append(a[-1])
    return a


@program([([3, 1, 2, 7, 5],), (list(range(6)),), ([1, 2, 3],)], opaque=None)
def short_lists_given_to_python(a):
    return str(a), a, len(a)


# ---- long lists that arguments and variables hold --------------------------------------------------------------------

WEIGHTS = [0.5 * i for i in range(40)]


class Model:
    def __init__(self, weights):
        self.weights = weights

    def __eq__(self, other):
        return self.weights == other.weights

    __hash__ = None

    def score(self, values):
        return sum(w * v for w, v in zip(self.weights, values, strict=False))


def model(count):
    return Model([float(i * 7 % 5) for i in range(count)])


@program([({"a": [1.0] * 40, "b": [2, 3] * 40},), ({"a": [0.5] * 5, "b": [1, 2]},)])
def lists_in_a_dict(table):
    total = 0.0
    for key in table:
        for value in table[key]:
            total += value
    return total, max(table["b"]), len(table["a"]), {key: sum(values) for key, values in table.items()}


@program([lambda: (model(50), [1.0] * 50), lambda: (model(3), [1.0] * 50), lambda: (model(33), [2] * 5)])
def lists_in_attributes(one, values):
    return one.score(values), one.weights[1], one.weights[-1], np.array(one.weights).sum(), sorted(one.weights)[:2]


@program([(2.0,)])
def list_in_a_global(x):
    total = 0.0
    for weight in WEIGHTS:
        total += weight * x
    return total, len(WEIGHTS), WEIGHTS[3]


@program([lambda: (model(50),), lambda: (model(3),)], opaque=None, fell_back=None)
def list_of_an_attribute_changes(one):
    one.weights.append(2.0)
    total = 0.0
    for weight in one.weights:
        total += weight
    return total, one.weights


@program([lambda: (model(50), 2.0)], opaque=None, fell_back=None)
def list_of_an_attribute_is_another(one, x):
    before = one.weights
    one.weights = [x] * 40
    return before[1], one.weights[3], len(before), sum(one.weights), before


@program([(FLOATS, INTS), (INTS, FLOATS)])
def items_of_several_types(a, b):
    inline = []
    for values in (a, b):
        total = 0
        for value in values:
            total += value
        inline.append(total)
    largest, least = [max(v) for v in (a, b)], [min(v) for v in (a, b)]
    return inline, [sum(v) for v in (a, b)], tuple(sum(v) for v in (b, a)), largest, least


@program([(arr("f8", 5), arr("i8", 5)), (arr("f4", 5), arr("i2", 5))])
def arrays_of_several_types(x, y):
    return [sum(v) for v in (x, y)], [v.max() for v in (x, y)]
