"""Rewriting the typed IR: rebuilding operators, substitution, fresh copies, free variables and use counts.

`rebuild` is the one place that knows how to put a changed operator together again; everything else here is made from
it. It returns the very object it was given when nothing changed, and a `Rewriter` answers None for "unchanged", so
parts of a program that a pass does not touch stay shared between the program before and after it.

Variables are unique in a function, so substitution cannot capture; what uses a block twice makes a fresh copy.

The types of a variable and of what replaces it may differ in `Scalar.python` only. That flag decides nothing but how a
value is boxed, so it matters where values leave for Python: in the results of a function and in the arguments of
`Opaque`. Passes do not replace an operand there by one of another type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from parakeet_py.frontend.ssa import Pos
from parakeet_py.typed_ir.ir import (
    Alloc,
    Block,
    Call,
    Cast,
    Check,
    Compress,
    Const,
    Dim,
    For,
    Function,
    If,
    Lambda,
    Let,
    Load,
    Map,
    Matmul,
    Op,
    Opaque,
    Operand,
    Prim,
    Reduce,
    Reshape,
    Routine,
    Scan,
    Scatter,
    Store,
    Stride,
    Strided,
    Var,
    View,
    ViewAxis,
    While,
    binders_of,
    blocks_of,
    operands_of,
)

NOWHERE = Pos(0, 0, 0, 0)

OnOperand = Callable[[Operand], Operand]
OnBinder = Callable[[Var], Var]
OnBlock = Callable[[Block], Block]


# ---- rebuilding ------------------------------------------------------------------------------------------------------


def _each(items: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The tuple of changed items, or `items` itself when all stay."""
    for position, item in enumerate(items):
        if change(item) is not item:
            return items[:position] + tuple([change(later) for later in items[position:]])
    return items


