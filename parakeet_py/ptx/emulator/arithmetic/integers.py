"""Integer arithmetic that NumPy has no single operator for.

Arguments are arrays of one fixed-width integer kind (one element, or one per lane); results wrap as PTX's do. Shifts
and bit-field operations take their counts as 32-bit registers and clamp or wrap them as the instruction says.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array

_U4, _U8, _I4, _I8 = np.uint32, np.uint64, np.int32, np.int64


def _bits(a: Array) -> int:
    return 8 * a.dtype.itemsize


def _unsigned(a: Array) -> Array:
    return a.view(f"u{a.dtype.itemsize}")


def saturate_i4(a: Array) -> Array:
    """64-bit values clamped to 32 signed bits."""
    return np.clip(a, -(1 << 31), (1 << 31) - 1).astype(_I4)


def add_carry(a: Array, b: Array, carry: Array | None) -> tuple[Array, Array]:
    """a + b + carry of unsigned values, and the carry out."""
    total = a + b
    out = total < a
    if carry is not None:
        again = total + carry.astype(a.dtype)
        out = out | (again < total)
        total = again
    return total, out


def sub_carry(a: Array, b: Array, borrow: Array | None) -> tuple[Array, Array]:
    """a - b - borrow of unsigned values, and the borrow out."""
    difference = a - b
    out = a < b
    if borrow is not None:
        again = difference - borrow.astype(a.dtype)
        out = out | (difference < again)
        difference = again
    return difference, out


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of the product of twice the width."""
    size = a.dtype.itemsize
    if size < 8:
        wide = f"{a.dtype.kind}{2 * size}"
        return ((a.astype(wide) * b.astype(wide)) >> np.array([8 * size], dtype=wide)).astype(a.dtype)
    x, y = a.view(_U8), b.view(_U8)
    mask, half = _U8(0xFFFFFFFF), _U8(32)
    x0, x1, y0, y1 = x & mask, x >> half, y & mask, y >> half
    low, middle, other = x0 * y0, x1 * y0, x0 * y1
    carry = ((low >> half) + (middle & mask) + (other & mask)) >> half
    high = x1 * y1 + (middle >> half) + (other >> half) + carry
    if a.dtype.kind == "i":
        # The unsigned product counts a negative factor 2^64 too high.
        zero = _U8(0)
        high = high - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
    return high.view(a.dtype)


def multiply_24(a: Array, b: Array, high: bool) -> Array:
    """The low 32 bits of the product of two 24-bit values, or bits 16 to 47."""
    shift = np.array([40], dtype=_I8)
    if a.dtype.kind == "i":
        x, y = (a.astype(_I8) << shift) >> shift, (b.astype(_I8) << shift) >> shift
    else:
        mask = _I8(0xFFFFFF)
        x, y = a.astype(_I8) & mask, b.astype(_I8) & mask
    product = x * y
    if high:
        product = product >> np.array([16], dtype=_I8)
    return product.astype(a.dtype)


def divide(a: Array, b: Array) -> Array:
    """The quotient rounded towards zero; all bits are set where the divisor is zero, as the hardware gives."""
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "i":
        # NumPy rounds down: one more where the signs differ and something is left.
        quotient = quotient + ((np.fmod(a, b) != 0) & ((a < 0) != (b < 0)))
    zero = b == 0
    if zero.any():
        quotient = np.where(zero, np.array([-1]).astype(a.dtype), quotient)
    return quotient.astype(a.dtype, copy=False)


def remainder(a: Array, b: Array) -> Array:
    """The remainder with the sign of the dividend; the dividend where the divisor is zero."""
    left = np.fmod(a, b)
    zero = b == 0
    return np.where(zero, a, left) if zero.any() else left


def shift_left(a: Array, amount: Array) -> Array:
    """a << amount, zero from the width on."""
    bits = _bits(a)
    shifted = a << np.minimum(amount, _U4(bits - 1)).astype(a.dtype)
    return np.where(amount >= bits, a.dtype.type(0), shifted)


def shift_right(a: Array, amount: Array) -> Array:
    """a >> amount, zero or all sign from the width on."""
    bits = _bits(a)
    shifted = a >> np.minimum(amount, _U4(bits - 1)).astype(a.dtype)
    if a.dtype.kind == "i":
        return shifted
    return np.where(amount >= bits, a.dtype.type(0), shifted)


