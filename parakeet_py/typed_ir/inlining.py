"""Procedures of the library written out where they are called: for devices, which run operators and no calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from parakeet_py.typed_ir.ir import Block, Call, Function, Let, Operand, Var
from parakeet_py.typed_ir.rewrite import Rewriter, fresh_copy

for_devices: dict[str, Callable[[], Sequence[Function]]] = {}
"""What gives a procedure that only devices run, and those that it calls: its body is empty everywhere else."""


def inlined(function: Function) -> Function:
    """The function with the library's procedures in the place of their calls."""
    known = {one.name: one for one in function.procedures if one.library}
    if not known:
        return function
    for name in [name for name in known if name in for_devices]:
        known |= {one.name: one for one in for_devices[name]()}
    kept = tuple(replace(one, body=_Inliner(known).block(one.body)) for one in function.procedures if not one.library)
    return replace(function, body=_Inliner(known).block(function.body), procedures=kept)


class _Inliner(Rewriter):
    def __init__(self, known: Mapping[str, Function]) -> None:
        super().__init__()
        self.known = known

    def statement(self, let: Let) -> Sequence[Let] | None:
        if not isinstance(let.op, Call) or let.op.procedure not in self.known:
            return self.descend(let)
        procedure = self.known[let.op.procedure]
        mapping: dict[Var, Operand] = dict(zip(procedure.params, self.operands(let.op.args), strict=True))
        body = _Inliner(self.known).block(fresh_copy(procedure.body, mapping))
        self.replacement.update(zip(let.outs, body.results, strict=True))
        return _placed(body, let).statements


def _placed(block: Block, call: Let) -> Block:
    """The block with all its statements at the place of a call."""
    return _Placer(call).block(block)


class _Placer(Rewriter):
    def __init__(self, call: Let) -> None:
        super().__init__()
        self.pos = call.pos

    def statement(self, let: Let) -> Sequence[Let] | None:
        changed = self.descend(let) or (let,)
        return [replace(one, pos=self.pos) for one in changed]


__all__ = ["for_devices", "inlined"]
