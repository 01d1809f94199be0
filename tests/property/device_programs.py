"""Random functions over arrays on devices that are found in all kinds of places: arguments, dicts, dataclasses, named
tuples, lists, globals, cells of closures, attributes; overlapping views of one memory; stores, changes of containers,
rebinding, exceptions in the middle, results in containers.

`python -m tests.property.device_programs --minutes 5 --seed 1` runs one after the other, each on one device or a team,
with arrays of ours or another library's, and three calls of one accelerated object; a seed makes its program again.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

import tests.conftest  # noqa: F401  (the environment of the tests, before the package is imported)
from tests.corpus import Case, assert_same, outcome
from tests.property.generated import function as generated
from tests.residents import KINDS, PLACES, call_with_residents, can_nothing


class Pair(NamedTuple):
    """A named tuple of arrays."""

    u: Any
    v: Any


@dataclass
class State:
    """A dataclass of arrays."""

    x: Any
    y: Any
    n: int


class Holder:
    """Any object with attributes, and methods that change them."""

    z: Any

    def step(self, x: Any) -> Any:
        self.z = self.z * 0.5 + x
        return self.z

    def grow(self, by: Any = 1.0) -> None:
        self.z[0] += by


HOLDER = Holder()
NAMES = ("a", "b", "d['w']", "d['b']", "p.x", "p.y", "l[0]", "l[-1]", "t.u", "t[1]", "G", "c", "holder.z")
VIEWS = ("[1:]", "[:-1]", "[::2]", "[::-1]", "[2:-2]", "[:3]")
TARGETS = ("[1:-1]", "[::2]", "[:]", "[k:]", "[:2]")
MORE_FORMS = 10**6  # the first seed that draws all statements
EXCEPTIONS = ("ValueError('no')", "KeyError('key')", "ArithmeticError")


class Maker:
    """Draws one program."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.forms = 31 if seed < MORE_FORMS else 38  # earlier seeds make what they have made
        self.lines: list[str] = []
        self.locals: list[str] = []
        self.globals = ["G"] if self.draw.randrange(3) == 0 else []

    def name(self) -> str:
        """An array."""
        return self.draw.choice((*NAMES, *NAMES, *self.locals))

    def whole(self, depth: int = 0) -> str:
        """An expression of the extent that all arrays have."""
        draw = self.draw
        match draw.randrange(9 if depth < 2 else 2):
            case 0 | 1 | 2:
                return self.name()
            case 3 | 4:
                return f"({self.whole(depth + 1)} {draw.choice('+-*')} {self.whole(depth + 1)})"
            case 5:
                return f"{draw.choice(('np.abs', 'np.negative', 'np.floor'))}({self.whole(depth + 1)})"
            case 6:
                return f"({self.whole(depth + 1)} * {draw.choice(('2.0', '0.5', 'k', 'p.n'))})"
            case 7:
                return f"np.where({self.whole(depth + 1)} > 0, {self.whole(depth + 1)}, 1.0)"
        return draw.choice(
            (f"{self.name()}[::-1]", f"np.roll({self.name()}, 1)", f"{self.name()}.copy()", f"np.cumsum({self.name()})")
        )

    def number(self) -> str:
        return self.draw.choice(
            (
                f"{self.name()}[k]",
                f"{self.name()}.max()",
                "len(l)",
                f"{self.name()}[-1]",
                "k",
                f"{self.name()}.argmin()",
            )
        )

    def statement(self, indent: str, depth: int) -> None:
        draw, put = self.draw, self.lines.append
        match draw.randrange(self.forms):
            case 0 | 1:
                put(f"{indent}{self.name()}{(target := draw.choice(TARGETS))} = {self.whole()}{target}")
            case 2:
                name, target = self.name(), draw.choice(TARGETS)
                put(f"{indent}{name}{target} {draw.choice('+-*')}= {self.whole()}{target}")
            case 3:
                low, high = draw.choice((("[1:]", "[:-1]"), ("[:-2]", "[2:]"), ("[::2]", "[::-2]")))
                put(f"{indent}{self.name()}{low} = {self.name()}{high} {draw.choice('+-')} {self.whole()}{low}")
            case 4:
                put(f"{indent}{self.name()}[{draw.choice(('k', '0', '-1', 'k + 1'))}] = {self.number()}")
            case 5:
                fresh = f"s{len(self.locals)}"
                put(f"{indent}{fresh} = {draw.choice((self.whole(), self.name()))}")
                if not indent[8:]:
                    self.locals.append(fresh)
            case 6:
                put(f"{indent}l.append({draw.choice((self.whole(), self.name()))})")
            case 7:
                put(f"{indent}l[{draw.choice(('0', '-1'))}] = {draw.choice((self.whole(), self.name()))}")
            case 8:
                put(f"{indent}d[{draw.choice((repr('w'), repr('new'), repr('b')))}] = {self.whole()}")
            case 9:
                put(f"{indent}p.{draw.choice('xy')} = {draw.choice((self.whole(), self.name()))}")
            case 10:
                put(f"{indent}p.n += 1")
            case 11:
                put(f"{indent}holder.z = {draw.choice((self.whole(), self.name()))}")
            case 12:
                put(f"{indent}d['part'] = {self.name()}{draw.choice(VIEWS)}")
            case 13:
                put(f"{indent}l.{draw.choice(('pop()', 'reverse()', f'insert(0, {self.name()})', 'extend([a, b])'))}")
            case 14:
                put(f"{indent}a, b = b, a")
            case 15 | 16 if depth < 2:
                put(f"{indent}{self.head()}")
                for _ in range(draw.randint(1, 2)):
                    self.statement(indent + "    ", depth + 1)
            case 17 if depth < 2:
                put(f"{indent}try:")
                self.statement(indent + "    ", depth + 1)
                put(f"{indent}    {self.failing()}")
                put(f"{indent}except (IndexError, ValueError, ArithmeticError, KeyError):")
                self.statement(indent + "    ", depth + 1)
            case 18:
                put(f"{indent}{self.failing()}")
            case 20:
                put(f"{indent}d['list'] = [{self.name()}, {self.whole()}]")
            case 21:
                put(f"{indent}holder.pair = {self.name()}, ({self.name()}, {self.whole()})")
            case 22:
                put(f"{indent}np.{draw.choice(('add', 'multiply'))}({self.whole()}, {self.whole()}, out={self.name()})")
            case 23:
                put(f"{indent}{(chosen := self.name())}[{chosen} > {draw.choice(('0', 'k'))}] = {self.number()}")
            case 24:
                put(f"{indent}{self.name()}.{draw.choice(('sort()', 'fill(k)'))}")
            case 25:
                put(f"{indent}l[:] = [one {draw.choice('+*')} k for one in l]")
            case 26:
                put(f"{indent}total = total + weighted({self.name()})")
            case 27:
                put(f"{indent}{self.name()}[:] = grown({self.whole()})")
            case 28 if "G" in self.globals:
                put(f"{indent}G = {draw.choice((self.whole(), self.name()))}")
            case 29:
                put(f"{indent}del d[{draw.choice((repr('w'), repr('b')))}]")
            case 30:
                fresh = f"s{len(self.locals)}"
                put(f"{indent}{fresh} = {self.name()}{draw.choice(('[:]', '[::-1]', '[::-1]'))}")
                if not indent[8:]:
                    self.locals.append(fresh)
            case 31:
                put(f"{indent}holder.step({self.whole()})")
            case 32:
                put(f"{indent}holder.grow({draw.choice(('', 'k', 'by=' + self.number()))})")
            case 33:
                put(f"{indent}{self.name()}[:] = holder.step({self.name()})")
            case 34:
                put(f"{indent}if {self.number()} > {draw.choice(('0', '3'))}: return {self.result()}")
            case 35 if depth < 2:
                put(f"{indent}while k < {draw.choice(('3', '4'))}:")
                put(f"{indent}    k += 1")
                self.statement(indent + "    ", depth + 1)
            case 36:
                put(f"{indent}d['step'] = lambda x: x * {self.name()}")
                put(f"{indent}{self.name()}[:] = d.pop('step')({self.whole()})")
            case 37:
                put(f"{indent}total = total + sum([one.sum() for one in d.values() if isinstance(one, type(a))])")
            case 19:
                put(f"{indent}change({self.name()}, {self.whole()})")
            case _:
                put(
                    f"{indent}{self.name()} += {self.whole()}"
                    if draw.randrange(2)
                    else f"{indent}total = total + {self.number()}"
                )

    def head(self) -> str:
        """What a block begins with."""
        draw = self.draw
        return draw.choice(
            (
                f"if {self.number()} > {draw.choice(('0', '2', self.number()))}:",
                f"for i in range({draw.choice(('k', '3', 'len(l)'))}):",
                "for one in l:",
                "for key in list(d):",
            )
        )

    def failing(self) -> str:
        """What may raise."""
        draw = self.draw
        condition = f"{self.number()} > {draw.choice(('0', '3', '100'))}"
        return draw.choice(
            (
                f"if {condition}: raise {draw.choice(EXCEPTIONS)}",
                f"total = total + {self.name()}[{draw.choice(('k * 5', 'int(' + self.number() + ')'))}]",
                f"{self.name()}[int({self.number()})] = 1.0",
                f"total = total + d['none' if {condition} else 'w'][0]",
            )
        )

    def result(self) -> str:
        draw = self.draw
        items = [draw.choice((self.whole(), self.name(), self.name() + draw.choice(VIEWS))) for _ in range(3)]
        return draw.choice(
            (
                items[0],
                f"{items[0]}, total",
                f"[{items[0]}, {items[1]}]",
                f"{{'one': {items[0]}, 'two': ({items[1]}, {items[2]})}}",
                f"Pair({items[0]}, [{items[1]}])",
                f"State({items[0]}, {items[1]}, k)",
                f"p, {items[0]}",
                f"d, l, {items[0]}",
                "total",
            )
        )

    def source(self) -> str:
        """A function `make(c)` that gives `f`, with `c` in a cell, and the global `G`."""
        for _ in range(self.draw.randint(1, 6)):
            self.statement("        ", 0)
        body = "\n".join(self.lines)
        return f"""
def change(one, other):
    one[0] = other[-1]
    return one

def weighted(x):
    return (x * G).sum()

def grown(x):
    G[0] += 1
    return x + G

def make(c):
    def f(a, b, d, p, l, t, holder, k):
{"".join(f"        global {one}" for one in self.globals)}
        total = 0.0
{body}
        return {self.result()}
    return f
"""


