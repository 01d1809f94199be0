"""The operands of operations handed back, as recipes (see `parakeet_py.signature.object_assembly`) that compiled code
fills."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from parakeet_py.base.errors import RANGE_ERROR
from parakeet_py.base.lazy_modules import LateTable
from parakeet_py.signature.object_assembly import ContainerT, LeafT, Recipe, StaticT, first_of
from parakeet_py.signature.results import OfUnit
from parakeet_py.signature.specs import text_of
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import record_arrays
from parakeet_py.typed_ir.specialize.instances import values
from parakeet_py.typed_ir.specialize.opaque.python_closures import code_of, stays
from parakeet_py.typed_ir.specialize.paths import tagged_unions
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    ClosureV,
    DictV,
    ErrorV,
    InstanceV,
    ItemV,
    MapV,
    MessageV,
    MethodV,
    ObjectV,
    RangeV,
    RecordV,
    RefV,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TextV,
    TimeV,
    TupleV,
    Unknown,
    Value,
    VariantV,
    known,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


LISTS: LateTable[type, Callable[[Any, Any, list[ir.Operand]], Recipe]] = LateTable()
"""The recipes of lists by the class of the value (see `containers/list_objects`)."""


def recipe_of(s: Context, value: Value, leaves: list[ir.Operand]) -> Recipe:
    """The recipe of an operand; its leaves are appended."""
    of_list = LISTS.find(type(value))
    if of_list is not None:
        return of_list(s, value, leaves)
    match value:
        case TaggedScalar(_, tag, payloads):
            alternatives = map(ScalarV, payloads)
            return ContainerT("one_of", tuple(recipe_of(s, part, leaves) for part in (ScalarV(tag), *alternatives)))
        case ScalarV(ir.Var() as var) | ArrayV(var=var) | ObjectV(var):
            if var not in leaves:
                leaves.append(var)
            leaf = LeafT(leaves.index(var))
            if isinstance(value, ArrayV) and value.readonly and var not in s.arguments.leaf_param:
                return ContainerT("readonly", (leaf,))
            return leaf
        case TupleV(items, kind, named):
            parts = tuple(recipe_of(s, item, leaves) for item in items)
            if kind == "frozenset":
                return ContainerT("named", (ContainerT("tuple", parts),), (frozenset,))
            return ContainerT(kind, parts) if named is None else ContainerT("named", parts, (named,))
        case InstanceV() | RefV() | ItemV():
            maker, held = values.boxed(s, value)
            return ContainerT("named", tuple(recipe_of(s, item, leaves) for item in held), (maker,))
        case TextV(codes) if codes.var not in s.arguments.leaf_param:
            return ContainerT("named", (recipe_of(s, codes, leaves),), (text_of,))
        case CharV(code):
            return ContainerT("named", (recipe_of(s, code, leaves),), (chr,))
        case TimeV(numbers, unit, None):
            return ContainerT("named", (recipe_of(s, numbers, leaves),), (OfUnit(unit),))
        case TimeV(ArrayV() as numbers, _, ObjectV() as array):  # the numbers are given, as Python may change them
            return ContainerT("named", (recipe_of(s, array, leaves), recipe_of(s, numbers, leaves)), (first_of,))
        case TimeV(_, _, ObjectV() as scalar):
            return recipe_of(s, scalar, leaves)
        case SliceV(lower, upper, step):
            return ContainerT("slice", tuple(recipe_of(s, part, leaves) for part in (lower, upper, step)))
        case RangeV(start, stop, step):
            return ContainerT("range", tuple(recipe_of(s, part, leaves) for part in (start, stop, step)))
        case DictV(entries):
            keys = tuple(key for key, _ in entries)
            return ContainerT("dict", tuple(recipe_of(s, item, leaves) for _, item in entries), keys)
        case MethodV(obj, name):
            return ContainerT("method", (recipe_of(s, obj, leaves),), (name,))
        case MapV(entries, _, kind):
            _, written_out = s.python.displays.get(id(value), (None, None))
            if written_out is not None:
                parts = tuple(recipe_of(s, item, leaves) for item in written_out)
                return ContainerT("named", (ContainerT("tuple", parts),), (set,))
            if kind == "reordered":
                raise s.unsupported("a set whose items may be in another order than in Python, given to Python")
            return ContainerT(f"{kind}_of", (recipe_of(s, entries, leaves),))
        case VariantV(tag, options):
            if not all(
                isinstance(option, ScalarV | TaggedScalar | Static | InstanceV | RefV | ItemV | TextV | CharV | TimeV)
                for option in options
            ):
                return recipe_of(s, tagged_unions.boxed(s, value), leaves)
            return ContainerT("one_of", tuple(recipe_of(s, part, leaves) for part in (tag, *options)))
        case RecordV(records, index, False, None):  # a view
            parts = (recipe_of(s, records, leaves), recipe_of(s, index, leaves))
            return ContainerT("named", parts, (operator.getitem,))
        case RecordV():
            raise record_arrays.as_object(s, value)
        case ClosureV():
            return _closure_recipe(s, value, leaves)
        case ErrorV(kind, message, args, ()) if message is not None and message != RANGE_ERROR:  # not raised so far
            text = MessageV(message, tuple(map(ScalarV, args))) if args else Static(message.format())
            return ContainerT("named", (recipe_of(s, text, leaves),) if message else (), (kind,))
        case MessageV(template, args) if args:
            return ContainerT("format", tuple([recipe_of(s, arg, leaves) for arg in args]), (template,))
    try:
        return StaticT(known(value))
    except Unknown:
        raise s.unsupported(f"{s.describe(value)} cannot be handed to Python code") from None


def _closure_recipe(s: Context, value: ClosureV, leaves: list[ir.Operand]) -> Recipe:
    """The recipe of a nested function; the leaves of what it has captured are appended."""
    captured = dict(zip((var.name for var in value.function.captures), value.captures, strict=True))
    code = None if value.free else code_of(value, frozenset(captured))
    if code is None or not all(map(stays, (*value.captures, *value.defaults))):
        raise s.unsupported("a nested function cannot be handed to Python code")
    others = [name for name in code.co_freevars if name in captured]
    parts = [recipe_of(s, captured[name], leaves) for name in others]
    parts += [recipe_of(s, default, leaves) for default in value.defaults]
    return ContainerT("function", tuple(parts), (code, value.namespace.owner, value.function.annotations or ""))
