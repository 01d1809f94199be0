"""Templates: what values of one name have in common where paths meet; `join` finds the least that two values fit."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TypeAlias

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import OBJECT, PYINT, Array, Scalar, Type
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.type_names import described, with_article
from parakeet_py.typed_ir.specialize.values import (
    ArraysV,
    ArrayV,
    CharV,
    ClosureV,
    ComprehensionV,
    DictV,
    ErrorV,
    GeneratorV,
    GrowV,
    InstanceV,
    ItemV,
    IteratorV,
    ListV,
    MapV,
    MessageV,
    MethodV,
    NeverV,
    ObjectV,
    RangeV,
    RefV,
    ScalarV,
    SliceV,
    Static,
    SuperV,
    TaggedScalar,
    TextV,
    TupleV,
    UnboundV,
    Value,
    VariantV,
)


@record
class ArrayT:
    """An array's template: extents stay known where both sides agree (None: read from the descriptor)."""

    type: Array
    extents: tuple[ir.Operand | None, ...]
    roots: frozenset[int]
    readonly: bool
    nonunit: tuple[bool, ...]
    order: tuple[int, ...]


@record
class Fixed:
    """The same compile-time value on all paths."""

    value: Value


@record
class Structure:
    """A container whose parts have templates of their own."""

    like: Value
    parts: tuple[Template, ...]


@record
class EitherT:
    """A scalar that may have several types, the widest last (see `tagged_scalars`)."""

    kinds: tuple[Scalar, ...]
    rare: bool = field(default=False, compare=False)


@record
class RowT:
    """A list of any length as an item of another list: three numbers, and items in a pool (see `rows`)."""

    item: Template


Template: TypeAlias = (
    Scalar | EitherT | ArrayT | Fixed | Structure | RowT | None
)  # None: no path has a value (all have raised)
MAX_KINDS = 4  # types of one scalar


def template_of(value: Value, *, varying: bool) -> Template:
    """The template of one value. `varying`: known numbers may change (loop-carried), so only their type is kept."""
    match value:
        case NeverV():
            return None
        case ScalarV():
            return value.type if varying else Fixed(value)
        case TaggedScalar(kinds, rare=rare):
            return EitherT(kinds, rare) if varying else Fixed(value)
        case ArrayV():
            nonunit = value.nonunit or (False,) * value.rank
            return ArrayT(value.type, tuple(value.extents), value.roots, value.readonly, nonunit, value.order)
        case ObjectV():
            return Fixed(value) if not varying else Structure(value, ())
        case Static() | UnboundV() | MethodV() | RefV() if not parts_of(value):
            return Fixed(value)
        case VariantV():  # a gate has all of its variables even where both paths bring the same
            return Structure(value, tuple(template_of(part, varying=True) for part in parts_of(value)))
        case _:
            return Structure(value, tuple(template_of(part, varying=varying) for part in parts_of(value)))


def with_inner_roots(template: Template, before: int, inside: int) -> Template:
    """The template of what a loop's iteration gives, all memory it has made itself (roots after `before`) as one."""
    match template:
        case ArrayT(kind, extents, roots, readonly, nonunit, order) if any(root > before for root in roots):
            kept = frozenset(root for root in roots if root <= before) | {inside}
            return ArrayT(kind, extents, kept, readonly, nonunit, order)
        case Structure(ArraysV(bases=bases) as like, parts) if any(root > before for root in bases):
            own = replace(like, bases=frozenset(root for root in bases if root <= before) | {inside})
            return Structure(own, tuple(with_inner_roots(part, before, inside) for part in parts))
        case Structure(like, parts):
            return Structure(like, tuple(with_inner_roots(part, before, inside) for part in parts))
    return template


