"""What Dask knows an accelerated function by: the same in every process, another where the function is another one.

That is its code, its options, and what it holds: defaults and closure variables. The digest of the code is made once.
"""

from __future__ import annotations

from hashlib import blake2b
from types import FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from parakeet_py.call.specialization_cache import code_parts
from parakeet_py.signature.serialization import NotPortable

if TYPE_CHECKING:
    from parakeet_py.call.devices.caller import Dispatcher

_codes: WeakKeyDictionary[FunctionType, str] = WeakKeyDictionary()


def token_of(dispatcher: Dispatcher) -> tuple[Any, ...]:
    """What `__dask_tokenize__` of an accelerated function gives."""
    function = dispatcher.function
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    held = (*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items())
    own = "parakeet_py", function.__module__, function.__qualname__, _code_of(function)
    return (*own, *sorted(dispatcher.options.items()), *held)


def _code_of(function: FunctionType) -> str:
    found = _codes.get(function)
    if found is None:
        try:
            found = _digest(repr(code_parts(function.__code__)).encode("utf-8", "surrogatepass"))
        except NotPortable:
            import cloudpickle

            found = _digest(cloudpickle.dumps(function))
        _codes[function] = found
    return found


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=20).hexdigest()
