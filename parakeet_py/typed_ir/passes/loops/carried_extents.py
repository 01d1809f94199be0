"""Arrays that a loop hands on have equal extents in every turn, if they begin so and end every turn so.

    while len(z):                        # z and c have one length when the loop begins,
        z = z * z + c                    # so nothing has to ask here whether they broadcast,
        kept = abs(z) < 2
        z, c = z[kept], c[kept]          # as selections by one mask have one length again

By induction: the axes of the loop's arrays are put into classes by the extents that they begin with. An axis whose
array ends the turn with another extent than the first of its class, if all classes are as assumed, leaves the class;
until none does. What is left holds in every iteration, and `Dim`s of a class become one.

Extents are compared as operands: those that operators and views are made with, `Dim`s of the same array, on both sides
of a branch. Which lengths are equal beyond that has been found before (`masks.equal_counts`, `simplify`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.base.types import PYINT, Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Function, Let, Operand, Var
from parakeet_py.typed_ir.passes.fusion.masks import equal_counts
from parakeet_py.typed_ir.rewrite import NOWHERE, Rewriter

Axis = tuple[Var, int]


def share_extents(function: Function) -> Function:
    """Let axes of a loop's arrays that are equal in every iteration have one extent."""
    loops = (let.op for let in function.statements() if isinstance(let.op, ir.For | ir.While))
    if not any(sum(isinstance(param.type, Array) for param in op.params) > 1 for op in loops):
        return function
    return _Sharer(function).function(function)


class _Sharer(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.extents: dict[Var, tuple[Operand, ...]] = {}
        self.dims: dict[Var, Axis] = {}  # the variables that are extents of arrays
        self.branches: dict[Var, tuple[ir.If, int]] = {}
        counts = equal_counts(function)
        for let in function.statements():
            op = let.op
            match op:
                case ir.Dim(array, axis):
                    self.dims[let.outs[0]] = array, axis
                case ir.AnyView() | ir.Alloc() | ir.Map() | ir.Scan() | ir.Reduce():
                    self.extents |= dict.fromkeys(let.outs, op.extents)
                case ir.Compress():
                    count = counts.get(let.outs[0], let.outs[0])
                    self.extents |= dict.fromkeys(let.outs[1:], (count,))
                case ir.If():
                    self.branches |= {out: (op, place) for place, out in enumerate(let.outs)}

    # ---- comparing -----------------------------------------------------------------------------------------------

    def key(self, array: Operand, axis: int, assumed: dict[Axis, Axis]) -> object:
        """What stands for an extent: the operand, or the axis of an array that is not made of known extents."""
        while isinstance(array, Var):
            if (array, axis) in assumed:
                return assumed[array, axis]
            extents = self.extents.get(array)
            if extents is None:
                return array, axis
            extent = extents[axis]
            if not isinstance(extent, Var) or extent not in self.dims:
                return extent
            array, axis = self.dims[extent]
        raise AssertionError(array)

    def are_equal(self, one: Operand, other: Operand, axes: tuple[int, int], assumed: dict[Axis, Axis]) -> bool:
        if self.key(one, axes[0], assumed) == self.key(other, axes[1], assumed):
            return True
        sides = [self.branches.get(array) if isinstance(array, Var) else None for array in (one, other)]
        if sides[0] is None or sides[1] is None or sides[0][0] is not sides[1][0]:
            return False
        op, (first, second) = sides[0][0], (sides[0][1], sides[1][1])
        return all(
            self.are_equal(block.results[first], block.results[second], axes, assumed) for block in (op.then, op.orelse)
        )

    # ---- loops ---------------------------------------------------------------------------------------------------

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if not isinstance(op, ir.For | ir.While):
            if isinstance(op, ir.Dim) and let.outs[0] in self.replacement:
                return ()
            return self.descend(let)
        heads = self.classes(op)
        if not heads:
            return self.descend(let)
        wanted = {(head, axis) for head, axis in heads.values()}
        blocks = [op.body] if isinstance(op, ir.For) else [op.condition, op.body]
        made: list[Block] = []
        for block in blocks:  # each has its own variables for the extents
            own = {one: Var("n", PYINT) for one in wanted}
            self.dims |= {name: one for one, name in own.items()}
            for inner in ir.walk(block):
                if isinstance(inner.op, ir.Dim) and (axis := heads.get((inner.op.array, inner.op.axis))) is not None:
                    self.replacement[inner.outs[0]] = own[axis]
            body = self.block(block)
            asked = [Let((name,), ir.Dim(*one), NOWHERE) for one, name in own.items()]
            pos = block.statements[0].pos if block.statements else let.pos
            made.append(Block((*(replace(one, pos=pos) for one in asked), *body.statements), body.results))
        inits = self.operands(op.inits)
        if isinstance(op, ir.For):
            bounds = [self.operand(one) for one in (op.start, op.stop, op.step)]
            start, stop, step = bounds
            new: ir.Op = replace(op, start=start, stop=stop, step=step, inits=inits, body=made[0])
        else:
            new = replace(op, inits=inits, condition=made[0], body=made[1])
        return (Let(let.outs, new, let.pos),)

    def classes(self, op: ir.For | ir.While) -> dict[Axis, Axis]:
        """The axes that share their extent with others, each with the first one of its class."""
        results = dict(zip(op.params, op.body.results[op.stoppable :], strict=True))
        inits = dict(zip(op.params, op.inits, strict=True))
        arrays = [param for param in op.params if isinstance(param.type, Array)]
        axes = [(param, axis) for param in arrays for axis in range(_rank(param))]
        begins: dict[object, Axis] = {}
        assumed = {one: begins.setdefault(self.key(inits[one[0]], one[1], {}), one) for one in axes}
        while True:
            left = [
                one
                for one, head in assumed.items()
                if one != head and not self.are_equal(results[one[0]], results[head[0]], (one[1], head[1]), assumed)
            ]
            if not left:
                break
            assumed |= {one: one for one in left}
        shared = {head for one, head in assumed.items() if one != head}
        return {one: head for one, head in assumed.items() if head in shared}


def _rank(array: Var) -> int:
    assert isinstance(array.type, Array)
    return array.type.rank
