"""What the library defines: which function of the accelerated language stands for which NumPy function.

    @implements(np.mean)            a function: called in its place
    @plain(math.prod)               the same in plain Python, which is inlined as a user's function is
    @method("mean")                 an ndarray method of that name (first parameter: the array)
    @scalar_function_of(np.sinc)    the loop of a ufunc over scalars (applied elementwise)
    @helper                         a function compiled code may call by name
    @procedure                      a helper that is called, not inlined (see `library_procedures` of the specializer)
    @device_procedure("out")        one for devices only, which stores into these parameters
    @static                         an ordinary Python function run at compile time on known arguments

A module of the library is imported when something it defines is met; `index` says which one that is. What users
register (`extensions`) comes before it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from parakeet_py.library import index

F = TypeVar("F", bound=Callable[..., Any])

_functions: dict[int, tuple[Any, Callable[..., Any]]] = {}
_plain: dict[int, tuple[Any, Callable[..., Any]]] = {}
_methods: dict[str, Callable[..., Any]] = {}
_scalars: dict[int, tuple[Any, Callable[..., Any]]] = {}
_helpers: dict[str, Callable[..., Any]] = {}
_statics: set[int] = set()
_procedures: set[int] = set()
_device_procedures: dict[int, tuple[str, ...]] = {}
_loaded: set[str] = set()


def implements(*targets: Any) -> Callable[[F], F]:
    """Register a body for NumPy (or other) functions, by identity."""

    def register(body: F) -> F:
        for target in targets:
            _functions[id(target)] = (target, body)
        return body

    return register


def plain(*targets: Any) -> Callable[[F], F]:
    """Register what functions of the standard library mean, in plain Python."""

    def register(body: F) -> F:
        for target in targets:
            _plain[id(target)] = (target, body)
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


def procedure(body: F) -> F:
    """Make a helper a procedure, specialized and compiled once for each kind of arguments: its body is long, and a run
    of it takes longer than a call of it, or is rare."""
    _procedures.add(id(body))
    return body


def device_procedure(*stored: str) -> Callable[[F], F]:
    """Make a helper a procedure that nothing calls but on devices, for which alone it is specialized: it stores into
    these parameters, and gives nothing."""

    def register(body: F) -> F:
        _procedures.add(id(body))
        _device_procedures[id(body)] = stored
        return body

    return register


def static(body: F) -> F:
    """A function evaluated when the program is compiled; all its arguments must be known then."""
    _statics.add(id(body))
    return body


def load_module(name: str) -> None:
    """Import one of the library's modules."""
    if name not in _loaded:
        _loaded.add(name)
        importlib.import_module(f"parakeet_py.library.{name}")


def load() -> None:
    """Import all of the library's modules."""
    for name in index.modules():
        load_module(name)


def _load_for(kind: dict[str, str], name: str) -> None:
    """Import the module that defines something, if any does."""
    module = index.lookup(kind).get(name)
    if module is not None:
        load_module(module)


def name_of(target: Any) -> str:
    """What a function is called in the index."""
    module = getattr(target, "__module__", None)
    if module == "math.integer":  # where CPython 3.15 keeps `math.gcd` and its kin
        module = "math"
    return f"{module}.{getattr(target, '__name__', None)}"


def function_for(target: Any) -> Callable[..., Any] | None:
    """The registered body of a function, or None."""
    found = _functions.get(id(target))
    if found is None:
        _load_for(index.FUNCTIONS, name_of(target))
        found = _functions.get(id(target))
    return found[1] if found is not None and found[0] is target else None


def plain_for(target: Any) -> Callable[..., Any] | None:
    """The registered meaning of a function of the standard library, or None."""
    _load_for(index.PLAIN, name_of(target))
    found = _plain.get(id(target))
    return found[1] if found is not None and found[0] is target else None


def method_for(name: str) -> Callable[..., Any] | None:
    """The registered body of an ndarray method, or None; `ufunc.reduce` and the like for methods of ufuncs,
    `generator.normal` and the like for random generators."""
    _load_for(index.METHODS, name)
    return _methods.get(name)


def scalar_function(ufunc: Any) -> Callable[..., Any] | None:
    """The registered scalar loop of a ufunc, or None."""
    _load_for(index.UFUNCS, ufunc.__name__)
    found = _scalars.get(id(ufunc))
    return found[1] if found is not None else None


def find_helper(name: str) -> Callable[..., Any]:
    _load_for(index.HELPERS, name)
    return _helpers[name]


for _known in (np.dtype, np.finfo, np.iinfo, np.issubdtype, np.isdtype, np.can_cast, np.promote_types, np.mintypecode):
    static(_known)


def stored_on_devices(target: Any) -> tuple[str, ...] | None:
    """The parameters that a procedure for devices stores into; None if this is none."""
    return _device_procedures.get(id(target))


def is_procedure(target: Any) -> bool:
    return id(target) in _procedures


def is_static(target: Any) -> bool:
    return id(target) in _statics


def registered() -> dict[str, list[str]]:
    """Names of everything defined, for documentation."""
    load()
    return {
        "functions": sorted(name_of(target) for target, _ in _functions.values()),
        "methods": sorted(_methods),
        "ufuncs": sorted(ufunc.__name__ for ufunc, _ in _scalars.values()),
    }


def definitions() -> dict[str, dict[str, str]]:
    """For each table of the index its contents, from the modules themselves: names, separated by blanks, by module."""
    load()
    tables: dict[str, dict[str, list[str]]] = {"FUNCTIONS": {}, "PLAIN": {}, "METHODS": {}, "UFUNCS": {}, "HELPERS": {}}

    def note(table: str, name: str, body: Callable[..., Any]) -> None:
        module = body.__module__.removeprefix("parakeet_py.library.")
        if module != body.__module__:
            tables[table].setdefault(module, []).append(name)

    for target, body in _functions.values():
        note("FUNCTIONS", name_of(target), body)
    for target, body in _plain.values():
        note("PLAIN", name_of(target), body)
    for name, body in _methods.items():
        note("METHODS", name, body)
    for ufunc, body in _scalars.values():
        note("UFUNCS", ufunc.__name__, body)
    for name, body in _helpers.items():
        note("HELPERS", name, body)
    return {
        table: {module: " ".join(sorted(set(names))) for module, names in sorted(entries.items())}
        for table, entries in tables.items()
    }
