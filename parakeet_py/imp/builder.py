"""The state of one lowering, and the small vocabulary with which statements of Imp are written.

`Lowering` holds the list of statements being written (nested blocks are pushed and popped), what each variable of the
typed IR has become (`env`), the table of failures, and where we are: at the host level, or inside a `Parallel` region.
Arithmetic on sizes and indices (`add`, `multiply`, `ceil_div`...) folds constants, so that a literal extent stays one.

A body may be lowered more than once (a counting and a filling pass, checks before stores): a variable that is bound
again gets a fresh copy, and `env` leads to the newest.

Inside a region no heap memory may be made. An operator that needs some there raises `NeedsScratch`; the region is then
lowered again as at most `TASKS` tasks with a slice of memory each (`scratch`), and if the size of that is not known
before the region either, as a serial loop whose inner operators may be regions themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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
    NewArray,
    Parallel,
    Read,
    Rhs,
    Statement,
    Store,
    Write,
)
from parakeet_py.imp.shapes import Shapes
from parakeet_py.typed_ir.ir import Block as TypedBlock
from parakeet_py.typed_ir.ir import Const, Dim, Failure, Load, Operand, Prim, Var, View, ViewAxis
from parakeet_py.typed_ir.types import BOOL, INT64, PYINT, Array, Scalar, Type, itemsize

ZERO = Const(0, INT64)
ONE = Const(1, INT64)
TASKS = 32  # slices of scratch memory of a region whose iterations need some
STACK_BYTES = 16 << 10  # arrays of constant size up to this are put on the stack inside regions

Pattern = tuple[tuple[Operand, ...], Var, tuple[Operand, ...]]  # indices as written; array and indices to use
Outs = Sequence[Var | None]
RangeBody = Callable[[Operand, Operand], None]


class NeedsScratch(Exception):
    """An array is needed inside a region; `possible` where its size is known before the region."""

    def __init__(self, possible: bool) -> None:
        self.possible = possible


class Lowering:
    """State of the lowering of one function."""

    lower_block: Callable[[TypedBlock], tuple[Operand, ...]]  # writes a typed block where we are; gives its results

    def __init__(self, used: set[Var]) -> None:
        self.used = used  # the variables of the typed function that anything reads
        self.sink: list[Statement] = []
        self.stack: list[tuple[list[Statement], int]] = []
        self.env: dict[Var, Operand] = {}
        self.bound: dict[Var, bool] = {}  # whether the variable was bound inside a region
        self.shapes = Shapes()
        self.shaped: dict[Var, Var] = {}  # parameters with extents known beforehand
        self.failures: list[FailureSite] = [FailureSite(Failure("SystemError", "no failure"), Pos(0, 0, 0, 0))]
        self.pos = Pos(0, 0, 0, 0)
        self.in_region = False
        self.order: Callable[[], Operand] | None = None  # writes the iteration number inside a region
        self.checking = True  # whether checks are written (no longer once a first pass has made them)
        self.hidden: Callable[[Var], bool] | None = None  # in a pass that only checks: the arrays it may still store to
        self.merged: dict[Var, list[Pattern]] = {}  # accesses to be made through a reshaped array, see `merge`
        self.scratch: list[Statement] | None = None
        self.task: Operand = ZERO

    # ---- variables ---------------------------------------------------------------------------------------------------

    def operand(self, operand: Operand) -> Operand:
        """What an operand of the typed IR has become."""
        return self.env.get(operand, operand) if type(operand) is Var else operand

    def operands(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        env = self.env
        return tuple([env.get(o, o) if type(o) is Var else o for o in operands])

    def array(self, var: Var) -> Var:
        """The array to access for an array of the typed IR (not to hand on: it may be another descriptor of it)."""
        found = self.env.get(var, var)
        assert type(found) is Var
        return self.shaped.get(found, found)

    def extent(self, array: Var, axis: int) -> Operand:
        """The extent of an axis of an Imp array, known or asked for here."""
        known = self.shapes.extent(array, axis)
        if known is None:
            known = self.let("n", PYINT, Dim(array, axis))
        return known

    def element(self, array: Var, indices: tuple[Operand, ...]) -> tuple[Var, tuple[Operand, ...]]:
        """The array and indices through which an element named by the typed IR is accessed."""
        array = self.array(array)
        for pattern, reshaped, merged in self.merged.get(array, ()):
            if pattern == indices:
                return reshaped, self.operands(merged)
        return array, self.operands(indices)

    def bind(self, var: Var) -> Var:
        """The Imp variable for a variable of the typed IR that is about to be bound."""
        if var in self.bound or var in self.env:
            copy = Var(var.name, var.type)
            self.env[var] = copy
            self.bound[copy] = self.in_region
            return copy
        self.bound[var] = self.in_region
        return var

    def alias(self, var: Var, operand: Operand) -> None:
        """`var` is just another name of `operand`."""
        self.env[var] = operand

    def known_outside(self, operand: Operand) -> bool:
        """Whether the operand has its value before the present region starts."""
        return type(operand) is Const or not self.bound.get(operand, False)  # type: ignore[arg-type]

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

    def emit_let(self, out: Var, rhs: Rhs, reassoc: bool = False) -> None:
        """Bind a variable that `bind` has given."""
        self.sink.append(Let(out, rhs, self.pos, reassoc))

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

    def failure(self, failure: Failure) -> int:
        """The code of a failure; it gets one for each place it can come from."""
        site = FailureSite(failure, self.pos)
        if site not in self.failures:
            self.failures.append(site)
        return self.failures.index(site)

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

    def when(self, condition: Operand, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
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
        self.sink.append(If(condition, taken, other))

    # ---- memory and regions ------------------------------------------------------------------------------------------

    def new_array(self, name: str, type_: Array, extents: Sequence[Operand], out: Var | None = None) -> Var:
        """Memory for an array: heap at the host level; stack or a slice of scratch memory inside a region."""
        if out is None:
            out = Var(name, type_)
            self.bound[out] = self.in_region
        self.shapes.define(out, extents)
        space = "heap"
        if self.in_region:
            if _constant_bytes(type_, extents) <= STACK_BYTES:
                space = "stack"
            else:
                self._slice_scratch(out, type_, extents)
                return out
        self.sink.append(Let(out, NewArray(tuple(extents), space), self.pos))
        return out

    def new_outs(self, outs: Sequence[Var], extents: Sequence[Operand]) -> Outs:
        """Memory for the outs of an operator; None for those that nobody reads."""
        return [
            self.new_array(out.name, array_type(out), extents, self.bind(out)) if out in self.used else None
            for out in outs
        ]

    def store_outs(self, arrays: Outs, indices: Sequence[Operand], values: Sequence[Operand]) -> None:
        """Store one element of each out that is read."""
        for array, value in zip(arrays, values, strict=True):
            if array is not None:
                self.store(array, indices, value)

    def stack_array(self, name: str, dtype: str, extent: int) -> Var:
        """A one-dimensional array of constant size on the stack of the function or region."""
        return self.let(name, Array(dtype, 1, "C"), NewArray((Const(extent, INT64),), "stack"))

    def need_host(self) -> None:
        """What comes next cannot be done inside a region."""
        if self.in_region:
            raise NeedsScratch(False)

    def _slice_scratch(self, out: Var, type_: Array, extents: Sequence[Operand]) -> None:
        possible = all(self.known_outside(extent) for extent in extents) and type_.layout == "C"
        if self.scratch is None or not possible:
            raise NeedsScratch(possible)
        whole = Var("scratch", Array(type_.dtype, type_.rank + 1, "C"))
        self.bound[whole] = False
        self.scratch.append(Let(whole, NewArray((Const(TASKS, INT64), *extents)), self.pos))
        starts = (self.task, *(ZERO for _ in extents))
        axes = tuple(ViewAxis(axis + 1, extent, ONE) for axis, extent in enumerate(extents))
        self.sink.append(Let(out, View(whole, starts, axes), self.pos))

    def region(
        self,
        extent: Operand,
        grain: Operand,
        work: Operand,
        body: RangeBody,
        order: Callable[[], Operand],
        name: str = "region",
    ) -> None:
        """Run `body(lo, hi)` over [0, extent): a `Parallel` at the host level, just the whole range inside a region.

        `body` may be called several times: where it needs memory inside the region, the region is split into tasks
        with memory of their own, or given up (see the module's text).
        """
        if self.in_region:
            body(ZERO, extent)
            return
        depth, length = len(self.stack), len(self.sink)
        for attempt in (self._plain_region, self._tasks_region):
            self.order = order
            try:
                attempt(extent, grain, work, body, name)
                self.order = None
                return
            except NeedsScratch as need:
                self.in_region, self.order, self.scratch = False, None, None
                while len(self.stack) > depth:
                    self.pop()
                del self.sink[length:]
                if not need.possible:
                    break
        body(ZERO, extent)

    def _plain_region(self, extent: Operand, grain: Operand, work: Operand, body: RangeBody, name: str) -> None:
        self.in_region = True
        lo, hi = self.index("lo"), self.index("hi")
        self.push()
        body(lo, hi)
        block = self.pop()
        self.in_region = False
        self.sink.append(Parallel(lo, hi, extent, grain, work, block, name))

    def _tasks_region(self, extent: Operand, grain: Operand, work: Operand, body: RangeBody, name: str) -> None:
        tasks = self.minimum(extent, Const(TASKS, INT64))
        share = self.floor_div(extent, self.maximum(tasks, ONE))
        rest = self.subtract(extent, self.multiply(share, tasks))
        self.in_region = True
        self.scratch = []
        lo, hi, task = self.index("lo"), self.index("hi"), self.index("task")
        self.task = task

        def run_task() -> None:
            # The first `rest` tasks have one iteration more than the others.
            start = self.add(self.multiply(task, share), self.minimum(task, rest))
            more = self.prim("select", self.compare("lt", task, rest), ONE, ZERO)
            body(start, self.add(self.add(start, share), more))

        self.push()
        self.loop(task, lo, hi, run_task)
        block = self.pop()
        self.in_region = False
        self.sink += self.scratch
        self.scratch = None
        each = self.multiply(work, self.add(share, ONE))
        self.sink.append(Parallel(lo, hi, tasks, ONE, each, block, name))


def _value(operand: Operand) -> int | None:
    return int(operand.value) if type(operand) is Const else None  # type: ignore[arg-type]


def _element(array: Var) -> Type:
    assert isinstance(array.type, Array)
    return Scalar(array.type.dtype)


def array_type(var: Var) -> Array:
    assert isinstance(var.type, Array)
    return var.type


def _constant_bytes(type_: Array, extents: Sequence[Operand]) -> int:
    total = itemsize(type_.dtype)
    for extent in extents:
        if type(extent) is not Const:
            return STACK_BYTES + 1
        total *= int(extent.value)  # type: ignore[arg-type]
    return total
