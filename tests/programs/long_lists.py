"""Long lists of numbers as arguments: read into arrays, whatever their length."""

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

FLOATS = [i % 7 - 2.5 for i in range(50)]
INTS = [i * 37 % 101 - 30 for i in range(60)]


@program([(FLOATS,), (INTS,), (INTS[:33],), (INTS[:32],)])
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
