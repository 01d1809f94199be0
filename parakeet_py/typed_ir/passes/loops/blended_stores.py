"""Stores of complex numbers under a condition become stores of a choice: what is computed, or what is there.

    if inside:                                 old = z[i]
        z[i] := z[i] * z[i] + c[i]     ->      new = old * old + c[i]
                                               z[i] := select inside, new, old

Vector code stores under a mask, but not both parts of complex numbers, which lie beside each other: the loop would be
left to scalar code and to the prediction of its branches. That is what escape-time fractals and Newton's method written
with masks come to (`z[m] = z[m] ** 2 + c[m]`).

Done in the body of a `Map` for branches of plain arithmetic, not much of it. What is written must be memory of this
function, as large as some whose element the `Map` reads at the same point in any case: then the position is within the
array, and no other point touches it. What is read may be of parameters, too, whose extents are the same by a check.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import Array, is_complex
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ZERO, Block, Function, If, Let, Load, Map, Operand, Store, Var, dtype_of
from parakeet_py.typed_ir.passes.fusion.cost import cost_of
from parakeet_py.typed_ir.rewrite import Rewriter
from parakeet_py.typed_ir.writer import Writer

_MOST_WORK = 40  # of a branch that is computed in any case

Position = tuple[tuple[Operand, ...], tuple[Operand, ...]]  # extents of an array, indices


def blend_stores(function: Function) -> Function:
    """Store complex elements of arrays in any case, where they are stored under a condition."""
    if not any(isinstance(let.op, If) and _stores_complex(let.op.then) for let in function.statements()):
        return function
    return _Blender(function).function(function)


def _stores_complex(block: Block) -> bool:
    return any(isinstance(let.op, Store) and is_complex(dtype_of(let.op.array)) for let in block.statements)


class _Blender(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.made: dict[Var, tuple[Operand, ...]] = {}  # the extents of arrays that the function makes
        self.given: dict[Var, list[Operand]] = {}  # and of its parameters
        self.equations: dict[Var, tuple[Operand, ...]] = {}
        self.equal: dict[Operand, Operand] = {}  # what checks above have found to be equal to another extent
        for let in function.statements():
            op = let.op
            if isinstance(op, Map | ir.Alloc):
                self.made.update(dict.fromkeys(let.outs, op.extents))
            elif isinstance(op, ir.Prim) and op.name == "eq":
                self.equations[let.outs[0]] = op.args
            elif isinstance(op, ir.Dim) and op.array in function.params and isinstance(op.array.type, Array):
                self.given.setdefault(op.array, [ZERO] * op.array.type.rank)[op.axis] = let.outs[0]
        self.read: set[Position] | None = None  # what the body of the `Map` around has read

    def position(self, op: Load | Store) -> Position | None:
        """The extents of an array, each by one name, and where in it."""
        extents = self.made.get(op.array, self.given.get(op.array) if isinstance(op, Load) else None)
        return None if extents is None else (tuple([self.equal.get(one, one) for one in extents]), op.indices)

    def block(self, block: Block) -> Block:
        above = self.equal
        self.equal = dict(above)
        new = super().block(block)
        self.equal = above
        return new

    def learn(self, condition: Operand) -> None:
        """A check has found two extents to be equal."""
        sides = self.equations.get(condition) if isinstance(condition, Var) else None
        if sides is not None:
            kept, other = (self.equal.get(one, one) for one in sides)
            self.equal.update({one: kept for one, name in self.equal.items() if name == other})
            self.equal[other] = kept

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.Check) and self.read is None:
            self.learn(op.condition)
        if isinstance(op, Load) and self.read is not None and op.array in self.made:
            position = self.position(op)
            assert position is not None
            self.read.add(position)
        if isinstance(op, If):
            return self.blended(op, let) if self.read is not None else self.descend(let)
        if not ir.blocks_of(op):
            return self.descend(let)
        around, self.read = self.read, set() if isinstance(op, Map) else None
        new = self.descend(let)
        self.read = around
        return new

    def blended(self, op: If, let: Let) -> Sequence[Let] | None:
        """The statements of a branch without the branch."""
        branch = op.then.statements
        if let.outs or op.orelse.statements or not (_stores_complex(op.then) and all(map(self.plain, branch))):
            return None
        cost = cost_of(Block(tuple([one for one in branch if not isinstance(one.op, Store)]), ()))
        if cost.heavy or cost.work > _MOST_WORK:
            return None
        writer = Writer(let.pos)
        for one in branch:
            if isinstance(one.op, Store):
                old = writer.load(one.op.array, *one.op.indices)
                new = writer.prim("select", op.condition, one.op.value, old)
                writer.store(one.op.array, one.op.indices, new)
            else:
                writer.statements.append(one)
        return writer.statements

    def plain(self, let: Let) -> bool:
        """Can a statement of a branch be executed in any case?"""
        op = let.op
        if isinstance(op, Load | Store):
            assert self.read is not None
            return self.position(op) in self.read
        return isinstance(op, ir.Cast) or (isinstance(op, ir.Prim) and op.name not in ir.CHECKED)
