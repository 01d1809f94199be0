"""Declarations of variables, parameters and call prototypes."""

from __future__ import annotations

from parakeet_py.ptx.emulator.front.initialisers import read_initialiser
from parakeet_py.ptx.emulator.front.ir import Initialiser, Prototype, Register, Variable
from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE, size_of_type
from parakeet_py.ptx.emulator.front.tokens import TokenStream, integer_of


def read_parameters(stream: TokenStream) -> list[Variable]:
    """A parenthesised list of parameters."""
    stream.expect("(")
    found: list[Variable] = []
    while not stream.accept(")"):
        found.append(read_variables(stream, many=False)[0])
        stream.accept(",")
    return found


def read_variables(stream: TokenStream, *, external: bool = False, many: bool = True) -> list[Variable]:
    """A declaration `.space .align n .type name[dims] = {...}, ...;` (without the semicolon for a parameter)."""
    space = stream.take().text[1:]
    align = 0
    vector = 1
    ptx_type = ""
    while stream.kind == "modifier":
        word = stream.take().text[1:]
        if word == "align":
            align = integer_of(stream.take())
        elif word in ("v2", "v4"):
            vector = int(word[1])
        elif word == "attribute":
            stream.skip_past(")")
        elif word in KIND_OF_TYPE:
            ptx_type = ptx_type or word
        elif word == "ptr":
            # What a pointer parameter points to, with the alignment of that: advice, not part of the type.
            while stream.text in (".global", ".const", ".shared", ".local", ".align"):
                if stream.take().text == ".align":
                    stream.take()
        else:
            raise stream.unsupported(f"type .{word} of a variable")
    found: list[Variable] = []
    while True:
        found.append(_declarator(stream, space, ptx_type, align, vector, external))
        if not many or not stream.accept(","):
            break
    if many:
        stream.expect(";")
    return found


def _declarator(stream: TokenStream, space: str, ptx_type: str, align: int, vector: int, external: bool) -> Variable:
    name = stream.name()
    element = size_of_type(ptx_type) * vector
    count: int | None = 1
    array = vector > 1
    open_dimension = False
    while stream.accept("["):
        array = True
        if stream.text == "]":
            open_dimension = True
        else:
            count = (count or 1) * integer_of(stream.take())
        stream.expect("]")
    data: bytes | None = None
    relocations: tuple[Initialiser, ...] = ()
    if stream.accept("="):
        size = None if open_dimension else element * (count or 1)
        data, relocations = read_initialiser(stream, ptx_type, size)
        if open_dimension:
            count = len(data) // element
            open_dimension = False
    return Variable(
        name,
        space,
        ptx_type,
        align or element,
        None if open_dimension else element * (count or 0),
        array,
        data,
        relocations,
        external,
        Register(-1, name, ptx_type) if space == "reg" else None,
    )


def read_prototype(stream: TokenStream) -> Prototype:
    """What follows `.callprototype`, up to its semicolon."""
    results = read_parameters(stream) if stream.text == "(" else []
    stream.name()
    parameters = read_parameters(stream) if stream.text == "(" else []
    while stream.text == ".noreturn":
        stream.take()
    stream.expect(";")
    return Prototype(tuple(results), tuple(parameters))
