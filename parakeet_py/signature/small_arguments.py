"""Which calls have small arguments, so that Python runs them whatever the function does: asked before anything else."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any, Final

import numpy as np

from parakeet_py.signature.device_classes import class_is_labelled, class_is_of_dask, class_lives_elsewhere

SMALL: Final = 64  # size of arguments with which a call is a small one
SIZED: Final = frozenset((list, tuple, dict))
_MOST: Final = 4096  # classes that are remembered

# Classes whose objects have no size, and are no arrays of devices.
unsized: set[type] = {float, str, bool, complex, type(None), np.float64, np.int64, np.bool_, FunctionType}


def are_small(values: Iterable[Any], largest: float = SMALL) -> bool:
    """Are no values larger, and none arrays on devices? Sizes are those of `pricing.size_of`."""
    for value in values:
        kind = type(value)
        if kind in unsized:
            continue
        if kind is int:
            size = abs(value)
        elif kind is np.ndarray or kind is np.memmap:
            size = value.size
        elif kind in SIZED:
            size = len(value)
        elif class_lives_elsewhere(kind) or class_is_of_dask(kind) or class_is_labelled(kind):
            return False
        else:
            if len(unsized) < _MOST:
                unsized.add(kind)
            continue
        if size > largest:
            return False
    return True
