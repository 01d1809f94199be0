"""Indices, steps and bounds at the ends of 64 bits, and those that are no indices: what Python makes of them."""

import math

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

LARGEST, HALF = np.uint64(2**64 - 1), np.uint64(2**63)
NO_INDEX = [raising(IndexError, LARGEST), raising(IndexError, HALF), (np.uint64(1),)]
TOO_LARGE = [raising(OverflowError, LARGEST), raising(OverflowError, HALF), (np.uint64(1),)]
TRUTHS = [raising(TypeError, np.True_), (True,), (np.int8(-1),)]


@program(NO_INDEX, message=True)
def stored_at_the_largest(i):
    y = [1, 2, 3]
    y[i] = 5
    return y


@program(NO_INDEX, message=True)
def deleted_at_the_largest(i):
    y = [1.0, 2.0, 3.0]
    del y[i]
    return y


@program(NO_INDEX, message=True)
def read_at_the_largest(i):
    y = []
    for k in range(4):
        y.append(k * 1.5)
    return y[i]


@program(NO_INDEX, message=True)
def changed_at_the_largest(i):
    y = []
    for k in range(4):
        y.append(k * 1.5)
    y[i] += 2.0
    return y


@program(TOO_LARGE, message=True)
def popped_at_the_largest(i):
    y = [1, 2, 3]
    return y.pop(i), y


@program(TOO_LARGE, message=True)
def inserted_at_the_largest(i):
    y = [1, 2, 3]
    y.insert(i, 9)
    return y


@program(NO_INDEX, message=True)
def a_row_at_the_largest(i):
    rows = [[1, 2], [3], [4, 5, 6]]
    rows[1].append(7)
    return sum(rows[i])


@program(NO_INDEX, message=True)
def caught_at_the_largest(i):
    y = [1, 2, 3]
    try:
        y[i] = 5
    except IndexError:
        y.append(0)
        raise
    return y


@program(TRUTHS, message=True, fell_back=None)
def stored_at_a_truth(i):
    y = [1, 2, 3]
    y[i] = 5
    return y


@program(TRUTHS, message=True, fell_back=None)
def popped_at_a_truth(i):
    y = []
    for k in range(4):
        y.append(k * 1.5)
    return y.pop(i), y


@program(TRUTHS, message=True, fell_back=None)
def inserted_at_a_truth(i):
    y = []
    for k in range(4):
        y.append(k * 1.5)
    y.insert(i, 0.5)
    return y


@program([raising(OverflowError, LARGEST), raising(OverflowError, HALF), (np.uint64(4),)], message=True)
def length_of_a_long_range(n):
    return len(range(n))


@program([(np.uint64(3), LARGEST), (HALF, LARGEST), (np.uint64(0), np.uint64(3))])
def a_loop_to_the_largest(lo, hi):
    found = []
    for k in range(lo, hi):
        if len(found) > 3:
            break
        found.append(k)
    return found


@program([raising(IndexError, LARGEST), (np.uint64(2),)], message=True)
def an_item_of_a_range(i):
    return range(10)[i]


@program(
    [
        (0, 5, 2**63 - 1), (0, 5, -(2**63)), (-(2**63), 2**63 - 1, 2**63 - 1), (2**63 - 1, -(2**63), 2**63 - 1),
        (2**63 - 1, -(2**63), -(2**63)), (0, 2**63 - 1, 2**62), (-5, 2**63 - 1, 2**63 - 2), (7, 0, -3),
    ],
    fell_back=None,
)  # fmt: skip
def steps_of_a_range(start, stop, step):
    return list(range(start, stop, step)), len(range(start, stop, step))


@program([([1.0, 2.0, 3.0], 2**63 - 1), ([1.0, 2.0, 3.0], -(2**63)), ([1.0, 2.0, 3.0], -(2**63) + 1), ([1.0, 2.0], 1)])
def steps_of_a_list(y, step):
    return y[::step], y[:1:step], y[1::step]


@program([([1.0, 2.0, 3.0], LARGEST), ([1.0, 2.0, 3.0], HALF), ([1.0, 2.0, 3.0], np.uint64(2))])
def unsigned_steps_of_a_list(y, step):
    return y[::step]


@program([(np.arange(4.0),), (np.arange(6.0).reshape(3, 2),)], opaque=None)
def steps_of_an_array(x):
    return x[:: 2**63 - 1] + 0, x[:: -(2**63)] + 0, x[:: -(2**63) + 1] + 0, x[:: 2**63] + 0, x[:: -(2**63) - 1] + 0


@program([(0.0, -np.inf), (-0.0, -np.inf), (0.0, np.inf), (2.0, -np.inf), (0.0, 2.0)])
def powers_of_nothing(x, y):
    return x**y


@program([raising(OverflowError, 10.0, 400.0), raising(OverflowError, -2.0, 1e300), (2.0, 3.0)], message=True)
def powers_that_are_too_large(x, y):
    return x**y


@program(
    [
        raising(OverflowError, -(2**63), 2**63 - 1),
        raising(OverflowError, -(2**62), 2**62),
        (1, -(2**63)),
        (-3, 5),
    ],
    fell_back=None,
)
def lengths_of_wide_ranges(a, b):
    return len(range(a, b)), len(range(b))


@program(
    [(arr("f8", 3), (2,)), (arr("f8", 3), 1), raising(TypeError, arr("f8", 3), [2])],
    message=True,
    opaque=None,
)
def item_by_an_index_in_a_container(x, n):
    return x.item(n)


@program(
    [(2,), *(raising(TypeError, n) for n in ([2], (2,)))],
    message=True,
    opaque=None,
)
def integer_functions_of_containers(n):
    return math.factorial(n), math.gcd(n, 4)


@program([(3,), (np.int64(3),), raising(TypeError, True)], message=True, opaque=None)
def counts_up_to_a_truth(n):
    return np.bincount([1, 2], minlength=n)
