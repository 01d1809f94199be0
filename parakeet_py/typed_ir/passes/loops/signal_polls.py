"""Loops that need not look at signals (`ir.Interrupted`): what bounds them is memory.

A loop inside `try` asks in each iteration whether a handler of a signal has raised, as a loop that may go on for long
has to. Where extents of arrays and constants bound a loop and all that is inside it, and in loops inside others that
hold none themselves, unless they go up to an argument that bounds no loop around, the question is dropped: passes see
nothing but the loop, and the exception waits for its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Op, Operand, Var
from parakeet_py.typed_ir.rewrite import Rewriter

_OPEN = (ir.While, ir.Call)  # they may go on for as long as they like
_BOUNDED = frozenset({"add", "sub", "add_checked", "sub_checked", "floordiv", "minimum", "maximum", "select"})


def drop_polls(function: Function) -> Function:
    """Drop polls for signals from loops that end soon."""
    return _Dropper(function).function(function)


def without_polls(block: Block) -> Block:
    """A block in which nothing polls for signals."""
    return _Remover().block(block)


class _Remover(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.flags: set[Var] = set()

    def statement(self, let: Let) -> Sequence[Let] | None:
        if isinstance(let.op, ir.Interrupted):
            self.flags.add(let.outs[0])
            return ()
        if isinstance(let.op, ir.If) and let.op.condition in self.flags:
            return ()
        return self.descend(let)


class _Dropper(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.definitions: dict[Operand, Op] = {}
        self.indices: set[Operand] = set()  # of loops that are bounded
        for let in function.statements():
            self.definitions.update((out, let.op) for out in let.outs)
        self.params = frozenset(function.params)
        self.stops: list[Operand | None] = []  # of the loops around

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if not isinstance(op, ir.For | ir.While):
            return self.descend(let)
        if isinstance(op, ir.For) and (self.is_short(op) or self.is_bounded(op, [one.op for one in ir.walk(op.body)])):
            body = without_polls(op.body)
            return None if body is op.body else (Let(let.outs, replace(op, body=body), let.pos),)
        self.stops.append(op.stop if isinstance(op, ir.For) else None)
        new = self.descend(let)
        self.stops.pop()
        return new

    def is_short(self, op: ir.For) -> bool:
        """Is this a loop inside others without any inside, which goes over what these leave of something?"""
        if not self.stops or (op.stop in self.params and op.stop not in self.stops):
            return False
        inside = ir.walk(without_polls(op.body))
        return not any(isinstance(one.op, (ir.For, *_OPEN, *ir.PARALLEL, *ir.CALLS)) for one in inside)

    def is_bounded(self, op: ir.For, inside: Sequence[Op]) -> bool:
        """Do extents and constants bound this loop, and those inside?"""
        if any(isinstance(one, _OPEN) for one in inside) or not self.is_extent(op.start, op.stop):
            return False
        self.indices.add(op.index)
        inner = []
        for one in inside:  # outer loops come first
            if isinstance(one, ir.For):
                self.indices.add(one.index)
                inner.append(one)
        return all(self.is_extent(one.start, one.stop) for one in inner)

    def is_extent(self, *operands: Operand) -> bool:
        for operand in operands:
            if isinstance(operand, Const) or operand in self.indices:
                continue
            match self.definitions.get(operand):
                case ir.Dim():
                    pass
                case ir.Prim(name, args) if name in _BOUNDED and self.is_extent(*args):
                    pass
                case ir.Cast(arg) if self.is_extent(arg):
                    pass
                case _:
                    return False
        return True
