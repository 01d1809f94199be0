"""Barriers that count bytes and bulk copies: what comes where, and what nothing orders is an error."""

from __future__ import annotations

import numpy as np
import pytest

from parakeet_py.ptx import emulator
from parakeet_py.ptx.emulator import Device
from parakeet_py.ptx.emulator.execute import scheduler
from parakeet_py.ptx.emulator.memory import tensor_maps

# Thread 0 brings a box of 8 lines of 128 bytes, and each thread of another warp gives 16 bytes of it away.
KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 box[];
.visible .entry copies(.param .u64 out, .param .u32 x, .param .u32 y, .param .align 64 .b8 tensor[128])
{
	.reg .pred first, done, reads;
	.reg .b32 t, i, j, at, full, free, v<4>;
	.reg .b64 dst, place, map;
	mov.u32 t, %tid.x;
	mov.u32 at, box;
	add.u32 full, at, 1024;
	add.u32 free, at, 1032;
	setp.eq.u32 first, t, 0;
	setp.ge.u32 reads, t, 32;
	ld.param.u32 i, [x];
	ld.param.u32 j, [y];
	ld.param.u64 dst, [out];
	mov.b64 map, tensor;
	cvta.param.u64 map, map;
	@!first bra MADE;
	mbarrier.init.shared::cta.b64 [full], 1;
	mbarrier.init.shared::cta.b64 [free], 64;
	fence.mbarrier_init.release.cluster;
MADE:
	bar.sync 0;
	@reads bra WAIT;
	@!first bra END;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 1024;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [at], [map, {i, j}], [full];
	// AGAIN
	bra END;
WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 done, [full], 0;
	@!done bra WAIT;
	sub.u32 t, t, 32;
	mad.lo.u32 at, t, 16, at;
	mul.wide.u32 place, t, 16;
	add.s64 place, place, dst;
	ld.shared.v4.u32 {v0, v1, v2, v3}, [at];
	st.global.v4.u32 [place], {v0, v1, v2, v3};
	mbarrier.arrive.release.cta.shared::cta.b64 _, [free];
END:
	ret;
}
"""


WAIT = "mbarrier.try_wait.parity.shared::cta.b64 done, [full], 0;\n\t@!done bra WAIT;"


def copied(text: str, x: int = 0, y: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The box as it lies in shared memory, and the matrix: 12 lines of 72 elements of two bytes, 160 bytes apart."""
    device = Device()
    whole = np.arange(12 * 80, dtype=np.uint16).reshape(12, 80)
    source, target = device.alloc(whole.nbytes), device.alloc(1024)
    device.copy_in(source, whole)
    tensor = emulator.tensor_map(1, source, (72, 12), (160,), (64, 8), (1, 1), 0, 3, 0, 0)
    device.load(text).launch("copies", 1, 96, [target, x, y, tensor], 1040)
    return device.copy_out(target, np.zeros((8, 64), np.uint16)), whole[:, :72]


@pytest.mark.parametrize(("x", "y"), [(0, 0), (40, 7), (-8, -3), (72, 0)])
def test_a_box(x: int, y: int) -> None:
    """Pieces of a line are permuted by the number of the line; what is outside of the matrix is zero."""
    found, whole = copied(KERNEL, x, y)
    expected = np.pad(whole, 80)[80 + y : 88 + y, 80 + x : 144 + x]
    lines = found.reshape(8, 8, 8)
    straight = np.stack([lines[line, np.arange(8) ^ line] for line in range(8)]).reshape(8, 64)
    assert np.array_equal(straight, expected)


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        (WAIT, "", emulator.UninitialisedRead, "whose bulk copy has not been waited for"),
        ("fence.mbarrier_init.release.cluster;", "", emulator.BarrierError, "no fence makes the barrier visible"),
        ("bar.sync 0;", "bar.warp.sync -1;", emulator.KernelFault, "no barrier|made by another warp"),
        ("_, [full], 1024", "_, [full], 1040", emulator.DeadlockError, "go round a loop for ever"),
        ("[at], [map", "[at+16], [map", emulator.MemoryFault, "shared address 0x10"),
        ("[map, {i, j}]", "[dst, {i, j}]", emulator.MemoryFault, "there is no tensor map"),
        (
            "mbarrier.init.shared::cta.b64 [free]",
            "mbarrier.init.shared::cta.b64 [full]",
            emulator.BarrierError,
            "already",
        ),
        ("_, [free];", "_, [full], 2;", emulator.BarrierError, "more than the 1 arrivals"),
    ],
)
def test_mistakes(
    old: str, new: str, error: type[emulator.EmulatorError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert old in KERNEL
    monkeypatch.setattr(scheduler, "_IDLE_BEFORE_DEADLOCK", 100)
    with pytest.raises(error, match=message):
        copied(KERNEL.replace(old, new))


ONE_WARP = "setp.lt.u32 done, t, 32;\n\t@done mbarrier.arrive.release"
AGAIN = """
FREE:
	mbarrier.try_wait.parity.shared::cta.b64 done, [free], 0;
	@!done bra FREE;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 1024;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [at], [map, {i, j}], [full];
"""


def test_a_copy_waits_for_readers() -> None:
    """The same memory again: behind all arrivals of who has read it; else it is a race, though all values are right."""
    copied(KERNEL.replace("// AGAIN", AGAIN))
    with pytest.raises(emulator.DataRace, match="copy to shared memory that has been read"):
        one_warp = KERNEL.replace("[free], 64", "[free], 32").replace("mbarrier.arrive.release", ONE_WARP)
        copied(one_warp.replace("// AGAIN", AGAIN))
    with pytest.raises(emulator.DataRace, match="copy to shared memory that another copy may still write"):
        copied(KERNEL.replace("// AGAIN", AGAIN.replace("@!done bra FREE;", "")))


@pytest.mark.parametrize(
    ("address", "extents", "stride", "box", "message"),
    [
        (1 << 60 | 8, (72, 12), 160, (64, 8), "multiples of 16 bytes"),
        (1 << 60, (72, 12), 152, (64, 8), "multiples of 16 bytes"),
        (1 << 60, (72, 12), 128, (64, 8), "lines of the array overlap"),
        (1 << 60, (72, 0), 160, (64, 8), "out of range"),
        (1 << 60, (72, 12), 160, (64, 257), "out of range"),
        (1 << 60, (72, 12), 160, (72, 8), "longer than what is permuted"),
        (1 << 60, (72, 12), 160, (60, 8), "not of whole pieces"),
    ],
)
def test_maps_that_no_driver_makes(
    address: int, extents: tuple[int, int], stride: int, box: tuple[int, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        tensor_maps.encode(1, address, extents, (stride,), box, (1, 1), 0, 3, 0, 0)
