"""Small typed programs for the tests of lowering, and how they are run through both interpreters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parakeet_py.base.types import PYINT, Array, Scalar, Type
from parakeet_py.imp import ir as imp
from parakeet_py.imp.check import check_function
from parakeet_py.imp.interpret import run_function as run_imp
from parakeet_py.imp.lower.function import lower
from parakeet_py.imp.print import format_function
from parakeet_py.typed_ir.interpret import run_function as run_typed
from parakeet_py.typed_ir.ir import Function, Operand, Var
from parakeet_py.typed_ir.writer import Writer


def array(name: str, rank: int, dtype: str = "float64", layout: str = "C") -> Var:
    return Var(name, Array(dtype, rank, layout))


def scalar(name: str, dtype: str = "int64") -> Var:
    return Var(name, PYINT if dtype == "int64" else Scalar(dtype))


def function(params: Sequence[Var], body: Callable[..., Sequence[Operand]]) -> Function:
    """A function whose body `body(writer, *params)` writes and whose results it returns."""
    writer = Writer()
    return Function("f", tuple(params), writer.block(*body(writer, *params)))


def outcome(run: Callable[..., list[Any]], code: Any, args: Sequence[Any], **options: Any) -> tuple[Any, list[Any]]:
    """Results or the exception, and the arguments afterwards."""
    own = copy.deepcopy(list(args))
    try:
        return run(code, own, **options), own
    except (ValueError, IndexError, ZeroDivisionError, OverflowError) as error:
        return (type(error), str(error)), own


def agree(code: Function, *args: Any, rtol: float = 0.0, opaque: Any = None, untouched: bool = False) -> imp.Function:
    """Lower, and compare both interpreters for several numbers of ranges.

    With `untouched` the loops leave the arguments as they were (where the typed IR stores until it fails).
    """
    lowered = lower(code)
    check_function(lowered)
    wanted = outcome(run_typed, code, args, opaque=opaque)
    if untouched:
        wanted = wanted[0], list(args)
    for ranges in (1, 2, 3, 7):
        got = outcome(run_imp, lowered, args, ranges=ranges, opaque=opaque)
        _same(got, wanted, rtol, format_function(lowered))
    return lowered


def _same(got: Any, want: Any, rtol: float, text: str) -> None:
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want), text
        for one, other in zip(got, want, strict=True):
            _same(one, other, rtol, text)
    elif isinstance(want, np.ndarray | np.generic):
        assert np.asarray(got).dtype == want.dtype and np.shape(got) == np.shape(want), text
        np.testing.assert_allclose(got, want, rtol=rtol, err_msg=text)
    else:
        assert got == want or (got != got and want != want), text


def statements(code: imp.Function, kind: Type | Any) -> list[Any]:
    """All statements of a class, in order."""
    return [statement for statement in imp.walk(code.body) if isinstance(statement, kind)]


def regions(code: imp.Function) -> list[str]:
    """The names of the parallel regions, in order."""
    return [region.name for region in statements(code, imp.Parallel)]


def made(code: imp.Function, space: str = "heap") -> int:
    """How many places make memory."""
    lets = statements(code, imp.Let)
    return sum(isinstance(let.rhs, imp.NewArray) and let.rhs.space == space for let in lets)
