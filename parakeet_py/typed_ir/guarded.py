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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import WrapperDescriptorType
from typing import TYPE_CHECKING, Any

from parakeet_py.errors import exception_named
from parakeet_py.frontend import ssa
from parakeet_py.record import record
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.types import PYBOOL
from parakeet_py.typed_ir.values import NeverV, ScalarV, Static, TupleV, Value, py

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer

Classes = tuple[tuple[type[BaseException], ...], ...]  # what each handler catches


@record(eq=False)
class _Opened:
    """A block opened after a check: what it is for, and what is given if the check fails."""

    scope: Any
    condition: ir.Operand
    exit: ir.Operand
    facts: dict[Any, Any]


class Guard:
    """A guarded statement, or one side of a branch in it."""

    def __init__(self, s: Specializer, classes: Classes) -> None:
        self.classes = classes
        self.base = s.builder.scopes[-1]
        self.opened: list[_Opened] = []

    def is_open(self, s: Specializer) -> bool:
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

    def may_make(self, s: Specializer, kind: type[BaseException]) -> int:
        """The same, for one that the function makes itself: it is not made at all, if nobody can notice."""
        caught = self.catches(kind)
        if caught and not isinstance(kind.__init__, WrapperDescriptorType):
            raise s.unsupported(f"{kind.__name__}, which has an __init__ of its own, caught")
        return caught

    def leave_unless(self, s: Specializer, condition: ir.Operand, exit: ir.Operand) -> None:
        """Go on in a block of its own, where the condition holds."""
        if not self.is_open(s):
            hint = "catch it inside the loop, or test for the condition beforehand"
            raise s.unsupported("an exception caught that comes out of a loop or an array operator", hint)
        self.opened.append(_Opened(s.builder.open_block(), condition, exit, dict(s.builder.equal)))

    def stay_if_zero(self, s: Specializer, exit: ir.Operand) -> None:
        """Leave the statement with the exit computed, unless it is 0."""
        self.leave_unless(s, s.builder.prim("eq", exit, ir.ZERO, type=PYBOOL), exit)

    def around_python(self, s: Specializer) -> Classes:
        """What is caught around an operation that Python does."""
        if not self.is_open(s):
            raise s.unsupported("Python called in a loop of a function inside `try`")
        return self.classes

    def close(self, s: Specializer, values: list[Value]) -> list[Value]:
        """Whether the statement was left, and its values."""
        from parakeet_py.typed_ir.control import Side, joined

        b = s.builder
        self.is_open(s)
        found: list[Value] = [py(0), *s.settle(values)]
        for one in reversed(self.opened):
            holds = Side(one.scope.statements, found, dict(b.equal), one.scope)
            del b.scopes[next(at for at, scope in enumerate(b.scopes) if scope is one.scope) :]
            b.equal = one.facts
            left: list[Value] = [ScalarV(one.exit), *(NeverV() for _ in values)]
            if isinstance(one.condition, ir.Const):
                found = left
                continue
            with b.block() as statements:
                fails = Side(statements, left, dict(b.equal), b.scopes[-1])
            found = joined(s, one.condition, holds, fails)
        return found


def guarded(s: Specializer, op: ssa.Guarded) -> list[Value]:
    """Execute a guarded statement."""
    if s.guards:
        raise s.unsupported("a function that catches exceptions, called where exceptions are caught")
    classes = tuple(_classes(s, s.value(operand)) for operand in op.classes)
    with _guard(s, classes) as guard:
        exit, *values = guard.close(s, s.run(op.body))
    ends = not values or any(not isinstance(value, NeverV) for value in values)  # does any path come to its end?
    if not ends and isinstance(exit, ScalarV) and isinstance(exit.operand, ir.Var):
        s.builder.nonzero.add(exit.operand)
    return [exit, *values]


def side(s: Specializer, run: Callable[[], list[Value]]) -> list[Value]:
    """One side of a branch inside of a guarded statement: whether it was left, and its values."""
    with _guard(s, s.guards[-1].classes) as guard:
        return guard.close(s, run())


def after_branch(s: Specializer, values: list[Value]) -> list[Value]:
    """The values of a branch whose sides may have been left."""
    exit = values[0]
    assert isinstance(exit, ScalarV)
    if not (isinstance(exit.operand, ir.Const) and exit.operand.value == 0):
        s.guards[-1].stay_if_zero(s, exit.operand)
    return values[1:]


@contextmanager
def _guard(s: Specializer, classes: Classes) -> Iterator[Guard]:
    guard = Guard(s, classes)
    s.guards.append(guard)
    try:
        yield guard
    finally:
        s.guards.pop()


def _classes(s: Specializer, value: Value) -> tuple[type[BaseException], ...]:
    """The classes that a handler catches."""
    match value:
        case TupleV(items, "tuple"):
            return tuple(kind for item in items for kind in _classes(s, item))
        case Static(type() as kind) if issubclass(kind, BaseException):
            return (kind,)
    raise s.unsupported("the class of an exception that is not known when this is compiled")
