"""Routines: compiled inner loops of NumPy that our code calls directly, as it calls BLAS for products.

NumPy sorts, solves and transforms through C functions that know nothing of Python: the sorting functions of a dtype and
the inner loops of generalized ufuncs (`np.linalg` calls LAPACK in them, `np.fft` pocketfft). A `Routine` operator names
one of them; results have the very bits NumPy gives, down to which of equal elements comes first.

| name | written | read |
|---|---|---|
| `sort.<kind>` | lines, in place | |
| `argsort.<kind>` | places in every line, in whose order the elements are taken to stand | lines |
| `linalg.<gufunc>`, `fft.<gufunc>` | the outputs of the gufunc | its inputs |
| `gufunc.matmul` | the products of matrices, with all threads of the BLAS (of exact code) | matrices |
| `linalg.cholesky_lo_blocked` | the factors, of large matrices as `llvm/codegen/cholesky.py` adds them up | matrices |
| `linalg.qr_r_raw` | the matrices, in place, and the factors of their reflections | |
| `ufunc.<ufunc>`, `special.<ufunc>` | a line of results | lines of operands (of exact code, see `exact_loops`) |

The kinds are quicksort, heapsort and stable. Every array has one axis more than the routine's own: the first counts
lines or the matrices of a stack, has the same extent in all of them, and may have stride 0. Lines that are sorted, and
places, are contiguous; other arrays need not be. Those of `linalg` tell of failure through the floating-point flag
"invalid", which is their result: true if a matrix was singular, or the like.

What a routine means is written here, in NumPy itself, for the interpreters; `numpy_loops` finds the functions.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from parakeet_py.base import exact_loops
from parakeet_py.base.fast_dataclass import record

MODULES = {"gufunc": "numpy", "linalg": "numpy.linalg._umath_linalg", "fft": "numpy.fft._pocketfft_umath"}
IN_PLACE = frozenset({"linalg.qr_r_raw"})  # gufuncs that write to their inputs
BLOCKED = {"linalg.cholesky_lo_blocked": "linalg.cholesky_lo"}  # what may be computed in another order than a gufunc
KINDS = ("quicksort", "heapsort", "stable")  # in the order of NumPy's tables


@record
class Shapes:
    """The axes of a routine's arrays (after the first), outputs and inputs, each as numbers of `sizes` of them."""

    sizes: int
    outs: tuple[tuple[int, ...], ...]
    ins: tuple[tuple[int, ...], ...]


def family(name: str) -> str:
    """What kind of routine it is: sort, argsort, linalg, fft, or a family of ufuncs."""
    return name.partition(".")[0]


def reports(name: str) -> bool:
    """Whether a routine has a result: whether it has failed."""
    return family(name) == "linalg"


def on_own_threads(name: str) -> bool:
    """Whether a routine may be left to share its work between threads: those that call LAPACK or the BLAS."""
    return family(name) in ("linalg", "gufunc")


def gufunc(name: str) -> np.ufunc | None:
    """The ufunc, mostly a generalized one, that a routine is a loop of; None if this NumPy has none of that name."""
    module, _, own = BLOCKED.get(name, name).partition(".")
    if module in exact_loops.FAMILIES:
        return exact_loops.ufunc_named(name)
    try:
        found = getattr(importlib.import_module(MODULES[module]), own, None)
    except ImportError:
        return None
    return found if isinstance(found, np.ufunc) and found.signature else None


@lru_cache(maxsize=256)
def loop_number(name: str, dtypes: tuple[str, ...]) -> int | None:
    """Which loop of its gufunc is for these dtypes (of inputs, then outputs); None if none is."""
    found = gufunc(name)
    chars = [np.dtype(dtype).char for dtype in dtypes]
    if found is None or len(chars) != found.nargs:
        return None
    wanted = f"{''.join(chars[: found.nin])}->{''.join(chars[found.nin :])}"
    same = {"l": "lq", "q": "lq"}
    for number, types in enumerate(found.types):
        if len(types) == len(wanted) and all(b in same.get(a, a) for a, b in zip(types, wanted, strict=True)):
            return number
    return None


@lru_cache(maxsize=256)
def shapes(name: str) -> Shapes:
    """The axes of a routine's arrays."""
    if family(name) in ("sort", "argsort"):
        return Shapes(1, ((0,),), ((0,),) if family(name) == "argsort" else ())
    found = gufunc(name)
    assert found is not None
    if found.signature is None:
        return Shapes(0, ((),), ((),) * found.nin)
    sizes: dict[str, int] = {}
    sides = []
    for side in found.signature.replace(" ", "").replace("?", "").split("->"):
        arrays = side[1:-1].split("),(")
        sides.append(
            tuple(tuple(sizes.setdefault(own, len(sizes)) for own in array.split(",") if own) for array in arrays)
        )
    if name in IN_PLACE:
        return Shapes(len(sizes), (*sides[0], *sides[1]), ())
    return Shapes(len(sizes), sides[1], sides[0])


def run(name: str, outs: Sequence[Any], ins: Sequence[Any]) -> bool:
    """Do what a routine does to NumPy arrays; gives whether it has failed."""
    kind: Any = name.partition(".")[2]
    if family(name) == "sort":
        outs[0].sort(axis=-1, kind=kind)
        return False
    if family(name) == "argsort":
        (places,), (lines,) = outs, ins
        found = np.take_along_axis(lines, places, -1).argsort(axis=-1, kind=kind)
        places[...] = np.take_along_axis(places, found, -1)
        return False
    loop = gufunc(name)
    assert loop is not None
    failed = []
    with np.errstate(all="ignore", invalid="call" if reports(name) else "ignore", call=lambda *_: failed.append(True)):
        given = [*ins, *outs]
        loop(*given[: loop.nin], out=tuple(given[loop.nin :]), casting="no")
    return bool(failed)
