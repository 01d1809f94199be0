"""Changes of lists, dicts and sets: of what is known of them, or of what stands for them when that is not enough.

`append`, item assignment, `sort` and the others are values of `ssa.ChangeList`: the frontend has seen that the
object has one owner (`frontend/ownership`). A list of known length stays one as long as the change is known, too; then
it becomes one in columns (`dynamic_lists`), or of arrays (`ragged_arrays`), a dict a `MapV` (`hash_maps`).
"""

from __future__ import annotations

import collections
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.frontend import ssa
from parakeet_py.frontend.ownership.changes import GIVING
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.arrays import indexing, record_arrays
from parakeet_py.typed_ir.specialize.arrays.array_store import store_array
from parakeet_py.typed_ir.specialize.arrays.index_entries import position
from parakeet_py.typed_ir.specialize.containers import (
    array_lists,
    hash_maps,
    nested_list_changes,
    ragged_arrays,
    sorted_lists,
    sorting,
)
from parakeet_py.typed_ir.specialize.containers.array_lists import shown
from parakeet_py.typed_ir.specialize.containers.dynamic_lists import (
    NO_ITEMS,
    append,
    as_grown,
    extend,
    insert,
    is_table,
    item_template,
    pop,
    popleft,
    replace_item,
    reversed_list,
    subscript,
    without,
)
from parakeet_py.typed_ir.specialize.forms import array_of, form_of, is_container, is_list
from parakeet_py.typed_ir.specialize.instances import instance_lists, values
from parakeet_py.typed_ir.specialize.paths import iterables, tagged_scalars
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    DictV,
    MapV,
    NeverV,
    RecordV,
    ScalarV,
    SliceV,
    Static,
    TimeV,
    TupleV,
    Unknown,
    Value,
    is_known,
    is_none,
    known,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


_ADDING = ("append", "appendleft", "extend", "insert", "set")


def change(s: Context, op: ssa.ChangeList) -> list[Value]:
    """The outs of a change: the new list, for `pop` after the item."""
    held, *args = s.settle([s.value(op.object), *(s.value(arg) for arg in op.args)])
    if isinstance(held, NeverV):
        return [NeverV()] * (2 if op.change in GIVING else 1)
    s.instances.list_changes += 1
    put: list[Value] = []  # of whatever type it is
    if op.change in _ADDING and not isinstance(held, ArrayV | TimeV | DictV | MapV):
        put = args[-1:]
    if op.at is not None:
        (at,) = s.settle([s.value(op.at)])
        args = [values.keep(s, arg, held) for arg in args]
        return nested_list_changes.change(s, held, at, op.change, args)
    chosen = args[: len(args) - len(put)]
    outs = tagged_scalars.each(s, chosen, lambda *given: changed(s, op.change, held, [*given, *put]))
    if is_container(outs[-1]):
        shared_containers.may_be(s, outs[-1], held)
    for item in outs[:-1]:
        shared_containers.taken_out(s, item)
    return outs


