"""Interleaved measurement of all implementations of a program, in one process, on the same inputs.

Noise on a shared machine comes in waves, so implementations are not measured one after the other but in rounds: each
round gives every implementation one *turn*. A turn is a pause until the thread pools of the turn before have stopped
spinning (OpenBLAS's do so for 0.1 s, and would take half of the next one's CPUs from it), one call that is not measured
(its data comes back to the caches, its pool wakes) unless it is long, then measured calls.
Each result is compared with NumPy's before anything is measured, mutated arguments included; what is wrong is reported
as WRONG and not timed.

The first call is measured in this process with the other peers' start-up already paid and without the disk cache;
`cold.py` measures fresh processes.

The whole run has a time budget. It is spent on our own column, NumPy and C first: a peer whose compilation would
endanger the budget is skipped, and said to be.
"""

from __future__ import annotations

import gc
import logging
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from parakeet_py.bench.compare import difference
from parakeet_py.bench.peers import (
    OURS,
    Absent,
    Prepared,
    Unavailable,
    availability,
    prepare,
    quiet,
    thread_limits,
    warm_up,
)
from parakeet_py.bench.program import Arguments, Program, Size

log = logging.getLogger("parakeet_py.bench")

Status = Literal["ok", "WRONG", "unsupported", "absent", "unavailable", "error", "skipped"]

PAUSE = 0.01  # seconds between turns, again and again while other threads of this process run; ticks are 4 ms apart
LONGEST_PAUSE = 0.3  # seconds
IDLE = 0.2  # of one CPU: with less than this all pools are asleep
SHORT_CALL = 5e-3  # seconds; calls up to this length are measured three times a turn
LONG_CALL = 50e-3  # seconds; from here on the first call of a turn is measured too
SHORTEST_SAMPLE = 20e-6  # seconds; shorter calls are measured several at a time
MAX_ROUNDS = 30
MIN_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure: the columns, the input size, the threads of every peer, the seconds for all of it, the devices
    that parakeet_py runs on.

    `load` is how many other processes were busy when the run began (None: not known). Thread pools that
    spin at barriers, OpenMP's above all, collapse beside them: a reader must know.
    """

    peers: tuple[str, ...]
    size: Size = "M"
    threads: int = 1
    budget: float = 150.0
    load: float | None = None
    devices: str = "cpu"


@dataclass(slots=True)
class Measurement:
    """One implementation of one program. Times are in seconds, and None where nothing was measured."""

    status: Status
    reason: str = ""
    variant: str = ""
    note: str = ""
    first: float | None = None
    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        return statistics.median(self.samples) if self.samples else None

    @property
    def minimum(self) -> float | None:
        return min(self.samples) if self.samples else None


@dataclass(frozen=True, slots=True)
class Row:
    """All implementations of one program."""

    program: str
    summary: str
    dimensions: tuple[int, ...]
    measurements: dict[str, Measurement]

    def ratio(self, peer: str) -> float | None:
        """How many times faster ours is than `peer` (median over median); None unless both were measured."""
        ours, other = (self.measurements.get(name) for name in (OURS, peer))
        if ours is None or other is None or not ours.median or other.median is None:
            return None
        return other.median / ours.median


@dataclass(slots=True)
class _Candidate:
    prepared: Prepared
    measurement: Measurement
    repeat: int = 1


def run(
    programs: Sequence[Program], settings: Settings, progress: Callable[[str, str], None] = lambda program, peer: None
) -> list[Row]:
    """Measure `programs`; `progress(program, peer)` is called with what comes next.

    Returns
    -------
    list of Row
        In the order of `programs`. A peer that is not on this machine is in every row as "unavailable".
    """
    deadline = time.perf_counter() + settings.budget
    unavailable: dict[str, str] = {}
    rows = []
    with quiet(), thread_limits(settings.threads):
        for peer in settings.peers:
            try:
                availability(peer)
                warm_up(peer, settings.threads)
            except Unavailable as error:
                unavailable[peer] = str(error)
            except Exception as error:  # its programs will say what is wrong
                log.warning("%s: %s", peer, error)
        for index, program in enumerate(programs):
            share = max(0.2, (deadline - time.perf_counter()) / (len(programs) - index))
            rows.append(_run_program(program, settings, share, unavailable, progress))
    return rows


def _run_program(
    program: Program,
    settings: Settings,
    share: float,
    unavailable: dict[str, str],
    progress: Callable[[str, str], None],
) -> Row:
    started = time.perf_counter()
    arguments = program.arguments(settings.size)
    expected_arguments = program.fresh(arguments)
    with np.errstate(all="ignore"):
        expected = program.baseline(*expected_arguments)
    baseline_time = time.perf_counter() - started
    measurements: dict[str, Measurement] = {}
    candidates: list[_Candidate] = []
    for peer in sorted(settings.peers, key=lambda name: name.startswith("numba") or name == "jax"):
        progress(program.name, peer)
        spent = time.perf_counter() - started
        if peer in unavailable:
            measurements[peer] = Measurement("unavailable", unavailable[peer])
        elif spent > 1.5 * share and peer not in (OURS, "numpy", "c") and spent > 2.0 * baseline_time:
            measurements[peer] = Measurement("skipped", "no time left in the budget")
        else:
            candidate = _first_call(peer, program, settings.threads, arguments, (expected, expected_arguments))
            measurements[peer] = candidate.measurement
            if candidate.measurement.status == "ok":
                candidates.append(candidate)
    progress(program.name, "rounds")
    _rounds(program, arguments, candidates, max(0.3, 0.5 * (share - (time.perf_counter() - started))))
    ordered = {peer: measurements[peer] for peer in settings.peers}
    return Row(program.name, program.summary, program.sizes[settings.size], ordered)


def _first_call(
    peer: str, program: Program, threads: int, arguments: Arguments, expected: tuple[Any, Arguments]
) -> _Candidate:
    """Compile, call once, compare with NumPy; the measurement's status says how it went."""
    measurement = Measurement("ok")
    prepared = Prepared(program.function)
    try:
        prepared = prepare(peer, program, threads)
        measurement.variant = prepared.variant
        mine = prepared.convert(program.fresh(arguments))
        started = time.perf_counter()
        with np.errstate(all="ignore"):
            result = prepared.call(*mine)
        measurement.first = time.perf_counter() - started
        measurement.note = prepared.note()
    except Absent as error:
        return _Candidate(prepared, Measurement("absent", str(error)))
    except Exception as error:
        unsupported = type(error).__module__.split(".")[0] in ("numba", "jax") or peer in (
            "numba",
            "numba-parallel",
            "jax",
        )
        status: Status = "unsupported" if unsupported else "error"
        return _Candidate(prepared, Measurement(status, _first_line(error), prepared.variant))
    if peer == "jax":
        result = _to_numpy(result)
        mine = program.fresh(arguments) if not program.mutates else mine
    wrong = difference(
        (expected[0], *(expected[1][i] for i in program.mutates)),
        (result, *(mine[i] for i in program.mutates)),
        program.tolerance,
        exact_types=peer == OURS,
    )
    if wrong is not None:
        measurement.status, measurement.reason = "WRONG", wrong
    return _Candidate(prepared, measurement)


