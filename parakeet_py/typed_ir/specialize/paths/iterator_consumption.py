"""Iterators are used up by the first that iterates over them.

The compiler's `zip`, `map` and generator expressions are descriptions of their items, which could be gone through any
number of times; Python's could not. So one that might be used twice (read by two statements, by one in a loop, or by a
nested function, which may be called twice) is not compiled, nor is what holds it, as a tuple. A block that ends, as the
body of a `try` or a side of a branch, hands iterators on to variables behind it: those are other names of the same
iterator, and `uses` counts the readers of all. The counts of single names tell that a list has one reader only, which
may then take the list's memory over.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parakeet_py.base.callee_effects import builtin_functions
from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend import ssa
from parakeet_py.typed_ir.specialize.forms import form_of
from parakeet_py.typed_ir.specialize.values import (
    ClosureV,
    ComprehensionV,
    DictV,
    GeneratorV,
    InstanceV,
    IteratorV,
    MethodV,
    ObjectV,
    Static,
    TupleV,
    Value,
    VariantV,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

ITERATORS = builtin_functions(lazy=True)
"""The builtins whose results are used up."""

OFTEN = 2


@record
class Readers:
    """How many statements read each variable of a function, which ones list comprehensions have made, which ones
    are read by something that takes no formatted strings, and what reads one right after it is made.

    `counts` has results of blocks as readers; `direct` has not: there `flows` says which variables these go on as.
    """

    counts: dict[ssa.Var, int]
    direct: dict[ssa.Var, int]
    flows: dict[ssa.Var, set[ssa.Var]]
    lists: frozenset[ssa.Var]
    elsewhere: frozenset[ssa.Var]
    following: dict[ssa.Var, ssa.Op]


def readers(s: Context, function: ssa.Function, var: ssa.Var) -> int:
    """How many statements of a function read a variable; at least `OFTEN` if one of them may do so repeatedly."""
    return _readers_of(s, function).counts.get(var, 0)


def uses(s: Context, function: ssa.Function, var: ssa.Var) -> int:
    """How many statements read a variable under any name that it has in turn; at least `OFTEN` if one may do so
    repeatedly."""
    known = _readers_of(s, function)
    names: dict[ssa.Var, bool] = {}  # and whether the search below it is over
    carried = False

    def follow(name: ssa.Var) -> None:
        nonlocal carried
        names[name] = False
        for other in known.flows.get(name, ()):
            if other not in names:
                follow(other)
            elif not names[other]:
                carried = True  # from turn to turn of a loop
        names[name] = True

    follow(var)
    total = sum(known.direct.get(name, 0) for name in names)
    return OFTEN * total if carried else total


def is_passed_on(s: Context, var: ssa.Var) -> bool:
    """Is a variable of the present function only read by what takes formatted strings (calls, `raise`, `assert`, +)?"""
    return var not in _readers_of(s, s.frame.function).elsewhere


def is_used_at_once(s: Context, var: ssa.Var) -> bool:
    """Is a string that is not formatted yet used up before anything that it shows can change?

    Another string takes it in, it is raised, or a function in C or a method gets it. (Functions in Python may change
    what it shows before they use it.)
    """
    known = _readers_of(s, s.frame.function)
    reader = known.following.get(var)
    if reader is None or var in known.elsewhere or known.counts.get(var, 0) > 1:
        return False
    if not isinstance(reader, ssa.Call):
        return True
    function = s.value(reader.function)
    if isinstance(function, Static):
        return not isinstance(function.object, types.FunctionType)
    return isinstance(function, MethodV | ObjectV)


def _readers_of(s: Context, function: ssa.Function) -> Readers:
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
    direct: dict[ssa.Var, int] = {}
    flows: dict[ssa.Var, set[ssa.Var]] = {}

    def read(operand: ssa.Operand | None, loops: int, times: int = 1, *, result: bool = False) -> None:
        if isinstance(operand, ssa.Var):
            times = times if depth.get(operand, 0) == loops else OFTEN
            found[operand] = found.get(operand, 0) + times
            if not result:
                direct[operand] = direct.get(operand, 0) + times

    def flow(came: Sequence[ssa.Operand], gone: Sequence[ssa.Var]) -> None:
        for one, other in zip(came, gone, strict=True):
            if isinstance(one, ssa.Var):
                flows.setdefault(one, set()).add(other)

    def block(body: ssa.Block, loops: int, told: bool = False) -> None:
        if not told:
            elsewhere.update([result for result in body.results if isinstance(result, ssa.Var)])
        _follow(body, told, following)
        for let in body.statements:
            depth.update((out, loops) for out in let.outs)
            times = OFTEN if isinstance(let.op, ssa.MakeClosure) else 1
            carried = let.op.inits if isinstance(let.op, ssa.For | ssa.While) else ()
            for operand in ssa.operands_of(let.op):
                read(operand, loops, times, result=operand in carried)
                if isinstance(operand, ssa.Var) and not _is_for_strings(let.op):
                    elsewhere.add(operand)
            match let.op:
                case ssa.Comprehension("list"):
                    lists.update(let.outs)
                case ssa.If(_, then, orelse):
                    block(then, loops)
                    block(orelse, loops)
                    flow(then.results, let.outs)
                    flow(orelse.results, let.outs)
                case ssa.Assert(_, ssa.Block() as message):
                    block(message, loops, True)
                case ssa.Guarded(inner):
                    block(inner, loops)
                    flow(inner.results, let.outs[1 + let.op.keeps :])
                case ssa.For(_, item, params, _, inner, _):
                    depth.update((param, loops + 1) for param in (item, *params))
                    block(inner, loops + 1)
                    loop(let.op, let.outs)
                case ssa.While(params, _, condition, inner, _):
                    depth.update((param, loops + 1) for param in params)
                    block(condition, loops + 1)
                    block(inner, loops + 1)
                    loop(let.op, let.outs)
        for result in body.results:
            read(result, loops, result=True)

    def loop(op: ssa.For | ssa.While, outs: Sequence[ssa.Var]) -> None:
        again, after = op.body.results[op.stoppable :], outs[op.stoppable :]
        flow(op.inits, op.params)
        flow(again, op.params)
        flow(op.params, after)

    block(function.body, 0)
    for result in function.body.results:
        if isinstance(result, ssa.Var):
            direct[result] = direct.get(result, 0) + 1
    return Readers(found, direct, flows, frozenset(lists), frozenset(elsewhere), following)


def _follow(body: ssa.Block, told: bool, following: dict[ssa.Var, ssa.Op]) -> None:
    """Note what reads variables of a block before anything but strings is made; `told`: its result is a message."""
    waiting: set[ssa.Var] = set()
    for let in body.statements:
        read = waiting.intersection(one for one in ssa.operands_of(let.op) if isinstance(one, ssa.Var))
        following.update((var, let.op) for var in read)
        if not isinstance(let.op, ssa.BuildString):
            waiting.clear()
        waiting.difference_update(read)
        waiting.update(let.outs)
    if told:
        following.update((var, ssa.Raise(var)) for var in waiting.intersection(body.results))


def _is_for_strings(op: ssa.Op) -> bool:
    return isinstance(op, ssa.Call | ssa.Raise | ssa.BuildString) or (isinstance(op, ssa.Binary) and op.op == "add")


def check_statement(s: Context, let: ssa.Let, values: Sequence[Value]) -> None:
    """Refuse an iterator that a statement of the user's has made, if it may be used more than once."""
    frame = s.frame
    if frame.namespace.trusted:
        return
    made = [holds_iterator(value) for value in values]
    if not any(made) and isinstance(let.op, ssa.Call):
        function = s.value(let.op.function)
        made = [isinstance(function, Static) and any(function.object is one for one in ITERATORS)]
    for var, is_one in zip(let.outs, made, strict=True):
        if is_one and uses(s, frame.function, var) > 1:
            raise s.unsupported(_TWICE)


