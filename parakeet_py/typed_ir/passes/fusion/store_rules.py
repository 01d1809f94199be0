"""Whether reads may move into a `Map` that stores: the snapshot rule.

`a[1:] += a[:-1]` computes its right-hand side completely before it stores. The two loops become one only where no
iteration reads what another iteration writes, which is proved for every pair of a read and a store in one memory:

* *same element*: equal index forms, in which each index of the space is alone in some coordinate, so that an iteration
  touches its own element only (`a += b`; the read comes first);
* *disjoint*: in some coordinate the two can never be equal, because they differ by a constant, by a remainder or in
  sign (`A[i] += A[i - 1]` in the row index, `a[::2] = a[1::2]`, `A[k + 1 + i, k]` and `A[k + 1 + i, k + 1 + j]`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Let, Op, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear, atom
from parakeet_py.typed_ir.rewrite import bound_in

_LARGEST_COEFFICIENT = 1 << 20  # times an index below 2^43 stays an int64


@record
class Access:
    """One element of one array: the index forms, or None where the access is not a single element."""

    array: Var
    position: tuple[Linear, ...] | None


def accesses(block: Block, forms: Forms, kind: type[ir.Load] | type[ir.Store]) -> Iterator[Access]:
    """The loads or the stores of a block, all depths; operators on whole arrays come with position None."""
    for let in block.statements:
        op = let.op
        if op.__class__ is kind:
            yield Access(op.array, tuple([forms.of(index) for index in op.indices]))
        else:
            arrays = ir.arrays_read(op) if kind is ir.Load else ir.arrays_written(op)
            yield from [Access(array, None) for array in arrays]
        for inner in ir.blocks_of(op):
            yield from accesses(inner, forms, kind)


def harmless_stores(
    consumer: Op,
    producer: Let,
    position: Sequence[Operand],
    forms: Forms,
    aliases: Aliases,
) -> bool:
    """May the `Map` `producer` be computed at `position` inside the storing `Map` `consumer`, in its iterations?"""
    made = producer.op
    if not isinstance(consumer, ir.Map) or not isinstance(made, ir.Map):
        return False
    at = {index: forms.of(operand) for index, operand in zip(made.indices, position, strict=True)}
    space = Space(consumer.indices, bound_in(consumer.body) | bound_in(made.body))
    stores = list(accesses(consumer.body, forms, ir.Store))
    for load in accesses(made.body, forms, ir.Load):
        moved = Access(load.array, None if load.position is None else tuple([_at(form, at) for form in load.position]))
        for store in stores:
            if aliases.may_alias(load.array, store.array) and not independent(moved, store, space):
                return False
    return not any(aliases.may_alias(out, store.array) for out in producer.outs for store in stores)


@record
class Space:
    """The iterations that two accesses are compared over: index variables, and what else differs between them."""

    indices: tuple[Var, ...]  # each 0 <= i
    inner: set[Var]  # bound inside an iteration


def _at(form: Linear, mapping: Mapping[Var, Linear]) -> Linear:
    for var in form.variables():
        if var in mapping:
            form = form.substitute(var, mapping[var])
    return form


def independent(read: Access, write: Access, space: Space) -> bool:
    """Does no iteration read what another one writes?"""
    if read.array is not write.array or read.position is None or write.position is None:
        return False
    if read.position == write.position and own_element(write.position, space):
        return True
    return disjoint(read.position, write.position, space)


def own_element(position: Sequence[Linear], space: Space) -> bool:
    """Do different iterations have different positions? Each index is alone in some coordinate."""
    missing = set(space.indices)
    for form in position:
        varying = [(var, k) for var, k in form.terms if var in space.indices or var in space.inner]
        if len(varying) == 1 and abs(varying[0][1]) <= _LARGEST_COEFFICIENT:
            missing.discard(varying[0][0])
    return not missing


def disjoint(left: Sequence[Linear], right: Sequence[Linear], space: Space) -> bool:
    """Can `left` in one iteration never equal `right` in any other or the same one?"""
    other: dict[Var, Linear] = {}
    signs = set(space.indices)  # variables that are not negative
    for var in {var for form in right for var in form.variables()}:
        if var in space.indices or var in space.inner:
            elsewhere = Var(var.name, var.type)
            other[var] = atom(elsewhere)
            if var in space.indices:
                signs.add(elsewhere)
    for one, two in zip(left, right, strict=True):
        difference = one - _at(two, other)
        constant, terms = difference.constant, difference.terms
        if constant and all(var in signs and (k > 0) == (constant > 0) for var, k in terms):
            return True  # without terms, too
        divisor = math.gcd(*(k for _, k in terms)) if terms else 0
        if divisor > 1 and constant % divisor:
            return True
    return False
