"""Nests of loops with nothing else in them, which are entered if all of them have iterations.

    for i in range(n):                     if n > 0 and m > 0:
        for j in range(m): ...                 for i in range(n):   # bodies that begin without asking
                                                   for j in range(m): ...

A nest over what vectors have left over, which is empty more often than not, takes no time then; and LLVM has fewer
branches to look at, of which its level 3 would make copies of the nest.
"""

from __future__ import annotations

from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.builder import is_literal
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.typed_ir.ir import CHECKED, Cast, Const, Load, Operand, Prim

Range = tuple[str, str]


def inner_ranges(scope: Scope, loop: ir.For) -> list[Range]:
    """The ranges of the loops that are all that is in a loop, one in the other, as far as they are known before it."""
    found: list[Range] = []
    bound = {loop.index}
    while (inner := _only_loop(loop)) is not None:
        bound.update(one.out for one in loop.body.statements if isinstance(one, ir.Let))
        if not bound.isdisjoint((inner.start, inner.stop)) or not _counts_up(inner.step):
            break
        found.append((scope.scalar(inner.start), scope.scalar(inner.stop)))
        bound.add(inner.index)
        loop = inner
    return found


def _counts_up(step: Operand) -> bool:
    return isinstance(step, Const) and step.whole > 0


def _only_loop(loop: ir.For) -> ir.For | None:
    """The loop in a loop that does nothing else that shows."""
    inner = None
    for statement in loop.body.statements:
        match statement:
            case ir.Let(rhs=Prim(name)) if name not in CHECKED:
                pass
            case ir.Let(rhs=Cast() | Load()):
                pass
            case ir.For() if inner is None:
                inner = statement
            case _:
                return None
    return inner


def guard(scope: Scope, order: str, own: Range, inner: list[Range]) -> str | None:
    """The condition that a loop, over numbers of its own, and those in it have iterations; None if they have."""
    f = scope.f
    condition = None
    for kind, one in [(order, own), *(("slt", one) for one in inner)]:
        if one not in scope.entered and not (all(map(is_literal, one)) and int(one[0]) < int(one[1])):
            other = f.binary(f"icmp {kind}", "i64", *one)
            condition = f.binary("and", "i1", condition, other) if condition else other
    return condition
