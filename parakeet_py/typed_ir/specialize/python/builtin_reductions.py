"""min, max, sum, all and any: Python's builtin functions over several arguments, sequences, arrays and generators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import PYBOOL, PYCOMPLEX, PYFLOAT, PYINT, is_complex, is_float
from parakeet_py.library.reductions.ufunc_methods import compensates, compensates_more
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import may_raise
from parakeet_py.typed_ir.specialize.arrays.ufuncs import binary
from parakeet_py.typed_ir.specialize.containers import array_lists, dynamic_lists, hash_maps, sorting
from parakeet_py.typed_ir.specialize.forms import array_of
from parakeet_py.typed_ir.specialize.paths import iterables, tagged_operations, tagged_scalars
from parakeet_py.typed_ir.specialize.python.python_scalars import compare
from parakeet_py.typed_ir.specialize.python.table import BUILTINS, builtin
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ComprehensionV,
    IteratorV,
    MapV,
    ScalarV,
    Static,
    TaggedScalar,
    TupleV,
    Value,
    is_none,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def _pick(s: Context, op: str, items: list[Value], key: Value | None) -> Value:
    """min and max of known items: the first one that wins."""
    best = items[0]
    best_key = best if key is None else s.call(key, [best], {})
    for item in items[1:]:
        item_key = item if key is None else s.call(key, [item], {})
        if isinstance(item_key, TupleV) and isinstance(best_key, TupleV):
            better = s.truth(s.compare(op, item_key, best_key))
        else:
            better = _is_better(s, op, item_key, best_key)
        if isinstance(better, ir.Const):
            if better.value:
                best, best_key = item, item_key
        elif key is None:
            best = best_key = _chosen(s, op, better, item, best)
        else:  # it is called once for each item, as it may change something
            best, best_key = s.branch(better, partial(list, [item, item_key]), partial(list, [best, best_key]))
    return best


def _chosen(s: Context, op: str, better: ir.Operand, item: Value, best: Value) -> Value:
    """The item, if it is better; the best one before otherwise."""
    if not (isinstance(item, ScalarV) and isinstance(best, ScalarV) and item.type == best.type):
        [best] = s.branch(better, partial(list, [item]), partial(list, [best]))
        return best
    chosen = s.builder.select(better, item.operand, best.operand)
    if item.type == PYINT and isinstance(chosen, ir.Var):
        extreme = s.builder.index_min if op == "lt" else s.builder.index_max
        chosen = extreme(item.operand, best.operand)
    return ScalarV(chosen)


def _is_better(s: Context, op: str, item: Value, best: Value) -> ir.Operand:
    """Does an item win against the best one before?"""

    def by_type(item: Value, best: Value) -> list[Value]:
        a, c = s.numeric(item), s.numeric(best)
        if isinstance(a, ArrayV) or isinstance(c, ArrayV):
            raise s.unsupported("min or max of arrays")
        if not a.python or not c.python:
            return [ScalarV(s.truth(binary(s, op, a, c)))]
        if is_complex(a.dtype) or is_complex(c.dtype):
            raise s.unsupported("complex numbers have no order")
        kind = PYFLOAT if "float64" in (a.dtype, c.dtype) else PYINT
        return [ScalarV(compare(s, op, a.operand, c.operand, kind))]

    sides = tagged_operations.comparable(item, best), tagged_operations.comparable(best, item)
    (better,) = tagged_scalars.each(s, sides, by_type)
    return s.truth(better)


def _extremum(op: str, reduction: str) -> Callable[..., Value]:
    def handle(s: Context, *args: Value, key: Value | None = None, default: Value | None = None) -> Value:
        if len(args) == 1:
            value = sorting.of_set(s, args[0]) if key is None or is_none(key) else args[0]
            if isinstance(value, ComprehensionV):
                value = s.as_list(value)
            items = iterables.static_items(value)
            if items is None and default is not None:
                return sorting.or_default(s, value, default, lambda items: handle(s, items, key=key))
            if items is None and key is not None and not is_none(key):
                return sorting.by_key(s, value, key, reduction)
            if items is None and (isinstance(value, IteratorV) or dynamic_lists.is_table(value)):
                return sorting.extreme_record(s, value, None, reduction)
            if items is None:
                value = array_lists.shown(s, _keys(value))
                array = _elements(s, value)
                if not isinstance(array, ArrayV) or array.rank != 1:
                    raise s.unsupported(f"{reduction}() of {s.describe(value)}")
                plain = array_lists.is_of_python(value)
                if plain and is_complex(array.dtype):
                    raise s.unsupported("complex numbers have no order")
                result = s.call_library(f"python_{reduction}", [array])
                return s.as_python(result) if plain else result
            if not items:
                if default is not None:
                    return default
                raise s.unsupported(f"{reduction}() iterable argument is empty")
            return _pick(s, op, items, key)
        return _pick(s, op, list(args), key)

    return handle


BUILTINS[min] = _extremum("lt", "min")
BUILTINS[max] = _extremum("gt", "max")


def _keys(value: Value) -> Value:
    """The keys of a dict, the items of a set of integers, whose order makes no difference; other values."""
    if isinstance(value, MapV) and (value.kind == "dict" or hash_maps.is_whole(value)):
        return dynamic_lists.keys(value)
    return value


def _elements(s: Context, value: Value) -> Value:
    """What a builtin goes through, as an array."""
    value = _keys(value)
    value = array_lists.shown(s, value)
    return array_of(array_lists.of_one_type(s, value)) or s.numeric(value)


@builtin(sum)
def _sum(s: Context, value: Value, start: Value | None = None) -> Value:
    total = start or py(0)
    value = sorting.of_set(s, value)
    if isinstance(value, ComprehensionV):
        value = s.as_list(value)
    items = iterables.static_items(value)
    if items is not None:
        return _sum_of_items(s, total, items)
    value = array_lists.shown(s, _keys(value))
    array = _elements(s, value)
    if not isinstance(array, ArrayV) or array_lists.is_of_lists(value):
        raise s.unsupported(f"sum() of {s.describe(value)}")
    python = array_lists.is_of_python(value)
    if total == py(0) and not python:
        return s.call_library("python_sum_rows", [array])
    if array.rank == 1 and isinstance(total, ScalarV | TaggedScalar):
        (result,) = tagged_scalars.each(s, (total,), lambda one: [_sum_of_numbers(s, array, one, python)])
        return result
    if array.rank:
        some = s.builder.prim("gt", array.extents[0], ir.Const(0, PYINT), type=PYBOOL)
        s.check(some, "Deoptimize", "the sum of no rows is the start")
    return s.call_plain("sum_of_some_rows", [array, total])


def _sum_of_items(s: Context, total: Value, items: Sequence[Value]) -> Value:
    """Known items added one after another. Where Python's sum carries a compensation it does as long as there are
    numbers of Python's, from a start that is one: first of floats, then of complex numbers."""
    lost: Value = py(0.0)
    parts: list[Value] = []  # of a complex sum: its real part, what that has lost, its imaginary part, and that
    plain = compensates() and _is_plain(total)
    for item in items:
        if plain and (isinstance(total, TaggedScalar) or isinstance(item, TaggedScalar)):
            raise s.hand_back("a sum of floats that may be of other types")
        if plain and _is_complex(total) and _is_added_to_complex(item):
            assert isinstance(item, ScalarV)
            parts = parts or _items(s.call_library("python_complex_parts", [total]))
            number = item if _is_complex(item) else ScalarV(s.builder.cast(item.operand, PYFLOAT))
            parts = _items(s.call_library("python_complex_sum_step", [*parts, number]))
            continue
        if plain and _is_float(total) and (_is_float(item) or (compensates_more() and _is_integral(item))):
            assert isinstance(item, ScalarV)
            number = ScalarV(s.builder.cast(item.operand, PYFLOAT))
            total, lost = map(s.as_python, _items(s.call_library("python_sum_step", [total, lost, number])))
            continue
        if plain and _is_float(total) and not _is_integral(item):
            total, lost = s.as_python(s.call_library("python_sum_end", [total, lost])), py(0.0)
        if parts:
            total, parts = s.call_library("python_complex_sum_end", parts), []
        total = s.binary("add", total, item)
        plain = plain and _is_plain(total)
    if parts:
        return s.call_library("python_complex_sum_end", parts)
    return s.as_python(s.call_library("python_sum_end", [total, lost])) if lost != py(0.0) else total


