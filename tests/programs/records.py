"""Records: lists of tuples sorted and searched by keys; rows of lists, and known items at places found at run time."""

import heapq
from collections import deque

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

PAIRS = [(3, 1.5), (1, 2.5), (2, 0.5), (1, 0.5), (2, 0.5)]
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


@program([(PAIRS,), ([(1, 2.0)],)])
def sorted_pairs(pairs):
    by_second = sorted(pairs, key=lambda p: p[1])
    return by_second, max(pairs, key=lambda p: p[1]), min(pairs), sorted(pairs)


@program([(PAIRS,)])
def sorted_pairs_downwards(pairs):
    by_second = sorted(pairs, key=lambda p: p[1], reverse=True)
    return by_second, sorted(pairs, reverse=True), sorted(pairs, key=lambda p: (p[1], -p[0]))


@program([(np.array([3.0, 1.0, 2.0, 1.0]),), ([3, 1, 2, 1],), (arr("f4", 5),)])
def places_in_order(x):
    order = sorted(enumerate(x), key=lambda t: t[1])
    least = min((v, i) for i, v in enumerate(x))
    return [i for i, v in order], order[0], max(enumerate(x), key=lambda t: t[1]), least


@program([(np.array([3.0, np.nan, 2.0, 1.0]),)])
def places_in_order_with_nan(x):
    return [i for i, v in sorted(enumerate(x), key=lambda t: t[1])]


@program([(np.array([3.0, 1.0, 2.0, 1.0]), np.array([1, 2, 0, 5]))])
def sorted_together(x, y):
    pairs = sorted(zip(x, y, strict=False))
    by_both = sorted(range(len(x)), key=lambda i: (x[i], -y[i]))
    return [b for a, b in pairs], by_both, max(zip(y, x, strict=True))


@program([(np.array([3, 1, 2, 1, 3, 3]),)])
def most_frequent(x):
    counts = {}
    for v in x:
        counts[v] = counts.get(v, 0) + 1
    items = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
    best = max(counts, key=lambda k: counts[k]), max(counts, key=counts.get), max(counts.items(), key=lambda kv: kv[1])
    return items, best, max(counts.values()), sorted(counts)


@program([(5,), (2,)])
def sorted_in_place(n):
    events = []
    for i in range(n):
        events.append((i * 3 % 5, -i))
    events.sort()
    total = 0
    for a, _ in events:
        total = total * 10 + a
    events.sort(key=lambda e: e[1])
    events.append((9, 9))
    return total, events


@program([(3,), raising(ValueError, 0)], message=True)
def least_of_pairs(n):
    pairs = [(i, 1.0 / (i + 1)) for i in range(n)]
    return min(pairs, key=lambda p: p[1])


@program([([(1, 3), (8, 10), (2, 6)],), ([(5, 6)],)])
def merged_intervals(intervals):
    intervals = sorted(intervals)
    merged = [intervals[0]]
    for start, end in intervals[1:]:
        if start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


@program([([10.0, 20.0, 30.0], [60.0, 100.0, 120.0], 50)])
def filled_knapsack(weights, values, room):
    total = 0.0
    for weight, value in sorted(zip(weights, values, strict=True), key=lambda p: p[1] / p[0], reverse=True):
        if room < weight:
            return total + value * room / weight
        room -= weight
        total += value
    return total


@program([([[1, 2], [3], [3], []], 0), ([[1], [0]], 1)])
def distances_in_a_graph(adjacent, start):
    distance = [-1] * len(adjacent)
    distance[start] = 0
    waiting = deque([start])
    while waiting:
        u = waiting.popleft()
        for v in adjacent[u]:
            if distance[v] == -1:
                distance[v] = distance[u] + 1
                waiting.append(v)
    return distance


@program([([[1, 2], [3], [3], []], 0)])
def visited_in_order(adjacent, start):
    visited = set()
    order = []

    def go(u):
        visited.add(u)
        order.append(u)
        for v in adjacent[u]:
            if v not in visited:
                go(v)

    go(start)
    return order


@program([([[(1, 4.0), (2, 1.0)], [(3, 1.0)], [(1, 2.0), (3, 5.0)], []], 0)])
def shortest_ways(graph, source):
    distance = [float("inf")] * len(graph)
    distance[source] = 0.0
    waiting = [(0.0, source)]
    while waiting:
        d, u = heapq.heappop(waiting)
        if d > distance[u]:
            continue
        for v, weight in graph[u]:
            if d + weight < distance[v]:
                distance[v] = d + weight
                heapq.heappush(waiting, (d + weight, v))
    return distance


@program([([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0])])
def matrix_of_lists(a, x):
    return [sum(a[i][j] * x[j] for j in range(len(x))) for i in range(len(a))]


@program([(np.array([3.0, 1.0, 2.0, 7.0]), (1, 2, 3)), (np.array([3.0, 1.0]), (1.5, 2, 3))])
def array_with_tuple(x, weights):
    return sum(v * w for v, w in zip(x, weights, strict=False))


@program([(np.array([0, 1, 1, 0]), [(1, 2.5), (2, 3)])])
def mixed_records(places, records):
    total = 0
    for i in places:
        a, b = records[i]
        total += a * b
    return total


@program([(np.array([0, 1, -1]), [[1, 2], [2]], [[], []]), raising(IndexError, np.array([0, 2]), [[1], [2]], [[], []])])
def rows_from_both_ends(places, rows, empty):
    total = 0
    for i in places:
        total += sum(rows[i]) + len(empty[i])
        for v in rows[i][::-1]:
            total += v
    return total


@program([(4,), (9,)])
def walked_around(n):
    x = y = direction = 0
    for k in range(n):
        dx, dy = MOVES[direction % 4]
        x += dx
        y += dy
        direction += k
    return x, y


@program([(np.array([0, 1, 0]), [[1, 2], [2]])], fell_back=True)
def row_given_out(places, rows):
    k = 0
    for i in places:
        k += i
    return rows[k]


@program([(3,), (0,)])
def records_together(n):
    """A sum is a list of its own, also where its left part has room for more."""
    a, b = [], []
    for i in range(n):
        a.append((i, 1.5))
        b.append((i * 2, i))
    more = [(7, 7)]
    c, d = a + b, a[:-1] + more
    a.append((9, 9.0))
    return a, b, c, d, a + a


@program([([],), ([(1, 4), (0, 6), (3, 5)],)])
def sorted_jobs(jobs):
    """The key of nothing is never asked for."""
    end, chosen = -1, []
    for start, stop in sorted(jobs, key=lambda job: job[1]):
        if start >= end:
            chosen.append((start, stop))
            end = stop
    return chosen
