"""Operations across warps, barriers, atomics and control flow of the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.emulator_kernels import evaluate, integers, run

N = 256


def _warps(column: Any) -> Any:
    return column.reshape(-1, 32)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("width", [32, 16, 8, 1])
def test_shuffles(mode: str, width: int) -> None:
    """Against the definition: a segment of `width` lanes, a clamp, and the own value outside."""
    value, amount = integers("u32", 106, 2, seed=1)
    amount = amount % 33
    clamp = ((32 - width) << 8) | (0 if mode == "up" else 31)
    found, inside = evaluate(
        f"shfl.sync.{mode}.b32 %r0|%r1, %a, %b, {clamp}, 0xffffffff;",
        ("u32", "pred"),
        ("u32", value),
        ("u32", amount),
    )
    for lane in range(256):
        own, base, first = lane % 32, lane // 32 * 32, lane % 32 // width * width
        step = int(amount[lane]) & 31
        source = {"up": own - step, "down": own + step, "bfly": own ^ step, "idx": first + step % width}[mode]
        valid = source >= first if mode == "up" else source <= first + width - 1
        assert inside[lane] == valid
        assert found[lane] == value[base + source if valid else lane]


def test_votes() -> None:
    flags = np.random.default_rng(0).random(N) < 0.5
    flags[:32], flags[32:64] = True, False
    for mode, function in (("all", np.all), ("any", np.any)):
        found = evaluate(f"vote.sync.{mode}.pred %r, %a, 0xffffffff;", "pred", ("pred", flags))
        assert (_warps(found) == function(_warps(flags), axis=1)[:, None]).all()
    found = evaluate("vote.sync.uni.pred %r, %a, 0xffffffff;", "pred", ("pred", flags))
    assert (_warps(found)[:, 0] == (_warps(flags) == _warps(flags)[:, :1]).all(axis=1)).all()
    found = evaluate("vote.sync.ballot.b32 %r, %a, 0xffffffff;", "u32", ("pred", flags))
    bits = (_warps(flags) << np.arange(32, dtype="u8")).sum(axis=1)
    assert (_warps(found) == bits[:, None]).all()
    found = evaluate("vote.sync.ballot.b32 %r, !%a, 0xffffffff;", "u32", ("pred", flags))
    assert (_warps(found) == (~bits & 0xFFFFFFFF)[:, None]).all()


def test_match() -> None:
    value = np.random.default_rng(1).integers(0, 4, N).astype("u8") << 40
    value[:32] = 7
    found = evaluate("match.any.sync.b64 %r, %a, 0xffffffff;", "u32", ("u64", value))
    for lane in range(N):
        warp = _warps(value)[lane // 32]
        assert found[lane] == sum(1 << k for k in range(32) if warp[k] == value[lane])
    found, same = evaluate("match.all.sync.b64 %r0|%r1, %a, 0xffffffff;", ("u32", "pred"), ("u64", value))
    assert same[:32].all() and not same[32:].any()
    assert (found[:32] == 0xFFFFFFFF).all() and (found[32:] == 0).all()


@pytest.mark.parametrize("operation", ["add", "min", "max", "and", "or", "xor"])
def test_redux(operation: str) -> None:
    kind = "b32" if operation in ("and", "or", "xor") else "s32"
    value = integers("s32", 106)[0]
    found = evaluate(f"redux.sync.{operation}.{kind} %r, %a, 0xffffffff;", "s32", ("s32", value))
    function: Callable[..., Any] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[operation].reduce
    with np.errstate(all="ignore"):
        assert (_warps(found) == function(_warps(value), axis=1, dtype="i4")[:, None]).all()


def test_warp_operations_of_half_a_warp() -> None:
    """Lanes 0 to 15 and 16 to 31 go different ways and exchange among themselves."""
    out = np.zeros(64, "u4")
    run(
        """
	setp.lt.u32 %q0, %lane, 16;
	@%q0 bra LOW;
	redux.sync.add.u32 %r2, %t, 0xffff0000;
	bra DONE;
LOW:
	redux.sync.max.u32 %r2, %t, 0x0000ffff;