def _items(made: Value) -> list[Value]:
    assert isinstance(made, TupleV)
    return list(made.items)


def _is_float(value: Value) -> bool:
    return isinstance(value, ScalarV) and value.type == PYFLOAT


def _is_integral(value: Value) -> bool:
    return isinstance(value, ScalarV) and value.type in (PYINT, PYBOOL)


def _is_complex(value: Value) -> bool:
    return isinstance(value, ScalarV) and value.type == PYCOMPLEX


def _is_added_to_complex(value: Value) -> bool:
    """Does Python's own loop over complex numbers add this? A float64 is a float of Python's, too."""
    return isinstance(value, ScalarV) and (
        value.type in (PYINT, PYBOOL, PYCOMPLEX) or ir.dtype_of(value.operand) == "float64"
    )


def _is_plain(value: Value) -> bool:
    """Does Python add numbers to this in a loop of its own, which carries a compensation?"""
    return isinstance(value, ScalarV) and (
        value.type in (PYINT, PYFLOAT) or (compensates_more() and _is_complex(value))
    )


def _sum_of_numbers(s: Context, array: ArrayV, total: Value, python: bool) -> Value:
    """The numbers of an array added to `total` one after another; `python`: they are Python's.

    What there is none of leaves `total` as it is, also its type. From the first addition on the type stays. Python's
    complex numbers take a float64 for the Python float that it is as well.
    """
    b = s.builder
    if not isinstance(total, ScalarV):
        raise s.hand_back("sum() from what is no number")
    as_float = total.type == PYCOMPLEX and array.dtype == "float64"
    number = Static(_NUMBERS[np.dtype(array.dtype).kind] if python or as_float else None)

    def added(begin: int, so_far: Value) -> Value:
        if compensates_more() and (python or as_float) and isinstance(so_far, ScalarV) and so_far.type == PYCOMPLEX:
            complex_or_float = Static(complex if array.dtype == "complex128" else float)
            return s.call_library("python_complex_sum", [array, so_far, lift(begin), complex_or_float])
        floats = is_float(array.dtype) or compensates_more()
        compensated = python and floats and _is_plain(total) and _is_float(so_far)
        return s.call_library("python_sum", [array, so_far, lift(begin), number, lift(compensated)])

    def first() -> Value:
        return s.binary("add", total, s.call_library("python_item", [array, py(0), number]))

    start = s.checkpoint()
    found = first()
    s.rollback(start)
    if isinstance(found, ScalarV) and found.type == total.type:
        return added(0, total)
    some = b.prim("gt", array.extents[0], ir.Const(0, PYINT), type=PYBOOL)
    if isinstance(some, ir.Const):
        return added(1, first()) if some.value else total
    (result,) = s.branch(some, lambda: [added(1, first())], lambda: [total])
    return replace(result, rare=True) if isinstance(result, TaggedScalar) else result


