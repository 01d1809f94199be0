"""What is chosen for a call on the CPU and a device, against the better of the two: `parakeet chosen`.

The CPU's times are measured, on one thread, as CPU time of this process; ways take turns, and medians are compared. The
device is a `ModelDevice` of set speed: it computes nothing, and takes the time that the cost model has for it, in a
clock in which the time of the host goes on as well: what a call costs the host (regions, parts, copies that are asked
for) is measured, too.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base import config
from parakeet_py.base.config import options
from parakeet_py.call.accelerate import accelerate
from parakeet_py.call.devices.calls import call
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.plan.part_cost import Speed

SPEED = Speed(operations=2e12, link=2e10, start=1e-5)  # a GPU behind a PCI Express bus of the fifth generation
BEGIN, END = "<!-- chosen: begin -->", "<!-- chosen: end -->"
LONG, TURN = 1e-3, 25e-3  # seconds of a call that is a turn by itself, and of several
MANY = 20_000  # calls of a turn: the first ones, under other settings than those before, go a longer way
_SMALL = 4096  # bytes that are kept: records of failures
_addresses = itertools.count(1 << 40, 1 << 36)


class Clock:
    """The CPU time of this process, and what it has waited for devices."""

    def __init__(self) -> None:
        self.waited = 0.0

    def now(self) -> float:
        return time.process_time() + self.waited

    def wait(self, until: float) -> None:
        self.waited += max(until - self.now(), 0.0)


class ModelDevice:
    """A device, see `device.Device`, that does nothing and takes its time; what it gives is of no meaning."""

    asynchronous = True
    shows_memory = False
    stream = 1
    architecture = "sm_90"

    def __init__(self, name: str, speed: Speed, clock: Clock) -> None:
        self.name, self.speed, self.clock = name, speed, clock
        self._next, self._free = next(_addresses), 0.0
        self._small: dict[int, bytes] = {}
        self._told: float | None = None
        self._known: dict[tuple[Any, str, int], float] = {}  # seconds of a launch, for one that a schedule repeats

    def now(self) -> float:
        """The time, of the host and of this device."""
        return self.clock.now()

    def told(self, operations: float) -> None:
        """What is launched next takes so many operations."""
        self._told = (self._told or 0.0) + operations / self.speed.operations

    def _takes(self, seconds: float) -> None:
        self._free = max(self._free, self.now()) + seconds

    def allocate(self, size: int) -> int:
        self._next += size + 512
        return (self._next - size) // 256 * 256

    def free(self, address: int) -> None:
        self._small.pop(address, None)

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        if data.nbytes <= _SMALL:
            self._small[address] = data.tobytes()
        self._takes(self.speed.start + data.nbytes / self.speed.link)

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        if address in self._small:
            kept = np.frombuffer(self._small[address], np.uint8)[: data.nbytes]
            data.reshape(-1).view(np.uint8)[: len(kept)] = kept
        elif data.nbytes <= _SMALL:  # nothing has been computed: no number that decides something is any
            data[...] = 0
        self._takes(self.speed.start + data.nbytes / self.speed.link)
        self.synchronize()

    def host_array(self, shape: Sequence[int], dtype: np.dtype[Any], order: Any) -> np.ndarray[Any, Any]:
        return np.empty(shape, dtype, order)

    def bring_again(self, array: np.ndarray[Any, Any]) -> None:
        pass

    def finish_reading(self) -> None:
        pass

    def reaches(self, source: Any) -> bool:
        return isinstance(source, ModelDevice)

    def copy_over(self, address: int, source: Any, place: int, rows: Any, after: Any = None) -> None:
        self._free = max(self._free, source._free)
        self._takes(self.speed.start + rows.height * rows.width / self.speed.link)

    def copy_within(self, target: int, source: int, size: int) -> None:
        self._takes(self.speed.start)

    def load(self, ptx: str, shared: int = 0) -> Any:
        return ptx

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        launch = module, kernel, blocks
        if self._told is not None:
            self._known[launch], self._told = self._told, None
        self._takes(self.speed.start + self._known.get(launch, 0.0))

    def synchronize(self) -> None:
        self.clock.wait(self._free)

    def submit(self) -> None:
        pass

    def mark(self) -> float:
        return max(self._free, self.now())

    def seconds(self, start: float, end: float) -> float:
        return end - start

    def lane(self, number: int) -> AbstractContextManager[None]:
        return nullcontext()

    def owns(self, address: int) -> bool:
        return False

    def wait_for(self, stream: int) -> None:
        pass

    def let_wait(self, stream: int) -> None:
        pass


# ---- the work --------------------------------------------------------------------------------------------------------


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def axpy(a: Any) -> Any:
    return a * a + a


def exp(a: Any) -> Any:
    return np.exp(a)


def total(a: Any) -> Any:
    return a.sum()


def softmax(a: Any) -> Any:
    e = np.exp(a - a.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]


def stencil(a: Any) -> Any:
    return (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]) * 0.25


def k_means(x: Any, c: Any) -> Any:
    return np.argmin(((x[:, None] - c) ** 2).sum(axis=2), axis=1)


class Work(NamedTuple):
    function: Callable[..., Any]
    sizes: tuple[int, ...]
    make: Callable[[int], tuple[Any, ...]]


def _square(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).random((n, n))


def _line(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).random(n, np.float32)


WORK = (
    Work(matmul, (48, 128, 256, 512, 1024, 2048), lambda n: (_square(n), _square(n))),
    Work(axpy, (10**4, 10**6, 10**7), lambda n: (_line(n),)),
    Work(exp, (10**4, 10**6, 10**7), lambda n: (_line(n),)),
    Work(total, (10**4, 10**6, 10**7, 10**8), lambda n: (_line(n),)),
    Work(softmax, (64, 512, 2048), lambda n: (_square(n),)),
    Work(stencil, (64, 512, 2048), lambda n: (_square(n),)),
    Work(k_means, (10**3, 10**5, 10**6), lambda n: (_line(8 * n).reshape(n, 8), _line(80).reshape(10, 8))),
)


class Row(NamedTuple):
    """Seconds of one call: on the CPU, on the device, and as it was chosen; who has had what then."""

    name: str
    size: int
    cpu: float
    device: float
    chosen: float
    by: str

    @property
    def ratio(self) -> float:
        return self.chosen / min(self.cpu, self.device)


def rows(only: str = "", most: int = 10**9, speed: Speed = SPEED) -> Iterator[Row]:
    """Measure all work whose name begins so, up to a size."""
    for function, sizes, make in WORK:
        if not function.__name__.startswith(only):
            continue
        for size in sizes:
            if size <= most:
                yield _row(function, size, make(size), speed)


def _row(function: Callable[..., Any], size: int, args: tuple[Any, ...], speed: Speed) -> Row:
    clock = Clock()
    device: Any = ModelDevice("emulated:999", speed, clock)
    plain: Any = accelerate(when="now")(function)
    work: Any = accelerate(when="now")(function)
    alone, both = Team((device,), cpu=False), Team((device,), cpu=True)
    work._dispatcher.device = lambda: None if config.current().on_cpu else both
    times: dict[str, list[float]] = {"cpu": [], "device": [], "chosen": []}
    with options(threads=1, check=False, cache=False), np.errstate(all="ignore"):
        spent = clock.now()
        for turn in range(60):
            for name, found in times.items():
                with options(devices="cpu,emulated" if name == "chosen" else "cpu"):
                    calls = 1 if turn < 8 or found[-1] > LONG else min(int(TURN / found[-1]), MANY)
                    start = clock.now()
                    for _ in range(calls):
                        if name == "device":
                            call(plain._dispatcher, args, alone, in_regions=True)
                        else:
                            (work if name == "chosen" else plain)(*args)
                    found.append((clock.now() - start) / calls)
            if turn >= 12 and clock.now() - spent > 2.0:
                break
        left = work._dispatcher.left.takes(args, both)
        run = None if left else work._dispatcher.compiled_for_normal(args).divided.last_run
        members = {who for region in run.regions for who, _, _ in region.ranges} if run is not None else {0}
    cpu, by_device, chosen = (float(np.median(found[8:])) for found in times.values())
    by = " and ".join(["CPU", "device"][one] for one in sorted(members))
    return Row(function.__name__, size, cpu, by_device, chosen, by)


def table(found: Sequence[Row]) -> str:
    """A table in Markdown."""
    lines = [
        "| call | size | CPU, measured | device, modelled | chosen | by | chosen / best |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found:
        times = " | ".join(_time(seconds) for seconds in (row.cpu, row.device, row.chosen))
        lines.append(f"| {row.name} | {row.size:,} | {times} | {row.by} | {row.ratio:.2f} |".replace(",", " "))
    return "\n".join(lines)


def into(page: str, text: str, begin: str = BEGIN, end: str = END) -> str:
    """A page with a table between its marks."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"
