"""Operators, comparisons and builtins on instances that a function makes: methods of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parakeet_py.base.types import PYBOOL
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.instances import instance_lists
from parakeet_py.typed_ir.specialize.instances.instances import (
    attribute,
    class_of,
    has,
    is_instance,
    member,
    of_dataclass,
    owner_of,
    special,
)
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    InstanceV,
    ItemV,
    NeverV,
    RefV,
    ScalarV,
    Static,
    TupleV,
    Value,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def _declines(value: Value) -> bool:
    return isinstance(value, Static) and value.object is NotImplemented


def binary(s: Context, op: str, left: Value, right: Value, inplace: bool = False) -> Value:
    """left op right, one of which is an instance."""
    own = f"__{op}__"
    if inplace and is_instance(left) and has(left, f"__i{op}__"):
        made = special(s, left, f"__i{op}__", [right])
        if not _declines(made):
            return made
    _no_subclass(s, left, right)
    if is_instance(left) and has(left, own):
        made = special(s, left, own, [right])
        if not _declines(made):
            return made
    if not is_instance(left) and not (isinstance(left, ScalarV) and left.python):
        raise s.unsupported(f"{op} of {s.describe(left)} and {s.describe(right)}")
    reflected = f"__r{op}__"
    if is_instance(right) and has(right, reflected) and _differ(left, right):
        made = special(s, right, reflected, [left])
        if not _declines(made):
            return made
    raise s.unsupported(f"{op} of {s.describe(left)} and {s.describe(right)}")


def _differ(left: Value, right: Value) -> bool:
    return not (is_instance(left) and is_instance(right) and class_of(left) is class_of(right))


def _no_subclass(s: Context, left: Value, right: Value) -> None:
    """Of a subclass on the right, Python asks the right operand first."""
    if not is_instance(left) or not is_instance(right) or class_of(left) is class_of(right):
        return
    if issubclass(class_of(right), class_of(left)):
        raise s.unsupported("an operator on an object and one of a subclass")


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def compare(s: Context, op: str, left: Value, right: Value) -> Value:
    """left op right, one of which is an instance."""
    _no_subclass(s, left, right)
    for value, other, name in ((left, right, op), (right, left, _MIRRORED[op])):
        if not is_instance(value):
            if not (isinstance(value, ScalarV) and value.python) and not isinstance(value, Static):
                raise s.unsupported(f"a comparison of {s.describe(left)} and {s.describe(right)}")
            continue
        made = _compared(s, name, value, other)
        if not _declines(made):
            return made
    if op in ("eq", "ne"):
        same = instance_lists.same_place(s, left, right)
        if same is not None:
            return same if op == "eq" else ScalarV(s.builder.prim("not", same.operand, type=PYBOOL))
        return py(identical(s, left, right) == (op == "eq"))
    raise s.unsupported(f"'{op}' not supported between {s.describe(left)} and {s.describe(right)}")


def _compared(s: Context, op: str, value: Value, other: Value) -> Value:
    """What the method of one operand says."""
    owner = owner_of(class_of(value), f"__{op}__")
    if op == "ne" and owner is object:
        made = _compared(s, "eq", value, other)
        return made if _declines(made) else ScalarV(s.builder.prim("not", s.truth(made), type=PYBOOL))
    if owner is None or owner is object or owner.__dict__[f"__{op}__"] is None:
        return Static(NotImplemented)
    if of_dataclass(owner.__dict__[f"__{op}__"]):
        member(s, owner, f"__{op}__")
        if not is_instance(other) or class_of(other) is not class_of(value):
            return Static(NotImplemented)
        fields = owner.__dict__["__dataclass_fields__"].values()
        names = [one.name for one in fields if one.compare and one._field_type.name == "_FIELD"]
        mine, its = ([attribute(s, one, name) for name in names] for one in (value, other))
        if any(map(_may_be_itself, mine, its)):
            raise s.unsupported("objects compared by what they hold, which may be the same NaN")
        return s.compare(op, TupleV(tuple(mine)), TupleV(tuple(its)))
    return special(s, value, f"__{op}__", [other])


def _may_be_itself(left: Value, right: Value) -> bool:
    """Could these be one object that is not equal to itself?"""
    match left, right:
        case ScalarV(), ScalarV():
            return False
        case ArrayV(), _:
            return True
    return False


def identical(s: Context, left: Value, right: Value) -> bool:
    """left is right"""
    tokens = [instance_lists.token_of(one) if isinstance(one, RefV | InstanceV) else s for one in (left, right)]
    if s in tokens:
        other = right if is_instance(left) else left
        if isinstance(other, ScalarV | Static | TupleV | ArrayV):
            return False
        raise s.unsupported("`is` between objects")
    if class_of(left) is not class_of(right):
        return False
    if None in tokens:
        if class_of(left) in s.instances.listed - s.instances.items.keys():
            instance_lists.change_items(s, class_of(left))
        raise s.unsupported("`is` between objects that are not known to be distinct")
    return tokens[0] is tokens[1]


def truth(s: Context, value: Value) -> ir.Operand:
    if has(value, "__bool__"):
        return s.truth(special(s, value, "__bool__", []))
    if has(value, "__len__"):
        return s.truth(special(s, value, "__len__", []))
    return ir.Const(True, PYBOOL)


_UNARY = {"neg": "__neg__", "pos": "__pos__", "invert": "__invert__"}
_OF_BUILTINS = {abs: "__abs__", len: "__len__"}


def unary(s: Context, op: str, value: Value) -> Value:
    if not has(value, _UNARY[op]):
        raise s.unsupported(f"unary {op} of {s.describe(value)}")
    return special(s, value, _UNARY[op], [])


def builtin_call(s: Context, target: Any, args: Sequence[Value]) -> Value | None:
    """A call of a builtin with an instance, for which its class has a method."""
    name = next((name for one, name in _OF_BUILTINS.items() if one is target), None)
    if name is None or len(args) != 1 or not isinstance(args[0], InstanceV | RefV | ItemV):
        return None
    if not has(args[0], name):
        raise s.unsupported(f"{target.__name__}() of {s.describe(args[0])}")
    made = special(s, args[0], name, [])
    if target is len and not (isinstance(made, ScalarV) and made.python and made.dtype == "int64"):
        raise s.unsupported("a __len__ that gives something else than an int")
    if target is len and not (isinstance(made, NeverV)):
        assert isinstance(made, ScalarV)
        low = s.builder.prim("ge", made.operand, ir.ZERO, type=PYBOOL)
        s.check(low, "ValueError", "__len__() should return >= 0")
    return made
