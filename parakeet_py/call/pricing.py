"""What a call costs in Python at most, about, and what compiling it costs: both before anything is done.

Both come from the function's bytecode, which is there already: reading it takes a tenth of a millisecond, once. An
instruction costs `INSTRUCTION` ns, in a loop as many times as the loop may turn: as often as the longest axis, list or
int among the arguments says, in nested loops a power of that. An operator or call of a loop body works on as many
elements as the largest array among the arguments has. Python functions that are found under global names, and nested
functions, count as part of the function.

That bounds the cost of ordinary numeric code; code whose loops end by what they compute, or that calls what cannot be
seen here, may cost more. It only decides where to begin: what calls really take is measured (see `renting`).
"""

from __future__ import annotations

import dis
import sys
import time
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import ARRAYS

COMPILER: Final = "parakeet_py.call.compile"  # is loaded with the first compilation
INSTRUCTION: Final = 30.0  # ns of one instruction of Python code
ELEMENT: Final = 1.0  # ns of an element in an operator of NumPy's
COMPILING: Final = 20e6, 1.5e6  # ns of compiling: of any function, of an instruction (median over the test programs)
STARTING: Final = 500e6  # ns that the first compilation of a process takes to import the compiler
SHARE: Final = 0.1  # of the process's time that compiling may take without any use
FREE: Final = 0.1e9  # ns that it may take besides
MAX_LEVELS: Final = 3  # of calls that are looked into
MAX_DEPTH: Final = 4  # of loops; deeper ones count as this deep
MOST: Final = 2**63 - 1  # turns of a loop; an int may be too large for a float
BEGUN: Final = time.perf_counter_ns() - time.process_time_ns()  # when the process has begun, about
_EVALUATING: Final = frozenset(("eval", "exec"))
_OPERATORS: Final = ("BINARY_", "CALL", "COMPARE_OP", "UNARY_")


@record
class CodeSize:
    """The instructions of a function, by the number of loops around them.

    Attributes
    ----------
    instructions, operators : how many there are in no loop, in one, in one within another, ...; operators and calls
    """

    instructions: tuple[int, ...]
    operators: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.instructions)

    @property
    def loops(self) -> bool:
        """Are there any loops?"""
        return any(self.instructions[1:])

    def cost(self, values: Sequence[Any]) -> float:
        """Nanoseconds of a call in Python, at most for ordinary code."""
        return self.cost_of(*_extents(values))

    def largest(self, nanoseconds: float) -> int:
        """The size of arguments up to which no call costs more, but for what is in lists."""
        size = 1
        while size < MOST // 4 and self.cost_of(2 * size, 2 * size) < nanoseconds:
            size *= 2
        return size

    def cost_of(self, turns: int, elements: int) -> float:
        """Nanoseconds of a call whose loops turn so often, with so many elements in the largest array."""
        found, times = 0.0, 1.0
        for instructions, operators in zip(self.instructions, self.operators, strict=True):
            found += times * (INSTRUCTION * instructions + ELEMENT * elements * operators)
            times *= turns
        return found


def _extents(values: Sequence[Any]) -> tuple[int, int]:
    """How often loops turn at most, by these arguments, and how many elements the largest array has."""
    turns, elements = 1, 0
    for value in values:
        kind = type(value)
        if kind in ARRAYS:
            turns = max(turns, *value.shape, 1)
            elements = max(elements, value.size)
        elif kind is int or isinstance(value, np.integer):
            turns = max(turns, min(abs(int(value)), MOST))
        elif kind in (list, tuple, dict, set, str, range):
            turns = max(turns, len(value))
            if value and kind in (list, tuple) and type(value[0]) in (np.ndarray, list, tuple):
                inner = _extents(value[:4])
                turns, elements = max(turns, inner[0]), max(elements, inner[1])
    return turns, elements


def size_of(values: Sequence[Any]) -> int:
    """The size of the largest argument, as plain gates measure it."""
    return max(map(_size, values), default=0)


def _size(value: Any) -> int:
    kind = type(value)
    if kind in ARRAYS:
        return int(value.size)
    if kind is int:
        return int(min(abs(value), 2**63 - 1))
    return len(value) if kind in (list, tuple, dict) else 0


def size_of_code(function: FunctionType) -> CodeSize:
    """The instructions of a function and of what it calls."""
    instructions, operators = [0] * (MAX_DEPTH + 1), [0] * (MAX_DEPTH + 1)
    seen: set[CodeType] = set()

    def add(code: CodeType, namespace: dict[str, Any], around: int, level: int) -> None:
        if code in seen:
            return
        seen.add(code)
        listed = list(dis.get_instructions(code))
        loops = [
            (int(one.argval), one.offset) for one in listed if "JUMP_BACKWARD" in one.opname and one.argval is not None
        ]
        for one in listed:
            inside = len({head for head, end in loops if head <= one.offset <= end})
            depth = min(around + inside, MAX_DEPTH)
            instructions[depth] += 1
            operators[depth] += one.opname.startswith(_OPERATORS)
            if isinstance(one.argval, CodeType):
                add(one.argval, namespace, depth, level)
            elif one.opname == "LOAD_GLOBAL" and level < MAX_LEVELS:
                target = namespace.get(one.argval)
                if isinstance(target, FunctionType):
                    add(target.__code__, target.__globals__, depth, level + 1)

    add(function.__code__, function.__globals__, 0, 0)
    return CodeSize(tuple(instructions), tuple(operators))


def evaluates(function: FunctionType) -> bool:
    """Does a function run texts or code by `eval` or `exec`? That takes its time, and compiling gains nothing."""
    named = _EVALUATING.intersection(function.__code__.co_names) - function.__globals__.keys()
    return bool(named) and any(
        one.opname == "LOAD_GLOBAL" and one.argval in named for one in dis.get_instructions(function.__code__)
    )


class CompileCost:
    """What compiling costs in this process: the estimate, corrected by what it has cost so far; and what is lost.

    Attributes
    ----------
    lost : nanoseconds of compiling that nothing has come of, or not yet
    """

    def __init__(self) -> None:
        self.estimated = self.taken = self.lost = 0.0

    def of(self, size: CodeSize) -> float:
        """Nanoseconds of compiling a function."""
        fixed, per_instruction = COMPILING
        found = fixed + per_instruction * size.total
        if self.estimated:
            found *= min(max(self.taken / self.estimated, 1.0), 8.0)
        return found if COMPILER in sys.modules else found + STARTING

    def learn(self, size: CodeSize, nanoseconds: float) -> None:
        """A function of this size has been compiled, or has turned out not to be worth it."""
        fixed, per_instruction = COMPILING
        self.estimated = 0.9 * self.estimated + fixed + per_instruction * size.total
        self.taken = 0.9 * self.taken + nanoseconds

    def strain(self, nanoseconds: float) -> float:
        """What would be lost if as much were lost once more, as a part of what may be."""
        return (self.lost + nanoseconds) / self.room

    @property
    def room(self) -> float:
        """Nanoseconds that may be lost by now."""
        return FREE + SHARE * time.process_time_ns()


compile_cost = CompileCost()
