"""Tasks that are always run one after another become one: fewer for the scheduler, and nothing between them is sent.

A task becomes part of another one if all that read what it gives are parts of that one already. Then only the last part
gives something to others, and no cycle can arise. So that nothing runs one after another that could run side by side,
the parts are a line: each reads what the next one gives. What only takes a value out of a tuple is a part beside it.
The code of the parts is one value with as many kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from hashlib import blake2b
from typing import Any

from dask._task_spec import DataNode, Task, TaskRef

from parakeet_py.cluster.worker import tasks as worker
from parakeet_py.cluster.worker.given_up import passed_on, tried
from parakeet_py.cluster.worker.kernel import Kernel

_JOINS: frozenset[Callable[..., Any]] = frozenset(
    (
        worker.combined,
        worker.added,
        worker.assembled,
        worker.joined_rows,
        worker.product,
        worker.run_routine,
        worker.totals_before,
        worker.after,
    )
)
"""What they read, if it is several things, is made side by side: a line begins with one."""


class _Line:
    """Tasks that become one: the last one first.

    Attributes
    ----------
    next : keys that the first of them reads, directly or by what is taken out of tuples
    """

    __slots__ = ("members", "next")

    def __init__(self, key: Hashable, task: Task) -> None:
        self.members = {key: task}
        self.next: set[Hashable] = set()
        self.begin(task)

    def begin(self, task: Task) -> None:
        self.next = set() if _is_join(task) and len(task.dependencies) > 1 else set(task.dependencies)


def fused(tasks: dict[Any, Any], shown: Collection[Hashable], apart: Collection[Hashable]) -> dict[Any, Any]:
    """The tasks with lines of them as one task each; `shown` ones stay, as do those that are better `apart`."""
    lines: dict[Hashable, _Line] = {}  # by the keys of their members
    readers: dict[Hashable, list[Hashable]] = {}
    for key, task in tasks.items():
        for other in getattr(task, "dependencies", ()):
            readers.setdefault(other, []).append(key)
    for key, task in reversed(tasks.items()):  # what reads a task comes after it
        if not isinstance(task, Task):
            continue
        line = None if key in shown or key in apart else _line_of(key, task, readers.get(key, ()), lines)
        if line is None:
            lines[key] = _Line(key, task)
            continue
        line.members[key] = task
        lines[key] = line
        if _function(task) is worker.take:
            line.next |= task.dependencies
        else:
            line.begin(task)
    found: dict[Any, Any] = {}
    for key, task in tasks.items():
        line = lines.get(key)
        if line is None or len(line.members) == 1:
            found[key] = task
        elif next(iter(line.members)) == key:
            found[key] = _together(key, line, tasks, found)
    read = {other for task in found.values() for other in getattr(task, "dependencies", ())}
    return {key: task for key, task in found.items() if key in read or not _is_code(task)}


def _is_code(task: Any) -> bool:
    return isinstance(task, DataNode) and isinstance(task.value, Kernel)


def _line_of(key: Hashable, task: Task, readers: Collection[Hashable], lines: Mapping[Hashable, _Line]) -> _Line | None:
    """The line that a task becomes the first part of, if there is one."""
    line = lines.get(next(iter(readers), None))
    if line is None or any(lines.get(one) is not line for one in readers):
        return None
    return line if key in line.next else None


def _function(task: Task) -> Any:
    return task.args[0] if task.func in (tried, passed_on) else task.func


def _is_join(task: Task) -> bool:
    return _function(task) in _JOINS


def _together(key: Hashable, line: _Line, tasks: Mapping[Any, Any], found: dict[Any, Any]) -> Task:
    """One task of several, in the order in which they run."""
    places: dict[Hashable, worker.Value] = {}
    given: list[TaskRef] = []
    members = list(reversed(line.members.items()))
    outside = dict.fromkeys(other for _, task in members for other in task.dependencies if other not in line.members)
    codes = [other for other in outside if _is_code(tasks.get(other))]
    if len(codes) > 1:
        bundle = f"{codes[0]}-and-{blake2b(repr(codes).encode(), digest_size=8).hexdigest()}"
        found.setdefault(bundle, DataNode(bundle, tuple(tasks[code].value for code in codes)))
        places |= {code: worker.Value(0, number) for number, code in enumerate(codes)}
        given.append(TaskRef(bundle))
    for other in outside:
        if other not in places:
            places[other] = worker.Value(len(given))
            given.append(TaskRef(other))
    steps = []
    for number, (own, task) in enumerate(members):
        args = tuple(places[arg.key] if isinstance(arg, TaskRef) else arg for arg in task.args)
        steps.append((task.func, args))
        places[own] = worker.Value(len(given) + number)
    return Task(key, worker.in_turn, tuple(steps), *given)