def check_parameters(s: Context, function: ssa.Function, env: dict[ssa.Var, Value]) -> None:
    """The same for the arguments of a user's function, which are in `env`; a list has this function as a reader too."""
    for param in function.params:
        value = env[param.var]
        env[param.var] = form_of(value).read(value, False)
        if holds_iterator(value) and uses(s, function, param.var) > 1:
            raise s.unsupported(_TWICE)
        if is_computed(value) and any(isinstance(let.op, ssa.Guarded) for let in function.statements()):
            raise s.unsupported("an iterator given to a function with a `try`, as its steps may raise")


_TWICE = "an iterator that is used more than once"


def is_iterator(value: Value) -> bool:
    return isinstance(value, IteratorV | GeneratorV) or (
        isinstance(value, ComprehensionV) and value.kind == "generator"
    )


def is_computed(value: Value) -> bool:
    """Is each item computed, and may that raise, when it is asked for?"""
    if isinstance(value, IteratorV):
        return any(map(is_computed, value.items))
    return is_iterator(value)


def holds_iterator(value: Value) -> bool:
    """Is a value an iterator, or does it hold one?"""
    match value:
        case TupleV(items=items) | InstanceV(items=items) | VariantV(options=items):
            return any(map(holds_iterator, items))
        case DictV(items=entries):
            return any(holds_iterator(item) for _, item in entries)
        case MethodV(obj):
            return holds_iterator(obj)
        case ClosureV(captures=captures, defaults=defaults):
            return any(map(holds_iterator, captures)) or any(map(holds_iterator, defaults))
    return is_iterator(value)


def arguments(s: Context, items: Sequence[ssa.Item], values: list[Value]) -> list[Value]:
    """The arguments of a call; a list that only this call reads is marked so: its array may be taken over."""
    function = s.frame.function
    if any(isinstance(item, ssa.Star) for item in items):
        return values
    return [
        form_of(value).read(value, True)
        if form_of(value).array is not None and isinstance(item, ssa.Var) and _is_own_list(s, function, item)
        else value
        for item, value in zip(items, values, strict=True)
    ]


def _is_own_list(s: Context, function: ssa.Function, var: ssa.Var) -> bool:
    return readers(s, function, var) == 1 and var in s.readers[id(function)][1].lists


def is_lazy(value: Value) -> bool:
    """Do items come from a generator?"""
    match value:
        case GeneratorV():
            return True
        case ComprehensionV(_, iterable):
            return is_lazy(iterable)
        case IteratorV(_, items):
            return any(map(is_lazy, items))
    return False
