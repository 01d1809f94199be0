"""Loops along rows without checks: what their checks need is tested on entry.

    for k in range(1, n):                                 check n <= dim(a, 1), ... else Respecialize
        check k < dim(a, 1) else IndexError          ->   for k in range(1, n):
        map i: a[i, k] := f(a[i, k - 1], b[i, k])             map i: ...

`row-sweeps` exchanges a loop with the operators in it, which it can only if no round fails. The checks of these loops,
of indices and of extents, are brought to linear forms of the extents and integers among the parameters (as in
`hoist-checks`), which a check before everything else tests; the facts that it gives let `simplify` drop the others.
Where it fails, the call goes on in code that was made without it, so this is done only to functions that are made for
the usual case. It may be stricter than the checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Function, Let, Operand, Var
from parakeet_py.typed_ir.passes.analysis.facts import LARGEST_EXTENT
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear
from parakeet_py.typed_ir.passes.analysis.row_walks import accesses, along_rows
from parakeet_py.typed_ir.passes.checks.equal_extents import GENERAL
from parakeet_py.typed_ir.passes.checks.hoist_checks import CheckHoister, at_least_zero
from parakeet_py.typed_ir.writer import Writer, index_const

_MOST_REPLACEMENTS = 12
_MOST_TESTS = 24
_SCALARS = (ir.Prim, ir.Cast, ir.Dim, ir.Load, ir.Check, ir.View)


def guard_loops(function: Function) -> Function:
    """Test on entry what loops along rows check; the same function if there is none."""
    if not any(isinstance(let.op, ir.For) and _is_checked(let.op) for let in function.statements()):
        return function
    definitions = {let.outs[0]: let.op for let in function.statements() if isinstance(let.op, ir.Prim)}
    forms = Forms(definitions)
    loops = {let.op.index for let in function.statements() if isinstance(let.op, ir.For) and _walks(let.op, forms)}
    if not loops:
        return function
    finder = _Finder(function, loops)
    finder.function(function)
    return finder.guarded(function) if finder.required else function


def _is_checked(op: ir.For) -> bool:
    """Is there nothing but operators, scalars and checks in a loop?"""
    return (
        not op.stoppable
        and any(isinstance(let.op, ir.Check) for let in op.body.statements)
        and any(isinstance(let.op, ir.Map) for let in op.body.statements)
        and all(isinstance(let.op, (ir.Map, *_SCALARS)) for let in op.body.statements)
    )


def _walks(op: ir.For, forms: Forms) -> bool:
    if not _is_checked(op):
        return False
    new = {out for let in op.body.statements for out in let.outs}  # fusion leaves nothing of these
    found = [
        access
        for let in op.body.statements
        if isinstance(let.op, ir.Map)
        for access in accesses(let.op.body, let.op.indices, forms)
        if access.array not in new
    ]
    return along_rows(op.index, found)


class _Finder(CheckHoister):
    """Collects what the checks of some loops need; what it makes of the function is of no use."""

    def __init__(self, function: Function, loops: set[Var]) -> None:
        super().__init__(function)
        self.wanted = loops
        self.inside = False
        self.required: dict[tuple[tuple[Var, int], ...], int] = {}
        self.known: dict[Var, tuple[Var, int] | None] = {}  # integers there are on entry: an axis, or the parameter
        for param in function.params:
            if param.type == PYINT:
                self.known[param] = None
        for let in function.statements():
            if isinstance(let.op, ir.Dim) and let.op.array in function.params:
                self.known[let.outs[0]] = (let.op.array, let.op.axis)

    def statement(self, let: Let) -> Sequence[Let] | None:
        outside = self.inside
        self.inside = outside or (isinstance(let.op, ir.For) and let.op.index in self.wanted)
        new = super().statement(let)
        self.inside = outside
        return new

    def level(self, var: Var) -> int:
        return 0 if var in self.known else 1

    def check(self, let: Let, op: ir.Check) -> Sequence[Let] | None:
        if not self.inside:
            self.assume(self.operand(op.condition), True)
            return None
        return super().check(let, op)

    def hoist(self, condition: Var) -> bool:
        forms = self.as_forms(condition, True)
        if forms is None:
            return False
        found: list[Linear] = []
        for form in forms:
            least = self.least(form, 0, _MOST_REPLACEMENTS, found)
            if least is None:
                return False
            found.append(least)
        new = dict(self.required)
        for form in found:
            if form.terms:
                new[form.terms] = min(form.constant, new.get(form.terms, form.constant))
        if len(new) > _MOST_TESTS:
            return False
        self.required = new
        return True

    def versions(self, statements: list[Let], loop: object) -> list[Let]:
        return statements

    def guarded(self, function: Function) -> Function:
        """The function behind its test."""
        writer = Writer(function.body.statements[0].pos)
        dims: dict[tuple[Var, int], Var] = {}
        parts: list[Operand] = []
        bounded: set[Var] = set()
        for terms, constant in self.required.items():
            form = Linear(constant, terms)
            for var, _ in terms:
                axis = self.known[var]
                if axis is not None:
                    if axis not in dims:
                        dims[axis] = writer.dim(*axis)
                    form = form.substitute(var, Linear(0, ((dims[axis], 1),)))
                elif var not in bounded:
                    bounded.add(var)
                    parts.append(writer.prim("ge", var, index_const(-LARGEST_EXTENT), type_=PYBOOL))
                    parts.append(writer.prim("le", var, index_const(LARGEST_EXTENT), type_=PYBOOL))
            parts.append(at_least_zero(writer, form))
        condition = parts[0]
        for part in parts[1:]:
            condition = writer.prim("and", condition, part, type_=PYBOOL)
        writer.let(ir.Check(condition, GENERAL))
        return replace(function, body=Block((*writer.statements, *function.body.statements), function.body.results))
