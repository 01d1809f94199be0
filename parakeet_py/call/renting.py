"""When a function is compiled: as soon as Python has cost what compiling it will (`when="pays"`).

This is the ski-rental rule. A call that is priced higher than compiling (see `pricing`) is compiled at once. Others
run in Python, and what they take is added up, without what calls within them have waited for the compiler. When the
sum reaches the price of compiling, the next call is compiled, and the sum begins anew: new signatures have to earn
their compilation too. In all, time is never more than about twice that of the better choice, whatever calls come. Code
that an earlier process has left on the disk costs next to nothing and is asked for long before.

A function of which many calls run in Python gets a `PlainGate` for them, which calls Python from machine code and keeps
the account there.

After compiling, the calls of a signature are timed both ways, alternating, a few times: a `Trial`. Where Python is
faster, calls of that shape and size are left to it. Calls of other shapes, and larger ones, are tried by themselves.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from parakeet_py.call.fallback_cache import MAX_KINDS, kind_of
from parakeet_py.call.pricing import CodeSize, compile_cost, size_of, size_of_code
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, install

if TYPE_CHECKING:
    from parakeet_py.call.load import Loaded

LOADING: Final = 3e6  # ns of calls in Python after which code is looked for on the disk
CALLS: Final = 32  # calls in Python, or...
NANOSECONDS: Final = 10e6  # ...time in Python, after which a gate takes them
ALL_CALLS: Final = 1000  # such calls in the process, before the code of gates is loaded, which takes as long
GATES: Final = "parakeet_py.llvm.entry.plain_gate"
MAX_GATES: Final = 8  # of one function
LONGEST: Final = 2e9  # ns that compilations of a function may take, unless its calls have cost more in Python


class Account:
    """What the calls of one function have cost in Python, and what is decided by that.

    Attributes
    ----------
    spent : nanoseconds that calls have taken in Python since something was compiled, but for those at `gates`
    total : the same since the beginning; time of calls within calls counts once
    compiled : kinds of calls for which there is machine code
    left : kinds of calls for which Python is faster, up to a size
    decision : what was decided last, and why, for people
    """

    waiting = 0  # calls of the process that a gate would have taken

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.size: CodeSize | None = None
        self.spent = self.total = 0.0
        self.calls = 0
        self.running = 0  # calls that `run` is in
        self.looked = False  # for code on the disk
        self.loading = False  # a call has been let through to load such code
        self.compiled: set[Hashable] = set()
        self.left: dict[Hashable, int] = {}
        self.last: dict[Hashable, tuple[int, float]] = {}  # by kind, the size of the last call in Python, and its ns
        self.gates: list[Any] = []  # that have been given nanoseconds of the budget
        self.given = 0.0  # nanoseconds of those gates
        self.waited = compile_cost.total  # when the gates were settled last
        self.decision = "no call has been made"

    @property
    def cost(self) -> float:
        """Nanoseconds of compiling the function."""
        return compile_cost.of(self.code_size())

    def code_size(self) -> CodeSize:
        if self.size is None:
            self.size = size_of_code(self.function)
        return self.size

    def settle_gates(self) -> None:
        """Book what calls at gates have taken."""
        taken = self.given - sum(gate.left for gate in self.gates)
        waited, self.waited = compile_cost.total - self.waited, compile_cost.total
        if self.gates and taken > 0:
            self.given -= taken
            taken = max(taken - waited, 0)  # by calls within these calls
            self.spent += taken
            self.total += taken

    def takes(self, normal: Sequence[Any], disk: Callable[[], bool]) -> bool:
        """Does a call in positional form run in Python, whatever its signature? See `rents`."""
        kind = kind_of(normal)
        if kind is None:
            return False
        if kind in self.left and size_of(normal) <= self.left[kind]:
            return True
        return kind not in self.compiled and self.rents(normal, disk)

    def must_earn(self, normal: Sequence[Any], disk: Callable[[], bool]) -> bool:
        """Does a call with a new signature run in Python, although there is code for calls of its kind?"""
        return kind_of(normal) in self.compiled and self.rents(normal, disk)

    def rents(self, normal: Sequence[Any], disk: Callable[[], bool]) -> bool:
        """Does a call in positional form run in Python? `disk`: asks whether there is code on the disk."""
        self.settle_gates()
        self.loading = False
        cost = self.cost
        if self.spent >= cost:
            self.decision = (
                f"compiled: its calls have taken {_ms(self.spent)} in Python, compiling takes about {_ms(cost)}"
            )
            return False
        if self.spent >= LOADING and not self.looked:
            self.looked = True
            if disk():
                self.loading = True
                self.decision = (
                    f"loaded: its calls have taken {_ms(self.spent)} in Python, and there is code on the disk"
                )
                return False
        price = self.code_size().cost(normal)
        if price >= cost:
            self.decision = f"compiled: a call may take {_ms(price)} in Python, compiling takes about {_ms(cost)}"
            return False
        self.decision = (
            f"not compiled yet: its calls have taken {_ms(self.spent)} in Python, compiling takes about {_ms(cost)}"
        )
        return True

    def run(self, normal: Sequence[Any], call: Callable[[], Any]) -> Any:
        """Run a call in Python, and book what it takes."""
        self.settle_gates()
        before, waited = self.total, compile_cost.total
        self.running += 1
        start = time.perf_counter_ns()
        try:
            return call()
        finally:
            taken = max(time.perf_counter_ns() - start - (compile_cost.total - waited), 0)
            self.running -= 1
            self.settle_gates()
            own = max(taken - (self.total - before), 0)  # calls within this one have been booked
            self.spent += own
            self.total += own
            self.calls += 1
            kind = kind_of(normal)
            if kind is not None:
                self.last.pop(kind, None)
                self.last[kind] = size_of(normal), taken
                if len(self.last) > MAX_KINDS:
                    self.last.pop(next(iter(self.last), None), None)

    def gate_for(self, normal: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A gate to Python for calls like this one, if so many run there that it pays; else None.

        Recursive calls get one early: what is above a call on the stack here would soon be more than Python allows.
        """
        if self.calls < CALLS and self.total < NANOSECONDS and not self.running:
            return None
        Account.waiting += 1
        if GATES not in sys.modules and Account.waiting < ALL_CALLS and not self.running:
            return None
        from parakeet_py.llvm.entry.plain_gate import FOR_EVER, PlainGate, Shape

        kind = kind_of(normal)
        shape = Shape.of(args, kwargs, closely=kind in self.left)
        if shape is None or any(type(name) is not str for name in shape.names):
            return None
        if kind in self.left:
            return PlainGate(self.function, shape, self.left[kind], FOR_EVER)
        if len(self.gates) >= MAX_GATES:
            return None
        self.settle_gates()
        budget = max(int(min(self.cost, LOADING if not self.looked else self.cost) - self.spent), 1)
        largest = size_of((*args, *kwargs.values()))
        found = next((gate for gate in self.gates if gate.shape == shape), None)
        if found is None:
            found = PlainGate(self.function, shape, largest, 0)
            self.gates.append(found)
        found.largest = max(found.largest, largest)
        for gate in self.gates:  # they share what is left of the budget
            self.given -= gate.left
            gate.left = budget // len(self.gates)
            self.given += gate.left
        return found

    def close(self) -> None:
        """Something is about to be compiled: gates take no more calls, and the sum begins anew."""
        self.settle_gates()
        for gate in self.gates:
            gate.left = 0
        self.gates.clear()
        self.given = self.spent = 0.0
        self.calls = 0

    def has_compiled(self, normal: Sequence[Any], nanoseconds: float) -> None:
        """A call has been compiled."""
        compile_cost.learn(self.code_size(), nanoseconds)
        self.has_code(normal)

    def has_code(self, normal: Sequence[Any]) -> None:
        """There is machine code for a call."""
        self.compiled.add(kind_of(normal))

    def only_loads(self) -> bool:
        """Has the call been let through for code on the disk alone? If there is none for it, it runs in Python."""
        loading, self.loading = self.loading, False
        return loading

    @property
    def longest(self) -> float:
        """Seconds that compiling may take now."""
        return max(LONGEST, 2 * self.total) / 1e9


