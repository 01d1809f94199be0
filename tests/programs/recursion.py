"""Functions that call themselves, alone and in turns: with numbers, arrays, views, stores, exceptions."""

import math

import numpy as np

from tests.arrays import arr
from tests.corpus import ELEMENTARY, program, raising

SCALE = 3


@program([(0,), (1,), (12,), (True,), (np.int32(9),), (7.5,)])
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@program([(1071, 462), (17, 5), (0, 0), (-12, 18)])
def greatest_divisor(a, b):
    return a if b == 0 else greatest_divisor(b, a % b)


@program([(2, 3), (0, 5), (1, 0)])
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@program([(0,), (7,), (30,)])
def in_turns(n):
    return is_even(n), is_odd(n)


@program([(5,), (1,), (30,)], overflow=True)
def factorial_too_large(n):
    return 1 if n <= 1 else n * factorial_too_large(n - 1)


def power(x, n):
    if n == 0:
        return 1
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


@program([(1.5, 10), (2, 10), (1 + 2j, 5), (np.float32(1.5), 7), (2, 0)])
def powers_by_squaring(x, n):
    return power(x, n)


def find(a, wanted, low, high):
    if low >= high:
        return None
    middle = (low + high) // 2
    if a[middle] == wanted:
        return middle
    if a[middle] < wanted:
        return find(a, wanted, middle + 1, high)
    return find(a, wanted, low, middle)


@program([(np.arange(0, 40, 2), 14), (np.arange(0.0, 40.0, 2.0), 15.0), (np.arange(0), 1)])
def binary_search(a, wanted):
    return find(a, wanted, 0, len(a))


def sort_between(a, low, high):
    if low >= high:
        return
    pivot, i = a[high], low
    for j in range(low, high):
        if a[j] < pivot:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[high] = a[high], a[i]
    sort_between(a, low, i - 1)
    sort_between(a, i + 1, high)


@program([(arr("f8", 30),), (arr("i4", 12),), (arr("f4", 1),), (arr("f8", 20, layout="reversed"),)], mutates=(0,))
def quicksort(a):
    sort_between(a, 0, len(a) - 1)


