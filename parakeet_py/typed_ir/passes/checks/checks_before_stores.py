"""Whether the checks of a loop can be made before its stores.

A `Map` that may fail and stores into memory that others can see is run twice: first its checks, without the stores,
then its stores. That finds what the loop would find only if no check, and no loop that must end, depends on an element
that an iteration has itself stored before: in the first run that element still has its old value.

`foresees` follows such elements: what is loaded from memory the loop has stored into, what is computed from it, and
what happens only under a condition on it. Memory made within an iteration is kept up in both runs; it hands on what is
stored into it.
"""

from __future__ import annotations

from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Let, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases


def foresees(body: Block, aliases: Aliases, own: frozenset[Var]) -> bool:
    """Whether one iteration's checks come out the same without its stores.

    Parameters
    ----------
    body : of the loop
    own : the memory (atoms) that an iteration makes for itself
    """
    return not _Foresight(aliases, own).fails(body, False)


class _Foresight:
    """`late` are values that a run without stores would not have; `stored` the memory it would not have written."""

    def __init__(self, aliases: Aliases, own: frozenset[Var]) -> None:
        self.aliases = aliases
        self.own = own
        self.late: set[Var] = set()
        self.stored: set[Var] = set()

    def fails(self, block: Block, control: bool) -> bool:
        """Whether a check in a block depends on late values; `control`: whether the block is run does."""
        return any(self.statement(let, control) for let in block.statements)

    def is_late(self, operand: Operand) -> bool:
        return isinstance(operand, Var) and operand in self.late

    def statement(self, let: Let, control: bool) -> bool:
        op = let.op
        late = control or any(self.is_late(operand) for operand in ir.operands_of(op))
        match op:
            case ir.Check():
                return late
            case ir.Call():
                return True
            case ir.Prim(name) if name in ir.CHECKED and late:
                return True
            case ir.For() | ir.While():
                return self.loop(let, late, control)
        late |= any(map(self.reads, ir.arrays_read(op)))
        for array in ir.arrays_written(op):
            self.writes(array, late or isinstance(op, ir.Scatter))
        if late:
            self.late.update(ir.binders_of(op))
        for block in ir.blocks_of(op):
            if self.fails(block, late):
                return True
            late |= any(self.is_late(result) for result in block.results) and not isinstance(op, ir.If)
        if late or any(self.is_late(result) for block in ir.blocks_of(op) for result in block.results):
            self.late.update(let.outs)
        return False

    def loop(self, let: Let, late: bool, control: bool) -> bool:
        """A loop's later iterations see what earlier ones have stored and handed on."""
        op = let.op
        assert isinstance(op, ir.For | ir.While)
        bounds = control or (isinstance(op, ir.For) and any(map(self.is_late, (op.start, op.stop, op.step))))
        if late:
            self.late.update(ir.binders_of(op))
        before = -1
        while before != len(self.late) + len(self.stored):
            before = len(self.late) + len(self.stored)
            if isinstance(op, ir.While) and (
                self.fails(op.condition, bounds) or any(map(self.is_late, op.condition.results))
            ):
                return True
            if self.fails(op.body, bounds):
                return True
            handed_on = op.body.results
            if op.stoppable:
                bounds |= self.is_late(handed_on[0])
                handed_on = handed_on[1:]
            self.late.update(param for param, value in zip(op.params, handed_on, strict=True) if self.is_late(value))
        if bounds or late or any(map(self.is_late, op.params)):
            self.late.update(let.outs)
        return False

    def reads(self, array: Var) -> bool:
        return not self.aliases.atoms(array).isdisjoint(self.stored)

    def writes(self, array: Var, late: bool) -> None:
        atoms = self.aliases.atoms(array)
        if late or not atoms <= self.own:
            self.stored |= atoms
