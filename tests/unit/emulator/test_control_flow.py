"""Control flow, grids and barriers of the emulator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.emulator_kernels import run


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
