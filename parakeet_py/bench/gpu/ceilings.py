"""What a device can do, measured on it: bytes per second of a large copy, multiply-adds per second in registers."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.ptx.target import compile_ptx

CHAINS, UNROLLED = 8, 16  # multiply-adds of a thread that wait for nothing but themselves; one after the other
THREADS = 256
REPEATS = 5


@record
class Ceilings:
    """Rates of one device: bytes read and written by a copy, operations in float32 and float64, per second."""

    copy: float
    float32: float
    float64: float


def measure(machine: Machine, size: int, blocks: int, rounds: int) -> Ceilings:
    """Measure a device.

    Parameters
    ----------
    size : bytes of the copy
    blocks, rounds : of the multiply-adds; large enough for milliseconds
    """
    return Ceilings(
        _copy(machine, size), *(_multiply_adds(machine, dtype, blocks, rounds) for dtype in ("float", "double"))
    )


def _median(machine: Machine, work: Any) -> float:
    work()  # what is done for the first time
    times = []
    for _ in range(REPEATS):
        start = machine.mark()
        work()
        times.append(machine.seconds(start, machine.mark()))
    return max(statistics.median(times), 1e-9)


def _copy(machine: Machine, size: int) -> float:
    source, target = machine.allocate(size), machine.allocate(size)
    try:
        machine.copy_in(source, np.random.default_rng(1).integers(0, 255, size, np.uint8, endpoint=True))
        return 2 * size / _median(machine, lambda: machine.copy_within(target, source, size))
    finally:
        machine.free(source)
        machine.free(target)


def _multiply_adds(machine: Machine, kind: str, blocks: int, rounds: int) -> float:
    module = machine.load(compile_ptx(kernel(kind), machine.architecture))
    out = machine.allocate(8 * blocks * THREADS)
    try:
        values = [out, rounds, 0.999]
        codes = "Pq" + ("f" if kind == "float" else "d")
        time = _median(machine, lambda: machine.launch(module, "rate", blocks, THREADS, codes, values))
        return 2 * CHAINS * UNROLLED * rounds * blocks * THREADS / time
    finally:
        machine.free(out)


def kernel(kind: str) -> str:
    """LLVM IR of a kernel of multiply-adds in registers, for "float" or "double"."""
    suffix = {"float": "f32", "double": "f64"}[kind]
    lines = [
        f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})",
        "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
        f"define ptx_kernel void @rate(ptr %out, i64 %rounds, {kind} %a) {{",
        "start:",
        "  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
        f"  %first = mul i32 %block, {THREADS}",
        "  %number = add i32 %first, %thread",
        f"  %seed = uitofp i32 %number to {kind}",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [0, %start], [%next, %loop]",
    ]
    for chain in range(CHAINS):
        lines.append(f"  %x{chain}.0 = phi {kind} [%seed, %start], [%x{chain}.{UNROLLED}, %loop]")
    for step in range(UNROLLED):
        for chain in range(CHAINS):
            old, new = f"%x{chain}.{step}", f"%x{chain}.{step + 1}"
            added = f"0x{np.float64(chain + 1).view(np.uint64):016X}"
            lines.append(f"  {new} = call {kind} @llvm.fma.{suffix}({kind} {old}, {kind} %a, {kind} {added})")
    lines += [
        "  %next = add i64 %i, 1",
        "  %more = icmp slt i64 %next, %rounds",
        "  br i1 %more, label %loop, label %end",
        "end:",
    ]
    total = f"%x0.{UNROLLED}"
    for chain in range(1, CHAINS):
        lines.append(f"  %sum{chain} = fadd {kind} {total}, %x{chain}.{UNROLLED}")
        total = f"%sum{chain}"
    lines += [
        "  %wide = zext i32 %number to i64",
        f"  %place = getelementptr {kind}, ptr %out, i64 %wide",
        f"  store {kind} {total}, ptr %place",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)
