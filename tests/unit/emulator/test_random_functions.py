"""Random functions, compiled by LLVM for this machine and for PTX: the emulator gives what the CPU gives.

A function is random statements (assignments, conditionals, loops with `break` and `continue`, switches, calls) over
variables of four types. Unoptimised, its variables are local memory; optimised, registers, with whatever instructions
LLVM finds. Every lane takes its own way. `PARAKEET_FUZZ=n` runs n functions.
"""

from __future__ import annotations

import ctypes
import os
import random
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from parakeet_py.ptx import emulator
from tests.helpers.emulator_kernels import compile_ir

_NAMES = {"i32": "abcd", "i64": "wx", "float": "fg", "double": "pq"}
_VARIABLES = [(kind, name) for kind, names in _NAMES.items() for name in names]
_DTYPES = {"i32": "i4", "i64": "i8", "float": "f4", "double": "f8"}
_N = 96
_RECORD = 8 * len(_VARIABLES)


class _Writer:
    """Writes the body of one function."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.counters: list[str] = []
        self.number = 0

    def fresh(self, prefix: str = "%t") -> str:
        self.number += 1
        return f"{prefix}{self.number}"

    def let(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def expression(self, kind: str, depth: int = 0) -> str:
        rng = self.rng
        if depth > 2 or rng.random() < 0.25:
            if rng.random() < 0.75:
                return self.let(f"load {kind}, ptr %{rng.choice(_NAMES[kind])}")
            whole = ["0", "1", "2", "7", "-1", "31", "-77", "2147483647", "12345678"]
            return rng.choice(whole if kind[0] == "i" else ["1.0", "0.5", "-2.0", "0.25", "100.0"])
        return self.integer(kind, depth + 1) if kind[0] == "i" else self.floating(kind, depth + 1)

    def integer(self, kind: str, depth: int) -> str:
        rng, bits = self.rng, int(kind[1:])
        x = self.expression(kind, depth)
        match rng.randrange(9):
            case 0 | 1:
                operator = rng.choice(["add", "sub", "mul", "and", "or", "xor"])
                return self.let(f"{operator} {kind} {x}, {self.expression(kind, depth)}")
            case 2:
                amount = self.let(f"and {kind} {self.expression(kind, depth)}, {bits - 1}")
                return self.let(f"{rng.choice(['shl', 'lshr', 'ashr'])} {kind} {x}, {amount}")
            case 3:
                small = self.let(f"and {kind} {self.expression(kind, depth)}, 1023")
                divisor = self.let(f"add {kind} {small}, 1")
                return self.let(f"{rng.choice(['udiv', 'urem', 'sdiv', 'srem'])} {kind} {x}, {divisor}")
            case 4:
                return self.let(f"{rng.choice(['zext', 'sext'])} i1 {self.condition(depth)} to {kind}")
            case 5:
                y = self.expression(kind, depth)
                return self.let(f"select i1 {self.condition(depth)}, {kind} {x}, {kind} {y}")
            case 6:
                other = "i64" if kind == "i32" else "i32"
                y = self.expression(other, depth)
                word = f"trunc i64 {y} to i32" if kind == "i32" else f"{rng.choice(['zext', 'sext'])} i32 {y} to i64"
                narrow = rng.choice([8, 16])
                part = self.let(f"trunc {kind} {self.let(word)} to i{narrow}")
                return self.let(f"{rng.choice(['zext', 'sext'])} i{narrow} {part} to {kind}")
            case 7:
                name = rng.choice(["smin", "smax", "umin", "umax"])
                return self.let(f"call {kind} @llvm.{name}.{kind}({kind} {x}, {kind} {self.expression(kind, depth)})")
            case _:
                y, z = self.expression(kind, depth), self.expression(kind, depth)
                return self.let(f"call {kind} @llvm.fshl.{kind}({kind} {x}, {kind} {y}, {kind} {z})")

    def floating(self, kind: str, depth: int) -> str:
        rng, suffix = self.rng, "f32" if kind == "float" else "f64"
        match rng.randrange(6):
            case 0 | 1:
                x, y = self.expression(kind, depth), self.expression(kind, depth)
                return self.let(f"{rng.choice(['fadd', 'fsub', 'fmul', 'fdiv'])} {kind} {x}, {y}")
            case 2:
                whole = rng.choice(["i32", "i64"])
                x = self.expression(whole, depth)
                return self.let(f"{rng.choice(['sitofp', 'uitofp'])} {whole} {x} to {kind}")
            case 3:
                other = "float" if kind == "double" else "double"
                x = self.expression(other, depth)
                return self.let(f"{'fpext' if kind == 'double' else 'fptrunc'} {other} {x} to {kind}")
            case 4:
                x, y, z = (self.expression(kind, depth) for _ in range(3))
                return self.let(f"call {kind} @llvm.fma.{suffix}({kind} {x}, {kind} {y}, {kind} {z})")
            case _:
                name = rng.choice(["sqrt", "fabs", "floor", "trunc", "rint"])
                return self.let(f"call {kind} @llvm.{name}.{suffix}({kind} {self.expression(kind, depth)})")

    def condition(self, depth: int = 0) -> str:
        kind = self.rng.choice(["i32", "i32", "i64", "float", "double"])
        x, y = self.expression(kind, depth + 1), self.expression(kind, depth + 1)
        if kind[0] == "i":
            return self.let(
                f"icmp {self.rng.choice(['eq', 'ne', 'slt', 'sle', 'sgt', 'ult', 'ugt', 'uge'])} {kind} {x}, {y}"
            )
        return self.let(
            f"fcmp {self.rng.choice(['oeq', 'une', 'olt', 'ole', 'ogt', 'ult', 'uno', 'ord', 'one'])} {kind} {x}, {y}"
        )

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")

    def go(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def label(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def assign(self) -> None:
        kind, name = self.rng.choice(_VARIABLES)
        self.lines.append(f"  store {kind} {self.expression(kind)}, ptr %{name}")

    def statements(self, depth: int, count: int, *, calls: bool) -> None:
        for _ in range(count):
            chance = self.rng.random()
            if depth > 3 or chance < 0.45:
                self.assign()
            elif chance < 0.65:
                yes, no, end = (self.fresh("L") for _ in range(3))
                self.branch(self.condition(), yes, no)
                self.label(yes)
                self.statements(depth + 1, 2, calls=calls)
                self.go(end)
                self.label(no)
                self.statements(depth + 1, self.rng.randrange(2), calls=calls)
                self.go(end)
                self.label(end)
            elif chance < 0.82:
                self.loop(depth, calls)
            elif chance < 0.92 or not calls:
                self.switch()
            else:
                x, y = self.expression("i32"), self.expression("double")
                found = self.let(f"call i32 @helper(i32 {x}, double {y})")
                self.lines.append(f"  store i32 {found}, ptr %{self.rng.choice('abcd')}")

    def loop(self, depth: int, calls: bool) -> None:
        counter = self.fresh("%n")
        self.counters.append(counter)
        limit = self.let(f"and i32 {self.expression('i32')}, 7")
        self.lines.append(f"  store i32 0, ptr {counter}")
        head, body, again, end = (self.fresh("L") for _ in range(4))
        self.go(head)
        self.label(head)
        now = self.let(f"load i32, ptr {counter}")
        self.branch(self.let(f"icmp ult i32 {now}, {limit}"), body, end)
        self.label(body)
        self.statements(depth + 1, 2, calls=calls)
        if self.rng.random() < 0.5:
            on = self.fresh("L")
            self.branch(self.condition(), self.rng.choice([end, again]), on)
            self.label(on)
            self.assign()
        self.go(again)
        self.label(again)
        now = self.let(f"load i32, ptr {counter}")
        self.lines.append(f"  store i32 {self.let(f'add i32 {now}, 1')}, ptr {counter}")
        self.go(head)
        self.label(end)

    def switch(self) -> None:
        index = self.let(f"and i32 {self.expression('i32')}, 7")
        labels = [self.fresh("L") for _ in range(self.rng.randint(2, 6))]
        end = self.fresh("L")
        cases = " ".join(f"i32 {k}, label %{name}" for k, name in enumerate(labels[1:], 1))
        self.lines.append(f"  switch i32 {index}, label %{labels[0]} [{cases}]")
        for name, following in zip(labels, [*labels[1:], end], strict=True):
            self.label(name)
            self.assign()
            self.go(following if self.rng.random() < 0.3 else end)
        self.label(end)

    def body(self, first: str, last: str) -> str:
        places = [f"  %{name} = alloca {kind}" for kind, name in _VARIABLES]
        places += [f"  {counter} = alloca i32" for counter in self.counters]
        start = [f"  store {kind} {'3' if kind[0] == 'i' else '0.75'}, ptr %{name}" for kind, name in _VARIABLES]
        return "\n".join([*places, *start, first, *self.lines, last])


def _module(seed: int) -> str:
    """Two functions: `helper`, and `body`, which stores all its variables."""
    rng = random.Random(seed)
    helper, body = _Writer(rng), _Writer(rng)
    helper.statements(3, 2, calls=False)
    body.statements(0, 4, calls=True)
    given = "  store i32 %i0, ptr %a\n  store double %d0, ptr %p"
    results = "\n".join(
        f"  %o{k} = load {kind}, ptr %{name}\n  %z{k} = getelementptr i8, ptr %out, i64 {8 * k}\n"
        f"  store {kind} %o{k}, ptr %z{k}"
        for k, (kind, name) in enumerate(_VARIABLES)
    )
    text = []
    for kind in ("i32", "i64"):
        text += [f"declare {kind} @llvm.{n}.{kind}({kind}, {kind})" for n in ("smin", "smax", "umin", "umax")]
        text.append(f"declare {kind} @llvm.fshl.{kind}({kind}, {kind}, {kind})")
    for kind, suffix in (("float", "f32"), ("double", "f64")):
        text += [f"declare {kind} @llvm.{n}.{suffix}({kind})" for n in ("sqrt", "fabs", "floor", "trunc", "rint")]
        text.append(f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})")
    text.append("define internal i32 @helper(i32 %i0, double %d0) noinline {")
    text.append(helper.body(given, "  %left = load i32, ptr %b\n  ret i32 %left") + "\n}")
    text.append("define internal void @body(i32 %i0, i32 %i1, double %d0, ptr %out) {")
    text.append(body.body(given + "\n  store i32 %i1, ptr %b", results + "\n  ret void") + "\n}")
    return "\n".join(text)


_KERNEL = f"""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @k(ptr %i0, ptr %i1, ptr %d0, ptr %out) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %o = mul i32 %i, {_RECORD}
  CALL
  ret void
}}"""
_HOST = f"""
define void @host(ptr %i0, ptr %i1, ptr %d0, ptr %out) {{
entry:
  br label %head
head:
  %i = phi i32 [0, %entry], [%next, %head]
  %o = mul i32 %i, {_RECORD}
  CALL
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, {_N}
  br i1 %more, label %head, label %end
end:
  ret void
}}"""
_CALL = """%p0 = getelementptr i32, ptr %i0, i32 %i
  %p1 = getelementptr i32, ptr %i1, i32 %i
  %p2 = getelementptr double, ptr %d0, i32 %i
  %p3 = getelementptr i8, ptr %out, i32 %o
  %v0 = load i32, ptr %p0
  %v1 = load i32, ptr %p1
  %v2 = load double, ptr %p2
  call void @body(i32 %v0, i32 %v1, double %v2, ptr %p3)"""


def _on_the_cpu(ir: str, arrays: list[np.ndarray[Any, Any]]) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(ir + _HOST.replace("CALL", _CALL))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(engine.get_function_address("host"))
        function(*(array.ctypes.data for array in arrays))


@pytest.mark.parametrize("seed", range(int(os.environ.get("PARAKEET_FUZZ") or 8)))
def test_random_function(seed: int) -> None:
    ir = _module(seed)
    rng = np.random.default_rng(seed)
    first = rng.integers(-(2**31), 2**31, _N).astype("i4") >> rng.integers(0, 31, _N).astype("i4")
    second = rng.integers(-20, 50, _N).astype("i4")
    third = rng.standard_normal(_N) * 10.0 ** rng.integers(-3, 6, _N)
    wanted = np.zeros((_N, _RECORD), "u1")
    _on_the_cpu(ir, [first, second, third, wanted])
    for opt in (0, 3):
        text = compile_ir(ir + _KERNEL.replace("CALL", _CALL), opt=opt)
        found = np.zeros_like(wanted)
        emulator.run(text, "k", 1, _N, [first, second, third, found])
        for place, (kind, name) in enumerate(_VARIABLES):
            dtype = np.dtype(_DTYPES[kind])
            got, want = (
                np.ascontiguousarray(table[:, 8 * place : 8 * place + dtype.itemsize]).view(dtype).ravel()
                for table in (found, wanted)
            )
            assert np.array_equal(got, want, equal_nan=kind[0] != "i"), f"variable {name}, optimised {opt}"
