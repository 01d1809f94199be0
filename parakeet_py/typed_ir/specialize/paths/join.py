"""Merges: making one value out of the values of two paths.

At an `If` or a loop the same name may hold different abstract values. `join` finds the least template both fit (an int
and a float are a float, two lengths of one dtype and rank an array of unknown extents); `leaves_of` brings a value to a
template, emitting casts where it stands, and `value_of` rebuilds a value from the variables there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import OBJECT, PYINT, Array, Scalar, join_layouts
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.forms import form_of, parts_of, rebuild, same_form
from parakeet_py.typed_ir.specialize.paths.templates import (
    ArrayT,
    EitherT,
    Fixed,
    RowT,
    Structure,
    Template,
    any_of,
    kinds_met,
    kinds_of,
    mapped,
    union_of_kinds,
    varying,
)
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    NeverV,
    ObjectV,
    ScalarV,
    TaggedScalar,
    UnboundV,
    Value,
    VariantV,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


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
        found = s.join_containers(left, right)
        assert found is not None
        return found
    match left, right:
        case Scalar(), Scalar() if s.frame.namespace.trusted:
            return join_scalars(s, left, right)
        case ((Scalar() | EitherT()), (Scalar() | EitherT())):
            kinds = union_of_kinds(kinds_of(left), kinds_of(right))
            if kinds is None:  # no union either: it would have these two as one option
                raise _apart(s, left, right)
            return EitherT(kinds)
        case ArrayT(one), ArrayT(other) if one.dtype == other.dtype and one.rank == other.rank:
            return _join_arrays(s, left, right)
        case Structure(ObjectV() as one, ()), Structure(ObjectV() as other, ()):
            return left if one.any or not other.any else right
        case Structure(a, parts), Structure(b, others) if same_form(a, b):
            like = form_of(a).joined(a, b)
            return Structure(like, tuple(join(s, x, y) for x, y in zip(parts, others, strict=True)))
        case Structure(), Structure():
            container = s.join_containers(left, right)
            if container is not None:
                return container
    if not s.frame.namespace.trusted:
        variant = s.join_as_union(left, right)
        if variant is not None:
            return variant
    raise _apart(s, left, right)


def _apart(s: Context, left: Template, right: Template) -> UnsupportedError:
    one, other = kinds_met(left), kinds_met(right)
    hint = ""
    if all(kind.startswith("a tuple of ") for kind in (*one, *other)) and len({*one, *other}) > 1:  # it grows
        one, other = one[:1], [kind for kind in other if kind != one[0]][:1]
        hint = "append to a list, and make a tuple of it behind the loop: tuple(items)"
    return s.unsupported(f"a name is {any_of(one)} on one path and {any_of(other)} on another", hint)


def _exported(s: Context, template: Template) -> Template:
    """The template outside the block it was made in: variables of that block have to pass through the join."""

    def exported(one: Template) -> Template:
        match one:
            case Fixed(ScalarV(operand)) if not s.in_scope(operand):
                return ir.scalar_type(operand)
            case Fixed(TaggedScalar(_, tag, payloads)) if not all(map(s.in_scope, (tag, *payloads))):
                return varying(one)
            case Fixed(ObjectV(var)) if not s.in_scope(var):
                return varying(one)
        return one

    return mapped(template, exported)


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
        if s.elements.in_body or s.loops.looping or s.python.strict or s.frame.namespace.trusted:
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


def leaves_of(s: Context, value: Value, template: Template, like: Value | None = None) -> list[ir.Operand]:
    """The operands of a value for a template, converted where they stand; dummies where a path has no value.

    `like` is the value of the other path.
    """
    b = s.builder
    match template:
        case EitherT(kinds):
            return s.scalar_leaves(value, kinds, like)
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
            return [s.boxed(NONE if isinstance(value, UnboundV | NeverV) else value).var]
        case Structure(VariantV()):
            return s.union_leaves(value, template, like)
        case Structure(_, parts) if isinstance(value, UnboundV | NeverV):
            return [leaf for part in parts for leaf in leaves_of(s, value, part)]
        case Structure(container, parts):
            own = form_of(container).convert(s, container, value)
            return [leaf for part, one in zip(parts, parts_of(own), strict=True) for leaf in leaves_of(s, one, part)]
    return []


def value_of(s: Context, template: Template, variables: list[ir.Var]) -> Value:
    """The value a join gives; consumes its variables from the front of the list."""
    match template:
        case None:
            return NeverV()
        case Scalar():
            return ScalarV(variables.pop(0))
        case EitherT(kinds, rare):
            return s.scalar_of(kinds, variables, rare)
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
        case Structure(like, parts):
            return form_of(like).carried(s, rebuild(like, tuple(value_of(s, part, variables) for part in parts)))
    raise AssertionError(template)
