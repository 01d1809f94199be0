"""What each iteration of a loop asks of a device: runs of statements of a host part, between those that wait.

A loop that goes on until an element is small launches the same kernels time and again. Where such a *round* begins
with the same sizes and arrays as an earlier one, it asks for the same, and need not be gone through (`execute.rounds`).
What a round does follows from the variables and cells that it reads. Scalars that no launch, array or check needs, such
as counters, are not a part of it: they differ in each iteration, and stand behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from parakeet_py.base.types import Scalar
from parakeet_py.imp import ir
from parakeet_py.typed_ir.ir import Load, Prim, Var

_Name = Var | ir.Cell


class Round(NamedTuple):
    """A run of statements.

    Attributes
    ----------
    asks, behind : those that concern the device, and the others
    reads : what those that ask read of what is around them
    gives : what they leave to others
    drops : whose references are given up behind them
    """

    asks: ir.Block
    behind: tuple[ir.Statement, ...]
    reads: tuple[_Name, ...]
    gives: tuple[_Name, ...]
    drops: tuple[_Name, ...]


class Rounds:
    """Finds the rounds of a host part."""

    def __init__(self, function: ir.Function) -> None:
        self.uses = _uses(ir.walk(function.body))
        self.uses.update(result for result in function.results if isinstance(result, Var))

    def of(self, block: ir.Block) -> Iterator[ir.Statement | Round]:
        """The statements of a block in a loop; those of rounds together."""
        run: list[ir.Statement] = []
        for statement in block.statements:
            if _belongs(statement):
                run.append(statement)
            else:
                yield from self._closed(run)
                run = []
                yield statement
        yield from self._closed(run)

    def _closed(self, run: Sequence[ir.Statement]) -> Iterable[ir.Statement | Round]:
        if not any(isinstance(one, ir.Launch) for one in ir.walk(ir.Block(tuple(run)))):
            return run
        asking = [_asks(statement) for statement in run]
        known = [_facts(statement) for statement in run]
        while True:  # what they need, and what touches their cells, is a part of it
            mine = [one for one, asks in zip(known, asking, strict=True) if asks]
            wanted = {name for one in mine for name in (*one.reads, *one.cells)}
            written = {name for one in mine for name in one.writes if isinstance(name, ir.Cell)}
            more = [
                asks or not wanted.isdisjoint(one.writes) or not written.isdisjoint(one.cells | one.writes)
                for one, asks in zip(known, asking, strict=True)
            ]
            if more == asking:
                break
            asking = more
        asks = ir.Block(tuple([one for one, there in zip(run, asking, strict=True) if there]))
        mine = [one for one, there in zip(known, asking, strict=True) if there]
        bound = {name for one in mine for name in one.binds}
        written_first: set[_Name] = set()
        reads: dict[_Name, None] = {}
        for one in mine:
            reads |= dict.fromkeys(name for name in (*one.reads, *one.cells) if name not in bound | written_first)
            written_first.update(one.writes if one.plain else ())
        inside = _uses(ir.walk(asks))
        nested = {name for one in asks.statements if isinstance(one, ir.If) for name in _facts(one).binds}
        gives: dict[_Name, None] = dict.fromkeys(
            name for one in mine for name in one.writes if isinstance(name, ir.Cell) and name not in nested
        )
        gives |= dict.fromkeys(
            name for one in mine for name in one.binds if isinstance(name, Var) and self.uses[name] > inside[name]
        )
        drops = dict.fromkeys(one.array for one in asks.statements if isinstance(one, ir.Release))
        drops |= dict.fromkeys(name for one in mine for name in one.binds if not isinstance(name.type, Scalar))
        behind = tuple([one for one, there in zip(run, asking, strict=True) if not there])
        return [Round(asks, behind, tuple(reads), tuple(gives), tuple(name for name in drops if name not in gives))]


class _Facts(NamedTuple):
    """The variables that a statement reads and binds, the cells that it reads, what it writes; whether that is sure."""

    reads: frozenset[_Name]
    binds: frozenset[_Name]
    cells: frozenset[_Name]
    writes: frozenset[_Name]
    plain: bool


def _facts(statement: ir.Statement) -> _Facts:
    reads: set[_Name] = set()
    binds: set[_Name] = set()
    cells: set[_Name] = set()
    writes: set[_Name] = set()
    for one in ir.walk(ir.Block((statement,))):
        reads.update(operand for operand in ir.operands_in(one) if isinstance(operand, Var))
        match one:
            case ir.Let(out, rhs):
                binds.add(out)
                if isinstance(rhs, ir.Read):
                    cells.add(rhs.cell)
            case ir.Declare(cell):
                binds.add(cell)
                writes.add(cell)
            case ir.Write(cell):
                writes.add(cell)
    plain = not isinstance(statement, ir.If)
    return _Facts(frozenset(reads - binds), frozenset(binds), frozenset(cells), frozenset(writes | binds), plain)


def _belongs(statement: ir.Statement) -> bool:
    """Whether a statement can be a part of a round: it neither waits nor begins a loop."""
    match statement:
        case ir.Let(rhs=Load()):
            return False
        case ir.Let(rhs=Prim(name)):
            return not name.endswith("_checked")  # it may raise an exception between launches, and counters do
        case ir.If(_, then, orelse):
            return all(map(_belongs, (*then.statements, *orelse.statements)))
    kinds = ir.Let | ir.Declare | ir.Write | ir.Check | ir.Launch | ir.Release | ir.Retain
    return isinstance(statement, kinds)


def _asks(statement: ir.Statement) -> bool:
    """Whether a statement itself concerns the device."""
    for one in ir.walk(ir.Block((statement,))):
        match one:
            case ir.Launch() | ir.Check() | ir.Release() | ir.Retain():
                return True
            case ir.Let(out) if not isinstance(out.type, Scalar):
                return True
            case ir.Let(rhs=ir.Offered()):
                return True
            case ir.Declare(cell) | ir.Write(cell) if not isinstance(cell.type, Scalar):
                return True
    return False


def _uses(statements: Iterable[ir.Statement]) -> Counter[Var]:
    return Counter(operand for one in statements for operand in ir.operands_in(one) if isinstance(operand, Var))
