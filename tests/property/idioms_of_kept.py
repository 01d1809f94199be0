"""Idioms of callees that keep a list, dict or array that changes afterwards: see `random_idioms`."""

from __future__ import annotations

KEPT = """
{0} = [1, 2]
{1} = functools.partial(len, {0})
{0}.append({n})
{2} = {1}()

{0} = [1, 2]
{1} = functools.partial(max, {0})
for i in range(k):
    {0}.append(i)
{2} = {1}()

{0} = {{}}
{1} = types.MappingProxyType({0})
for i in range(k):
    {0}[i] = i
{2} = len({1})

{0} = {{1: 2}}
{1} = collections.ChainMap({0}, {{2: 3}})
{0}[k + 3] = 4
{2} = len({1})

{0} = [1]
{1} = types.SimpleNamespace(kept={0})
{0}.append(k)
{2} = len({1}.kept)

{0} = [1, 2]
{1} = iter({0})
{0}.append(k)
{2} = list({1})

{0} = [1, 2]
{1} = map(lambda u: u + 1, {0})
{0}[0] = k
{2} = list({1})

{0} = [1, 2]
{1} = enumerate({0})
{0}.append(k)
{2} = len(list({1}))

{0} = [1, 2]
{1} = (u + 1 for u in {0})
{0}.append(k)
{2} = sum({1})

{0} = [1, 2]
{1} = itertools.chain({0}, (3,))
{0}.append(k)
{2} = list({1})

{0} = [1, 2]
{1} = {0}.append
{1}(k)
{2} = len({0})

{0} = {{1: 2}}
{1} = {0}.get
{0}[k] = 5
{2} = {1}(k)

{0} = {{1: 2}}
{1} = {0}.values()
{0}[k + 2] = 5
{2} = list({1})

{0} = [1]
{1} = collections.deque([{0}])
{0}.append(k)
{2} = len({1}[0])

{0} = [1]
{1} = [lambda: len({0}), lambda: {0}[-1]]
{0}.append(k)
{2} = [u() for u in {1}]

{0} = [1]
def {1}(u={0}):
    return len(u)
{0}.append(k)
{2} = {1}()

{0} = [1]
{1} = (lambda u: u)({0})
{0}.append(k)
{2} = len({1})

{0} = [1]
{1} = collections.defaultdict(lambda: {0})
{0}.append(k)
{2} = len({1}[3])

{0} = [[1], [2]]
{1} = copy.copy({0})
{0}[0].append(k)
{2} = len({1}[0])

{0} = [[1], [2]]
{1} = np.array({0}, dtype=object)
{0}[0][0] = k
{2} = {1}.shape

{0} = [1, 3]
{1} = heapq.merge({0}, [2])
{0}[1] = k + 3
{2} = list({1})

{0} = [1, 2]
{1} = operator.methodcaller('index', 2)
{0}.insert(0, k + 5)
{2} = {1}({0})

{0} = ValueError([1, 2])
{1} = {0}.args[0]
{1}.append(k)
{2} = len({0}.args[0])

{0} = {a} + 0
{1} = functools.partial(np.max, {0})
{0}[...] = k
{2} = {1}()

{0} = {a} + 0
{1} = types.SimpleNamespace(kept={0})
{0}[...] = k
{2} = {1}.kept

{0} = {v} + 0
{1} = iter({0})
{0}[...] = k
{2} = list({1})

{0} = {v} + 0
{1} = {0}.flat
{0}[...] = k
{2} = list({1})

{0} = bytearray(8)
{1} = np.frombuffer({0}, np.uint8)
{0}[3] = k
{2} = {1} + 0
""".strip().split("\n\n")
