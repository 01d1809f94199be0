"""Measures of compiling, over the programs of the corpus: `make house ARGS=--slow`.

All is measured in one fresh process without a disk cache. A program is called twice with equal arguments.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from types import FunctionType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from parakeet_py import accelerate, options
from parakeet_py.frontend.ssa import Function
from parakeet_py.typed_ir.print import format_function
from parakeet_py.typed_ir.specialize.specializer import Specializer
from parakeet_py.typed_ir.specialize.specializer import _any_caller as of_procedures
from tests.corpus import Case, Program, all_programs


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts the specializers that are made meanwhile: of functions, and of procedures of the library, each of which is
    made once for its types and for all functions."""
    made: Counter[str] = Counter()
    init = Specializer.__init__

    def __init__(self: Specializer, template: Function, python: FunctionType, *args: Any, **kwargs: Any) -> None:
        made["procedures" if python is of_procedures else "functions"] += 1
        init(self, template, python, *args, **kwargs)

    Specializer.__init__ = __init__  # type: ignore[method-assign]
    try:
        yield made
    finally:
        Specializer.__init__ = init  # type: ignore[method-assign]


def call(function: Callable[..., Any], case: Case) -> None:
    """A call, whatever it gives or raises."""
    args, kwargs = case.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except Exception:
            return


def specializers_and_seconds(program: Program) -> tuple[Counter[str], float]:
    """The specializers of two equal calls, and the CPU seconds of the first."""
    with counted() as made:
        function = accelerate(when="now")(program.function)
        start = time.process_time()
        call(function, program.cases[0])
        seconds = time.process_time() - start
        call(function, program.cases[0])
    return made, seconds


def lines_and_seconds(name: str) -> tuple[int, float]:
    """The lines of typed IR of a program's last specialization, and the CPU seconds of its first call."""
    program = next(one for one in all_programs() if one.name == name)
    function = accelerate(when="now")(program.function)
    start = time.process_time()
    call(function, program.cases[0])
    seconds = time.process_time() - start
    call(function, program.cases[0])
    compiled = list(function._dispatcher.compilations.values())
    return max((format_function(one.typed).count("\n") for one in compiled), default=0), seconds


def measures() -> list[tuple[str, str, str]]:
    """Rows of the table: measure, present value, goal."""
    with options(cache=False):
        lines, first = lines_and_seconds("mappings.sets_of_two")
        found = {one.name: specializers_and_seconds(one) for one in all_programs() if one.cases}
    made = {name: count["functions"] for name, (count, _) in found.items()}
    procedures = sum(count["procedures"] for count, _ in found.values())
    total = sum(seconds for _, seconds in found.values())
    most = max(made, key=lambda name: made[name])
    return [
        ("specializers of a program in two equal calls, mean", f"{mean(made.values()):.2f}", "1.3 or fewer"),
        ("specializers of a program in two equal calls, most", f"{made[most]} ({most})", "4 or fewer"),
        ("specializers of procedures of the library, over the corpus", str(procedures), "as few as can be"),
        ("lines of typed IR of mappings.sets_of_two", f"{lines:,}", "under 150"),
        ("CPU seconds of the first call of mappings.sets_of_two", f"{first:.2f}", "under 0.5"),
        ("CPU seconds of first calls over the corpus", f"{total:.0f}", "as few as can be"),
    ]
