"""The vector math library in use: functions compiled for this machine, one object for each function and dtype.

    double pk_math_exp_f64(double)    <8 x double> pk_math_exp_f64x8(<8 x double>)    float pk_math_exp_f32(float) ...

An object is compiled when its function is first needed on this machine (`forms` writes it), kept in the
disk cache, and stays loaded. Generated code refers to its symbols like to any external function; `resolve` gives their
addresses, without LLVM if the object is in the cache. All forms of a function give the same bits in every lane.
"""

from __future__ import annotations

import re
import threading

from parakeet_py.llvm.engine import compiler, disk_cache
from parakeet_py.llvm.engine.lasting_code import lasting_code
from parakeet_py.llvm.engine.object_loader import LoadedCode
from parakeet_py.llvm.math.names import symbol

_SYMBOL = re.compile(r"pk_math_([a-z0-9]+)_f(32|64)(?:x\d+)?")

_lock = threading.Lock()
_loaded: dict[tuple[str, str], LoadedCode | None] = {}


def resolve(name: str) -> int | None:
    """The address of a symbol of this library, compiled or loaded on first use; None for other names."""
    match = _SYMBOL.fullmatch(name)
    if match is None:
        return None
    key = (match[1], f"float{match[2]}")
    with _lock:
        if key not in _loaded:
            _loaded[key] = _load(*key)
        code = _loaded[key]
    return None if code is None else code.addresses.get(name)


class _NoKernelError(LookupError):
    """There is no function of this name."""


def _load(name: str, dtype: str) -> LoadedCode | None:
    def make() -> tuple[bytes, list[str]]:
        from parakeet_py.llvm.math import forms

        if name not in forms.KERNELS:
            raise _NoKernelError(name)
        host = compiler.host()
        exports = [symbol(name, dtype, lanes) for lanes in (1, *forms.lane_counts(host, dtype))]
        return compiler.compile_ir(forms.library_ir(name, dtype, host), vectorize=False), exports

    key = disk_cache.digest("vector math", name, dtype)  # the machine and our sources are part of every key
    try:
        return lasting_code(key, f"{name} of {dtype}", make)
    except _NoKernelError:
        return None
