"""Tasks: statements of a function's host part that need nothing of each other, found when it is cut into regions.

A block is read in order. A statement that computes something (a region, a loop with regions in it) and that needs
nothing that the statements before it have made begins a task; what needs something of one task joins it; what needs
something of two waits for both, so it ends the *stage*: the tasks so far are a group, if there are several. What needs
nothing and costs nothing (extents, views, new arrays) goes before the group. Calls of Python end a stage too.

So that the order of tasks cannot be seen: what one writes no other reads or writes (`alias` says what may be
the same memory); an argument is stored to only if nothing can fail that comes before it in the program and is of
another task; and what may fail of one task does not come after what may fail of a later one, so the first task that
fails has the exception that Python would have raised.

Whether a group's tasks are run at the same time is up to each call (`task_calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Object
from parakeet_py.hybrid.plan.host_code import HostFunction
from parakeet_py.imp import ir as imp
from parakeet_py.typed_ir.ir import Block, Let, Opaque, Var, blocks_of, walk
from parakeet_py.typed_ir.passes.analysis.alias import Aliases, Atoms, Effects
from parakeet_py.typed_ir.rewrite import free_in_op


@record
class Task:
    """Statements as a host part of their own.

    Attributes
    ----------
    args, outs : what it takes from outside, and what it makes that is used later
    function, host : as Imp and as Python
    lines : of the source
    """

    args: tuple[Var, ...]
    outs: tuple[Var, ...]
    function: imp.Function
    host: HostFunction
    lines: tuple[int, ...]


@record
class Group:
    """Tasks that need nothing of each other; `args` is what they take together."""

    name: str
    args: tuple[Var, ...]
    tasks: tuple[Task, ...]


@record(eq=False)
class Stage:
    """Statements of a block: what comes first, then tasks in the order in which they begin."""

    first: list[Let] = field(default_factory=list)
    tasks: list[_Statements] = field(default_factory=list)

    def statements(self) -> list[Let]:
        return [*self.first, *(let for task in self.tasks for let in task.lets)]


class _Statements:
    """The statements of a task, and what they do."""

    def __init__(self) -> None:
        self.lets: list[Let] = []
        self.made: set[Var] = set()
        self.reads: set[Var] = set()
        self.writes: set[Var] = set()
        self.fails = False
        self.shows = False  # it stores to what is seen outside

    def needed_by(self, let: Let, effects: Effects) -> bool:
        return (
            any(var in self.made for var in free_in_op(let.op))
            or not self.writes.isdisjoint(effects.reads | effects.writes)
            or not self.reads.isdisjoint(effects.writes)
        )

    def add(self, let: Let, effects: Effects, fails: bool, shows: bool) -> None:
        self.lets.append(let)
        self.made.update(let.outs)
        self.reads |= effects.reads
        self.writes |= effects.writes
        self.fails |= fails
        self.shows |= shows


class Stages:
    """The stages of the blocks of one function.

    Parameters
    ----------
    computes : whether a statement is worth being a task
    """

    def __init__(self, aliases: Aliases, seen: Atoms, computes: Callable[[Let], bool]) -> None:
        self.aliases, self.seen, self.computes = aliases, seen, computes

    def of(self, block: Block) -> list[Stage | Let]:
        """A block in order, as stages and statements between them; stages have at least two tasks."""
        found: list[Stage | Let] = []
        stage = Stage()
        order: list[Let] = []

        def close() -> None:
            nonlocal stage, order
            found.extend([stage] if len(stage.tasks) > 1 else order)
            stage, order = Stage(), []

        for let in block.statements:
            if self._ends(let):
                close()
                found.append(let)
                continue
            if not self._added(stage, let):
                close()
                self._added(stage, let)
            order.append(let)
        close()
        return found

    def _ends(self, let: Let) -> bool:
        """Whether a statement stands between stages: Python is called, or has made what it works with."""
        inside = [let, *(inner for block in blocks_of(let.op) for inner in walk(block))]
        return any(
            isinstance(one.op, Opaque) or any(isinstance(var.type, Object) for var in one.outs) for one in inside
        )

    def _added(self, stage: Stage, let: Let) -> bool:
        """Whether a statement could be added to a stage."""
        effects = self.aliases.effects(let.op)
        fails = effects.fails or effects.overflows
        shows = not self.seen.isdisjoint(effects.writes)
        needed = [number for number, task in enumerate(stage.tasks) if task.needed_by(let, effects)]
        if len(needed) > 1:
            return False
        if not needed and not self.computes(let):
            if stage.tasks and (effects.writes or (fails and any(task.fails or task.shows for task in stage.tasks))):
                return False
            stage.first.append(let)
            return True
        number = needed[0] if needed else len(stage.tasks)
        others = [task for other, task in enumerate(stage.tasks) if other != number]
        later = stage.tasks[number + 1 :]
        if shows and any(task.fails for task in others):
            return False
        if fails and any(task.fails or task.shows for task in later):
            return False
        if number == len(stage.tasks):
            stage.tasks.append(_Statements())
        stage.tasks[number].add(let, effects, fails, shows)
        return True


def lines_of(lets: Sequence[Let]) -> tuple[int, ...]:
    """The lines of the source that statements stand in, with those inside them."""
    inside = [inner for let in lets for block in blocks_of(let.op) for inner in walk(block)]
    return tuple(sorted({let.pos.line for let in (*lets, *inside) if let.pos.line}))
