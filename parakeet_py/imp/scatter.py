"""Scatter: combine values into elements whose indices are computed.

Two points may meet in one element, so the points are visited in order on one thread. As for a Map, a body with checks
is run twice, first for its checks alone: a scatter that fails has changed nothing.
"""

from __future__ import annotations

from parakeet_py.imp.builder import Lowering
from parakeet_py.imp.loops import axes_of, nest
from parakeet_py.imp.lower_map import check_then_store
from parakeet_py.imp.schedule import study
from parakeet_py.typed_ir.ir import Scatter, Var


def lower_scatter(lo: Lowering, outs: tuple[Var, ...], op: Scatter) -> None:
    found = study(op.body)
    axes = axes_of(op.indices, lo.operands(op.extents))
    target = lo.array(op.target)

    def point(storing: bool) -> None:
        keep, *indices, value = lo.lower_block(op.body)
        if not storing or (lo.hidden is not None and not lo.hidden(op.target)):
            return

        def update() -> None:
            old, new = op.combine.params
            lo.alias(old, lo.load(target, *indices))
            lo.alias(new, value)
            lo.store(target, indices, lo.lower_block(op.combine.body)[0])

        lo.when(keep, update)

    check_then_store(
        lo,
        found,
        lambda storing: nest(lo, axes, lambda: point(storing), "serial"),
        stores=True,
    )
