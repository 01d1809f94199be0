"""Random programs as source text: a strategy for differential tests of the whole compiler.

A program is made statement by statement. After each one everything so far is run by Python on the test arguments, so
that the next can be chosen by the shapes and dtypes that are really there; a statement that fails, or that makes a name
something of another kind inside a loop or branch, is dropped, or now and then kept as the last one, or inside a `try`.
Every choice is Hypothesis's; `smaller` makes a few lines of a program that differs.

The same program is then called with other arguments too (`variants`): other extents, which take other versions of
the code, other dtypes, and what raises with them.
"""

from __future__ import annotations

import math
import re
import resource
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.arrays import Array
from tests.property.random_expressions import REFUSED_BY_PYTHON, indented
from tests.property.random_idioms import Idioms
from tests.property.recipes import REFUSED_LAYOUTS, enlarged, made, recipes, variants

EXCEPTIONS = ["IndexError", "ValueError", "(IndexError, TypeError)", "ZeroDivisionError", "Exception", "TypeError"]
EXCEPTIONS += ["ArithmeticError", "(ValueError, KeyError)", "LookupError", "AssertionError"]


GROWS = ("kron", "outer", "meshgrid", "tensordot", "einsum", "vander", "None]", "indices", "ix_", "expand_dims", "eye")
GROWS += ("diag", "matrix", "grid", "tri", "sliding", "newaxis", "convolve", "correlate", "pad", "repeat", "tile")
MOST_SHARED = 60_000  # elements


@dataclass(frozen=True)
class Program:
    """Source text of `f`, and how its arguments are made: those it was made with, then others.

    `large` are arguments that threads share, if the program does not make too much of them.
    """

    source: str
    recipes: tuple[Any, ...]
    variants: tuple[tuple[Any, ...], ...] = ()
    sums: float = 1
    ulp: float = 0
    refusable: bool = False
    large: tuple[Any, ...] = ()

    def args(self) -> tuple[Any, ...]:
        return made(self.recipes)

    def calls(self) -> tuple[tuple[Any, ...], ...]:
        """The arguments of all calls."""
        return (self.recipes, *self.variants)

    def __repr__(self) -> str:
        return f"arguments {self.recipes!r}, then {self.variants!r}\n{self.source}"


