"""What parts of a region take besides windows of what is there: copies of a target; which rows windows follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from parakeet_py.cluster.arrays import LazyArray, Root
from parakeet_py.cluster.grid import Space
from parakeet_py.cluster.worker.buffers import ViewSlot, WindowSpec
from parakeet_py.hybrid.partition.access import Access
from parakeet_py.hybrid.partition.block_parts import private_identity
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Var


class Run(Protocol):
    """A region on its way to tasks (see `region_tasks`): its arrays, what it reads and writes, and how it is cut."""

    region: Region
    arrays: dict[Var, LazyArray]
    space: Space
    reads: list[tuple[Access, LazyArray]]
    writes: list[tuple[Access, LazyArray]]
    cut: tuple[int, ...]
    private: bool


def copy_of_target(run: Run, number: int) -> tuple[Var, ViewSlot, WindowSpec] | None:
    """What blocks have a copy of, and the window `number` that it is in."""
    if not run.private:
        return None
    op = run.region.op
    assert isinstance(op, ir.Scatter)
    target, identity = run.arrays[op.target], private_identity(op.combine)
    assert identity is not None
    zeros, axes = (0,) * len(target.shape), tuple((axis, 1) for axis in range(len(target.shape)))
    box = tuple((0, extent) for extent in target.shape)
    slot = ViewSlot(number, zeros, axes, target.shape, target.root.itemsize)
    return op.target, slot, WindowSpec(target.root.dtype, box, (), True, None, identity.value)


def rows_of(run: Run, roots: Sequence[Root]) -> tuple[tuple[int, int] | None, ...] | None:
    """See `Arguments.rows`."""
    op = run.region.op
    if 0 not in run.cut or not run.region.touched.traced:
        return None
    keeps = isinstance(op, ir.Reduce) and op.extents and run.cut == (0,)
    if not (isinstance(op, ir.Map) or keeps or run.private):
        return None
    found: list[tuple[int, int] | None] = []
    for root in roots:
        along = [
            next(iter(run.space.forms(access, array)), None)
            for access, array in (*run.reads, *run.writes)
            if array.root is root
        ]
        known = [form for form in along if form is not None and form.axis == 0 and form.factor == 1]
        follow = len(known) == len(along) > 0
        found.append((min(form.low for form in known), max(form.high for form in known)) if follow else None)
    return (*found, None) if run.private else tuple(found)
