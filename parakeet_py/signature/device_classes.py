"""Which classes are those of arrays on devices: asked of every class of arguments, before the rest is loaded."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any


def class_lives_elsewhere(kind: Any) -> bool:
    """Whether instances of a class may be arrays on devices."""
    return _class_lives_elsewhere(kind)


@functools.lru_cache(maxsize=128)
def _class_lives_elsewhere(kind: Hashable) -> bool:
    if hasattr(kind, "__cuda_array_interface__"):
        return True
    return hasattr(kind, "__dlpack_device__") and str(kind.__module__).partition(".")[0] != "numpy"
