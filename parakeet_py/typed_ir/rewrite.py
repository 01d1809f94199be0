"""Rewriting the typed IR: substitution, fresh copies, free variables and use counts.

All of it is made of `grammar.rebuild`, which knows how to put a changed operator together again. It returns the very
object it was given when nothing changed, and a `Rewriter` answers None for "unchanged", so parts of a program that a
pass does not touch stay shared between the program before and after it.

Variables are unique in a function, so substitution cannot capture; what uses a block twice makes a fresh copy.

The types of a variable and of what replaces it may differ in `Scalar.python` only. That flag decides nothing but how a
value is boxed, so it matters where values leave for Python: in the results of a function and in the arguments of
`Opaque`. Passes do not replace an operand there by one of another type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from parakeet_py.base import grammar
from parakeet_py.base.grammar import each, rebuild
from parakeet_py.base.interrupts import poll
from parakeet_py.frontend.ssa import Pos
from parakeet_py.typed_ir.ir import (
    Block,
    Const,
    Dim,
    Function,
    Let,
    Op,
    Operand,
    Var,
    binders_of,
    blocks_of,
    operands_of,
    walk,
)

NOWHERE = Pos(0, 0, 0, 0)

free_variables: Callable[[Block], dict[Var, None]] = grammar.free_variables
substitute = grammar.substitute


def fresh_copy(block: Block, mapping: dict[Var, Operand] | None = None) -> Block:
    """A copy of `block` that binds new variables; `mapping` replaces free ones and is extended by the bound ones."""
    known: dict[Var, Operand] = {} if mapping is None else mapping

    def operand(item: Operand) -> Operand:
        return known.get(item, item) if item.__class__ is Var else item

    def binder(var: Var) -> Var:
        copy = Var(var.name, var.type)
        known[var] = copy
        return copy

    def inside(inner: Block) -> Block:
        poll()
        statements = tuple([statement(let) for let in inner.statements])
        return Block(statements, tuple([operand(item) for item in inner.results]))

    def statement(let: Let) -> Let:
        op = rebuild(let.op, operand, binder, inside)
        return Let(tuple([binder(out) for out in let.outs]), op, let.pos)

    return inside(block)


class Rewriter:
    """A walk over a program in order, replacing statements.

    A pass overrides `statement`, which answers None to keep a statement as it is, or the statements to put in its
    place. `replacement` maps variables to what stands for them from here on; `operand` applies it.
    """

    def __init__(self) -> None:
        self.replacement: dict[Var, Operand] = {}

    def function(self, function: Function) -> Function:
        body = self.block(function.body)
        if body is function.body:
            return function
        return replace(function, body=body)

    def operand(self, item: Operand) -> Operand:
        return self.replacement.get(item, item) if item.__class__ is Var else item

    def operands(self, items: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return each(self.operand, items)

    def block(self, block: Block) -> Block:
        poll()  # long functions take long passes
        statements: list[Let] = []
        changed = False
        for let in block.statements:
            new = self.statement(let)
            if new is None:
                statements.append(let)
            else:
                changed = True
                statements.extend(new)
        results = self.operands(block.results)
        if not changed and results is block.results:
            return block
        return Block(tuple(statements) if changed else block.statements, results)

    def statement(self, let: Let) -> Sequence[Let] | None:
        """None, or what stands in place of `let`."""
        return self.descend(let)

    def descend(self, let: Let) -> Sequence[Let] | None:
        """Apply `replacement` and rewrite the blocks inside."""
        op = rebuild(let.op, self.operand, None, self.block)
        return None if op is let.op else (Let(let.outs, op, let.pos),)


# ---- variables used --------------------------------------------------------------------------------------------------


def bound_in(block: Block) -> set[Var]:
    """The variables bound in a block, at all depths."""
    return {var for let in walk(block) for var in (*let.outs, *binders_of(let.op))}


def free_in_op(op: Op) -> dict[Var, None]:
    """The variables an operator uses, directly or in its blocks, that are bound outside."""
    return free_variables(Block((Let((), op, NOWHERE),)))


class Uses:
    """How often each variable is used in a block, at all depths; `data` counts every use but `Dim`, `shape` those."""

    def __init__(self, block: Block) -> None:
        self.data: dict[Var, int] = {}
        self.shape: dict[Var, int] = {}
        self._block(block)

    def _block(self, block: Block) -> None:
        data = self.data
        for let in block.statements:
            op = let.op
            if isinstance(op, Dim):
                self.shape[op.array] = self.shape.get(op.array, 0) + 1
                continue
            for item in operands_of(op):
                if item.__class__ is Var:
                    data[item] = data.get(item, 0) + 1
            for inner in blocks_of(op):
                self._block(inner)
        for item in block.results:
            if item.__class__ is Var:
                data[item] = data.get(item, 0) + 1

    @property
    def variables(self) -> set[Var]:
        return {*self.data, *self.shape}


def is_const(operand: Operand, value: object) -> bool:
    """Is this the literal `value` (of whatever type)?"""
    return isinstance(operand, Const) and operand.value == value
