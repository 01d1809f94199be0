"""Hints to LLVM about loops and branches, where its own choice is slow.

Loops that stay scalar, as vector code would be slower:

* A loop around one of some known iterations that only stores: LLVM writes the inner one out, and then stores scattered
  elements of several runs at a time.
* A loop that walks across the rows of an array of bytes or 16-bit numbers and does little more than move them: vectors
  of them are put together element by element.
* A long loop all of whose elements lie in different rows, with a few operations for each: putting vectors together
  takes as long as it saves, and LLVM's work on them is most of what such a loop takes to compile.

Loops that combine elements down a column combine one vector a turn, of eight: its elements are loaded one by one, which
hides how long the operation takes, and many columns have fewer than fill several vectors.

And loops of little but comparisons: of a vector of float64, eight bytes are stored. Several vectors a turn hide that.

Branches on single bits of data (`if crc & 1`, `if n % 2 == 0`) cannot be predicted: LLVM chooses by conditional moves
there, which it else takes back on x86 where they are part of what a loop hands on.

Loops of lanes become one vector operation for each of their body's: they are widened before they could be unrolled.
Loops of few iterations are neither.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from parakeet_py.base.types import Array
from parakeet_py.imp import ir
from parakeet_py.imp.schedule.loop_order import is_dear
from parakeet_py.typed_ir.ir import Cast, Const, Load, Prim, Var, dtype_of

_FEW_TURNS = 8  # as many elements side by side are stored by shuffles
_LITTLE = 12  # operations beside the loads
_ROWS, _FOR_EACH = 6, 6  # elements of other rows from which on a loop is long, operations for each
_DIVISION = 6  # operations as which one counts
ONE_VECTOR = ('vectorize.width", i32 8', 'interleave.count", i32 1')
_NARROW = frozenset({"bool", "int8", "uint8", "int16", "uint16"})


def of_kind(kind: str, stop: str) -> list[str]:
    """Hints that a kind of loop always has."""
    match kind:
        case "lanes":
            return ['unroll.disable"', 'interleave.count", i32 1', f'vectorize.width", i32 {stop}']
        case "few":
            return ['unroll.disable"', 'vectorize.enable", i1 false']
        case _:
            return []


def is_bit(rhs: ir.Rhs, bits: Container[Var]) -> bool:
    """Whether a value is a single bit of some integer, or a truth value that depends on such bits alone; `bits` are
    those that are known to be."""
    match rhs:
        case Prim("and", args):
            ones = [arg for arg in args if isinstance(arg, Const) and _is_power_of_two(arg)]
            return bool(ones) or any(arg in bits for arg in args)
        case Prim("or" | "xor" | "eq" | "ne" | "not", args):
            found = [arg for arg in args if isinstance(arg, Var)]
            return bool(found) and all(arg in bits for arg in found)
        case Prim("mod", (_, Const(value=2))):
            return dtype_of(rhs.args[0]) not in ("float16", "float32", "float64")
        case Cast(arg):
            return arg in bits
    return False


def numbers_of(rhs: ir.Rhs, bits: Mapping[Var, frozenset[Var]]) -> frozenset[Var]:
    """The numbers that a value is a bit of, if `bits` are the bits that are known, with theirs."""
    operands = rhs.args if isinstance(rhs, Prim) else (rhs.arg,) if isinstance(rhs, Cast) else ()
    return frozenset().union(*(bits.get(one, (one,)) for one in operands if isinstance(one, Var)))


def _is_power_of_two(number: Const) -> bool:
    return type(number.value) is int and number.value > 0 and number.value & (number.value - 1) == 0


def stays_scalar(loop: ir.For) -> bool:
    """Whether a loop whose iterations are independent is better not made vector code."""
    if loop.kind == "independent" and any(map(_stores_a_run, loop.body.statements)):
        return True
    return loop.kind in ("vector", "independent") and _moves_across(loop)


def narrows(loop: ir.For) -> bool:
    """Whether a loop does little but make truth values of numbers four times as long or longer."""
    stored, loaded, operations = set(), set(), 0
    for statement in loop.body.statements:
        match statement:
            case ir.Let(rhs=Load(array, _)):
                loaded.add(np.dtype(dtype_of(array)).itemsize)
            case ir.Store(array, _):
                stored.add(dtype_of(array))
            case ir.Let(rhs=Prim() | Cast()):
                operations += 1
            case _:
                return False
    return stored == {"bool"} and max(loaded, default=0) >= 4 and operations <= _LITTLE


def gathers(loop: ir.For) -> bool:
    """Whether elements of different rows are loaded in each turn of a loop that combines into cells."""
    moved: set[Var] = {loop.index}
    across = combines = False
    for statement in loop.body.statements:
        match statement:
            case ir.Let(rhs=Load(array, indices)):
                across |= _is_across(array, indices, moved)
            case ir.Let(out, Prim("add" | "sub", (left, _)) as op) if left in moved or op.args[1] in moved:
                moved.add(out)
            case ir.Write():
                combines = True
    return across and combines


def _stores_a_run(statement: ir.Statement) -> bool:
    """Whether this is a vector loop of some known iterations that only stores."""
    if not isinstance(statement, ir.For) or statement.kind != "vector":
        return False
    bounds = (statement.start, statement.stop)
    if not all(isinstance(bound, Const) for bound in bounds):
        return False
    first, last = (int(bound.value.real) for bound in bounds if isinstance(bound, Const))
    inside = ir.walk(statement.body)
    return last - first > _FEW_TURNS and not any(isinstance(one, ir.Write | ir.For) for one in inside)


def _moves_across(loop: ir.For) -> bool:
    """Whether elements of different rows are loaded or stored in each turn, and little is done with them: narrow ones
    among others, or any if there are no others."""
    moved: set[Var] = {loop.index}  # what moves by one from turn to turn
    made: set[Var] = {loop.index}
    narrow = beside = False
    rows = operations = 0
    for statement in loop.body.statements:
        match statement:
            case ir.Let(rhs=Load(array, indices)) | ir.Store(array, indices):
                if _is_across(array, indices, moved):
                    rows += 1
                    narrow |= dtype_of(array) in _NARROW
                else:
                    beside |= not made.isdisjoint(indices)
            case ir.Let(out, Prim("add" | "sub", (left, _)) as op) if left in moved or op.args[1] in moved:
                moved.add(out)
            case ir.Let(rhs=Prim(name)):
                beside |= is_dear(name)
                operations += _DIVISION if name in ("div", "sqrt") else 1
            case ir.Let(rhs=Cast()):
                operations += 1
            case ir.Check():
                pass
            case _:
                return False
        if isinstance(statement, ir.Let):
            made.add(statement.out)
    return (narrow and operations <= _LITTLE) or (rows >= _ROWS and not beside and operations <= rows * _FOR_EACH)


def _is_across(array: Var, indices: tuple[Var | Const, ...], moved: set[Var]) -> bool:
    """Whether an access moves from row to row of an array."""
    kind = array.type
    assert isinstance(kind, Array)
    if not indices or kind.layout not in ("C", "F"):
        return False
    *others, last = indices if kind.layout == "C" else indices[::-1]
    return last not in moved and any(index in moved for index in others)
