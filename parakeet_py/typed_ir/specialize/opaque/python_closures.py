"""Nested functions that are handed to Python: their code, as CPython has compiled it, over values compiled code holds.

`scipy.integrate.quad(lambda t: t * scale, 0, 1)` calls a function that only Python can call. It is made of the
code object that the function around it holds, of that one's globals, and of cells with the values that the compiled
function has captured. What the nested function would change itself (`nonlocal`, a list that it captured) would not be
seen by compiled code: such functions are refused.

Names that may be bound again after they have been captured (`ssa.Function.unsteady`) are looked at here for both: the
frontend refuses what it sees to use them too late (`check_called`), but it does not see where functions go that other
functions return, put into objects or get.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from parakeet_py.frontend import ssa
from parakeet_py.typed_ir.specialize.forms import parts_of
from parakeet_py.typed_ir.specialize.instances.assigned_attributes import Cell
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ClosureV,
    ComprehensionV,
    Frame,
    ObjectV,
    ScalarV,
    Static,
    TaggedScalar,
    TupleV,
    Value,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def is_python_only(value: Value) -> bool:
    """Is there a nested function in a value that only Python can make, for code that keeps it: one that has captured
    what may be bound again, or has annotations of local names?"""
    if isinstance(value, ClosureV):
        function = value.function
        if function.annotations is None or (function.unsteady and not value.free):
            return True
    return any(map(is_python_only, parts_of(value)))


def check_left(s: Context, value: Value, frame: Frame) -> None:
    """A function that is left may not hand out nested functions with names that may be bound again after that."""
    inside = frame.function.name == "element"
    if inside and isinstance(value, ComprehensionV):
        return  # it is used up before the next item comes, or the frontend has refused it
    for closure in _closures(value):
        names = frozenset(closure.function.unsteady if not closure.free else ())
        if names and not inside and any(closure.function is one for one in _made_in(frame.function)):
            names &= frozenset(var.name for var in frame.function.captures)  # its own names are bound no more
        if names:
            name = min(names)
            raise s.unsupported(f"a function that uses `{name}`, which may be bound again, is kept")


def _closures(value: Value) -> Iterator[ClosureV]:
    if isinstance(value, ClosureV):
        yield value
    for part in parts_of(value):
        yield from _closures(part)


def _made_in(function: ssa.Function) -> Iterator[ssa.Function]:
    """The functions that are made in a function and in those inside it."""
    for let in function.statements():
        if isinstance(let.op, ssa.MakeClosure):
            yield let.op.function
            yield from _made_in(let.op.function)


def stays(value: Value) -> bool:
    """Is a value the same for Python and for compiled code, whatever either does with it?"""
    match value:
        case ScalarV() | TaggedScalar() | ArrayV() | ObjectV():
            return True
        case Static(object):
            return not isinstance(object, Cell)
        case TupleV(items, "tuple"):
            return all(map(stays, items))
        case ClosureV(captures=captures, defaults=defaults):
            return all(map(stays, (*captures, *defaults)))
    return False


def code_of(value: ClosureV, captured: frozenset[str]) -> types.CodeType | None:
    """The code of a nested function, if it is found for sure."""
    function, owner = value.function, value.namespace.owner
    if not isinstance(owner, types.FunctionType) or any(param.kind != "positional" for param in function.params):
        return None
    names = tuple(param.name for param in function.params)
    found = [
        code
        for code in _inside(owner.__code__)
        if code.co_name == function.name
        and code.co_varnames[: code.co_argcount] == names
        and frozenset(code.co_freevars) - {function.name} == captured - {function.name}
        and not code.co_flags & _OTHER_PARAMETERS
        and not code.co_kwonlyargcount
        and _is_at(code, function)
    ]
    alike = {(code.co_code, code.co_consts, code.co_names) for code in found}
    return found[0] if len(alike) == 1 and not _rebinds(found[0], frozenset(found[0].co_freevars)) else None


_OTHER_PARAMETERS = 0x04 | 0x08  # *args, **options


def _inside(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _inside(constant)


def _is_at(code: types.CodeType, function: ssa.Function) -> bool:
    """Does code have instructions where a function has its first statement, or none, as a function has none?"""
    statements = [let for let in function.body.statements if not isinstance(let.op, ssa.Itself)]
    if not statements:
        return all(one.opname in _PLAIN or one.opname.startswith("LOAD_") for one in dis.get_instructions(code))
    pos = statements[0].pos
    return (pos.line, pos.end_line, pos.column, pos.end_column) in code.co_positions()


_PLAIN = ("RESUME", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_VALUE", "RETURN_CONST")


def _rebinds(code: types.CodeType, names: frozenset[str]) -> bool:
    """Does code, or a function in it, bind free variables anew?"""
    return any(
        one.opname in ("STORE_DEREF", "DELETE_DEREF") and one.argval in names for one in dis.get_instructions(code)
    ) or any(_rebinds(one, names & frozenset(one.co_freevars)) for one in _inside(code))
