"""Whether a function has branches in innermost loops that are taken in all iterations, or in none.

    for i in range(n):
        if squared: s += x[i] * x[i]
        else:       s += x[i]

LLVM makes a loop of each branch (at its level 3), which can be made vector code where the one with the branch cannot.
Where there are none, it only makes copies of nests for inner loops without iterations, for which it takes a fifth of
its time: such functions are compiled at level 2. Checks are no branches here: nothing comes after one that fails. A
choice between two values is one where an elementary function may be spared by it.
"""

from __future__ import annotations

from parakeet_py.imp.ir import (
    Block,
    Cell,
    For,
    Function,
    If,
    Let,
    Parallel,
    Read,
    Rhs,
    Statement,
    While,
    Write,
    arrays_written,
    binders_of,
    blocks_of,
    operands_in,
    walk,
)
from parakeet_py.imp.schedule.loop_order import is_dear
from parakeet_py.typed_ir.ir import Load, Operand, Prim, Var


def branches_alike(function: Function) -> bool:
    """Does a branch in an innermost loop depend on nothing that changes in the loop?"""
    bodies = [function.body, *(one.body for one in function.procedures if not one.library)]
    return any(_Depths(function).finds(body) for body in bodies)


class _Depths:
    """The depth of the innermost loop around that changes a value, from 1 on; 0 if none does.

    Attributes
    ----------
    of : by variable
    least : of truth values, the least depth of the parts they are joined of
    written : the cells and the roots of memory that each of the loops around changes
    innermost, dear : whether the loop around has no others in it, and has elementary functions
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.of: dict[Operand | Cell, int] = {}
        self.least: dict[Operand, int] = {}
        self.written: list[set[Cell | int]] = []
        self.innermost = self.dear = False

    def finds(self, block: Block) -> bool:
        return any(map(self._branches, block.statements))

    def _branches(self, statement: Statement) -> bool:
        depth = len(self.written)
        match statement:
            case Parallel():  # a function of its own
                return _Depths(self.function).finds(statement.body)
            case For() | While():
                inside = [one for block in blocks_of(statement) for one in walk(block)]
                cells = {one.cell for one in inside if isinstance(one, Write)}
                stored = [array for one in inside for array in arrays_written(one)]
                self.written.append(cells.union(*(self._roots(array) for array in stored)))
                if isinstance(statement, For):
                    self.of[statement.index] = depth + 1
                self.innermost = not any(isinstance(one, For | While | Parallel) for one in inside)
                self.dear = any(map(_is_dear, inside))
                found = any(map(self.finds, blocks_of(statement)))
                self.innermost = False
                self.written.pop()
                return found
            case Let(out, rhs):
                self.of[out] = self._depth(rhs)
                if isinstance(rhs, Prim):
                    if rhs.name in ("and", "or", "not"):
                        self.least[out] = min(map(self._least, rhs.args))
                    chooses = self.innermost and self.dear and rhs.name == "select"
                    return chooses and self._least(rhs.args[0]) < depth
            case If(Var() as condition) if self.innermost and self._least(condition) < depth:
                return True
            case _:
                self.of.update(dict.fromkeys(binders_of(statement), depth))
        return any(map(self.finds, blocks_of(statement)))

    def _roots(self, array: Var) -> frozenset[int]:
        return self.function.roots.get(array, frozenset())

    def _least(self, operand: Operand) -> int:
        return self.least.get(operand, self.of.get(operand, 0))

    def _depth(self, rhs: Rhs) -> int:
        places: set[Cell | int] = set()
        if isinstance(rhs, Read):
            places = {rhs.cell}
        elif isinstance(rhs, Load):
            places = set(self._roots(rhs.array))
        changing = [depth for depth, written in enumerate(self.written, 1) if not places.isdisjoint(written)]
        return max([*changing, *(self.of.get(operand, 0) for operand in operands_in(rhs))], default=0)


def _is_dear(statement: Statement) -> bool:
    return isinstance(statement, Let) and isinstance(statement.rhs, Prim) and is_dear(statement.rhs.name)
