"""Scalars of the host part in tasks: arithmetic, casts and checks of numbers that other tasks give."""

from __future__ import annotations

from typing import Any

import numpy as np

from parakeet_py.hybrid.plan.host_scalars import elementary
from parakeet_py.typed_ir import semantics
from parakeet_py.typed_ir.interpret import format_failure
from parakeet_py.typed_ir.ir import ELEMENTARY, Failure


def kept(value: Any, dtype: str) -> Any:
    """A scalar as host code keeps it: Python's own int or bool, else NumPy's."""
    made = semantics.scalar(value, dtype)
    return made.item() if dtype in ("int64", "bool") else made


def primitive(name: str, dtypes: tuple[str, ...], result: str, *args: Any) -> Any:
    """A scalar primitive of the host part."""
    values = [semantics.scalar(arg, dtype) for arg, dtype in zip(args, dtypes, strict=True)]
    if name in ELEMENTARY and dtypes[0].startswith("float"):
        return kept(elementary(name, values), result)
    return kept(semantics.evaluate(name, values), result)


def converted(given: str, result: str, value: Any) -> Any:
    """A cast of the host part."""
    return kept(semantics.convert(semantics.scalar(value, given), result), result)


def element(chunk: Any, at: tuple[int, ...], dtype: str) -> Any:
    """An element that the host part loads."""
    return kept(np.asarray(chunk)[at], dtype)


def checked(failure: Failure, kinds: tuple[str, ...], before: Any, condition: Any, *args: Any) -> bool:
    """A check of the host part, after the one `before` it: raises what it stands for."""
    if not condition:
        raise format_failure(
            failure,
            [
                np.float64(arg) if kind.startswith("float") else np.int64(arg)
                for arg, kind in zip(args, kinds, strict=True)
            ],
        )
    return True


def as_array(value: Any, dtype: str) -> Any:
    """A scalar as an array without axes."""
    return np.asarray(value, dtype)


def summed(*values: Any) -> int:
    """Counts, added up."""
    return sum(int(value) for value in values)
