"""What this system and processor have that others lack: the one place that asks where the process runs.

Each name here says whether, or how, something is done that not every system knows; where it is not, the portable form
is taken: LLVM's linker in place of the project's own, a processor for all threads' work, no flags of floating point. So
macOS, Windows and processors other than x86-64 take forms that Linux on x86-64 does not take. `PARAKEET_PORTABLE=1`
takes them there as well, so that they are tested where the tests run; so does `PARAKEET_PORTABLE=entry` with the way
into compiled code of interpreters that are not known.
"""

from __future__ import annotations

import os
import sys
from typing import Final


def _processor() -> str:
    name = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name.lower(), name.lower())


PROCESSOR: Final = _processor()
"""`x86_64`, `aarch64`, or what else the system calls it."""

PORTABLE: Final = os.environ.get("PARAKEET_PORTABLE", "") not in ("", "0", "entry")
PORTABLE_ENTRY: Final = os.environ.get("PARAKEET_PORTABLE") == "entry"
"""Calls are made as if the layout of Python's objects were not known (`call/dispatch/portable_entry`)."""

SYSTEM: Final = sys.platform
WINDOWS: Final = sys.platform == "win32"
MACOS: Final = sys.platform == "darwin"
LINUX: Final = sys.platform == "linux"
X86: Final = PROCESSOR == "x86_64"
AARCH64: Final = PROCESSOR == "aarch64"

OWN_LINKER: Final = LINUX and X86 and sys.maxsize > 2**32 and not PORTABLE
"""Objects are ELF of x86-64, which `llvm/engine/object_loader` puts into memory without LLVM."""

JIT_LINK: Final = AARCH64 and not WINDOWS
"""LLVM's newer linker is taken: the older one aborts on AArch64 where code lies far from what it refers to."""

SYSTEM_CALLS: Final = {
    "x86_64": {"FUTEX": 202, "GETTID": 186},
    "aarch64": {"FUTEX": 98, "GETTID": 178},
    "riscv64": {"FUTEX": 98, "GETTID": 178},
}
"""Numbers of Linux's system calls that the thread pool makes, by processor."""

HAS_FUTEXES: Final = LINUX and PROCESSOR in SYSTEM_CALLS and not PORTABLE
"""Threads wait for each other by system calls of Linux; else regions run on one thread."""

HAS_FLAGS: Final = X86 and not PORTABLE
"""The flags of floating-point errors are read and cleared by instructions of SSE."""

KEEPS_REGISTERS: Final = X86 or AARCH64
"""LLVM has a calling convention that keeps most registers."""

HUGE_PAGES: Final = LINUX and not PORTABLE
"""`madvise` takes MADV_HUGEPAGE."""

ANONYMOUS: Final = 0x1002 if MACOS else 0x22
"""MAP_PRIVATE | MAP_ANONYMOUS"""

INVALID: Final = 0x10 if WINDOWS else 0x01
"""FE_INVALID of <fenv.h>, on x86-64 and AArch64."""

C_LIBRARIES: Final = {
    "linux": ("libm.so.6", "libc.so.6") if PORTABLE else ("libmvec.so.1", "libm.so.6", "libc.so.6"),
    "darwin": ("libSystem.dylib",),
    "win32": ("ucrtbase.dll", "vcruntime140.dll"),
}.get(sys.platform, ())
"""Where C functions are looked for, in this order, before the process itself."""

ELF_MACHINE: Final = {"x86_64": 62, "aarch64": 183, "riscv64": 243}.get(PROCESSOR, 0)
"""The processor's number in ELF."""
