"""The expressions of random programs: leaves, subscripts, operators, conditions, calls of the library.

`Expressions` also runs what there is of a program, so that every choice can be made by the shapes and dtypes that are
really there. Every choice is Hypothesis's (`draw`).

Values are exact whatever the order of a sum: arrays hold small integers, what is summed is clipped, what is divided is
rounded at once (`SNAPPED`: no quotient and no elementary function lies on the border). Results of the library that are
not exact get a name that begins with r: it is returned and compared with a tolerance, and nothing is made of it.
"""

from __future__ import annotations

import ast
import bisect
import collections
import copy
import functools
import heapq
import itertools
import math
import operator
import re
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.numpy_table import families  # noqa: F401  (fills the table)
from tests.numpy_table.rows import TABLE, Row, expanded
from tests.property.recipes import made
from tests.property.strategies import index_texts

MODULES = {one.__name__: one for one in (bisect, collections, copy, functools, heapq, itertools, math, operator, types)}
"""What programs have as globals, beside NumPy."""

BINARY = ["{} + {}", "{} - {}", "np.maximum({}, {})", "np.minimum({}, {})"]
LOGICAL = ["{} & {}", "{} | {}", "{} ^ {}", "np.logical_xor({}, {})", "({} > 0) & ({} < 3)", "np.fmax({}, {})"]
LOGICAL += ["np.fmod({}, abs({}) + 1)", "{} // (abs({}) + 1)", "{} % (abs({}) + 1)", "np.copysign({}, {})"]
LOGICAL += ["np.add({}, {}, dtype=np.float64)", "({} or {})", "({} and {})", "np.gcd({}, {})", "np.divmod({}, {})[1]"]
LOGICAL += ["({} << ({} & 3))", "({} >> ({} & 3))", "np.heaviside({}, {})", "np.equal({}, {})", "np.fmin({}, {})"]
CONSTANT = ["{} * 2", "{} + 1", "{} - 3", "{} * 0.5", "{} // 2", "{} % 3", "np.clip({}, -4, 4)", "{} ** 2 % 8"]
CONSTANT += ["3 - {}", "{} % -3", "{} + 0.5", "{} & 6", "{} * -1", "{} + np.float32(1)", "{} * np.int8(2)", "7 // {}"]
UNARY = ["0 - {}", "abs({})", "np.floor({} * 0.5)", "np.sign({})", "np.square(np.clip({}, -5, 5))", "+{}"]
UNARY += ["-{}", "~{}", "np.rint({} * 0.75)", "np.signbit({})", "np.isfinite({})", "np.conj({})", "(not {})"]
UNARY += ["np.trunc({} * 0.5)", "np.ceil({} * 0.5)", "np.logical_not({})", "np.nan_to_num({})", "bool({})", "int({})"]
UNARY += ["float({})", "np.real({})", "np.positive({})", "np.round({} * 0.25)", "({}).real", "({}).imag"]
ROUNDED = ["np.sqrt(abs({}))", "np.exp(np.clip({}, -3, 3))", "np.sin({})", "np.log(abs({}) + 1)", "np.arctan({})"]
ROUNDED += [
    "{} / 3",
    "{} / 7.0",
    "np.hypot({}, 1)",
    "np.mean({})",
    "np.var({})",
    "np.std({})",
    "np.tanh({})",
    "{} ** 0.5",
]
ROUNDED += ["np.mean({}, axis=0)", "np.mean({}, axis=-1, keepdims=True)", "np.median({})", "np.linalg.norm({})"]
SNAPPED = "np.rint({} * 3.14159)"
COMPARE = ["{} > {}", "{} <= {}", "{} == {}", "{} != {}", "{} < {}", "{} >= {}"]
MASKED = ["np.select([{0} > 1, {0} < 0], [{1}, {2}], 5)", "np.where({0} > {1}, {1}, {2})", "({1} if {0} else {2})"]
MASKED += ["np.clip({0}, {1}, {2})", "np.where({0}, {1}, {2})", "np.minimum(np.maximum({0}, {1}), {2})"]
MASKED += ["({0} < {1}) & ({1} < {2})", "({0} < {1} < {2})"]
REDUCE = ["np.sum(np.clip({}, -9, 9){})", "np.max({}{})", "np.min({}{})", "np.any({}{})", "np.all({} > 0{})"]
REDUCE += ["np.argmax({}{})", "np.argmin({}{})", "np.count_nonzero({}{})", "np.prod(np.floor(np.clip({}, -2, 2)){})"]
SHAPED = ["np.flip({})", "np.roll({}, 1)", "{}.copy()", "np.zeros_like({})", "np.sort({})", "np.where({} > 0, 1, 2)"]
SHAPED += ["{}.T", "{}.ravel()", "{}.reshape(-1)", "np.repeat({}, 2)", "np.diff({})", "{}[..., None]", "{}[None]"]
SHAPED += ["np.cumsum(np.clip({}, -9, 9))", "np.maximum.accumulate({})", "np.concatenate([{0}, {0}])", "np.tril({})"]
SHAPED += ["np.atleast_2d({})", "{0}[{0} > 0]", "{}.astype(np.float64)", "{}.astype('i4')", "np.nonzero({})[0]"]
SHAPED += ["np.argsort({}, kind='stable')", "np.stack([{0}, {0}])", "np.asfortranarray({} + 0)", "np.pad({}, 1)"]
SHAPED += ["np.asarray({})", "np.array({})", "np.array([{0}, {0}])", "{}.astype('i1')", "{}.astype(np.float32)"]
SHAPED += [
    "np.ascontiguousarray({})",
    "np.full_like({}, 2)",
    "np.arange(len({}))",
    "np.unique({})",
    "np.outer({0}, {0})",
]
VIEWS = ["{}.T", "{}.real", "{}.imag", "{}.ravel()", "{}.reshape(-1)", "{}.swapaxes(0, -1)", "np.flip({})", "{}[None]"]
VIEWS += ["{}.reshape(-1, 1)", "np.diagonal({})", "np.diag({})", "np.squeeze({})", "np.moveaxis({}, 0, -1)", "{}[...]"]
VIEWS += [
    "np.atleast_2d({})",
    "np.asarray({})",
    "{}.transpose()",
    "{}.reshape(2, -1)",
    "{}.view()",
    "np.expand_dims({}, 0)",
]
VIEWS += ["np.broadcast_to({0}, (2, *{0}.shape))", "np.rot90({})", "np.split({}, 1)[0]", "np.atleast_1d({})", "{}[()]"]
MOST_ELEMENTS = 200
MOST_TURNS = 2000  # of all loops of a program
REFUSED_BY_PYTHON = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, RuntimeError)
REFUSED_BY_PYTHON += (SyntaxError, TypeError, ValueError)


