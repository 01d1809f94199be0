"""Idioms of Python's modules, and of calls by keyword: see `random_idioms`."""

from __future__ import annotations

MODULES = """
{0} = []
for u in {v}.tolist():
    heapq.heappush({0}, u)
    if len({0}) > 2:
        {1} = heapq.heappop({0})

{0} = [(u * u, i) for i, u in enumerate({v}.tolist())]
heapq.heapify({0})
{1} = []
while {0} and len({1}) < k:
    {1}.append(heapq.heappop({0})[1])

{0} = [9, 2, k]
heapq.heapify({0})
{1} = heapq.heappushpop({0}, 3)
{2} = heapq.heapreplace({0}, k)

{0} = heapq.nsmallest(2, {v}.tolist())
{1} = heapq.nlargest(k, [3, 1, 2])

{0} = sorted({v}.tolist())
{1} = bisect.bisect_left({0}, {n})
{2} = bisect.bisect({0}, k)

{0} = []
for u in {v}.tolist():
    bisect.insort({0}, u)
bisect.insort_left({0}, 1)

{0} = collections.deque()
for u in {v}.tolist():
    {0}.append(u)
    if len({0}) > 2:
        {0}.popleft()
{0} = list({0})

{1} = collections.deque([(0, k)])
{2} = {{0}}
{0} = 0
while {1}:
    i, j = {1}.popleft()
    {0} += i * j
    for u in (i + 1, i * 2):
        if u < 9 and u not in {2}:
            {2}.add(u)
            {1}.append((u, j - 1))
{1} = len({1})
{2} = sorted({2})

{1} = collections.Counter(({v} > 0).tolist())
{0} = {1}[True], sum({1}.values()), {1}.most_common(1)
{1} = len({1})

{1} = collections.defaultdict(int)
for i, u in enumerate({v}):
    {1}[i % 2] += int(u > 0)
{0} = {1}[1]
{1} = dict({1})

{1} = collections.defaultdict(list)
for i in range(k):
    {1}[i % 3].append(i)
{0} = [(u, len({1}[u])) for u in sorted({1})]
{1} = None

{0} = math.floor({n})
{1} = math.ceil({n} / 2)
{2} = math.trunc(k / 2)

{0} = math.gcd(k, 6)
{1} = math.comb(5, k)
{2} = math.factorial(k)

{0} = math.isqrt(k)
{1} = math.copysign(k, {n})
{2} = math.isnan({n})

{0} = math.sqrt({n}) > 1

{0} = math.log({n}) > 0

{0} = -math.inf
for u in {v}:
    if u > {0}:
        {0} = u

{0} = [math.inf] * 4
{0}[0] = 0
for i in range(1, 4):
    {0}[i] = min({0}[i], {0}[i - 1] + k)

{0} = math.floor({v}[0])
{1} = math.prod({v}.tolist()[:3])

{0} = math.modf({n})
{1} = math.fmod({n}, 3)

{0} = list(itertools.accumulate(({v} > 0).tolist()))
{1} = list(itertools.accumulate({v}, max))

{0} = list(itertools.chain({v}.tolist(), range(k)))
{1} = list(itertools.islice({v}, 1, 3))

{0} = [u + w for u, w in itertools.pairwise({v})]

{0} = [(i, j) for i, j in itertools.product(range(2), range(3)) if i + j != k]
{1} = list(itertools.combinations(range(4), 2))

{0} = 0
for i in itertools.count(k, 2):
    if i > 7:
        break
    {0} += i

{0} = list(itertools.takewhile(lambda u: u > 0, {v}))
{1} = list(itertools.dropwhile(lambda u: u > 0, {v}))

{0} = list(itertools.compress({v}, {v} > 0))

{0} = [u for u in itertools.chain.from_iterable([[1, k], [2]])]
{1} = list(itertools.repeat(k, 3))

{0} = list(itertools.starmap(lambda u, w: u - w, zip({v}, {v}[1:])))

{0} = functools.reduce(lambda u, w: w - u, {v})
{1} = functools.reduce(operator.add, [1, k], 2)

{1} = functools.partial(np.maximum, 1)
{0} = {1}({a})
{1} = None

{1} = functools.partial(lambda u, w=1: u - w, w=2)
{0} = {1}({x})
{1} = None

@functools.lru_cache(None)
def {1}(i):
    return 1 if i < 2 else {1}(i - 1) + {1}(i - 2)
{0} = {1}(k + 5)

@functools.cache
def {1}(i, j):
    if i < 0 or j < 0:
        return 0
    return 1 if i + j == 0 else {1}(i - 1, j) + {1}(i, j - 1)
{0} = {1}(k, 3)

{0} = operator.sub({x}, 1)
{1} = operator.itemgetter(0)({v})

{0} = sorted([(k, 1), (0, 2), (k, 0)], key=operator.itemgetter(0))

def {1}(u, w=2, *more, last=1, **named):
    return u * last, w, len(more), sorted(named)
{0} = {1}({x}, last=2)
{2} = {1}(k, 1, 2, 3, z=1)

def {1}(u, /, *, w=2, **named):
    return u * w + named.get('u', 0)
{0} = {1}({x}, u=k)

def {1}(u, w=2, **named):
    return u, w
{0} = {1}({x}, **{{'w': k}})
{2} = {1}(*(k, 1))
""".strip().split("\n\n")
