"""Lists of instances that change where they stand: `for body in bodies: body.place += dt * body.speed`.

A list of instances has a column for each attribute (`dynamic_lists`). If an item of one is going to change, the walk
starts again with the items of such lists as references (`ItemV`): the columns and a place, which are looked at when an
attribute is read and stored to when one is assigned. So every object stands in one list and has no other name but
references:

* what is put into a list is an object that has been made there, and its name is not used from then on (`entering`);
* such a list is only appended to, iterated and asked for items: no copy or part of it is made (`must_stay`);
* a reference is not used after the list has grown, also not in a later iteration of a loop (`use`, `after_loop`).

Whatever else is done with them is left to Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from parakeet_py.base.types import PYBOOL
from parakeet_py.typed_ir.specialize.arrays import array_store
from parakeet_py.typed_ir.specialize.forms import form_of, parts_of
from parakeet_py.typed_ir.specialize.paths import join
from parakeet_py.typed_ir.specialize.paths.templates import RowT, Structure, Template, template_of, types_of
from parakeet_py.typed_ir.specialize.restarts import ReferencedItems
from parakeet_py.typed_ir.specialize.values import ArrayV, InstanceV, ItemV, RefV, ScalarV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

FROM_LIST = "from a list"
"""The token of an instance that has been read from the columns of a list: which object it is is not known."""


def token_of(value: Value) -> Any:
    """What is the same for one object: of an instance that is known to be one, else None."""
    token = value.made if isinstance(value, RefV) else value.token if isinstance(value, InstanceV) else None
    return None if token is FROM_LIST else token


def changes(s: Context, template: Template) -> bool:
    """Are these items of a list instances that change?"""
    match template:
        case Structure(InstanceV(cls)):
            return cls in s.instances.items
        case Structure(_, inner):
            return any(changes(s, part) for part in inner)
        case RowT(item):
            return changes(s, item)
    return False


def note(s: Context, value: Value) -> None:
    """Note the classes of the instances in a value, which stands in a list."""
    if isinstance(value, InstanceV | RefV | ItemV):
        s.instances.listed.add(_own_class(value))
    for part in parts_of(value):
        note(s, part)


def note_items(s: Context, template: Template) -> None:
    """The same of the items of a list with this template."""
    match template:
        case Structure(like, inner):
            if isinstance(like, InstanceV):
                s.instances.listed.add(like.cls)
            for part in inner:
                note_items(s, part)
        case RowT(item):
            note_items(s, item)


def change_items(s: Context, cls: Any) -> NoReturn:
    """Start again, with the items of lists as references, if there has been a list of them."""
    if cls in s.instances.items or cls not in s.instances.listed:
        raise s.unsupported("an object changed that may have other names, or is in a list")
    s.facts.restart(ReferencedItems(cls))


def entering(s: Context, value: Value, held: Value) -> Value:
    """An object as it is put into a list; there is no other reference to it from now on."""
    for cls in s.instances.items:
        if isinstance(value, RefV) and value.made.cls is cls:
            if value.made in s.instances.kept:
                raise s.unsupported("an object put into lists twice")
            if form_of(held).item(held) is not None or (s.loops.looping and value.made.root > s.loops.loop_roots):
                made = s.frozen(value)
                s.instances.kept.add(value.made)
                return made
        elif _is_of(value, cls):
            raise s.unsupported("an object that may have other names put into a list whose items change")
    return value


def _is_of(value: Value, cls: Any) -> bool:
    """Is there an instance of the class in a value?"""
    return _own_class(value) is cls or any(_is_of(part, cls) for part in parts_of(value))


def _own_class(value: Value) -> Any:
    match value:
        case InstanceV(cls):
            return cls
        case ItemV(listed=listed):
            return listed.item.like.cls
        case RefV(made):
            return made.cls
    return None


def may_change(s: Context, held: Value, kind: str) -> None:
    """Refuse changes of a list after which its items may stand elsewhere."""
    if changes(s, form_of(held).item(held)) and kind not in ("append", "clear"):
        raise s.unsupported(f".{kind}() of a list of objects that change")


def must_stay(s: Context, item: Template) -> None:
    """Refuse a copy of a list whose items change."""
    if s.instances.items and changes(s, item):
        raise s.unsupported("a copy of a list of objects that change")


# ---- references ------------------------------------------------------------------------------------------------------


def _use(s: Context, item: ItemV) -> InstanceV:
    """Where a reference is looked at: the list must not have grown since; the instance is that of the template."""
    if item.version != s.instances.list_changes:
        raise s.unsupported("an object of a list that has changed since")
    if item.depth < s.loops.looping:
        s.instances.used.append(item.depth)
    like = item.listed.item.like
    assert isinstance(like, InstanceV)
    return like


def after_loop(s: Context, changed: int, used: int, values: Sequence[Value]) -> None:
    """At the end of a loop's body, before which lists had been changed and references used so many times."""
    early = any(depth < s.loops.looping for depth in s.instances.used[used:])
    if s.instances.list_changes > changed and (early or any(map(_holds_reference, values))):
        raise s.unsupported("an object of a list that a loop changes")


def _holds_reference(value: Value) -> bool:
    return isinstance(value, ItemV) or any(map(_holds_reference, parts_of(value)))


def _columns(s: Context, item: ItemV, name: str) -> tuple[Template, tuple[ArrayV, ...]]:
    """The template of an attribute, and its columns."""
    like = _use(s, item)
    parts = item.listed.item.parts
    place = like.names.index(name)
    first = sum(len(types_of(part)) for part in parts[:place])
    return parts[place], item.listed.columns[first : first + len(types_of(parts[place]))]


def read(s: Context, item: ItemV, name: str) -> Value | None:
    """What an attribute holds now."""
    if name not in item.listed.item.like.names:
        return None
    template, columns = _columns(s, item, name)
    return join.value_of(s, template, array_store.load_leaves(s, columns, item.index.operand, types_of(template)))


def whole(s: Context, item: ItemV) -> InstanceV:
    """What all attributes hold now."""
    like = _use(s, item)
    found = [read(s, item, name) for name in like.names]
    return InstanceV(like.cls, like.names, tuple(one for one in found if one is not None), like.sites)


def write(s: Context, item: ItemV, name: str, new: Value) -> None:
    """Let an attribute hold a value, of the type that it has in all items."""
    if name not in item.listed.item.like.names:
        raise s.unsupported(f"the attribute .{name}, which an object in a list gets later")
    template, columns = _columns(s, item, name)
    (new,) = s.settle([new])
    if join.join(s, template, template_of(new, varying=True)) != template:
        raise s.unsupported(f"the attribute .{name} of an object in a list gets another type")
    leaves = join.leaves_of(s, new, template)
    array_store.store_leaves(s, columns, item.index.operand, array_store.encoded(s, leaves))


def same_place(s: Context, left: Value, right: Value) -> ScalarV | None:
    """left is right, of two references into one list; None for others."""
    if not isinstance(left, ItemV) or not isinstance(right, ItemV):
        return None
    _use(s, left), _use(s, right)
    ours, theirs = left.listed.columns, right.listed.columns
    if not ours or any(one.var is not other.var for one, other in zip(ours, theirs, strict=True)):
        return None
    return ScalarV(s.builder.prim("eq", left.index.operand, right.index.operand, type=PYBOOL))


def table_of(s: Context, items: Sequence[Value]) -> None:
    """Refuse a table of objects that change."""
    for cls in s.instances.items:
        if any(_is_of(item, cls) for item in items):
            raise s.unsupported("an object that changes, of a list, by a place that is not known")
