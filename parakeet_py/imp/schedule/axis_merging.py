"""Merging adjacent axes of an index space: one long loop instead of a nest.

Two neighbouring axes can be one if every access of the body either mentions neither of their index variables, or both,
side by side and bare, in a C-contiguous array whose extent along the second is that of the index space; and nothing
else uses the variables. Then all these arrays are reshaped so that the two are one axis there too. A whole elementwise
operator on contiguous arrays becomes one flat loop in this way, a row-wise one a loop over rows and one along them.

`merge` notes in `Lowering.merged` which accesses (array and indices, as the typed IR writes them) are to be made
through which reshaped array and indices.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from parakeet_py.base.types import INT64, Array
from parakeet_py.imp.lower.builder import Lowering, Outs, Pattern
from parakeet_py.imp.lower.loops import Axis
from parakeet_py.imp.schedule.loop_order import Access, Study
from parakeet_py.imp.writer import array_type
from parakeet_py.typed_ir.ir import Operand, Reshape, Var

Runs = tuple[tuple[int, int], ...]  # (first axis, number of axes) of each run of axes that has become one


def merge(lo: Lowering, found: Study, *spaces: list[Axis]) -> tuple[list[Axis], ...]:
    """The spaces with neighbouring axes merged where that can be, each space in itself.

    Emits the reshaping and notes the accesses in `lo.merged` (which the caller resets after the body). Does nothing
    inside regions or other merged operators.
    """
    if lo.in_region or lo.merged:
        return spaces
    groups: dict[Var, tuple[Var, int]] = {}  # first variable of a group -> the merged variable, number of axes
    results = []
    for axes in spaces:
        merged: list[Axis] = []
        joined = [*_joined(lo, found, axes), False]
        start = 0
        for position, goes_on in enumerate(joined[: len(axes)]):
            if goes_on:
                continue
            group = axes[start : position + 1]
            start = position + 1
            if len(group) == 1:
                merged += group
                continue
            index = Var(group[-1].index.name, INT64)
            groups[group[0].index] = index, len(group)
            merged.append(Axis(index, lo.product(axis.extent for axis in group), group[-1].index))
        results.append(merged)
    if groups:
        lo.merged = {}  # a new one: that of the caller is put back after the body
        reshaped: dict[tuple[Var, Runs], Var] = {}
        for access in found.accesses:
            _note(lo, access, groups, reshaped)
    return tuple(results)


def merged_outs(lo: Lowering, arrays: Outs, before: Sequence[Axis], after: Sequence[Axis]) -> Outs:
    """New arrays over the space `before`, as arrays over the space `after`."""
    if len(before) == len(after):
        return arrays
    extents = [axis.extent for axis in after]
    return [None if array is None else _reshape(lo, array, extents) for array in arrays]


def _note(
    lo: Lowering, access: Access, groups: dict[Var, tuple[Var, int]], reshaped: dict[tuple[Var, Runs], Var]
) -> None:
    """Note how one access is made after merging."""
    runs, indices, place = [], [], 0
    while place < len(access.indices):
        index = access.indices[place]
        merged, length = groups.get(index, (index, 1)) if isinstance(index, Var) else (index, 1)
        runs.append((place, length))
        indices.append(merged)
        place += length
    if len(indices) == len(access.indices):
        return
    array = lo.array(access.array)
    key = array, tuple(runs)
    if key not in reshaped:
        extents = [lo.product(lo.extent(array, axis) for axis in range(first, first + n)) for first, n in runs]
        reshaped[key] = _reshape(lo, array, extents)
    pattern: Pattern = access.indices, reshaped[key], tuple(indices)
    known = lo.merged.setdefault(array, [])
    if pattern not in known:
        known.append(pattern)


def _reshape(lo: Lowering, array: Var, extents: Sequence[Operand]) -> Var:
    kind = array_type(array)
    shaped = lo.let(array.name, Array(kind.dtype, len(extents), "C"), Reshape(array, tuple(extents)))
    lo.shapes.define(shaped, extents)
    return shaped


def _joined(lo: Lowering, found: Study, axes: Sequence[Axis]) -> list[bool]:
    """For each pair of neighbouring axes, whether it can be merged."""
    joined = [
        first.index not in found.other_uses and second.index not in found.other_uses
        for first, second in itertools.pairwise(axes)
    ]
    if not any(joined):
        return joined
    for access in found.accesses:
        places: dict[Operand, int] = {}
        for place, index in enumerate(access.indices):
            if isinstance(index, Var):
                places[index] = -1 if index in places else place
        for pair, (first, second) in enumerate(itertools.pairwise(axes)):
            joined[pair] = joined[pair] and _side_by_side(lo, found, access, places, first, second)
    return joined


def _side_by_side(
    lo: Lowering, found: Study, access: Access, places: dict[Operand, int], first: Axis, second: Axis
) -> bool:
    left, right = places.get(first.index), places.get(second.index)
    if left is None and right is None:
        return True
    if left is None or right is None or left < 0 or right != left + 1 or access.array in found.inside:
        return False
    array = lo.array(access.array)
    if not isinstance(array.type, Array) or array.type.layout != "C":
        return False
    extent = lo.shapes.extent(array, right)
    return extent is not None and lo.shapes.same(extent, second.extent)
