"""Translation of loads, stores and atomics.

An access becomes one call of the machine, which finds the memory, checks bounds and alignment, watches for races and
counts bytes. Qualifiers of order and scope matter only to the race checks; cache hints matter to nothing. Parameters
of a kernel at fixed places are constants of the launch.
"""

from __future__ import annotations

from parakeet_py.ptx.emulator.front.ir import Address, Immediate, Operand, Register, Symbol
from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE, size_of
from parakeet_py.ptx.emulator.translate.emitter import Emitter, emits

_SPACES = {
    "global": "global",
    "const": "global",
    "shared": "shared",
    "shared::cta": "shared",
    "local": "local",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
}
_SCOPES = ("cta", "cluster", "gpu", "sys")
_STRONG = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "seq_cst")
_CACHE = ("ca", "cg", "cs", "lu", "cv", "wb", "wt")
_VECTORS = ("v2", "v4", "v8")


class _Access:
    """What the modifiers of an access say, apart from its operation and type."""

    __slots__ = ("acquire", "release", "space", "strong", "vector")

    def __init__(self, c: Emitter) -> None:
        self.space = _SPACES.get(c.take_any(tuple(_SPACES)), "generic")
        order = c.take_any((*_STRONG, "weak"))
        if order == "mmio":
            c.take("relaxed")
        elif order in ("relaxed", "acquire", "release") and c.take("mmio"):
            pass
        self.strong = order in _STRONG
        self.acquire = order in ("acquire", "acq_rel", "seq_cst")
        self.release = order in ("release", "acq_rel", "seq_cst")
        c.take_any(_SCOPES)
        c.take_any(_CACHE)
        if c.take("nc"):
            pass
        for modifier in tuple(c.modifiers):
            if "::" in modifier:
                c.modifiers.remove(modifier)
        vector = c.take_any(_VECTORS)
        self.vector = int(vector[1]) if vector else 1

    def site(self, c: Emitter) -> str:
        return c.site(strong=self.strong, acquire=self.acquire, release=self.release)


def address_of(c: Emitter, operand: Operand) -> str:
    """An address operand as an expression."""
    if not isinstance(operand, Address):
        raise c.invalid("an address in brackets was expected")
    base, offset = operand.base, operand.offset
    if isinstance(base, Symbol):
        return c.read(Symbol(base.name, offset), "u8")
    if isinstance(base, Immediate):
        return c.constants.number(base.value + offset, "u8")
    text = c.read(base, "u8")
    return f"{text} + {c.constants.number(offset, 'u8')}" if offset else text


