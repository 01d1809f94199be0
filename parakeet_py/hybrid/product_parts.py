"""Matrix products in parts: rows or columns of the result, as views."""

from __future__ import annotations

from parakeet_py.hybrid.access import Access, Touched
from parakeet_py.hybrid.division import Division
from parakeet_py.hybrid.part_functions import standalone
from parakeet_py.typed_ir.ir import ONE, ZERO, Dim, Matmul, Var, ViewAxis
from parakeet_py.typed_ir.passes.linear import atom
from parakeet_py.typed_ir.types import PYINT, Array
from parakeet_py.typed_ir.writer import Writer


def product(op: Matmul, axis: int, name: str) -> Division:
    """The rows or columns [lo, hi) of a product."""
    free = tuple(dict.fromkeys((op.out, op.left, op.right)))
    lo, hi = Var("lo", PYINT), Var("hi", PYINT)
    w = Writer()
    count = w.prim("sub", hi, lo, type_=PYINT)
    row = axis == 0 and _rank(op.left) == 2

    def some(array: Var, which: int | None) -> Var:
        """The range of one axis of an array."""
        if which is None:
            return array
        rank = _rank(array)
        axes = [ViewAxis(a, count if a == which else w.dim(array, a), ONE) for a in range(rank)]
        assert isinstance(array.type, Array)
        layout = array.type.layout if array.type.layout == "C" and which == 0 else "A"
        return w.view(array, [lo if a == which else ZERO for a in range(rank)], axes, layout)

    left = some(op.left, 0 if row else None)
    right = some(op.right, None if row else _rank(op.right) - 1)
    w.let(Matmul(some(op.out, axis), left, right))
    part = standalone(name, (lo, hi, *free), w.block())
    index = Var("i", PYINT)

    def access(array: Var, which: int | None) -> Access:
        return Access(array, tuple(atom(index) if a == which else None for a in range(_rank(array))))

    reads = access(op.left, 0 if row else None), access(op.right, None if row else _rank(op.right) - 1)
    touched = Touched.of(reads, (access(op.out, axis),))
    return Division(op, axis, Dim(op.out, axis), index, touched, "concatenate", free, part)


def _rank(array: Var) -> int:
    assert isinstance(array.type, Array)
    return array.type.rank
