"""`"%s: %r" % (a, b)` as the f-string that CPython makes of it.

It formats a value before it computes the next one, which shows where computing that changes the former.
"""

from __future__ import annotations

import ast
import re

from parakeet_py.frontend.desugar.nodes import place

_CONVERSION = re.compile(r"%(?:%|(?P<left>-?)(?P<width>(?:[1-9]\d{0,2})?)(?:\.(?P<precision>\d{1,3}))?(?P<kind>[sra]))")


def as_f_string(node: ast.BinOp) -> ast.JoinedStr | None:
    """The f-string for a format with `%` of as many values as it names, if it is of strings only."""
    match node:
        case ast.BinOp(ast.Constant(str() as text), ast.Mod(), ast.Tuple(elts)):
            pass
        case _:
            return None
    parts: list[ast.expr] = []
    values = list(elts)
    end = 0
    for found in _CONVERSION.finditer(text):
        plain = text[end : found.start()]
        if "%" in plain:
            return None
        end = found.end()
        plain += "%" if found["kind"] is None else ""
        parts += [ast.Constant(plain)] if plain else []
        if found["kind"] is None:
            continue
        if not values or isinstance(values[0], ast.Starred):
            return None
        spec = ">" if found["width"] and not found["left"] else ""
        spec += found["width"] + (f".{found['precision']}" if found["precision"] else "")
        style = ast.JoinedStr([ast.Constant(spec)]) if spec else None
        parts.append(ast.FormattedValue(values.pop(0), ord(found["kind"]), style))
    if values or "%" in text[end:]:
        return None
    return place(ast.JoinedStr([*parts, *([ast.Constant(text[end:])] if text[end:] else [])]), node)
