"""Matrix products in parts: rows, columns, or tiles of the result, as views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parakeet_py.base.types import PYINT, Array
from parakeet_py.hybrid.partition.access import Access, Touched
from parakeet_py.hybrid.partition.division import Across, Division
from parakeet_py.hybrid.partition.part_functions import standalone
from parakeet_py.typed_ir.ir import ONE, ZERO, Dim, Matmul, Var, ViewAxis
from parakeet_py.typed_ir.passes.analysis.linear import atom
from parakeet_py.typed_ir.writer import Writer

Cut = Mapping[int, int]  # of an array: its axes that are cut, and which axes of the result they are


def product(op: Matmul, axis: int, name: str) -> Division:
    """The rows or columns [lo, hi) of a product."""
    return _product(op, (axis,), name)


def tile(op: Matmul, name: str) -> Division | None:
    """The rows [lo, hi) and columns [first, last) of a product of two matrices; None if one of them is a vector."""
    return _product(op, (0, 1), name) if _rank(op.out) == 2 else None


def _product(op: Matmul, axes: Sequence[int], name: str) -> Division:
    free = tuple(dict.fromkeys((op.out, op.left, op.right)))
    bounds = {axis: (Var("lo", PYINT), Var("hi", PYINT)) for axis in axes}
    indices = {axis: Var("i", PYINT) for axis in axes}
    w = Writer()
    counts = {axis: w.prim("sub", hi, lo, type_=PYINT) for axis, (lo, hi) in bounds.items()}
    columns = _rank(op.out) - 1 if _rank(op.right) == 2 else None
    of_left: Cut = {0: 0} if _rank(op.left) == 2 and 0 in axes else {}
    of_right: Cut = {1: columns} if columns is not None and columns in axes else {}
    of_out: Cut = {axis: axis for axis in axes}

    def some(array: Var, cut: Cut) -> Var:
        """The ranges of some axes of an array."""
        if not cut:
            return array
        rank = _rank(array)
        starts = [bounds[cut[a]][0] if a in cut else ZERO for a in range(rank)]
        extents = [counts[cut[a]] if a in cut else w.dim(array, a) for a in range(rank)]
        assert isinstance(array.type, Array)
        layout = "A"
        if array.type.layout in "CS":  # lines stay lines
            layout = "C" if array.type.layout == "C" and [*cut] == [0] else "S"
        return w.view(array, starts, [ViewAxis(a, extents[a], ONE) for a in range(rank)], layout)

    left, right = some(op.left, of_left), some(op.right, of_right)
    w.let(Matmul(some(op.out, of_out), left, right))
    part = standalone(name, (*(bound for axis in axes for bound in bounds[axis]), *free), w.block())

    def access(array: Var, cut: Cut) -> Access:
        return Access(array, tuple(atom(indices[cut[a]]) if a in cut else None for a in range(_rank(array))))

    touched = Touched.of((access(op.left, of_left), access(op.right, of_right)), (access(op.out, of_out),))
    first, *second = axes
    across = Across(Dim(op.out, second[0]), indices[second[0]]) if second else None
    return Division(
        op, first, Dim(op.out, first), indices[first], touched, "concatenate", free, part, across=across, rounds=True
    )


def _rank(array: Var) -> int:
    assert isinstance(array.type, Array)
    return array.type.rank
