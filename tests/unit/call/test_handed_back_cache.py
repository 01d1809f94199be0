"""Specializations that hand operations back to Python come from the disk too, guards and all."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.llvm.engine import disk_cache
from tests.unit.call.test_specialization_cache import cut, entries, flipped, grown, replaced

GIVES: list[Any] = []


def given(x: Any) -> Any:
    """What is not compiled: it reads a list that others change."""
    return GIVES[-1](x) if GIVES else x.sum().item()


def helper(x: Any) -> Any:
    return np.partition(x, 1)


def ranked(x: Any) -> Any:
    """Calls of NumPy that are handed back, directly and in a function that is inlined."""
    values = helper(x)
    inverse = np.argpartition(x, 1)
    return values * 2.0 + inverse.sum()


def told(x: Any) -> Any:
    y = x * 2.0
    found = eval_given(x)
    return y + found


def eval_given(x: Any) -> Any:
    import tests.unit.call.test_handed_back_cache as here

    return here.given(x)


def branching(x: Any, odd: bool) -> Any:
    if odd:
        return np.partition(x, 1)
    return x + 1.0


def copied(p: Any, marks: Any) -> Any:
    """Methods of objects, and an array of records that one of them gives."""
    marks.add(2)
    q = p.copy()
    for i in range(len(q)):
        q["a"][i] += i * q["b"][i]
    return q["a"].sum(), q["b"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    GIVES.clear()
    with options(cache=True, cache_dir=os.fspath(tmp_path / "cache")):
        yield tmp_path / "cache"
    GIVES.clear()


def call(plain: Callable[..., Any], *args: Any) -> Any:
    """Call a function with a fresh object around it; gives the object."""
    function: Any = accelerate(plain)
    for _ in range(4):
        np.testing.assert_array_equal(function(*args), plain(*args))
    assert not function.fell_back
    return function


def from_disk(function: Any) -> list[bool]:
    return [one.from_disk for one in function.specializations]


MATRIX = np.arange(12.0).reshape(4, 3) ** 2 % 7


def test_they_come_from_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = call(ranked, MATRIX)
    assert from_disk(first) == [False]
    before = entries(folder)
    with monkeypatch.context() as patch:  # neither observed nor compiled
        patch.setattr("parakeet_py.call.compile.compile_call", None)
        patch.setattr("parakeet_py.frontend.evaluate.evaluator.evaluate", None)
        second = call(ranked, MATRIX)
    assert from_disk(second) == [True]
    assert entries(folder) == before
    assert len(first.opaque_calls) == 2 and second.opaque_calls == first.opaque_calls
    line, inside = (one.__code__.co_firstlineno for one in (ranked, helper))
    assert first.opaque_calls[0].startswith(f"numpy.partition (line {line + 2}, in helper at line {inside + 1}): ")
    assert "partition" in str(second.explain(MATRIX))


def test_methods_of_objects_and_records_come_from_the_disk(folder: Path) -> None:
    records = np.ones(5, [("a", "f8"), ("b", "i4")])
    for before in (False, True):
        made: Any = accelerate(copied)
        for _ in range(4):
            total, column = made(records, marks := {1})
            assert total == 15.0 and column.tolist() == [1] * 5 and marks == {1, 2}
        assert from_disk(made) == [before] and len(made.opaque_calls) == 2


def test_strict_functions_do_not_take_them(folder: Path) -> None:
    call(ranked, MATRIX)
    with pytest.raises(Exception, match="strict=True"):
        accelerate(strict=True)(ranked)(MATRIX)


@pytest.mark.parametrize("damage", [flipped, cut, replaced, grown])
def test_damaged_entries_are_ignored_and_written_again(
    folder: Path, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    call(ranked, MATRIX)
    whole = entries(folder)
    randomness = random.Random(5)
    assert len(whole) >= 3  # what is known of the function, what was observed, and the code
    for path in whole:
        path.write_bytes(damage(whole[path], randomness))
        call(ranked, MATRIX)
        assert from_disk(call(ranked, MATRIX)) == [True]


def test_foreign_entries_are_ignored_and_written_again(folder: Path) -> None:
    call(ranked, MATRIX)
    whole = entries(folder)
    contents = list(whole.values())
    for path, other in zip(whole, contents[1:] + contents[:1], strict=True):
        path.write_bytes(other)
    assert from_disk(call(ranked, MATRIX)) == [False]
    assert from_disk(call(ranked, MATRIX)) == [True]


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"asked": 5},
        {"asked": [[1, 2]]},
        {"handed_back": None},
        {"handed_back": {"is": "Pos"}},
        {"handed_back": {"is": "Nothing"}},
        {"made_of": ""},
        {"result": "?"},
    ],
)
def test_entries_of_an_unknown_form(folder: Path, metadata: dict[str, Any]) -> None:
    call(ranked, MATRIX)
    for path in entries(folder):
        key = path.name.removesuffix(".parakeet")
        entry = disk_cache.load_entry(key)
        assert entry is not None
        if entry.metadata.keys() >= metadata.keys():
            disk_cache.put(key, entry.payload, entry.metadata | metadata if metadata else {})
    call(ranked, MATRIX)
    assert from_disk(call(ranked, MATRIX)) == [True]


def test_what_was_observed_may_change(folder: Path) -> None:
    """Results are compared with what was observed, from the disk too; then what is on the disk changes as well."""
    x = np.arange(4.0)
    call(told, x)
    assert from_disk(call(told, x)) == [True]
    GIVES.append(lambda x: x[::-1] * 2.0)  # an array now, where a float was
    call(told, x)
    last = call(told, x)
    assert from_disk(last) == [True]
    GIVES.clear()
    np.testing.assert_array_equal(last(x), told(x))
    np.testing.assert_array_equal(last(x), told(x))


def test_a_process_that_knows_better_does_not_take_them(folder: Path) -> None:
    x = np.arange(4.0)
    function = call(told, x)
    GIVES.append(lambda x: x[::-1] * 2.0)
    with options(cache=False):  # what it learns now is not written
        for _ in range(3):
            np.testing.assert_array_equal(function(x), told(x))
    for _ in range(3):
        np.testing.assert_array_equal(function(x), told(x))
    assert not function.fell_back


def test_what_has_never_been_reached(folder: Path) -> None:
    """Code that takes an operation to be out of reach is kept, and says when it is reached."""
    first = call(branching, MATRIX, False)
    assert from_disk(first) == [False]
    second = call(branching, MATRIX, False)
    assert from_disk(second) == [True]
    for odd in (True, False, True, True):
        np.testing.assert_array_equal(second(MATRIX, odd), branching(MATRIX, odd))
    assert not second.fell_back
    third = call(branching, MATRIX, True)
    assert from_disk(third) == [True]
    np.testing.assert_array_equal(third(MATRIX, False), branching(MATRIX, False))


def test_functions_that_are_others_now(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call(told, np.arange(4.0))

    def given(x: Any) -> Any:
        return -1.5

    given.__module__, given.__qualname__ = __name__, "given"
    monkeypatch.setattr("tests.unit.call.test_handed_back_cache.given", given)
    call(told, np.arange(4.0))
    monkeypatch.undo()
    call(told, np.arange(4.0))


def test_the_first_module_that_a_cached_call_imports() -> None:
    """A fresh process that finds its code on the disk begins with this module, not with the compiler."""
    done = subprocess.run(
        [sys.executable, "-c", "import parakeet_py.call.handed_back_cache"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
