"""Functions of the standard library as what they mean in Python: they are inlined as functions of the user's are.

Iterators are generators here: what goes through them gets their items one by one, and what has no end can be left.
Those that keep what they are given (`product`) take copies when they are called, as the originals do.
"""

from __future__ import annotations

import functools
import itertools
import math

from parakeet_py.library.intrinsics import hand_back, is_array, is_sequence
from parakeet_py.library.registry import helper, plain

# ---- functools -------------------------------------------------------------------------------------------------------


@plain(functools.reduce)
def reduce(function, items, *initial):
    if not initial and (is_sequence(items) or is_array(items)):
        if len(items) == 0:
            raise TypeError("reduce() of empty iterable with no initial value")
        total = items[0]
        for item in items[1:]:
            total = function(total, item)
        return total
    total = initial[0] if initial else None
    first = not initial
    for item in items:
        total = item if first else function(total, item)
        first = False
    if first:
        raise TypeError("reduce() of empty iterable with no initial value")
    return total


@helper
def partial_of(function, given, named, some):
    """functools.partial(function, *given, **named)"""
    if some:
        return lambda *args, **more: function(*given, *args, **{**named, **more})
    return lambda *args, **more: function(*given, *args, **more)


# ---- math ------------------------------------------------------------------------------------------------------------


@plain(math.prod)
def prod(items, *, start=1):
    total = start
    for item in items:
        total = total * item
    return total


@plain(math.isclose)
def isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    x, y = math.copysign(a, a), math.copysign(b, b)  # floats, of what is a real number
    rel_tol, abs_tol = math.copysign(rel_tol, rel_tol), math.copysign(abs_tol, abs_tol)
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError("tolerances must be non-negative")
    if x == y:
        return True
    if abs(x) == float("inf") or abs(y) == float("inf"):
        return False
    apart = abs(y - x)
    return apart <= abs(rel_tol * y) or apart <= abs(rel_tol * x) or apart <= abs_tol


# ---- itertools -------------------------------------------------------------------------------------------------------


@plain(itertools.accumulate)
def accumulate(items, func=None, *, initial=None):
    if initial is None and (is_sequence(items) or is_array(items)):
        if len(items) == 0:
            return
        total = items[0]
        yield total
        for item in items[1:]:
            total = total + item if func is None else func(total, item)
            yield total
        return
    total = initial
    first = initial is None
    if not first:
        yield total
    for item in items:
        if first:
            total = item
            first = False
        elif func is None:
            total = total + item
        else:
            total = func(total, item)
        yield total


@plain(itertools.chain)
def chain(*iterables):
    for items in iterables:
        yield from items


@plain(itertools.count)
def count(start=0, step=1):
    number = start
    while True:
        yield number
        number = number + step


@plain(itertools.repeat)
def repeat(item, times=None):
    if times is None:
        while True:
            yield item
    for _ in range(times):
        yield item


@plain(itertools.islice)
def islice(items, *bounds):
    start, stop, step = 0, None, 1
    if len(bounds) == 1:
        stop = bounds[0]
    else:
        start, stop, *more = bounds
        if more:
            step = more[0]
    start = 0 if start is None else start
    step = 1 if step is None else step
    if start < 0 or step < 1 or (stop is not None and stop < 0):
        hand_back("islice with bounds that are refused")
    if stop is not None and stop <= start:
        return
    wanted = start
    for place, item in enumerate(items):
        if place == wanted:
            yield item
            wanted += step
            if stop is not None and wanted >= stop:
                return


@plain(itertools.takewhile)
def takewhile(function, items):
    for item in items:
        if not function(item):
            return
        yield item


@plain(itertools.dropwhile)
def dropwhile(function, items):
    dropping = True
    for item in items:
        if dropping and function(item):
            continue
        dropping = False
        yield item


@plain(itertools.filterfalse)
def filterfalse(function, items):
    for item in items:
        wanted = item if function is None else function(item)
        if not wanted:
            yield item


@plain(itertools.compress)
def compress(data, selectors):
    for item, wanted in zip(data, selectors):
        if wanted:
            yield item


@plain(itertools.starmap)
def starmap(function, items):
    for item in items:
        yield function(*item)


@plain(itertools.pairwise)
def pairwise(items):
    if is_sequence(items) or is_array(items):
        if len(items) == 0:
            return
        last = items[0]
        for item in items[1:]:
            yield last, item
            last = item
        return
    first = True
    last = None
    for item in items:
        if not first:
            yield last, item
        last = item
        first = False


@plain(itertools.product)
def product(*iterables, repeat=1):
    pools = tuple([items if isinstance(items, range) else list(items) for items in iterables]) * repeat

    def rows():
        match len(pools):
            case 0:
                yield ()
            case 1:
                for a in pools[0]:
                    yield (a,)
            case 2:
                for a in pools[0]:
                    for b in pools[1]:
                        yield a, b
            case 3:
                for a in pools[0]:
                    for b in pools[1]:
                        for c in pools[2]:
                            yield a, b, c
            case 4:
                for a in pools[0]:
                    for b in pools[1]:
                        for c in pools[2]:
                            for d in pools[3]:
                                yield a, b, c, d
            case _:
                hand_back("a product of more than four")

    return rows()


@plain(itertools.combinations)
def combinations(items, r):
    pool = items if isinstance(items, range) else list(items)

    def rows():
        n = len(pool)
        match r:
            case 1:
                for i in range(n):
                    yield (pool[i],)
            case 2:
                for i in range(n):
                    for j in range(i + 1, n):
                        yield pool[i], pool[j]
            case 3:
                for i in range(n):
                    for j in range(i + 1, n):
                        for k in range(j + 1, n):
                            yield pool[i], pool[j], pool[k]
            case _:
                hand_back("combinations of more than three")

    return rows()


@plain(itertools.combinations_with_replacement)
def combinations_with_replacement(items, r):
    pool = items if isinstance(items, range) else list(items)

    def rows():
        n = len(pool)
        match r:
            case 1:
                for i in range(n):
                    yield (pool[i],)
            case 2:
                for i in range(n):
                    for j in range(i, n):
                        yield pool[i], pool[j]
            case _:
                hand_back("combinations with replacement of more than two")

    return rows()


@plain(itertools.permutations)
def permutations(items, r=None):
    pool = items if isinstance(items, range) else list(items)

    def rows():
        n = len(pool)
        match n if r is None else r:
            case 1:
                for i in range(n):
                    yield (pool[i],)
            case 2:
                for i in range(n):
                    for j in range(n):
                        if i != j:
                            yield pool[i], pool[j]
            case 3:
                for i in range(n):
                    for j in range(n):
                        if i != j:
                            for k in range(n):
                                if k != i and k != j:
                                    yield pool[i], pool[j], pool[k]
            case _:
                hand_back("permutations of more than three")

    return rows()
