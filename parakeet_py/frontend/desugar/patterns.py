"""`match` as branches: syntax trees to syntax trees, before anything else looks at them.

    match value, kind:                     $subject = value, kind
        case 0, "a" | "b":                 if is_sequence($subject) and len($subject) == 2 and $subject[0] == 0 and ...:
            r = 1                              r = 1
        case [x, *rest] if x > 1:          else:
            r = x                              $matches = False
                                               if is_sequence($subject) and len($subject) >= 1:
                                                   x = $subject[0]; rest = list($subject[1:])
                                                   $matches = x > 1
                                               if $matches:
                                                   r = x

As in Python, names are bound when the whole pattern fits, before the guard is looked at. Patterns that look into
objects or mappings are refused.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from typing import TypeVar

from parakeet_py.frontend.desugar.nodes import place
from parakeet_py.frontend.syntax_walk import walk

_N = TypeVar("_N", bound=ast.AST)
_Refuse = Callable[[ast.AST, str, str], None]
_THEMSELVES = frozenset({"bool", "bytes", "dict", "float", "int", "list", "set", "str", "tuple"})  # int(x) binds it all


def is_sequence(subject: object) -> bool:
    """Can a sequence pattern fit this?"""
    return isinstance(subject, Sequence) and not isinstance(subject, (str, bytes, bytearray))


def without_match(node: _N, refuse: _Refuse) -> _N:
    """The same function, or a copy of it in which there is no `match`. `refuse` raises."""
    if not any(isinstance(inner, ast.Match) for inner in walk(node)):
        return node
    rewritten: _N = _Rewriter(refuse).visit(copy.deepcopy(node))
    return rewritten


class _Rewriter(ast.NodeTransformer):
    def __init__(self, refuse: _Refuse) -> None:
        self.refuse = refuse
        self.count = 0

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        self.generic_visit(node)
        self.count += 1
        subject, matches = f"$subject{self.count}", f"$matches{self.count}"
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            fitting = _Fitting(self.refuse)
            fitting.pattern(case.pattern, ast.Name(subject, ast.Load()))
            test = _all(fitting.tests)
            if case.guard is None:
                chosen: list[ast.stmt] = [ast.If(test, [*fitting.bindings, *case.body], rest)]
            else:
                decide = _assign(matches, case.guard)
                chosen = [
                    _assign(matches, ast.Constant(False)),
                    ast.If(test, [*fitting.bindings, decide], []),
                    ast.If(ast.Name(matches, ast.Load()), case.body, rest),
                ]
            rest = [place(statement, case.pattern) for statement in chosen]
        return [place(_assign(subject, node.subject), node.subject), *rest]


class _Fitting:
    """What has to hold for one pattern to fit, and what it binds then."""

    def __init__(self, refuse: _Refuse) -> None:
        self.refuse = refuse
        self.tests: list[ast.expr] = []
        self.bindings: list[ast.stmt] = []

    def pattern(self, pattern: ast.pattern, subject: ast.expr) -> None:
        match pattern:
            case ast.MatchValue(value=value):
                self.tests.append(ast.Compare(subject, [ast.Eq()], [value]))
            case ast.MatchSingleton(value=value):
                self.tests.append(ast.Compare(subject, [ast.Is()], [ast.Constant(value)]))
            case ast.MatchAs(pattern=inner, name=name):
                if inner is not None:
                    self.pattern(inner, subject)
                if name is not None:
                    self.bindings.append(_assign(name, subject))
            case ast.MatchOr(patterns=patterns):
                self.one_of(patterns, subject)
            case ast.MatchSequence(patterns=patterns):
                self.sequence(patterns, subject)
            case ast.MatchClass(cls=kind, patterns=[], kwd_attrs=[]):
                self.tests.append(_call(isinstance, subject, kind))
            case ast.MatchClass(cls=ast.Name(id=name) as kind, patterns=[inner], kwd_attrs=[]) if name in _THEMSELVES:
                self.tests.append(_call(isinstance, subject, kind))
                self.pattern(inner, subject)
            case _:
                self.refuse(pattern, "a pattern that looks into an object", "write it with `if` and `elif`")

    def one_of(self, patterns: list[ast.pattern], subject: ast.expr) -> None:
        alternatives = []
        for pattern in patterns:
            alternative = _Fitting(self.refuse)
            alternative.pattern(pattern, subject)
            if alternative.bindings:
                self.refuse(pattern, "alternative patterns that bind names", "write a case for each")
            alternatives.append(_all(alternative.tests))
        self.tests.append(ast.BoolOp(ast.Or(), alternatives))

    def sequence(self, patterns: list[ast.pattern], subject: ast.expr) -> None:
        stars = [position for position, each in enumerate(patterns) if isinstance(each, ast.MatchStar)]
        count = len(patterns) - len(stars)
        compared: ast.cmpop = ast.GtE() if stars else ast.Eq()
        length = _call(len, subject)
        self.tests.append(_call(is_sequence, subject))
        self.tests.append(ast.Compare(length, [compared], [ast.Constant(count)]))
        for position, pattern in enumerate(patterns):
            after = position - len(patterns) if stars and position > stars[0] else position
            if not isinstance(pattern, ast.MatchStar):
                self.pattern(pattern, ast.Subscript(subject, _number(after), ast.Load()))
            elif pattern.name is not None:
                behind = len(patterns) - position - 1
                part = ast.Slice(_number(position), _number(-behind) if behind else None)
                self.bindings.append(_assign(pattern.name, _call(list, ast.Subscript(subject, part, ast.Load()))))


def _all(tests: list[ast.expr]) -> ast.expr:
    if len(tests) < 2:
        return tests[0] if tests else ast.Constant(True)
    return ast.BoolOp(ast.And(), tests)


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _call(function: object, *args: ast.expr) -> ast.expr:
    """A call of this very function, whatever its name stands for."""
    return ast.Call(ast.Constant(function), list(args), [])  # type: ignore[arg-type]


def _number(value: int) -> ast.expr:
    return ast.Constant(value)
