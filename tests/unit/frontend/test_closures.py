"""Nested functions, lambdas and comprehensions: captures by value where Python's are by reference."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import pytest

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.frontend import to_ssa
from tests.helpers.ssa_programs import assert_same, define

PROGRAMS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "nested def": (
        "def f(x):\n    def g(y, z=x, *, w=2):\n        return x + y * z + w\n    return g(1), g(2, 3), g(1, w=5)",
        [(3,)],
    ),
    "lambda": ("def f(x):\n    g = lambda y: x + y\n    return g(1) + (lambda: x)()", [(3,)]),
    "three levels": (
        "def f(x):\n    def g(y):\n        def h(z):\n            return x + y + z\n        return h\n    return g(1)(2)",
        [(3,)],
    ),
    "bound again before the call": (
        "def f(x):\n    g = lambda: x\n    a = g()\n    x = x + 1\n    return a, g()",
        [(3,)],
    ),
    "bound after the def": ("def f(x):\n    def g():\n        return y\n    y = x\n    return g()", [(3,)]),
    "helper that calls a helper bound later": (
        "def f(x):\n    def g(): return h() + 1\n    def h(): return x\n    a = g()\n    x = 5\n    return a, g()",
        [(3,)],
    ),
    "bound again in a branch": (
        "def f(x, c):\n    def g(): return x\n    if c:\n        x = 7\n    return g()",
        [(3, 0), (3, 1)],
    ),
    "bound again in a loop": (
        "def f(n):\n    s = 0\n    def g(k): return s + k\n    for i in range(n):\n        s = g(i) * 2\n    return s, g(1)",
        [(0,), (4,)],
    ),
    "made in a loop": (
        "def f(n):\n    s = 0\n    for i in range(n):\n        g = lambda t: t * i\n        s += g(2) + sum(map(lambda t: t + i, [1, 2]))\n"
        "    return s",
        [(0,), (4,)],
    ),
    "one of two": (
        "def f(c):\n    if c:\n        def g(x): return x + c\n    else:\n        g = lambda x: -x\n    return g(3)",
        [(0,), (1,)],
    ),
    "maybe unbound function": ("def f(c):\n    if c:\n        def g(): return 1\n    return g()", [(0,), (1,)]),
    "maybe unbound capture": (
        "def f(c):\n    def g(): return x\n    if c:\n        x = 1\n    return g() + g()",
        [(0,), (1,)],
    ),
    "unbound capture": ("def f(c):\n    g = lambda: c and x\n    y = g()\n    x = 1\n    return y, g()", [(0,), (1,)]),
    "maybe unbound in a comprehension": (
        "def f(n, m):\n    for i in range(n): t = i\n    return [t + j for j in range(m)], sum(t for k in range(m) if t)",
        [(0, 0), (3, 2), (0, 2)],
    ),
    "maybe unbound two levels up": (
        "def f(c):\n    if c: x = 1\n    def g():\n        return (lambda: x)()\n    return g()",
        [(0,), (1,)],
    ),
    "argument binds what is captured": ("def f(x):\n    g = lambda y: (x, y)\n    return g((x := 5))", [(3,)]),
    "argument is a function": (
        "def f(x):\n    return sorted(x, key=lambda t: -t), max(x, key=lambda t: t % 3)",
        [([1, 5, 3],)],
    ),
    "default is bound at the def": ("def f(x):\n    g = lambda y=x: y\n    x = 9\n    return g()", [(3,)]),
    "decorated": (
        "def twice(g):\n    return lambda x: g(g(x))\ndef f(x):\n    @twice\n    def h(y):\n        return y + x\n    return h(1)",
        [(3,)],
    ),
    "returned": ("def f(x):\n    x = x + 1\n    return (lambda y: x + y)(2)", [(3,)]),
    "list comprehension": (
        "def f(n, k):\n    return [i * k for i in range(n) if i % 2 if i != k], [a + b for a, (b, *_) in [(1, (2, 3))]]",
        [(6, 3), (0, 0)],
    ),
    "nested comprehensions": (
        "def f(n):\n    return [(i, j) for i in range(n) if i for j in range(i) if j % 2 == 0], "
        "[[i * j for j in range(i)] for i in range(n)], {i: j for i in range(n) for j in range(i)}, {i % 3 for i in range(n)}",
        [(5,), (0,)],
    ),
    "generator": (
        "def f(n):\n    return sum(i * n for i in range(n)), tuple(x for x in 'ab'), any(i > 2 for i in range(n))",
        [(5,), (0,)],
    ),
    "comprehension scope": ("def f(i):\n    x = [i for i in range(i)]\n    return x, i", [(3,)]),
    "comprehension in a loop": (
        "def f(n):\n    out = []\n    for k in range(n):\n        out.append([j * k for j in range(k)])\n        s = sum(j + k for j in range(k))\n        out.append(s)\n    return out",
        [(4,)],
    ),
    "map in a loop": (
        "def f(n):\n    out = []\n    for k in range(n):\n        out.append(list(map(lambda t: t + k, [1, 2])))\n    return out",
        [(3,)],
    ),
    "apply in a loop": (
        "def apply(g, x):\n    return g(x)\ndef f(n):\n    s = 0\n    for k in range(n):\n        s += apply(lambda t: t + k, s)\n    return s",
        [(3,)],
    ),
    "tuple of functions": (
        "def f(x):\n    fs = (lambda: x, lambda y: x + y)\n    return fs[0]() + fs[1](2)",
        [(3,)],
    ),
    "global of the same name in a nested scope": (
        "x = 5\ndef f(x):\n    def g():\n        global x\n        return x\n    return g(), x",
        [(3,)],
    ),
    "recursion": (
        "def f(n, m):\n    def g(k, by=m):\n        return k if k < 2 else m + g(k - 1) + sum(g(i) for i in range(k // 3))\n"
        "    h = lambda k: 1 if k < 2 else k * h(k - by(1))\n    by = lambda k: k\n    return g(n), h(n), g(n, 2)",
        [(5, 2), (1, 1)],
    ),
    "lambda in a comprehension with a default": (
        "def f(n):\n    return [g() for g in [lambda i=i: i for i in range(n)]]",
        [(3,)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, calls = PROGRAMS[name]
    assert_same(define(text), *calls)


REFUSED: dict[str, tuple[str, str]] = {
    "def f(n):\n    def g(k):\n        return 1 if k < 2 else k * g(k - 1)\n    h, g = g, None\n    return h(n)": (
        "the nested function `g` calls itself",
        "def g(k):",
    ),
    "def c(g):\n    return lambda k: 2 * g(k)\ndef f(n):\n    @c\n    def g(k):\n"
    "        return 1 if k < 2 else k * g(k - 1)\n    return g(n)": (
        "the nested function `g` calls itself",  # as the decorator has made it
        "def g(k):",
    ),
    "def f(n):\n    def g(k): return h(k)\n    def h(k): return g(k)\n    return g(n)": (
        "calls itself",
        "g(n)",
    ),
    "def f(n):\n    fs = []\n    for i in range(n):\n        fs.append(lambda: i)\n    return [g() for g in fs]": (
        "a function that uses `i` is kept while `i` changes from iteration to iteration",
        "fs.append(lambda: i)",
    ),
    "def f(n):\n    fs = [lambda: i for i in range(n)]\n    return fs[0]()": (
        "the functions made here use `i`, which changes from item to item",
        "[lambda: i for i in range(n)]",
    ),
    "def f(x):\n    fs = (lambda: x, 1)\n    x = 5\n    return fs[0]()": (
        "`fs` holds a function that uses `x`, which has been bound again since",
        "fs[0]()",
    ),
    "def f(x):\n    m = map(lambda t: t + x, [1])\n    x = 5\n    return list(m)": (
        "`m` holds a function that uses `x`, which has been bound again since",
        "list(m)",
    ),
    "def f(x):\n    m = (t + x for t in [1])\n    x = 5\n    return list(m)": (
        "`m` holds a function that uses `x`, which has been bound again since",
        "list(m)",
    ),
    "def c(g):\n    return lambda: g()\ndef f(x):\n    m = c(lambda: x)\n    x = 5\n    return m()": (
        "this may call a function that uses `x`, which has been bound again since",
        "m()",
    ),
    "def f(x):\n    def make():\n        return lambda: x\n    m = make()\n    x = 5\n    return m()": (
        "`m` holds a function that uses `x`, which has been bound again since",
        "m()",
    ),
    "def f(n):\n    for i in range(n):\n        if i: g()\n        g = lambda: i\n    return i": (
        "`g` carries a function that uses `i` into the next iteration",
        "for i in range(n):",
    ),
    "def f(n):\n    for i in range(n):\n        def g(): return i\n    return g()": (
        "`g` holds a function that uses `i`, which has been bound again since",
        "g()",
    ),
    "def f(c):\n    if c: x = 1\n    def g():\n        nonlocal x\n        x = 2\n    g()\n    return x": (
        "`x` of an enclosing function cannot be bound here",
        "x = 2",
    ),
    "def f(c):\n    return [y for x in c if (y := x)]": (
        "`:=` inside a comprehension cannot be accelerated",
        "y := x",
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    message, place = REFUSED[text]
    with pytest.raises(UnsupportedError) as caught:
        to_ssa(define(text))
    shown = str(caught.value)
    assert message in shown
    assert place in shown
    assert "^" in shown
