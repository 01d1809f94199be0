"""Whole kernels on the emulator: compiled by LLVM, and written by hand as other compilers print them."""

from __future__ import annotations

import numpy as np
import pytest

from parakeet_py.ptx import emulator
from parakeet_py.ptx.emulator import Checks, Device, Module
from tests.helpers import emulator_ir as ir
from tests.helpers import emulator_texts as texts
from tests.helpers.emulator_kernels import HEADER, assert_ptxas_accepts, compile_ir, run


@pytest.mark.parametrize("opt", [0, 3])
@pytest.mark.parametrize("n", [1, 100, 1000, 70_000])
def test_map(n: int, opt: int) -> None:
    x, y = np.random.default_rng(0).standard_normal(n), np.zeros(n)
    emulator.run(compile_ir(ir.MAP, opt=opt), "map", min(-(-n // 128), 40), 128, [x, y, 0.5, n])
    np.testing.assert_allclose(y, np.sqrt(np.abs(x * 0.5 + 1)), rtol=1e-15)


@pytest.mark.parametrize("n", [1, 31, 5000, 100_000])
def test_reduction(n: int) -> None:
    x, y = np.random.default_rng(1).integers(-9, 9, n).astype("f4"), np.zeros(8, "f4")
    emulator.run(compile_ir(ir.REDUCE), "red", 8, 256, [x, y, n])
    assert y.sum() == x.sum()


@pytest.mark.parametrize("n", [1, 256, 257, 5000, 60_000])
def test_scan_with_look_back(n: int) -> None:
    x, y = np.random.default_rng(2).integers(-99, 99, n).astype("i4"), np.zeros(n, "i4")
    blocks = -(-n // 256)
    state = [np.zeros(blocks, "i4") for _ in range(3)]
    emulator.run(compile_ir(ir.SCAN), "scan", blocks, 256, [x, y, n, np.zeros(1, "i4"), *state])
    assert (y == np.cumsum(x)).all()


def test_scan_without_its_fence_is_a_race() -> None:
    text = compile_ir(ir.SCAN).replace("membar.gl;", "")
    n, blocks = 2000, 8
    state = [np.zeros(blocks, "i4") for _ in range(3)]
    with pytest.raises(emulator.DataRace):
        emulator.run(text, "scan", blocks, 256, [np.ones(n, "i4"), np.zeros(n, "i4"), n, np.zeros(1, "i4"), *state])


@pytest.mark.parametrize("count", [1, 16, 300])
def test_histogram(count: int) -> None:
    x, out = np.random.default_rng(3).integers(0, count, 10_000).astype("i4"), np.zeros(count, "i4")
    emulator.run(compile_ir(ir.HISTOGRAM), "histogram", 40, 256, [x, out, len(x), count], shared=4 * count)
    assert (out == np.bincount(x, minlength=count)).all()


@pytest.mark.parametrize("shape", [(32, 32), (1, 100), (70, 45), (128, 96)])
def test_transposition(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(4).standard_normal(shape).astype("f4")
    y = np.zeros(shape[::-1], "f4")
    grid = (-(-shape[1] // 32), -(-shape[0] // 32))
    emulator.run(compile_ir(ir.TRANSPOSE), "transpose", grid, (32, 8), [x, y, *shape])
    assert (y == x.T).all()


_STRUCT = np.dtype([("a", "i4"), ("b", "f8"), ("c", "u2", 6)], align=True)


@pytest.mark.parametrize("opt", [0, 3])
def test_calls_recursion_printing_and_stacks(opt: int) -> None:
    """Of everything odd a little; thread 0's value is what all threads store."""
    text = compile_ir(ir.ODDITIES, features="+ptx78", opt=opt)
    x, y = np.arange(6) * 1.5, np.zeros(6)
    record = np.array([(1, 2.5, [10, 20, 30, 0, 0, 0])], dtype=_STRUCT).tobytes()[:24]
    vector = np.arange(4, dtype="f4").tobytes()
    device = Device(checks=Checks(uninitialised_shared=False, races=False))
    module = device.load(text)
    addresses = [device.alloc(48) for _ in range(2)]
    device.copy_in(addresses[0], x)
    result = module.launch("k", 1, 3, [*addresses, 2.0, 6, record, True, np.float16(0.5), vector], shared=64)
    device.copy_out(addresses[1], y)
    assert y.tolist() == [16.0] * 3 + [0.0] * 3
    assert sorted(result.output.split("\n")) == ["", "x 0", "x 1", "x 2"]


@pytest.mark.parametrize("opt", [0, 3])
def test_aggregates_whose_address_is_taken(opt: int) -> None:
    text = compile_ir(ir.BY_VALUE, features="+ptx78", opt=opt)
    record = np.array([(1, 2.5, [10, 20, 30, 40, 50, 60])], dtype=_STRUCT).tobytes()
    y = np.zeros(4)
    emulator.run(text, "k", 1, 4, [y, record, record])
    assert y.tolist() == [19.5, 32.5, 42.5, 52.5]


def test_text_of_nvcc() -> None:
    x, y = np.arange(100, dtype="f4"), np.zeros(100, "f4")
    result = emulator.run(texts.NVCC, "_Z6kernelPfPKfi", 1, 128, [y, x, 100])
    assert (y == np.minimum(x + 1, 5)).all()
    assert result.output == "i:3 4.000000\n"


def test_text_of_triton() -> None:
    x, y = np.random.default_rng(5).integers(-50, 50, 3000).astype("f4"), np.zeros(1, "f4")
    text = texts.TRITON.replace("red.global.gpu.relaxed", "red.relaxed.gpu.global")
    assert_ptxas_accepts(text, "sm_90a")
    emulator.run(text, "sum_kernel", 6, 128, [x, y, 3000], shared=16)
    assert y[0] == x.sum()


def test_more_blocks_than_in_flight_wait_for_later_ones() -> None:
    """Every block waits until all have come: blocks not yet begun must be brought in."""
    counter, out = np.zeros(1, "u4"), np.zeros(400, "u4")
    run(
        """
	setp.ne.u32 %q0, %t, 0;
	@%q0 bra SYNC;
	atom.add.release.gpu.global.u32 %r2, [%p0], 1;
WAIT:
	ld.acquire.gpu.global.u32 %r3, [%p0];
	setp.lt.u32 %q1, %r3, 400;
	@%q1 bra WAIT;
SYNC:
	bar.sync 0;
	setp.ne.u32 %q0, %t, 0;
	@%q0 bra END;
	mul.wide.u32 %d1, %r0, 4;
	add.s64 %d1, %p1, %d1;
	ld.volatile.global.u32 %r4, [%p0];
	st.global.u32 [%d1], %r4;
END:
""",
        counter,
        out,
        grid=400,
        block=256,
    )
    assert (out == 400).all()


def test_rows_of_matrices_from_shared_memory() -> None:
    """ldmatrix against its definition, plain and transposed."""
    source, out = np.arange(256, dtype="u2"), np.zeros((32, 8), "u4")
    run(
        """
	mul.wide.u32 %d1, %t, 16;
	add.s64 %d2, %p0, %d1;
	ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d2];
	mov.u32 %r6, tile; shl.b32 %r7, %t, 4; add.u32 %r6, %r6, %r7;
	st.shared.v4.u32 [%r6], {%r2, %r3, %r4, %r5};
	bar.sync 0;
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r6];
	ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r14, %r15, %r16, %r17}, [%r6];
	mul.wide.u32 %d3, %t, 32;
	add.s64 %d4, %p1, %d3;
	st.global.v4.u32 [%d4], {%r10, %r11, %r12, %r13};
	st.global.v4.u32 [%d4+16], {%r14, %r15, %r16, %r17};
""",
        source,
        out,
        block=32,
        globals=".shared .align 16 .b8 tile[512];",
    )
    matrices = source.reshape(4, 8, 8)
    lanes = np.arange(32)
    halves = out.view("u2").reshape(32, 8, 2)
    for number in range(4):
        for half in range(2):
            assert (halves[:, number, half] == matrices[number][lanes // 4, lanes % 4 * 2 + half]).all()
            assert (halves[:, 4 + number, half] == matrices[number][lanes % 4 * 2 + half, lanes // 4]).all()


def test_counters_and_coalescing() -> None:
    """A warp's 32 neighbouring words are four sectors; with a stride of eight words each is its own."""
    near, far = np.zeros(64, "u4"), np.zeros(512, "u4")
    body = "\tmul.wide.u32 %d1, %i, {};\n\tadd.s64 %d1, %d1, %p0;\n\tst.global.u32 [%d1], 1;"
    result = run(body.format(4), near, profile=True).counters
    assert (result.warp_accesses, result.sectors, result.bytes_stored["global"]) == (2, 8, 256)
    result = run(body.format(32), far, profile=True).counters
    assert (result.warp_accesses, result.sectors) == (2, 64)
    assert result.blocks == 1 and result.instructions >= 64 * 8
    (line,) = result.sectors_by_line
    assert result.sectors_by_line[line] == (2, 64)


def test_variables_of_a_module_keep_their_values_between_launches() -> None:
    text = HEADER.format(version="8.0", target="sm_90") + (
        ".visible .global .align 4 .u32 count = 40;\n.visible .global .align 8 .u64 self = count;\n"
        ".visible .entry k() {\n.reg .b64 %p;\n.reg .b32 %r;\n"
        "ld.global.u64 %p, [self];\natom.global.add.u32 %r, [%p], 1;\nret;\n}\n"
    )
    assert_ptxas_accepts(text)
    device = Device()
    module = Module(text, device)
    for _ in range(2):
        module.launch("k", 1, 1, [])
    address, size = module.variable("count")
    assert size == 4 and device.copy_out(address, np.zeros(1, "u4")) == [42]
    module.unload()
    assert device.free_bytes == device.memory.limit
    assert device.counters.launches == 2


def test_device_memory_operations() -> None:
    device = Device(memory_bytes=4096)
    first, second = device.alloc(64), device.alloc(64)
    device.copy_in(first, np.arange(8, dtype="i8"))
    device.copy(second, first + 8, 56)
    device.fill(second + 56, 255, 8)
    back = device.copy_out(second, np.zeros((4, 2), "i8").T)
    assert back.T.reshape(-1).tolist() != [] and device.copy_out(second, 8).tobytes() == (1).to_bytes(8, "little")
    assert device.copy_out(second, np.zeros(8, "i8")).tolist() == [1, 2, 3, 4, 5, 6, 7, -1]
    device.copy_in(first, b"\x01\x02")
    assert device.copy_out(first, 2).tolist() == [1, 2]


def test_malloc_and_address_spaces() -> None:
    out = np.zeros(64, "u4")
    run(
        """
	.local .align 4 .b8 mine[4];
	mov.u64 %d1, tile;   cvta.shared.u64 %d1, %d1;
	mov.u64 %d2, mine;   cvta.local.u64 %d2, %d2;
	isspacep.shared %q0, %d1;
	isspacep.local %q1, %d2;
	isspacep.global %q2, %p0;
	isspacep.global %q3, %d1;
	mul.wide.u32 %d3, %t, 4;
	add.s64 %d4, %d1, %d3;
	setp.lt.u32 %q4, %t, 32;
	selp.b64 %d5, %d4, %d2, %q4;
	st.u32 [%d5], %t;
	ld.u32 %r2, [%d5];
	selp.u32 %r3, 1000, 0, %q0;
	add.u32 %r2, %r2, %r3;
	selp.u32 %r3, 2000, 0, %q1;
	add.u32 %r2, %r2, %r3;
	selp.u32 %r3, 4000, 0, %q2;
	add.u32 %r2, %r2, %r3;
	selp.u32 %r3, 8000, 0, %q3;
	add.u32 %r2, %r2, %r3;
	add.s64 %d6, %p0, %d0;
	st.u32 [%d6], %r2;
	cvta.to.shared.u64 %d7, %d1;
	mov.u64 %d9, tile;
	setp.ne.u64 %q5, %d7, %d9;
	@%q5 trap;
""",
        out,
        globals=".shared .align 4 .b8 tile[128];",
    )
    assert out.tolist() == [7000 + t for t in range(64)]
