"""The state of one lowering: what the variables of the typed IR have become, and where memory and regions are made.

`Lowering` is a `Writer` that also knows the variables of the typed IR (`env`) and where we are: at the host level, or
inside a `Parallel` region.

A body may be lowered more than once (a counting and a filling pass, checks before stores): a variable that is bound
again gets a fresh copy, and `env` leads to the newest.

Inside a region no heap memory may be made. An operator that needs some there raises `NeedsScratch`; the region is then
lowered again as at most `TASKS` tasks with a slice of memory each (`scratch`), and if the size of that is not known
before the region either, as a serial loop whose inner operators may be regions themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from parakeet_py.base.types import INT64, Array, itemsize
from parakeet_py.imp.ir import (
    Cell,
    Function,
    Let,
    NewArray,
    Parallel,
    Statement,
)
from parakeet_py.imp.writer import ONE, ZERO, Writer, array_type
from parakeet_py.typed_ir.ir import Block as TypedBlock
from parakeet_py.typed_ir.ir import Const, Operand, Var, View, ViewAxis
from parakeet_py.typed_ir.ir import Let as TypedLet

TASKS = 32  # slices of scratch memory of a region whose iterations need some
STACK_BYTES = 16 << 10  # arrays of constant size up to this are put on the stack inside regions

Pattern = tuple[tuple[Operand, ...], Var, tuple[Operand, ...]]  # indices as written; array and indices to use
Outs = Sequence[Var | None]
RangeBody = Callable[[Operand, Operand], None]


class NeedsScratch(Exception):
    """An array is needed inside a region; `possible` where its size is known before the region."""

    def __init__(self, possible: bool) -> None:
        self.possible = possible


class Lowering(Writer):
    """State of the lowering of one function."""

    lower_block: Callable[[TypedBlock], tuple[Operand, ...]]  # writes a typed block where we are; gives its results

    def __init__(self, used: set[Var]) -> None:
        super().__init__()
        self.used = used  # the variables of the typed function that anything reads
        self.env: dict[Var, Operand] = {}
        self.shaped: dict[Var, Var] = {}  # parameters with extents known beforehand
        self.private: dict[Var, Var] = {}  # arrays that are not visible if the function fails, and whose views they are
        self.checking = True  # whether checks are written (no longer once a first pass has made them)
        self.noted: Cell | None = None  # where checks only note that they fail, see `late_checks`
        self.hidden: Callable[[Var], bool] | None = None  # in a pass that only checks: the arrays it may still store to
        self.merged: dict[Var, list[Pattern]] = {}  # accesses to be made through a reshaped array, see `axis_merging`
        self.decided: dict[
            Var, Const
        ] = {}  # conditions known in the piece of a loop being written, see `index_set_splitting`
        self.special: dict[type, Callable[..., None]] = {}  # other ways to lower some operators, for another target
        self.timed: list[TypedLet] | None = None  # kernels whose runs are timed, see `timed_kernels`
        self.library: Mapping[str, Function] = {}  # the procedures of the library that may be called
        self.scratch: list[Statement] | None = None
        self.task: Operand = ZERO
        self.repeated = False  # in a short loop of the program: what is done in place there need not be a region
        self.seldom = False  # in code for what hardly happens, or takes little time

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
        return isinstance(operand, Const) or not self.bound.get(operand, False)

    @contextmanager
    def noting(self, failed: Cell) -> Iterator[None]:
        """Within, a check that fails is only noted in a cell."""
        self.noted = failed
        yield
        self.noted = None

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
        """Memory for the outs of an operator; None for those that are never read."""
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


def _constant_bytes(type_: Array, extents: Sequence[Operand]) -> int:
    total = itemsize(type_.dtype)
    for extent in extents:
        if type(extent) is not Const:
            return STACK_BYTES + 1
        total *= extent.whole
    return total
