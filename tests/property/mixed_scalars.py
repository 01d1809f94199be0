"""Random programs whose names hold scalars of different types, by the path that was taken.

A program begins with one or two names of two or three types: bool, int, float, complex, None and NumPy's scalars, as
elements of arrays, arguments, constants and calls of constructors. They arise in every way of `ORIGINS`, may go through
further operations (`STEPS`, on some paths only), and go into results, stores, indices, containers, tests of their type,
conversions and arithmetic (`USES`, `EFFECTS`). Each program is called with every `k` that its conditions tell apart,
and with other values in its arguments. What raises for all of them in Python is left out, mostly.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.arrays import Array
from tests.corpus import ELEMENTARY, Outcome, outcome
from tests.property.idioms_of_mixed_scalars import ORIGINS
from tests.property.idioms_of_scalar_uses import EFFECTS, STEPS, USES
from tests.property.random_expressions import MODULES, indented
from tests.property.random_programs import Program, little_memory
from tests.property.recipes import made

CODES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
PYTHON = ["bool", "int", "float", "complex", "None"]
nan, inf = float("nan"), float("inf")
CONSTANTS: dict[str, list[str]] = {
    "bool": ["True", "False"],
    "int": ["0", "1", "-1", "2", "5", "255", "300", "1000", "-2", "2 ** 40", "2 ** 62", "-(2 ** 63)"],
    "float": ["0.0", "1.0", "2.5", "-0.0", "-1.5", "0.5", "1e300", "math.nan", "math.inf", "3.0"],
    "complex": ["1j", "2 + 0j", "0j", "complex(-0.5, math.nan)"],
    "None": ["None"],
}
COMPUTED = {
    "bool": ["(k > 1)", "bool(k)"],
    "int": ["k", "len(x)", "(k - 2)", "(k * 100)", "int(x.size)"],
    "float": ["float(k)", "(k / 2)", "(k - 1.5)"],
    "complex": ["complex(k, 1)"],
    "None": ["None"],
}
ARGUMENTS: dict[str, list[Any]] = {
    "bool": [True, False],
    "int": [0, 1, -1, 3, 300, 2**62, -2],
    "float": [0.0, -0.0, 2.5, nan, inf, 1.0, -1.5],
    "complex": [1j, 2 + 0j, complex(nan, 1)],
    "None": [None],
}
CONDITIONS = ["k > 1", "k % 2", "k == 2", "k", "k > 2", "not k", "k != 1", "len(x) > k", "k % 2 == 0", "k < 1"]
RAISES = ["Exception", "(TypeError, ValueError)", "(OverflowError, TypeError, IndexError)", "ArithmeticError"]
MOST_BYTES = 1 << 16


def numbers_of(code: str) -> list[Any]:
    """Some values of a dtype, the extremes among them."""
    dtype = np.dtype(code)
    if dtype.kind == "b":
        return [True, False]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [0, 1, 2, 3, 5, info.max, info.max - 1, *([info.min, -1, -3] if dtype.kind == "i" else [100])]
    floats = [0.0, 1.0, 2.5, -0.0, -1.5, nan, inf, 3.0, 0.5]
    return floats if dtype.kind == "f" else [complex(one, two) for one, two in itertools.pairwise(floats)]


NUMPY_RAISES = ("f8", "f4", "f2", "c16", "i8", "u8")
"""Dtypes whose powers in place are compared. Of smaller integers NumPy leaves memory that nothing has set when a
negative exponent raises; its powers of complex64 are off by as many units as the exponent says (docs/semantics.md)."""


@dataclass
class Mixed:
    """Makes one program; `draw` decides everything."""

    draw: st.DrawFn
    arguments: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    fresh: int = 0

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return bool(self.draw(st.integers(0, 99)) >= 100 - percent)

    def name(self, prefix: str = "t") -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # ---- arguments ----

    def array(self, code: str) -> Array:
        values = tuple(self.draw(st.lists(st.sampled_from(numbers_of(code)), min_size=3, max_size=4)))
        return Array(code, (len(values) if self.chance(85) else 1,), "C", values)

    def array_of(self, code: str) -> str:
        """An argument that is an array of this dtype."""
        for name in "xy":
            if self.arguments.setdefault(name, self.array(code)).dtype == code:
                return name
        return "x"

    def scalar_of(self, kind: str) -> str:
        """An argument of this scalar type, where there is room for one."""
        values = ARGUMENTS[kind] if kind in PYTHON else [np.dtype(kind).type(one) for one in numbers_of(kind)]
        for name in "st":
            value = self.arguments.setdefault(name, self.pick(values))
            if type(value) is type(values[0]):
                return name
        return self.constant(kind)

    def constant(self, kind: str) -> str:
        if kind in PYTHON:
            return str(self.pick(CONSTANTS[kind]))
        value = self.pick(numbers_of(kind))
        text = f"complex({value.real}, {value.imag})" if isinstance(value, complex) else repr(value)
        text = text.replace("nan", "math.nan").replace("inf", "math.inf")
        return f"np.{np.dtype(kind).type.__name__}({text})"

    def scalar(self, kind: str) -> str:
        """An expression of this type."""
        way = self.draw(st.integers(0, 5))
        if way == 0:
            return self.scalar_of(kind)
        if way < 3 or (kind in PYTHON and way == 3):
            return self.constant(kind)
        if kind in PYTHON:
            return str(self.pick(COMPUTED[kind]))
        array = self.array_of(kind)
        if self.arguments[array].dtype != kind:
            return self.constant(kind)
        return f"{array}[{self.pick(['0', '-1', 'k % len(' + array + ')', 'k'])}]"

    # ---- statements ----

    def words(self, name: str, kinds: list[str]) -> dict[str, str]:
        """What fills a form that is about this name, whose scalars are of these types."""
        first, second, *third = [self.scalar(kind) for kind in kinds]
        some = [kind for kind in kinds if kind not in PYTHON]
        words = {"m": name, "p": first, "q": second, "w": third[0] if third else self.pick([first, second, "0", "1.5"])}
        words["x"] = self.array_of(some[0]) if some else "x"
        words |= {"r": "r", "c": self.pick(CONDITIONS), "d": self.pick(CONDITIONS), "h": self.name("h")}
        words |= {"i": self.name("i"), "u": self.name("u"), "t": np.dtype(self.pick(CODES)).type.__name__}
        return words

    def origin(self, kinds: list[str]) -> str:
        """A new name that has these types on different paths."""
        name = self.name("m")
        self.lines = [*self.lines, *self.pick(ORIGINS).format(**self.words(name, kinds)).splitlines()]
        return name

    def step(self, name: str, kinds: list[str]) -> str:
        """The scalar after an operation, on all paths or some."""
        words = self.words(name, kinds)
        text = self.pick(STEPS).format(**words)
        new = name if self.chance(30) else self.name("m")
        before = self.lines
        more = [f"{new} = {text}"] if new != name or self.chance(50) else [f"if {words['c']}:", f"    {name} = {text}"]
        self.lines = [*before, *more]
        if self.accepted(keep_raising=3):
            return new
        self.lines = before
        return name

    def use(self, name: str, kinds: list[str]) -> None:
        """One more result, or an effect."""
        words = self.words(name, kinds)
        before, returned = self.lines, self.returned
        if self.chance(50):
            new = words["u"]
            more = [f"{new} = {self.pick(USES).format(**words)}"]
            if self.chance(25):
                self.returned = [*returned, more.pop().partition(" = ")[2]]
            else:
                self.returned = [*returned, new]
        else:
            form = self.pick(EFFECTS)
            if "**=" in form and self.arguments["r"].dtype not in NUMPY_RAISES:
                form = form.replace("**=", "*=")
            more = form.format(**words).splitlines()
            self.returned = [*returned, words["u"]] if "{u}" in form else returned
        if self.chance(20) and more:
            more = ["try:", *indented(more), f"except {self.pick(RAISES)}:", f"    {words['u']} = 'caught'"]
            if words["u"] not in self.returned and self.chance(40):
                more = [f"{words['u']} = 0", *more]
                self.returned = [*self.returned, words["u"]]
        self.lines = [*before, *more]
        if not self.accepted(keep_raising=4):
            self.lines, self.returned = before, returned

    # ---- running what there is ----

    def calls(self) -> list[tuple[Any, ...]]:
        """The arguments of the program's calls: each `k`."""
        self.arguments.setdefault("x", Array("f8", (3,), "C", (1.5, 3, 0)))
        return [(*(self.arguments[name] for name in self.names()), k) for k in (3, 0, 1, 2)]

    def names(self) -> list[str]:
        return sorted(self.arguments)

    def source(self, results: str) -> str:
        parameters = ", ".join([*self.names(), "k"])
        return "\n".join([f"def f({parameters}):", *indented([*self.lines, f"return {results}"]), ""])

    def results(self) -> str:
        return ", ".join(self.returned) or "None"

    def accepted(self, keep_raising: int) -> bool:
        """Whether the program so far does something for some of its arguments, and not too much."""
        ran = ran_with(self.source(f"({self.results()},)"), self.calls())
        if ran is None:
            return False
        return any(one.exception is None for one in ran) or self.chance(keep_raising)

    # ---- the program ----

    def program(self) -> Program:
        kinds = self.kinds()
        if self.chance(70):
            for code in kinds:
                if code not in PYTHON:
                    self.array_of(code)
        self.arguments.setdefault("r", self.array(self.pick(CODES)))
        names = [(self.begin(kinds), kinds)]
        if self.chance(25):
            others = self.kinds()
            names.append((self.begin(others), others))
        for _ in range(self.draw(st.integers(0, 2))):
            name, some = self.pick(names)
            names.append((self.step(name, some), some))
        for _ in range(self.draw(st.integers(1, 3))):
            self.use(*self.pick(names))
        last = names[-1][0]
        results = [*self.returned, last] if self.chance(60) or not self.returned else self.returned
        text = ", ".join(results)
        if len(results) == 1 and self.chance(50):
            text = self.pick([f"{last}, {text}", f"[{text}]", f"{{'m': {text}}}", f"({text},), {last}"])
        elif self.chance(20):
            text = self.pick([f"[{text}]", f"{{'all': ({text},)}}", f"({text}), {last}", f"[({text},), [{last}]]"])
        source = self.source(text)
        calls = [call for call in [*self.calls(), *self.others()] if ran_with(source, [call]) is not None]
        ulp = ELEMENTARY if re.search(r"exp|log|pow|\*\*", source) else 0
        if ulp and self.has_single_complex(source) and self.arguments["r"].dtype in ("f8", "c16"):
            return self.nothing()  # digits that differ in complex64 would be looked at as those of a wider number
        return Program(source, calls[0], tuple(calls[1:]), ulp=ulp, refusable=True) if calls else self.nothing()

    def has_single_complex(self, source: str) -> bool:
        return "complex64" in source or any(
            getattr(one, "dtype", "") in ("c8", "complex64") for one in self.arguments.values()
        )

    def kinds(self) -> list[str]:
        """Two or three types."""
        some = (
            st.sampled_from([*PYTHON, *CODES]) if self.chance(60) else st.sampled_from(["int", "float", "bool", "u1"])
        )
        return self.draw(st.lists(some, min_size=2, max_size=3, unique=True))

    def begin(self, kinds: list[str]) -> str:
        """A name of these types, whose program runs for some `k`."""
        before = self.lines
        for _ in range(6):
            name = self.origin(kinds)
            if self.accepted(keep_raising=0):
                return name
            self.lines = before
        name = self.name("m")
        self.lines = [*before, f"{name} = {self.constant(kinds[0])} if k > 1 else {self.constant(kinds[1])}"]
        return name

    def others(self) -> list[tuple[Any, ...]]:
        """Other values of the same types, and now and then another type."""
        changed = dict(self.arguments)
        for name, value in changed.items():
            match value:
                case Array():
                    changed[name] = replace(self.array(value.dtype), shape=value.shape)
                case np.generic():
                    code = value.dtype.str[1:] if self.chance(80) else self.pick(CODES)
                    changed[name] = np.dtype(code).type(self.pick(numbers_of(code)))
                case _:
                    kind = "None" if value is None else type(value).__name__
                    changed[name] = self.pick(ARGUMENTS[kind if self.chance(80) else self.pick(PYTHON)])
        k = self.pick([0, 1, 2, 3, 4, True, np.int64(2)])
        return [(*(changed[name] for name in self.names()), k)]

    def nothing(self) -> Program:
        return Program("def f(k):\n    return k\n", (1,))


def ran_with(source: str, calls: list[tuple[Any, ...]]) -> list[Outcome] | None:
    """What Python does with the program; None if that takes too much memory."""
    scope: dict[str, Any] = {**MODULES, "np": np}
    try:
        exec(compile(source, "<mixed>", "exec"), scope)
    except SyntaxError:
        return None
    found = []
    with little_memory():
        for recipes in calls:
            try:
                found.append(outcome(scope["f"], made(recipes)))
            except MemoryError:
                return None
            if isinstance(found[-1].exception, MemoryError) or much(found[-1].result):
                return None
    return found


def much(value: Any) -> bool:
    """Whether this is too much to be compared."""
    match value:
        case np.ndarray():
            return value.nbytes > MOST_BYTES
        case str():
            return len(value) > 1000
        case list() | tuple():
            return len(value) > 1000 or any(map(much, value))
        case dict():
            return much([*value.values()])
    return False


@st.composite
def mixed_programs(draw: st.DrawFn) -> Program:
    """Programs about scalars of different types."""
    return Mixed(draw).program()
