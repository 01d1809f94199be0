"""A copy of the function for the usual case that extents are equal where broadcasting would let one of them be 1.

`new[1:-1] = old[1:-1]` must work when `old[1:-1]` has one element and `new[1:-1]` has many, and only the call can tell.
As long as that is open, every index has a `select` in it, and neither fusion nor vectorization gets far. Where a check
admits "equal, or one of them is 1", the function becomes

    if dim(old) == dim(new): <the body, with the extents known to be equal> else: <the body>

with one test for all such checks. If the two extents are the same expression but for the extents of parameters in it,
those are compared, so that everything made from them agrees; else both must be computable when the function is entered.
Without such checks, or where equality is checked anyway, nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterator

from parakeet_py.typed_ir.ir import Check, Const, Dim, Function, If, Let, Op, Operand, Prim, Var, dtype_of, walk
from parakeet_py.typed_ir.rewrite import fresh_copy, rebuild, substitute
from parakeet_py.typed_ir.types import PYBOOL
from parakeet_py.typed_ir.writer import Writer

_MOST_STATEMENTS = 600  # a larger function is not copied
_MOST_TESTS = 12
_ARITHMETIC = frozenset({"add", "sub", "mul", "neg", "minimum", "maximum"})
Key = tuple[Var, int]  # an axis of a parameter


def version_equal_extents(function: Function) -> Function:
    """Specialize a copy of the body for equal extents, chosen when the function is entered."""
    analysis = _Analysis(function)
    pairs = analysis.pairs()
    if not pairs or sum(1 for _ in function.statements()) > _MOST_STATEMENTS:
        return function
    pos = function.body.statements[0].pos
    writer = Writer(pos)
    at_entry: dict[Var, Operand] = {}
    condition: Operand | None = None
    for left, right in pairs[:_MOST_TESTS]:
        test = writer.prim("eq", analysis.compute(left, writer, at_entry), analysis.compute(right, writer, at_entry))
        condition = test if condition is None else writer.prim("and", condition, test, type_=PYBOOL)
    assert condition is not None
    body = substitute(function.body, at_entry)
    outs = tuple([Var(result.name if isinstance(result, Var) else "t", result.type) for result in body.results])
    writer.let(If(condition, fresh_copy(body), body), *outs)
    return Function(
        function.name,
        function.params,
        writer.block(*outs),
        function.filename,
        function.disjoint,
        function.static_extents,
    )


class _Analysis:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.params = set(function.params)
        self.definitions: dict[Var, Op] = {
            let.outs[0]: let.op for let in function.statements() if isinstance(let.op, Prim | Dim)
        }
        self.axes_of: dict[Var, frozenset[Key] | None] = {}

    def pairs(self) -> list[tuple[Var, Var]]:
        """Pairs of extents that a check lets differ only by broadcasting; none of them twice."""
        conditions = [let.op.condition for let in walk(self.function.body) if isinstance(let.op, Check)]
        certain = {part for condition in conditions for part in self.parts(condition, "and")}
        found: dict[frozenset[object], tuple[Var, Var]] = {}
        for condition in conditions:
            for part in self.parts(condition, "or"):
                op = self.definitions.get(part)
                if part in certain or not isinstance(op, Prim) or op.name != "eq" or dtype_of(op.args[0]) != "int64":
                    continue
                left, right = op.args
                differing: set[tuple[Var, Var]] = set()
                if self.unify(left, right, differing):
                    wanted = differing
                elif isinstance(left, Var) and isinstance(right, Var) and self.axes(left) and self.axes(right):
                    wanted = {(left, right)}
                else:
                    continue
                for pair in wanted:
                    found[frozenset(map(self.shape_of, pair))] = pair
        return [pair for shapes, pair in found.items() if len(shapes) == 2]

    def parts(self, condition: Operand, name: str) -> Iterator[Var]:
        """The conditions that are joined by `name`."""
        if isinstance(condition, Var):
            op = self.definitions.get(condition)
            if isinstance(op, Prim) and op.name == name:
                for arg in op.args:
                    yield from self.parts(arg, name)
            else:
                yield condition

    def unify(self, left: Operand, right: Operand, differing: set[tuple[Var, Var]]) -> bool:
        """Are two expressions the same but for extents of parameters? Those are collected."""
        if left == right:
            return True
        if not isinstance(left, Var) or not isinstance(right, Var):
            return False
        one, two = self.definitions.get(left), self.definitions.get(right)
        if isinstance(one, Dim) and isinstance(two, Dim) and self.axes(left) and self.axes(right):
            differing.add((left, right))
            return True
        if not isinstance(one, Prim) or not isinstance(two, Prim) or one.name != two.name:
            return False
        return all([self.unify(x, y, differing) for x, y in zip(one.args, two.args, strict=True)])

    def axes(self, var: Var) -> frozenset[Key] | None:
        """The parameters' axes that `var` is computed from, by plain arithmetic; None if by anything else."""
        if var not in self.axes_of:
            self.axes_of[var] = self.find_axes(var)
        return self.axes_of[var]

    def find_axes(self, var: Var) -> frozenset[Key] | None:
        op = self.definitions.get(var)
        if isinstance(op, Dim):
            return frozenset(((op.array, op.axis),)) if op.array in self.params else None
        if not isinstance(op, Prim) or op.name not in _ARITHMETIC:
            return None
        axes: frozenset[Key] = frozenset()
        for arg in op.args:
            if isinstance(arg, Var):
                inner = self.axes(arg)
                if inner is None:
                    return None
                axes |= inner
        return axes

    def shape_of(self, operand: Operand) -> object:
        """The expression as nested tuples."""
        op = self.definitions.get(operand) if isinstance(operand, Var) else None
        if isinstance(op, Dim):
            return (op.array, op.axis)
        if isinstance(op, Prim):
            return (op.name, *[self.shape_of(arg) for arg in op.args])
        return operand

    def compute(self, operand: Operand, writer: Writer, at_entry: dict[Var, Operand]) -> Operand:
        """Emit what `operand` is computed by, once."""
        if isinstance(operand, Const):
            return operand
        if operand not in at_entry:
            op = self.definitions[operand]
            if isinstance(op, Prim):
                for arg in op.args:
                    self.compute(arg, writer, at_entry)
            moved = rebuild(op, lambda item: at_entry.get(item, item) if isinstance(item, Var) else item)
            same = [let.outs[0] for let in writer.statements if let.op == moved]
            if same:
                at_entry[operand] = same[0]
            else:
                out = Var(operand.name, operand.type)
                writer.statements.append(Let((out,), moved, writer.pos))
                at_entry[operand] = out
        return at_entry[operand]
