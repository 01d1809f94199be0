"""Calls with arrays of xarray: elementwise functions run on what these hold, and the results get their labels.

What Python does with a `DataArray` goes by labels: operands are aligned, methods skip NaN, functions of NumPy's may
lose the labels. A compiled function goes by places. Both mean the same where an element of the result depends on
nothing but the elements at the same place in arguments with the same labels. That the function is so is seen in its IR,
and what labels, name and attributes the results get is what Python gives for a single element. Everything else is
Python's, as are small arrays of memory: it takes as long to look at labels as to compute.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from parakeet_py.base.errors import NoSourceError, UnsupportedError
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.types import Array
from parakeet_py.signature.device_classes import class_is_of_dask
from parakeet_py.typed_ir.passes.analysis.elementwise import is_elementwise

if TYPE_CHECKING:
    from parakeet_py.call.devices.caller import Dispatcher

LARGE = 1 << 20  # bytes
PAYS = 0.5  # seconds in Python after which a function is compiled
_ASKS = frozenset(("isinstance", "issubclass", "type", "hasattr", "getattr", "callable"))
_NUMBERS = (bool, int, float, complex, np.generic)


_spent: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


class _NotLabelled:
    """What a call gives that is left to Python."""


NOT_LABELLED = _NotLabelled()


@hidden
def call(dispatcher: Dispatcher, normal: tuple[Any, ...]) -> Any:
    """The results of a call with a `DataArray`, or `NOT_LABELLED`."""
    if not _are_alike(normal) or not _ASKS.isdisjoint(dispatcher.function.__code__.co_names):
        return NOT_LABELLED
    labelled = [value for value in normal if not isinstance(value, _NUMBERS)]
    of_dask = any(class_is_of_dask(type(one.data)) for one in labelled)
    spent = _spent.get(dispatcher, 0.0)
    if dispatcher.config().pays and not of_dask and spent < PAYS:
        start = time.perf_counter()
        result = dispatcher.run_python(normal)
        _spent[dispatcher] = spent + time.perf_counter() - start
        return result
    held = tuple(value if isinstance(value, _NUMBERS) else value.data for value in normal)
    if not _is_elementwise(dispatcher, held):
        return NOT_LABELLED
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            shown = dispatcher.function(*(one if isinstance(one, _NUMBERS) else _element(one) for one in normal))
    except Exception:
        return NOT_LABELLED
    several = type(shown) is tuple
    wanted = shown if several else (shown,)
    if not all(type(one) is type(labelled[0]) and one.dims == labelled[0].dims for one in wanted):
        return NOT_LABELLED
    results = (dispatcher.instance if dispatcher.inner is None else dispatcher.inner)(*held)
    found = [_labelled(*pair, labelled[0]) for pair in zip(wanted, results if several else (results,), strict=True)]
    return tuple(found) if several else found[0]


def _are_alike(normal: Sequence[Any]) -> bool:
    """Whether arguments are numbers and arrays of the same labels, of which some are large or Dask's."""
    labelled = [value for value in normal if not isinstance(value, _NUMBERS)]
    first = labelled[0]
    if not all(type(one) is type(first) and isinstance(one.dtype, np.dtype) for one in labelled) or not first.dims:
        return False
    values = [one.variable.data for one in labelled]
    dask = [class_is_of_dask(type(value)) for value in values]
    if not all(of_dask or type(value) is np.ndarray for of_dask, value in zip(dask, values, strict=True)):
        return False
    if not any(dask) and sum(value.nbytes for value in values) < LARGE:
        return False
    if not all(one.shape == first.shape and 0 not in one.shape for one in labelled):
        return False
    others = [one for one in labelled if one is not first]  # to compare labels takes longest
    return all(one.dims == first.dims and one.coords.identical(first.coords) for one in others)


def _is_elementwise(dispatcher: Dispatcher, held: tuple[Any, ...]) -> bool:
    standing: Any = nullcontext()
    if any(class_is_of_dask(type(value)) for value in held):
        from parakeet_py.call.devices.stand_ins import stand_ins

        standing = stand_ins(held)
    try:
        with standing:
            compiled = dispatcher.compiled_for_device(held, dispatcher.signature(held))
    except (UnsupportedError, NoSourceError, ValueError):
        return False
    made = compiled.specialization
    arrays = sum(isinstance(param.type, Array) for param in compiled.unfused.params)
    alone = arrays == sum(not isinstance(value, _NUMBERS) for value in held)  # there are no others, in globals
    return alone and not made.opaque_sites and is_elementwise(compiled.unfused)


def _element(array: Any) -> Any:
    """An array of one element, with the labels of the first one."""
    first = array.isel(dict.fromkeys(array.dims, slice(0, 1)))
    return first.copy(data=np.ones(first.shape, first.dtype))


def _labelled(shown: Any, values: Any, like: Any) -> Any:
    """A result with labels as Python gives them."""
    made = like.copy(deep=False, data=values).drop_vars([name for name in like.coords if name not in shown.coords])
    made.name, made.attrs, made.encoding = shown.name, dict(shown.attrs), dict(shown.encoding)
    return made