def changed(s: Context, kind: str, held: Value, args: list[Value]) -> list[Value]:
    """The same for values."""
    args = [values.keep(s, arg, held) for arg in args]
    instance_lists.may_change(s, held, kind)
    if kind == "deque":
        if not isinstance(args[0], Static) or args[0].object is not collections.deque:
            raise s.unsupported("a deque that is not collections.deque")
        return [s.call(Static(list), [shown(s, held)], {})]
    if kind in _WITH_DEFAULTS:
        return [_with_defaults(s, kind, held, args)]
    if kind == "appendleft":
        kind, args = "insert", [py(0), *args]
    if kind == "set" and (isinstance(held, ArrayV | TimeV | RecordV) or record_arrays.is_records(s, held)):
        s.set_item(held, args[0], args[1])
        return [held]
    if isinstance(held, ArrayV | TimeV) and kind == "sort":
        s.call_method(held, "sort", args, {})
        return [held]
    if isinstance(held, ArrayV | TimeV) and kind == "iadd":
        return [s.inplace("add", held, args[0])]
    if kind == "iadd" and is_list(held):
        if isinstance(args[0], ArrayV) or (isinstance(args[0], ScalarV) and not args[0].python):
            return [s.binary("add", shown(s, held), args[0])]  # which NumPy does, and it makes an array
        kind = "extend"
    if isinstance(held, TupleV) and held.kind == "list" and kind not in sorted_lists.FUNCTIONS:
        found = _change_known(s, held, kind, args)
        if found is not None:
            return found
    if isinstance(held, DictV):
        found = _change_dict(s, held, kind, args)
        if found is not None:
            return found
    if isinstance(held, DictV | MapV):
        return hash_maps.change(s, held, kind, args)
    if not is_list(held):
        raise s.unsupported(f"a change of {s.describe(held)}")
    of_form = form_of(held).change
    if of_form is not None:
        return of_form(s, held, kind, args)
    if kind in ("set", "delete") and isinstance(args[0], SliceV):
        return [_part_replaced(s, held, args[0], args[1] if kind == "set" else TupleV((), "list"))]
    adds = kind in ("append", "insert", "set") or (kind in sorted_lists.FUNCTIONS and len(args) > 1)
    if kind == "heappop" and isinstance(held, TupleV) and not held.items:
        s.check(ir.Const(False, PYBOOL), "IndexError", "index out of range")
        return [NeverV(), NeverV()]
    grown = as_grown(s, held, item_template(s, held, [args[-1]] if adds else []))
    if kind in sorted_lists.FUNCTIONS:
        return sorted_lists.change(s, grown, kind, args[0], args[1:])
    match kind, args:
        case "append", [item]:
            return [append(s, grown, item)]
        case "extend", [items]:
            return [extend(s, grown, items)]
        case "insert", [index, item]:
            return [insert(s, grown, index, item)]
        case "pop", _:
            return list(pop(s, grown, args[0] if args else None))
        case "popright", []:
            return list(pop(s, grown, None, NO_ITEMS))
        case "popleft", []:
            return list(popleft(s, grown))
        case "delete", [index]:
            place = position(s, grown.length.operand, index, "list assignment index out of range")
            return [without(s, grown, place)]
        case "set", [index, item]:
            return [replace_item(s, grown, index, item)]
        case "clear", []:
            return [TupleV((), "list")]
        case "reverse", []:
            return [reversed_list(s, grown)]
        case "sort", []:
            return [sorting.sort(s, grown if is_table(grown) else shown(s, grown))]
        case "remove", [item]:
            found_at = sorting.place_of(s, shown(s, grown), item, "list.remove(x): x not in list")
            return [NeverV()] if found_at is None else [without(s, grown, found_at.operand)]
    raise s.unsupported(f".{kind}() of a list")


_WITH_DEFAULTS = {"Counter": collections.Counter, "defaultdict": collections.defaultdict}


def _with_defaults(s: Context, kind: str, held: Value, args: list[Value]) -> Value:
    """A new Counter of some items, or a new defaultdict: a dict, of which the frontend knows what it has not."""
    if not isinstance(args[0], Static) or args[0].object is not _WITH_DEFAULTS[kind]:
        raise s.unsupported(f"a {kind} that is not collections.{kind}")
    if kind == "defaultdict":
        if isinstance(args[1], Static) and args[1].object is not type(known(args[2])):
            raise s.unsupported("a defaultdict of something else than it seems")
        return DictV(())
    if isinstance(held, DictV | MapV):
        raise s.unsupported("a Counter of a dict")
    return s.call_plain("counted", [held])


def _change_dict(s: Context, held: DictV, change: str, args: Sequence[Value]) -> list[Value] | None:
    """The change of a dict by a known key, as are all that it has; None where it is not."""
    entries = dict(held.items)
    if change == "clear":
        return [DictV(())]
    if change not in ("set", "delete", "pop") or not is_known(args[0]) or len(args) > 1 + (change == "set"):
        return None
    key = known(args[0])
    if not isinstance(key, Hashable) or isinstance(key, tuple | slice):
        return None
    if change == "set":
        entries[key] = args[1]
        return [DictV(tuple(entries.items()))]
    if key not in entries:
        return None
    item = entries.pop(key)
    made = DictV(tuple(entries.items()))
    return [item, made] if change == "pop" else [made]


