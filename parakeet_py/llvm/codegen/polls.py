"""Polls in generated loops: where they look up for signals (see `runtime.loop_polls`).

What polls costs a few cycles per iteration, so few loops do. Outermost loops (of the function, or of a parallel region)
by 1 that have no open loops inside are cut into stretches: a loop over stretches with polls between them, and inside it
the loop itself, which LLVM sees as if it did not poll. Outermost loops that have open loops in each iteration, nests of
three inside others, `while` loops, and outermost loops in other steps that may leave early (which LLVM does not
vectorize) count their iterations down to the next poll. Other loops do not poll: those over arrays, innermost loops
inside others, and loops that have others inside only behind conditions, whose iterations are often short.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.runtime.call_context import INTERRUPTED
from parakeet_py.llvm.runtime.loop_polls import LEAST, LEAST_ALONE, LEAST_INSIDE
from parakeet_py.typed_ir.ir import Const, Operand

STRETCH = 1 << 20  # iterations of a loop in order between polls
_SHORT = 64  # iterations of a loop that is no reason to poll around it


class Stretch:
    """A loop by 1 that is cut into stretches, between which it polls. It is begun over its first stretch with `over`;
    a Break leaves all of them, for the block `end`."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.end = scope.f.label("end")

    @contextmanager
    def over(self, start: str, stop: str) -> Iterator[tuple[str, str]]:
        """Around the loop over one stretch, given its bounds."""
        f, scope = self.scope.f, self.scope
        name, stretch, due = f.fresh("stretch"), f.label("stretch"), f.label("poll")
        state = new_state(scope)
        before = f.block
        f.branch(stretch)
        f.begin(stretch)
        first = f.reserve()
        if (least := f.bound(start)) is not None:
            f.bounds[f"{name}.first"] = least
        with f.inner():
            far = f.intrinsic("sadd.sat", "i64", f"{name}.first", str(STRETCH))
            last = f.intrinsic("smin", "i64", far, stop)
            yield f"{name}.first", last
            more = f.binary("icmp slt", "i64", last, stop)
            f.branch_if(more, due, self.end, unlikely(scope))
        poll(scope, due, stretch, state, f"{name}.told")
        f.fill(first, f"{name}.first = phi i64 [ {start}, %{before} ], [ {last}, %{due} ]")
        f.begin(self.end)


class Countdown:
    """The iterations of a loop until it polls: created before the loop's first block is begun, ended at its latch."""

    def __init__(self, scope: Scope, alone: bool) -> None:
        self.scope = scope
        self.name = scope.f.fresh("poll")
        self.state = new_state(scope, LEAST_ALONE if alone else LEAST_INSIDE if scope.exits else LEAST)
        self.first = f"{self.name}.first"
        scope.f.effect(f"{self.name}.at = getelementptr inbounds i8, ptr {self.state}, i64 8")
        scope.f.effect(f"{self.first} = load i64, ptr {self.name}.at, align 8")
        self.before = scope.f.block
        self.left = 0

    def begin(self) -> None:
        """At the top of the loop's first block, among its phis."""
        self.left = self.scope.f.reserve()

    def latch(self) -> None:
        """Before the jump back: poll if it is time."""
        f, name = self.scope.f, self.name
        f.effect(f"{name}.less = sub i64 {name}.left, 1")
        due, go_on = f.label("poll"), f.label("polled")
        before = f.block
        f.branch_if(f.binary("icmp eq", "i64", f"{name}.less", "0"), due, go_on, unlikely(self.scope))
        poll(self.scope, due, go_on, self.state, f"{name}.told")
        f.begin(go_on)
        f.effect(f"{name}.left.next = phi i64 [ {name}.less, %{before} ], [ {name}.told, %{due} ]")
        f.fill(self.left, f"{name}.left = phi i64 [ {self.first}, %{self.before} ], [ {name}.left.next, %{go_on} ]")