DONE:
	add.s64 %d1, %p0, %d0;
	st.global.u32 [%d1], %r2;
""",
        out,
    )
    assert (out[:16] == 15).all() and (out[16:32] == sum(range(16, 32))).all()
    assert (out[32:48] == 47).all() and (out[48:] == sum(range(48, 64))).all()


def test_activemask_and_lane_masks() -> None:
    out = np.zeros((6, 64), "u4")
    run(
        """
	activemask.b32 %r2;
	and.b32 %r3, %lane, 1;
	setp.eq.u32 %q0, %r3, 0;
	@%q0 bra EVEN;
	activemask.b32 %r2;
EVEN:
	add.s64 %d1, %p0, %d0;
	st.global.u32 [%d1], %r2;
	mov.u32 %r4, %lanemask_eq;
	st.global.u32 [%d1+256], %r4;
	mov.u32 %r4, %lanemask_lt;
	st.global.u32 [%d1+512], %r4;
	mov.u32 %r4, %lanemask_le;
	st.global.u32 [%d1+768], %r4;
	mov.u32 %r4, %lanemask_gt;
	st.global.u32 [%d1+1024], %r4;
	mov.u32 %r4, %lanemask_ge;
	st.global.u32 [%d1+1280], %r4;
""",
        out,
    )
    lane = np.arange(64, dtype="u8") % 32
    bit = np.uint64(1) << lane
    assert (out[0][::2] == 0xFFFFFFFF).all() and (out[0][1::2] == 0xAAAAAAAA).all()
    assert (out[1] == bit).all() and (out[2] == bit - 1).all() and (out[3] == 2 * bit - 1).all()
    assert (out[4] == 0xFFFFFFFF - (2 * bit - 1)).all() and (out[5] == 0xFFFFFFFF - (bit - 1)).all()


def test_grid_of_three_dimensions() -> None:
    out = np.zeros((2 * 3 * 2, 4 * 3 * 2, 8), "u4")
    run(
        """
	mov.u32 %r2, %tid.x;  mov.u32 %r3, %tid.y;  mov.u32 %r4, %tid.z;
	mov.u32 %r5, %ntid.x; mov.u32 %r6, %ntid.y; mov.u32 %r7, %ntid.z;
	mov.u32 %r8, %ctaid.x; mov.u32 %r9, %ctaid.y; mov.u32 %r10, %ctaid.z;
	mov.u32 %r11, %nctaid.x; mov.u32 %r12, %nctaid.y; mov.u32 %r13, %nctaid.z;
	mad.lo.u32 %r14, %r10, %r12, %r9; mad.lo.u32 %r14, %r14, %r11, %r8;
	mad.lo.u32 %r15, %r4, %r6, %r3; mad.lo.u32 %r15, %r15, %r5, %r2;
	mul.lo.u32 %r16, %r5, %r6; mul.lo.u32 %r16, %r16, %r7;
	mad.lo.u32 %r17, %r14, %r16, %r15;
	mul.wide.u32 %d1, %r17, 32; add.s64 %d1, %d1, %p0;
	st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r8};
	st.global.v4.u32 [%d1+16], {%r9, %r10, %r13, %r7};
""",
        out,
        grid=(2, 3, 2),
        block=(4, 3, 2),
    )
    for z, y, x in np.ndindex(2, 3, 2):
        for tz, ty, tx in np.ndindex(2, 3, 4):
            row = out[(z * 3 + y) * 2 + x, (tz * 3 + ty) * 4 + tx]
            assert row.tolist() == [tx, ty, tz, x, y, z, 2, 2]


def test_loops_of_different_length_meet_again() -> None:
    """Each thread adds up its own number of terms; the shuffle after it needs the whole warp."""
    out = np.zeros(96, "u4")
    result = run(
        """
	mov.u32 %r2, 0; mov.u32 %r3, 0;
LOOP:
	setp.ge.u32 %q0, %r3, %t;
	@%q0 bra OUT;
	add.u32 %r3, %r3, 1;
	and.b32 %r4, %r3, 1;
	setp.eq.u32 %q1, %r4, 1;
	@%q1 bra LOOP;
	add.u32 %r2, %r2, %r3;
	bra LOOP;
