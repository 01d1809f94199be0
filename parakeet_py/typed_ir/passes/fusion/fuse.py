"""Fusion to a fixed point: rounds of array SSA, vertical and horizontal fusion, each cleaned up after.

One round fuses chains of any length. Merging operators brings reads of one array together, which makes its producer
fusible in the next round; programs settle in two or three. The number of rounds is bounded, so that time stays linear
in the size of the program.
"""

from __future__ import annotations

from parakeet_py.typed_ir.ir import PARALLEL, Function
from parakeet_py.typed_ir.passes.fusion import horizontal, snapshots, vertical
from parakeet_py.typed_ir.passes.fusion.array_ssa import stores_to_values
from parakeet_py.typed_ir.passes.scalar.cse import eliminate_common_subexpressions
from parakeet_py.typed_ir.passes.scalar.dce import eliminate_dead_code

_MOST_ROUNDS = 6


def fuse(function: Function) -> Function:
    """Inline producers where they are read, merge operators over one index space, until nothing changes."""
    if not any(isinstance(let.op, PARALLEL) for let in function.statements()):
        return function
    for number in range(_MOST_ROUNDS):
        before = function
        function = stores_to_values(function)
        fused = vertical.fuse_vertically(function, deferring=number == 0)
        if fused is not function:
            function = eliminate_dead_code(eliminate_common_subexpressions(fused))
        if number < 2:  # what did not help then would be undone and done again
            function = snapshots.narrow_snapshots(function)
        merged = horizontal.fuse_horizontally(function)
        if merged is not function:
            function = eliminate_dead_code(eliminate_common_subexpressions(merged))
        if function is before and number:
            break
    return function
