"""Functions that users have written out for the compiler: `register`, `unregister`.

What is not compiled is handed back to Python. A user who knows better says what such a function does, as a body in
plain Python and NumPy; calls of the function in compiled code are then calls of the body, inlined as any function is.
Python itself, when it runs an accelerated function for whatever reason, goes on calling the function: the body has to
mean the same.

A body takes precedence over what the library has for the same function, except in the library itself and in the body,
where the function is what it was. What has been compiled before a registration, or before one is taken back, is
forgotten; in the disk cache, code belongs to the registrations it was made with.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_bodies: dict[int, tuple[Any, types.FunctionType]] = {}


watchers: weakref.WeakSet[Any] = weakref.WeakSet()


def register(*targets: Any) -> Callable[[F], F]:
    """Register a body for functions, which compiled code runs in their place.

    Parameters
    ----------
    *targets
        Functions by identity: of NumPy or of any other package, ufuncs, classes that are called; methods of arrays as
        `np.ndarray.partition`, whose body takes the array first. Operators are not calls: `a + b` never runs a body
        that is registered for `np.add`.

    Returns
    -------
    decorator
        For the body, a Python function with source, which it gives back unchanged. Its parameters are those of the
        target that it knows; calls with others, and bodies that cannot be compiled, are handed back to Python.

    Raises
    ------
    TypeError
        A target cannot be called, or the body is no Python function.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from parakeet_py import accelerate, register, unregister
    >>> @register(math.dist)
    ... def distance(p, q):
    ...     return float(np.sqrt(np.sum((np.asarray(p) - np.asarray(q)) ** 2)))
    >>> unregister(math.dist)
    """
    if not targets:
        raise TypeError("register needs the functions that the body stands for")
    for target in targets:
        if not callable(target):
            raise TypeError(f"{target!r} cannot be called, so nothing can stand for it")

    def decorate(body: F) -> F:
        function = getattr(body, "__wrapped__", body) if type(body).__module__.startswith("parakeet_py") else body
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"the body of {name_of(targets[0])} has to be a Python function, not {body!r}")
        for target in targets:
            _bodies[id(target)] = (target, function)
        _changed()
        return body

    return decorate


def unregister(*targets: Any) -> None:
    """Take back what is registered for functions; the library's own implementations are used again.

    Raises
    ------
    KeyError
        Nothing is registered for a target.
    """
    for target in targets:
        if body_of(target) is None:
            raise KeyError(f"nothing is registered for {name_of(target)}")
    for target in targets:
        del _bodies[id(target)]
    _changed()


def _changed() -> None:
    for watcher in list(watchers):
        watcher.reset()


def body_of(target: Any) -> types.FunctionType | None:
    """The body that stands for a function, if one is registered."""
    found = _bodies.get(id(target)) if _bodies else None
    return found[1] if found is not None and found[0] is target else None


def name_of(target: Any) -> str:
    """What to call a function."""
    own = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or repr(target)
    module = getattr(target, "__module__", None)
    return f"{module}.{own}" if module else str(own)


def bodies() -> list[tuple[str, types.FunctionType]]:
    """All that is registered, by name."""
    return sorted(((name_of(target), body) for target, body in _bodies.values()), key=lambda one: one[0])
