"""Running accelerated functions on the interpreters instead of machine code.

The interpreters are what the IRs mean; the tests run every program through them, and so can a user who suspects the
code generator: `run_typed` executes the typed IR (after the passes), `run_imp` the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from parakeet_py.base.errors import NoSourceError, NotObservedError, UnsupportedError, UnusualExtentsError
from parakeet_py.call.compiled import Compiled, Extents
from parakeet_py.call.give_back import run_compiled, values_of


def run_typed(accelerated: Any, args: Sequence[Any]) -> Any:
    """The result of a call, computed by the interpreter of the typed IR."""
    from parakeet_py.typed_ir.interpret import run_function

    return _run(accelerated, args, lambda compiled, leaves, opaque: run_function(compiled.typed, leaves, opaque))


def run_imp(accelerated: Any, args: Sequence[Any]) -> Any:
    """The result of a call, computed by the interpreter of Imp."""
    from parakeet_py.imp.interpret import run_function

    return _run(accelerated, args, lambda compiled, leaves, opaque: run_function(compiled.imp, leaves, opaque))


def _run(accelerated: Any, args: Sequence[Any], run: Callable[..., list[Any]]) -> Any:
    try:
        return _run_for(accelerated, args, run, "usual")
    except UnusualExtentsError:
        pass
    return _run_for(accelerated, args, run, "general")


def _run_for(accelerated: Any, args: Sequence[Any], run: Callable[..., list[Any]], extents: Extents) -> Any:
    dispatcher = accelerated._dispatcher
    normal = dispatcher.positional(tuple(args), {})
    missing: Exception | None = None  # Python runs the call after the handler, in which CPython raises other errors
    try:
        compiled: Compiled = dispatcher.compiled_for_normal(normal, extents)
    except (NotObservedError, UnsupportedError, NoSourceError) as error:
        missing = error
    if isinstance(missing, NotObservedError):  # what is handed back to Python has never been done
        return dispatcher.evaluate(normal, dispatcher.signature(normal))
    if missing is not None:  # Python runs it, or raises what it raises
        return dispatcher.refuse(normal, dispatcher.signature(normal), missing)
    leaves = values_of(compiled, normal)
    before = _contents(leaves)
    return run_compiled(
        dispatcher, compiled, normal, leaves, partial(run, compiled, leaves), lambda: before == _contents(leaves)
    )


def _contents(leaves: Sequence[Any]) -> list[bytes]:
    return [leaf.tobytes() for leaf in leaves if isinstance(leaf, np.ndarray)]
