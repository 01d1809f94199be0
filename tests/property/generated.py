"""Functions from generated source text, and how a generated function is held against plain Python.

The text is registered with `linecache`, so that `inspect.getsource` finds it as it finds a file. Each generated
function is compiled for its arguments once; "native" runs it on one thread and then on two.
"""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import note

from parakeet_py.errors import UnsupportedError
from tests.backends import BACKENDS, INTERPRETERS
from tests.corpus import Case, assert_same, outcome

STAGES = {"typed_ir": ("typed_ir",), "imp": ("imp",), "native": ("native-1", "native-2")}

every_stage = pytest.mark.parametrize("stage", STAGES)
"""Run a property on each IR's interpreter and on native code."""


def function(source: str, name: str = "f") -> Callable[..., Any]:
    """The function `name` of this source text, with `np` as its only global."""
    filename = f"<generated {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"np": np, "__name__": "generated"}
    exec(compile(source, filename, "exec"), scope)
    return scope[name]  # type: ignore[no-any-return]


def check(
    stage: str,
    source: str,
    args: Sequence[Any] | Callable[[], tuple[Any, ...]],
    **tolerances: Any,
) -> None:
    """Compile the source's `f` and compare it with plain Python on this stage.

    `args` are recipes and values, or a callable that makes fresh ones. What the types alone forbid is refused when it
    is compiled: only native code then has Python's exception, from Python.
    """
    note(source)
    note(f"arguments: {args!r}")
    f = function(source)
    case = Case(args if callable(args) else tuple(args))
    if any(isinstance(arg, np.ndarray) and arg.size == 0 for arg in case.make()[0]):
        tolerances.setdefault("order", False)  # strides of what has no elements are of no use
    for backend in STAGES[stage]:
        plain, _ = case.make()
        compiled, _ = case.make()
        expected = outcome(f, plain)
        actual = outcome(lambda *a, run=BACKENDS[backend]: run(f, a, {}), compiled)
        if expected.exception is not None and type(actual.exception) is UnsupportedError and stage in INTERPRETERS:
            continue
        assert_same(expected, actual, **tolerances)
        fallbacks = [w for w in actual.warned if w.category.__name__ == "FallbackWarning"]
        assert not fallbacks, f"fell back to Python: {fallbacks[0].message}"
