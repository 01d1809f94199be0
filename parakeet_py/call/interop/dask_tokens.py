"""What Dask knows an accelerated function by: the same in every process, another where the function is another one.

That is its code, wherever it stands, its options, and what it holds: defaults, closure variables, and the globals that
it reads, as far as they are data or plain functions. The digest of the code is made once.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from parakeet_py.call.specialization_cache import code_parts
from parakeet_py.signature.serialization import NotPortable

if TYPE_CHECKING:
    from parakeet_py.call.devices.caller import Dispatcher

_codes: WeakKeyDictionary[FunctionType, str] = WeakKeyDictionary()
_names: WeakKeyDictionary[FunctionType, tuple[str, ...]] = WeakKeyDictionary()
_PLAIN = (bool, int, float, complex, str, bytes, np.ndarray, np.generic, type(None))


def token_of(dispatcher: Dispatcher, with_globals: bool = True) -> tuple[Any, ...]:
    """What `__dask_tokenize__` of an accelerated function gives."""
    function = dispatcher.function
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    held = (*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items())
    own = "parakeet_py", function.__module__, function.__qualname__, _code_of(function)
    return (*own, *sorted(dispatcher.options.items()), *held, *(_globals_of(function) if with_globals else ()))


def _globals_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals that a function reads and that are data, or plain functions: these by their code."""
    if function not in _names:
        _names[function] = tuple(sorted(_names_of(function.__code__)))
    known = function.__globals__
    for name in _names[function]:
        value = known.get(name, known)  # which is no data that it could be
        if isinstance(value, FunctionType):
            yield name, _code_of(value)
        elif value is not known and _is_data(value):
            yield name, value


def _is_data(value: Any, depth: int = 3) -> bool:
    """Whether a value has nothing in it that might hold the function."""
    if isinstance(value, _PLAIN):
        return True
    if depth == 0 or type(value) not in (tuple, list, dict):
        return False
    return all(_is_data(item, depth - 1) for item in (value.values() if type(value) is dict else value))


def _names_of(code: CodeType) -> set[str]:
    """The names that code may look up in the globals, and those of attributes."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return {*code.co_names}.union(*map(_names_of, inner))


def _code_of(function: FunctionType) -> str:
    found = _codes.get(function)
    if found is None:
        try:
            found = _digest(repr(code_parts(function.__code__, places=False)).encode("utf-8", "surrogatepass"))
        except NotPortable:
            import cloudpickle

            found = _digest(cloudpickle.dumps(function))
        _codes[function] = found
    return found


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=20).hexdigest()
