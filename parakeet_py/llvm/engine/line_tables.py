"""Places in the user's source, read from LLVM IR with debug locations, and from line tables of assembly and PTX."""

from __future__ import annotations

import re
from collections.abc import Iterator

from parakeet_py.base.positions import Line, Pos
from parakeet_py.typed_ir.places import Place

_ATTACHED = re.compile(r",? !dbg !(\d+)")
_NODE = re.compile(r"!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)")
_FIELD = re.compile(r'(\w+): (?:!(\d+)|(\d+)|"([^"]*)")')
_LOC = re.compile(r"\s*\.loc\s+(\d+) (\d+) (\d+)")
_FOR_DEBUGGERS = re.compile(r"\s*\.file\s|\s*\.(?:section|cfi_sections)\s+\.debug_|(?:\.L|\$L__)tmp\d+:")
_FILE = re.compile(r'^\s*\.file\s+(\d+) (?:"([^"]*)" )?"([^"]*)"', re.MULTILINE)


def lines_of_ir(text: str) -> Iterator[Line]:
    """The lines of a module of LLVM IR with their places, without the metadata that says them."""
    code, nodes = [], {}
    for line in text.splitlines():
        node = _NODE.match(line)
        if node:
            fields = {name: number or literal or quoted for name, number, literal, quoted in _FIELD.findall(node[3])}
            nodes[node[1]] = fields
        elif not line.startswith("!llvm."):
            code.append(line)
    for line in code:
        attached = _ATTACHED.search(line)
        at = nodes[attached[1]] if attached else {}
        pos = None
        if "line" in at:
            pos = _place(_unquoted(nodes[nodes[at["scope"]]["file"]]["filename"]), int(at["line"]), int(at["column"]))
        yield Line(_ATTACHED.sub("", line), pos)


def lines_of_assembly(text: str) -> Iterator[Line]:
    """The lines of assembly or PTX with their places, without the directives that say them."""
    files = {
        one[1]: _unquoted("/".join(filter(None, one.groups()[1:]))) for one in _FILE.finditer(text)
    }  # PTX: at the end
    pos: Pos | None = None
    for line in text.splitlines():
        if loc := _LOC.match(line):
            pos = _place(files.get(loc[1], ""), int(loc[2]), int(loc[3])) if loc[2] != "0" else None
        elif not _FOR_DEBUGGERS.match(line):
            is_code = line[:1].isspace() and not line.lstrip().startswith(".")
            yield Line(line.expandtabs(8), pos if is_code else None)


def _place(filename: str, line: int, column: int) -> Place:
    return Place(line, column - 1, line, column - 1, filename, "", 0)


def _unquoted(text: str) -> str:
    """A file name as LLVM writes it: other bytes than those of ASCII as hexadecimal or octal numbers."""
    data = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), text.encode())
    return re.sub(rb"\\([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), data).decode(errors="replace")
