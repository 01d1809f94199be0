"""Whether CUDA devices can be used here, found out before anything of CUDA's Python packages is imported.

They must not be touched without a driver, so libcuda is asked by itself first: whether it starts, how many devices it
has, how new it is. What is missing a `Found` says in words, which errors, warnings and `parakeet doctor` show.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any, NamedTuple

OLDEST_DRIVER = (12, 0)  # the least CUDA version that cuda-core supports


class Found(NamedTuple):
    """What a probe has found.

    Attributes
    ----------
    devices : how many devices can be used
    reason : why there is none
    names : of the devices that the driver has, usable or not
    driver : the newest CUDA version that the driver knows, as (major, minor)
    """

    devices: int
    reason: str
    names: tuple[str, ...] = ()
    driver: tuple[int, int] | None = None


_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


@lru_cache(maxsize=1)
def has_driver() -> bool:
    """Whether there is a driver at all, without which no library has arrays on CUDA devices; starts nothing."""
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    return True


@lru_cache(maxsize=1)
def probe() -> Found:
    """Whether CUDA devices can be used here; opens nothing."""
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return Found(0, f"no NVIDIA driver ({_DRIVER}) is installed")
    status = driver.cuInit(0)
    if status != 0:
        return Found(0, f"the NVIDIA driver cannot be started: cuInit gives {status} ({_error_name(driver, status)})")
    count, release = ctypes.c_int(0), ctypes.c_int(0)
    driver.cuDeviceGetCount(ctypes.byref(count))
    driver.cuDriverGetVersion(ctypes.byref(release))
    version = release.value // 1000, release.value % 1000 // 10
    names = tuple(_device_name(driver, number) for number in range(count.value))
    if not names:
        return Found(0, "the NVIDIA driver finds no device (CUDA_VISIBLE_DEVICES?)", names, version)
    if version < OLDEST_DRIVER:
        text = f"the NVIDIA driver knows CUDA {version[0]}.{version[1]}, at least {OLDEST_DRIVER[0]}.0 is needed"
        return Found(0, text, names, version)
    try:
        import cuda.core
    except ImportError as error:
        wanted = f"pip install 'parakeet-py[{extra_for(version)}]'"
        text = f"the Python package cuda-core cannot be imported ({error}): {wanted}"
        return Found(0, text, names, version)
    if not hasattr(cuda.core, "LEGACY_DEFAULT_STREAM"):
        wanted = f"pip install -U 'parakeet-py[{extra_for(version)}]'"
        text = f"cuda-core {getattr(cuda.core, '__version__', '')} is too old: {wanted}"
        return Found(0, text, names, version)
    return Found(len(names), "", names, version)


def extra_for(driver: tuple[int, int]) -> str:
    """The extra of this package with what a driver works with, by the newest CUDA version that it knows."""
    return "cu12" if driver < (13, 0) else "cu13"


def _error_name(driver: Any, status: int) -> str:
    text = ctypes.c_char_p()
    driver.cuGetErrorName(status, ctypes.byref(text))
    return (text.value or b"unknown").decode()


def _device_name(driver: Any, number: int) -> str:
    label = ctypes.create_string_buffer(256)
    driver.cuDeviceGetName(label, len(label), number)
    return label.value.decode(errors="replace")
