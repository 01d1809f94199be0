"""Values with a tag: scalars of one of several types (`TaggedScalar`), values of one of several kinds (`VariantV`).

The tag is a number that is computed at run time: which of its options a value is. What is known of it (`possible`)
comes from `learn`, which looks through the condition of a branch, back to the tests of tags that it is made of. What
depends on it is code of its own for each option that the value can be (`chosen`), or a check that it is none of those
for which there is no code (`must_not_be`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.frontend import ssa
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.forms import parts_of, rebuild
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ClosureV,
    DictV,
    IteratorV,
    MethodV,
    NeverV,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TupleV,
    Value,
    VariantV,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

Tagged = TaggedScalar | VariantV
T = TypeVar("T", bound=Tagged)


def _tag(value: Tagged) -> ir.Operand:
    return value.tag.operand if isinstance(value, VariantV) else value.tag


def option(value: Tagged, number: int) -> Value:
    """The value as it is when the tag has this number."""
    return value.options[number] if isinstance(value, VariantV) else ScalarV(value.payloads[number])


# ---- what is known of a tag ------------------------------------------------------------------------------------------


def possible(s: Context, value: Tagged) -> list[int]:
    """The numbers of the options that a value can be here."""
    tag = _tag(value)
    if isinstance(tag, ir.Const):
        return [int(tag.value.real)]
    excluded = s.builder.excluded(tag)
    count = len(value.options if isinstance(value, VariantV) else value.kinds)
    return [number for number in range(count) if number not in excluded]


def narrowed(s: Context, value: Value) -> Value:
    """The option that a value is, if that is known."""
    while isinstance(value, Tagged) and len(numbers := possible(s, value)) == 1:
        value = option(value, numbers[0])
    return value


def is_option(s: Context, value: Tagged, number: int) -> ir.Operand:
    """Is it the option of this number?"""
    numbers = possible(s, value)
    if number not in numbers:
        return ir.Const(False, PYBOOL)
    if len(numbers) == 1:
        return ir.Const(True, PYBOOL)
    return s.builder.prim("eq", _tag(value), ir.Const(number, PYINT), type=PYBOOL)


def learn(s: Context, condition: ir.Operand, holds: bool, depth: int = 8) -> None:
    """Note in the open block what a condition says of tags."""
    b = s.builder
    if not isinstance(condition, ir.Var) or not depth:
        return
    match b.definition.get(condition):
        case ir.Prim("eq", (ir.Var() as tag, ir.Const(number))) if tag in b.tags:
            others = range(b.tags[tag])
            b.exclude(tag, [other for other in others if (other == int(number.real)) != holds])
        case ir.Prim("not", (inner,)):
            learn(s, inner, not holds, depth - 1)
        case ir.Cast(inner):
            learn(s, inner, holds, depth - 1)
        case ir.Prim("and", parts) if holds:
            for part in parts:
                learn(s, part, True, depth - 1)
        case ir.Prim("or", parts) if not holds:
            for part in parts:
                learn(s, part, False, depth - 1)
        case ir.Prim("select", (test, yes, no)):
            _learn_choice(s, test, yes, no, holds, depth)
        case ir.If(test, then, orelse):
            place = b.place.get(condition, 0)
            _learn_choice(s, test, then.results[place], orelse.results[place], holds, depth)


def _learn_choice(s: Context, test: ir.Operand, yes: ir.Operand, no: ir.Operand, holds: bool, depth: int) -> None:
    """What follows from the result of a branch: which way it went, if the other way gives something else."""
    for result, other, taken in ((yes, no, False), (no, yes, True)):
        if isinstance(result, ir.Const) and bool(result.value) != holds:
            learn(s, test, taken, depth - 1)
            learn(s, other, holds, depth - 1)


def must_not_be(s: Context, value: Tagged, number: int, exception: str, message: str) -> bool:
    """Raise if the value is the option of this number; may it be another one?"""
    here = is_option(s, value, number)
    s.check(s.builder.prim("not", here, type=PYBOOL), exception, message)
    if not s.dead:
        learn(s, here, False)
    return not s.dead


def renumbered(s: Context, value: Tagged, places: Sequence[int]) -> ir.Operand:
    """The tag of a value whose options have these numbers where paths meet."""
    tag = _tag(value)
    if list(places) == list(range(len(places))):
        return tag
    b = s.builder
    found: ir.Operand = ir.Const(places[0], PYINT)
    for number in range(1, len(places)):
        here = b.prim("eq", tag, ir.Const(number, PYINT), type=PYBOOL)
        found = b.select(here, ir.Const(places[number], PYINT), found)
    return found


# ---- code for each option --------------------------------------------------------------------------------------------


def chosen(
    s: Context, value: Tagged, run: Callable[[int], list[Value]], numbers: Sequence[int] | None = None
) -> list[Value]:
    """What `run` gives for the option that the value is, one of these `numbers` (of all that it can be)."""

    def alone(number: int) -> list[Value]:
        with s.loops.for_type(number):
            return run(number)

    def chain(number: int, *rest: int) -> list[Value]:
        if not rest:
            return alone(number)
        return s.branch(is_option(s, value, number), lambda: alone(number), lambda: chain(*rest))

    order = list(numbers or possible(s, value))
    if isinstance(value, TaggedScalar):
        order.reverse()  # the widest, which it has most often, is tested first
    return chain(*order)


def each_option(s: Context, value: VariantV, run: Callable[[Value], Value]) -> Value:
    """What `run` gives for the option that the value is."""
    return chosen(s, value, lambda number: [run(value.options[number])])[0]


def statement(
    s: Context, let: ssa.Let, value: Tagged, run: Callable[[int], Value | None], numbers: Sequence[int] | None = None
) -> Value | None:
    """The value of a statement which is that of `run` for the option that the value is."""

    def some(number: int) -> list[Value]:
        result = run(number)
        return [NONE if result is None else result]

    (result,) = chosen(s, value, some, numbers)
    return result if let.outs or isinstance(result, NeverV) else None


def done_on(s: Context, let: ssa.Let, values: Mapping[ssa.Var, Value]) -> Value | None:
    """The value of a statement with other values of its operands."""
    env = s.frame.env
    own = {var: env[var] for var in values}
    env.update(values)
    try:
        return s.single(let)
    finally:
        env.update(own)


def is_inlined(s: Context, op: ssa.Call) -> bool:
    """Is this a call of a function that is looked into, which chooses where it uses its arguments?"""
    function = s.value(op.function)
    return isinstance(function, ClosureV) or (
        isinstance(function, Static) and s.looked_into(function.object) is not None
    )


# ---- in containers ---------------------------------------------------------------------------------------------------


_LOOKED_INTO = (TupleV, IteratorV, DictV, SliceV, MethodV)


def inside(value: Value, kind: type[T]) -> Iterator[T]:
    """The values with a tag in a container."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, _LOOKED_INTO):
        for part in parts_of(value):
            yield from inside(part, kind)


def replaced(value: Value, tagged: T, one: Value) -> Value:
    """A value with `one` wherever the value with a tag is in it."""
    if value == tagged:
        return one
    if not any(found == tagged for found in inside(value, type(tagged))):
        return value
    return rebuild(value, tuple([replaced(part, tagged, one) for part in parts_of(value)]))
