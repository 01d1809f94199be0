"""Lists, dicts and sets that nested functions share and change, alone and in recursion; results that are kept."""

import functools
import heapq
from collections import deque

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising


@program([(5,), (0,)])
def appended_inside(n):
    out = []

    def add(x):
        out.append(x * 2)

    for i in range(n):
        add(i)
    return out


@program([(5,), (2,)])
def queued_inside(n):
    waiting = deque()

    def push(i):
        waiting.append(i)

    def pull():
        return waiting.popleft()

    for i in range(n):
        push(i)
        push(-i)
        if i > 2:
            pull()
    return pull(), len(waiting)


@program([(6,), (1,)])
def heap_inside(n):
    heap = []

    def push(key, item):
        heapq.heappush(heap, (key, item))

    for i in range(n):
        push((i * 7) % 5, i)
    total = 0
    while heap:
        key, item = heapq.heappop(heap)
        total = total * 10 + key + item
    return total


@program([(5,)])
def seen_inside(n):
    seen = set()
    found = []

    def visit(a, b):
        if (a, b) in seen:
            return False
        seen.add((a, b))
        found.append(a + b)
        return True

    count = 0
    for i in range(n):
        count += visit(i % 2, i % 3)
    return count, found


@program([(4,)])
def changed_while_it_is_read(n):
    items = [1]

    def grow():
        items.append(n)
        return 1

    return items + list((grow(),)), len(items) + grow() + len(items)


@program([(3,)], fell_back=True)
def changed_under_another_name(n):
    items = [1, 2]

    def get():
        return items

    again = get()
    items.append(n)
    return again


@program([(4,), (0,)])
def counted_in_recursion(n):
    count = 0

    def go(k):
        nonlocal count
        if k == 0:
            count += 1
            return
        go(k - 1)
        go(k - 1)

    go(n)
    return count


@program([(3,), (0,)])
def moves_of_hanoi(n):
    moves = []

    def move(k, a, b, c):
        if k == 0:
            return
        move(k - 1, a, c, b)
        moves.append((a, c))
        move(k - 1, b, a, c)

    move(n, 0, 1, 2)
    return moves


@program([(20,), (80,), (0,)])
def kept_in_a_dict(n):
    memo = {}

    def fib(k):
        if k in memo:
            return memo[k]
        if k <= 1:
            return k
        memo[k] = fib(k - 1) + fib(k - 2)
        return memo[k]

    return fib(n), len(memo)


@program([(95,)], overflow=True)
def kept_in_a_dict_too_large(n):
    memo = {}

    def fib(k):
        if k not in memo:
            memo[k] = k if k <= 1 else fib(k - 1) + fib(k - 2)
        return memo[k]

    return fib(n)


@program([(4, 5), (0, 3)])
def paths_in_a_grid(n, m):
    memo = {}

    def go(i, j):
        if i == 0 or j == 0:
            return 1
        if (i, j) not in memo:
            memo[(i, j)] = go(i - 1, j) + go(i, j - 1)
        return memo[(i, j)]

    return go(n, m)


@program([(5,), (3,)])
def queens_on_a_board(n):
    board = [-1] * n
    firsts = []

    def safe(r, c):
        for i in range(r):
            if board[i] == c:
                return False
            if abs(board[i] - c) == r - i:
                return False
        return True

    def place(r):
        if r == n:
            firsts.append(board[0])
            return
        for c in range(n):
            if safe(r, c):
                board[r] = c
                place(r + 1)

    place(0)
    return len(firsts), firsts


@program([(5,)])
def queens_in_sets(n):
    count = 0
    columns, falling, rising = set(), set(), set()

    def place(r):
        nonlocal count
        if r == n:
            count += 1
            return
        for c in range(n):
            if c in columns or r + c in falling or r - c in rising:
                continue
            columns.add(c)
            falling.add(r + c)
            rising.add(r - c)
            place(r + 1)
            columns.remove(c)
            falling.remove(r + c)
            rising.remove(r - c)

    place(0)
    return count


@program([(6, arr("i8", 7, 2))])
def merged_sets(n, edges):
    parent = list(range(n))
    rank = [0] * n

    def find(x):
        if parent[x] != x:
            parent[x] = find(parent[x])
        return parent[x]

    def union(a, b):
        a, b = find(a % n), find(b % n)
        if a == b:
            return False
        if rank[a] < rank[b]:
            a, b = b, a
        parent[b] = a
        if rank[a] == rank[b]:
            rank[a] += 1
        return True

    return sum(1 for a, b in edges if union(a, b)), [find(i) for i in range(n)]


