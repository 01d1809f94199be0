"""Which lanes execute which block next.

All the lanes that wait at the same place are run together; the place with the lowest number comes first (after deeper
calls), which by the order of `translate/control_flow.py` is where lanes that parted meet again. Lanes that come round a
loop whose end may hang on other threads give way: they fall back a level, and a level is run only when nothing is left
above it, so every thread gets its turn, and a spinning one cannot starve the thread it waits for. When all spin and no
memory changes, more blocks of threads are brought in; when there are none, it is a deadlock.

Generated code calls these methods; a block returns where it goes on, or None when its lanes have been put elsewhere.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import DeadlockError, EmulatorError, KernelFault, WarpError
from parakeet_py.ptx.emulator.execute.lanes import Frame, Lanes, Transfer, Values, merged, taken
from parakeet_py.ptx.emulator.execute.launch import Launch
from parakeet_py.ptx.emulator.front.kinds import Array
from parakeet_py.ptx.emulator.memory.device_memory import CODE

if TYPE_CHECKING:
    from parakeet_py.ptx.emulator.checks.barriers import Barriers
    from parakeet_py.ptx.emulator.checks.options import Checks
    from parakeet_py.ptx.emulator.front.sites import Site
    from parakeet_py.ptx.emulator.translate.program import Program

_Key = tuple[int, int, int, tuple[int, ...]]
_IDLE_BEFORE_MORE_BLOCKS = 8
_IDLE_BEFORE_DEADLOCK = 20_000
_CALL_DEPTH = 4096


class Scheduler(ABC):
    """The control side of a machine."""

    program: Program
    kernel: str
    checks: Checks
    barriers: Barriers
    threads: int
    slot_lanes: int
    slot_count: int
    live: int
    total: int
    first_lane: int
    next_block: int
    total_blocks: int

    def __init__(self) -> None:
        self.progress = 0
        self.steps = 0
        self.reset()

    def reset(self) -> None:
        """No lane waits anywhere."""
        self.live = 0
        self.total = 0
        self._pending: dict[_Key, list[tuple[Lanes, Values]]] = {}
        self._heap: list[_Key] = []
        self.waiting: dict[tuple[int, tuple[int, ...]], tuple[Lanes, Values, Site]] = {}
        self._exited: list[Lanes] = []
        self._alive: Array | None = None
        self._visits: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        self._idle = 0
        self._progress_seen = -1

    def _machine(self) -> Launch:
        return self  # type: ignore[return-value]

    def forget_tables(self) -> None:
        """More blocks are in flight: what sets of lanes know of all lanes is out of date."""
        self._alive = None
        for parts in self._pending.values():
            for lanes, _ in parts:
                lanes._cache.clear()
        for lanes, _, _ in self.waiting.values():
            lanes._cache.clear()
        self.barriers.forget_tables()

    @abstractmethod
    def admit(self, count: int) -> None:
        """Bring more blocks of threads in flight."""

    @abstractmethod
    def thread_name(self, lane: int) -> str:
        """A lane of the launch in words."""

    @abstractmethod
    def fault(self, kind: type[KernelFault], message: str, site: Site, lanes: Lanes, place: int) -> KernelFault:
        """An error of an instruction, for a lane of a set."""

    def push(self, block: int, lanes: Lanes, values: Values) -> None:
        """Let lanes wait to execute a block."""
        key = (lanes.level, -len(lanes.stack), block, lanes.stack_key)
        parts = self._pending.get(key)
        if parts is None:
            self._pending[key] = [(lanes, values)]
            heapq.heappush(self._heap, key)
        else:
            parts.append((lanes, values))

    def run(self) -> None:
        code = self.program.code
        heap = self._heap
        limit = self.checks.max_steps
        while True:
            while heap:
                key = heapq.heappop(heap)
                parts = self._pending.pop(key)
                block = key[2]
                lanes, values = parts[0] if len(parts) == 1 else merged(self._machine(), parts)
                while True:
                    self.steps += 1
                    if self.steps > limit:
                        self.stuck(f"the kernel has executed more than {limit} blocks of code")
                    result: Transfer | None = code[block](self, lanes, *values)
                    if result is None:
                        break
                    block, lanes, values = result
                    if heap and heap[0] <= (lanes.level, -len(lanes.stack), block, lanes.stack_key):
                        self.push(block, lanes, values)
                        break
            if self.live == 0:
                return
            self._explain_waiting()

    def branch(
        self, lanes: Lanes, choice: Array, taken_to: int, some: Values, other: int, rest: Values
    ) -> Transfer | None:
        """Go to one block where `choice` holds and to another where not."""
        if choice.shape[0] == 1:
            return (taken_to, lanes, some) if choice[0] else (other, lanes, rest)
        count = int(np.count_nonzero(choice))
        if count == 0:
            return other, lanes, rest
        if count == lanes.n:
            return taken_to, lanes, some
        chosen, left = choice.nonzero()[0], (~choice).nonzero()[0]
        ends = self.program.ends
        if other in ends:
            self.exit(lanes.select(left))
            return taken_to, lanes.select(chosen), taken(some, chosen, lanes.n)
        if taken_to in ends:
            self.exit(lanes.select(chosen))
            return other, lanes.select(left), taken(rest, left, lanes.n)
        self.push(taken_to, lanes.select(chosen), taken(some, chosen, lanes.n))
        self.push(other, lanes.select(left), taken(rest, left, lanes.n))
        return None

    def switch(self, lanes: Lanes, index: Array, cases: tuple[tuple[int, Values], ...], site: Site) -> Transfer | None:
        """Go to the block that an index names."""
        if int(index.max()) >= len(cases):
            lane = int(np.flatnonzero(np.broadcast_to(index, (lanes.n,)) >= len(cases))[0])
            raise self.fault(
                KernelFault, f"index {int(index.max())} of a table of {len(cases)} labels", site, lanes, lane
            )
        if index.shape[0] == 1:
            block, values = cases[int(index[0])]
            return block, lanes, values
        for number in np.unique(index).tolist():
            chosen = np.flatnonzero(index == number)
            block, values = cases[number]
            self.push(block, lanes.select(chosen), taken(values, chosen, lanes.n))
        return None

    def spins(self, label: int, lanes: Lanes, threshold: int) -> bool:
        """At a loop's header: have these lanes come round often enough without any leaving that others should go on?"""
        key = (label, lanes.stack_key)
        visit = self._visits.get(key)
        if visit is None or visit[0] != lanes.n:
            self._visits[key] = [lanes.n, 0]
            return False
        visit[1] += 1
        if visit[1] <= threshold:
            return False
        visit[1] = 0
        lanes.level += 1
        if self.progress != self._progress_seen:
            self._progress_seen = self.progress
            self._idle = 0
            return True
        self._idle += 1
        if self._idle % _IDLE_BEFORE_MORE_BLOCKS == 0 and self.next_block < self.total_blocks:
            more = min(self.slot_count, self.total_blocks - self.next_block)
            lanes._cache.clear()
            self.admit(more)
        elif self._idle > _IDLE_BEFORE_DEADLOCK:
            place = self.program.line_of(label)
            raise DeadlockError(
                f"{lanes.n} threads go round a loop for ever: nothing they look at changes",
                place,
                self.program.text.source(place),
                self.thread_name(int(lanes.index[0]) + self.first_lane),
            )
        return True

    def converge(
        self, label: int, lanes: Lanes, mask: Array, values: Values, site: Site
    ) -> tuple[Lanes, Values] | None:
        """At an operation of a whole warp: the lanes all of whose mask has come; the others wait."""
        values = (*values, mask)
        key = (label, lanes.stack_key)
        before = self.waiting.pop(key, None)
        if before is not None:
            lanes, values = merged(self._machine(), [(before[0], before[1]), (lanes, values)])
        mask = np.broadcast_to(values[-1], (lanes.n,))
        if not (mask & lanes.bits()).all():
            lane = int(np.flatnonzero((mask & lanes.bits()) == 0)[0])
            raise self.fault(
                WarpError, f"the mask {int(mask[lane]):#x} does not name the lane itself", site, lanes, lane
            )
        warps = lanes.warps()
        needed = mask & self.alive().take(warps)
        ready = (needed & ~lanes.present().take(warps)) == 0
        count = int(np.count_nonzero(ready))
        if count == lanes.n:
            return lanes, values[:-1]
        if count == 0:
            self.waiting[key] = (lanes, values, site)
            return None
        late = np.flatnonzero(~ready)
        self.waiting[key] = (lanes.select(late), taken(values, late, lanes.n), site)
        chosen = np.flatnonzero(ready)
        return lanes.select(chosen), taken(values[:-1], chosen, lanes.n)

    def alive(self) -> Array:
        """For every warp in flight the lanes that have not ended."""
        if self._alive is None:
            running = np.tile(np.arange(self.slot_lanes) < self.threads, self.slot_count)
            for lanes in self._exited:
                running[lanes.index] = False
            weights = np.uint32(1) << np.arange(32, dtype=np.uint32)
            self._alive = (running.reshape(-1, 32) * weights).sum(axis=1).astype(np.uint32)
        return self._alive

    def exited_per_slot(self) -> Array:
        """For every block in flight how many of its threads have ended."""
        counts = np.zeros(self.slot_count, dtype=np.int64)
        for some in self._exited:
            counts += np.bincount(some.slots(), minlength=self.slot_count)
        return counts

    def exit(self, lanes: Lanes) -> None:
        """The end of these threads."""
        self.live -= lanes.n
        self.progress += 1
        if self.live == 0:
            return
        self._exited.append(lanes)
        self._alive = None
        if self.waiting:
            # Whom a warp waits for may be gone.
            for (label, _), (group, values, _) in list(self.waiting.items()):
                self.push(label, group, values[:-1])
            self.waiting.clear()
        self.barriers.after_exit()

    # -- calls ----------------------------------------------------------------------------------------------------

    def call(self, lanes: Lanes, block: int, passed: Values, target: int, saved: Values) -> Transfer:
        """Enter a function; `saved` waits for the return."""
        if len(lanes.stack) >= _CALL_DEPTH:
            self.stuck(f"calls are nested more than {_CALL_DEPTH} deep")
        return block, lanes.with_stack((*lanes.stack, Frame(target, saved))), passed

    def call_indirect(
        self, lanes: Lanes, address: Array, passed: Values, target: int, saved: Values, site: Site
    ) -> Transfer | None:
        """Enter the functions that addresses name."""
        for number in np.unique(address).tolist():
            chosen = np.flatnonzero(np.broadcast_to(address == number, (lanes.n,)))
            block = self.program.function_at(number - CODE, len(passed) - 1)
            if block is None:
                message = f"call of {number:#x}, which is no function with {len(passed) - 1} parameters"
                raise self.fault(KernelFault, message, site, lanes, int(chosen[0]))
            if chosen.size == lanes.n:
                return self.call(lanes, block, passed, target, saved)
            n = lanes.n
            self.push(
                *self.call(lanes.select(chosen), block, taken(passed, chosen, n), target, taken(saved, chosen, n))
            )
        return None

    def ret(self, lanes: Lanes, results: Values) -> Transfer:
        """Back to the caller."""
        frame = lanes.stack[-1]
        return frame.block, lanes.with_stack(lanes.stack[:-1]), (*results, *frame.saved)

    def stuck(self, message: str) -> NoReturn:
        raise DeadlockError(message, where=f"kernel {self.kernel}")

    def _explain_waiting(self) -> NoReturn:
        """Nothing can run and threads are left: they wait for each other."""
        self.barriers.explain()
        for lanes, values, site in self.waiting.values():
            mask = np.broadcast_to(values[-1], (lanes.n,))
            missing = int((mask & self.alive().take(lanes.warps()) & ~lanes.present().take(lanes.warps()))[0])
            raise self.fault(WarpError, f"the lanes {missing:#x} of the mask never come here", site, lanes, 0)
        raise EmulatorError("threads are lost", where=f"kernel {self.kernel}")
