"""How operators become GPU kernels: the skeletons, with the element functions spliced in.

`lower_for_gpu` lowers a typed function to Imp in which every operator that has a GPU skeleton is a `Grid` region, and
every other one the `Parallel` region it is on the CPU (outlining gives each of its grains a thread). The result is cut
into a host part and kernels.

| operator | skeleton |
|---|---|
| Map | a thread for every point (several neighbouring ones for narrow types); axes are numbered by merged index |
| Reduce | see `reductions` |
| Scan, Compress | see `scans` |
| Scatter | see `scatter` |
| Matmul | a thread for every element of the result |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parakeet_py.imp import ir as imp
from parakeet_py.imp import storage
from parakeet_py.imp.builder import Lowering, NeedsScratch, Outs
from parakeet_py.imp.loops import axes_of
from parakeet_py.imp.lower import lower_unmanaged
from parakeet_py.imp.lower_map import check_then_store
from parakeet_py.imp.merge import merge, merged_outs
from parakeet_py.imp.schedule import Study, study
from parakeet_py.imp.writer import ZERO
from parakeet_py.ptx.outline import DeviceFunction, outline
from parakeet_py.ptx.reductions import lower_reduce
from parakeet_py.ptx.regions import grid, unravel
from parakeet_py.ptx.scans import lower_compress, lower_scan
from parakeet_py.ptx.scatter import lower_scatter
from parakeet_py.typed_ir import ir as typed
from parakeet_py.typed_ir.ir import Const, Operand, Prim, Var
from parakeet_py.typed_ir.types import Array, Scalar, is_complex


def lower_for_gpu(function: typed.Function) -> DeviceFunction:
    """Lower a typed function (after fusion) to a host part and GPU kernels."""
    device = outline(lower_unmanaged(function, SKELETONS))
    host = device.host
    body = storage.manage(host.body, host.results)
    managed = imp.Function(host.name, host.params, body, host.results, host.failures, host.roots)
    return DeviceFunction(managed, device.kernels)


# ---- Map -------------------------------------------------------------------------------------------------------------


def lower_map(lo: Lowering, outs: tuple[Var, ...], op: typed.Map) -> None:
    if lo.in_region:
        _cpu_map(lo, outs, op)
        return
    extents = lo.operands(op.extents)
    arrays = lo.new_outs(outs, extents)
    found = study(op.body)
    if found.has_opaque:
        _host_loops(lo, op, extents, arrays)
        return
    depth, length = len(lo.stack), len(lo.sink)
    try:
        check_then_store(
            lo,
            found,
            lambda storing: _space(lo, op, extents, arrays if storing else [None] * len(arrays), found),
            stores=found.visible_stores(),
        )
    except NeedsScratch:
        while len(lo.stack) > depth:
            lo.pop()
        del lo.sink[length:]
        lo.in_region, lo.order = False, None
        _host_loops(lo, op, extents, arrays)


def _cpu_map(lo: Lowering, outs: tuple[Var, ...], op: typed.Map) -> None:
    from parakeet_py.imp.lower_map import lower_map as lower_in_region

    lower_in_region(lo, outs, op)


def _space(lo: Lowering, op: typed.Map, extents: tuple[Operand, ...], arrays: Outs, found: Study) -> None:
    space = axes_of(op.indices, extents)
    merged = lo.merged
    (axes,) = merge(lo, found, space)
    outs = merged_outs(lo, arrays, space, axes)

    def point(number: Var) -> None:
        unravel(lo, axes, number)
        values = lo.lower_block(op.body)
        lo.store_outs(outs, [lo.operand(axis.index) for axis in axes], values)

    try:
        grid(lo, lo.product(axis.extent for axis in axes), "map", point)
    finally:
        lo.merged = merged


def _host_loops(lo: Lowering, op: typed.Map, extents: tuple[Operand, ...], arrays: Outs) -> None:
    """The points one after the other, the operators inside as regions: for bodies that need memory of their own."""

    def nest(position: int) -> None:
        if position == len(extents):
            values = lo.lower_block(op.body)
            lo.store_outs(arrays, lo.operands(op.indices), values)
            return
        lo.loop(lo.bind(op.indices[position]), ZERO, extents[position], lambda: nest(position + 1))

    nest(0)


# ---- Matmul ----------------------------------------------------------------------------------------------------------


def lower_matmul(lo: Lowering, outs: tuple[Var, ...], op: typed.Matmul) -> None:
    if lo.hidden is not None and not lo.hidden(op.out):
        return
    out, left, right = lo.array(op.out), lo.array(op.left), lo.array(op.right)
    assert isinstance(left.type, Array) and isinstance(right.type, Array) and isinstance(out.type, Array)
    rank, dtype = out.type.rank, out.type.dtype
    inner = lo.extent(left, left.type.rank - 1)
    extents = [lo.extent(out, axis) for axis in range(rank)]
    rows = left.type.rank == 2
    columns = right.type.rank == 2

    def element(*at: Operand) -> None:
        row = at[0] if rows else None
        column = at[-1] if columns else None
        zero = Const(0j if is_complex(dtype) else 0.0, Scalar(dtype))
        total = lo.declare("acc", zero.type, zero)
        k = lo.index("k")

        def step() -> None:
            first = lo.load(left, *((row, k) if row is not None else (k,)))
            second = lo.load(right, *((k, column) if column is not None else (k,)))
            product = lo.let("t", zero.type, Prim("mul", (first, second)))
            lo.write(total, lo.let("acc", zero.type, Prim("add", (lo.read(total), product))))

        lo.loop(k, ZERO, inner, step)
        lo.store(out, at, lo.read(total))

    if lo.in_region:
        indices = [lo.index("i") for _ in extents]

        def nest(position: int) -> None:
            if position == rank:
                element(*indices)
            else:
                lo.loop(indices[position], ZERO, extents[position], lambda: nest(position + 1))

        nest(0)
        return

    def point(number: Var) -> None:
        if rank == 1:
            element(number)
            return
        row = lo.floor_div(number, extents[1])
        element(row, lo.subtract(number, lo.multiply(row, extents[1])))

    grid(lo, lo.product(extents), "matmul", point)


SKELETONS: dict[type, Callable[[Lowering, tuple[Var, ...], Any], None]] = {
    typed.Map: lower_map,
    typed.Reduce: lower_reduce,
    typed.Scan: lower_scan,
    typed.Compress: lower_compress,
    typed.Scatter: lower_scatter,
    typed.Matmul: lower_matmul,
}
