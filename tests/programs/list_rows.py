"""Lists of lists that change: adjacency lists, buckets, results that grow by lists."""

from collections import defaultdict

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

EDGES = arr("i8", 5, 2, values=[0, 1, 1, 2, 2, 0, 3, 1, 0, 4])


@program([(5, EDGES), (6, EDGES), (5, arr("i4", 5, 2, values=[0, 1, 1, 2, 2, 0, 3, 1, 0, 4]))])
def graph_searches(n, edges):
    graph = [[] for _ in range(n)]
    degree = [0] * n
    for u, v in edges:
        graph[u].append(v)
        graph[v].append(u)
        degree[v] += 1
    distance = [-1] * n
    distance[0] = 0
    line = [0]
    at = 0
    while at < len(line):
        u = line[at]
        at += 1
        for v in graph[u]:
            if distance[v] < 0:
                distance[v] = distance[u] + 1
                line.append(v)
    longest = graph[0]
    for row in graph:
        if len(row) > len(longest):
            longest = row
    return graph, distance, degree, [len(row) for row in graph], sum(longest), 3 in graph[1]


@program([(5, EDGES), (6, EDGES)])
def graph_in_recursion(n, edges):
    graph = [[] for _ in range(n)]
    for i in range(len(edges)):
        graph[int(edges[i, 0])].append(int(edges[i, 1]))
    seen = [False] * n
    order = []

    def visit(u):
        seen[u] = True
        for v in graph[u]:
            if not seen[v]:
                visit(v)
        order.append(u)

    for u in range(n):
        if not seen[u]:
            visit(u)
    return order


@program([(5, EDGES, arr("f8", 5)), (7, EDGES, arr("f4", 5))])
def weighted_graph(n, edges, weights):
    graph = [[] for _ in range(n)]
    for (u, v), w in zip(edges, weights, strict=True):
        graph[u].append((v, w))
    best = [np.inf] * n
    best[0] = 0.0
    for _ in range(n):
        for u in range(n):
            for v, w in graph[u]:
                best[v] = min(best[v], best[u] + abs(w))
    return best


@program([(5, 2), (4, 0), (3, 4)])
def combinations(n, k):
    found = []
    path = []

    def extend(first):
        if len(path) == k:
            found.append(path[:])
            return
        for i in range(first, n):
            path.append(i)
            extend(i + 1)
            path.pop()

    extend(0)
    return found


@program([(5,), (1,), (0,)])
def lists_moved_into_lists(n):
    triangle = []
    for i in range(n):
        row = [1] * (i + 1)
        for j in range(1, i):
            row[j] = triangle[i - 1][j - 1] + triangle[i - 1][j]
        triangle.append(row)
    subsets = []
    for mask in range(1 << n):
        subset = []
        for i in range(n):
            if mask >> i & 1:
                subset.append(i / 2)
        subsets.append(subset)
    return triangle, subsets


@program([(arr("f8", 11), 3), (arr("i4", 7), 7), (arr("f8", 0), 2)])
def chunks(x, k):
    rows = []
    for i, v in enumerate(x):
        if i % k == 0:
            rows.append([])
        rows[-1].append(v)
    return rows


@program([(arr("i8", 4, 2, values=[1, 3, 2, 6, 8, 10, 15, 18]),), (arr("i8", 3, 2, values=[1, 4, 2, 3, 4, 5]),)])
def merged_intervals(intervals):
    merged = []
    for start, end in intervals:
        if len(merged) > 0 and merged[-1][1] >= start:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


@program([(4,), (9,), raising(IndexError, 1), raising(ValueError, 3)])
def rows_changed_in_every_way(n):
    g = [[i, i + 1, i + 2] for i in range(n)]
    last = g[1].pop()
    g[2 % n].insert(1, 99)
    g[0].reverse()
    g[n - 1].sort()
    g[0].extend([4, 5, 6, 7, 8, 9])
    g[1].remove(2 if n > 3 else 77)
    g[0][2] = 77
    g[0][-1] += 5
    g[2] += [8]
    del g[n - 1][0]
    g.append([])
    g[n].append(n)
    g.insert(0, [last])
    h = list(g[1])
    h.append(len(g[1]))
    return g, h, sorted(g[1]), max(g[1]), g[1].index(77), g[1][1:3], [v for row in g for v in row]


