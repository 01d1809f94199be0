"""Compiling stays about linear in the length of the program: what is counted is work, not time."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from parakeet_py.base import config
from parakeet_py.base.errors import UnsupportedError
from parakeet_py.call.compile import compile_call
from parakeet_py.call.compiled import Compiled
from parakeet_py.call.load import Knowledge
from parakeet_py.imp import ir as imp
from parakeet_py.typed_ir import ir, rewrite
from parakeet_py.typed_ir.specialize.python import procedures

SIZES = (20, 40, 80, 160)
MOST_GROWTH = 2.5  # of the work, when the program is twice as long


def chain(statements: int) -> list[str]:
    """Elementwise operations, each on the result of the last."""
    forms = ("x = y - x * {k}.25", "x = x * {k}.5 + y")
    return [*(forms[k % 2].format(k=k % 7 + 1) for k in range(statements)), "return x"]


def ladder(statements: int) -> list[str]:
    """Two arrays, each made of both: every rung is read twice by what follows."""
    forms = ("x = x * {k}.25 + y", "y = x - y")
    return [*(forms[k % 2].format(k=k % 7 + 1) for k in range(statements)), "return y"]


def sums(statements: int) -> list[str]:
    """Arrays that are computed and added up, one after the other."""
    pairs = [(f"t{k} = x * {k}.5 + y", f"s += t{k}.sum()") for k in range(statements // 2)]
    return ["s = 0.0", *(line for pair in pairs for line in pair), "return s"]


def loops(statements: int) -> list[str]:
    """Nested loops, one after the other, with a store in the outer."""
    lines = ["s = 0.0"]
    for k in range(statements // 4):
        lines += [f"for i{k} in range(n):", f"    for j{k} in range(n):"]
        lines += [f"        s += x[i{k}] * y[j{k}] + {k}.5", f"    y[i{k}] = s"]
    return [*lines, "return s"]


def branches(statements: int) -> list[str]:
    """Branches, each on what the last has computed."""
    lines = ["s = float(n)"]
    for k in range(statements // 4):
        lines += [f"if s > {k}.5:", f"    s = s * 0.5 + {k}.0", "else:", "    s = s + 3.0"]
    return [*lines, "return s"]


def compiled(lines: list[str], name: str) -> Compiled:
    source = "\n".join(["def f(x, y, n):", *(f"    {line}" for line in lines)]) + "\n"
    filename = f"<growth {name} {len(lines)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), namespace)
    x = np.arange(20.0)
    with config.options(check=False):
        return compile_call(namespace["f"], (x, x.copy(), 5), Knowledge(), config.current(), extents="usual")


@pytest.mark.parametrize("program", [chain, ladder, sums, loops, branches], ids=lambda program: program.__name__)
def test_the_work_of_passes_grows_with_the_program(
    program: Callable[[int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = 0
    original = rewrite.Rewriter.block

    def block(self: rewrite.Rewriter, one: ir.Block) -> ir.Block:
        nonlocal visits
        visits += len(one.statements)
        return original(self, one)

    monkeypatch.setattr(rewrite.Rewriter, "block", block)
    work: list[tuple[int, int, int]] = []
    for size in SIZES:
        visits = 0
        made = compiled(program(size), program.__name__)
        emitted = sum(1 for _ in made.unfused.statements())
        work.append((visits, emitted, sum(1 for _ in imp.walk(made.imp.body))))
    for half, whole in pairwise(work):
        for less, more in zip(half, whole, strict=True):
            assert more <= MOST_GROWTH * less + 20, work


def test_a_recursion_that_is_no_procedure_is_not_tried_at_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0
    original = procedures._made

    def made(*args: Any) -> Any:
        nonlocal tried
        tried += 1
        return original(*args)

    monkeypatch.setattr(procedures, "_made", made)
    lines = ["def g(a, b):", "    if b <= 0:", "        return a", "    return g(a * 2, b - 1), b", "return g(1, n)"]
    with pytest.raises(UnsupportedError, match="do not settle"):
        compiled(lines, "recursion")
    assert 0 < tried < 5
