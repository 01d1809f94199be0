"""Tasks that are always run one after another become one: fewer for the scheduler, and nothing between them is sent.

The tasks of a call are put into groups, each of which becomes a task.

* A task joins the group of what reads it if nothing else does, and if it is what the first of that group reads: such
  groups are *lines*, so nothing runs one after another that could run side by side.
* Edges of chunks that are computed again join what reads them (see `again`), and what is read of a chunk twice is taken
  from the wider slice.
* What is `small`, and reads nothing that the only group which reads it does not wait for anyway, joins that.
* Groups that give small values, all read one task, and nothing else but what that reads, become one with it (sums and
  counts of the points that belong to centres, both from one chunk's labels). Such a group gives several values, of
  which readers take theirs.

None of these can make a cycle: what the larger group reads, one of its parts has read before. Constants of the call,
machine code and small arrays, are put into the tasks that read them, if these are not too many: a worker that had to
fetch them from another one would take longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from hashlib import blake2b
from typing import Any

import numpy as np
from dask._task_spec import DataNode, Task, TaskRef

from parakeet_py.cluster.worker import lines
from parakeet_py.cluster.worker import tasks as worker
from parakeet_py.cluster.worker.buffers import Box, is_in, volume
from parakeet_py.cluster.worker.given_up import passed_on, tried
from parakeet_py.cluster.worker.kernel import Kernel

COPIES = 256  # of machine code, in as many tasks
CONSTANT = 1 << 17  # bytes of an array that is a constant
COPIED = 1 << 22  # bytes of its copies in tasks
SEVERAL = 8  # groups that become one with what they all read
ROUNDS = 4  # of looking for groups that become one

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


class _Group:
    """Tasks that become one.

    Attributes
    ----------
    members : their keys
    reads : keys of what they read from others, but for constants
    next : keys that the first of a line reads, directly or by what is taken out of tuples
    """

    __slots__ = ("members", "next", "reads")

    def __init__(self, key: Hashable) -> None:
        self.members = [key]
        self.reads: set[Hashable] = set()
        self.next: set[Hashable] = set()


class _Fusion:
    """The groups of a graph.

    Attributes
    ----------
    of : the group of each task that is in one
    readers : of each key
    outs : keys of each group that others read or that are shown, by `id`
    """

    def __init__(
        self,
        tasks: Mapping[Any, Any],
        shown: Collection[Hashable],
        apart: Collection[Hashable],
        small: Collection[Hashable],
        trivial: Collection[Hashable],
        again: Collection[Hashable],
    ) -> None:
        self.tasks, self.shown, self.apart, self.small, self.trivial = dict(tasks), shown, apart, small, trivial
        self.edges = again
        self.order = {key: number for number, key in enumerate(tasks)}
        self.constants = {key for key, task in tasks.items() if _is_constant(task)}
        self.codes = {key for key in self.constants if isinstance(tasks[key].value, Kernel)}
        self.readers: dict[Hashable, list[Hashable]] = {}
        for key, task in tasks.items():
            for other in getattr(task, "dependencies", ()):
                if other in self.readers:
                    self.readers[other].append(key)
                else:
                    self.readers[other] = [key]
        self.of: dict[Hashable, _Group] = {}

    # ---- lines -------------------------------------------------------------------------------------------------------

    def lines(self) -> None:
        for key in reversed(self.order):  # what reads a task comes after it
            task = self.tasks[key]
            if not isinstance(task, Task):
                continue
            reads = task.dependencies - self.constants
            line = self._line_of(key, task, reads)
            if line is None:
                line = _Group(key)
                self._begin(line, task, reads)
            else:
                line.members.append(key)
                line.reads.discard(key)
                if key in self.edges:
                    pass  # what it reads is made beside what the line begins with
                elif _function(task) in _ITEMS:
                    line.next |= reads
                elif key in line.next:
                    self._begin(line, task, reads)
            line.reads |= reads
            self.of[key] = line

    def _line_of(self, key: Hashable, task: Task, reads: Set[Hashable]) -> _Group | None:
        """The line that a task becomes a part of, if there is one."""
        if key in self.shown or key in self.apart:
            return None
        readers = self.readers.get(key, ())
        line = self.of.get(readers[0]) if readers else None
        if line is None or (len(readers) > 1 and any(self.of.get(one) is not line for one in readers)):
            return None
        if key in line.next or key in self.edges or (key in self.trivial and not reads):
            return line
        return line if len(reads) == 1 and _function(task) in _VIEWS else None

    @staticmethod
    def _begin(line: _Group, task: Task, reads: Set[Hashable]) -> None:
        line.next = set() if _is_join(task) and len(reads) > 1 else set(reads)

    def chunks_that_are_values(
        self, edges: Mapping[Hashable, tuple[Hashable, Box] | None]
    ) -> dict[Hashable, tuple[Hashable, Box]]:
        """The edges of chunks that are values of tasks anyway, and where in them they are."""
        outs: dict[int, frozenset[Hashable]] = {}
        found = {}
        for key, source in edges.items():
            if source is None or key not in self.tasks or source[0] not in self.of:
                continue
            group = self.of[source[0]]
            if id(group) not in outs:
                outs[id(group)] = frozenset(self.outs(group))
            if source[0] in outs[id(group)]:
                found[key] = source
        return found

    def with_slices(self, edges: Mapping[Hashable, tuple[Hashable, Box]]) -> dict[Any, Any]:
        """The tasks with some edges as slices of chunks; those that are not needed any more are left out."""
        tasks = dict(self.tasks)
        for key, (chunk, bounds) in edges.items():
            wraps = passed_on if tasks[key].func in _WRAPS or tasks[chunk].func in _WRAPS else None
            args: tuple[Any, ...] = worker.cut, TaskRef(chunk), bounds
            tasks[key] = Task(key, wraps, *args) if wraps else Task(key, *args)
        needed: set[Hashable] = set()
        left = [*self.shown]
        while left:
            key = left.pop()
            if key not in needed and key in tasks:
                needed.add(key)
                left += getattr(tasks[key], "dependencies", ())
        return {key: task for key, task in tasks.items() if key in needed}

    def widest_slices(self) -> None:
        """Slices that only a group reads which reads a wider one of the same chunk are taken from that."""
        slices: dict[tuple[Hashable, int], list[Hashable]] = {}
        of = self.of
        for key in self.apart:
            task = self.tasks.get(key)
            if not isinstance(task, Task) or task.func is not worker.cut or key in self.shown:
                continue
            readers = self.readers.get(key, [])
            group = of.get(readers[0]) if readers else None
            if group is None or len(of[key].members) != 1:
                continue
            if len(readers) == 1 or all([of.get(one) is group for one in readers]):
                slices.setdefault((task.args[0].key, id(group)), []).append(key)
        known: dict[tuple[Box, ...], list[tuple[int, int, Box]]] = {}
        for (source, _), keys in slices.items():
            if len(keys) > 1:
                keys.sort(key=self.order.__getitem__)
                boxes = tuple([self.tasks[key].args[1] for key in keys])
                if boxes not in known:
                    known[boxes] = _inside_others(boxes)
                for number, wider, local in known[boxes]:
                    self._take_from(keys[number], keys[wider], source, local)

    def _take_from(self, key: Hashable, wider: Hashable, source: Hashable, local: Box) -> None:
        """Take a slice from a wider one, in the task of those that read both."""
        self.tasks[key] = Task(key, worker.cut, TaskRef(wider), local)
        group = self.of[self.readers[key][0]]
        self.readers[source].remove(key)
        self.readers[wider].append(key)
        self.of[key] = group
        group.members.append(key)
        group.reads.discard(key)

    # ---- groups that read the same -----------------------------------------------------------------------------------

    def outs(self, group: _Group) -> list[Hashable]:
        """The keys of a group that others read or that are shown."""
        return [
            key
            for key in group.members
            if key in self.shown or any(self.of.get(one) is not group for one in self.readers.get(key, ()))
        ]

    def joined(self) -> bool:
        """Join groups with small ones that they read, and those that all read one; whether there were any."""
        found = False
        for group in list({id(one): one for one in self.of.values()}.values()):  # the last first
            if self.of[group.members[0]] is group:
                found |= self._joined(group)
        return found

    def _joined(self, group: _Group) -> bool:
        if any(key in self.shown or key in self.apart for key in group.members):
            return False
        outs = self.outs(group)
        wide = {id(self.of.get(one)): self.of.get(one) for key in outs for one in self.readers[key]}
        others = [one for one in wide.values() if one is not None and one is not group]
        if len(others) < len(wide) - (id(group) in wide) or not 0 < len(others) <= SEVERAL:
            return False
        own = self._wholes(group.reads)
        if len(others) == 1:
            (reader,) = others
            read = self._wholes(reader.reads) - {id(group)}
            if read and not (own and own <= read and self._are_small(outs)):
                return False
        elif not all(
            self._wholes(one.reads) - {id(group)} <= own and self._are_small(self.outs(one)) for one in others
        ):
            return False
        for one in others:
            self._merge(group, one)
        return True

    def _are_small(self, keys: Iterable[Hashable]) -> bool:
        return all(key in self.small for key in keys)

    def _wholes(self, keys: Iterable[Hashable]) -> set[Hashable]:
        """What is read: groups, by `id`, and other keys."""
        return {id(self.of[key]) if key in self.of else key for key in keys}

    def _merge(self, group: _Group, other: _Group) -> None:
        group.members += other.members
        group.reads |= other.reads
        for key in other.members:
            self.of[key] = group
        group.reads = {key for key in group.reads if self.of.get(key) is not group}

    # ---- tasks -------------------------------------------------------------------------------------------------------

    def made(self) -> dict[Any, Any]:
        """The tasks of the groups, and all else that is read."""
        groups = list({id(group): group for group in self.of.values()}.values())
        several: dict[Hashable, tuple[Hashable, int]] = {}  # where a value is that is one of several
        named: list[tuple[_Group, Hashable, list[Hashable]]] = []
        for group in reversed(groups):
            group.members.sort(key=self.order.__getitem__)
            outs = group.members[-1:] if len(group.members) == 1 else self.outs(group)
            key = outs[0] if outs else group.members[-1]
            if len(outs) > 1:
                first = outs[0]
                name, *place = first if isinstance(first, tuple) else (first,)
                key = (f"{name}-and-{blake2b(repr(outs).encode(), digest_size=8).hexdigest()}", *place)
                several |= {out: (key, number) for number, out in enumerate(outs)}
            named.append((group, key, outs))
        copied = self._copied(groups)
        found: dict[Any, Any] = {key: task for key, task in self.tasks.items() if key not in self.of}
        for group, key, outs in named:
            found[key] = self._task(group, key, outs, several, copied, found)
        for key, (whole, number) in several.items():
            if key in self.shown or any(one not in self.of for one in self.readers.get(key, ())):
                found[key] = Task(key, worker.take, TaskRef(whole), number)
        read = {other for task in found.values() for other in getattr(task, "dependencies", ())}
        unread = {key for key in self.constants if key not in read and key not in self.shown}
        return {key: task for key, task in found.items() if key not in unread}

    def _copied(self, groups: Iterable[_Group]) -> dict[Hashable, Any]:
        """Constants that are put into the tasks that read them."""
        times: Counter[Hashable] = Counter()
        for group in groups:
            times.update({other for key in group.members for other in self.tasks[key].dependencies & self.constants})
        found = {}
        for key, count in times.items():
            value = self.tasks[key].value
            if count <= COPIES if isinstance(value, Kernel) else count * value.nbytes <= COPIED:
                found[key] = value
        return found

    def _task(
        self,
        group: _Group,
        key: Hashable,
        outs: list[Hashable],
        several: Mapping[Hashable, tuple[Hashable, int]],
        copied: Mapping[Hashable, Any],
        found: dict[Any, Any],
    ) -> Task:
        """One task of several, in the order in which they run."""
        members = [self.tasks[one] for one in group.members]
        if len(members) == 1 and not several and copied.keys().isdisjoint(members[0].dependencies):
            return members[0]
        own = {one: number for number, one in enumerate(group.members)}
        outside = dict.fromkeys(
            [other for task in members for other in task.dependencies if other not in own and other not in copied]
        )
        if len(members) == 1 and not any(other in several for other in outside):
            (task,) = members
            return Task(key, task.func, *(_constant(arg, copied) for arg in task.args))
        places: dict[Hashable, worker.Value] = {}
        given: dict[Hashable, int] = {}
        codes = [other for other in outside if other in self.codes]
        if len(codes) > 1:
            bundle = f"{codes[0]}-and-{blake2b(repr(codes).encode(), digest_size=8).hexdigest()}"
            found.setdefault(bundle, DataNode(bundle, tuple(self.tasks[code].value for code in codes)))
            places |= {code: worker.Value(0, number) for number, code in enumerate(codes)}
            given[bundle] = 0
        for other in outside:
            if other not in places:
                whole, item = several.get(other, (other, -1)) if several else (other, -1)
                places[other] = worker.Value(given.setdefault(whole, len(given)), item)
        places |= {one: worker.Value(len(given) + number) for one, number in own.items()}
        steps = tuple(
            [
                (task.func, tuple([_placed(arg, places, copied) if type(arg) is TaskRef else arg for arg in task.args]))
                for task in members
            ]
        )
        refs = map(TaskRef, given)
        if len(outs) > 1:
            return Task(key, lines.several_in_turn, steps, tuple(places[out].place for out in outs), *refs)
        return Task(key, lines.in_turn, steps, *refs)


_WRAPS = frozenset((tried, passed_on))
_ITEMS = frozenset((worker.take,))
_VIEWS = frozenset((worker.joined_rows, worker.totals_of))
"""What costs nothing if it is done where its result is read."""


def fused(
    tasks: dict[Any, Any],
    shown: Collection[Hashable],
    apart: Collection[Hashable],
    small: Collection[Hashable] = (),
    trivial: Collection[Hashable] = (),
    again: Mapping[Hashable, tuple[Hashable, Box] | None] | None = None,
    sent: list[Hashable] | None = None,
) -> dict[Any, Any]:
    """The tasks with groups of them as one task each.

    Parameters
    ----------
    shown : keys that are results
    apart : keys of tasks that are better not done where their result is read
    small : keys of values of a few kilobytes
    trivial : those of them that cost next to nothing to make
    again : keys of edges of chunks that are computed where they are read, and of which chunk they are, and where in it
    sent : gets the keys of those of them that are sent instead, as the chunk is a value of its own anyway
    """
    edges = again or {}
    made = _Fusion(tasks, shown, apart, small, trivial, edges)
    made.lines()
    known = made.chunks_that_are_values(edges)
    if known:
        tasks, apart = made.with_slices(known), {*apart, *known}
        if sent is not None:
            sent += known
        made = _Fusion(tasks, shown, apart, small, trivial, edges.keys() - known.keys())
        made.lines()
    made.widest_slices()
    if small:
        for _ in range(ROUNDS):
            if not made.joined():
                break
    return made.made()


def _inside_others(boxes: Sequence[Box]) -> list[tuple[int, int, Box]]:
    """Of boxes that are in others: their numbers, those of the widest ones around them, and where in these they are."""
    found = []
    rank = [(volume(box), -number) for number, box in enumerate(boxes)]
    for number, box in enumerate(boxes):
        around = [one for one, other in enumerate(boxes) if rank[one] > rank[number] and is_in(box, other)]
        if around:  # the widest is in no other one
            wider = max(around, key=rank.__getitem__)
            local = tuple((lo - first, hi - first) for (lo, hi), (first, _) in zip(box, boxes[wider], strict=True))
            found.append((number, wider, local))
    return found


def _is_constant(task: Any) -> bool:
    if not isinstance(task, DataNode):
        return False
    return isinstance(task.value, Kernel) or (isinstance(task.value, np.ndarray) and task.value.nbytes <= CONSTANT)


def _placed(arg: TaskRef, places: Mapping[Hashable, worker.Value], copied: Mapping[Hashable, Any]) -> Any:
    place = places.get(arg.key)
    return copied.get(arg.key, arg) if place is None else place


def _constant(arg: Any, copied: Mapping[Hashable, Any]) -> Any:
    return copied[arg.key] if isinstance(arg, TaskRef) and arg.key in copied else arg


def _function(task: Task) -> Any:
    return task.args[0] if task.func in _WRAPS else task.func


def _is_join(task: Task) -> bool:
    return _function(task) in _JOINS