def arguments(seed: int, number: int) -> tuple[Any, ...]:
    """Fresh arguments of a program: `a`, `b`, `d`, `p`, `l`, `t`, `holder`, `k`, and then the global and the cell.

    Arrays of one extent, several of them views of one memory, some the same array twice.
    """
    draw = random.Random(f"{seed} {number}")
    extent = draw.choice((5, 6, 8))
    dtype = draw.choice((np.float64, np.float64, np.float32, np.int64))
    memory = (np.arange(40) * 7 % 11 - 4).astype(dtype)
    known: list[np.ndarray] = []

    def array() -> np.ndarray:
        match draw.randrange(6):
            case 0 if known:
                return draw.choice(known)
            case 1 | 2:
                start = draw.randrange(40 - 2 * extent)
                made = (
                    memory[start : start + 2 * extent : 2] if draw.randrange(3) == 0 else memory[start : start + extent]
                )
            case _:
                made = (np.arange(extent) * draw.randint(1, 7) % 5 - 2).astype(dtype)
        known.append(made)
        return made

    a, b = array(), array()
    return (
        a,
        b,
        {"w": array(), "b": b},
        State(array(), array(), 2),
        [array(), a],
        Pair(array(), b),
        array(),
        2,
        array(),
        array(),
    )


class Called:
    """The function of a program: puts what the last arguments say into the global, the cell and the attribute."""

    def __init__(self, source: str, wrap: Callable[[Any], Any]) -> None:
        self.make = generated(source, "make")
        self.plain = self.make(None)
        self.scope = self.plain.__globals__
        self.scope.update(Pair=Pair, State=State)
        self.work = wrap(self.plain)
        self.holder = Holder()

    def __call__(self, *given: Any) -> Any:
        *args, attribute, k, glob, cell = given
        self.scope["G"], self.plain.__closure__[0].cell_contents, self.holder.z = glob, cell, attribute
        vars(self.holder).pop("pair", None)
        result = self.work(*args, self.holder, k)
        return result, self.holder.z, vars(self.holder).get("pair"), self.scope["G"], args[2:5]


