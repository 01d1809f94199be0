"""The results of operations handed back, as leaves: their types, how a result is taken apart, and what stands for one
where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from parakeet_py.base.types import OBJECT, Array, Scalar, Type
from parakeet_py.signature.specs import ArraySpec, ObjectSpec, RecordsSpec, ScalarSpec, Spec, TimesSpec, TupleSpec


def result_types(spec: Spec) -> list[Type]:
    match spec:
        case ArraySpec(dtype, rank, layout, _, _):
            return [Array(dtype, rank, layout)]
        case ScalarSpec(dtype, python):
            return [Scalar(dtype, python)]
        case ObjectSpec():
            return [OBJECT]
        case TimesSpec(_, numbers):
            return [OBJECT, *result_types(numbers)]
        case RecordsSpec(columns=columns):
            return [OBJECT, *(kind for column in columns for kind in result_types(column))]
        case TupleSpec(items):
            return [kind for item in items for kind in result_types(item)]
    return []


def no_leaves(spec: Spec | None) -> list[Any]:
    """Leaves that stand for nothing where an operation has given none."""
    return [_nothing(kind) for kind in ([] if spec is None else result_types(spec))]


def _nothing(kind: Type) -> Any:
    match kind:
        case Array(dtype, rank):
            return np.empty((0,) * rank, dtype)
        case Scalar(dtype):
            return np.dtype(dtype).type(0).item()
    return None


def result_leaves_of(spec: Spec, value: Any) -> list[Any]:
    """The leaves of a result, in the order of `result_types`."""
    match spec:
        case ArraySpec() | ScalarSpec() | ObjectSpec():
            return [value]
        case TimesSpec():
            return [value, value.view(np.int64)]
        case RecordsSpec(names=names):
            return [value, *(value[name] for name in names)]
        case TupleSpec(items, "slice"):
            return [leaf for item, part in zip(items, (value.start, value.stop, value.step), strict=True)
                    for leaf in result_leaves_of(item, part)]  # fmt: skip
        case TupleSpec(items):
            return [leaf for item, part in zip(items, value, strict=True) for leaf in result_leaves_of(item, part)]
    return []
