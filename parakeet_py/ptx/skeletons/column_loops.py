"""Loops whose rounds change rows that data chooses: a thread for every column, which goes through all rounds.

    for i in range(n):                               launch, a thread for each j:
        k = labels[i]; check k                 ->        for i in range(n):
        map j < m: sums[k, j] += x[i, j]                     k = labels[i]; check k
        counts[k] += 1                                       sums[k, j] += x[i, j]
                                                             if j == 0: counts[k] += 1

Sums by labels (k-means, segments) written as a loop would be a launch for every point, and a wait for every label. Here
they are one launch, in the order of the loop, so that sums have the bits of Python's. It is done where what the map
stores to is touched in its own column only, so that columns do not depend on each other; scalars that are stored are
the business of the first thread. All threads meet the same checks, and stop in the same round: what has been stored
before is what Python would have stored. Columns run at the same time, rounds do not: with few columns it is slow, as a
loop on one thread is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import INT64, Array
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.loops import axes_of
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.ptx.kernels.regions import THREADS, grid_of_blocks, index_of, unravel, walked
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Let, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases

_SCALARS = ir.Prim | ir.Cast | ir.Dim | ir.Load | ir.Check


@record
class ColumnLoop:
    """A loop of this kind: the columns, and what a round does, step after step: the statements of all threads, those of
    the first one, and the map, which stands for itself."""

    loop: ir.For
    columns: Let
    steps: tuple[tuple[str, tuple[Let, ...]], ...]


def column_loops(function: ir.Function) -> dict[Var, ColumnLoop]:
    """The loops of a function that run by columns, by their indices."""
    loops = [let.op for let in function.statements() if isinstance(let.op, ir.For)]
    if not any(isinstance(inner.op, ir.Map) for loop in loops for inner in loop.body.statements):
        return {}
    aliases = Aliases(function)
    made = (_made(loop, aliases) for loop in loops)
    return {found.loop.index: found for found in made if found is not None}


def _made(loop: ir.For, aliases: Aliases) -> ColumnLoop | None:
    body = loop.body.statements
    maps = [let for let in body if isinstance(let.op, ir.Map)]
    if loop.stoppable or loop.params or len(maps) != 1:
        return None
    (columns,) = maps
    op = columns.op
    assert isinstance(op, ir.Map)
    local = {loop.index, *(out for let in body for out in let.outs)}
    if columns.outs or not op.extents or not local.isdisjoint(op.extents):
        return None
    stored = _by_columns(op, aliases)
    if stored is None:
        return None
    scalars = {let.op.array for let in body if isinstance(let.op, ir.Store)}
    if any(aliases.may_alias(one, other) for one in scalars for other in _arrays(op)):
        return None
    steps = _Steps()
    for let in body:
        made = let.op
        if let is columns:
            if not steps.of_first.isdisjoint(_read(op.body)):
                return None
            steps.add("columns", let)
            continue
        if isinstance(made, ir.Store):
            if made.array.type.layout not in "CF":  # type: ignore[union-attr]
                return None
        elif not isinstance(made, _SCALARS):
            return None
        theirs = isinstance(made, ir.Store) or not steps.of_first.isdisjoint(_operands(made))
        if isinstance(made, ir.Load):
            if any(aliases.may_alias(made.array, array) for array in stored):
                return None
            theirs |= any(aliases.may_alias(made.array, array) for array in scalars)
        if theirs and (_may_fail(made) or not steps.gone.isdisjoint(_operands(made))):
            return None
        steps.add("first" if theirs else "all", let)
    return ColumnLoop(loop, columns, tuple((who, tuple(some)) for who, some in steps.found))


class _Steps:
    """The steps of a round, in the order of its stores and checks; what can't be seen moves before the stores.

    Attributes
    ----------
    of_first, gone : what only the first thread knows; of that, what later steps of its do not
    """

    def __init__(self) -> None:
        self.found: list[tuple[str, list[Let]]] = [("all", [])]
        self.of_first: set[Var] = set()
        self.gone: set[Var] = set()

    def add(self, who: str, let: Let) -> None:
        if who == "all" and not _may_fail(let.op):
            self.found[0][1].append(let) if not self._needs_later(let) else self._last("all").append(let)
            return
        if who == "first":
            self.of_first.update(let.outs)
        self._last(who).append(let)

    def _needs_later(self, let: Let) -> bool:
        """Whether a statement needs what other than the first step makes."""
        made = {out for who, some in self.found[1:] if who == "all" for one in some for out in one.outs}
        return not made.isdisjoint(_operands(let.op))

    def _last(self, who: str) -> list[Let]:
        """The step that is next, for this kind of statements."""
        if self.found[-1][0] != who:
            if who != "first":
                self.gone = set(self.of_first)
            self.found.append((who, []))
        return self.found[-1][1]


def _by_columns(op: ir.Map, aliases: Aliases) -> list[Var] | None:
    """The arrays that a map stores to, if it touches them in its own column only and nothing in it can fail."""
    accesses = []
    index_of: dict[Any, Var] = {index: index for index in op.indices}  # of what is so many columns further
    for let in ir.walk(op.body):
        made = let.op
        if isinstance(made, ir.Prim) and made.name in ("add", "sub") and isinstance(made.args[1], Const):
            base = made.args[0]
            if isinstance(base, Var) and base in op.indices:
                index_of[let.outs[0]] = base
        if isinstance(made, ir.Load | ir.Store):
            accesses.append(made)
        elif _may_fail(made) or any(isinstance(one, Var) and isinstance(one.type, Array) for one in _operands(made)):
            return None
    stored = list(dict.fromkeys(access.array for access in accesses if isinstance(access, ir.Store)))
    for array in stored:
        places = None
        for access in accesses:
            if access.array is not array:
                if aliases.may_alias(access.array, array):  # one descriptor for each memory
                    return None
                continue
            at = [(place, one) for place, one in enumerate(access.indices) if one in index_of]
            columns = [index_of[one] for _, one in at]
            if len(columns) != len(op.indices) or set(columns) != set(op.indices) or at != (places or at):
                return None
            places = at
        assert isinstance(array.type, Array)
        if array.type.layout not in "CF":  # elements may be one
            return None
    return stored or None


def _arrays(op: ir.Map) -> set[Var]:
    return {let.op.array for let in ir.walk(op.body) if isinstance(let.op, ir.Load | ir.Store)}


def _operands(op: ir.Op) -> set[Any]:
    return {one for one in ir.operands_of(op) if isinstance(one, Var)}


def _read(block: Block) -> set[Any]:
    return {one for let in ir.walk(block) for one in _operands(let.op)}


def _may_fail(op: ir.Op) -> bool:
    return isinstance(op, ir.Check) or (isinstance(op, ir.Prim) and op.name.endswith("_checked"))


def lower_columns(
    usual: Callable[..., None],
    loops: dict[Var, ColumnLoop],
    lo: Lowering,
    outs: tuple[Var, ...],
    op: ir.For,
) -> None:
    """Lower a loop by columns, if it is one of those; `usual` lowers others."""
    found = loops.get(op.index)
    if found is None or lo.in_region:
        usual(lo, outs, op)
        return
    columns = found.columns.op
    assert isinstance(columns, ir.Map)
    axes = axes_of(columns.indices, lo.operands(columns.extents))
    points = lo.product(axis.extent for axis in axes)
    start, stop, step = lo.operands((op.start, op.stop, op.step))

    def thread(block: Var, thread: Var) -> None:
        number = index_of(lo, block, thread)
        lo.order = lambda: number
        index = lo.bind(op.index)

        def column() -> None:
            unravel(lo, walked(lo, axes), number)
            lo.lower_block(columns.body)

        def round_() -> None:
            for who, statements in found.steps:
                if who == "columns":
                    lo.when(lo.compare("lt", number, points), column)
                elif who == "first":
                    lo.when(lo.compare("eq", number, ZERO), partial(_lower, lo, statements))
                else:
                    _lower(lo, statements)

        lo.loop(index, start, stop, round_, "serial", step)

    blocks = lo.maximum(lo.ceil_div(points, Const(THREADS, INT64)), ONE)  # checks are made where there is no column
    grid_of_blocks(lo, blocks, "columns", thread, at_once=True)


def _lower(lo: Lowering, statements: Sequence[Let]) -> None:
    lo.lower_block(Block(tuple(statements), ()))
