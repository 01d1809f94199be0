"""Translation of integer arithmetic, logic and bit manipulation.

Most of it is one NumPy operator: arrays of unsigned and signed integers wrap as PTX registers do. What is not is a
function of `integers.py`. Instructions that always are the same expression of their operands are in `formulas.py`.
"""

from __future__ import annotations

from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE, size_of
from parakeet_py.ptx.emulator.translate.emitter import Emitter, emits
from parakeet_py.ptx.emulator.translate.float import emit_float_binary, emit_float_unary, emit_fma, is_float


def _integer(ptx_type: str) -> str:
    """The kind in which arithmetic of a type is done."""
    return KIND_OF_TYPE[ptx_type]


def _wrapping(kind: str) -> str:
    """The kind for an operation whose bits do not depend on the sign: one for all saves reinterpretations."""
    return f"u{size_of(kind)}"


def _packed(c: Emitter, ptx_type: str, text: str) -> None:
    """An operation on both halves of 32-bit registers."""
    inner = "I2" if ptx_type == "s16x2" else "U2"
    values = [f"halves_of({c.source(1 + k, 'u4')}, {inner})" for k in range(2)]
    c.write(c.operands[0], f"joined({text.format(*values)})", "u4")


@emits("add", "sub")
def _add(c: Emitter) -> None:
    ptx_type = c.type()
    if is_float(ptx_type):
        emit_float_binary(c, ptx_type)
        return
    sign = "+" if c.instruction.opcode == "add" else "-"
    if ptx_type in ("u16x2", "s16x2"):
        _packed(c, ptx_type, "{} " + sign + " {}")
        return
    kind = _integer(ptx_type)
    if c.take("cc"):
        kind = f"u{size_of(kind)}"
        a, b = c.sources(1, 2, kind)
        c.write_all([(c.operands[0], kind), (c.carry, "p")], f"integers.{c.instruction.opcode}_carry({a}, {b}, None)")
        return
    if c.take("sat"):
        a, b = c.sources(1, 2, kind)
        c.write(c.operands[0], f"integers.saturate_i4({a}.astype(I8) {sign} {b})", kind)
        return
    kind = _wrapping(kind)
    a, b = c.sources(1, 2, kind)
    c.write(c.operands[0], f"{a} {sign} {b}", kind)


@emits("addc", "subc")
def _add_with_carry(c: Emitter) -> None:
    kind = f"u{size_of(_integer(c.type()))}"
    carry_out = c.take("cc")
    a, b = c.sources(1, 2, kind)
    text = f"integers.{c.instruction.opcode[:3]}_carry({a}, {b}, {c.read(c.carry, 'p')})"
    if carry_out:
        c.write_all([(c.operands[0], kind), (c.carry, "p")], text)
    else:
        c.write(c.operands[0], text + "[0]", kind)


@emits("mul", "mad", "mad24", "mul24")
def _multiply(c: Emitter) -> None:
    ptx_type = c.type()
    opcode = c.instruction.opcode
    if is_float(ptx_type):
        if opcode == "mad":
            emit_fma(c, ptx_type)
        else:
            emit_float_binary(c, ptx_type)
        return
    kind = _integer(ptx_type)
    size = size_of(kind)
    if not opcode.endswith("24") and not {"wide", "hi", "sat"} & set(c.modifiers):
        kind = _wrapping(kind)
    a, b = c.sources(1, 2, kind)
    if opcode.endswith("24"):
        high = c.take_any(("lo", "hi"), "lo") == "hi"
        product, result = f"integers.multiply_24({a}, {b}, {high})", kind
    elif c.take("wide"):
        result = f"{kind[0]}{2 * size}"
        product = f"({a}.astype({result.upper()}) * {b})"
    elif c.take("hi"):
        result = kind
        product = f"integers.multiply_high({a}, {b})"
    else:
        c.take("lo")
        product, result = f"{a} * {b}", kind
    if not opcode.startswith("mad"):
        c.write(c.operands[0], product, result)
        return
    if c.take("cc"):
        unsigned = f"u{size_of(result)}"
        addend = c.source(3, unsigned)
        text = f"integers.add_carry(({product}).view({unsigned.upper()}), {addend}, None)"
        c.write_all([(c.operands[0], unsigned), (c.carry, "p")], text)
        return
    if c.take("sat"):
        addend = c.source(3, result)
        c.write(c.operands[0], f"integers.saturate_i4(({product}).astype(I8) + {addend})", result)
        return
    unsigned = _wrapping(result)
    product = product if unsigned == result else f"({product}).view({unsigned.upper()})"
    c.write(c.operands[0], f"{product} + {c.source(3, unsigned)}", unsigned)


