"""The first calls of an accelerated function: Python runs them, at next to nothing more than they take.

A program has thousands of functions, most of which are called a few times. Nothing is made for these: no dispatcher, no
look at the code or at what the arguments are beyond their classes and sizes. Machine code that is part of the package
(`llvm.entry.first_gate`) takes calls until they have cost `BUDGET` in all. What it lets pass gets to a `FirstCalls`,
which is made then: calls with arguments of classes that are new, and those whose arguments are so large that they may
be worth compiling at once.

Where there is no such code for the machine, a `FirstCalls` takes all first calls, at a quarter of a microsecond more
than they take, but recursive ones that are deep, whose frames it would double. Calls are timed; where they turn out to
be short, fewer and fewer of them, down to one in `SAMPLE`, and the others do not get here
(`AcceleratedFunction.__call__`). A gate that is compiled (`plain_gate`) is faster, but takes a while to load. Once
there have been many calls in the process, or the compiler is there anyway, each function gets one after `FEW` calls,
with what is left of its budget.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from parakeet_py.base.config import environment, open_blocks
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.call.dispatch.background import is_busy
from parakeet_py.call.pricing import COMPILER, MOST, CodeSize, compile_cost, evaluates, size_of, size_of_code
from parakeet_py.llvm.entry import argument_sizes, first_gate
from parakeet_py.llvm.entry.booked_time import booked, not_of_the_call
from parakeet_py.llvm.entry.callable_type import install
from parakeet_py.llvm.entry.entry_kind import why_portable
from parakeet_py.signature.small_arguments import SMALL, are_small, unsized

if TYPE_CHECKING:
    from parakeet_py.llvm.entry.plain_gate import PlainGate

BUDGET: Final = 50_000_000  # ns of own time; to load what decides about compiling, and then code, takes as long
ALL_CALLS: Final = 10_000  # calls of the process, before the code of gates is loaded, which takes as long, or
MAKING: Final = 4  # times as many, where there is no disk cache, so that it has to be compiled
MANY: Final = 1000  # if to load it takes but a small part of the process's time
OLD: Final = 500_000_000  # ns of CPU time that the process has taken then
GATES: Final = "parakeet_py.llvm.entry.plain_gate"
DEEP: Final = 8  # calls within calls
FEW: Final = 8  # calls before a gate
SAMPLE: Final = 16  # short calls of which one is timed
SHORT: Final = 200_000  # ns
SUDDEN: Final = 100_000  # ns by which a call may take longer than
MOST_WAITING: Final = 20  # times the CPU's time that is taken to have been waited for, at most
SLACK: Final = 16  # times the price that calls may cost with the largest array and the largest int that are taken
GROWTH: Final = 4  # times the one before it, and still count in full

completing = threading.Lock()  # held while a function gets its dispatcher, or its first gate
_begun = time.perf_counter_ns(), time.process_time_ns()
_first_gate: tuple[int, int] | None = None  # its table, and where calls enter; 0: there is none
_told = [0]  # classes without a size that gates know
waiting = [0]  # calls of the process that gates would have taken


def gates_pay(calls: int = 1) -> bool:
    """Have there been so many calls in this process, with these, that it pays to load the code of gates?"""
    if why_portable():
        return False
    before = waiting[0]
    waiting[0] = now = before + calls
    if GATES in sys.modules or is_busy():  # what is being imported is waited for
        return GATES in sys.modules
    if COMPILER in sys.modules:
        return True
    if now >= ALL_CALLS and now >= (ALL_CALLS if environment().uses_disk else MAKING * ALL_CALLS):
        return True
    return now // MANY > before // MANY and time.process_time_ns() > OLD  # to ask for the time takes its time


def begins() -> tuple[int, int, int]:
    """How accelerated functions begin: see `AcceleratedFunction`."""
    global _first_gate
    if _first_gate is None:
        entry = first_gate.address()
        _first_gate = (argument_sizes.address(), entry) if entry else (0, 0)
        tell_classes()
    table, entry = _first_gate
    return BUDGET, table, entry


def leave_to_python(instance: Any) -> None:
    """Let an accelerated function leave all calls to Python, for ever."""
    instance._left = 2**62
    instance._largest = instance._largest_int = -1  # without a sign, nothing is larger


def tell_classes() -> None:
    """Let gates take arguments of all classes that are known to have no size."""
    if len(unsized) != _told[0]:
        _told[0] = len(unsized)
        argument_sizes.add_unsized(list(unsized))


@hidden
def begin(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The first call of an accelerated function, which has this as a method in the place of `FirstCalls.run`."""
    first = first_calls_of(instance)
    if _begins(instance):
        first.kept = instance._slow  # a call may still be on its way into it
        instance._slow = first.run
    return first.run(*args, **kwargs)


def _begins(instance: Any) -> bool:
    return getattr(instance._slow, "__func__", None) is begin


def first_calls_of(instance: Any) -> Any:
    """The `FirstCalls` of an accelerated function; None if its calls are not run in Python first."""
    if instance._calls is None and _begins(instance):
        instance._calls = FirstCalls(instance._function, instance)
    return instance._calls


