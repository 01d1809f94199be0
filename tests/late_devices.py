"""Emulated devices that do nothing before a thread waits for it, as GPUs do at worst.

What a `LateDevice` is asked for is kept in *lanes*, in the order of each. A lane is gone through when something in it
is waited for, and as far as that; what it waits for in lanes of other devices is done then, and nothing else is. So
results are right only if all that has to be ordered is. Memory that is given up comes to a pool, as a GPU's does, and
loses what was in it when its lane comes to that. A kernel that faults takes its device along.

Rounds of loops (`hybrid/execute/rounds`) are asked for again here, by launches one after the other.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np

from parakeet_py.hybrid.devices import selection
from parakeet_py.hybrid.devices.device import Device, DeviceError, DeviceMemoryError
from parakeet_py.hybrid.devices.emulated import MEMORY, EmulatedDevice
from parakeet_py.hybrid.devices.memory_pool import MemoryPool, Stock, rounded
from parakeet_py.hybrid.devices.timeline import COPY_IN, COPY_OUT, COPY_OVER, KERNEL, span
from parakeet_py.hybrid.execute.device_loss import forget_losses
from parakeet_py.hybrid.residency.byte_ranges import Rows
from parakeet_py.ptx.target import DEFAULT

GIVEN_UP = 0xA5  # bytes of memory that nothing uses
_lock = threading.RLock()  # one thread goes through lanes


class Point:
    """A moment in a lane; the time when it has come there."""

    def __init__(self, lane: Lane) -> None:
        self.lane, self.time = lane, 0.0


class Lane:
    """What a device has been asked for and has not done yet; a point of another lane is waited for."""

    def __init__(self) -> None:
        self.todo: deque[Callable[[], object] | Point] = deque()
        self.lost = ""

    def mark(self) -> Point:
        point = Point(self)
        self.todo.append(partial(_come, point))
        return point

    def run(self, until: Point | None = None) -> None:
        """Do all of it, or as far as a point."""
        with _lock:
            while self.todo and (until is None or not until.time):
                work = self.todo.popleft()
                if not isinstance(work, Point):
                    work()
                elif not work.time:
                    work.lane.run(work)
            if until is not None and not until.time:
                raise DeviceError(self.lost)


def _come(point: Point) -> None:
    point.time = time.perf_counter()


class LateDevice(EmulatedDevice):
    """One emulated GPU whose work is done when it is waited for.

    Attributes
    ----------
    asked_again : how many rounds of loops have been
    goes_after : so many kernels are done before the device is gone; None for ever
    """

    asynchronous = True

    def __init__(self, name: str, memory: int = MEMORY, architecture: str = DEFAULT) -> None:
        super().__init__(name, memory, architecture)
        self.broken: str | None = None
        self.asked_again = 0
        self.goes_after: int | None = None
        self.pool = MemoryPool(memory // 4, lambda one: self._stocks[one][1].todo.append(partial(self._close, one)))
        self._here = threading.local()
        self._lanes: dict[int, Lane] = {}
        self._stocks: dict[int, tuple[Stock, Lane]] = {}  # of memory, by its address

    def _does(self, kind: str, name: str, amount: int) -> AbstractContextManager[None]:
        return nullcontext()  # what is asked for is taken down then

    def _lane(self) -> Lane:
        return self._lanes.setdefault(getattr(self._here, "lane", 0), Lane())

    @contextmanager
    def lane(self, number: int) -> Iterator[None]:
        before = getattr(self._here, "lane", 0)
        self._here.lane = number
        try:
            yield
        finally:
            self._here.lane = before

    def _enter(self) -> Lane:
        if self.broken is not None:
            raise DeviceError(self.broken)
        return self._lane()

    def _later(self, work: Callable[[], object]) -> None:
        self._enter().todo.append(work)

    def _wait(self) -> None:
        self._enter().run()
        self._enter()

    def _kernel(self, *given: Any) -> None:
        """A kernel is due."""
        if self.goes_after is not None:
            self.goes_after -= 1
        try:
            if self.goes_after is not None and self.goes_after < 0:
                raise DeviceError(f"{self.name} has gone")
            super().launch(*given)
        except DeviceError as error:
            self.broken = f"{error}; this device cannot be used any more in this process"
            for lane in self._lanes.values():
                lane.todo.clear()
                lane.lost = self.broken
            raise DeviceError(self.broken) from error

    # ---- memory ------------------------------------------------------------------------------------------------------

    def stock(self, size: int) -> Stock:
        return self.pool.stock(0, rounded(size))

    def allocate(self, size: int) -> int:
        number, whole = getattr(self._here, "lane", 0), rounded(size)
        self._enter()
        address = self.pool.take(number, whole)
        if address is None:
            try:
                address = super().allocate(whole)
            except DeviceMemoryError:  # what has been given up is there behind what uses it
                gc.collect()
                self.pool.trim()
                for lane in [*self._lanes.values()]:
                    lane.run()
                address = super().allocate(whole)
            self._stocks[address] = self.pool.stock(number, whole), self._lane()
        return address

    def free(self, address: int) -> None:
        found = self._stocks.get(address)
        if found is None or self.broken is not None:
            return
        stock, lane = found
        lane.todo.append(partial(super().copy_in, address, np.full(stock.size, GIVEN_UP, np.uint8)))
        self.pool.give(stock, address)

    def _close(self, address: int) -> None:
        del self._stocks[address]
        super().free(address)

    # ---- what is asked for -------------------------------------------------------------------------------------------

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        with span(self, COPY_IN, "", data.nbytes):
            self._later(partial(super().copy_in, address, data.copy(), pitch))

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        with span(self, COPY_OUT, "", data.nbytes):
            self._wait()
            super().copy_out(data, address, pitch)

    def copy_over(self, address: int, source: Device, place: int, rows: Rows, after: Any = None) -> None:
        assert isinstance(source, LateDevice)
        ready = source.mark() if after is None else after
        with span(self, COPY_OVER, "", rows.height * rows.width):
            self._enter().todo.append(ready)
            self._later(partial(super().copy_over, address, source, place, rows))
        source._enter().todo.append(self.mark())  # it is not overwritten before

    def copy_within(self, target: int, source: int, size: int) -> None:
        data = np.empty(size, np.uint8)
        self._later(partial(super().copy_out, data, source))
        self._later(partial(super().copy_in, target, data))

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        with span(self, KERNEL, kernel, blocks):
            self._later(partial(self._kernel, module, kernel, blocks, threads, codes, [*values]))

    def round_of(self, launches: Sequence[Sequence[Any]]) -> tuple[Lane, list[tuple[Any, ...]]] | None:
        if any("T" in codes for _, _, _, _, codes, _ in launches):
            return None
        return self._lane(), [(*one[:5], [*one[5]]) for one in launches]

    def ask_again(self, calls: tuple[Lane, list[tuple[Any, ...]]]) -> bool:
        lane, launches = calls
        if self.broken is not None or lane is not self._lane():
            return False
        self.asked_again += 1
        for one in launches:
            self.launch(*one)
        return True

    # ---- order -------------------------------------------------------------------------------------------------------

    def mark(self) -> Point:
        return self._enter().mark()

    def seconds(self, start: Point, end: Point) -> float:
        end.lane.run(end)
        return end.time - start.time

    def synchronize(self) -> None:
        self._wait()

    def finish_reading(self) -> None:
        """What has been brought has been copied."""

    def wait_for(self, stream: int) -> None:
        """Others here use the same lane."""

    def let_wait(self, stream: int) -> None:
        self._wait()


@contextmanager
def late_devices(memory: int = MEMORY) -> Iterator[None]:
    """Inside, emulated devices that settings name are late ones of so much memory."""

    @cache
    def opened(number: int) -> LateDevice:
        return LateDevice(f"emulated:{number}", memory)

    selection.forget()
    with mock.patch.object(selection, "_emulated", opened):
        try:
            yield
        finally:
            selection.forget()
            forget_losses()