def _each_once(items: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """As `_each`, calling `change` exactly once for each item, in order (it may have effects)."""
    changed = tuple([change(item) for item in items])
    return items if all(map(lambda old, new: old is new, items, changed)) else changed


def _lambda(function: Lambda, binder: OnBinder, block: OnBlock) -> Lambda:
    params = _each_once(function.params, binder)
    body = block(function.body)
    return function if params is function.params and body is function.body else Lambda(params, body)


def _view_axis(axis: ViewAxis, operand: OnOperand) -> ViewAxis:
    extent, step = operand(axis.extent), operand(axis.step)
    return axis if extent is axis.extent and step is axis.step else ViewAxis(axis.source, extent, step)


_Fields = Callable[[Any, OnOperand, OnBinder, OnBlock], tuple[Any, ...]]
_FIELDS: dict[type, _Fields] = {
    Prim: lambda op, o, v, b: (op.name, _each(op.args, o)),
    Cast: lambda op, o, v, b: (o(op.arg),),
    Dim: lambda op, o, v, b: (o(op.array), op.axis),
    Load: lambda op, o, v, b: (o(op.array), _each(op.indices, o)),
    Store: lambda op, o, v, b: (o(op.array), _each(op.indices, o), o(op.value)),
    Alloc: lambda op, o, v, b: (_each(op.extents, o),),
    View: lambda op, o, v, b: (
        o(op.base),
        _each(op.starts, o),
        _each_once(op.axes, lambda axis: _view_axis(axis, o)),
    ),
    Stride: lambda op, o, v, b: (o(op.array), op.axis),
    Reshape: lambda op, o, v, b: (o(op.base), _each(op.extents, o)),
    Strided: lambda op, o, v, b: (o(op.base), o(op.offset), _each(op.extents, o), _each(op.strides, o)),
    If: lambda op, o, v, b: (o(op.condition), b(op.then), b(op.orelse)),
    For: lambda op, o, v, b: (
        v(op.index),
        o(op.start),
        o(op.stop),
        o(op.step),
        _each_once(op.params, v),
        _each(op.inits, o),
        b(op.body),
        op.stoppable,
    ),
    While: lambda op, o, v, b: (
        _each_once(op.params, v),
        _each(op.inits, o),
        b(op.condition),
        b(op.body),
        op.stoppable,
    ),
    Check: lambda op, o, v, b: (o(op.condition), op.failure, _each(op.args, o)),
    Map: lambda op, o, v, b: (_each(op.extents, o), _each_once(op.indices, v), b(op.body)),
    Reduce: lambda op, o, v, b: (
        _each(op.extents, o),
        _each_once(op.indices, v),
        _each(op.reduced_extents, o),
        _each_once(op.reduced_indices, v),
        b(op.body),
        _each(op.inits, o),
        _lambda(op.combine, v, b),
    ),
    Scan: lambda op, o, v, b: (
        _each(op.extents, o),
        _each_once(op.indices, v),
        op.axis,
        b(op.body),
        _each(op.inits, o),
        _lambda(op.combine, v, b),
        op.inclusive,
    ),
    Compress: lambda op, o, v, b: (_each(op.extents, o), _each_once(op.indices, v), b(op.body)),
    Scatter: lambda op, o, v, b: (
        o(op.target),
        _each(op.extents, o),
        _each_once(op.indices, v),
        b(op.body),
        _lambda(op.combine, v, b),
    ),
    Matmul: lambda op, o, v, b: (o(op.out), o(op.left), o(op.right)),
    Routine: lambda op, o, v, b: (op.name, _each(op.outs, o), _each(op.ins, o)),
    Opaque: lambda op, o, v, b: (op.site, _each(op.args, o)),
    Call: lambda op, o, v, b: (op.procedure, _each(op.args, o), op.stores, op.levels),
}
_SLOTS: dict[type, tuple[str, ...]] = {kind: tuple(field.name for field in fields(kind)) for kind in _FIELDS}


def _same(thing: Any) -> Any:
    return thing


def rebuild(op: Op, operand: OnOperand, binder: OnBinder = _same, block: OnBlock = _same) -> Op:
    """`op` with its direct operands, the variables it binds and its blocks changed; `op` itself if nothing changed.

    `binder` and `block` are called exactly once for each variable and block, binders before the blocks they scope
    over; `operand` must be a function of its argument.
    """
    if isinstance(op, Prim):  # by far the most frequent
        args = _each(op.args, operand)
        return op if args is op.args else Prim(op.name, args)
    if isinstance(op, Cast):
        arg = operand(op.arg)
        return op if arg is op.arg else Cast(arg)
    kind = op.__class__
    values = _FIELDS[kind](op, operand, binder, block)
    for name, new in zip(_SLOTS[kind], values, strict=True):
        if getattr(op, name) is not new:
            return kind(*values)
    return op


# ---- substitution and copies -----------------------------------------------------------------------------------------


def substitute(block: Block, mapping: Mapping[Var, Operand]) -> Block:
    """`block` with free variables replaced."""

    def operand(item: Operand) -> Operand:
        return mapping.get(item, item) if item.__class__ is Var else item

    def inside(inner: Block) -> Block:
        statements = _each_once(inner.statements, statement)
        results = _each(inner.results, operand)
        return inner if statements is inner.statements and results is inner.results else Block(statements, results)

    def statement(let: Let) -> Let:
        op = rebuild(let.op, operand, _same, inside)
        return let if op is let.op else Let(let.outs, op, let.pos)

    return inside(block) if mapping else block


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
        return _each(items, self.operand)

    def block(self, block: Block) -> Block:
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
        op = rebuild(let.op, self.operand, _same, self.block)
        return None if op is let.op else (Let(let.outs, op, let.pos),)


# ---- variables used --------------------------------------------------------------------------------------------------


def free_variables(block: Block) -> dict[Var, None]:
    """The variables used in `block` and bound outside, in the order of first use."""
    free: dict[Var, None] = {}
    bound: set[Var] = set()

    def use(items: Iterable[Operand]) -> None:
        for item in items:
            if item.__class__ is Var and item not in bound:
                free[item] = None

    def inside(inner: Block) -> None:
        for let in inner.statements:
            statement(let)
        use(inner.results)

    def statement(let: Let) -> None:
        use(operands_of(let.op))
        bound.update(binders_of(let.op))
        for inner in blocks_of(let.op):
            inside(inner)
        bound.update(let.outs)

    inside(block)
    return free


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


def is_const(operand: Operand, value: object) -> bool:
    """Is this the literal `value` (of whatever type)?"""
    return isinstance(operand, Const) and operand.value == value
