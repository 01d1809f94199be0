"""What users' functions are made of, in random programs: a few lines each, around arrays and numbers of the program.

Lists that grow in loops, work lists, counting in dicts and sets, nested searches that end early, recursion on parts,
generators, closures that keep state, `try` in loops, views of views changed in place, stores by repeated indices,
`out=` and `where=`, arrays of rank 0, small, unsigned and complex types beside others, small kernels.

{0}, {1}, {2} are new names, {x} and {y} any values, {n} a number, {a} and {b} arrays of rank 1 or more, {v} one of
rank 1, {m} of rank 2, {z} of rank 0; a form is drawn only where there is what it takes.
"""

from __future__ import annotations

import functools
import string
from typing import Any

from tests.property.random_syntax import Syntax

LOOPS = """
{0} = []
for u in {v}:
    if u < 0:
        continue
    {0}.append(u * 2)
    if len({0}) > 2:
        break
{1} = np.array({0})

{0} = [0.0]
for u in {v}:
    {0}.append({0}[-1] + u)
{1} = np.array({0}[1:])

{0} = []
{1} = []
for i in range(len({a})):
    ({0} if i % 2 else {1}).append(i)
{2} = np.array({0} + {1})

{0} = [k, 1]
while {0}:
    {1} = {0}.pop()
    if {1} > 1:
        {0}.append({1} // 2)
        {0}.append({1} - 2)

{0} = [(0, len({v}))]
{1} = 0
while {0}:
    i, j = {0}.pop()
    if j - i <= 1:
        {1} += 1
        continue
    {0}.append((i, (i + j) // 2))
    {0}.append(((i + j) // 2, j))

{0} = 0
while {0} < len({v}) and {v}[{0}] >= 0:
    {0} += 1

{0}, {1} = 0, len({v}) - 1
while {0} < {1}:
    {v}[{0}], {v}[{1}] = {v}[{1}], {v}[{0}]
    {0} += 1
    {1} -= 1

{0}, {1} = 0, {v}.size
while {0} < {1}:
    {2} = ({0} + {1}) // 2
    if {v}[{2}] < {n}:
        {0} = {2} + 1
    else:
        {1} = {2}

{0} = -1
for i in range(len({v})):
    if {v}[i] > 1:
        {0} = i
        break
else:
    {0} = -2

{0} = None
for i in range({m}.shape[0]):
    for j in range({m}.shape[1]):
        if {m}[i, j] > 1:
            {0} = (i, j)
            break
    if {0} is not None:
        break

for i in range({m}.shape[0]):
    for j in range({m}.shape[1]):
        if {m}[i, j] > 6:
            return_({m}, i, j)

for i in range(len({v})):
    if {v}[i] < -2:
        return_({v}, i)
    {v}[i] += 1

{0} = 0
for i in range(1, len({v})):
    j = i
    while j > 0 and {v}[j - 1] > {v}[j]:
        {v}[j - 1], {v}[j] = {v}[j], {v}[j - 1]
        j -= 1
        {0} += 1

{0} = {v}[0]
for u in {v}[1:]:
    {0} = max({0}, u)

{0} = 0
{1} = -1
for i, u in enumerate({v}):
    if u > {0}:
        {0}, {1} = u, i

for i in range(1, len({v})):
    {v}[i] += {v}[i - 1] // 2

for i in range(len({v}) - 2, -1, -1):
    {v}[i] = {v}[i] - {v}[i + 1]

for i in range(1, {m}.shape[0]):
    for j in range(1, {m}.shape[1]):
        {m}[i, j] = min({m}[i - 1, j], {m}[i, j - 1], {m}[i - 1, j - 1]) + 1

for i in range({m}.shape[0]):
    for j in range(i):
        {m}[i, j % {m}.shape[1]] = 0

{0} = np.zeros((k, 3))
for i in range(k):
    {0}[i] = i
    {0}[i, i % 3] -= 1
    if i > 1:
        {0}[i] += {0}[i - 1]

{0} = np.zeros(3, dtype=int)
for u in {v}:
    {0}[int(u > 0) + int(u > 2)] += 1

{0} = {a}.copy()
{1} = np.zeros_like({0})
for i in range(k):
    {1}[...] = {0} + 1
    {0}, {1} = {1}, {0}

{0} = {a}
for i in range(k):
    {0} = {0}[1:]
{0}[...] = 4

{0} = {a}
for i in range(k):
    {0} = {0}[::-1] + {0}

{0} = {a}[0]
for u in {a}[1:]:
    {0} = np.maximum({0}, u)

for i, u in enumerate({a}):
    u[...] = i

for u, w in zip({a}, {a}[::-1]):
    u += w

for i in range(len({a})):
    {a}[i] = {b}[-1 - i % len({b})]

{0} = 0
for u in {v}:
    if u != u:
        break
    {0} += u if u > 0 else -u

for i in range(len({v})):
    try:
        {v}[i] = {v}[i + 1]
    except IndexError:
        {v}[i] = 9

{0} = 0
for i in range(4):
    try:
        {0} += 6 // (i - k)
    except ZeroDivisionError:
        {0} += 100
        continue
    finally:
        {0} += 1

{0} = 0
for u in (1, 'x', 2.5):
    try:
        {0} += u
    except TypeError:
        break

{0} = []
for i in range(3):
    try:
        {0}.append({v}[i * k])
    except IndexError as error:
        {0}.append(-1)

try:
    for i in range(9):
        {v}[i] += 1
except IndexError:
    {0} = i

for i in range(k):
    if i == 3:
        raise ValueError(i)
    {a}[0] = i

{0} = [[] for i in range(3)]
for i, u in enumerate({v}):
    {0}[i % 3].append(u)
{1} = [len(u) for u in {0}]

{0} = [[0] * 3 for i in range(k)]
for i in range(k):
    {0}[i][i % 3] = i
{1} = np.array({0})

{0} = [{a}] * 2
for u in {0}:
    u[0] += 1

{0} = {a}.copy()
for i in range(2):
    {0} -= {0}[0]

{0} = 10
while True:
    {0} -= 3
    if {0} % 4 == 0:
        continue
    if {0} < k:
        break

{0}, {1} = 48, k + 1
while {1}:
    {0}, {1} = {1}, {0} % {1}

{0} = 27
{1} = 0
while {0} != 1 and {1} < 20:
    {0} = {0} // 2 if {0} % 2 == 0 else 3 * {0} + 1
    {1} += 1

{0} = np.ones(5, bool)
for i in range(2, 5):
    if {0}[i]:
        {0}[i * i::i] = False
{1} = np.flatnonzero({0})

{0} = [1, 1]
while len({0}) < 6:
    {0}.append({0}[-1] + {0}[-2])

for {0} in range(len({a}) - 1, 0, -2):
    {a}[{0}] -= {a}[{0} - 1]

{0} = iter({v})
{1} = [u for u in {0}]

{0} = 0
for i, (u, w) in enumerate(zip({v}, {v}[1:])):
    {0} += i * (w > u)
""".strip().split("\n\n")

