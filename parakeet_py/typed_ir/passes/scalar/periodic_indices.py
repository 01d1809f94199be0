"""Periodic indices: `(i + 1) % n` without a division.

On a torus (`grid[(i + 1) % n, (j - 1) % n]`) the remainder of an index that is out of range by less than n is the index
plus or minus n. Where the facts say so, the remainder becomes that choice, by a comparison of the loop's index itself:
it turns once along the loop, which is then cut there (`imp/schedule/index_set_splitting.py`), and accesses in each part
move evenly.

This comes after the passes that prove indices to be in range: of a remainder that is plain, of a choice it is not.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.typed_ir.ir import Const, Function, Let, Operand, Prim, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.linear import Linear
from parakeet_py.typed_ir.passes.scalar.simplify import Simplifier
from parakeet_py.typed_ir.writer import Writer, index_const


def wrap_indices(function: Function) -> Function:
    """Replace remainders of what is out of range by less than the divisor."""
    if not any(_is_remainder(let) for let in function.statements()):
        return function
    wrapper = _Wrapper(function)
    result = wrapper.function(function)
    return result if wrapper.wrapped else function


def _is_remainder(let: Let) -> bool:
    op = let.op
    if not isinstance(op, Prim) or op.name != "mod" or dtype_of(op.args[0]) != "int64":
        return False
    return all(isinstance(arg, Var) for arg in op.args)


class _Wrapper(Simplifier):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.wrapped = False

    def scalar(self, let: Let) -> Sequence[Let] | None:
        new = super().scalar(let)
        if (new is not None and not new) or not _is_remainder(new[-1] if new else let):
            return new
        statements = self.choice(new[-1] if new else let)
        return new if statements is None else statements

    def choice(self, let: Let) -> list[Let] | None:
        """x % n as x or x - n (x in [0, 2n)), or as x or x + n (x in [-n, n))."""
        assert isinstance(let.op, Prim)
        value, divisor = let.op.args
        facts = self.facts
        form, size = facts.form(value), facts.form(divisor)
        if not facts.nonnegative(size - Linear(1)):
            return None
        writer = Writer(let.pos)
        index, offset = self.moved(value)
        if facts.nonnegative(form) and facts.nonnegative(size.scale(2) - form - Linear(1)):
            if offset < 0:
                index, offset = value, 0
            bound = divisor if offset == 0 else writer.prim("sub", divisor, index_const(offset), type_=PYINT)
            beyond = writer.prim("ge", index, bound, type_=PYBOOL)
            other = writer.prim("sub", value, divisor, type_=PYINT)
        elif facts.nonnegative(form + size) and facts.nonnegative(size - form - Linear(1)):
            beyond = writer.prim("lt", index, index_const(-offset), type_=PYBOOL)
            other = writer.prim("add", value, divisor, type_=PYINT)
        else:
            return None
        self.wrapped = True
        writer.statements.append(Let(let.outs, Prim("select", (beyond, other, value)), let.pos))
        return writer.statements

    def moved(self, value: Operand) -> tuple[Operand, int]:
        """A value as a variable and a known number."""
        form = self.facts.form(value)
        if len(form.terms) == 1 and form.terms[0][1] == 1 and not isinstance(value, Const):
            return form.terms[0][0], form.constant
        return value, 0
