"""What a call has done when: kernels, copies and the CPU's parts, by device.

`options(timeline=True)` has calls on devices recorded; `f.explain(*args).timeline` is the last one of that signature.
Devices say themselves what they do and for how long: each has a clock of its own (`device.mark`), a GPU's are events in
its stream, those of a simulated device stand in its simulated time. All times count from the beginning of the call.

A `Timeline` is saved as the JSON that Perfetto (https://ui.perfetto.dev) and chrome://tracing read.
Recording makes a device give each kernel to the driver alone, so a call that is recorded takes somewhat longer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from parakeet_py.base import config
from parakeet_py.base.fast_dataclass import record

if TYPE_CHECKING:
    from parakeet_py.hybrid.devices.device import Device

PART = "parts"  # of the CPU's threads
KERNEL, COPY_IN, COPY_OUT, COPY_OVER = "kernels", "copies in", "copies out", "copies from others"
KINDS = (PART, KERNEL, COPY_IN, COPY_OUT, COPY_OVER)


class Event(NamedTuple):
    """Something that was done.

    Attributes
    ----------
    device : by whom
    kind : one of `KINDS`
    name : of the kernel or part; empty for copies
    lines : of the source that it computes
    start, seconds : when it began, from the beginning of the call, and how long it took
    amount : blocks of a kernel, bytes of a copy
    """

    device: str
    kind: str
    name: str
    lines: tuple[int, ...]
    start: float
    seconds: float
    amount: int

    @property
    def text(self) -> str:
        """What it is, as text to be read."""
        if self.kind not in (PART, KERNEL):
            return f"{self.amount} bytes"
        where = f" (line {', '.join(map(str, self.lines))})" if self.lines else ""
        return self.name + where + (f", {self.amount} blocks" if self.amount else "")


@record
class Timeline:
    """What one call has done when.

    Attributes
    ----------
    events : by the time at which they began
    seconds : from the beginning of the call to the end of the last event
    """

    events: tuple[Event, ...]

    @property
    def seconds(self) -> float:
        return max((event.start + event.seconds for event in self.events), default=0.0)

    def rows(self) -> dict[tuple[str, str], list[Event]]:
        """The events of each device and kind, devices in the order in which they come first."""
        order = {device: number for number, device in enumerate(dict.fromkeys(event.device for event in self.events))}
        found: dict[tuple[str, str], list[Event]] = {}
        for event in sorted(self.events, key=lambda one: (order[one.device], KINDS.index(one.kind), one.start)):
            found.setdefault((event.device, event.kind), []).append(event)
        return found

    def __str__(self) -> str:
        lines = [f"{1e3 * self.seconds:.3f} ms"]
        for (device, kind), events in self.rows().items():
            busy = sum(event.seconds for event in events)
            lines.append(f"  {device}, {kind}: {len(events)} in {1e3 * busy:.3f} ms")
        return "\n".join(lines)

    def chrome(self) -> str:
        """JSON in the Trace Event Format, for chrome://tracing and Perfetto."""
        found: list[dict[str, Any]] = []
        devices: dict[str, int] = {}
        for (device, kind), events in self.rows().items():
            names = [("thread_name", kind), *([] if device in devices else [("process_name", device)])]
            process, thread = devices.setdefault(device, len(devices) + 1), KINDS.index(kind) + 1
            for what, name in names:
                found.append({"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}})
            for event in events:
                unit = "blocks" if kind in (PART, KERNEL) else "bytes"
                more: dict[str, Any] = {unit: event.amount} if event.amount else {}
                found.append(
                    {
                        "ph": "X",
                        "name": event.name or kind,
                        "cat": kind,
                        "pid": process,
                        "tid": thread,
                        "ts": 1e6 * event.start,
                        "dur": 1e6 * event.seconds,
                        "args": more | ({"lines": list(event.lines)} if event.lines else {}),
                    }
                )
        return json.dumps({"traceEvents": found, "displayTimeUnit": "ms"}, indent=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, as `chrome` gives it."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.chrome(), encoding="utf-8")


class Recorder:
    """Takes down what one call does.

    Attributes
    ----------
    lines : of the source, by the names of kernels and parts
    """

    def __init__(self, devices: Sequence[Any]) -> None:
        self.lines: dict[str, tuple[int, ...]] = {}
        self._begun = time.perf_counter()
        self._bases = {device.name: device.mark() for device in devices}
        self._taken: list[tuple[Any, str, str, int, Any, Any]] = []

    def add(self, device: Any, kind: str, name: str, amount: int, start: Any, end: Any) -> None:
        """Something was done between two marks of a device; of the CPU (None), two readings of `perf_counter`."""
        self._taken.append((device, kind, name, amount, start, end))

    def timeline(self) -> Timeline:
        """What has been done; waits until it has."""
        found = []
        for device, kind, name, amount, start, end in self._taken:
            if device is None:
                who, begun, seconds = "cpu", start - self._begun, end - start
            else:
                base = self._bases.get(device.name, start)
                who, begun, seconds = device.name, device.seconds(base, start), device.seconds(start, end)
            lines = self.lines.get(name, ())
            found.append(Event(who, kind, name, lines, begun, seconds, amount))
        return Timeline(tuple(sorted(found, key=lambda event: event.start)))


_current: ContextVar[Recorder | None] = ContextVar("parakeet_py_timeline", default=None)


recorder = _current.get  # what takes down this call; None if nothing is recorded


def recording(devices: Sequence[Device]) -> AbstractContextManager[Recorder | None]:
    """Take down what is done inside, if the settings say so."""
    return _recording(devices) if config.current().timeline else _NOTHING


@contextmanager
def _recording(devices: Sequence[Device]) -> Iterator[Recorder | None]:
    token = _current.set(Recorder(devices))
    try:
        yield _current.get()
    finally:
        _current.reset(token)


def span(device: Any, kind: str, name: str = "", amount: int = 0) -> AbstractContextManager[None]:
    """Around something that a device (None: the CPU) does."""
    found = _current.get()
    return _NOTHING if found is None else _spanned(found, device, kind, name, amount)


_NOTHING = nullcontext()


@contextmanager
def _spanned(found: Recorder, device: Any, kind: str, name: str, amount: int) -> Iterator[None]:
    start = time.perf_counter() if device is None else device.mark()
    yield
    found.add(device, kind, name, amount, start, time.perf_counter() if device is None else device.mark())
