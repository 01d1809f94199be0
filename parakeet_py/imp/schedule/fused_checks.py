"""Checks of one float that one comparison answers: `int(x)` raises for NaN, for infinities, and for what does not fit.

    check not isnan x               if not |x| < 2^63:
    check not isinf x       =>          check not isnan x
    check -2^63 <= x < 2^63             check not isinf x
                                        check -2^63 <= x < 2^63

Each check is a branch in a loop; what passes the last one passes all, so that is asked first, and the others only tell
which failure it is. (-2^63 itself takes the long way, and passes.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parakeet_py.base.types import BOOL
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.typed_ir.ir import Block, Check, Const, Let, Operand, Prim, Var

_FORBIDDING = frozenset({"isnan", "isinf"})


class Run:
    """Statements up to `end` that are checks of `subject` and scalars; what is below `bound` passes them all."""

    def __init__(self, end: int, subject: Var, bound: Const, checks: list[Let]) -> None:
        self.end, self.subject, self.bound, self.checks = end, subject, bound, checks


def run_at(block: Block, place: int, definitions: dict[Var, Prim]) -> Run | None:
    """The run of checks that begins with a statement of a block; `definitions` are the primitives before it."""
    first = block.statements[place].op
    assert isinstance(first, Check)
    subject = _forbids(first.condition, definitions)
    if subject is None:
        return None
    checks: list[Let] = []
    made = dict(definitions)
    for end in range(place, len(block.statements)):
        let = block.statements[end]
        if isinstance(let.op, Prim) and not let.op.name.endswith("_checked"):
            made[let.outs[0]] = let.op
        elif not isinstance(let.op, Check):
            return None
        else:
            checks.append(let)
            bound = _bound(let.op.condition, subject, made)
            if bound is not None:
                return Run(end, subject, bound, checks)
            if _forbids(let.op.condition, made) is not subject:
                return None
    return None


def lower_run(lo: Lowering, run: Run, check: Callable[[Lowering, tuple[Var, ...], Any], None]) -> None:
    """Write the checks of a run, whose primitives have been written."""
    subject = lo.operand(run.subject)
    passes = lo.prim("lt", lo.prim("abs", subject, type_=subject.type), run.bound, type_=BOOL)
    fails = lo.prim("not", passes, type_=BOOL)
    if lo.noted is not None:
        lo.write(lo.noted, lo.prim("or", lo.read(lo.noted), fails, type_=BOOL))
        return

    def which() -> None:
        for let in run.checks:
            lo.pos = let.pos
            check(lo, let.outs, let.op)

    lo.when(fails, which)


def _forbids(condition: Operand, definitions: dict[Var, Prim]) -> Var | None:
    """The float that a condition wants not to be NaN, or not infinite."""
    outer = definitions.get(condition) if isinstance(condition, Var) else None
    if outer is None or outer.name != "not":
        return None
    (inner,) = outer.args
    test = definitions.get(inner) if isinstance(inner, Var) else None
    if test is None or test.name not in _FORBIDDING or not isinstance(test.args[0], Var):
        return None
    return test.args[0]


def _bound(condition: Operand, subject: Var, definitions: dict[Var, Prim]) -> Const | None:
    """`high` if a condition is `-high <= subject < high`."""
    both = definitions.get(condition) if isinstance(condition, Var) else None
    if both is None or both.name != "and":
        return None
    limits: dict[str, Const] = {}
    for part in both.args:
        test = definitions.get(part) if isinstance(part, Var) else None
        if test is None or test.name not in ("ge", "lt") or test.args[0] is not subject:
            return None
        if isinstance(test.args[1], Const):
            limits[test.name] = test.args[1]
    if len(limits) != 2 or limits["ge"].value != -limits["lt"].value:
        return None
    return limits["lt"]
