"""A cursor over tokens, and the reading of numbers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from parakeet_py.ptx.emulator.checks.errors import PtxSyntaxError, UnsupportedPtx
from parakeet_py.ptx.emulator.front.ir import Immediate
from parakeet_py.ptx.emulator.front.lexer import Token


class TokenStream:
    """Tokens with a position; `kind`, `text` and `line` are those of the next one."""

    __slots__ = ("_lines", "_position", "_tokens", "kind", "line", "text")

    def __init__(self, tokens: list[Token], lines: Sequence[str]) -> None:
        self._tokens = tokens
        self._lines = lines
        self._position = 0
        self.kind, self.text, self.line = tokens[0]

    def take(self) -> Token:
        """The next token, which is consumed."""
        tokens, position = self._tokens, self._position
        token = tokens[position]
        if position + 1 < len(tokens):
            self._position = position + 1
            self.kind, self.text, self.line = tokens[position + 1]
        elif token.kind == "end":
            raise self.error("the text ends too early")
        return token

    def peek(self) -> Token:
        """The token after the next one."""
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    def accept(self, text: str) -> bool:
        """Consume the next token if it is `text`."""
        if self.text != text:
            return False
        self.take()
        return True

    def expect(self, text: str) -> None:
        """Consume `text`."""
        if self.text != text:
            raise self.error(f"expected {text!r} before {self.text!r}")
        self.take()

    def name(self) -> str:
        """Consume a name."""
        if self.kind != "name":
            raise self.error(f"expected a name before {self.text!r}")
        return self.take().text

    def skip_past(self, text: str) -> None:
        """Consume everything up to and including `text`."""
        while self.take().text != text:
            pass

    def _source(self) -> str:
        return self._lines[self.line - 1] if self.line <= len(self._lines) else ""

    def error(self, message: str) -> PtxSyntaxError:
        """A syntax error here."""
        return PtxSyntaxError(message, self.line, self._source())

    def unsupported(self, what: str) -> UnsupportedPtx:
        """A refusal here."""
        return UnsupportedPtx(f"{what} is not supported by the emulator", self.line, self._source())


def integer_of(token: Token) -> int:
    """The value of an integer token.

    Raises
    ------
    PtxSyntaxError
        If it is not an integer.
    """
    value = number_of(token)
    if value.float_bits:
        raise PtxSyntaxError(f"expected an integer before {token.text!r}", token.line)
    return value.value


def number_of(token: Token) -> Immediate:
    """An integer or floating-point constant."""
    text = token.text
    if token.kind != "number":
        raise PtxSyntaxError(f"expected a number before {text!r}", token.line)
    prefix = text[:2]
    if prefix in ("0f", "0F"):
        return Immediate(int(text[2:], 16), 32)
    if prefix in ("0d", "0D"):
        return Immediate(int(text[2:], 16), 64)
    text = text.rstrip("U")
    if prefix in ("0x", "0X"):
        return Immediate(int(text, 16))
    if prefix in ("0b", "0B"):
        return Immediate(int(text, 2))
    if text.isdigit():
        return Immediate(int(text, 8) if len(text) > 1 and text[0] == "0" else int(text))
    return Immediate(int.from_bytes(struct.pack("<d", float(text)), "little"), 64)