class Trial:
    """The calls of one signature after it was compiled, timed in machine code and in Python.

    Parameters
    ----------
    python : the plain function, called in positional form
    loaded : the machine code
    kind : of the calls
    former : a call of the same kind that ran in Python before: its size and nanoseconds
    loops : does the function have loops? Then Python is tried only where it is known to take little.
    missed : what takes calls in positional form that the code does not, once the trial is over
    decide : called at the end, with the verdict: shall machine code take such calls?
    """

    ENOUGH: Final = 5  # calls each way
    LONG: Final = 2e6  # ns: two calls like this one are enough, and one that took ten times as much in Python

    def __init__(
        self,
        python: Callable[..., Any],
        loaded: Loaded,
        kind: Hashable,
        former: tuple[int, float] | None,
        loops: bool,
        missed: Callable[..., Any],
        decide: Callable[[Trial, bool], None],
    ) -> None:
        self.function, self.loaded, self.kind, self.loops = python, loaded, kind, loops
        self.missed, self.decide = missed, decide
        self.samples: dict[int, tuple[list[float], list[float]]] = {}  # by size class, of machine code and of Python
        if former is not None:
            self.samples[_class_of(former[0])] = [], [former[1]]
        self.size = 0
        self.over = False
        self.target = AcceleratedFunction(loaded.function, self._missed)
        install(self.target, [loaded.gate])

    def _missed(self, *normal: Any) -> Any:
        self.finish(True)
        return self.missed(normal)

    def run(self, normal: tuple[Any, ...]) -> Any:
        """One more call."""
        size = size_of(normal)
        native, python = self.samples.setdefault(_class_of(size), ([], []))
        to_python = len(python) < len(native) and (bool(python) or not self.loops)
        target, samples = (self.function, python) if to_python else (self.target, native)
        start = time.perf_counter_ns()
        try:
            return target(*normal)
        finally:
            samples.append(time.perf_counter_ns() - start)
            self.size = max(self.size, size)
            if not self.over:
                self.judge(native, python)

    def judge(self, native: list[float], python: list[float]) -> None:
        """Decide, if enough is known of a size class."""
        if len(native) < 2:
            return
        fast = min(native)
        if not python:  # what Python would take is not known, and may be long
            self.finish(True)
            return
        slow = min(python)
        enough = 2 if fast > self.LONG else self.ENOUGH
        clear = fast * 10 < slow and (slow > self.LONG or len(python) > 1)
        if clear or min(len(native), len(python)) >= enough:
            self.finish(fast <= slow)

    def finish(self, native: bool) -> None:
        if not self.over:
            self.over = True
            self.decide(self, native)

    def __str__(self) -> str:
        native, python = (
            min((min(one[way]) for one in self.samples.values() if one[way]), default=0) for way in (0, 1)
        )
        return f"{_us(native)} in machine code, {_us(python)} in Python"


def _class_of(size: int) -> int:
    """Sizes within a factor of four, about, are of one class."""
    return size.bit_length() // 2


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.1f} us" if nanoseconds else "not measured"


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3g} ms"