def new_state(scope: Scope, period: int = 1) -> str:
    """The two words that a loop keeps for its polls, as long as the function runs."""
    state = scope.f.entry_value("alloca [2 x i64], align 8")
    scope.f.entry_effect(f"store [2 x i64] [i64 0, i64 {period}], ptr {state}")
    return state


def unlikely(scope: Scope) -> str:
    """That a branch seldom takes its first way."""
    node = scope.f.module.shared_node('!{!"branch_weights", i32 1, i32 1048575}')
    return f", !prof {node}"


def poll(scope: Scope, label: str, go_on: str, state: str, told: str) -> None:
    """Add the block `label`, which polls and goes on or leaves."""
    f = scope.f
    # The words of the context that it changes are its own, but for the status, which is read as an atomic after regions.
    effects = "cold nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)"
    function = f.module.declare("i64", "pk_poll", "i64, ptr nocapture", effects)
    leave = f.label("interrupted")
    f.cold(
        label,
        [
            f"{told}.context = ptrtoint ptr %ctx to i64",
            f"{told} = call i64 {function}(i64 {told}.context, ptr {state})",
            f"{told}.ends = icmp eq i64 {told}, 0",
            f"br i1 {told}.ends, label %{leave}, label %{go_on}",
        ],
    )
    f.cold(leave, scope.leave(str(INTERRUPTED)).split("\n  "))


def leave_at_once(scope: Scope) -> None:
    """At the beginning of a region: do nothing if the call has been interrupted."""
    f = scope.f
    f.effect("%interrupted.status = load atomic i64, ptr %ctx monotonic, align 8")
    over = f.value(f"icmp eq i64 %interrupted.status, {INTERRUPTED}")
    scope.leave_if(over, scope.leave(str(INTERRUPTED)).split("\n  "))


def stretch(scope: Scope, loop: ir.For) -> Stretch | None:
    """The stretches that a loop is cut into, if it is."""
    if not scope.unit.polls or not _is_one(loop.step) or not is_open(loop) or not is_alone(loop):
        return None
    inside = scope.exits and not any(isinstance(one, ir.For) for one in ir.walk(loop.body))
    return None if inside or loop.kind != "serial" else Stretch(scope)


def counts_down(scope: Scope, loop: ir.For | ir.While) -> bool:
    """Does a loop that is not cut into stretches count down to polls?"""
    if not scope.unit.polls or not _may_be_long(loop):
        return False
    if not is_alone(loop):
        own = (*loop.body.statements, *(loop.head.statements if isinstance(loop, ir.While) else ()))
        direct = isinstance(loop, ir.While) or any(_may_be_long(one) for one in own)
        return direct and (not scope.polled or any(_is_nest(one) for one in ir.walk(loop.body)))
    if scope.exits:
        return False
    leaves = any(isinstance(one, ir.Break | ir.Check) for one in ir.walk(loop.body))
    return isinstance(loop, ir.While) or (loop.kind == "serial" and leaves)


def _is_one(step: Operand) -> bool:
    return isinstance(step, Const) and step.value == 1


def _is_nest(statement: ir.Statement) -> bool:
    return isinstance(statement, ir.For | ir.While) and _may_be_long(statement) and not is_alone(statement)


def is_alone(loop: ir.For | ir.While) -> bool:
    """Are there no open loops in a loop?"""
    inside = (*ir.walk(loop.body), *(ir.walk(loop.head) if isinstance(loop, ir.While) else ()))
    return not any(_may_be_long(one) for one in inside)


def _may_be_long(statement: ir.Statement) -> bool:
    return isinstance(statement, ir.While) or (isinstance(statement, ir.For) and is_open(statement))


def region_polls(body: ir.Block) -> bool:
    """May a region be left because of a signal?"""
    return any(isinstance(one, ir.For | ir.While) for one in ir.walk(body))


def is_open(loop: ir.For) -> bool:
    """May this be more than some iterations?"""
    if isinstance(loop.start, Const) and isinstance(loop.stop, Const):
        return abs(int(loop.stop.value) - int(loop.start.value)) > _SHORT  # type: ignore[arg-type]
    return True
