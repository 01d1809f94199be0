"""New arrays in the memory of temporaries that die.

`out` may take the memory of `old` when both are made in the same block with the same dtype, layout and extents, the
region that fills `out` is the last to use `old`, and there every point reads `old` only at the element of `out` that it
writes, before it writes it. Then nothing can see the difference, and the block has one array less.

    old = new (n)                                   old = new (n)
    ...                                             ...
    out = new (n)                          becomes
    parallel: x = old[i]; out[i] := f(x)            parallel: x = old[i]; old[i] := f(x)

The pass runs before references are counted (`reference_counts.manage`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from parakeet_py.base.grammar import substitute
from parakeet_py.imp import ir
from parakeet_py.imp.ir import Block, Let
from parakeet_py.imp.storage.reference_counts import mentioned
from parakeet_py.typed_ir.ir import AnyView, Load, Operand, Reshape, Var

Shape = tuple[Operand, ...]
Renaming = dict[Operand, Operand]


def reuse(block: Block, results: tuple[Operand, ...] = ()) -> tuple[Block, tuple[Operand, ...]]:
    """The block and its results with new arrays in the place of dead ones, nested blocks included."""
    statements = [_inside(statement) for statement in block.statements]
    names = _pairs(statements, results)
    if names:
        made = [isinstance(statement, Let) and statement.out in names for statement in statements]
        statements = [one for one, dropped in zip(statements, made, strict=True) if not dropped]
        results = tuple(names.get(result, result) for result in results)
    return substitute(Block(tuple(statements)), names), results


def _inside(statement: ir.Statement) -> ir.Statement:
    match statement:
        case ir.If(_, then, orelse):
            return replace(statement, then=reuse(then)[0], orelse=reuse(orelse)[0])
        case ir.For(body=body) | ir.While(body=body):
            return replace(statement, body=reuse(body)[0])
        case _:
            return statement


def _pairs(statements: Sequence[ir.Statement], results: Sequence[Operand]) -> Renaming:
    """The arrays that get the memory of another, and whose."""
    arrays = [
        _Array(let.out, place, let.rhs.extents)
        for place, let in enumerate(statements)
        if isinstance(let, Let) and isinstance(let.rhs, ir.NewArray) and let.rhs.space == "heap"
    ]
    if len(arrays) < 2:
        return {}
    uses = _Uses(arrays)
    for place, statement in enumerate(statements):
        uses.visit(place, statement)
    uses.escape(results)
    dying: dict[int, list[_Array]] = {}
    for array in arrays:
        if not array.escapes:
            dying.setdefault(array.last, []).append(array)
    names: Renaming = {}
    for array in arrays:
        region = statements[array.first]
        if not isinstance(region, ir.Parallel):
            continue
        for old in dying.get(array.first, ()):
            same = old.extents == array.extents and old.variable.type == array.variable.type
            if same and old.made < array.made and _same_elements(region, array.aliases, old.aliases):
                names[array.variable] = names.get(old.variable, old.variable)
                dying[array.first].remove(old)
                break
    return names


class _Array:
    """An array made in a block: the first statement that uses its elements, the last that mentions it, and whether it
    is handed on to where it cannot be followed (a cell, a call, a result, a view inside a region)."""

    def __init__(self, variable: Var, made: int, extents: Shape) -> None:
        self.variable = variable
        self.made = made
        self.extents = extents
        self.aliases: dict[Var, Shape | None] = {variable: None}  # reshaped: the extents; () for other views
        self.first = self.last = made
        self.escapes = False


class _Uses:
    """One walk over the statements of a block that finds the uses of the arrays it makes."""

    def __init__(self, arrays: Sequence[_Array]) -> None:
        self.owners = {array.variable: array for array in arrays}

    def visit(self, place: int, statement: ir.Statement) -> None:
        if isinstance(statement, Let) and isinstance(statement.rhs, AnyView):
            base, out = statement.rhs.base, statement.out
            owner = self.owners.get(base)
            if owner is not None:
                plain = owner.aliases[base] is None
                owner.aliases[out] = statement.rhs.extents if plain and isinstance(statement.rhs, Reshape) else ()
                owner.last = place
                self.owners[out] = owner
            return
        for array in self.mentions(statement):
            array.last = place
            if array.first == array.made:
                array.first = place

    def mentions(self, statement: ir.Statement) -> Iterator[_Array]:
        for variable in mentioned(statement):
            owner = self.owners.get(variable) if isinstance(variable, Var) else None
            if owner is not None:
                owner.escapes |= isinstance(statement, ir.Write | ir.Declare | ir.Opaque | ir.Call)
                yield owner
        for block in ir.blocks_of(statement):
            for inner in block.statements:
                for owner in self.mentions(inner):
                    if isinstance(inner, Let) and isinstance(inner.rhs, AnyView):
                        owner.escapes = True
                    yield owner

    def escape(self, results: Sequence[Operand]) -> None:
        for result in results:
            owner = self.owners.get(result) if isinstance(result, Var) else None
            if owner is not None:
                owner.escapes = True


def _same_elements(region: ir.Parallel, new: dict[Var, Shape | None], old: dict[Var, Shape | None]) -> bool:
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
                case ir.Store(array, where, _) if array in new or array in old:
                    if array in old:
                        return False
                    written = True
                    indices.add(where)
                    shapes.add(new[array])
                    blocks.append((block, loops))
                case ir.For(index=index, body=body):
                    if not visit(body, (*loops, index)):
                        return False
                case _:
                    if any(array in new or array in old for array in mentioned(statement)):
                        return False
                    if not all(visit(inner, loops) for inner in ir.blocks_of(statement)):
                        return False
        return True

    if not visit(region.body, ()) or len(indices) != 1 or len(shapes) != 1 or shapes == {()}:
        return False
    (where,) = indices
    first, loops = blocks[0]
    # Every loop around the accesses moves them, so that no two points meet.
    moved = all(index in where for index in loops)
    return moved and all(block is first for block, _ in blocks)
