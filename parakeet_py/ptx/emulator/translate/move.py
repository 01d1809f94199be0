"""Translation of moves, selections, comparisons and conversions."""

from __future__ import annotations

from parakeet_py.ptx.emulator.front.ir import Register, Vector
from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE, size_of
from parakeet_py.ptx.emulator.translate.emitter import Emitter, emits
from parakeet_py.ptx.emulator.translate.float import is_float

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED_COMPARISONS = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_UNORDERED = {"equ": "==", "neu": "!=", "ltu": "<", "leu": "<=", "gtu": ">", "geu": ">="}
_ROUNDINGS = ("rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp", "rna")


@emits("mov")
def _move(c: Emitter) -> None:
    ptx_type = c.type()
    kind = KIND_OF_TYPE[ptx_type]
    destination, source = c.operands
    if isinstance(destination, Vector) and not isinstance(source, Vector):
        part = size_of(kind) // len(destination.items)
        text = f"words.split({c.read(source, f'u{size_of(kind)}')}, {len(destination.items)}, U{part})"
        c.write_all([(item, f"u{part}") for item in destination.items], text)
    elif isinstance(source, Vector) and not isinstance(destination, Vector):
        part = size_of(kind) // len(source.items)
        values = ", ".join(c.read(item, f"u{part}") for item in source.items)
        c.write(destination, f"words.join(({values},), U{size_of(kind)})", f"u{size_of(kind)}")
    elif isinstance(source, Register) and source.number in c.function.value_registers:
        if source.name not in c.local_offsets:
            raise c.unsupported("the address of a parameter of a call")
        offset = c.constants.number(c.local_offsets[source.name], "u8")
        c.write(destination, f"{c.mark(c.frame, 'u8')} + {offset}", "u8")
    else:
        if isinstance(source, Register) and isinstance(destination, Register):
            # A plain copy keeps the bits, whatever the type says of them.
            kind = kind if kind == "p" else f"u{size_of(kind)}"
        c.write(destination, c.read(source, kind), kind)


@emits("cvta")
def _convert_address(c: Emitter) -> None:
    ptx_type = c.type()
    if ptx_type not in ("u64", "s64"):
        raise c.unsupported("an address of 32 bits")
    to = c.take("to")
    space = c.take_any(("global", "shared", "local", "const", "param", "shared::cta", "param::entry"))
    base = {"shared": "SHARED", "shared::cta": "SHARED", "local": "LOCAL"}.get(space)
    if space.startswith("param"):
        base = "PARAM"
    value = c.source(1, "u8")
    if base is None:
        c.write(c.operands[0], f"{value} + ZERO", "u8")
    else:
        c.write(c.operands[0], f"{value} {'-' if to else '+'} {base}", "u8")


@emits("isspacep")
def _is_space(c: Emitter) -> None:
    space = c.take_any(("global", "shared", "local", "const", "param", "shared::cta", "param::entry"))
    value = c.source(1, "u8")
    if space == "const":
        c.write(c.operands[0], f"M.is_constant({value})", "p")
        return
    number = {"global": 1, "shared": 2, "local": 3, "param": 4}[space.split("::")[0]]
    text = f"({value} >> {c.constants.number(60, 'u8')}) == {c.constants.number(number, 'u8')}"
    c.write(c.operands[0], f"({text}) & ~M.is_constant({value})" if number == 1 else text, "p")


