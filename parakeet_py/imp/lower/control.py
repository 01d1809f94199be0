"""Control: joins of paths become cells.

An `If` writes its results into cells, one in each branch; what follows reads them once. A loop keeps each carried
parameter in a cell, read at the top of an iteration and written at its bottom, all new values before any is written
(they may be each other). A parameter that every iteration hands on unchanged is no cell at all. The stop flag of a
stoppable loop is a cell only if something reads it; the loop is left by `Break`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from parakeet_py.base.types import BOOL, Scalar
from parakeet_py.imp.ir import Block, Break, Cell, If, Statement, While
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.typed_ir import ir as typed
from parakeet_py.typed_ir.ir import Const, Operand, Prim, Var

FALSE = Const(False, BOOL)
TRUE = Const(True, BOOL)

SHORT = 100
"""Statements of a loop's body at which starting a region is still much of an iteration. In longer ones it is not; and
the part of a function that only starts regions is compiled in far less time than one with loops of its own."""


def lower_if(lo: Lowering, outs: tuple[Var, ...], op: typed.If) -> None:
    """Branches that write the same cells; a choice between known scalars is a `select`."""
    condition = lo.operand(op.condition)
    if isinstance(condition, Const):
        results = lo.lower_block(op.then if condition.value else op.orelse)
        for out, result in zip(outs, results, strict=True):
            lo.alias(out, result)
        return
    if not op.then.statements and not op.orelse.statements and all(isinstance(out.type, Scalar) for out in outs):
        pairs = zip(lo.operands(op.then.results), lo.operands(op.orelse.results), strict=True)
        for out, (then_value, else_value) in zip(outs, pairs, strict=True):
            if then_value == else_value:
                lo.alias(out, then_value)
            else:
                select = Prim("select", (condition, then_value, else_value))
                lo.emit_let(lo.bind(out), select)
        return
    lo.push()
    then_results = lo.lower_block(op.then)
    then_statements = lo.pop().statements
    lo.push()
    around = lo.seldom
    lo.seldom = around or op.seldom
    else_results = lo.lower_block(op.orelse)
    lo.seldom = around
    else_statements = lo.pop().statements
    then_writes, else_writes, reads = [], [], []
    for out, then_value, else_value in zip(outs, then_results, else_results, strict=True):
        if then_value == else_value:
            lo.alias(out, then_value)
            continue
        cell = lo.declare(out.name, out.type)
        then_writes.append((cell, then_value))
        else_writes.append((cell, else_value))
        reads.append((out, cell))
    then = _with_writes(lo, then_statements, then_writes)
    orelse = _with_writes(lo, else_statements, else_writes)
    if then.statements or orelse.statements:
        lo.emit(If(condition, then, orelse))
    for out, cell in reads:
        lo.emit_read(lo.bind(out), cell)


def _with_writes(lo: Lowering, statements: Sequence[Statement], writes: list[tuple[Cell, Operand]]) -> Block:
    lo.push()
    lo.sink += statements
    lo.write_all(writes)
    return lo.pop()


class _Carried:
    """The cells of a loop's parameters."""

    def __init__(
        self, lo: Lowering, params: Sequence[Var], inits: Sequence[Operand], nexts: Sequence[Operand], stoppable: bool
    ) -> None:
        self.lo = lo
        self.stopped = lo.declare("stopped", BOOL, FALSE) if stoppable else None
        self.places: list[tuple[Cell | None, Operand]] = []
        for param, init, following in zip(params, inits, nexts, strict=True):
            value = lo.operand(init)
            if following is param:
                lo.alias(param, value)
                self.places.append((None, value))
            else:
                self.places.append((lo.declare(param.name, param.type, value), value))
        self.params = params

    def enter(self) -> None:
        """Read the parameters at the top of an iteration."""
        for param, (cell, _) in zip(self.params, self.places, strict=True):
            if cell is not None:
                self.lo.emit_read(self.lo.bind(param), cell)

    def leave(self, results: Sequence[Operand]) -> None:
        """Write the parameters at the bottom of an iteration, and leave the loop if it has been stopped."""
        lo, stop = self.lo, None
        if self.stopped is not None:
            stop, *results = results
        pairs = zip(self.places, results, strict=True)
        lo.write_all([(cell, value) for (cell, _), value in pairs if cell is not None])
        if self.stopped is None or stop == FALSE:
            return
        assert stop is not None
        lo.write(self.stopped, stop)
        lo.when(stop, lambda: lo.emit(Break()))

    def finish(self, outs: Sequence[Var]) -> None:
        """Bind the loop's outs after it."""
        lo = self.lo
        if self.stopped is not None:
            lo.emit_read(lo.bind(outs[0]), self.stopped)
            outs = outs[1:]
        for out, (cell, value) in zip(outs, self.places, strict=True):
            if cell is None:
                lo.alias(out, value)
            else:
                lo.emit_read(lo.bind(out), cell)


def lower_for(lo: Lowering, outs: tuple[Var, ...], op: typed.For) -> None:
    start, stop, step = lo.operands((op.start, op.stop, op.step))
    nexts = op.body.results[1:] if op.stoppable else op.body.results
    carried = _Carried(lo, op.params, op.inits, nexts, op.stoppable)
    index = lo.bind(op.index)

    def body() -> None:
        carried.enter()
        carried.leave(lo.lower_block(op.body))

    around, lo.repeated = lo.repeated, _is_short(op)
    lo.loop(index, start, stop, body, "serial", step)
    lo.repeated = around
    carried.finish(outs)


def _is_short(loop: typed.For | typed.While) -> bool:
    """Is a loop one of those in which starting a region is much of an iteration?"""
    return sum(1 for _ in islice(typed.walk(loop.body), SHORT + 1)) <= SHORT


def lower_while(lo: Lowering, outs: tuple[Var, ...], op: typed.While) -> None:
    nexts = op.body.results[1:] if op.stoppable else op.body.results
    carried = _Carried(lo, op.params, op.inits, nexts, op.stoppable)
    around, lo.repeated = lo.repeated, _is_short(op)
    lo.push()
    carried.enter()
    (condition,) = lo.lower_block(op.condition)
    head = lo.pop()
    lo.push()
    carried.leave(lo.lower_block(op.body))
    lo.emit(While(head, condition, lo.pop()))
    lo.repeated = around
    carried.finish(outs)
