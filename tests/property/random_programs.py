"""Random programs as source text: a strategy for differential tests of the whole compiler.

A program is made statement by statement. After each one everything so far is run by Python on the test arguments, so
that the next can be chosen by the shapes and dtypes that are really there; a statement that fails, or that makes a name
something of another kind inside a loop or branch (which is refused by design), is dropped, or now and then kept as the
last one. Every choice is Hypothesis's, so a failing program shrinks to a few short lines.

All results are exact whatever the order of a sum: arrays hold small integers, what is summed is clipped, and nothing is
divided but by powers of two. So any difference is an error of the compiler.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.arrays import Array

DTYPES = ["f8", "i8", "f4", "i4", "u1", "b1"]
LAYOUTS = ["C", "F", "reversed", "stepped", "inner", "readonly"]
VALUES = [(3, -1, 2, 0, -2, 1, 5), (1, 4, -3, 2), (0, 1, 0, -2, 7, 1, -1, 2, 2), (0,)]
BINARY = ["{} + {}", "{} - {}", "np.maximum({}, {})", "np.minimum({}, {})"]
CONSTANT = ["{} * 2", "{} + 1", "{} - 3", "{} * 0.5", "{} // 2", "{} % 3", "np.clip({}, -4, 4)", "{} ** 2 % 8"]
UNARY = ["0 - {}", "abs({})", "np.floor({} * 0.5)", "np.sign({})", "np.square(np.clip({}, -5, 5))", "+{}"]
COMPARE = ["{} > {}", "{} <= {}", "{} == {}", "{} != {}"]
REDUCE = ["np.sum(np.clip({}, -9, 9){})", "np.max({}{})", "np.min({}{})", "np.any({}{})", "np.all({} > 0{})"]
REDUCE += ["np.argmax({}{})", "np.argmin({}{})", "np.count_nonzero({}{})", "np.prod(np.floor(np.clip({}, -2, 2)){})"]
SHAPED = ["np.flip({})", "np.roll({}, 1)", "{}.copy()", "np.zeros_like({})", "np.sort({})", "np.where({} > 0, 1, 2)"]
SHAPED += ["{}.T", "{}.ravel()", "{}.reshape(-1)", "np.repeat({}, 2)", "np.diff({})", "{}[..., None]", "{}[None]"]
SHAPED += ["np.cumsum(np.clip({}, -9, 9))", "np.maximum.accumulate({})", "np.concatenate([{0}, {0}])", "np.tril({})"]
SHAPED += ["np.atleast_2d({})", "{0}[{0} > 0]", "{}.astype(np.float64)", "{}.astype('i4')", "np.nonzero({})[0]"]
SHAPED += ["np.argsort({}, kind='stable')", "np.stack([{0}, {0}])", "np.asfortranarray({} + 0)", "np.pad({}, 1)"]
MOST_ELEMENTS = 200


@dataclass(frozen=True)
class Overlapping:
    """Arguments that are windows of one buffer."""

    dtype: str
    windows: tuple[str, ...]

    def make(self) -> list[np.ndarray]:
        buffer = Array(self.dtype, (12,), "C", VALUES[0]).make()
        return [eval(f"buffer[{window}]", {"buffer": buffer}) for window in self.windows]


@dataclass(frozen=True)
class Program:
    """Source text of `f`, and how its arguments are made."""

    source: str
    recipes: tuple[Any, ...]

    def args(self) -> tuple[Any, ...]:
        return made(self.recipes)

    def __repr__(self) -> str:
        return f"arguments {self.recipes!r}\n{self.source}"


def made(recipes: Sequence[Any]) -> tuple[Any, ...]:
    """Fresh arguments."""
    args: list[Any] = []
    for recipe in recipes:
        match recipe:
            case Overlapping():
                args += recipe.make()
            case Array():
                args.append(recipe.make())
            case _:
                args.append(recipe)
    return tuple(args)


@st.composite
def recipes(draw: st.DrawFn) -> tuple[Any, ...]:
    """Arrays whose shapes have to do with each other, an int, and now and then overlapping windows of a buffer."""
    n, m = draw(st.sampled_from([3, 2, 4, 5, 1, 0])), draw(st.sampled_from([2, 3, 1, 4]))
    shapes = [(n,), (n,), (n, m), (n, n), (m,), (1, m), (n, 1), (2, n, m), ()]
    chosen: list[Any] = []
    for _ in range(draw(st.integers(1, 3))):
        dtype, layout = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(LAYOUTS))
        shape, values = draw(st.sampled_from(shapes)), draw(st.sampled_from(VALUES))
        chosen.append(Array(dtype, shape, layout, tuple(map(abs, values)) if dtype == "u1" else values))
    if draw(st.integers(0, 4)) == 4:
        windows = ["1:6", ":5", "5::-1", "::2", "2:8", "::-1"]
        chosen.append(
            Overlapping(draw(st.sampled_from(DTYPES[:4])), tuple(draw(st.sampled_from(windows)) for _ in "ab"))
        )
    return (*chosen, draw(st.integers(0, 4)))


@dataclass
class Maker:
    """Makes one program; `draw` decides everything."""

    draw: st.DrawFn
    recipes: tuple[Any, ...]
    lines: list[str] = field(default_factory=list)
    prefix: list[str] = field(default_factory=list)
    scope: dict[str, Any] = field(default_factory=dict)
    fresh: int = 0

    def __post_init__(self) -> None:
        self.params = ["abcdefgh"[i] for i in range(len(made(self.recipes)) - 1)] + ["k"]
        self.scope = self.run([])

    # ---- running what there is ----

    def run(self, more: Sequence[str]) -> dict[str, Any]:
        """The names after all statements so far, one way into the blocks that are open, and these."""
        scope: dict[str, Any] = {"np": np, **dict(zip(self.params, made(self.recipes), strict=True))}
        code = compile("\n".join([*self.lines, *self.prefix, *more]), "<program>", "exec")
        with np.errstate(all="ignore"):
            exec(code, scope)
        return {name: value for name, value in scope.items() if name not in ("np", "__builtins__")}

    def accepts(self, more: Sequence[str], keep: dict[str, Any]) -> dict[str, Any] | None:
        """The names afterwards, or None if that is no statement for this program: it fails, makes too much, or makes
        one of the names to keep something of another kind."""
        try:
            after = self.run(more)
        except (ArithmeticError, AttributeError, LookupError, NameError, SyntaxError, TypeError, ValueError):
            return None
        if any(isinstance(v, np.ndarray) and (v.size > MOST_ELEMENTS or v.ndim > 3) for v in after.values()):
            return None
        if any(kind_of(value) != kind_of(after[name]) for name, value in keep.items()):
            return None
        return after

    # ---- choices ----

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return bool(self.draw(st.integers(0, 99)) >= 100 - percent)

    def arrays(self, scope: dict[str, Any], test: Callable[[np.ndarray], bool] = lambda a: True) -> list[str]:
        return [name for name, value in scope.items() if isinstance(value, np.ndarray) and test(value)]

    def numbers(self, scope: dict[str, Any]) -> list[str]:
        return [name for name, value in scope.items() if isinstance(value, int | float | np.generic)]

    # ---- expressions ----

    def index(self, scope: dict[str, Any], extent: int) -> str:
        options = ["0", "-1", *(f"{name} % {extent}" for name in self.numbers(scope) if is_int(scope[name]) and extent)]
        return str(self.pick(options))

    def cut(self, extent: int) -> str:
        options = [
            ":",
            "1:",
            ":-1",
            "::-1",
            "::2",
            "1:-1",
            f":{extent // 2}",
            ":k",
            "k:",
            "-2:",
            ":0",
            "None:",
            "2::-1",
        ]
        return str(self.pick(options))

    def place(self, scope: dict[str, Any], name: str) -> str:
        """A subscript of an array: slices and integers."""
        array = scope[name]
        if array.ndim == 0:
            return f"{name}[...]"
        parts = []
        for extent in array.shape[: self.draw(st.integers(1, array.ndim))]:
            parts.append(self.index(scope, extent) if self.chance(20) else self.cut(extent))
        return f"{name}[{', '.join(parts)}]"

    def leaf(self, scope: dict[str, Any]) -> str:
        names = self.arrays(scope)
        if not names or self.chance(20):
            return str(self.pick([*self.numbers(scope), "(2)", "(1.5)"]))
        name = self.pick(names)
        return self.place(scope, name) if self.chance(40) else str(name)

    def expression(self, scope: dict[str, Any], depth: int) -> str:
        if depth == 0 or self.chance(25):
            return self.leaf(scope)
        first = self.expression(scope, depth - 1)
        kind = self.draw(st.integers(0, 9))
        if kind < 4:
            return f"({self.pick(BINARY).format(first, self.expression(scope, depth - 1))})"
        if kind < 6:
            return f"({self.pick(CONSTANT).format(first)})"
        if kind == 6:
            return f"({self.pick(UNARY).format(first)})"
        if kind == 7:
            return f"np.clip({first} * {self.leaf(scope)}, -9, 9)"
        condition = self.pick(COMPARE).format(first, self.leaf(scope))
        return f"np.where({condition}, {self.leaf(scope)}, {self.leaf(scope)})" if kind == 8 else f"({condition})"

    def condition(self, scope: dict[str, Any]) -> str:
        options = ["k > 2", "k % 2 == 0", *(f"{name} > 1" for name in self.numbers(scope))]
        options += [f"np.sum({name}) > 3" for name in self.arrays(scope, lambda a: a.dtype.kind in "iub")]
        options += [f"{name}.shape[0] > 2" for name in self.arrays(scope, lambda a: a.ndim > 0)]
        options += [f"np.any({name} > 2)" for name in self.arrays(scope)]
        return str(self.pick(options))

    # ---- statements ----

    def name(self) -> str:
        self.fresh += 1
        return f"t{self.fresh}"

    def target(self, scope: dict[str, Any]) -> str | None:
        names = self.arrays(scope, lambda a: a.flags.writeable)
        return self.pick(names) if names else None

    def assign(self, scope: dict[str, Any]) -> list[str]:
        return [f"{self.name()} = {self.expression(scope, 2)}"]

    def again(self, scope: dict[str, Any]) -> list[str]:
        """A name gets a new value of the same kind: carried by loops, merged by branches."""
        name = self.pick([name for name, value in scope.items() if not callable(value)])
        return [f"{name} = {self.pick([*BINARY, '{0} * 1 + {1}']).format(name, self.leaf(scope))}"]

    def store(self, scope: dict[str, Any]) -> list[str]:
        name = self.target(scope)
        if name is None:
            return []
        place = self.place(scope, name)
        operator = self.pick(["=", "+=", "-=", "="])
        if ":" not in place and "..." not in place:
            return [f"{place} {operator} {self.pick([*self.numbers(scope), '7', '-1.5'])}"]
        # A plain copy between windows of one buffer may go wrong in NumPy itself if their steps differ.
        copied = ["{} + 0"] if operator == "=" else ["{}"]
        if self.chance(40):  # of itself: what is stored overlaps what is read
            source = self.pick([self.place(scope, name), place, f"{place}[::-1]", f"{name}[::-1]", f"{name}.T"])
            return [f"{place} {operator} {self.pick(['{} + 1', '{} * 2', *copied]).format(source)}"]
        return [f"{place} {operator} {self.pick(copied).format(self.expression(scope, 1))}"]

    def augment(self, scope: dict[str, Any]) -> list[str]:
        name = self.target(scope)
        if name is None:
            return []
        return [f"{name} {self.pick(['+=', '-=', '//=', '%='])} {self.pick(['3', '2', f'{name}[::-1]', f'{name}.T'])}"]

    def view(self, scope: dict[str, Any]) -> list[str]:
        names = self.arrays(scope)
        return [f"{self.name()} = {self.place(scope, self.pick(names))}"] if names else []

    def library(self, scope: dict[str, Any]) -> list[str]:
        operand = self.leaf(scope) if self.chance(60) else self.expression(scope, 1)
        return [f"{self.name()} = {self.pick(SHAPED).format(operand)}"]

    def reduce(self, scope: dict[str, Any]) -> list[str]:
        operand = self.leaf(scope) if self.chance(60) else self.expression(scope, 1)
        axis = self.pick(["", "", ", axis=0", ", axis=-1", ", axis=0, keepdims=True"])
        return [f"{self.name()} = {self.pick(REDUCE).format(operand, axis)}"]

    def product(self, scope: dict[str, Any]) -> list[str]:
        left, right = (f"np.clip({self.leaf(scope)}, -9, 9)" for _ in range(2))
        return [f"{self.name()} = {self.pick(['{} @ {}', 'np.dot({}, {})', 'np.outer({}, {})']).format(left, right)}"]

    def element(self, scope: dict[str, Any]) -> list[str]:
        """Scalars: elements read and written."""
        names = self.arrays(scope, lambda a: a.ndim > 0 and a.size > 0)
        if not names:
            return []
        name = self.pick(names)
        where = ", ".join(self.index(scope, extent) for extent in scope[name].shape)
        if self.chance(50) and scope[name].flags.writeable:
            return [f"{name}[{where}] {self.pick(['=', '+='])} {self.pick([*self.numbers(scope), '7'])}"]
        return [f"{self.name()} = {name}[{where}] {self.pick(['', '+ 1', '* 2'])}".rstrip()]

    def gather(self, scope: dict[str, Any]) -> list[str]:
        names = self.arrays(scope, lambda a: a.ndim > 0 and a.size > 0)
        if not names:
            return []
        name = self.pick(names)
        index = self.pick(
            ["[0, -1, 0]", f"np.arange({name}.shape[0])[::-1]", f"{name} % 2 == 0", f"[k % {name}.shape[0]]"]
        )
        if self.chance(50) and scope[name].flags.writeable:
            value = self.pick([f"{name}[{index}] + 1", "3", *self.numbers(scope)])
            return [f"{name}[{index}] {self.pick(['=', '+='])} {value}"]
        return [f"{self.name()} = {name}[{index}]"]

    def swap(self, scope: dict[str, Any]) -> list[str]:
        names = self.arrays(scope)
        if len(names) < 2:
            return []
        one, two = self.pick(names), self.pick(names)
        return [f"{one}, {two} = {two}, {one}"]

    def call(self, scope: dict[str, Any]) -> list[str]:
        """A function of its own, called twice."""
        names = [name for name, value in scope.items() if not callable(value)]
        inner = {name: scope[self.pick(names)] for name in "xy"}
        name, first, second = self.name(), self.pick(names), self.pick(names)
        head = f"def {name}(x, y):"
        if self.chance(30):
            more = self.store(inner) or ["pass"]
            return [head, *indented([*more, "return x"]), f"{self.name()} = {name}({first}, {second})"]
        line = f"    return {self.expression(inner, 2)}"
        return [head, line, f"{self.name()} = {name}({name}({first}, {second}), {self.leaf(scope)})"]

    def body(self, scope: dict[str, Any], head: Sequence[str], depth: int) -> list[str]:
        """The statements of a block, which are tried one after another after `head`."""
        lines: list[str] = []
        outside = self.prefix
        for _ in range(self.draw(st.integers(1, 3))):
            self.prefix = [*outside, *head, *lines]
            more = self.statement(scope, depth)
            after = self.accepts(more, scope) if more else None
            if after is not None:
                lines, scope = [*lines, *more], after
        self.prefix = outside
        return lines or ["pass"]

    def branch(self, scope: dict[str, Any], depth: int) -> list[str]:
        lines = [f"if {self.condition(scope)}:", *indented(self.body(scope, [], depth))]
        if self.chance(60):
            lines += ["else:", *indented(self.body(scope, [], depth))]
        return lines

    def loop(self, scope: dict[str, Any], depth: int) -> list[str]:
        self.fresh += 1
        var = f"i{self.fresh}"
        ranges = ["range(2)", "range(k)", "range(1, 4)", "range(3, 0, -1)"]
        ranges += [f"range({name}.shape[0])" for name in self.arrays(scope, lambda a: a.ndim > 0)]
        ranges += [name for name in self.arrays(scope, lambda a: a.ndim > 0)]
        over = self.pick(ranges)
        head = f"for {var} in {over}:"
        if self.chance(20):
            self.fresh += 1
            other = f"i{self.fresh}"
            head = f"for {var}, {other} in {self.pick([f'enumerate({over})', f'zip({over}, {self.pick(ranges)})'])}:"
        elif self.chance(10):
            head = f"{var} = 0\nwhile {var} < 3 and {self.condition(scope)}:\n    {var} += 1"
        try:
            inner = self.run([head, "    break"])
        except (TypeError, NameError, SyntaxError):
            return []
        start = [head, "    break"]
        lines = self.body(inner, start, depth) if var in inner else ["pass"]
        if self.chance(20):
            lines.insert(0, f"if {self.condition(inner)}:\n    {self.pick(['break', 'continue'])}")
        return [head, *indented(lines)]

    def statement(self, scope: dict[str, Any], depth: int) -> list[str]:
        simple = [self.assign, self.store, self.store, self.again, self.view, self.library, self.reduce, self.element]
        simple += [self.augment, self.product, self.gather, self.swap, self.call]
        kind = self.draw(st.integers(0, len(simple) + (3 if depth else -1)))
        if kind < len(simple):
            return simple[kind](scope)
        return self.loop(scope, depth - 1) if kind < len(simple) + 3 else self.branch(scope, depth - 1)

    def program(self, most: int) -> Program:
        for _ in range(self.draw(st.integers(1, most))):
            more = self.statement(self.scope, 2)
            if not more:
                continue
            block = any(line.startswith(("for", "if", "while")) for line in "\n".join(more).splitlines())
            after = self.accepts(more, self.scope if block else {})
            if after is not None:
                self.lines += more
                self.scope = after
            elif self.chance(4):
                self.lines += more  # it may raise: so does the compiled function, with the same effects before
                break
        names = [name for name, value in self.scope.items() if not callable(value)]
        results = names[-4:] if self.chance(80) else names
        text = "\n".join([*self.lines, f"return {', '.join(results)}"])
        source = f"def f({', '.join(self.params)}):\n{textwrap.indent(text, '    ')}\n"
        return Program(source, self.recipes)


def is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def kind_of(value: Any) -> Any:
    """What must not change on some path."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.writeable
    return type(value)


def indented(lines: Sequence[str]) -> list[str]:
    return textwrap.indent("\n".join(lines), "    ").splitlines()


@st.composite
def programs(draw: st.DrawFn, most: int = 7) -> Program:
    """Programs of at most so many statements, not counting those inside of others."""
    return Maker(draw, draw(recipes())).program(most)