@emits("madc")
def _madc(c: Emitter) -> None:
    kind = _integer(c.type())
    a, b = c.sources(1, 2, kind)
    product = f"integers.multiply_high({a}, {b})" if c.take("hi") else f"{a} * {b}"
    c.take("lo")
    carry_out = c.take("cc")
    unsigned = f"u{size_of(kind)}"
    addend = c.source(3, unsigned)
    text = f"integers.add_carry(({product}).view({unsigned.upper()}), {addend}, {c.read(c.carry, 'p')})"
    if carry_out:
        c.write_all([(c.operands[0], unsigned), (c.carry, "p")], text)
    else:
        c.write(c.operands[0], text + "[0]", unsigned)


@emits("div")
def _divide(c: Emitter) -> None:
    ptx_type = c.type()
    if is_float(ptx_type):
        emit_float_binary(c, ptx_type)
        return
    kind = _integer(ptx_type)
    a, b = c.sources(1, 2, kind)
    c.write(c.operands[0], f"integers.divide({a}, {b})", kind)


@emits("abs", "neg")
def _sign(c: Emitter) -> None:
    ptx_type = c.type()
    if is_float(ptx_type):
        emit_float_unary(c, ptx_type)
        return
    kind = _integer(ptx_type)
    operator = "np.abs" if c.instruction.opcode == "abs" else "np.negative"
    c.write(c.operands[0], f"{operator}({c.source(1, kind)})", kind)


@emits("min", "max")
def _extremum(c: Emitter) -> None:
    ptx_type = c.type()
    name = "minimum" if c.instruction.opcode == "min" else "maximum"
    if ptx_type in ("u16x2", "s16x2"):
        _packed(c, ptx_type, f"np.{name}({{}}, {{}})")
        return
    if is_float(ptx_type):
        emit_float_binary(c, ptx_type)
        return
    kind = _integer(ptx_type)
    a, b = c.sources(1, 2, kind)
    text = f"np.{name}({a}, {b})"
    if c.take("relu"):
        text = f"np.maximum({text}, {c.constants.number(0, kind)})"
    c.write(c.operands[0], text, kind)


@emits("shl", "shr")
def _shift(c: Emitter) -> None:
    """A count of the width or more gives zero (or the sign); a constant count needs no test."""
    kind = _integer(c.type())
    bits = 8 * size_of(kind)
    left = c.instruction.opcode == "shl"
    kind = _wrapping(kind) if left else kind
    amount = c.operands[2]
    a = c.source(1, kind)
    count = getattr(amount, "value", None)
    if isinstance(count, int) and count >= 0:
        if count >= bits and (left or kind[0] == "u"):
            c.write(c.operands[0], f"{a} & {c.constants.number(0, kind)}", kind)
            return
        shift = c.constants.number(min(count, bits - 1), kind)
        c.write(c.operands[0], f"{a} {'<<' if left else '>>'} {shift}", kind)
        return
    c.write(c.operands[0], f"integers.shift_{'left' if left else 'right'}({a}, {c.read(amount, 'u4')})", kind)


@emits("lop3")
def _lop3(c: Emitter) -> None:
    c.type()
    if c.modifiers:
        raise c.unsupported(c.instruction.name)
    a, b, d = c.sources(1, 3, "u4")
    table = getattr(c.operands[4], "value", None)
    if not isinstance(table, int):
        raise c.invalid("the table of lop3 is not a constant")
    c.write(c.operands[0], f"integers.lop3({a}, {b}, {d}, {table & 255})", "u4")


@emits("dp4a", "dp2a")
def _dot(c: Emitter) -> None:
    second, first = _integer(c.type()), _integer(c.type())
    half = c.take_any(("lo", "hi"), "")
    result = "i4" if "i" in first + second else "u4"
    text = (
        f"integers.{c.instruction.opcode}({c.source(1, 'u4')}, {c.source(2, 'u4')}, {c.source(3, result)}, "
        f"{first[0] == 'i'}, {second[0] == 'i'}, {half == 'hi'})"
    )
    c.write(c.operands[0], text, result)
