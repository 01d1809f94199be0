"""Integer instructions of the emulator, bit for bit against Python's whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.emulator_kernels import evaluate, integers

_TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")


def _wrap(value: int, kind: str) -> int:
    bits = int(kind[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


def _check(
    body: str, result: str, function: Callable[..., int], *inputs: tuple[str, np.ndarray[Any, Any]], **options: str
) -> None:
    found = evaluate(body, result, *inputs, **options)
    rows = zip(*(column.tolist() for _, column in inputs), strict=True)
    if result == "pred":
        assert found.tolist() == [bool(function(*row)) for row in rows]
    else:
        assert found.tolist() == [_wrap(function(*row), result) for row in rows]


def _columns(kind: str, count: int = 1, n: int = 100) -> list[tuple[str, np.ndarray[Any, Any]]]:
    return [(kind, column) for column in integers(kind, n, count)]


def _quotient(a: int, b: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    return a if b == 0 else a - b * _quotient(a, b)


@pytest.mark.parametrize("kind", _TYPES)
@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul.lo", lambda a, b: a * b),
        ("div", _quotient),
        ("rem", _remainder),
        ("min", min),
        ("max", max),
    ],
)
def test_binary(opcode: str, function: Callable[[int, int], int], kind: str) -> None:
    _check(f"{opcode}.{kind} %r, %a, %b;", kind, function, *_columns(kind, 2))


@pytest.mark.parametrize("kind", _TYPES)
def test_mul_high_and_mad(kind: str) -> None:
    bits = int(kind[1:])
    _check(f"mul.hi.{kind} %r, %a, %b;", kind, lambda a, b: (a * b) >> bits, *_columns(kind, 2))
    _check(f"mad.lo.{kind} %r, %a, %b, %c;", kind, lambda a, b, c: a * b + c, *_columns(kind, 3))
    _check(f"mad.hi.{kind} %r, %a, %b, %c;", kind, lambda a, b, c: ((a * b) >> bits) + c, *_columns(kind, 3))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_products(kind: str) -> None:
    wide = f"{kind[0]}{2 * int(kind[1:])}"
    _check(f"mul.wide.{kind} %r, %a, %b;", wide, lambda a, b: a * b, *_columns(kind, 2))
    addend = (wide, integers(wide, 100)[0])
    _check(f"mad.wide.{kind} %r, %a, %b, %c;", wide, lambda a, b, c: a * b + c, *_columns(kind, 2), addend)


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_24_bit_products(kind: str) -> None:
    def low(value: int) -> int:
        return _wrap(value, kind[0] + "24") if kind[0] == "s" else value & 0xFFFFFF

    _check(f"mul24.lo.{kind} %r, %a, %b;", kind, lambda a, b: low(a) * low(b), *_columns(kind, 2))
    _check(f"mul24.hi.{kind} %r, %a, %b;", kind, lambda a, b: (low(a) * low(b)) >> 16, *_columns(kind, 2))
    _check(f"mad24.lo.{kind} %r, %a, %b, %c;", kind, lambda a, b, c: low(a) * low(b) + c, *_columns(kind, 3))


def test_saturation() -> None:
    def clamp(value: int) -> int:
        return max(-(1 << 31), min((1 << 31) - 1, value))

    _check("add.sat.s32 %r, %a, %b;", "s32", lambda a, b: clamp(a + b), *_columns("s32", 2))
    _check("sub.sat.s32 %r, %a, %b;", "s32", lambda a, b: clamp(a - b), *_columns("s32", 2))
    _check("mad.hi.sat.s32 %r, %a, %b, %c;", "s32", lambda a, b, c: clamp(((a * b) >> 32) + c), *_columns("s32", 3))


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_signs(kind: str) -> None:
    _check(f"abs.{kind} %r, %a;", kind, abs, *_columns(kind))
    _check(f"neg.{kind} %r, %a;", kind, lambda a: -a, *_columns(kind))


@pytest.mark.parametrize("kind", _TYPES)
def test_sad(kind: str) -> None:
    _check(f"sad.{kind} %r, %a, %b, %c;", kind, lambda a, b, c: c + abs(a - b), *_columns(kind, 3))


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic(bits: int) -> None:
    kind = f"b{bits}"
    for opcode, function in (("and", int.__and__), ("or", int.__or__), ("xor", int.__xor__)):
        _check(f"{opcode}.{kind} %r, %a, %b;", f"u{bits}", function, *_columns(f"u{bits}", 2))
    _check(f"not.{kind} %r, %a;", f"u{bits}", lambda a: ~a, *_columns(f"u{bits}"))
    _check(f"cnot.{kind} %r, %a;", f"u{bits}", lambda a: int(a == 0), *_columns(f"u{bits}"))


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts(bits: int) -> None:
    amounts = ("u32", np.array([(k * 7) % (bits + 9) for k in range(249)] + [0xFFFFFFFF], dtype="u4"))
    (_, values), (_, signed) = _columns(f"u{bits}", 1)[0], _columns(f"s{bits}", 1)[0]
    unsigned_column, signed_column = (f"u{bits}", values[:250]), (f"s{bits}", signed[:250])
    _check(f"shl.b{bits} %r, %a, %b;", f"u{bits}", lambda a, b: a << b if b < bits else 0, unsigned_column, amounts)
    _check(f"shr.u{bits} %r, %a, %b;", f"u{bits}", lambda a, b: a >> b, unsigned_column, amounts)
    _check(f"shr.s{bits} %r, %a, %b;", f"s{bits}", lambda a, b: a >> min(b, bits), signed_column, amounts)
    for amount in (0, 1, bits - 1, bits, bits + 5):
        _check(f"shl.b{bits} %r, %a, {amount};", f"u{bits}", lambda a, n=amount: a << n, unsigned_column)
        _check(f"shr.s{bits} %r, %a, {amount};", f"s{bits}", lambda a, n=amount: a >> n, signed_column)
        _check(f"shr.u{bits} %r, %a, {amount};", f"u{bits}", lambda a, n=amount: a >> n, unsigned_column)


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shifts(mode: str) -> None:
    def count(c: int) -> int:
        return min(c, 32) if mode == "clamp" else c & 31

    amounts = ("u32", np.array([(k * 5) % 70 for k in range(250)], dtype="u4"))
    columns = _columns("u32", 2)
    _check(
        f"shf.l.{mode}.b32 %r, %a, %b, %c;", "u32", lambda a, b, c: ((b << 32 | a) << count(c)) >> 32, *columns, amounts
    )
    _check(f"shf.r.{mode}.b32 %r, %a, %b, %c;", "u32", lambda a, b, c: (b << 32 | a) >> count(c), *columns, amounts)


@pytest.mark.parametrize("table", [0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x01, 0x00, 0xFF, 0x6A])
def test_lop3(table: int) -> None:
    def function(a: int, b: int, c: int) -> int:
        result = 0
        for bit in range(32):
            place = (a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (c >> bit & 1)
            result |= (table >> place & 1) << bit
        return result

    _check(f"lop3.b32 %r, %a, %b, %c, {table};", "u32", function, *_columns("u32", 3, 20))


def _prmt(mode: str) -> Callable[[int, int, int], int]:
    def function(a: int, b: int, c: int) -> int:
        data = (b << 32 | a).to_bytes(8, "little")
        low = c & 3
        places = {
            "f4e": [(low + k) % 8 for k in range(4)],
            "b4e": [(low - k) % 8 for k in range(4)],
            "rc8": [low] * 4,
            "ecl": [max(low, k) for k in range(4)],
            "ecr": [min(low, k) for k in range(4)],
            "rc16": [2 * (low & 1) + (k & 1) for k in range(4)],
        }
        if mode:
            return int.from_bytes(bytes(data[p] for p in places[mode]), "little")
        chosen = []
        for k in range(4):
            nibble = c >> (4 * k) & 15
            byte = data[nibble & 7]
            chosen.append((255 if byte & 128 else 0) if nibble & 8 else byte)
        return int.from_bytes(bytes(chosen), "little")

    return function


@pytest.mark.parametrize("mode", ["", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
def test_prmt(mode: str) -> None:
    suffix = f".{mode}" if mode else ""
    _check(f"prmt.b32{suffix} %r, %a, %b, %c;", "u32", _prmt(mode), *_columns("u32", 3))


@pytest.mark.parametrize("bits", [32, 64])
def test_counting(bits: int) -> None:
    kind = f"u{bits}"
    _check(f"popc.b{bits} %r, %a;", "u32", int.bit_count, *_columns(kind))
    _check(f"clz.b{bits} %r, %a;", "u32", lambda a: bits - a.bit_length(), *_columns(kind))
    _check(f"brev.b{bits} %r, %a;", kind, lambda a: int(f"{a:0{bits}b}"[::-1], 2), *_columns(kind))
    _check(f"bfind.u{bits} %r, %a;", "u32", lambda a: a.bit_length() - 1, *_columns(kind))
    _check(f"bfind.s{bits} %r, %a;", "u32", lambda a: (a if a >= 0 else ~a).bit_length() - 1, *_columns(f"s{bits}"))
    _check(f"bfind.shiftamt.u{bits} %r, %a;", "u32", lambda a: bits - a.bit_length() if a else -1, *_columns(kind))


def _fields(n: int) -> tuple[tuple[str, Any], tuple[str, Any]]:
    rng = np.random.default_rng(5)
    position, length = rng.integers(0, 80, n), rng.integers(0, 80, n)
    position[:20], length[10:30] = 0, 0
    return ("u32", position.astype("u4")), ("u32", length.astype("u4"))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_fields(kind: str) -> None:
    bits = int(kind[1:])

    def extract(a: int, position: int, length: int) -> int:
        sign = a >> min(position + length - 1, bits - 1) & 1 if kind[0] == "s" and length else 0
        result = 0
        for k in range(bits):
            bit = a >> (position + k) & 1 if k < length and position + k < bits else sign
            result |= bit << k
        return result

    def insert(a: int, b: int, position: int, length: int) -> int:
        for k in range(length):
            if position + k < bits:
                b = b & ~(1 << (position + k)) | (a >> k & 1 if k < bits else 0) << (position + k)
        return b

    _check(f"bfe.{kind} %r, %a, %b, %c;", kind, extract, *_columns(kind), *_fields(250))
    if kind[0] == "u":
        columns = _columns(kind, 2)
        _check(f"bfi.b{bits} %r, %a, %b, %c, %d;", kind, insert, *columns, *_fields(250))


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_masks_and_extensions(mode: str) -> None:
    def count(n: int) -> int:
        return min(n, 32) if mode == "clamp" else n & 31

    positions, lengths = _fields(250)
    _check(
        f"bmsk.{mode}.b32 %r, %a, %b;",
        "u32",
        lambda p, n: ((1 << count(n)) - 1) << (p if mode == "clamp" else p & 31),
        positions,
        lengths,
    )

    def extend(a: int, n: int) -> int:
        n = count(n)
        low = a & ((1 << n) - 1)
        return low - (1 << n) if n and low >> (n - 1) else low

    _check(f"szext.{mode}.s32 %r, %a, %b;", "s32", extend, *_columns("s32"), lengths)
    _check(f"szext.{mode}.u32 %r, %a, %b;", "u32", lambda a, n: a & ((1 << count(n)) - 1), *_columns("u32"), lengths)


def test_fns() -> None:
    def function(mask: int, base: int, offset: int) -> int:
        if offset == 0:
            return base if mask >> base & 1 else -1
        order = range(base, 32) if offset > 0 else range(base, -1, -1)
        places = [p for p in order if mask >> p & 1]
        return places[abs(offset) - 1] if len(places) >= abs(offset) else -1

    rng = np.random.default_rng(3)
    base = ("u32", rng.integers(0, 32, 250).astype("u4"))
    offset = ("s32", rng.integers(-9, 10, 250).astype("i4"))
    _check("fns.b32 %r, %a, %b, %c;", "u32", function, *_columns("u32"), base, offset)


@pytest.mark.parametrize("types", ["u32.u32", "s32.s32", "u32.s32", "s32.u32"])
def test_dot_products(types: str) -> None:
    first, second = types.split(".")
    result = "s32" if "s" in types else "u32"

    def parts(value: int, size: int, kind: str) -> list[int]:
        data = (value & 0xFFFFFFFF).to_bytes(4, "little")
        return [int.from_bytes(data[k : k + size], "little", signed=kind[0] == "s") for k in range(0, 4, size)]

    a, b = (("u32", column) for column in integers("u32", 100, 2))
    c = (result, integers(result, 100)[0])

    def dot4(x: int, y: int, z: int) -> int:
        return z + sum(p * q for p, q in zip(parts(x, 1, first), parts(y, 1, second), strict=True))

    _check(f"dp4a.{types} %r, %a, %b, %c;", result, dot4, a, b, c)
    for half in ("lo", "hi"):

        def dot2(x: int, y: int, z: int, half: str = half) -> int:
            chosen = parts(y, 1, second)[:2] if half == "lo" else parts(y, 1, second)[2:]
            return z + sum(p * q for p, q in zip(parts(x, 2, first), chosen, strict=True))

        _check(f"dp2a.{half}.{types} %r, %a, %b, %c;", result, dot2, a, b, c)


def test_carry_chains() -> None:
    """Sums, differences and products of 128 bits from 32-bit and 64-bit pieces."""
    a, b = integers("u64", 100, 2)
    low, high = evaluate(
        "mov.b64 {%x3, %x4}, %a; mov.b64 {%x5, %x6}, %b;\nadd.cc.u32 %x3, %x3, %x5;\naddc.cc.u32 %x4, %x4, %x6;\n"
        "mov.b64 %r0, {%x3, %x4};\naddc.u32 %r1, 0, 0;",
        ("u64", "u32"),
        ("u64", a),
        ("u64", b),
    )
    for x, y, s, carry in zip(a.tolist(), b.tolist(), low.tolist(), high.tolist(), strict=True):
        assert x + y == carry << 64 | s
    low, high = evaluate(
        "mov.b64 {%x3, %x4}, %a; mov.b64 {%x5, %x6}, %b;\nsub.cc.u32 %x3, %x3, %x5;\nsubc.cc.u32 %x4, %x4, %x6;\n"
        "mov.b64 %r0, {%x3, %x4};\nsubc.u32 %r1, 0, 0;",
        ("u64", "u32"),
        ("u64", a),
        ("u64", b),
    )
    for x, y, d, borrow in zip(a.tolist(), b.tolist(), low.tolist(), high.tolist(), strict=True):
        assert (x - y) % (1 << 64) == d
        assert borrow == (0xFFFFFFFF if x < y else 0)
    low, high = evaluate(
        "mul.lo.u64 %r0, %a, %b;\nmul.hi.u64 %r1, %a, %b;\n"
        "mad.lo.cc.u64 %r0, %a, %b, %r0;\nmadc.hi.u64 %r1, %a, %b, %r1;",
        ("u64", "u64"),
        ("u64", a),
        ("u64", b),
    )
    for x, y, p, q in zip(a.tolist(), b.tolist(), low.tolist(), high.tolist(), strict=True):
        assert (2 * x * y) % (1 << 128) == q << 64 | p


@pytest.mark.parametrize("kind", _TYPES)
def test_comparisons(kind: str) -> None:
    columns = _columns(kind, 2)
    columns[1][1][:20] = columns[0][1][:20]
    operators: dict[str, Callable[[int, int], bool]] = {
        "eq": int.__eq__,
        "ne": int.__ne__,
        "lt": int.__lt__,
        "le": int.__le__,
        "gt": int.__gt__,
        "ge": int.__ge__,
    }
    for name, function in operators.items():
        _check(f"setp.{name}.{kind} %r, %a, %b;", "pred", function, *columns)
    if kind[0] == "u":
        for name, alias in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
            _check(f"setp.{name}.{kind} %r, %a, %b;", "pred", operators[alias], *columns)
    _check(f"set.gt.u32.{kind} %r, %a, %b;", "u32", lambda a, b: -1 if a > b else 0, *columns)


@pytest.mark.parametrize("logic", ["and", "or", "xor"])
def test_combined_comparisons(logic: str) -> None:
    combine = {"and": bool.__and__, "or": bool.__or__, "xor": bool.__xor__}[logic]
    a, b = integers("s32", 100, 2)
    c = np.arange(250) % 3 == 0
    first, second = evaluate(
        f"setp.lt.{logic}.s32 %r0|%r1, %a, %b, %c;", ("pred", "pred"), ("s32", a), ("s32", b), ("pred", c)
    )
    for x, y, z, p, q in zip(a.tolist(), b.tolist(), c.tolist(), first.tolist(), second.tolist(), strict=True):
        assert p == combine(x < y, z)
        assert q == combine(not x < y, z)
    found = evaluate(f"setp.lt.{logic}.s32 %r, %a, %b, !%c;", "pred", ("s32", a), ("s32", b), ("pred", c))
    assert found.tolist() == [combine(x < y, not z) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]


def test_selection() -> None:
    a, b = integers("u64", 100, 2)
    c = np.arange(250) % 3 == 0
    found = evaluate("selp.b64 %r, %a, %b, %c;", "u64", ("u64", a), ("u64", b), ("pred", c))
    assert (found == np.where(c, a, b)).all()
    sign = integers("s32", 100)[0]
    found = evaluate("slct.u64.s32 %r, %a, %b, %c;", "u64", ("u64", a), ("u64", b), ("s32", sign))
    assert (found == np.where(sign >= 0, a, b)).all()


def test_predicate_logic() -> None:
    a, b = np.arange(64) % 2 == 0, np.arange(64) % 3 == 0
    inputs = ("pred", a), ("pred", b)
    assert (evaluate("and.pred %r, %a, %b;", "pred", *inputs) == (a & b)).all()
    assert (evaluate("xor.pred %r, %a, %b;", "pred", *inputs) == (a ^ b)).all()
    assert (evaluate("not.pred %t0, %b; or.pred %r, %a, %t0;", "pred", *inputs) == (a | ~b)).all()
    assert (evaluate("mov.pred %r, %a; @%b not.pred %r, %a;", "pred", *inputs) == np.where(b, ~a, a)).all()


@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("target", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
def test_integer_conversions(source: str, target: str) -> None:
    column = (source, integers(source, 60)[0])
    wide = target if int(target[1:]) > 8 else f"{target[0]}16"
    _check(f"cvt.{target}.{source} %r, %a;", wide, lambda a: _wrap(a, target), column)
    limits = np.iinfo(np.dtype(f"{'i' if target[0] == 's' else 'u'}{int(target[1:]) // 8}"))
    own = np.iinfo(column[1].dtype)
    if own.min >= limits.min and own.max <= limits.max:
        return  # nothing to clamp: not an instruction
    _check(f"cvt.sat.{target}.{source} %r, %a;", wide, lambda a: max(int(limits.min), min(int(limits.max), a)), column)


def test_packed_halves() -> None:
    a, b = integers("u32", 100, 2)
    pairs = [column.view("i2").reshape(-1, 2) for column in (a, b)]
    found = evaluate("add.s16x2 %r, %a, %b;", "u32", ("u32", a), ("u32", b))
    assert (found.view("i2").reshape(-1, 2) == pairs[0] + pairs[1]).all()
    found = evaluate("min.s16x2 %r, %a, %b;", "u32", ("u32", a), ("u32", b))
    assert (found.view("i2").reshape(-1, 2) == np.minimum(*pairs)).all()
    found = evaluate("max.u16x2 %r, %a, %b;", "u32", ("u32", a), ("u32", b))
    assert (found.view("u2").reshape(-1, 2) == np.maximum(*(p.view("u2") for p in pairs))).all()


def test_splitting_and_joining() -> None:
    a = integers("u64", 100)[0]
    low, high = evaluate("mov.b64 {%r0, %r1}, %a;", ("u32", "u32"), ("u64", a))
    assert (low == a & 0xFFFFFFFF).all() and (high == a >> 32).all()
    found = evaluate("mov.b64 {%h1, %h2, %h3, %h4}, %a;\nmov.b64 %r, {%h4, %h3, %h2, %h1};", "u64", ("u64", a))
    assert (found.view("u2").reshape(-1, 4) == a.view("u2").reshape(-1, 4)[:, ::-1]).all()
    found = evaluate("mov.b64 {_, %x3}, %a;\nmov.b64 %r, {%x3, 7};", "u64", ("u64", a))
    assert (found == (a >> 32 | 7 << 32)).all()


def test_guarded_instructions() -> None:
    a, b = integers("u32", 100, 2)
    c = np.arange(250) % 3 == 0
    found = evaluate("mov.u32 %r, %b;\n@%c add.u32 %r, %a, 1;", "u32", ("u32", a), ("u32", b), ("pred", c))
    assert (found == np.where(c, a + np.uint32(1), b)).all()
    found = evaluate("mov.u32 %r, %b;\n@!%c mov.u32 %r, %a;", "u32", ("u32", a), ("u32", b), ("pred", c))
    assert (found == np.where(c, b, a)).all()
