"""Idioms of loops, lists, dicts and sets: see `random_idioms`."""

from __future__ import annotations

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
