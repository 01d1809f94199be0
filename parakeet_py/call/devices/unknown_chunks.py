"""Calls with Dask arrays of which some chunks have sizes that are not known, as selections have.

A function that does nothing but elementwise operations on one such array, and numbers, asks for no size: each chunk is
a call of its own, and the result has the same unknown chunks. Else sizes are computed, as by Dask's
`compute_chunk_sizes`, which an array keeps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.errors import ClusterWarning, NoSourceError, UnsupportedError, advised
from parakeet_py.base.frames.tracebacks import user_level
from parakeet_py.base.types import Array
from parakeet_py.call.devices.stand_ins import stand_ins
from parakeet_py.signature.device_classes import class_is_of_dask
from parakeet_py.signature.results import ResultLeaf
from parakeet_py.typed_ir.passes.analysis.elementwise import is_elementwise

if TYPE_CHECKING:
    from parakeet_py.call.devices.caller import Dispatcher

_NUMBERS = (bool, int, float, complex, np.generic)
EXTENT = 2  # of arrays that stand for those of unknown extents: one that is neither empty nor broadcast


def by_chunks(
    dispatcher: Dispatcher, function: Callable[..., Any], args: tuple[Any, ...], held: Sequence[Any]
) -> Any | None:
    """The result of a call, chunk by chunk, of arguments and of what the function holds besides (`held` has both); None
    if sizes of chunks are needed."""
    arrays = [value for value in args if not isinstance(value, _NUMBERS)]
    if len(arrays) != 1 or not class_is_of_dask(type(arrays[0])) or len(held) != len(args):
        return None
    try:
        with stand_ins(args, EXTENT):
            compiled = dispatcher.compiled_for_device(args, dispatcher.signature(args))
    except (UnsupportedError, NoSourceError):
        return None
    made, typed = compiled.specialization, compiled.unfused
    tree, alone = made.result, sum(isinstance(param.type, Array) for param in typed.params) == 1
    if made.opaque_sites or made.asks_classes or not alone or not is_elementwise(typed):
        return None
    if not isinstance(tree, ResultLeaf) or tree.kind != "array" or tree.view or tree.unit:
        return None
    import dask.array as da

    return da.map_blocks(function, *args, dtype=tree.dtype, meta=np.empty((0,) * arrays[0].ndim, tree.dtype))


def settle(dispatcher: Dispatcher, unknown: Sequence[Any]) -> None:
    """Compute the sizes of chunks that a call needs."""
    name = dispatcher.function.__qualname__
    shapes = ", ".join(dict.fromkeys(str(array.shape) for array in unknown))
    text = f"chunks of arrays of shape {shapes} have unknown sizes, which {name} asks for: they are computed"
    warnings.warn(ClusterWarning(advised(text)), stacklevel=user_level())
    for array in unknown:
        array.compute_chunk_sizes()
