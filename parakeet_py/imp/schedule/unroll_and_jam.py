"""Unroll and jam: two rows of a stencil at a time, which read the rows between them once.

    for j: for k: out[j, k] = f(a[j - 1, k], a[j, k], a[j + 1, k], ...)

    ->  for j by 2: for k: x, y = a[j, k], a[j + 1, k]
                           out[j, k], out[j + 1, k] = f(a[j - 1, k], x, y, ...), f(x, y, a[j + 2, k], ...)

A vector that does not begin where a line of the cache does is read by two accesses, so the loads of a stencil in three
dimensions take longer than its arithmetic. Of seven, two are those of the row before (a sweep of the heat equation over
40**3 float64 takes 0.87 of its time). What both rows compute of that is computed once, too. The points are independent,
so that the stores of one row may wait for the loads of the other.

That is done with straight-line bodies of at most `MOST` statements, as the registers have to suffice for two rows,
where at least an eighth of the loads are saved. Not within other parallel loops: tiles over time, whose memory is
slower than any of this, gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from parakeet_py.base.grammar import rebuild
from parakeet_py.base.types import INT64, is_integer
from parakeet_py.imp.ir import Block, Let, Statement, Store
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.loops import Axis
from parakeet_py.imp.schedule.loop_order import is_dear
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Cast, Const, Load, Operand, Prim, Var, dtype_of

MOST = 60
_TWO = Const(2, INT64)


def loop_over_pairs(
    lo: Lowering, axes: Sequence[Axis], low: Operand, high: Operand, point: Callable[[], None]
) -> Operand:
    """Write the loop over pairs of the rows [low, high), along the axis before the last, where it pays; `point` writes
    what is done at a point. Returns the first row that is left."""
    rows, places = axes[-2:]
    row, place = lo.index("row"), lo.bind(places.index)
    both = _Both()
    first, second = (_at(lo, rows.index, row, following, point) for following in (False, True))
    if not (both.take(first) and both.take(second) and both.pays()):
        return low
    count = lo.prim("and", lo.maximum(lo.subtract(high, low), ZERO), Const(-2, INT64))
    middle = lo.add(low, count)
    statements = (*both.statements, *both.stores)

    def pair() -> None:
        lo.loop(place, ZERO, places.extent, lambda: lo.sink.extend(statements), "vector")

    lo.loop(row, low, middle, pair, "independent", _TWO)
    return middle


def _at(lo: Lowering, index: Var, row: Operand, following: bool, point: Callable[[], None]) -> Block:
    """What is done at a point of a row, or of the following one."""
    lo.push()
    lo.alias(index, lo.prim("add", row, ONE) if following else row)
    point()
    return lo.pop()


class _Both:
    """The statements of two rows: each load and operation once, then all stores."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.stores: list[Statement] = []
        self.loads = self.shared = 0
        self.names: dict[Any, Any] = {}
        self.known: dict[Any, Var] = {}
        self.sums: dict[Any, tuple[Any, int]] = {}  # whole numbers that are another and a constant

    def pays(self) -> bool:
        return self.shared > 0 and 8 * self.shared >= self.loads

    def take(self, row: Block) -> bool:
        """Take the statements of a row; False where they cannot be joined with others."""
        stored = False
        for statement in row.statements if len(row.statements) <= MOST else ():
            match statement:
                case Store():
                    stored = True
                    self.stores.append(rebuild(statement, self._operand))
                case Let(_, Load()) if stored:
                    return False
                case Let(_, Load() | Cast()):
                    self._let(statement)
                case Let(_, Prim(name)) if not (is_dear(name) or name.endswith("_checked")):
                    self._let(statement)
                case _:
                    return False
        return stored

    def _operand(self, operand: Any) -> Any:
        return operand if isinstance(operand, Const) else self.names.get(operand, operand)

    def _let(self, let: Let) -> None:
        let = rebuild(let, self._operand)
        out, rhs = let.out, let.rhs
        match rhs:
            case Load(array, indices):
                key: Any = array, tuple(map(self._form, indices))
                self.loads += 1
            case Prim("add", (Var() as left, Const() as right)) if is_integer(dtype_of(left)):
                base, before = self._form(left)
                self.sums[out] = base, before + right.whole
                key = out.type, *self.sums[out]
            case _:
                key = rhs, out.type, let.reassoc
        if key in self.known:
            self.names[out] = self.known[key]
            self.shared += isinstance(rhs, Load)
        else:
            self.known[key] = out
            self.statements.append(let)

    def _form(self, index: Operand) -> tuple[Any, int]:
        return (None, index.whole) if isinstance(index, Const) else self.sums.get(index, (index, 0))
