"""Random nests of loops, branches and jumps do in the untyped IR what they do in Python."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parakeet_py.errors import UnsupportedError
from parakeet_py.frontend import to_ssa
from parakeet_py.frontend.check_ssa import check_function
from tests.unit.ssa_eval import evaluate
from tests.unit.ssa_programs import define

NAMES = ["a", "b", "c", "d"]
FUEL = 60


class OutOfFuel(Exception):
    """The program ran for too long."""


def expressions(depth: int = 2) -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(NAMES), st.integers(-3, 5).map(str))
    if depth == 0:
        return leaf
    inner = expressions(depth - 1)
    return st.one_of(
        leaf,
        leaf,
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(" ".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["<", ">=", "==", "!="]), inner).map(" ".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join).map("({})".format),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} < {t[1]} <= {t[2]})"),
        inner.map("(not {})".format),
        st.tuples(st.sampled_from(NAMES), inner).map(lambda t: f"({t[0]} := {t[1]})"),
        inner.map("log({})".format),
    )


@st.composite
def blocks(draw: st.DrawFn, depth: int, in_loop: bool) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(statements(depth, in_loop))
    return lines


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@st.composite
def statements(draw: st.DrawFn, depth: int, in_loop: bool) -> list[str]:
    simple = ["assign", "assign", "augment", "log", "pair", "return", "raise", "del"]
    if in_loop:
        simple += ["break", "continue", "break", "continue"]
    compound = ["if", "if", "ifelse", "for", "forelse", "while", "whileelse", "forever", "elif", "leave"]
    kind = draw(st.sampled_from(simple + (compound * 2 if depth else [])))
    name = draw(st.sampled_from(NAMES))
    value = expressions()
    match kind:
        case "assign":
            return [f"{name} = {draw(value)}"]
        case "augment":
            return [f"{name} {draw(st.sampled_from(['+', '-', '*']))}= {draw(value)}"]
        case "log":
            return [f"log({draw(value)})"]
        case "pair":
            other = draw(st.sampled_from(NAMES))
            return [f"{name}, {other} = {draw(value)}, {draw(value)}"]
        case "return":
            return [f"return {draw(value)}"] if draw(st.booleans()) else [f"{name} = {name} + 1"]
        case "raise":
            return [f"if {draw(value)} > 4: raise ValueError({draw(value)})"]
        case "del":
            return [f"del {name}"] if draw(st.integers(0, 3)) == 0 else [f"{name} = {draw(value)}"]
        case "break" | "continue":
            return [kind]
        case "leave":
            jumps = ["return " + draw(value), *(["break", "continue"] if in_loop else [])]
            return [f"if {draw(value)}:", "    " + draw(st.sampled_from(jumps))]
        case "if":
            return [f"if {draw(value)}:", *indented(draw(blocks(depth - 1, in_loop)))]
        case "ifelse" | "elif":
            lines = [f"if {draw(value)}:", *indented(draw(blocks(depth - 1, in_loop)))]
            if kind == "elif":
                lines += [f"elif {draw(value)}:", *indented(draw(blocks(depth - 1, in_loop)))]
            return [*lines, "else:", *indented(draw(blocks(depth - 1, in_loop)))]
        case "for" | "forelse":
            target = draw(st.sampled_from([name, name, "a, b", "e"]))
            items = "[(1, 2), (3, 0), (2, 2)]" if target == "a, b" else f"range(({draw(value)}) % 4)"
            head = f"for {target} in {items}:"
        case "forever":
            head = "while True:"
        case _:
            head = f"while tick() and {draw(value)}:"
    tick = ["    tick()"] if kind == "forever" else []
    lines = [head, *tick, *indented(draw(blocks(depth - 1, True)))]
    if kind.endswith("else"):
        lines += ["else:", *indented(draw(blocks(depth - 1, in_loop)))]
    return lines


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


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(blocks(3, False))
def test_random_control_flow(lines: list[str]) -> None:
    text = "\n".join(["def f(a, b):", *indented(lines), "    return (a, b, c)"])
    function = define(text)
    try:
        executed = evaluate(check_function(to_ssa(function)), function)
    except UnsupportedError as error:
        assert "whose `else` jumps" in str(error), text  # the only thing here that is refused
        return
    scope = function.__globals__
    for args in ((0, 1), (3, 2), (-1, 5)):
        assert run(executed, scope, args) == run(function, scope, args), text
