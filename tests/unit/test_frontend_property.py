"""Random nests of loops, branches and jumps do in the untyped IR what they do in Python."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parakeet_py.errors import UnsupportedError
from parakeet_py.frontend import to_ssa
from parakeet_py.frontend.check_ssa import check_function
from parakeet_py.frontend.evaluate import evaluate
from tests.unit.ssa_programs import define

NAMES = ["a", "b", "c", "d"]
FUEL = 60


class OutOfFuel(Exception):
    """The program ran for too long."""


class Writer:
    """Writes a random program; every choice is asked of `source`."""

    def __init__(self, source: random.Random) -> None:
        self.source = source

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
                return f"({inner[0]} {self.one_of('+', '-', '*')} {inner[1]})"
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
        kind = self.one_of(*kinds)
        name, value = self.one_of(*NAMES), self.expression()
        match kind:
            case "assign":
                return [f"{name} = {value}"]
            case "augment":
                return [f"{name} {self.one_of('+', '-', '*')}= {value}"]
            case "log":
                return [f"log({value})"]
            case "pair":
                return [f"{name}, {self.one_of(*NAMES)} = {value}, {self.expression()}"]
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
    try:
        result = function(*args)
    except Exception as error:
        return (type(error), repr(error.args) if isinstance(error, ValueError) else "", repr(log))
    return (repr(result), repr(log))


def compare(source: random.Random, depth: int) -> None:
    """Write a program and run it both ways."""
    text = "\n".join(["def f(a, b):", *Writer(source).block(depth, False), "    return (a, b, c)"])
    function = define(text)
    try:
        executed = evaluate(check_function(to_ssa(function)), function)
    except UnsupportedError as error:
        assert "whose `else` jumps" in str(error), text  # the only thing here that is refused
        return
    for args in ((0, 1), (3, 2), (-1, 5)):
        scope = function.__globals__
        assert run(executed, scope, args) == run(function, scope, args), text


@settings(max_examples=max(30, settings.default.max_examples), suppress_health_check=list(HealthCheck))
@given(st.randoms())
def test_programs_that_can_be_shrunk(source: random.Random) -> None:
    compare(source, 2)


@pytest.mark.parametrize("seed", range(20))
def test_many_programs(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(15):
        compare(source, 3)
