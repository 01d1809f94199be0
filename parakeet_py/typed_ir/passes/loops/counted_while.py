"""`while` loops that count are `for` loops.

    while i < n:            for i in range(i, n, k):
        ...                     ...
        i += k

if nothing in the loop changes `n`, and every turn adds the same known number to `i`, in the right direction. What the
condition computes without looking at memory is computed before the loop: Python would have computed it there, too. The
variable stays one that the loop hands on, since it may be used afterwards, or after a break.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import PYINT
from parakeet_py.typed_ir.ir import Cast, Const, Dim, For, Function, Let, Operand, Prim, Var, While
from parakeet_py.typed_ir.rewrite import Rewriter, substitute

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def count_loops(function: Function) -> Function:
    """Make `for` loops of `while` loops that count."""
    return _Loops().function(function)


class _Loops(Rewriter):
    def statement(self, let: Let) -> Sequence[Let] | None:
        new = self.descend(let)
        let = let if new is None else new[0]
        return _counted(let, let.op) or new if isinstance(let.op, While) else new


def _counted(let: Let, op: While) -> Sequence[Let] | None:
    """The loop as a `for` loop, behind what its condition has computed."""
    *before, test = op.condition.statements or (None,)
    if test is None or op.condition.results != test.outs or not isinstance(test.op, Prim):
        return None
    params = set(op.params)
    for made in before:
        simple = isinstance(made.op, Dim) or (isinstance(made.op, Prim | Cast) and made.outs[0].type == PYINT)
        if not simple or any(item in params for item in _items(made.op)):
            return None
    name, args = test.op.name, test.op.args
    if name not in _MIRRORED:
        return None
    if args[1] in params:
        name, args = _MIRRORED[name], (args[1], args[0])
    variable, limit = args
    if variable not in params or limit in params or variable.type != PYINT or limit.type != PYINT:
        return None
    assert isinstance(variable, Var)
    step = _step(op, variable)
    if step is None or (step > 0) != (name in ("lt", "le")):
        return None
    statements = list(before)
    if name in ("le", "ge"):
        beyond = Var("stop", PYINT)
        one = Const(1, PYINT)
        statements.append(
            Let((beyond,), Prim("add_checked" if name == "le" else "sub_checked", (limit, one)), test.pos)
        )
        limit = beyond
    index = Var(variable.name, PYINT)
    start = op.inits[op.params.index(variable)]
    body = substitute(op.body, {variable: index})
    loop = For(index, start, limit, Const(step, PYINT), op.params, op.inits, body, op.stoppable)
    return [*statements, Let(let.outs, loop, let.pos)]


def _items(op: object) -> Sequence[Operand]:
    match op:
        case Prim(_, args):
            return args
        case Cast(arg):
            return (arg,)
        case Dim(array):
            return (array,)
    raise AssertionError(op)


def _step(op: While, variable: Var) -> int | None:
    """What every iteration adds to a variable."""
    result = op.body.results[op.params.index(variable) + (1 if op.stoppable else 0)]
    for let in op.body.statements:
        if result in let.outs:
            match let.op:
                case Prim("add_checked" | "sub_checked" as name, (before, Const(int(by)))) if before is variable:
                    return (by if name == "add_checked" else -by) or None
    return None
