"""What computing a body once costs, in the rough units that fusion decides by.

A cheap flop is 1, index arithmetic 0, a division or square root 8, an elementary function 20; loops count as `ENDLESS`.
"""

from __future__ import annotations

from parakeet_py.base import exact_loops
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYINT, is_complex
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, dtype_of

ENDLESS = 1_000_000
_MOST_REPEATED = 24  # flops
_MOST_LOADS = 12
_DIVISIONS = frozenset({"div", "floordiv", "mod", "fmod", "sqrt"})
_ELEMENTARY = ir.ELEMENTARY | {"nextafter"}


@record(frozen=False)
class Cost:
    """`work` in units of a cheap flop (loads not counted), what of it is not cheap flops, and the number of `loads`."""

    work: int = 0
    loads: int = 0
    heavy: int = 0

    @property
    def trivial(self) -> bool:
        """No memory read and next to nothing computed: never worth storing."""
        return self.loads == 0 and self.work <= 2

    @property
    def cheap(self) -> bool:
        """Computing it again costs no more than writing it to memory and reading it back."""
        return self.loads <= 2 and self.work <= 4

    def light(self, places: int) -> bool:
        """Computing it anew at each of so many places costs less than keeping it, in arrays beyond the second-level
        cache: an element that is written there and read again takes as long as some 100 flops of vector code, and 16 in
        that cache, where this may cost up to twice as long."""
        return not self.heavy and self.loads <= _MOST_LOADS and self.work * (places - 1) <= _MOST_REPEATED


def _is_half_power(op: ir.Prim) -> bool:
    """Is this a power that is a root and a division?"""
    return op.name == "pow" and isinstance(op.args[1], ir.Const) and op.args[1].value in ir.HALF_POWERS


def cost_of(block: Block) -> Cost:
    """The cost of one evaluation of a body."""
    cost = Cost()
    _add(block, cost)
    return cost


def _add(block: Block, cost: Cost) -> None:
    for let in block.statements:
        op = let.op
        kind = op.__class__
        if let.outs and let.outs[0].type == PYINT and kind is not ir.Load:
            continue  # index arithmetic
        if isinstance(op, ir.Prim):
            name = op.name
            scale = 4 if is_complex(dtype_of(op.args[-1])) else 1
            dear = name in _ELEMENTARY or exact_loops.is_loop(name)
            each = scale * (16 if _is_half_power(op) else 20 if dear else 8 if name in _DIVISIONS else 1)
            cost.work += each
            cost.heavy += each if each >= 8 else 0
        elif kind is ir.Load:
            cost.loads += 1
        elif isinstance(op, ir.If):
            _add(op.then, cost)
            _add(op.orelse, cost)
            cost.work += 1
        elif kind is ir.Cast or kind is ir.Dim:
            pass
        elif kind is ir.Check or kind is ir.Opaque:
            cost.work += 1
        else:
            cost.work += ENDLESS
            cost.heavy += ENDLESS
