"""Who owns memory: reference counting of blocks, placed so that memory is given back as soon as it is dead.

Lowering makes memory (`NewArray`, `Opaque`) and copies descriptors freely; `manage` decides who owns a reference:

* an array that is made, an opaque result and a cell are *owners*; a view, a reshaped array and a value read from a cell
  borrow from the owner they come from, and parameters are borrowed from the caller;
* an owner's reference is dropped after the last statement of its own block that mentions it or a borrower;
* writing to a cell hands over the owner's reference if that is its last use, else makes a new one. All values written
  at the end of an iteration are secured before the cells' old ones are dropped: they may be each other;
* a result hands its reference to the caller in the same way.

Inside a `Parallel` region nothing is made and nothing is dropped: blocks are counted by one thread only. A failing
check needs no cleaning up on its way out; the runtime frees what the call still holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parakeet_py.base import grammar
from parakeet_py.base.grammar import Leaf, Use, with_blocks
from parakeet_py.base.types import Array, Object
from parakeet_py.imp import ir
from parakeet_py.imp.ir import Block, Let
from parakeet_py.typed_ir.ir import AnyView, Operand, Var

Owner = Var | ir.Cell


def counted(kind: object) -> bool:
    """Whether values of a type hold references."""
    return isinstance(kind, Array | Object)


_parts = grammar.collector(lambda leaf, uses: leaf is Leaf.PLACE or (leaf is Leaf.OPERAND and Use.BINDS not in uses))


def mentioned(statement: ir.Statement) -> list[Var | ir.Cell]:
    """The arrays, objects and their cells that a statement itself mentions (not those in its blocks)."""
    return [one for one in _parts(statement) if counted(one.type)]


class _Manager:
    def __init__(self, body: Block) -> None:
        self.owners: dict[Owner, Owner] = {}
        self.carried: set[ir.Cell] = set()  # cells that hold something before every write
        self.used: dict[int, set[Owner]] = {}  # by statements with blocks, by `id`
        for statement in ir.walk(body):
            self.learn(statement)

    def learn(self, statement: ir.Statement) -> None:
        owners = self.owners
        match statement:
            case Let(out, ir.NewArray(_, "heap")):
                owners[out] = out
            case Let(out, AnyView(source) | ir.Read(source)) if counted(out.type):
                if source in owners:
                    owners[out] = owners[source]
            case ir.Declare(cell, init) if counted(cell.type):
                owners[cell] = cell
                if init is not None:
                    self.carried.add(cell)
            case ir.Opaque(outs) | ir.Call(outs):
                for out in outs:
                    if counted(out.type):
                        owners[out] = out

    def uses(self, statement: ir.Statement) -> set[Owner]:
        """The owners that a statement mentions, blocks included."""
        owners = self.owners
        blocks = ir.blocks_of(statement)
        if blocks and id(statement) in self.used:  # of what is inside of others each of these asks
            return self.used[id(statement)]
        found = {owners[place] for place in mentioned(statement) if place in owners}
        if blocks:
            found.update(*[self.uses(inner) for block in blocks for inner in block.statements])
            self.used[id(statement)] = found
        return found

    def block(self, block: Block, results: Sequence[Operand] = ()) -> Block:
        """Count references in one block; `results` are handed out at its end."""
        groups = list(_groups(block.statements))
        mine: set[Owner] = set()
        last: dict[Owner, int] = {}
        for number, group in enumerate(groups):
            for statement in group:
                match statement:
                    case Let(out, ir.NewArray(_, "heap")) | ir.Declare(cell=out) if counted(out.type):
                        mine.add(out)
                        last[out] = number
                    case ir.Opaque(outs) | ir.Call(outs):
                        for out in outs:
                            if counted(out.type):
                                mine.add(out)
                                last[out] = number
                for owner in self.uses(statement):
                    last[owner] = number
        for result in results:
            if isinstance(result, Var) and result in self.owners:
                last[self.owners[result]] = len(groups)
        dying: list[list[Owner]] = [[] for _ in range(len(groups) + 1)]
        for owner, number in last.items():
            if owner in mine:
                dying[number].append(owner)
        sink: list[ir.Statement] = []
        for number, group in enumerate(groups):
            values = [value for value in map(_copied, group) if value is not None]
            moved, retained = self.hand_over(values, dying[number])
            sink += [ir.Retain(value) for value in retained]
            sink += [ir.Release(s.cell) for s in group if isinstance(s, ir.Write) and s.cell in self.carried]
            sink += [self.statement(statement) for statement in group]
            sink += [ir.Release(owner) for owner in dying[number] if owner not in moved]
        values = [result for result in results if isinstance(result, Var) and counted(result.type)]
        moved, retained = self.hand_over(values, dying[len(groups)])
        sink += [ir.Retain(value) for value in retained]
        return Block(tuple(sink))

    def hand_over(self, values: Sequence[Var], dying: Sequence[Owner]) -> tuple[set[Owner], list[Var]]:
        """Which owners give their reference away with these values, and which values need a new one."""
        moved: set[Owner] = set()
        retained = []
        for value in values:
            owner = self.owners.get(value)
            if owner is not None and owner in dying and owner not in moved:
                moved.add(owner)
            else:
                retained.append(value)
        return moved, retained

    def statement(self, statement: ir.Statement) -> ir.Statement:
        return statement if isinstance(statement, ir.Parallel | ir.Grid) else with_blocks(statement, self.block)


def _groups(statements: Sequence[ir.Statement]) -> Iterator[tuple[ir.Statement, ...]]:
    """Statements one by one, but writes to counted cells that follow each other together."""
    group: list[ir.Statement] = []
    for statement in statements:
        if isinstance(statement, ir.Write) and (counted(statement.cell.type) or group):
            group.append(statement)
            continue
        if group:
            yield tuple(group)
            group = []
        yield (statement,)
    if group:
        yield tuple(group)


def _copied(statement: ir.Statement) -> Var | None:
    """The counted value of which a statement keeps a copy."""
    match statement:
        case ir.Write(_, Var() as value) | ir.Declare(_, Var() as value) if counted(value.type):
            return value
        case _:
            return None


def manage(body: Block, results: Sequence[Operand]) -> Block:
    """Add `Retain` and `Release` to a function body that has none."""
    return _Manager(body).block(body, results)


# ---- what is allocated -----------------------------------------------------------------------------------------------
