"""Atomic operations and asynchronous copies of the emulator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.emulator_kernels import run

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
