"""Iterators are used up by the first that iterates over them.

The compiler's `zip`, `map` and generator expressions are descriptions of their items, which could be gone through any
number of times; Python's could not. So one that might be used twice (read by two statements, by one in a loop, or by a
nested function, which may be called twice) is not compiled. The same counts tell that a list has one reader only, which
may then take the list's memory over.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parakeet_py.frontend import ssa
from parakeet_py.frontend.operands import operands
from parakeet_py.record import record
from parakeet_py.typed_ir.values import ComprehensionV, GeneratorV, IteratorV, ListV, MethodV, ObjectV, Static, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer

ITERATORS = frozenset({zip, map, filter, enumerate, reversed, iter})
"""The builtins whose results are used up."""

OFTEN = 2


@record
class Readers:
    """How many statements read each variable of a function, which ones list comprehensions have made, which ones
    are read by something that takes no formatted strings, and what reads one right after it is made."""

    counts: dict[ssa.Var, int]
    lists: frozenset[ssa.Var]
    elsewhere: frozenset[ssa.Var]
    following: dict[ssa.Var, ssa.Op]


def readers(s: Specializer, function: ssa.Function, var: ssa.Var) -> int:
    """How many statements of a function read a variable; at least `OFTEN` if one of them may do so repeatedly."""
    return _readers_of(s, function).counts.get(var, 0)


def is_passed_on(s: Specializer, var: ssa.Var) -> bool:
    """Is a variable of the present function only read by what takes formatted strings (calls, `raise`, `assert`, +)?"""
    return var not in _readers_of(s, s.frames[-1].function).elsewhere


def is_used_at_once(s: Specializer, var: ssa.Var) -> bool:
    """Is a string that is not formatted yet used up before anything that it shows can change?

    Another string takes it in, it is raised, or a function in C or a method gets it. (Functions in Python may change
    what it shows before they use it.)
    """
    known = _readers_of(s, s.frames[-1].function)
    reader = known.following.get(var)
    if reader is None or var in known.elsewhere or known.counts.get(var, 0) > 1:
        return False
    if not isinstance(reader, ssa.Call):
        return True
    function = s.value(reader.function)
    if isinstance(function, Static):
        return not isinstance(function.object, types.FunctionType)
    return isinstance(function, MethodV | ObjectV)


def _readers_of(s: Specializer, function: ssa.Function) -> Readers:
    known = s.readers.get(id(function))
    if known is None:
        known = s.readers[id(function)] = (function, _count(function))
    return known[1]


def _count(function: ssa.Function) -> Readers:
    found: dict[ssa.Var, int] = {}
    lists: set[ssa.Var] = set()
    depth: dict[ssa.Var, int] = {}
    elsewhere: set[ssa.Var] = set()
    following: dict[ssa.Var, ssa.Op] = {}

    def read(operand: ssa.Operand | None, loops: int, times: int = 1) -> None:
        if isinstance(operand, ssa.Var):
            found[operand] = found.get(operand, 0) + (times if depth.get(operand, 0) == loops else OFTEN)

    def block(body: ssa.Block, loops: int, told: bool = False) -> None:
        if not told:
            elsewhere.update([result for result in body.results if isinstance(result, ssa.Var)])
        _follow(body, told, following)
        for let in body.statements:
            depth.update((out, loops) for out in let.outs)
            times = OFTEN if isinstance(let.op, ssa.MakeClosure) else 1
            for operand in operands(let.op):
                read(operand, loops, times)
                if isinstance(operand, ssa.Var) and not _is_for_strings(let.op):
                    elsewhere.add(operand)
            match let.op:
                case ssa.Comprehension("list"):
                    lists.update(let.outs)
                case ssa.If(_, then, orelse):
                    block(then, loops)
                    block(orelse, loops)
                case ssa.Assert(_, ssa.Block() as message):
                    block(message, loops, True)
                case ssa.Guarded(inner):
                    block(inner, loops)
                case ssa.For(_, item, params, _, inner, _):
                    depth.update((param, loops + 1) for param in (item, *params))
                    block(inner, loops + 1)
                case ssa.While(params, _, condition, inner, _):
                    depth.update((param, loops + 1) for param in params)
                    block(condition, loops + 1)
                    block(inner, loops + 1)
        for result in body.results:
            read(result, loops)

    block(function.body, 0)
    return Readers(found, frozenset(lists), frozenset(elsewhere), following)


def _follow(body: ssa.Block, told: bool, following: dict[ssa.Var, ssa.Op]) -> None:
    """Note what reads variables of a block before anything but strings is made; `told`: its result is a message."""
    waiting: set[ssa.Var] = set()
    for let in body.statements:
        read = waiting.intersection(one for one in operands(let.op) if isinstance(one, ssa.Var))
        following.update((var, let.op) for var in read)
        if not isinstance(let.op, ssa.BuildString):
            waiting.clear()
        waiting.difference_update(read)
        waiting.update(let.outs)
    if told:
        following.update((var, ssa.Raise(var)) for var in waiting.intersection(body.results))


def _is_for_strings(op: ssa.Op) -> bool:
    return isinstance(op, ssa.Call | ssa.Raise | ssa.BuildString) or (isinstance(op, ssa.Binary) and op.op == "add")


def check_statement(s: Specializer, let: ssa.Let, value: Value | None) -> None:
    """Refuse an iterator that a statement of the user's has made, if it may be used more than once."""
    frame = s.frames[-1]
    if frame.namespace.trusted or len(let.outs) != 1:
        return
    made = value is not None and is_iterator(value)
    if not made and isinstance(let.op, ssa.Call):
        function = s.value(let.op.function)
        made = isinstance(function, Static) and any(function.object is one for one in ITERATORS)
    if made and readers(s, frame.function, let.outs[0]) > 1:
        raise s.unsupported("an iterator that is used more than once")


def check_parameters(s: Specializer, function: ssa.Function, env: dict[ssa.Var, Value]) -> None:
    """The same for the arguments of a user's function, which are in `env`; a list has this function as a reader too."""
    for param in function.params:
        value = env[param.var]
        if isinstance(value, ListV) and value.once:
            env[param.var] = ListV(value.array, value.items)
        if is_iterator(value) and readers(s, function, param.var) > 1:
            raise s.unsupported("an iterator that is used more than once")


def is_iterator(value: Value) -> bool:
    return isinstance(value, IteratorV | GeneratorV) or (
        isinstance(value, ComprehensionV) and value.kind == "generator"
    )


def arguments(s: Specializer, items: Sequence[ssa.Item], values: list[Value]) -> list[Value]:
    """The arguments of a call; a list that only this call reads is marked so: its array may be taken over."""
    function = s.frames[-1].function
    if any(isinstance(item, ssa.Star) for item in items):
        return values
    return [
        ListV(value.array, value.items, True)
        if isinstance(value, ListV) and isinstance(item, ssa.Var) and _is_own_list(s, function, item)
        else value
        for item, value in zip(items, values, strict=True)
    ]


def _is_own_list(s: Specializer, function: ssa.Function, var: ssa.Var) -> bool:
    return readers(s, function, var) == 1 and var in s.readers[id(function)][1].lists
