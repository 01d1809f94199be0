"""What is known of int64 values at a place in the program: ranges, linear bounds, and proofs from them.

A *fact* is a linear form that is not negative. Facts come from loops (`start <= i < stop`), from extents
(0 <= n < 2^47), from checks that have passed and branches taken, and from how a value was computed (`min`, `max`, `//`,
`%`, casts). They hold in the block they were learned in; `push` and `pop` bracket a block.

Each variable keeps a numeric interval and bounds by forms of other variables. `nonnegative(form)` proves a form >= 0 by
interval arithmetic, then by replacing variables by their bounds (and `min`/`max` by each of their cases), a few steps
deep: what index arithmetic needs, at a cost that does not depend on the size of the program.

Extents below 2^47 are what memory allows; an array with a larger one (empty, or broadcast with stride 0) must not enter
compiled code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parakeet_py.base.types import INTEGERS
from parakeet_py.typed_ir.ir import Const, Op, Operand, Prim, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.intervals import GREATEST, LEAST, Interval, of_primitive
from parakeet_py.typed_ir.passes.analysis.linear import Linear, atom
from parakeet_py.typed_ir.semantics import integer_bounds

LARGEST_EXTENT = 1 << 47
_DEPTH = 5  # substitutions one after the other in a proof
_MOST_STEPS = 24  # and all together
_FEW_STEPS = 8  # for equalities, which mostly cannot be decided
_STEPS = 32  # substitutions made in one form
_MOST_TERMS = 8
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


class Facts:
    """Facts in force; `definitions` says how bools and integers were made."""

    def __init__(self, definitions: Mapping[Var, Op]) -> None:
        self.definitions = definitions
        self.form_of: dict[Var, Linear] = {}
        self.interval: dict[Var, Interval] = {}
        self.upper: dict[Var, tuple[Linear, ...]] = {}
        self.lower: dict[Var, tuple[Linear, ...]] = {}
        self.cases: dict[Var, tuple[str, Linear, Linear]] = {}  # v is the minimum, maximum or "one" of two forms
        self.not_one: set[Var] = set()  # extents that differ from 1
        self.merges: dict[Var, tuple[Operand, Operand, Operand]] = {}  # bools that are a if c else b: (c, a, b)
        self.same: dict[Var, Linear] = {}  # found equal to
        self.found: dict[Linear, Operand] = {}  # which variable has a form
        self._steps = 0  # left to the proof that is being tried
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    # ---- scopes ----

    def push(self) -> int:
        return len(self._undo)

    def pop(self, mark: int) -> None:
        undo = self._undo
        while len(undo) > mark:
            table, key, before = undo.pop()
            if before is None:
                table.pop(key, None)
            else:
                table[key] = before

    def set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Change a table until the scope is left."""
        self._undo.append((table, key, table.get(key)))
        table[key] = value

    # ---- forms and intervals ----

    def form(self, operand: Operand) -> Linear:
        """The linear form of an int64 operand, exact: nothing in it wraps."""
        if isinstance(operand, Const):
            return Linear(operand.whole)
        known = self.form_of.get(operand)
        return atom(operand) if known is None else known

    def range(self, var: Var) -> Interval:
        known = self.interval.get(var)
        return (LEAST, GREATEST) if known is None else known

    def range_of(self, form: Linear) -> Interval:
        """Interval arithmetic; exact integers, so it may exceed int64."""
        low = high = form.constant
        for var, k in form.terms:
            least, greatest = self.range(var)
            if k > 0:
                low += k * least
                high += k * greatest
            else:
                low += k * greatest
                high += k * least
        return low, high

    def resolve(self, form: Linear) -> Linear:
        """The form with what has since been found equal, or decided between two cases, put in."""
        for _ in range(_STEPS):  # two names may be known as each other
            for var, _ in form.terms:
                better = self.same.get(var) or self._decided(var)
                if better is not None:
                    form = form.substitute(var, better)
                    break
            else:
                break
        return form

    def _decided(self, var: Var) -> Linear | None:
        cases = self.cases.get(var)
        if cases is None or cases[0] == "one":
            return None
        _, left, right = cases
        difference = left - right if cases[0] == "maximum" else right - left
        low, high = self.range_of(difference)
        if low >= 0:
            return cases[1]
        if high <= 0:
            return cases[2]
        return None

    # ---- proofs ----

    def nonnegative(self, form: Linear, steps: int = _MOST_STEPS) -> bool:
        """Is the form provably >= 0?"""
        low, high = self.range_of(form)
        if low >= 0:
            return True
        if high < 0 or not form.terms:
            return False
        self._steps = steps
        return self._prove(form, _DEPTH)

    def _prove(self, form: Linear, depth: int) -> bool:
        low, high = self.range_of(form)
        if low >= 0:
            return True
        self._steps -= 1
        if depth == 0 or self._steps < 0 or high < 0:
            return False
        for var, k in reversed(form.terms):
            better = self.same.get(var)
            if better is not None:
                return self._prove(form.substitute(var, better), depth - 1)
            cases = self.cases.get(var)
            if cases is not None and all(self._prove(form.substitute(var, case), depth - 1) for case in cases[1:]):
                return True
            for bound in (self.lower if k > 0 else self.upper).get(var, ()):
                if self._prove(form.substitute(var, bound), depth - 1):
                    return True
        return False

    def at_most(self, left: Operand, right: Operand) -> bool:
        return self.nonnegative(self.form(right) - self.form(left))

    def less(self, left: Operand, right: Operand) -> bool:
        difference = self.form(right) - self.form(left)
        return self.nonnegative(Linear(difference.constant - 1, difference.terms))

    def equal(self, left: Operand, right: Operand) -> bool:
        difference = self.form(left) - self.form(right)
        if not difference.terms:
            return difference.constant == 0
        return self.nonnegative(difference, _FEW_STEPS) and self.nonnegative(difference.scale(-1), _FEW_STEPS)

    def fits(self, form: Linear) -> bool:
        """Is the value an int64?"""
        low, high = self.range_of(form)
        above = low >= LEAST or self.nonnegative(Linear(form.constant - LEAST, form.terms))
        return above and (high <= GREATEST or self.nonnegative(Linear(GREATEST - form.constant, form.scale(-1).terms)))

    def decide(self, name: str, left: Operand, right: Operand) -> bool | None:
        """The outcome of a comparison, if it is known."""
        if name in ("gt", "le"):
            left, right = right, left
        if name in ("lt", "gt", "ge", "le"):
            positive = name in ("lt", "gt")
            if self.less(left, right):
                return positive
            if self.at_most(right, left):
                return not positive
            return None
        if self.equal(left, right):
            return name == "eq"
        difference = self.form(left) - self.form(right)
        above = Linear(difference.constant - 1, difference.terms)
        below = Linear(-difference.constant - 1, difference.scale(-1).terms)
        if self.nonnegative(above, _FEW_STEPS) or self.nonnegative(below, _FEW_STEPS):
            return name == "ne"
        if len(difference.terms) == 1:
            ((var, k),) = difference.terms
            if var in self.not_one and difference.constant == -k:
                return name == "ne"
        return None

    # ---- learning ----

    def learn(self, form: Linear) -> None:
        """From here on the form is known to be >= 0."""
        for var, k in form.terms:
            rest = Linear(form.constant, tuple([term for term in form.terms if term[0] is not var]))
            high = self.range_of(rest)[1]  # k * var >= -rest >= -high
            least, greatest = self.range(var)
            if k > 0:
                least = max(least, -(high // k))
            else:
                greatest = min(greatest, high // -k)
            if (least, greatest) != self.range(var):
                self.set(self.interval, var, (least, greatest))
                self._learn_cases(var)
            if abs(k) == 1 and rest.terms:
                table = self.lower if k > 0 else self.upper
                bound = rest.scale(-k)
                bounds = table.get(var, ())
                if bound not in bounds and len(bounds) < 4:
                    self.set(table, var, (*bounds, bound))

    def _learn_cases(self, var: Var) -> None:
        """A maximum above a bound that one case does not reach is the other case."""
        cases = self.cases.get(var)
        if cases is None or cases[0] == "one":
            return
        least, greatest = self.range(var)
        for case, other in ((cases[1], cases[2]), (cases[2], cases[1])):
            low, high = self.range_of(case)
            if cases[0] == "maximum" and high < least:
                self.learn(Linear(other.constant - least, other.terms))
                self.equate(var, other)
            elif cases[0] == "minimum" and low > greatest:
                self.learn(Linear(greatest - other.constant, other.scale(-1).terms))
                self.equate(var, other)

    def equate(self, var: Var, form: Linear) -> None:
        form = self.resolve(form)
        if form.coefficient(var) == 0 and var not in self.same:
            self.set(self.same, var, form)

    def learn_condition(self, condition: Operand, truth: bool) -> None:
        """From here on a bool is known."""
        op = self.definitions.get(condition) if isinstance(condition, Var) else None
        if op.__class__ is not Prim:
            return
        name, args = op.name, op.args
        if name == "not":
            self.learn_condition(args[0], not truth)
        elif name in ("and", "or") and (name == "and") == truth:
            self.learn_condition(args[0], truth)
            self.learn_condition(args[1], truth)
        elif name in ("and", "or"):
            for one, other in (args, args[::-1]):
                if self.known(one) is (not truth):
                    self.learn_condition(other, truth)
        elif name in _COMPARISONS and dtype_of(args[0]) == "int64":
            self._learn_comparison(name if truth else _NEGATED[name], args[0], args[1])

    def implied(self, condition: Var, truth: bool) -> list[tuple[Operand, bool]]:
        """What a merged bool implies: `a if c else False` is true only if both c and a are."""
        merge = self.merges.get(condition)
        if merge is None:
            return []
        chosen, left, right = merge
        if isinstance(right, Const) and bool(right.value) is not truth:
            return [(chosen, True), (left, truth)]
        if isinstance(left, Const) and bool(left.value) is not truth:
            return [(chosen, False), (right, truth)]
        return []

    def known(self, condition: Operand) -> bool | None:
        """The value of a bool, if it follows from the facts."""
        if isinstance(condition, Const):
            return bool(condition.value)
        op = self.definitions.get(condition)
        if isinstance(op, Prim) and op.name in _COMPARISONS and dtype_of(op.args[0]) == "int64":
            return self.decide(op.name, op.args[0], op.args[1])
        return None

    def _learn_comparison(self, name: str, left: Operand, right: Operand) -> None:
        if name in ("gt", "ge"):
            left, right = right, left
        difference = self.late_form(right) - self.late_form(left)
        if name in ("lt", "gt"):
            self.learn(Linear(difference.constant - 1, difference.terms))
        elif name in ("le", "ge"):
            self.learn(difference)
        elif name == "eq":
            self.learn(difference)
            self.learn(difference.scale(-1))
            difference = self.resolve(difference)
            for var, k in reversed(difference.terms):
                if abs(k) == 1:
                    rest = Linear(difference.constant, tuple([t for t in difference.terms if t[0] is not var]))
                    self.equate(var, rest.scale(-k))
                    break

    def confine(self, intervals: Mapping[Var, Interval], variables: Sequence[Var]) -> None:
        """From here on these variables are known to be in their intervals."""
        for var in variables:
            found = intervals.get(var)
            if found is not None:
                least, greatest = self.range(var)
                self.set(self.interval, var, (max(least, found[0]), min(greatest, found[1])))

    # ---- definitions ----

    def define_extent(self, var: Var) -> None:
        self.set(self.interval, var, (0, LARGEST_EXTENT))

    def define_index(self, var: Var, extent: Operand) -> None:
        """0 <= var < extent."""
        high = min(self.range_of(self.form(extent))[1] - 1, LARGEST_EXTENT)
        self.set(self.interval, var, (0, max(high, 0)))
        bound = self.form(extent)
        self.set(self.upper, var, (Linear(bound.constant - 1, bound.terms),))

    def define(self, out: Var, op: Prim) -> None:
        """How an int64 was computed: its form if that is exact, else what else is known of it."""
        name, args = op.name, op.args
        plain = name.removesuffix("_checked")
        if plain in ("add", "sub", "mul", "neg"):
            form = self.arithmetic(plain, args)
            if form is not None and len(form.terms) <= _MOST_TERMS and (plain is not name or self.fits(form)):
                # What was checked and did not raise equals its form, too.
                form = self.resolve(form)
                self.form_of[out] = form
                self.set(self.interval, out, self._clip(self.range_of(form)))
                return
            if plain == "mul":
                self._product(out, args, plain is not name)
            return
        rule = _DEFINITIONS.get(name)
        if rule is not None:
            rule(self, out, args)
        if name in _BOUNDED:
            low, high = of_primitive(name, [self.range_of(self.form(arg)) for arg in args])
            least, greatest = self.range(out)
            if low > least or high < greatest:
                self.set(self.interval, out, (max(low, least), min(high, greatest)))

    def _clip(self, interval: Interval) -> Interval:
        return max(interval[0], LEAST), min(interval[1], GREATEST)

    def arithmetic(self, name: str, args: tuple[Operand, ...]) -> Linear | None:
        left = self.form(args[0])
        if name == "neg":
            return left.scale(-1)
        right = self.form(args[1])
        if name == "add":
            return left + right
        if name == "sub":
            return left - right
        if left.terms and right.terms:
            return None
        return right.scale(left.constant) if not left.terms else left.scale(right.constant)

    def _corners(self, args: tuple[Operand, ...]) -> Interval:
        corners = [x * y for x in self.range_of(self.form(args[0])) for y in self.range_of(self.form(args[1]))]
        return min(corners), max(corners)

    def product_fits(self, args: tuple[Operand, ...]) -> bool:
        low, high = self._corners(args)
        return low >= LEAST and high <= GREATEST

    def _product(self, out: Var, args: tuple[Operand, ...], checked: bool) -> None:
        if checked or self.product_fits(args):
            self.set(self.interval, out, self._clip(self._corners(args)))

    def late_form(self, operand: Operand) -> Linear:
        """The form of an operand that could have wrapped where it was computed, but not under the facts of now."""
        form = self.form(operand)
        op = self.definitions.get(operand) if isinstance(operand, Var) and operand not in self.form_of else None
        if isinstance(op, Prim) and op.name in ("add", "sub", "mul", "neg"):
            late = self.arithmetic(op.name, op.args)
            if late is not None and self.fits(late):
                return late
        return form

    def extremum(self, name: str, out: Var, args: tuple[Operand, ...]) -> None:
        left, right = (self.resolve(self.form(arg)) for arg in args)
        (a, b), (c, d) = self.range_of(left), self.range_of(right)
        choose = min if name == "minimum" else max
        self.set(self.interval, out, self._clip((choose(a, c), choose(b, d))))
        self.set(self.upper if name == "minimum" else self.lower, out, (left, right))
        self.set(self.cases, out, (name, left, right))

    def one_of(self, out: Var, left: Linear, right: Linear, ranges: tuple[Interval, Interval]) -> None:
        """`out` is one of two values, with ranges found under the condition that chooses it."""
        (a, b), (c, d) = ranges
        self.set(self.interval, out, self._clip((min(a, c), max(b, d))))
        self.set(self.cases, out, ("one", left, right))

    def quotient(self, out: Var, args: tuple[Operand, ...]) -> None:
        if isinstance(args[1], Const) and isinstance(args[1].value, int) and args[1].value > 0:
            numerator = self.form(args[0])
            if self.range_of(numerator)[0] >= 0:
                self.set(self.upper, out, (numerator,))

    def remainder(self, out: Var, args: tuple[Operand, ...]) -> None:
        modulus = self.form(args[1])
        if self.range_of(modulus)[0] > 0:
            bounds = [Linear(modulus.constant - 1, modulus.terms)]
            numerator = self.form(args[0])
            if self.range_of(numerator)[0] >= 0:
                bounds.append(numerator)
            self.set(self.upper, out, tuple(bounds))

    def absolute(self, out: Var, args: tuple[Operand, ...]) -> None:
        low, high = self.range_of(self.form(args[0]))
        if low > LEAST:
            self.set(self.interval, out, (max(low, -high, 0), max(abs(low), abs(high))))

    def define_cast(self, out: Var, source: str) -> None:
        if source == "bool":
            self.set(self.interval, out, (0, 1))
        elif source in INTEGERS and source != "uint64":
            self.set(self.interval, out, integer_bounds(source))


_DEFINITIONS = {
    "minimum": lambda facts, out, args: facts.extremum("minimum", out, args),
    "maximum": lambda facts, out, args: facts.extremum("maximum", out, args),
    "floordiv": Facts.quotient,
    "mod": Facts.remainder,
    "abs": Facts.absolute,
    "abs_checked": Facts.absolute,
}
_BOUNDED = frozenset({"floordiv", "mod", "and", "or", "xor", "shl", "shr"})
