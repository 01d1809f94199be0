"""Python modules of exported libraries, called in a process that has NumPy but neither the compiler nor LLVM."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.export import link
from parakeet_py.export.c_source import memory_of
from parakeet_py.export.python_module import literal
from tests.unit.export import run_modules
from tests.unit.export.functions import CALLS, by_name, copied, depth, laplace, power, summary

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64" or link.compiler() is None, reason="nothing to link with"
)
NOT_IN_PYTHON = {power: (10, 30), depth: (100_000,)}  # ints that leave 64 bits, recursion: Python has other limits
NAMED: dict[Callable[..., Any], list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    by_name: [((np.ones(3),), {"scale": 3.0}), ((np.ones(3), 2.0), {})],
    # Code for a long last axis takes short ones, too.
    summary: [
        *(((np.arange(12.0).reshape(4, 3),), {}), ((np.arange(20, dtype=np.int32).reshape(10, 2),), {})),
        # Code for any strides takes rows, whatever their order.
        *(((np.arange(24.0).reshape(4, 6)[::-1],), {}), ((np.arange(24.0).reshape(4, 6)[1:, 1:5],), {})),
        ((np.arange(24.0).reshape(4, 6)[::-1, ::-1],), {}),
    ],
    laplace: [((np.arange(24.0).reshape(6, 4) ** 2,), {})],
}


def exported(folder: Path, function: Callable[..., Any], calls: list[tuple[Any, ...]], **settings: Any) -> None:
    made = accelerate(function).export(folder, *calls[0], also=calls[1:], **settings)
    assert made.library is not None and made.library.exists()


def laid_out(array: np.ndarray) -> Any:
    """How an array is pickled such that it keeps its strides."""
    low, memory = memory_of(array)
    return np.ndarray, (array.shape, array.dtype, bytearray(memory), low, array.strides)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, Any]]]:
    """For each function, what calls of its library and of itself have given."""
    folder = tmp_path_factory.mktemp("modules")
    calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
    for function, some in CALLS.items():
        distinct = some[:1] if function in NOT_IN_PYTHON else some
        exported(folder, function, distinct, target="x86-64-v2")
        calls += [(function, args, {}) for args in some]
        calls += [(function, args, named) for args, named in NAMED.get(function, [])]
    shape = [(function.__name__, args, named) for function, args, named in calls]
    with (folder / "calls.pickle").open("wb") as file:
        pickler = pickle.Pickler(file)
        pickler.dispatch_table = {np.ndarray: laid_out}
        pickler.dump(shape)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, run_modules.__file__, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = pickle.loads((folder / "results.pickle").read_bytes())
    made: dict[str, list[tuple[Any, Any]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (function, args, named), got in zip(calls, found, strict=True):
            if NOT_IN_PYTHON.get(function) == args:
                wanted: Any = None
            else:
                wanted = run_modules.outcome(function, copy.deepcopy(args), named)
            made.setdefault(function.__name__, []).append((got, wanted))
    return made


def same(left: Any, right: Any) -> None:
    """Values of the same types; floats may differ in the last bits."""
    assert type(left) is type(right)
    if isinstance(right, tuple | list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            same(one, other)
    elif isinstance(right, dict):
        assert list(left) == list(right)
        same(list(left.values()), list(right.values()))
    elif isinstance(right, np.ndarray | np.generic):
        assert left.dtype == right.dtype and left.shape == right.shape
        np.testing.assert_allclose(left, right, rtol=1e-14 if left.dtype.itemsize >= 8 else 1e-6)
    elif isinstance(right, float | complex):
        assert left == pytest.approx(right, rel=1e-14, nan_ok=True)
    else:
        assert left == right


@pytest.mark.parametrize("name", [function.__name__ for function in CALLS])
def test_modules_behave_like_the_functions(outcomes: dict[str, list[tuple[Any, Any]]], name: str) -> None:
    for got, wanted in outcomes[name]:
        if wanted is not None:
            same(got, wanted)


def test_ints_beyond_64_bits_are_errors(outcomes: dict[str, list[tuple[Any, Any]]]) -> None:
    kind, error, text, _ = outcomes["power"][1][0]
    assert (kind, error) == ("raised", "OverflowError") and "64 bits" in text


def test_recursion_ends_in_an_error(outcomes: dict[str, list[tuple[Any, Any]]]) -> None:
    kind, error, _, _ = outcomes["depth"][1][0]
    assert (kind, error) == ("raised", "RecursionError")


def load(folder: Path, name: str) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_other_types_are_refused_with_what_there_is(tmp_path: Path) -> None:
    exported(tmp_path, copied, [(np.zeros(5), np.arange(5.0))], target="x86-64-v2")
    function = load(tmp_path, "copied")
    line = np.arange(9.0)
    with pytest.raises(TypeError) as error:
        function(line[:5].astype(np.float32), line[:5])
    assert str(error.value) == (
        "copied: no exported signature is for (float32[5], float64[5]); there are (float64[1 axis], float64[1 axis])"
    )
    with pytest.raises(TypeError, match="'to' and 'source' overlap"):
        function(line[:5], line[2:7])
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        function(line)
    fixed = np.arange(5.0)
    fixed.flags.writeable = False
    target = np.zeros(5)
    function(target, fixed)  # nothing is stored there
    assert target.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]
    with pytest.raises(TypeError, match=r"for \(float64\[5\] \(read-only\), float64\[5\]\)"):
        function(fixed, target)


def test_keyword_arguments_are_exported(tmp_path: Path) -> None:
    line, lows = np.ones(3), {"shift": 2, "kind": "low"}
    made = accelerate(by_name).export(
        tmp_path, line, kwargs=lows, also=[(line, 3, 0.5, {"shift": 1})], target="x86-64-v2"
    )
    assert made.library is not None
    function = load(tmp_path, "by_name")
    for args, named in ([(line,), lows], [(line * 4, 2, 0.25), {}], [(), {"a": line, "scale": 1.5, "shift": 0}]):
        same(function(*args, **named), by_name(*args, **named))


@pytest.mark.parametrize("value", [np.float32(0.1), np.complex64(1 - 2j), np.bool_(True), np.uint64(2**64 - 1)])
def test_defaults_that_are_numpy_scalars_are_written_down(value: Any) -> None:
    again = eval(literal(value), {"np": np})
    assert type(again) is type(value) and again == value


def test_overlapping_arguments_are_a_signature(tmp_path: Path) -> None:
    line = np.arange(9.0)
    apart, together = (np.zeros(5), np.arange(5.0)), (line[:5], line[2:7])
    exported(tmp_path, copied, [apart, together], target="x86-64-v2")
    function = load(tmp_path, "copied")
    for first in (2, 0, 4):
        ours, numpys = np.arange(9.0), np.arange(9.0)
        function(ours[:5], ours[first : first + 5])
        copied(numpys[:5], numpys[first : first + 5])
        assert ours.tolist() == numpys.tolist()
    target = np.zeros(5)
    function(target, np.arange(5.0))
    assert target.tolist() == [0, 0, 1, 2, 3]
