"""Functions of NumPy's and of the standard library that have been replaced: `mock.patch("numpy.random.rand")`.

The compiler takes `np.sum` for what it is, whatever the module holds under that name later: a check for each name in
each call would cost more than many calls. Instead, every specialization knows the modules whose names the user's code
has read (`reads`, kept with the object code), and its gate compares the version tags of their dicts with those at which
none of these names was replaced: one load and one comparison for each module. CPython gives a dict a new tag whenever
it changes, up to 3.13. From then on a watcher counts the changes of these modules' dicts, and the count is the tag.

When tags differ, the call arrives at the dispatcher, which looks at the names. If they hold what they held when the
module was first seen, as when some other name was added, the tags are taken over and the call enters again. If one
does not, Python runs the call, and so all until the name is restored. Nothing is compiled with a replaced function.

Where Python has neither, replaced functions are not seen.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import types
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

Read = tuple[str, str]  # a module and a name in it

_MODULES: Final = frozenset({"numpy", "math", "cmath", "scipy", "operator", "itertools", "functools"})
_PREFIX: Final = "reads"
_TAG: Final = object.__basicsize__ + 8  # of ma_version_tag in PyDictObject
_VALUES: Final = object.__basicsize__ + 24  # of ma_values

_originals: dict[str, dict[str, Any]] = {}
_MISSING = object()


class Patched(Exception):
    """A function that is about to be compiled in has been replaced."""


def _tag(namespace: dict[str, Any]) -> int:
    return ctypes.c_uint64.from_address(_tag_address(namespace)).value


def _tag_address(namespace: dict[str, Any]) -> int:
    if _watcher is None:
        return id(namespace) + _TAG
    return _watcher.address(namespace)


class _Watcher:
    """Counts changes of dicts (`PyDict_AddWatcher`, Python 3.12 and later)."""

    def __init__(self) -> None:
        self.counts: dict[int, ctypes.c_uint64] = {}  # by the address of the dict, which lives as long as the process
        kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self.callback = kind(self.count)
        self.number = ctypes.pythonapi.PyDict_AddWatcher(self.callback)
        if self.number < 0:
            raise RuntimeError("all watchers of dicts are in use")
        atexit.register(ctypes.pythonapi.PyDict_ClearWatcher, self.number)

    def count(self, event: int, namespace: int, key: int, value: int) -> int:
        found = self.counts.get(namespace)
        if found is not None:
            found.value += 1
        return 0

    def address(self, namespace: dict[str, Any]) -> int:
        """Where the count of a dict is, which is watched from now on."""
        if id(namespace) not in self.counts:
            self.counts[id(namespace)] = ctypes.c_uint64(1)
            ctypes.pythonapi.PyDict_Watch(self.number, ctypes.py_object(namespace))
        return ctypes.addressof(self.counts[id(namespace)])


def _new_watcher() -> _Watcher | None:
    try:
        return _Watcher() if sys.version_info >= (3, 14) else None
    except (AttributeError, RuntimeError):
        return None


_watcher = _new_watcher()


def _has_tags() -> bool:
    probe = _probe
    before = _tag(probe)
    unchanged = _tag(probe)
    probe["a"] = 2
    after = _tag(probe)
    del probe["a"]
    return before == unchanged != after != _tag(probe)


_probe: dict[str, Any] = {"a": 1}
HAS_TAGS: Final = _has_tags()
_no_tag = ctypes.c_uint64(0)


def own_tag_address(namespace: dict[str, Any]) -> int:
    """Where the version tag of any dict is, which changes with the dict; of a 0 where there is none, or not for all."""
    tagged = HAS_TAGS and _watcher is None and _says_where_values_are() and _values(namespace) == 0
    return id(namespace) + _TAG if tagged else ctypes.addressof(_no_tag)


def _values(namespace: dict[str, Any]) -> int:
    """Where an object's attributes are, if this is their dict: stores into them need not change its tag."""
    return ctypes.c_uint64.from_address(id(namespace) + _VALUES).value


@cache
def _says_where_values_are() -> bool:
    of_object = vars(_Object())
    return _values(of_object) != 0 and _values({"a": 1}) == 0


class _Object:
    def __init__(self) -> None:
        self.a = 1


def is_watched(module: str) -> bool:
    """Is a replaced name of a module noticed here?"""
    return HAS_TAGS and module.partition(".")[0] in _MODULES


def is_patched(module: str, name: str) -> bool:
    """Does a module hold something else under a name than it did when it was first seen?"""
    found = sys.modules.get(module)
    if found is None:
        return False
    namespace = vars(found)
    originals = _originals.get(module)
    if originals is None:
        originals = _originals[module] = {key: value for key, value in namespace.items() if _is_own(module, value)}
    now = namespace.get(name, _MISSING)
    if name not in originals:
        if now is _MISSING or _is_own(module, now):
            originals[name] = now  # from a module's `__getattr__`, or new
        return name not in originals
    if originals[name] is _MISSING and now is not _MISSING and _is_own(module, now):
        originals[name] = now  # a part of a package that has been imported meanwhile
    return now is not originals[name]


def _is_own(module: str, value: Any) -> bool:
    """Is this no stand-in? Only asked of what a module holds when it is first seen."""
    if type(value).__module__.startswith("unittest"):
        return False
    if not isinstance(value, types.FunctionType):
        return True
    home = str(value.__globals__.get("__name__"))
    return home.partition(".")[0] == module.partition(".")[0] or home in sys.stdlib_module_names


for _name in ("numpy", "numpy.linalg", *_MODULES):
    if _name in sys.modules:
        is_patched(_name, "")


# ---- what a specialization has read ----------------------------------------------------------------------------------


def as_symbols(reads: Iterable[Read]) -> tuple[str, ...]:
    """Names read, as entries of a specialization's symbols."""
    return tuple(f"{_PREFIX}:{module}:{name}" for module, name in sorted(reads))


def of_symbols(symbols: Iterable[str]) -> tuple[Read, ...]:
    """The names read among a specialization's symbols."""
    parts = (symbol.split(":") for symbol in symbols if symbol.startswith(f"{_PREFIX}:"))
    return tuple((module, name) for _, module, name in parts)


def modules_of(reads: Iterable[Read]) -> tuple[str, ...]:
    """The modules of names, each once, in order."""
    return tuple(sorted({module for module, _ in reads}))


class Versions:
    """The tags of some modules' dicts now, and those that a gate compares them with.

    Attributes
    ----------
    addresses : of the tags
    known : the tags at which nothing that is read was replaced; 0: none
    """

    def __init__(self, reads: Sequence[Read]) -> None:
        self.reads = tuple(reads)
        self.namespaces = [vars(sys.modules[module]) for module in modules_of(reads)]  # kept alive
        self.addresses = list(map(_tag_address, self.namespaces))
        self.known = (ctypes.c_uint64 * max(1, len(self.namespaces)))()
        self.accept()

    def are_known(self) -> bool:
        return [*self.known[: len(self.namespaces)]] == list(map(_tag, self.namespaces))

    def accept(self) -> bool:
        """Take the present tags for known, unless something has been replaced; gives whether nothing has."""
        tags = list(map(_tag, self.namespaces))
        if any(is_patched(*read) for read in self.reads):
            return False
        for place, tag in enumerate(tags):
            self.known[place] = tag
        return True
