"""What is known of functions that are not compiled: what they do with what they are given.

There is one table, and each part of the compiler that has to know what a callee does asks it:

    stores        may it change an array that it is given?
    keeps         may it keep a list, a dict or a function that it is given, or give it back, in whatever form?
    keeps_items   the same of the items: `list(rows)` lets go of `rows` itself, and keeps each row
    calls         may it call a function that it is given?
    frame         does it look at the frame of its caller?
    uses_up       does it go through the whole of an iterator before it returns, so that a list would do?
    makes         a new list, dict, set... of items that it is given; an iterator that goes through what it is given,
                  or a function that calls it, only when that is used

A callee that is not in the table stores and keeps: every foreign function is taken for one that does, those of the
standard library included. (`functools.partial`, `types.MappingProxyType`, `iter`, `memoryview`, `collections.ChainMap`
are made for keeping.) Entries stand for objects, never for spellings: a function of another kind under the name of one
in the table is not known. The frontend has only names, and takes those in `named` for the builtins they usually are;
the specializer looks at the object before it gives a container to it (`owned_containers` of the specializer).
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record


@record
class Effects:
    """See the top of this file; `items_only`: it looks at nothing but items, so that any sequence of them will do."""

    stores: bool = True
    keeps: bool = True
    keeps_items: bool = True
    items_only: bool = False
    calls: bool = True
    frame: bool = False
    uses_up: bool = False
    makes: str = ""

    @property
    def lazy(self) -> bool:
        return self.makes == "iterator"


UNKNOWN = Effects()
_FRAME = Effects(frame=True)
_LOOKS = Effects(stores=False, keeps=False, keeps_items=False, calls=False)
_ADDS = replace(_LOOKS, uses_up=True)
_COUNTS = replace(_LOOKS, items_only=True)
_TAKES_ITEMS = Effects(stores=False, keeps=False, items_only=True)
_SHARES_ITEMS = Effects(stores=False, keeps=False, calls=False)
_PICKS_ITEMS = replace(_SHARES_ITEMS, uses_up=True)
_IS_LAZY = Effects(stores=False, makes="iterator", calls=False)
_CALLS_LATER = replace(_IS_LAZY, calls=True)
_LETS_GO = Effects(keeps=False, keeps_items=False)
_CALLS = Effects(keeps=False)
_IS_CALLED = Effects(makes="function")


def _makes(kind: str) -> Effects:
    return Effects(stores=False, keeps=False, items_only=True, uses_up=True, makes=kind)


_TABLE: dict[str, dict[Effects, str]] = {
    "builtins": {
        _COUNTS: "all any len",
        _LOOKS: """abs ascii bin bool callable chr complex divmod float format hasattr hash hex int isinstance
            issubclass oct ord pow range repr round str type""",
        _TAKES_ITEMS: "max min sum",
        **{_makes(kind): kind for kind in ("dict", "frozenset", "set", "tuple")},
        _makes("list"): "list sorted",
        _SHARES_ITEMS: "bytes bytearray",
        _IS_LAZY: "enumerate iter reversed zip",
        _CALLS_LATER: "filter map",
        _LETS_GO: "print",
        _FRAME: "breakpoint dir eval exec globals locals super vars",
        UNKNOWN: "delattr next setattr",
    },
    "bisect": {_LOOKS: "bisect bisect_left bisect_right"},
    "collections": {
        _makes("Counter"): "Counter",
        _makes("deque"): "deque",
        Effects(makes="defaultdict"): "defaultdict",  # which calls what it is given
        _SHARES_ITEMS: "OrderedDict",
    },
    "copy": {_LOOKS: "deepcopy", _SHARES_ITEMS: "copy"},
    "functools": {_CALLS: "reduce", _IS_CALLED: "partial"},
    "heapq": {replace(_CALLS, uses_up=True): "nlargest nsmallest", _CALLS_LATER: "merge"},
    "inspect": {_FRAME: "currentframe"},
    "itertools": {
        _IS_LAZY: """batched chain combinations combinations_with_replacement compress count cycle islice pairwise
            permutations product repeat zip_longest""",
        _CALLS_LATER: "accumulate dropwhile filterfalse groupby starmap takewhile",
    },
    "json": {_LOOKS: "dumps"},
    "math": {_ADDS: "fsum prod"},
    "numpy": {
        _FRAME: "bmat",
        _IS_CALLED: "frompyfunc vectorize",
        _PICKS_ITEMS: "fromiter",
        UNKNOWN: "broadcast ndenumerate nditer set_printoptions seterrcall",
    },
    "operator": {
        _LOOKS: "contains countOf eq ge gt indexOf is_ is_not le length_hint lt ne not_ truth",
        _SHARES_ITEMS: "add concat getitem mul",
    },
    "random": {_CALLS: "choice choices sample"},
    "statistics": {
        _ADDS: "fmean geometric_mean harmonic_mean mean pstdev pvariance quantiles stdev variance",
        _PICKS_ITEMS: "median median_high median_low mode multimode",
    },
    "sys": {_LOOKS: "getsizeof", _FRAME: "_getframe"},
}
"""Functions and classes by module and name; what stands there when it is asked for is what is known."""

_PACKAGES: dict[str, Effects] = {
    "numpy": _CALLS,  # an array of objects keeps each item of a list
    "scipy": _LETS_GO,
    "math": _LOOKS,
    "cmath": _LOOKS,
}
"""What the functions of whole packages do, those of sub-packages included; classes are not known."""

_PURE_MODULES = ("numpy", "numpy.linalg", "numpy.fft", "scipy.special", "scipy.linalg", "scipy.fft", "math")
_FRESH_MODULES = ("numpy.linalg", "numpy.fft", "scipy.special", "scipy.fft")
_IMPURE = ("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis")
STORING_METHODS = frozenset(
    ["byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "setflags", "sort"]
)
"""The methods of arrays that change them."""
_OF_VALUES = (str, bytes, int, float, complex, bool)


def effects_of(target: Any) -> Effects:
    """What is known of a callee, whatever it is given."""
    found = _known(getattr(target, "__module__", None), getattr(target, "__name__", None), target)
    if found is not None:
        return found
    owner = getattr(target, "__self__", None)
    if isinstance(target, np.ufunc) or isinstance(owner, np.ufunc | np.ndarray):
        return _LETS_GO
    if type(owner) in _OF_VALUES:  # "".join
        return _LOOKS
    if isinstance(target, type):
        return UNKNOWN
    package = str(getattr(target, "__module__", None) or type(owner).__module__).partition(".")[0]
    return _PACKAGES.get(package, UNKNOWN)


def _known(module: str | None, name: str | None, target: Any) -> Effects | None:
    """The entry of the table that stands for this very object."""
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    public = module.removeprefix("_")
    found = _entries().get((public, name))
    return found if found is not None and getattr(sys.modules.get(public), name, None) is target else None


@functools.cache
def _entries() -> dict[tuple[str, str], Effects]:
    return {
        (module, name): effects
        for module, kinds in _TABLE.items()
        for effects, names in kinds.items()
        for name in names.split()
    }


def named(within: str | None = "builtins", /, **wanted: bool | str) -> frozenset[str]:
    """The names in a module, or in all, of what has these effects, as `named(keeps=False)`."""
    return frozenset(
        name
        for (module, name), effects in _entries().items()
        if within in (None, module) and all(getattr(effects, effect) == value for effect, value in wanted.items())
    )


def builtin_functions(**wanted: bool | str) -> frozenset[Any]:
    """The same as functions and classes."""
    return frozenset(getattr(builtins, name) for name in named(**wanted))


MADE = {name: effects.makes for (_, name), effects in _entries().items() if effects.makes}
"""What is made, by the names of what makes it."""
MAKERS = frozenset(name for name, kind in MADE.items() if kind not in ("iterator", "function"))


def is_pure(target: Any, count: int, keywords: Sequence[str]) -> bool:
    """Is it known that a function changes none of its arguments, when called with so many and these keywords?"""
    if isinstance(target, np.ufunc):
        return "out" not in keywords and count <= target.nin
    if target is np.random.default_rng:
        return True
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", None)
    known = _known(module, name, target)
    if known is not None:
        return not (known.stores or known.lazy) and (not keywords or not (known.keeps_items or known.calls))
    owner = getattr(target, "__self__", None)
    if isinstance(owner, np.ufunc):
        return name != "at" and count <= 2 and "out" not in keywords  # operands, or an array and its axis
    if type(owner) is np.ndarray:  # the argument behind the first may be the array for the result
        return count <= 1 and not name.startswith("__") and name not in STORING_METHODS and "out" not in keywords
    if module not in _PURE_MODULES or name in _IMPURE:
        return False
    return not any(_names_memory(one, target) for one in (*_parameters(target)[:count], *keywords))


def _names_memory(parameter: str, target: Any) -> bool:
    """Does a parameter of this name say where results go, or that operands may be overwritten?"""
    return parameter == "out" or parameter.startswith("overwrite") or (parameter == "copy" and target is np.nan_to_num)


@functools.cache
def _parameters(target: Any) -> tuple[str, ...]:
    """The names of the parameters of a function of a library; none where it does not say them."""
    try:
        return tuple(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return ()


def is_fresh(target: Any, count: int, keywords: Sequence[str]) -> bool:
    """Is it known that what a function gives shares no memory with anything, when called like that?"""
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", None)
    if module not in _FRESH_MODULES or name in ("matrix_transpose", "diagonal"):
        return False
    return "out" not in (*_parameters(target)[:count], *keywords)


def is_of_numpy(module: object) -> bool:
    """Is this the name of a module of NumPy's?"""
    return str(module).partition(".")[0] == "numpy"
