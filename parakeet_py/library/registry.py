"""What the library defines: which function of the accelerated language stands for which NumPy function.

    @implements(np.mean)            a function: called in its place
    @method("mean")                 an ndarray method of that name (first parameter: the array)
    @scalar_function_of(np.sinc)    the loop of a ufunc over scalars (applied elementwise)
    @helper                         a function compiled code may call by name
    @static                         an ordinary Python function run at compile time on known arguments

The library's modules are imported when the first NumPy function that is not a primitive is met. Users register their
own bodies through `parakeet_py.register`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

MODULES = (
    "parallel",
    "scalars",
    "complex_scalars",
    "complex_trigonometry",
    "reductions",
    "creation",
    "shape",
    "joining",
    "selection",
    "elementary",
    "scans",
    "products",
    "matrices",
    "statistics",
    "nan_reductions",
    "ufunc_methods",
)

_functions: dict[int, tuple[Any, Callable[..., Any]]] = {}
_methods: dict[str, Callable[..., Any]] = {}
_scalars: dict[int, tuple[Any, Callable[..., Any]]] = {}
_helpers: dict[str, Callable[..., Any]] = {}
_statics: set[int] = set()
_loaded = False


def implements(*targets: Any) -> Callable[[F], F]:
    """Register a body for NumPy (or other) functions, by identity."""

    def register(body: F) -> F:
        for target in targets:
            _functions[id(target)] = (target, body)
        return body

    return register


def method(*names: str) -> Callable[[F], F]:
    """Register a body for ndarray methods."""

    def register(body: F) -> F:
        for name in names:
            _methods[name] = body
        return body

    return register


def scalar_function_of(*ufuncs: Any) -> Callable[[F], F]:
    """Register the scalar loop of ufuncs: a function from scalars of the loop's dtypes to its result(s)."""

    def register(body: F) -> F:
        for ufunc in ufuncs:
            _scalars[id(ufunc)] = (ufunc, body)
        return body

    return register


def helper(body: F) -> F:
    """Make a function callable by name from the compiler."""
    _helpers[body.__name__] = body
    return body


def static(body: F) -> F:
    """A function evaluated when the program is compiled; all its arguments must be known then."""
    _statics.add(id(body))
    return body


def load() -> None:
    """Import the library's modules (once)."""
    global _loaded
    if not _loaded:
        _loaded = True
        for name in MODULES:
            importlib.import_module(f"parakeet_py.library.{name}")


def function_for(target: Any) -> Callable[..., Any] | None:
    """The registered body of a function, or None."""
    load()
    found = _functions.get(id(target))
    return found[1] if found is not None and found[0] is target else None


def method_for(name: str) -> Callable[..., Any] | None:
    load()
    return _methods.get(name)


def scalar_function(ufunc: Any) -> Callable[..., Any] | None:
    load()
    found = _scalars.get(id(ufunc))
    return found[1] if found is not None else None


def find_helper(name: str) -> Callable[..., Any]:
    load()
    return _helpers[name]


def is_static(target: Any) -> bool:
    return id(target) in _statics


def registered() -> dict[str, list[str]]:
    """Names of everything defined, for documentation."""
    load()
    return {
        "functions": sorted(f"{target.__module__}.{target.__name__}" for target, _ in _functions.values()),
        "methods": sorted(_methods),
        "ufuncs": sorted(ufunc.__name__ for ufunc, _ in _scalars.values()),
    }
