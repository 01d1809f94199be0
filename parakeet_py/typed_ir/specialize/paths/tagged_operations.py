"""What a statement does with a scalar of several types (see `tagged_scalars`), alone or in a container.

The statement is tried out on each type. If the results are of one type, and it is known of this operation that it makes
no difference whether the value is converted to the widest type before (`_is_one_operation`), it is done once: nearly
always so in loops. Otherwise there are two ways: code for each type, chosen by the tag; or, where only a loop that does
not run at all gives another type (`rare`), a check that it did run, after which Python takes over.

Statements that put a value somewhere without a look at it leave it as it is.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import Scalar
from parakeet_py.frontend import ssa
from parakeet_py.typed_ir.semantics import OTHER_TYPE
from parakeet_py.typed_ir.specialize.forms import is_list
from parakeet_py.typed_ir.specialize.paths import tags
from parakeet_py.typed_ir.specialize.paths.tagged_scalars import converted, is_exact
from parakeet_py.typed_ir.specialize.paths.templates import ArrayT, Structure, Template, template_of
from parakeet_py.typed_ir.specialize.restarts import NeedObservation
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    NeverV,
    ScalarV,
    Static,
    TaggedScalar,
    TupleV,
    Value,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

MOST_COMBINATIONS = 16  # of types of the scalars in one statement

# What a scalar is put into without regard to its type, or where the module that does it chooses.
_INDIFFERENT = (
    ssa.BuildTuple,
    ssa.BuildList,
    ssa.BuildDict,
    ssa.BuildSlice,
    ssa.MakeClosure,
    ssa.Comprehension,
    ssa.CheckBound,
    ssa.Assert,
    ssa.Raise,
    ssa.BuildString,
)
_PUT_TOGETHER = (len, list, tuple, dict, zip, enumerate, reversed, isinstance, type)
_QUOTIENTS = ("truediv", "floordiv", "mod", "pow")
_OF_EXTENTS = (range, np.zeros, np.ones, np.empty, np.eye, np.identity)
_BY_METHODS = (math.floor, math.ceil, math.trunc)  # which a type has, or else its float is looked at
_OF_NUMBERS = (float, complex, *(one for one in vars(math).values() if callable(one) and one not in _BY_METHODS))


# ---- scalars of several types in operands ----------------------------------------------------------------------------


def tagged_operand(s: Context, op: ssa.Op) -> TaggedScalar | None:
    """A scalar of several types among the operands of an operation, or in them where it looks into them."""
    if isinstance(op, _INDIFFERENT):
        return None
    env = s.frame.env
    for operand in ssa.operands_of(op):  # plain values nearly always: nothing else is made for these
        if operand.__class__ is ssa.Var and not isinstance(env.get(operand), _PLAIN):
            return next(_tagged(s, op), None)
    return None


_PLAIN = (ScalarV, ArrayV, Static, NoneType)


def _tagged(s: Context, op: ssa.Op) -> Iterator[TaggedScalar]:
    if isinstance(op, ssa.Call) and tags.is_inlined(s, op):
        return  # chosen where the function uses it
    for operand in ssa.operands_of(op):
        if not isinstance(operand, ssa.Var) or operand not in s.frame.env:
            continue
        value = s.value(operand)
        if isinstance(value, TaggedScalar):
            yield value
        elif _looks_inside(s, op, operand):
            yield from tags.inside(value, TaggedScalar)


def _looks_inside(s: Context, op: ssa.Op, operand: ssa.Var) -> bool:
    """Does an operation look at the items of this operand?"""
    match op:
        case ssa.Subscript(_, index):
            return operand is index
        case ssa.SetItem(target, index, _):
            return operand is index or isinstance(s.value(target), ArrayV)
        case ssa.Binary(name, left, right) | ssa.Inplace(name, left, right):
            numbers = [isinstance(s.value(side), ArrayV | ScalarV | TaggedScalar) for side in (left, right)]
            return any(numbers) and (name != "mul" or any(isinstance(s.value(side), ArrayV) for side in (left, right)))
        case ssa.Compare(name):
            return name not in ("is", "isnot")
        case ssa.Call(function):
            callee = s.value(function)
            return not (isinstance(callee, Static) and any(callee.object is one for one in _PUT_TOGETHER))
    return False


# ---- operations ------------------------------------------------------------------------------------------------------


def resolve(s: Context, let: ssa.Let, tagged: TaggedScalar) -> Value | None:
    """The value of a statement one of whose operands is, or holds, a scalar of several types."""
    env = s.frame.env
    kinds = tagged.kinds
    shown = {var: s.value(var) for var in ssa.operands_of(let.op) if isinstance(var, ssa.Var) and var in env}

    def done_on(one: Value) -> Value | None:
        return tags.done_on(s, let, {var: tags.replaced(value, tagged, one) for var, value in shown.items()})

    def alone(index: int) -> Value | None:
        return done_on(tags.option(tagged, index))

    def tried_alone(index: int) -> Value | None:
        with s.loops.for_type(index):
            return alone(index)

    every = list(dict.fromkeys(_tagged(s, let.op)))
    if math.prod(len(tags.possible(s, one)) for one in every) > MOST_COMBINATIONS:
        return s.opaque_operation(let, "an operation on scalars of many types")
    numbers = tags.possible(s, tagged)
    if isinstance(let.op, ssa.Call):
        reason = handed_back(s, lambda: tried_alone(numbers[-1]))
        if reason is not None:
            return s.opaque_operation(let, reason)
    by_python: list[str] = []
    found = {index: tried(s, partial(tried_alone, index), by_python) for index in numbers}
    widest = len(kinds) - 1
    if not by_python and widest in found and _is_one_operation(s, let.op, tagged, found):
        return done_on(converted(tagged))
    if tagged.rare:
        s.check(tags.is_option(s, tagged, widest), "Deoptimize", OTHER_TYPE)
        return done_on(converted(tagged))

    able = [index for index, key in found.items() if not isinstance(key, UnsupportedError)]
    if able:  # what cannot be done with a value of one type, or raises, is left to Python where it is of that
        for index, key in found.items():
            if isinstance(key, UnsupportedError) and not tags.must_not_be(s, tagged, index, "Deoptimize", key.message):
                return NeverV()
    return tags.statement(s, let, tagged, alone, able)


def handed_back(s: Context, run: Callable[[], Value | None]) -> str | None:
    """Why Python would do an operation, if it would; it is then given the value, whatever it is."""
    reasons: list[str] = []
    try:
        tried(s, run, reasons)
    except NeedObservation as need:
        return need.reason
    return reasons[-1] if reasons else None


def tried(s: Context, run: Callable[[], Value | None], reasons: list[str]) -> object:
    """What type of value an operation would give; nothing of it is kept. Why Python would do it goes into `reasons`."""
    start, sites = s.checkpoint(), len(s.python.sites)
    try:
        result = run()
        return () if result is None else _key(template_of(result, varying=True))
    except UnsupportedError as error:
        return error
    finally:
        reasons.extend(site.reason for site in s.python.sites[sites:])
        s.rollback(start)


def _key(template: Template) -> object:
    """What distinguishes types of values."""
    match template:
        case ArrayT(kind):
            return kind.dtype, kind.rank
        case Structure(like, parts):
            return type(like), tuple(map(_key, parts))
    return template


# ---- what can be done once -------------------------------------------------------------------------------------------


def _is_one_operation(s: Context, op: ssa.Op, tagged: TaggedScalar, found: dict[int, object]) -> bool:
    """Is it all the same whether a value is converted to the widest type before an operation, or what NumPy or Python
    make of it? `found` are the types of the results."""
    *others, result = found.values()
    if any(key != result for key in others) or isinstance(result, UnsupportedError):
        return False
    kinds, main = tagged.kinds, tagged.kinds[-1]
    exact = all(is_exact(kind, main) for kind in kinds)
    whole = exact and all(np.dtype(kind.dtype).kind in "iu" for kind in kinds)
    inexact = np.dtype(main.dtype).kind in "fc"
    dtype = result.dtype if isinstance(result, Scalar) else result[0] if isinstance(result, tuple) and result else None

    def holds(operand: ssa.Operand) -> bool:
        return bool(s.value(operand) == tagged)

    match op:
        case ssa.Binary() | ssa.Inplace():
            in_place = isinstance(op, ssa.Inplace) and isinstance(s.value(op.left), ArrayV)
            if in_place and len({kind.python for kind in kinds}) > 1:
                return False  # Python's ints must fit
            if op.op in _QUOTIENTS and not whole and any(kind.python for kind in kinds[:-1]):
                return False  # Python rounds quotients of ints once, and says of zeros what they were divided by
            if (
                inexact
                and "complex" in main.dtype
                and sys.version_info >= (3, 14)
                and any(kind.python for kind in kinds)
            ):
                return False  # a real number of Python's beside a complex one is not converted
            return exact or (inexact and dtype == main.dtype)
        case ssa.Compare("eq" | "ne" | "lt" | "le" | "gt" | "ge", left, right) if holds(left) != holds(right):
            other = s.value(right if holds(left) else left)
            return all(_compares_alike(kind, main, other) for kind in kinds)
        case ssa.Unary("not"):
            return exact or inexact
        case ssa.Unary():
            return exact
        case ssa.Subscript(held, index) if not holds(held):
            return whole and (isinstance(s.value(held), ArrayV | TupleV) or is_list(s.value(held)))
        case ssa.SetItem(target, index, value) if isinstance(array := s.value(target), ArrayV):
            indices, stored = _is_in(s, index, tagged), _is_in(s, value, tagged)
            if stored and not (holds(value) and _stores_alike(kinds, np.dtype(array.dtype))):
                return False
            return whole or not indices
        case ssa.Call(function, args, ()) if isinstance(callee := s.value(function), Static):
            if any(callee.object is one for one in _OF_EXTENTS):
                return whole
            if callee.object is np.arange:  # whose difference of NumPy's numbers is one of their types
                return whole and all(kind.python or kind.dtype == "int64" for kind in kinds)
            plain = [arg for arg in args if not isinstance(arg, ssa.Star)]
            if len(plain) < len(args) or any(_is_in(s, arg, tagged) and not holds(arg) for arg in plain):
                return False
            if any(callee.object is one for one in _OF_NUMBERS):
                return exact or (inexact and dtype == main.dtype)
            if isinstance(callee.object, np.ufunc) and len(args) == callee.object.nin and dtype not in ("bool", None):
                return exact or (inexact and dtype == main.dtype)
    return False


def _is_in(s: Context, operand: ssa.Operand, tagged: TaggedScalar) -> bool:
    return any(found == tagged for found in tags.inside(s.value(operand), TaggedScalar))


def comparable(value: Value, other: Value) -> Value:
    """A value to compare with another one: as the widest type, if only the type of the result tells a difference."""
    if isinstance(value, TaggedScalar) and all(_compares_alike(kind, value.kinds[-1], other) for kind in value.kinds):
        return converted(value)
    return value


def _compares_alike(kind: Scalar, main: Scalar, other: Value) -> bool:
    """Is a comparison of what is converted the same? Python compares numbers of all types exactly, NumPy after a
    conversion to a common type, for which Python's numbers do not count."""
    if kind == main:
        return True
    if not isinstance(other, ScalarV | ArrayV):
        return False
    exact = is_exact(kind, main)
    if all(np.dtype(dtype).kind in "biu" for dtype in (kind.dtype, main.dtype, other.dtype)):
        return exact  # integers are compared as they are
    if isinstance(other, ScalarV) and other.python and kind.python and main.python:
        return exact
    common, wide = _compared_as(kind, other), _compared_as(main, other)
    if common is None or common != wide:
        return False
    return exact or (common.kind in "fc" and common == np.dtype(main.dtype))


def _compared_as(kind: Scalar, other: ScalarV | ArrayV) -> np.dtype[np.generic] | None:
    """The type that NumPy compares in; None for two of Python's."""
    weak = isinstance(other, ScalarV) and other.python
    if kind.python and weak:
        return None
    sides = (kind.python, kind.dtype), (weak, other.dtype)
    return np.result_type(*(np.dtype(dtype).type(1).item() if python else np.dtype(dtype) for python, dtype in sides))


def _stores_alike(kinds: Sequence[Scalar], array: np.dtype[np.generic]) -> bool:
    """Is what is stored into an array the same, with the same exceptions?"""
    main = kinds[-1]
    wide = np.dtype(main.dtype)
    if array.kind in "fc":
        real = wide.kind != "c" or array.kind == "c"
        return real and all(is_exact(kind, main) or array == wide for kind in kinds)
    together = len({kind.python for kind in kinds}) == 1
    return together and wide.kind in "biu" and all(is_exact(kind, main) for kind in kinds)


__all__ = ["comparable", "handed_back", "resolve", "tagged_operand", "tried"]
