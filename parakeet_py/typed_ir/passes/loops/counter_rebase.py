"""Counts of inner loops begin at zero.

`count += 1` in a loop inside a loop goes on from what the outer one has counted, of which nothing is known, so that
every step has to be checked for overflow, and loops with checks stay scalar. Counted from zero, it cannot exceed the
number of turns, which `simplify` finds to fit; the sum with what was there before is checked, once for each run of the
inner loop. Python's ints are exact, so it does not matter in which order they are added.

That holds for parameters that nothing else looks at: each use is the next step, on some path, in the end the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.base.types import PYINT
from parakeet_py.frontend.ssa import Pos
from parakeet_py.typed_ir.ir import Block, Const, For, Function, If, Let, Operand, Prim, Var, While
from parakeet_py.typed_ir.rewrite import Rewriter, Uses


def count_from_zero(function: Function) -> Function:
    """Let ints that inner loops count up begin at zero."""
    if not any(isinstance(let.op, For | While) for let in function.body.statements):
        return function
    return _Counts(function).function(function)


class _Counts(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.uses = Uses(function.body).data
        self.loops = 0

    def statement(self, let: Let) -> Sequence[Let] | None:
        if not isinstance(let.op, For | While):
            return self.descend(let)
        self.loops += 1
        new = self.descend(let)
        self.loops -= 1
        if not self.loops:
            return new
        return self.begin_at_zero(let if new is None else new[0]) or new

    def begin_at_zero(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        assert isinstance(op, For | While)
        first = 1 if op.stoppable else 0
        inits, outs, sums = list(op.inits), list(let.outs), []
        for place, (param, init) in enumerate(zip(op.params, op.inits, strict=True)):
            if param.type != PYINT or not isinstance(init, Var):
                continue
            pos = self.step(op.body, op.body.results[first + place], param)
            if pos is not None:
                total = outs[first + place]
                outs[first + place] = part = Var(total.name, PYINT)
                inits[place] = Const(0, PYINT)
                sums.append(Let((total,), Prim("add_checked", (init, part)), pos))
        return [Let(tuple(outs), replace(op, inits=tuple(inits)), let.pos), *sums] if sums else None

    def step(self, body: Block, result: Operand, param: Var) -> Pos | None:
        """Where a known number is added, if `result` is `param` plus something whatever the path, and no other use is
        made of any of the values between them."""
        reached: Counter[Var] = Counter()
        found: list[Pos] = []
        made = {out: let for let in body.statements for out in let.outs}
        if result is param or not self.adds(made, result, param, reached, found) or not found:
            return None
        alone = all(self.uses.get(var, times) == times for var, times in reached.items())
        return found[0] if alone else None

    def adds(self, made: dict[Var, Let], result: Operand, param: Var, reached: Counter[Var], found: list[Pos]) -> bool:
        if not isinstance(result, Var):
            return False
        reached[result] += 1
        if result is param or reached[result] > 1:
            return True
        let = made.get(result)
        match None if let is None else let.op:
            case Prim("add_checked" | "sub_checked", (before, more)):
                assert let is not None
                if isinstance(more, Const):
                    found.append(let.pos)
                return self.adds(made, before, param, reached, found)
            case Prim("select", (_, *ways)):
                return all([self.adds(made, way, param, reached, found) for way in ways])
            case If(_, then, orelse):
                assert let is not None
                place = let.outs.index(result)
                additive = []
                for block in (then, orelse):
                    inner = made | {out: one for one in block.statements for out in one.outs}
                    additive.append(self.adds(inner, block.results[place], param, reached, found))
                return all(additive)
        return False
