"""Running hand-written Imp functions: compile, load, call through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.base.types import Array, Scalar, Type
from parakeet_py.frontend.ssa import Pos
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.module import generate, slots_in, slots_out
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER, Context
from parakeet_py.llvm.runtime.native_runtime import runtime
from parakeet_py.typed_ir.ir import Const, Failure, Operand, Prim, Var
from parakeet_py.typed_ir.semantics import OVERFLOW

POS = Pos(1, 0, 1, 1)
INT, FLOAT, BOOL = map(Scalar, ("int64", "float64", "bool"))
FAILURES = [
    ir.FailureSite(Failure(name, message), POS)
    for name, message in (("none", ""), ("IndexError", ""), ("OverflowError", OVERFLOW))
]


def const(value: Any, dtype: str = "int64") -> Const:
    return Const(value, Scalar(dtype))


def let(out: Var, rhs: ir.Rhs, reassoc: bool = False) -> ir.Let:
    return ir.Let(out, rhs, POS, reassoc)


def prim(name: str, *args: Operand) -> Prim:
    return Prim(name, args)


def block(*statements: ir.Statement) -> ir.Block:
    return ir.Block(statements)


def function(
    params: Sequence[Var],
    body: Sequence[ir.Statement],
    results: Sequence[Operand] = (),
    roots: dict[Var | ir.Cell, frozenset[int]] | None = None,
    failures: Sequence[ir.FailureSite] = (),
    name: str = "f",
) -> ir.Function:
    return ir.Function(name, tuple(params), block(*body), tuple(results), tuple(failures), roots or {})


class Failed(Exception):
    """A call that returned a status other than 0."""

    def __init__(self, status: int, order: int, arguments: tuple[int, ...]) -> None:
        super().__init__(status, order, arguments)
        self.status, self.order, self.arguments = status, order, arguments


class Native:
    """A compiled Imp function, called with NumPy arrays and scalars."""

    def __init__(self, fn: ir.Function, **options: Any) -> None:
        self.fn = fn
        self.code = generate(fn, compiler.host(), **options)
        self.object = compiler.compile_ir(self.code.text)
        self.loaded = runtime().load(self.object, [self.code.entry])
        self.entry = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(self.loaded[self.code.entry])

    def __call__(self, *args: Any, threads: int = 1) -> Any:
        given = np.zeros(1 + sum(slots_in(p.type) for p in self.fn.params), np.int64)
        slot = 0
        for param, arg in zip(self.fn.params, args, strict=True):
            fill(given[slot : slot + slots_in(param.type)], param.type, arg)
            slot += slots_in(param.type)
        taken = np.zeros(1 + sum(slots_out(r.type) for r in self.fn.results), np.int64)
        memory = np.zeros(Context.SIZE + 64, np.uint8)
        start = -memory.ctypes.data % 64
        context = memory[start : start + Context.SIZE]
        context[Context.MAX_THREADS : Context.MAX_THREADS + 4].view(np.int32)[0] = threads
        words = context.view(np.int64)
        status = self.entry(context.ctypes.data, given.ctypes.data, taken.ctypes.data)
        free_all = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(runtime().symbols["pk_free_all"])
        try:
            if status:
                assert words[0] == status
                raise Failed(status, int(words[1]), tuple(int(word) for word in words[2:5]))
            out = []
            slot = 0
            for result in self.fn.results:
                out.append(read(taken[slot : slot + slots_out(result.type)], result.type))
                slot += slots_out(result.type)
            return out[0] if len(out) == 1 else tuple(out)
        finally:
            free_all(context.ctypes.data)


def fill(slots: Any, kind: Type, value: Any) -> None:
    if isinstance(kind, Array):
        assert value.dtype == kind.dtype and value.ndim == kind.rank
        slots[0] = id(value)
        slots[1] = value.ctypes.data
        slots[2:] = [*value.shape, *value.strides]
    else:
        assert isinstance(kind, Scalar)
        item = np.array(value, kind.dtype)
        slots.view(np.uint8)[: item.nbytes] = np.frombuffer(item.tobytes(), np.uint8)


def read(slots: Any, kind: Type) -> Any:
    """A copy of a result."""
    if isinstance(kind, Array):
        rank = kind.rank
        data, shape, strides = int(slots[3]), tuple(slots[4 : 4 + rank]), tuple(slots[4 + rank :])
        if slots[2]:
            assert data >= slots[2] + BLOCK_HEADER or 0 in shape
        dtype = np.dtype(kind.dtype)
        if 0 in shape:
            return np.empty(shape, dtype)
        low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
        high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) + dtype.itemsize
        memory = np.frombuffer((ctypes.c_uint8 * int(high - low)).from_address(data + int(low)), np.uint8)
        return np.ndarray(shape, dtype, memory, -int(low), strides).copy()
    assert isinstance(kind, Scalar)
    dtype = np.dtype(kind.dtype)
    return np.frombuffer(slots.tobytes()[: dtype.itemsize], dtype)[0]


def elementwise(name: str, dtypes: Sequence[str], out: str, kind: str = "vector", layout: str = "A") -> ir.Function:
    """out[i] = prim(args[i]...) over 1-d arrays; `out` is the last parameter."""
    arrays = [Var(f"a{k}", Array(dtype, 1, layout)) for k, dtype in enumerate(dtypes)]
    target = Var("out", Array(out, 1, "C"))
    n, i, r = Var("n", INT), Var("i", INT), Var("r", Scalar(out))
    loads = [Var("x", Scalar(dtype)) for dtype in dtypes]
    rhs: ir.Rhs = ir.Cast(loads[0]) if name == "cast" else Prim(name, tuple(loads))
    body = block(
        *[let(x, ir.Load(a, (i,))) for x, a in zip(loads, arrays, strict=True)],
        let(r, rhs),
        ir.Store(target, (i,), r, POS),
    )
    roots = {array: frozenset({k}) for k, array in enumerate([*arrays, target])}
    return function(
        [*arrays, target],
        [let(n, ir.Dim(target, 0)), ir.For(i, const(0), n, const(1), body, kind)],
        roots=roots,
        failures=[ir.FailureSite(ir.Failure("dummy", ""), POS), ir.FailureSite(ir.Failure("OverflowError", ""), POS)],
        name=f"elementwise_{name}",
    )
