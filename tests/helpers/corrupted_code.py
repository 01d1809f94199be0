"""Corrupting compiled functions on their way to machine code, to show that checked code finds it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.errors import MemorySafetyError
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import module
from parakeet_py.typed_ir.ir import Load, Var
from tests.helpers.native_functions import const

Change = Callable[[ir.Statement], tuple[ir.Statement, ...]]


def changed(block: ir.Block, change: Change) -> ir.Block:
    """The block with each statement, inner ones first, replaced by others."""
    found: list[ir.Statement] = []
    for statement in block.statements:
        match statement:
            case ir.If(_, then, orelse):
                statement = replace(statement, then=changed(then, change), orelse=changed(orelse, change))
            case ir.For(body=body) | ir.Parallel(body=body):
                statement = replace(statement, body=changed(body, change))
            case ir.While(head, _, body):
                statement = replace(statement, head=changed(head, change), body=changed(body, change))
        found += change(statement)
    return ir.Block(tuple(found))


@contextmanager
def corrupted(
    change: Change | None = None, whole: Callable[[ir.Function], ir.Function] | None = None
) -> Iterator[None]:
    """Functions that are compiled inside have their loops changed after all checks of the IR."""
    generate = module.generate

    def corrupt(function: ir.Function, *args: Any, **kwargs: Any) -> Any:
        if change is not None:
            function = replace(function, body=changed(function.body, change))
        return generate(whole(function) if whole is not None else function, *args, **kwargs)

    with mock.patch.object(module, "generate", corrupt), options(check=2):
        yield


def refused(function: Any, *args: Any, calls: int = 1) -> str:
    """The text of the error that one of the calls ends in, which names a line of the function."""
    with pytest.raises(MemorySafetyError) as raised:
        accelerated = accelerate(function)
        for _ in range(calls):
            accelerated(*args)
    text = str(raised.value)
    first = function.__code__.co_firstlineno
    named = [int(line) for line in re.findall(rf"{re.escape(function.__code__.co_filename)}:(\d+)", text)]
    assert named, text
    assert first <= named[0] <= first + len(inspect.getsourcelines(function)[0]), text
    return text


def stores_at(*indices: int) -> Change:
    """Store at other places."""

    def change(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        if isinstance(statement, ir.Store):
            statement = replace(statement, indices=tuple(map(const, indices)))
        return (statement,)

    return change


def loads_at(*indices: int) -> Change:
    def change(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        match statement:
            case ir.Let(rhs=Load(array)):
                statement = replace(statement, rhs=Load(array, tuple(map(const, indices))))
        return (statement,)

    return change


def next_to_arrays(make: Callable[[Var], tuple[ir.Statement, ...]]) -> Change:
    """Statements behind each new array on the heap."""

    def change(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        match statement:
            case ir.Let(out, ir.NewArray(_, "heap")):
                return (statement, *make(out))
        return (statement,)

    return change


def twice_released(statement: ir.Statement) -> tuple[ir.Statement, ...]:
    return (statement, statement) if isinstance(statement, ir.Release) else (statement,)
