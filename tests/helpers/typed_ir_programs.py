"""Typed IR written by hand, for tests of its passes: NumPy-like helpers, loops, comparison with the interpreter."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from parakeet_py.base.config import Config
from parakeet_py.base.types import FLOAT64, PYBOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir.check import check_function
from parakeet_py.typed_ir.interpret import run_function
from parakeet_py.typed_ir.ir import (
    Const,
    For,
    Function,
    Operand,
    Var,
    ViewAxis,
)
from parakeet_py.typed_ir.pipeline import count_operators, run_passes
from parakeet_py.typed_ir.writer import Writer, index_const

ZERO, ONE, TWO = index_const(0), index_const(1), index_const(2)
CHECKED_PASSES = Config(check=True)


def real(value: float) -> Const:
    return Const(value, FLOAT64)


def array(name: str, rank: int = 1, dtype: str = "float64") -> Var:
    return Var(name, Array(dtype, rank))


class Program(Writer):
    """A writer with NumPy-like helpers: each operation its own `Map`, as the specializer makes them."""

    def __init__(self, *params: Var) -> None:
        super().__init__()
        self.params = params

    def each(self, extents: list[Operand], name: str, *args: Operand) -> Var:
        def body(w: Writer, *point: Operand) -> Operand:
            return w.prim(name, *[w.load(arg, *point) if isinstance(arg.type, Array) else arg for arg in args])

        return self.map1(extents, body)

    def assign(self, target: Var, extents: list[Operand], value: Var) -> None:
        self.map(extents, lambda w, *point: w.store(target, point, w.load(value, *point)))

    def part(self, base: Var, start: Operand, extent: Operand, step: Operand = ONE) -> Var:
        return self.view(base, [start], [ViewAxis(0, extent, step)])

    def minus(self, value: Operand, constant: int) -> Var:
        return self.prim("sub", value, index_const(constant), type_=PYINT)

    def index(self, array_: Var, index: Operand, axis: int = 0) -> Operand:
        """A Python index, checked."""
        extent = self.dim(array_, axis)
        wrapped = self.prim("add", extent, index, type_=PYINT)
        index = self.prim("select", self.prim("lt", index, ZERO, type_=PYBOOL), wrapped, index, type_=PYINT)
        above, below = self.prim("ge", index, ZERO, type_=PYBOOL), self.prim("lt", index, extent, type_=PYBOOL)
        self.check(self.prim("and", above, below, type_=PYBOOL), "IndexError", "index {0}", index)
        return index

    def optimised(self, *results: Operand, **args: Any) -> tuple[dict[str, int], Function]:
        """Run all passes, compare with the program before them, give what is left."""
        before = Function("f", self.params, self.block(*results))
        check_function(before)
        after = run_passes(before, CHECKED_PASSES)
        values = list(args.values())
        assert [param.name for param in self.params] == list(args)
        mine, theirs = copy.deepcopy(values), copy.deepcopy(values)
        failures: list[str] = []
        outcomes: list[Any] = []
        for function, given in ((before, mine), (after, theirs)):
            try:
                outcomes.append(run_function(function, given))
                failures.append("")
            except Exception as error:
                failures.append(repr(error))
        assert failures[0] == failures[1]
        for want, got in zip([*(outcomes[:1] or [[]])[0], *mine], [*(outcomes[1:] or [[]])[0], *theirs], strict=True):
            assert np.array_equal(want, got)
        return dict(count_operators(after)), after


DATA = np.arange(1.0, 9.0)
OTHER = np.arange(8.0) ** 2
GRID = np.arange(12.0).reshape(4, 3)


def loop(p: Program, stop: Operand, body: Callable[[Program, Var], None], start: Operand = ZERO) -> None:
    i = Var("i", PYINT)
    inner = Program()
    body(inner, i)
    p.let(For(i, start, stop, ONE, (), (), inner.block()))


def accumulate(p: Program, name: str, param: Var, stop: Operand, value: Callable[[Writer, Var], Operand]) -> Var:
    i = Var("i", PYINT)
    body = Writer()
    following = body.prim(name, param, value(body, i))
    out = Var("out", param.type)
    kind = param.type
    assert isinstance(kind, Scalar)
    start = Const(0 if kind.dtype == "int64" else 0.0, kind)
    p.let(For(i, ZERO, stop, ONE, (param,), (start,), body.block(following)), out)
    return out
