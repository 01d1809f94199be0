"""Checks that wait for a vector loop's end.

`math.log(x)` raises for what has no logarithm, so a loop of it could leave at any iteration, and such loops are not
widened. Where a check guards nothing that comes after it (`typed_ir/passes/checks/deferred_checks.py`), all iterations
run as if none failed, and only remember whether one would have. If so, the loop runs once more with its checks where
they stand, to fail as it should. What the first run has stored by then is not visible (see `lower.map`), and the second
neither reads nor stores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from parakeet_py.base.types import BOOL
from parakeet_py.imp.ir import Block, If, Statement, Store
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.schedule.loop_order import Study, static_cost
from parakeet_py.typed_ir.ir import Const, Operand, Var
from parakeet_py.typed_ir.passes.checks import deferred_checks

LARGEST = 1000  # scalar operations of a body that is written twice


def can_wait(found: Study, private: Mapping[Var, Var]) -> bool:
    """Whether all checks of a body may be made after all iterations. `private`: see `unescaped_arrays`."""
    if not found.simple or static_cost(found.block) > LARGEST or not deferred_checks.can_wait(found.block):
        return False
    read, stored = (
        {private.get(array, array) for array in map(found.root, _accessed(found, store))} for store in (False, True)
    )
    return read.isdisjoint(stored)


def _accessed(found: Study, store: bool) -> Iterator[Var]:
    return (access.array for access in found.accesses if access.store is store)


def loop(lo: Lowering, index: Var, start: Operand, stop: Operand, point: Callable[[], None]) -> None:
    """Write a loop of which `point` writes an iteration, and the one that fails."""
    failed = lo.declare("failed", BOOL, Const(False, BOOL))
    with lo.noting(failed):
        lo.loop(lo.bind(index), start, stop, point, "vector")

    def only_check() -> None:
        lo.push()
        point()
        checks = _without_stores(lo.pop())
        lo.sink += checks.statements

    lo.when(lo.read(failed), lambda: lo.loop(lo.bind(index), start, stop, only_check, "independent"))


def _without_stores(block: Block) -> Block:
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, If):
            then, orelse = _without_stores(statement.then), _without_stores(statement.orelse)
            statement = replace(statement, then=then, orelse=orelse)
        if not isinstance(statement, Store):
            statements.append(statement)
    return Block(tuple(statements))
