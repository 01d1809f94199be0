"""Which way calls get into compiled code: by an entry stub in machine code, or by the portable entry."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from parakeet_py.llvm.entry.callable_type import HAS_NATIVE_CALLS
from parakeet_py.llvm.runtime.object_layout import unknown_layout

MISSED: Final = object()
"""What the portable entry gives for a call that code has not taken, or has given up before anything showed of it."""


@lru_cache(maxsize=1)
def why_portable() -> str:
    """Why calls take the portable entry (`call/dispatch/portable_entry`); empty if they have entry stubs."""
    return unknown_layout() or ("" if HAS_NATIVE_CALLS else "the layout of type objects is not known")
