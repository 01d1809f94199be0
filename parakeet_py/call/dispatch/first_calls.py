"""The first calls of an accelerated function: Python runs them, at a microsecond or two more than they take.

A program has thousands of functions, most of which are called a few times. Nothing is made for these but a
`FirstCalls`: no dispatcher, no look at the code or at what the arguments are beyond their classes and sizes. It takes
calls until they have cost `BUDGET` in all, and lets those with large arguments pass, which may be worth compiling at
once; and recursive calls that are deep, whose frames it would double.

When there have been many calls, gates of machine code
take its place (`renting`), which are faster by far but take a while to load.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from types import FunctionType
from typing import Any, Final

import numpy as np

from parakeet_py.base.config import open_blocks
from parakeet_py.base.tracebacks import shown
from parakeet_py.llvm.entry.booked_time import booked
from parakeet_py.signature.device_classes import class_lives_elsewhere

BUDGET: Final = 20_000_000  # ns of own time; to compile anything takes as long
CALLS: Final = 64  # calls after which gates are asked for
MANY: Final = 1000  # calls of one function for which the code of gates is loaded
ALL_CALLS: Final = 30_000  # such calls in the process, before the code of gates is loaded, which takes as long
GATES: Final = "parakeet_py.llvm.entry.plain_gate"
COMPILER: Final = "parakeet_py.call.compile"  # with which most of that code is loaded
SMALL: Final = 64  # size of arguments with which a call is a small one, whatever the function does
DEEP: Final = 8  # calls within calls
_SIZED: Final = frozenset((list, tuple, dict))
_MOST: Final = 4096  # classes that are remembered

# Classes whose objects have no size, and are no arrays of devices.
unsized: set[type] = {float, str, bool, complex, type(None), np.float64, np.int64, np.bool_, FunctionType}


def are_small(values: Iterable[Any], largest: int) -> bool:
    """Are no values larger, and none arrays on devices? Sizes are those of `pricing.size_of`."""
    for value in values:
        kind = type(value)
        if kind in unsized:
            continue
        if kind is np.ndarray:
            size = value.size
        elif kind is int:
            size = abs(value)
        elif kind in _SIZED:
            size = len(value)
        elif class_lives_elsewhere(kind):
            return False
        else:
            if len(unsized) < _MOST:
                unsized.add(kind)
            continue
        if size > largest:
            return False
    return True


waiting = [0]  # calls of the process that gates would have taken


def gates_pay(calls: int = 1) -> bool:
    """Have there been so many calls in this process, with these, that it pays to load the code of gates?"""
    waiting[0] += calls
    return waiting[0] >= ALL_CALLS or GATES in sys.modules or COMPILER in sys.modules


class FirstCalls:
    """What takes the first calls of an accelerated function.

    Parameters
    ----------
    function : the plain function
    instance : the accelerated one, whose dispatcher gets the calls that are not taken here

    Attributes
    ----------
    budget, left : nanoseconds that calls could take at first, and may still take
    left_calls, asked : calls until gates are asked for; how often they have been
    running : calls that are on the stack
    """

    __slots__ = ("asked", "budget", "function", "instance", "largest", "left", "left_calls", "running")

    def __init__(self, function: FunctionType, instance: Any) -> None:
        self.function, self.instance = function, instance
        self.budget = self.left = BUDGET
        self.left_calls, self.largest = CALLS, SMALL
        self.running = self.asked = 0

    def run(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call."""
        plain = self.left > 0 and self.running < DEEP and not kwargs and unsized.issuperset(map(type, args))
        if not (plain and not open_blocks[0]) and not self.takes(args, kwargs):
            return self.instance._dispatcher.slow(*args, **kwargs)
        self.running += 1
        start = time.perf_counter_ns() - booked[0]
        try:
            return self.function(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = shown(error)
            raise
        finally:
            self.end(start)

    def takes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Is a call run here?"""
        return (
            self.left > 0
            and not open_blocks[0]
            and self.running < DEEP
            and are_small(args, self.largest)
            and are_small(kwargs.values(), self.largest)
        )

    def end(self, start: int) -> None:
        """A call is over that began at a time, less what was booked then."""
        own = time.perf_counter_ns() - booked[0] - start
        if own > 0:
            self.left -= own
            booked[0] += own
        self.running -= 1
        self.left_calls -= 1
        if self.left_calls < 0:
            self.ask_for_gate()

    def ask_for_gate(self) -> None:
        """There have been many calls."""
        self.left_calls = CALLS
        self.asked += 1
        if gates_pay(CALLS) or self.asked * CALLS >= MANY:
            self.instance._dispatcher.open_first_gate()
