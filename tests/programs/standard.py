"""Functions of the standard library that compiled code calls: itertools, functools, operator, math."""

import functools
import itertools
import math
import operator
from functools import partial, reduce
from itertools import accumulate, combinations, count, islice, pairwise, product

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

NUMBERS = [3, 1, 2, 5, 4]


@program([(3,), (0,), (1,)])
def grid_points(n):
    total = 0
    for i, j in product(range(n), range(2, n + 2)):
        if i + j > 5:
            break
        total += i * j
    for i, j, k in product(range(n), repeat=3):
        total += i + j * k
    return total, list(product((1, 2), "ab")), sum(1 for _ in product())


@program([(NUMBERS,), ([1.5, -2.5],), ([],), (arr("f8", 5),)])
def pairs_of_items(items):
    best, steps = 0, []
    for a, b in combinations(items, 2):
        best = max(best, abs(a - b))
    for a, b in pairwise(items):
        steps.append(b - a)
    return best, steps, sum(1 for _ in itertools.permutations(items, 2))


@program([(NUMBERS,), ([1, 2.5],), ([],), (arr("f8", 4),), (arr("i4", 3),)])
def running_totals(items):
    return (
        list(accumulate(items)),
        list(accumulate(items, max)),
        list(accumulate(items, operator.mul)),
        list(accumulate(items, lambda a, b: a * b, initial=2)),
    )


@program([(NUMBERS, 3), ([], 0), ((1, 2), 7)])
def parts_of_iterators(items, n):
    low = [v for v in islice(count(5), n)] if n < 5 else None
    taken = list(itertools.takewhile(lambda v: v != 2, items)), list(itertools.dropwhile(lambda v: v != 2, items))
    odd = list(itertools.filterfalse(lambda v: v % 2 == 0, items)), list(itertools.compress(items, [1, 0, 1]))
    return low, list(islice(items, 1, 4)), list(islice(items, 0, None, 2)), taken, odd


@program([(NUMBERS, 2), ([], 0)])
def joined_iterators(items, n):
    total = 0
    for v in itertools.chain(items, [10, 20], range(n)):
        total = total * 3 + v
    return total, list(itertools.repeat(1.5, n)), list(itertools.starmap(pow, [(2, 3), (3, 2)]))


@program([(NUMBERS,), ([7],), ([1, 2.5],), (arr("f8", 4),), raising(TypeError, [])], message=True)
def reduced(items):
    return reduce(lambda a, b: a * 2 + b, items), reduce(operator.add, items, 10), functools.reduce(max, items)


@program([(NUMBERS, 3), ([1.5], 2)])
def partly_applied(items, k):
    def line(a, b, c=1):
        return a * b + c

    scaled, shifted = partial(line, k), partial(line, b=k, c=0)
    return [scaled(v) for v in items], shifted(2), scaled(4, c=5), list(map(scaled, items))


@program([(3, 2), (7, -2), (2.5, 2)])
def operators_by_name(a, b):
    both = operator.add(a, b), operator.sub(a, b), operator.mul(a, b), operator.truediv(a, b), operator.floordiv(a, b)
    tests = operator.lt(a, b), operator.ge(a, b), operator.eq(a, b), operator.not_(a), operator.truth(b)
    return both, tests, operator.mod(a, b), operator.neg(a), operator.abs(b), operator.pow(a, 2), operator.iadd(a, 1)


@program([(arr("f8", 3, 3),)])
def operators_of_arrays(x):
    rows = [(0, 5), (2, -1), (1, 3)]
    first = operator.itemgetter(1)
    found = operator.matmul(x, x), operator.getitem(x, (slice(None), 1)), operator.itemgetter(0, 2)(x)
    return found, max(rows, key=first), [first(row) for row in rows]


@program([(NUMBERS,), ([0.1] * 4,), ([],), (arr("f8", 3),)])
def products_of_items(items):
    return math.prod(items), math.prod(items, start=0.5)


@program([(1.0, 1.0 + 1e-10), (1, 2), (float("inf"), 1.0), (float("nan"), 1.0), (0.0, 1e-12)])
def close(a, b):
    return math.isclose(a, b), math.isclose(a, b, abs_tol=1e-9), math.isclose(a, b, rel_tol=0.5)


@program([(arr("f8", 3),)], mutates=(0,))
def kept_by_product(x):
    """A product holds the items that there were."""
    total = 0.0
    for a, b in product(x, x):
        x[0] += 1.0
        total += a * b
    return total


@program([(arr("f8", 6),)])
def products_of_pairs(x):
    return np.array([x[i] * x[j] for i, j in combinations(range(4), 2)])
