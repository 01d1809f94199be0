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
from parakeet_py.typed_ir.ir import (
    CHECKED,
    Block,
    Cast,
    Check,
    Const,
    Dim,
    If,
    Let,
    Load,
    Operand,
    Prim,
    Store,
    Var,
    dtype_of,
    walk,
)

_Definitions = Mapping[Var, Prim | Cast | None]
_TRUE = Const(True, BOOL)


def can_wait(body: Block) -> bool:
    """Whether a body is branches of scalar statements, and all its checks may be made after it."""
    definitions: dict[Var, Prim | Cast | None] = {}  # None: an element, or as a branch went
    indices: list[Operand] = []
    checks: list[Operand] = []
    for let in walk(body):
        match let.op:
            case Prim(name):
                if name in CHECKED:
                    return False
                definitions[let.outs[0]] = let.op
            case Cast():
                definitions[let.outs[0]] = let.op
            case Load(indices=places) | Store(indices=places):
                indices += places
                definitions.update((out, None) for out in let.outs)
            case If():
                definitions.update((out, None) for out in let.outs)
            case Check(condition=condition):
                checks.append(condition)
            case Dim():
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
        case Prim(_, args):
            return any(_loaded(definitions, arg) for arg in args)
        case Cast(arg):
            return _loaded(definitions, arg)
    return True


def _learned(definitions: _Definitions, condition: Operand, value: bool) -> Iterator[tuple[Operand, ...]]:
    """The operands of the comparisons that are known once a condition is."""
    match definitions.get(condition) if isinstance(condition, Var) else None:
        case Prim("not", (arg,)):
            yield from _learned(definitions, arg, not value)
        case Prim("and" | "or" as name, args) if dtype_of(condition) == "bool":
            if (name == "and") == value:
                for arg in args:
                    yield from _learned(definitions, arg, value)
        case Prim(_, args):
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
            case Store():
                continue
            case Check(condition=condition):
                holds = condition
            case If(condition, then, orelse):
                (left, left_ok), (right, right_ok) = outcome(then), outcome(orelse)
                outs, ends = let.outs, (then.results, orelse.results)
                if left_ok is not None or right_ok is not None:
                    holds = Var("ok", BOOL)
                    outs, ends = (*outs, holds), ((*ends[0], left_ok or _TRUE), (*ends[1], right_ok or _TRUE))
                statements.append(Let(outs, If(condition, Block(left, ends[0]), Block(right, ends[1])), let.pos))
            case _:
                statements.append(let)
        if holds is not None and ok is not None:
            both = Var("ok", BOOL)
            statements.append(Let((both,), Prim("and", (ok, holds)), let.pos))
            holds = both
        ok = ok if holds is None else holds
    return tuple(statements), ok


def without_checks(body: Block) -> Block:
    """A body without its checks."""
    statements: list[Let] = []
    for let in body.statements:
        if isinstance(let.op, If):
            let = Let(
                let.outs, If(let.op.condition, without_checks(let.op.then), without_checks(let.op.orelse)), let.pos
            )
        if not isinstance(let.op, Check):
            statements.append(let)
    return Block(tuple(statements), body.results)
