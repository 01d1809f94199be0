"""PTX text to tokens.

Comments are blanked out first (they may span lines), then each line is cut on its own, so that every token knows its
line. Directives that end with their line instead of a semicolon (`.version`, `.target`, `.address_size`, `.file`,
`.loc`) become one token; nothing in them changes what a program computes, but the parser keeps the header.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from parakeet_py.ptx.emulator.checks.errors import PtxSyntaxError


class Token(NamedTuple):
    """A piece of text: `kind` is one of number, modifier, name, string, mark, header, end."""

    kind: str
    text: str
    line: int


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_HEADER = re.compile(r"\s*\.(version|target|address_size|file|loc)\b(.*)")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>0[fF][0-9a-fA-F]{8}\b | 0[dD][0-9a-fA-F]{16}\b | 0[xX][0-9a-fA-F]+U? | 0[bB][01]+U?
                 | \d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | \d+U?)
    | (?P<modifier>\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)
    | (?P<name>[%$_A-Za-z][\w$]*)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<mark><<|>>|[-+*/|&!~?:;,(){}\[\]<>=@^])
    )""",
    re.X,
)


def tokenize(text: str) -> list[Token]:
    """All tokens of a PTX text, closed by one of kind "end".

    Raises
    ------
    PtxSyntaxError
        At a character that starts no token.
    """
    tokens: list[Token] = []
    append = tokens.append
    new = tuple.__new__  # a named tuple without its constructor: this loop sees every token
    text = _COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
    number = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line.isspace():
            continue
        stripped = line.rstrip(" \t\r\0")
        if header := _HEADER.match(stripped):
            append(Token("header", f"{header[1]} {header[2].strip()}", number))
            continue
        position = 0
        for match in _TOKEN.finditer(stripped):
            if match.start() != position:
                break
            position = match.end()
            kind = match.lastgroup
            assert kind is not None
            append(new(Token, (kind, match[kind], number)))
        if position != len(stripped):
            raise PtxSyntaxError(f"cannot read {stripped[position:].strip()[:20]!r}", number, stripped)
    append(Token("end", "", number))
    return tokens
