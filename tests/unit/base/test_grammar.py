"""What the grammar reads off the annotations of records, on a small IR of its own and on the IRs of the compiler."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from parakeet_py.base import grammar
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.grammar import Leaf, Use
from parakeet_py.frontend import ssa
from parakeet_py.imp import ir as imp
from parakeet_py.typed_ir import ir as typed


@record(eq=False)
class Name:
    name: str


@record
class Number:
    value: int


Value = Name | Number
Bound = Annotated[Name, Use.BINDS]


@record
class Body:
    statements: tuple[Everything, ...]
    results: tuple[Value, ...] = ()


@record
class Pair:
    key: Value
    label: str


@record
class Everything:
    text: str
    one: Value
    many: tuple[Value, ...]
    pairs: tuple[tuple[Value | None, str, Value], ...]
    records: tuple[Pair, ...]
    maybe: Value | None
    either: Value | Pair
    binder: Bound
    read: Annotated[Name, Use.READS]
    body: Body | None


grammar.leaf(Leaf.OPERAND, Name)
grammar.leaf(Leaf.CONSTANT, Number)
grammar.leaf(Leaf.BLOCK, Body)

A, B, C, D, E, F, G, H, R, J, K = map(Name, "abcdefghijk")
ONE = Number(1)
BODY = Body((), (A,))
OP = Everything("t", A, (B, ONE), ((None, "", C), (D, "", E)), (Pair(F, "x"),), None, Pair(G, "y"), H, R, BODY)


def test_parts_are_found_in_the_order_of_fields() -> None:
    assert grammar.operands(OP) == (A, B, ONE, C, D, E, F, G, R)
    assert grammar.binders(OP) == (H,)
    assert grammar.blocks(OP) == (BODY,)
    assert grammar.reads(OP) == (R,)
    assert grammar.writes(OP) == ()


def test_an_operator_that_does_not_change_stays_the_same_object() -> None:
    assert grammar.rebuild(OP, lambda one: one, lambda one: one, lambda one: one) is OP


@pytest.mark.parametrize("old", [A, B, ONE, C, D, E, F, G, R])
def test_one_operand_is_replaced(old: Any) -> None:
    made = grammar.rebuild(OP, lambda one: K if one is old else one)
    assert grammar.operands(made) == tuple(K if one is old else one for one in grammar.operands(OP))
    assert made.body is BODY and made.text == "t" and made.maybe is None and made.binder is H


def test_binders_and_blocks_are_replaced() -> None:
    other = Body((), (B,))
    made = grammar.rebuild(OP, lambda one: one, lambda one: J, lambda one: other)
    assert made.binder is J and made.body is other and made.many is OP.many


def test_what_is_bound_in_a_block_is_not_free_in_it() -> None:
    inner = Body((), (H, B))
    outer = Body((Everything("t", A, (), (), (), None, ONE, H, R, inner),), (ONE,))
    assert list(grammar.free_variables(outer)) == [A, R, B]
    changed = grammar.substitute(outer, {B: C})
    assert list(grammar.free_variables(changed)) == [A, R, C]
    assert grammar.substitute(outer, {K: C}) is outer


KINDS = [
    (kind, module)
    for module in (ssa, typed, imp)
    for kind in vars(module).values()
    if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__") and kind.__module__ == module.__name__
]


@pytest.mark.parametrize(("kind", "module"), KINDS, ids=[f"{m.__name__}.{k.__name__}" for k, m in KINDS])
def test_every_field_of_the_irs_is_understood(kind: Any, module: Any) -> None:
    """Fields are plain data if, and only if, their annotations name nothing of the program."""
    plain = {"str", "int", "bool", "int | None", "str | None", "Pos", "Any", "Type", "Scalar", "Failure", "WarpTile"}
    plain |= {"tuple[int, ...]", "tuple[str, ...]", "tuple[FailureSite, ...]", "frozenset[str]", "Function"}
    plain |= {"bool | int | float | complex", "tuple[Function, ...]", "dict[Var | Cell, frozenset[int]]"}
    plain |= {"tuple[tuple[str, str], ...]", "tuple[Handler, ...]"}
    if kind is module.Function:
        return
    for name, shape in grammar._fields(kind).items():
        text = str(kind.__dataclass_fields__[name].type)
        assert (shape is None) == (text in plain), f"{name}: {text}"
