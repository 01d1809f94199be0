"""One program on one device: is it right, and how long do its kernels, its calls and its transfers take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parakeet_py import accelerate, options
from parakeet_py.base.fast_dataclass import record
from parakeet_py.bench.compare import difference
from parakeet_py.bench.gpu import peers
from parakeet_py.bench.peers import Absent
from parakeet_py.bench.program import Arguments, Program, Size
from parakeet_py.call.devices import calls
from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.hybrid.devices.team import team_of
from parakeet_py.hybrid.residency.device_array import asdevice

LEAST, MOST = 3, 50  # repetitions


@record
class Times:
    """Seconds of one implementation: `status` is "ok", or says with `reason` why there are none."""

    status: str
    reason: str = ""
    first: float | None = None
    kernels: float | None = None
    launches: int = 0
    resident: float | None = None
    transfers: float | None = None


@record
class Row:
    """One task: the fewest bytes and operations it needs, and what each implementation took for it."""

    name: str
    summary: str
    dimensions: tuple[int, ...]
    bytes: int
    flops: float | None
    float64: bool
    ours: Times
    contracted: Times
    peers: dict[str, Times]


class Timed:
    """A device that marks the beginning and the end of every kernel."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.marks: list[tuple[Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        start = self.machine.mark()
        self.machine.launch(module, kernel, blocks, threads, codes, values)
        self.marks.append((start, self.machine.mark()))

    def multiply(self, *given: Any) -> bool:
        start = self.machine.mark()
        done = bool(getattr(self.machine, "multiply", lambda *_: False)(*given))
        if done:
            self.marks.append((start, self.machine.mark()))
        return done

    def take(self) -> list[float]:
        """The times of all kernels since the last question."""
        marks, self.marks = self.marks, []
        return [self.machine.seconds(*pair) for pair in marks]


def measure(
    program: Program,
    flops: Callable[..., float] | None,
    machine: Machine,
    timed: Any,
    size: Size,
    seconds: float,
    libraries: Sequence[peers.Peer],
    scalar: Any = None,
) -> Iterator[Row]:
    """All times of one program: ours first, then with each library's.

    Parameters
    ----------
    timed : the device as `Timed`, one for the whole run
    seconds : to be spent, roughly
    libraries : that are there to be compared with
    """
    deadline = time.perf_counter() + seconds
    arguments = program.arguments(size)
    after = program.fresh(arguments)
    with np.errstate(all="ignore"):
        expected = program.baseline(*after)
    wanted = expected, *(after[i] for i in program.mutates)
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    moved = sum(a.nbytes for a in (*arrays, *_arrays(wanted)))
    slices = 2 + len(libraries)
    share = max(0.2, (deadline - time.perf_counter()) / slices)
    ours = _ours(program, arguments, wanted, machine, timed, share, {})
    contracted = _ours(program, arguments, None, machine, timed, share / 2, {"contract": True})
    dimensions = program.sizes[size]
    row = Row(
        program.name,
        program.summary,
        dimensions,
        moved,
        None if flops is None else float(flops(*dimensions)),
        any(a.dtype in (np.float64, np.complex128) for a in arrays),
        ours,
        contracted,
        {},
    )
    yield row
    for number, peer in enumerate(libraries):
        left = deadline - time.perf_counter()
        if left <= 0:  # compiling has no limit: what others have spent is not taken from the programs to come
            times = Times("skipped", "no time left")
        else:
            times = _peer(peer, program, arguments, wanted, left / (len(libraries) - number), scalar)
        row = replace(row, peers={**row.peers, peer.name: times})
        yield row


def _ours(
    program: Program,
    arguments: Arguments,
    wanted: tuple[Any, ...] | None,
    machine: Machine,
    timed: Any,
    share: float,
    settings: dict[str, Any],
) -> Times:
    function: Any = accelerate(when="now", **settings)(program.function)
    try:
        with options(devices=machine.name.replace("emulated:0", "emulated"), cache=False):
            mine = program.fresh(arguments)
            started = time.perf_counter()
            result = function(*mine)
            first = time.perf_counter() - started
            wrong = None
            if wanted is not None:
                got = result, *(mine[i] for i in program.mutates)
                wrong = difference(wanted, got, program.tolerance)
            if wrong is not None:
                return Times("WRONG", wrong, first)
            if function.fell_back:
                return Times("python", str(function.fell_back), first)
            with_transfers = _repeated(share / 3, lambda: program.fresh(arguments), lambda given: function(*given))
            resident = _repeated(share / 3, lambda: on_device(machine, arguments), lambda given: function(*given))
            kernels: list[list[float]] = []

            def launched(given: Arguments) -> None:
                calls.call(function._dispatcher, given, team_of(timed))
                kernels.append(timed.take())

            _repeated(share / 3, lambda: on_device(machine, arguments), launched)
    except Exception as error:
        timed.marks.clear()  # there are no times to ask for of a device that may be gone
        return Times("error", f"{type(error).__name__}: {error}".splitlines()[0][:200])
    handed_back = ", ".join(dict.fromkeys(function.opaque_calls))
    return Times(
        "ok",
        f"handed back to Python: {handed_back}" if handed_back else "",
        first,
        statistics.median(sum(times) for times in kernels),
        len(kernels[-1]),
        resident,
        with_transfers,
    )


def on_device(machine: Machine, arguments: Arguments) -> Arguments:
    """The arguments with arrays that live on the device."""
    return tuple(asdevice(a, machine) if isinstance(a, np.ndarray) else a for a in arguments)


def _peer(
    peer: peers.Peer,
    program: Program,
    arguments: Arguments,
    wanted: tuple[Any, ...],
    share: float,
    scalar: Any,
) -> Times:
    try:
        prepared = peer.prepare(program, scalar)
    except Absent as reason:
        return Times("absent", str(reason))
    try:
        mine = prepared.convert(program.fresh(arguments))
        started = time.perf_counter()
        result = prepared.call(*mine)
        prepared.synchronize()
        first = time.perf_counter() - started
        got = prepared.to_numpy((result, *(mine[i] for i in program.mutates)))
        wrong = difference(wanted, got, program.tolerance, exact_types=False)
        if wrong is not None:
            return Times("WRONG", wrong, first)

        def call(given: Arguments) -> None:
            prepared.call(*given)
            prepared.synchronize()

        return Times(
            "ok", "", first, resident=_repeated(share, lambda: prepared.convert(program.fresh(arguments)), call)
        )
    except Exception as error:
        return Times("unsupported", f"{type(error).__name__}: {error}".splitlines()[0][:200])


def _repeated(seconds: float, make: Callable[[], Arguments], call: Callable[[Arguments], Any]) -> float:
    """The median time of a call, on arguments made outside it; at least `LEAST` after one to warm up."""
    deadline = time.perf_counter() + seconds
    call(make())
    times: list[float] = []
    while len(times) < LEAST or (len(times) < MOST and time.perf_counter() < deadline):
        given = make()
        started = time.perf_counter()
        call(given)
        times.append(time.perf_counter() - started)
        if times[-1] > 2 * seconds:
            break
    return statistics.median(times)


def _arrays(values: Any) -> list[Any]:
    """The arrays among results."""
    if isinstance(values, tuple | list):
        return [array for value in values for array in _arrays(value)]
    return [values] if isinstance(values, np.ndarray) else []
