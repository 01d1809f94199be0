"""How operators become GPU kernels: the skeletons, with the element functions spliced in.

`lower_for_gpu` lowers a typed function to Imp in which every operator that has a GPU skeleton is a `Grid` region, and
every other one the `Parallel` region it is on the CPU (outlining gives each of its grains a thread). The result is cut
into a host part and kernels.

| operator | skeleton |
|---|---|
| Map | a thread for every point, or for the neighbouring points that 16 bytes hold |
| Reduce | see `reductions` |
| Map and Reduce along the same rows | see `row_programs` |
| Scan | see `scans` |
| Compress | see `compress` |
| Scatter | see `scatter` |
| Matmul, and Maps of nothing else | see `products` |
| loops of Maps of rows that data chooses | see `column_loops` |
| Routine: sort, argsort | see `radix_sort`; all others have become calls of the host before |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from parakeet_py.base.types import INT64, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower.builder import Lowering, NeedsScratch, Outs
from parakeet_py.imp.lower.control import lower_for
from parakeet_py.imp.lower.function import lower_load, lower_unmanaged
from parakeet_py.imp.lower.loops import axes_of
from parakeet_py.imp.lower.map import check_then_store
from parakeet_py.imp.schedule.axis_merging import merge, merged_outs
from parakeet_py.imp.schedule.loop_order import Study, static_cost, study
from parakeet_py.imp.storage import reference_counts
from parakeet_py.imp.writer import ZERO
from parakeet_py.ptx.kernels.device_scalars import keep_scalars
from parakeet_py.ptx.kernels.guards import guarded
from parakeet_py.ptx.kernels.points_per_thread import at_points
from parakeet_py.ptx.kernels.regions import grid, unravel, walked
from parakeet_py.ptx.kernels.row_groups import Member, RowGroup, row_groups
from parakeet_py.ptx.outline import DeviceFunction, outline
from parakeet_py.ptx.skeletons.column_loops import column_loops, lower_columns
from parakeet_py.ptx.skeletons.compress import lower_compress
from parakeet_py.ptx.skeletons.products import batch_of, lower_batch, lower_matmul
from parakeet_py.ptx.skeletons.radix_sort import lower_sort
from parakeet_py.ptx.skeletons.reductions import lower_reduce
from parakeet_py.ptx.skeletons.reductions_by_axis import by_axis
from parakeet_py.ptx.skeletons.row_programs import Values, lower_rows
from parakeet_py.ptx.skeletons.scans import lower_scan
from parakeet_py.ptx.skeletons.scatter import lower_scatter
from parakeet_py.ptx.skeletons.vector_tiles import lower_lines
from parakeet_py.typed_ir import ir as typed
from parakeet_py.typed_ir.ir import Const, Operand, Var

VECTOR_BYTES = 16
MAX_WIDTH = 8  # points of a thread
MAX_UNROLLED = 256  # operations of all points of a thread together


def lower_for_gpu(function: typed.Function, tf32: bool = False) -> DeviceFunction:
    """Lower a typed function (after fusion) to a host part and GPU kernels; `tf32`: as for `lower_matmul`."""
    skeletons = dict(SKELETONS)
    skeletons[typed.Matmul] = partial(lower_matmul, tf32=tf32)
    loops = column_loops(function)
    if loops:
        skeletons[typed.For] = partial(lower_columns, lower_for, loops)
    groups = row_groups(function)
    if groups:
        _in_rows(skeletons, groups)
    device = keep_scalars(outline(lower_unmanaged(function, skeletons)))
    host = device.host
    body = reference_counts.manage(host.body, host.results)
    managed = imp.Function(host.name, host.params, body, host.results, host.failures, host.roots)
    return DeviceFunction(managed, guarded(body, device.kernels))


def _in_rows(skeletons: dict[type, Any], groups: Mapping[Var, RowGroup]) -> None:
    """Lower the operators of row programs together, where the last one of each stands."""
    values = Values()

    def lower(usual: Callable[..., None], lo: Lowering, outs: tuple[Var, ...], op: Any) -> None:
        group = groups.get(outs[0]) if outs and not lo.in_region else None
        if group is None:
            usual(lo, outs, op)
        elif outs[0] == group.last:
            lower_rows(lo, group, values, _apart)

    def load(lo: Lowering, outs: tuple[Var, ...], op: typed.Load) -> None:
        if not values.load(lo, outs, op):
            lower_load(lo, outs, op)

    for kind in (typed.Map, typed.Reduce):
        skeletons[kind] = partial(lower, skeletons[kind])
    skeletons[typed.Load] = load


def _apart(lo: Lowering, member: Member, arrays: Outs) -> None:
    """One operator of a row program, as a kernel of its own."""
    op, found = member.op, study(member.op)
    if isinstance(op, typed.Reduce):
        by_axis(lo, arrays, op, found)
    else:
        _space(lo, op, lo.operands(op.extents), arrays, found)


# ---- Map -------------------------------------------------------------------------------------------------------------


def lower_map(lo: Lowering, outs: tuple[Var, ...], op: typed.Map) -> None:
    if lo.in_region:
        _cpu_map(lo, outs, op)
        return
    batch = batch_of(op)
    if batch is not None:
        lower_batch(lo, op, batch, lambda: _points(lo, outs, op))
        return
    _points(lo, outs, op)


def _points(lo: Lowering, outs: tuple[Var, ...], op: typed.Map) -> None:
    """A map as points of its space."""
    extents = lo.operands(op.extents)
    arrays = lo.new_outs(outs, extents)
    found = study(op)
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
    from parakeet_py.imp.lower.map import lower_map as lower_in_region

    lower_in_region(lo, outs, op)


def _space(lo: Lowering, op: typed.Map, extents: tuple[Operand, ...], arrays: Outs, found: Study) -> None:
    space = axes_of(op.indices, extents)
    merged = lo.merged
    (axes,) = merge(lo, found, space)
    outs = merged_outs(lo, arrays, space, axes)

    def store(values: Sequence[Operand]) -> None:
        shaped = [None if out is None else lo.shaped.get(out, out) for out in outs]
        lo.store_outs(shaped, [lo.operand(axis.index) for axis in axes], values)

    def at(places: Sequence[Callable[[], None]]) -> None:
        at_points(lo, found, op.body, places, store)

    lines = walked(lo, axes)
    if len(lines) > 1:
        try:
            lower_lines(lo, found, lines, axes, outs, at)
        finally:
            lo.merged = merged
        return
    points = lo.product(axis.extent for axis in axes)
    width = _width(op, found, arrays) if len(lines) == 1 else 1

    def point(number: Operand) -> None:
        at([lambda: unravel(lo, lines, number)])

    def some(thread: Var) -> None:
        start = lo.multiply(thread, Const(width, INT64))
        stop = lo.add(start, Const(width, INT64))

        def all_of_them() -> None:
            numbers = [lo.add(start, Const(position, INT64)) for position in range(width)]
            at([partial(unravel, lo, lines, number) for number in numbers])

        def rest() -> None:
            number = lo.index("k")
            lo.loop(number, start, points, lambda: point(number), "vector")  # not unrolled

        lo.when(lo.compare("le", stop, points), all_of_them, rest)

    try:
        if width == 1:
            grid(lo, points, "map", point)
        else:
            grid(lo, lo.ceil_div(points, Const(width, INT64)), "map", some)
    finally:
        lo.merged = merged


def _width(op: typed.Map, found: Study, arrays: Outs) -> int:
    """Neighbouring points of a thread: as many elements as 16 bytes hold, which one instruction then loads."""
    if not found.simple or found.has_check:
        return 1
    touched = [access.array for access in found.accesses] + [array for array in arrays if array is not None]
    size = max((itemsize(typed.dtype_of(array)) for array in touched), default=16)
    width = min(VECTOR_BYTES // size, MAX_WIDTH)
    return width if width * static_cost(op.body) <= MAX_UNROLLED else 1


def _host_loops(lo: Lowering, op: typed.Map, extents: tuple[Operand, ...], arrays: Outs) -> None:
    """The points one after the other, the operators inside as regions: for bodies that need memory of their own."""

    def nest(position: int) -> None:
        if position == len(extents):
            values = lo.lower_block(op.body)
            lo.store_outs(arrays, lo.operands(op.indices), values)
            return
        lo.loop(lo.bind(op.indices[position]), ZERO, extents[position], lambda: nest(position + 1))

    nest(0)


SKELETONS: dict[type, Callable[[Lowering, tuple[Var, ...], Any], None]] = {
    typed.Map: lower_map,
    typed.Reduce: lower_reduce,
    typed.Scan: lower_scan,
    typed.Compress: lower_compress,
    typed.Scatter: lower_scatter,
    typed.Matmul: lower_matmul,
    typed.Routine: lower_sort,
}
