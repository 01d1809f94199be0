"""Where only low bits of an int are wanted, its arithmetic may wrap: `(a * x + c) & 0xFFFFFFFF`, `(h << 5) % 2**32`.

The lowest bits of sums, products, shifts to the left and bitwise results depend on no higher bits of what they are made
of, so 64 of them are enough for a mask or a power of two that takes fewer. Python's result is exact, and so is this
one; the checks for overflow are dropped, which also keeps calls native that Python would have had to begin again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from parakeet_py.base.types import PYINT
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Const, Function, Let, Operand, Var
from parakeet_py.typed_ir.rewrite import Rewriter

_CLOSED = frozenset({"add", "sub", "mul", "neg", "and", "or", "xor", "not"})  # low bits are made of low bits


def wrap_masked(function: Function) -> Function:
    """Let arithmetic wrap of which only the low bits are looked at."""
    if not any(_selects(let) for let in function.statements()):
        return function
    masks = _Masks(function)
    return masks.function(function)


def _selects(let: Let) -> bool:
    """Is this what a mask or a power of two leaves?"""
    op = let.op
    if not isinstance(op, ir.Prim) or op.name not in ("and", "mod") or let.outs[0].type != PYINT:
        return False
    return any(_is_mask(op, arg) for arg in op.args)


def _is_mask(op: ir.Prim, arg: Operand) -> bool:
    if not isinstance(arg, Const) or not isinstance(arg.value, int):
        return False
    if op.name == "and":
        return arg.value >= 0
    return arg is op.args[1] and arg.value > 0 and arg.value & (arg.value - 1) == 0


class _Masks(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.definitions: dict[Var, ir.Prim] = {}
        self.users: dict[Var, list[Let | None]] = defaultdict(list)  # None: all bits are wanted
        self.known: dict[Var, bool] = {}
        self.check_of: dict[Var, Let] = {}  # shifts: the check that nothing is lost
        asked: dict[Var, tuple[Var, ...]] = {}  # what only such a check looks at
        for let in ir.walk(function.body):
            if isinstance(let.op, ir.Prim):
                self.definitions[let.outs[0]] = let.op
            for operand in ir.operands_of(let.op):
                if isinstance(operand, Var):
                    self.users[operand].append(let if isinstance(let.op, ir.Prim | ir.Check) else None)
            for block in ir.blocks_of(let.op):
                for result in block.results:
                    if isinstance(result, Var):
                        self.users[result].append(None)
            if isinstance(let.op, ir.Check):
                shifted = self.shift_checked(let.op)
                if shifted is not None:
                    self.check_of[shifted[0]] = let
                    asked[shifted[0]] = shifted[1:]
        for result in function.body.results:
            if isinstance(result, Var):
                self.users[result].append(None)
        self.asked = {var: shift for shift, others in asked.items() for var in others}
        self.dropped = {id(let) for shift, let in self.check_of.items() if self.low(shift)}

    def shift_checked(self, op: ir.Check) -> tuple[Var, Var] | None:
        """The shift to the left whose result a check moves back and compares, and what it is moved back to."""
        if op.failure.exception != "OverflowError" or not isinstance(op.condition, Var):
            return None
        either = self.definitions.get(op.condition)
        for part in either.args if either is not None and either.name == "or" else (op.condition,):
            equal = self.definitions.get(part) if isinstance(part, Var) else None
            if equal is None or equal.name != "eq":
                continue
            for back, value in (equal.args, equal.args[::-1]):
                right = self.definitions.get(back) if isinstance(back, Var) else None
                if right is None or right.name != "shr" or not isinstance(right.args[0], Var):
                    continue
                left = self.definitions.get(right.args[0])
                if left is not None and left.name == "shl" and left.args == (value, right.args[1]):
                    assert isinstance(back, Var)
                    return right.args[0], back
        return None

    def low(self, var: Var) -> bool:
        """Whether nothing looks at more than low bits of an int."""
        found = self.known.get(var)
        if found is None:
            self.known[var] = found = var.type == PYINT and all(self.takes_low(var, let) for let in self.users[var])
        return found

    def takes_low(self, var: Var, let: Let | None) -> bool:
        op = None if let is None else let.op
        if let is None or not isinstance(op, ir.Prim):
            return False
        out = let.outs[0]
        if _selects(let):
            return op.name == "and" or (op.args[0] is var and op.args[1] is not var)
        if op.name.removesuffix("_checked") in _CLOSED:
            return self.low(out)
        if op.name == "shl":
            return op.args[0] is var and op.args[1] is not var and self.low(out)
        return op.name == "shr" and self.asked.get(out) is var

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if id(let) in self.dropped:
            return ()
        if isinstance(op, ir.Prim) and op.name in ir.CHECKED and op.name != "abs_checked" and self.low(let.outs[0]):
            return (Let(let.outs, ir.Prim(op.name.removesuffix("_checked"), op.args), let.pos),)
        return self.descend(let)
