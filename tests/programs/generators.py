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


# ---- iterators that leave the block in which they are made -----------------------------------------------------------


@program([(arr("f8", 5),), (arr("i8", 3),)], fell_back=True)
def used_again_behind_a_try(x):
    try:
        given = (v * 2 for v in x)
        total = sum(given)
    except ValueError:
        total = 0
    return total, sum(given)


@program([(arr("f8", 5),)], fell_back=True)
def a_map_used_again_behind_a_try(x):
    try:
        given = map(abs, x)
    except ValueError:
        return -1
    return sum(given), sum(given)


@program([(arr("f8", 5),)], mutates=(0,), fell_back=True)
def a_filter_used_again_behind_a_try(x):
    try:
        given = filter(None, x)
        total = sum(given)
    finally:
        x[0] += 1
    return total, list(given)


@program([(arr("f8", 5),)], mutates=(0,))
def used_once_behind_a_try(x):
    try:
        given = (v * 2 for v in x)
    except ValueError:
        return -1.0
    x[0] = 100
    return sum(given)


@program([(arr("f8", 3, 2),)])
def next_in_a_try(x):
    try:
        given = (v * 2 for v in x[0])
        first = next(given)
    except TypeError:
        first = -1.0
    return first


@program([(arr("f8", 5), 1), (arr("f8", 5), 0)])
def generators_of_two_paths(x, c):
    if c:
        k = x[1] * 2
        given = _multiples(x, k)
    else:
        given = _multiples(x, 3.0)
    return sum(given)


def _multiples(x, k):
    for v in x:
        yield v * k


def _sums(x, k):
    for v in x:
        yield v + k


@program([(arr("f8", 5), 1), (arr("f8", 5), 0)], fell_back=True)
def other_generators_of_two_paths(x, c):
    given = _multiples(x, 2) if c else _sums(x, 3)
    return sum(given)


@program([(arr("f8", 5), 1), (arr("f8", 5), 0)], fell_back=True)
def conditional_generators_of_two_paths(x, c):
    if c:
        given = (v for v in x if v > 1)
    else:
        given = (v for v in x)
    return sum(given)


@program([(arr("f8", 5),)], fell_back=True)
def held_by_a_tuple(x):
    held = ((v for v in x), 1)
    return sum(held[0]), sum(held[0])


@program([(arr("f8", 5),)], fell_back=True)
def held_by_a_dict(x):
    held = {"given": zip(x, x, strict=False)}
    total = 0.0
    for _ in range(2):
        for a, b in held["given"]:
            total += a * b
    return total


@program([(arr("f8", 5),)], fell_back=True)
def appended_to_a_list(x):
    held = []
    held.append(v for v in x)
    return sum(held[0]), sum(held[0])


@program([(arr("f8", 5),)], fell_back=True)
def under_two_names(x):
    given = (v for v in x)
    other = given
    return sum(given) + sum(other)


@program([raising(TypeError, arr("f8", 5))], fell_back=None, message=True)
def length_of_a_generator(x):
    return len(v for v in x)


@program([raising(TypeError, arr("f8", 5))], fell_back=None, message=True)
def item_of_a_generator(x):
    given = (v for v in x)
    return given[0]


@program([raising(TypeError, arr("f8", 5))], fell_back=None, message=True)
def item_of_a_map(x):
    return map(lambda a, b: a + b * x[1], (1, 2), (3, 4))[0]


@program([(arr("f8", 5),)])
def next_of_a_map_of_two(x):
    given = map(lambda a, b: a + b * x[1], (1, 2), (3, 4))
    return next(given)


@program([([4, 2, 0, 1],), ([1, 2],)], fell_back=None)
def a_step_raises_in_a_try(x):
    total = 0
    v = -1
    try:
        given = (8 // v for v in x)
        for v in given:
            total += v
    except ZeroDivisionError:
        return total, v
    return total


@program([([4, 2, 0, 1], [1, 2, 3]), ([1, 2], [4, 5])], fell_back=None)
def a_step_of_several_raises_in_a_try(x, y):
    total = 0
    i, a, b = -1, -1, -1
    try:
        for i, (a, b) in enumerate(zip((8 // v for v in x), y, strict=False)):
            total += i * a + b
    except ZeroDivisionError as error:
        return total, i, a, b, str(error)
    return total


@program([([4, 2, 0, 1],), ([1, 2],)], fell_back=None)
def a_step_raises_in_a_nested_function(x):
    def added(given):
        total = 0
        try:
            for v in given:
                total += v
        except ZeroDivisionError:
            total = -total
        return total

    return added(8 // v for v in x), added(v for v in x)


@program([(4, 2, 0), (4, 2, 1), raising(ZeroDivisionError, 4, 0, 2)], fell_back=None)
def a_step_that_zip_does_not_reach(a, b, c):
    total = 0
    for i, j in zip((8 // v for v in (a, b, c)), (1,), strict=False):
        total += i * j
    return total


@program([([1, 2], [1, 2, 3]), ([1, 2, 3], [1, 2]), ([], [1])], opaque=None, fell_back=None)
def steps_of_a_zip_are_counted(x, y):
    steps = np.zeros(2)

    def taken(place, value):
        steps[place] += 1
        return value

    pairs = [p * q for p, q in zip((taken(0, v) for v in x), (taken(1, v) for v in y))]  # noqa: B905
    for number, value in enumerate(taken(0, v) for v in y):
        pairs.append(number + value * steps[0])
    return pairs, steps


@program(
    [
        (arr("f8", 2), 0, None),
        (arr("i8", 2), 2, True),
        (arr("f8", 0), 0, 1),
        raising(ZeroDivisionError, arr("i8", 2), 0, 1),
    ]
)
def inner_loops_over_what_may_raise(x, m, k):
    return [w for v in x if k for w in (v, 5 // m)], [w for v in x if k for w in range(5 // m)]


@program([(arr("i8", 4, values=[5, 0, 7, -2]), k) for k in range(4)] + [(arr("f8", 0), 1)], opaque=None, fell_back=None)
def iterators_made_inside_try(x, k):
    try:
        g = (v * 2 for v in x)
        m = map(lambda v: v + k, x)
        f = filter(lambda v: v > 2, x)
        z = zip(x, range(k))  # noqa: B905
        first = next(g) if k == 1 else None
    except StopIteration:
        return "empty", list(m), sum(f), list(z)
    finally:
        k += 1
    try:
        q = (10 // v for v in x)
        head = next(q)
        rest = list(q)
    except ZeroDivisionError as error:
        head, rest = str(error), list(q)
    except StopIteration:
        head, rest = None, []
    a = next(z, "none")
    return first, sum(g), list(g), list(m), list(m), sum(f), sum(f), a, list(z), list(z), head, rest, k