def _part_replaced(s: Context, value: Value, part: SliceV, new: Value) -> Value:
    """value[start:stop] = new, and `del value[start:stop]`, as a new list."""
    listed = shown(s, s.call(Static(list), [new], {}))
    if not is_none(part.step):
        return _items_replaced(s, value, part, listed)
    held = as_grown(s, value, item_template(s, value))
    b = s.builder
    length = held.length.operand

    def bound(value: Value, otherwise: ir.Operand) -> ir.Operand:
        if is_none(value):
            return otherwise
        if not isinstance(value, ScalarV) or value.type not in (PYINT, PYBOOL):
            raise s.unsupported(f"{s.describe(value)} as the bound of a slice")
        place = b.cast(value.operand, PYINT)
        counted = b.select(b.prim("lt", place, ZERO, type=PYBOOL), b.prim("add", place, length), place)
        return b.index_min(b.max0(counted), length)

    first = bound(part.lower, ZERO)
    last = b.prim("maximum", first, bound(part.upper, length))
    before = subscript(s, held, SliceV(NONE, ScalarV(first), NONE))
    behind = subscript(s, held, SliceV(ScalarV(last), NONE, NONE))
    return s.binary("add", s.binary("add", shown(s, before), listed), shown(s, behind))


def _items_replaced(s: Context, value: Value, part: SliceV, new: Value) -> Value:
    """value[start:stop:step] = new: as many items, of the type that the others have."""
    held = as_grown(s, value, item_template(s, value))
    numbers = array_lists.line(s, new)
    if numbers is None:
        raise s.unsupported("a slice with a step of a list that is changed")
    array = numbers.array if isinstance(new, TupleV) else s.as_array(new)  # no part of the list itself
    own = array_of(shown(s, held))
    if not isinstance(array, ArrayV) or own is None or array_lists.in_a_column(numbers).item != held.item:
        raise s.unsupported("a slice of a list assigned, with items of another type")
    view = indexing.read(s, own, part)
    assert isinstance(view, ArrayV)
    sizes = [array.extents[0], view.extents[0]]
    text = "attempt to assign sequence of size {0} to extended slice of size {1}"
    s.check(s.builder.prim("eq", *sizes, type=PYBOOL), "ValueError", text, sizes)
    store_array(s, view, array)
    return held


def _change_known(s: Context, held: TupleV, change: str, args: Sequence[Value]) -> list[Value] | None:
    """The change of a list of known length; None where the length or place depends on values."""
    items = list(held.items)
    try:
        match change, args:
            case "append", [item]:
                ragged_arrays.note_append(s, item)
                items.append(item)
            case "extend", [more]:
                found = iterables.static_items(more) if isinstance(more, TupleV) else None
                if found is None:
                    return None
                items += found
            case "insert", [index, item]:
                items.insert(known(index), item)
            case "clear", []:
                items = []
            case "reverse", []:
                items.reverse()
            case (("popleft" | "popright"), []):
                if not items:
                    s.check(ir.Const(False, PYBOOL), "IndexError", NO_ITEMS)
                    return [NeverV(), NeverV()]
                item = items.pop(0 if change == "popleft" else -1)
                return [item, TupleV(tuple(items), "list")]
            case "pop", _:
                if not items:
                    s.check(ir.Const(False, PYBOOL), "IndexError", "pop from empty list")
                    return [NeverV(), NeverV()]
                item = items.pop(*(known(arg) for arg in args))
                return [item, TupleV(tuple(items), "list")]
            case "set", [index, item]:
                if not isinstance(index, SliceV):
                    items[known(index)] = item
                else:
                    new = iterables.static_items(item)
                    part = known(index)
                    if new is None or (part.step not in (None, 1) and len(items[part]) != len(new)):
                        return None
                    items[part] = new
            case "delete", [index]:
                del items[known(index)]
            case "sort", [] if len(items) < 2:
                pass
            case _:  # what looks at items: places depend on their values
                return None
    except (Unknown, IndexError, TypeError):
        return None
    return [TupleV(tuple(items), "list")]
