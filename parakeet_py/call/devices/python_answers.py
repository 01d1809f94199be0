"""Calls on Dask arrays that tasks have given up: Python does them, on arrays that are computed in one place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base.errors import ClusterWarning, DeoptimizedError, advised
from parakeet_py.hybrid.devices.device_detection import items_of, leaves_of
from parakeet_py.signature.device_classes import class_is_of_dask
from parakeet_py.signature.results import Result, taken_apart


class PythonAnswer:
    """Does a call once more where a task has found that only Python can; travels with the graph.

    Parameters
    ----------
    function : the accelerated function, which knows how to give calls on NumPy arrays to Python
    args : in positional form; Dask arrays as they were before the call
    tree : what was said of the result
    limit : bytes of arguments that may be put together
    wanted : what is asked for: leaves of the result by number, or arguments as they are afterwards
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        tree: Result,
        limit: int,
        wanted: Sequence[tuple[int | None, Any]],
    ) -> None:
        self.function, self.tree, self.limit = function, tree, limit
        before = {id(one): one.copy() for one in leaves_of(args) if class_is_of_dask(type(one))}
        self.lazy = list(before.values())
        self.args = tuple(exchanged(arg, before) for arg in args)
        arrays = [id(one) for one in _arrays(args)]
        self.wanted = [(leaf, None if array is None else arrays.index(id(array))) for leaf, array in wanted]

    def __call__(self) -> list[Any]:
        """What is wanted, None for what the result does not show.

        Raises
        ------
        DeoptimizedError
            The arguments are too large to be put together.
        """
        nbytes = sum(array.nbytes for array in self.lazy)
        name = getattr(self.function, "__name__", "a function")
        if nbytes > self.limit:
            raise DeoptimizedError(
                f"only Python can go on with {name}, and its arguments have {nbytes} bytes, more than "
                f"gather_limit={self.limit}"
            )
        text = f"only Python can go on with {name}: {nbytes} bytes of its arguments are gathered in one place"
        warnings.warn(ClusterWarning(advised(text)), stacklevel=2)
        known = {id(one): np.array(value) for one, value in zip(self.lazy, _computed(self.lazy), strict=True)}
        known |= {id(one): one.copy() for one in _arrays(self.args) if isinstance(one, np.ndarray)}
        args = tuple(exchanged(arg, known) for arg in self.args)
        leaves = taken_apart(self.tree, settings.on_cpu(self.function, args))
        arrays = _arrays(args)
        return [arrays[at] if at is not None else leaves.get(-1 if leaf is None else leaf) for leaf, at in self.wanted]


def _arrays(args: Sequence[Any]) -> list[Any]:
    """The arrays among arguments, in containers too, in order."""
    return [one for one in leaves_of(args) if isinstance(one, np.ndarray) or class_is_of_dask(type(one))]


def _computed(lazy: Sequence[Any]) -> Sequence[Any]:
    """The values of Dask arrays, inside a task: a worker asks the scheduler that it works for."""
    import dask

    try:
        from distributed import get_worker, worker_client

        get_worker()
    except (ImportError, ValueError):
        found: Sequence[Any] = dask.compute(*lazy, scheduler="sync")
        return found
    with worker_client() as client:
        return tuple(client.gather(client.compute(list(lazy))))


def exchanged(value: Any, known: dict[int, Any], array: Callable[[Any], Any] = lambda value: value) -> Any:
    """A value with others for some arrays, in containers too."""
    if id(value) in known:
        return known[id(value)]
    if type(value) is np.ndarray:
        return array(value)
    if isinstance(value, tuple) and items_of(value):
        items = [exchanged(item, known, array) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is list:
        return [exchanged(item, known, array) for item in value]
    if type(value) is dict:
        return {name: exchanged(item, known, array) for name, item in value.items()}
    return value