@program([(4,), (9,)])
def rows_of_several_types(n):
    g = [[] for _ in range(n)]
    for i in range(2 * n):
        g[i % 3].append(i)
        if i % 5 == 3:
            g[i % 3].append(i / 2)
    g[-1].append(True)
    return g, list(g[0])


@program([(4,), (7,)])
def groups_by_key(n):
    groups = defaultdict(list)
    pairs = {}
    for i in range(3 * n):
        groups[i * i % n].append(i)
        if i % 3 not in pairs:
            pairs[i % 3] = []
        pairs[i % 3].append((i, i / 2))
    total = 0.0
    for key, values in pairs.items():
        for i, half in values:
            total += key * i * half
    for i in range(n):
        total += len(groups[i])
    return total, pairs, len(groups)


@program([((1, 2, 1),), ((3, 3, 3),)])
def groups_of_a_few(keys):
    groups = {}
    for key in keys:
        if key not in groups:
            groups[key] = []
        groups[key].append(2 * key)
    return groups


@program([(4,), (2,)])
def lists_on_a_stack(n):
    stack = [[0]]
    found = []
    while stack:
        path = stack.pop()
        if len(path) == 3:
            found.append(path)
        else:
            for i in range(n):
                if i not in path:
                    stack.append(path + [i])  # noqa: RUF005
    powers = [[]]
    for i in range(n):
        powers += [row + [i] for row in powers]  # noqa: RUF005
    return found, powers


@program([(4,)], fell_back=None)
def rows_with_several_names(n):
    """None of these can be a value: a row that changes has another name."""
    one = [0]
    shared = [one, [5]]
    shared[n - 4].append(1)
    parts = [[i] for i in range(n)]
    first = parts[0]
    parts[n - 4].append(7)
    found = []
    grown = []
    for i in range(n):
        grown.append(i)
        found.append(grown)
    return one, shared, first, found


@program([(3,)], fell_back=None)
def rows_seen_while_they_change(n):
    a = [[i] for i in range(n)]
    b = a[:]
    a[0].append(1)
    for row in a:
        kept = row
    a[-1].append(2)
    for v in a[0]:
        if len(a[0]) < 6:
            a[0].append(v + 1)
    for row in a:
        row.append(3)
    return a, b, kept, a[0] + [a[0].pop()]


@program([(3,)], fell_back=None)
def the_same_row_many_times(n):
    g = [[]] * n
    g[0].append(5)
    h = [g[0] for _ in range(n)]
    h[1].append(6)
    a = [[i] for i in range(n)]
    a[0], a[1] = a[1], a[0]
    a[0].append(7)
    return g, h, a


@program([(arr("f8", 9, values=[0.42, 0.32, 0.75, 0.12, 0.99, 0.0, 0.5, 0.31, 0.33]),), (arr("f8", 0),)])
def rows_changed_by_their_names(x):
    buckets = [[] for _ in range(4)]
    for v in x:
        buckets[int(4 * v)].append(v)
    for bucket in buckets:
        bucket.sort()
    rows = [[i, len(x) - i] for i in range(len(x))]
    for i, row in enumerate(rows):
        row.append(i)
        row[0] = len(row)
    groups = {}
    for i in range(len(x)):
        groups.setdefault(i % 3, []).append(x[i])
    return [v for bucket in buckets for v in bucket], rows, groups


@program([(3,)], fell_back=None)
def rows_with_names_that_stay(n):
    rows = [[i] for i in range(n)]
    for row in rows:
        row.append(1)
    kept = []
    for other in rows:
        other.append(2)
        kept.append(other)

    def longer():
        if len(rows) < 6:
            rows.append([n])

    for more in rows:
        more.append(len(rows))
        longer()
    row.append(7)
    return rows, kept


@program([(arr("f8", 3, layout="readonly"), 2), (arr("i4", 4, layout="broadcast"), 3)])
def array_of_rows_of_what_is_read_only(x, n):
    made = np.array([x[-2:] for _ in range(n)])
    made[0] += 1
    return made, np.stack([x[1:] for _ in range(n)])
