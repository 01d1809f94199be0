"""Random nests of loops, branches and jumps do in the untyped IR what they do in Python."""

from __future__ import annotations

import random
import re
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.frontend import to_ssa
from parakeet_py.frontend.check import check_function
from parakeet_py.frontend.evaluate.evaluator import evaluate
from tests.helpers.ssa_programs import define

NAMES = ["a", "b", "c", "d"]
FUEL = 60


class OutOfFuel(Exception):
    """The program ran for too long."""


class Writer:
    """Writes a random program; every choice is asked of `source`."""

    def __init__(self, source: random.Random, closures: bool) -> None:
        self.source = source
        self.closures = closures

    def one_of(self, *choices: str) -> str:
        return choices[self.source.randrange(len(choices))]

    def expression(self, depth: int = 2) -> str:
        kind = self.source.randrange(14) if depth else self.source.randrange(5)
        inner = [self.expression(depth - 1) for _ in range(3)] if kind >= 5 else []
        match kind:
            case 0 | 1 | 2:
                return self.one_of(*NAMES)
            case 3 | 4:
                return str(self.source.randrange(-3, 6))
            case 5 | 6:
                return f"({inner[0]} {self.one_of('+', '-', '^')} {inner[1]})"
            case 7:
                return f"({inner[0]} {self.one_of('<', '>=', '==', '!=')} {inner[1]})"
            case 8:
                return f"({inner[0]} {self.one_of('and', 'or')} {inner[1]})"
            case 9:
                return f"({inner[0]} if {inner[1]} else {inner[2]})"
            case 10:
                return f"({inner[0]} < {inner[1]} <= {inner[2]})"
            case 11:
                return f"(not {inner[0]})"
            case 12:
                return f"({self.one_of(*NAMES)} := {inner[0]})"
            case _:
                return f"log({inner[0]})"

    def block(self, depth: int, in_loop: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(1 + self.source.randrange(3)):
            lines += self.statement(depth, in_loop)
        return ["    " + line for line in lines]

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        kinds = ["assign", "assign", "augment", "log", "pair", "return", "raise", "del", "leave"]
        if in_loop:
            kinds += ["break", "continue"]
        if depth:
            kinds += ["if", "if else", "if elif else", "for", "for else", "while", "while else", "forever"] * 2
        if self.closures:
            kinds += ["closure"] * len(kinds)
        kind = self.one_of(*kinds)
        name, value = self.one_of(*NAMES), self.expression()
        match kind:
            case "closure":
                return self.closure(name)
            case "assign":
                return [f"{name} = {value}"]
            case "augment":
                return [f"{name} {self.one_of('+', '-', '^')}= {value}"]
            case "log":
                return [f"log({value})"]
            case "pair":
                other, second = self.one_of(*NAMES), self.expression()
                if other == name and sys.version_info < (3, 11, 3):
                    return [f"{name} = {value}"]  # `a, a = 1, 2` leaves 1 there, a fault of CPython's
                return [f"{name}, {other} = {value}, {second}"]
            case "return":
                return [self.one_of(f"return {value}", f"{name} = {name} + 1")]
            case "raise":
                return [f"if {value} > 4: raise ValueError({self.expression()})"]
            case "del":
                return [self.one_of(f"del {name}", f"{name} = {value}", f"{name} = {value}")]
            case "break" | "continue":
                return [kind]
            case "leave":
                jumps = [f"return {self.expression()}", *(["break", "continue"] if in_loop else [])]
                return [f"if {value}:", "    " + self.one_of(*jumps)]
            case "if" | "if else" | "if elif else":
                lines = [f"if {value}:", *self.block(depth - 1, in_loop)]
                if "elif" in kind:
                    lines += [f"elif {self.expression()}:", *self.block(depth - 1, in_loop)]
                return [*lines, "else:", *self.block(depth - 1, in_loop)] if "else" in kind else lines
        return self.loop(kind, depth, in_loop)

    def closure(self, name: str) -> list[str]:
        other, function, holder = self.one_of(*NAMES), self.one_of("g", "h"), self.one_of("m", "n")
        made = self.one_of(f"lambda p: p + {name}", f"lambda p, q={name}: (p, q, {other})", function, "k")
        return self.one_of(
            f"{function} = lambda p: (p, {name})",
            f"{function} = lambda p: (p, {name})",
            f"def {function}(p, q={other}): return ({name}, q)",
            f"def k(p): return {function}(p)",
            f"def {function}(p): return lambda: {name}",
            f"log({function}({other}))",
            f"log({function}({name} := 3))",
            "log(k(1))",
            f"log({function}(1)())",
            f"{holder} = {made}",
            f"{holder} = ({made}, 1)[0]",
            f"log({holder}(1))",
            f"{holder} = apply({made}, {other})",
            f"{holder} = keep({made})",
            f"{holder} = map({made}, (1, 2))",
            f"log(list({holder}))",
            f"log(list(map({made}, (1, 2))))",
            f"{holder} = (p + {name} for p in (1, 2) if p != {other})",
            f"log([p + {name} for p in range(3) if p != {other}])",
            f"log([(p, r) for p in (1, 2) for r in range(p) if r != {name}])",
            f"{holder} = [{made}]",
            f"{holder}.append({made})",
            f"log({holder}[-1](2))",
        ).splitlines()

    def loop(self, kind: str, depth: int, in_loop: bool) -> list[str]:
        if kind == "forever":
            return ["while True:", "    tick()", *self.block(depth - 1, True)]
        if kind.startswith("while"):
            head = f"while tick() and {self.expression()}:"
        else:
            target = self.one_of(*NAMES, "a, b", "e")
            items = "[(1, 2), (3, 0), (2, 2)]" if target == "a, b" else f"range(({self.expression()}) % 4)"
            head = f"for {target} in {items}:"
        lines = [head, *self.block(depth - 1, True)]
        return [*lines, "else:", *self.block(depth - 1, in_loop)] if kind.endswith("else") else lines


def run(function: Any, scope: dict[str, Any], args: tuple[int, int]) -> tuple[object, ...]:
    """The result or exception of a call, and everything it logged on the way."""
    log: list[Any] = []

    def note(value: Any) -> Any:
        log.append(value)
        if len(log) > FUEL:
            raise OutOfFuel
        return value

    scope["log"] = note
    scope["tick"] = lambda: note("tick")
    scope["apply"] = lambda g, x: g(x)
    scope["keep"] = lambda g: lambda x: g(x)
    try:
        result = function(*args)
    except Exception as error:
        return (type(error), repr(error.args) if isinstance(error, ValueError) else "", shown(log))
    return (shown(result), shown(log))


def shown(value: object) -> str:
    return re.sub(r"<.*? at 0x\w+>", "<object>", repr(value))


PRELUDE = """\
    c, d = a, b
    g = lambda p: p
    def h(p): return lambda: (p, a)
    m, n = [g], lambda p: p
    def k(p): return g(p)"""
REFUSALS = [
    "whose `else` jumps",
    "holds a function that uses",
    "may call a function that uses",
    "is kept while",
    "into the next iteration",
    "calls itself",
]


def compare(source: random.Random, depth: int, closures: bool = False) -> bool:
    """Write a program and run it both ways. False if it was refused."""
    lines = Writer(source, closures).block(depth, False)
    if closures:
        lines = [PRELUDE, *lines, *Writer(source, closures).block(depth, False)]
    text = "\n".join(["def f(a, b):", *lines, "    return (a, b, c)"])
    function = define(text)
    try:
        executed = evaluate(check_function(to_ssa(function)), function)
    except UnsupportedError as error:
        assert any(refusal in str(error) for refusal in REFUSALS[: len(REFUSALS) if closures else 1]), text
        return False
    for args in ((0, 1), (3, 2), (-1, 5)):
        scope = function.__globals__
        assert run(executed, scope, args) == run(function, scope, args), text
    return True


@settings(max_examples=max(30, settings.default.max_examples), suppress_health_check=list(HealthCheck))
@given(st.randoms())
def test_programs_that_can_be_shrunk(source: random.Random) -> None:
    compare(source, 2)


@pytest.mark.parametrize("seed", range(20))
def test_many_programs(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(15):
        compare(source, 3)


@pytest.mark.parametrize("seed", range(20))
def test_many_programs_with_closures(seed: int) -> None:
    source = random.Random(seed)
    taken = sum(compare(source, 2, closures=True) for _ in range(15))
    assert taken > 3
