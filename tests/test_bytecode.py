"""The bytecode frontend: every program of the corpus from its code object alone, compared with plain Python; native
for some; and functions that have no source for every reason there is, from the call to what is said about it."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import itertools
import linecache
import py_compile
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.errors import FallbackWarning, UnsupportedError
from parakeet_py.frontend import to_ssa
from parakeet_py.frontend.build.functions import ast_to_ssa
from parakeet_py.frontend.bytecode.decompile import read_bytecode
from parakeet_py.frontend.check import check_function
from parakeet_py.frontend.desugar.managers import is_kept
from parakeet_py.frontend.evaluate.evaluator import evaluate
from parakeet_py.frontend.source.function_source import read_source
from tests.corpus import Program, all_programs, assert_same, lot, outcome

NATIVE_EVERY = 12
"""One in how many programs is compiled natively too."""

PROGRAMS = [program for program in all_programs() if isinstance(program.function, FunctionType)]


def sourceless(function: Callable[..., Any]) -> FunctionType:
    """A copy of the function that says it is from nowhere."""
    assert isinstance(function, FunctionType)
    code = function.__code__.replace(co_filename="<nowhere>")
    copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def takes(program: Program) -> bool:
    try:
        source = read_source(program.function)  # type: ignore[arg-type]
        ast_to_ssa(source)
    except UnsupportedError:
        return False
    no_form = ast.Try | ast.MatchSequence | ast.MatchClass  # in bytecode
    managers = (item for node in ast.walk(source.node) if isinstance(node, ast.With) for item in node.items)
    return not any(isinstance(node, no_form) for node in ast.walk(source.node)) and all(map(is_kept, managers))


@pytest.mark.parametrize("program", PROGRAMS, ids=repr)
def test_corpus(program: Program) -> None:
    function = sourceless(program.function)
    if not takes(program):
        pytest.skip("not for both frontends")
    made = ast_to_ssa(read_bytecode(function))
    check_function(made)
    for case in program.cases:
        if case.native_only:
            continue
        args, kwargs = case.make()
        expected = outcome(program.function, args, kwargs)
        args, kwargs = case.make()
        assert_same(expected, outcome(evaluate(made, function), args, kwargs), message=program.message)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if lot(p, NATIVE_EVERY) == 0], ids=repr)
def test_native(program: Program) -> None:
    if program.overflow:
        pytest.skip("differs, as documented")
    function = accelerate(sourceless(program.function))
    for case in program.cases[:2]:
        args, kwargs = case.make()
        expected = outcome(program.function, args, kwargs)
        args, kwargs = case.make()
        with options(threads=1, check=True):
            actual = outcome(function, args, kwargs)
        assert_same(expected, actual, ulp=program.ulp, sums=program.sums, message=program.message, order=program.order)
    if program.fell_back is False and takes(program):
        assert not function.fell_back


# ---- shapes the corpus lacks ----------------------------------------------------------------------------------------


def shapes() -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield "def f(a, b): return 1 if a < b < 5 else 2", (1, 3)
    yield "def f(a, b): return a and b or not a and -b", (0, 3)
    yield "f = lambda a, b=2: a if a > b else (lambda c: c + a)(b)", (1,)
    yield "def f(a, *args, c=3, **more):\n    return (a, args, c, sorted(more))", (1, 2, 3)
    yield "def f(n):\n    x, y = n, 2\n    x, y = y, x + y\n    return [x, *[y, 1]], {'a': x, 'b': y}", (4,)
    yield "def f(n):\n    return [(i, j) for i in range(n) if i % 2 for j in range(i) if j]", (6,)
    yield "def f(n):\n    return {i: [j for j in range(i)] for i in range(n)}", (4,)
    yield "def f(n):\n    return sum(i * n for i in range(n) if i > 1 and i < 9 or i == 0)", (12,)
    yield "def f(n):\n    def g(k, *, by=n):\n        return k * by + n\n    return [g(i) for i in range(n)]", (4,)
    yield "def f(n):\n    assert n > 5, f'{n} is {n!r:>4}'\n    return n", (3,)
    yield (
        "def f(n):\n    for i in range(n):\n        for j in range(i):\n            if j == 3:\n                break\n"
        + ("            if i == 7:\n                return i, j\n        else:\n            continue\n        n += 1\n")
        + "    else:\n        return -n\n    return n",
        (6,),
    )
    yield (
        "def f(n):\n    k = 0\n    while n > 0 and k < 99:\n        n -= 1\n        if n % 3:\n            continue\n"
        + ("        k += n\n        if k > 40:\n            break\n    else:\n        k = -k\n    return k"),
        (20,),
    )
    yield (
        "def f(n):\n    k = 0\n    while True:\n        k += 1\n        while k % 5:\n            k += 1\n"
        + ("        if k > n:\n            if k % 2:\n                return k\n            break\n    return -k"),
        (20,),
    )
    yield "def f(a):\n    a[1:] += a[0] if a[0] > 1 else 5\n    a[0] *= 2\n    return a", (np.arange(4),)
    yield "def f(a):\n    import math\n    from math import sqrt as root\n    return math.floor(root(a))", (17.5,)
    yield "def f(a):\n    (b, *c), d = a\n    b = c = d\n    return b, c, d", (((1, 2, 3), 4),)
    yield (
        "def f(a, i):\n    if i is None:\n        return a\n    if a is not None and i in (1, 2):\n"
        + ("        a = i\n    elif not i:\n        return -1\n    del i\n    return a"),
        (3, 2),
    )
    yield (
        "def f(a):\n    with np.errstate(all='ignore'):\n        if a > 0:\n            return a\n        a += 1\n"
        + ("    return a / 2"),
        (-3,),
    )


def defined(text: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {"np": np}
    exec(compile(text, "<nowhere>", "exec"), scope)
    function: Callable[..., Any] = scope["f"]
    return function


@pytest.mark.parametrize(("text", "args"), list(shapes()))
def test_shapes(text: str, args: tuple[Any, ...]) -> None:
    function = defined(text)
    assert isinstance(function, FunctionType)
    made = ast_to_ssa(read_bytecode(function))
    check_function(made)

    def run(call: Callable[..., Any]) -> tuple[Any, ...]:
        copies = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in args)
        try:
            return repr(call(*copies)), repr(copies)
        except Exception as error:
            return type(error), str(error)

    assert run(evaluate(made, function)) == run(function)


LOOPS = """
def continue_and_for_else(n,d,s):
    for a in (2, 3):
        x = pow(a, d, n)
        if x == 1:
            continue
        for _ in range(s):
            x = x*2
            if x == n:
                break
        else:
            return False
    return True