_NUMBERS = {"b": int, "i": int, "f": float, "c": complex}
"""What makes Python's numbers of the elements of an array."""


@builtin(all)
def _all(s: Context, value: Value) -> Value:
    return _quantifier(s, value, True)


@builtin(any)
def _any(s: Context, value: Value) -> Value:
    return _quantifier(s, value, False)


def _quantifier(s: Context, value: Value, universal: bool) -> Value:
    b = s.builder
    value = sorting.of_set(s, value)
    if isinstance(value, ComprehensionV):
        start, before, stores = s.checkpoint(), len(b.scopes[-1].statements), s.elements.stores_of_elements
        fields = dict(b.fields)
        listed = s.as_list(value)
        if (
            may_raise(b.scopes[-1].statements[before:])
            or s.elements.stores_of_elements > stores
            or any(b.fields.get(source) is not held for source, held in fields.items())
        ):  # items after the one that decides must not be computed
            s.rollback(start)
            parts = [value.iterable, value.element, value.condition or lift(None), lift(value.flatten)]
            return s.call_library("python_all" if universal else "python_any", parts)
        value = listed
    items = iterables.static_items(value)
    if items is not None:
        result: ir.Operand = ir.Const(universal, PYBOOL)
        for item in items:
            truth = s.truth(item)
            result = b.logical_and(result, truth) if universal else b.logical_or(result, truth)
        return ScalarV(result)
    array = _elements(s, value)
    if isinstance(array, ArrayV) and array.rank == 1:
        found = s.call(Static(np.all if universal else np.any), [array], {})
        return ScalarV(s.truth(found))
    raise s.unsupported(f"{'all' if universal else 'any'}() of {s.describe(value)}")
