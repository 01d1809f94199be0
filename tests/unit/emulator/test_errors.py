"""Each mistake of a kernel is the right error, with the right line of PTX; and what is no mistake is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py.ptx import emulator
from parakeet_py.ptx.emulator import Checks, Device, Module
from tests.helpers.emulator_kernels import HEADER, evaluate, run

_TILE = ".shared .align 4 .b8 tile[256];"


def _fails(kind: type[emulator.EmulatorError], source: str, body: str, *args: Any, **options: Any) -> str:
    """The message of the error that a kernel ends with, which must point at the line that has `source`."""
    with pytest.raises(kind) as caught:
        run(body, *args, **options)
    assert source in caught.value.source, str(caught.value)
    assert caught.value.line is not None
    return str(caught.value)


def test_load_past_the_end() -> None:
    message = _fails(
        emulator.MemoryFault,
        "ld.global.u32 %r2",
        "\tadd.s64 %d1, %p0, %d0;\n\tld.global.u32 %r2, [%d1];",
        np.zeros(60, "u4"),
    )
    assert "past the end of argument 0 (240 bytes" in message
    assert "thread (60, 0, 0) of block (0, 0, 0)" in message


def test_store_before_the_start() -> None:
    message = _fails(
        emulator.MemoryFault, "st.global.u32", "\tst.global.u32 [%p0+-4], %r0;", np.zeros(4, "u4"), block=1
    )
    assert "4 bytes before argument 0" in message


def test_vector_load_that_only_partly_fits() -> None:
    _fails(emulator.MemoryFault, "v4", "\tld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%p0];", np.zeros(3, "u4"), block=1)


def test_misaligned_accesses() -> None:
    message = _fails(emulator.MemoryFault, "ld.global", "\tld.global.u32 %r2, [%p0+2];", np.zeros(4, "u4"), block=1)
    assert "misaligned access of 4 bytes" in message
    body = "\tld.global.v2.u32 {%r2, %r3}, [%p0+4];"
    assert "8 bytes" in _fails(emulator.MemoryFault, "v2", body, np.zeros(4, "u4"), block=1)
    _fails(emulator.MemoryFault, "st.shared", "\tst.shared.u32 [tile+2], %r0;", block=1, globals=_TILE)


def test_pointer_of_the_host() -> None:
    host = np.zeros(4, "u4")
    device = Device()
    module = device.load(_simple("ld.global.u32 %r, [%p];"))
    with pytest.raises(emulator.MemoryFault, match="not an address of device memory"):
        module.launch("k", 1, 1, [host.ctypes.data])
    with pytest.raises(emulator.MemoryFault, match="null pointer"):
        module.launch("k", 1, 1, [0])
    other = Device()
    address = other.alloc(64)
    with pytest.raises(emulator.MemoryFault, match="another device"):
        module.launch("k", 1, 1, [address])
    address = device.alloc(64)
    module.launch("k", 1, 1, [address])
    device.free(address)
    with pytest.raises(emulator.MemoryFault, match="was freed"):
        module.launch("k", 1, 1, [address])


def _simple(instruction: str, more: str = "") -> str:
    return (
        HEADER.format(version="8.0", target="sm_90")
        + f"{more}\n.visible .entry k(.param .u64 p)\n{{\n.reg .b64 %p, %q;\n.reg .b32 %r;\n.reg .f32 %f;\n"
        + f"ld.param.u64 %p, [p];\n{instruction}\nret;\n}}\n"
    )


def test_store_to_constant_memory() -> None:
    text = _simple("mov.u64 %q, c; st.global.u32 [%q], 1;", ".const .align 4 .u32 c = 5;")
    with pytest.raises(emulator.MemoryFault, match="constant memory"):
        emulator.run(text, "k", 1, 1, [0])


def test_shared_and_local_memory_end() -> None:
    body = "\tst.shared.u32 [tile+256], %r0;"
    assert "of 256 bytes" in _fails(emulator.MemoryFault, "st.shared", body, block=1, globals=_TILE)
    body = "\t.local .align 4 .b8 mine[16];\n\tmov.u64 %d1, mine;\n\tst.local.u32 [%d1+16], %r0;"
    _fails(emulator.MemoryFault, "st.local", body, block=1)


def test_reads_of_what_nothing_has_written() -> None:
    body = "\tadd.s64 %d1, %p0, %d0;\n\tshl.b32 %r2, %t, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;\n"
    body += "\tld.shared.u32 %r4, [%r3];\n\tst.global.u32 [%d1], %r4;"
    out = np.zeros(64, "u4")
    message = _fails(emulator.UninitialisedRead, "ld.shared", body, out, globals=_TILE)
    assert "at byte 0" in message
    run(body, out, globals=_TILE, checks=Checks(uninitialised_shared=False))
    local = "\t.local .align 4 .b8 mine[16];\n\tmov.u64 %d1, mine;\n\tld.local.u32 %r2, [%d1+4];"
    _fails(emulator.UninitialisedRead, "ld.local", local, block=1)
    run(local, block=1, checks=Checks(uninitialised_local=False))


def test_device_memory_that_nothing_has_written() -> None:
    device = Device(checks=Checks(uninitialised_global=True))
    address = device.alloc(8)
    module = device.load(_simple("ld.global.u32 %r, [%p+4]; st.global.u32 [%p], %r;"))
    with pytest.raises(emulator.UninitialisedRead, match="device memory"):
        module.launch("k", 1, 1, [address])
    device.copy_in(address, np.zeros(2, "u4"))
    module.launch("k", 1, 1, [address])


def test_race_in_shared_memory() -> None:
    """A neighbour's word is read without a barrier; with one it is fine."""
    body = """
	shl.b32 %r2, %t, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
	st.shared.u32 [%r3], %t;
	BARRIER
	xor.b32 %r4, %t, 32; shl.b32 %r4, %r4, 2; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
	ld.shared.u32 %r6, [%r5];
"""
    message = _fails(emulator.DataRace, "ld.shared", body.replace("BARRIER", ""), globals=_TILE)
    assert "races with a write (line" in message and "thread (32, 0, 0)" in message
    run(body.replace("BARRIER", "bar.sync 0;"), globals=_TILE)
    run(body.replace("BARRIER", ""), globals=_TILE, checks=Checks(races=False))
    # A barrier of a warp orders the threads of that warp and no others.
    warp = body.replace("BARRIER", "bar.warp.sync 0xffffffff;")
    _fails(emulator.DataRace, "ld.shared", warp, globals=_TILE)
    run(warp.replace("%t, 32;", "%t, 1;"), globals=_TILE)


