"""Whether an argument may be an array on a device: asked of every call that no gate takes, so it must cost nothing."""

from __future__ import annotations

from typing import Any


def lives_elsewhere(value: Any) -> bool:
    """Whether a value, or one in a tuple or list, may be an array on a device; its class alone decides."""
    kind = type(value)
    if kind is tuple or kind is list:
        return any(map(lives_elsewhere, value))
    if hasattr(kind, "__cuda_array_interface__"):
        return True
    return hasattr(kind, "__dlpack_device__") and kind.__module__.partition(".")[0] != "numpy"
