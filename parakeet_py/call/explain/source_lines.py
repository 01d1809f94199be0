"""What became of each line of the user's source, from the places that statements of the typed IR carry.

Statements of the *unfused* function say what a line computes: types, shapes, views. Those of the final one say what is
left of it: statements in the blocks of operators are in kernels, others are machine code of the calling thread. A line
with code of which nothing is left was computed when the function was compiled, or is computed where its value is used.
Functions that the specializer has inlined are shown, too, in the order in which they are first entered.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import textwrap
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum
from types import FunctionType

from parakeet_py.base import package
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.positions import Pos
from parakeet_py.base.types import PYINT, Array
from parakeet_py.call.explain.kernels import Kernel, Shapes, statements
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.passes.analysis.traffic import OPERATORS
from parakeet_py.typed_ir.places import Place
from parakeet_py.typed_ir.specialize.opaque.sites import OpaqueSite

_LIBRARY = os.path.join(package.FOLDER, "library", "")

LinePlace = tuple[str, int]  # a file, and the number of a line in it


class Fate(Enum):
    """What became of a line."""

    KERNEL = "kernel"
    NATIVE = "machine code"
    VIEW = "view"
    FOLDED = "folded"
    HANDED_BACK = "handed back"
    PYTHON = "Python"
    CAUSE = "cause"
    NO_CODE = "no code"


@record
class SourceLine:
    """A line: its number in the file, what became of it, the kernels and the operations handed back (by number) that
    come from it, and what it computes (type, shape, bytes)."""

    number: int
    text: str
    fate: Fate
    kernels: tuple[int, ...] = ()
    handed_back: tuple[int, ...] = ()
    value: str = ""


@record
class SourceFunction:
    name: str
    filename: str
    lines: tuple[SourceLine, ...]


def user_place(pos: Pos | None) -> Place | None:
    """The place in the user's source that a place is in, or was called from."""
    while isinstance(pos, Place) and pos.filename.startswith(_LIBRARY):
        pos = pos.caller
    return pos if isinstance(pos, Place) else None


def line_of(pos: Pos | None) -> LinePlace | None:
    place = user_place(pos)
    return None if place is None else (place.filename, place.line)


def lines_of_kernel(kernel: Kernel) -> set[LinePlace]:
    """The lines that a kernel computes, and those of the calls that lead to them."""
    inside = [one for block in ir.blocks_of(kernel.let.op) for one in ir.walk(block)]
    return {line for one in (kernel.let, *inside) for line in _lines(one.pos)}


def lines_of_site(site: OpaqueSite) -> set[LinePlace]:
    """The line of an operation handed back, and those of the calls that lead to it."""
    return {(entry.filename, entry.line) for entry in site.trace}


def _lines(pos: Pos | None) -> Iterator[LinePlace]:
    """The lines of a place, and those of the calls that lead to it."""
    while (place := user_place(pos)) is not None:
        yield from ((place.filename, line) for line in range(place.line, place.end_line + 1))
        pos = place.caller


