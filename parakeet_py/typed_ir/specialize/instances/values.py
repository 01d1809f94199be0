"""Instances that a function makes, as values: what leaves a block, and what a result is put together from.

See `instances`. An object that changes is known to the block that has made it, by its attributes; outside it is what
they hold in the end. Python makes the objects of a result when it is boxed, without calling `__init__`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from parakeet_py.signature.results import NewInstance
from parakeet_py.typed_ir.specialize.forms import form_of, parts_of, rebuild
from parakeet_py.typed_ir.specialize.instances import instance_lists
from parakeet_py.typed_ir.specialize.instances.instances import frozen, is_instance
from parakeet_py.typed_ir.specialize.paths import tags
from parakeet_py.typed_ir.specialize.paths.templates import Fixed, RowT, Structure, Template
from parakeet_py.typed_ir.specialize.values import ArrayV, InstanceV, ItemV, Made, RefV, Static, Value, VariantV

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def keep(s: Context, value: Value, held: Value) -> Value:
    """A value as it is put into a list: what the iteration of a loop has made, nothing changes any more."""
    if s.instances.first is not None:
        instance_lists.note(s, value)
    if s.instances.items:
        value = instance_lists.entering(s, value, held)
    new = (
        [ref for ref in _refs(value) if ref.made.root > s.loops.loop_roots]
        if s.instances.refs and s.loops.looping
        else []
    )
    if not new:
        return value
    s.instances.kept.update(ref.made for ref in new)
    return leaving(s, [value], s.loops.loop_roots)[0]


def _refs(value: Value) -> Iterable[RefV]:
    if isinstance(value, RefV):
        yield value
    yield from _refs_in(form_of(value).item(value))
    for part in parts_of(value):
        yield from _refs(part)


def _refs_in(template: Template) -> Iterable[RefV]:
    match template:
        case Fixed(value):
            yield from _refs(value)
        case RowT(item):
            yield from _refs_in(item)
        case Structure(_, inner):
            for part in inner:
                yield from _refs_in(part)


def leaving(s: Context, values: Sequence[Value], before: int) -> list[Value]:
    """Values that leave the block in which all objects after `before` have been made."""
    if not s.instances.refs:
        return list(values)
    return [_left(s, value, before) for value in values]


def _left(s: Context, value: Value, before: int, inside: tuple[Made, ...] = ()) -> Value:
    if isinstance(value, RefV):
        if value.made.root <= before:
            return value
        if value.made in inside:
            raise s.unsupported("an object that holds itself")
        return _left(s, frozen(s, value), before, (*inside, value.made))
    parts = parts_of(value)
    if not any(ref.made.root > before for ref in _refs(value)):
        return value
    if isinstance(value, VariantV):
        # options that are values of one class become one
        return tags.each_option(s, value, lambda option: _left(s, option, before, inside))
    if form_of(value).item(value) is not None:
        raise s.unsupported("a list of several objects that change")
    held = tuple(_left(s, part, before, inside) for part in parts)
    if isinstance(value, InstanceV):
        return InstanceV(value.cls, value.names, held, value.sites, value.token)
    return rebuild(value, held)


# ---- results ---------------------------------------------------------------------------------------------------------


def holds(value: Value) -> bool:
    """Is there an instance in a value?"""
    return is_instance(value) or _is_of_instances(form_of(value).item(value)) or any(map(holds, parts_of(value)))


def _is_of_instances(template: Template) -> bool:
    match template:
        case Fixed(value):
            return holds(value)
        case RowT(item):
            return _is_of_instances(item)
        case Structure(like, inner):
            return isinstance(like, InstanceV) or any(map(_is_of_instances, inner))
    return False


def check_result(s: Context, value: Value, inside: tuple[Made, ...] = ()) -> None:
    """Refuse what cannot be put together: an object that holds itself."""
    if isinstance(value, RefV):
        if value.made in inside:
            raise s.unsupported("an object that holds itself")
        inside = (*inside, value.made)
        value = frozen(s, value)
    for part in parts_of(value):
        check_result(s, part, inside)


def parts(s: Context, value: Value) -> tuple[Any, tuple[str, ...], tuple[Value, ...]]:
    """The class of an instance, the names of its attributes, and what they hold."""
    if isinstance(value, RefV):
        value = frozen(s, value)
    if isinstance(value, ItemV):
        value = instance_lists.whole(s, value)
    assert isinstance(value, InstanceV)
    return value.cls, value.names, value.items


def boxed(s: Context, value: Value) -> tuple[NewInstance, tuple[Value, ...]]:
    """What makes the object of a result, and of what; each object stands in the result once."""
    token = _ITEM if isinstance(value, ItemV) else instance_lists.token_of(value)
    cls, names, items = parts(s, value)
    others = s.instances.returned.setdefault(cls, [])
    single = [one for one in others if not isinstance(one, ArrayV)]
    unclear = (token is _ITEM and others) or _ITEM in others or (single and None in (token, *single))
    if (token is not None and token in others) or (unclear and not is_frozen(cls)):
        raise s.unsupported("an object that may stand in a result twice")
    others.append(token)
    return NewInstance(cls, names), items


_ITEM = "an item of a list"


def list_boxed(
    s: Context,
    cls: Any,
    names: tuple[str, ...],
    templates: Sequence[Template],
    columns: Sequence[ArrayV],
) -> NewInstance:
    """What makes the objects in a list of the result."""
    if not is_frozen(cls):
        if cls not in s.instances.items:  # is each of them there once?
            s.instances.listed.add(cls)
            instance_lists.change_items(s, cls)
        others = s.instances.returned.setdefault(cls, [])
        if not columns or columns[0] in others or _ITEM in others:
            raise s.unsupported("an object that may stand in a result twice")
        others.append(columns[0])
    held = [(name, one.value) for name, one in zip(names, templates, strict=True) if isinstance(one, Fixed)]
    if not all(isinstance(one, Static) and type(one.object) in (str, type(None)) for _, one in held) or not columns:
        raise s.unsupported("a list of such objects")
    return NewInstance(cls, names, tuple((name, one.object) for name, one in held if isinstance(one, Static)))


def is_frozen(cls: Any) -> bool:
    """Is this a dataclass whose instances cannot be changed, so that equal ones are as good?"""
    params = getattr(cls, "__dataclass_params__", None)
    return params is not None and params.frozen and params.eq
