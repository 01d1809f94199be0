"""Idioms of functions and small kernels: see `random_idioms`."""

from __future__ import annotations

FUNCTIONS = """
def {0}(x):
    for i in range(len(x)):
        if x[i] > 1:
            return i
    return -1
{1} = {0}({v})

def {0}(x):
    if x.size < 2:
        return x
    return np.concatenate(({0}(x[1::2]), {0}(x[::2])))
{1} = {0}({v})

def {0}(x):
    if len(x) <= 1:
        return x * 1
    p = x[0]
    rest = x[1:]
    return np.concatenate((rest[rest < p], x[:1], rest[~(rest < p)]))
{1} = {0}({v})

def {0}(i, j):
    if j - i == 1:
        return {v}[i]
    mid = (i + j) // 2
    return max({0}(i, mid), {0}(mid, j))
{1} = {0}(0, len({v}))

def {0}(n):
    return n if n < 2 else {0}(n - 1) + {0}(n - 2)
{1} = {0}(k + 3)

def {0}(n, x):
    if n == 0:
        return 0, x
    m, z = {0}(n - 1, x)
    return m + n, z + 1
{1}, {2} = {0}(3, {x})

def {0}(x, n):
    if n == 0:
        return
    x[...] += n
    {0}(x[1:], n - 1)
{0}({a}, 2)

def {0}(x):
    x[...] = 3
    x = x + 1
    return x
{1} = {0}({a}[1:])

def {0}(x, y):
    x[0] = y[-1]
    y[0] = x[-1]
    return x, y
{1}, {2} = {0}({a}, {a})

def {0}(x, y, out):
    np.add(x, y, out=out)
    return out
{1} = {0}({a}, {a}[::-1], {a})

def {0}():
    nonlocal_ = [0]
    def step(u):
        nonlocal_[0] += u
        return nonlocal_[0]
    return step(1) + step(2)
{1} = {0}()

def {0}(n):
    total = n
    def add(u):
        nonlocal total
        total += u
        return total
    for i in range(3):
        add(i)
    return total
{1} = {0}({n})

def {0}(n):
    for i in range(n):
        if i == 4:
            return
        yield i * 2
{1} = list({0}(k))

def {0}(x):
    for u in x:
        yield u + 1
{1} = sum({0}({v}))

def {0}(x):
    for i, u in enumerate(x):
        if u < 0:
            yield i, u
{1} = [i + u for i, u in {0}({v})]

{0} = [lambda u: u + 1, lambda u: u * 2]
{1} = {0}[0]({0}[1]({x}))

def {0}(f, x, n):
    for i in range(n):
        x = f(x)
    return x
{1} = {0}(lambda u: u * 2, {x}, 3)

{0} = {{'up': np.maximum, 'down': np.minimum}}
{1} = {0}['up' if k > 1 else 'down']({x}, {y})

def {0}(x, *, axis=0, scale=1):
    return np.max(x, axis=axis) * scale
{1} = {0}({a}, scale=2)

def {0}(*parts, **named):
    total = 0
    for part in parts:
        total = total + np.max(part)
    return total * named['scale']
{1} = {0}({a}, {n}, scale=2)

def {0}(x, strict=False):
    if not strict:
        return x
    if x.ndim != 1:
        raise ValueError('rank %d' % x.ndim)
    return x[::-1]
{1} = {0}({a}, strict=True)

def {0}(x):
    try:
        return x[k]
    except IndexError:
        return x[0]
    finally:
        x[0] = 2
{1} = {0}({v})

def {0}(x, y=[]):
    y = y + [x]
    return len(y)
{1} = {0}({n}) + {0}({n})

{0} = sorted({v}, key=lambda u: -u)

{0} = sorted(range(len({v})), key=lambda i: {v}[i])

{0} = max(range(len({v})), key=lambda i: {v}[i])

{0} = list(filter(lambda u: u > 0, {v}))

{0} = np.apply_along_axis(lambda u: u[::-1], 0, {a})

{0} = np.vectorize(lambda u: u + 1 if u > 0 else 0)({v})
""".strip().split("\n\n")

