"""One way to cut an operator, as `fission` finds it and the executor uses it."""

from __future__ import annotations

from parakeet_py.hybrid.access import Input, Touched, contract
from parakeet_py.record import record
from parakeet_py.typed_ir.ir import Dim, Function, Op, Operand, Var
from parakeet_py.typed_ir.types import Array


@record
class Division:
    """One way to cut an operator.

    Attributes
    ----------
    op : the operator
    axis : of its index space (of a Reduce: kept axes come before reduced ones)
    extent : of that axis: an operand, or where to read it
    index : the index variable of that axis in `touched`
    touched : what the operator reads and writes of arrays from outside
    join : concatenate, combine, scan, compress or histogram
    free : what the operator takes from outside
    part : (lo, hi, *whole results, *free) -> partial results
    after : of a scan: (lo, hi, *totals before, *whole results, *free), the second pass of a part
    combine : (*accumulators, *contributions) -> accumulators; of whole arrays where they are arrays. The target of a
        histogram takes a part's copy in: (target, copy) -> ()
    cost : scalar operations for a point, about
    """

    op: Op
    axis: int
    extent: Operand | Dim
    index: Var
    touched: Touched
    join: str
    free: tuple[Var, ...]
    part: Function
    after: Function | None = None
    combine: Function | None = None
    cost: int = 1

    def inputs(self) -> dict[Var, Input]:
        """How a part needs each array from outside."""
        arrays = [var for var in self.free if isinstance(var.type, Array)]
        return {array: contract(self.touched, array, self.index) for array in arrays}
