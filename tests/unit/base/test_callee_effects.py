"""What is known of callees: by what they are, not by their names; what is not known keeps what it is given."""

from __future__ import annotations

import collections
import functools
import heapq
import importlib
import itertools
import math
import types
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.base import callee_effects
from parakeet_py.base.callee_effects import UNKNOWN, effects_of, is_pure

_last: list[np.ndarray] = []


def _keep(value: np.ndarray) -> int:
    _last[:] = [value]
    return len(value)


def _unknown(value: np.ndarray) -> Any:
    return eval("_keep(value)")


def kept_in_a_global(x: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    y = x * 2
    _unknown(y)
    y[0] = n
    return _last[0], y


@pytest.mark.parametrize(
    "target",
    [
        *(functools.partial, types.MappingProxyType, collections.ChainMap, memoryview, np.vectorize, np.nditer),
        *(collections.defaultdict, heapq.heappush, [].append, {}.get, np.frompyfunc, _keep, lambda x: x),
        *(ValueError, types.SimpleNamespace, object, property, slice),
    ],
)
def test_what_is_not_known_keeps(target: Any) -> None:
    assert effects_of(target).keeps and effects_of(target).stores


@pytest.mark.parametrize("target", [len, sum, print, sorted, list, np.sum, np.add, np.add.reduce, math.floor, "".join])
def test_what_lets_go(target: Any) -> None:
    assert not effects_of(target).keeps


@pytest.mark.parametrize("target", [zip, map, itertools.chain, heapq.merge])
def test_what_goes_through_its_arguments_later(target: Any) -> None:
    assert effects_of(target).lazy and effects_of(target).keeps and not is_pure(target, 1, ())


def test_names_do_not_count() -> None:
    def len(value: Any) -> Any:
        return value

    len.__module__ = "builtins"
    assert effects_of(len) == UNKNOWN and not is_pure(len, 1, ())


def test_every_entry_stands_for_something() -> None:
    newer = {("itertools", "batched")}
    for (module, name), effects in callee_effects._entries().items():
        target = getattr(importlib.import_module(module), name, None)
        assert (module, name) in newer if target is None else effects_of(target) == effects, name


def test_a_global_list_that_python_changes_in_place() -> None:
    compiled = accelerate(kept_in_a_global)
    for dtype in ("f8", "i4", "f8", "i4", "f8", "i4"):
        x = np.arange(4).astype(dtype)
        kept_in_a_global(x, 7)  # the list holds an array of the same type
        one, other = compiled(x, 7)
        assert one is other
