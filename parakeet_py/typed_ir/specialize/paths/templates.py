"""Templates: what values of one name have in common where paths meet; `join` finds the least that two values fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Final, TypeAlias

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import OBJECT, PYINT, Array, Scalar, Type
from parakeet_py.signature.describe import counted_axes
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.forms import form_of, parts_of
from parakeet_py.typed_ir.specialize.type_names import described, with_article
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    MethodV,
    NeverV,
    ObjectV,
    RefV,
    ScalarV,
    Static,
    TaggedScalar,
    TupleV,
    UnboundV,
    Value,
    VariantV,
    py,
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
    """A list of any length as an item of another list: three numbers, and items in a pool (see `nested_lists`)."""

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
        case VariantV():  # a join has all of its variables even where both paths bring the same
            return Structure(value, tuple(template_of(part, varying=True) for part in parts_of(value)))
        case _:
            return Structure(value, tuple(template_of(part, varying=varying) for part in parts_of(value)))


def mapped(template: Template, change: Callable[[Template], Template]) -> Template:
    """The template with its innermost parts changed."""
    if isinstance(template, Structure):
        return Structure(template.like, tuple([mapped(part, change) for part in template.parts]))
    return change(template)


def arrays_in(templates: Iterable[Template]) -> Iterator[ArrayT]:
    """The templates of arrays in some templates."""
    for one in templates:
        if isinstance(one, ArrayT):
            yield one
        elif isinstance(one, Structure):
            yield from arrays_in(one.parts)


def with_inner_roots(template: Template, before: int, inside: int) -> Template:
    """The template of what a loop's iteration gives, all memory it has made itself (roots after `before`) as one."""
    match template:
        case ArrayT(kind, extents, roots, readonly, nonunit, order) if any(root > before for root in roots):
            kept = frozenset(root for root in roots if root <= before) | {inside}
            return ArrayT(kind, extents, kept, readonly, nonunit, order)
        case Structure(like, parts):
            like = form_of(like).outside(like, before, inside)
            return Structure(like, tuple(with_inner_roots(part, before, inside) for part in parts))
    return template


def varying(template: Template) -> Template:
    """The template without fixed numbers."""
    return mapped(template, _varying)


def _varying(template: Template) -> Template:
    match template:
        case Fixed(value):
            return template_of(value, varying=True)
        case RowT(item):
            return RowT(varying(item))
    return template


def kinds_met(template: Template) -> list[str]:
    """What a value may be, in words, each kind once; tuples with their lengths."""
    match template:
        case EitherT(kinds):
            return [with_article(str(kind).removeprefix("py")) for kind in kinds]
        case Fixed(VariantV(_, values)):
            return kinds_met(Structure(VariantV(py(0), ()), (None, *(Fixed(value) for value in values))))
        case Structure(VariantV(), (_, *options)):
            return list(dict.fromkeys(kind for option in options for kind in kinds_met(option)))
        case Structure(TupleV(items, kind, None)) | Fixed(TupleV(items, kind, None)):
            return [f"{with_article(kind)} of {len(items)} {'item' if len(items) == 1 else 'items'}"]
    return [describe(template)]


def any_of(kinds: Sequence[str]) -> str:
    """Kinds of values in a row, of many the first."""
    return " or ".join(kinds if len(kinds) <= MOST_KINDS else [*kinds[: MOST_KINDS - 1], "others"])


MOST_KINDS: Final = 4


def describe(template: Template) -> str:
    match template:
        case Scalar():
            return with_article(str(template).removeprefix("py"))
        case EitherT():
            return any_of(kinds_met(template))
        case ArrayT(kind):
            return f"an array of {counted_axes(kind.rank)} of {kind.dtype}"
        case Fixed(value) | Structure(value, _):
            return described(value)
        case RowT():
            return "a list"
    return "nothing"


def types_of(template: Template) -> list[Type]:
    """The types of the variables that a template needs."""
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