class FirstCalls:
    """What takes the first calls of an accelerated function.

    Parameters
    ----------
    function : the plain function
    instance : the accelerated one, whose dispatcher gets the calls that are not taken here

    Attributes
    ----------
    budget : nanoseconds that calls could take at first
    gate : takes what it can, and has what is left instead
    largest : size of arguments up to which calls are taken
    asked : how often more time has been asked for in vain
    calls, running : how many there have been, and are on the stack
    cheap : calls with larger arguments that have been found to cost little
    untimed : calls that were to pass untimed, the last time
    typical : nanoseconds that the last call counts for
    kept : what took the first call
    """

    __slots__ = (
        "asked",
        "budget",
        "calls",
        "cheap",
        "function",
        "gate",
        "instance",
        "kept",
        "largest",
        "recursive",
        "running",
        "size",
        "typical",
        "untimed",
    )

    def __init__(self, function: FunctionType, instance: Any) -> None:
        self.function, self.instance = function, instance
        self.kept: object = None
        self.budget = BUDGET
        self.largest = SMALL
        self.running = self.calls = self.cheap = self.untimed = self.typical = self.asked = 0
        self.recursive = False
        self.size: CodeSize | None = None
        self.gate: PlainGate | None = None

    @property
    def left(self) -> int:
        """Nanoseconds that calls may still take here; the first gate counts them, too."""
        return int(self.instance._left)

    @left.setter
    def left(self, nanoseconds: float) -> None:
        self.instance._left = int(nanoseconds)

    @hidden
    def run(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call."""
        plain = not kwargs and self.left > 0 and self.running < DEEP and not open_blocks[0]
        if not (plain and unsized.issuperset(map(type, args))) and not self.takes(args, kwargs):
            return self.instance._dispatcher.slow(*args, **kwargs)
        self.running += 1
        start = time.perf_counter_ns() - booked[0]
        try:
            return self.function(*args, **kwargs)
        finally:
            self.end(start)

    def takes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Is a call run here?"""
        left = self.left if self.gate is None else self.gate.left
        if left <= 0 and (more := self.more()) > 0:
            self.asked = 0
            left += more
            if self.gate is None:
                self.left = left
            else:
                self.gate.left = left
        if left <= 0 or open_blocks[0] or self.running >= DEEP:
            return False
        values = (*args, *kwargs.values()) if kwargs else args
        return are_small(values, self.largest) or self.are_cheap(values)

    def more(self) -> int:
        """Nanoseconds that calls may take besides: what passed while others had the CPU, or something was waited for,
        is not Python's, and compiling does not save it; nor does it save what `eval` takes, or any call while errors
        are asked for."""
        from parakeet_py.llvm.runtime.error_state import asks_for_errors

        self.asked += 1
        if self.asked & (self.asked - 1):  # to ask for the time takes its time
            return 0
        passed, used = time.perf_counter_ns() - _begun[0], time.process_time_ns() - _begun[1]
        allowed = int(BUDGET * min(passed / max(used, 1), MOST_WAITING))
        ever = evaluates(self.function) or asks_for_errors()
        more = BUDGET if ever else max(allowed - self.budget, 0)
        self.budget += more
        return more

    def are_cheap(self, values: tuple[Any, ...]) -> bool:
        """Does a call with large arguments cost less than to compile it, whatever the function does? Not if the
        compiler is there already, and much smaller ones may be worth it."""
        if COMPILER in sys.modules or not are_small(values, math.inf):
            return False
        if self.size is None:
            self.size = size_of_code(self.function)
            self.take_up_to(max(SMALL, self.size.largest(compile_cost.of(self.size))))
        price = compile_cost.of(self.size)
        if self.size.cost(values) >= price:
            return False
        self.cheap += 1
        if self.cheap % FEW == 0:  # to ask for each takes as long as many a call
            ints = size_of([value for value in values if type(value) is int])
            largest = size_of([value for value in values if type(value) is not int])
            if self.size.cost(values, max(ints, largest)) < price:  # also where it is an array that is as large
                self.take_up_to(max(ints, largest))
            elif self.size.cost_of(ints, self.largest) < SLACK * price:
                self.take_up_to(0, ints)
        return True

    def take_up_to(self, largest: int, ints: int = 0) -> None:
        """Take calls with arguments of this size without a further look at it, and with `ints` that are larger."""
        instance = self.instance
        self.largest = instance._largest = max(self.largest, largest)
        any_int = self.size is not None and not (self.size.loops and self.size.counts)
        instance._largest_int = MOST if any_int else max(instance._largest_int, self.largest, ints)
        if self.gate is not None:
            self.gate.largest = self.largest

    def end(self, start: int) -> None:
        """A call is over that began at a time, less what was booked then."""
        own = max(time.perf_counter_ns() - booked[0] - start, 0)
        booked[0] += own
        self.running -= 1
        if self.typical and own > SUDDEN:  # the clock goes on while other processes have the CPU
            own = min(own, SUDDEN + GROWTH * self.typical)
        self.typical = own
        if self.gate is not None:
            self.gate.left -= own
            tell_classes()
            return
        instance = self.instance
        if instance._entry:  # the first gate has its own count of what passes untimed
            self.left -= own
            self.calls += 1
            tell_classes()
            return
        passed = self.untimed - instance._untimed  # since the last one that was timed
        self.left -= own + passed * instance._estimate
        self.calls += 1 + passed
        self.recursive = self.recursive or self.running > 0
        stays = self.left > 0 and instance._slow == self.run
        short = stays and own < SHORT and not self.recursive
        instance._untimed = self.untimed = min(2 * self.untimed + 1, SAMPLE - 1) if short else 0
        instance._estimate = own
        if stays and self.calls > FEW and gates_pay(1 + passed):
            self.open_gate()

    @not_of_the_call()
    def open_gate(self) -> None:
        """Let a gate take calls from now on; not now if another thread is making the dispatcher."""
        if not completing.acquire(blocking=False):
            return
        try:
            if self.instance._complete is not None:  # there is no dispatcher, which knows the gates
                from parakeet_py.llvm.entry.plain_gate import PlainGate

                self.gate = PlainGate(self.function, None, self.largest, self.left)
                self.left = 0
                tell_classes()
                install(self.instance, [self.gate])
                return
        finally:
            completing.release()
        self.instance._dispatcher.open_first_gate()
