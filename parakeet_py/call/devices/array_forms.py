"""Calls with arrays on devices as accelerated functions: their text, and what is made and kept for it.

Each form of a call is an accelerated function of its own, made once: `x + 1` runs ``a0 + a1``, `np.sum(x, axis=0)` runs
``F(a0, axis=a1)`` with `np.sum` for ``F``. What is data (arrays, numbers) is an argument, what says how (strings, None,
truth values, dtypes) is part of the form. So a call is compiled, kept on the disk and executed as any other, and its
results stay on the devices. Where NumPy gives a number the result is an array without axes; nothing is fetched for it.
"""

from __future__ import annotations

import linecache
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parakeet_py.base.errors import DeviceWarning, advised
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.frames.tracebacks import user_level
from parakeet_py.call.accelerate import accelerate
from parakeet_py.call.devices.calls import residents_of
from parakeet_py.hybrid.residency.device_array import DeviceArray, asdevice, is_known

FEW = 32  # numbers in a list that are arguments one by one; more are an array
NUMBERS = (bool, int, float, complex, np.bool, np.number)

_STATIC = frozenset(("axis", "axes", "axis1", "axis2", "decimals", "ddof", "ndmin", "k", "n"))


def _leave(value: Any) -> Any:
    """Compiled with each function: numbers leave as arrays without axes, those in named tuples later (`_leaving`)."""
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple([np.asarray(item) if isinstance(item, np.generic) else item for item in value])
    return value


class Form:
    """The text of a call, and its arguments."""

    def __init__(self) -> None:
        self.arguments: list[Any] = []

    def add(self, value: Any) -> str:
        self.arguments.append(value)
        return f"a{len(self.arguments) - 1}"

    def text(self, value: Any) -> str:
        kind = type(value)
        if kind is DeviceArray:
            return self.add(value)
        if value is None or kind in (bool, str):
            return repr(value)
        if value is Ellipsis:
            return "..."
        if kind is slice:
            return f"slice({self.text(value.start)}, {self.text(value.stop)}, {self.text(value.step)})"
        if kind in (tuple, list):
            return self.items(value)
        if isinstance(value, np.dtype) or (isinstance(value, type) and value in _TYPES):
            return f"np.dtype({np.dtype(value).name!r})"
        if isinstance(value, np.ndarray) and not is_known(value.dtype):
            raise TypeError(f"a device has no elements of dtype {value.dtype}")
        return self.add(value)

    def items(self, value: Any) -> str:
        if len(value) > FEW and all(isinstance(item, NUMBERS) for item in value):
            return self.add(np.asarray(value))
        texts = [self.text(item) for item in value]
        return f"[{', '.join(texts)}]" if type(value) is list else f"({''.join(f'{text}, ' for text in texts)})"

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        texts = [self.text(value) for value in args]
        for key, value in kwargs.items():
            small = key in _STATIC and (type(value) is int or _is_of_ints(value))
            texts.append(f"{key}={value!r}" if small else f"{key}={self.text(value)}")
        return f"{name}({', '.join(texts)})"


_TYPES = frozenset((bool, int, float, complex, *(np.dtype(code).type for code in "?bhilqBHILQefdFD")))


def _is_of_ints(value: Any) -> bool:
    return type(value) is tuple and all(type(item) is int for item in value)


# ---- accelerated functions -------------------------------------------------------------------------------------------


class _Made:
    """An accelerated function, and how many specializations have been looked at for what they hand back."""

    def __init__(self, name: str, callee: Any, body: str, count: int) -> None:
        source = f"def {name}({', '.join(f'a{number}' for number in range(count))}):\n    {body}\n"
        filename = f"<{name} of arrays on devices: {body}>"
        linecache.cache[filename] = len(source), None, source.splitlines(True), filename
        names: dict[str, Any] = {"np": np, "F": callee, "leave": _leave}
        exec(compile(source, filename, "exec"), names)
        self.plain: Callable[..., Any] = names[name]
        self.function: Any = accelerate(when="now")(self.plain)
        self.looked_at = 0
        self.warned = False


_made: dict[tuple[Any, str, int], _Made] = {}
_making = threading.Lock()


class _Running(threading.local):
    active = False  # an operation on devices is on this thread's stack


running = _Running()


def _made_for(callee: Any, body: str, count: int) -> _Made:
    key = callee, body, count
    found = _made.get(key)
    if found is None:
        with _making:
            name = getattr(callee, "__name__", "apply")
            found = _made.setdefault(key, _Made(name if name.isidentifier() else "apply", callee, body, count))
    return found


@hidden
def run(callee: Any, body: str, arguments: Sequence[Any]) -> Any:
    made = _made_for(callee, body, len(arguments))
    if running.active:  # Python runs it, with acceleration disabled or under a debugger: on the host, then
        return _on_host(made, arguments)
    running.active = True
    try:
        found = made.function(*arguments)
    finally:
        running.active = False
    if not made.warned:
        _look_at(made, callee)
    return found if type(found) is DeviceArray else _leaving(found, arguments)


def _on_host(made: _Made, arguments: Sequence[Any]) -> Any:
    place = next(value._place for value in arguments if type(value) is DeviceArray)
    with residents_of(made.function._dispatcher, arguments, place) as residents:
        return residents.by_python(lambda args: made.plain(*args), arguments)


def _look_at(made: _Made, callee: Any) -> None:
    """Say what a function hands back to Python."""
    count = len(made.function._dispatcher.compilations)
    if count != made.looked_at or made.function.fell_back:
        made.looked_at = count
        if made.function.opaque_calls or made.function.fell_back:
            made.warned = True
            warn(callee)


_warned: set[int] = set()


def warn(callee: Any) -> None:
    name = f"numpy.{callee.__name__}" if hasattr(callee, "__name__") else "this operation"
    if id(callee) not in _warned:
        _warned.add(id(callee))
        text = f"{name} is not compiled for this call: it runs on copies of arrays on the host, its results go back"
        warnings.warn(DeviceWarning(advised(text)), stacklevel=user_level())


def _leaving(value: Any, arguments: Sequence[Any]) -> Any:
    """What leaves: arrays on devices, also of what has been found on the host."""
    if isinstance(value, np.ndarray | np.generic):
        place = next(one._place for one in arguments if type(one) is DeviceArray)
        return asdevice(value, place) if is_known(value.dtype) else value
    if isinstance(value, tuple):
        items = [_leaving(item, arguments) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return [_leaving(item, arguments) for item in value] if type(value) is list else value
