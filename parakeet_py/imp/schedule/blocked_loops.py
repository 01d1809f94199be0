"""Loops over elements that call NumPy's loops (`base.exact_loops`), block by block.

A loop of NumPy's costs tens of nanoseconds a call and takes as many elements as it is given. So a loop whose turns do
not depend on each other is cut into blocks of some hundred iterations, and each block into stages:

    for i in [a, b):                    for block in [a, b) by B:
        x = f(i)                            for i in block: operands[i - block] := f(i)
        y = ufunc.exp.11 x          =>      results := ufunc.exp(operands)
        out[i] := g(y)                      for i in block: out[i] := g(results[i - block])

The buffers are on the stack, a few kilobytes that stay in the first-level cache. What stands beside the calls is fused
as ever, within each stage. A number that a later stage needs, too, is computed again there if that is next to nothing,
or kept in a buffer. Operands that lie side by side in an array already are read there, and results that are only
stored, side by side, are written there.

A stage has what the next call needs; everything that has an effect (stores, checks, branches, accumulators) comes in
the last one, in its order. A load that may read what an earlier statement of the same turn stores stays behind it. What
cannot be staged remains a call for one element (`llvm/codegen/routines.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parakeet_py.base.grammar import rebuild, with_blocks
from parakeet_py.base.types import INT64, Array, itemsize
from parakeet_py.frontend.ssa import Pos
from parakeet_py.imp import ir
from parakeet_py.imp.ir import Block, Cell, For, Let, Statement
from parakeet_py.imp.schedule.loop_stages import Line, Roots, Stages, uses
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Const, Load, Operand, Prim, Var, View, ViewAxis, dtype_of

BYTES = 24 << 10  # of all buffers of a loop
MOST, LEAST = 1024, 64  # iterations of a block


def in_blocks(block: Block, roots: Roots) -> Block:
    """The block with its loops in blocks, wherever they are."""
    statements: list[Statement] = []
    for statement in block.statements:
        inner = with_blocks(statement, lambda one: in_blocks(one, roots))
        found = None
        if isinstance(inner, For) and inner.kind in ("vector", "independent") and _counts_up(inner):
            found = _Blocked(inner, roots).write()
        statements += [inner] if found is None else found
    return Block(tuple(statements))


def _counts_up(loop: For) -> bool:
    """Whether a loop takes all numbers from one to another."""
    breaks = any(isinstance(one, ir.Break) for one in _outside_loops(loop.body))
    return isinstance(loop.step, Const) and loop.step.whole == 1 and not breaks


def _outside_loops(block: Block) -> list[Statement]:
    """The statements of a block that are in no loop inside it."""
    found: list[Statement] = []
    for statement in block.statements:
        found.append(statement)
        if isinstance(statement, ir.If):
            found += [*_outside_loops(statement.then), *_outside_loops(statement.orelse)]
    return found


class _Blocked(Stages):
    """One loop on its way."""

    def __init__(self, loop: For, roots: Roots) -> None:
        super().__init__(loop, roots)
        self.buffers: dict[Var, Var] = {}
        self.count: Operand = ZERO
        self.first: Operand = ZERO
        self.pos = next((one.pos for one in self.body if isinstance(one, Let)), Pos(0, 0, 0, 0))
        self.sink: list[Statement] = []

    def let(self, name: str, type_: Any, rhs: Any) -> Var:
        out = Var(name, type_)
        self.sink.append(Let(out, rhs, self.pos))
        return out

    def number(self, name: str, *args: Operand) -> Var:
        return self.let("t", INT64, Prim(name, args))

    def write(self) -> list[Statement] | None:
        """The loop in blocks; None if there is nothing to call."""
        if not self.calls or not self.plan():
            return None
        stages = 1 + max(self.stage[place] for place in self.calls)
        targets = {place: found for place in self.calls if (found := self.target(place)) is not None}
        direct = {found[0] for found in targets.values()}
        last = self.needed([n for n in range(len(self.body)) if n not in self.stage and n not in direct], stages)
        lines: dict[Operand, Line] = {}
        wanted: list[Var] = []
        for place in self.calls:
            for arg in self.args(place):
                line = self.source(arg)
                if line is not None:
                    lines[arg] = line
                elif isinstance(arg, Var) and self.varies(arg) and not self.is_call(arg):
                    wanted.append(arg)
        kept = self.kept(wanted, last, stages)
        before: list[Statement] = []
        self.sink = before
        length = self.make_buffers([*kept, *[self.result(place) for place in self.calls if place not in targets]])
        singles = self.singles()
        block = Var("block", INT64)
        self.first, self.sink = block, []
        self.count = self.number("minimum", self.number("sub", self.loop.stop, block), length)
        stop = self.number("add", block, self.count)
        for stage in range(stages):
            own = [one for one in kept if self.stage_of(one) == stage]
            if own:
                self.stage_loop(self.needed([self.made[one] for one in own if one in self.made], stage), stop, own)
            for place in self.calls:
                if self.stage[place] == stage:
                    self.call(place, lines, singles, targets.get(place))
        if last:
            self.stage_loop(last, stop, [])
        return [*before, For(block, self.loop.start, self.loop.stop, length, Block(tuple(self.sink)), "serial")]

    def make_buffers(self, values: Sequence[Var]) -> Const:
        """Buffers for a block of values; gives how many turns a block has."""
        size = sum(itemsize(dtype_of(one)) for one in values)
        turns = MOST
        while turns > LEAST and turns * size > BYTES:
            turns //= 2
        length = Const(turns, INT64)
        for one in values:
            self.buffers[one] = self.let("block", Array(dtype_of(one), 1, "C"), ir.NewArray((length,), "stack"))
        return length

    def singles(self) -> dict[tuple[int, int], Var]:
        """Arrays of one element for operands that are the same in all iterations."""
        made: dict[tuple[int, int], Var] = {}
        for place in self.calls:
            for number, arg in enumerate(self.args(place)):
                if not self.varies(arg):
                    array = self.let("single", Array(dtype_of(arg), 1, "C"), ir.NewArray((ONE,), "stack"))
                    self.sink.append(ir.Store(array, (ZERO,), arg, self.pos))
                    made[place, number] = array
        return made

    def call(
        self,
        place: int,
        lines: Mapping[Operand, Line],
        singles: Mapping[tuple[int, int], Var],
        target: tuple[int, Line] | None,
    ) -> None:
        statement = self.body[place]
        assert isinstance(statement, Let) and isinstance(statement.rhs, Prim)
        ins = []
        for number, arg in enumerate(statement.rhs.args):
            if (place, number) in singles:
                ins.append(self.view(singles[place, number], (ZERO,), ViewAxis(None, self.count, ONE)))
            elif arg in lines:
                ins.append(self.line_of(*lines[arg]))
            else:
                assert isinstance(arg, Var)
                ins.append(self.view(self.buffers[arg], (ZERO,), ViewAxis(0, self.count, ONE)))
        if target is not None:
            out = self.line_of(*target[1])
        else:
            out = self.view(self.buffers[statement.out], (ZERO,), ViewAxis(0, self.count, ONE))
        name = statement.rhs.name.rpartition(".")[0]
        self.sink.append(ir.Routine(None, name, (out,), tuple(ins), statement.pos))

    def view(self, array: Var, starts: tuple[Operand, ...], axis: ViewAxis) -> Var:
        still = axis.source is None
        kind = Array(dtype_of(array), 1, "A" if still else "C")
        return self.let("line", kind, View(array, starts, (axis,)))

    def line_of(self, array: Var, indices: tuple[Operand, ...], offset: Operand) -> Var:
        start = self.first if offset is ZERO else self.number("add", self.first, offset)
        return self.view(array, (*indices[:-1], start), ViewAxis(len(indices) - 1, self.count, ONE))

    def stage_loop(self, places: Sequence[int], stop: Operand, kept: Sequence[Var]) -> None:
        """The loop of a stage over the present block; values in `kept` go to their buffers."""
        index = Var(self.loop.index.name, self.loop.index.type)
        outer, self.sink = self.sink, []
        names: dict[Any, Any] = {self.loop.index: index}
        place = self.number("sub", index, self.first)
        own = set(places)
        for used in dict.fromkeys(operand for n in places for operand in uses(self.body[n])):
            if isinstance(used, Var) and used in self.made and self.made[used] not in own and used in self.buffers:
                names[used] = self.let(used.name, used.type, Load(self.buffers[used], (place,)))
        for number in places:
            self.sink.append(_renamed(self.body[number], names))
        for value in kept:
            self.sink.append(ir.Store(self.buffers[value], (place,), names[value], self.pos))
        body, self.sink = Block(tuple(self.sink)), outer
        self.sink.append(For(index, self.first, stop, ONE, body, self.loop.kind))


def _renamed(statement: Statement, names: dict[Any, Any]) -> Statement:
    """A copy of a statement that binds variables and cells of its own."""

    def operand(item: Any) -> Any:
        return item if isinstance(item, Const) else names.get(item, item)

    def binder(item: Any) -> Any:
        names[item] = Var(item.name, item.type) if isinstance(item, Var) else Cell(item.name, item.type)
        return names[item]

    def block(inner: Block) -> Block:
        return Block(tuple([_renamed(one, names) for one in inner.statements]))

    made: Callable[..., Statement] = rebuild
    return made(statement, operand, binder, block)
