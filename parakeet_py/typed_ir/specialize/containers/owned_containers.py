"""Lists and dicts that a function changes, given to other functions.

The frontend sees that no other variable of the function itself is one of such a list (`frontend/ownership`); what a
call does with it is looked at here. A function of the user's may give it back, or keep it in an attribute: then the
list has another name, and a change of it would be seen there. What unknown Python code does with it is not known at
all.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CellType
from typing import TYPE_CHECKING

from parakeet_py.base.callee_effects import effects_of
from parakeet_py.frontend import ssa
from parakeet_py.typed_ir.specialize.forms import array_of, form_of, is_container, parts_of, roots_of
from parakeet_py.typed_ir.specialize.paths.templates import Structure
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ClosureV,
    DictV,
    Frame,
    InstanceV,
    ItemV,
    MethodV,
    ObjectV,
    RefV,
    Static,
    TupleV,
    Value,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def holds_own(value: Value) -> bool:
    """Is there a list in a value whose items can be assigned?"""
    return form_of(value).own(value) or any(map(holds_own, parts_of(value)))


def given(s: Context, op: ssa.Op, nested: bool = False) -> list[Value]:
    """The lists and dicts among the arguments of a call, or the operands of another operation, that the function in
    which it stands changes; `nested`: those of them that hold others."""
    frame = s.frame
    if frame.namespace.trusted:
        return []
    found = [one for one in ssa.operands_of(op) if isinstance(one, ssa.Var) and is_container(s.value(one))]
    changed = _changed_variables(frame.function) if found else frozenset()
    return [s.value(one) for one in found if one in changed and (not nested or _holds_containers(s.value(one)))]


def lent(s: Context, values: Sequence[Value], nested: bool = False) -> bool:
    """Are there lists or dicts in some values that a function further out changes, which has called this one?"""
    return any(
        _stands_in(own, value)
        for frame in s.frames[:-1]
        for own in _changed_in(frame)
        if not nested or _holds_containers(own)
        for value in values
    )


def _changed_in(frame: Frame) -> list[Value]:
    """The lists and dicts that a function changes, as far as it has come."""
    changed = frozenset() if frame.namespace.trusted else _changed_variables(frame.function)
    return [value for var, value in frame.env.items() if var in changed and is_container(value)] if changed else []


def _holds_containers(value: Value) -> bool:
    item = form_of(value).item(value)
    if isinstance(item, Structure) and (is_container(item.like) or _holds_containers(item.like)):
        return True
    array = None if isinstance(value, ArrayV) else array_of(value)
    if array is not None:
        return array.rank > 1
    return any(is_container(part) or _holds_containers(part) for part in parts_of(value))


def _changed_variables(function: ssa.Function) -> frozenset[ssa.Var]:
    """The variables that stand for what a function changes: those of all changes, the joins that make one of others,
    items of lists whose items change, and what is in cells, which other functions may change."""
    found: set[ssa.Operand] = set()
    items: set[ssa.Operand] = set()
    merges: list[tuple[ssa.Operand, ssa.Operand]] = []
    for let in function.statements():
        match let.op:
            case ssa.ChangeList(_, held, _, at):
                found |= {held, let.outs[-1]}
                if at is not None:
                    items |= {held, let.outs[-1]}
            case ssa.Attribute(_, "cell_contents"):
                found.add(let.outs[0])
            case ssa.If(_, then, orelse):
                merges += [*zip(let.outs, then.results, strict=True), *zip(let.outs, orelse.results, strict=True)]
            case (ssa.For() | ssa.While()) as op:
                skip = int(op.stoppable)
                for results in (op.inits, op.body.results[skip:], let.outs[skip:]):
                    merges += zip(op.params, results, strict=True)
    if not found:
        return frozenset()
    while True:
        more = {one for pair in merges for one in pair if not found.isdisjoint(pair)} - found
        more_items = {one for pair in merges for one in pair if not items.isdisjoint(pair)} - items
        found |= more
        items |= more_items
        if not more and not more_items:
            break
    for let in function.statements():
        if isinstance(let.op, ssa.Subscript) and let.op.object in items:
            found |= {*let.outs}
    return frozenset(one for one in found if isinstance(one, ssa.Var))


def may_keep(callee: Value) -> bool:
    """May a function that is compiled here keep, or give back, a list or dict that it is given?

    What goes through it later only looks itself whether it has changed by then (`generators`).
    """
    match callee:
        case Static(target):
            if target is CellType:  # whose contents belong to all functions that know it
                return False
            target = getattr(target, "__wrapped__", target)
            effects = effects_of(target)
            return effects.keeps and not effects.lazy
        case MethodV(owner):
            return isinstance(owner, ObjectV | InstanceV | RefV | ItemV)
        case ClosureV():
            return True
    return False


def check_made(s: Context, callee: Value, out: ssa.Var | None, result: Value) -> None:
    """Refuse a list or dict that changes and has been given by a function under the name of one that makes new ones."""
    frame = s.frame
    if frame.namespace.trusted or not is_container(result) or not may_keep(callee):
        return
    if out in _changed_variables(frame.function):
        raise s.unsupported("a list or dict that is changed, kept or given back by a function")


def check_kept(s: Context, lists: Sequence[Value], places: Sequence[Value]) -> None:
    """Refuse lists that stand in what a call gives, or in what it has assigned."""
    if any(_stands_in(one, place) for place in places for one in lists):
        raise s.unsupported("a list or dict that is changed, kept or given back by a function")


def _stands_in(own: Value, value: Value) -> bool:
    if is_container(value) and (value is own or _may_be_one(own, value)):
        return True
    return any(_stands_in(own, part) for part in parts_of(value))


def _may_be_one(left: Value, right: Value) -> bool:
    match left, right:
        case TupleV(items), TupleV(others):
            return len(items) == len(others) and all(one is other for one, other in zip(items, others, strict=True))
        case DictV(entries), DictV(others):
            keys = [key for key, _ in entries] == [key for key, _ in others]
            return keys and all(one is other for (_, one), (_, other) in zip(entries, others, strict=True))
    return bool(roots_of(left) & roots_of(right))
