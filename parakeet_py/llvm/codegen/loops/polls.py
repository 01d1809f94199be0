"""Polls in generated loops: where they look up for signals (see `runtime.loop_polls`).

Loops without others inside that count are cut into strips: the loop itself over one strip of the iterations, which LLVM
sees as if it did not poll, and around it a loop over strips with a poll between them. A `while` loop counts down its
iterations in a register, and a loop that has others inside in memory, so that these have all the registers. What a loop
of few iterations pays is a minimum and a branch, or a decrement and a branch for each of them.

Polls are so far apart that they take no time: `_LIGHT` iterations, `_HEAVY` of those that call something, and of loops
that have others inside `_FIRST` at the beginning (`_NEST` if these have others inside, are `while` loops, or go up to
an argument: memory does not bound them), and then what `pk_poll` makes of the time that they took.

What ends soon does not poll, nor what memory bounds and is often short: loops of few iterations; those over the
elements of arrays, in which there are no others; those inside others, unless they go up to an argument, or have loops
inside themselves and the one around only repeats them, or is over tiles or tasks; inner `while` loops that step towards
what they are compared with. Recursion polls once in so many calls, and the thread pool between the parts of a region.

Loops that look at signals themselves (`Interrupted`), as handlers of exceptions are around them, do not poll; where a
function has such, others do not run handlers of signals (`be_quiet`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.builder import FunctionText
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.runtime.call_context import INTERRUPTED, Context
from parakeet_py.llvm.runtime.loop_polls import CONVENTION, QUIET
from parakeet_py.typed_ir.ir import Const, Dim, Interrupted, Prim, Var

_LIGHT = 1 << 16
_HEAVY = 1 << 10
_FIRST = 32
_NEST = 2
_SHORT = 64  # known iterations of a loop that does not poll
_CALLS = (ir.Call, ir.Opaque, ir.Routine, ir.Matmul, ir.Parallel)

Loop = ir.For | ir.While


@contextmanager
def strips(scope: Scope, loop: ir.For, start: str, stop: str, order: str) -> Iterator[tuple[str, str, str]]:
    """Around a loop over one strip, given its bounds and where a Break goes to. `start` and `stop` are the numbers of
    all iterations, compared by `order`: "slt", or "ult" of unsigned ones."""
    f, poll = scope.f, _Poll(scope, loop)
    strip, end = f.label("strip"), f.label("end")
    next_start = f.alloca("i64")
    f.effect(f"store i64 {start}, ptr {next_start}")
    f.branch(strip)
    f.begin(strip)
    with f.inner():
        first = f.value(f"load i64, ptr {next_start}")
        if (least := f.bound(start)) is not None:
            f.bounds[first] = least
        sign = order[0]
        last = f.intrinsic(f"{sign}min", "i64", f.intrinsic(f"{sign}add.sat", "i64", first, str(poll.length)), stop)
        f.effect(f"store i64 {last}, ptr {next_start}")
        yield first, last, end
        f.branch_if(f.binary(f"icmp {order}", "i64", last, stop), poll.due, end, poll.unlikely)
    poll.write(strip)
    f.begin(end)


class Countdown:
    """The iterations of a loop until it polls. Made before the loop."""

    def __init__(self, scope: Scope, loop: Loop) -> None:
        self.f = scope.f
        self.poll = _Poll(scope, loop)
        if self.poll.adapts:
            self.left = self.poll.state
            self.poll.begin(self.f.effect)
        else:
            self.left = self.f.alloca("i64")
            self.f.effect(f"store i64 {self.poll.length}, ptr {self.left}")

    def step(self) -> None:
        """In each iteration: poll if it is time."""
        f, poll = self.f, self.poll
        go_on = f.label("go_on")
        f.branch_if(_counted_down(f, self.left, in_memory=poll.adapts), poll.due, go_on, poll.unlikely)
        poll.write(go_on, [] if poll.adapts else [f"store i64 {poll.length}, ptr {self.left}"])
        f.begin(go_on)


def poll_before_call(scope: Scope, place: int, wanted: str) -> None:
    """Before a recursive call, if it is `wanted` to be counted: poll, once in so many calls that share the state whose
    address is at a place of the context."""
    f = scope.f
    count, go_on = f.label("count"), f.label("go_on")
    f.branch_if(wanted, count, go_on)
    f.begin(count)
    address = f.steady_value(f"getelementptr inbounds i8, ptr %ctx, i64 {place}")
    state = f.value(f"load ptr, ptr {address}")
    poll = _Poll(scope, state=state)
    f.branch_if(_counted_down(f, state, in_memory=True), poll.due, go_on, poll.unlikely)
    poll.write(go_on)
    f.begin(go_on)


def has_looks(block: ir.Block) -> bool:
    """Does anything here ask whether a handler of a signal has raised?"""
    return any(isinstance(one, ir.Let) and isinstance(one.rhs, Interrupted) for one in ir.walk(block))


def be_quiet(scope: Scope) -> None:
    """Leave handlers of signals to the loops that ask for them, for the whole call."""
    due = scope.f.value(f"getelementptr inbounds i8, ptr %ctx, i64 {Context.DUE}")
    scope.f.effect(f"store i64 {QUIET}, ptr {due}")


def look(scope: Scope) -> str:
    """Has a handler of a signal raised? Asked now and then; the exception is in the context then."""
    if not scope.unit.polls:
        return "false"
    f = scope.f
    state, answer = f.alloca("[4 x i64]", 16), f.alloca("i1")
    begin_state(f, f.entry_effect, state)
    due, go_on, name = f.label("look"), f.label("go_on"), f.fresh("look")
    f.effect(f"store i1 false, ptr {answer}")
    f.branch_if(_counted_down(f, state, in_memory=True), due, go_on, f", !prof {f.module.shared_node(_UNLIKELY)}")
    function = f.module.declare(f"{CONVENTION}i32", "pk_look", "ptr", "cold nounwind")
    lines = [
        f"{name} = call {CONVENTION}i32 {function}(ptr {state})",
        f"{name}.bit = trunc i32 {name} to i1",
        f"store i1 {name}.bit, ptr {answer}",
        f"br label %{go_on}",
    ]
    f.cold(due, lines)
    f.begin(go_on)
    return f.value(f"load i1, ptr {answer}")


def begin_state(f: FunctionText, write: Callable[[str], None], state: str, length: int = _FIRST) -> None:
    """Write the instructions that fill a state of polls."""
    name = f.fresh("state")
    write(f"store [3 x i64] [i64 {length}, i64 {length}, i64 0], ptr {state}")
    write(f"{name} = getelementptr inbounds i8, ptr {state}, i64 24")
    write(f"{name}.ctx = ptrtoint ptr %ctx to i64")
    write(f"store i64 {name}.ctx, ptr {name}")


def _counted_down(f: FunctionText, left: str, *, in_memory: bool) -> str:
    """Is a number 0, less one? It stays in memory, or is in a register if LLVM wants so."""
    if in_memory and f.module.host.triple.startswith("x86_64"):
        place = f"ptr elementtype(i64) {left}"
        ended = f.value(f"call i32 {_DECREMENT}({place}, {place}) {_OWN}")
        return f.value(f"trunc i32 {ended} to i1")
    less = f.binary("add", "i64", f.value(f"load i64, ptr {left}"), "-1")
    f.effect(f"store i64 {less}, ptr {left}")
    return f.binary("icmp eq", "i64", less, "0")


# One instruction on memory; of a load, an addition and a store LLVM would keep the number in a register as well.
_DECREMENT = 'asm "decq $1", "={@ccz},=*m,*m,~{dirflag},~{fpsr},~{flags}"'
_OWN = "nounwind willreturn memory(argmem: readwrite)"


class _Poll:
    """A block `due` that polls, and goes on or leaves; polls come every `length` iterations, or `adapts` that."""

    def __init__(self, scope: Scope, loop: Loop | None = None, state: str | None = None) -> None:
        self.scope = scope
        self.due = scope.f.label("poll")
        self.unlikely = f", !prof {scope.f.module.shared_node(_UNLIKELY)}"
        self.length = _FIRST if loop is None else _first_length(loop, scope.unit.function.params)
        self.adapts = self.length <= _FIRST
        self.state = state or scope.f.alloca("[4 x i64]", 16)
        # what may not end by itself has to be left somehow, past the handlers around it
        self.function = "pk_poll_aloud" if scope.unit.looks and isinstance(loop, ir.While) else "pk_poll"

    def begin(self, write: Callable[[str], None]) -> None:
        """Write the instructions that fill the state."""
        begin_state(self.scope.f, write, self.state, self.length)

    def write(self, go_on: str, then: Sequence[str] = ()) -> None:
        """Write the block, which does `then` and goes on at the label `go_on`."""
        f, scope = self.scope.f, self.scope
        scope.polled = True
        # What it changes of the context is its own, but for the status, which is read as an atomic after regions.
        effects = "cold nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)"
        function = f.module.declare(f"{CONVENTION}void", self.function, "ptr", effects)
        leave, name = f.label("interrupted"), f.fresh("poll")
        lines: list[str] = []
        if not self.adapts:
            self.begin(lines.append)
        lines += [
            f"call {CONVENTION}void {function}(ptr {self.state})",
            f"{name}.left = load i64, ptr {self.state}",
            f"{name}.ends = icmp eq i64 {name}.left, 0",
            *then,
            f"br i1 {name}.ends, label %{leave}, label %{go_on}",
        ]
        f.cold(self.due, lines)
        f.cold(leave, scope.leave(str(INTERRUPTED)).split("\n  "))


_UNLIKELY = '!{!"branch_weights", i32 1, i32 1048575}'


def polls(scope: Scope, loop: Loop) -> bool:
    """Does a loop poll?"""
    length, around = _first_length(loop), scope.loops
    if not scope.unit.polls or not _is_longer(loop, length):
        return False
    if scope.unit.looks and has_looks(loop.body):
        return False
    match loop:
        case ir.While():
            return not around or length <= _FIRST or not _is_stepped(loop)
        case ir.For(kind="vector" | "lanes"):
            return False
        case _ if not around:
            return length <= _HEAVY or not _goes_over_elements(scope, loop)
        case _ if length <= _FIRST and len(around) == 1:
            return _repeats(scope.unit.function, around[0]) or (
                _is_over_parts(scope, around[0]) and not _goes_over_elements(scope, loop)
            )
        case _:
            return length > _FIRST and _goes_up_to_an_argument(scope.unit.function, loop, around)


def _repeats(function: ir.Function, loop: Loop) -> bool:
    """Does a loop do something again and again, rather than go over an axis of arrays?"""
    if isinstance(loop, ir.While) or isinstance(loop.stop, Const):
        return True
    return _goes_up_to_an_argument(function, loop, _inside(loop))


def _is_over_parts(scope: Scope, loop: Loop) -> bool:
    """Is a loop over tiles, or over the tasks of a region?"""
    return isinstance(loop, ir.For) and (loop.kind == "independent" or _goes_over_elements(scope, loop))


def _goes_up_to_an_argument(function: ir.Function, loop: ir.For, others: Iterable[ir.Statement]) -> bool:
    """Is an argument the bound of a loop, and not that of others?"""
    same = (isinstance(one, ir.For) and one.stop == loop.stop for one in others)
    return loop.stop in function.params and not any(same)


def _goes_over_elements(scope: Scope, loop: ir.For) -> bool:
    """Is the bound of a loop the extent of an array, or the end of a part of a region?"""
    if scope.unit.extents is None:
        statements = ir.walk(scope.unit.function.body)
        extents = (one.out for one in statements if isinstance(one, ir.Let) and isinstance(one.rhs, Dim))
        scope.unit.extents = frozenset(extents)
    return loop.stop in scope.unit.extents or scope.scalar(loop.stop) == "%hi"


def has_long_loops(loop: Loop) -> bool:
    """Whether a loop has others inside that may be long."""
    return _first_length(loop) <= _FIRST


def _is_stepped(loop: ir.While) -> bool:
    """Does a loop add constants to what its condition reads?"""
    compared = {one.rhs.cell for one in ir.walk(loop.head) if isinstance(one, ir.Let) and isinstance(one.rhs, ir.Read)}
    body = list(ir.walk(loop.body))
    bound = {one.out: one.rhs for one in body if isinstance(one, ir.Let)}

    def steps(write: ir.Write) -> bool:
        match bound.get(write.value) if isinstance(write.value, Var) else None:
            case Prim("add" | "sub" | "add_checked" | "sub_checked", (Var() as before, Const())):
                return bound.get(before) == ir.Read(write.cell)
        return False

    writes = [one for one in body if isinstance(one, ir.Write) and one.cell in compared]
    return any(all(steps(one) for one in writes if one.cell == cell) for cell in {one.cell for one in writes})


def _first_length(loop: Loop, arguments: Sequence[Var] = ()) -> int:
    """How many iterations there are until the first poll; loops inside that go up to arguments may be very long."""
    inside = list(_inside(loop))
    long = [one for one in inside if isinstance(one, Loop) and _is_longer(one, _SHORT)]
    if long:
        unknown = any(isinstance(one, ir.While) or one.stop in arguments or has_long_loops(one) for one in long)
        return _NEST if unknown else _FIRST
    return _HEAVY if any(isinstance(one, _CALLS) for one in inside) else _LIGHT


def _is_longer(loop: Loop, iterations: int) -> bool:
    """May a loop have more iterations?"""
    match loop:
        case ir.For(kind="few") | ir.While(few=True):
            return False
        case ir.For(start=Const(value=start), stop=Const(value=stop)):
            return abs(int(stop.real) - int(start.real)) > iterations
    return True


def _inside(loop: Loop) -> Iterator[ir.Statement]:
    yield from ir.walk(loop.body)
    if isinstance(loop, ir.While):
        yield from ir.walk(loop.head)
