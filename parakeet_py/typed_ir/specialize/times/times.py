"""Times: what values of datetime64 and timedelta64 are made of.

Nothing behind the specializer knows of times: an array of them is an array of int64 over the same memory, and which
dtype it has is a part of the value here (`TimeV`). NaT is the least int64. An argument, or what an argument or a
variable holds, is still an object, too: its int64 are a hidden argument (`attribute_sources.times_name`), and what is
not compiled is handed back with the object, or, if that is an array, refused.

Units are converted to finer ones, as NumPy does: without a look at whether that fits. Times that are known when the
function is compiled NumPy converts.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.types import INT64, PYBOOL
from parakeet_py.signature.attribute_sources import times_name
from parakeet_py.signature.specs import ObjectSpec
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import indexing
from parakeet_py.typed_ir.specialize.arrays.elementwise import elementwise
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.forms import FORMS, Form, parts_of
from parakeet_py.typed_ir.specialize.values import ArrayV, ItemAt, ObjectV, ScalarV, Static, TimeV, TupleV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

NAT = ir.Const(-(1 << 63), INT64)


def read(s: Context, value: Value) -> Value:
    """An argument, or what one holds, as the time that it is; other values as they are."""
    if not isinstance(value, ObjectV):
        return value
    found = known_object(s, value)
    spec = None if found is None else s.arguments.spec(s.arguments.leaf_param[value.var])
    if found is None or not isinstance(spec, ObjectSpec) or not spec.unit:
        return value
    source = (*found[1], times_name(spec.unit))
    of_argument = source[0] == "field" and len(source) == 3  # which stays what it is
    ints = s.taken(source) if of_argument else s.hidden_value(source)
    return TimeV(ints, spec.unit, value) if isinstance(ints, ArrayV | ScalarV) else value


def is_time(value: Value) -> bool:
    """Is it a time, or one that NumPy has made when the function was compiled?"""
    return isinstance(value, TimeV) or (isinstance(value, Static) and isinstance(value.object, _KINDS))


_KINDS = (np.datetime64, np.timedelta64)


def any_in(value: Value) -> bool:
    """Is it a time, or a tuple or list of known length with one?"""
    return any(map(any_in, value.items)) if isinstance(value, TupleV) else isinstance(value, TimeV)


def any_array_in(value: Value) -> bool:
    """Is it an array of times, or is one part of it?"""
    if isinstance(value, TimeV):
        return isinstance(value.value, ArrayV)
    return any(map(any_array_in, parts_of(value)))


HINT = "do this outside, or on x.view('int64'), the same memory as numbers"


def of_known(value: np.datetime64 | np.timedelta64, unit: str | None = None) -> TimeV | None:
    """A time that is known, of the same dtype or another one; None if that would lose something, or has no unit."""
    dtype = value.dtype if unit is None else np.dtype(unit)
    if dtype.kind != value.dtype.kind or dtype.str[-1] != "]":
        return None
    try:
        if np.promote_types(value.dtype, dtype) != dtype:
            return None
    except TypeError:  # a timedelta of months has no days
        return None
    return TimeV(ScalarV(ir.Const(int(value.astype(dtype).view(np.int64)), INT64)), dtype.str[1:])


def as_unit(s: Context, value: Value, unit: str) -> TimeV | None:
    """A time as one of this dtype; None where that loses something, or is not compiled."""
    if isinstance(value, Static) and isinstance(value.object, _KINDS):
        return of_known(value.object, unit)
    if not isinstance(value, TimeV):
        return None
    if value.unit == unit:
        return value
    if isinstance(value.value, ScalarV) and isinstance(value.value.operand, ir.Const):
        number = np.int64(int(value.value.operand.value.real))
        return of_known(number.view(value.unit), unit)
    count = factor(value.unit, unit)
    if count is None or not _wraps():
        return None
    b = s.builder

    def convert(operands: list[ir.Operand]) -> list[ir.Operand]:
        nat = b.prim("eq", operands[0], NAT, type=PYBOOL)
        return [b.select(nat, NAT, b.prim("mul", operands[0], ir.Const(count, INT64)))]

    made = elementwise(s, convert, [value.value])[0]
    assert isinstance(made, ArrayV | ScalarV)
    return TimeV(made, unit)


def factor(unit: str, finer: str) -> int | None:
    """How many of a finer unit are one of another; None where that is no whole number, or depends on the date."""
    parts: list[Any] = [np.datetime_data(np.dtype(one)) for one in (unit, finer)]
    (name, count), (finer_name, finer_count) = parts
    if unit[0] != finer[0] or {name, finer_name} & {"Y", "M"}:
        return None
    ratio = np.timedelta64(count, name) / np.timedelta64(finer_count, finer_name)
    return int(ratio) if 1 <= ratio < 1 << 53 and ratio == int(ratio) else None


@cache
def _wraps() -> bool:
    """Does NumPy convert times to finer units without a look at whether they fit?"""
    try:
        np.array([1 << 62], "m8[D]").astype("m8[ns]")
    except OverflowError:
        return False
    return True


def dtype_of(value: Value) -> np.dtype[Any]:
    """The dtype of a time."""
    if isinstance(value, TimeV):
        return np.dtype(value.unit)
    assert isinstance(value, Static)
    return value.object.dtype  # type: ignore[no-any-return]


def like(value: Value, unit: str) -> Value:
    """Numbers of a result as times; tuples and lists of them item by item."""
    match value:
        case ArrayV() | ScalarV():
            return TimeV(value, unit)
        case TupleV(items, kind):
            return TupleV(tuple(like(item, unit) for item in items), kind)
    return value


def _of_text(text: str, unit: str) -> TimeV | None:
    """The time that a text such as "NaT" or "2020-01-01" becomes where it is stored; None if NumPy refuses it."""
    made = np.zeros(1, unit)
    try:
        made[0] = text
    except (TypeError, ValueError):
        return None
    return of_known(made[0])


def ints(s: Context, value: Value, unit: str) -> ArrayV | ScalarV:
    """The int64 of a time as one of this dtype."""
    if isinstance(value, Static) and isinstance(value.object, str):
        found = _of_text(value.object, unit)
    else:
        found = as_unit(s, value, unit)
    if found is None:
        raise s.hand_back(f"{s.describe(value)} as {unit}")
    return found.value


# ---- as containers ---------------------------------------------------------------------------------------------------


def _length(s: Context, value: TimeV) -> ir.Operand:
    if not isinstance(value.value, ArrayV) or not value.value.rank:
        raise s.unsupported("len() of unsized object")
    return value.value.extents[0]


def _places(s: Context, value: TimeV) -> tuple[ir.Operand, ItemAt] | None:
    array = value.value
    if not isinstance(array, ArrayV) or not array.rank:
        return None
    return array.extents[0], lambda index: like(indexing.read(s, array, ScalarV(index)), value.unit)


def _subscript(s: Context, value: TimeV, index: Value) -> Value:
    if not isinstance(value.value, ArrayV) or any_in(index):
        raise s.hand_back("an index of a time")
    return like(indexing.read(s, value.value, index), value.unit)


def _store(s: Context, value: TimeV, index: Value, new: Value) -> bool:
    if not isinstance(value.value, ArrayV) or any_in(index):
        return False
    if isinstance(new, TimeV) and isinstance(new.value, ArrayV) and new.value.var is value.value.var:
        return True  # `x[:] += d` has changed it in place
    indexing.write(s, value.value, index, ints(s, new, value.unit))
    return True


FORMS[TimeV] = Form(
    lambda one: (one.value,),
    lambda one, parts: TimeV(parts[0], one.unit, one.object if one.value is parts[0] else None),
    lambda one: one.unit,
    lambda one, other: one if one.object is other.object else TimeV(one.value, one.unit),
    noun="datetime64 or timedelta64",
    length=_length,
    places=_places,
    subscript=_subscript,
    store=_store,
)
