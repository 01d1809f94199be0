"""Large results that nothing reads are stored past the caches, a run at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.llvm.codegen.loops import streams


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(streams, "LARGE", 16384)
    monkeypatch.setattr(streams, "RUN", 256)
    with options(cache=False, check=False):
        yield


def scaled(x: Any, y: Any) -> Any:
    return x * 3 + y


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_element_is_stored(dtype: str, threads: int) -> None:
    fast = accelerate(when="now", tiers=False)(scaled)
    for length in (0, 1, 31, 2047, 2048, 4096, 4099, 70_001):
        x: Any = np.arange(length).astype(dtype)
        y = np.arange(length)[::-1].astype(dtype)
        with options(threads=threads):
            assert np.array_equal(fast(x, y), scaled(x, y)), length
    x = np.arange(70_001).astype(dtype)[1:].reshape(100, 700)
    with options(threads=threads):
        assert np.array_equal(fast(x, x), scaled(x, x))


def test_results_that_are_read_stay_in_the_caches() -> None:
    def total(x: Any) -> Any:
        y = x * 2
        return y, y.sum()

    x = np.ones(5000)
    plain, read = (accelerate(when="now", tiers=False)(one) for one in (scaled, total))
    assert np.array_equal(plain(x, x), scaled(x, x)) and read(x)[1] == 10_000
    assert "nontemporal" not in read.llvm(x)
    assert ("nontemporal" in plain.llvm(x, x)) == ("sfence" in plain.llvm(x, x))
