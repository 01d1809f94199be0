"""How dtypes and arrays are written in C, with the declarations that headers of several libraries may share.

An array is a structure for its dtype and rank, `parakeet_float64_2d`: the address of its first element, extents,
strides in bytes; and, of results, who frees the memory (`owner`) and of which argument the memory is (`source`).
"""

from __future__ import annotations

from parakeet_py.export.interface import ExportedSignature
from parakeet_py.signature.specs import ArraySpec

C_TYPES = {
    "bool": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float16": "uint16_t",
    "float32": "float",
    "float64": "double",
    "complex64": "parakeet_complex64",
    "complex128": "parakeet_complex128",
}

COMPLEX = """\
#ifndef PARAKEET_COMPLEX
#define PARAKEET_COMPLEX
typedef struct { float real, imag; } parakeet_complex64;
typedef struct { double real, imag; } parakeet_complex128;
#endif
"""


def array_type(dtype: str, rank: int) -> str:
    """The name of the structure."""
    return f"parakeet_{dtype}_{rank}d"


def array_types(signatures: tuple[ExportedSignature, ...]) -> list[tuple[str, int]]:
    """The dtypes and ranks of all arrays that are given or come back."""
    specs = (one.spec for signature in signatures for one in signature.given)
    found = {(spec.dtype, spec.rank) for spec in specs if isinstance(spec, ArraySpec)}
    outs = (one.leaf for signature in signatures for one in signature.outs)
    found |= {(leaf.dtype, leaf.rank) for leaf in outs if leaf.kind == "array"}
    return sorted(found)


def declaration(dtype: str, rank: int) -> str:
    """The structure, and a function that makes one of adjacent elements in C order."""
    name, kind = array_type(dtype, rank), C_TYPES[dtype]
    fields = f"    int64_t extents[{rank}];\n    int64_t strides[{rank}];\n" if rank else ""
    parameters = "".join(f", int64_t n{axis}" for axis in range(rank))
    strides: list[str] = []
    stride = f"(int64_t)sizeof({kind})"
    for axis in reversed(range(rank)):
        strides.insert(0, f"    array.strides[{axis}] = {stride};")
        stride = f"array.strides[{axis}] * n{axis}"
    lines = [f"    array.extents[{axis}] = n{axis};" for axis in range(rank)] + strides[::-1]
    guard = name.upper()
    body = "\n".join(["    array.data = data;", *lines, "    array.owner = 0;", "    array.source = 0;"])
    return (
        f"#ifndef {guard}\n#define {guard}\n"
        f"typedef struct {{\n    {kind} *data;\n{fields}    void *owner;\n    int64_t source;\n}} {name};\n\n"
        f"static inline {name} {name}_of({kind} *data{parameters})\n"
        f"{{\n    {name} array;\n{body}\n    return array;\n}}\n"
        f"#endif\n"
    )


def prototype(library: str, signature: ExportedSignature) -> str:
    """The function of a signature, without what ends a declaration."""
    parameters = []
    for one in signature.given:
        if isinstance(one.spec, ArraySpec):
            parameters.append(f"const {array_type(one.spec.dtype, one.spec.rank)} *{one.name}")
        else:
            parameters.append(f"{C_TYPES[one.spec.dtype]} {one.name}")
    for out in signature.outs:
        kind = array_type(out.leaf.dtype, out.leaf.rank) if out.leaf.kind == "array" else C_TYPES[out.leaf.dtype]
        parameters.append(f"{kind} *{out.name}")
    return f"int {library}_{signature.number}({', '.join(parameters) or 'void'})"


def string(text: str) -> str:
    """A C string."""
    parts = []
    for byte in text.encode():
        letter = chr(byte)
        if letter in '"\\':
            parts.append(f"\\{letter}")
        elif 32 <= byte < 127 and letter != "?":
            parts.append(letter)
        else:
            parts.append(f"\\{byte:03o}")
    return f'"{"".join(parts)}"'


def comment(text: str) -> str:
    """A text as it may stand in a comment."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).replace("*/", "* /").split())


def fill(text: str, **parts: str) -> str:
    """A text in which `@name@` stands for a part."""
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text
