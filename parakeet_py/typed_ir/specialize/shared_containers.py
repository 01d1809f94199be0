"""Lists and dicts that the caller sees to be one object, by the result or by attributes: `return rows, rows[best]`.

Known containers are told apart by their values, those in columns by their memory. What lies in columns is a copy: there
it is recorded which containers become items, in which loop, and which have been read. Where one could be an item twice,
or is seen beside the list that has it, a list of copies is not what Python gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from parakeet_py.typed_ir.specialize.forms import form_of, is_container, is_list, parts_of
from parakeet_py.typed_ir.specialize.paths.templates import RowT, Structure, Template
from parakeet_py.typed_ir.specialize.state import Row
from parakeet_py.typed_ir.specialize.values import DictV, MapV, TupleV, Value, VariantV

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


_HINT = "give it back once, or a copy of it (list(row), row[:]), where it need not be the very object"


def read(s: Context, item: Value, of: Value) -> Value:
    """An item that a list or dict in columns has at some place."""
    for one in containers_in(item):
        s.rows.read[id(one)] = Row(one, of, -1)
    return item


def in_turn(s: Context, item: Value, inner: int = 0) -> Value:
    """An item that a loop reads, one more than those around if `inner`; the next iteration reads another one."""
    for one in containers_in(item) if s.rows.read else ():
        if id(one) in s.rows.read:
            s.rows.read[id(one)] = s.rows.read[id(one)]._replace(depth=depth(s) + inner)
    return item


def taken_out(s: Context, item: Value) -> Value:
    """An item that is one no longer."""
    for one in containers_in(item):
        s.rows.read.pop(id(one), None)
    return item


def put(s: Context, item: Value, inner: int = 0) -> None:
    """A value becomes an item of a list in columns, in a loop more than those around if `inner`."""
    for one in containers_in(item):
        s.rows.put.append((one, depth(s) + inner))


def copied(s: Context, value: Value) -> None:
    """The items of a list become those of another one, too."""
    if has_containers(value):
        s.rows.copied.append(value)


def may_be(s: Context, value: Value, other: Value) -> None:
    """The containers in a value are, on some path at least, those in another one, or what a change has made of them."""
    if value is other:
        return
    if is_container(value):
        known = s.arguments.lists, s.python.made, s.rows.read, s.arguments.chosen
        if is_container(other) and any(id(other) in one for one in known):
            before = s.arguments.chosen.get(id(value), (value, ()))[1]
            s.arguments.chosen[id(value)] = value, (*before, other)
        if is_in_columns(value):
            return
    parts, others = parts_of(value), parts_of(other)
    if type(value) is type(other) and len(parts) == len(others):
        for one, its in zip(parts, others, strict=True):
            may_be(s, one, its)
    elif isinstance(value, VariantV):
        for one in parts:
            may_be(s, one, other)
    elif isinstance(other, VariantV):
        for one in others:
            may_be(s, value, one)


def check_result(s: Context, values: Sequence[Value]) -> None:
    """Refuse, or make an object of Python where it is made, what the caller would see not to be one object."""
    found = [one for value in values for one in containers_in(value)]
    shown: set[int] = set()
    for one in found:
        s.need_whole(one)
        same = list(origins(s, one))
        if not shown.isdisjoint(map(id, same)):
            made = s.python.made.get(id(one))
            if made is None or len(same) > 1 or made.fact in s.facts.known:  # it changes, or is one of several
                raise s.unsupported(f"{s.describe(one)} that stands twice in what the caller is given", _HINT)
            s.facts.note(made.fact)
        shown.update(map(id, same))
    rows = shown & s.rows.read.keys()
    if len(rows) > 1 or any(not isinstance(one, TupleV | DictV) and has_containers(one) for one in found):
        both = [*(s.rows.read[row].of for row in rows), *s.rows.copied]
        if len(rows) > 1 or _are_shown(s, both, shown) or _is_put_twice(s, shown):
            raise s.unsupported("lists of lists or dicts of which the caller may see one twice", _HINT)


def _are_shown(s: Context, values: Sequence[Value], shown: set[int]) -> bool:
    """Is one of some containers shown, or are two of them one?"""
    seen = set(shown)
    for value in values:
        same = set(map(id, origins(s, value)))
        if not seen.isdisjoint(same):
            return True
        seen |= same
    return False


def _is_put_twice(s: Context, shown: set[int]) -> bool:
    """May a container be an item twice, or besides be one of those shown?"""
    before = set(shown)
    for one, depth in s.rows.put:
        same = list(origins(s, one))
        for each in same:
            if id(each) in before:
                return True
            row = s.rows.read.get(id(each))
            if row is not None:
                around = (s.python.made[id(of)].depth for of in origins(s, row.of) if id(of) in s.python.made)
                again = min(around, default=depth) < row.depth - 1  # the loop that reads it is run several times
                if again or row.depth < depth or _are_shown(s, [row.of], shown):
                    return True
            elif id(each) in s.python.made and s.python.made[id(each)].depth < depth:
                return True
        before |= set(map(id, same))
    return False


def depth(s: Context) -> int:
    """How many loops are around, comprehensions among them."""
    return s.loops.looping + sum(frame.function.name == "element" for frame in s.frames)


def origins(s: Context, value: Value) -> Iterator[Value]:
    """A container and those that it may be, by the path that was taken."""
    found = {id(value): value}
    pending = [value]
    while pending:
        one = pending.pop()
        yield one
        for other in s.arguments.chosen.get(id(one), (None, ()))[1]:
            if id(other) not in found:
                found[id(other)] = other
                pending.append(other)


def has_containers(value: Value) -> bool:
    """Is this a list or dict of which items are containers?"""
    if isinstance(value, TupleV | DictV):
        return is_container(value) and any(map(is_container, parts_of(value)))
    if isinstance(value, MapV):
        return has_containers(value.entries)
    return form_of(value).nested(value)


def is_of_containers(template: Template) -> bool:
    if isinstance(template, Structure):
        like = template.like
        return is_container(like) or any(map(is_of_containers, template.parts))
    return isinstance(template, RowT)


def containers_in(value: Value) -> Iterator[Value]:
    if is_container(value):
        yield value
    if is_in_columns(value):
        return
    for part in parts_of(value):
        yield from containers_in(part)


def is_in_columns(value: Value) -> bool:
    """Is it a list, dict or set whose items are not known one by one?"""
    return isinstance(value, MapV) or (is_list(value) and not isinstance(value, TupleV))
