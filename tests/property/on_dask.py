"""Random programs through Dask arrays: arguments in chunks, what is computed of them against plain Python."""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.corpus import Case, Difference, leaves_of, outcome
from tests.corpus import Program as Registered
from tests.dask_arrays import CHUNKINGS, LeftToPython, assert_same_on_dask, is_meant
from tests.property.generated import OVERFLOW, note, selects_nothing
from tests.property.recipes import made

if TYPE_CHECKING:
    from tests.property.random_programs import Program


def _in_order(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments with their arrays in C order, writeable, and in memory of their own; the same array twice stays one."""
    known = {id(one): np.array(one, order="C") for one in args if isinstance(one, np.ndarray)}
    return tuple(known.get(id(arg), arg) if isinstance(arg, np.ndarray) else copy.deepcopy(arg) for arg in args)


def _apart(args: Sequence[Any]) -> bool:
    """Whether no two arrays share memory: Dask arrays do not."""
    arrays = [one for one in leaves_of(tuple(args)) if one.size]
    return not any(np.may_share_memory(one, other) for one, other in itertools.combinations(arrays, 2))


def check_on_dask(program: Program, f: Callable[..., Any], number: int) -> list[str]:
    """Compare all calls of a random program through Dask arrays, chunked by turns, with plain Python.

    Returns why calls are left to Python or are not made.
    """
    note(program.source)
    found: list[str] = []
    sums = max(program.sums, 16)
    held = Registered("f", f, (), None, None, None, program.ulp, sums, sums, (), False, False, False)
    for turn, recipes in enumerate(program.calls()):
        chunking = list(CHUNKINGS)[(number + turn) % len(CHUNKINGS)]
        note(f"arguments: {recipes!r}, chunks: {chunking}")
        case = Case(functools.partial(lambda one: _in_order(made(one)), recipes))
        if not _apart(made(recipes)) or not is_meant(case):
            found.append("no call: arguments that share memory, or no arrays")
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert_same_on_dask(held, case, chunking)
        except LeftToPython as left:
            found.append(f"left: {left}")
        except Difference as difference:
            if not _is_known(f, case, difference):
                raise
    return found


def _is_known(f: Callable[..., Any], case: Case, difference: Difference) -> bool:
    """Whether a difference is one that semantics.md has: an index beside an empty slice, an int beyond 64 bits after a
    store."""
    if OVERFLOW in str(difference):
        return True
    expected = outcome(f, case.make()[0]).exception
    return isinstance(expected, IndexError) and selects_nothing(expected)