def _rounds(program: Program, arguments: Arguments, candidates: list[_Candidate], seconds: float) -> None:
    """Give every candidate a turn, again and again, for about `seconds` (twice as long if `MIN_ROUNDS` need it)."""
    deadline = time.perf_counter() + seconds
    for candidate in candidates:
        candidate.repeat = _repeat(program, arguments, candidate)
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        rounds = 0
        while candidates and rounds < MAX_ROUNDS:
            for candidate in candidates:
                _turn(program, arguments, candidate)
            rounds += 1
            if time.perf_counter() > deadline and (rounds >= MIN_ROUNDS or time.perf_counter() > deadline + seconds):
                break
    finally:
        if collecting:
            gc.enable()


def _repeat(program: Program, arguments: Arguments, candidate: _Candidate) -> int:
    """How many calls make one sample: one, unless calls are too short for the clock and leave their arguments alone."""
    if program.mutates:
        return 1
    once = min(_sample(program, arguments, candidate) for _ in range(2))
    return max(1, min(1_000, int(SHORTEST_SAMPLE / max(once, 1e-9))))


def _turn(program: Program, arguments: Arguments, candidate: _Candidate) -> None:
    settle()
    warming = _sample(program, arguments, candidate)
    if warming >= LONG_CALL:
        candidate.measurement.samples.append(warming)
        return
    for _ in range(3 if warming < SHORT_CALL else 1):
        candidate.measurement.samples.append(_sample(program, arguments, candidate))


def settle() -> None:
    """Sleep until the other threads of this process do so too, for at most `LONGEST_PAUSE`."""
    deadline = time.perf_counter() + LONGEST_PAUSE
    idle = False
    while not idle and time.perf_counter() < deadline:
        started, used = time.perf_counter(), time.process_time()
        time.sleep(PAUSE)
        idle = time.process_time() - used < IDLE * (time.perf_counter() - started)


def _sample(program: Program, arguments: Arguments, candidate: _Candidate) -> float:
    """Seconds per call, over `candidate.repeat` calls."""
    mine = candidate.prepared.convert(program.fresh(arguments))
    call, repeat = candidate.prepared.call, candidate.repeat
    with np.errstate(all="ignore"):
        started = time.perf_counter()
        for _ in range(repeat):
            call(*mine)
        return (time.perf_counter() - started) / repeat


def _to_numpy(result: Any) -> Any:
    if isinstance(result, tuple | list):
        return tuple(_to_numpy(item) for item in result)
    return np.asarray(result)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    detail = next((line for line in lines if not line.startswith(("Failed in", "non-precise"))), "")
    return f"{type(error).__name__}: {detail}"[:200]
