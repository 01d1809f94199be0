"""Generator functions that are called and gone through by compiled code."""

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising


def _squares(n):
    for i in range(n):
        yield i * i


def _fibonacci(limit):
    a, b = 0, 1
    while a < limit:
        yield a
        a, b = b, a + b


def _naturals():
    n = 0
    while True:
        yield n
        n += 1


def _even(items):
    for v in items:
        if v % 2 == 0:
            yield v


def _some(x):
    yield x
    yield x * 0.5
    if x > 2:
        return
    yield -1
    yield from range(3)


@program([(50,), (0,), (1,)])
def gone_through(n):
    total = count = 0
    for v in _fibonacci(n):
        if v % 2:
            continue
        total += v
        count += 1
    return total, count


@program([(0,), (1,), (10,)])
def left_early(n):
    total = 0
    for k in _naturals():
        if k >= n:
            break
        total += k
    else:
        total = -1
    for k in _naturals():
        if k * k > n:
            return total, k


@program([(5,), (0,)])
def consumed(n):
    lists = list(_squares(n)), sorted(-v for v in _squares(n)), [v + 1 for v in _even(_squares(n))]
    return lists, sum(_squares(n)), max(_squares(n + 1)), min(_even(_squares(n)), default=7)


@program([(5,), (0,)])
def consumed_in_part(n):
    some = any(v > 3 for v in _squares(n)), all(v < 3 for v in _naturals())
    return some, next(v for v in _naturals() if v > n), next((v for v in _squares(n) if v > 9), -1)


@program([(1,), (3,), (2.5,)])
def items_of_several_types(x):
    total = 0
    for v in _some(x):
        total += v
    return total, [v for v in _some(x)] if x == 2.5 else None


@program([(7,), (0,)])
def numbered_items(n):
    total = 0
    for place, v in enumerate(_squares(n), 1):
        total += place * v
        if place > 4:
            break
    return total


@program([(arr("f8", 6), 2), (arr("f8", 6), 7)], mutates=(0,))
def windows_of_an_array(x, k):
    def windows():
        for i in range(len(x) - k + 1):
            yield x[i : i + k]

    found = []
    for window in windows():
        found.append(window.mean())
        window[0] += 1.0
    return np.array(found), [w.sum() for w in windows()]


@program([(arr("f8", 5),)], mutates=(0,))
def turns_in_order(x):
    """Both sides store to one array, item by item."""

    def items():
        for i in range(len(x)):
            x[i] += 1
            yield x[i]

    total = 0.0
    for v in items():
        total = total * 0.5 + v
        x[-1] += v
    return total


@program([(arr("f8", 2, 3),)])
def nested_generators(x):
    def cells():
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                yield i, j

    total = 0.0
    for i, j in cells():
        for v in _squares(j):
            total += x[i, j] * v
    return total, [i * 10 + j for i, j in cells()], {(i, j): x[i, j] for i, j in cells()}


@program([raising(ValueError, 3), (9,)], message=True)
def raised_in_a_generator(n):
    def items():
        for i in range(5):
            if i == n:
                raise ValueError(f"at {i}")
            yield i

    total = 0
    for v in items():
        total += v
    return total


@program([(0,), (4,)])
def several_conditions(n):
    pairs = ((i, j) for i in range(n) if i % 2 for j in range(i) if j != 1)
    total = 0
    for i, j in pairs:
        total += 10 * i + j
    return total


@program([(3,)], fell_back=True)
def captured_by_reference(n):
    k = 1

    def items():
        for i in range(n):
            yield i * k

    given = items()
    k = 10
    return list(given)


@program([(3,)], fell_back=True)
def used_twice(n):
    given = _squares(n)
    return sum(given), sum(given)


@program([(3,)], fell_back=True)
def through_itself(n):
    def tree(k):
        if k > 0:
            for v in tree(k - 1):  # noqa: UP028  which has no form in bytecode yet
                yield v
            yield k

    return list(tree(n))


@program([(arr("b1"), 4), (arr("b1", 3), 0)])
def sum_of_some_beside_a_count(b, k):
    return sum(i * i for i in range(k) if i % 2), np.count_nonzero(b[...], axis=-1)
