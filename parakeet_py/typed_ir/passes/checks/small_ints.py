"""Ints from outside are taken to be small, behind one check on entry: what is computed of them then fits into 64 bits.

A Python int that leaves 64 bits is Python's to go on with. Before a call has done anything that shows, that is simple:
Python begins it again. Behind a store it is not, and each such operation would need a way out of its own, with all that
is alive there: `a[1:n - 1] = 0.0` in a loop, for an n that is -2**63.

    check -2**31 <= n <= 2**31 else Respecialize
    <the body>

Facts about the parameters make `n - 1` plain arithmetic (`simplify`). A call with another n leaves on entry, and gets
the form that is right for all; so this is no pass of the list, but is asked for where the other form would need such
ways out (`call.compile`). The bound is that of `hoist-checks`: products of two fit.
"""

from __future__ import annotations

from dataclasses import replace

from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Var
from parakeet_py.typed_ir.passes.checks.equal_extents import GENERAL
from parakeet_py.typed_ir.writer import Writer

LARGEST = 1 << 31


def are_small(values: object) -> bool:
    """Are the ints among some values small? Bools, floats and the like do not count."""
    assert isinstance(values, list | tuple)
    return all(abs(value) <= LARGEST for value in values if type(value) is int)


def require_small_ints(function: Function) -> Function:
    """Let a function begin with a check, which fails with `GENERAL`, that its Python ints are small; the same function
    if it has none that is computed with."""
    used: set[Var] = set()
    for let in function.statements():
        used.update(one for one in ir.operands_of(let.op) if isinstance(one, Var))
    ints = [param for param in function.params if param.type == PYINT and param in used]
    if not ints or not function.body.statements:
        return function
    writer = Writer(function.body.statements[0].pos)
    for param in ints:
        for name, bound in (("ge", -LARGEST), ("le", LARGEST)):
            writer.let(ir.Check(writer.prim(name, param, Const(bound, PYINT), type_=PYBOOL), GENERAL))
    return replace(function, body=Block((*writer.statements, *function.body.statements), function.body.results))
