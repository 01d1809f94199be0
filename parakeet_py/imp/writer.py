"""Writing Imp: statements, blocks, and arithmetic on sizes and indices.

A `Writer` holds the list of statements being written; nested blocks are pushed and popped (`loop` and `when` do that
for functions that write a body). Arithmetic (`add`, `multiply`, `ceil_div`...) folds constants, so that a literal
extent stays one. What is known about extents holds until the end of the block that learned it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from parakeet_py.base.types import BOOL, INT64, PYINT, Array, Scalar, Type
from parakeet_py.frontend.ssa import Pos
from parakeet_py.imp.ir import (
    Block,
    Cell,
    Check,
    Declare,
    FailureSite,
    For,
    If,
    Let,
    Read,
    Rhs,
    Statement,
    Store,
    Write,
)
from parakeet_py.imp.storage.extents import Shapes
from parakeet_py.typed_ir.ir import Const, Dim, Failure, Load, Operand, Prim, Var

ZERO = Const(0, INT64)
ONE = Const(1, INT64)


class Writer:
    """Statements in order, at the present position of the source."""

    def __init__(self) -> None:
        self.sink: list[Statement] = []
        self.stack: list[tuple[list[Statement], int]] = []
        self.bound: dict[Var, bool] = {}  # whether the variable was bound inside a region
        self.shapes = Shapes()
        self.failures: list[FailureSite] = [FailureSite(Failure("SystemError", "no failure"), Pos(0, 0, 0, 0))]
        self._codes: dict[FailureSite, int] = {}
        self._of_procedures: dict[tuple[str, Pos], int] = {}
        self.pos = Pos(0, 0, 0, 0)
        self.in_region = False
        self.order: Callable[[], Operand] | None = None  # writes the iteration number inside a region

    # ---- statements --------------------------------------------------------------------------------------------------

    def emit(self, statement: Statement) -> None:
        self.sink.append(statement)

    def push(self) -> None:
        self.stack.append((self.sink, self.shapes.mark()))
        self.sink = []

    def pop(self) -> Block:
        block = Block(tuple(self.sink))
        self.sink, mark = self.stack.pop()
        self.shapes.undo(mark)
        return block

    def let(self, name: str, type_: Type, rhs: Rhs, reassoc: bool = False) -> Var:
        out = Var(name, type_)
        self.bound[out] = self.in_region
        self.sink.append(Let(out, rhs, self.pos, reassoc))
        return out

    def emit_let(self, out: Var, rhs: Rhs) -> None:
        """Bind a variable that `bind` has given."""
        self.sink.append(Let(out, rhs, self.pos))

    def emit_read(self, out: Var, cell: Cell) -> None:
        self.sink.append(Let(out, Read(cell), self.pos))

    def declare(self, name: str, type_: Type, init: Operand | None = None) -> Cell:
        cell = Cell(name, type_)
        self.sink.append(Declare(cell, init))
        return cell

    def read(self, cell: Cell) -> Var:
        return self.let(cell.name, cell.type, Read(cell))

    def write(self, cell: Cell, value: Operand) -> None:
        self.sink.append(Write(cell, value))

    def write_all(self, writes: Iterable[tuple[Cell, Operand]]) -> None:
        """Write several cells at once: the values do not depend on the order (they have been read before)."""
        self.sink += [Write(cell, value) for cell, value in writes]

    def load(self, array: Var, *indices: Operand) -> Var:
        return self.let(array.name, _element(array), Load(array, indices))

    def store(self, array: Var, indices: Sequence[Operand], value: Operand) -> None:
        self.sink.append(Store(array, tuple(indices), value, self.pos))

    def share_failures(self, other: Writer) -> None:
        """Number failures together with another function."""
        self.failures, self._codes, self._of_procedures = other.failures, other._codes, other._of_procedures

    def failure(self, failure: Failure) -> int:
        """The code of a failure; it gets one for each place it can come from."""
        site = FailureSite(failure, self.pos)
        code = self._codes.setdefault(site, len(self.failures))
        if code == len(self.failures):
            self.failures.append(site)
        return code

    def failures_of(self, procedure: str, failures: Sequence[FailureSite]) -> int:
        """The number that those of a procedure of the library begin behind, when it is called here."""
        place = (procedure, self.pos)
        if place not in self._of_procedures:
            self._of_procedures[place] = len(self.failures) - 1
            self.failures += [FailureSite(site.failure, self.pos) for site in failures[1:]]
        return self._of_procedures[place]

    def check(self, condition: Operand, failure: Failure, args: tuple[Operand, ...]) -> None:
        """Emit a check."""
        code = self.failure(failure)
        order = self.order() if self.order is not None else None
        self.sink.append(Check(condition, code, args, order, self.pos))

    # ---- arithmetic on sizes and indices (int64, results known to fit) -----------------------------------------------

    def prim(self, name: str, *args: Operand, type_: Type = INT64) -> Var:
        return self.let("t", type_, Prim(name, args))

    def add(self, left: Operand, right: Operand) -> Operand:
        a, b = _value(left), _value(right)
        if a is not None and b is not None:
            return Const(a + b, INT64)
        return right if a == 0 else left if b == 0 else self.prim("add", left, right)

    def subtract(self, left: Operand, right: Operand) -> Operand:
        a, b = _value(left), _value(right)
        if a is not None and b is not None:
            return Const(a - b, INT64)
        return ZERO if left is right else left if b == 0 else self.prim("sub", left, right)

    def multiply(self, left: Operand, right: Operand) -> Operand:
        a, b = _value(left), _value(right)
        if a is not None and b is not None:
            return Const(a * b, INT64)
        if a == 0 or b == 0:
            return ZERO
        return right if a == 1 else left if b == 1 else self.prim("mul", left, right)

    def product(self, operands: Iterable[Operand]) -> Operand:
        result: Operand = ONE
        for operand in operands:
            result = self.multiply(result, operand)
        return result

    def minimum(self, left: Operand, right: Operand) -> Operand:
        a, b = _value(left), _value(right)
        if a is not None and b is not None:
            return Const(min(a, b), INT64)
        return left if left is right else self.prim("minimum", left, right)

    def maximum(self, left: Operand, right: Operand) -> Operand:
        a, b = _value(left), _value(right)
        if a is not None and b is not None:
            return Const(max(a, b), INT64)
        return left if left is right else self.prim("maximum", left, right)

    def floor_div(self, left: Operand, right: Operand) -> Operand:
        """left // right for left >= 0, right > 0."""
        a, b = _value(left), _value(right)
        if a is not None and b is not None:
            return Const(a // b, INT64)
        if b is not None and b & (b - 1) == 0:
            return left if b == 1 else self.prim("shr", left, Const(b.bit_length() - 1, INT64))
        return self.prim("floordiv", left, right)

    def ceil_div(self, left: Operand, right: Operand) -> Operand:
        """The least number of parts of size `right` > 0 that hold `left` >= 0."""
        return self.floor_div(self.add(left, self.subtract(right, ONE)), right)

    def compare(self, name: str, left: Operand, right: Operand) -> Var:
        return self.prim(name, left, right, type_=BOOL)

    # ---- blocks ------------------------------------------------------------------------------------------------------

    def loop(
        self,
        index: Var,
        start: Operand,
        stop: Operand,
        body: Callable[[], None],
        kind: str = "serial",
        step: Operand = ONE,
    ) -> None:
        """A counted loop; `index` has been bound by the caller (`index`, `bind`)."""
        self.push()
        body()
        block = self.pop()
        self.sink.append(For(index, start, stop, step, block, kind))

    def index(self, name: str) -> Var:
        """A fresh loop index."""
        index = Var(name, INT64)
        self.bound[index] = self.in_region
        return index

    def when(
        self,
        condition: Operand,
        then: Callable[[], None],
        orelse: Callable[[], None] | None = None,
        rare: bool = False,
    ) -> None:
        if type(condition) is Const:
            if condition.value:
                then()
            elif orelse is not None:
                orelse()
            return
        self.push()
        then()
        taken = self.pop()
        self.push()
        if orelse is not None:
            orelse()
        other = self.pop()
        self.sink.append(If(condition, taken, other, rare))

    def extent(self, array: Var, axis: int) -> Operand:
        """The extent of an axis of an Imp array, known or asked for here."""
        known = self.shapes.extent(array, axis)
        if known is None:
            known = self.let("n", PYINT, Dim(array, axis))
        return known


def _value(operand: Operand) -> int | None:
    return operand.whole if type(operand) is Const else None


def _element(array: Var) -> Type:
    assert isinstance(array.type, Array)
    return Scalar(array.type.dtype)


def array_type(var: Var) -> Array:
    assert isinstance(var.type, Array)
    return var.type
