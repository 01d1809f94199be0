"""Reference counts and memory of compiled calls, against those of Python's: see `check_counts`.

A call whose result has one count too many leaks it, one with a count too few gives an object away that is still used:
neither is seen in a value. So a program is called often with the same arguments. Counts of the arguments and of what
Python and NumPy have only once (`None`, small ints, `np.True_`, dtypes) must not drift, the number of allocated blocks
must not grow more than in Python, and each object in a result must have a reference for each place it is found at.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from parakeet_py import options
from tests.backends import accelerated
from tests.corpus import Difference, Outcome, assert_same, outcome
from tests.property.generated import overflowed_late
from tests.property.random_programs import Program
from tests.property.recipes import made

CALLS = 100
SLACK = 80  # counts and blocks that other parts of the process may take meanwhile; a leak takes one each call
SINGLE = [
    np.True_,
    np.False_,
    *(np.dtype(code) for code in "?bBhHiIlLefdFD"),
    None,
    True,
    False,
    0,
    1,
    2,
    3,
    5,
    -1,
    255,
]


@dataclass
class Counts:
    """What many calls have done."""

    last: Outcome
    drifts: list[int]
    blocks: int


def check_counts(program: Program, f: Callable[..., Any]) -> list[str]:
    """Compare what many calls of a random program leave behind with what they do in Python; why it fell back."""
    found: list[str] = []
    native = accelerated(f)
    for recipes in program.calls():
        with options(threads=1):
            for _ in range(3):
                first = outcome(native, made(recipes))
                found += [str(w.message) for w in first.warned if w.category.__name__ == "FallbackWarning"]
            # caches fill in the first hundreds of calls
            compared(f, native, recipes, attempts=8, ulp=program.ulp, sums=program.sums)
    return found


def compared(
    f: Callable[..., Any],
    native: Callable[..., Any],
    recipes: tuple[Any, ...],
    attempts: int,
    *,
    ulp: float = 0,
    sums: float = 0,
) -> None:
    """Raise `Difference` where values differ, or counts do each time they are measured."""
    expected, actual = counted(f, recipes), counted(native, recipes)
    if overflowed_late(actual.last, made(recipes)):
        return
    assert_same(expected.last, actual.last, ulp=ulp, sums=sums, message=False, order=False, identity=False)
    try:
        same_counts(expected, actual)
    except Difference:
        if attempts == 1:
            raise
        compared(f, native, recipes, attempts - 1, ulp=ulp, sums=sums)


def counted(call: Callable[..., Any], recipes: tuple[Any, ...]) -> Counts:
    """Many calls with the same arguments."""
    args = made(recipes)
    watched = [*SINGLE, *args, *(one for arg in args if isinstance(arg, list | tuple) for one in arg)]
    outcome(call, args)
    gc.collect()
    before, blocks = [sys.getrefcount(one) for one in watched], sys.getallocatedblocks()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            with contextlib.suppress(Exception):  # compared below
                call(*args)
    gc.collect()
    blocks = sys.getallocatedblocks() - blocks
    after = [sys.getrefcount(one) for one in watched]
    return Counts(outcome(call, args), [two - one for one, two in zip(before, after, strict=True)], blocks)


def same_counts(expected: Counts, actual: Counts) -> None:
    for place, (want, got) in enumerate(zip(expected.drifts, actual.drifts, strict=True)):
        if not min(want, 0) - SLACK < got < max(want, 0) + SLACK:
            what = f"{SINGLE[place]!r}" if place < len(SINGLE) else f"argument {place - len(SINGLE)}"
            raise Difference(f"{CALLS} calls change the reference count of {what} by {got}, not {want}")
    if actual.blocks - max(expected.blocks, 0) > SLACK:
        raise Difference(f"{CALLS} calls leave {actual.blocks} blocks of memory allocated, not {expected.blocks}")
    if actual.last.exception is None:
        enough_references(actual.last)


def enough_references(seen: Outcome) -> None:
    """Each object of the result has a reference for each place where it is found."""
    fresh = min(count for _, count in spare_references((object(),)))
    for one, count in spare_references(seen.result):
        if count < fresh:
            raise Difference(f"{type(one).__name__} {one!r:.60} in the result has {fresh - count} references too few")


def spare_references(result: Any) -> list[tuple[Any, int]]:
    """The objects in a result, and how many references each has beside those of its containers."""
    found = list(references(result))
    places = Counter(map(id, found))
    return [(one, sys.getrefcount(one) - 2 * places[id(one)]) for one in found]


def references(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """What is in a value, once for each reference to it; a container that is in several places is looked into once."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    match value:
        case tuple() | list():
            held = list(value)
        case dict():
            held = [one for item in value.items() for one in item]
        case _:
            return
    for one in held:
        yield one
        yield from references(one, seen)
