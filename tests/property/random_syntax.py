"""The forms of Python's syntax in random programs: each of these statements is there for its form, not its values."""

from __future__ import annotations

from typing import Any

from tests.property.random_statements import Statements

ASSIGNED = """
{0} = {1} = {x}
{0}: float = {x}
{0}, *{1} = [{x}, 1, 2]
({0}, {1}), _ = ({x}, 1), 2
{0} = ({1} := {x}) * 2
*{0}, {1} = (1, 2.5, k)
{0} = (lambda z, w=2: z * w)({x})
{0} = divmod(k, 3)
{0}, {1} = divmod(k, -4)
{0} = 1 if k else {x}
{0} = {x}; {1} = {0} if k > 1 else 2
{0} = 'a' if k > 1 else None
{0} = not k or {x}
{0} = k and {x}
assert k < 9, k
{0} = -k ** 2
{0} = k < 3 <= 7 != k
{0} = type(k)(2)
{0} = isinstance(k, int)
{0} = [k, {x}][-1]
{0} = (k, {x})[::-1]
{0} = abs(-k) // 2
{0} = sum(i * i for i in range(k) if i % 2)
{0} = {{i: {x} for i in range(2)}}[k % 2]
{0} = [[i * j for j in range(2)] for i in range(k)]
{0} = all(i < 3 for i in range(k)) or {x}
{0} = next(i for i in range(9) if i * i >= k)
{0} = int(k > 1) + True
{0} = min(k, 3, 2)
{0} = max((k, 1), default=0)
{0} = round(k * 1.5)
{0} = float('nan') if k == 9 else {x}
{0} = k << 2 | 1
{0} = ~k ^ 5
{0} = 7 >> k
{0} = pow(k, 2)
{0} = k / 2 // 1
{0} = 2.5 % (k + 1)
""".strip().split("\n")

ASSIGNED_BLOCKS = """
if ({0} := {x}) is not None:
    {1} = 1

with np.errstate(all='ignore'):
    {0} = {x} + 1

{0} = None
if k > 1:
    {0} = {x}
if {0} is not None:
    {1} = {0} + 1

match k:
    case 0:
        {0} = {x}
    case 1 | 2:
        {0} = {y}
    case _:
        {0} = {x}

match k, 1:
    case (2, n):
        {0} = n
    case (n, _) if n > 2:
        {0} = {x}
    case _:
        {0} = 5

try:
    {0} = {x}
finally:
    {1} = {y}

{0} = 0
while True:
    {0} += 1
    if {0} > k:
        break

{0} = 0
for i in range(k):
    for j in range(i, k):
        if j > 2:
            break
        {0} += j
    else:
        {0} += 10

def {0}(x, y={x}):
    return x, y
{1} = {0}(k)
""".strip().split("\n\n")

OF_ARRAYS = """
{0} = {a}[slice(None, k)]
{0} = {a}[(slice(1, None), ...)]
{0} = {a}.flat[0]
{a}.flat[k % {a}.size] = 3
{0} = {a}.shape
{0}, *_ = {a}.shape
{0} = {a}.dtype.type(3)
{0} = max({a}.shape)
{0} = {a}.size * {a}.ndim
{0} = {a}.sum(axis=-1, keepdims=True) * 0 + {a}
{0} = {a} + {a}[:1]
{0} = {a}.astype(bool) & True
{0} = [*{a}]
{0} = tuple({a}.shape[::-1])
{0} = {a}.dtype == np.float64
{0} = {a}.T.shape[0]
{a}[k:], {a}[:k] = {a}[:-k], {a}[-k:]
{a}[0], {a}[-1] = {a}[-1], {a}[0]
{0} = {a}.min() if {a}.size else 0
{0} = len({a}) and {a}[0]
{0} = {a}.reshape({a}.shape + (1,))
{0} = np.array([{a}[0], {a}[-1]])
{a}[{a} < 0] *= -1
{0} = {a}.any() and k
{0} = {a}.mean() > 1
{0} = {a}.tolist()[0]
{0} = {a} is {a}
{0} = {a}.itemsize + {a}.nbytes
{a}[:] = sorted({a})
""".strip().split("\n")

