"""Functions of NumPy's and the standard library that are replaced between calls."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.llvm.entry import entry_stub as gates
from parakeet_py.signature import patches

pytestmark = pytest.mark.skipif(not patches.HAS_TAGS, reason="this Python keeps no version tags of dicts")
ONES = np.ones(3)


def total(x: Any) -> Any:
    return np.sum(x) + math.sin(1.0)


def length(x: Any) -> Any:
    return np.linalg.norm(x)


def helper(x: Any) -> Any:
    return np.mean(x) + total(x)


def drawn() -> Any:
    return np.random.rand()


def of_random() -> Any:
    return np.random.random(3).sum()


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (total, (ONES,), "numpy.sum"),
        (total, (ONES,), "math.sin"),
        (length, (ONES,), "numpy.linalg.norm"),
        (helper, (ONES,), "numpy.sum"),
        (helper, (ONES,), "numpy.mean"),
        (drawn, (), "numpy.random.rand"),
        (of_random, (), "numpy.random.random"),
        (lambda x: np.fft.fft(x)[0], (ONES,), "numpy.fft.fft"),
        (lambda x: np.linalg.inv(np.diag(x))[0, 0], (ONES,), "numpy.linalg.inv"),
        (lambda x: x * math.pi, (ONES,), "math.pi"),
        (lambda x: np.exp(x), (ONES,), "numpy.exp"),
        (lambda x: np.partition(x, 1)[0], (ONES,), "numpy.partition"),
    ],
)
def test_replaced_and_restored(function: Any, arguments: tuple[Any, ...], name: str) -> None:
    """Before, while and after: what the undecorated function gives. The first call may come at any of these times."""
    for first in (True, False):
        found: Any = accelerate(function)
        if first:
            found(*arguments)
            found(*arguments)
        stand_in: Any = 5.0 if name == "math.pi" else lambda *given: np.array([[7.0, 8.0]])
        with mock.patch(name, stand_in):
            expected = function(*arguments)
            for _ in range(3):
                assert np.array_equal(found(*arguments), expected)
        for _ in range(2):
            np.random.seed(3)
            expected = function(*arguments)
            np.random.seed(3)
            assert np.allclose(found(*arguments), expected)
        assert not found.fell_back


def test_other_names_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is not read may come, change and go: the same code runs."""
    found: Any = accelerate(total)
    found(ONES)
    before = found.specializations
    with mock.patch.object(np, "partition", None):
        monkeypatch.setattr(np, "unheard_of", 1, raising=False)
        with mock.patch.object(gates, "load_gate", side_effect=AssertionError):
            assert found(ONES) == found(ONES) == total(ONES)
    assert found.specializations == before


def test_the_gate_takes_calls_again() -> None:
    """After a name has been restored, calls are compiled code's: Python is asked only once."""
    found: Any = accelerate(total)
    found(ONES)
    with mock.patch("numpy.sum", lambda x: 5.0):
        assert found(ONES) == 5.0 + math.sin(1.0)
    found(ONES)
    (gate,) = found._gates
    assert gate.versions.are_known()
    with mock.patch.object(patches.Versions, "accept", side_effect=AssertionError):
        assert found(ONES) == total(ONES)


def test_what_is_kept_on_the_disk_knows_what_it_reads() -> None:
    reads = {("numpy", "sum"), ("math", "sin")}
    assert set(patches.of_symbols(("other", *patches.as_symbols(reads)))) == reads
    assert patches.modules_of(reads) == ("math", "numpy")
