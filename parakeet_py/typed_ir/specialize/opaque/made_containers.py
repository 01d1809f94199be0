"""Lists and dicts that a function makes, gives to code that is not compiled, and uses again.

That code may keep what it is given and change it later, by a method of its own say. So what it is given has to be the
very object that the function goes on with: the container is put together for Python where it is made, and is an object
from there on. What is not used again is put together where Python is given it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from parakeet_py.frontend import ssa
from parakeet_py.frontend.evaluate.resumed_code import live_at
from parakeet_py.signature.specs import ObjectSpec
from parakeet_py.typed_ir.specialize.forms import is_container, is_list, parts_of, roots_of
from parakeet_py.typed_ir.specialize.opaque.watched_lists import is_part_of_argument
from parakeet_py.typed_ir.specialize.restarts import ContainerOfPython
from parakeet_py.typed_ir.specialize.shared_containers import containers_in, depth
from parakeet_py.typed_ir.specialize.state import Made
from parakeet_py.typed_ir.specialize.values import DictV, ObjectV, TupleV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_WHAT = "a list or dict that Python code is given and may change later"


def made(s: Context, let: ssa.Let, values: list[Value]) -> list[Value]:
    """What a statement has made: a list or dict that Python code is given further on as an object."""
    if s.frame.namespace.trusted:
        return values
    for number, value in enumerate(values):
        if not is_container(value) or id(value) in s.python.made:
            continue
        fact = ContainerOfPython((*s.frame.path, s.frame.function.filename, let.pos, type(let.op).__name__, number))
        if fact in s.facts.known:
            values = [*values[:number], _as_object(s, value), *values[number + 1 :]]
        else:
            s.python.made[id(value)] = Made(value, fact, depth(s))
    return values


def give(s: Context, given: Sequence[Value]) -> None:
    """Python code is given some values, which it may keep: lists and dicts that are used again are objects."""
    found = [one for value in given for one in containers_in(value)]
    if not found:
        return
    used = [other for value in _used_again(s) for other in containers_in(value)]
    for one in found:
        same = [other for other in used if _may_be_one(s, one, other)]
        if not same:
            continue
        fact = next((s.python.made[id(each)].fact for each in (one, *same) if id(each) in s.python.made), None)
        if fact is not None and fact not in s.facts.known:
            s.facts.note(fact)
            _go_on(s, (one, *same))
        elif fact is not None or not _is_of_others(s, one):
            raise s.unsupported(_WHAT)


def is_used_again(s: Context, value: Value) -> bool:
    """Does the function use a value behind the statement, by itself or in a container?"""
    return any(value is part for used in _used_again(s) for part in _all_parts(used))


def _all_parts(value: Value) -> Iterator[Value]:
    yield value
    for part in parts_of(value):
        yield from _all_parts(part)


def _go_on(s: Context, same: Sequence[Value]) -> None:
    """Let variables that hold a container hold an object from here on, as in the next walk, so that this one may find
    more."""
    held = [(frame, var) for frame in s.frames for var, value in frame.env.items() if any(value is one for one in same)]
    if held:
        for frame, var in held:
            del frame.env[var]  # else it is found again
        made = _as_object(s, same[0])
        for frame, var in held:
            frame.env[var] = made


def _as_object(s: Context, value: Value) -> Value:
    made = s.boxed(value, _WHAT)
    assert isinstance(made, ObjectV)
    s.arguments.object_specs[made.var] = ObjectSpec(list if is_list(value) else dict)
    return ObjectV(made.var)


def _may_be_one(s: Context, one: Value, other: Value) -> bool:
    """May two values stand for one list or dict? Of lists in columns the rows are read anew each time, in the same
    memory, and what attributes hold is put together anew behind branches and loops."""
    if one is other:
        return True
    if not isinstance(one, TupleV | DictV):
        return bool(roots_of(one) & roots_of(other))
    if all(id(each) in s.python.made or _is_of_others(s, each) for each in (one, other)):
        return False
    match one, other:
        case TupleV(items), TupleV(others):
            return len(items) == len(others)
        case DictV(entries), DictV(others):
            return [key for key, _ in entries] == [key for key, _ in others]
    return False


def _is_of_others(s: Context, value: Value) -> bool:
    """Is this a list that is an argument, or that Python has given?"""
    return id(value) in s.python.lists or (is_list(value) and is_part_of_argument(s, value))


def _used_again(s: Context) -> list[Value]:
    """What variables hold that are used behind the statement, in the function and in those that have called it, and
    what attributes hold."""
    found = [
        frame.env[var] for frame in s.frames for var in live_at(frame.function, tuple(frame.way)) if var in frame.env
    ]
    return [*found, *s.builder.fields.values()]