def functions_of(
    function: FunctionType,
    unfused: ir.Function,
    final: ir.Function,
    kernels: Sequence[Kernel],
    sites: Sequence[OpaqueSite],
    values: Sequence[object],
) -> list[SourceFunction]:
    """The decorated function and those that are inlined in it, line by line."""
    shapes = Shapes(unfused, values)
    computed: dict[LinePlace, list[ir.Let]] = defaultdict(list)
    entered: dict[tuple[str, str, int], None] = {}
    for let, _ in statements(unfused.body):
        place = user_place(let.pos)
        if place is not None:
            computed[place.filename, place.line].append(let)
            entered[place.filename, place.name, place.first_line] = None
    left = {
        line
        for let, _ in statements(final.body)
        if not (isinstance(let.op, OPERATORS) or _is_index(let))
        for line in ([line_of(let.pos)] if ir.blocks_of(let.op) else _lines(let.pos))
    }
    turns = {line_of(let.pos) for let, _ in statements(final.body) if isinstance(let.op, ir.For | ir.While)}
    of_site = [lines_of_site(site) for site in sites]
    of_kernel = [lines_of_kernel(kernel) for kernel in kernels]

    def described(line: LinePlace, text: str) -> SourceLine:
        found = tuple([number for number, lines in enumerate(of_kernel) if line in lines])
        given = tuple([number for number, lines in enumerate(of_site) if line in lines])
        arrays = [let for let in computed[line] if any(isinstance(out.type, Array) for out in let.outs)]
        if given:
            fate = Fate.HANDED_BACK
        elif found:
            fate = Fate.KERNEL
        elif arrays and all(isinstance(let.op, ir.AnyView) for let in arrays):
            fate = Fate.VIEW
        else:
            fate = Fate.NATIVE if line in left else Fate.FOLDED
        outs = [let.outs[-1] for let in arrays or computed[line] if let.outs]
        return SourceLine(line[1], text, fate, found, given, shapes.describe(outs[-1]) if outs else "")

    own = (function.__code__.co_filename, function.__name__, function.__code__.co_firstlineno)
    found = []
    for filename, name, first in dict.fromkeys([own, *entered]):
        lines = source_of(filename, first)
        code = _lines_with_code(lines)
        left |= {
            (filename, first + begin)
            for begin, end in _loops_of(lines)
            if any((filename, first + number) in turns for number in range(begin, end + 1))
        }
        shown = []
        for number, line in enumerate(lines):
            bare = SourceLine(first + number, line, Fate.NO_CODE)
            shown.append(described((filename, first + number), line) if number in code else bare)
        found.append(SourceFunction(name, filename, tuple(shown)))
    return found


def in_python(function: FunctionType, refused: LinePlace | None) -> list[SourceFunction]:
    """A function that runs in Python; with the line because of which it does, if it is one."""
    code = function.__code__
    lines = source_of(code.co_filename, code.co_firstlineno)
    with_code = _lines_with_code(lines)
    shown = []
    for number, text in enumerate(lines):
        line = code.co_firstlineno + number
        fate = Fate.PYTHON if number in with_code else Fate.NO_CODE
        shown.append(SourceLine(line, text, Fate.CAUSE if (code.co_filename, line) == refused else fate))
    return [SourceFunction(function.__name__, code.co_filename, tuple(shown))]


def source_of(filename: str, first_line: int) -> list[str]:
    """The lines of the function that begins there; none if they are not to be had."""
    lines = linecache.getlines(filename)[first_line - 1 :]
    try:
        return [line.rstrip("\n") for line in inspect.getblock(lines)] if lines else []
    except (SyntaxError, tokenize.TokenError):  # the file is not what it was
        return []


def _lines_with_code(lines: Sequence[str]) -> set[int]:
    """Which of a function's lines, counted from 0, have expressions in its body."""
    try:
        tree = ast.parse(textwrap.dedent("\n".join(lines)))
    except SyntaxError:  # a lambda in the middle of something
        return {number for number, line in enumerate(lines) if line.strip()}
    found: set[int] = set()
    bodies = [node.body for node in tree.body if isinstance(node, ast.FunctionDef)] or [tree.body]
    for statement in [one for body in bodies for one in body]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a docstring
        for node in ast.walk(statement):
            if isinstance(node, ast.expr):
                found |= set(range(node.lineno - 1, (node.end_lineno or node.lineno)))
    return found


def _loops_of(lines: Sequence[str]) -> list[tuple[int, int]]:
    """The first and last lines of a function's loops, counted from 0. (That of a loop in typed IR is in its body.)"""
    try:
        tree = ast.parse(textwrap.dedent("\n".join(lines)))
    except SyntaxError:
        return []
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    return [(node.lineno - 1, (node.end_lineno or node.lineno) - 1) for node in loops]


def _is_index(let: ir.Let) -> bool:
    """Arithmetic on sizes and indices, and the checks of it."""
    return isinstance(let.op, ir.Check) or (bool(let.outs) and all(out.type == PYINT for out in let.outs))