TABLES = """
{0} = {{}}
for u in {v}.tolist():
    {0}[u] = {0}.get(u, 0) + 1

{0} = {{}}
for i in range(len({v})):
    if i % 2 in {0}:
        {0}[i % 2] += i
    else:
        {0}[i % 2] = i
{1} = sorted({0}.items())

{0} = {{}}
for i in range(k):
    {0}.setdefault(i % 2, []).append(i)

{0} = set()
for u in {v}.tolist():
    if u in {0} or u != u:
        continue
    {0}.add(u)
{1} = len({0})

{0} = {{'x': {x}, 'y': {y}}}
{0}['x'] = {0}['y']
{1} = list({0})

{0} = {{'n': 0, 'sum': 0.0}}
for u in {v}:
    {0}['n'] += 1
    {0}['sum'] += u

{0} = {{'x': {a}}}
{0}['x'][0] = 1
{0}['x'] = {0}['x'][::-1]

{0} = {{(i, j): i + j for i in range(2) for j in range(2)}}
{1} = {0}[k % 2, 1]

{0} = {{}}
for i in range(4):
    {0}[i] = {0}[i - 1] + {0}[i - 2] if i > 1 else i

{0} = {{i: {x} for i in range(3)}}
del {0}[k % 3]
{1} = list({0}.values())

{0} = {{1, 2}} | {{k}}
{1} = {0} & {{k, 5}}
{2} = len({0} - {1})

{0} = dict(zip(range(3), {v}))
{1} = max({0}.values(), default=0)

{0} = {{k: 1}}
{0}.update({{1: 2, 2: k}})
{1} = {0}.pop(k)

{0} = sum({{'x': 1, 'y': 2}}[u] for u in 'xyx')

{0} = {{u: w for u, w in zip('xy', ({x}, {y}))}}
for u, w in {0}.items():
    {1} = w
""".strip().split("\n\n")

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