KERNELS = """
{0} = {a} * 1.0
for i in range(20):
    {1} = np.floor({0} / 2)
    if np.max(abs({0} - {1})) < 1:
        break
    {0} = {1}

{0} = {v} * 1.0
for i in range(k):
    {0}[1:-1] = np.floor(({0}[:-2] + {0}[2:]) / 2)
    {0}[0] = {0}[-1] = i

{0} = np.zeros({m}.shape)
{0}[1:-1, 1:-1] = {m}[:-2, 1:-1] + {m}[2:, 1:-1] - 4 * {m}[1:-1, 1:-1]

for i in range(1, {m}.shape[0] - 1):
    for j in range(1, {m}.shape[1] - 1):
        {m}[i, j] = ({m}[i - 1, j] + {m}[i + 1, j] + {m}[i, j - 1]) // 2

{0} = np.zeros(({m}.shape[0], {m}.shape[0]))
for i in range({m}.shape[0]):
    for j in range({m}.shape[0]):
        u = 0.0
        for w in range({m}.shape[1]):
            u += {m}[i, w] * {m}[j, w]
        {0}[i, j] = u

{0} = np.empty(({m}.shape[1], {m}.shape[0]))
for i in range({m}.shape[0]):
    for j in range({m}.shape[1]):
        {0}[j, i] = {m}[i, j]

{0} = {v}[:, None] - {v}[None, :]
{1} = np.argmin(abs({0}), axis=1)
{2} = (abs({0}) < 2).sum(axis=0)

{0} = np.zeros(({v}.size, 4))
{0}[np.arange({v}.size), abs({v}).astype(int) % 4] = 1
{1} = {0}.sum(axis=0)

{0}, {1} = np.unique({v} % 3, return_counts=True)
{2} = {0}[np.argmax({1})]

{0} = np.sort({v})
{1} = np.searchsorted({0}, {v}, side='right')

{0} = np.where({a} > 2, {a} - 1, np.where({a} < 0, -{a}, {a} * 2))

{0} = {m} - {m}.min(axis=0)
{1} = {0} / np.maximum({0}.max(axis=0), 1) * 4 // 1

{0} = {m}.sum(axis=1, keepdims=True)
{1} = np.where({0} != 0, {m} + {0}, 0)

{0} = {m}[:, {m}.any(axis=0)]
{1} = {0}[{0}[:, :1].ravel() > 0]

{0} = np.array([{v}[max(i - 1, 0):i + 2].max() for i in range({v}.size)])

{0} = np.array([np.sum({m} == i) for i in range(3)])

{0} = np.cumsum(({v} > 0).astype(int))
{1} = {v}[{0} == 1]

{0} = np.diff({v}) if {v}.size > 1 else {v}
{1} = np.flatnonzero(({0} > 0)[1:] != ({0} > 0)[:-1])

{0} = np.full({m}.shape, np.inf)
for i in range({m}.shape[0]):
    for j in range({m}.shape[1]):
        if {m}[i, j] > 0:
            {0}[i, j] = 0
        if i:
            {0}[i, j] = min({0}[i, j], {0}[i - 1, j] + 1)

{0}, {1} = {v}.min(), {v}.max()
for i in range(8):
    {2} = ({0} + {1}) / 2
    if np.sum({v} > {2}) > k:
        {0} = {2}
    else:
        {1} = {2}

{0} = np.zeros({v}.size + 1)
for i in range({v}.size):
    {0}[i + 1] = max({0}[i], ({0}[i - 1] if i else 0) + {v}[i])

{0} = np.eye(2, dtype=int)
for i in range(k):
    {0} = {0} @ np.array([[1, 1], [1, 0]])

{0} = [{v}[0], {v}[-1]]
for i in range(k):
    {0}[0], {0}[1] = {0}[1], {0}[0] + {0}[1]

{0} = (1, 0)
for i in range(k):
    {0} = ({0}[0] + {0}[1], {0}[0])

{0} = {v}.copy()
for i in range({v}.size):
    j = i + int(np.argmin({0}[i:]))
    {0}[[i, j]] = {0}[[j, i]]

{0} = sum({v}[i] * {v}[-i - 1] for i in range(len({v}) // 2))

{0} = all({v}[i] <= {v}[i + 1] for i in range(len({v}) - 1))

{0} = [({v}[i], j) for i in range(len({v})) for j in range(i) if {v}[i] > {v}[j]]

{0} = np.array([[u + w for u in {v}] for w in range(k)])

{0} = np.stack([{v}, {v}[::-1]])
{0}[0] += {0}[1]
{1} = {0}.T.copy()

{0} = np.zeros(({v}.size, 2), dtype=int)
for i, u in enumerate({v}):
    {0}[i] = i, int(u > 0)

{0} = np.linspace(0, 4, 5)
{1} = {0}[:, None] * {0} + {n}

{0} = ({v} > 0).tolist()
{1} = [i for i, u in enumerate({0}) if u]

for i in range(len({a})):
    if np.all({a}[i] > 0):
        {a}[i] = 0
    elif np.any({a}[i] < 0):
        {a}[i] *= -1
    else:
        continue
    {a}[i] += 1
""".strip().split("\n\n")
