"""In which order of axes NumPy lays out new arrays.

NumPy makes the result of an elementwise operation in the order of its operands ("K" order): a Fortran array times two
is a Fortran array, and `x.transpose(1, 0, 2) + 1` has its second axis outermost in memory. What is known of an array's
strides is therefore kept as its `order`: the axes from the slowest to the fastest, or the empty tuple for C order. All
new memory is C-contiguous for the typed IR; an array in another order is made with its axes permuted and then viewed
transposed.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import PYINT
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import Builder
from parakeet_py.typed_ir.specialize.values import ArrayV

Order = tuple[int, ...]

_ONE = ir.Const(1, PYINT)


def canonical(order: Sequence[int]) -> Order:
    """The order itself, empty if it is C order."""
    return () if list(order) == sorted(order) else tuple(order)


def fortran(rank: int) -> Order:
    """The first axis is the fastest."""
    return canonical(range(rank)[::-1])


def inverse(order: Sequence[int]) -> Order:
    """Where each axis stands in the order."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def view_order(base: ArrayV, sources: Sequence[int | None]) -> Order:
    """The order of a view whose axes are these axes of its base (or new ones, which stay where they are)."""
    places = inverse(base.axes_by_stride)
    known = [axis for axis, source in enumerate(sources) if source is not None and base.extents[source] != _ONE]
    by_stride = iter(sorted(known, key=lambda axis: places[sources[axis]]))  # type: ignore[index]
    return canonical([next(by_stride) if axis in known else axis for axis in range(len(sources))])


def merged_order(b: Builder, arrays: Sequence[ArrayV], rank: int) -> Order:
    """The order of what is made elementwise of arrays that are broadcast to `rank` axes.

    The rule of NumPy's iterator: an insertion sort of the axes, in which two axes change places if the first operand
    that tells them apart has them the other way round and no other operand disagrees.
    """
    if not any(array.order for array in arrays):
        return ()
    return sorted_axes([stride_ranks(b, array, rank) for array in arrays], rank)


def sorted_axes(operands: Sequence[Sequence[int]], rank: int, *, joined: bool = False) -> Order:
    """That order, of operands given by numbers ordered as their strides are (see `stride_ranks`).

    Axes of extent 1 tell nothing; where they end up depends on where the sort begins: with the fastest axis in the
    iterator, with the slowest where arrays are `joined` to one (np.concatenate).
    """
    order = list(range(rank))[:: 1 if joined else -1]
    for first in range(1, rank):
        axis, place = order[first], first
        for other in reversed(range(first)):
            faster, slower = (axis, order[other]) if joined else (order[other], axis)
            swap = _should_swap(operands, faster, slower)
            if swap:
                place = other
            elif swap is False:
                break
        order.insert(place, order.pop(first))
    return canonical(order if joined else order[::-1])


def stride_ranks(b: Builder, array: ArrayV, rank: int) -> list[int]:
    """Numbers ordered as the strides of the broadcast axes are, 0 for those that are not known to have one."""
    places = inverse(array.axes_by_stride)
    own = [
        0 if _is_still(b, array, axis) or _is_single(b, extent) else array.rank - places[axis]
        for axis, extent in enumerate(array.extents)
    ]
    return [0] * (rank - array.rank) + own


def copied_order(b: Builder, array: ArrayV) -> Order:
    """The order of what is copied in the order of an array: axes along which memory does not move are the fastest."""
    return canonical(sorted(array.axes_by_stride, key=lambda axis: _is_still(b, array, axis)))


def _is_still(b: Builder, array: ArrayV, axis: int) -> bool:
    """Has broadcasting made this axis, also outside of the function, or may it have?"""
    if array.extents[axis] == _ONE:
        return False
    at: int | None = axis
    var: ir.Operand = array.var
    while isinstance(var, ir.Var) and isinstance(
        view := b.definition.get(var), ir.View
    ):  # also before it was sliced or transposed
        if at is None or view.axes[at].source is None:
            return True
        step = view.axes[at].step
        made = b.definition.get(step) if isinstance(step, ir.Var) else None
        if step == ir.ZERO or (isinstance(made, ir.Prim) and made.name == "select" and ir.ZERO in made.args):
            return True
        at, var = view.axes[at].source, view.base
    return isinstance(var, ir.Var) and at in b.still.get(var, ())


def _is_single(b: Builder, extent: ir.Operand) -> bool:
    """Is this 1, or min(n, 1) as for `x[:1]`?"""
    match extent:
        case ir.Var() if isinstance(op := b.definition.get(extent), ir.Prim) and op.name == "minimum":
            return _ONE in op.args
        case _:
            return extent == _ONE


def _should_swap(operands: Sequence[Sequence[int]], faster: int, slower: int) -> bool | None:
    """Must two axes change places? None if no operand distinguishes them."""
    votes = [strides[faster] > strides[slower] for strides in operands if strides[faster] and strides[slower]]
    return all(votes) if votes else None