IN_PLACE = """
{0} = {a}[1:]
{1} = {0}[::-1]
{1} += {0}

{0} = {a}[::-1][1:]
{0} -= {a}[:-1]

{0} = {a}.T
{0} += {0}[::-1]

{0} = {a}.reshape(-1)
{0}[1:] = {0}[:-1]

{0} = {a}.ravel()
{1} = {0}.reshape({a}.shape)
{1} *= 2

{0} = {a}[:]
{1} = {0}[:]
{1}[0] = {0}[-1]

{a}[1:][::-1][:1] = 7

{a}[::2][-1] += 1

{a}[1:] += {a}[:-1]

{a}[:-1] -= {a}[1:]

{a}[...] = {a}[::-1]

{a}[[0, 0, -1]] += 1

{a}[[0, 0]] = [[1], [2]] if {a}.ndim > 1 else [1, 2]

{a}[[-1, 0]] = {a}[[0, -1]]

{v}[[0, 0, -1]] = [1, 2, 3]

{v}[np.zeros(3, int)] += np.array([1, 2, 3], {v}.dtype)

np.add.at({v}, [0, 0, -1], [1, 2, 3])

np.add.at({a}, np.zeros(k, int), 1)

np.maximum.at({v}, [0, -1, 0], [1, 2, 3])

{0} = np.bincount(abs({v}.astype(int)) % 4, minlength=5)

{0} = np.zeros(4)
np.add.at({0}, abs({v}.astype(int)) % 4, {v} * 0 + 1)

{0} = np.zeros(4)
{0}[abs({v}.astype(int)) % 4] += 1

{v}[np.argsort({v}, kind='stable')] = np.arange(len({v}))

{v}[{v} > 0] = {v}[{v} > 0][::-1]

{m}[{m} > 1] = 0

{m}[:, [0, 0]] += 1

{m}[[0, -1], [0, 0]] = [5, 6]

{m}[np.arange({m}.shape[0]), 0] -= 1

{m}[np.ix_([0, -1], [0])] *= 2

{m}[:, 0], {m}[0] = 1, 2

{m}[0], {m}[-1] = {m}[-1].copy(), {m}[0].copy()

{m}[:, ::-1][0] = {m}[0]

{0} = {m}[0]
{1} = {m}[:, 0]
{0} += 1
{1} += {0}[0]

{0} = np.diagonal({m}).copy()
np.fill_diagonal({m}, 0)

{m}[np.tril_indices({m}.shape[0], -1, {m}.shape[1])] = 0

{m}.flat[1::2] = 0

{m}.T[0][::-1] -= 1

{a}.sort(axis=0)

{a}[::-1].sort(axis=0)

{a}[{a} == {a}.max()] = 0

np.putmask({a}, {a} > 0, {a}[::-1])

np.copyto({a}[1:], {a}[:-1] + 0)

np.add({a}[1:], 1, out={a}[:-1])

np.add({a}, {a}[::-1], out={a}, where={a} > 0)

np.subtract({a}, 1, out={a}[::-1])

{0} = np.zeros({a}.shape)
np.multiply({a}, 2, out={0}, where={a} != 0)

{0} = np.divide({a}, 2, out=np.full({a}.shape, -1.0), where={a} > 0)

{0} = np.sum({a}, where={a} > 0, initial=1)

{0} = np.max({a}, axis=0, initial=-9, where={a} < 2)

{0} = np.empty({a}.shape[1:], {a}.dtype)
np.max({a}, axis=0, out={0})

{0} = np.zeros({a}.shape[:1])
np.max({a}, axis=tuple(range(1, {a}.ndim)), out={0})

{0} = np.clip({a}, 0, 2, out={a})
{0}[0] = 9

{0} = np.cumsum({a} % 2, axis=0, out={a}) if {a}.ndim else {a}
{0} += 1

{0} = np.negative({a}, out={a}[::-1])

{a} += {a}
{a} -= {b}.ravel()[0]

{0} = {a}
{0} = {0} + 1
{a}[0] = 5

{0} = {1} = {a}[1:]
{0} += 1
{1} = {1} - 1

{0}, {1} = {a}[:1], {a}[-1:]
{0}[...], {1}[...] = {1}, {0}

{0} = {a}.view()
{0}[-1] = {a}[0]
{0} = {0}.copy()
{0}[0] = 8

{0} = np.concatenate([{a}, {a}[:0]])
{0}[0] = 3

{a}[-1:0:-1] = {a}[1:]

{a}[-2::-1] += 1

{0} = {a}[5:2:-1]
{1} = {a}[-1:-9:-2]

{0} = np.roll({a}, k, axis=0)
{a}[...] = {0}

{0} = np.lib.stride_tricks.sliding_window_view({v}, 2)
{1} = {0}.max(axis=-1)

{0} = np.where({a} > 0)
{a}[{0}] = -1

{0} = np.nonzero({v} > 0)[0]
{v}[{0}[:1]] = 0

{0} = np.take({a}, [0, -1, 0], axis=0)
{0}[0] += 1

{0} = np.delete({a}, 0, axis=0)
{1} = np.insert({0}, 0, 7, axis=0)
""".strip().split("\n\n")