def funnel_shift(low: Array, high: Array, amount: Array, left: bool, clamp: bool) -> Array:
    """32 bits of high:low shifted; a left shift keeps the upper half, a right shift the lower."""
    count = (np.minimum(amount, _U4(32)) if clamp else amount & _U4(31)).astype(_U8)
    both = (high.astype(_U8) << _U8(32)) | low
    if left:
        return ((both << count) >> _U8(32)).astype(_U4)
    return (both >> count).astype(_U4)


def lop3(a: Array, b: Array, c: Array, table: int) -> Array:
    """Any function of three bits: bit 4a+2b+c of the table."""
    result = (a & b & c) & _U4(0)
    for minterm in range(8):
        if table >> minterm & 1:
            term = a if minterm & 4 else ~a
            term = term & (b if minterm & 2 else ~b)
            result = result | (term & (c if minterm & 1 else ~c))
    return result


def permute_bytes(a: Array, b: Array, selector: Array, mode: str) -> Array:
    """prmt: each byte of the result is a byte of b:a, or its sign."""
    both = (b.astype(_U8) << _U8(32)) | a
    result: Array = np.zeros(1, dtype=_U4)
    low = selector & _U4(3)
    for place in range(4):
        sign = None
        if mode == "":
            nibble = (selector >> _U4(4 * place)) & _U4(15)
            choice, sign = nibble & _U4(7), (nibble & _U4(8)) != 0
        elif mode == "f4e":
            choice = (low + _U4(place)) & _U4(7)
        elif mode == "b4e":
            choice = (low - _U4(place)) & _U4(7)
        elif mode == "rc8":
            choice = low
        elif mode == "ecl":
            choice = np.maximum(low, _U4(place))
        elif mode == "ecr":
            choice = np.minimum(low, _U4(place))
        else:
            choice = ((low & _U4(1)) << _U4(1)) + _U4(place & 1)
        byte = ((both >> (choice.astype(_U8) << _U8(3))) & _U8(0xFF)).astype(_U4)
        if sign is not None:
            byte = np.where(sign, np.where(byte & _U4(0x80), _U4(0xFF), _U4(0)), byte)
        result = result | (byte << _U4(8 * place))
    return result


def popc(a: Array) -> Array:
    """Number of set bits."""
    return np.bitwise_count(a).astype(_U4)


def clz(a: Array) -> Array:
    """Number of leading zeros."""
    return _U4(_bits(a)) - _bit_length(_unsigned(a))


def _bit_length(a: Array) -> Array:
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < _bits(a):
            a = a | (a >> a.dtype.type(shift))
    return np.bitwise_count(a).astype(_U4)


def brev(a: Array) -> Array:
    """Bits in reverse order."""
    size = a.dtype.itemsize
    swapped = a.byteswap()
    for shift, mask in ((4, 0x0F), (2, 0x33), (1, 0x55)):
        pattern = a.dtype.type(int.from_bytes(bytes([mask] * size), "little"))
        count = a.dtype.type(shift)
        swapped = ((swapped & pattern) << count) | ((swapped >> count) & pattern)
    return swapped


def bfind(a: Array, shift_amount: bool) -> Array:
    """Position of the most significant bit that is not the sign; all bits set when there is none."""
    magnitude = np.where(a < 0, ~a, a) if a.dtype.kind == "i" else a
    length = _bit_length(_unsigned(magnitude))
    found = _U4(_bits(a)) - length if shift_amount else length - _U4(1)
    return np.where(length == 0, _U4(0xFFFFFFFF), found)


def bit_field_extract(a: Array, position: Array, length: Array) -> Array:
    """`length` bits from `position`; a signed field is extended by its top bit (bit 31 or 63 beyond the end)."""
    bits = _bits(a)
    start = position & _U4(0xFF)
    count = length & _U4(0xFF)
    unsigned = _unsigned(a)
    field = shift_right(unsigned, start) & _low_mask(count, bits)
    if a.dtype.kind == "u":
        return field
    top = np.minimum(start.astype(_I8) + count.astype(_I8) - 1, bits - 1)
    sign = (unsigned >> np.maximum(top, 0).astype(unsigned.dtype)) & unsigned.dtype.type(1)
    # Bits of the result from `count` on, and those that would come from beyond the register, are the sign.
    inside = np.clip(_I8(bits) - start.astype(_I8), 0, count.astype(_I8)).astype(_U4)
    fill = ~_low_mask(inside, bits)
    extended = np.where((sign != 0) & (count != 0), field | fill, field & ~fill)
    return extended.view(a.dtype)


