"""Forms of values: which values a value is made of, and what two of one form have in common.

A value class (of lists: that of their form) has one entry here, or in the file that its operations are in: its parts,
how a value is put together of other parts, and what besides the parts has to be equal where two values meet
(`same_form`). Classes without an entry have no parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.lazy_modules import LateTable
from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    ClosureV,
    ComprehensionV,
    DictV,
    ErrorV,
    GeneratorV,
    InstanceV,
    ItemAt,
    ItemV,
    IteratorV,
    MapV,
    MessageV,
    MethodV,
    NeverV,
    ObjectV,
    RangeV,
    RecordV,
    RefV,
    ScalarV,
    SliceV,
    SuperV,
    TextV,
    TupleV,
    UnboundV,
    Value,
    VariantV,
    class_of_form,
)

Parts = tuple[Value, ...]
MAX_PLACES = 32  # that are told apart of one exception


@record
class Form:
    """Of a class of values: the parts of one; one with other parts; what else makes two of them alike.

    `joined` gives what two that are alike have in common besides their parts, `convert(s, like, value)` a value as
    one of this form where paths meet, `carried` what comes out there, and `outside(value, before, inside)` what is
    known of it behind a loop, all memory that an iteration has made (roots after `before`) as one, `inside`.

    `noun` is what messages call one. Of containers: its class in Python, its length, the length and the item at a
    place for a loop, `value[index]`, an assignment to that (False: it cannot be done there), a change of the whole, and
    the array that NumPy makes of it, of a dtype if one is given; None where it has none.

    Of lists: `elements` is the array whose elements or rows the items are, in the very memory, and `item` the template
    of what lies in columns; `own` says whether items can be assigned, `nested` whether they are lists or dicts; `read`
    gives the value for one reader, that is the last one (then the memory may be taken over) or is not.
    """

    parts: Callable[[Any], Parts]
    rebuild: Callable[[Any, Any], Value]
    alike: Callable[[Any], object] = lambda value: None
    joined: Callable[[Any, Any], Value] = lambda one, other: one
    convert: Callable[[Any, Any, Value], Value] = lambda s, like, value: value
    carried: Callable[[Any, Any], Value] = lambda s, value: value
    outside: Callable[[Any, int, int], Value] = lambda value, before, inside: value
    noun: str = ""
    type: type | None = None
    length: Callable[[Any, Any], ir.Operand] | None = None
    places: Callable[[Any, Any], tuple[ir.Operand, ItemAt] | None] | None = None
    subscript: Callable[[Any, Any, Value], Value] | None = None
    store: Callable[[Any, Any, Value, Value], bool] | None = None
    change: Callable[[Any, Any, str, Sequence[Value]], list[Value]] | None = None
    array: Callable[[Any, Any, str | None], ArrayV] | None = None
    elements: Callable[[Any], ArrayV | None] = lambda value: None
    item: Callable[[Any], Any] = lambda value: None
    own: Callable[[Any], bool] = lambda value: False
    nested: Callable[[Any], bool] = lambda value: False
    read: Callable[[Any, bool], Value] = lambda value, once: value


def parts_of(value: Value) -> Parts:
    return form_of(value).parts(value)


def rebuild(like: Value, parts: Parts) -> Value:
    """A value like this one, of other parts."""
    return form_of(like).rebuild(like, parts)


def same_form(left: Value, right: Value) -> bool:
    """True when two values differ in their parts only."""
    if type(left) is not type(right) or isinstance(left, VariantV):  # see `tagged_unions`
        return False
    form = form_of(left)
    return form is form_of(right) and bool(form.alike(left) == form.alike(right))


def array_of(value: Value) -> ArrayV | None:
    """An array, or that of which a list shows the elements; None for other values."""
    return value if isinstance(value, ArrayV) else form_of(value).elements(value)


def is_list(value: Value) -> bool:
    return form_of(value).type is list or (isinstance(value, TupleV) and value.kind == "list")


def is_container(value: Value) -> bool:
    return isinstance(value, DictV | MapV) or is_list(value)


def arrays_of(values: Iterable[Value]) -> Iterator[ArrayV]:
    """The arrays in some values."""
    for value in values:
        if isinstance(value, ArrayV):
            yield value
        else:
            yield from arrays_of(parts_of(value))


def roots_of(*values: Value) -> frozenset[int]:
    """The memory of all arrays in some values."""
    return frozenset().union(*(array.roots for array in arrays_of(values)))


def alike(value: Value) -> object:
    """What besides the parts has to be equal in two values of one form."""
    return form_of(value).alike(value)


def form_of(value: Value) -> Form:
    """The form of a value; that of one without parts for classes that have none of their own."""
    return FORMS.find(class_of_form(value)) or _WHOLE


def _older(one: ItemV, other: ItemV) -> ItemV:
    version, depth = min(one.version, other.version), min(one.depth, other.depth)
    return one if (one.version, one.depth) == (version, depth) else replace(one, version=version, depth=depth)


def _closure(like: ClosureV, parts: Parts) -> ClosureV:
    return replace(like, captures=parts[: len(like.captures)], defaults=parts[len(like.captures) :])


def _generator(like: GeneratorV, parts: Parts) -> GeneratorV:
    count = len(like.frame.env)
    env = dict(zip(like.frame.env, parts[:count], strict=True))
    free = dict(zip(like.frame.free, parts[count:], strict=True))
    return GeneratorV(replace(like.frame, env=env, free=free), like.changes)


def _same_generator(one: GeneratorV) -> object:
    frame = one.frame
    code = id(frame.function), id(frame.namespace.owner), id(frame.closure)
    return *code, one.changes, [*frame.env], [*frame.free]


def _in_all_places(one: ErrorV, other: ErrorV) -> ErrorV:
    """An exception that has been raised where one of two has."""
    places = tuple(dict.fromkeys((*one.places, *other.places)))
    known = one.places and other.places and len(places) <= MAX_PLACES
    return replace(one, places=places if known else ())


def _in_places(s: Any, like: ErrorV, value: Value) -> Value:
    """An exception with the number that its place has among those of another one."""
    if not isinstance(value, ErrorV) or value.places == like.places:
        return value
    at: ir.Operand = ir.ZERO
    for number, place in reversed([*enumerate(value.places)] if like.places else []):
        here = ir.Const(like.places.index(place), PYINT)
        at = here if number == len(value.places) - 1 else s.builder.select(is_number(s, value.at, number), here, at)
    return replace(value, places=like.places, at=at)


def is_number(s: Any, at: ir.Operand, number: int) -> ir.Operand:
    return s.builder.prim("eq", at, ir.Const(number, PYINT), type=PYBOOL)  # type: ignore[no-any-return]


def _whole(noun: str = "") -> Form:
    """The form of a class whose values have no parts."""
    return Form(lambda one: (), lambda one, parts: one, noun=noun)


_WHOLE = _whole()

FORMS: LateTable[type, Form] = LateTable()
FORMS |= {
    TupleV: Form(
        lambda one: one.items,
        lambda one, parts: TupleV(parts, one.kind, one.named),
        lambda one: (one.kind, one.named, len(one.items)),
    ),
    InstanceV: Form(
        lambda one: one.items,
        lambda one, parts: InstanceV(one.cls, one.names, parts, one.sites),
        lambda one: (one.cls, one.names),
        lambda one, other: one if other.sites <= one.sites else replace(one, sites=one.sites | other.sites),
        noun="instance",
    ),
    ItemV: Form(
        lambda one: (one.index, one.listed),
        lambda one, parts: ItemV(parts[0], parts[1], one.version, one.depth),
        lambda one: alike(one.listed),
        _older,
        noun="instance",
    ),
    SuperV: Form(
        lambda one: (one.object,),
        lambda one, parts: SuperV(parts[0], one.cls, one.kind),
        lambda one: (one.cls, one.kind),
        noun="super object",
    ),
    VariantV: Form(
        lambda one: (one.tag, *one.options),
        lambda one, parts: VariantV(parts[0], parts[1:]),
        noun="value of varying type",
    ),
    TextV: Form(
        lambda one: (one.codes,),
        lambda one, parts: TextV(*parts),
        length=lambda s, one: one.codes.extents[0],
        noun="string",
    ),
    CharV: Form(lambda one: (one.code,), lambda one, parts: CharV(*parts), noun="string"),
    MessageV: Form(
        lambda one: one.args,
        lambda one, parts: MessageV(one.template, parts),
        lambda one: (one.template, len(one.args)),
        noun="formatted string",
    ),
    ErrorV: Form(
        lambda one: tuple(map(ScalarV, (*one.args, one.at))),
        lambda one, parts: replace(one, args=tuple(part.operand for part in parts[:-1]), at=parts[-1].operand),
        lambda one: (one.exception, one.message, len(one.args)),
        _in_all_places,
        _in_places,
        noun="exception",
    ),
    DictV: Form(
        lambda one: tuple(item for _, item in one.items),
        lambda one, parts: DictV(tuple((key, part) for (key, _), part in zip(one.items, parts, strict=True))),
        lambda one: [key for key, _ in one.items],
        noun="dict",
    ),
    SliceV: Form(lambda one: (one.lower, one.upper, one.step), lambda one, parts: SliceV(*parts), noun="slice"),
    RangeV: Form(
        lambda one: (one.start, one.stop, one.step),
        lambda one, parts: RangeV(parts[0], parts[1], parts[2], parallel=one.parallel),
        noun="range",
    ),
    RecordV: Form(
        lambda one: (one.index,),
        lambda one, parts: replace(one, index=parts[0]),
        lambda one: (one.records, one.of_list, one.copied),
        noun="item of an array or a list",
    ),
    MethodV: Form(
        lambda one: (one.object,), lambda one, parts: MethodV(parts[0], one.name), lambda one: one.name, noun="method"
    ),
    ClosureV: Form(
        lambda one: (*one.captures, *one.defaults),
        _closure,
        lambda one: (id(one.function), id(one.namespace.globals), len(one.captures), len(one.defaults)),
        noun="function",
    ),
    IteratorV: Form(
        lambda one: one.items,
        lambda one, parts: IteratorV(one.kind, parts),
        lambda one: (one.kind, len(one.items)),
    ),
    ComprehensionV: Form(
        lambda one: (one.iterable, one.element, *(() if one.condition is None else (one.condition,))),
        lambda one, parts: ComprehensionV(one.kind, parts[0], parts[1], parts[2] if parts[2:] else None, one.flatten),
        lambda one: (one.kind, one.flatten, one.condition is None),
        noun="comprehension",
    ),
    GeneratorV: Form(
        lambda one: (*one.frame.env.values(), *one.frame.free.values()), _generator, _same_generator, noun="generator"
    ),
    ObjectV: _whole("object"),
    RefV: _whole("instance"),
    UnboundV: _whole("name that nothing is bound to"),
    NeverV: _whole("value that is never computed"),
}
