"""Parts of a region as they are run: brought what they need, begun, waited for, and measured if that is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.hybrid.devices.team import Range
from parakeet_py.hybrid.execute.device_loss import Lost
from parakeet_py.hybrid.execute.part_future import Started
from parakeet_py.hybrid.execute.streaming import stream
from parakeet_py.hybrid.residency.blocks import HOST
from parakeet_py.typed_ir.ir import Function

if TYPE_CHECKING:
    from parakeet_py.hybrid.execute.parts import Parts


class PartRun:
    """A part that is run, or several that one device streams.

    Attributes
    ----------
    results : of the part, or of each of its pieces if it is streamed, and of which range
    error : what it has raised
    """

    def __init__(self, parts: Parts, numbers: Sequence[int], function: Function, more: Sequence[Sequence[Any]]) -> None:
        self.parts, self.numbers, self.function, self.more = parts, numbers, function, more
        number = numbers[0]
        self.who, self.streamed = parts.ranges[number][0], number in parts.streamed
        own = function is parts.division.part
        self.clock = _Clock(parts, number) if own else None
        self.results: list[tuple[Range, list[Any]]] = []
        self.error: Exception | None = None
        self._started: Started | None = None
        self._brought = False

    def all(self) -> None:
        self.bring()
        self.begin()
        self.end()

    def bring(self) -> None:
        if not self._brought:
            self._brought = True
            if not self.streamed:
                self.parts.deliver(self.numbers[0], self.more[0])

    def begin(self) -> None:
        parts = self.parts
        parts.prepare(self.numbers[0], self.function, self.more[0])
        if self.clock is not None:
            self.clock.begin()
        if self.streamed:
            self._try(self._stream)
            self._started = Started(None, list)
        else:
            self._started = parts.start(self.numbers[0], self.function, self.more[0])
        if self._started.launched:
            self._stopped()

    def launch(self) -> None:
        """Launch what is left of it, waiting for what that needs."""
        if self._started is None:
            self.begin()
        assert self._started is not None
        if not self._started.launched:
            self._started.launch_all()
            self._stopped()

    def _stopped(self) -> None:
        if self.clock is not None:
            self.clock.stop()

    def end(self) -> None:
        self.launch()
        wait = self._started
        assert wait is not None

        def finish() -> None:
            results = wait()
            if not self.streamed:
                self.results = [(self.parts.ranges[self.numbers[0]], results)]
            if self.clock is not None and self.error is None:
                self.clock.learn()

        self._try(finish)
        if not self.streamed:  # the stream has recorded it
            self.parts.has_written(self.numbers[0])

    def _stream(self) -> None:
        self.results = stream(self.parts, self.numbers, self.function, self.more)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Lost:
            raise
        except Exception as error:
            self.error = error


class _Clock:
    """Measures a part, if that is wanted."""

    def __init__(self, parts: Parts, number: int) -> None:
        call, who = parts.call, parts.ranges[number][0]
        self.count, self.key = parts.points(number), id(parts.division.part)
        self.rates = call.plan.rates
        self.device = None if who == HOST else cast(Machine, call.team.devices[who - 1])
        self.name = "cpu" if self.device is None else self.device.name
        self.wanted = self.rates.wanted(self.key, self.name)
        self.start: Any = None
        self.stopped: Any = None

    def begin(self) -> None:
        """The part begins."""
        if self.wanted:
            self.start = time.perf_counter() if self.device is None else self.device.mark()

    def stop(self) -> None:
        """Everything has been given to the device."""
        if self.wanted and self.device is not None:
            self.stopped = self.device.mark()

    def learn(self) -> None:
        """The part has run."""
        if self.wanted:
            device, start = self.device, self.start
            seconds = time.perf_counter() - start if device is None else device.seconds(start, self.stopped)
            self.rates.learn(self.key, self.name, self.count, seconds)
