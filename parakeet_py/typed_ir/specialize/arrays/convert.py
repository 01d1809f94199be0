"""Conversions between the kinds of values: to a number or an array, to a Python scalar, to a list, to a truth value.

NumPy takes a list wherever it takes an array, Python takes anything as a condition, and `item()` gives a Python scalar
of a NumPy one. These are the places that say what each kind of value becomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import PYBOOL, PYINT, Scalar, is_integer
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array, new_array, store_array, store_cast
from parakeet_py.typed_ir.specialize.arrays.elementwise import generate
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import dict_items
from parakeet_py.typed_ir.specialize.forms import form_of
from parakeet_py.typed_ir.specialize.instances import operators
from parakeet_py.typed_ir.specialize.opaque import opaque
from parakeet_py.typed_ir.specialize.paths import iterables, tagged_unions, tags
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    ClosureV,
    ComprehensionV,
    DictV,
    InstanceV,
    ItemV,
    MapV,
    MethodV,
    NeverV,
    ObjectV,
    RangeV,
    RefV,
    ScalarV,
    Static,
    TaggedScalar,
    TimeV,
    TupleV,
    UnboundV,
    Value,
    VariantV,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

AMBIGUOUS_TRUTH = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
EMPTY_TRUTH = (
    "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
)


def numeric(s: Context, value: Value, dtype: str | None = None) -> ScalarV | ArrayV:
    """A scalar or an array; sequences become arrays, of a dtype if one is given."""
    if isinstance(value, ScalarV | ArrayV):
        return value
    of_form = form_of(value).array
    if of_form is not None:
        return of_form(s, value, dtype)
    match value:
        case NeverV():  # never asked for
            return ScalarV(ir.Const(False, PYBOOL))
        case TupleV() | ComprehensionV() | RangeV():
            made = as_array(s, value, dtype)
            assert isinstance(made, ScalarV | ArrayV)
            return made
        case ObjectV() | Static() | TaggedScalar() | TimeV():
            raise s.hand_back(f"an operation on {s.describe(value)}")
        case MethodV(ArrayV(), "flat"):
            raise s.hand_back("a flat iterator as an array")  # a view, if it can be
        case MapV():
            raise s.hand_back(f"an operation on {s.describe(value)}")
        case UnboundV():
            raise s.unsupported("a name that is not bound")
    raise s.unsupported(f"{s.describe(value)} where a number or an array is needed")


def as_array(s: Context, value: Value, dtype: str | None = None) -> ArrayV | ScalarV:
    """np.array of a value (a new array unless it is one already)."""
    of_form = form_of(value).array
    if of_form is not None:
        return of_form(s, value, dtype)
    match value:
        case ScalarV():
            return value
        case ArrayV():
            return cast_array(s, value, dtype) if dtype else value
        case ComprehensionV(kind):
            raise s.unsupported(f"a {kind} where an array is needed")
        case RangeV(start, _, step):
            b = s.builder
            length = iterables.range_length(s, value)
            check_some(s, length, 1, dtype is not None)
            if dtype is not None and not np.can_cast(np.int64, dtype):
                check_numbers(s, as_array(s, value), dtype)  # type: ignore[arg-type]

            def element(indices: tuple[ir.Var, ...]) -> list[ir.Operand]:
                number = b.index_add(start.operand, b.index_mul(step.operand, indices[0]))
                return [b.cast(number, Scalar(dtype or "int64"))]

            return generate(s, (length,), element)[0]
        case TupleV(items):
            return _stack(s, items, dtype)
    raise s.hand_back(f"an array of {s.describe(value)}")


def check_numbers(s: Context, array: ArrayV, dtype: str | None) -> None:
    """The numbers of a list are made integers one by one: Python reports what does not fit."""
    if dtype is not None and is_integer(dtype) and not np.can_cast(array.dtype, dtype):
        s.call_library("all_fit", [array, Static(np.dtype(dtype))])


def check_some(s: Context, length: ir.Operand, rank: int, typed: bool) -> None:
    """An empty list becomes an array of one axis, and of float64 unless a dtype is asked for."""
    if rank > 1 or not typed:
        some = s.builder.prim("ne", length, ZERO, type=PYBOOL)
        s.check(some, "Deoptimize", "an array of an empty list")


def _stack(s: Context, items: Sequence[Value], dtype: str | None) -> ArrayV:
    """np.array of a list of known length: equal parts along a new first axis."""
    b = s.builder
    parts = [as_array(s, item, dtype if isinstance(item, TupleV) else None) for item in items]
    if not parts:
        return new_array(s, (ZERO,), dtype or "float64", "array")
    for item, part in zip(items, parts, strict=True):
        if isinstance(part, ArrayV) and not isinstance(item, ArrayV | TupleV):
            check_some(s, part.extents[0], part.rank, dtype is not None)  # an empty list says nothing of its items
    made = dtype or np.result_type(*(np.dtype(part.dtype) for part in parts)).name
    rank = 0 if isinstance(parts[0], ScalarV) else parts[0].rank
    if any((0 if isinstance(part, ScalarV) else part.rank) != rank for part in parts):
        raise s.unsupported("setting an array element with a sequence: the parts have different shapes")
    inner: tuple[ir.Operand, ...] = parts[0].extents if isinstance(parts[0], ArrayV) else ()
    extents = (ir.Const(len(parts), PYINT), *inner)
    array = replace(new_array(s, extents, made, "array"), nonunit=(len(parts) != 1, *(False,) * rank))
    _check_alike(s, [part for part in parts if isinstance(part, ArrayV)])
    for position, part in enumerate(parts):
        place = ir.Const(position, PYINT)
        if isinstance(part, ScalarV):
            b.emit(ir.Store(array.var, (place,), store_cast(s, part.operand, Scalar(made), users=True)))
            continue
        axes: list[tuple[int | None, ir.Operand, ir.Operand]] = [
            (axis + 1, extent, ONE) for axis, extent in enumerate(inner)
        ]
        view = make_view(s, array, (place, *(ZERO,) * rank), axes)
        store_array(s, view, part)
    return array


def _check_alike(s: Context, parts: Sequence[ArrayV]) -> None:
    """The parts of an array to be have one shape; the first axis where they differ is where the array ends."""
    b = s.builder
    for axis in range(parts[0].rank if parts else 0):
        shape = ", ".join([str(len(parts)), *(f"{{{before}}}" for before in range(axis))]) + ("" if axis else ",")
        text = (
            "setting an array element with a sequence. The requested array has an inhomogeneous shape after "
            f"{axis + 1} dimensions. The detected shape was ({shape}) + inhomogeneous part."
        )
        wanted = parts[0].extents
        for part in parts[1:]:
            if not b.same(part.extents[axis], wanted[axis]):
                equal = b.prim("eq", part.extents[axis], wanted[axis], type=PYBOOL)
                s.check(equal, "ValueError", text, wanted[:axis])


def cast_array(s: Context, array: ArrayV, dtype: str) -> ArrayV:
    return array if array.dtype == dtype else copy_array(s, array, dtype)


def as_python(s: Context, value: Value) -> Value:
    """A NumPy scalar as the Python scalar `item()` gives."""
    if isinstance(value, ScalarV) and not value.python:
        kind = np.dtype(value.dtype).kind
        target = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "c": "complex128"}[kind]
        if value.dtype == "uint64":
            raise s.hand_back("a uint64 as a Python int")
        return ScalarV(s.builder.cast(value.operand, Scalar(target, True)))
    return value


def truth(s: Context, value: Value) -> ir.Operand:
    """bool(value) as an operand."""
    b = s.builder
    length = form_of(value).length
    if length is not None:
        return truth(s, ScalarV(length(s, value)))
    match value:
        case NeverV():  # never asked for
            return ir.Const(False, PYBOOL)
        case ScalarV(operand):
            if value.dtype == "bool":
                return b.cast(operand, PYBOOL)
            if isinstance(operand, ir.Const):
                return ir.Const(bool(operand.value), PYBOOL)
            zero = ir.Const(np.dtype(value.dtype).type(0).item(), value.type)
            return b.prim("ne", operand, zero, type=PYBOOL)
        case ArrayV(rank=0):
            return truth(s, ScalarV(b.emit1(ir.Load(value.var, ()), Scalar(value.dtype))))
        case ArrayV():
            for relation, one, text in (("ne", ZERO, EMPTY_TRUTH), ("eq", ONE, AMBIGUOUS_TRUTH)):
                for extent in value.extents:
                    s.check(b.prim(relation, extent, one, type=PYBOOL), "ValueError", text)
            return truth(s, ScalarV(b.emit1(ir.Load(value.var, (ZERO,) * value.rank), Scalar(value.dtype))))
        case TaggedScalar():
            return _truth_by_type(s, value)
        case VariantV():
            return tagged_unions.truth(s, value)
        case Static(obj):
            return ir.Const(bool(obj), PYBOOL)
        case TupleV(items):
            return ir.Const(bool(items), PYBOOL)
        case DictV(entries):
            return ir.Const(bool(entries), PYBOOL)
        case RangeV():
            return iterables.range_has_items(s, value)
        case CharV():
            return ir.Const(True, PYBOOL)
        case InstanceV() | RefV() | ItemV():
            return operators.truth(s, value)
        case ClosureV() | MethodV():
            return ir.Const(True, PYBOOL)
        case ComprehensionV():
            return truth(s, s.as_list(value))
        case ObjectV():
            source = dict_items.source_of(s, value)
            return (
                opaque.opaque_truth(s, value)
                if source is None
                else ir.Const(bool(dict_items.keys_of(s, source)), PYBOOL)
            )
    raise s.unsupported(f"the truth of {s.describe(value)}")


def _truth_by_type(s: Context, value: TaggedScalar) -> ir.Operand:
    *others, found = [truth(s, ScalarV(payload)) for payload in value.payloads]
    for number, one in enumerate(others):
        found = s.builder.select(tags.is_option(s, value, number), one, found)
    return found


def must_not_be_container(s: Context, value: Value, operation: str) -> None:
    """Python has no such operation for lists and the like, whatever NumPy would make of them."""
    if isinstance(value, TupleV | RangeV | DictV | ComprehensionV) or form_of(value).array is not None:
        raise s.unsupported(f"{operation} of {s.describe(value)}")
