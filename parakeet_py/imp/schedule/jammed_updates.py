"""Unroll and jam for rows that a loop updates again and again: four rounds at a time, each element in a register.

    for k: for j: out[j] = f(out[j], a[k], b[k, j])

    ->  for k by 4: for j: x = f(out[j], a[k], b[k, j]);  x = f(x, a[k + 1], b[k + 1, j]);  ...;  out[j] = x

A matrix product in three loops loads and stores a row of the result for every row of the right matrix; these take
longer than the arithmetic. Each element is still updated in the order of the rounds, so no bit depends on it. (256**3
float64: 0.6 of the time.)

It is done where the inner loop is a vector loop of straight-line code over one range in all rounds, that loads and
stores elements of one array at one place only, which is the same in all rounds, and no other array that it loads shares
memory with that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.grammar import rebuild, used_by, walk, with_blocks
from parakeet_py.base.types import BOOL, INT64, Type
from parakeet_py.imp.ir import Block, Cell, For, Let, Statement, Store
from parakeet_py.imp.schedule.loop_order import is_dear
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Cast, Const, Load, Operand, Prim, Var

Roots = dict[Var | Cell, frozenset[int]]
ROUNDS = 4
MOST = 16  # statements of a round


def jam_updates(body: Block, roots: Callable[[], Roots]) -> Block:
    """The body of a function with such loops unrolled and jammed; `roots` says which arrays share memory."""
    found = [(one, update) for one in walk(body) if isinstance(one, For) and (update := _update_of(one))]
    if not found:
        return body
    known = roots()
    pays = {id(loop): update for loop, update in found if _is_apart(update, known)}
    return _jammed(body, pays) if pays else body


@record
class _Update:
    """A loop over rounds: scalars of a round, the loop inside it, what that does, and its store."""

    loop: For
    scalars: Sequence[Let]
    inner: For
    point: Sequence[Let]
    store: Store
    steady: Sequence[Let]  # what is the same at all points


def _update_of(loop: For) -> _Update | None:
    if loop.kind != "serial" or not _by_one(loop) or not loop.body.statements:
        return None
    *before, inner = loop.body.statements
    if not isinstance(inner, For) or inner.kind != "vector" or not _by_one(inner) or len(inner.body.statements) > MOST:
        return None
    *inside, store = inner.body.statements
    scalars, point = _lets(before, Prim | Cast), _lets(inside, Prim | Cast | Load)
    if scalars is None or point is None or not isinstance(store, Store):
        return None
    of_round = {loop.index}  # what may change from round to round
    for one in (*scalars, *point):
        if isinstance(one.rhs, Load) or not of_round.isdisjoint(used_by(one)):
            of_round.add(one.out)
    updated = [one for one in point if isinstance(one.rhs, Load) and one.rhs.array is store.array]
    if not updated or any(isinstance(one.rhs, Load) and one.rhs.indices != store.indices for one in updated):
        return None
    if not of_round.isdisjoint((inner.start, inner.stop, *store.indices)):
        return None
    moved: set[Any] = {inner.index, *(one.out for one in updated)}
    for one in point:
        if not moved.isdisjoint(used_by(one)):
            moved.add(one.out)
    return _Update(loop, scalars, inner, point, store, [one for one in point if one.out not in moved])


def _lets(statements: Sequence[Statement], kinds: Any) -> list[Let] | None:
    """The statements, if all only compute something of these kinds."""
    lets: list[Let] = []
    for one in statements:
        match one:
            case Let(_, Prim(name)) if is_dear(name) or name.endswith("_checked"):
                return None
            case Let(_, rhs) if isinstance(rhs, kinds):
                lets.append(one)
            case _:
                return None
    return lets


def _by_one(loop: For) -> bool:
    return isinstance(loop.step, Const) and loop.step.whole == 1


def _is_apart(update: _Update, roots: Roots) -> bool:
    own = roots.get(update.store.array)
    others = [one.rhs.array for one in update.point if isinstance(one.rhs, Load)]
    return own is not None and all(
        array is update.store.array or (array in roots and own.isdisjoint(roots[array])) for array in others
    )


def _jammed(block: Block, updates: dict[int, _Update]) -> Block:
    statements: list[Statement] = []
    for one in block.statements:
        update = updates.get(id(one))
        statements += [with_blocks(one, lambda inner: _jammed(inner, updates))] if update is None else _written(update)
    return Block(tuple(statements))


def _written(update: _Update) -> list[Statement]:
    loop, inner, store = update.loop, update.inner, update.store
    before: list[Statement] = []

    def number(to: list[Statement], name: str, *args: Operand, kind: Type = INT64) -> Var:
        out = Var("t", kind)
        to.append(Let(out, Prim(name, args), store.pos))
        return out

    length = number(before, "maximum", number(before, "sub", loop.stop, loop.start), ZERO)
    length = number(before, "and", length, Const(-ROUNDS, INT64))
    some = number(before, "lt", inner.start, inner.stop, kind=BOOL)  # else nothing is loaded
    middle = number(before, "add", loop.start, number(before, "select", some, length, ZERO))
    index, place = Var(loop.index.name, loop.index.type), Var(inner.index.name, inner.index.type)
    scalars: list[Statement] = []
    point: list[Statement] = []
    value: Operand | None = None
    names: dict[Any, Any] = {}
    for turn in range(ROUNDS):
        at = number(scalars, "add", index, Const(turn, INT64), kind=index.type) if turn else index
        names = {loop.index: at, inner.index: place}
        scalars += [_copied(one, names) for one in update.scalars]
        for one in update.point:
            if value is not None and isinstance(one.rhs, Load) and one.rhs.array is store.array:
                names[one.out] = value
            else:
                (scalars if one in update.steady else point).append(_copied(one, names))
        value = names.get(store.value, store.value)
    point.append(rebuild(store, lambda item: item if isinstance(item, Const) else names.get(item, item)))
    both = (*scalars, For(place, inner.start, inner.stop, ONE, Block(tuple(point)), "vector"))
    return [
        *before,
        For(index, loop.start, middle, Const(ROUNDS, INT64), Block(both)),
        For(loop.index, middle, loop.stop, ONE, loop.body),
    ]


def _copied(let: Let, names: dict[Any, Any]) -> Let:
    """A copy that binds a variable of its own."""

    def binder(out: Var) -> Var:
        names[out] = new = Var(out.name, out.type)
        return new

    return rebuild(let, lambda item: item if isinstance(item, Const) else names.get(item, item), binder)
