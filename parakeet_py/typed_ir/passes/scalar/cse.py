"""Common subexpressions: one variable for each value computed twice in scope.

Operators are compared by structure, so this sees exactly what `simplify` has brought to one form. A `Load` is found
again only while nothing in between may have written its memory; what a loop or a storing `Map` writes counts as
written both before its body and after it. A check whose condition has already held is dropped. Loops of scalars alone
(powers of integers) and reductions to scalars are compared with their variables numbered in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from parakeet_py.base.grammar import rebuild
from parakeet_py.base.types import Scalar, Type
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.rewrite import NOWHERE, Rewriter

_OF_SCALARS = (ir.Prim, ir.Cast, ir.If, ir.While)
_LOOPS = (ir.For, ir.While, *ir.PARALLEL)


def eliminate_common_subexpressions(function: Function) -> Function:
    """Compute each value once per scope, read each element once between writes."""
    return _Eliminator(function).function(function)


class _Eliminator(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.known: dict[Any, tuple[Operand, float]] = {}  # (operator, type) -> its value, and when it was read
        self.written_at: dict[Var, float] = {}  # an atom -> when it was last written
        self.clock = 0.0
        self.elements: dict[Var, dict[Any, None]] = {}  # elements with literal indices that were stored, by array
        self.undo: list[tuple[Any, tuple[Operand, float] | None]] = []

    def block(self, block: Block) -> Block:
        outer, self.undo = self.undo, []
        result = super().block(block)
        for key, before in reversed(self.undo):
            if before is None:
                del self.known[key]
            else:
                self.known[key] = before
        self.undo = outer
        return result

    def write(self, atoms: Iterable[Var]) -> None:
        self.clock += 1
        for atom in atoms:
            self.written_at[atom] = self.clock

    def remember(self, key: Any, value: Operand, when: float) -> None:
        self.undo.append((key, self.known.get(key)))
        self.known[key] = (value, when)

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.Pure):
            op = rebuild(op, self.operand)
            (out,) = let.outs
            key = (op, out.type)
            found = self.known.get(key)
            if found is not None:
                self.replacement[out] = found[0]
                return ()
            self.remember(key, out, 0)
            return None if op is let.op else (Let(let.outs, op, let.pos),)
        if isinstance(op, ir.Load):
            return self.load(let, op)
        if isinstance(op, ir.Check):
            condition = self.operand(op.condition)
            if isinstance(condition, Var):
                held = (ir.Check, condition)
                if held in self.known:
                    return ()
                self.remember(held, condition, 0)
            return self.descend(let)
        if isinstance(op, ir.While) and all(isinstance(one.op, _OF_SCALARS) for one in _inside(op)):
            return self.to_scalars(let, op, ())
        if isinstance(op, ir.Reduce) and not op.extents:
            effects = self.aliases.effects(op)
            if effects.pure and not effects.calls:
                return self.to_scalars(let, op, effects.reads)
        if isinstance(op, _LOOPS):
            writes = self.aliases.effects(op).writes
            if writes:
                self.write(writes)
                new = self.descend(let)
                self.write(writes)
                return new
        elif not ir.blocks_of(op):
            writes = self.aliases.effects(op).writes
            before = max([self.written_at.get(atom, 0.0) for atom in writes], default=0.0)
            self.write(writes)
            new = self.descend(let)
            if isinstance(op, ir.Store):
                self.stored(op, before)
            return new
        return self.descend(let)

    def to_scalars(self, let: Let, op: ir.While | ir.Reduce, reads: Iterable[Var]) -> Sequence[Let] | None:
        """A loop all of whose outs are scalars, made of what has been there since the last write to `reads`."""
        same = _numbered(op, self.operand)
        written = max([self.written_at.get(atom, 0.0) for atom in reads], default=-1.0)
        found = [self.known.get((same, place, out.type)) for place, out in enumerate(let.outs)]
        self.clock += 1
        missing = False
        for place, (out, one) in enumerate(zip(let.outs, found, strict=True)):
            if one is not None and one[1] > written:
                self.replacement[out] = one[0]
            else:
                missing = True
                self.remember((same, place, out.type), out, self.clock)
        return self.descend(let) if missing else ()

    def load(self, let: Let, op: ir.Load) -> Sequence[Let] | None:
        new = rebuild(op, self.operand)
        assert isinstance(new, ir.Load)
        (out,) = let.outs
        key = (new, out.type)
        found = self.known.get(key)
        if found is not None:
            value, when = found
            if when > max((self.written_at.get(atom, 0) for atom in self.aliases.atoms(new.array)), default=0):
                self.replacement[out] = value
                return ()
        self.clock += 1
        self.remember(key, out, self.clock)
        return None if new is op else (Let(let.outs, new, let.pos),)

    def stored(self, op: ir.Store, before: float) -> None:
        """What was just stored need not be read back, and other elements of the array are still known."""
        array, value, indices = self.operand(op.array), self.operand(op.value), self.operands(op.indices)
        assert isinstance(array, Var)
        kind = Scalar(dtype_of(array))
        for key in self.elements.get(array, ()):
            found = self.known.get(key)
            if found is not None and found[1] > before and _different(key[0].indices, indices):
                self.clock += 1
                self.remember(key, found[0], self.clock)
        if value.type == kind:
            self.clock += 1
            self.remember((ir.Load(array, indices), kind), value, self.clock)
            if any(isinstance(index, Const) for index in indices):
                self.elements.setdefault(array, {})[(ir.Load(array, indices), kind)] = None


def _inside(op: ir.Op) -> Iterable[Let]:
    return (let for block in ir.blocks_of(op) for let in ir.walk(block))


def _numbered(op: ir.While | ir.Reduce, operand: Callable[[Operand], Operand]) -> ir.Op:
    """A loop whose own variables are the same for all loops that are written alike."""
    known: dict[Operand, Operand] = {}

    def outer(item: Operand) -> Operand:
        return known.get(item) or operand(item)

    def binder(var: Var) -> Var:
        made = _variable(len(known), var.type)
        known[var] = made
        return made

    def inside(block: Block) -> Block:
        statements = tuple([Let(tuple(map(binder, let.outs)), whole(let.op), NOWHERE) for let in block.statements])
        return Block(statements, tuple(map(outer, block.results)))

    def whole(one: Any) -> Any:
        return rebuild(one, outer, binder, inside)

    return whole(op)  # type: ignore[no-any-return]


@cache
def _variable(number: int, type_: Type) -> Var:
    return Var(f"v{number}", type_)


def _different(left: tuple[Operand, ...], right: tuple[Operand, ...]) -> bool:
    """Are these indices of two different elements, whatever the variables in them are?"""
    pairs = zip(left, right, strict=True)
    return any(isinstance(one, Const) and isinstance(two, Const) and one.value != two.value for one, two in pairs)
