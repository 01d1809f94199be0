"""What cannot be exported, and what the messages say."""

from __future__ import annotations

import os
import sys
from collections import namedtuple
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base import machine
from parakeet_py.export.errors import ExportError
from tests.unit.export.functions import LARGE, scaled

pytestmark = pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="not for this system")

Point = namedtuple("Point", "x y")
TABLE = np.zeros(4)


class Plain:
    def __init__(self, x: float) -> None:
        self.x = x

    def doubled(self) -> float:
        return 2.0 * self.x


def kept_by_python(a: Any) -> Any:
    return np.partition(a, 2)


def of_an_object(one: Any) -> Any:
    return one.x + 1.0


def a_field(one: Any) -> Any:
    return one["x"] * 2.0


def a_day_later(one: Any) -> Any:
    return one + np.timedelta64(1, "D")


def random_numbers(n: int) -> Any:
    return np.random.rand(n)


def of_numpys_own(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def order_of_equals(a: Any) -> Any:
    return np.argsort(a)


def a_named_tuple(a: Any) -> Any:
    return Point(a.min(), a.max())


def empty_lists(n: int) -> Any:
    return [[] for _ in range(n)]


def with_a_large_global(a: Any) -> Any:
    return a + LARGE


def stores_into_a_global(a: Any) -> None:
    TABLE[:] = a


def with_a_function(f: Any, x: float) -> Any:
    return f(x)


def with_a_default(a: Any, table: Any = TABLE) -> Any:
    return a + table


def struct(a: Any) -> Any:
    return a + 1


LINE = np.arange(4.0)


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (kept_by_python, (LINE,), "hands something back to Python"),
        (of_an_object, (Plain(1.0),), "one is Plain, a Python object that C callers cannot give"),
        (
            a_field,
            (np.zeros(2, [("x", "f8")]),),
            "one is an array of records, objects or foreign bytes, a Python object",
        ),
        (
            a_day_later,
            (np.zeros(2, "M8[D]"),),
            "one is an array of M8[D], a Python object that C callers cannot give",
        ),
        (of_an_object, (LINE.astype(">f8"),), "parakeet messages unusual-array"),
        (random_numbers, (3,), "draws random numbers"),
        (of_numpys_own, (np.eye(3), np.eye(3)), "a routine of NumPy's own (linalg.solve of float64, float64, float64)"),
        (
            order_of_equals,
            (LINE,),
            "an argsort whose order of equal elements is NumPy's choice\n    return np.argsort(a)",
        ),
        (a_named_tuple, (LINE,), "its result is an object of a class"),
        (
            empty_lists,
            (4,),
            "empty_lists(int) cannot be exported: a part of its result is made by Python (empty lists)",
        ),
        (with_a_large_global, (LARGE,), "LARGE is an array of 1,600,000 bytes that is no argument"),
        (stores_into_a_global, (LINE,), "it stores into TABLE, which is no argument"),
        (with_a_function, (abs, 2.0), "cannot be written down"),
        (with_a_function, (lambda x: x + 1, 2.0), "f is a function, which C callers cannot give"),
        (with_a_default, (LINE, LINE), "the default of table is ndarray, which a module cannot write down"),
        (struct, (LINE,), "'struct' cannot be the name of the module's function"),
    ],
)
def test_refused(tmp_path: Path, function: Any, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ExportError) as error:
        accelerate(function).export(tmp_path / "out", *args, target="x86-64-v2")
    assert message in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "x86-64-v9"}, "no target x86-64-v9; there are x86-64-v2, x86-64-v3, x86-64-v4"),
        ({"target": ","}, "no target is named; there are"),
        ({"threads": "many"}, "no threads 'many'; there are serial, pool, openmp"),
        ({"blas": "mkl"}, "no blas 'mkl'; there are none (products are loops) and cblas"),
        ({"name": "two words"}, "'two words' cannot be the name of a C library"),
        ({"name": "class"}, "'class' cannot be the name of the module's function"),
    ],
)
def test_settings_are_checked(tmp_path: Path, settings: Any, message: str) -> None:
    with pytest.raises(ExportError) as error:
        accelerate(scaled).export(tmp_path, LINE, **settings)
    assert message in str(error.value)


def test_what_is_no_function_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"functools.partial.* is a partial object: export a function that calls it"):
        accelerate(partial(np.power, 2.0)).export(tmp_path, 3.0)
    with pytest.raises(ExportError, match=r"is a bound method: export a function that calls it"):
        accelerate(Plain(2.0).doubled).export(tmp_path)


def test_wrong_numbers_of_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        accelerate(scaled).export(tmp_path, LINE, LINE)


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="file cannot be written: "):
        accelerate(scaled).export(tmp_path / "file", LINE, target="x86-64-v2")


def test_compilers_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(ExportError, match="failed in"):
        accelerate(scaled).export(tmp_path, LINE, target="x86-64-v2")


def test_other_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LINUX", False)
    monkeypatch.setattr(machine, "SYSTEM", "darwin")
    with pytest.raises(ExportError, match="exported on and for Linux on x86-64 and AArch64; this is darwin on x86_64"):
        accelerate(scaled).export(tmp_path, LINE)


def test_two_processors(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="a library is for one processor"):
        accelerate(scaled).export(tmp_path, LINE, target="x86-64-v3,aarch64")


def test_gpus_that_are_not_known(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="'sm_1' is not a GPU architecture"):
        accelerate(scaled).export(tmp_path / "out", LINE, target="x86-64-v2", ptx="sm_1")
    assert not (tmp_path / "out").exists()


def test_strict_functions_say_where(tmp_path: Path) -> None:
    with options(strict=True), pytest.raises(ExportError, match="partition"):
        accelerate(kept_by_python).export(tmp_path, LINE)
