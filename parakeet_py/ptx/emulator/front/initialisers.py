"""Initial values of variables: bytes, and the words in them that are addresses.

An initialiser is a number, or numbers in braces, nested as the array is. An address can be plain (`name`, `name+4`),
made generic (`generic(name)`), or a byte of one picked by a mask (`0xFF00(name)`).
"""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.front.ir import Immediate, Initialiser
from parakeet_py.ptx.emulator.front.kinds import size_of_type
from parakeet_py.ptx.emulator.front.tokens import TokenStream, integer_of, number_of


def read_initialiser(stream: TokenStream, ptx_type: str, size: int | None) -> tuple[bytes, tuple[Initialiser, ...]]:
    """The bytes after `=`, filled up with zeros to `size`, and what has to be patched in."""
    data = bytearray()
    relocations: list[Initialiser] = []
    element = size_of_type(ptx_type)
    depth = 0
    while True:
        if stream.accept("{"):
            depth += 1
        elif stream.accept("}"):
            depth -= 1
        elif depth and stream.accept(","):
            continue
        else:
            _value(stream, ptx_type, element, data, relocations)
        if depth == 0:
            break
    if size is not None:
        if len(data) > size:
            raise stream.error(f"{len(data)} bytes of initial values for {size} bytes")
        data.extend(bytes(size - len(data)))
    return bytes(data), tuple(relocations)


def _value(stream: TokenStream, ptx_type: str, element: int, data: bytearray, relocations: list[Initialiser]) -> None:
    if stream.kind == "name":
        name = stream.name()
        generic = name == "generic" and stream.accept("(")
        if generic:
            name = stream.name()
        addend = _addend(stream)
        if generic:
            stream.expect(")")
            addend += _addend(stream)
        relocations.append(Initialiser(len(data), element, name, addend, generic))
        data.extend(bytes(element))
        return
    negative = stream.accept("-")
    token = stream.take()
    if stream.text == "(":
        stream.expect("(")
        mask = integer_of(token)
        generic = stream.text == "generic"
        name = stream.name()
        if generic:
            stream.expect("(")
            name = stream.name()
            stream.expect(")")
        addend = _addend(stream)
        stream.expect(")")
        shift = (mask & -mask).bit_length() - 1
        relocations.append(Initialiser(len(data), element, name, addend, generic, shift))
        data.extend(bytes(element))
        return
    data.extend(_encode(number_of(token), negative, ptx_type, element))


def _addend(stream: TokenStream) -> int:
    if stream.accept("+"):
        negative = stream.accept("-")
        value = integer_of(stream.take())
        return -value if negative else value
    if stream.accept("-"):
        return -integer_of(stream.take())
    return 0


def _encode(value: Immediate, negative: bool, ptx_type: str, element: int) -> bytes:
    if value.float_bits:
        source = np.array([value.value], dtype=f"u{value.float_bits // 8}").view(f"f{value.float_bits // 8}")
        source = -source if negative else source
        return bytes(source.astype(f"f{element}").tobytes())
    if ptx_type in ("f16", "f32", "f64"):
        number = -value.value if negative else value.value
        return bytes(np.array([number]).astype(f"f{element}").tobytes())
    number = -value.value if negative else value.value
    return (number & ((1 << (8 * element)) - 1)).to_bytes(element, "little")
