"""NumPy's compiled loops in calls that run on devices: the CPU does them, or a library of the device.

A device has none of them but sorts of its own (`radix_sort`), and what its libraries have (`hybrid.libraries`). For it
any other `Routine` is one more operation that the host does between kernels, with arrays brought back for it; so each
becomes an `Opaque` with a number beyond those of the user's, which `perform` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.base import routines
from parakeet_py.base.fast_dataclass import record
from parakeet_py.ptx.skeletons.radix_sort import is_sorted_here
from parakeet_py.typed_ir.ir import Function, Let, Opaque, Routine
from parakeet_py.typed_ir.rewrite import Rewriter


@record
class RoutineCall:
    """A routine that the host does: the first arguments of its call are written."""

    name: str
    written: int
    line: int

    def __str__(self) -> str:
        return f"{self.name} (line {self.line}): done by the CPU"

    def sides(self, args: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """What is written, and what is read."""
        return args[: self.written], args[self.written :]

    def perform(self, args: Sequence[Any]) -> list[Any]:
        failed = routines.run(self.name, *self.sides(args))
        return self.given(failed)

    def given(self, failed: bool) -> list[Any]:
        """The results of the call."""
        return [np.bool_(failed)] if routines.reports(self.name) else []


def as_calls(function: Function, *, team: bool = False) -> tuple[Function, dict[int, RoutineCall]]:
    """The function with calls of the host in the place of routines, and what these are. For a team they all are."""
    if not any(isinstance(let.op, Routine) for let in function.statements()):
        return function, {}
    calls = _Calls(function, team)
    return calls.function(function), calls.found


class _Calls(Rewriter):
    def __init__(self, function: Function, team: bool) -> None:
        super().__init__()
        self.team = team
        self.first = 1 + max((let.op.site for let in function.statements() if isinstance(let.op, Opaque)), default=-1)
        self.found: dict[int, RoutineCall] = {}

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if not isinstance(op, Routine) or (is_sorted_here(op) and not self.team):
            return self.descend(let)
        site = self.first + len(self.found)
        self.found[site] = RoutineCall(op.name, len(op.outs), let.pos.line)
        return [Let(let.outs, Opaque(site, (*op.outs, *op.ins)), let.pos)]