OUT:
	shfl.sync.idx.b32 %r5, %r2, 31, 31, 0xffffffff;
	add.s64 %d1, %p0, %d0;
	st.global.u32 [%d1], %r5;
""",
        out,
        block=96,
    )
    sums = [sum(k for k in range(1, t + 1) if k % 2 == 0) for t in range(96)]
    assert out.tolist() == [sums[t // 32 * 32 + 31] for t in range(96)]
    assert result.counters.instructions < 96 * 96 * 9


def test_indexed_branch() -> None:
    out = np.zeros(64, "u4")
    run(
        """
	rem.u32 %r2, %t, 3;
TABLE: .branchtargets A, B, C;
	brx.idx %r2, TABLE;
A:	mov.u32 %r3, 100;
	bra DONE;
B:	mov.u32 %r3, 200;
	bra DONE;
C:	mov.u32 %r3, 300;
DONE:
	add.s64 %d1, %p0, %d0;
	st.global.u32 [%d1], %r3;
""",
        out,
    )
    assert out.tolist() == [100 * (1 + t % 3) for t in range(64)]


def test_early_ends_under_a_guard() -> None:
    out = np.zeros(64, "u4")
    run(
        """
	and.b32 %r2, %t, 1;
	setp.eq.u32 %q0, %r2, 1;
	@%q0 ret;
	setp.gt.u32 %q1, %t, 32;
	@%q1 exit;
	add.s64 %d1, %p0, %d0;
	st.global.u32 [%d1], 1;
""",
        out,
    )
    assert out.tolist() == [int(t % 2 == 0 and t <= 32) for t in range(64)]


@pytest.mark.parametrize("block", [32, 64, 100, 1024])
def test_barrier_orders_shared_memory(block: int) -> None:
    """Each thread reads what its neighbour wrote; twice, with a barrier before the second writing."""
    out = np.zeros((3, block), "u4")
    run(
        f"""
	shl.b32 %r2, %t, 2;
	mov.u32 %r3, tile;
	add.u32 %r4, %r3, %r2;
	st.shared.u32 [%r4], %i;
	bar.sync 0;
	add.u32 %r5, %t, 1; rem.u32 %r5, %r5, {block};
	shl.b32 %r5, %r5, 2; add.u32 %r6, %r3, %r5;
	ld.shared.u32 %r7, [%r6];
	barrier.sync 0;
	mul.lo.u32 %r7, %r7, 2;
	st.shared.u32 [%r4], %r7;
	bar.sync 1;
	ld.shared.u32 %r8, [%r6];
	add.s64 %d1, %p0, %d0;
	st.global.u32 [%d1], %r8;
""",
        out,
        grid=3,
        block=block,
        globals=f".shared .align 4 .b8 tile[{4 * block}];",
    )
    threads = np.arange(block)
    for number in range(3):
        assert (out[number] == 2 * (number * block + (threads + 2) % block)).all()


def test_barriers_of_some_warps() -> None:
    """Warp 0 produces, warps 1 and 2 wait at a barrier for 96 threads; warp 3 never comes."""
    out = np.zeros(128, "u4")
    run(
        """
	shr.u32 %r2, %t, 5;
	setp.eq.u32 %q0, %r2, 3;
	@%q0 bra END;
	setp.ne.u32 %q1, %r2, 0;
	@%q1 bra CONSUME;
	mov.u32 %r3, cell;
	st.shared.u32 [%r3], 42;
	bar.arrive 2, 96;
	bra END;
CONSUME:
	bar.sync 2, 96;
	mov.u32 %r3, cell;
	ld.shared.u32 %r4, [%r3];
	add.s64 %d1, %p0, %d0;
	st.global.u32 [%d1], %r4;
