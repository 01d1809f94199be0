"""The operands of an untyped operator, and whether two operands are the same one."""

from __future__ import annotations

from collections.abc import Iterable

from parakeet_py.frontend.ssa import (
    Assert,
    Attribute,
    Binary,
    BuildDict,
    BuildList,
    BuildSet,
    BuildSlice,
    BuildString,
    BuildTuple,
    Call,
    ChangeList,
    CheckBound,
    Compare,
    Comprehension,
    DeleteItem,
    For,
    Free,
    Global,
    Guarded,
    If,
    Import,
    Inplace,
    Item,
    Itself,
    MakeClosure,
    Op,
    Operand,
    Raise,
    SetAttribute,
    SetItem,
    Star,
    Subscript,
    Unary,
    Unpack,
    Var,
    While,
)


def operands(op: Op) -> tuple[Operand, ...]:
    """What an operator reads in the block it stands in, in order of evaluation; not what its own blocks read."""
    match op:
        case Global() | Free() | Itself() | Import():
            return ()
        case Binary(_, left, right) | Inplace(_, left, right) | Compare(_, left, right):
            return (left, right)
        case Call(function, args, kwargs):
            return (function, *_items(args), *(operand for _, operand in kwargs))
        case Attribute(value, _) | Unary(_, value) | Unpack(value) | CheckBound(value):
            return (value,)
        case If(value, _, _) | Assert(value, _):
            return (value,)
        case Raise(value, cause):
            return (value,) if cause is None else (value, cause)
        case SetAttribute(value, _, new):
            return (value, new)
        case Subscript(value, index) | DeleteItem(value, index):
            return (value, index)
        case SetItem(value, index, new):
            return (value, index, new)
        case ChangeList(_, value, args, at):
            return (value, *args) if at is None else (value, *args, at)
        case BuildSlice(lower, upper, step):
            return (lower, upper, step)
        case BuildTuple(items) | BuildList(items) | BuildSet(items):
            return _items(items)
        case BuildDict(pairs):
            return tuple(operand for pair in pairs for operand in pair if operand is not None)
        case BuildString(parts):
            return tuple(operand for operand, _, _ in parts)
        case MakeClosure(_, captures, defaults):
            return (*captures, *defaults)
        case Comprehension(_, iterable, element, condition, _):
            return (iterable, element) if condition is None else (iterable, element, condition)
        case For(iterable, _, _, inits, _, _):
            return (iterable, *inits)
        case While(_, inits, _, _, _):
            return inits
        case Guarded(_, classes, _):
            return classes


def _items(items: Iterable[Item]) -> tuple[Operand, ...]:
    return tuple(item.operand if isinstance(item, Star) else item for item in items)


def same(a: Operand | None, b: Operand | None) -> bool:
    """Whether two operands are one variable or one literal (1, 1.0 and True are three literals, 0.0 and -0.0 two)."""
    if a is b:
        return True
    if isinstance(a, Var) or isinstance(b, Var) or a is None or b is None:
        return False
    return type(a.value) is type(b.value) and repr(a.value) == repr(b.value)
