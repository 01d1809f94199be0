"""Stores that give a whole new array its value become a new value (array SSA, after Knobe and Sarkar).

    t = alloc (n); map i < n: t[i] := e        t = map i < n: yield e
    t = map ...;   map i < n: t[i] := f(t[i])  t2 = map i < n: yield f(t[i]), and t2 stands for t from there on

`out = np.empty(n); out[:] = ...` and `t += c` on a temporary then fuse like any other `Map`, and a fill that is wholly
overwritten is dead. It is done where the array was made in the same block as the storing `Map`, no other descriptor of
its memory exists (or none has been made so far: until then, only its elements have been used), the `Map` covers it
point by point, and reads of it in the `Map` are of the same point.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Function, Let, Op, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.rewrite import NOWHERE, Rewriter, free_in_op


def stores_to_values(function: Function) -> Function:
    """Turn `Map`s that overwrite a whole local array into `Map`s that make it."""
    return _Renamer(function).function(function)


class _Renamer(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.shared = Aliases(function).shared()
        self.owned: dict[Var, tuple[Operand, ...]] = {}  # arrays made in the current block -> their extents
        self.unviewed: set[Var] = set()  # those among them of which only elements have been used

    def block(self, block: Block) -> Block:
        outer = self.owned, self.unviewed
        self.owned, self.unviewed = {}, set()
        new = super().block(block)
        self.owned, self.unviewed = outer
        return new

    def statement(self, let: Let) -> Sequence[Let] | None:
        new = self.descend(let)
        made = new[0] if new else let
        targets = self.covered(made) if isinstance(made.op, ir.Map) else []
        if targets:
            made = self.yielding(made, targets)
            new = (made,)
        if self.unviewed:
            self.unviewed.difference_update(_as_wholes(made.op))
        extents = _extents(made.op)
        if extents is not None:
            if isinstance(made.op, ir.Alloc):
                self.unviewed.update(made.outs)
            for out in made.outs:
                if isinstance(out.type, Array) and out.type.layout == "C":
                    self.owned[out] = extents
        return new

    def covered(self, let: Let) -> list[tuple[Var, Let]]:
        """The arrays a `Map` overwrites point by point, each with the `Store` that does."""
        op = let.op
        assert isinstance(op, ir.Map)
        found = []
        for position, inner in enumerate(op.body.statements):
            store = inner.op
            if (
                isinstance(store, ir.Store)
                and store.indices == op.indices
                and self.owned.get(store.array) == op.extents
                and (store.array not in self.shared or store.array in self.unviewed)
                and self.only_here(op, position, store.array)
            ):
                found.append((store.array, inner))
        return found

    def only_here(self, op: ir.Map, position: int, array: Var) -> bool:
        """Is the array used in the `Map` only by reads of its own point, before the store?"""
        for later, let in enumerate(op.body.statements):
            if later == position or array not in free_in_op(let.op):
                continue
            if later > position:
                return False
            for inner in ir.walk(Block((let,))):
                if isinstance(inner.op, ir.Load) and inner.op.array is array:
                    if inner.op.indices != op.indices:
                        return False
                elif (isinstance(inner.op, ir.Store) and inner.op.array is array) or array in ir.operands_of(inner.op):
                    return False
        return array not in op.body.results

    def yielding(self, let: Let, targets: list[tuple[Var, Let]]) -> Let:
        """The `Map` with the stored values as further results, which replace the arrays from here on."""
        op = let.op
        assert isinstance(op, ir.Map)
        dropped = {id(store) for _, store in targets}
        statements = tuple([inner for inner in op.body.statements if id(inner) not in dropped])
        values: list[Operand] = []
        outs = list(let.outs)
        for array, store in targets:
            assert isinstance(store.op, ir.Store) and isinstance(array.type, Array)
            values.append(store.op.value)
            out = Var(array.name, Array(array.type.dtype, array.type.rank, "C"))
            outs.append(out)
            self.replacement[array] = out
            if array in self.shared:
                self.shared.add(out)
            if array in self.unviewed:
                self.unviewed.add(out)
            for old in [key for key, value in self.replacement.items() if value is array]:
                self.replacement[old] = out
        body = Block(statements, (*op.body.results, *values))
        return Let(tuple(outs), ir.Map(op.extents, op.indices, body), let.pos)


def _as_wholes(op: Op) -> set[Var]:
    """The variables that an operator uses other than by their elements and extents."""
    found: set[Var] = set()
    statements = [Let((), op, NOWHERE)]
    while statements:
        one = statements.pop().op
        operands = set(ir.operands_of(one))
        if isinstance(one, ir.Load | ir.Store | ir.Dim):
            operands.discard(one.array)
        found.update(operand for operand in operands if isinstance(operand, Var))
        for block in ir.blocks_of(one):
            found.update(result for result in block.results if isinstance(result, Var))
            statements += block.statements
    return found


def _extents(op: Op) -> tuple[Operand, ...] | None:
    match op:
        case ir.Alloc(extents) | ir.Map(extents=extents) | ir.Reduce(extents=extents) | ir.Scan(extents=extents):
            return extents
        case _:
            return None
