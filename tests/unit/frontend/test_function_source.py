"""Finding the source of a function: indentation, decorators, lambdas on one line, files that have changed."""

# ruff: noqa: E731

from __future__ import annotations

import ast
import functools
import linecache
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from parakeet_py.base.errors import NoSourceError
from parakeet_py.frontend import to_ssa
from parakeet_py.frontend.source.function_source import read_source
from tests.helpers.ssa_programs import assert_same, define


def decorated(*_args: Any) -> Callable[[FunctionType], FunctionType]:
    return lambda function: function


class Holder:
    __secret = 4

    def method(self, x: int) -> int:
        text = """
no indentation here
        """
        return x + len(text)

    def private(self, x: int) -> int:
        __y = x
        return self.__secret + __y + (lambda __z: __z)(1)

    @staticmethod
    def static(x: int) -> int:
        return x

    lamb = lambda self, x: x + 1

    @decorated(
        1,
        lambda a: a,
    )
    def wrapped(
        self,
        x: int,
    ) -> int:
        return x  # the end

    # a comment


def test_methods() -> None:
    holder = Holder()
    for function in (Holder.method, Holder.private, Holder.wrapped, Holder.lamb):
        assert isinstance(function, FunctionType)
        node = read_source(function).node
        assert isinstance(node, ast.Lambda) or not node.decorator_list
        from parakeet_py.frontend.evaluate.evaluator import evaluate

        assert evaluate(to_ssa(function), function)(holder, 3) == function(holder, 3)
    assert_same(Holder.static, (3,))


def test_positions_are_those_of_the_file() -> None:
    source = read_source(Holder.wrapped)
    line = source.lines[source.node.end_lineno - source.first_line]  # type: ignore[operator]
    assert line == "        return x  # the end\n"
    assert source.lines[0] == "    @decorated(\n"
    assert source.filename == __file__
    last = list(to_ssa(Holder.method).statements())[-1]
    assert linecache.getline(__file__, last.pos.line)[last.pos.column : last.pos.end_column] == "x + len(text)"


@pytest.mark.filterwarnings("error")
def test_warnings_about_a_source_are_given_once() -> None:
    with warnings.catch_warnings(action="ignore"):
        function = define('def f(x):\n    "\\d"\n    assert (x, "x")\n    return x is 1\n')
    assert read_source(function).node.name == "f"  # type: ignore[union-attr]


def test_lambdas_on_one_line() -> None:
    k = 7
    fs = [
        lambda x: x + 1,
        lambda x: x + 2,
        lambda x: x + k,
        lambda x: x * 1,
        lambda y: y + 1,
        (lambda x: lambda y: x - y)(4),
    ]
    same = (lambda x: x, lambda x: x)
    for function in (*fs, *same):
        assert_same(function, (10,), (20,))  # type: ignore[arg-type]
    assert read_source(same[0]).node.col_offset < read_source(same[1]).node.col_offset  # type: ignore[arg-type]


def test_lambda_in_a_long_expression() -> None:
    function = functools.partial(
        decorated,
        [1, 2],
        {"a": 3},
        key=lambda x: (
            x
            + 1
        ),
    ).keywords["key"]  # fmt: skip
    assert_same(function, (1,))


def test_one_line_and_odd_layout() -> None:
    assert_same(define("def f(x): return x + 1\ny = 2"), (1,))
    assert_same(define("if True:\n def f(x):\n  return x + 1\n"), (1,))
    assert_same(define("def f(x):\n\treturn (x +\n1)\n# comment\n\n\ny = 1"), (1,))
    assert_same(define("def f(x):\n    s = '''\nx = 1\ndef g():\n'''\n    return s * x\ny = 1"), (2,))
    assert_same(define("def f(x):\n    return x\\\n+ 1\n"), (1,))
    assert_same(define("def _(x):\n    return x\n", "_"), (1,))
    assert_same(define("def make(k):\n    def _(x):\n        return x + k\n    return _\nf = make(3)"), (1,))
    assert_same(define("def make(k):\n class A:\n  def f(self):\n   return self + k\n return A.f\nf = make(3)"), (1,))