def _entry_parameter(c: Emitter, address: Operand) -> int | None:
    """The place of an address in the kernel's parameters, if it is fixed."""
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        return None
    offset = 0
    for parameter in c.function.parameters:
        offset = -(-offset // parameter.align) * parameter.align
        if parameter.name == address.base.name:
            return offset + address.offset
        offset += parameter.size or 0
    return None


@emits("ld", "ldu")
def _load(c: Emitter) -> None:
    kind = KIND_OF_TYPE[c.type()]
    access = _Access(c)
    destination, address = c.operands[:2]
    items = c.vector(destination)
    if access.vector != len(items):
        raise c.invalid("the vector does not fit the modifier")
    if access.space == "param":
        _load_parameter(c, kind, items, address)
        return
    name = f"M.load_{access.space}(L, {address_of(c, address)}, {kind!r}, {len(items)}, {access.site(c)}, {c.mask()})"
    _write_loaded(c, items, name, kind)
    if access.acquire:
        c.effect("M.note_acquire(L)")


def _write_loaded(c: Emitter, items: tuple[Operand, ...], text: str, kind: str) -> None:
    """Write what a load gives: one value, or a tuple of them."""
    if len(items) == 1:
        c.write_all([(items[0], kind)], text, effect=True)
        return
    whole = c.temporary(text)
    for place, item in enumerate(items):
        c.write(item, f"{whole}[{place}]", kind)


def _load_parameter(c: Emitter, kind: str, items: tuple[Operand, ...], address: Operand) -> None:
    if isinstance(address, Address) and isinstance(address.base, Register) and address.base.number >= 0:
        base = address.base
        if base.type.startswith("bytes:"):
            for place, item in enumerate(items):
                offset = address.offset + place * size_of(kind)
                c.write(item, f"words.bytes_get({c.mark(base, 'bytes')}, {offset}, {kind!r})", kind)
            return
        if base.number in c.function.value_registers:
            if address.offset:
                raise c.unsupported("a part of a scalar parameter")
            c.write(items[0], f"{c.read(base, kind)} ", kind)
            return
        text = f"M.load_param(L, {address_of(c, address)}, {kind!r}, {len(items)}, {c.site()}, {c.mask()})"
        _write_loaded(c, items, text, kind)
        return
    start = _entry_parameter(c, address) if c.function.entry else None
    if start is None:
        raise c.invalid("no such parameter")
    for place, item in enumerate(items):
        c.write(item, f"M.parameter({start + place * size_of(kind)}, {kind!r})", kind)


@emits("st")
def _store(c: Emitter) -> None:
    kind = KIND_OF_TYPE[c.type()]
    access = _Access(c)
    address, source = c.operands[:2]
    items = c.vector(source)
    if access.vector != len(items):
        raise c.invalid("the vector does not fit the modifier")
    if access.space == "param":
        _store_parameter(c, kind, items, address)
        return
    if access.release:
        c.effect("M.note_release(L)")
    kind = kind if kind == "f8" else f"u{size_of(kind)}"
    values = ", ".join(c.read(item, kind) for item in items)
    c.effect(
        f"M.store_{access.space}(L, {address_of(c, address)}, {kind!r}, ({values},), {access.site(c)}, {c.mask()})"
    )


def _store_parameter(c: Emitter, kind: str, items: tuple[Operand, ...], address: Operand) -> None:
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        raise c.unsupported("a store to a parameter of the kernel")
    base = address.base
    for place, item in enumerate(items):
        offset = address.offset + place * size_of(kind)
        if base.type.startswith("bytes:"):
            text = f"words.bytes_put({c.mark(base, 'bytes')}, {offset}, {c.read(item, kind)})"
            c.write(base, text, "bytes")
        elif offset:
            raise c.unsupported("a part of a scalar parameter")
        else:
            c.write(base, f"{c.read(item, kind)} ", kind)


_ATOMIC_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


@emits("atom", "red")
def _atomic(c: Emitter) -> None:
    returns = c.instruction.opcode == "atom"
    ptx_type = c.type()
    if ptx_type in ("bf16x2", "u16x2", "s16x2", "f32x2"):
        raise c.unsupported(c.instruction.name)
    kind = KIND_OF_TYPE[ptx_type]
    operation = c.take_any(_ATOMIC_OPERATIONS)
    c.take("noftz")
    c.take("async")
    access = _Access(c)
    access.strong = True
    if access.vector != 1 or not operation:
        raise c.unsupported(c.instruction.name)
    operands = c.operands[1:] if returns else c.operands
    name = f"{operation}_{ptx_type}" if ptx_type in ("f16x2", "bf16") else operation
    if access.release:
        c.effect("M.note_release(L)")
    values = [c.read(operand, kind) for operand in operands[1 : 3 if operation == "cas" else 2]]
    call = f"M.atomic(L, {access.space!r}, {address_of(c, operands[0])}, {kind!r}, {name!r}, ({', '.join(values)},), "
    if returns:
        # \x04 is replaced by whether the result is wanted, which is known when liveness is.
        text = f"{call}{access.site(c)}, {c.mask()}, \x04)"
        c.write_all([(c.operands[0], kind)], text, effect=True)
    else:
        c.effect(f"{call}{access.site(c)}, {c.mask()}, False)")
    if access.acquire:
        c.effect("M.note_acquire(L)")
