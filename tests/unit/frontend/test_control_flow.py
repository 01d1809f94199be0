"""Control flow, expressions and statements: the untyped IR does what the function does."""


# ruff: noqa: E501
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.ssa_programs import assert_same, define

LIMIT = 3

# (source, calls): every call must give the same result, exception and changed arguments.
PROGRAMS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "early return": ("def f(x):\n    if x > 0:\n        return 1\n    return 2", [(1,), (0,)]),
    "no return": ("def f(x):\n    x += 1", [(1,)]),
    "return in one branch": ("def f(x):\n    if x: return 1", [(0,), (1,)]),
    "return from nested loops": (
        """
def f(n, k):
    for i in range(n):
        for j in range(n):
            if i * j == k:
                return i, j
        else:
            k += 1
    return n
""",
        [(4, 6), (0, 0), (3, 100), (5, 7)],
    ),
    "break and return in one loop": (
        """
def f(n):
    while True:
        n -= 1
        if n % 7 == 0:
            break
        if n % 5 == 0:
            return "return", n
    return "break", n
""",
        [(8,), (6,), (24,), (27,)],
    ),
    "for else": (
        """
def f(n):
    for d in range(2, n):
        if n % d == 0:
            break
    else:
        return "prime"
    return d
""",
        [(7,), (9,), (2,), (1,), (35,)],
    ),
    "while else with continue": (
        """
def f(n):
    s = 0
    while n > 0:
        n -= 1
        if n % 2: continue
        if n == 4: break
        s += n
    else:
        s = -s
    return s, n
""",
        [(4,), (9,), (0,)],
    ),
    "break in else of inner loop": (
        """
def f(n):
    out = []
    for i in range(n):
        for j in range(i):
            if j == 2: break
        else:
            if i == 3: break
            continue
        out.append(i)
    else:
        out.append("all")
    return out
""",
        [(2,), (3,), (5,), (8,)],
    ),
    "conditional leave deep in a branch": (
        """
def f(a, b):
    x = 0
    if a:
        x = 1
        if b:
            return "early"
        x = 2
    else:
        x = 3
    x += 10
    return x
""",
        [(0, 0), (1, 0), (1, 1)],
    ),
    "flags through loops": (
        """
def f(n):
    t = 0
    for i in range(n):
        if i % 2:
            if i % 3 == 0:
                continue
            t += 1
            if t > 4:
                break
        else:
            t += 10
        t += 100
    return t, i
""",
        [(1,), (3,), (12,), (0,)],
    ),
    "unbound loop variable": ("def f(n):\n    for i in range(n): pass\n    return i", [(0,), (3,)]),
    "unbound in a branch": ("def f(c):\n    if c: x = 1\n    return x", [(0,), (1,)]),
    "read before binding": ("def f():\n    y = x\n    x = 1\n    return y", [()]),
    "del": ("def f(c):\n    x = c\n    if c: del x\n    return x", [(0,), (1,)]),
    "del in a loop": (
        "def f(n):\n    x = 5\n    for i in range(n):\n        if i == 1: del x\n        elif i == 2: x = 7\n    return x",
        [(0,), (1,), (2,), (3,)],
    ),
    "del of an unbound name": ("def f(c):\n    if c: x = 1\n    del x\n    return c", [(0,), (1,)]),
    "raise": (
        "def f(x):\n    if x < 0:\n        raise ValueError(f'negative: {x!r:>5} {x:03d}')\n    return x",
        [(1,), (-1,)],
    ),
    "raise in every branch but one": (
        """
def f(x):
    if x == 0:
        y = 'zero'
    elif x == 1:
        raise KeyError(x)
    else:
        raise ValueError
    return y
""",
        [(0,), (1,), (2,)],
    ),
    "raise in a loop": (
        "def f(n):\n    for i in range(n):\n        y = i\n        if i == 3: raise ValueError(y)\n    return y",
        [(0,), (2,), (5,)],
    ),
    "assert": (
        "def f(x):\n    assert x, f'bad {x}'\n    assert x > 1\n    return x",
        [(0,), (1,), (2,)],
    ),
    "assert message is evaluated late": ("def f(x):\n    assert x > 0, 1 // x\n    return x", [(0,), (1,), (-1,)]),
    "or and and": (
        "def f(a, b, c):\n    return a and b or c, a or b and c, not (a and b), (a and b) if c else (b or a)",
        [(a, b, c) for a in (0, 1) for b in ([], 2) for c in (0, "x")],
    ),
    "truth of arrays is asked": (
        "def f(a):\n    if a and True: return 1\n    return 2",
        [(np.array([1]),), (np.array([1, 2]),), (np.array([0]),)],
    ),
    "comparison chain": (
        "def f(a, b, c, log):\n    r = a < log.pop() <= c != b\n    return r, log, 1 if a < b < c else 2",
        [(1, 2, 3, [2, 1]), (3, 2, 1, [0, 5]), (1, 2, 3, [0, 9])],
    ),
    "chain of arrays": ("def f(a, b):\n    return a < b < 3", [(np.array([1]), np.array([2]))]),
    "walrus": (
        "def f(n):\n    while (m := n - 1) > 0 and (k := m * 2):\n        n = m\n    return n, m, k",
        [(4,), (1,)],
    ),
    "walrus in while with else": (
        "def f(n):\n    while (n := n - 2) > 0:\n        if n == 3: break\n    else:\n        n = n * 10\n    return n",
        [(4,), (7,), (0,), (5,)],
    ),
    "walrus order": ("def f(a):\n    return a + (a := 3) + a", [(1,)]),
    "short-circuited walrus": ("def f(a):\n    a and (b := a)\n    return b", [(0,), (1,)]),
    "augmented subscript evaluates its index once": (
        "def f(x, i):\n    x[i.pop()] += 1\n    x[i.pop()] *= 2\n    return x, i",
        [([1, 2, 3], [0, 1, 2])],
    ),
    "augmented names change arrays in place": (
        "def f(a):\n    b = a\n    b += 1\n    c = b\n    c = c + 1\n    return a, b, c",
        [(np.arange(3),), (1,)],
    ),
    "all operators": (
        "def f(a, b):\n"
        "    return (a + b, a - b, a * b, a / b, a // b, a % b, a ** b, a & b, a | b, a ^ b, a << b, a >> b, -a, +a, ~a,"
        " a == b, a != b, a < b, a <= b, a > b, a >= b, a is b, a is not b, a in [b], a not in [b])",
        [(7, 3), (0, 5), (2, 2)],
    ),
    "all augmented operators": (
        "def f(a, b):\n    o = []\n"
        + "".join(
            f"    c = a\n    c {op}= b\n    o.append(c)\n"
            for op in ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"]
        )
        + "    return o",
        [(7, 3), (12, 1)],
    ),
    "matmul": ("def f(a):\n    b = a @ a\n    b @= a\n    return b", [(np.arange(9.0).reshape(3, 3),)]),
    "swap": ("def f(a, b):\n    a, b = b, a\n    [a, b] = [b + 1, a]\n    return a, b", [(1, 2)]),
    "star target": (
        "def f(x):\n    a, *b, (c, d) = x\n    *e, g = b\n    return a, b, c, d, e, g",
        [([1, 2, 3, (4, 5)],), ([1, (4, 5)],), ([1],)],
    ),
    "chained targets": (
        "def f(x):\n    a = x[0] = b, c = 3, 4\n    return a, b, c, x",
        [([0, 1],)],
    ),
    "order of assignment": (
        "def f(x, i):\n    x[i.pop()] = i.pop()\n    x[i.pop()], x[i.pop()] = i.pop(), i.pop()\n    return x, i",
        [([0] * 9, [1, 2, 3, 4, 5, 6])],
    ),
    "for target is an element": ("def f(x):\n    for x[0] in range(4): pass\n    return x", [([7, 8],)]),
    "for with tuple target": (
        "def f(x):\n    s = 0\n    for i, (a, *b) in enumerate(x):\n        s += i * a + len(b)\n    return s, b",
        [([(1, 2), (3, 4, 5)],), ([],)],
    ),
    "displays": (
        "def f(a, b):\n    return [a, *b, a], (*b, *b), {'k': a, a: b}, [], (), {}",
        [(1, (2, 3))],
    ),
    "subscripts": (
        "def f(a):\n    return a[1:], a[::-1, 1], a[..., None], a[0, 1], a[(0, 1), 1:2], a[-1][0], a[:2][1]",
        [(np.arange(6).reshape(3, 2),)],
    ),
    "store to slices": (
        "def f(a):\n    a[1:] += a[:-1]\n    a[::2] = 0\n    a[-1] -= 1\n    return a",
        [(np.arange(5),)],
    ),
    "attributes": (
        "def f(a):\n    a.shape = 2, 3\n    a.flat[2] = 9\n    return a.T.shape, a.sum(axis=0), a",
        [(np.arange(6),)],
    ),
    "arguments": (
        """
def f(a, /, b, *c, d=4, e, **g):
    return a, b, c, d, e, g
def g(x):
    return x
""".replace("def f(a, /, b, *c, d=4, e, **g)", "def f(a, /, b=2, *c)").replace("d, e, g", "a"),
        [(1,), (1, 2, 3, 4), ()],
    ),
    "calls with stars": (
        "def f(a, k):\n    return dict(*a, **k, z=1), max(*a[0], 5), print(*[], end='')",
        [(([(1, 2)],), {"y": 3})],
    ),
    "f-strings": (
        "def f(x):\n    return f'{x} {x!r} {x!s:>4} {x:.2f} {{}} {x=}'",
        [(1,), (2.5,)],
    ),
    "import": (
        "def f(x):\n"
        "    import math, os.path\n    import os.path as p\n    from math import sqrt as root, pi\n"
        "    return math.floor(x), root(x), pi, os.path.join('a', 'b'), p.join('c', 'd')",
        [(4.0,)],
    ),
    "errstate": (
        "import numpy as np\n"
        "def f(x):\n    with np.errstate(divide='ignore', invalid='ignore'):\n        if x > 2: return 'early'\n        y = x\n"
        "    return y",
        [(1,), (3,)],
    ),
    "docstring, pass, annotations": (
        'def f(x: int) -> "int":\n    "doc"\n    y: int\n    z: int = x\n    pass\n    ...\n    return z',
        [(1,)],
    ),
    "constant conditions": (
        "def f(x):\n    if 0: return bad\n    if True:\n        while 1:\n            x += 1\n            if x > 5: break\n    return x",
        [(1,), (9,)],
    ),
    "endless loop that only returns": (
        "def f(x):\n    while True:\n        x += 3\n        if x > 10: return x\n    else:\n        return 0",
        [(1,)],
    ),
    "bound at every break": (
        "def f(n):\n    while True:\n        if n > 3:\n            y = n\n            break\n        n += 1\n    return y",
        [(1,), (9,)],
    ),
    "constants keep their type": (
        "def f(c):\n    x = 1\n    if c == 1: x = True\n    elif c == 2: x = 1.0\n    elif c == 3: x = -0.0\n    else: x = 0.0\n    return x",
        [(0,), (1,), (2,), (3,)],
    ),
    "unreachable code": ("def f(x):\n    return x\n    y = 1\n    return y", [(1,)]),
    "unreachable code makes locals": ("def f(x):\n    return y\n    y = 1", [(1,)]),
    "all branches leave": (
        "def f(n):\n    for i in range(n):\n        if i == 2:\n            return i\n        else:\n            continue\n        i = 9\n    return -1",
        [(1,), (5,)],
    ),
    "nested stop flags": (
        """
def f(n):
    log = []
    for i in range(n):
        for j in range(n):
            for k in range(n):
                if k == 2: break
                if i + j == 4: return log, 'deep'
                log.append(k)
            else:
                continue
            if j == 2: break
            log.append('j')
        log.append('i')
    else:
        log.append('else')
    return log
""",
        [(0,), (1,), (2,), (3,), (4,)],
    ),
    "return None explicitly": (
        "def f(x):\n    for i in x:\n        if i: return\n    return 1",
        [([0],), ([1],), ([],)],
    ),
    "loop over an iterator that is used after a break": (
        "def f(x):\n    it = iter(x)\n    for i in it:\n        if i > 1: break\n    return list(it)",
        [([1, 2, 3, 4],)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, calls = PROGRAMS[name]
    assert_same(define(text.strip("\n")), *calls)


def test_keywords_and_defaults() -> None:
    def f(a, /, b=2, *c, d=4, e, **g):
        return a, b, c, d, e, g

    from parakeet_py.frontend import to_ssa
    from parakeet_py.frontend.evaluate.evaluator import evaluate

    executed = evaluate(to_ssa(f), f)
    assert executed(1, e=5) == f(1, e=5)
    assert executed(1, 2, 3, e=5, d=6, h=7) == f(1, 2, 3, e=5, d=6, h=7)
    with pytest.raises(TypeError):
        executed(1)


def test_globals_and_free_names() -> None:
    scale = 10

    def f(x):
        return x * scale + LIMIT + len([x])

    assert_same(f, (1,), (2,))


def test_nonlocal_and_global_may_be_read() -> None:
    scale = 10

    def f(x):
        nonlocal scale
        global LIMIT
        return x * scale + LIMIT

    assert_same(f, (1,))
