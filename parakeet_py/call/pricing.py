"""What a call costs in Python at most, about, and what compiling it costs: both before anything is done.

Both come from the function's bytecode, which is there already: reading it takes a tenth of a millisecond, once. An
instruction costs `INSTRUCTION` ns, in a loop as many times as the loop may turn: as often as the longest axis, list or
int among the arguments says, in nested loops a power of that. Ints say it only where something counts to them (`while`,
`range`, arrays of so many elements), and a dict or set is gone through by one loop alone. An operator or call of a loop
body works on as many elements as the largest array among the arguments has; where indices add axes (`x[:, None] - y`),
as many as all extents of the arguments come to together. Python functions that are found under global names, and nested
functions, count as part of the function.

That bounds the cost of ordinary numeric code; code whose loops end by what they compute, or that calls what cannot be
seen here, may cost more. It only decides where to begin: what calls really take is measured (see `renting`).
"""

from __future__ import annotations

import dis
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import ARRAYS

COMPILER: Final = "parakeet_py.call.compile"  # is loaded with the first compilation
INSTRUCTION: Final = 30.0  # ns of one instruction of Python code
ELEMENT: Final = 1.0  # ns of an element in an operator of NumPy's
FAR_ELEMENT: Final = 2.0  # ns of one in arrays of more than FAR elements, whose results are new pages
FAR: Final = 2**20
COMPILING: Final = 20e6, 1.5e6  # ns of compiling: of any function, of an instruction (median over the test programs)
STARTING: Final = 100e6  # ns that the first compilation of a process takes to import the compiler
SHARE: Final = 0.1  # of the process's time that compiling may take without any use
FREE: Final = 0.1e9  # ns that it may take besides
MAX_LEVELS: Final = 3  # of calls that are looked into
MAX_DEPTH: Final = 4  # of loops; deeper ones count as this deep
MOST: Final = 2**63 - 1
BEGUN: Final = time.perf_counter_ns() - time.process_time_ns()  # when the process has begun, about
_UNKNOWN: Final = object()
_EVALUATING: Final = frozenset(("eval", "exec"))
NEVER: Final = 3e15  # ns that no call takes, as it would take a day in machine code: loops do not all turn so often
_LONGEST: Final = 2**40  # turns of a loop that Python could end on the same day; larger ints stand for something else
# What gives as many items as an int says, by the names that it usually has.
_COUNTING: Final = (
    {"range", "arange", "linspace", "zeros", "ones", "empty", "full", "eye", "identity", "tri", "repeat", "tile"}
    | {"islice", "count", "product", "permutations", "combinations", "random", "rand", "randn", "randint", "integers"}
    | {"normal", "uniform", "standard_normal", "choice", "choices", "sample"}
)
_OPERATORS: Final = ("BINARY_", "CALL", "COMPARE_OP", "UNARY_")


@record
class CodeSize:
    """The instructions of a function, by the number of loops around them.

    Attributes
    ----------
    instructions, operators : how many there are in no loop, in one, in one within another, ...; operators and calls
    added_axes : the places at which indices add axes, for each kind of index that does: {(1,), (0,)} for
        `x[:, None] - y[None]`
    counts : may some loop turn as often as an int says?
    open_ended : may some loop turn as often as what it computes says?
    """

    instructions: tuple[int, ...]
    operators: tuple[int, ...]
    added_axes: frozenset[tuple[int, ...]] = frozenset()
    counts: bool = True
    open_ended: bool = True

    @property
    def total(self) -> int:
        return sum(self.instructions)

    @property
    def loops(self) -> bool:
        """Are there any loops?"""
        return any(self.instructions[1:])

    def cost(self, values: Sequence[Any], least: int = 0) -> float:
        """Nanoseconds of a call in Python, at most for ordinary code; of one whose arrays have at `least` so many
        elements."""
        turns, elements, once = _extents(values, self.counts)
        largest = float(max(elements, least))
        if self.added_axes:
            largest = max(largest, self._broadcast(values), float(least) ** 2)
        found = self.cost_of(turns, largest, once)
        return found if found < NEVER else self.cost_of(1, largest, max(turns, once))

    def _broadcast(self, values: Sequence[Any]) -> float:
        """The elements of an array that has all axes of the arguments, those of equal length once for each argument
        that has most of them; of one array with axes added at several places, its longest twice."""
        axes: Counter[int] = Counter()
        arrays = [value for value in values if type(value) in ARRAYS]
        for value in arrays:
            axes |= Counter(value.shape)
        if len(arrays) == 1 and len(self.added_axes) > 1 and axes:
            axes[max(axes)] += 1
        return math.prod(float(extent) ** number for extent, number in axes.items())

    def largest(self, nanoseconds: float) -> int:
        """The size of arguments up to which no call costs more, but for what is in lists."""
        size, power = 1, 2 if self.added_axes else 1
        while size < MOST // 4 and self.cost_of(2 * size, (2 * size) ** power) < nanoseconds:
            size *= 2
        return size

    def cost_of(self, turns: int, elements: float, once: int = 1) -> float:
        """Nanoseconds of a call whose loops turn so often, with so many elements in the largest array; of loops in each
        other one turns as often as `once` says, if that is more."""
        found, times = 0.0, 1.0
        each = (FAR_ELEMENT if elements > FAR else ELEMENT) * elements
        for instructions, operators in zip(self.instructions, self.operators, strict=True):
            found += times * (INSTRUCTION * instructions + each * operators)
            times *= turns if times > 1 else max(turns, once)
        return found


