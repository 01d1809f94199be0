"""One case through the compiler and through NumPy.

`Verdict` says how the call was compiled: natively, with the call handed back to Python, or not at all. That a result
differs is raised as `tests.corpus.Difference`. The interpreter of the typed IR runs what the specializer made, before
any pass; `native` runs machine code.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from parakeet_py import accelerate, options
from parakeet_py.base.errors import DeoptimizedError, UnsupportedError
from parakeet_py.signature.results import assemble
from parakeet_py.typed_ir.check import check_function
from parakeet_py.typed_ir.interpret import run_function
from tests.corpus import Difference, Outcome, assert_same, outcome
from tests.helpers.library_run import HandedBack, specialize
from tests.numpy_table.rows import Case, arguments, source
from tests.property.generated import function


class Verdict(enum.Enum):
    """How a call runs."""

    NATIVE = "native"
    HANDED_BACK = "handed back"
    REFUSED = "in Python"
    ERROR = "an error"


def interpreted(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The result by the interpreter of the typed IR."""
    made, leaves = specialize(f, args)
    check_function(made.function)
    with np.errstate(all="ignore"):
        results = run_function(made.function, leaves)
    return assemble(made.result, results, leaves)


_functions: dict[str, Callable[..., Any]] = {}


def verdict(case: Case, *, native: bool = False) -> Verdict:
    """Compare one case; `Difference` tells what is not as in NumPy."""
    text, names = source(case)
    f = _functions.get(text) or _functions.setdefault(text, function(text))
    expected = outcome(f, arguments(case, names))
    if native:
        compiled = accelerate(f)
        with options(threads=1, check=True):
            actual = outcome(compiled, arguments(case, names))
        _agree(case, expected, actual)
        return Verdict.NATIVE
    actual = outcome(lambda *args: interpreted(f, args), arguments(case, names))
    match actual.exception:
        case HandedBack():
            return Verdict.ERROR if expected.exception is not None else Verdict.HANDED_BACK
        case UnsupportedError():
            return Verdict.ERROR if expected.exception is not None else Verdict.REFUSED
        case DeoptimizedError():
            return Verdict.NATIVE
    _agree(case, expected, actual)
    return Verdict.NATIVE if expected.exception is None else Verdict.ERROR


def _agree(case: Case, expected: Outcome, actual: Outcome) -> None:
    row = case.row
    empty = 0 in case.shape
    if empty:  # what has no elements shares none, nor is it of use to know how they would lie
        expected.args = actual.args = ()
    try:
        assert_same(expected, actual, ulp=row.ulp, sums=row.sums, order=row.order and not empty)
    except Difference as difference:
        raise Difference(f"{case!r}: {difference}") from actual.exception
