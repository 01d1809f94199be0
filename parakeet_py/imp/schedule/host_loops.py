"""Whether a function does anything outside of its regions that would gain by optimised loops.

What starts regions, calls BLAS, allocates and hands results over is long in long functions, and runs once for work that
takes far longer. LLVM's passes over it take as long as those over the regions, and gain nothing. A loop is worth them
if nothing of that sort is in it, or only in some of its iterations: there it is the work itself. Not counted are loops
with `few` iterations, and small constant numbers of them.
"""

from __future__ import annotations

from parakeet_py.imp.ir import (
    Block,
    Break,
    Call,
    For,
    Function,
    If,
    Let,
    Matmul,
    Opaque,
    Parallel,
    Read,
    Routine,
    Statement,
    While,
    Write,
    blocks_of,
)
from parakeet_py.typed_ir.ir import Const, Prim, Var

FEW = 64
"""Iterations of loops that are not counted."""
_STARTS = (Call, Matmul, Opaque, Parallel, Routine)


def starts_only(function: Function) -> bool:
    """Has the function no loop, outside of its regions, that does the work itself? Its procedures may be recursive, and
    are such work."""
    return all(one.library for one in function.procedures) and not _works(function.body)


def _works(block: Block) -> bool:
    return any(map(_is_work, block.statements))


def _is_work(statement: Statement) -> bool:
    if isinstance(statement, Parallel):
        return False
    if _is_loop(statement) and not _starts(statement):
        return True
    return any(map(_works, blocks_of(statement)))


def _is_loop(statement: Statement) -> bool:
    return isinstance(statement, For | While) and not _is_few(statement)


def _starts(loop: Statement) -> bool:
    """Is something started in all iterations, but perhaps those that end the loop?"""
    body = [one for block in blocks_of(loop) for one in block.statements]
    read = {one.out: one.rhs.cell for one in body if isinstance(one, Let) and isinstance(one.rhs, Read)}
    ends = {read.get(one.condition) for one in body if isinstance(one, If) and _breaks(one.then)}  # type: ignore[arg-type]

    def goes_on(block: Block) -> bool:
        """Does the loop go on after a branch? The cells that end it are False then."""
        wrong = [one for one in block.statements if isinstance(one, Write) and one.cell in ends]
        return not _breaks(block) and all(isinstance(one.value, Const) and one.value.value is False for one in wrong)

    def begins(one: Statement) -> bool:
        if isinstance(one, If):
            left = [block for block in (one.then, one.orelse) if goes_on(block)]
            return bool(left) and all(any(map(begins, block.statements)) for block in left)
        return isinstance(one, _STARTS) or (_is_loop(one) and _starts(one))

    return any(map(begins, body))


def _breaks(block: Block) -> bool:
    return any(isinstance(one, Break) for one in block.statements)


def _is_few(loop: Statement) -> bool:
    """Has a loop hardly any iterations?"""
    assert isinstance(loop, For | While)
    if isinstance(loop, While):
        return loop.few or _halves(loop)
    if loop.kind in ("few", "lanes"):
        return True
    match loop.start, loop.stop:
        case Const(value=int(first)), Const(value=int(last)):
            return last - first <= FEW
    return False


def _halves(loop: While) -> bool:
    """Does the condition say that an integer is positive which each iteration halves, at least?"""
    made = {one.out: one.rhs for one in (*loop.head.statements, *loop.body.statements) if isinstance(one, Let)}
    match made.get(loop.condition) if isinstance(loop.condition, Var) else None:
        case Prim(name="gt", args=(Var() as number, Const(value=0))):
            read = made.get(number)
        case _:
            return False
    if not isinstance(read, Read):
        return False
    written = [one.value for one in loop.body.statements if isinstance(one, Write) and one.cell is read.cell]
    match made.get(written[-1]) if written and isinstance(written[-1], Var) else None:
        case Prim(name="shr", args=(halved, Const(value=int(places)))):
            return halved is number and places > 0
        case Prim(name="floordiv", args=(halved, Const(value=int(divisor)))):
            return halved is number and divisor > 1
    return False