def _comparison(c: Emitter, ptx_type: str, first: int) -> str:
    """The comparison that the modifiers name, of two operands in a row."""
    operator = c.take_any((*_COMPARISONS, *_UNSIGNED_COMPARISONS, *_UNORDERED, "num", "nan"))
    flush = c.take("ftz")
    kind = KIND_OF_TYPE[ptx_type]
    if operator in _UNSIGNED_COMPARISONS or (operator in ("eq", "ne") and kind[0] == "i"):
        kind = f"u{size_of(kind)}"
    a, b = c.sources(first, 2, kind)
    if is_float(ptx_type):
        if ptx_type == "bf16":
            a, b = f"halves.from_bf16({a})", f"halves.from_bf16({b})"
        if flush:
            a, b = f"floats.flush({a})", f"floats.flush({b})"
        if operator == "num":
            return f"~(np.isnan({a}) | np.isnan({b}))"
        if operator == "nan":
            return f"np.isnan({a}) | np.isnan({b})"
        if operator in _UNORDERED:
            # `neu` is Python's !=; the others hold also when their ordered opposite fails.
            if operator == "neu":
                return f"{a} != {b}"
            opposite = {"equ": None, "ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}[operator]
            if opposite is None:
                return f"({a} == {b}) | np.isnan({a}) | np.isnan({b})"
            return f"~({a} {opposite} {b})"
        if operator == "ne":
            return f"({a} < {b}) | ({a} > {b})"
        return f"{a} {_COMPARISONS[operator]} {b}"
    symbols = {**_COMPARISONS, **_UNSIGNED_COMPARISONS}
    return f"{a} {symbols[operator]} {b}"


@emits("setp")
def _setp(c: Emitter) -> None:
    ptx_type = c.type()
    first, second = c.pair(c.operands[0])
    if ptx_type in ("f16x2", "bf16x2"):
        _setp_packed(c, ptx_type)
        return
    text = _comparison(c, ptx_type, 1)
    logic = c.take_any(("and", "or", "xor"))
    if c.operands[0] is first:
        if logic:
            symbol = {"and": "&", "or": "|", "xor": "^"}[logic]
            text = f"({text}) {symbol} ({c.source(3, 'p')})"
        c.write(first, text, "p")
        return
    symbol = {"and": "&", "or": "|", "xor": "^", "": ""}[logic]
    name = c.temporary(text)
    other = f" {symbol} ({c.source(3, 'p')})" if logic else ""
    c.write(first, f"{name}{other}", "p")
    other = f" {symbol} ({c.source(3, 'p')})" if logic else ""
    c.write(second, f"~{name}{other}", "p")


def _setp_packed(c: Emitter, ptx_type: str) -> None:
    operator = c.take_any((*_COMPARISONS, *_UNORDERED, "num", "nan"))
    flush = c.take("ftz")
    logic = c.take_any(("and", "or", "xor"))
    a, b = c.sources(1, 2, "u4")
    third = c.source(3, "p") if logic else "None"
    bf16 = ptx_type == "bf16x2"
    c.write_all(
        [(c.pair(c.operands[0])[0], "p"), (c.pair(c.operands[0])[1], "p")],
        f"words.compare_pairs({a}, {b}, {operator!r}, {logic!r}, {third}, {bf16}, {flush})",
    )


@emits("set")
def _set(c: Emitter) -> None:
    """A comparison as a value: all bits set, or 1.0."""
    source = c.type()
    result = c.type()
    text = _comparison(c, source, 1)
    logic = c.take_any(("and", "or", "xor"))
    if logic:
        symbol = {"and": "&", "or": "|", "xor": "^"}[logic]
        text = f"({text}) {symbol} ({c.source(3, 'p')})"
    kind = KIND_OF_TYPE[result]
    if result in ("f16", "f32", "f64"):
        c.write(c.operands[0], f"({text}).astype({kind.upper()})", kind)
        return
    if result == "bf16":
        c.write(c.operands[0], f"({text}).astype(U2) * {c.constants.number(0x3F80, 'u2')}", "u2")
        return
    unsigned = f"u{size_of(kind)}"
    c.write(c.operands[0], f"np.negative(({text}).astype({unsigned.upper()}))", unsigned)


@emits("selp")
def _select(c: Emitter) -> None:
    kind = KIND_OF_TYPE[c.type()]
    kind = kind if kind == "f8" else f"u{size_of(kind)}"
    a, b = c.sources(1, 2, kind)
    c.write(c.operands[0], f"where({c.source(3, 'p')}, {a}, {b})", kind)


@emits("slct")
def _select_by_sign(c: Emitter) -> None:
    control = KIND_OF_TYPE[c.type()]
    kind = f"u{size_of(KIND_OF_TYPE[c.type()])}"
    flush = c.take("ftz")
    a, b = c.sources(1, 2, kind)
    value = c.source(3, control)
    value = f"floats.flush({value})" if flush else value
    c.write(c.operands[0], f"where({value} >= {c.constants.number(0, control)}, {a}, {b})", kind)


@emits("cvt")
def _convert(c: Emitter) -> None:
    if "pack" in c.modifiers:
        _convert_pack(c)
        return
    source = c.type()
    if not c.modifiers or c.modifiers[-1] not in KIND_OF_TYPE:
        raise c.unsupported(c.instruction.name)
    result = c.modifiers.pop()
    rounding = c.take_any(_ROUNDINGS)
    flush, saturate, relu = c.take("ftz"), c.take("sat"), c.take("relu")
    finite = c.take("satfinite")
    if result in ("f16x2", "bf16x2") and source == "f32":
        options = f"{rounding!r}, relu={relu}, finite={finite}"
        upper, lower = c.sources(1, 2, "f4")
        c.write(c.operands[0], f"convert.pack_pair({upper}, {lower}, {result!r}, {options})", "u4")
        return
    if result in ("e4m3x2", "e5m2x2") or source in ("e4m3x2", "e5m2x2") or source.endswith("x2"):
        raise c.unsupported(c.instruction.name)
    from_kind, to_kind = KIND_OF_TYPE[source], KIND_OF_TYPE[result]
    value = c.source(1, from_kind)
    source_float, result_float = is_float(source), is_float(result) or result == "tf32"
    if not source_float and not result_float:
        if saturate:
            text = f"convert.saturate_integer({value}, {to_kind.upper()})"
        else:
            text = f"{value}.astype({to_kind.upper()})"
    elif not source_float:
        text = f"convert.integer_to_float({value}, {result!r}, {rounding or 'rn'!r}, saturate={saturate})"
    elif not result_float:
        text = f"convert.float_to_integer({value}, {source!r}, {to_kind.upper()}, {rounding or 'rzi'!r}, flush={flush})"
    else:
        text = (
            f"convert.float_to_float({value}, {source!r}, {result!r}, {rounding!r}, "
            f"flush={flush}, saturate={saturate}, relu={relu}, finite={finite})"
        )
        if not (flush or saturate or relu or finite):
            if rounding in ("", "rn") and {source, result} <= {"f16", "f32", "f64"} and source != result:
                text = f"{value}.astype({to_kind.upper()})"
            elif source == result and not rounding:
                text = value
    c.write(c.operands[0], text, to_kind, computed=source_float and result_float)


def _convert_pack(c: Emitter) -> None:
    """cvt.pack: two 32-bit integers saturated to 16 bits, or to 8 bits above the lower half of a third."""
    c.take("pack")
    c.take("sat")
    types = [c.modifiers.pop(0) for _ in range(len(c.modifiers))]
    if types[:2] in (["u16", "s32"], ["s16", "s32"]) and len(types) == 2:
        a, b = c.sources(1, 2, "i4")
        c.write(c.operands[0], f"convert.pack_integers({a}, {b}, None, {types[0]!r})", "u4")
    elif types[:2] in (["u8", "s32"], ["s8", "s32"]) and types[2:] == ["b32"]:
        a, b = c.sources(1, 2, "i4")
        c.write(c.operands[0], f"convert.pack_integers({a}, {b}, {c.source(3, 'u4')}, {types[0]!r})", "u4")
    else:
        raise c.unsupported(c.instruction.name)