def parts_of(value: Value) -> tuple[Value, ...]:
    match value:
        case TupleV(items) | IteratorV(_, items) | InstanceV(items=items):
            return items
        case VariantV(tag, options):
            return (tag, *options)
        case ListV(array):
            return (array,)
        case GrowV(length, columns, _, pools):
            return (length, *columns, *pools)
        case ArraysV(length, used, data, places):
            return (length, used, data, *places)
        case DictV(items):
            return tuple(item for _, item in items)
        case MapV(entries, table):
            return entries, table
        case SliceV(lower, upper, step):
            return (lower, upper, step)
        case ClosureV(_, captures, defaults, _):
            return (*captures, *defaults)
        case RangeV(start, stop, step, _):
            return (start, stop, step)
        case MethodV(obj, _) | SuperV(obj, _):
            return (obj,)
        case ItemV(index, listed):
            return (index, listed)
        case TextV(codes):
            return (codes,)
        case CharV(code):
            return (code,)
        case ErrorV(_, _, args):
            return tuple(map(ScalarV, args))
        case MessageV(_, args):
            return args
        case GeneratorV(frame):
            return (*frame.env.values(), *frame.free.values())
        case ComprehensionV(_, iterable, element, condition, _):
            return (iterable, element, *(() if condition is None else (condition,)))
        case _:
            return ()


def roots_of(value: Value) -> frozenset[int]:
    """The memory of all arrays in a value."""
    if isinstance(value, ArrayV):
        return value.roots
    return frozenset(root for part in parts_of(value) for root in roots_of(part))


def rebuild(like: Value, parts: tuple[Value, ...]) -> Value:
    match like:
        case TupleV(_, kind, named):
            return TupleV(parts, kind, named)
        case InstanceV(cls, names, _, sites):
            return InstanceV(cls, names, parts, sites)
        case SuperV(_, cls):
            return SuperV(parts[0], cls)
        case TextV():
            assert isinstance(parts[0], ArrayV)
            return TextV(parts[0])
        case CharV():
            assert isinstance(parts[0], ScalarV)
            return CharV(parts[0])
        case ItemV(_, _, version, depth):
            index, listed = parts
            assert isinstance(index, ScalarV) and isinstance(listed, GrowV)
            return ItemV(index, listed, version, depth)
        case VariantV():
            tag = parts[0]
            assert isinstance(tag, ScalarV)
            return VariantV(tag, parts[1:])
        case IteratorV(kind, _):
            return IteratorV(kind, parts)
        case ListV():
            array = parts[0]
            assert isinstance(array, ArrayV)
            return ListV(array, like.items, own=like.own)
        case GrowV():
            length = parts[0]
            assert isinstance(length, ScalarV)
            columns = tuple(part for part in parts[1:] if isinstance(part, ArrayV))
            return GrowV(length, columns, like.item, tuple(part for part in parts[1:] if isinstance(part, GrowV)))
        case ArraysV():
            length, used, data, *places = parts
            assert isinstance(length, ScalarV) and isinstance(used, ScalarV) and isinstance(data, ArrayV)
            lines = tuple(place for place in places if isinstance(place, ArrayV))
            return ArraysV(length, used, data, lines, like.root, like.bases, like.fresh)
        case DictV(items):
            return DictV(tuple((key, part) for (key, _), part in zip(items, parts, strict=True)))
        case MapV(kind=kind):
            entries, table = parts
            assert isinstance(entries, GrowV) and isinstance(table, ArrayV)
            return MapV(entries, table, kind)
        case SliceV():
            return SliceV(*parts)
        case ClosureV(function, captures, _, namespace):
            return ClosureV(function, parts[: len(captures)], parts[len(captures) :], namespace, like.free)
        case RangeV():
            start, stop, step = parts
            assert isinstance(start, ScalarV) and isinstance(stop, ScalarV) and isinstance(step, ScalarV)
            return RangeV(start, stop, step, like.parallel)
        case MethodV(_, name):
            return MethodV(parts[0], name)
        case MessageV(message):
            return MessageV(message, parts)
        case ErrorV(kind, message, _):
            return ErrorV(kind, message, tuple(part.operand for part in parts if isinstance(part, ScalarV)))
        case GeneratorV(frame, changes):
            held, free = parts[: len(frame.env)], parts[len(frame.env) :]
            env = dict(zip(frame.env, held, strict=True))
            return GeneratorV(replace(frame, env=env, free=dict(zip(frame.free, free, strict=True))), changes)
        case ComprehensionV(kind, _, _, condition, flatten):
            return ComprehensionV(kind, parts[0], parts[1], parts[2] if condition is not None else None, flatten)
    raise AssertionError(like)