OF_ARRAYS_BLOCKS = """
{0} = np.zeros_like({a})
{0}[...] = {a}[::-1]

for {0} in range(len({a})):
    {a}[{0}] = {a}[-{0} - 1]

for {0} in np.ndindex({a}.shape):
    {a}[{0}] += 1

for {0}, {1} in np.ndenumerate({a}):
    {a}[{0}] = {1} * 2

for {0} in {a}:
    {0} *= 2

for {0} in {a}:
    {0}[...] = 1

for {0}, {1} in {a}:
    k += 1

{0} = {a}
{0} += 1

{0} = {a}[...]
{0} *= 2

for {0} in range(1, len({a}) - 1):
    {a}[{0}] = {a}[{0} - 1] + {a}[{0} + 1]

for {0} in reversed(range({a}.shape[0])):
    {a}[{0}] -= {a}[0]

for {0}, {1} in enumerate({a}, 1):
    {a}[{0} % len({a})] = {1}

{0} = {a}.copy()
{0}[{a} > 0] = -1

{0} = np.empty({a}.shape)
{0}.fill(2)
{0} -= {a}

{0} = 0
for {1} in {a}.ravel():
    if {1} < 0:
        continue
    {0} = {0} + {1}

try:
    {0} = {a}[k]
except IndexError as error:
    {0} = len(str(error))

{0} = {a}
if k > 1:
    {0} = {a}[::-1]
{0}[0] = 9

{0} = -{a}
{0}[:1] = {a}[-1:]

{0} = np.arange(k)
{0}[::2] = 7
{1} = {0}[{0} > 1]

{0} = {a}.argmax()
{1} = {a}.ravel()[{0}]
""".strip().split("\n\n")


OF_TUPLES = """
{0} = {t}[0]
{0} = {t}[-1] + 1
{0}, {1} = {t}[:2]
{0} = len({t})
{0} = sum({t})
{0} = np.stack({t})
{0} = np.concatenate({t})
{0} = np.array({t})
{0} = [x * 2 for x in {t}]
{0} = tuple(x[:1] for x in {t})
{t}[0][...] += 1
{t}[k % 2][:1] = 5
{0} = {t}[k % 2]
{0} = (*{t}, k)
{0} = {t}[::-1]
{0} = dict(zip('xy', {t}))
{0} = max(x.ndim for x in {t})
""".strip().split("\n")

OF_OTHERS = {
    slice: ["{0} = {x}[{o}]", "{0} = [1, 2, 3][{o}]", "{0} = {o}.start", "{0} = np.arange(5)[{o}]"],
    type: ["{0} = {o}({x})", "{0} = np.zeros(3, {o})", "{0} = np.asarray({x}, dtype={o})", "{0} = {o} is int"],
    dict: ["{0} = {o}['a']", "{o}['a'] = {x}", "{0} = sum({o}.values())", "{o}['a'][...] += 1", "{0} = 'b' in {o}"],
}
OF_OTHERS[dict] += ["{0} = {{**{o}, 'c': {x}}}", "{0} = {o}.get('c', {x})", "{0} = [x * 2 for x in {o}.values()]"]
OF_OTHERS[dict] += ["{0} = {o}['n'] * {x}", "{o}['n'] += 1", "{0} = {o}['mode'] == 'up'", "{o}['eps'] = {o}['n'] / 2"]
OF_OTHERS[dict] += ["{0} = {x} if {o}['mode'] == 'up' else {o}['eps']", "{0} = {o}.get('missing')", "{0} = sorted({o})"]
OF_OTHERS[dict] += ["{0} = sum(u * w for u, w in {o}.items())", "{0} = max({o}, key={o}.get)", "{0} = {o}[k]"]
OF_OTHERS[list] = [
    "{0} = {o}[0][1]",
    "{o}[0].append(k)",
    "{0} = [len(u) for u in {o}]",
    "{0} = sum(sum(u) for u in {o})",
]
OF_OTHERS[list] += [
    "{0} = [u + w for u, w in {o}]",
    "{0} = np.array({o})",
    "{0} = [*{o}, *{o}]",
    "{0} = list(zip(*{o}))",
]
OF_OTHERS[list] += [
    "{0} = {o}[k % 2][0]",
    "{o}[-1] = {o}[0]",
    "{0} = sum({o}, [])",
    "{0} = {o} == [k]",
    "{0} = {x} * {o}[0]",
]
OF_OTHERS[range] = ["{0} = [{x} for i in {o}]", "{0} = {o}[1] + len({o})", "{0} = np.array({o})", "{0} = sum({o})"]
OF_OTHERS[range] += ["{0} = k in {o}", "{0} = {o}[::-1]", "{0} = list({o}[1:])", "{0} = {o}.stop"]


class Syntax(Statements):
    def syntax(self, scope: dict[str, Any]) -> list[str]:
        self.refusable = True
        arrays = self.arrays(scope, lambda a: a.ndim > 0)
        words = {"x": self.leaf(scope), "y": self.leaf(scope)}
        form = self.pick([*ASSIGNED, *ASSIGNED_BLOCKS])
        if arrays and self.chance(60):
            form, words["a"] = self.pick([*OF_ARRAYS, *OF_ARRAYS_BLOCKS]), self.pick(arrays)
        tuples = [name for name, value in scope.items() if isinstance(value, tuple)]
        if tuples and self.chance(40):
            form, words["t"] = self.pick(OF_TUPLES), self.pick(tuples)
        others = [name for name, value in scope.items() if isinstance(value, tuple(OF_OTHERS))]
        if others and self.chance(40):
            words["o"] = self.pick(others)
            form = self.pick(next(forms for kind, forms in OF_OTHERS.items() if isinstance(scope[words["o"]], kind)))
        return str(form.format(self.name(), self.name(), **words)).splitlines()
