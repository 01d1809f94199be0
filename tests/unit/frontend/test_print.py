"""The text of the untyped IR (every example of docs/untyped_ir.md), and what its checker finds."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from parakeet_py.base.errors import CodegenError
from parakeet_py.frontend import ssa, to_ssa
from parakeet_py.frontend.check import check_function, problems
from parakeet_py.frontend.print import format_function
from parakeet_py.frontend.ssa import Block, Const, Let, Pos, Var
from tests.helpers.ssa_programs import define

PAGE = (Path(__file__).parents[3] / "docs" / "untyped_ir.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("index", range(len(EXAMPLES)))
def test_example_of_the_page(index: int) -> None:
    text, shown = EXAMPLES[index]
    assert format_function(check_function(to_ssa(define(text))), names="short") + "\n" == shown


def test_all_examples_are_found() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") == 7


def test_every_operator_has_a_text() -> None:
    text = """
def f(a, /, b, *c, d, e=1, **g):
    import os.path as p
    from math import pi
    x, *y = [*b, 1]
    a[1:2] = {1: -a}
    a.shape = (1, *c)
    a.w += max(*c, k=d, **g)
    assert a, f"{a!r:>3}"
    raise (lambda q=1: q)(z for r in a for z in r)
"""
    shown = format_function(to_ssa(define(text.strip())), positions=True, names="short")
    assertion = 4 if sys.version_info < (3, 13) else 11  # which places Python gives to one has changed
    assert (
        shown
        == """\
function f(positional a.1, b.2, *c.3, keyword d.4, keyword e.5 = ..., **g.6):
    p.7 = import os.path  # 2:4
    pi.8 = import pi from math  # 3:4
    t.9 = list [*b.2, 1]  # 4:12
    x.10, y.11 = unpack t.9 into 1, *, 0  # 4:4
    t.12 = neg a.1  # 5:17
    t.13 = dict {1: t.12}  # 5:13
    slice.14 = slice 1, 2, None  # 5:6
    set a.1[slice.14] = t.13  # 5:4
    t.15 = tuple (1, *c.3)  # 6:14
    set a.1.shape = t.15  # 6:4
    t.16 = attribute a.1.w  # 7:4
    max.17 = global max  # 7:11
    t.18 = call max.17(*c.3, k=d.4, **g.6)  # 7:11
    t.19 = inplace add t.16, t.18  # 7:4
    set a.1.w = t.19  # 7:4
    assert a.1, message:  # 8:{assertion}
        t.20 = string a.1!r:>3  # 8:14
        give t.20
    <lambda>.21 = closure of <lambda> defaults (1):  # 9:11
        function <lambda>(q.22 = ...):
            return q.22
    element.23 = closure of element:  # 9:25
        function element(r.24):
            element.25 = closure of element:  # 9:25
                function element(z.26):
                    return z.26
            inner.27 = comprehension generator element.25 over r.24  # 9:25
            return inner.27
    t.28 = comprehension generator element.23 over a.1 flatten  # 9:25
    t.29 = call <lambda>.21(t.28)  # 9:10
    raise t.29  # 9:4
    return unbound""".replace("{assertion}", str(assertion))
    )


def broken(*statements: Let, results: tuple[ssa.Operand, ...] = (Const(1),)) -> ssa.Function:
    function = to_ssa(define("def f(x):\n    return x"))
    return replace(function, body=Block(statements, results))


def messages(function: ssa.Function) -> list[str]:
    return [re.sub(r"\.\d+", "", problem.message) for problem in problems(function)]


POS = Pos(2, 4, 2, 10)


def test_checker_finds_what_is_wrong() -> None:
    a, b, c, i = (Var(name) for name in "abci")
    one = Const(1)
    add = ssa.Binary("add", one, one)
    assert messages(broken(Let((a,), add, POS), Let((a,), add, POS))) == ["a is bound twice"]
    assert messages(broken(Let((a,), ssa.Unary("neg", b), POS))) == ["b is used outside its scope"]
    assert messages(broken(results=(b,))) == ["b is used outside its scope"]
    assert messages(broken(results=())) == ["a function has 0 results, not 1"]
    inner = Block((Let((b,), add, POS),), (b,))
    assert messages(broken(Let((a,), ssa.If(one, inner, Block((), (b,))), POS))) == ["b is used outside its scope"]
    assert messages(broken(Let((a,), ssa.If(one, inner, Block(())), POS))) == [
        "the second branch of an if has 0 results, not 1"
    ]
    loop = ssa.For(one, i, (b,), (one,), Block((), (b,)), stoppable=True)
    assert messages(broken(Let((a, c), loop, POS))) == ["the body of a for has 1 results, not 2"]
    assert messages(broken(Let((a,), replace(loop, stoppable=False, inits=()), POS))) == [
        "a loop has 1 params, 0 inits"
    ]
    loop2 = ssa.While((b,), (one,), Block(()), Block((), (b,)))
    assert messages(broken(Let((), loop2, POS))) == [
        "While has 0 outs, not 1",
        "the condition of a while has 0 results, not 1",
    ]
    assert messages(broken(Let((), add, POS))) == ["Binary has 0 outs, not 1"]
    assert messages(broken(Let((a,), ssa.Binary("plus", one, one), POS))) == ["unknown binary operator plus"]
    assert messages(broken(Let((a,), ssa.Unpack(one, 2), POS))) == ["Unpack has 1 outs, not 2"]
    nested = to_ssa(define("def g(x, y=1):\n    return x", "g"))
    assert messages(broken(Let((a,), ssa.MakeClosure(nested, (one,)), POS))) == [
        "g gets the wrong captures",
        "g gets the wrong number of defaults",
    ]


def test_checker_raises_all_together() -> None:
    a = Var("a")
    function = broken(Let((), ssa.Binary("plus", Const(1), a), POS))
    with pytest.raises(CodegenError) as caught:
        check_function(function)
    where = f"{function.filename}:2: "
    line = "\n    return x\n    ^^^^^^"
    assert str(caught.value) == (
        f"malformed untyped IR of f\n{where}{a!r} is used outside its scope{line}\n"
        f"{where}Binary has 0 outs, not 1{line}\n{where}unknown binary operator plus{line}"
    )
