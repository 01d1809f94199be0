"""A copy of the function for the usual case: slices within their arrays, extents equal where one of them could be 1.

`new[1:-1] = old[1:-1]` must work when `old[1:-1]` has one element and `new[1:-1]` has many, and `a[:k]` when a has
fewer than k. As long as that is open, every index has a `select` in it, and neither fusion nor vectorization gets far.
Where a check admits "equal, or one of them is 1", the function becomes

    if dim(old) == dim(new) and dim(old) >= 2: <the body, with that known> else: <the body>

The two extents are read as linear forms, assuming that no `min` and `max` in them clamps (that is tested) and that no
bound is negative; where the forms then still differ, their equality is tested, too. Extents that depend on more than
the parameters' extents and integers (a loop's index) are compared as expressions: if they are the same but for extents
of parameters, those are tested. Without such checks, or where equality is checked anyway, nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Op, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.facts import LARGEST_EXTENT
from parakeet_py.typed_ir.passes.analysis.linear import Linear, atom
from parakeet_py.typed_ir.rewrite import fresh_copy
from parakeet_py.typed_ir.writer import Writer, index_const, linear_value

_MOST_STATEMENTS = 600  # a larger function is not copied
_MOST_TESTS = 24
GENERAL = ir.Failure("Respecialize", "")  # raised on entry by a function that was made for the usual case only
Terms = tuple[tuple[Var, int], ...]


def version_equal_extents(function: Function, guarded: bool = False) -> Function:
    """Specialize the body for the usual case, chosen when the function is entered.

    With `guarded` only that version is kept, behind a check that fails with `GENERAL` before anything has happened.
    """
    analysis = _Analysis(function)
    tests = analysis.tests()
    if not tests or (not guarded and sum(1 for _ in function.statements()) > _MOST_STATEMENTS):
        return function
    writer = Writer(function.body.statements[0].pos)
    condition = analysis.condition(writer, tests)
    if guarded:
        writer.let(ir.Check(condition, GENERAL))
        body = Block((*writer.statements, *function.body.statements), function.body.results)
        return _with_body(function, body)
    outs = tuple([Var(r.name if isinstance(r, Var) else "t", r.type) for r in function.body.results])
    writer.let(ir.If(condition, fresh_copy(function.body), function.body), *outs)
    return _with_body(function, writer.block(*outs))


def _with_body(function: Function, body: Block) -> Function:
    return replace(function, body=body)


@record
class _Tests:
    """Linear forms that must be 0, and forms that must not be negative (terms -> constant)."""

    equal: dict[Terms, int]
    least: dict[Terms, int]

    def __bool__(self) -> bool:
        return bool(self.equal or self.least)


class _Analysis:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.params = set(function.params)
        self.definitions: dict[Var, Op] = {}
        self.dims: dict[tuple[Var, int], Var] = {}  # an axis of a parameter -> a variable that stands for its extent
        for let in function.statements():
            if isinstance(let.op, ir.Prim | ir.Dim):
                self.definitions[let.outs[0]] = let.op
            if isinstance(let.op, ir.Dim) and let.op.array in self.params:
                self.dims.setdefault((let.op.array, let.op.axis), Var("n", PYINT))

    # ---- what to test ----

    def tests(self) -> _Tests | None:
        conditions = [let.op.condition for let in ir.walk(self.function.body) if isinstance(let.op, ir.Check)]
        certain = {part for condition in conditions for part in self.parts(condition, "and")}
        tests = _Tests({}, {})
        for condition in conditions:
            for part in self.parts(condition, "or"):
                op = self.definitions.get(part)
                if (
                    part not in certain
                    and isinstance(op, ir.Prim)
                    and op.name == "eq"
                    and dtype_of(op.args[0]) == "int64"
                ):
                    left, right = op.args
                    if isinstance(left, Var) and isinstance(right, Var):
                        self.add(left, right, tests)
        return tests if tests and len(tests.equal) + len(tests.least) <= _MOST_TESTS else None

    def parts(self, condition: Operand, name: str) -> Iterator[Var]:
        """The conditions that are joined by `name`."""
        if isinstance(condition, Var):
            op = self.definitions.get(condition)
            if isinstance(op, ir.Prim) and op.name == name:
                for arg in op.args:
                    yield from self.parts(arg, name)
            else:
                yield condition

    def add(self, left: Var, right: Var, tests: _Tests) -> None:
        """What makes two extents equal in the usual case."""
        needed: list[Linear] = []
        one, two = self.usual(left, needed), self.usual(right, needed)
        if one is not None and two is not None:
            difference = one - two
            if difference.terms or difference.constant == 0:
                self.note(difference, needed, tests)
            return
        differing: list[Linear] = []
        if self.unify(left, right, differing):
            for form in differing:
                self.note(form, [], tests)

    def note(self, equal: Linear, least: list[Linear], tests: _Tests) -> None:
        if equal.terms:
            if equal.terms[0][1] < 0:
                equal = equal.scale(-1)
            tests.equal[equal.terms] = equal.constant
        for form in least:
            if form.terms:
                tests.least[form.terms] = min(form.constant, tests.least.get(form.terms, form.constant))

    def usual(self, operand: Operand, needed: list[Linear]) -> Linear | None:
        """The value as a linear form of extents and parameters, if all of `needed` are >= 0."""
        if isinstance(operand, Const):
            return Linear(operand.value) if isinstance(operand.value, int) else None
        if operand in self.params:
            return atom(operand)
        op = self.definitions.get(operand)
        if isinstance(op, ir.Dim):
            var = self.dims.get((op.array, op.axis))
            return None if var is None else atom(var)
        if not isinstance(op, ir.Prim):
            return None
        if op.name == "select":
            test = self.definitions.get(op.args[0]) if isinstance(op.args[0], Var) else None
            if isinstance(test, ir.Prim) and test.name == "eq" and test.args[1] == index_const(1):
                return self.usual(op.args[2], needed)  # the extent of what has been broadcast: not that of the 1
            if not isinstance(test, ir.Prim) or test.name != "lt" or test.args[1] != index_const(0):
                return None
            bound, chosen = self.usual(test.args[0], needed), self.usual(op.args[2], needed)
            if bound is not None:
                needed.append(bound)
            return chosen if bound is not None else None
        if len(op.args) != 2:
            return None
        left, right = self.usual(op.args[0], needed), self.usual(op.args[1], needed)
        if left is None or right is None:
            return None
        match op.name.removesuffix("_checked"):  # parameters are bounded
            case "add":
                return left + right
            case "sub":
                return left - right
            case "mul" if not right.terms:
                return left.scale(right.constant)
            case "minimum":  # of an extent and a bound: the bound
                if self.is_extent(right):
                    left, right = right, left
                needed.append(left - right)
                return right
            case "maximum":  # of a difference and 0: the difference
                if not left.terms:
                    left, right = right, left
                needed.append(left - right)
                return left
        return None

    def is_extent(self, form: Linear) -> bool:
        return form.constant == 0 and len(form.terms) == 1 and form.terms[0][0] in self.dims.values()

    def unify(self, left: Operand, right: Operand, differing: list[Linear]) -> bool:
        """Are two expressions the same but for extents of parameters? Their differences are collected."""
        if left == right:
            return True
        if not isinstance(left, Var) or not isinstance(right, Var):
            return False
        one, two = self.definitions.get(left), self.definitions.get(right)
        if isinstance(one, ir.Dim) and isinstance(two, ir.Dim):
            first, second = self.dims.get((one.array, one.axis)), self.dims.get((two.array, two.axis))
            if first is None or second is None:
                return False
            differing.append(atom(first) - atom(second))
            return True
        if not isinstance(one, ir.Prim) or not isinstance(two, ir.Prim) or one.name != two.name:
            return False
        return all([self.unify(x, y, differing) for x, y in zip(one.args, two.args, strict=True)])

    # ---- the test ----

    def condition(self, writer: Writer, tests: _Tests) -> Operand:
        """One bool; integers among the parameters are bounded first, so that nothing overflows."""
        used = {var: None for terms in (*tests.equal, *tests.least) for var, _ in terms}
        for (array, axis), var in self.dims.items():
            if var in used:
                writer.let(ir.Dim(array, axis), var)
        parts: list[Operand] = []
        for var in used:
            if var in self.params:
                parts.append(writer.prim("ge", var, index_const(-LARGEST_EXTENT), type_=PYBOOL))
                parts.append(writer.prim("le", var, index_const(LARGEST_EXTENT), type_=PYBOOL))
        for name, forms in (("eq", tests.equal), ("ge", tests.least)):
            for terms, constant in forms.items():
                positive, negative = Linear(constant, terms).halves()
                left, right = linear_value(writer, positive), linear_value(writer, negative)
                parts.append(writer.prim(name, left, right, type_=PYBOOL))
        condition = parts[0]
        for part in parts[1:]:
            condition = writer.prim("and", condition, part, type_=PYBOOL)
        return condition
