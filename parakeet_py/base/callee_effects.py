"""What is known of functions that are not compiled: what they do with what they are given.

There is one table, and each part of the compiler that has to know what a callee does asks it:

    stores        may it change an array that it is given?
    keeps         may it keep a list, a dict or a function that it is given, or give it back, in whatever form?
    keeps_items   the same of the items: `list(rows)` lets go of `rows` itself, and keeps each row
    lazy          does it go through what it is given, or call it, only when its result is used?

A callee that is not in the table stores and keeps: every foreign function is taken for one that does, those of the
standard library included. (`functools.partial`, `types.MappingProxyType`, `iter`, `memoryview`, `collections.ChainMap`
are made for keeping.) Entries stand for objects, never for spellings: a function of another kind under the name of one
in the table is not known. The frontend has only names, and takes those in `named` for the builtins they usually are;
the specializer looks at the object before it gives a container to it (`owned_containers` of the specializer).
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record


@record
class Effects:
    """See the top of this file; `items_only`: it looks at nothing but items, so that any sequence of them will do."""

    stores: bool = True
    keeps: bool = True
    keeps_items: bool = True
    lazy: bool = False
    items_only: bool = False


UNKNOWN = Effects()
_LOOKS = Effects(stores=False, keeps=False, keeps_items=False)
_COUNTS = Effects(stores=False, keeps=False, keeps_items=False, items_only=True)
_TAKES_ITEMS = Effects(stores=False, keeps=False, items_only=True)
_SHARES_ITEMS = Effects(stores=False, keeps=False)
_IS_LAZY = Effects(stores=False, lazy=True)
_LETS_GO = Effects(keeps=False, keeps_items=False)
_CALLS = Effects(keeps=False)

_TABLE: dict[str, dict[Effects, str]] = {
    "builtins": {
        _COUNTS: "all any len",
        _LOOKS: """abs ascii bin bool callable chr complex divmod float format hasattr hash hex int isinstance
            issubclass oct ord pow range repr round str type""",
        _TAKES_ITEMS: "dict frozenset list max min set sorted sum tuple",
        _SHARES_ITEMS: "bytes bytearray",
        _IS_LAZY: "enumerate filter iter map reversed zip",
        _LETS_GO: "print",
    },
    "bisect": {_LOOKS: "bisect bisect_left bisect_right"},
    "collections": {_TAKES_ITEMS: "Counter deque", _SHARES_ITEMS: "OrderedDict"},
    "copy": {_LOOKS: "deepcopy", _SHARES_ITEMS: "copy"},
    "functools": {_CALLS: "reduce"},
    "heapq": {_CALLS: "nlargest nsmallest", _IS_LAZY: "merge"},
    "itertools": {
        _IS_LAZY: """accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
            filterfalse groupby islice pairwise permutations product repeat starmap takewhile zip_longest""",
    },
    "json": {_LOOKS: "dumps"},
    "operator": {
        _LOOKS: "contains countOf eq ge gt indexOf is_ is_not le length_hint lt ne not_ truth",
        _SHARES_ITEMS: "add concat getitem mul",
    },
    "random": {_CALLS: "choice choices sample"},
    "statistics": {
        _LOOKS: "fmean geometric_mean harmonic_mean mean pstdev pvariance quantiles stdev variance",
        _SHARES_ITEMS: "median median_high median_low mode multimode",
    },
    "sys": {_LOOKS: "getsizeof"},
}
"""Functions and classes by module and name; what stands there when it is asked for is what is known."""

_PACKAGES: dict[str, Effects] = {
    "numpy": _CALLS,  # an array of objects keeps each item of a list
    "scipy": _LETS_GO,
    "math": _LOOKS,
    "cmath": _LOOKS,
}
"""What the functions of whole packages do, those of sub-packages included; classes are not known."""

_KEEPING = frozenset(
    {"frompyfunc", "vectorize", "seterrcall", "set_printoptions", "nditer", "ndenumerate", "broadcast"}
)
"""The exceptions in NumPy."""

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
    if package == "numpy" and getattr(target, "__name__", "") in _KEEPING:
        return UNKNOWN
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


def named(within: str | None = "builtins", **wanted: bool) -> frozenset[str]:
    """The names in a module, or in all, of what has these effects, as `named(keeps=False)`."""
    return frozenset(
        name
        for (module, name), effects in _entries().items()
        if within in (None, module) and all(getattr(effects, effect) == value for effect, value in wanted.items())
    )


def is_pure(target: Any, count: int, keywords: Sequence[str]) -> bool:
    """Is it known that a function changes none of its arguments, when called with so many and these keywords?"""
    if isinstance(target, np.ufunc):
        return "out" not in keywords and count <= target.nin
    if target is np.random.default_rng:
        return True
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", None)
    known = _known(module, name, target)
    if known is not None:
        return not (known.stores or known.lazy) and (not keywords or known is _LOOKS)
    owner = getattr(target, "__self__", None)
    if isinstance(owner, np.ufunc):
        return name != "at" and count <= 2 and "out" not in keywords  # operands, or an array and its axis
    if type(owner) is np.ndarray:
        return not name.startswith("__") and name not in STORING_METHODS and "out" not in keywords
    if module not in _PURE_MODULES or name in _IMPURE:
        return False
    return not any(keyword == "out" or keyword.startswith("overwrite") for keyword in keywords)


def is_fresh(target: Any, keywords: Sequence[str]) -> bool:
    """Is it known that what a function gives shares no memory with anything?"""
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", None)
    return module in _FRESH_MODULES and "out" not in keywords and name not in ("matrix_transpose", "diagonal")


def is_of_numpy(module: object) -> bool:
    """Is this the name of a module of NumPy's?"""
    return str(module).partition(".")[0] == "numpy"


def is_users(function: types.FunctionType) -> bool:
    """Is a Python function one of a program, of no library that is known here?"""
    package = (function.__module__ or "").partition(".")[0]
    return package == "__main__" or package not in (*sys.stdlib_module_names, "numpy", "scipy", "parakeet_py")
