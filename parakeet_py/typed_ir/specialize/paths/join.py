"""Gates: making one value out of the values of two paths.

At an `If` or a loop the same name may hold different abstract values. `join` finds the least template both fit (an int
and a float are a float, two lengths of one dtype and rank an array of unknown extents); `leaves_of` brings a value to a
template, emitting casts where it stands, and `value_of` rebuilds a value from the gate's variables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import OBJECT, PYINT, Array, Scalar, Type, join_layouts
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.opaque import opaque
from parakeet_py.typed_ir.specialize.paths.templates import ArrayT, EitherT, Fixed, RowT, Structure, Template
from parakeet_py.typed_ir.specialize.type_names import described, with_article
from parakeet_py.typed_ir.specialize.values import (
    NONE,
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

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


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
            return ListV(array, like.items)
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


def _same_shape(left: Value, right: Value) -> bool:
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
            return _same_shape(a, b)
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


def join(s: Context, left: Template, right: Template) -> Template:
    """The least template that both fit; raises Unsupported where there is none."""
    if left is None or right is None:
        return _exported(s, left if right is None else right)
    if left == right:
        return _exported(s, left)
    if isinstance(left, Fixed) and isinstance(left.value, UnboundV):
        return varying(right)
    if isinstance(right, Fixed) and isinstance(right.value, UnboundV):
        return varying(left)
    left, right = varying(left), varying(right)
    if left == right:
        return left
    if isinstance(left, RowT) or isinstance(right, RowT):
        return nested_lists.joined(s, left, right)
    match left, right:
        case Scalar(), Scalar() if s.frames[-1].namespace.trusted:
            return join_scalars(s, left, right)
        case ((Scalar() | EitherT()), (Scalar() | EitherT())):
            kinds = tagged_scalars.union(tagged_scalars.kinds_of(left), tagged_scalars.kinds_of(right))
            if kinds is not None:
                return EitherT(kinds)
        case ArrayT(one), ArrayT(other) if one.dtype == other.dtype and one.rank == other.rank:
            return _join_arrays(s, left, right)
        case Structure(ObjectV() as one, ()), Structure(ObjectV() as other, ()):
            return left if one.any or not other.any else right
        case Structure(ArraysV(), parts), Structure(ArraysV(), others):
            kept = ragged_arrays.joined(left, right)
            if kept is not None:
                return Structure(kept, tuple(join(s, x, y) for x, y in zip(parts, others, strict=True)))
        case Structure(InstanceV() as a, parts), Structure(InstanceV() as b, others) if _same_shape(a, b):
            like = a if b.sites <= a.sites else replace(a, sites=a.sites | b.sites)
            return Structure(like, tuple(join(s, x, y) for x, y in zip(parts, others, strict=True)))
        case Structure(ItemV() as a, parts), Structure(ItemV() as b, others) if _same_shape(a, b):
            version, depth = min(a.version, b.version), min(a.depth, b.depth)
            older = a if (a.version, a.depth) == (version, depth) else replace(a, version=version, depth=depth)
            return Structure(older, tuple(join(s, x, y) for x, y in zip(parts, others, strict=True)))
        case Structure(a, parts), Structure(b, others) if _same_shape(a, b):
            return Structure(a, tuple(join(s, x, y) for x, y in zip(parts, others, strict=True)))
        case Structure(a), Structure(b) if dynamic_lists.has_item_type(a) and dynamic_lists.has_item_type(b):
            return dynamic_lists.grown_template(s, left, right)
        case Structure(a), Structure(b) if nested_lists.is_table_of_rows(a, b) or nested_lists.is_table_of_rows(b, a):
            return dynamic_lists.grown_template(s, left, right)
        case Structure(a), Structure(b) if hash_maps.is_map(a) and hash_maps.is_map(b):
            return hash_maps.joined(s, left, right)
    if not s.frames[-1].namespace.trusted:
        variant = tagged_unions.joined(s, left, right)
        if variant is not None:
            return variant
    raise s.unsupported(f"a name is {describe(left)} on one path and {describe(right)} on another")


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


def _exported(s: Context, template: Template) -> Template:
    """The template outside the block it was made in: variables of that block have to pass through the gate."""
    match template:
        case Fixed(ScalarV(operand)) if not s.in_scope(operand):
            return ir.scalar_type(operand)
        case Fixed(TaggedScalar(_, tag, payloads)) if not all(map(s.in_scope, (tag, *payloads))):
            return varying(template)
        case Fixed(ObjectV(var)) if not s.in_scope(var):
            return varying(template)
        case Structure(like, parts):
            return Structure(like, tuple(_exported(s, part) for part in parts))
    return template


def join_scalars(s: Context, left: Scalar, right: Scalar) -> Scalar:
    """int and float meet in float; a Python scalar and a NumPy scalar in the NumPy type that holds both."""
    if left == right:
        return left
    order = ("bool", "int64", "float64", "complex128")
    if left.python and right.python:
        if "bool" in (left.dtype, right.dtype):
            raise s.unsupported(f"a name is {left} on one path and {right} on another")
        s.note_widening(left, right)
        return Scalar(max(left.dtype, right.dtype, key=order.index), True)
    if left.python or right.python:
        weak, strong = (left, right) if left.python else (right, left)
        kinds = {"bool": "b", "int64": "iu", "float64": "f", "complex128": "c"}
        rank = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
        if rank[kinds[weak.dtype][0]] <= rank[np.dtype(strong.dtype).kind] and weak.dtype != "bool":
            s.note_widening(left, right)
            return strong
        raise s.unsupported(f"a name is {left} on one path and {right} on another")
    s.note_widening(left, right)
    return Scalar(np.promote_types(left.dtype, right.dtype).name)


def join_or_box(s: Context, left: Template, right: Template) -> Template:
    """`join`, or else any object: Python makes the objects, so that this is not worth while in a loop."""
    try:
        return join(s, left, right)
    except UnsupportedError:
        if s.in_body or s.looping or s.strict or s.frames[-1].namespace.trusted:
            raise
        return Structure(ObjectV(ir.Var("any", OBJECT), any=True), ())


def _join_arrays(s: Context, left: ArrayT, right: ArrayT) -> ArrayT:
    if left.readonly != right.readonly:
        raise s.unsupported("an array is read-only on one path and writeable on another")
    return ArrayT(
        Array(left.type.dtype, left.type.rank, join_layouts(left.type.layout, right.type.layout)),
        tuple(a if a == b else None for a, b in zip(left.extents, right.extents, strict=True)),
        left.roots | right.roots,
        left.readonly,
        tuple(a and b for a, b in zip(left.nonunit, right.nonunit, strict=True)),
        left.order if left.order == right.order else (),
    )


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
            return list(tagged_scalars.types_of(kinds))
        case ArrayT(kind):
            return [kind]
        case Structure(ObjectV(), _):
            return [OBJECT]
        case RowT():
            return [PYINT, PYINT, PYINT]
        case Structure(_, parts):
            return [kind for part in parts for kind in types_of(part)]
    return []


def leaves_of(s: Context, value: Value, template: Template, like: Value | None = None) -> list[ir.Operand]:
    """The operands of a value for a template, converted where they stand; dummies where a path has no value.

    `like` is the value of the other path.
    """
    b = s.builder
    match template:
        case EitherT(kinds):
            return tagged_scalars.leaves(s, value, kinds, like)
        case Scalar():
            if isinstance(value, ScalarV):
                return [b.cast(value.operand, template)]
            return [ir.Const(np.dtype(template.dtype).type(0).item(), template)]
        case ArrayT(kind):
            if isinstance(value, ArrayV):
                return [value.var]
            zero = ir.Const(0, PYINT)
            layout = "F" if kind.layout == "F" else "C"
            return [b.emit1(ir.Alloc((zero,) * kind.rank), Array(kind.dtype, kind.rank, layout), name="nothing")]
        case Structure(ObjectV(), _):
            if isinstance(value, ObjectV):
                return [value.var]
            return [opaque.opaque_box(s, NONE if isinstance(value, UnboundV | NeverV) else value).var]
        case Structure(VariantV()):
            return tagged_unions.leaves(s, value, template, like)
        case Structure(MapV(GrowV(item=item)), parts) if hash_maps.is_map(value):
            held = hash_maps.as_map(s, value, item)
            return [leaf for part, own in zip(parts, parts_of(held), strict=True) for leaf in leaves_of(s, own, part)]
        case Structure(GrowV(item=item), parts) if dynamic_lists.is_list(value):
            grown = dynamic_lists.as_grown(s, value, item)
            return [leaf for part, own in zip(parts, parts_of(grown), strict=True) for leaf in leaves_of(s, own, part)]
        case Structure(ArraysV() as arrays, parts) if dynamic_lists.is_list(value):
            listed = ragged_arrays.as_arrays(s, value, arrays)
            return [leaf for part, own in zip(parts, parts_of(listed), strict=True) for leaf in leaves_of(s, own, part)]
        case Structure(_, parts):
            values = parts_of(value) if not isinstance(value, UnboundV | NeverV) else (value,) * len(parts)
            return [leaf for part, own in zip(parts, values, strict=True) for leaf in leaves_of(s, own, part)]
    return []


def value_of(s: Context, template: Template, variables: list[ir.Var]) -> Value:
    """The value a gate gives; consumes its variables from the front of the list."""
    match template:
        case None:
            return NeverV()
        case Scalar():
            return ScalarV(variables.pop(0))
        case EitherT(kinds, rare):
            return tagged_scalars.value_of(s, kinds, variables, rare)
        case ArrayT():
            var = variables.pop(0)
            extents = tuple(
                extent if extent is not None and s.in_scope(extent) else s.dim(var, axis)
                for axis, extent in enumerate(template.extents)
            )
            return ArrayV(var, extents, template.roots, template.readonly, template.nonunit, template.order)
        case Fixed(value):
            return value
        case Structure(ObjectV() as like, _):
            return ObjectV(variables.pop(0), like.any)
        case Structure(VariantV(), parts):
            tag = variables[0]
            s.builder.tags[tag] = len(parts) - 1
            return VariantV(ScalarV(variables.pop(0)), tuple(value_of(s, part, variables) for part in parts[1:]))
        case Structure(ArraysV() as like, parts):
            made = rebuild(like, tuple(value_of(s, part, variables) for part in parts))
            assert isinstance(made, ArraysV)
            return ragged_arrays.carried(s, made)
        case Structure(like, parts):
            return rebuild(like, tuple(value_of(s, part, variables) for part in parts))
    raise AssertionError(template)


from parakeet_py.typed_ir.specialize.containers import dynamic_lists, hash_maps, nested_lists, ragged_arrays
from parakeet_py.typed_ir.specialize.paths import tagged_scalars, tagged_unions  # noqa: E402  (they need each other)