def test_writing_after_reading_without_a_barrier() -> None:
    body = """
	shl.b32 %r2, %t, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
	st.shared.u32 [%r3], %t;
	bar.sync 0;
	ld.shared.u32 %r6, [tile];
	BARRIER
	add.u32 %r6, %r6, 5;
	st.shared.u32 [%r3], %r6;
"""
    message = _fails(emulator.DataRace, "[%r3], %r6", body.replace("BARRIER", ""), globals=_TILE)
    assert "races with a read" in message
    run(body.replace("BARRIER", "bar.sync 0;"), globals=_TILE)


def test_lanes_of_a_warp_that_read_one_place() -> None:
    """A barrier of their warp comes before one of them writes there; it does so for no lanes of other warps."""
    body = """
	and.b32 %r2, %t, MASK; shl.b32 %r2, %r2, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
	st.shared.u32 [%r3], 0;
	bar.sync 0;
	ld.shared.u32 %r6, [%r3];
	bar.warp.sync 0xffffffff;
	and.b32 %r4, %t, 31; setp.ne.u32 %q2, %r4, 3;
	@%q2 bra OVER;
	add.u32 %r6, %r6, 5;
	st.shared.u32 [%r3], %r6;
OVER:
	bar.warp.sync 0xffffffff;
	ld.shared.u32 %r6, [%r3];
"""
    run(body.replace("MASK", "32"), globals=_TILE)
    _fails(emulator.DataRace, "[%r3], %r6", body.replace("MASK", "0"), globals=_TILE)
    early = body.replace("\tbar.warp.sync 0xffffffff;\n\tand", "\tand").replace("MASK", "32")
    _fails(emulator.DataRace, "[%r3], %r6", early, globals=_TILE)


def test_two_writers_of_one_place() -> None:
    out = np.zeros(4, "u4")
    message = _fails(emulator.DataRace, "st.global", "\tst.global.u32 [%p0+8], %t;", out)
    assert "write of argument 0 at byte 8 races with a write" in message
    run("\tst.global.u32 [%p0+8], 7;", out)  # the same value, in any order
    assert out.tolist() == [0, 0, 7, 0]
    _fails(emulator.DataRace, "st.shared", "\tst.shared.u32 [tile], %t;", globals=_TILE)
    run("\tst.shared.u32 [tile], 3;", globals=_TILE)