class Maker(Idioms):
    """Makes one program; `draw` decides everything."""

    def body(self, scope: dict[str, Any], head: Sequence[str], depth: int, most: int = 3) -> list[str]:
        """The statements of a block, which are tried one after another after `head`."""
        lines: list[str] = []
        outside = self.prefix
        for _ in range(self.draw(st.integers(1, most))):
            self.prefix = [*outside, *head, *lines]
            more = self.statement(scope, depth)
            after = self.accepts(more, scope) if more else None
            if after is not None:
                lines, scope = [*lines, *more], after
        self.prefix = outside
        return lines or ["pass"]

    def branch(self, scope: dict[str, Any], depth: int) -> list[str]:
        lines = [f"if {self.condition(scope)}:", *indented(self.body(scope, [], depth))]
        if self.chance(15):
            lines += [f"elif {self.condition(scope)}:", *indented(self.body(scope, [], depth))]
        if self.chance(60):
            lines += ["else:", *indented(self.body(scope, [], depth))]
        return lines

    def leave(self, scope: dict[str, Any], depth: int) -> list[str]:
        """The function may end here."""
        self.refusable = True
        names = [*self.arrays(scope), *self.numbers(scope)]
        return [f"if {self.condition(scope)}:", f"    return_({self.pick(names)}, {self.pick([*names, '1'])})"]

    def loop(self, scope: dict[str, Any], depth: int) -> list[str]:
        var = self.name("i")
        ranges = ["range(2)", "range(k)", "range(1, 4)", "range(3, 0, -1)", "(1, 2.5)", "[k, 2]"]
        arrays = self.arrays(scope, lambda a: a.ndim > 0)
        ranges += [f"range({name}.shape[0])" for name in arrays] + [
            f"range(len({name}) - 1, -1, -1)" for name in arrays
        ]
        ranges += [*arrays, *(f"{name}[::-1]" for name in arrays)]
        ranges += [name for name, value in scope.items() if isinstance(value, list)]
        over = self.pick(ranges)
        head = f"for {var} in {over}:"
        if self.chance(20):
            other = self.name("i")
            head = f"for {var}, {other} in {self.pick([f'enumerate({over})', f'zip({over}, {self.pick(ranges)})'])}:"
        elif self.chance(15):
            test = self.pick([f"{var} < 3 and {self.condition(scope)}", f"{var} < k", f"{var} < 4"])
            head = f"{var} = 0\nwhile {test}:\n    {var} += 1"
        self.refusable |= "[k, 2]" in head or ("zip(" in head and "(1, 2.5)" in head)
        try:
            inner = self.run([head, "    break"])
        except REFUSED_BY_PYTHON:
            return []
        start = [head, "    break"]
        lines = self.body(inner, start, depth) if var in inner else ["pass"]
        if self.chance(25):
            where = self.pick([0, len(lines)])
            leaves = [f"return_({self.leaf(inner)})", f"raise ValueError({var!r})"] if self.chance(30) else []
            self.refusable |= bool(leaves)
            test = self.condition(inner)
            lines = [*lines[:where], f"if {test}:\n    {self.pick(['break', 'continue', *leaves])}", *lines[where:]]
        lines = [head, *indented(lines)]
        if self.chance(8):
            lines += ["else:", *indented(self.body(scope, [], 0, 1))]
        return lines

    def attempt(self, scope: dict[str, Any], depth: int) -> list[str]:
        """What is tried may go as far as a fault."""
        self.refusable = True
        tried = self.body(scope, [], depth, 2)
        fault = self.fault(scope)
        tried = self.pick([[*tried, *fault], [*fault, *tried], [*tried, *fault, *self.body(scope, [], 0, 1)]])
        caught = self.pick(EXCEPTIONS)
        lines = ["try:", *indented(tried), f"except {caught}:", *indented(self.body(scope, [], depth, 2))]
        if self.chance(20):
            lines += ["else:", *indented(self.body(scope, [], 0, 1))]
        if self.chance(20):
            lines += ["finally:", *indented(self.body(scope, [], 0, 1))]
        return lines

    def procedure(self, scope: dict[str, Any], depth: int) -> list[str]:
        """A function of statements, called once."""
        self.refusable = True
        names = [*self.arrays(scope), *self.numbers(scope)]
        name, first, second = self.name(), self.pick(names), self.pick(names)
        lines = self.body({"x": scope[first], "y": scope[second]}, [f"x, y = {first}, {second}"], depth)
        results = f"{self.name()}, {self.name()}"
        return [f"def {name}(x, y):", *indented([*lines, "return x, y"]), f"{results} = {name}({first}, {second})"]

    def statement(self, scope: dict[str, Any], depth: int) -> list[str]:
        simple = [self.assign, self.store, self.store, self.again, self.view, self.library, self.reduce, self.element]
        simple += [self.augment, self.product, self.gather, self.gather, self.swap, self.call, self.library_call]
        simple += [self.library_call, self.library_call, self.lists, self.dicts, self.maybe, self.comprehension]
        simple += [self.view_store, self.lists, self.array_lists, self.call, self.attributes, self.text]
        simple += [self.syntax, self.syntax, self.syntax, *[self.idiom] * 6]
        blocks = (
            [self.loop, self.loop, self.loop, self.branch, self.branch, self.attempt, self.leave, self.procedure]
            if depth
            else []
        )
        kind = self.draw(st.integers(0, len(simple) + len(blocks) - 1))
        return simple[kind](scope) if kind < len(simple) else blocks[kind - len(simple)](scope, depth - 1)

    def program(self, most: int, shared: bool = False) -> Program:
        for _ in range(self.draw(st.integers(1, most))):
            more = self.statement(self.scope, 2)
            if not more:
                continue
            words = ("for", "if", "while", "try")
            block = any(line.startswith(words) for line in "\n".join(more).splitlines())
            after = self.accepts(more, self.scope if block else {})
            if after is not None:
                self.lines += more
                self.scope = after
            elif self.chance(4):
                self.lines += more  # it may raise: so does the compiled function, with the same effects before
                self.refusable = True
                break
        names = [name for name, value in self.scope.items() if not callable(value)]
        results = ", ".join(names[-4:] if self.chance(80) else names)
        if self.chance(10):
            results = self.pick([f"[{results}]", f"({results},), k", names[-1], f"{{'x': {names[-1]}, 'y': k}}"])
            self.refusable = True
        text = "\n".join([*self.lines, f"return {results}"])
        text = re.sub(r"\breturn_\((.*)\)$", r"return \1", text, flags=re.MULTILINE)
        source = f"def f({', '.join(self.params)}):\n{textwrap.indent(text, '    ')}\n"
        others = [self.draw(variants(self.recipes)) for _ in range(self.draw(st.integers(0, 2)))]
        found = tuple(other for other in others if self.ends(other))
        self.refusable |= any(is_complex(value) for value in made(self.recipes))
        self.refusable |= any(isinstance(one, slice | type | list | dict) for one in self.recipes)
        self.refusable |= any(isinstance(one, Array) and one.layout in REFUSED_LAYOUTS for one in self.recipes)
        large = self.large(source) if shared else ()
        return Program(source, self.recipes, found, self.sums, self.ulp, self.refusable, large)

    def large(self, source: str) -> tuple[Any, ...]:
        """The arguments with more elements; none if something grows faster than they do, or a loop is too long."""
        if any(word in source for word in GROWS):
            return ()

        def size(recipes: tuple[Any, ...]) -> int:
            return max((math.prod(one.shape) for one in recipes if isinstance(one, Array)), default=0)

        few = enlarged(self.recipes, 4)
        factors = [factor for factor in (500, 100, 40, 12) if size(enlarged(self.recipes, factor)) <= MOST_SHARED]
        if not factors:
            return ()
        many = enlarged(self.recipes, factors[0])
        for longer, most in (few, 4 * size(few)), (many, 4 * MOST_SHARED):
            try:
                with little_memory():
                    scope = self.run_with(longer, self.lines, most)
            except MemoryError:
                return ()
            except REFUSED_BY_PYTHON as error:
                if "does not end" in str(error):
                    return ()
            else:
                if any(np.size(value) > most for value in scope.values() if isinstance(value, np.ndarray)):
                    return ()
        return many

    def ends(self, recipes: tuple[Any, ...]) -> bool:
        """Whether the program ends with these arguments, one way or the other."""
        try:
            self.run_with(recipes, self.lines)
        except REFUSED_BY_PYTHON as error:
            return "does not end" not in str(error)
        return True


def is_complex(value: Any) -> bool:
    return isinstance(value, complex | np.ndarray | np.generic) and np.iscomplexobj(value)


@contextmanager
def little_memory(more: int = 1 << 28) -> Iterator[None]:
    """The process may have so many bytes more than it has; there are programs that ask for any number."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@st.composite
def programs(draw: st.DrawFn, most: int = 7, shared: bool = False) -> Program:
    """Programs of at most so many statements, not counting those inside of others; `shared`: for threads too."""
    return Maker(draw, draw(recipes())).program(most, shared)
