"""Arrays that are not visible when their function fails.

An operator that checks and stores is run twice, so that one that fails has stored nothing (see `lower.map`). Where it
stores into memory that the function itself has made, and has not handed to a callee, a failure takes that memory with
it: what was stored there makes no difference, and one run is enough. So does memory that others have given it, and
drop then (`Function.dropped`).
"""

from __future__ import annotations

from parakeet_py.base.types import Array
from parakeet_py.typed_ir import ir as typed
from parakeet_py.typed_ir.ir import Function, Operand, Var


def private_arrays(function: Function) -> dict[Var, Var]:
    """The arrays whose memory is the function's own, or was given to it to be dropped if it fails; of what passes
    through a join of control flow, none. With each the array of which it is a view, or itself."""
    base: dict[Var, Var] = {}
    made = [param for param in function.params if function.dropped and isinstance(param.type, Array)]
    handed: list[Operand] = []
    for let in typed.walk(function.body):
        match let.op:
            case typed.AnyView(source):
                base[let.outs[0]] = source
            case typed.Opaque() | typed.Call():
                handed += typed.operands_of(let.op)
            case typed.If() | typed.For() | typed.While():
                handed += typed.operands_of(let.op)
                handed += [result for block in typed.blocks_of(let.op) for result in block.results]
            case _ if isinstance(let.op, (typed.Alloc, *typed.PARALLEL)):
                made += [out for out in let.outs if isinstance(out.type, Array)]
                handed += [result for block in typed.blocks_of(let.op) for result in block.results]

    def root(array: Var) -> Var:
        while array in base:
            array = base[array]
        return array

    known = {root(array) for array in handed if isinstance(array, Var)}
    own = {array for array in made if array not in known}
    return {array: root(array) for array in (*own, *base) if root(array) in own}