@dataclass
class Expressions:
    """What a program can be made of, and how far it has come."""

    draw: st.DrawFn
    recipes: tuple[Any, ...]
    lines: list[str] = field(default_factory=list)
    prefix: list[str] = field(default_factory=list)
    scope: dict[str, Any] = field(default_factory=dict)
    fresh: int = 0
    sums: float = 1
    ulp: float = 0
    refusable: bool = False  # may it be left to Python?

    def __post_init__(self) -> None:
        self.params = ["abcdefgh"[i] for i in range(len(made(self.recipes)) - 1)] + ["k"]
        self.scope = self.run([])

    # ---- running what there is ----

    def run(self, more: Sequence[str]) -> dict[str, Any]:
        """The names after all statements so far, one way into the blocks that are open, and these."""
        return self.run_with(self.recipes, [*self.lines, *self.prefix, *more])

    def run_with(self, recipes: Sequence[Any], lines: Sequence[str], most: int = MOST_ELEMENTS) -> dict[str, Any]:
        """The names after these statements; loops end where something has many times `most` elements."""
        scope: dict[str, Any] = dict(zip(self.params, made(recipes), strict=True))
        hidden = {**MODULES, "np": np, "return_": tuple, "turn_": Turns(scope, most), "__builtins__": __builtins__}
        scope.update(hidden)
        code = compile(CountTurns().visit(ast.parse("\n".join(lines))), "<program>", "exec")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, scope)
        return {name: value for name, value in scope.items() if name not in hidden and name[0] != "_"}

    def accepts(self, more: Sequence[str], keep: dict[str, Any]) -> dict[str, Any] | None:
        """The names afterwards, or None if that is no statement for this program: it fails, makes too much, or makes
        one of the names to keep something of another kind."""
        try:
            after = self.run(more)
        except REFUSED_BY_PYTHON:
            return None
        if any(isinstance(v, np.ndarray) and (v.size > MOST_ELEMENTS or v.ndim > 3) for v in after.values()):
            return None
        if any(isinstance(v, int) and abs(v) > 1 << 40 for v in after.values()):
            return None
        if any(kind_of(value) != kind_of(after.get(name)) for name, value in keep.items()):
            if not self.chance(15):
                return None
            self.refusable = True
        return after

    # ---- choices ----

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return bool(self.draw(st.integers(0, 99)) >= 100 - percent)

    def name(self, prefix: str = "t") -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def arrays(self, scope: dict[str, Any], test: Callable[[np.ndarray], bool] = lambda a: True) -> list[str]:
        return [name for name, value in exact(scope) if isinstance(value, np.ndarray) and test(value)]

    def numbers(self, scope: dict[str, Any]) -> list[str]:
        return [name for name, value in exact(scope) if isinstance(value, int | float | np.generic)]

    def target(self, scope: dict[str, Any]) -> str | None:
        names = self.arrays(scope, lambda a: a.flags.writeable)
        return self.pick(names) if names else None

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
        return str(self.pick([*options, "::-2", "k::-1", "-k:", "1::2"]))

    def place(self, scope: dict[str, Any], name: str) -> str:
        """A subscript of an array: slices and integers."""
        array = scope[name]
        if array.ndim == 0:
            return f"{name}[...]"
        parts = []
        for extent in array.shape[: self.draw(st.integers(1, array.ndim))]:
            parts.append(self.index(scope, extent) if self.chance(20) else self.cut(extent))
        return f"{name}[{', '.join(parts)}]"

    def fancy(self, scope: dict[str, Any], name: str) -> str:
        """Any index of an array, without the brackets: arrays of integers and masks among them."""
        array = scope[name]
        whole = ["[0, -1, 0]", f"np.arange({name}.shape[0])[::-1]", f"{name} % 2 == 0", f"[k % {name}.shape[0]]"]
        whole += [f"{name} > 0", f"np.argsort({name}, axis=0)[0]", "np.array([1, 0, 1])", "[True] + [False] * 0"]
        others = self.arrays(scope, lambda a: a.dtype.kind in "iub" and a.ndim < 3)
        if self.chance(30) and others:
            one = self.pick(others)
            return str(one if scope[one].dtype.kind == "b" else f"{one} % {name}.shape[0]")
        return str(self.pick(whole) if self.chance(40) else self.draw(index_texts(array.shape, advanced=True)))

    def leaf(self, scope: dict[str, Any]) -> str:
        names = self.arrays(scope)
        if not names or self.chance(20):
            return str(self.pick([*self.numbers(scope), "(2)", "(1.5)", "True", "(-1)", "np.float32(0.5)"]))
        name = self.pick(names)
        return self.place(scope, name) if self.chance(40) else str(name)

    def expression(self, scope: dict[str, Any], depth: int) -> str:
        if depth == 0 or self.chance(25):
            return self.leaf(scope)
        first = self.expression(scope, depth - 1)
        match self.draw(st.integers(0, 13)):
            case 0 | 1 | 2 | 3:
                return f"({self.pick(BINARY).format(first, self.expression(scope, depth - 1))})"
            case 4 | 5:
                return f"({self.pick(CONSTANT).format(first)})"
            case 6 | 7:
                return f"({self.pick(UNARY).format(first)})"
            case 8:
                return f"np.clip({first} * {self.leaf(scope)}, -9, 9)"
            case 9:
                return self.pick(MASKED).format(first, self.leaf(scope), self.leaf(scope))
            case 10:
                return f"({self.pick(COMPARE).format(first, self.leaf(scope))})"
            case 11:
                return f"({self.pick(LOGICAL).format(first, self.leaf(scope))})"
            case 12:
                return SNAPPED.format(self.pick(ROUNDED).format(first))
            case _:
                names = self.arrays(scope, lambda a: a.ndim > 0 and a.size > 0)
                if not names:
                    return self.leaf(scope)
                name = self.pick(names)
                return f"{name}[{self.fancy(scope, name)}]"

    def condition(self, scope: dict[str, Any]) -> str:
        options = ["k > 2", "k % 2 == 0", *(f"{name} > 1" for name in self.numbers(scope))]
        options += [f"np.sum({name}) > 3" for name in self.arrays(scope, lambda a: a.dtype.kind in "iub")]
        options += [f"{name}.shape[0] > 2" for name in self.arrays(scope, lambda a: a.ndim > 0)]
        options += [f"np.any({name} > 2)" for name in self.arrays(scope)]
        options += [f"{name}[..., 0] > 0" for name in self.arrays(scope, lambda a: a.ndim == 1 and a.size > 0)]
        options += [f"not {name}" for name in self.numbers(scope)]
        options += [f"{name} is None" for name, value in scope.items() if value is None]
        options += [f"len({name}) > 1" for name, value in scope.items() if isinstance(value, list | dict)]
        text = str(self.pick(options))
        return f"{text} {self.pick(['and', 'or'])} {self.pick(options)}" if self.chance(15) else text

    # ---- calls of the library ----

    def library_call(self, scope: dict[str, Any]) -> list[str]:
        """A call of the table that the library is tested with, of arrays of this program."""
        rows = _rows()
        row = self.pick(rows[self.pick(sorted(rows))])
        names = self.arrays(scope, lambda a: a.ndim in row.ranks)
        if not names:
            return []
        name = self.pick(names)
        rank = scope[name].ndim
        call = self.pick(expanded(self.pick(row.calls), rank))
        a = self.place(scope, name) if self.chance(25) else name
        vectors = self.arrays(scope, lambda v: v.ndim == 1)
        v = self.pick(vectors) if vectors else f"{a}.ravel()"
        w = self.pick([*vectors, f"{v}[:3]", "np.array([2, 0, 1])"])
        words = {
            "a": a, "b": self.pick([a, f"{a}[::-1]" if rank else a, f"({a} + 1)"]), "r": f"{a}[0]" if rank > 1 else a,
            "v": v, "w": w, "s": f"np.sort({v})", "t": f"np.linspace(0, 6, {v}.size)", "p": f"(abs({a}) + 1)",
            "q": "(np.array([[4.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.5, 0.0, 5.0]]) + k)",
            "i": "np.array([0, -1, 0])" if self.chance(50) else f"(np.arange(3) % max(len({a}), 1))",
            "k": f"np.argsort({a}, -1)" if self.chance(50) else f"np.zeros({a}.shape, int)",
            "n": f"(np.arange({v}.size) % 3)", "m": f"({a} > 0)", "c": f"({v} > 0)",
        }  # fmt: skip
        *before, last = call.split(" && ")
        lines = []
        if re.search(r"\bo\b", last):
            out = self.name("r")
            words["o"] = out
            without = re.sub(r"(, )?(out=)?\bo\b(?!=)", "", last.replace(", where=m", ""))
            lines = [f"{out} = np.ones_like({substituted(without, words)})"]
        lines += [substituted(line, words) for line in before]
        text = substituted(last, words)
        self.sums, self.ulp = max(self.sums, row.sums), max(self.ulp, row.ulp)
        result = self.name("t" if is_exact(row) else "r")
        lines += [f"{result} = {text}"]
        if result[0] == "r" and self.chance(40):
            lines += [f"{self.name()} = {SNAPPED.format(result)}"]
        return lines


