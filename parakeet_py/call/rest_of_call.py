"""The rest of a call, done by Python after an operation that compiled code cannot go on from."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from parakeet_py.frontend import to_ssa_cached
from parakeet_py.frontend.evaluate.resumed_code import live_at, resume
from parakeet_py.frontend.ssa import Block, Let, blocks_of
from parakeet_py.signature.object_assembly import assembler
from parakeet_py.typed_ir.specialize.opaque.sites import Rest


def do_the_rest(function: FunctionType, rest: Rest, leaves: Sequence[Any], result: Any, args: Sequence[Any]) -> Any:
    """Go on in Python after an operation that has given `result`."""
    template = to_ssa_cached(function)
    way: list[Let] = []
    blocks: tuple[Block, ...] = (template.body,)
    for block, place in rest.way:
        way.append(blocks[block].statements[place])
        blocks = blocks_of(way[-1].op)
    held = (*leaves, *args)
    values = assembler(rest.values, len(held))(*held)
    items = assembler(rest.items, len(held))(*held)
    live = dict(zip(live_at(template, tuple(way)), values, strict=True))
    return resume(template, function, tuple(way), live, lambda: result, items)