END:
""",
        out,
        block=128,
        globals=".shared .align 4 .b8 cell[4];",
    )
    assert (out[32:96] == 42).all() and (out[:32] == 0).all() and (out[96:] == 0).all()


def test_reducing_barriers() -> None:
    out = np.zeros((4, 128), "u4")
    run(
        """
	and.b32 %r2, %t, 3;
	setp.eq.u32 %q0, %r2, %r0;
	bar.red.popc.u32 %r3, 0, %q0;
	bar.red.or.pred %q1, 0, %q0;
	bar.red.and.pred %q2, 0, !%q0;
	selp.u32 %r4, 1000, 0, %q1;
	selp.u32 %r5, 5000, 0, %q2;
	add.u32 %r3, %r3, %r4;
	add.u32 %r3, %r3, %r5;
	add.s64 %d1, %p0, %d0;
	st.global.u32 [%d1], %r3;
""",
        out,
        grid=4,
        block=128,
    )
    assert (out == 32 + 1000).all()


_ATOMICS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "add": ("u32", lambda a, b: a + b),
    "min": ("s32", min),
    "max": ("u32", max),
    "and": ("b32", int.__and__),
    "or": ("b32", int.__or__),
    "xor": ("b32", int.__xor__),
    "exch": ("b32", lambda _, b: b),
    "inc": ("u32", lambda a, b: 0 if a >= b else a + 1),
    "dec": ("u32", lambda a, b: b if a == 0 or a > b else a - 1),
}


@pytest.mark.parametrize("operation", list(_ATOMICS))
@pytest.mark.parametrize("space", ["global", "shared", ""])
@pytest.mark.parametrize("places", [1, 3, 40, 64])
def test_atomics(operation: str, space: str, places: int) -> None:
    """Whatever the order: replaying each word's operations in the order of what they found gives what they found."""
    kind, function = _ATOMICS[operation]
    value = np.random.default_rng(4).integers(0, 60, 64).astype("u4")
    words, old = np.full(64, 17, "u4"), np.zeros(64, "u4")
    where = "%d5" if space == "shared" else "%d2"
    dot = f".{space}" if space else ""
    run(
        f"""
	rem.u32 %r2, %t, {places};
	mul.wide.u32 %d1, %r2, 4;
	add.s64 %d2, %p0, %d1;
	add.s64 %d3, %p1, %d0;
	ld.global.u32 %r3, [%d3];
	mov.u64 %d4, cells;
	add.s64 %d5, %d4, %d1;
	mov.u64 %d6, cells; add.s64 %d6, %d6, %d0;
	st.shared.u32 [%d6], 17;
	bar.sync 0;
	atom{dot}.{operation}.{kind} %r4, [{where}], %r3;
	bar.sync 0;
	add.s64 %d7, %p2, %d0;
	st.global.u32 [%d7], %r4;
	{"ld.shared.u32 %r5, [%d6]; add.s64 %d7, %p0, %d0; st.global.u32 [%d7], %r5;" if space == "shared" else ""}
""",
        words,
        value,
        old,
        globals=".shared .align 4 .b8 cells[256];",
    )
    for place in range(places):
        current = 17
        for t in range(place, 64, places):
            assert old[t] == current, (t, old[t], current)
            a, b = (
                (int(np.uint32(v).view("i4")) for v in (current, value[t]))
                if kind == "s32"
                else (current, int(value[t]))
            )
            current = function(a, b) & 0xFFFFFFFF
        assert words[place] == current


def test_compare_and_swap_lock() -> None:
    """A lock taken by every thread of every block in turn; the sum is not atomic but for the lock."""
    lock, total = np.zeros(1, "u4"), np.zeros(1, "u4")
    run(
        """
TRY:
	atom.global.acquire.gpu.cas.b32 %r2, [%p0], 0, 1;
	setp.ne.u32 %q0, %r2, 0;
	@%q0 bra TRY;
	ld.volatile.global.u32 %r3, [%p1];
	add.u32 %r3, %r3, %i;
	st.volatile.global.u32 [%p1], %r3;
	fence.acq_rel.gpu;
	atom.global.exch.b32 %r4, [%p0], 0;
""",
        lock,
        total,
        grid=3,
        block=64,
    )
    assert total[0] == sum(range(192)) and lock[0] == 0


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_float_atomics(kind: str) -> None:
    dtype = "f4" if kind == "f32" else "f8"
    total = np.zeros(2, dtype)
    value = np.random.default_rng(6).standard_normal(64).astype(dtype)
    register = "%r2" if kind == "f32" else "%d2"
    run(
        f"""
	mul.wide.u32 %d1, %i, {value.itemsize};
	add.s64 %d1, %p1, %d1;
	ld.global.b{8 * value.itemsize} {register}, [%d1];
	red.global.add.{kind} [%p0], {register};
	atom.global.add.{kind} {register}, [%p0+{value.itemsize}], {register};
""",
        total,
        value,
    )
    np.testing.assert_allclose(total, value.sum(), rtol=1e-5)


