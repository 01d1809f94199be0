"""parakeet_py: one decorator that makes ordinary NumPy functions fast, and never gives a wrong answer."""

from typing import TYPE_CHECKING, Any

from parakeet_py.base.config import options
from parakeet_py.base.errors import (
    ClusterWarning,
    DeviceWarning,
    FallbackWarning,
    GatherLimitError,
    ParakeetError,
    UnsupportedError,
)
from parakeet_py.base.extensions import register, unregister
from parakeet_py.call.accelerate import accelerate
from parakeet_py.operators import allpairs, generate, prange, reduce, scan, scatter, stencil
from parakeet_py.operators import map as map
from parakeet_py.signature.device_classes import array_operations

if TYPE_CHECKING:
    from parakeet_py.hybrid.residency.device_array import DeviceArray, asdevice

__all__ = [  # without `map`, so that `import *` leaves Python's own alone
    "ClusterWarning",
    "DeviceArray",
    "DeviceWarning",
    "FallbackWarning",
    "GatherLimitError",
    "ParakeetError",
    "UnsupportedError",
    "accelerate",
    "allpairs",
    "asdevice",
    "generate",
    "options",
    "prange",
    "reduce",
    "register",
    "scan",
    "scatter",
    "stencil",
    "unregister",
]


def _array_operations() -> Any:
    from parakeet_py.call.devices import array_functions

    return array_functions


array_operations.load = _array_operations


def __getattr__(name: str) -> Any:
    if name in ("DeviceArray", "asdevice"):  # what runs on devices is imported when it is asked for
        from parakeet_py.hybrid.residency import device_array

        return getattr(device_array, name)
    if name == "__version__":
        from importlib.metadata import version

        return version("parakeet-py")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext parakeet_py`: the magics of `notebook`."""
    from parakeet_py.notebook import load

    load(shell)
