"""Which arrays may share memory: a set of roots for each array variable and cell.

A root is a piece of memory that nothing else overlaps: what one `NewArray` made, one parameter (if no two parameters
overlap), or, together, all memory that Python can reach behind our back. A view has the roots of its base, a cell those
of everything written to it, an array that an opaque call returned those of everything Python may have had in hand.
"""

from __future__ import annotations

from parakeet_py.base.types import Array
from parakeet_py.imp.ir import Block, Call, Cell, Declare, Let, NewArray, Opaque, Read, Statement, Write, walk
from parakeet_py.typed_ir.ir import AnyView, Operand, Var

Roots = dict[Var | Cell, frozenset[int]]
PYTHON = 0  # memory made by opaque calls
_NONE: frozenset[int] = frozenset()


def find_roots(body: Block, params: tuple[Var, ...], disjoint: bool) -> Roots:
    """The memory roots of every array variable and cell of a function body."""
    roots: Roots = {}
    count = 1
    for param in params:
        if isinstance(param.type, Array):
            roots[param] = frozenset((count,))
            count += disjoint
    count += 1
    python = frozenset((PYTHON,)).union(*roots.values())
    relevant: list[Statement] = []
    for statement in walk(body):
        match statement:
            case Let(out, NewArray()):
                roots[out] = frozenset((count,))
                count += 1
            case Let(out, AnyView() | Read()) if isinstance(out.type, Array):
                relevant.append(statement)
            case Declare(cell, _) | Write(cell, _) if isinstance(cell.type, Array):
                relevant.append(statement)
            case Opaque():
                relevant.append(statement)
            case Call(outs, fresh=fresh) if any(isinstance(out.type, Array) for out in outs):
                for out in outs:
                    if isinstance(out.type, Array):
                        roots[out] = frozenset((count,))
                        count += fresh
                count += not fresh
                if not fresh:
                    relevant.append(statement)
    changed = True
    while changed:
        changed = False
        for statement in relevant:
            match statement:
                case Let(out, AnyView(source) | Read(source)):
                    changed |= _grow(roots, out, roots.get(source, _NONE))
                case Declare(cell, value) | Write(cell, value):
                    changed |= _grow(roots, cell, _of(roots, value))
                case Call(outs, _, args):
                    given = frozenset().union(*(_of(roots, arg) for arg in args))
                    for out in outs:
                        if isinstance(out.type, Array):
                            changed |= _grow(roots, out, given)
                case Opaque(outs, _, args):
                    # What was passed to one call may be returned by another.
                    reachable = python.union(*(_of(roots, arg) for arg in args))
                    changed |= reachable != python
                    python = reachable
                    for out in outs:
                        if isinstance(out.type, Array):
                            changed |= _grow(roots, out, python)
    return roots


def _of(roots: Roots, value: Operand | None) -> frozenset[int]:
    return roots.get(value, _NONE) if isinstance(value, Var) else _NONE


def _grow(roots: Roots, place: Var | Cell, more: frozenset[int]) -> bool:
    known = roots.get(place)
    if known is not None and more <= known:
        return False
    roots[place] = more if known is None else known | more
    return True
