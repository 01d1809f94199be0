"""Statements whose exceptions the function catches (`ssa.Guarded`), without jumps.

A check that fails inside a guarded statement must skip the rest of that statement, and nothing else. So what comes
after such a check is written into a block of its own, the side of an `If` on which the check holds; when the statement
is done these blocks are closed, the innermost first:

    check i < n                 ok = i < n
    e = load x[i]               exit, y = if ok:
    check y != 0                    e = load x[i]
    ...                             ...
                                    give 0, e
                                else:
                                    give 1, (nothing)

A branch inside the statement does the same for each of its sides and hands on whether it was left. Checks whose
exception no handler catches stay as they are. Where no block can be opened (in the body of a loop or of a parallel
operator inside the statement) the function is refused. Operations that Python does say themselves whether they raised.

What a handler calls may ask which exception is handled (`sys.exc_info`, `logging.exception`, `raise` alone). Compiled
code handles none: such a handler is `ByPython`'s, and where something raises what it catches, Python goes on with the
call from before the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import WrapperDescriptorType
from typing import TYPE_CHECKING, Any

from parakeet_py.base.errors import exception_named
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.frontend import ssa
from parakeet_py.frontend.desugar.managers import ByPython
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import record_arrays
from parakeet_py.typed_ir.specialize.opaque.frame_states import exit_block
from parakeet_py.typed_ir.specialize.paths.sides import Side, joined
from parakeet_py.typed_ir.specialize.restarts import HandlerOfPython
from parakeet_py.typed_ir.specialize.values import NeverV, ScalarV, Static, TupleV, UnboundV, Value, py

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context
    from parakeet_py.typed_ir.specialize.context import Guard as OuterGuard

Kinds = tuple[type[BaseException], ...]
Classes = tuple[Kinds, ...]  # what each handler catches


@record(eq=False)
class _Opened:
    """A block opened after a check: what it is for, and what is given if the check fails."""

    scope: Any
    condition: ir.Operand
    exit: ir.Operand
    error: Value
    facts: dict[Any, Any]


class Guard:
    """A guarded statement, or one side of a branch in it."""

    def __init__(self, s: Context, classes: Classes, keeps: bool) -> None:
        self.classes = classes
        self.keeps = keeps  # the exceptions, for handlers that look at them
        self.base = s.builder.scopes[-1]
        self.opened: list[_Opened] = []
        self.roots = s.memory.newest  # roots up to this one are older
        self.sources = list(s.builder.fields)

    def is_open(self, s: Context) -> bool:
        """Is the innermost block one of this statement?"""
        scopes = s.builder.scopes
        self.opened = [one for one in self.opened if any(one.scope is scope for scope in scopes)]  # some were undone
        return scopes[-1] is (self.opened[-1].scope if self.opened else self.base)

    def handler(self, exception: str) -> int:
        """The number of the handler for an exception; 0: none."""
        return self.catches(exception_named(exception))

    def catches(self, kind: type[BaseException]) -> int:
        """The same for its class."""
        for number, classes in enumerate(self.classes):
            if issubclass(kind, classes):
                return number + 1
        return 0

    def may_make(self, s: Context, kind: type[BaseException]) -> int:
        """The same, for one that the function makes itself: it is not made at all, if that cannot be noticed."""
        caught = self.catches(kind)
        if caught and not isinstance(kind.__init__, WrapperDescriptorType):
            raise s.unsupported(f"{kind.__name__}, which has an __init__ of its own, caught")
        return caught

    def leave_unless(self, s: Context, condition: ir.Operand, exit: ir.Operand, error: Value | None = None) -> None:
        """Go on in a block of its own, where the condition holds."""
        if self.keeps and error is None:
            raise s.unsupported("an exception caught and looked at that Python has raised")
        if not self.is_open(s):
            hint = "catch it inside the loop, or test for the condition beforehand"
            raise s.unsupported("an exception caught that comes out of a loop or an array operator", hint)
        facts = dict(s.builder.equal)
        self.opened.append(_Opened(s.builder.open_block(), condition, exit, error or UnboundV(), facts))

    def stay_if_zero(self, s: Context, exit: ir.Operand, error: Value | None = None) -> None:
        """Leave the statement with the exit computed, unless it is 0."""
        self.leave_unless(s, s.builder.prim("eq", exit, ir.ZERO, type=PYBOOL), exit, error)

    def is_by_python(self, handler: int) -> bool:
        """Does only Python run this handler?"""
        return ByPython in self.classes[handler - 1]

    def ends_in_python(self) -> bool:
        """Is the last handler, of all exceptions, one that only Python runs?"""
        return any(ByPython in one for one in self.classes)

    def goes_to_python(self, exits: bool) -> bool:
        """Does Python do the rest of the call where an operation of its own raises what is caught here? It has to where
        a handler is its own, and else may, if it `exits`, where handlers look at the exception."""
        return self.ends_in_python() or (self.keeps and exits)

    def leave_by_python(self, s: Context, condition: ir.Operand) -> None:
        """Let Python go on before the present statement, unless the condition holds."""
        exit = exit_block(s, None)
        if exit is None:
            raise s.unsupported("an exception inside `with`, or caught and looked at, where Python could not go on")
        s.builder.emit(ir.If(condition, ir.Block((), ()), exit))
        if isinstance(condition, ir.Const):  # nothing comes here
            s.builder.emit(ir.Check(condition, ir.Failure("SystemError", "Python has taken the call over")))

    def around_python(self, s: Context) -> Classes:
        """What is caught around an operation that Python does."""
        if not self.is_open(s):
            raise s.unsupported("Python called in a loop of a function inside `try`")
        return self.classes

    def close(self, s: Context, values: list[Value]) -> list[Value]:
        """Whether the statement was left, the exception if it is kept, and the values of the statement."""
        b = s.builder
        self.is_open(s)
        values = s.leaving(s.mergeable(values), self.roots)
        record_arrays.stay_inside(s, values, len(b.scopes) - len(self.opened))
        b.fields = {source: b.fields[source] for source in self.sources if source in b.fields}
        found: list[Value] = [py(0), *[UnboundV()] * self.keeps, *values]
        for one in reversed(self.opened):
            holds = Side(one.scope.statements, found, dict(b.equal), one.scope)
            b.close(one.scope)
            b.equal = one.facts
            left: list[Value] = [ScalarV(one.exit), *[one.error] * self.keeps, *(NeverV() for _ in values)]
            if isinstance(one.condition, ir.Const):
                found = left
                continue
            with b.block() as statements:
                fails = Side(statements, left, dict(b.equal), b.scopes[-1])
            found = joined(s, one.condition, holds, fails)
        return found


def specialize_guarded(s: Context, op: ssa.Guarded) -> list[Value]:
    """Execute a guarded statement."""
    own = tuple(_classes(s, s.value(operand)) for operand in op.classes)
    if op.handlers:
        own = tuple(_with_python(s, kinds, handler) for kinds, handler in zip(own, op.handlers, strict=True))
    around = s.guards[-1] if s.guards else None  # of a function that has called this one
    keeps = op.keeps or (around is not None and around.keeps)
    with _guard(s, own + (around.classes if around is not None else ()), keeps) as guard:
        exit, *made = guard.close(s, s.run(op.body))
    if around is not None:
        _hand_on(s, around, exit, len(own), made[0] if keeps else None)
    made = made[keeps and not op.keeps :]
    values = made[op.keeps :]
    ends = not values or any(not isinstance(value, NeverV) for value in values)  # does any path come to its end?
    if not ends and isinstance(exit, ScalarV) and isinstance(exit.operand, ir.Var):
        s.builder.nonzero.add(exit.operand)
    return [exit, *made]


def _hand_on(s: Context, around: OuterGuard, exit: Value, own: int, error: Value | None) -> None:
    """Leave the statement around, if that is what the exit says."""
    assert isinstance(exit, ScalarV)
    b = s.builder
    mine = b.prim("le", exit.operand, ir.Const(own, PYINT), type=PYBOOL)
    if not (isinstance(mine, ir.Const) and mine.value):
        around.leave_unless(s, mine, b.prim("sub", exit.operand, ir.Const(own, PYINT)), error)


def side(s: Context, run: Callable[[], list[Value]]) -> list[Value]:
    """One side of a branch inside of a guarded statement: whether it was left, why, and its values."""
    with _guard(s, s.guards[-1].classes, s.guards[-1].keeps) as guard:
        return guard.close(s, run())


def after_branch(s: Context, values: list[Value]) -> list[Value]:
    """The values of a branch whose sides may have been left."""
    exit, keeps = values[0], s.guards[-1].keeps
    assert isinstance(exit, ScalarV)
    if not (isinstance(exit.operand, ir.Const) and exit.operand.value == 0):
        s.guards[-1].stay_if_zero(s, exit.operand, values[1] if keeps else None)
    return values[1 + keeps :]


@contextmanager
def _guard(s: Context, classes: Classes, keeps: bool) -> Iterator[Guard]:
    guard = Guard(s, classes, keeps)
    s.guards.append(guard)
    try:
        yield guard
    finally:
        s.guards.pop()


def _with_python(s: Context, kinds: Kinds, handler: ssa.Handler) -> Kinds:
    """What a handler catches, and that only Python runs it, where that is so."""
    by_python = HandlerOfPython(s.frame.function.filename, handler) in s.facts.known
    return (*kinds, ByPython) if by_python else kinds


def handled_by_python(s: Context) -> bool:
    """Does something that is done here see which exception is handled? Then Python runs the outermost of the handlers,
    and nothing comes here."""
    inside = [frame for frame in s.frames if isinstance(frame.pos, ssa.InHandler)]
    if not inside:
        return False
    pos = inside[0].pos
    assert isinstance(pos, ssa.InHandler)
    fact = HandlerOfPython(inside[0].function.filename, pos.handlers[0])
    if fact not in s.facts.known:
        s.facts.restart(fact)
    s.check(ir.Const(False, PYBOOL), "SystemError", "Python has taken the call over")
    return True


def _classes(s: Context, value: Value) -> tuple[type[BaseException], ...]:
    """The classes that a handler catches."""
    match value:
        case TupleV(items, "tuple"):
            return tuple(kind for item in items for kind in _classes(s, item))
        case Static(type() as kind) if issubclass(kind, BaseException):
            return (kind,)
    raise s.unsupported("the class of an exception that is not known when this is compiled")
