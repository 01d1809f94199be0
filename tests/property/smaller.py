"""Making a random program that differs smaller, line by line.

Hypothesis shrinks choices, of which a program has hundreds, each change making another program of what follows; its
lines are what a reader sees. So: one call instead of several, lines left out, blocks dissolved, results left out, as
long as what is left goes wrong in the same way.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.property.random_programs import Program

RUNS = (8, 4, 2, 1)  # of lines that are left out at once


def smaller(program: Program, differs: Callable[[Program], bool], seconds: float = 60) -> Program:
    """The smallest program found in this time for which `differs` is still so."""
    end = time.monotonic() + seconds
    going = True
    while going and time.monotonic() < end:
        going = False
        for candidate in _candidates(program):
            if time.monotonic() > end:
                break
            if _compiles(candidate) and differs(candidate):
                program, going = candidate, True
                break
    tidy = replace(program, source=ast.unparse(ast.parse(program.source)) + "\n")
    return tidy if differs(tidy) else program


def _candidates(program: Program) -> Iterator[Program]:
    if program.variants:
        yield replace(program, variants=())
        for recipes in program.variants:
            yield replace(program, recipes=recipes, variants=())
    lines = program.source.rstrip().split("\n")
    for run in RUNS:
        for first in range(len(lines) - run, 0, -1):
            yield _with(program, lines[:first] + lines[first + run :])
    for first in range(1, len(lines) - 1):
        inner = len(lines[first + 1]) - len(lines[first + 1].lstrip())
        if inner <= len(lines[first]) - len(lines[first].lstrip()):
            continue
        last = first + 1
        while last < len(lines) and len(lines[last]) - len(lines[last].lstrip()) >= inner:
            last += 1
        yield _with(program, lines[:first] + [line[4:] for line in lines[first + 1 : last]] + lines[last:])
    head, _, results = lines[-1].partition("return ")
    items = results.split(", ")
    if len(items) > 1 and not set("()[]{}") & set(results):
        for place in range(len(items)):
            yield _with(program, [*lines[:-1], f"{head}return {', '.join(items[:place] + items[place + 1 :])}"])


def _with(program: Program, lines: list[str]) -> Program:
    return replace(program, source="\n".join(lines) + "\n")


def _compiles(program: Program) -> bool:
    try:
        compile(program.source, "<program>", "exec")
    except SyntaxError:
        return False
    return True
