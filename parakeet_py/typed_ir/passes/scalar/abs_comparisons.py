"""Comparisons of absolute values of complex numbers: `while abs(z) <= 2` without a root in every iteration.

    abs(z) > c      is      s > c * c      where s = re * re + im * im, unless s is close to c * c

The square root of the sum, and what keeps squares from leaving the range, take longer than all else in such loops.
Far from c * c, as nearly always, the rounding of s and of the absolute value can make no difference; neither can an
overflow (s is infinite) or underflow (0). Near it, and where s is NaN, the absolute value itself is compared; so it is
with limits whose square leaves the range, but for values whose square is far below.

Only in loops that stay loops, whose turns go one way or the other: elsewhere a branch would hinder vector code.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import PYBOOL, Scalar
from parakeet_py.typed_ir.ir import PARALLEL, Const, For, Function, If, Let, Operand, Prim, Var, While, dtype_of
from parakeet_py.typed_ir.rewrite import Rewriter
from parakeet_py.typed_ir.writer import Writer

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NEAR = 1e-12
_KINDS = {"abs": "complex128", "hypot": "float64", "libm.hypot": "float64"}  # absolute values and sizes, and of what
_SMALLEST, _LARGEST = 1e-150, 1e150  # whose squares, and what is near them, are normal numbers


def compare_squares(function: Function) -> Function:
    """Let sums of squares decide comparisons of absolute values, in loops."""
    magnitudes = {
        let.outs[0]: let.op
        for let in function.statements()
        if isinstance(let.op, Prim) and _KINDS.get(let.op.name) == dtype_of(let.op.args[0])
    }
    return _Squares(magnitudes).function(function) if magnitudes else function


class _Squares(Rewriter):
    def __init__(self, magnitudes: dict[Var, Prim]) -> None:
        super().__init__()
        self.magnitudes = magnitudes
        self.in_loop = False

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, (For, While, *PARALLEL)):
            around, self.in_loop = self.in_loop, isinstance(op, For | While)
            new = self.descend(let)
            self.in_loop = around
            return new
        if self.in_loop and isinstance(op, Prim) and op.name in _MIRRORED:
            left, right = op.args
            for name, size, limit in ((op.name, left, right), (_MIRRORED[op.name], right, left)):
                magnitude = self.magnitudes.get(size) if isinstance(size, Var) else None
                if magnitude is None or not isinstance(limit, Const) or isinstance(limit.value, complex):
                    continue
                if limit.value > _SMALLEST:
                    return self.decided(let, name, magnitude, float(limit.value), Const(limit.value, limit.type))
        return self.descend(let)

    def decided(self, let: Let, name: str, magnitude: Prim, limit: float, bound: Const) -> list[Let]:
        """The comparison of a number's absolute value with a limit."""
        writer = Writer(let.pos)
        if magnitude.name == "abs":
            parts: tuple[Operand, ...] = tuple([writer.prim(part, magnitude.args[0]) for part in ("real", "imag")])
        else:
            parts = magnitude.args
        real, imag = parts
        kind = real.type
        assert isinstance(kind, Scalar)
        total = writer.prim("add", writer.prim("mul", real, real), writer.prim("mul", imag, imag))
        square = min(limit, _LARGEST) ** 2
        below = writer.prim("lt", total, Const(square * (1 - _NEAR), kind), type_=PYBOOL)
        above: Operand = Const(False, PYBOOL)
        far: Operand = below
        if limit < _LARGEST:
            above = writer.prim("gt", total, Const(square * (1 + _NEAR), kind), type_=PYBOOL)
            far = writer.prim("or", above, below, type_=PYBOOL)
        exact = Writer(let.pos)
        size = exact.prim(magnitude.name, *magnitude.args, type_=kind)
        (out,) = let.outs
        answer = exact.prim(name, size, bound, type_=out.type)
        quick = Writer(let.pos)
        outside = above if name in ("gt", "ge") else below
        decided = outside if out.type == PYBOOL else quick.prim("and", outside, outside, type_=out.type)
        writer.let(If(far, quick.block(decided), exact.block(answer)), out)
        return writer.statements
