"""Lists that arguments and variables hold and whose items the function knows, which Python code may change all the same
by another name of theirs (see `llvm.runtime.watched_lists`)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from parakeet_py.signature.facts import WholeList
from parakeet_py.signature.specs import ObjectSpec, TupleSpec, has_lists
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.forms import form_of, roots_of
from parakeet_py.typed_ir.specialize.restarts import ListOfPython
from parakeet_py.typed_ir.specialize.values import ClosureV, DictV, MethodV, ObjectV, TupleV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def holders(s: Context) -> list[tuple[ir.Operand, tuple[str, ...]]]:
    """What Python code must not change though it is not given it: lists that are arguments, or held by these, with
    the attributes that lead there. Those that variables hold are looked at by themselves."""
    found: list[tuple[ir.Operand, tuple[str, ...]]] = []
    for index, spec in enumerate(s.arguments.signature.params):
        if has_lists(spec):
            found.append((whole_argument(s, index), ()))
    for one in s.arguments.signature.hidden:
        if not has_lists(one.spec):
            continue
        if one.source[0] == "field":
            found.append((whole_argument(s, int(one.source[1])), tuple(map(str, one.source[2:]))))
        else:
            s.python.read_late.add(one.source)
    return found


def themselves(s: Context, value: Value) -> Value:
    """What an operation that may keep or change its operands is given: lists that are arguments, wherever they stand in
    it, as the very objects. Those within arguments or held by them, and those that Python has given, start the function
    again, as objects."""
    if id(value) in s.arguments.chosen:
        s.need_whole(value)
    if id(value) in s.arguments.lists:
        index = s.arguments.lists[id(value)][1]
        if _is_argument(s, value, index):
            return ObjectV(whole_argument(s, index))
        s.need_whole(value)
    if id(value) in s.python.lists:
        s.facts.restart(ListOfPython(s.python.lists[id(value)][1]))
    given = partial(themselves, s)
    match value:
        case TupleV(items):
            return replace(value, items=tuple(map(given, items)))
        case DictV(items):
            return replace(value, items=tuple((key, given(item)) for key, item in items))
        case ClosureV(_, captures, defaults):
            return replace(value, captures=tuple(map(given, captures)), defaults=tuple(map(given, defaults)))
        case MethodV(owner):
            return replace(value, object=given(owner))
    return value


def _is_argument(s: Context, value: Value, index: int) -> bool:
    """Is a list in the parameter or hidden argument with this number all of a parameter?"""
    place = s.arguments.place(index)
    spec = s.arguments.signature.params[place] if isinstance(place, int) else None
    outermost = [made for made, where in s.arguments.lists.values() if where == index][-1]
    return isinstance(spec, TupleSpec) and spec.kind == "list" and outermost is value


def note_lists(s: Context, value: Value, key: Any) -> None:
    """Remember the lists in what an operation done by Python has given, whose items are known."""
    if isinstance(value, TupleV):
        if value.kind == "list":
            s.python.lists[id(value)] = value, key
        for item in value.items:
            note_lists(s, item, key)


def is_part_of_argument(s: Context, value: Value) -> bool:
    """Is this a list that is an argument or held by one, or by a variable, of which the items are known?"""
    if id(value) in s.arguments.lists:
        return True
    return (
        bool(s.arguments.list_roots)
        and form_of(value).type is list
        and bool(roots_of(value) & s.arguments.list_roots.keys())
    )


def need_whole_arguments(s: Context) -> None:
    """Start again, with a list that is a parameter as an object, if there is one whose items are known."""
    for index, spec in enumerate(s.arguments.signature.params):
        if has_lists(spec) and not (isinstance(spec, TupleSpec) and spec.kind != "list"):
            s.facts.restart(WholeList(index))


def whole_argument(s: Context, index: int) -> ir.Var:
    """A parameter as the object it is, beside what is known of its items."""
    if isinstance(s.arguments.signature.params[index], ObjectSpec):
        return next(var for var, place in s.arguments.leaf_param.items() if place == index)
    value = s.taken(("field", index))
    assert isinstance(value, ObjectV)
    return value.var
