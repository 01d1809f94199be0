"""New arrays in the memory of temporaries that die.

`out` may take the memory of `old` when both are made in the same block with the same dtype, layout and extents, the
region that fills `out` is the last to use `old`, and there every point reads `old` only at the element of `out` that it
writes, before it writes it. Then nothing can see the difference, and the block has one array less.

    old = new (n)                                   old = new (n)
    ...                                             ...
    out = new (n)                          becomes
    parallel: x = old[i]; out[i] := f(x)            parallel: x = old[i]; old[i] := f(x)

The pass runs before references are counted (`storage.manage`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.imp.ir import (
    Block,
    Declare,
    For,
    If,
    Let,
    Matmul,
    NewArray,
    Opaque,
    Parallel,
    Rhs,
    Statement,
    Store,
    While,
    Write,
    blocks_of,
)
from parakeet_py.imp.storage import mentioned
from parakeet_py.typed_ir.ir import Dim, Load, Operand, Reshape, Var, View

Shape = tuple[Operand, ...]


def reuse(block: Block, results: tuple[Operand, ...] = ()) -> tuple[Block, tuple[Operand, ...]]:
    """The block and its results with new arrays in the place of dead ones, nested blocks included."""
    statements = [_inside(statement) for statement in block.statements]
    found = _pair(statements, results)
    while found is not None:
        place, out, old = found
        del statements[place]
        renaming: dict[Operand, Operand] = {out: old}
        statements = [rename(statement, renaming) for statement in statements]
        results = tuple(old if result is out else result for result in results)
        found = _pair(statements, results)
    return Block(tuple(statements)), results


def _inside(statement: Statement) -> Statement:
    match statement:
        case If(_, then, orelse):
            return replace(statement, then=reuse(then)[0], orelse=reuse(orelse)[0])
        case For(body=body):
            return replace(statement, body=reuse(body)[0])
        case While(_, _, body):
            return replace(statement, body=reuse(body)[0])
        case _:
            return statement


def _pair(statements: Sequence[Statement], results: Sequence[Operand]) -> tuple[int, Var, Var] | None:
    """The place where an array is made, the array, and the one whose memory it can have."""
    made: dict[Var, tuple[int, Shape]] = {}
    for place, statement in enumerate(statements):
        match statement:
            case Let(out, NewArray(extents, "heap")):
                made[out] = place, extents
    if len(made) < 2:
        return None
    uses = {array: _Uses(array) for array in made}
    for place, statement in enumerate(statements):
        for use in uses.values():
            use.visit(place, statement)
    for array, use in uses.items():
        use.escapes |= any(result in use.aliases for result in results if isinstance(result, Var))
        made_at, extents = made[array]
        for old, old_use in uses.items():
            if old is array or made[old][0] >= made_at or made[old][1] != extents or old.type != array.type:
                continue
            if not use.regions or use.regions[0] < 0 or old_use.escapes or old_use.last != use.regions[0]:
                continue
            region = statements[use.regions[0]]
            if isinstance(region, Parallel) and _same_elements(region, use.aliases, old_use.aliases):
                return made_at, array, old
    return None


class _Uses:
    """Where an array made in a block is used: the regions that mention it, the last statement that does, and whether it
    is handed on to where it cannot be followed (a cell, a call, a result)."""

    def __init__(self, array: Var) -> None:
        self.aliases: dict[Var, Shape | None] = {array: None}  # reshaped: the extents; () for other views
        self.regions: list[int] = []
        self.last = -1
        self.escapes = False

    def visit(self, place: int, statement: Statement) -> None:
        match statement:
            case Let(out, NewArray()) if out in self.aliases:
                return
            case Let(out, Reshape(base, extents)) if base in self.aliases:
                self.aliases[out] = extents if self.aliases[base] is None else ()
                return
            case Let(out, View(base=base)) if base in self.aliases:
                self.aliases[out] = ()
                self.last = place
                return
        if self.mentioned_in(statement):
            self.last = place
            if isinstance(statement, Parallel):
                self.regions.append(place)
            elif not self.regions:
                self.regions.append(-1)  # something else fills it

    def mentioned_in(self, statement: Statement) -> bool:
        found = False
        for array in mentioned(statement):
            if array in self.aliases:
                found = True
                self.escapes |= isinstance(statement, Write | Declare | Opaque)
        for block in blocks_of(statement):
            for inner in block.statements:
                found |= self.mentioned_in(inner)
                if isinstance(inner, Let) and isinstance(inner.rhs, View | Reshape):
                    self.escapes |= inner.rhs.base in self.aliases  # a view inside: not followed
        return found


def _same_elements(region: Parallel, new: dict[Var, Shape | None], old: dict[Var, Shape | None]) -> bool:
    """Whether each point of the region reads `old` only where it writes `new`, and before it does."""
    indices: set[tuple[Operand, ...]] = set()
    shapes: set[Shape | None] = set()
    blocks: list[tuple[Block, tuple[Var, ...]]] = []

    def visit(block: Block, loops: tuple[Var, ...]) -> bool:
        written = False
        for statement in block.statements:
            match statement:
                case Let(_, Load(array, where)) if array in new or array in old:
                    if array in new or written:
                        return False
                    indices.add(where)
                    shapes.add(old[array])
                    blocks.append((block, loops))
                case Store(array, where, _) if array in new or array in old:
                    if array in old:
                        return False
                    written = True
                    indices.add(where)
                    shapes.add(new[array])
                    blocks.append((block, loops))
                case For(index=index, body=body):
                    if not visit(body, (*loops, index)):
                        return False
                case _:
                    if any(array in new or array in old for array in mentioned(statement)):
                        return False
                    if not all(visit(inner, loops) for inner in blocks_of(statement)):
                        return False
        return True

    if not visit(region.body, ()) or len(indices) != 1 or len(shapes) != 1 or shapes == {()}:
        return False
    (where,) = indices
    first, loops = blocks[0]
    # Every loop around the accesses moves them, so that no two points meet.
    moved = all(index in where for index in loops)
    return moved and all(block is first for block, _ in blocks)


# ---- renaming --------------------------------------------------------------------------------------------------------

Renaming = dict[Operand, Operand]


def rename(statement: Statement, names: Renaming) -> Statement:
    """The statement with some array variables replaced by others."""
    match statement:
        case Let(_, rhs):
            new = _rename_rhs(rhs, names)
            return statement if new is rhs else replace(statement, rhs=new)
        case Declare(cell, init) if init is not None and init in names:
            return Declare(cell, names[init])
        case Write(cell, value) if value in names:
            return Write(cell, names[value])
        case Store(array, indices, value, pos) if array in names:
            return Store(_var(names, array), indices, value, pos)
        case If(condition, then, orelse):
            return If(condition, _rename_block(then, names), _rename_block(orelse, names))
        case For(body=body) | Parallel(body=body):
            return replace(statement, body=_rename_block(body, names))
        case While(head, condition, body):
            return While(_rename_block(head, names), condition, _rename_block(body, names))
        case Matmul(out, left, right, pos):
            return Matmul(_var(names, out), _var(names, left), _var(names, right), pos)
        case Opaque(outs, site, args, pos):
            return Opaque(outs, site, tuple(names.get(arg, arg) for arg in args), pos)
        case _:
            return statement


def _var(names: Renaming, var: Var) -> Var:
    found = names.get(var, var)
    assert isinstance(found, Var)
    return found


def _rename_block(block: Block, names: Renaming) -> Block:
    return Block(tuple([rename(statement, names) for statement in block.statements]))


def _rename_rhs(rhs: Rhs, names: Renaming) -> Rhs:
    match rhs:
        case Load(array, indices) if array in names:
            return Load(_var(names, array), indices)
        case Dim(array, axis) if array in names:
            return Dim(_var(names, array), axis)
        case View(base, starts, axes) if base in names:
            return View(_var(names, base), starts, axes)
        case Reshape(base, extents) if base in names:
            return Reshape(_var(names, base), extents)
        case _:
            return rhs
