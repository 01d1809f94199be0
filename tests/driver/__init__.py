"""A stand-in for libcuda itself, on the emulator: what `cuda.core` and `cuda.bindings`, as they are published, call.

With it those packages run themselves, so what they are asked for is shown to be what they take. `load()` puts a library
of the driver's name into the process, before anything of CUDA's packages is imported, and so once and for all: tests do
that in processes of their own. It is as strict as a GPU may be: a stream does nothing until a thread waits for it;
pinned memory of the host is read and written when it is due; what is asked of a stream of another context than the
current one, or of one that is being captured, is an error; a kernel that faults takes its context along.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tests.driver.at_once import HELPERS, QUICK
from tests.driver.machine import Code, Machine, Status, calls, machine

LIBRARY = """
#include <stddef.h>
#include <string.h>
#include <unistd.h>
static void *(*other)(const char *);
static int (*answer[{count}])();
static int gone = 1, within;
static int enter(void) {{
    __atomic_add_fetch(&within, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&gone, __ATOMIC_SEQ_CST)) return 1;
    __atomic_sub_fetch(&within, 1, __ATOMIC_SEQ_CST);
    return 0;
}}
static int leave(int status) {{
    __atomic_sub_fetch(&within, 1, __ATOMIC_SEQ_CST);
    return status;
}}
{helpers}
{calls}
int cuGetProcAddress_v2(const char *name, void **place, int version, unsigned long long flags, int *status) {{
    *place = NULL;
    {finds}
    if (!*place) *place = other(name);
    if (status) *status = 0;
    return 0;
}}
void begin(void **answers, void *(*find)(const char *)) {{
    memcpy(answer, answers, sizeof answer);
    other = find;
    gone = 0;
}}
void end(void) {{
    __atomic_store_n(&gone, 1, __ATOMIC_SEQ_CST);
    for (int wait = 0; wait < 10000 && __atomic_load_n(&within, __ATOMIC_SEQ_CST); wait++) usleep(1000);
}}
"""
CALL = "int {name}({parameters}) {{ return enter() ? leave(((int (*)({types}))answer[{number}])({names})) : 0; }}"
FIND = 'if (!strcmp(name, "{name}")) *place = (void *){name};'
C_TYPES = {"p": "void *", "i": "int", "u": "unsigned", "z": "size_t", "Q": "unsigned long long"}
TYPES = {
    "p": ctypes.c_void_p,
    "i": ctypes.c_int,
    "u": ctypes.c_uint,
    "z": ctypes.c_size_t,
    "Q": ctypes.c_uint64,
}

for _part in ("devices", "kernels", "memory", "order"):
    importlib.import_module(f"tests.driver.{_part}")  # defines calls

_lock = threading.RLock()
_kept: dict[str, Any] = {}  # as long as the library may call it

asked: Counter[str] = Counter()  # calls by name, but for those that do nothing
failed: list[tuple[str, str]] = []  # what was refused, and why
unknown: list[str] = []  # what was asked for and is not here


def _answer(name: str) -> Any:
    """What a call of the driver does, as C may call it."""
    types, function = calls.get(name, ("", None))

    def answer(*given: Any) -> int:
        with _lock:
            asked[name] += 1
            try:
                if function is None:
                    unknown.append(name)
                    return Code.NOT_SUPPORTED
                function(*given)
            except Status as status:
                failed.append((name, status.code.name))
                return status.code
            except Exception:
                unknown.append(f"{name}: {traceback.format_exc()}")
                return Code.UNKNOWN
        return 0

    _kept[name] = ctypes.CFUNCTYPE(ctypes.c_int, *(TYPES[one] for one in types))(answer)
    return ctypes.cast(_kept[name], ctypes.c_void_p).value


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
def _other(name: bytes) -> Any:
    """A call that is not here, to be told if it comes."""
    return _answer(name.decode())


def _source(at_once: bool) -> str:
    """The library: it has the calls that are here, and hands them on until the process ends."""
    made = []
    for number, (name, (types, _)) in enumerate(calls.items()):
        parts = [f"{C_TYPES[one]} a{place}" for place, one in enumerate(types)]
        names = [f"a{place}" for place in range(len(types))]
        kinds = [C_TYPES[one] for one in types]
        if at_once and name in QUICK:
            made.append(f"int {name}({', '.join(parts)}) {{ {QUICK[name].replace('NUMBER', str(number))} }}")
            continue
        texts = {key: ", ".join(value) for key, value in (("parameters", parts), ("types", kinds), ("names", names))}
        made.append(CALL.format(name=name, number=number, **texts))
    finds = "\n    ".join(FIND.format(name=name) for name in calls)
    helpers = HELPERS if at_once else ""
    return LIBRARY.format(count=len(calls), helpers=helpers, calls="\n".join(made), finds=finds)


def why_not() -> str | None:
    """What is missing for it; None if nothing is."""
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.core") is None:
        return "cuda-core is not installed"
    return None if shutil.which("cc") else "there is no C compiler"


def load(
    devices: int = 2,
    memory: int = 1 << 30,
    capability: tuple[int, int] = (8, 0),
    version: int = 13000,
    at_once: bool = False,
) -> Machine:
    """Put the stand-in into this process.

    Parameters
    ----------
    devices : how many it has, of so much memory each
    version : what the driver is for, as CUDA numbers versions
    at_once : launches, copies and what orders them do nothing, and return at once: what is left is the time of the host
    """
    assert "cuda.bindings.driver" not in sys.modules, "the driver is looked for once"
    machine.begin(devices, memory, capability, version)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "libcuda.c", Path(folder) / "libcuda.so.1"
        source.write_text(_source(at_once))
        options = ["-O2", "-shared", "-w", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(made)]
        subprocess.run(["cc", *options, str(source)], check=True)
        library = ctypes.CDLL(str(made), mode=ctypes.RTLD_GLOBAL)
    library.begin((ctypes.c_void_p * len(calls))(*map(_answer, calls)), _other)
    # Threads that have ended in Python may still drop what C++ keeps for each thread, which calls the driver. A call
    # that waited for the interpreter when that is gone would end its thread inside of C++, and so the process.
    atexit.register(library.end)
    return machine
