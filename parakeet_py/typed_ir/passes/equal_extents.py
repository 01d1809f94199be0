"""A copy of the function for the usual case that extents are equal where broadcasting would let one of them be 1.

`new[1:-1] = old[1:-1]` must work when `old[1:-1]` has one element and `new[1:-1]` has many, and only the call can tell.
As long as that is open, every index has a `select` in it, and neither fusion nor vectorization gets far. Where a check
admits "equal, or one of them is 1" and both extents can be computed from those of the parameters, the function becomes

    if dim(old) == dim(new): <the body, with the extents known to be equal> else: <the body>

with one test for all such checks. If both extents are the same function of one parameter's extent each, the parameters'
extents are compared, so that everything made from them agrees. Without such checks nothing happens.
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
        found: dict[object, tuple[Var, Var]] = {}
        for let in walk(self.function.body):
            if isinstance(let.op, Check):
                for left, right in self.alternatives(let.op.condition):
                    if self.axes(left) and self.axes(right):
                        simpler = self.same_function(left, right) or (left, right)
                        found[frozenset(map(self.shape_of, simpler))] = simpler
        return [pair for pair in found.values() if self.shape_of(pair[0]) != self.shape_of(pair[1])]

    def alternatives(self, condition: Operand) -> Iterator[tuple[Var, Var]]:
        """The equalities of two variables among the alternatives of an `or`."""
        op = self.definitions.get(condition) if isinstance(condition, Var) else None
        if not isinstance(op, Prim) or op.name != "or":
            return
        for part in op.args:
            inner = self.definitions.get(part) if isinstance(part, Var) else None
            if isinstance(inner, Prim) and inner.name == "or":
                yield from self.alternatives(part)
            elif isinstance(inner, Prim) and inner.name == "eq" and dtype_of(inner.args[0]) == "int64":
                left, right = inner.args
                if isinstance(left, Var) and isinstance(right, Var):
                    yield left, right

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

    def shape_of(self, operand: Operand, without: Key | None = None) -> object:
        """The expression as nested tuples; `without` a certain axis, they can be compared between axes."""
        if isinstance(operand, Const):
            return operand
        op = self.definitions[operand]
        if isinstance(op, Dim):
            return "extent" if without == (op.array, op.axis) else (op.array, op.axis)
        assert isinstance(op, Prim)
        return (op.name, *[self.shape_of(arg, without) for arg in op.args])

    def same_function(self, left: Var, right: Var) -> tuple[Var, Var] | None:
        """The extents of parameters that make both equal, where both are the same function of one each."""
        one, two = self.axes(left), self.axes(right)
        if one is None or two is None or len(one) != 1 or len(two) != 1:
            return None
        (key,), (other,) = one, two
        if self.shape_of(left, key) != self.shape_of(right, other):
            return None
        return self.dim_of(key), self.dim_of(other)

    def dim_of(self, key: Key) -> Var:
        return next(var for var, op in self.definitions.items() if isinstance(op, Dim) and (op.array, op.axis) == key)

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