def run(seed: int, kind: str | None = None, place: str | None = None, calls: int = 3) -> str:
    """Run a program; what it did, or why it is wrong (`Difference`)."""
    from parakeet_py import accelerate

    source = Maker(seed).source()
    kind = kind or KINDS[seed % len(KINDS)]
    place = place or PLACES[seed // len(KINDS) % len(PLACES)]
    expected_of, actual_of = Called(source, lambda f: f), Called(source, accelerate)
    for number in range(calls):
        case = Case(lambda number=number: arguments(seed, number))
        expected = outcome(expected_of, case.make()[0])
        actual = call_with_residents(actual_of, case, kind, place)
        if can_nothing(actual, kind):
            return "left"
        assert_same(expected, actual, sums=16, message=False, order=False, identity=False)
    return "fell back" if actual_of.work.fell_back else "native"


def main(
    minutes: Annotated[float, typer.Option(help="How long to search.")] = 2.0,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
) -> None:
    end, counts = time.monotonic() + 60 * minutes, {}
    first = seed
    while time.monotonic() < end:
        try:
            how = run(seed)
        except Exception as error:
            how = "wrong"
            kind, place = KINDS[seed % len(KINDS)], PLACES[seed // len(KINDS) % len(PLACES)]
            text = "".join(traceback.format_exception(error)[-1:])
            typer.echo(f"--- seed {seed}, {kind} on {place}: {text}{Maker(seed).source()}")
        counts[how] = counts.get(how, 0) + 1
        seed += 1
    typer.echo(f"seeds {first} to {seed}: {counts}")


if __name__ == "__main__":
    typer.run(main)
