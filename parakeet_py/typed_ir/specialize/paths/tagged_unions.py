"""Values of different kinds on different paths: None until something has been found, then a number, an array, a tuple.

    best = None
    for v in x:
        if best is None or v > best:
            best = v

Such a value is a `VariantV`: its options, of which no two are of one kind, and a tag, the number of the option that it
is. (Scalars of different types are one option, see `tagged_scalars`; so are arrays of one dtype and rank.)

What is done with one is done with each option that it can be: those for which Python has nothing but an exception, as
for `None + 1`, become checks, for the others there is code of its own, chosen by the tag. What is known of the tag
keeps these few (see `tags`): in the branch behind `best is None or`, and behind `if found is None: return`, the value
is known to be the number.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.errors import UnsupportedError, name_of_exception
from parakeet_py.base.types import PYBOOL, PYINT, Scalar
from parakeet_py.frontend import ssa
from parakeet_py.frontend.operators import BINARY, COMPARE, INPLACE, UNARY
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.containers import dynamic_lists
from parakeet_py.typed_ir.specialize.forms import is_list
from parakeet_py.typed_ir.specialize.message_arguments import escaped
from parakeet_py.typed_ir.specialize.paths import join, tags
from parakeet_py.typed_ir.specialize.paths.tagged_operations import handed_back, tried
from parakeet_py.typed_ir.specialize.paths.templates import (
    ArrayT,
    EitherT,
    Fixed,
    Structure,
    Template,
    template_of,
    varying,
)
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    CharV,
    DictV,
    ErrorV,
    InstanceV,
    ItemV,
    MessageV,
    MethodV,
    NeverV,
    ObjectV,
    RefV,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TextV,
    TimeV,
    TupleV,
    UnboundV,
    Value,
    VariantV,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

MAX_OPTIONS = 6
MAX_ERRORS = 40  # that a handler distinguishes
_PLACED = (
    ssa.BuildTuple,
    ssa.BuildList,
    ssa.BuildDict,
    ssa.BuildSlice,
    ssa.MakeClosure,
    ssa.CheckBound,
)  # what does not look at it


# ---- through joins ---------------------------------------------------------------------------------------------------


def kind_of(template: Template) -> object:
    """What two options of a value must not have in common; None for what cannot be an option."""
    match template:
        case Scalar() | EitherT() | Fixed(ScalarV() | TaggedScalar()):
            return "scalar"
        case ArrayT(kind):
            return "array", kind.dtype, kind.rank
        case Fixed((Static(None | str()) | RefV()) as value):
            return value
        case Structure(InstanceV(cls, names)):
            return "instance", cls, names
        case Structure(ItemV(listed=listed)):
            return "item", listed.item.like.cls
        case Structure(CharV() | TextV() as like):
            return type(like)
        case Structure(TimeV(unit=unit), (Scalar(),)):
            return "time", unit
        case Structure(like) if is_list(like):
            return dynamic_lists.kind_as_option(like)
        case Structure(TupleV(items, kind, named)):
            return kind, len(items), named
        case Structure(ErrorV(error, message, args)):
            return "error", error, message, len(args)
        case Structure(MessageV(message, args)):
            return "text", message, len(args)
    return None


def _options(template: Template) -> Sequence[Template]:
    match template:
        case Structure(VariantV(), parts):
            return parts[1:]
    return (template,)


def joined(s: Context, left: Template, right: Template) -> Structure | None:
    """The template of a value that is one of these two; None where there is none."""
    found: dict[object, Template] = {}
    for template in (*_options(left), *_options(right)):
        kind = kind_of(template)
        if kind is None:
            return None
        own = varying(template)
        found[kind] = join.join(s, found[kind], own) if kind in found else own
    errors = sum(isinstance(kind, tuple) and kind[0] == "error" for kind in found)
    if len(found) - errors > MAX_OPTIONS or errors > MAX_ERRORS:
        return None
    parts = tuple(found.values())
    if isinstance(left, Structure) and isinstance(left.like, VariantV) and len(left.parts) == len(parts) + 1:
        return Structure(left.like, (PYINT, *parts))
    return Structure(VariantV(py(0), tuple(NeverV() for _ in parts)), (PYINT, *parts))


def leaves(s: Context, value: Value, template: Structure, like: Value | None) -> list[ir.Operand]:
    """The operands of a value for a join: its tag, then those of every option."""
    kinds = [kind_of(part) for part in template.parts[1:]]
    own: dict[object, Value] = {}
    tag: ir.Operand = ir.Const(0, PYINT)
    if isinstance(value, VariantV):
        places = []
        for option in value.options:
            kind = kind_of(template_of(option, varying=True))
            own[kind] = option
            places.append(kinds.index(kind))
        tag = tags.renumbered(s, value, places)
    elif not isinstance(value, UnboundV | NeverV):
        kind = kind_of(template_of(value, varying=True))
        own[kind] = value
        tag = ir.Const(kinds.index(kind), PYINT)
    found = [tag]
    for kind, part in zip(kinds, template.parts[1:], strict=True):
        found += join.leaves_of(s, own.get(kind, NeverV()), part, like)
    return found


# ---- operations ------------------------------------------------------------------------------------------------------


def truth(s: Context, value: VariantV) -> ir.Operand:
    found = tags.each_option(s, value, lambda option: ScalarV(s.truth(option)))
    assert isinstance(found, ScalarV)
    return found.operand


def boxed(s: Context, value: VariantV) -> ObjectV:
    """The value as a Python object."""
    found = tags.each_option(s, value, s.boxed)
    assert isinstance(found, ObjectV)
    return found


def variant_operand(s: Context, op: ssa.Op) -> ssa.Var | None:
    """An operand of several kinds that an operation has to resolve."""
    if isinstance(op, _PLACED):
        return None
    env = s.frame.env
    for operand in ssa.operands_of(op):
        if not isinstance(operand, ssa.Var):
            continue
        held = env.get(operand)
        if isinstance(held, VariantV):
            if isinstance(s.value(operand), VariantV) and not (isinstance(op, ssa.Call) and tags.is_inlined(s, op)):
                return operand
        elif isinstance(held, _HOLDERS) and _looks_inside(op, operand) and _inside(held):
            return operand
    return None


_HOLDERS = (SliceV, MethodV, TupleV)


def _inside(value: Value | None) -> VariantV | None:
    """What may be of several kinds in an index (a bound of a slice) or a method (its object)."""
    match value:
        case SliceV(lower, upper, step):
            return next((part for part in (lower, upper, step) if isinstance(part, VariantV)), None)
        case MethodV(VariantV() as part, _):
            return part
        case TupleV(items):
            return next((found for found in map(_inside, items) if found), None)
    return None


def _looks_inside(op: ssa.Op, operand: ssa.Operand) -> bool:
    match op:
        case ssa.Subscript(_, index) | ssa.SetItem(_, index, _):
            return operand is index
        case ssa.Call(function):
            return operand is function
    return False


def resolve(s: Context, let: ssa.Let, var: ssa.Var) -> Value | None:
    """The value of a statement one of whose operands may be of several kinds."""
    value = s.value(var)
    if not isinstance(value, VariantV):  # a subscript or call with something in an operand that may be
        bound = _inside(value)
        assert bound is not None
        parts = [tags.replaced(value, bound, option) for option in bound.options]
        return tags.statement(s, let, bound, lambda number: tags.done_on(s, let, {var: parts[number]}))
    test = _test(s, let.op, var, value)
    if test is not None:
        return test

    def alone(number: int) -> Value | None:
        return tags.done_on(s, let, {var: value.options[number]})

    def tried_alone(number: int) -> Value | None:
        with s.loops.for_type(number):
            return alone(number)

    for number in tags.possible(s, value):
        error = _error(s, let.op, var, value.options[number])
        if error is not None and not tags.must_not_be(s, value, number, type(error).__name__, escaped(str(error))):
            return NeverV()
    refused: dict[int, UnsupportedError] = {}
    for number in tags.possible(s, value):
        reason = handed_back(s, partial(tried_alone, number))
        if reason is not None and isinstance(let.op, ssa.Call):
            return s.opaque_operation(let, reason)
        if reason is not None:
            return tags.done_on(s, let, {var: boxed(s, value)})
        found = tried(s, partial(tried_alone, number), [])
        if isinstance(found, UnsupportedError):
            refused[number] = found
    if len(refused) == len(tags.possible(s, value)):
        raise next(iter(refused.values()))
    for number, refusal in refused.items():
        if not tags.must_not_be(s, value, number, "Deoptimize", refusal.message):
            return NeverV()
    return tags.statement(s, let, value, alone)


def _test(s: Context, op: ssa.Op, var: ssa.Var, value: VariantV) -> Value | None:
    """`value is None`, `value == "up"`: a test of the tag."""
    match op:
        case ssa.Compare("is" | "isnot" | "eq" | "ne" as name, left, right):
            other = s.value(right if left is var else left)
        case _:
            return None
    if not isinstance(other, Static) or not isinstance(other.object, str | None):
        return None
    wanted = []
    for number in tags.possible(s, value):
        option = value.options[number]
        if isinstance(option, Static):
            if option == other:
                wanted.append(number)
        elif name in ("eq", "ne") and not (
            isinstance(option, ScalarV | TaggedScalar | TupleV | DictV) or is_list(option)
        ):
            return None  # what compares item by item
    if name in ("eq", "ne") and other.object is not None and any(_may_be_numpy(option) for option in value.options):
        return None  # a NumPy bool
    found: ir.Operand = ir.Const(False, PYBOOL)
    for number in wanted:
        found = s.builder.logical_or(found, tags.is_option(s, value, number))
    return ScalarV(found if name in ("is", "eq") else s.builder.prim("not", found, type=PYBOOL))


def _may_be_numpy(value: Value) -> bool:
    match value:
        case ScalarV():
            return not value.python
        case TaggedScalar(kinds):
            return not all(kind.python for kind in kinds)
    return False


class _NoSample(Exception):
    """There is no Python object that stands for all values of a kind."""


def _error(s: Context, op: ssa.Op, var: ssa.Var, option: Value) -> BaseException | None:
    """The exception that Python raises for an operation on None or a string, whatever the numbers are, and for a store
    into a number."""
    if isinstance(op, ssa.SetItem) and op.object is var and isinstance(option, ScalarV):
        return _no_store(_sample(option))
    if not isinstance(option, Static):
        return None

    def sample(operand: ssa.Operand) -> Any:
        return _sample(option if operand is var else s.value(operand))

    try:
        match op:
            case ssa.Binary(name, left, right):
                BINARY[name](sample(left), sample(right))
            case ssa.Inplace(name, left, right):
                INPLACE[name](sample(left), sample(right))
            case ssa.Compare("lt" | "le" | "gt" | "ge" as name, left, right):
                COMPARE[name](sample(left), sample(right))
            case ssa.Unary("neg" | "pos" | "invert" as name, operand):
                UNARY[name](sample(operand))
            case ssa.Subscript(held, _) if held is var and option.object is None:
                operator.getitem(option.object, 0)  # type: ignore[call-overload]
            case ssa.SetItem(held, _, _) if held is var and option.object is None:
                return _no_store(None)
            case ssa.Attribute(held, name) if held is var:
                getattr(option.object, name)
            case ssa.Call(function, args, ()) if not any(isinstance(arg, ssa.Star) for arg in args):
                target = s.value(function)
                if isinstance(target, Static) and _needs_numbers(target.object):
                    given = [sample(arg) for arg in args if not isinstance(arg, ssa.Star)]
                    if target.object in (min, max) and not _of_one_type(given):
                        return None  # the message names the type of the best number so far
                    target.object(*given)
    except (TypeError, AttributeError) as error:
        return error if name_of_exception(type(error)) == type(error).__name__ else None  # one of Python's own
    except (_NoSample, ArithmeticError, ValueError):
        return None
    return None


def fails(s: Context, op: ssa.Op) -> bool:
    """Say what Python raises for an operation on None, as for one of several kinds; False if it is no such operation.

    Before a loop has shown what a name holds later, it holds None alone, also where a test keeps the first turn away.
    """
    for operand in ssa.operands_of(op):
        if isinstance(operand, ssa.Var) and s.value(operand) == NONE:
            error = _error(s, op, operand, NONE)
            if error is not None:
                s.check(ir.Const(False, PYBOOL), type(error).__name__, escaped(str(error)))
                return True
            if any(isinstance(s.value(one), TimeV) for one in ssa.operands_of(op)):
                s.check(ir.Const(False, PYBOOL), "Deoptimize", "an operation of a time and None")
                return True
    return False


def _no_store(value: Any) -> BaseException | None:
    try:
        operator.setitem(value, 0, 0)
    except TypeError as error:
        return error
    return None


def _needs_numbers(function: Any) -> bool:
    """Is this a function of numbers alone?"""
    return isinstance(function, np.ufunc) or any(function is one for one in _OF_NUMBERS)


_OF_NUMBERS = (abs, min, max, int, float, complex, round, divmod, range, *vars(math).values())


def _of_one_type(values: Sequence[Any]) -> bool:
    return len({type(value) for value in values if isinstance(value, complex | float | int | np.generic)}) < 2


def _sample(value: Value) -> Any:
    match value:
        case ScalarV():
            one = np.dtype(value.dtype).type(1)
            return one.item() if value.python else one
        case Static(None | str()):
            return value.object
        case TupleV(items, kind, None):
            parts = [_sample(item) for item in items]
            return parts if kind == "list" else tuple(parts)
    raise _NoSample


def sole(s: Context, value: Value, message: str) -> Value:
    """For what takes None for an error: the value, which is not None."""
    if not isinstance(value, VariantV):
        return value
    for number in tags.possible(s, value):
        if value.options[number] == Static(None):
            tags.must_not_be(s, value, number, "TypeError", message)
    return tags.narrowed(s, value)


__all__ = ["boxed", "fails", "joined", "kind_of", "leaves", "resolve", "sole", "truth", "variant_operand"]
