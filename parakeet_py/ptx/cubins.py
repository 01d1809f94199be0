"""Machine code of GPUs on disk: what the driver has made of PTX, so that a second process need not wait for it.

The driver compiles a kernel when it is first launched. Its linker does the same and hands the result out, a *cubin*,
for exactly one architecture. It is kept in the disk cache, by the text of the PTX, the device's compute capability, and
the driver, whose compiler may have become better. What goes wrong is no error: then the driver is given the PTX, as
without a cache.
"""

from __future__ import annotations

import ctypes
import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from parakeet_py.base import config as settings
from parakeet_py.base.debug_log import log
from parakeet_py.llvm.engine import disk_cache

_VERSION = Path("/proc/driver/nvidia/version")


def cubin_of(driver: Any, ptx: str, capability: tuple[int, int]) -> bytes | None:
    """The cubin of PTX for the device whose context is current; None if PTX is what the driver shall be given.

    Parameters
    ----------
    driver : `cuda.bindings.driver`
    capability : the device's
    """
    if not settings.current().uses_disk:
        return None
    key = disk_cache.digest("cubin", ptx, *capability, _build(driver))
    found = disk_cache.get(key)
    if found is None:
        found = _linked(driver, ptx)
        if found is not None:
            disk_cache.put(key, found, title=f"machine code for compute capability {capability[0]}.{capability[1]}")
    return found


@lru_cache(maxsize=1)
def _build(driver: Any) -> str:
    """Which driver it is: the CUDA that it is for and, where the system says it, its own version."""
    status, version = driver.cuDriverGetVersion()
    own = ""
    with suppress(OSError):
        found = re.search(r"\d+\.\d+(\.\d+)?", _VERSION.read_text())
        own = found[0] if found is not None else ""
    return f"{version if int(status) == 0 else '?'} {own}"


def _linked(driver: Any, ptx: str) -> bytes | None:
    """What the driver's linker makes of PTX; None if it can't."""
    try:
        state = _value(driver.cuLinkCreate(0, [], []))
    except Exception as error:
        log.info("the driver makes no machine code to keep: %s", error)
        return None
    try:
        text = ptx.encode() + b"\0"
        kind = driver.CUjitInputType.CU_JIT_INPUT_PTX
        _value(driver.cuLinkAddData(state, kind, text, len(text), b"kernel.ptx", 0, [], []))
        place, size = _value(driver.cuLinkComplete(state))
        return ctypes.string_at(int(place), int(size)) or None
    except Exception as error:
        log.info("the driver makes no machine code of this to keep: %s", error)
        return None
    finally:
        driver.cuLinkDestroy(state)


def _value(result: Any) -> Any:
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"the driver says {status}")
    return values[0] if len(values) == 1 else values
