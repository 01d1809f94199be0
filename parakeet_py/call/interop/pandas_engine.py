"""`engine=` of pandas (3.0): `frame.apply(f, raw=True, engine=parakeet_py.accelerate)`, `series.map(f, engine=...)`.

pandas gives such an engine all of its data and the function. So not only the function is compiled, but the loop over
rows, columns or items that calls it, too. What the function is given, and what pandas makes of its results, is as with
pandas' own engine: rows and columns are views of an array, all results have the dtype of the first; items are scalars
of Python, and results of any type are put into a series.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np

from parakeet_py.base.errors import UnsupportedError

Function = Callable[..., Any]
MANY = 10_000
"""Calls of a function that take some ms in Python."""


class PandasEngine:
    """What pandas looks for under the name `__pandas_udf__`; `decorator` is `accelerate`, perhaps with options."""

    @staticmethod
    def map(
        data: Any, func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], decorator: Function, skip_na: bool
    ) -> Any:
        """The results for the items of a series."""
        import pandas

        if not isinstance(data, pandas.Series) or not _is_numeric(data.dtype):
            return data.map(_bound(decorator(func), args, kwargs), na_action="ignore" if skip_na else None)
        known = data.notna() if skip_na else np.ones(len(data), bool)
        results = _run(_loop(decorator, func, kwargs, over_items), data[known].to_list(), args)
        if not known.all():
            found = iter(results)
            results = [next(found) if one else item for item, one in zip(data.to_list(), known, strict=True)]
        return pandas.Series(results, index=data.index, name=data.name)

    @staticmethod
    def apply(
        data: Any, func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], decorator: Function, axis: Any
    ) -> Any:
        """The results for the columns (axis 0) or rows (axis 1) of a frame, or of an array (`raw=True`)."""
        if not isinstance(data, np.ndarray):  # the function takes series, which are not compiled
            return data.apply(decorator(func), axis=axis, args=args, **kwargs)
        by_rows = axis in (1, "columns")
        if _is_numeric(data.dtype):
            results = _run(_loop(decorator, func, kwargs, over_rows), data if by_rows else data.T, args)
            if results is not None:
                return results if by_rows else np.moveaxis(results, 0, -1)

        def whole(row: Any) -> Any:
            result = func(row, *args, **kwargs)
            return np.array(result, dtype=object) if isinstance(result, str) else result

        return np.apply_along_axis(whole, int(by_rows), data)


def over_rows(function: Function) -> Function:
    """The loop over the first axis of an array, as that of `np.apply_along_axis`; it gives None if it finds texts."""

    def rows(values: Any, *args: Any) -> Any:
        first = function(values[0], *args)
        if isinstance(first, str):
            return None
        results = np.zeros((len(values), *np.shape(first)), np.asanyarray(first).dtype)
        results[0] = first
        for i in range(1, len(values)):
            results[i] = function(values[i], *args)
        return results

    return rows


def over_items(function: Function) -> Function:
    """The loop over the items of a list."""

    def items(values: list[Any], *args: Any) -> list[Any]:
        return [function(value, *args) for value in values]

    return items


def _run(loop: Function, values: Any, args: tuple[Any, ...]) -> Any:
    """The results of a loop; one over many values is compiled before, as an engine has been asked for."""
    if len(values) >= MANY and hasattr(loop, "compile"):
        with suppress(UnsupportedError):
            loop.compile(values, *args)
    return loop(values, *args)


def _loop(decorator: Function, function: Function, kwargs: Mapping[str, Any], over: Function) -> Function:
    if not kwargs:
        return _known(decorator, function, over)

    def with_keywords(value: Any, *args: Any) -> Any:
        return function(value, *args, **kwargs)

    return _made(decorator, function, over(with_keywords))


@lru_cache(maxsize=64)
def _known(decorator: Function, function: Function, over: Function) -> Function:
    """The accelerated loop for a function; for one that is applied again, that of before."""
    return _made(decorator, function, over(function))


def _made(decorator: Function, function: Function, loop: Function) -> Function:
    loop.__name__ = getattr(function, "__name__", loop.__name__)
    loop.__qualname__ = getattr(function, "__qualname__", loop.__qualname__)
    made: Function = decorator(loop)
    return made


def _bound(function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Function:
    return partial(function, *args, **kwargs) if args or kwargs else function


def _is_numeric(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biufc"