@program([(np.array([[1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]),), (np.zeros((2, 2), int),)])
def islands(grid):
    n, m = grid.shape
    seen = set()

    def fill(i, j):
        if i < 0 or j < 0 or i >= n or j >= m or grid[i, j] == 0 or (i, j) in seen:
            return 0
        seen.add((i, j))
        return 1 + fill(i + 1, j) + fill(i - 1, j) + fill(i, j + 1) + fill(i, j - 1)

    sizes = []
    for i in range(n):
        for j in range(m):
            size = fill(i, j)
            if size:
                sizes.append(size)
    return sizes


@program([(2.5,), (0.5,)])
def widened_in_recursion(x):
    best = 0
    trail = []

    def go(v, depth):
        nonlocal best
        if v > best:
            best = v
        if depth < 4:
            trail.append(v)
            go(v * x, depth + 1)
            go(depth, depth + 2)

    go(1, 0)
    return best, trail


@program([(20,), (80,), (1,)])
def kept_by_lru_cache(n):
    @functools.lru_cache(maxsize=64)
    def fib(k):
        if k < 2:
            return k
        return fib(k - 1) + fib(k - 2)

    return fib(n)


@program([(5, 7), (0, 1)])
def kept_by_cache(n, m):
    @functools.cache
    def go(i, j):
        if i == 0 or j == 0:
            return 1
        total = 0
        for di, dj in ((1, 0), (0, 1)):
            total += go(i - di, j - dj)
        i = 7
        return total

    return go(n, m)


@program([([1.5, 2.5, 3.5, 0.5],), ([],)])
def largest_sum_apart(weights):
    @functools.lru_cache
    def best(i):
        if i >= len(weights):
            return 0.0
        return max(best(i + 1), weights[i] + best(i + 2))

    return best(0)


@program([([1, 2, 5], 63), ([7], 5)])
def fewest_coins(coins, amount):
    @functools.lru_cache(None)
    def go(rest):
        if rest == 0:
            return 0
        best = 10**9
        for coin in coins:
            if coin <= rest:
                best = min(best, 1 + go(rest - coin))
        return best

    return go(amount)


@program([([3, 1, 2, 5, 4, 1],), ([2.5, 1.0],)])
def sorted_by_parts(items):
    def parted(a):
        if len(a) <= 1:
            return a
        pivot = a[len(a) // 2]
        left = [x for x in a if x < pivot]
        middle = [x for x in a if x == pivot]
        right = [x for x in a if x > pivot]
        return parted(left) + middle + parted(right)

    return parted(items)


@program([(3,)])
def bound_and_changed_inside(n):
    items = []

    def add(v):
        nonlocal items
        items = [x + v for x in items]

    def push(v):
        items.append(v)

    for i in range(n):
        add(i)
        push(-i)
    return items


@program([(3,), (0,)])
def longest_path(n):
    path = []
    best = []

    def go(k):
        nonlocal best
        path.append(k)
        if len(path) > len(best):
            best = path[:]
        if k > 0:
            go(k - 1)
        path.pop()

    go(n)
    return best, path


@program([(3,), raising(ValueError, 5)], message=True)
def refused_inside(n):
    items = []

    def add(v):
        if v > 3:
            raise ValueError(f"{v} after {len(items)}")
        items.append(v)

    for i in range(n):
        add(i)
    return items


@program([(arr("f8", 4), 3), (arr("i8", 3), 2)])
def counters_of_several_turns(x, k):
    """Each turn of a loop that is written out makes names of its own."""

    def counted(start):
        total = start

        def add(u):
            nonlocal total
            total += u

        for i in range(3):
            add(x[i])
        return total

    found = [counted(start) for start in (1, 2.5)]
    for start in (k, 0.5):
        total = counted(start)
        i = 0
        while i < k:
            total += counted(i)
            i += 1
        found.append(total)
    return found[0], found[1], found[2] + found[3]


class Kept:
    @staticmethod
    def same(value):
        return value


@program([(2,), (0,)], fell_back=None, opaque=None)
def lists_given_back_by_a_function(n):
    values, table = [1], {"a": 1}
    same, other = Kept.same(values), Kept.same(table)
    values.append(n)
    table["b"] = n
    return same, other, len(values)


@program([(1.0,)], fell_back=None, opaque=None)
def attributes_of_classes_and_modules(x):
    return hasattr(Kept, "same"), hasattr(Kept, "other"), hasattr(np, "sin"), hasattr(x, "real"), hasattr(x, "other")


@program([(arr("u2", 3), 3), (arr("i8", 3), 2)], mutates=(0,))
def powers_beside_a_shared_name(r, k):
    m = k * 1.5

    def change(v):
        nonlocal m
        if k % 2 == 0:
            m = v

    change(-1.0)
    r **= 3
    return r, m
