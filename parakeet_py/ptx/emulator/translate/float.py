"""Translation of floating-point arithmetic of every format.

`add`, `sub`, `mul`, `div` and `sqrt` rounded to nearest are NumPy's own for `f32` and `f64`; other roundings, fused
multiply-add and the 16-bit formats are functions of `rounding.py`, `fused.py` and `half_floats.py`. `.ftz` puts zeros
for subnormal operands and results of `f32`; `.sat` clamps to [0, 1] with NaN to 0.
"""

from __future__ import annotations

from parakeet_py.ptx.emulator.arithmetic.floats import TESTS
from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE
from parakeet_py.ptx.emulator.translate.emitter import Emitter, emits

_ROUNDINGS = ("rn", "rz", "rm", "rp")
_FLOATS = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "f32x2"})
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def is_float(ptx_type: str) -> bool:
    """Is it a floating-point type?"""
    return ptx_type in _FLOATS


def _flushed(values: list[str], flush: bool) -> list[str]:
    return [f"floats.flush({v})" for v in values] if flush else values


def _finish(c: Emitter, text: str, kind: str, flush: bool, saturate: bool) -> None:
    if flush:
        text = f"floats.flush({text})"
    if saturate:
        text = f"floats.saturate({text})"
    c.write(c.operands[0], text, kind, computed=True)


def _opened(c: Emitter, ptx_type: str, index: int) -> str:
    """An operand of a 16-bit or packed format as floats NumPy can compute with (pairs as rows of two)."""
    kind = KIND_OF_TYPE[ptx_type]
    value = c.source(index, kind)
    match ptx_type:
        case "f16":
            return value
        case "bf16":
            return f"halves.from_bf16({value})"
        case "f16x2":
            return f"halves.open_f16x2({value})"
        case "bf16x2":
            return f"halves.from_bf16(halves.open_u16x2({value}))"
        case _:
            return f"halves.open_f32x2({value})"


def _closed(ptx_type: str, text: str) -> str:
    """What `_opened` undoes; for bf16 formats the text already gives bits."""
    match ptx_type:
        case "f16" | "bf16":
            return text
        case "f32x2":
            return f"halves.close_x2({text}, U8)"
        case _:
            return f"halves.close_x2({text}, U4)"


def emit_float_binary(c: Emitter, ptx_type: str) -> None:
    """add, sub, mul, div, min, max of a floating-point type."""
    opcode = c.instruction.opcode
    rounding = c.take_any(_ROUNDINGS, "rn")
    flush, saturate = c.take("ftz"), c.take("sat")
    if opcode in ("min", "max"):
        _emit_extremum(c, ptx_type, flush)
        return
    if opcode == "div":
        # An approximate quotient may be any value in its error bound; the nearest one is.
        c.take_any(("approx", "full"))
    if ptx_type in ("f32", "f64"):
        kind = KIND_OF_TYPE[ptx_type]
        a, b = _flushed(c.sources(1, 2, kind), flush)
        text = f"{a} {_SYMBOLS[opcode]} {b}"
        if rounding != "rn":
            text = f"rounding.{opcode}({a}, {b}, {rounding!r})"
        _finish(c, text, kind, flush, saturate)
        return
    a, b = _flushed([_opened(c, ptx_type, 1), _opened(c, ptx_type, 2)], flush)
    if ptx_type == "f32x2":
        text = f"{a} {_SYMBOLS[opcode]} {b}" if rounding == "rn" else f"rounding.{opcode}({a}, {b}, {rounding!r})"
        text = f"floats.flush({text})" if flush else text
    elif rounding != "rn":
        raise c.unsupported(c.instruction.name)
    else:
        text = f"{a} {_SYMBOLS[opcode]} {b}"
        text = f"floats.flush({text})" if flush else text
        text = f"floats.saturate({text})" if saturate else text
        if ptx_type.startswith("bf16"):
            text = f"halves.to_bf16({text})"
    c.write(c.operands[0], _closed(ptx_type, text), KIND_OF_TYPE[ptx_type], computed=True)


def _emit_extremum(c: Emitter, ptx_type: str, flush: bool) -> None:
    name = "minimum" if c.instruction.opcode == "min" else "maximum"
    propagate, sign = c.take("NaN"), c.take("xorsign")
    if sign:
        c.take("abs")
    count = len(c.operands) - 1
    if ptx_type in ("f32", "f64"):
        kind = KIND_OF_TYPE[ptx_type]
        values = _flushed(c.sources(1, count, kind), flush)
    else:
        kind = KIND_OF_TYPE[ptx_type]
        values = _flushed([_opened(c, ptx_type, 1 + k) for k in range(count)], flush)
    text = f"floats.{name}({', '.join(values)}, nan={propagate}, xorsign={sign})"
    if ptx_type.startswith("bf16"):
        text = f"halves.to_bf16({text})"
    c.write(c.operands[0], _closed(ptx_type, text) if ptx_type not in ("f32", "f64") else text, kind)


