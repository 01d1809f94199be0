"""Which functions the evaluator leaves to Python: those whose nested functions would not be Python's for their users.

Nested functions capture values here and names in Python. That is the same until a captured name is bound again
(`ssa.Function.unsteady`). The frontend refuses calls that would show it; what code that is not visible does with a
nested function is not known, so none with unsteady names is given to it: only to functions that use it up, as `sorted`
and `scipy.integrate.quad` do. Nor is one with annotations that only Python knows, at which `functools.singledispatch`
looks. And where a function asks what functions are made of, its nested functions are Python's.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Iterator
from typing import Any

from parakeet_py.base.callee_effects import effects_of
from parakeet_py.frontend import ssa

_MADE_OF = ("__closure__", "__code__")


def uses_up(target: Any) -> bool:
    """Is this a function that has done with the functions it is given when it returns, unless it returns an object?"""
    return not effects_of(target).keeps


def may_keep(function: ssa.Function, python: types.FunctionType, *, nested: bool = False) -> bool:
    """Does a function, or one inside it, let unknown code have a nested function with unsteady names or annotations, or
    look itself at what it is made of?"""
    made = {
        let.outs[0]: let.op.function
        for let in function.statements()
        if isinstance(let.op, ssa.MakeClosure) and let.outs
    }
    if made and any(isinstance(op, ssa.Attribute | ssa.SetAttribute) and op.name in _MADE_OF for op in _ops(function)):
        return True
    unsteady = {var for var, inner in made.items() if inner.unsteady}
    kept = unsteady | {var for var, inner in made.items() if inner.annotations is None}
    if kept:
        definitions = {out: let.op for let in function.statements() for out in let.outs}
        for let in function.statements():
            if (
                isinstance(let.op, ssa.Comprehension)
                and let.op.kind == "generator"
                and not kept.isdisjoint(ssa.operands_of(let.op))
            ):
                kept.add(let.outs[0])
                unsteady.add(let.outs[0])
        uses = (var for op in _ops(function) for var in _kept_by(op, definitions, python) if var in kept)
        results = {
            result for block in _blocks(function.body) for result in block.results if isinstance(result, ssa.Var)
        }
        # What a nested function returns stays here.
        if next(uses, None) is not None or not results.isdisjoint(unsteady if nested else kept):
            return True
    return any(may_keep(one, python, nested=True) for one in {id(one): one for one in made.values()}.values())


def _ops(function: ssa.Function) -> Iterator[ssa.Op]:
    return (let.op for let in function.statements())


def _blocks(block: ssa.Block) -> Iterator[ssa.Block]:
    yield block
    for let in block.statements:
        for inner in ssa.blocks_of(let.op):
            yield from _blocks(inner)


def _kept_by(op: ssa.Op, definitions: dict[ssa.Var, ssa.Op], python: types.FunctionType) -> list[ssa.Operand]:
    """The operands of an operation that may be there after it."""
    match op:
        case ssa.Comprehension(kind, iterable):
            return [iterable] if kind == "generator" else []
        case ssa.Call(function) if uses_up(_resolved(function, definitions, python)):
            return []
        case ssa.Call(function):
            return [operand for operand in ssa.operands_of(op) if operand is not function]
        case ssa.Compare() | ssa.If() | ssa.For() | ssa.While():
            return []
    return list(ssa.operands_of(op))


def _resolved(operand: ssa.Operand, definitions: dict[ssa.Var, ssa.Op], python: types.FunctionType) -> Any:
    """The object that an operand stands for, if it is a global or an attribute of a module."""
    match definitions.get(operand) if isinstance(operand, ssa.Var) else None:
        case ssa.Global(name):
            return python.__globals__.get(name, getattr(builtins, name, None))
        case ssa.Attribute(held, name):
            module = _resolved(held, definitions, python)
            return getattr(module, name, None) if isinstance(module, types.ModuleType) else None
    return None
