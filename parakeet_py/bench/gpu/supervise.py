"""A run in a process of its own, so that it ends in time with a report whatever happens there.

A kernel that faults takes the context of its process along, one that hangs the process, and so may another library.
Where the process ends, says nothing for too long, or has lost its device, what was being measured is marked so, and
another process goes on with the tasks that are left; a library that was at fault is left out from then on.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from parakeet_py.bench.gpu import runner
from parakeet_py.bench.gpu.measure import Row, Times
from parakeet_py.bench.gpu.report import Run
from parakeet_py.bench.gpu.runner import Begun, Measured, Opened, Step
from parakeet_py.bench.program import Size
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.selection import open_devices

START = 120.0  # seconds until a process has its device, and the libraries beside us
PATIENCE = 90.0  # seconds without a word from then on: it hangs
GRACE = 30.0  # seconds over the budget: what is left is not measured
STARTS = 12  # processes at most


def run(
    device: str,
    size: Size,
    budget: float,
    names: Sequence[str] = (),
    progress: Callable[[str], None] = lambda name: None,
) -> Run:
    """Measure operators and programs on a device, by its name.

    Raises
    ------
    UnknownProgram, UnknownDeviceError, DeviceError
        Nothing can be measured.
    """
    started = time.perf_counter()
    found = _Found([*runner.tasks(names)], progress)
    for _ in range(STARTS):
        left = budget - (time.perf_counter() - started)
        if not found.waiting or (left <= 0 and found.opened is not None):
            break
        _attempt(found, device, size, max(left, 1.0))
        if found.opened is None:
            raise DeviceError(f"{device} cannot be measured: {found.why}")
    for name in found.waiting:
        found.fail(name, "skipped", "no time left")
    assert found.opened is not None
    return runner.gathered(found.opened, size, time.perf_counter() - started, found.rows)


class _Found:
    """What is known by now.

    Attributes
    ----------
    waiting : tasks that have not been measured
    without : libraries that have ended a process, or hung
    """

    def __init__(self, waiting: list[str], progress: Callable[[str], None]) -> None:
        self.waiting, self.progress = waiting, progress
        self.opened: Opened | None = None
        self.rows: dict[str, Row] = {}
        self.without: set[str] = set()
        self.why = ""
        self._begun: str | None = None

    def take(self, step: Step) -> bool:
        """Note a step; whether more may come."""
        match step:
            case Opened():
                self.opened = self.opened or step
            case Begun(name):
                self.progress(name)
                self._begun = name
            case Measured(row, whole, broken):
                self.rows[row.name] = row
                if whole:
                    self.waiting.remove(row.name)
                    self._begun = None
                return not broken
        return True

    def interrupt(self, status: str, why: str) -> None:
        """The process is gone: whatever it was at has failed."""
        self.why, name, self._begun = why, self._begun, None
        if name is None:
            return
        self.waiting.remove(name)
        row = self.rows.get(name)
        if row is None:
            self.fail(name, status, why)
            return
        assert self.opened is not None
        beside = [one for one in self.opened.libraries if one not in row.peers and one not in self.without]
        if beside:
            self.without.add(beside[0])
            self.rows[name] = replace(row, peers={**row.peers, beside[0]: Times(status, why)})

    def fail(self, name: str, status: str, why: str) -> None:
        program = runner.tasks([name])[name].program
        times = Times(status, why)
        self.rows[name] = Row(name, program.summary, (), 0, None, False, times, times, {})


def _attempt(found: _Found, device: str, size: Size, budget: float) -> None:
    """One process: as far as it comes."""
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    here, there = context.Pipe(duplex=False)
    process = context.Process(
        target=_serve, args=(there, device, size, budget, tuple(found.waiting), tuple(found.without)), daemon=True
    )
    process.start()
    there.close()
    last = time.perf_counter() + max(budget + GRACE, START if found.opened is None else 0.0)
    patience = START
    try:
        while True:
            if not here.poll(max(0.0, min(patience, last - time.perf_counter()))):
                found.interrupt("hung", "no answer, or no time left")
                return
            patience = PATIENCE
            step: Any = here.recv()
            if step is None:
                return
            if isinstance(step, Exception):
                if found.opened is None:
                    raise step
                found.interrupt("error", f"{type(step).__name__}: {step}")
                return
            if not found.take(step):
                return
    except EOFError:
        process.join(5)
        found.interrupt("died", f"its process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()
        here.close()


def _serve(
    there: Connection, device: str, size: Size, budget: float, names: Sequence[str], without: Collection[str]
) -> None:
    """Measure, in a process of its own, and report."""
    try:
        machines = open_devices(device)
        if len(machines) != 1:
            raise ValueError(f"{device!r} is not one GPU")
        for step in runner.steps(machines[0], size, budget, names, without):
            there.send(step)
        there.send(None)
    except Exception as error:
        kind = type(error) if isinstance(error, ValueError | DeviceError) else RuntimeError
        try:
            told = kind(str(error))
        except Exception:
            told = RuntimeError(str(error))
        there.send(told)
