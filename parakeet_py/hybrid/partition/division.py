"""One way to cut an operator, as `fission` finds it and the executor uses it."""

from __future__ import annotations

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array
from parakeet_py.hybrid.partition.access import Input, Touched, contract
from parakeet_py.typed_ir.ir import Dim, Function, Op, Operand, Var

Bounds = tuple[int, int]  # a range [lo, hi)


@record
class Across:
    """A second axis that an operator is cut along at the same time: its extent, and its index variable in `touched`."""

    extent: Operand | Dim
    index: Var


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
    part : (lo, hi, *whole results, *free) -> partial results; (lo, hi, first, last, ...) if a part has a range of a
        second axis
    after : of a scan: (lo, hi, *totals before, *whole results, *free), the second pass of a part
    combine : (*accumulators, *contributions) -> accumulators; of whole arrays where they are arrays. The target of a
        histogram takes a part's copy in: (target, copy) -> ()
    cost : scalar operations for a point, about
    across : the second axis, of tiles
    rounds : it sums floats, in an order that members choose themselves
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
    across: Across | None = None
    rounds: bool = False

    def bounds(self, lo: int, hi: int, *across: int) -> dict[Var, Bounds]:
        """The ranges of the index variables of a part."""
        found = {self.index: (lo, hi)}
        if across:
            assert self.across is not None
            first, last = across
            found[self.across.index] = first, last
        return found

    def inputs(self) -> dict[Var, Input]:
        """How a part needs each array from outside."""
        arrays = [var for var in self.free if isinstance(var.type, Array)]
        return {array: contract(self.touched, array, self.index) for array in arrays}
