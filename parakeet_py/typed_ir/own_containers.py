"""Lists and dicts that a function changes, given to other functions.

The frontend sees that no other name of the function itself is one of such a list (`frontend.own_lists`); what a call
does with it is looked at here. A function of the user's may give it back, or keep it in an attribute: then the list has
another name, and a change of it would be seen there. What unknown Python code does with it is not known at all.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parakeet_py.frontend import ssa
from parakeet_py.typed_ir import gates
from parakeet_py.typed_ir.opaque import roots_of
from parakeet_py.typed_ir.values import ArraysV, DictV, GrowV, ListV, MapV, Static, TupleV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer

_CONTAINERS = DictV | GrowV | ArraysV | MapV | ListV


def _is_container(value: Value) -> bool:
    return isinstance(value, _CONTAINERS) or (isinstance(value, TupleV) and value.kind == "list")


def given(s: Specializer, op: ssa.Call) -> list[Value]:
    """The lists and dicts among the arguments of a call that the calling function changes."""
    if s.frames[-1].namespace.trusted:
        return []
    operands = [arg.operand if isinstance(arg, ssa.Star) else arg for arg in op.args]
    operands += [operand for _, operand in op.kwargs]
    variables = [one for one in operands if isinstance(one, ssa.Var) and _is_container(s.value(one))]
    if not variables:
        return []
    changed = _changed_names(s.frames[-1].function)
    return [s.value(one) for one in variables if one.name in changed]


def _changed_names(function: ssa.Function) -> frozenset[str]:
    changes = (let.op for let in function.statements() if isinstance(let.op, ssa.ChangeList))
    return frozenset(op.object.name for op in changes if isinstance(op.object, ssa.Var))


def is_users(function: Value) -> bool:
    """Is this a function of the user's?"""
    target: Any = function.object if isinstance(function, Static) else None
    target = getattr(target, "__wrapped__", target)
    if not isinstance(target, types.FunctionType):
        return False
    module = (target.__module__ or "").partition(".")[0]
    return module == "__main__" or module not in (*sys.stdlib_module_names, "numpy", "scipy", "parakeet_py")


def check_kept(s: Specializer, lists: Sequence[Value], places: Sequence[Value]) -> None:
    """Refuse lists that stand in what a call gives, or in what it has assigned."""
    if any(_stands_in(one, place) for place in places for one in lists):
        raise s.unsupported("a list or dict that is changed, kept or given back by a function")


def _stands_in(own: Value, value: Value) -> bool:
    if _is_container(value) and (value is own or _may_be_one(own, value)):
        return True
    return any(_stands_in(own, part) for part in gates.parts_of(value))


def _may_be_one(left: Value, right: Value) -> bool:
    match left, right:
        case TupleV(items), TupleV(others):
            return len(items) == len(others) and all(one is other for one, other in zip(items, others, strict=True))
        case DictV(entries), DictV(others):
            keys = [key for key, _ in entries] == [key for key, _ in others]
            return keys and all(one is other for (_, one), (_, other) in zip(entries, others, strict=True))
    return bool(roots_of(left) & roots_of(right))
