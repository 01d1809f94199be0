"""Choices by single bits of data, in loops that hand on what is chosen: both sides are computed, and one is taken.

    if (crc ^ byte) & 1:                      a = crc >> 1
        crc = (crc >> 1) ^ poly       ==>     b = a ^ poly
    else:                                     crc = select bit, b, a
        crc >>= 1

Such a branch cannot be predicted. LLVM makes a selection of it, too, but of the other operand, `a ^ (bit ? poly : 0)`:
one operation less, and one more on the way from turn to turn, which is what such a loop waits for. So what is taken if
the bit is not set goes through an empty instruction, of which LLVM knows nothing.

That pays if the bit is of a number that the sides begin with. Where it is of another (`if n & 1: count += 1`), the
chain is shorter as LLVM has it. Both sides must be plain arithmetic on integers that neither fails nor takes long.
Vector loops need nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable

from parakeet_py.base.types import Scalar, is_integer, itemsize
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.builder import LLVM_TYPE
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.typed_ir.ir import Operand, Prim, Var, dtype_of

_CHEAP = frozenset({"add", "sub", "and", "or", "xor", "not", "neg", "shl", "shr"})
_MOST = 4  # operations of both sides
_LEAST = 4  # bytes, of a whole register

Emit = Callable[[Scope, ir.Statement], None]


def is_choice(scope: Scope, statement: ir.If) -> bool:
    """Whether a branch on a single bit can be a choice, in a loop that is no vector code."""
    if scope.f.widened or not scope.loops or scope.f.module.host.gpu or scope.f.module.checks is not None:
        return False
    operations, used = 0, set[Operand]()
    for one in (*statement.then.statements, *statement.orelse.statements):
        match one:
            case ir.Let(rhs=Prim(name, operands)) if name in _CHEAP and all(map(_is_integer, operands)):
                operations += 1
                used.update(operands)
            case ir.Write(ir.Cell(type=Scalar(dtype))) if is_integer(dtype) and itemsize(dtype) >= _LEAST:
                pass
            case _:
                return False
    assert isinstance(statement.condition, Var)
    return operations <= _MOST and not used.isdisjoint(scope.bits[statement.condition])


def _is_integer(operand: Operand) -> bool:
    return is_integer(dtype_of(operand))


def choose(scope: Scope, statement: ir.If, condition: str, emit: Emit) -> None:
    """Write a branch that is a choice."""
    f = scope.f
    then, orelse = (_side(scope, block, emit) for block in (statement.then, statement.orelse))
    unpredictable = f.module.shared_node("!{}")
    for cell in {**then, **orelse}:
        assert isinstance(cell.type, Scalar)
        kind = LLVM_TYPE[cell.type.dtype]
        first, second = then.get(cell) or scope.read(cell), orelse.get(cell) or scope.read(cell)
        hidden = f.value(f'call {kind} asm "", "=r,0"({kind} {second})')
        chosen = f.fresh()
        f.effect(f"{chosen} = select i1 {condition}, {kind} {first}, {kind} {hidden}, !unpredictable {unpredictable}")
        scope.write(cell, chosen)


def _side(scope: Scope, block: ir.Block, emit: Emit) -> dict[ir.Cell, str]:
    """Write what a side computes; gives what its cells are to be."""
    written: dict[ir.Cell, str] = {}
    for one in block.statements:
        if isinstance(one, ir.Write):
            written[one.cell] = scope.scalar(one.value)
        else:
            emit(scope, one)
    return written