def select(a, k):
    if len(a) == 1:
        return a[0]
    pivot = a[len(a) // 2]
    low, high = a[a < pivot], a[a > pivot]
    if k < len(low):
        return select(low, k)
    if k < len(a) - len(high):
        return pivot
    return select(high, k - len(a) + len(high))


@program([(arr("f8", 15), 4), (arr("i8", 9), 8), (arr("f8", 1), 0)])
def quickselect(a, k):
    return select(a, k)


def merge_sort(a):
    n = len(a)
    if n < 2:
        return a
    left, right = merge_sort(a[: n // 2]), merge_sort(a[n // 2 :])
    out = np.empty_like(a)
    i = j = 0
    for k in range(n):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


@program([(arr("f8", 21),), (arr("i4", 2),), (arr("f8", 1),), (arr("f8", 0),)])
def sorted_by_merging(a):
    return merge_sort(a)


@program([(arr("c16", 16),), (arr("c16", 1),)], ulp=1 << 20, regrouped=64)
def fourier(x):
    n = x.shape[0]
    if n == 1:
        return x
    even, odd = fourier(x[::2]), fourier(x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate((even + turned, even - turned))


def fill(grid, i, j, colour):
    if i < 0 or j < 0 or i >= grid.shape[0] or j >= grid.shape[1] or grid[i, j] != 0:
        return 0
    grid[i, j] = colour
    filled = 1
    for step in (-1, 1):
        filled += fill(grid, i + step, j, colour) + fill(grid, i, j + step, colour)
    return filled


@program([(arr("i8", 3, 4, values=(0, 0, 1, 0, 1, 0, 1)), 7), (arr("f8", 4, 6, values=(0,)), 2)], mutates=(0,))
def flood(grid, colour):
    return fill(grid, 0, 0, colour)


def refined(a, b, fa, fm, fb, whole, eps):
    m = (a + b) / 2
    left, right = (a + m) / 2, (m + b) / 2
    fl, fr = math.sin(left), math.sin(right)
    one, other = (m - a) / 6 * (fa + 4 * fl + fm), (b - m) / 6 * (fm + 4 * fr + fb)
    if abs(one + other - whole) <= 15 * eps:
        return one + other + (one + other - whole) / 15
    return refined(a, m, fa, fl, fm, one, eps / 2) + refined(m, b, fm, fr, fb, other, eps / 2)


@program([(0.0, 3.0, 1e-9), (0.0, 0.1, 1e-3)], ulp=ELEMENTARY)
def adaptive_quadrature(a, b, eps):
    fa, fm, fb = math.sin(a), math.sin((a + b) / 2), math.sin(b)
    return refined(a, b, fa, fm, fb, (b - a) / 6 * (fa + 4 * fm + fb), eps)


def scaled(n):
    return 1 if n == 0 else SCALE * scaled(n - 1)


@program([(5,), (0,)])
def with_a_global(n):
    return scaled(n)


TABLE = np.arange(10.0)


def along(i):
    return 0.0 if i == len(TABLE) else TABLE[i] + along(i + 1)


def into_the_table(a, i):
    if i < len(a):
        a[i] = TABLE[-1 - i] * 2
        into_the_table(a, i + 1)


@program([(0,), (4,)])
def with_a_global_array(i):
    return along(i)


@program([(arr("f8", 10),), (arr("f8", 0),)], mutates=(0,))
def stores_what_a_global_holds(a):
    into_the_table(a, 0)
    return a.sum()


@program([(arr("f8", 5), 20), (arr("f8", 5), 40)], mutates=(0,))
def until_an_index_is_wrong(a, step):
    if a[0] > 100:
        return a
    a[0] += step
    return until_an_index_is_wrong(a, step + 1)


def down(a, i):
    a[i] += 1
    return down(a, i - 1) + a[i]


@program([raising(IndexError, arr("f8", 5), 3)], mutates=(0,))
def falls_out_of_the_array(a, i):
    return down(a, i)


@program([raising(RecursionError, 0), (-3,)])
def without_an_end(n):
    if n < 0:
        return 0
    return without_an_end(n + 1) + 1


@program([raising(RecursionError, arr("f8", 1))], mutates=(0,))
def without_an_end_after_stores(a):
    if a[0] < -1e300:
        return 0.0
    a[0] = 1.5
    return without_an_end_after_stores(a)


def two_results(n):
    if n == 0:
        return 0, 1.0
    a, b = two_results(n - 1)
    return a + n, b * n


@program([(4,), (0,)])
def tuples_of_results(n):
    return two_results(n)


def tower(n, a, b, c, moves, at):
    if n == 0:
        return at
    at = tower(n - 1, a, c, b, moves, at)
    moves[at, 0], moves[at, 1] = a, c
    return tower(n - 1, b, a, c, moves, at + 1)


@program([(4,), (1,)])
def towers_of_hanoi(n):
    moves = np.zeros((2**n - 1, 2), np.int64)
    count = tower(n, 0, 1, 2, moves, 0)
    return moves, count


def queens(n, row, columns, left, right):
    if row == n:
        return 1
    count = 0
    free = ((1 << n) - 1) & ~(columns | left | right)
    while free:
        bit = free & -free
        free ^= bit
        count += queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return count


@program([(6,), (1,)])
def number_of_queens(n):
    return queens(n, 0, 0, 0, 0)


def permuted(a, k, out, at):
    if k == len(a):
        out[at] = a
        return at + 1
    for i in range(k, len(a)):
        a[k], a[i] = a[i], a[k]
        at = permuted(a, k + 1, out, at)
        a[k], a[i] = a[i], a[k]
    return at


@program([(4,), (1,)])
def all_permutations(n):
    out = np.empty((math.factorial(n), n), np.int64)
    permuted(np.arange(n), 0, out, 0)
    return out


def determinant(m):
    if m.shape[0] == 1:
        return m[0, 0]
    total = 0.0
    for j in range(m.shape[1]):
        rest = np.concatenate((m[1:, :j], m[1:, j + 1 :]), axis=1)
        total += (-1) ** j * m[0, j] * determinant(rest)
    return total


@program([(arr("f8", 4, 4),), (arr("f8", 1, 1),)])
def by_minors(m):
    return determinant(m)


def best_value(weights, values, i, room, memory):
    if i == len(weights) or room == 0:
        return 0
    if memory[i, room] < 0:
        best = best_value(weights, values, i + 1, room, memory)
        if weights[i] <= room:
            best = max(best, values[i] + best_value(weights, values, i + 1, room - weights[i], memory))
        memory[i, room] = best
    return memory[i, room]


@program([(np.array([1, 3, 4, 5]), np.array([1, 4, 5, 7]), 7), (np.arange(0), np.arange(0), 3)])
def knapsack_with_memory(weights, values, room):
    memory = np.full((len(weights), room + 1), -1)
    return best_value(weights, values, 0, room, memory)


def adds_halves(a, b):
    if len(a) == 1:
        a[0] += b[0]
        return
    middle = len(a) // 2
    adds_halves(a[:middle], b[middle:])
    adds_halves(a[middle:], b[:middle])


@program([(arr("f8", 8),), (arr("f8", 1),)], mutates=(0,))
def halves_of_one_array(a):
    adds_halves(a, a)


@program([(arr("f8", 3, 4), 2)])
def in_a_loop(a, n):
    out = np.zeros(len(a))
    for i in range(len(a)):
        out[i] = power(a[i, 0], n) + fibonacci(i)
    return out


@program([(6,), (0,)])
def in_a_comprehension(n):
    return [fibonacci(i) for i in range(n)]


@program([(6, 2), (1, 5)])
def in_comprehensions_with_conditions(n, k):
    some = [fibonacci(i) * 0.5 for i in range(n) if i % k]
    return some, len(some), sum(fibonacci(i) for i in range(n)), max(power(i, k) for i in range(n))


def nested_depth(n, flag=None):
    if flag is None:
        return nested_depth(n, 0)
    return flag if n == 0 else nested_depth(n - 1, flag + n)


@program([(5,), (0,)])
def none_at_first(n):
    return nested_depth(n)


@program([(5,), (0,)], opaque=None)
def caught_outside(n):
    try:
        return power(2, n) / n
    except ZeroDivisionError:
        return -1.0


@program([(10, 3), (0, 1)])
def a_nested_function(n, m):
    def ways(k, largest=m):
        if k == 0:
            return 1
        if k < 0 or largest == 0:
            return 0
        return ways(k - largest, largest) + ways(k, largest - 1)

    return ways(n), ways(n, 2)


@program([(arr("f8", 6),), (arr("f8", 1),)], mutates=(0,), regrouped=8)
def a_nested_function_that_stores(a):
    def spread(i, amount):
        if i < len(a):
            a[i] += amount
            spread(2 * i + 1, amount / 2)
            spread(2 * i + 2, amount / 2)

    spread(0, a[0])
    return a.sum()


@program([(6,), (1,)])
def a_recursive_lambda(n):
    fact = lambda k: 1 if k <= 1 else k * fact(k - 1)  # noqa: E731
    return fact(n), [fact(i) for i in range(n)]


@program([(5, 4), (0, 0)])
def a_nested_function_with_arrays(n, seed):
    table = np.arange(n + 1) * seed

    def best(i, k):
        if i < 0 or k == 0:
            return 0
        return max(best(i - 1, k), table[i] + best(i - 2, k - 1))

    return best(n, 2)


@program([(3,)], fell_back=True)
def lists_of_moves(n):
    """Python would do all calls but the first."""
    return [] if n == 0 else [*lists_of_moves(n - 1), n, *lists_of_moves(n - 1)]


@program([(arr("f8", 3, 3),), (arr("f8", 1, 1),), (arr("i4", 2, 2),)], ulp=8)
def determinant_by_minors(m):
    """Parallel maps in maps, whose extents are the outer index, in a body that is lowered more than once."""

    def det(a):
        if a.shape[0] == 1:
            return a[0, 0]
        return sum((-1) ** j * a[0, j] * det(np.delete(np.delete(a, 0, 0), j, 1)) for j in range(a.shape[1]))

    return det(m)
