"""The body of a map at several points that one thread takes.

Loads of all points come first, then all that is computed, then all stores. Elementary functions have branches; between
those of one point and the next, the loads of neighbouring elements would not be found to be one of 16 bytes, nor be on
their way together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.types import INT64, itemsize
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.schedule.loop_order import Study, access_cost, static_cost
from parakeet_py.typed_ir.ir import Block, Cast, Let, Load, Operand, Prim, Var, dtype_of, operands_of

VECTOR_BYTES = 16
MAX_UNROLLED = 128  # operations of neighbouring points that are loaded together
_INDEX_ARITHMETIC = frozenset({"add", "sub", "mul", "minimum", "maximum"})


def neighbours(found: Study, body: Block, index: Var, stored: Sequence[Var] = ()) -> int:
    """Neighbouring points along an index that a thread takes together: as many as 16 bytes hold of each array that the
    body reads, and of those that are `stored`, where all lie so."""
    loads = [access for access in found.accesses if not access.store]
    if not found.simple or any(access_cost(found, access, index) > 1 for access in loads):
        return 1
    size = max(
        (itemsize(dtype_of(array)) for array in (*(load.array for load in loads), *stored)), default=VECTOR_BYTES
    )
    width = VECTOR_BYTES // size
    return width if width * static_cost(body) <= MAX_UNROLLED else 1


def at_points(
    lo: Lowering,
    found: Study,
    body: Block,
    places: Sequence[Callable[[], None]],
    store: Callable[[Sequence[Operand]], None],
) -> None:
    """Write a body at several points; `places` make the index variables those of a point, `store` its results."""
    if len(places) == 1 or found.visible_stores():
        for place in places:
            place()
            store(lo.lower_block(body))
        return
    first, rest = _parted(found, body)
    loaded, results = [], []
    for place in places:
        place()
        loaded.append(lo.lower_block(first))
    for place, values in zip(places, loaded, strict=True):
        place()
        for out, value in zip(first.results, values, strict=True):
            assert isinstance(out, Var)
            lo.alias(out, value)
        results.append(lo.lower_block(rest))
    for place, values in zip(places, results, strict=True):
        place()
        store(values)


def _parted(found: Study, body: Block) -> tuple[Block, Block]:
    """The loads that every point makes, with the arithmetic of their indices, and all the rest."""
    known: set[Var] = set()
    first: list[Let] = []
    rest: list[Let] = []
    for let in body.statements:
        match let.op:
            case Load() | Cast():
                comes_first = isinstance(let.op, Load) or let.outs[0].type == INT64
            case Prim(name):
                comes_first = name in _INDEX_ARITHMETIC and let.outs[0].type == INT64
            case _:
                comes_first = False
        if comes_first and all(
            operand in known or operand not in found.inside
            for operand in operands_of(let.op)
            if isinstance(operand, Var)
        ):
            known.update(let.outs)
            first.append(let)
        else:
            rest.append(let)
    outs = tuple(out for let in first for out in let.outs)
    return Block(tuple(first), outs), Block(tuple(rest), body.results)