def test_race_between_blocks_in_device_memory() -> None:
    body = "\tadd.s64 %d1, %p0, %d0;\n\tst.global.u32 [%d1], 5;\n\tBARRIER\n\tld.global.u32 %r2, [%p0+OFFSET];"
    out = np.zeros(128, "u4")
    fine = body.replace("BARRIER", "bar.sync 0;")
    message = _fails(emulator.DataRace, "ld.global", fine.replace("OFFSET", "0"), out, grid=2)
    assert "races with a write" in message
    alone = fine.replace("OFFSET", "0").replace("%p0+0", "%d2").replace("bar.sync 0;", _NEIGHBOUR)
    run(alone, out, grid=2)
    _fails(emulator.DataRace, "ld.global", alone.replace("bar.sync 0;", ""), out, grid=2)


_NEIGHBOUR = "bar.sync 0; xor.b32 %r3, %i, 32; mul.wide.u32 %d3, %r3, 4; add.s64 %d2, %p0, %d3;"

_HANDSHAKE = """
	setp.ne.u32 %q0, %t, 0;
	@%q0 ret;
	setp.eq.u32 %q1, %r0, 0;
	@%q1 bra SEND;
WAIT:
	ld.FLAG.global.u32 %r2, [%p1];
	setp.eq.u32 %q2, %r2, 0;
	@%q2 bra WAIT;
	FENCE
	ld.global.u32 %r3, [%p0];
	st.global.u32 [%p0+4], %r3;
	ret;
SEND:
	st.global.u32 [%p0], 99;
	FENCE
	st.volatile.global.u32 [%p1], 1;
"""


def test_a_flag_between_blocks_orders_with_fences_only() -> None:
    out, flag = np.zeros(2, "u4"), np.zeros(1, "u4")
    run(_HANDSHAKE.replace("FLAG", "volatile").replace("FENCE", "membar.gl;"), out, flag, grid=2)
    assert out.tolist() == [99, 99]
    flag[:] = 0
    run(_HANDSHAKE.replace("FLAG", "relaxed.gpu").replace("FENCE", "fence.acq_rel.gpu;"), out, flag, grid=2)
    flag[:] = 0
    _fails(
        emulator.DataRace,
        "ld.global.u32 %r3",
        _HANDSHAKE.replace("FLAG", "volatile").replace("FENCE", ""),
        out,
        flag,
        grid=2,
    )


def test_atomics_do_not_race_but_a_plain_read_among_them_does() -> None:
    out = np.zeros(1, "u4")
    run("\tred.global.add.u32 [%p0], 1;", out, grid=4)
    assert out[0] == 256
    _fails(emulator.DataRace, "ld.global", "\tred.global.add.u32 [%p0], 1;\n\tld.global.u32 %r2, [%p0];", out)


def test_barrier_that_some_threads_never_reach() -> None:
    body = "\tsetp.gt.u32 %q0, %t, 40;\n\t@%q0 ret;\n\tbar.sync 0;"
    message = _fails(emulator.BarrierError, "bar.sync 0", body)
    assert "41 of 64 threads of the block wait here, 23 have ended" in message
    run(body, checks=Checks(exited_barriers=False))


def test_threads_of_one_warp_at_different_barriers() -> None:
    body = """
	and.b32 %r2, %t, 1;
	setp.eq.u32 %q0, %r2, 0;
	@%q0 bra ONE;
	bar.sync 0;
	bra DONE;
ONE:
	bar.sync 0;
DONE:
"""
    message = _fails(emulator.BarrierError, "bar.sync", body)
    assert "different barriers" in message
    run(body.replace("bar.sync", "barrier.sync"))  # the unaligned form may
    run(body.replace("and.b32 %r2, %t, 1;", "and.b32 %r2, %t, 32;"))  # different warps may


def test_barriers_that_wait_for_each_other() -> None:
    body = "\tsetp.gt.u32 %q0, %t, 31;\n\t@%q0 bra B;\n\tbar.sync 1;\n\tbra C;\nB:\tbar.sync 2;\nC:"
    assert "others wait at line" in _fails(emulator.BarrierError, "bar.sync", body)


