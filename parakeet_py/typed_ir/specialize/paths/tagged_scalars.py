"""Scalars whose type depends on the path: `x = 1 if c else 2.5`, or a sum that is the int 0 when the loop is empty.

Such a scalar is a `TaggedScalar`: its possible types, the widest last; a tag, the index of the type that it has; and a
payload for each type. The payload of that type is the value. The others mean nothing, but for the last, which is always
the value converted to the widest type, as a cast does that: lossy perhaps, yet loops that need nothing else carry
nothing else. A `TaggedScalar` is no `ScalarV`: it has no operand, and whatever takes one chooses first, by `each` here
or by `tagged_operations` for the statements of a program; `tags` has what these share with values of several kinds.

Inside the library's own functions types just widen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.types import PYINT, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.rewrite import Uses
from parakeet_py.typed_ir.specialize.paths import tags
from parakeet_py.typed_ir.specialize.paths.templates import EitherT, Template, types_of
from parakeet_py.typed_ir.specialize.values import (
    ScalarV,
    SliceV,
    TaggedScalar,
    Value,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def is_exact(kind: Scalar, main: Scalar) -> bool:
    """Does `main` represent all values of `kind`?"""
    own, wide = np.dtype(kind.dtype), np.dtype(main.dtype)
    if own.kind in "iu" and own.itemsize == 8 and wide.kind in "fc":
        return False
    return np.can_cast(own, wide, "safe")


# ---- choosing --------------------------------------------------------------------------------------------------------


def converted(value: TaggedScalar) -> ScalarV:
    """The value as the widest of its types, whichever it has: only for what makes no difference between the two."""
    return ScalarV(value.payloads[-1])


def each(s: Context, values: Sequence[Value], run: Callable[..., list[Value]]) -> list[Value]:
    """What `run` gives for values each of which has one type; bounds of slices have one, too."""
    looked_at = [value for value in values if isinstance(value, TaggedScalar | SliceV)]
    tagged = next((found for value in looked_at for found in tags.inside(value, TaggedScalar)), None)
    if tagged is None:
        return run(*values)

    def alone(index: int) -> list[Value]:
        one = tags.option(tagged, index)
        return each(s, [tags.replaced(value, tagged, one) for value in values], run)

    return tags.chosen(s, tagged, alone)


# ---- through joins ---------------------------------------------------------------------------------------------------


def leaves(s: Context, value: Value, kinds: tuple[Scalar, ...], like: Value | None = None) -> list[ir.Operand]:
    """The operands of a value for a join of these types.

    Payloads that do not matter are those of `like`, the value of the other path, if it has them: they do not change
    from path to path then.
    """
    b = s.builder
    payloads = {kind: _zero(kind) for kind in kinds}
    match like:
        case TaggedScalar():
            payloads |= _in_scope(s, dict(zip(like.kinds, like.payloads, strict=True)))
        case ScalarV():
            payloads |= _in_scope(s, {like.type: like.operand})
    match value:
        case ScalarV():
            tag: ir.Operand = ir.Const(kinds.index(value.type), PYINT)
            payloads |= {kinds[-1]: b.cast(value.operand, kinds[-1]), value.type: value.operand}
        case TaggedScalar():
            tag = tags.renumbered(s, value, [kinds.index(kind) for kind in value.kinds])
            payloads |= dict(zip(value.kinds, value.payloads, strict=True))
            payloads[kinds[-1]] = _widest(s, value, kinds[-1])
        case _:
            return [ir.Const(0, PYINT), *map(_zero, kinds)]
    return [tag, *(payloads[kind] for kind in kinds)]


def _in_scope(s: Context, payloads: dict[Scalar, ir.Operand]) -> dict[Scalar, ir.Operand]:
    return {kind: payload for kind, payload in payloads.items() if s.in_scope(payload)}


def _widest(s: Context, value: TaggedScalar, main: Scalar) -> ir.Operand:
    """The value converted to the widest type of a join."""
    own = value.kinds[-1]
    if own == main:
        return value.payloads[-1]
    if all(is_exact(kind, own) for kind in value.kinds):
        return s.builder.cast(value.payloads[-1], main)
    return as_type(s, value, main)


def as_type(s: Context, value: TaggedScalar, kind: Scalar) -> ir.Operand:
    """The value cast to a type from the one that it has."""
    b = s.builder
    *others, made = [b.cast(payload, kind) for payload in value.payloads]
    for number, one in enumerate(others):
        made = b.select(tags.is_option(s, value, number), one, made)
    return made


def _zero(kind: Scalar) -> ir.Operand:
    return ir.Const(np.dtype(kind.dtype).type(0).item(), kind)


def value_of(s: Context, kinds: tuple[Scalar, ...], variables: list[ir.Var], rare: bool) -> TaggedScalar:
    """The value that a join gives; consumes its variables."""
    tag, *payloads = [variables.pop(0) for _ in range(1 + len(kinds))]
    if isinstance(tag, ir.Var):
        s.builder.tags[tag] = len(kinds)
    return TaggedScalar(kinds, tag, tuple(payloads), rare)


def settled(
    s: Context,
    templates: Sequence[Template],
    params: Sequence[ir.Var],
    starts: Sequence[ir.Operand],
    block: ir.Block,
    ran: Callable[[], ir.Operand],
) -> tuple[list[int], set[int], Callable[[list[ir.Var]], list[Any]]]:
    """Tags and payloads that a counted loop need not carry, since every iteration gives the widest type.

    Gives the positions of the variables to keep, the templates that have the widest type whenever the loop runs,
    and a function from the loop's outs to all values after it.
    """
    used = Uses(ir.Block(block.statements, ())).variables
    rare: set[int] = set()
    extras: list[range] = []  # the places of tags, and of the payloads behind them, that may be left out
    position = 0
    for number, template in enumerate(templates):
        count = len(types_of(template))
        if isinstance(template, EitherT):
            extra = range(position, position + count - 1)
            if block.results[position] == ir.Const(len(template.kinds) - 1, PYINT):
                rare.add(number)
                if not any(params[place] in used for place in extra):
                    extras.append(extra)
        position += count
    # What one variable is in this iteration another may be in the next.
    while True:
        left = {place for extra in extras for place in extra}
        passed_on = {block.results[place] for place in range(position) if place not in left}
        still = [extra for extra in extras if not any(params[place] in passed_on for place in extra)]
        if len(still) == len(extras):
            break
        extras = still
    dropped: dict[int, ir.Operand] = {}
    for extra in extras:
        dropped[extra[0]] = block.results[extra[0]]
        dropped |= {place: starts[place] for place in extra[1:]}
    kept = [place for place in range(position) if place not in dropped]

    def restore(outs: list[ir.Var]) -> list[Any]:
        waiting = list(outs)
        found: list[ir.Operand] = []
        for place in range(position):
            if place not in dropped:
                found.append(waiting.pop(0))
            elif isinstance(dropped[place], ir.Const) and block.results[place] == dropped[place]:
                found.append(s.builder.select(ran(), dropped[place], starts[place]))
            else:
                found.append(dropped[place])
        return found

    return kept, rare, restore
