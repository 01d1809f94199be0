"""Lists kept in order by `heapq` and `bisect`: heaps of numbers and of tuples, sorted lists."""

import bisect
import collections
import heapq
import math
from bisect import insort
from collections import deque
from heapq import heappop, heappush

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising


@program([([5, 3, 8, 1, 9, 2],), ([2.5],), ([],), ([3, 3, 1, 3, 1],)])
def sorted_by_a_heap(a):
    heap = list(a)
    heapq.heapify(heap)
    out = []
    while heap:
        out.append(heapq.heappop(heap))
    return out


@program([(arr("f8", 9), 3), (arr("i4", 4), 7), (arr("f8", 0), 2)])
def largest_so_many(a, k):
    heap = []
    for x in a:
        heappush(heap, x)
        if len(heap) > k:
            heappop(heap)
    return len(heap), heap


@program([(np.array([[0, 4.0, 1, 0], [4, 0, 2, 5], [1, 2, 0, 8], [0, 5, 8, 0]]), 0), (np.zeros((3, 3)), 1)])
def shortest_paths(weights, start):
    n = len(weights)
    distance = [math.inf] * n
    distance[start] = 0
    waiting = [(0, start)]
    while waiting:
        d, u = heapq.heappop(waiting)
        if d > distance[u]:
            continue
        for v in range(n):
            if weights[u, v] > 0 and d + weights[u, v] < distance[v]:
                distance[v] = d + weights[u, v]
                heapq.heappush(waiting, (distance[v], v))
    return distance


@program([(arr("i8", 4), 3), raising(IndexError, arr("i8", 2), 3)], message=True)
def more_than_there_is(a, k):
    heap = [a[0], a[1]]
    if len(a) > 2:
        heappush(heap, a[2])
    for _ in range(k):
        last = heappop(heap)
    return last


@program([(arr("f8", 9),), (arr("i4", 2),)])
def running_medians(a):
    known, out = [], []
    for x in a:
        bisect.insort(known, x)
        n = len(known)
        out.append(known[n // 2] if n % 2 else (known[n // 2 - 1] + known[n // 2]) / 2)
    return out, known


@program([(np.array([10, 9, 2, 5, 3, 7, 101, 18, 3]),), (np.array([1.5, 1.5, 0.5]),)])
def longest_increasing(a):
    tails = []
    for x in a:
        place = bisect.bisect_left(tails, x)
        if place == len(tails):
            tails.append(x)
        else:
            tails[place] = x
    return len(tails), tails


@program([([1, 3, 3, 5], 3), ([1, 3, 3, 5], 9), ([0.5, 2.5], 1)])
def places_in_lists(a, x):
    mine = [item * 2 for item in range(len(a))]
    insort(mine, x)
    return bisect.bisect_left(mine, x), bisect.bisect_right(mine, x), bisect.bisect(mine, x, 1, 2), mine


@program(
    [([], 0, None), ([], 1, 1), ([2], 0, 1), raising(IndexError, [], 0, 1), raising(ValueError, [], -1, 0)],
    message=True,
)
def places_in_part(a, lo, hi):
    return bisect.bisect_left(a, 1, lo), bisect.bisect(a, 2, lo, hi)


@program([(np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]), 0), (np.zeros((2, 2)), 1)])
def breadth_first(edges, start):
    n = len(edges)
    distance = np.full(n, -1)
    distance[start] = 0
    queue = deque([start])
    while queue:
        u = queue.popleft()
        for v in range(n):
            if edges[u, v] and distance[v] < 0:
                distance[v] = distance[u] + 1
                queue.append(v)
    return distance


@program([(arr("f8", 9), 3), (arr("i4", 6), 1), (arr("f8", 0), 2)])
def window_maxima(a, k):
    queue = deque()
    out = []
    for i in range(len(a)):
        while queue and a[queue[-1]] <= a[i]:
            queue.pop()
        queue.append(i)
        if queue[0] <= i - k:
            queue.popleft()
        if i >= k - 1:
            out.append(a[queue[0]])
    return len(out), np.array(out) * 1.0 if len(out) else None


@program([(5, 3), (1, 7), (4, 0)])
def both_ends(n, k):
    queue = collections.deque(range(n))
    for i in range(k):
        queue.appendleft(queue.pop())
        queue.append(i)
        queue += [i * 2]
    total = 0
    for i, item in enumerate(queue):
        total += i * item
    return total, len(queue), list(queue), max(queue), queue[0]


@program([(3, 2), raising(IndexError, 2, 5)], message=True)
def more_than_a_deque_has(n, k):
    queue = deque(range(n))
    for _ in range(k):
        last = queue.popleft()
    return last


@program([(3, 2), raising(IndexError, 2, 5)], message=True)
def more_than_its_end_has(n, k):
    queue = deque([0.5] * n)
    for _ in range(k):
        last = queue.pop()
    return last


@program([(4,)], opaque=None, fell_back=None)
def deques_that_are_seen(n):
    queue = deque(range(n))
    queue.append(1)
    return queue


@program([([5, 3, 8, 1],), ([2.5, 1.5],)])
def sorted_by_a_comprehension(items):
    heap = []
    for item in items:
        heapq.heappush(heap, item)
    return [heapq.heappop(heap) for _ in range(len(heap))]


@program([(5,)])
def taken_by_comprehensions(n):
    waiting = deque(range(n))
    first = [waiting.popleft() * i for i in range(3) if i != 1]
    i = 7
    stack = list(range(n * n))
    rows = [stack.pop() + i * j for i in range(2) for j in range(n)]
    return first, len(waiting), i, rows, stack


@program([([1, 2, 2, 3, 1],), ([],)])
def each_once(items):
    seen = set()
    found = [x for x in items if not (x in seen or seen.add(x))]
    return found