def test_shuffle_from_a_lane_that_is_not_there() -> None:
    body = "\tshfl.sync.down.b32 %r2, %t, 1, 31, 0xffffffff;\n\tsetp.eq.u32 %q0, %r2, 99;\n\t@%q0 trap;"
    message = _fails(emulator.WarpError, "shfl.sync.down", body, block=40)
    assert "reads lane 8, which does not take part" in message
    run(body, block=40, checks=Checks(inactive_shuffles=False))
    run(body, block=64)


def test_warp_operation_whose_lanes_never_come() -> None:
    body = """
	and.b32 %r2, %t, 1;
	setp.eq.u32 %q0, %r2, 0;
	@%q0 bra ONE;
	shfl.sync.idx.b32 %r3, %t, 1, 31, 0xffffffff;
	bra DONE;
ONE:
	bar.sync 0;
DONE:
"""
    with pytest.raises((emulator.WarpError, emulator.BarrierError)):
        run(body)
    body = "\tvote.sync.all.pred %q1, %q0, 2;\n"
    assert "does not name the lane itself" in _fails(
        emulator.WarpError, "vote", "\tsetp.eq.u32 %q0, %t, 0;\n@%q0 bra X;\n" + body + "X:\n"
    )


def test_spinning_for_ever() -> None:
    body = "W:\tld.volatile.global.u32 %r2, [%p0];\n\tsetp.eq.u32 %q0, %r2, 0;\n\t@%q0 bra W;"
    message = _fails(emulator.DeadlockError, "", body, np.zeros(1, "u4"))
    assert "for ever" in message
    with pytest.raises(emulator.DeadlockError, match="more than 1000"):
        run("W:\tbra W;", checks=Checks(max_steps=1000))


def test_trap_and_assertions() -> None:
    _fails(emulator.TrapError, "trap", "\tsetp.eq.u32 %q0, %t, 3;\n\t@%q0 trap;")


@pytest.mark.parametrize(
    ("grid", "block", "shared", "message"),
    [
        (1, 1025, 0, "1024"),
        (1, (32, 33), 0, "1056 threads"),
        (1, (1, 1, 65), 0, "block"),
        (0, 32, 0, "grid"),
        ((1, 70000), 32, 0, "grid"),
        (1, (1, 2, 3, 4), 0, "dimensions"),
        (1, 32, 300000, "shared memory"),
    ],
)
def test_limits_of_a_launch(grid: Any, block: Any, shared: int, message: str) -> None:
    with pytest.raises(emulator.LaunchError, match=message):
        emulator.run(_simple(""), "k", grid, block, [0], shared)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(emulator.LaunchError, match="1 parameters, and 2 arguments"):
        emulator.run(_simple(""), "k", 1, 1, [0, 1])
    with pytest.raises(emulator.LaunchError, match="no kernel j"):
        emulator.run(_simple(""), "j", 1, 1, [0])
    with pytest.raises(emulator.LaunchError, match="str"):
        emulator.run(_simple(""), "k", 1, 1, ["x"])
    text = _simple("").replace("(.param .u64 p)", "(.param .u64 p) .maxntid 64").replace("k(", "k(")
    with pytest.raises(emulator.LaunchError, match="made for 64"):
        emulator.run(text, "k", 1, 128, [0])
    with pytest.raises(emulator.LaunchError, match="needs"):
        emulator.run(text.replace(".maxntid", ".reqntid"), "k", 1, 32, [0])


@pytest.mark.parametrize(
    ("instruction", "what"),
    [
        ("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8;", "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8"),
        ("tex.2d.v4.f32.f32 {%f,%f,%f,%f}, [%p, {%f, %f}];", "tex.2d"),
        ("add.rn.xyz.f32 %f, %f, %f;", "modifier .xyz"),
        ("vadd.s32.s32.s32 %r, %r, %r;", "vadd"),
        ("mov.u32 %r, %pm0;", "special register %pm0"),
        ("ld.global.b128 %r, [%p];", "b128"),
    ],
)
def test_what_is_not_executed_is_refused_by_name_with_its_line(instruction: str, what: str) -> None:
    text = _simple(instruction)
    with pytest.raises(emulator.UnsupportedPtx) as caught:
        Module(text)
    assert what in str(caught.value)
    assert caught.value.line == 1 + text.split("\n").index(next(t for t in text.split("\n") if instruction[:8] in t))


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("add.u32 %r, %z, 1;", "%z is not declared"),
        ("bra NOWHERE;", "label that does not exist"),
        ("add.u32 %r %r, 1;", "expected"),
        ("mov.u64 %q, nothing;", "nothing is not declared"),
        ("ld.global.u32 %r, %p;", "address in brackets"),
        ("mov.u32 %r, §;", "cannot read"),
    ],
)
def test_what_is_not_ptx(instruction: str, message: str) -> None:
    with pytest.raises(emulator.PtxSyntaxError, match=message):
        Module(_simple(instruction))