def _low_mask(count: Array, bits: int) -> Array:
    kind = np.dtype(f"u{bits // 8}").type
    ones = kind((1 << bits) - 1)
    shift = (_U4(bits) - np.clip(count, _U4(1), _U4(bits))).astype(kind)
    return np.where(count == 0, kind(0), ones >> shift)


def bit_field_insert(a: Array, b: Array, position: Array, length: Array) -> Array:
    """The low `length` bits of a put into b at `position`."""
    bits = _bits(a)
    start = position & _U4(0xFF)
    mask = shift_left(_low_mask(length & _U4(0xFF), bits), start)
    return (b & ~mask) | (shift_left(a, start) & mask)


def bit_mask(position: Array, length: Array, clamp: bool) -> Array:
    """`length` ones from bit `position` on."""
    if clamp:
        start, count = position, np.minimum(length, _U4(32))
    else:
        start, count = position & _U4(31), length & _U4(31)
    return shift_left(_low_mask(count, 32), start)


def sign_or_zero_extend(a: Array, length: Array, clamp: bool) -> Array:
    """The low `length` bits of a, extended to 32."""
    count = np.minimum(length, _U4(32)) if clamp else length & _U4(31)
    mask = _low_mask(count, 32)
    field = a.view(_U4) & mask
    if a.dtype.kind == "i":
        top = (a.view(_U4) >> np.where(count == 0, _U4(0), count - _U4(1))) & _U4(1)
        field = np.where((top != 0) & (count != 0), field | ~mask, field)
    return field.view(a.dtype)


def find_nth_set(mask: Array, base: Array, offset: Array) -> Array:
    """Position of the offset-th set bit from `base` upwards (offset > 0), downwards (< 0), or base itself (0)."""
    mask, base, offset = np.broadcast_arrays(mask, base, offset)
    result = np.full(mask.shape, 0xFFFFFFFF, dtype=_U4)
    for lane, (bits, start, wanted) in enumerate(zip(mask.tolist(), base.tolist(), offset.tolist(), strict=True)):
        if wanted == 0:
            if start < 32 and bits >> start & 1:
                result[lane] = start
            continue
        order = range(start, 32) if wanted > 0 else range(min(start, 31), -1, -1)
        places = [place for place in order if bits >> place & 1]
        if len(places) >= abs(wanted):
            result[lane] = places[abs(wanted) - 1]
    return result


def _parts(a: Array, size: int, signed: bool) -> Array:
    kind = f"{'i' if signed else 'u'}{size}"
    return np.ascontiguousarray(a).view(kind).reshape(-1, 4 // size).astype(_I8)


def dp4a(a: Array, b: Array, c: Array, a_signed: bool, b_signed: bool, _: bool) -> Array:
    """c plus the dot product of four bytes."""
    total = (_parts(a, 1, a_signed) * _parts(b, 1, b_signed)).sum(axis=1)
    return (c.astype(_I8) + total).astype(c.dtype)


def dp2a(a: Array, b: Array, c: Array, a_signed: bool, b_signed: bool, high: bool) -> Array:
    """c plus the dot product of two halves of a with two bytes of b."""
    chosen = _parts(b, 1, b_signed)[:, 2:] if high else _parts(b, 1, b_signed)[:, :2]
    total = (_parts(a, 2, a_signed) * chosen).sum(axis=1)
    return (c.astype(_I8) + total).astype(c.dtype)


def halves(a: Array, kind: np.dtype[np.generic]) -> Array:
    """Both 16-bit halves of 32-bit values, as rows of two."""
    return np.ascontiguousarray(a).view(kind).reshape(-1, 2)


def joined(a: Array) -> Array:
    """Rows of two 16-bit values as 32-bit values."""
    return np.ascontiguousarray(a).view(_U4).reshape(-1)
