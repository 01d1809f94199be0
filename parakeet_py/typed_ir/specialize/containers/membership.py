"""Membership, and what containers take for the same item: `in`, comparisons of tuples and lists, `count`, `index`.

For all of these two items are the same if they are one object, and else if they are equal. It makes a difference for
arrays, which have no one truth, and for NaN. Which objects numbers are is not kept: where two that may be one object
are both NaN, Python takes over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import PYBOOL, PYINT, is_complex, is_float
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.containers import dict_items, hash_maps, strings
from parakeet_py.typed_ir.specialize.forms import array_of, is_list
from parakeet_py.typed_ir.specialize.instances import instances
from parakeet_py.typed_ir.specialize.paths import iterables, tags
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ComprehensionV,
    DictV,
    MapV,
    ObjectV,
    RangeV,
    ScalarV,
    SliceV,
    Static,
    TupleV,
    Value,
    VariantV,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def same_item(s: Context, left: Value, right: Value) -> ir.Operand:
    """Is one item the same as another one, for a container?"""
    if isinstance(left, VariantV):
        return s.truth(tags.each_option(s, left, lambda option: ScalarV(same_item(s, option, right))))
    if isinstance(right, VariantV):
        return s.truth(tags.each_option(s, right, lambda option: ScalarV(same_item(s, left, option))))
    match left, right:
        case ArrayV(), ArrayV() if left.var is right.var:
            return ir.Const(True, PYBOOL)
        case ScalarV(ir.Var() as one), ScalarV(ir.Var() as other) if one is other:
            return ir.Const(True, PYBOOL)
        case ScalarV(ir.Const() as one), ScalarV(ir.Const() as other) if (
            one.value is other.value and one.value != one.value
        ):
            return ir.Const(True, PYBOOL)
        case ScalarV(), ScalarV() if left.type == right.type and not _are_apart(s, left, right):
            lost = [_is_nan(s, side) for side in (left, right)]
            apart = s.builder.prim("not", s.builder.logical_and(*lost), type=PYBOOL)
            s.check(apart, "Deoptimize", "a comparison of items that are NaN, and may be one object")
    return s.truth(s.compare("eq", left, right))


def must_not_be_nan(s: Context, item: Value) -> None:
    """Python looks for NaN in a list, where it may be this very object."""
    if isinstance(item, ScalarV):
        known = s.builder.prim("not", _is_nan(s, item), type=PYBOOL)
        s.check(known, "Deoptimize", "NaN searched in a list")


def _is_nan(s: Context, number: ScalarV) -> ir.Operand:
    """Does a number differ from itself?"""
    if not (is_float(number.dtype) or is_complex(number.dtype)):
        return ir.Const(False, PYBOOL)
    if isinstance(number.operand, ir.Const):
        return ir.Const(number.operand.value != number.operand.value, PYBOOL)
    return s.builder.prim("ne", number.operand, number.operand, type=PYBOOL)


def _are_apart(s: Context, left: ScalarV, right: ScalarV) -> bool:
    """Are two numbers surely two objects? What has just been computed is an object of its own."""
    if all(isinstance(side.operand, ir.Const) for side in (left, right)):
        return True  # or one that is known, and no NaN
    new = [_is_new(s, side.operand) for side in (left, right)]
    given = [isinstance(side.operand, ir.Const) or side.operand in s.arguments.leaf_param for side in (left, right)]
    return any(new) and all(one or other for one, other in zip(new, given, strict=True))


def _is_new(s: Context, operand: ir.Operand) -> bool:
    op = s.builder.definition.get(operand) if isinstance(operand, ir.Var) else None
    return isinstance(op, ir.Prim) and op.name not in ("select", "minimum", "maximum")


def contains(s: Context, item: Value, container: Value, negate: bool) -> Value:
    b = s.builder
    if isinstance(container, ComprehensionV):
        container = s.as_list(container)
    if instances.is_instance(container):
        if not instances.has(container, "__contains__"):
            raise s.unsupported(f"`in` {s.describe(container)}")
        held = s.truth(instances.special(s, container, "__contains__", [item]))
        return ScalarV(b.prim("not", held, type=PYBOOL) if negate else held)
    if isinstance(container, Static) and isinstance(container.object, str):
        strings.need(s, container)
    if strings.is_text(container) or (isinstance(container, Static) and strings.is_text(item)):
        there = strings.contains(s, container, item)
        return ScalarV(b.prim("not", there, type=PYBOOL) if negate else there)
    hashed = _is_hashed(s, container)
    keys = (item, *_items_of_set(container)) if hashed else _key_of_pair(s, item, container)
    if (unhashable := next(filter(_is_unhashable, keys), None)) is not None:
        raise s.hand_back(f"`in` of {s.describe(unhashable)}, which has no hash")
    container = dict_items.listed(s, container)
    if isinstance(container, MapV):
        there = hash_maps.contains(s, container, item)
        return ScalarV(b.prim("not", there) if negate else there)
    if isinstance(container, Static) and isinstance(container.object, str):
        if isinstance(item, Static) and isinstance(item.object, str):
            return py((item.object in container.object) != negate)
        raise s.hand_back(f"`in` a text, of {s.describe(item)}")
    items = iterables.static_items(container)
    if items is not None:
        found: ir.Operand = ir.Const(False, PYBOOL)
        for one in items:
            found = b.logical_or(found, (_same_key if hashed else same_item)(s, item, one))
            if found == ir.Const(True, PYBOOL):
                return py(not negate)
        return ScalarV(b.prim("not", found) if negate else found)
    array = array_of(container)
    if array is not None:
        if is_list(container):
            must_not_be_nan(s, item)
        result = s.call(Static(np.any), [s.compare("eq", array, item)], {})
        truth = s.truth(result)
        return ScalarV(b.prim("not", truth) if negate else truth)
    if isinstance(container, RangeV):
        found = _in_range(s, item, container)
        return ScalarV(b.prim("not", found) if negate else found)
    if isinstance(container, ObjectV):
        raise s.hand_back(f"`in` {s.describe(container)}")
    raise s.unsupported(f"`in` {s.describe(container)}")


def _is_hashed(s: Context, container: Value) -> bool:
    """Does Python look for an item by its hash?"""
    if (found := dict_items.view(s, container)) is not None:
        return found[2] == "keys"
    match container:
        case Static(dict() | set() | frozenset()) | DictV() | MapV():
            return True
        case TupleV(_, kind):
            return kind in ("set", "frozenset")
    return False


def _key_of_pair(s: Context, item: Value, container: Value) -> tuple[Value, ...]:
    """What Python looks for by its hash in `dict.items()`: the first of a pair."""
    match dict_items.view(s, container), item:
        case (_, _, "items"), TupleV((key, _), "tuple"):
            return (key,)
        case (_, _, "items"), VariantV(_, options):
            return tuple([key for option in options for key in _key_of_pair(s, option, container)])
        case (_, _, "items"), ObjectV():
            known = known_object(s, item)
            return () if known is not None and not issubclass(known[0], tuple) else (item,)
    return ()


def _items_of_set(container: Value) -> tuple[Value, ...]:
    return container.items if isinstance(container, TupleV) else ()


def _same_key(s: Context, left: Value, right: Value) -> ir.Operand:
    """Are two values the same key? Numbers with equal hashes are exactly equal, also where `==` rounds one of them."""
    match left, right:
        case TupleV(ones), TupleV(others) if len(ones) == len(others):
            both: ir.Operand = ir.Const(True, PYBOOL)
            for one, other in zip(ones, others, strict=True):
                both = s.builder.logical_and(both, _same_key(s, one, other))
            return both
        case (TupleV(), TupleV() | ScalarV()) | (ScalarV(), TupleV()):
            return ir.Const(False, PYBOOL)
        case ScalarV(), ScalarV() if left.type != right.type:
            if "uint64" not in (left.dtype, right.dtype):
                return s.truth(s.compare("eq", s.as_python(left), s.as_python(right)))
            if any(is_float(side.dtype) or is_complex(side.dtype) for side in (left, right)):
                raise s.hand_back("a uint64 and a float as keys")
    return same_item(s, left, right)


def _is_unhashable(item: Value) -> bool:
    match item:
        case TupleV(items, "tuple"):
            return any(map(_is_unhashable, items))
        case VariantV(_, options):
            return any(map(_is_unhashable, options))
        case ArrayV() | DictV() | MapV() | TupleV() | SliceV() | ObjectV():  # an object may have one, Python knows
            return True
    return is_list(item)


def _in_range(s: Context, item: Value, container: RangeV) -> ir.Operand:
    """Is an int one of those that a range gives?"""
    b = s.builder
    number = s.numeric(item)
    if not isinstance(number, ScalarV) or number.type not in (PYINT, PYBOOL):
        raise s.unsupported(f"{s.describe(item)} in a range")
    step = s.static_int(container.step, "the step of a range")
    x = b.cast(number.operand, PYINT)
    start, stop = container.start.operand, container.stop.operand
    low, high = ("ge", "lt") if step > 0 else ("le", "gt")
    found = b.logical_and(b.prim(low, x, start, type=PYBOOL), b.prim(high, x, stop, type=PYBOOL))
    distance = b.prim("mod", b.prim("sub", x, start), ir.Const(step, PYINT))
    return b.logical_and(found, b.prim("eq", distance, ZERO, type=PYBOOL))