def test_a_device_is_usable_after_a_fault_and_memory_is_limited() -> None:
    device = Device(memory_bytes=1000)
    address = device.alloc(600)
    with pytest.raises(emulator.DeviceOutOfMemory, match="600 of 1000 bytes are in use"):
        device.alloc(401)
    with pytest.raises(emulator.EmulatorError, match="past the end"):
        device.copy_in(address + 596, np.zeros(2, "u4"))
    with pytest.raises(emulator.EmulatorError):
        device.free(address + 4)
    module = device.load(_simple("ld.global.u32 %r, [%p+600];"))
    with pytest.raises(emulator.MemoryFault):
        module.launch("k", 1, 1, [address])
    device.load(_simple("st.global.u32 [%p], 77;")).launch("k", 1, 1, [address])
    assert device.copy_out(address, np.zeros(1, "u4")) == [77]
    device.free(address)
    assert device.free_bytes == 1000
    assert evaluate("add.u32 %r, %a, 1;", "u32", ("u32", [1, 2])).tolist() == [2, 3]


def test_read_only_loads_of_what_the_kernel_writes() -> None:
    """Even the same thread must not: the cache for read-only data is not kept up to date."""
    body = (
        "\tadd.s64 %d1, %p0, %d0;\n\tld.global.nc.u32 %r2, [%d1];\n\tadd.u32 %r2, %r2, 1;\n\tst.global.u32 [%d1], %r2;"
    )
    message = _fails(emulator.DataRace, "st.global", body, np.zeros(64, "u4"))
    assert "only read (.nc)" in message
    run(body.replace(".nc", ""), np.zeros(64, "u4"))


def test_the_thread_of_an_earlier_block_is_named() -> None:
    out = np.zeros(1 << 17, "u4")
    body = "\tand.b32 %r2, %i, 0xffff; mul.wide.u32 %d1, %r2, 4; add.s64 %d1, %d1, %p0;\n\tst.global.u32 [%d1], %i;"
    message = _fails(emulator.DataRace, "st.global", body, out, grid=256, block=512)
    assert "races with a write (line" in message
    assert "of block (0, 0, 0)" in message and "of block (128, 0, 0)" in message


_PIPELINE = """
	mov.u32 %r2, tile; shl.b32 %r3, %t, 4; add.u32 %r2, %r2, %r3;
	mul.wide.u32 %d1, %t, 16; add.s64 %d1, %d1, %p0;
	cp.async.ca.shared.global [%r2], [%d1], 16;
	cp.async.commit_group;
	add.u32 %r4, %r2, 512;
	cp.async.ca.shared.global [%r4], [%d1], 16;
	cp.async.commit_group;
	WAIT
	ld.shared.u32 %r5, [%r2];
	SECOND
	ld.shared.u32 %r6, [%r4+12];
"""


def test_reads_of_copies_that_have_not_been_waited_for() -> None:
    options = {"block": 32, "globals": ".shared .align 16 .b8 tile[1024];"}
    data = np.zeros(128, "u4")
    fine = _PIPELINE.replace("WAIT", "cp.async.wait_group 1;").replace("SECOND", "cp.async.wait_all;")
    run(fine, data, **options)
    late = _PIPELINE.replace("WAIT", "cp.async.wait_group 1;").replace("SECOND", "")
    message = _fails(emulator.UninitialisedRead, "[%r4+12]", late, data, **options)
    assert "has not been waited for" in message
    _fails(emulator.UninitialisedRead, "[%r2]", _PIPELINE.replace("WAIT", "").replace("SECOND", ""), data, **options)
    run(_PIPELINE.replace("WAIT", "cp.async.wait_group 0;").replace("SECOND", ""), data, **options)
