"""A program of the typed IR before and after one pass, and what is in it."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np

from parakeet_py.typed_ir.check import check_function
from parakeet_py.typed_ir.interpret import run_function
from parakeet_py.typed_ir.ir import (
    Function,
    Operand,
    Prim,
)
from parakeet_py.typed_ir.pipeline import PASSES
from tests.helpers.typed_ir_programs import Program


def only(name: str, p: Program, *results: Operand, **args: Any) -> tuple[Function, Function]:
    """The program before and after one pass; both are well-formed and do the same to the arguments."""
    run = next(one.run for one in PASSES if one.name == name)
    before = Function("f", p.params, p.block(*results))
    check_function(before)
    after = run(before)
    check_function(after)
    mine, theirs = copy.deepcopy(list(args.values())), copy.deepcopy(list(args.values()))
    for want, got in zip(outcome(before, mine), outcome(after, theirs), strict=True):
        assert np.array_equal(want, got)
    for want, got in zip(mine, theirs, strict=True):
        assert np.array_equal(want, got)
    return before, after


def outcome(function: Function, args: list[Any]) -> list[Any]:
    try:
        return list(run_function(function, args))
    except Exception as error:
        return [repr(error)]


def names(function: Function) -> list[str]:
    """The operations of a function in the order of its text: kinds of operators, names of primitives."""
    return [let.op.name if isinstance(let.op, Prim) else type(let.op).__name__ for let in function.statements()]


def top(function: Function) -> list[str]:
    return [let.op.name if isinstance(let.op, Prim) else type(let.op).__name__ for let in function.body.statements]


def count(function: Function) -> Counter[str]:
    return Counter(names(function))