TYPES = """
{0} = np.array({n})
{0} += 1
{1} = {0} + 1

{0} = np.array(k)
{0}[...] = 3
{1} = {0}[()]

{0} = np.asarray({x})
{1} = {0}[..., None]

{0} = np.zeros(())
{0}[()] += {n}
{1} = {0}.item()

{0} = {a}[0, ...] + np.zeros((), 'f4')

{0} = {z} + 1
{1} = {z}[...]
{2} = {z}[()]

{z}[...] = {z} + 1

{0} = {a} + {z}
{1} = {z}.reshape(1)

{0} = {a}.astype('f2') + np.float16(0.5)

{0} = {a}.astype('f2') + {a}.astype('f4')

{0} = {a}.astype('i1') + {a}.astype('u1')

{0} = (abs({a}) % 5).astype('u1') - 3 * (k > 9)

{0} = np.uint8(250) + np.arange(4, dtype='u1')

{0} = np.arange(3, dtype='u8') + np.arange(3)

{0} = np.arange(3, dtype='u8') - np.uint64(1)

{0} = np.arange(3, dtype='u4') * np.int8(-1)

{0} = -np.arange(3, dtype='u2')

{0} = np.arange(3, dtype='u1') >> np.int8(1)

{0} = ~{a}.astype('u1')

{0} = {a} * 1j
{1} = {0}.real
{1} = {0}.imag + 1

{0} = {a} + 0j
{0}.real[...] = 1
{0}.imag = 2

{0} = ({a} * (1 + 2j)).conj()
{1} = {0} == {a}

{0} = np.array([1 + 2j, {n}])
{1} = abs({0}.real)

{0} = {a}.astype(np.complex64) + np.float64(1)

{0} = np.result_type({a}, np.float32)
{1} = np.zeros(2, {0})

{0} = {a}.astype(bool)
{0} |= {0}[::-1]
{1} = {0} + {0}

{0} = np.arange(3, dtype=np.float32) * 2.5
{1} = {0} + np.arange(3)

{0} = np.float32(k) + 0.5
{1} = np.float32(k) + np.float64(0.5)

{0} = np.int32(k) + 1
{1} = np.int32(k) / 2

{0} = np.int8(100) + np.array([100], 'i1')

{0} = {a}.view('u1')
{1} = {0}.shape

{0} = {a}.dtype.kind
{1} = 1 if {0} == 'f' else 2

{0} = np.finfo(np.float32).eps * 2
{1} = np.iinfo({a}.dtype).max if {a}.dtype.kind in 'iu' else 0

{0} = np.full(3, {n})
{0}[1] = 2.5

{0} = np.full((2, 2), {n}, dtype='f4')
{0}[0] += {n}

{0} = np.array([{n}, k])
{1} = np.array([[{n}], [k]], dtype=float)

{0} = {a} == {a}
{1} = ({a} != {a}).any() or ({a} == {b}[0]).all()
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

FAMILIES = (LOOPS, TABLES, FUNCTIONS, IN_PLACE, TYPES, KERNELS)


@functools.cache
def words_of(form: str) -> frozenset[str]:
    """The words that a form leaves open."""
    return frozenset(word for _, word, _, _ in string.Formatter().parse(form) if word)


class Idioms(Syntax):
    def idiom(self, scope: dict[str, Any]) -> list[str]:
        """One of the forms, filled in."""
        self.refusable = True
        words = {"x": self.leaf(scope), "y": self.leaf(scope), "n": self.pick([*self.numbers(scope), "2", "0.5"])}
        arrays = self.arrays(scope, lambda a: a.ndim > 0)
        if arrays:
            words |= {"a": self.pick(arrays), "b": self.pick(arrays)}
        for word, rank in ("z", 0), ("v", 1), ("m", 2):
            some = self.arrays(scope, lambda a, rank=rank: a.ndim == rank)  # type: ignore[misc]
            if some:
                words[word] = self.pick(some)
        known = {*words, "0", "1", "2"}
        fitting = [[form for form in family if words_of(form) <= known] for family in FAMILIES]
        form = self.pick(self.pick([family for family in fitting if family]))
        return str(form.format(self.name(), self.name(), self.name(), **words)).splitlines()
