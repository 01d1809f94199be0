"""How near each kernel of a call comes to what this machine can do: `f.roofline(*args)`.

The function is compiled once more, with a clock before and behind each kernel (`perf="kernels"`), and called some
times on copies of the arguments; of each kernel the fastest call counts (on one thread, the thread's own time). Its
bytes and operations are counted as by `explain`, where it runs: bytes at the points that there are, and operations of
the cost model by which fusion decides (an addition 1, a division 8, an elementary function 20).

The *bound* is the longer of two times: that of the bytes, at the bandwidth of memory or of the cache they fit into, and
that of the operations, at the best rate that vector code, or BLAS, has reached here (`roofs`). A kernel that takes
more than twice as long is named as `slow`: there may be something to gain.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base import config
from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.fast_dataclass import record
from parakeet_py.call.explain.roofs import Roofs, roofs
from parakeet_py.llvm.codegen.control import WORDS_OF_KERNEL
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.passes.analysis.traffic import traffic
from parakeet_py.typed_ir.passes.fusion.cost import ENDLESS

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled
    from parakeet_py.call.dispatcher import Dispatcher

SLOW = 0.5  # of what is possible
SHORTEST = 1e-6  # seconds of a run; what the clock itself takes is too much of shorter ones
_CALLS, _SECONDS = 7, 1.0
_COUNTED = ("Map", "Matmul")  # what they move is known, also where operations are not


@record
class TimedKernel:
    """A kernel in one call.

    Attributes
    ----------
    kind : str
        Its operator: Map, Reduce, Matmul, a routine.
    line : int
        Of the source.
    runs, points, bytes : int
        How often it has run; the points of its index space and the bytes that it has moved, in all runs.
    operations : int or None
        None where they are not known beforehand: of routines, and with loops inside.
    seconds : float
        Of all runs.
    bound : float
        The seconds that they would take at the limit of this machine.
    limit : str
        What limits: "memory" or "arithmetic".
    """

    kind: str
    line: int
    runs: int
    points: int
    bytes: int
    operations: int | None
    seconds: float
    bound: float
    limit: str

    @property
    def share(self) -> float:
        """What is reached of what is possible."""
        return self.bound / self.seconds if self.seconds else 1.0

    @property
    def slow(self) -> bool:
        counted = self.kind in _COUNTED or bool(self.operations)
        return counted and self.share < SLOW and self.seconds >= SHORTEST * self.runs

    @property
    def intensity(self) -> float | None:
        """Operations for each byte."""
        return None if not self.operations or not self.bytes else self.operations / self.bytes

    def __str__(self) -> str:
        runs = "" if self.runs == 1 else f"{self.runs:,} runs, "
        moved = f"{_amount(self.bytes)}B, {_amount(self.bytes / self.seconds)}B/s"
        computed = ""
        if self.operations:
            computed = f"; {_amount(self.operations)} operations, {_amount(self.operations / self.seconds)}/s"
        share = f"{100 * self.share:.0f} % of what {self.limit} allows" + (" (slow)" if self.slow else "")
        return f"line {self.line}: {self.kind}, {runs}{_time(self.seconds)}: {moved}{computed}; {share}"


@record
class Roofline:
    """The kernels of a call, and the limits of this machine: bytes and operations a second.

    Attributes
    ----------
    name : str
    kernels : tuple of TimedKernel
        Those that have run.
    roofs : Roofs
    seconds : float
        Of the whole call.
    """

    name: str
    kernels: tuple[TimedKernel, ...]
    roofs: Roofs
    seconds: float

    @property
    def slow(self) -> tuple[TimedKernel, ...]:
        """Kernels below half of what is possible, the ones that take longest first."""
        return tuple(sorted((one for one in self.kernels if one.slow), key=lambda one: -one.seconds))

    def __str__(self) -> str:
        threads = f"{self.roofs.threads} threads" if self.roofs.threads > 1 else "1 thread"
        inside = sum(one.seconds for one in self.kernels)
        lines = [
            f"{self.name}: {_time(self.seconds)}, of which kernels {_time(inside)}; {threads}",
            f"memory {', '.join(f'{_amount(rate)}B/s of {_amount(size)}B' for size, rate in self.roofs.bandwidths)}; "
            f"arithmetic {_amount(self.roofs.operations)}/s, products {_amount(self.roofs.products)}/s",
            *(f"  {one}" for one in self.kernels),
        ]
        return "\n".join(lines)


def measure(
    dispatcher: Dispatcher, args: Sequence[Any], kwargs: dict[str, Any], accelerate: Callable[..., Any]
) -> Roofline:
    """Call a function with clocks around its kernels; `accelerate` compiles it.

    Raises
    ------
    UnsupportedError
        The call is not compiled.
    """
    own = {name: value for name, value in dispatcher.options.items() if name in ("threads", "contract", "fastmath")}
    limits = roofs(accelerate)
    with config.options(perf="kernels", when="now", tiers=False, devices="cpu"):
        function: Any = accelerate(**own)(dispatcher.function)
        found: dict[int, tuple[Compiled, list[tuple[int, ...]]]] = {}
        shortest, deadline = float("inf"), time.perf_counter() + _SECONDS
        for turn in range(2 + _CALLS):  # the first ones compile, and warm up
            given = [copy.deepcopy(arg) if isinstance(arg, np.ndarray | list | dict) else arg for arg in args]
            for one, _ in found.values():
                _clear(one)
            started = time.perf_counter()
            with np.errstate(all="ignore"):
                function(*given, **kwargs)
            shortest = min(shortest, time.perf_counter() - started)
            if turn == 0:
                made = {id(one): one for one in function._dispatcher.compilations.values() if one.clocked is not None}
                found = {key: (one, []) for key, one in made.items()}
                continue
            for one, rows in found.values():
                rows.append(tuple(one.clocked or ()))
            if time.perf_counter() > deadline and turn >= 2:
                break
    if function.fell_back and not found:
        raise UnsupportedError(f"the call is not compiled: {function.fell_back}")
    kernels = [kernel for one, rows in found.values() for kernel in _kernels(one, rows, limits)]
    return Roofline(dispatcher.function.__name__, tuple(kernels), limits, shortest)


def _clear(compiled: Compiled) -> None:
    table = compiled.clocked
    assert table is not None
    for place in range(len(table)):
        table[place] = 0


def _kernels(compiled: Compiled, calls: Sequence[tuple[int, ...]], limits: Roofs) -> list[TimedKernel]:
    """The kernels of a specialization that have run, from the tables of some calls."""
    kernels = []
    width = WORDS_OF_KERNEL
    for number, let in enumerate(compiled.imp.timed):
        assert isinstance(let, ir.Let)
        _, nanoseconds, runs, points, moved = min(
            (table[number * width : (number + 1) * width] for table in calls), key=lambda row: row[1]
        )
        if not runs:
            continue
        work = traffic(let).work
        operations = None if work >= ENDLESS else points * work
        name = let.op.name if isinstance(let.op, ir.Routine) else type(let.op).__name__
        seconds = max(nanoseconds, 1) * 1e-9
        peak = limits.products if isinstance(let.op, ir.Matmul) else limits.operations
        by_memory = moved / limits.bandwidth(moved / runs)
        by_arithmetic = 0.0 if operations is None else operations / peak
        limit = "memory" if by_memory >= by_arithmetic else "arithmetic"
        bound = max(by_memory, by_arithmetic)
        kernels.append(TimedKernel(name, let.pos.line, runs, points, moved, operations, seconds, bound, limit))
    return kernels


def _amount(number: float) -> str:
    """A number with three digits and a prefix: 3.20 G."""
    for prefix in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} T"


def _time(seconds: float) -> str:
    for unit in ("s", "ms", "µs"):
        if seconds >= 1:
            return f"{seconds:.3g} {unit}"
        seconds *= 1000
    return f"{seconds:.3g} ns"
