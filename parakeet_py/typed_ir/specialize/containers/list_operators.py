"""One list after the other: `left + right`, of lists whose lengths are not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import Scalar
from parakeet_py.typed_ir.specialize.containers import array_lists, dynamic_lists
from parakeet_py.typed_ir.specialize.containers.array_lists import line
from parakeet_py.typed_ir.specialize.forms import array_of, is_list
from parakeet_py.typed_ir.specialize.values import ArrayV, Static, TupleV, Value, grows

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def together(s: Context, left: Value, right: Value) -> Value | None:
    """left + right; None if these are no such lists."""
    if not all(is_list(side) and (isinstance(side, TupleV) or array_of(side) is not None) for side in (left, right)):
        return None
    return _concatenated(s, left, right) or _mixed(s, left, right)


def _concatenated(s: Context, left: Value, right: Value) -> Value | None:
    """One list after the other, of numbers of one type, where their lengths are not known."""
    lines = [line(s, side) for side in (left, right) if not (isinstance(side, TupleV) and not side.items)]
    found = [one for one in lines if one is not None]
    if len(found) < len(lines) or len({(one.kind, one.array.dtype) for one in found}) != 1:
        return None
    made = s.call(Static(np.concatenate), [TupleV(tuple(one.array for one in found))], {})
    assert isinstance(made, ArrayV)
    return array_lists.of_scalars(made, Scalar(made.dtype, not found[0].kind))


def records_together(s: Context, left: Value, right: Value) -> Value | None:
    """One list after the other, where the function changes one of them and its items are tuples."""
    sides = (left, right)
    if not any(map(dynamic_lists.is_table, sides)):
        return None
    return _mixed(s, left, right) if all(map(is_list, sides)) else None


def _mixed(s: Context, left: Value, right: Value) -> Value | None:
    """One list after the other, of items of several types."""
    sides = (left, right)
    if not all(map(dynamic_lists.has_item_type, sides)) or any(
        grows(one) and dynamic_lists.in_columns(one) is None for one in sides
    ):
        return None
    mark = s.checkpoint()
    try:
        own, more = (dynamic_lists.item_template(s, side) for side in (left, right))
        made = dynamic_lists.as_grown(s, left, dynamic_lists.join_items(s, [own, more]))
        made = dynamic_lists.copied(s, made) if grows(left) else made
        return dynamic_lists.extend(s, made, right)
    except UnsupportedError:
        s.rollback(mark)
        return None
