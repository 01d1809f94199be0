"""Operations across the lanes of a warp on the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.emulator_kernels import evaluate, integers, run

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
