"""When a function is compiled: as soon as Python has cost what compiling it will (`when="pays"`).

This is the ski-rental rule. A call that is priced higher than compiling (see `pricing`) is compiled at once. Others
run in Python, and what they take is added up, without what calls within them have waited for the compiler. When the
sum reaches the price of compiling, the next call is compiled, and the sum begins anew: new signatures have to earn
their compilation too. In all, time is never more than about twice that of the better choice, whatever calls come. Where
there are several CPUs, calls go on in Python while the function is compiled (see `dispatch.background`). Code that an
earlier process has left on the disk costs next to nothing and is asked for long before.

A function of which many calls run in Python gets a `PlainGate` for them, which calls Python from machine code and keeps
the account there.

After compiling, the calls of a signature are timed both ways, alternating, a few times: a `Trial`. Where Python is
faster, calls of that shape and size are left to it. Calls of other shapes, and larger ones, are tried by themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from parakeet_py.base import compiler_thread
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.call.dispatch import background
from parakeet_py.call.dispatch.first_calls import DEEP, FirstCalls, gates_pay
from parakeet_py.call.fallback_cache import MAX_KINDS, kind_of
from parakeet_py.call.pricing import BEGUN, MOST, SHARE, CodeSize, compile_cost, size_of, size_of_code
from parakeet_py.llvm.entry.booked_time import booked
from parakeet_py.llvm.entry.entry_kind import why_portable
from parakeet_py.signature.device_classes import some_are_labelled
from parakeet_py.signature.small_arguments import are_small, unsized

if TYPE_CHECKING:
    from parakeet_py.call.load import Loaded

LOADING: Final = 3e6  # ns of calls in Python after which code is looked for on the disk
FOLLOWING: Final = 5e6  # ns of calls in Python at least, between one look at what they have cost and the next
MISSED: Final = 32  # calls that machine code has let pass
CALLS: Final = 8  # calls in Python, or...
NANOSECONDS: Final = 10e6  # ...time in Python, after which a gate takes them
MAX_GATES: Final = 8  # of one function
DOUBT: Final = 16  # how much more a call must be expected to take, for each time what may be lost is lost
MOST_DOUBT: Final = 64  # times; a power of more is no float
STRAIGHT_DOUBT: Final = 2.0  # the most of that for code without loops
LONGEST: Final = 2e9  # ns that compilations of a function may take, unless its calls have cost more in Python


class Account:
    """What the calls of one function have cost in Python, and what is decided by that.

    Attributes
    ----------
    spent : nanoseconds that calls have taken in Python since something was compiled, but for those at `gates`
    total : the same since the beginning; own time only (see `llvm.entry.booked_time`)
    factor : how many times the price of compiling calls have to cost first; it doubles when nothing has come of it
    compiled : kinds of calls for which there is machine code
    left : kinds of calls for which Python is faster, up to a size
    waited : nanoseconds that calls have waited for the compiler
    waits : the next call that is compiled waits for it
    asks : off the path of calls, something has been found that the next one has to do
    owed : nanoseconds of compiling this function that are lost if its code is not used
    decision : what was decided last, and why, for people
    """

    def __init__(self, function: FunctionType, first: FirstCalls | None = None) -> None:
        self.function = function
        self.size: CodeSize | None = None
        self.spent = self.total = self.owed = self.waited = 0.0
        self.factor = 1.0
        self.expected = 0.0  # nanoseconds of the last call that was looked at
        self.calls = 0
        self.running = 0  # calls that `run` is in
        self.waits = self.asks = False
        self.refused = False  # the last call that a gate was asked for is none that will be compiled
        self.measuring = False  # the next call runs in Python once more, so that its time is known
        self.looked = False  # for code on the disk
        self.loading = False  # a call has been let through to load such code
        self.compiled: set[Hashable] = set()
        self.left: dict[Hashable, int] = {}
        self.missed: dict[Hashable, int] = {}  # calls of kinds that are compiled which no code has taken
        self.last: dict[Hashable, tuple[int, float]] = {}  # by kind, the size of the last call in Python, and its ns
        self.gates: list[Any] = []  # that have been given nanoseconds of the budget
        self.given = 0.0  # nanoseconds of those gates
        self.first = first  # takes the first calls, as long as there are no gates
        if first is not None:
            self.gates.append(first if first.gate is None else first.gate)
            self.given = first.budget
        self.decision = ""

    @property
    def cost(self) -> float:
        """Nanoseconds of compiling the function."""
        return compile_cost.of(self.code_size())

    @property
    def price(self) -> float:
        """Nanoseconds that its calls have to take in Python before it is compiled."""
        return self.cost * self.factor

    def code_size(self) -> CodeSize:
        if self.size is None:
            self.size = size_of_code(self.function)
        return self.size

    def settle_gates(self) -> None:
        """Book what calls at gates have taken."""
        taken = self.given - sum(gate.left for gate in self.gates)
        if self.gates and taken > 0:
            self.given -= taken
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
        if self.asks:
            return False
        price = self.price
        if self.spent >= price:
            taken = self.described()
            if self.is_doubtful():
                vain = compile_cost.lost > self.cost / 2
                why = "too much has been compiled in vain" if vain else "most of the time goes elsewhere so far"
                self.decision = f"not compiled: {taken}, and {why}"
                return True
            kind = kind_of(normal)
            self.measuring = kind not in self.last and self.code_size().loops
            self.decision = f"compiled next: {taken}" if self.measuring else f"compiled: {taken}"
            return self.measuring
        if self.spent >= LOADING and not self.looked:
            self.looked = True
            if disk():
                self.loading = True
                self.decision = (
                    f"loaded: its calls have taken {_ms(self.spent)} in Python, and there is code on the disk"
                )
                return False
        expected = self.expected = self.code_size().cost(normal)
        if expected >= price and expected >= price * self.caution():
            self.decision = (
                f"compiled: a call may take {_ms(expected)} in Python, compiling takes about {_ms(self.cost)}"
            )
            return False
        self.decision = ""
        return True

    def goes_on(self, normal: Sequence[Any]) -> bool:
        """Does a call that is to be compiled take less in Python than compiling does?"""
        if self.loading or self.waits:
            return False
        size, taken = self.last.get(kind_of(normal), (-1, 0.0))
        return (taken if size_of(normal) <= 2 * size else self.code_size().cost(normal)) < self.cost

    def caution(self) -> float:
        """How many times the price a call must be expected to take, so that it is compiled at once.

        How often loops turn is a bound, which few calls come near; what operators outside of them take is known.
        """
        doubt = float(DOUBT ** min(max(compile_cost.strain(self.cost) - 1, 0), MOST_DOUBT))
        return doubt if self.code_size().loops else min(doubt, STRAIGHT_DOUBT)

    def is_doubtful(self) -> bool:
        """Would so much be lost that the process cannot afford it?

        Not if most of its time goes into this function, or its calls have cost so many times more than compiling that
        little would be added: the more is lost already, the more it has to be, up to one part of `SHARE`.
        """
        strain = compile_cost.strain(self.cost)
        enough = self.cost * min(strain**2, 1 / SHARE)
        return strain > 1 and self.spent < min(enough, (time.perf_counter_ns() - BEGUN) / 2)

    def described(self) -> str:
        """What calls have cost, and what compiling would."""
        return f"its calls have taken {_ms(self.spent)} in Python, compiling takes about {_ms(self.cost)}"

    def decided(self) -> str:
        """What was decided last, and why."""
        self.settle_gates()
        return self.decision or f"not compiled yet, calls run in Python: {self.described()}"

    @hidden
    def run(self, normal: Sequence[Any], call: Callable[[], Any]) -> Any:
        """Run a call in Python, and book what it takes."""
        self.settle_gates()
        self.running += 1
        before, start = booked[0], time.perf_counter_ns()
        try:
            return call()
        finally:
            self.has_run(normal, before, start)

    def has_run(self, normal: Sequence[Any], before: int, start: int) -> None:
        """A call has run in Python; what was booked before, and when it began."""
        taken = time.perf_counter_ns() - start
        self.running -= 1
        own = max(taken - (booked[0] - before), 0)  # calls within this one have been booked
        booked[0] += own
        self.settle_gates()
        self.spent += own
        self.total += own
        self.calls += 1
        kind = kind_of(normal)
        if kind is not None:
            self.last.pop(kind, None)
            self.last[kind] = size_of(normal), taken
            if len(self.last) > MAX_KINDS:
                self.last.pop(next(iter(self.last), None), None)

    def gate_for(
        self,
        normal: Sequence[Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        size: int = 0,
        in_front: bool = False,
        refused: bool = False,
    ) -> Any:
        """A gate to Python for calls like this one, if so many run there that it pays; else None.

        Until something is compiled, one gate takes calls of any shape, and before that what has taken the first calls.
        Recursive calls get one early: what is above a call on the stack here would soon be more than Python allows.
        If gates stand `in_front` of machine code, they take calls it might take only if it lets many pass. `refused`:
        such calls are not compiled next, whatever they cost. `size`: of its arguments before it, if it may change them.
        """
        self.refused = refused
        size = max(size, size_of((*args, *kwargs.values())))
        if self.measuring:
            self.measuring = False
            return None
        if self.compiled and self.calls < CALLS and self.total < NANOSECONDS and not self.is_deep:
            return None
        if why_portable() or not (gates_pay() or self.is_deep):
            if self.first is not None and not self.compiled:
                values = (*args, *kwargs.values())
                ints = size_of([value for value in values if type(value) is int])
                others = size_of([value for value in values if type(value) is not int])
                self.first.take_up_to(max(self.largest(), others, size if size > ints else 0), ints)
                if self.first not in self.gates:
                    self.gates.append(self.first)
                self.share_budget()
            return None
        from parakeet_py.llvm.entry.plain_gate import FOR_EVER, PlainGate, Shape

        values = (*args, *kwargs.values())
        if not self.compiled and not some_are_labelled(values):  # of which gates of any shape let all pass
            are_small(values, MOST)
            return self.gate_of(None, max(self.largest(), size), values)
        kind = kind_of(normal)
        if in_front and kind in self.compiled and kind not in self.left:
            self.missed[kind] = self.missed.get(kind, 0) + 1
            if self.missed[kind] < MISSED:
                return None
        shape = Shape.of(args, kwargs, closely=kind in self.left)
        if shape is None or any(type(name) is not str for name in shape.names):
            return None
        if kind in self.left:
            return PlainGate(self.function, shape, self.left[kind], FOR_EVER)
        return self.gate_of(shape, size, ())

    def gate_for_refused(self, args: Sequence[Any], kwargs: Mapping[str, Any], size: int) -> Any:
        """A gate to Python for calls that are exactly like this one, none of which will be compiled; None if there are
        many such gates already, or gates do not pay yet. `size`: of its arguments before and after it."""
        if why_portable():
            return None
        from parakeet_py.llvm.entry.plain_gate import Shape

        shape = Shape.of(args, kwargs)
        if shape is None or not gates_pay() or any(type(name) is not str for name in shape.names):
            return None
        if len(self.gates) >= MAX_GATES and all(gate.shape != shape for gate in self.gates):
            return None
        self.refused = True
        return self.gate_of(shape, size, ())

    @property
    def is_deep(self) -> bool:
        """Are there so many calls within calls that frames here count?"""
        return self.running > 1 or (self.first is not None and self.first.running >= DEEP)

    def gate_of(self, shape: Any, largest: int, values: Sequence[Any]) -> Any:
        """A gate for calls of a shape, with its share of the budget; where there are enough, for those of any shape.
        `values`: arguments whose classes it knows from now on."""
        from parakeet_py.llvm.entry.argument_sizes import add_unsized
        from parakeet_py.llvm.entry.plain_gate import PlainGate

        if len(self.gates) >= MAX_GATES:
            shape = None
        self.settle_gates()
        add_unsized(unsized.intersection(map(type, values)) if values else unsized)
        if self.first is not None:
            if self.first in self.gates:
                self.gates.remove(self.first)
                self.given -= self.first.left
            self.first.left, self.first = 0, None
        found = next((gate for gate in self.gates if gate.shape == shape), None)
        if found is None:
            found = PlainGate(self.function, shape, largest, 0)
            self.gates.append(found)
        found.largest = max(found.largest, largest)
        self.share_budget()
        return found

    def largest(self) -> int:
        """The size of arguments up to which calls are not expected to be worth compiling at once."""
        return self.code_size().largest(self.cost)

    def share_budget(self) -> None:
        """Give gates what calls may take until it is decided anew."""
        self.settle_gates()
        budget = (self.price if self.looked else min(self.price, LOADING)) - self.spent
        if budget <= 0 and (self.refused or background.is_busy() or self.is_doubtful()):
            budget = max(FOLLOWING, self.spent / 4)
        for gate in self.gates:
            self.given -= gate.left
            gate.left = max(int(budget / len(self.gates)), 0)
            self.given += gate.left

    def close(self, in_vain: bool = False) -> None:
        """Something has been compiled, or it was tried: gates take no more calls, and the sum begins anew."""
        self.close_gates()
        self.spent = 0.0
        self.waits = False
        self.calls = 0
        if in_vain:
            self.factor *= 2

    def close_gates(self) -> None:
        """Let gates take no more calls."""
        self.settle_gates()
        for gate in self.gates:
            gate.left = 0
        self.gates.clear()
        self.given = 0.0

    def has_waited(self, nanoseconds: float, importing: float = 0.0) -> None:
        """The compiler has taken so long, and a call has waited for it, but off the path of calls. Part of that was to
        import modules, which is done once for all."""
        if not compiler_thread.is_here():
            booked[0] += int(nanoseconds)
            self.waited += nanoseconds
        own = max(nanoseconds - importing, 0.0)
        compile_cost.lost += own
        self.owed += own

    def has_won(self, share: float) -> None:
        """Machine code takes calls from now on, and saves this share of what they cost in Python."""
        compile_cost.lost -= self.owed * min(2 * share, 1)
        self.owed = 0.0
        self.factor = 1.0

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
    def most(self) -> float:
        """Nanoseconds that compiling will never be given more than, as long as calls take no more in Python."""
        return max(LONGEST, 2 * self.total)

    @property
    def longest(self) -> float:
        """Seconds that compiling may take now."""
        return min(self.most, max(2 * self.price, self.expected, compile_cost.room - compile_cost.lost)) / 1e9


class Trial:
    """The calls of one signature after it was compiled, timed in machine code and in Python.

    Parameters
    ----------
    python : the plain function, called in positional form
    loaded : the machine code
    kind : of the calls
    former : a call of the same kind that ran in Python before: its size and nanoseconds
    loops : does the function have loops? Then Python is tried only where it is known to take little.
    expected : nanoseconds that such a call is expected to take in Python
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
        expected: float,
        missed: Callable[..., Any],
        decide: Callable[[Trial, bool], None],
    ) -> None:
        self.function, self.loaded, self.kind, self.loops = python, loaded, kind, loops
        self.expected = expected
        self.missed, self.decide = missed, decide
        self.samples: dict[int, tuple[list[float], list[float]]] = {}  # by size class, of machine code and of Python
        if former is not None:
            self.samples[_class_of(former[0])] = [], [former[1]]
        self.size = 0
        self.over = False
        self.target = loaded.taking(self._missed)

    @hidden
    def _missed(self, *normal: Any) -> Any:
        self.finish(True)
        return self.missed(normal)

    @hidden
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
            if not (self.over or background.is_busy()):  # the compiler has the lock that is needed
                self.judge(native, python)

    def judge(self, native: list[float], python: list[float]) -> None:
        """Decide, if enough is known of a size class."""
        fast = min(native, default=0.0)
        if not (python or self.loops) and self.LONG < fast < self.expected / 10:
            self.finish(True)  # the elements have been gone through, for which Python needs far longer
            return
        if len(native) < 2:
            return
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

    def best(self) -> tuple[float, float]:
        """The shortest times in machine code and in Python, 0 if there are none."""
        native, python = (
            min((min(one[way]) for one in self.samples.values() if one[way]), default=0) for way in (0, 1)
        )
        return native, python

    @property
    def saved(self) -> float:
        """The share of Python's time that machine code saves; half, if that is not known."""
        native, python = self.best()
        return max(1 - native / python, 0) if python else 0.5

    def __str__(self) -> str:
        native, python = self.best()
        return f"{_us(native)} in machine code, {_us(python)} in Python"


def _class_of(size: int) -> int:
    """Sizes within a factor of four, about, are of one class."""
    return size.bit_length() // 2


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.1f} us" if nanoseconds else "not measured"


def _ms(nanoseconds: float) -> str:
    taken = nanoseconds / 1e6
    return f"{taken:,.0f} ms" if taken >= 1000.0 else f"{taken:.3g} ms"