def same_test_outside_and_inside(n,d,s):
    for a in (2, 3):
        x = pow(a, d, n)
        if x == 1 or x == n-1:
            continue
        for _ in range(s):
            x = x*2
            if x == n-1:
                break
        else:
            return False
    return True


def endless_around_for(n, d, s):
    t = 0
    while True:
        for v in range(3):
            t += v
        if t > n: return t


def while_around_for_else(n, d, s):
    t = 0
    while t < n:
        for v in range(3):
            t += v
            if t == d: break
        else:
            t += 1
            continue
        t += 5
    return t


def return_out_of_two(n, d, s):
    t = 0
    while True:
        for v in range(3):
            t += v
            if t > n: return t


def same_test_continues(n, d, s):
    t = 0
    for i in range(n):
        if i == d - 1: continue
        for j in range(s):
            t += 1
            if i == d - 1: continue
            t += 2
    return t


def both_may_end(n, d, s):
    t = 0
    while t < n:
        if t == d - 1: break
        for j in range(s):
            if t == d - 1: break
            t += 1
        else:
            t += 1
    else:
        return -1
    return t
"""


@pytest.mark.parametrize("name", re.findall(r"def (\w+)", LOOPS))
def test_loops_that_leave_each_other(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(compile(LOOPS, "<nowhere>", "exec"), scope)
    function = scope[name]
    made = ast_to_ssa(read_bytecode(function))
    check_function(made)
    for args in itertools.product((1, 4, 7, 16), (1, 3, 5), (1, 3)):
        assert evaluate(made, function)(*args) == function(*args), args


def test_syntax_is_what_was_written() -> None:
    text = (
        "def f(a, n=None):\n    total = 0.0\n    for i, x in enumerate(a):\n        if x > 0 and i != n:\n"
        "            total += x * 2\n    while total > 9 or n:\n        total -= 1\n"
        "        if total == 3:\n            break\n    assert total, 'none'\n"
        "    return [y if y > 1 else total for y in a if y]"
    )
    function = defined(text)
    assert isinstance(function, FunctionType)
    body = read_bytecode(function).node.body
    wanted = ast.parse(text).body[0]
    assert isinstance(wanted, ast.FunctionDef) and isinstance(body, list)
    assert [ast.unparse(each) for each in body] == [ast.unparse(each) for each in wanted.body]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    try:\n        return x[0]\n    except IndexError:\n        return 0", r"<nowhere>:\d: exceptions cannot"),
        ("    class C:\n        pass\n    return x", "<nowhere>:2: "),
        ("    global z\n    z = x", "<nowhere>:3: "),
    ],
)
def test_what_is_refused_falls_back(body: str, message: str) -> None:
    function = defined(f"def f(x):\n{body}")
    with pytest.raises(UnsupportedError, match=message):
        to_ssa(function)  # type: ignore[arg-type]
    made = accelerate(function)
    with pytest.warns(FallbackWarning):
        made(np.arange(3))
    assert made.fell_back


def test_an_accelerated_generator_is_pythons() -> None:
    made = accelerate(defined("def f(x):\n    yield x\n    yield x + 1"))
    with pytest.warns(FallbackWarning, match="a generator cannot be accelerated by itself"):
        assert list(made(1)) == [1, 2]


def test_what_the_instructions_do_not_say() -> None:
    """The call of a generator without a `yield` that is reached, or of a coroutine, gives no value of the body."""
    for text in (
        "def f(x):\n    return x\n    yield",
        "async def f(x):\n    return x",
        "def f(x):\n    if 0:\n        yield",
    ):
        made: Any = accelerate(defined(text))
        with pytest.warns(FallbackWarning):
            given = made(1)
        assert not isinstance(given, int | None)
        given.close()


# ---- where functions without source come from -----------------------------------------------------------------------

BODY = "def f(x, k=2):\n    t = x * k\n    return t[1:] + t[:-1] if k > 1 else t\n"


def agrees(function: Callable[..., Any]) -> None:
    made = accelerate(function)
    x = np.arange(5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            np.testing.assert_array_equal(made(x), function(x))
        np.testing.assert_array_equal(made(x, k=1), function(x, k=1))
    assert not made.fell_back


def test_exec() -> None:
    agrees(defined(BODY))


def test_lambdas_on_one_line_are_told_apart() -> None:
    scope: dict[str, Any] = {}
    exec("f, g = (lambda x, k=2: x * k), (lambda x, k=2: x + k)", scope)
    agrees(scope["f"])
    agrees(scope["g"])


def test_pyc_without_source(tmp_path: Path) -> None:
    source = tmp_path / "only_compiled.py"
    source.write_text(BODY)
    compiled = py_compile.compile(str(source), str(tmp_path / "only_compiled.pyc"))
    source.unlink()
    spec = importlib.util.spec_from_file_location("only_compiled", compiled)
    assert spec is not None and spec.loader is not None and compiled is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    agrees(module.f)


def test_a_cell_of_a_notebook() -> None:
    name = "<ipython-input-1-abc>"
    linecache.cache[name] = (len(BODY), None, BODY.splitlines(keepends=True), name)
    scope: dict[str, Any] = {}
    exec(compile(BODY, name, "exec"), scope)
    agrees(scope["f"])
    assert read_source(scope["f"]).lines


def test_doctest() -> None:
    module = types.ModuleType("documented")
    module.__doc__ = (
        ">>> import numpy as np\n>>> from parakeet_py import accelerate\n>>> @accelerate\n... def f(x):\n"
        "...     return x * 2\n>>> f(np.arange(3))\narray([0, 2, 4])\n>>> f.fell_back\nFalse\n"
    )
    assert doctest.testmod(module).failed == 0


def test_command_line_and_standard_input() -> None:
    text = (
        "import warnings; warnings.simplefilter('error')\nimport numpy as np\n"
        f"from parakeet_py import accelerate\n@accelerate\n{BODY}\n"
        "print(f(np.arange(4.0)).tolist(), f.fell_back)\n"
    )
    for arguments, given in ((["-c", text], None), (["-"], text)):
        done = subprocess.run([sys.executable, *arguments], input=given, capture_output=True, text=True, check=True)
        assert done.stdout == "[2.0, 6.0, 10.0] False\n"


def test_what_is_said_has_lines() -> None:
    assert "(line 3)" in str(accelerate(defined(BODY)).explain(np.arange(4.0)))
    refused = accelerate(defined("def f(x):\n    try:\n        return x[0]\n    except IndexError:\n        return 0"))
    assert "<nowhere>:" in str(refused.explain(np.arange(4.0)))
    positions = [statement.pos for statement in to_ssa(defined(BODY)).statements()]  # type: ignore[arg-type]
    assert {position.line for position in positions} == {2, 3}