class Turns:
    """Ends loops that would go on for ever, as over a list that they make longer, or double something each time."""

    def __init__(self, scope: dict[str, Any], most: int = MOST_ELEMENTS) -> None:
        self.scope = scope
        self.most = most
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        sizes = [np.size(one) if isinstance(one, np.ndarray) else len(one) for one in self.scope.values() if sized(one)]
        if self.count > MOST_TURNS or max(sizes, default=0) > 4 * self.most:
            raise ValueError("a loop that does not end")


def sized(value: Any) -> bool:
    return isinstance(value, np.ndarray | list | tuple)


class CountTurns(ast.NodeTransformer):
    """Puts `turn_()` into every loop."""

    def _loop(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.parse("turn_()").body[0])
        return ast.fix_missing_locations(node)

    visit_For = visit_While = _loop


def is_exact(row: Row) -> bool:
    inexact = ("linspace", "window", "interp", "hamming", "hanning", "bartlett", "blackman", "kaiser", "cond", "norm")
    if row.family in ("ufuncs", "calculus") or row.sums or row.ulp > 4:
        return False
    return not any(word in row.name for word in inexact)


@functools.cache
def _rows() -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for row in TABLE.values():
        rows.setdefault(row.family, []).append(row)
    return rows


def substituted(text: str, words: dict[str, str]) -> str:
    """A statement in which names stand for expressions."""

    class Substitute(ast.NodeTransformer):
        bound: frozenset[str] = frozenset()

        def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
            outer, self.bound = self.bound, self.bound | {one.arg for one in node.args.args}
            self.generic_visit(node)
            self.bound = outer
            return node

        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id in self.bound or node.id not in words:
                return node
            return ast.parse(words[node.id], mode="eval").body

    tree = ast.parse(text)
    comprehended = {
        one.id
        for node in ast.walk(tree)
        if isinstance(node, ast.comprehension)
        for one in ast.walk(node.target)
        if isinstance(one, ast.Name)
    }
    transformer = Substitute()
    transformer.bound = frozenset(comprehended)
    return ast.unparse(ast.fix_missing_locations(transformer.visit(tree)))


def exact(scope: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The names that further values may be made of."""
    for name, value in scope.items():
        kind = getattr(getattr(value, "dtype", None), "kind", None)
        if name[0] != "r" or (kind is not None and kind in "biu"):
            yield name, value


def is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def kind_of(value: Any) -> Any:
    """What must not change on some path."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.writeable
    return type(value)


def indented(lines: Sequence[str]) -> list[str]:
    return textwrap.indent("\n".join(lines), "    ").splitlines()
