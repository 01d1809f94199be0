"""Several modules of PTX as one, which an assembler takes: `f.ptx` shows the kernels of a function so.

Kernels have names of their own. Functions and variables beside them may be the same in several modules: they are in the
one module once. Where some only have the same name, those of the later module get other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADER = re.compile(r"\.(?:version|target|address_size)\b")
_BODY = re.compile(r"\.(?:\w+ +\.)?(?:entry|func)\b")
_CALLED = re.compile(r"([\w$]+)\s*\((?:\)|$)", re.MULTILINE)
_VARIABLE = re.compile(r"\.(?:\w+ +\.)?(?:global|const)\b[^=;]*?([\w$]+)(?:\[\d*\])*\s*[=;]")


def join(modules: Sequence[str]) -> str:
    """One module, of modules for the same architecture."""
    header: list[str] = []
    known: dict[str, str] = {}  # functions and variables by name
    parts: list[str] = []
    for number, text in enumerate(modules):
        mine = [*_pieces(text)]
        header = header or [piece for piece in mine if _HEADER.match(piece)]
        shared = {name: piece for piece in mine if (name := _name(piece))}
        differs = any(known.get(name, piece) != piece for name, piece in shared.items())
        taken = [*shared] if differs else []  # all: one may refer to another
        known = {**shared, **known}
        for piece in mine:
            name = _name(piece)
            if _HEADER.match(piece) or (name and name not in taken and piece in parts):
                continue
            for other in taken:
                piece = re.sub(rf"(?<![\w$]){re.escape(other)}(?![\w$])", f"{other}_{number}", piece)
            parts.append(piece)
    return "".join([*header, *parts])


def _pieces(text: str) -> Iterator[str]:
    """Kernels, functions, and all other lines."""
    piece = ""
    for line in text.splitlines(keepends=True):
        piece += line
        if not _BODY.match(piece) or line.rstrip() in ("}", ";"):
            yield piece
            piece = ""
    if piece:
        yield piece


def _name(piece: str) -> str | None:
    """What a function or variable is called; None for all else."""
    body = _BODY.match(piece)
    if body is not None and "entry" in body[0]:
        return None
    found = _CALLED.search(piece) if body is not None else _VARIABLE.match(piece)
    return found[1] if found else None