def test_sixteen_bit_atomics() -> None:
    total = np.zeros(2, "f2")
    run("	mov.b32 %r2, 0x3c003c00;\n	red.global.add.noftz.f16x2 [%p0], %r2;", total)
    assert total.tolist() == [64, 64]
    cell, old = np.zeros(1, "u2"), np.zeros(64, "u4")
    run(
        """
	cvt.u16.u32 %h1, %t; add.u16 %h2, %h1, 1;
	atom.global.cas.b16 %h3, [%p0], %h1, %h2;
	cvt.u32.u16 %r2, %h3;
	add.s64 %d1, %p1, %d0;
	st.global.u32 [%d1], %r2;
""",
        cell,
        old,
    )
    assert cell[0] == 64 and old.tolist() == list(range(64))


def test_copies_from_device_to_shared_memory() -> None:
    source, out = np.arange(256, dtype="u4"), np.zeros(256, "u4")
    run(
        """
	shl.b32 %r2, %t, 4;
	mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
	mul.wide.u32 %d1, %t, 16;
	add.s64 %d2, %p0, %d1;
	and.b32 %r4, %t, 7; shl.b32 %r4, %r4, 1;
	cp.async.cg.shared.global [%r3], [%d2], 16, %r4;
	cp.async.commit_group;
	cp.async.wait_group 0;
	bar.sync 0;
	ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3];
	add.s64 %d3, %p1, %d1;
	st.global.v4.u32 [%d3], {%r5, %r6, %r7, %r8};
""",
        source,
        out,
        globals=".shared .align 16 .b8 tile[1024];",
    )
    wanted = source.view("u1").reshape(64, 16).copy()
    for t in range(64):
        wanted[t, 2 * (t % 8) :] = 0
    assert (out.view("u1").reshape(64, 16) == wanted).all()


