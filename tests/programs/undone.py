"""Calls that only Python can finish, after compiled code has stored into arguments: what was stored is undone first."""

from dataclasses import dataclass

import numpy as np

from tests.arrays import arr
from tests.corpus import Case, program, raising


@dataclass
class Clock:
    t: float


@program(
    [(arr("i8", 4), False), raising(np._core._exceptions._UFuncOutputCastingError, arr("i8", 4), True)],
    message=True,
    mutates=(0,),
)
def casting_error_by_path(a, wide):
    a[0] = 5
    s = 1
    if wide:
        s = 2.5
    a[1:3] -= s


@program([(arr("i8", 4), 3), (arr("i8", 4), 0)], mutates=(0,))
def array_of_a_list_that_stays_empty(a, n):
    a[::2] = 7
    found = []
    for i in range(n):
        found.append(i)
    return np.array(found)


@program(
    [(arr("f8", 4), 1), (arr("f8", 4), np.int64(2)), raising(KeyError, arr("f8", 4), np.int64(7))],
    message=True,
    mutates=(0,),
)
def key_that_is_not_there(a, key):
    a += 1
    squares = {}
    for i in range(3):
        squares[i] = i * i
    return squares[key]


@program(
    [raising(ValueError, arr("f8", 2, 3, layout="F"), arr("f8", 4), arr("f8", n)) for n in (3, 5)]
    + [(arr("f8", 2, 3, layout="F"), arr("f8", 4), arr("f8", 4))],
    message=True,
    mutates=(0,),
)
def lines_of_unequal_length(a, x, y):
    a *= 2
    total = 0.0
    for one, other in zip(x, y, strict=True):
        a[1, 1] = other
        total += one * other
    return total


@program([(arr("f8", 3), 2, 3), (arr("f8", 3), 2, -1), (arr("f8", 0), 2, -1)], mutates=(0,))
def power_after_a_store(x, base, exponent):
    x[...] = base
    return base**exponent


@program(
    [(arr("f8", n, n, layout="readonly"), arr("i8", 2, 2)) for n in (0, 2)],
    mutates=(1,),
    opaque=None,
    fell_back=None,
)
def read_only_beside_what_is_undone(a, b):
    b[0] += 3
    return a, sum(x * 2 for p, x in np.ndenumerate(a))


@program([(arr("f8", 0, 0, layout="readonly"), arr("i8", 2, 2))] * 3, mutates=(1,), opaque=None, fell_back=None)
def read_only_that_python_may_see(a, b):
    b[0] += 3
    total = sum(p[0] * x for p, x in np.ndenumerate(a))  # of nothing: an int, as only Python finds
    for _ in enumerate(range(2)):
        return a
    return total


@program(
    [
        Case(lambda k=k: (Clock(0.5), np.arange(3, dtype="u4"), k), {}, None if k > 0 else OverflowError)
        for k in (1, -1)
    ],
    message=True,
    mutates=(0, 1),
)
def attribute_before_an_exception(clock, a, k):
    clock.t += k
    a[0] -= k


@program([lambda: (Clock(np.arange(3.0)), 2), lambda: (Clock(np.arange(6).reshape(2, 3).T), 1)], mutates=(0,))
def attribute_becomes_a_view_of_itself(clock, k):
    clock.t = clock.t[1:]
    clock.t[0] = k


RAISING = [Case(lambda k=k: (Clock(0.5), k), {}, None if k < 6 else ValueError) for k in (4, 2, 50, 3, 60)]


@program(RAISING, message=True, mutates=(0,), opaque=None)
def attribute_before_python_raises(clock, k):
    for i in range(2):
        clock.t += i + 1
    total = 0
    for i in range(k):
        total += i * i
    return np.partition(np.arange(6), k)[1], total


@program(RAISING, message=True, mutates=(0,), opaque=None)
def attribute_in_the_iteration_before(clock, k):
    total = 0
    for i in range(k):
        total += np.partition(np.arange(6), i)[0]
        clock.t *= 2
    return total


@program(RAISING, message=True, mutates=(0,), opaque=None)
def attribute_of_an_inner_function(clock, k):
    def last(x):
        clock.t += x
        return np.partition(np.arange(6), x)[0]

    total = 0
    for i in range(k):
        total += i * i
    return last(k) + total


@program(RAISING, message=True, mutates=(0,), opaque=None, fell_back=None)
def attribute_before_another_exception_is_caught(clock, k):
    clock.t = 2.5
    try:
        part = np.partition(np.arange(6), k)
    except TypeError:
        part = None
    clock.t += 1
    return part