def same_shape(left: Value, right: Value) -> bool:
    """True when two containers differ in their parts only."""
    if type(left) is not type(right):
        return False
    match left, right:
        case (TupleV(a, k, c), TupleV(b, m, d)):
            return k == m and c is d and len(a) == len(b)
        case (InstanceV(c, a), InstanceV(d, b)):
            return c is d and a == b
        case (SuperV(_, c), SuperV(_, d)):
            return c is d
        case (ItemV(listed=a), ItemV(listed=b)):
            return same_shape(a, b)
        case (ClosureV(f, a, d, _), ClosureV(g, b, e, _)):
            same = f is g and left.namespace.globals is right.namespace.globals
            return same and len(a) == len(b) and len(d) == len(e)
        case (VariantV(), VariantV()):
            return False  # see `variants`
        case (ErrorV(a, text, d), ErrorV(b, other, e)):
            return a is b and text == other and len(d) == len(e)
        case (MessageV(text, d), MessageV(other, e)):
            return text == other and len(d) == len(e)
        case (ListV(x, a), ListV(y, b)):
            return a == b and (x.dtype, x.rank) == (y.dtype, y.rank)
        case (GrowV(item=a), GrowV(item=b)):
            return bool(a == b)
        case (IteratorV(k, a), IteratorV(m, b)):
            return k == m and len(a) == len(b)
        case (MapV(GrowV(item=a), _, k), MapV(GrowV(item=b), _, m)):
            return bool(a == b) and k == m
        case (DictV(a), DictV(b)):
            return [key for key, _ in a] == [key for key, _ in b]
        case (MethodV(_, a), MethodV(_, b)):
            return a == b
        case (ComprehensionV(condition=a), ComprehensionV(condition=b)):
            return left.kind == right.kind and left.flatten == right.flatten and (a is None) == (b is None)
        case (GeneratorV(one, a), GeneratorV(other, b)):
            same = one.function is other.function and one.namespace.owner is other.namespace.owner and a == b
            return same and one.closure is other.closure and [*one.env] == [*other.env] and [*one.free] == [*other.free]
    return True


def varying(template: Template) -> Template:
    """The template without fixed numbers."""
    match template:
        case Fixed(value):
            return template_of(value, varying=True)
        case Structure(like, parts):
            return Structure(like, tuple(varying(part) for part in parts))
        case RowT(item):
            return RowT(varying(item))
    return template


def describe(template: Template) -> str:
    match template:
        case Scalar():
            return with_article(str(template))
        case EitherT(kinds):
            return " or ".join(with_article(str(kind)) for kind in kinds)
        case ArrayT(kind):
            return f"an array of {kind.rank} axes of {kind.dtype}"
        case Fixed(value) | Structure(value, _):
            return described(value)
        case RowT():
            return "a list"
    return "nothing"


def types_of(template: Template) -> list[Type]:
    """The types of the gate variables a template needs."""
    match template:
        case Scalar():
            return [template]
        case EitherT(kinds):
            return [PYINT, *kinds]
        case ArrayT(kind):
            return [kind]
        case Structure(ObjectV(), _):
            return [OBJECT]
        case RowT():
            return [PYINT, PYINT, PYINT]
        case Structure(_, parts):
            return [kind for part in parts for kind in types_of(part)]
    return []


def kinds_of(template: Template) -> tuple[Scalar, ...]:
    """The types of a scalar's template; none for others."""
    match template:
        case Scalar():
            return (template,)
        case EitherT(kinds):
            return kinds
    return ()


def union_of_kinds(left: tuple[Scalar, ...], right: tuple[Scalar, ...]) -> tuple[Scalar, ...] | None:
    """The types of either, the widest last; None if they are too many."""
    kinds = tuple(sorted({*left, *right}, key=_width))
    return kinds if len(kinds) <= MAX_KINDS else None


def _width(kind: Scalar) -> tuple[int, bool, int, str]:
    """NumPy's types are wider than Python's, which give way to them in all operations."""
    dtype = np.dtype(kind.dtype)
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[dtype.kind], not kind.python, dtype.itemsize, kind.dtype
