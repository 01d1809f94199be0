"""Programs of the corpus through Dask arrays: arguments in chunks, results computed and compared with plain Python."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any
from unittest.mock import patch

import dask
import dask.array as da
import numpy as np

from parakeet_py import options
from parakeet_py.base.errors import ClusterWarning, UnsupportedError
from parakeet_py.cluster import again, call_settings, stretches
from parakeet_py.cluster.worker import strips
from tests.backends import accelerated
from tests.corpus import Case, Comparison, Difference, Outcome, Program, _same_exception, _scale, leaves_of, outcome

Cutting = Callable[[int], tuple[int, ...]]

CHUNKINGS: dict[str, Cutting] = {
    "one": lambda n: (n,),
    "uneven": lambda n: (n,) if n < 3 else (n // 3 + 1, n - n // 3 - 1),
    "tiny": lambda n: (n,) if n < 2 else (*(2 for _ in range(n // 2)), *([1] if n % 2 else [])),
}

CUT = {"tiny"}
"""Chunkings with which no array is so small that it is put together in one place if there is another way."""


def is_meant(case: Case) -> bool:
    """Whether some arguments are arrays that mean the same in chunks: in C order, sharing no memory."""
    args, kwargs = case.make()
    given = (*args, *kwargs.values())
    arrays = [*leaves_of(given), *leaves_of([cell.cell_contents for one in given for cell in _cells(one)])]
    apart = {id(array): array for array in arrays if array.size}.values()
    shared = any(np.may_share_memory(one, other) for one, other in itertools.combinations(apart, 2))
    several = len({id(array) for array in apart}) < sum(array.size > 0 for array in arrays)
    return (
        bool(arrays)
        and not (shared or several)
        and all(array.flags.c_contiguous and array.flags.writeable for array in arrays)
    )


def _cells(value: Any) -> tuple[Any, ...]:
    return getattr(value, "__closure__", None) or ()


class LeftToPython(Exception):
    """A call is not made of tasks: Python runs it on the Dask arrays."""


def in_chunks(value: Any, cutting: Cutting, known: dict[int, Any] | None = None) -> Any:
    """A value with its NumPy arrays, in containers too, as Dask arrays; the same object twice stays one (`known`)."""
    known = {} if known is None else known
    if id(value) not in known:
        known[id(value)] = _in_chunks(value, cutting, known)
    return known[id(value)]


def _in_chunks(value: Any, cutting: Cutting, known: dict[int, Any]) -> Any:
    match value:
        case np.ndarray() if type(value) is np.ndarray and value.dtype.kind in "biufc":
            made = np.array(value, order="C")
            return da.from_array(made, chunks=tuple(map(cutting, made.shape)) or -1)
        case tuple() if type(value) is tuple:
            return tuple(in_chunks(item, cutting, known) for item in value)
        case list():
            return [in_chunks(item, cutting, known) for item in value]
        case dict() if type(value) is dict:
            return {name: in_chunks(item, cutting, known) for name, item in value.items()}
    return value


def computed(value: Any) -> Any:
    """A value with its Dask arrays computed."""
    match value:
        case da.Array():
            meta = value.dtype
            found = np.asarray(value.compute())
            if found.dtype != meta:
                raise Difference(f"computed {found.dtype}, not {meta} as was said")
            return found
        case tuple() if type(value) is tuple:
            return tuple(map(computed, value))
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*map(computed, value))
        case list():
            return list(map(computed, value))
        case dict():
            return {name: computed(item) for name, item in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _instance(value, {one.name: computed(getattr(value, one.name)) for one in fields(value)})
    return value


def _instance(value: Any, attributes: dict[str, Any]) -> Any:
    """A copy of an instance with other attributes."""
    made = copy.copy(value)
    for name, one in attributes.items():
        object.__setattr__(made, name, one)
    return made


def run_on_dask(program: Program, case: Case, chunking: str) -> Outcome:
    """What a call with Dask arrays does, computed; raises `LeftToPython`."""
    args, kwargs = case.make()
    cutting = CHUNKINGS[chunking]
    known: dict[int, Any] = {}
    given = args, kwargs  # held, as their ids are keys
    args = tuple(in_chunks(arg, cutting, known) for arg in given[0])
    kwargs = {name: in_chunks(arg, cutting, known) for name, arg in given[1].items()}
    return called_on_dask(program.function, args, kwargs, 0 if chunking in CUT else call_settings.LEAST)


def called_on_dask(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], least: int = 0
) -> Outcome:
    """What a call with Dask arrays does, computed; arrays of less than `least` bytes are put together where they are
    needed. Raises `LeftToPython`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        small = patch.object(call_settings, "LEAST", least)
        cut = patch.object(stretches, "LEAST", 0)
        rows = patch.multiple(strips, LEAST=0, STRIP=1)
        edges = patch.multiple(again, AGAIN=100, LEAST=0, DEPTH=2)
        with options(strict=True, check=True), dask.config.set(scheduler="sync"), small, cut, rows, edges:
            result = accelerated(function)(*args, **kwargs)
            for arg in args:  # what has been stored may raise as well
                computed(arg)
            return computed(result)

    seen = outcome(call, args, kwargs)
    if isinstance(seen.exception, UnsupportedError):
        raise LeftToPython(str(seen.exception))
    seen.warned = [one for one in seen.warned if one.category is not ClusterWarning]
    if seen.exception is None:
        with dask.config.set(scheduler="sync"):
            seen.args = tuple(map(computed, seen.args))
    return seen


def alike(want: Any, got: Any) -> Any:
    """What is expected, with scalars as arrays without axes where Dask gives these."""
    match want:
        case tuple() | list() if isinstance(got, tuple | list) and len(want) == len(got):
            items = [alike(one, other) for one, other in zip(want, got, strict=True)]
            return type(want)(*items) if hasattr(want, "_fields") else type(want)(items)
        case dict() if isinstance(got, dict) and want.keys() == got.keys():
            return {name: alike(one, got[name]) for name, one in want.items()}
        case _ if is_dataclass(want) and not isinstance(want, type) and type(want) is type(got):
            names = [one.name for one in fields(want)]
            return _instance(want, {name: alike(getattr(want, name), getattr(got, name)) for name in names})
        case bool() | int() | float() | complex() | np.generic() if isinstance(got, np.ndarray) and got.ndim == 0:
            return np.asarray(want, got.dtype) if isinstance(want, bool | int | float | complex) else np.asarray(want)
        case np.ndarray() if type(want) is np.ndarray and isinstance(got, np.ndarray):
            found = np.array(want, order="C")
            found.flags.writeable = got.flags.writeable
            return found
    return want


def assert_same_on_dask(program: Program, case: Case, chunking: str) -> None:
    """Raise `Difference` unless a call through Dask arrays gives what plain Python does."""
    args, kwargs = case.make()
    expected = outcome(program.function, args, kwargs)
    actual = run_on_dask(program, case, chunking)
    assert_alike(expected, actual, program.ulp, max(program.sums, program.regrouped, 16))


def assert_alike(expected: Outcome, actual: Outcome, ulp: float, grouped: float) -> None:
    """Raise `Difference` unless a call on Dask did what plain Python does, with sums of floats in other groups."""
    _same_exception(expected.exception, actual.exception, False)
    slack = grouped * _scale(expected)
    compare = Comparison(ulp, slack if np.isfinite(slack) else 0.0, False)
    if expected.exception is None:
        for position, (want, got) in enumerate(zip(expected.args, actual.args, strict=True)):
            compare.value(alike(want, got), got, f"argument {position}")
        compare.value(alike(expected.result, actual.result), actual.result, "the result")
