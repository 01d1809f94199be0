"""What is known about extents: which operand is the extent of an axis, and which extents are equal.

The shape of every array is a tuple of operands of the typed IR: those it was allocated, viewed or reshaped with, or a
variable bound by `Dim` for an array that came from outside. Two operands are known to be equal when they are the same
operand, when a `Check` that they are equal has passed, or when they are the same primitive of equal operands. Equality
is kept as a forest (union-find) whose roots are the names of classes. A fact holds for the statements that follow in
the same block: `mark` and `undo` bracket a block, so that what a branch or a loop body learned is forgotten after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parakeet_py.base.types import Array
from parakeet_py.typed_ir.ir import Const, Operand, Prim, Var

_COMMUTATIVE = frozenset({"add", "mul", "minimum", "maximum"})
_NUMBERED = frozenset({"add", "sub", "mul", "minimum", "maximum", "floordiv", "mod", "neg"})


class Shapes:
    """Facts about extents, collected in the order of lowering."""

    __slots__ = ("_dims", "_extents", "_numbers", "_parents", "_tests", "_trail")

    def __init__(self) -> None:
        self._extents: dict[Var, tuple[Operand, ...]] = {}
        self._dims: dict[tuple[Var, int], Operand] = {}
        self._parents: dict[Operand, Operand] = {}
        self._numbers: dict[tuple[str, tuple[Operand, ...]], Operand] = {}
        self._tests: dict[Var, tuple[Operand, Operand]] = {}
        self._trail: list[tuple[dict[Any, Any], Any]] = []

    def mark(self) -> int:
        """A point to come back to with `undo`."""
        return len(self._trail)

    def undo(self, mark: int) -> None:
        """Forget the equalities learned since `mark`."""
        trail = self._trail
        while len(trail) > mark:
            facts, key = trail.pop()
            del facts[key]

    def define(self, array: Var, extents: Sequence[Operand]) -> None:
        """`array` has been made with these extents."""
        self._extents[array] = tuple(extents)

    def extents(self, array: Var) -> tuple[Operand, ...] | None:
        """The extents an array was made with; None where it came from elsewhere."""
        return self._extents.get(array)

    def extent(self, array: Var, axis: int) -> Operand | None:
        """An operand that is the extent of an axis, if one is known."""
        known = self._extents.get(array)
        return known[axis] if known is not None else self._dims.get((array, axis))

    def learn_dim(self, array: Var, axis: int, out: Operand) -> None:
        """`out` is the extent of an axis."""
        known = self.extent(array, axis)
        if known is None:
            self._dims[array, axis] = out
            self._trail.append((self._dims, (array, axis)))
        else:
            self.unite(out, known)

    def learn_prim(self, out: Var, prim: Prim) -> None:
        """`out` has been bound to a primitive: remember equality tests, number arithmetic on extents."""
        name = prim.name
        if name == "eq":
            self._tests[out] = (prim.args[0], prim.args[1])
            return
        if name.endswith("_checked"):
            name = name[:-8]
        if name in _NUMBERED:
            args = tuple([self.find(arg) for arg in prim.args])
            known = self._numbers.get((name, args))
            if known is None and name in _COMMUTATIVE:
                known = self._numbers.get((name, args[::-1]))
            if known is not None:
                self.unite(out, known)
            else:
                self._numbers[name, args] = out
                self._trail.append((self._numbers, (name, args)))

    def learn_check(self, condition: Operand) -> None:
        """A check has passed: if it tested equality, its operands are equal from here on."""
        if isinstance(condition, Var) and condition in self._tests:
            self.unite(*self._tests[condition])

    def unite(self, left: Operand, right: Operand) -> None:
        left, right = self.find(left), self.find(right)
        if left == right:
            return
        if isinstance(left, Const):
            left, right = right, left
        self._parents[left] = right
        self._trail.append((self._parents, left))

    def find(self, operand: Operand) -> Operand:
        """The name of the class of an operand."""
        parents = self._parents
        while operand in parents:
            operand = parents[operand]
        return operand

    def same(self, left: Operand, right: Operand) -> bool:
        """Whether two extents are known to be equal."""
        if left is right:
            return True
        left, right = self.find(left), self.find(right)
        if isinstance(left, Const) and isinstance(right, Const):
            return left.value == right.value
        return left is right

    def spans(self, array: Var, extents: Sequence[Operand]) -> bool:
        """Whether `array` is known to have exactly these extents."""
        rank = array.type.rank if isinstance(array.type, Array) else -1
        if rank != len(extents):
            return False
        for axis, extent in enumerate(extents):
            known = self.extent(array, axis)
            if known is None or not self.same(known, extent):
                return False
        return True
