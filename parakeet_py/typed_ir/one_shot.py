"""Iterators are used up by the first that iterates over them.

The compiler's `zip`, `map` and generator expressions are descriptions of their items, which could be gone through any
number of times; Python's could not. So one that might be used twice (read by two statements, by one in a loop, or by a
nested function, which may be called twice) is not compiled. The same counts tell that a list has one reader only, which
may then take the list's memory over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parakeet_py.frontend import ssa
from parakeet_py.frontend.operands import operands
from parakeet_py.typed_ir.values import ComprehensionV, IteratorV, ListV, Static, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer

ITERATORS = frozenset({zip, map, filter, enumerate, reversed, iter})
"""The builtins whose results are used up."""

OFTEN = 2

def readers(s: Specializer, function: ssa.Function, var: ssa.Var) -> int:
    """How many statements of a function read a variable; at least `OFTEN` if one of them may do so repeatedly."""
    known = s.readers.get(id(function))
    if known is None:
        known = s.readers[id(function)] = (function, _count(function))
    return known[1].get(var, 0)


def _count(function: ssa.Function) -> dict[ssa.Var, int]:
    found: dict[ssa.Var, int] = {}
    depth: dict[ssa.Var, int] = {}

    def read(operand: ssa.Operand | None, loops: int, times: int = 1) -> None:
        if isinstance(operand, ssa.Var):
            found[operand] = found.get(operand, 0) + (times if depth.get(operand, 0) == loops else OFTEN)

    def block(body: ssa.Block, loops: int) -> None:
        for let in body.statements:
            depth.update(dict.fromkeys(let.outs, loops))
            times = OFTEN if isinstance(let.op, ssa.MakeClosure) else 1
            for operand in operands(let.op):
                read(operand, loops, times)
            match let.op:
                case ssa.If(_, then, orelse):
                    block(then, loops)
                    block(orelse, loops)
                case ssa.Assert(_, ssa.Block() as message):
                    block(message, loops)
                case ssa.For(_, item, params, _, inner, _):
                    depth.update(dict.fromkeys([item, *params], loops + 1))
                    block(inner, loops + 1)
                case ssa.While(_, params, condition, inner, _):
                    depth.update(dict.fromkeys(params, loops + 1))
                    block(condition, loops + 1)
                    block(inner, loops + 1)
        for result in body.results:
            read(result, loops)

    block(function.body, 0)
    return found


def check_statement(s: Specializer, let: ssa.Let, value: Value) -> None:
    """Refuse an iterator that a statement of the user's has made, if it may be used more than once."""
    frame = s.frames[-1]
    if frame.namespace.trusted or len(let.outs) != 1:
        return
    made = isinstance(value, ComprehensionV) and value.kind == "generator"
    if not made and isinstance(let.op, ssa.Call):
        function = s.value(let.op.function)
        made = isinstance(function, Static) and any(function.object is one for one in ITERATORS)
    if made and readers(s, frame.function, let.outs[0]) > 1:
        raise s.unsupported("an iterator that is used more than once")


def check_parameter(s: Specializer, function: ssa.Function, var: ssa.Var, value: Value) -> None:
    """Refuse an iterator as an argument of a user's function that may use it more than once."""
    one_shot = isinstance(value, IteratorV) or (isinstance(value, ComprehensionV) and value.kind == "generator")
    if one_shot and readers(s, function, var) > 1:
        raise s.unsupported("an iterator that is used more than once")


def with_readers(s: Specializer, let: ssa.Let, value: Value) -> Value:
    """A new list, which may know now that nobody else reads it."""
    if isinstance(value, ListV) and len(let.outs) == 1 and readers(s, s.frames[-1].function, let.outs[0]) == 1:
        return ListV(value.array, value.items, True)
    return value
