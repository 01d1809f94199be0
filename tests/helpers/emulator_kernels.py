"""Small kernels around single instructions, for the tests of the emulator.

`evaluate` runs some lines of PTX for every element of some arrays: the elements are in `%a`, `%b`, `%c`, `%d`, the
result is taken from `%r` (or `%r0`, `%r1` ...). Where ptxas is installed, the text is shown to it first, so that a test
cannot demand something that is not PTX.
"""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from parakeet_py.ptx import emulator
from tests.ptxas import PTXAS

HEADER = ".version {version}\n.target {target}\n.address_size 64\n"
_DTYPES = {
    **{f"b{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    **{f"s{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "pred": np.dtype("u1"),
}


@functools.lru_cache(maxsize=4096)
def assert_ptxas_accepts(ptx: str, target: str = "sm_90") -> None:
    """Let ptxas, if there is one, refuse what is not PTX."""
    if PTXAS is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        done = subprocess.run(
            [PTXAS, f"-arch={target}", "-O0", str(path), "-o", "/dev/null"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr + ptx


def _register_type(ptx_type: str) -> str:
    if ptx_type == "pred":
        return "pred"
    return f".b{max(16, 8 * _DTYPES[ptx_type].itemsize)}"[1:]


def kernel_text(
    body: str, results: Sequence[str], inputs: Sequence[str], version: str = "8.0", target: str = "sm_90"
) -> str:
    """A kernel that applies `body` to each element; one parameter for each result and input, and the count."""
    parameters = [f".param .u64 p{k}" for k in range(len(results) + len(inputs))] + [".param .u32 n"]
    lines = [HEADER.format(version=version, target=target)]
    lines.append(f".visible .entry k({', '.join(parameters)})\n{{")
    lines.append("\t.reg .pred %pp, %t<9>;\n\t.reg .b32 %i, %n, %x<9>;\n\t.reg .b64 %q, %o, %y<9>;\n\t.reg .b16 %h<9>;")
    names = [f"%r{k}" if len(results) > 1 else "%r" for k in range(len(results))]
    for name, kind in [*zip(names, results, strict=True), *zip("abcd", inputs, strict=False)]:
        register = name if name.startswith("%") else f"%{name}"
        lines.append(f"\t.reg .{_register_type(kind)} {register};")
    lines.append("\tmov.u32 %x0, %ctaid.x;\n\tmov.u32 %x1, %ntid.x;\n\tmov.u32 %x2, %tid.x;")
    lines.append(
        "\tmad.lo.s32 %i, %x0, %x1, %x2;\n\tld.param.u32 %n, [n];\n\tsetp.ge.u32 %pp, %i, %n;\n\t@%pp bra END;"
    )
    for place, (name, kind) in enumerate(zip("abcd", inputs, strict=False)):
        size = _DTYPES[kind].itemsize
        lines.append(f"\tld.param.u64 %q, [p{len(results) + place}];\n\tmul.wide.u32 %o, %i, {size};")
        lines.append("\tadd.s64 %q, %q, %o;")
        if kind == "pred":
            lines.append(f"\tld.global.u8 %h0, [%q];\n\tsetp.ne.u16 %{name}, %h0, 0;")
        else:
            suffix = kind if not kind.startswith("f") else f"b{8 * size}"
            lines.append(f"\tld.global.{suffix} %{name}, [%q];")
    lines.append("\t" + body.strip().replace("\n", "\n\t"))
    for place, (name, kind) in enumerate(zip(names, results, strict=True)):
        size = _DTYPES[kind].itemsize
        lines.append(f"\tld.param.u64 %q, [p{place}];\n\tmul.wide.u32 %o, %i, {size};\n\tadd.s64 %q, %q, %o;")
        if kind == "pred":
            lines.append(f"\tselp.u16 %h0, 1, 0, {name};\n\tst.global.u8 [%q], %h0;")
        else:
            lines.append(f"\tst.global.b{8 * size} [%q], {name};")
    lines.append("END:\n\tret;\n}\n")
    return "\n".join(lines)


def evaluate(
    body: str,
    results: str | Sequence[str],
    *inputs: tuple[str, Any],
    block: int = 64,
    version: str = "8.0",
    target: str = "sm_90",
) -> Any:
    """The result of PTX lines for every element; a tuple when there are several results."""
    kinds = [results] if isinstance(results, str) else list(results)
    arrays = [np.ascontiguousarray(value, dtype=_DTYPES[kind]) for kind, value in inputs]
    n = len(arrays[0])
    outputs = [np.zeros(n, dtype=_DTYPES[kind]) for kind in kinds]
    text = kernel_text(body, kinds, [kind for kind, _ in inputs], version, target)
    assert_ptxas_accepts(text, target)
    emulator.run(text, "k", -(-n // block), block, [*outputs, *arrays, n])
    found = [out.astype(np.bool_) if kind == "pred" else out for kind, out in zip(kinds, outputs, strict=True)]
    return found[0] if isinstance(results, str) else tuple(found)


def run(
    body: str, *args: Any, grid: Any = 1, block: Any = 64, shared: int = 0, globals: str = "", **options: Any
) -> Any:
    """Run a kernel whose parameters are pointers in `%p0`, `%p1`, ...; `%i` is the thread in a one-dimensional grid."""
    parameters = ", ".join(f".param .u64 a{k}" for k in range(len(args)))
    loads = "\n".join(f"\tld.param.u64 %p{k}, [a{k}];" for k in range(len(args)))
    text = f"""{HEADER.format(version="8.0", target="sm_90")}
{globals}
.visible .entry k({parameters})
{{
	.reg .pred %q<20>;
	.reg .b16 %h<20>;
	.reg .b32 %r<40>, %i, %t, %lane;
	.reg .b64 %p<9>, %d<40>;
{loads}
	mov.u32 %t, %tid.x;
	mov.u32 %lane, %laneid;
	mov.u32 %r0, %ctaid.x;
	mov.u32 %r1, %ntid.x;
	mad.lo.u32 %i, %r0, %r1, %t;
	mul.wide.u32 %d0, %i, 4;
	mul.wide.u32 %d8, %i, 8;
{body}
	ret;
}}
"""
    assert_ptxas_accepts(text)
    return emulator.run(text, "k", grid, block, list(args), shared, **options)


_INTERESTING = {
    8: [0, 1, 2, 127, 128, 200, 255],
    16: [0, 1, 2, 3, 255, 256, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 1234, 0xABCD],
    32: [0, 1, 2, 31, 32, 33, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 0x12345678, 0xDEADBEEF],
    64: [0, 1, 2, 63, 64, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1, 0x123456789ABCDEF0],
}


def integers(kind: str, count: int, columns: int = 1, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Columns of integers of a PTX type: every pair of remarkable ones, then random ones of all lengths."""
    bits = int(kind[1:])
    rng = np.random.default_rng([seed, bits, columns])
    special = _INTERESTING[bits]
    rows = [
        [special[(k * (c * 5 + 1) + c * 3 + k // len(special)) % len(special)] for c in range(columns)]
        for k in range(150)
    ]
    while len(rows) < count + 150:
        rows.append([int(rng.integers(0, 1 << 32)) << 32 | int(rng.integers(0, 1 << 32)) for _ in range(columns)])
        rows[-1] = [value >> int(rng.integers(0, 64)) for value in rows[-1]]
    mask = (1 << bits) - 1
    return [
        np.array([row[c] & mask for row in rows], dtype=f"u{bits // 8}").view(_DTYPES[kind]) for c in range(columns)
    ]


_FLOAT_SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 1e-3, np.inf, -np.inf, np.nan]


def floats(kind: str, count: int, columns: int = 1, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Columns of floats: remarkable ones against each other, random patterns of bits, and values of like size."""
    dtype = _DTYPES[kind]
    info = np.finfo(dtype)
    tiny, small = info.smallest_subnormal, info.smallest_normal
    special = [
        *_FLOAT_SPECIALS,
        info.max,
        info.min,
        tiny,
        -tiny,
        small,
        -small,
        small - tiny,
        1 + info.eps,
        1 - info.epsneg,
    ]
    rng = np.random.default_rng([seed, dtype.itemsize, columns])
    columns_found = []
    for column in range(columns):
        chosen = [special[(k * (column * 7 + 1) + k // len(special) * column) % len(special)] for k in range(400)]
        patterns = rng.integers(0, 256, size=count * dtype.itemsize, dtype=np.uint8).view(dtype)
        alike = rng.standard_normal(count).astype(dtype)
        with np.errstate(all="ignore"):
            columns_found.append(np.concatenate([np.array(chosen).astype(dtype), patterns, alike]))
    return columns_found


@functools.lru_cache(maxsize=64)
def compile_ir(ir: str, cpu: str = "sm_80", features: str = "", opt: int = 3) -> str:
    """LLVM IR to PTX."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(cpu=cpu, features=features, opt=opt)
    module = llvm.parse_assembly(ir)
    module.triple, module.data_layout = "nvptx64-nvidia-cuda", str(machine.target_data)
    module.verify()
    if opt:
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=opt))
        builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))
