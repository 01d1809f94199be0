"""Elements that a loop reads and writes again and again are handed from turn to turn (scalar promotion).

    for k in range(i + 1, j):                            best = t[i, j]
        t[i, j] = max(t[i, j], t[i, k] + t[k + 1, j])    for k in range(i + 1, j): best = max(best, ...)
                                                         t[i, j] = best

LLVM does so where the other accesses are to other arrays. Here the facts tell that they are to other elements of the
same array: in some axis, the indices differ in all turns. What is handed on may then be accumulated in any order, if
that is exact (`parallelize`).

Nothing in the loop may fail or leave for Python, since memory is what it was until the loop is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parakeet_py.base.types import PYBOOL, Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Op, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.analysis.linear import Linear
from parakeet_py.typed_ir.passes.scalar.integers import enter
from parakeet_py.typed_ir.passes.scalar.simplify import Simplifier
from parakeet_py.typed_ir.rewrite import substitute
from parakeet_py.typed_ir.writer import Writer

Element = tuple[Var, tuple[Operand, ...]]


def promote_elements(function: Function) -> Function:
    """Hand on the elements that loops read and write in every iteration."""
    if not any(isinstance(let.op, ir.For) and any(_elements(let.op)) for let in function.statements()):
        return function
    promoter = _Promoter(function)
    result = promoter.function(function)
    return result if promoter.promoted else function


def _elements(op: ir.For) -> Iterator[Element]:
    """The elements that every iteration stores, at the same place, after it has read them."""
    if op.stoppable or not isinstance(op.step, Const):
        return
    inside = {op.index, *op.params}
    for let in ir.walk(op.body):
        inside.update(let.outs)
        inside.update(ir.binders_of(let.op))
    read: set[Element] = set()
    for let in op.body.statements:
        match let.op:
            case ir.Load(Var() as array, indices):
                read.add((array, indices))
            case ir.Store(Var() as array, indices, _):
                if (array, indices) in read and inside.isdisjoint((array, *indices)):
                    yield array, indices


class _Promoter(Simplifier):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.aliases = Aliases(function)
        self.promoted = False

    def loop(self, let: Let, op: ir.For | ir.While) -> Sequence[Let] | None:
        new = super().loop(let, op)
        made = [let] if new is None else list(new)
        last = made[-1] if made else None
        if last is None or not isinstance(last.op, ir.For):
            return new
        effects = self.aliases.effects(last.op)
        if effects.fails or effects.overflows or effects.calls:
            return new
        for element in _elements(last.op):
            if self.alone(last.op, element):
                self.promoted = True
                return [*made[:-1], *self.handed_on(last, last.op, element)]
        return new

    def alone(self, op: ir.For, element: Element) -> bool:
        """Whether all other accesses in a loop are to other memory than this element."""
        facts = self.facts
        array, indices = element
        top = {id(let) for let in op.body.statements}
        mark = facts.push()
        enter(facts, op, (op.start, op.stop, op.step), self.original)
        apart = True
        for let in ir.walk(op.body):
            inner = let.op
            if isinstance(inner, ir.Load | ir.Store):
                if not self.aliases.may_alias(inner.array, array):
                    continue
                same = inner.array is array and inner.indices == indices
                apart = id(let) in top if same else inner.array is array and self.differ(inner.indices, indices)
            elif not isinstance(inner, ir.Dim):
                arrays = [item for item in ir.operands_of(inner) if isinstance(item.type, Array)]
                arrays += [out for out in let.outs if isinstance(out.type, Array)]
                apart = not any(self.aliases.may_alias(item, array) for item in arrays if isinstance(item, Var))
            if not apart:
                break
        facts.pop(mark)
        return apart

    def differ(self, left: Sequence[Operand], right: Sequence[Operand]) -> bool:
        """Whether two elements of an array are different ones, by the facts of now."""
        for one, other in zip(left, right, strict=True):
            difference = self.facts.form(one) - self.facts.form(other)
            if self.facts.nonnegative(difference - Linear(1)) or self.facts.nonnegative(
                difference.scale(-1) - Linear(1)
            ):
                return True
        return False

    def handed_on(self, let: Let, op: ir.For, element: Element) -> list[Let]:
        array, indices = element
        kind = array.type
        assert isinstance(kind, Array)
        scalar = Scalar(kind.dtype)
        param, final = Var("element", scalar), Var("element", scalar)
        current: Operand = param
        known: dict[Var, Operand] = {}
        statements: list[Let] = []

        def resolved(operand: Operand) -> Operand:
            return known.get(operand, operand) if isinstance(operand, Var) else operand

        for inner in op.body.statements:
            same = isinstance(inner.op, ir.Load | ir.Store) and (inner.op.array, inner.op.indices) == element
            if same and isinstance(inner.op, ir.Store):
                current = resolved(inner.op.value)
            elif same:
                known[inner.outs[0]] = current
            else:
                statements += substitute(Block((inner,)), known).statements
        results = tuple([resolved(item) for item in op.body.results])
        writer = Writer(let.pos)
        first = writer.load(array, *indices)
        loop: Op = ir.For(
            op.index,
            op.start,
            op.stop,
            op.step,
            (*op.params, param),
            (*op.inits, first),
            Block(tuple(statements), (*results, current)),
        )
        if self.exists(element):
            writer.let(loop, *let.outs, final)
            writer.store(array, indices, final)
            return writer.statements
        # a loop that has no iteration may name an element that is not there
        outs = tuple([Var(out.name, out.type) for out in let.outs])
        writer.let(loop, *outs, final)
        writer.store(array, indices, final)
        assert isinstance(op.step, Const) and isinstance(op.step.value, int)
        runs = Var("runs", PYBOOL)
        test = Let((runs,), ir.Prim("lt" if op.step.value > 0 else "gt", (op.start, op.stop)), let.pos)
        return [test, Let(let.outs, ir.If(runs, writer.block(*outs), Block((), op.inits)), let.pos)]

    def exists(self, element: Element) -> bool:
        """Whether an element is known to be in its array, one that may be stored into."""
        array, indices = element
        if not self.aliases.atoms(array).isdisjoint(self.aliases.world):
            return False
        maker = self.makers.get(array)
        for axis, index in enumerate(indices):
            extent = self.dims.get((array, axis))
            if extent is None and maker is not None and not isinstance(maker.op, ir.AnyView):
                extents = getattr(maker.op, "extents", ())
                extent = extents[axis] if len(extents) == len(indices) else None
            if extent is None or not (
                self.facts.nonnegative(self.facts.form(index)) and self.facts.less(index, extent)
            ):
                return False
        return True
