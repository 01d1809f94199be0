"""Linear forms of index arithmetic: c + k1*v1 + k2*v2 + ..., with integers c, k and int64 variables v.

Index expressions are compared through these: two are equal when their forms are, two elements of one array differ when
some coordinate's forms differ by a constant. A form is exact as long as nothing wrapped; forms that agree, or differ by
a constant, do so modulo 2^64 in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from parakeet_py.base.fast_dataclass import record
from parakeet_py.typed_ir.ir import Const, Op, Operand, Prim, Var

_MOST_TERMS = 8


@record
class Linear:
    """constant + sum of coefficient * variable; terms are ordered by the age of the variable, no coefficient is 0."""

    constant: int
    terms: tuple[tuple[Var, int], ...] = ()

    def __add__(self, other: Linear) -> Linear:
        if not other.terms:
            return Linear(self.constant + other.constant, self.terms)
        if not self.terms:
            return Linear(self.constant + other.constant, other.terms)
        return self.combine(other, 1)

    def __sub__(self, other: Linear) -> Linear:
        if not other.terms:
            return Linear(self.constant - other.constant, self.terms)
        return self.combine(other, -1)

    def combine(self, other: Linear, factor: int) -> Linear:
        """self + factor * other."""
        total = dict(self.terms)
        for var, coefficient in other.terms:
            total[var] = total.get(var, 0) + factor * coefficient
        terms = sorted(((var, k) for var, k in total.items() if k), key=lambda term: term[0].uid)
        return Linear(self.constant + factor * other.constant, tuple(terms))

    def scale(self, factor: int) -> Linear:
        if factor == 0:
            return Linear(0)
        return Linear(self.constant * factor, tuple([(var, k * factor) for var, k in self.terms]))

    def coefficient(self, var: Var) -> int:
        for term, k in self.terms:
            if term is var:
                return k
        return 0

    def substitute(self, var: Var, value: Linear) -> Linear:
        k = self.coefficient(var)
        if k == 0:
            return self
        rest = Linear(self.constant, tuple([term for term in self.terms if term[0] is not var]))
        return rest.combine(value, k)

    def halves(self) -> tuple[Linear, Linear]:
        """What is added and what is taken away: two forms without negative numbers whose difference this is."""
        added = tuple([(var, k) for var, k in self.terms if k > 0])
        taken = tuple([(var, -k) for var, k in self.terms if k < 0])
        return Linear(max(self.constant, 0), added), Linear(max(-self.constant, 0), taken)

    def variables(self) -> Iterable[Var]:
        return [var for var, _ in self.terms]


def atom(var: Var) -> Linear:
    return Linear(0, ((var, 1),))


class Forms:
    """The linear forms of int64 operands, from the operators that define them."""

    def __init__(self, definitions: Mapping[Var, Op], positions: Mapping[Var, int] | None = None) -> None:
        self.definitions = definitions
        self.positions = positions or {}  # which out of its operator a variable is
        self.known: dict[Var, Linear] = {}

    def of(self, operand: Operand) -> Linear:
        if operand.__class__ is Const:
            return Linear(int(operand.value.real))
        assert isinstance(operand, Var)
        form = self.known.get(operand)
        if form is None:
            form = self.known[operand] = self._derive(operand)
        return form

    def _derive(self, var: Var) -> Linear:
        op = self.definitions.get(var)
        if op.__class__ is not Prim:
            return atom(var)
        name, args = op.name, op.args
        if name in ("add", "add_checked"):
            form = self.of(args[0]) + self.of(args[1])
        elif name in ("sub", "sub_checked"):
            form = self.of(args[0]) - self.of(args[1])
        elif name in ("mul", "mul_checked"):
            left, right = self.of(args[0]), self.of(args[1])
            if left.terms and right.terms:
                return atom(var)
            form = left.scale(right.constant) if not right.terms else right.scale(left.constant)
        elif name in ("neg", "neg_checked"):
            form = self.of(args[0]).scale(-1)
        else:
            return atom(var)
        return form if len(form.terms) <= _MOST_TERMS else atom(var)
