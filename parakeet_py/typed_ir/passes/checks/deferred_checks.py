"""Checks that can wait until an iteration, or a whole loop, is over.

A check guards nothing if no element is accessed because of it: `math.log(x[i])` raises for what has no logarithm, but
what comes after it would do no harm. That is so where no index depends on what has been loaded, and the check compares
what has been loaded, or floats: bounds of indices are proved from comparisons of integers alone (`_learned` are those
that would be known after the check). All iterations may then run as if none failed, if only it is found out whether
one would have (`imp/schedule/late_checks.py`), or find out nothing else (`outcome`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from parakeet_py.base.types import BOOL, is_float
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Let, Operand, Var, dtype_of

_Definitions = Mapping[Var, ir.Prim | ir.Cast | None]
_TRUE = Const(True, BOOL)


def can_wait(body: Block) -> bool:
    """Whether a body is branches of scalar statements, and all its checks may be made after it."""
    definitions: dict[Var, ir.Prim | ir.Cast | None] = {}  # None: an element, or as a branch went
    indices: list[Operand] = []
    checks: list[Operand] = []
    for let in ir.walk(body):
        match let.op:
            case ir.Prim(name):
                if name in ir.CHECKED:
                    return False
                definitions[let.outs[0]] = let.op
            case ir.Cast():
                definitions[let.outs[0]] = let.op
            case ir.Load(indices=places) | ir.Store(indices=places):
                indices += places
                definitions.update((out, None) for out in let.outs)
            case ir.If():
                definitions.update((out, None) for out in let.outs)
            case ir.Check(condition=condition):
                checks.append(condition)
            case ir.Dim():
                pass
            case _:
                return False
    if any(_loaded(definitions, index) for index in indices):
        return False
    return all(
        any(_loaded(definitions, operand) or is_float(dtype_of(operand)) for operand in comparison)
        for check in checks
        for comparison in _learned(definitions, check, True)
    )


def _loaded(definitions: _Definitions, operand: Operand) -> bool:
    """Whether a value depends on an element, or on how a branch went."""
    if not isinstance(operand, Var) or operand not in definitions:
        return False
    match definitions[operand]:
        case ir.Prim(_, args):
            return any(_loaded(definitions, arg) for arg in args)
        case ir.Cast(arg):
            return _loaded(definitions, arg)
    return True


def _learned(definitions: _Definitions, condition: Operand, value: bool) -> Iterator[tuple[Operand, ...]]:
    """The operands of the comparisons that are known once a condition is."""
    match definitions.get(condition) if isinstance(condition, Var) else None:
        case ir.Prim("not", (arg,)):
            yield from _learned(definitions, arg, not value)
        case ir.Prim("and" | "or" as name, args) if dtype_of(condition) == "bool":
            if (name == "and") == value:
                for arg in args:
                    yield from _learned(definitions, arg, value)
        case ir.Prim(_, args):
            yield args
        case _:
            yield (condition,)


# ---- bodies of checks alone, and without -----------------------------------------------------------------------------


def outcome(body: Block) -> tuple[tuple[Let, ...], Operand | None]:
    """A body without its stores and checks; and whether all checks hold (None: there are none)."""
    statements: list[Let] = []
    ok: Operand | None = None
    for let in body.statements:
        holds: Operand | None = None
        match let.op:
            case ir.Store():
                continue
            case ir.Check(condition=condition):
                holds = condition
            case ir.If(condition, then, orelse, seldom):
                (left, left_ok), (right, right_ok) = outcome(then), outcome(orelse)
                outs, ends = let.outs, (then.results, orelse.results)
                if left_ok is not None or right_ok is not None:
                    holds = Var("ok", BOOL)
                    outs, ends = (*outs, holds), ((*ends[0], left_ok or _TRUE), (*ends[1], right_ok or _TRUE))
                branch = ir.If(condition, Block(left, ends[0]), Block(right, ends[1]), seldom)
                statements.append(Let(outs, branch, let.pos))
            case _:
                statements.append(let)
        if holds is not None and ok is not None:
            both = Var("ok", BOOL)
            statements.append(Let((both,), ir.Prim("and", (ok, holds)), let.pos))
            holds = both
        ok = ok if holds is None else holds
    return tuple(statements), ok


def without_checks(body: Block) -> Block:
    """A body without its checks."""
    statements: list[Let] = []
    for let in body.statements:
        if isinstance(let.op, ir.If):
            let = Let(
                let.outs, ir.If(let.op.condition, without_checks(let.op.then), without_checks(let.op.orelse)), let.pos
            )
        if not isinstance(let.op, ir.Check):
            statements.append(let)
    return Block(tuple(statements), body.results)