def test_nested_function_of_the_same_name() -> None:
    def f(x: int) -> int:
        def f(x: int) -> int:
            return x + 1

        return f(x)

    assert_same(f, (1,))


def test_closure_over_several_names() -> None:
    a, b = 1, 2

    def f(x: int) -> int:
        return x + b * 10 + a

    assert_same(f, (1,))


@pytest.mark.parametrize("text", ["def f(x):\n    return x\n", "f = lambda x: x"])
def test_no_source(text: str) -> None:
    scope: dict[str, Any] = {}
    exec(compile(text, "<nowhere>", "exec"), scope)
    with pytest.raises(NoSourceError, match=r"^f: no source for <nowhere>:1$|^<lambda>: no source for <nowhere>:1$"):
        read_source(scope["f"])
    assert_same(scope["f"], (1,))  # its bytecode is read


def test_edited_source_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    path.write_text("def f(x):\n    return x + 1\n")
    scope: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    assert_same(scope["f"], (1,))
    for edited in (
        "def f(x):\n    return x + 2\n",
        "def f(x):\n    return x - 1\n",
        "def g(x):\n    return x + 1\n",
        "(",
        "",
    ):
        path.write_text(edited)
        os.utime(path, (1, len(edited)))
        with pytest.raises(NoSourceError):
            read_source(scope["f"])
        assert_same(scope["f"], (1,))


_IN_TRY = """def f(x, y):
    try:
        a = x[0]
        b = x[y]
    except IndexError:
        return -1
    return a + b
"""
_IN_ELSE = """def f(x, y):
    try:
        a = x[0]
    except IndexError:
        return -1
    else:
        b = x[y]
    return a + b
"""
_WITH = "def f(x, y):\n    def g(a, b):\n        return a + b\n    return g(x, y)\n"
_RETURN = "def f(x, y):\n    return x, y\n"


@pytest.mark.parametrize(
    ("source", "edited"),
    [
        (_IN_TRY, _IN_ELSE),
        (_IN_ELSE, _IN_TRY),
        (_RETURN, _RETURN.replace("x, y)", "x, *, y)", 1)),
        (_RETURN, _RETURN.replace("x, y)", "x, /, y)", 1)),
        (_RETURN, _RETURN.replace("x, y)", "x, *y)", 1)),
        (_RETURN, _RETURN.replace("x, y)", "x, **y)", 1)),
        (_RETURN, _RETURN.replace("x, y)", "*x, y)", 1)),
        (_WITH, _WITH.replace("a, b)", "a, *b)")),
        (_WITH, _WITH.replace("a, b)", "a, /, b)")),
        (_RETURN, "async " + _RETURN),
    ],
)
def test_what_the_instructions_do_not_say_is_compared(tmp_path: Path, source: str, edited: str) -> None:
    path = tmp_path / "edited.py"
    path.write_text(source)
    scope: dict[str, Any] = {}
    exec(compile(source, str(path), "exec"), scope)
    read_source(scope["f"])
    path.write_text(edited)
    os.utime(path, (1, 1))
    with pytest.raises(NoSourceError):
        read_source(scope["f"])


def test_functions_inside_others_are_found() -> None:
    def outer(k: int) -> tuple[Any, Any]:
        def plain(x: int) -> int:
            return x + 1

        def free(x: int) -> int:
            return x + k

        return plain, free

    for function in (*outer(3), lambda x: x + 1):
        assert read_source(function).node is not None


def test_asserts_that_pytest_has_rewritten() -> None:
    def f(x: int) -> int:
        assert x > 0, "message"
        return x + 1

    assert_same(f, (1,))


def test_optimized_python_has_no_asserts() -> None:
    root = Path(__file__).parents[3]
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from tests.helpers.ssa_programs import define\nfrom parakeet_py.frontend import to_ssa\n"
        "f = define('def f(x):\\n    assert x\\n    return x')\n"
        "sys.exit(len(to_ssa(f).body.statements))"
    )
    command = [sys.executable, "-O", "-c", code, str(root)]
    assert subprocess.run(command, check=False).returncode == 0