@pytest.mark.parametrize(
    ("name", "m", "k", "registers"),
    [
        ("m16n8k8.row.col.f32.f16.f16.f32", 16, 8, (2, 1, 4)),
        ("m16n8k16.row.col.f32.f16.f16.f32", 16, 16, (4, 2, 4)),
        ("m16n8k16.row.col.f16.f16.f16.f16", 16, 16, (4, 2, 2)),
        ("m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, (4, 2, 4)),
        ("m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, (4, 2, 4)),
        ("m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, (2, 1, 4)),
    ],
)
def test_matrix_products_of_a_warp(name: str, m: int, k: int, registers: tuple[int, int, int]) -> None:
    """Fragments of ones in one place each: the product must have its one where the tables of the ISA say."""
    rng = np.random.default_rng(8)
    element = name.split(".")[4]
    narrow = name.split(".")[3] == "f16"
    a, b = (rng.integers(-4, 5, s).astype("f4") for s in ((m, k), (k, 8)))
    c = rng.integers(-9, 9, (m, 8)).astype("f4")
    group, quad = np.arange(32) // 4, np.arange(32) % 4
    fragments = [np.zeros((32, count), "u4") for count in registers]
    if element == "tf32":
        for i in range(registers[0]):
            fragments[0][:, i] = a[group + 8 * (i % 2), quad + 4 * (i // 2)].view("u4")
        for i in range(registers[1]):
            fragments[1][:, i] = b[quad + 4 * i, group].view("u4")
    else:

        def bits(x: Any) -> Any:
            return (x.view("u4") >> 16).astype("u2") if element == "bf16" else x.astype("f2").view("u2")

        for i in range(2 * registers[0]):
            half = bits(a[group + 8 * (i // 2 % 2), quad * 2 + i % 2 + 8 * (i // 4)])
            fragments[0][:, i // 2] |= half.astype("u4") << (16 * (i % 2))
        for i in range(2 * registers[1]):
            half = bits(b[quad * 2 + i % 2 + 8 * (i // 2), group])
            fragments[1][:, i // 2] |= half.astype("u4") << (16 * (i % 2))
    for i in range(4):
        column = c[group + 8 * (i // 2), quad * 2 + i % 2]
        if narrow:
            fragments[2][:, i // 2] |= column.astype("f2").view("u2").astype("u4") << (16 * (i % 2))
        else:
            fragments[2][:, i] = column.view("u4")
    out = np.zeros((32, registers[2]), "u4")
    lines, names = [], []
    for number, count in enumerate(registers):
        lines.append(f"\tmul.wide.u32 %d1, %t, {4 * count}; add.s64 %d1, %d1, %p{number};")
        names.append([f"%r{10 + 5 * number + j}" for j in range(count)])
        lines.extend(f"\tld.global.b32 {r}, [%d1+{4 * j}];" for j, r in enumerate(names[-1]))
    result = [f"%r{30 + j}" for j in range(registers[2])]
    groups = ", ".join("{" + ", ".join(g) + "}" for g in (result, *names))
    types = [".f16" if narrow else ".f32"]
    registers_text = f"\tmma.sync.aligned.{name} {groups};"
    if not narrow:
        floats = "\n".join(f"\tmov.b32 %f{j}, {r};" for j, r in enumerate(names[2]))
        groups = ", ".join(
            ["{%f4, %f5, %f6, %f7}", *("{" + ", ".join(g) + "}" for g in names[:2]), "{%f0, %f1, %f2, %f3}"]
        )
        back = "\n".join(f"\tmov.b32 {r}, %f{4 + j};" for j, r in enumerate(result))
        registers_text = f"\t.reg {types[0]} %f<8>;\n{floats}\n\tmma.sync.aligned.{name} {groups};\n{back}"
    stores = "\n".join(f"\tst.global.b32 [%d1+{4 * j}], {r};" for j, r in enumerate(result))
    run(
        "\n".join(lines)
        + f"\n{registers_text}\n\tmul.wide.u32 %d1, %t, {4 * registers[2]}; add.s64 %d1, %d1, %p3;\n{stores}",
        *fragments,
        out,
        block=32,
    )
    wanted = a @ b + c
    for i in range(4):
        place = wanted[group + 8 * (i // 2), quad * 2 + i % 2]
        if narrow:
            assert ((out[:, i // 2] >> (16 * (i % 2))).astype("u2").view("f2") == place).all()
        else:
            assert (out[:, i].copy().view("f4") == place).all()


def test_double_precision_matrix_product() -> None:
    rng = np.random.default_rng(9)
    a, b, c = rng.standard_normal((8, 4)), rng.standard_normal((4, 8)), rng.standard_normal((8, 8))
    out = np.zeros((8, 8))
    fragment_b = np.ascontiguousarray(b.T)
    run(
        """
	mul.wide.u32 %d1, %t, 8;
	add.s64 %d2, %p0, %d1; ld.global.b64 %d10, [%d2];
	add.s64 %d2, %p1, %d1; ld.global.b64 %d11, [%d2];
	mul.wide.u32 %d1, %t, 16;
	add.s64 %d2, %p2, %d1; ld.global.v2.b64 {%d12, %d13}, [%d2];
	.reg .f64 %g<6>;
	mov.b64 %g0, %d10; mov.b64 %g1, %d11; mov.b64 %g2, %d12; mov.b64 %g3, %d13;
	mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g4, %g5}, {%g0}, {%g1}, {%g2, %g3};
	add.s64 %d2, %p3, %d1;
	st.global.v2.f64 [%d2], {%g4, %g5};
""",
        a,
        fragment_b,
        c,
        out,
        block=32,
    )
    np.testing.assert_allclose(out, a @ b + c, rtol=1e-14)
