"""What is known of functions that are not compiled: which leave arguments alone, which give memory of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from parakeet_py.base import callee_effects
from parakeet_py.signature.random_states import given_left, given_words

_HEAP_TYPE = 1 << 9  # of a class statement


def of_random() -> frozenset[type]:
    """The classes of NumPy's generators, and of what they are made of; none before `numpy.random` has been imported."""
    return _of_random() if "numpy.random" in sys.modules else frozenset()


@lru_cache(maxsize=1)
def _of_random() -> frozenset[type]:
    names = ("Generator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "RandomState", "SFC64", "SeedSequence")
    return frozenset(getattr(np.random, name) for name in names)


def is_pure(target: Any, count: int, keywords: Sequence[str]) -> bool:
    """Is it known that a function changes none of its arguments, when called with so many and these keywords?"""
    return (
        target is given_words
        or target is given_left
        or any(target is one for one in of_random())
        or callee_effects.is_pure(target, count, keywords)
    )


def has_python_methods(cls: type) -> bool:
    """May instances run Python code when a function in C looks at them, by their class or as generators do?"""
    return bool(cls.__flags__ & _HEAP_TYPE) or issubclass(cls, Iterator)