@emits("fma")
def _fma(c: Emitter) -> None:
    emit_fma(c, c.type())


def emit_fma(c: Emitter, ptx_type: str) -> None:
    """fma (and mad, which is the same for floats), rounded once."""
    rounding = c.take_any(_ROUNDINGS, "rn")
    flush, saturate, relu = c.take("ftz"), c.take("sat"), c.take("relu")
    kind = KIND_OF_TYPE[ptx_type]
    if ptx_type in ("f32", "f64"):
        values = _flushed(c.sources(1, 3, kind), flush)
        _finish(c, f"fused.fma_{kind}({', '.join(values)}, {rounding!r})", kind, flush, saturate)
        return
    values = _flushed([_opened(c, ptx_type, 1 + k) for k in range(3)], flush)
    if ptx_type == "f32x2":
        text = f"fused.fma_f4({', '.join(values)}, {rounding!r})"
        text = f"floats.flush({text})" if flush else text
    else:
        name = "fma_bf16" if ptx_type.startswith("bf16") else "fma_f2"
        text = f"fused.{name}({', '.join(values)}, flush={flush}, saturate={saturate}, relu={relu})"
        if name == "fma_bf16":
            text = f"halves.to_bf16({text})"
    c.write(c.operands[0], _closed(ptx_type, text), kind, computed=True)


def emit_float_unary(c: Emitter, ptx_type: str) -> None:
    """abs and neg of a floating-point type: the sign bit, and nothing else."""
    opcode = c.instruction.opcode
    flush = c.take("ftz")
    bits = KIND_OF_TYPE[ptx_type]
    if flush and ptx_type in ("f32", "f16"):
        function = "np.abs" if opcode == "abs" else "np.negative"
        c.write(c.operands[0], f"floats.flush({function}({c.source(1, bits)}))", bits, computed=True)
        return
    bits = bits.replace("f", "u")
    sign = {
        "f16": 1 << 15,
        "f32": 1 << 31,
        "f64": 1 << 63,
        "bf16": 0x8000,
        "f16x2": 0x80008000,
        "bf16x2": 0x80008000,
        "f32x2": 0x8000000080000000,
    }[ptx_type]
    mask = c.constants.number(~sign if opcode == "abs" else sign, bits)
    if flush and ptx_type == "f16x2":
        value = f"halves.close_x2(floats.flush(halves.open_f16x2({c.source(1, bits)})), U4)"
    else:
        value = c.source(1, bits)
    c.write(c.operands[0], f"{value} {'&' if opcode == 'abs' else '^'} {mask}", bits)


@emits("sqrt", "rcp")
def _root(c: Emitter) -> None:
    ptx_type = c.type()
    kind = KIND_OF_TYPE[ptx_type]
    opcode = c.instruction.opcode
    rounding = c.take_any((*_ROUNDINGS, "approx"), "approx")
    flush = c.take("ftz")
    (a,) = _flushed([c.source(1, kind)], flush and kind == "f4")
    if rounding not in ("rn", "approx"):
        text = f"rounding.{opcode}({a}, {rounding!r})"
    elif opcode == "sqrt":
        text = f"np.sqrt({a})"
    elif rounding == "approx" and kind == "f8":
        text = f"approximate.rcp_f8({a})"
    else:
        text = f"{c.constants.number(0x3F800000 if kind == 'f4' else 0x3FF0000000000000, kind)} / {a}"
    _finish(c, text, kind, flush and kind == "f4", False)


@emits("rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
def _approximate(c: Emitter) -> None:
    """Approximations: the emulator gives the value nearest to the exact one (float64's own functions, rounded)."""
    ptx_type = c.type()
    kind = KIND_OF_TYPE[ptx_type]
    opcode = c.instruction.opcode
    if not c.take("approx"):
        raise c.unsupported(c.instruction.name)
    flush = c.take("ftz")
    if ptx_type in ("f32", "f64"):
        (a,) = _flushed([c.source(1, kind)], flush and kind == "f4")
        _finish(c, f"approximate.{opcode}_{kind}({a})", kind, flush and kind == "f4", False)
        return
    text = f"approximate.{opcode}_f4({_opened(c, ptx_type, 1)}.astype(F4))"
    if ptx_type.startswith("bf16"):
        text = f"halves.to_bf16({text})"
    else:
        text = f"({text}).astype(F2)"
    c.write(c.operands[0], _closed(ptx_type, text), kind, computed=True)


@emits("testp")
def _testp(c: Emitter) -> None:
    kind = KIND_OF_TYPE[c.type()]
    question = c.take_any(TESTS)
    if not question:
        raise c.unsupported(c.instruction.name)
    c.write(c.operands[0], f"floats.TESTS[{question!r}]({c.source(1, kind)})", "p")
