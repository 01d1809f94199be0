"""Running accelerated functions on the interpreters instead of machine code.

The interpreters are what the IRs mean; the tests run every program through them, and so can a user who suspects the
code generator: `run_typed` executes the typed IR (after the passes), `run_imp` the loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from parakeet_py.base.errors import (
    DeoptimizedError,
    NoSourceError,
    NotObservedError,
    OpaqueResultChanged,
    UnsupportedError,
    UnusualExtentsError,
)
from parakeet_py.call.compile import Compiled, Extents, kept_arguments, python_may_begin_again
from parakeet_py.frontend.evaluate.evaluator import Raised
from parakeet_py.signature.object_assembly import assembler
from parakeet_py.signature.results import (
    Result,
    ResultEither,
    ResultLeaf,
    ResultListOf,
    ResultRows,
    ResultStatic,
    ResultTuple,
)
from parakeet_py.signature.specs import leaf_values
from parakeet_py.typed_ir.semantics import OVERFLOW
from parakeet_py.typed_ir.specialize.observed import accepts, observed_spec
from parakeet_py.typed_ir.specialize.opaque.opaque import caught_by, is_safe, no_leaves, perform, result_leaves_of

Undo = Callable[[], None]


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
        return _run_for(accelerated, args, run, "general")


def _run_for(accelerated: Any, args: Sequence[Any], run: Callable[..., list[Any]], extents: Extents) -> Any:
    dispatcher = accelerated._dispatcher
    normal = dispatcher.positional(tuple(args), {})
    try:
        compiled: Compiled = dispatcher.compiled_for_normal(normal, extents)
    except NotObservedError:  # what is handed back to Python has never been done
        return dispatcher.evaluate(normal, dispatcher.signature(normal))
    except (UnsupportedError, NoSourceError) as error:  # Python runs it, or raises what it raises
        return dispatcher.refuse(normal, dispatcher.signature(normal), error)
    log = Log()
    leaves = values_of(compiled, normal)
    before = _contents(leaves)
    kept = contents_kept(compiled, leaves)
    try:
        results = run(compiled, leaves, opaque_of(compiled, log))
    except OpaqueResultChanged:
        if compiled.specialization.stored_params and before != _contents(leaves):
            raise
        return dispatcher.evaluate(normal, dispatcher.signature(normal), log)
    except Exception as error:
        if not is_for_python(compiled, error):
            raise
        unchanged = before == _contents(leaves)
        if not (put_back(kept) or python_may_begin_again(compiled, error, unchanged)):
            if unchanged and log.tells(error):
                return dispatcher.evaluate(normal, dispatcher.signature(normal), log)
            raise
        return compiled.function(*args)  # as a gate does: nothing has been changed, or not any more
    return box(compiled.specialization.result, results, leaves)


class Log(list[tuple[Any, Any]]):
    """What operations handed back to Python have given in a call; `whole`: none of them may have changed an array."""

    whole = True

    def tells(self, error: Exception) -> bool:
        """May Python do the call, which compiled code has given up, without these operations?"""
        given_up = isinstance(error, DeoptimizedError) or (isinstance(error, OverflowError) and str(error) == OVERFLOW)
        return given_up and self.whole


def is_for_python(compiled: Compiled, error: Exception) -> bool:
    """Does Python run a call again that has ended in this exception, as a gate has it?"""
    if isinstance(error, OverflowError) and str(error) == OVERFLOW:
        return True
    return isinstance(error, DeoptimizedError) or compiled.specialization.assigns


def contents_kept(
    compiled: Compiled, leaves: Sequence[Any], elsewhere: Callable[[Any], Undo | None] = lambda leaf: None
) -> list[Undo]:
    """What gives Python the arguments back as they are now that it may want so; `elsewhere` does so of an array whose
    elements are not in the host's memory."""
    stored = [leaves[position] for position in kept_arguments(compiled)]
    if not all(isinstance(leaf, np.ndarray) for leaf in stored):
        return []
    return [elsewhere(leaf) or partial(leaf.__setitem__, ..., leaf.copy(order="K")) for leaf in stored]


def put_back(kept: Sequence[Undo]) -> bool:
    """Undo what a call has stored into its arguments; gives whether anything was kept."""
    for undo in kept:
        undo()
    return bool(kept)


def _contents(leaves: Sequence[Any]) -> list[bytes]:
    return [leaf.tobytes() for leaf in leaves if isinstance(leaf, np.ndarray)]


def values_of(compiled: Compiled, normal: Sequence[Any]) -> list[Any]:
    """The leaf arguments of a call in positional form, hidden ones included."""
    from parakeet_py.call.load import read_source

    hidden = [read_source(compiled.function, spec.source, normal) for spec in compiled.signature.hidden]
    return leaf_values(compiled.signature, [*normal, *hidden])


def opaque_of(compiled: Compiled, log: Log) -> Any:
    """What does the operations handed back to Python; `log` gets what they have given."""

    makers: dict[int, Callable[..., tuple[Any, ...]]] = {}

    def call(number: int, args: list[Any]) -> list[Any]:
        site = compiled.specialization.opaque_sites[number]
        try:
            make = makers.get(number) or makers.setdefault(number, assembler(site.operands, len(args)))
            operands = list(make(*args))
            log.whole = log.whole and is_safe(site, operands)
            result = perform(site.operation, operands, site.keywords)
        except BaseException as error:
            handler = caught_by(site, error)
            if not handler:
                raise
            log.append((site.key, Raised(error)))
            return [handler, *no_leaves(site.result)]
        log.append((site.key, result))
        caught = [0] * bool(site.catches)
        if site.result is None:
            return caught
        if not accepts(site.result, observed_spec(result)):
            raise OpaqueResultChanged(f"{site.text} has given another type than before")
        return [*caught, *result_leaves_of(site.result, result)]

    return call


def box(tree: Result, leaves: Sequence[Any], given: Sequence[Any] = (), boxed: dict[int, Any] | None = None) -> Any:
    """The Python object of a result tree. `given` are the arguments, which stay themselves; `boxed` has the leaves that
    have been made before."""
    boxed = {} if boxed is None else boxed
    match tree:
        case ResultLeaf(index, kind, dtype, python):
            if index in boxed:
                return boxed[index]
            value = leaves[index]
            argument = any(value is one for one in given)
            twice = any(value is one for one in boxed.values())
            if kind == "array" and (tree.view or ((tree.readonly or twice) and not argument)):
                value = value.view()
                value.flags.writeable = value.flags.writeable and not tree.readonly
            if kind == "scalar":
                made = np.dtype(dtype).type(value)
                value = made.item() if python else made
            boxed[index] = value
            return value
        case ResultStatic(value):
            return value
        case ResultEither(tag, choices):
            return box(choices[int(leaves[tag.index])], leaves, given, boxed)
        case ResultListOf(leaf, numpy):
            return list(leaves[leaf.index]) if numpy else leaves[leaf.index].tolist()
        case ResultRows(items, ends):
            held = box(items, leaves, given, boxed)
            return [held[first:last] for first, last in itertools.pairwise(leaves[ends.index].tolist())]
        case ResultTuple(items, kind, type_):
            parts = [box(item, leaves, given, boxed) for item in items]
            if type_ is not None:
                return type_(*parts)
            return tuple(parts) if kind == "tuple" else parts
    raise AssertionError(tree)
