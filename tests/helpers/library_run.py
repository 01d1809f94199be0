"""Run a function as the library compiles it, through the typed IR's interpreter, and compare with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.base.errors import DeoptimizedError, UnsupportedError
from parakeet_py.call.compile import specialize_call
from parakeet_py.call.load import Knowledge, read_source
from parakeet_py.frontend import to_ssa_cached
from parakeet_py.signature.results import Result, ResultLeaf, ResultListOf, ResultStatic, ResultTuple
from parakeet_py.signature.specs import leaf_values
from parakeet_py.typed_ir.check import check_function
from parakeet_py.typed_ir.interpret import run_function
from parakeet_py.typed_ir.specialize.restarts import NeedObservation
from parakeet_py.typed_ir.specialize.specializer import Specialization


class HandedBack(Exception):
    """The function calls back into Python."""


def specialize(function: Any, args: Sequence[Any]) -> tuple[Specialization, list[Any]]:
    """The specialization of a call, and the leaves to run it with."""
    try:
        made = specialize_call(to_ssa_cached(function), function, args, Knowledge())
    except NeedObservation as need:
        raise HandedBack(str(need)) from None
    values = [read_source(function, one.source, args) for one in made.signature.hidden]
    return made, leaf_values(made.signature, [*args, *values])


def run(function: Callable[..., Any], *args: Any) -> Any:
    """Call through the interpreter."""
    made, leaves = specialize(function, args)
    check_function(made.function)
    with np.errstate(all="ignore"):
        results = run_function(made.function, leaves)
    return box(made.result, results)


def box(tree: Result, leaves: Sequence[Any]) -> Any:
    match tree:
        case ResultLeaf(index, "scalar", dtype, python):
            return np.asarray(leaves[index]).item() if python else np.dtype(dtype).type(leaves[index])
        case ResultLeaf(index):
            return leaves[index]
        case ResultListOf(leaf):
            return leaves[leaf.index].tolist()
        case ResultTuple(items, kind):
            made = [box(item, leaves) for item in items]
            return made if kind == "list" else tuple(made)
        case ResultStatic(value):
            return value
    raise AssertionError(tree)


def same(expected: Any, found: Any, ulps: float = 4, where: str = "result") -> None:
    """Types, dtypes, shapes and values agree: floats within some units in the last place of the largest value."""
    assert type(expected) is type(found), f"{where}: {type(found)}, not {type(expected)}: {found!r} {expected!r}"
    if isinstance(expected, tuple | list):
        assert len(expected) == len(found), where
        for position, (one, other) in enumerate(zip(expected, found, strict=True)):
            same(one, other, ulps, f"{where}[{position}]")
        return
    if not isinstance(expected, np.ndarray | np.generic | float | complex):
        assert expected == found, f"{where}: {found!r}, not {expected!r}"
        return
    a, b = np.asarray(expected), np.asarray(found)
    assert a.dtype == b.dtype, f"{where}: dtype {b.dtype}, not {a.dtype}"
    assert a.shape == b.shape, f"{where}: shape {b.shape}, not {a.shape}"
    if a.dtype.kind in "fc":
        finite = a[np.isfinite(a)]
        scale = float(np.abs(finite.astype("complex128")).max()) if finite.size else 0.0
        tolerance = ulps * float(np.finfo(a.dtype).eps)
        with np.errstate(all="ignore"):
            close = np.isclose(b, a, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
        assert close.all(), f"{where}:\n{b!r}\nnot\n{a!r}"
    else:
        assert np.array_equal(a, b), f"{where}:\n{b!r}\nnot\n{a!r}"


def copied(args: Sequence[Any]) -> list[Any]:
    """Arguments of equal value and layout."""
    return [_copied(arg) if isinstance(arg, np.ndarray) else arg for arg in args]


def _copied(array: Any) -> Any:
    """A copy with strides of the same kind."""
    if array.flags.c_contiguous or array.flags.f_contiguous or array.size == 0:
        return array.copy(order="K")
    base = array if array.base is None else array.base
    if not isinstance(base, np.ndarray) or not base.flags.owndata:
        return array.copy(order="K")
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, bytearray(base.tobytes("A")), offset, array.strides)


def agrees(
    function: Callable[..., Any],
    *args: Any,
    ulps: float = 4,
    compiled: bool = True,
    message: bool = True,
    runner: Callable[..., Any] = run,
) -> None:
    """A call gives what NumPy gives, or raises what it raises, and leaves its arguments the same.

    A certain error may be left to Python; with `compiled` nothing else may. `message`: errors say the same.
    """
    plain, own = copied(args), list(args)
    error: Exception | None = None
    expected = None
    try:
        with np.errstate(all="ignore"):
            expected = function(*plain)
    except Exception as raised:
        error = raised
    try:
        found = runner(function, *own)
    except (UnsupportedError, HandedBack) as reason:
        assert error is not None or not compiled, f"not compiled: {reason}"
        return
    except DeoptimizedError:
        return
    except Exception as raised:
        if error is None:
            raise
        assert type(raised) is type(error) or isinstance(error, type(raised)), f"{raised!r}, not {error!r}"
        assert not message or str(raised) == str(error), f"{raised}\nnot\n{error}"
        return
    assert error is None, f"{found!r} instead of {error!r}"
    same(expected, found, ulps)
    same(plain, own, 0, "argument")


NATIVE_CASES = 2  # of each function: compiling takes a tenth of a second


class Cases:
    """Functions with the arguments they are tried with."""

    def __init__(self) -> None:
        self.cases: dict[Callable[..., Any], list[tuple[tuple[Any, ...], dict[str, Any]]]] = {}

    def add(self, function: Callable[..., Any], *args: Any, **options: Any) -> None:
        """One more call; options as for `agrees`."""
        self.cases.setdefault(function, []).append((args, options))

    def each(self, function: Callable[..., Any], arguments: Sequence[Any], **options: Any) -> None:
        """One call for every argument."""
        for argument in arguments:
            self.add(function, argument, **options)

    def functions(self) -> list[Any]:
        return [pytest.param(function, id=function.__name__) for function in self.cases]

    def check_typed_ir(self, function: Callable[..., Any]) -> None:
        for args, options in self.cases[function]:
            _tell(agrees, function, args, options)

    def check_native(self, function: Callable[..., Any]) -> None:
        """A few cases, spread, by compiled code that calls back into Python for nothing."""
        chosen = [case for case in self.cases[function] if case[1].get("compiled", True)]
        compiled = accelerate(strict=True)(function)
        for args, options in chosen[:: max(1, -(-len(chosen) // NATIVE_CASES))]:
            _tell(agrees, function, args, {**options, "runner": lambda _, *own: compiled(*own)})


def _tell(check: Callable[..., None], function: Callable[..., Any], args: Sequence[Any], options: Any) -> None:
    """Name the arguments of a case that fails."""
    try:
        check(function, *copied(args), **options)
    except Exception as error:
        shown = ", ".join(f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else repr(a) for a in args)
        raise AssertionError(f"{function.__name__}({shown}): {error}") from error


def numbers(dtype: str, *shape: int, seed: int = 0) -> Any:
    """Numbers of both signs, if the dtype has them."""
    rng = np.random.default_rng([seed, *shape])
    values = rng.normal(size=shape) * 3
    made = values + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else values
    return (np.abs(made) if np.dtype(dtype).kind == "u" else made).astype(dtype)
