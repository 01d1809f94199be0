"""Statements: every kind of branch and loop, with break, continue, else and early return anywhere in a nest."""

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

NUMBERS = [(n,) for n in (0, 1, 3, 7, 10)]
VECTORS = [(arr("f8", 7), 0.5), (arr("f4", 7), 0.5), (arr("i4", 7), 2), (arr("f8", 0), 0.0), (arr("f8", 5), 100.0)]


@program([(-2,), (0,), (5,), (50,), (2.5,), (np.int32(3),)])
def if_elif_else(x):
    if x < 0:
        kind = 0
    elif x == 0:
        kind = 1
    elif x < 10:
        kind = 2
    else:
        kind = 3
    return kind


@program([(3, 4), (4, 3), (2.0, 2)])
def nested_ifs(a, b):
    if a > b:
        if a > 3:
            a = a - b
        b = a + 1
    elif a == b:
        return -1
    return a * 10 + b


@program(NUMBERS)
def while_loop(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program([*NUMBERS, (-3,)])
def while_with_break_and_else(n):
    i = 0
    while i < 5:
        if i == n:
            break
        i += 1
    else:
        return -i
    return i


@program(NUMBERS)
def while_true(n):
    total = 0
    while True:
        total += n
        if total >= 10:
            return total
        n += 1


@program(NUMBERS)
def for_range(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


@program([(0, 10, 3), (10, 0, -3), (5, 5, 1), (-4, 4, 2), (3, 0, 1)], fell_back=None)
def for_range_with_step(a, b, step):
    last = None
    count = 0
    for i in range(a, b, step):
        last = i
        count += 1
    return last, count


@program([raising(ValueError, 0)], message=True, fell_back=None)
def range_step_zero(step):
    total = 0
    for i in range(0, 4, step):
        total += i
    return total


@program(VECTORS)
def break_and_continue(x, limit):
    total = 0.0
    for v in x:
        if v < 0:
            continue
        if v > limit * 4:
            break
        total += v
    return total


@program(VECTORS)
def for_else(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            found = i
            break
    else:
        found = -1
    return found


@program(VECTORS, fell_back=None)
def early_return(x, limit):
    for i in range(x.shape[0]):
        if x[i] > limit:
            return i
    return None


@program([(arr("f8", 3, 4), 1.0), (arr("i4", 3, 4), 3), (arr("f8", 3, 4), 99.0), (arr("f8", 0, 4), 0.0)])
def return_from_two_loops(a, limit):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > limit:
                return i, j, a[i, j]
    return -1, -1, a.sum() * 0


@program([(arr("f8", 3, 4), 1.0), (arr("f8", 3, 4), 99.0)])
def inner_break_outer_else(a, limit):
    rows = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > limit:
                break
            if a[i, j] < -3:
                continue
        else:
            rows += 1
            continue
        rows += 100
    else:
        rows += 1000
    return rows


@program([(4, 3), (2, 9), (0, 1)])
def loop_variable_after_loop(n, m):
    i = -1
    for i in range(n):
        for j in range(m):
            i += j
    return i


@program([(3,), (0,)])
def loop_variable_rebound(n):
    """Rebinding the loop variable does not change the iteration."""
    seen = 0
    for i in range(n):
        i = i * 10
        seen += i
    return seen, n


@program([(5,), (0,)])
def range_bound_rebound(n):
    count = 0
    for _ in range(n):
        n = 1
        count += 1
    return count, n


@program([(True, 1), (False, 1), (True, 2.5)], fell_back=None)
def type_of_branch(flag, x):
    """An int on one path and a float on the other: each keeps its type."""
    if flag:
        y = x
    else:
        y = 0.5
    return y


@program([(3, 1), (0, 1), (2, 2.5), (2, True)])
def type_grows_in_loop(n, x):
    """An int before the loop, a float after its first round."""
    total = x
    for _ in range(n):
        total = total * 0.5
    return total


@program([(arr("f8", 4), True), (arr("f8", 4), False)], regrouped=4)
def array_or_scalar(x, flag):
    y = x * 2 if flag else x * 3
    z = np.sum(y) if flag else np.max(y)
    return y, z


@program([(3, 0), (0, 3), (2, 2)], ulp=1)
def conditional_expressions(a, b):
    larger = a if a > b else b
    sign = -1 if a < b else 1 if a > b else 0
    return larger, sign, (a or b), (a and b)


@program([(0, 5.0), (2, 0.0), (3, np.float64(2)), (0.0, 0)])
def short_circuit(a, b):
    """The right operand is evaluated only if it is needed, and the operand itself is the value."""
    safe = a != 0 and 10 / a > b
    either = a or b
    return safe, either, not either, a == 0 or b / a > 1


@program([(1, 2, 3), (3, 2, 1), (1, 1, 1), (1.5, 2, 2)])
def comparison_chains(a, b, c):
    return a < b < c, a <= b == c, a < b > c, not a < b < c != a


@program([(None,), (3,), (2.5,), (0,)])
def none_tests(x):
    if x is None:
        return -1
    y = x if x is not None else 0
    return y * 2


@program([(5,), (0,)])
def walrus(n):
    if (half := n // 2) > 1:
        return half
    return (n := n + 10) + n


@program([(arr("f8", 6), 3), (arr("i4", 6), 3)])
def walrus_in_loop(x, k):
    i = total = 0
    while (v := x[i]) < k and (i := i + 1) < len(x):
        total += v
    return total, i


@program([(1, 2, 3), (2.5, 1, np.int8(4))])
def tuple_assignments(a, b, c):
    a, b = b, a
    (a, b), c = (c, a), b
    first, *rest = (a, b, c)
    return a, b, c, first, rest


@program([(3,), (2.5,)])
def chained_assignment(x):
    a = b = x * 2
    b += 1
    a, c = d = (x, b)
    return a, b, c, d


@program([(4, 3), (7.5, 2)])
def augmented_assignments(x, y):
    x += y
    x *= 2
    x -= 1
    x **= 2
    x %= 7
    x //= 2
    return x


@program([(12, 10), (255, 1), (7, 0)])
def augmented_bit_operators(x, y):
    x &= ~y
    x |= 3
    x ^= y
    x <<= 2
    x >>= 1
    return x


@program([(3,), (-1,)])
def pass_and_docstring(x):
    """Statements that do nothing."""
    if x > 0:
        pass
    else:
        ...
    "a string"
    x: int = x + 1
    return x


@program([(9.0,), (2,)], ulp=1)
def imports_inside(x):
    import math
    from math import floor
    from math import sqrt as root

    import numpy as xp

    return root(x), floor(x / 2), xp.sqrt(x), math.pi * x


@program([(arr("f8", 4, values=[1, 0, -1, 0]), arr("f8", 4, values=[0, 0, 1, 2]))])
def error_state(x, y):
    with np.errstate(divide="ignore", invalid="ignore"):
        q = x / y
    with np.errstate(all="ignore"):
        r = np.sqrt(x)
    return q, r


@program([(3,), (0,)])
def deletions(n):
    a = n + 1
    b = a * 2
    del a
    return b


@program([(arr("f8", 8), 3), (arr("f8", 3), 3)])
def statement_after_return_in_branch(x, k):
    if len(x) > 5:
        x = x[:k]
        return x.sum()
    total = 0.0
    for v in x:
        total = max(total, v)
    return total


@program([(40,), (2,), (1,)])
def primes(n):
    count = 0
    for candidate in range(2, n):
        divisor = 2
        while divisor * divisor <= candidate:
            if candidate % divisor == 0:
                break
            divisor += 1
        else:
            count += 1
    return count


@program([(12,), (1,), (0,)])
def sieve(n):
    composite = np.zeros(n + 1, dtype=bool)
    i = 2
    while i * i <= n:
        if not composite[i]:
            composite[i * i :: i] = True
        i += 1
    return n + 1 - composite[2:].sum()


@program([(48, 18), (7, 0), (0, 0)])
def euclid(a, b):
    while b:
        a, b = b, a % b
    return a


@program([(arr("f8", 6), 1.0), (arr("f8", 6), -9.0)], fell_back=None)
def return_of_different_types(x, limit):
    """None, an int, or an array, by the data."""
    if x.max() < limit:
        return None
    for i in range(x.size):
        if x[i] < -3:
            return i
    return x[:2]


@program([(arr("u1", 3, 3, layout="F"), arr("f8", 3)), (arr("f8", 4, 4, layout="F"), arr("f8", 4))])
def array_on_one_path(x, y):
    """A name that has no value on the other path, of an array in Fortran order."""
    if y.shape[0] > 2:
        z = np.minimum(x, x.T[:1].T * 0 + x)
    return z


@program([(arr("f8", 5), 0), (arr("f8", 5), 3), (arr("f4", 3, 4), 0), (arr("f8", 5), -2)])
def loop_that_may_not_run(x, n):
    """Without rounds the result is the very argument."""
    for _ in range(n):
        x = x * 2 + 1
    return x


@program(
    [(arr("f8", 5), 0, 3, -1), (arr("f8", 5), 3, 0, -1), (arr("f8", 5), 0, 3, 2), (arr("f8", 5), 2, 2, 1)], mutates=(0,)
)
def loop_that_may_not_run_and_a_store(x, low, high, step):
    y = x
    for _ in range(low, high, step):
        y = y * 2
    y[0] = 7
    return y


@program(
    [
        raising(TypeError, arr("f8", 4), arr("f8", 4), 0),
        (arr("f8", 2), arr("f8", 2, values=[1.0, 2.0]), 3),
        raising(TypeError, arr("f8", 2, 3, 2), arr("f8", 3, 2), 0),
        raising(TypeError, arr("u1", 4), arr("i1", 4), 1),
    ],
    message=True,
    mutates=(0,),
    opaque=None,
    fell_back=None,
)
def store_into_a_number_or_an_array(a, b, n):
    """No path comes to the end if neither can be stored to."""
    c = b[1:]
    while n < 3:
        n += 1
        a[0] += 1
        c = np.sign(-1) or (a[-1] + a)
    c[b[1:] > 0] = c or np.float32(1.5)
    return a, c


@program([(arr("f8", 3),), (arr("f8", 0),), (arr("i4", 2, 2),)], fell_back=None)
def a_loop_left_in_its_first_turn(a):
    for x in a:
        return x
    return a


@program([(arr("i8", 3), 3), (arr("i8", 0), 2), (arr("i8", 4, seed=1), 0)])
def inner_loops_left_in_their_first_turn(a, k):
    total = 0
    for i in range(k):
        for x in a:
            if x > 1:
                break
            total += x * i
            break
        else:
            total += 100
        total *= 2
    return total


@program(
    [
        (arr("f8", 6), arr("f8", 9, values=[-3, -2.5, -1, -0.5, 0, 0.25, 1, 2, 4])),
        (arr("f8", 3), arr("f8", 0)),
        (arr("f8", 3), arr("f8", 1)),
    ]
)
def searched(x, edges):
    """What begins at 0 or more and is made of such stays so, and what is taken away from does not."""
    places = np.zeros((2, len(x)), np.int64)
    for i in range(len(x)):
        low, high = 0, len(edges)
        while low < high:
            middle = (low + high) // 2
            if edges[middle] < x[i]:
                low = middle + 1
            else:
                high = middle
        places[0, i] = low
        left, right, steps = 0, max(len(edges) - 1, 0), 0
        while left <= right and steps < len(edges):
            middle = (left + right) >> 1
            if edges[middle - 1] < x[i]:
                left = middle + 1
            else:
                right = middle - 1
            steps += 1
        places[1, i] = left - right
    return places


@program([(arr("f8", 6, 7), 0), (arr("f8", 5, 0), 3), (arr("f4", 4, 20), -7)])
def counts_of_inner_loops(x, start):
    """Counts go on from loop to loop."""
    low, high, cells, down = 0, 0, start, start
    for i in range(x.shape[0]):
        high -= 1
        for j in range(i % 3, x.shape[1]):
            cells += 1
            if x[i, j] < 0.3:
                low += 1
            elif x[i, j] > 0.8:
                low += 2
                high += 1 if x[i, j] > 0.9 else 3
                if j > 15:
                    break
            for _ in range(3):
                down -= 1
        for k in range(i):
            if high > k:
                high -= 1
    return low, high, cells, down


@program([(arr("f8", 6, 7), 2**63 - 9), (arr("f8", 3, 2), -(2**63))], overflow=True)
def counts_that_do_not_fit(x, start):
    up = down = start
    for _ in range(x.shape[0]):
        for _ in range(x.shape[1]):
            up += 1
            down -= 1
    return up, down


@program(
    [(arr("f8", 9), 4, 0), (arr("f8", 9), -2, 1), (arr("f8", 0), 0, 3), (arr("f4", 20), 20, 2), (arr("i8", 9), 9, -3)]
)
def counting_while_loops(x, n, start):
    """Loops that are `for` loops in truth, and some that are not quite."""
    i, up, down = start, 0, n
    while i < len(x):
        up += 1 if x[i] > 0.5 else 2
        i += 1
    j = n
    while j - 1 >= 0 and j <= len(x):
        j -= 1
        up += j
    while start >= down:
        down += 2
    k, found = 1, -1
    while len(x) - 1 >= k:
        if x[k] > 0.9:
            found = k
            break
        k += 3
    else:
        found = -2
    last = n
    while last > start:
        n -= 1
        last -= 2
        if n == 3:
            continue
        up += last
    m = 0
    while m < n:
        n -= 1
        m += 1
    return i, j, k, m, n, up, down, last, found


NUMBERS_MODULO = [(30, 5, 97), (12, -8, -1000), (9, 2**40, 2**31), (40, 7, 2**33), (0, 2**62, 5), (3, 1, -1)]


@program([*NUMBERS_MODULO, (5, 2**63 - 1, 2**60)], overflow=True)
def remainders_handed_on(n, x, m):
    """What fits in 64 bits as long as the numbers are small, and only then."""
    power, squares, pairs, last = 1, 0, 0, x
    for i in range(n):
        x = (1103515245 * x + 12345) % m
        for k in range(3, i, 2):
            power = power * 3 % m
            pairs += (i * i - k * x) % 7 == 0
        squares += i * i
        last = (last >> 1) ^ (x & 255)
    while n > 1 and squares > 0:
        n, squares = n - 1, squares - n * m % 11
    return x, power, squares, pairs, last, n


@program([(arr("i8", 9), 8), (arr("i8", 3, seed=1), 2)], mutates=(0,))
def sieved(best, top):
    """Loops whose step or end is computed; from above, and through what is stored on the way."""
    w = best % 3
    for i in range(len(w)):
        for c in range(top, w[i] - 1, -1):
            best[c] = max(best[c], best[c - w[i]] + i)
    p, marks = 2, np.ones(50 + top, np.bool_)
    while p * p <= 50 + top:
        for c in range(p * p, 50 + top, p):
            marks[c] = False
        for c in range(40, -1, -p):
            marks[c] ^= c % 5 == 0
        p += 1
    return w, marks


@program(
    [
        (arr("i8", 7), 12),
        (arr("i4", 7, seed=1), 0),
        (arr("i8", 2), -3),
        (arr("i8", 7, values=[-(2**63), 2**63 - 1, 0, -1, 84, -84, 2**62 + 2]), 5),
    ],
    overflow=True,
)
def counted_on_condition(a, n):
    """Accumulations in branches, from one place of a triangle to the next; what divides without a remainder."""
    pairs, most, odd, flags, down = 0, 0, 0, True, 0
    for i in range(len(a)):
        for j in range(i + 1, len(a)):
            if a[i] < a[j]:
                pairs += 1
            else:
                pairs += 2
            if (i * i + j) % 3 == 0:
                most = max(most, j)
                flags &= j > 2
    for i in range(1, n):
        for j in range(i + 1, n - 1):
            if (a[0] // 2 + j) % 6 != 0 and (i * j) % 7 == 0:
                odd ^= i
            if j * n % i == 0:
                down -= 3
    return pairs, most, odd, flags, down, a % 5 == 0, (a % 12 != 0).sum()


@program([(arr("u2", 1, 3), 2), (arr("f8", 1, 3), 1)])
def rows_of_a_short_inner_loop(x, k):
    """What the inner loop hands on is an array."""
    for _ in range(k):
        for j, row in enumerate(x[::-1]):
            found = j, row
    return found


_NEAR_TWO = [0.3 + 0.5j, 2, 1.2 + 1.6j, np.nextafter(2, 3), np.inf + np.nan * 1j, np.nan, 1e300j, 5e-324, -1j]


@program(
    [
        (arr("i8", 6, values=[0, 1, -1, 255, 255, 2**62 + 1]), arr("c16", 9, values=_NEAR_TWO), 40),
        (arr("i8", 0), arr("c16", 1), 0),
    ]
)
def counts_of_while_loops(a, z, most):
    """Bits of integers, lengths of runs, turns until an absolute value is out of bounds."""
    bits = 0
    for x in a:
        while x:
            x &= x - 1
            bits += 1
    runs, i = np.zeros(len(a), np.int64), 0
    while i < len(a):
        j = i
        while j < len(a) and a[j] == a[i]:
            j += 1
        runs[i], i = j - i, j
    turns = np.zeros((3, len(z)), np.int64)
    for k in range(len(z)):
        w, n = z[k], 0
        while n < most and abs(w) <= 2:
            w = w * w / 4
            n += 1
        turns[0, k] = n
        for _ in range(most):
            if not abs(w) <= 2.0 or abs(z[k]) < 1e-3:
                break
            turns[1, k] += abs(z[k]) >= 2
    return bits, runs, turns


@program(
    [
        (arr("f8", 5, values=[0.1, 0.9, -0.5, 0.3, -0.0]), 10),
        raising(ValueError, arr("f8", 3, values=[0.1, np.nan, np.inf]), 10),
        raising(OverflowError, arr("f8", 3, values=[0.1, -np.inf, np.nan]), 10),
        raising(IndexError, arr("f8", 2, values=[0.5, -(2.0**63) / 10]), 10),
        raising(IndexError, arr("f8", 2, values=[0.5, 1.0]), 10),
    ]
)
def bins_of_floats(x, n):
    counts = np.zeros(n, np.int64)
    for i in range(len(x)):
        counts[int(x[i] * n)] += 1
    return counts


LEAST, MOST = -(2**63), 2**63 - 1


@program([(LEAST, MOST), (LEAST, 5), (-5, MOST), (MOST - 3, MOST), (3, LEAST), (1, 4)], opaque=None, fell_back=None)
def positions_of_wide_ranges(a, b):
    found = []
    for i, j in zip(range(a, b), range(3)):  # noqa: B905
        found.append(i + j)
    for i, j in enumerate(range(a, b)):
        found.append(j)
        if i == 2:
            break
    return found, bool(range(a, b)), bool(range(b, a, -1))


@program([(LEAST, LEAST + 3), (MOST - 3, MOST), (2, 6)], opaque=None, fell_back=None)
def last_of_ranges_at_the_ends(a, b):
    for i in reversed(range(a, b)):
        return i
    return None