def _extents(values: Sequence[Any], counts: bool) -> tuple[int, int, int]:
    """How often loops turn at most, by these arguments, to which they may count; how many elements the largest array
    has; and how often one loop turns at most."""
    turns, elements, once = 1, 0, 1
    for value in values:
        kind = type(value)
        if kind in ARRAYS:
            turns = max(turns, *value.shape, 1)
            elements = max(elements, value.size)
        elif kind is int or (isinstance(value, np.integer) and kind is not np.timedelta64):
            number = abs(int(value))
            if counts and number <= _LONGEST:
                turns = max(turns, number)
        elif kind in (dict, set):
            once = max(once, len(value))
        elif kind in (list, tuple, str, range):
            turns = max(turns, len(value))
            if value and kind in (list, tuple) and type(value[0]) in (np.ndarray, list, tuple):
                inner = _extents(value[:4], counts)
                turns, elements = max(turns, inner[0]), max(elements, inner[1])
    return turns, elements, once


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
    added_axes: set[tuple[int, ...]] = set()
    counts = open_ended = False

    def add(code: CodeType, namespace: dict[str, Any], around: int, level: int) -> None:
        if code in seen:
            return
        nonlocal counts, open_ended
        seen.add(code)
        listed = list(dis.get_instructions(code))
        added_axes.update(_added_axes(listed))
        loops = [
            (int(one.argval), one.offset) for one in listed if "JUMP_BACKWARD" in one.opname and one.argval is not None
        ]
        items = {one.offset for one in listed if one.opname in ("FOR_ITER", "SEND")}
        open_ended |= any(head not in items for head, _ in loops)
        counts |= open_ended or not _COUNTING.isdisjoint(code.co_names)
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
    return CodeSize(tuple(instructions), tuple(operators), frozenset(added_axes), counts, open_ended)


def _added_axes(listed: Sequence[dis.Instruction]) -> Iterator[tuple[int, ...]]:
    """The places of None in what values are indexed by, found on a stack of what is known: None, an index, or less."""
    stack: list[object] = []
    for one in listed:
        known: object = _UNKNOWN
        if one.opname == "LOAD_CONST":
            known = one.argval
        elif one.argval == "newaxis":
            known = None
        elif one.opname == "BUILD_TUPLE" and one.arg and len(stack) >= one.arg:
            known = tuple(stack[-one.arg :])
        elif one.opname == "BINARY_SUBSCR" or one.argrepr == "[]":
            index = stack[-1] if stack else _UNKNOWN
            parts = index if isinstance(index, tuple) else (index,)
            if None in parts:
                yield tuple(place for place, part in enumerate(parts) if part is None)
        effect = dis.stack_effect(one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
        taken = one.arg or 0 if one.opname == "BUILD_TUPLE" else max(1 - effect, 0)
        if taken:
            del stack[-taken:]
        if known is not _UNKNOWN or effect + taken > 0:
            stack += [known] * (effect + taken)


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
