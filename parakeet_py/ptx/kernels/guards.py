"""Which kernels may be launched when others before them may have failed.

The host launches kernels without waiting for those before. It learns of failures where it looks at an element, and
where Python goes on: when an operation is handed back, and at the end. Whatever may be launched between a kernel that
may fail and the next such place is *guarded*, see `codegen`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.imp import ir
from parakeet_py.ptx.outline import Kernel
from parakeet_py.typed_ir.ir import Load


def guarded(host: ir.Block, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """The kernels of a host part, those marked that may follow a failure that the host has not seen."""
    found: set[int] = set()
    _walk(host, kernels, False, found)
    return tuple(replace(kernel, guarded=number in found) for number, kernel in enumerate(kernels))


def _walk(block: ir.Block, kernels: Sequence[Kernel], unseen: bool, found: set[int]) -> bool:
    """Add what is launched while a failure may be `unseen`; gives whether one may be so behind the block."""
    for statement in block.statements:
        match statement:
            case ir.Launch(kernel):
                if unseen:
                    found.add(kernel)
                unseen |= kernels[kernel].checked
            case ir.Let(rhs=Load()) | ir.Opaque():
                unseen = False
            case ir.For() | ir.While():
                inside = ir.walk(ir.Block((statement,)))
                unseen |= any(isinstance(one, ir.Launch) and kernels[one.kernel].checked for one in inside)
                for inner in ir.blocks_of(statement):
                    _walk(inner, kernels, unseen, found)
            case _:
                behind = [_walk(inner, kernels, unseen, found) for inner in ir.blocks_of(statement)]
                unseen = any(behind) if behind else unseen
    return unseen
