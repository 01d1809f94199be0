"""The result types of operations that Python does, as they have been seen.

The evaluator runs a call and gives `Observations` every result; the specializer looks them up by the same keys, along
the path of inlined calls, or, where the evaluator did not know the path, by the place in the source alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parakeet_py.frontend.evaluate.observed_values import CHANGED, Key
from parakeet_py.signature.attribute_sources import behaves_as_tuple
from parakeet_py.signature.specs import (
    MAX_ITEMS,
    ArraySpec,
    ObjectSpec,
    RecordsSpec,
    ScalarSpec,
    Spec,
    TimesSpec,
    TupleSpec,
    spec_of,
)


def normalized(spec: Spec) -> Spec:
    """A spec as results are typed by it: no knowledge of unit axes; only C order is relied on."""
    match spec:
        case ArraySpec(mapped=True):
            return ObjectSpec(np.memmap, True)
        case ArraySpec(aligned=False):
            return ObjectSpec(np.ndarray)
        case ArraySpec(dtype, rank, layout, _, writeable):
            return ArraySpec(dtype, rank, "C" if layout == "C" else "A", (False,) * rank, writeable)
        case ObjectSpec(kind, unit=str() as unit) if unit:
            return ObjectSpec(kind)
        case TupleSpec(kind="range"):
            return ObjectSpec(range, True)
        case TupleSpec(items, kind, named):
            return TupleSpec(tuple(normalized(item) for item in items), kind, named)
    return spec


def observed_spec(value: Any) -> Spec:
    """The spec of an opaque operation's result."""
    if is_named_tuple(value) and len(value) <= MAX_ITEMS:
        return TupleSpec(tuple(map(observed_spec, value)), "tuple", type(value))
    spec = spec_of(value)
    match spec:
        case TupleSpec(items, "tuple" | "list" as kind):
            return TupleSpec(tuple(map(_observed_item, items, value)), kind)
        case _:
            return _observed_item(spec, value)


def _observed_item(spec: Spec, value: Any) -> Spec:
    match spec:
        case ObjectSpec(unit=str() as unit) if unit:
            numbers = normalized(spec_of(value.view(np.int64)))
            return TimesSpec(unit, numbers) if isinstance(numbers, ArraySpec | ScalarSpec) else normalized(spec)
        case ObjectSpec(kind) if kind is np.ndarray or kind is np.recarray:
            return _of_records(value) or normalized(spec)
        case TupleSpec(items, "tuple" | "list" as kind):
            return TupleSpec(tuple(map(_observed_item, items, value)), kind)
    return normalized(spec)


def _of_records(value: np.ndarray[Any, Any]) -> RecordsSpec | None:
    """The spec of an array of records all of whose fields are numbers, or arrays of them; None of other arrays."""
    names = value.dtype.names
    if not names or len(names) > MAX_FIELDS or not value.ndim:
        return None
    columns = []
    for name in names:
        column = value[name]
        spec = spec_of(column) if type(column) is np.ndarray else None
        if not isinstance(spec, ArraySpec):
            return None
        columns.append(ArraySpec(spec.dtype, spec.rank, "A", (False,) * spec.rank, spec.writeable))
    return RecordsSpec(type(value), value.ndim, names, tuple(columns))


def is_named_tuple(value: Any) -> bool:
    """Is this a tuple whose items have names, which holds nothing else, and nothing in it that could be changed?"""
    kind = type(value)
    if kind.__bases__ != (tuple,) or kind.__basicsize__ != tuple.__basicsize__ or not hasattr(kind, "_fields"):
        return False
    return behaves_as_tuple(kind) and not any(type(item) in (list, dict, set) for item in value)


MAX_FIELDS = 32  # of records that are read by their fields
ANY = ObjectSpec(object)  # as the spec of a result: any object at all


def join_specs(left: Spec, right: Spec) -> Spec:
    """The spec of results that are sometimes this and sometimes that."""
    if left == right:
        return left
    match left, right:
        case ArraySpec(dtype, rank, _, unit, writeable), ArraySpec() if (dtype, rank, writeable) == (
            right.dtype,
            right.rank,
            right.writeable,
        ):
            return ArraySpec(dtype, rank, "A", unit, writeable)
        case TimesSpec(unit, numbers), TimesSpec(other, others) if unit == other:
            joined = join_specs(numbers, others)
            return TimesSpec(unit, joined) if isinstance(joined, ArraySpec) else ANY
        case TupleSpec(items, kind, named), TupleSpec(others) if (kind, named, len(items)) == (
            right.kind,
            right.named,
            len(others),
        ):
            return TupleSpec(tuple(map(join_specs, items, others)), kind, named)
    return ANY


def loosened(spec: Spec) -> Spec:
    """A spec that says nothing about the layout of arrays: if it changes, the call could not go on."""
    match spec:
        case ArraySpec(dtype, rank, _, unit, writeable) if rank:
            return ArraySpec(dtype, rank, "A", unit, writeable)
        case TimesSpec(unit, ArraySpec() as numbers):
            return TimesSpec(unit, loosened(numbers))  # type: ignore[arg-type]
        case TupleSpec(items, kind, named):
            return TupleSpec(tuple(map(loosened, items)), kind, named)
    return spec


def without_lists(spec: Spec, new: bool = False) -> Spec:
    """A spec of results whose lists may be known elsewhere: they are objects. One that is `new` is known, but those in
    it may not be."""
    if isinstance(spec, TupleSpec):
        if spec.kind == "list" and not new:
            return ANY
        return TupleSpec(tuple(map(without_lists, spec.items)), spec.kind, spec.named)
    return spec


def accepts(spec: Spec, found: Spec) -> bool:
    """May compiled code that expects a result of `spec` take one of spec `found`?"""
    return spec == found or join_specs(spec, found) == spec


class Observations:
    """Notes the result types of operations in a function's knowledge, as the evaluator does them."""

    def __init__(self, observed: dict[Key, Any]) -> None:
        self.observed = observed

    def __call__(self, key: Key, result: Any) -> None:
        spec: Any = CHANGED if result is CHANGED else observed_spec(result)
        for known_as in {key, key[-3:]}:
            former = self.observed.setdefault(known_as, spec)
            if former != spec:
                self.observed[known_as] = CHANGED if CHANGED in (former, spec) else join_specs(former, spec)


def find_observed(observed: dict[Key, Any], key: Key) -> Any:
    """What is known of an operation's result, along this path or else along any; None: nothing."""
    return observed.get(key) or observed.get(key[-3:])


class Lookups:
    """The observations as one specialization sees them, and what it has asked of them: code depends on no others."""

    __slots__ = ("asked", "observed")

    def __init__(self, observed: dict[Key, Any]) -> None:
        self.observed = observed
        self.asked: dict[Key, Any] = {}

    def find(self, key: Key) -> Any:
        """`find_observed`, noted."""
        found = self.asked[key] = find_observed(self.observed, key)
        return found


def agree(asked: dict[Key, Any], observed: dict[Key, Any]) -> bool:
    """Would the same lookups tell the same, or are they about what has not been observed (yet)?"""
    return all(find_observed(observed, key) in (None, told) for key, told in asked.items())
