"""Calls on Dask arrays: compile for what stands for them, make the graph, put the result together.

A Dask array is typed as the NumPy array that it stands for: of its dtype, in C order, with its extents. Nothing is
computed, but where the function cannot go on without (see `cluster.host_walk`). With `engine="dask"`, NumPy arrays go
the same way, and results are computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base.errors import (
    ClusterWarning,
    GatherLimitError,
    MissingValue,
    NoSourceError,
    NotObservedError,
    ParakeetError,
    TooManyRounds,
    UnsupportedError,
    advised,
)
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.frames.tracebacks import user_level
from parakeet_py.call.compiled import Compiled, leaf_names
from parakeet_py.call.devices import unknown_chunks
from parakeet_py.call.devices.calls import without_procedures
from parakeet_py.call.devices.python_answers import PythonAnswer, exchanged
from parakeet_py.call.devices.stand_ins import is_of_unknown_extents, stand_ins
from parakeet_py.call.dispatch.first_calls import gates_pay
from parakeet_py.call.give_back import is_for_python, values_of
from parakeet_py.call.interop.dask_tokens import token_of
from parakeet_py.call.load import read_source
from parakeet_py.cluster.call_settings import CallSettings
from parakeet_py.cluster.calls import ClusterCall
from parakeet_py.cluster.plan import ClusterPlan
from parakeet_py.cluster.report import ClusterReport
from parakeet_py.hybrid.devices.device_detection import leaves_of
from parakeet_py.signature.device_classes import class_is_of_dask
from parakeet_py.signature.results import (
    Result,
    ResultEither,
    ResultLeaf,
    ResultTuple,
    assemble,
    has_known_parts,
    listed,
)

if TYPE_CHECKING:
    from parakeet_py.call.devices.caller import Dispatcher

SETTLED = 8  # calls with arguments of some classes that are refused as ones before, or compute nothing, and no others
MANY = 1 << 30


class _ForPython(UnsupportedError):
    """Compiled code has found that only Python can go on with a call."""


def _bytes_of(args: Sequence[Any]) -> int:
    return sum(one.nbytes for one in leaves_of(args) if class_is_of_dask(type(one)))


def plan_of(compiled: Compiled) -> ClusterPlan:
    """How a specialization runs on Dask, made once."""
    if compiled.clustered is None:
        compiled.clustered = ClusterPlan(without_procedures(compiled))
    plan: ClusterPlan = compiled.clustered
    return plan


def _with_held(dispatcher: Dispatcher, normal: Sequence[Any]) -> list[Any]:
    """The arguments of a call, and the hidden ones."""
    found = list(normal)
    for source in dispatcher.knowledge.facts.hidden:
        try:
            found.append(read_source(dispatcher.function, source, normal))
        except MissingValue:
            continue
    return found


@hidden
def call(dispatcher: Dispatcher, normal: Sequence[Any], computed: bool) -> Any:
    """A call in positional form on Dask; what it gives is `computed`, or Dask arrays."""
    args = tuple(normal)
    strict, settled = dispatcher.config().strict, dispatcher.refused.on_dask
    classes = tuple(map(type, args))
    if settled.get(classes, 0) >= SETTLED and not strict and not computed:
        if gates_pay():
            dispatcher.leave_for_ever(*(dispatcher.raw or (args, args, {}))[1:])
        return dispatcher.run_python(args)
    held = _with_held(dispatcher, args)
    unknown = [value for value in leaves_of(held) if class_is_of_dask(type(value)) and is_of_unknown_extents(value)]
    if unknown:
        mapped = unknown_chunks.by_chunks(dispatcher, _target(dispatcher), args, held)
        if mapped is not None:
            return mapped
        unknown_chunks.settle(dispatcher, unknown)
    with stand_ins(held):
        signature = dispatcher.signature(args)
        if signature in dispatcher.refused and not strict:
            settled[classes] = settled.get(classes, 0) + 1
            return dispatcher.run_python(args)
        try:
            compiled = dispatcher.compiled_for_device(args, signature)
            if compiled.specialization.opaque_sites and computed:
                return _on_cpu(dispatcher, args)
            if compiled.specialization.asks_classes and not computed:
                name = dispatcher.function.__qualname__
                text = f"{name} asks whether an array is one of NumPy's, which a Dask array is not"
                raise UnsupportedError(text, dispatcher.function.__code__.co_filename)
            made = _planned(dispatcher, compiled, args)
        except NotObservedError as found:
            error: Exception = _of_other_elements(dispatcher, held) or UnsupportedError(
                str(found), dispatcher.function.__code__.co_filename
            )
        except TooManyRounds as found:
            return _gathered(dispatcher, args, found.message)
        except GatherLimitError:
            raise
        except (UnsupportedError, NoSourceError) as found:
            error = _of_other_elements(dispatcher, held) or found
        except Exception as found:
            if not (computed and _is_of_function(found)):
                raise
            error = found
        else:
            try:
                result, is_new = _result(dispatcher, compiled, made, args, computed)
                settled[classes] = -MANY if is_new else settled.get(classes, 0) + 1
                return result
            except Exception as found:
                if not is_for_python(compiled, found) and not (computed and _is_of_function(found)):
                    raise
                error = _ForPython(str(found), dispatcher.function.__code__.co_filename)
            finally:
                made.release()
    if computed:  # with the exception that comes first, and what Python has stored by then
        return _on_cpu(dispatcher, args)
    if isinstance(error, _ForPython) and _bytes_of(args) <= dispatcher.config().gather_limit:
        return _gathered(dispatcher, args, error.message)
    return dispatcher.refuse(args, signature, error)


def _of_other_elements(dispatcher: Dispatcher, held: Sequence[Any]) -> UnsupportedError | None:
    """What is to be said of a call with Dask arrays of elements that are no numbers; None if there are none."""
    dtypes = [one.dtype for one in leaves_of(held) if class_is_of_dask(type(one)) and one.dtype.kind not in "biufc"]
    if not dtypes:
        return None
    text = (
        f"{dispatcher.function.__qualname__} is given a Dask array of dtype {dtypes[0]}, whose elements are no numbers"
    )
    return UnsupportedError(text, dispatcher.function.__code__.co_filename)


def _is_of_function(error: Exception) -> bool:
    """Whether an exception is one that the function raises, not one of how it runs."""
    module = type(error).__module__.partition(".")[0]
    return module not in ("dask", "distributed") and not isinstance(error, ParakeetError | MemoryError)


@hidden
def _gathered(dispatcher: Dispatcher, args: tuple[Any, ...], reason: str) -> Any:
    """A call on arguments that are computed and put together first; its arrays are Dask arrays of what it gives."""
    import dask
    import dask.array as da

    text = f"{reason}: they are gathered in one place, where the call runs as on NumPy arrays"
    warnings.warn(ClusterWarning(advised(text)), stacklevel=user_level())
    lazy = list({id(one): one for one in leaves_of(args) if class_is_of_dask(type(one))}.values())
    values = [np.array(value) for value in dask.compute(*lazy)]
    known = {id(array): value for array, value in zip(lazy, values, strict=True)}
    before = [value.copy() for value in values]
    result = _on_cpu(dispatcher, tuple(exchanged(arg, known) for arg in args))
    for array, value, old in zip(lazy, values, before, strict=True):
        if value.tobytes() != old.tobytes():
            become(array, da.from_array(value, chunks=array.chunks))
    back = {id(value): array for array, value in zip(lazy, values, strict=True)}
    return exchanged(result, back, lambda value: da.from_array(value, chunks=-1) if lazy else value)


def _on_cpu(dispatcher: Dispatcher, args: tuple[Any, ...]) -> Any:
    return settings.on_cpu(_target(dispatcher), args)


def _target(dispatcher: Dispatcher) -> Callable[..., Any]:
    found: Callable[..., Any] = dispatcher.instance if dispatcher.inner is None else dispatcher.inner
    return found


@hidden
def _planned(dispatcher: Dispatcher, compiled: Compiled, args: tuple[Any, ...]) -> ClusterCall:
    """The graph of a call.

    Raises
    ------
    UnsupportedError
        Only Python knows how to go on with it.
    """
    leaves = values_of(compiled, args)
    chosen = CallSettings(dispatcher.config())
    names = leaf_names(compiled)
    seed = _identity(dispatcher, compiled)
    try:
        return ClusterCall(plan_of(compiled), leaves, names, chosen, seed)
    except UnsupportedError:
        raise
    except Exception as error:
        if is_for_python(compiled, error):
            raise _ForPython(str(error), dispatcher.function.__code__.co_filename) from None
        raise


def _identity(dispatcher: Dispatcher, compiled: Compiled) -> Any:
    """What a function and a specialization of it are, the same in every process."""
    return (*token_of(dispatcher, with_globals=False), repr(compiled.signature.params))


def _result(
    dispatcher: Dispatcher, compiled: Compiled, made: ClusterCall, args: tuple[Any, ...], computed: bool
) -> tuple[Any, bool]:
    """The result of a call, which has stored into its arguments what it does; and whether any of that is new."""
    tree = compiled.specialization.result
    needed = listed(tree) | _tags(tree)
    answer = None
    arguments = {id(one) for one in leaves_of(args)}
    if not computed and all(id(one) in arguments for one in made.leaves if class_is_of_dask(type(one))):
        answer = partial(PythonAnswer, _target(dispatcher), args, tree, made.settings.gather_limit)
    leaves, stored = made.collections(needed, answer, has_known_parts(tree))
    if computed:
        leaves = _computed(leaves, stored)
    else:
        for array, new in stored:
            if isinstance(array, np.ndarray):
                array[...] = new.compute()
            else:
                become(array, new)
    lazy = frozenset(number for number, leaf in enumerate(leaves) if class_is_of_dask(type(leaf)))
    given = [array for array in made.leaves if not isinstance(array, int | float | complex)]
    is_new = bool(stored) or any(id(leaf) not in arguments for leaf in leaves if class_is_of_dask(type(leaf)))
    result = assemble(
        _as_arrays(tree, lazy), leaves, given, lambda value, new, readonly: _leaving(value, new, readonly)
    )
    return result, is_new


def _leaving(value: Any, new: bool, readonly: bool) -> Any:
    if isinstance(value, np.ndarray):
        made = value.view() if new else value
        made.flags.writeable = made.flags.writeable and not readonly
        return made
    return value.copy() if new and not readonly else value


def _computed(leaves: list[Any], stored: Sequence[tuple[Any, Any]]) -> list[Any]:
    import dask

    lazy = [number for number, leaf in enumerate(leaves) if class_is_of_dask(type(leaf))]
    values = dask.compute(*(leaves[number] for number in lazy), *(new for _, new in stored))
    for number, value in zip(lazy, values, strict=False):
        leaves[number] = value
    for (array, _), value in zip(stored, values[len(lazy) :], strict=True):
        array[...] = value
    return leaves


def become(array: Any, new: Any) -> None:
    """Let a Dask array be another of the same extents, as its own assignments do."""
    array.dask = new.dask
    array._name = new.name
    array._chunks = new.chunks
    array._meta = new._meta


def _tags(tree: Result) -> frozenset[int]:
    """The leaves that say which of several results a call has."""
    match tree:
        case ResultEither(tag, choices):
            own = frozenset(choice.index for choice in choices if isinstance(choice, ResultLeaf))
            return own | {tag.index}
        case ResultTuple(items):
            return frozenset().union(*map(_tags, items))
    return frozenset()


def _as_arrays(tree: Result, lazy: frozenset[int]) -> Result:
    """A result tree whose lazy scalars are arrays without axes."""
    match tree:
        case ResultLeaf(index, "scalar") if index in lazy:
            return replace(tree, kind="array", rank=0)
        case ResultTuple(items):
            return replace(tree, items=tuple(_as_arrays(item, lazy) for item in items))
    return tree


def cluster_report(dispatcher: Dispatcher, normal: Sequence[Any]) -> tuple[Compiled, ClusterReport]:
    """What a call on Dask does, whose graph is made, but not computed unless the function cannot go on without."""
    args = tuple(normal)
    with stand_ins(_with_held(dispatcher, args)):
        compiled = dispatcher.compiled_for_device(args, dispatcher.signature(args))
        made = _planned(dispatcher, compiled, args)
        made.collections()
        report = made.walk.report()
        made.release()
        return compiled, report
