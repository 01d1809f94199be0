"""Numbers of a `Generator` on the emulator: those of NumPy, whatever is drawn at once, and as machine code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from tests.ptxas import NVDISASM, PTXAS, assembled, instructions


@accelerate
def drawn(rng: Any, n: int, high: int) -> Any:
    first = rng.integers(high)
    return first, rng.integers(high, size=n), rng.random(n), rng.standard_normal((2, n)), rng.standard_exponential(n)


@pytest.mark.parametrize(
    ("n", "high"), [(n, high) for n in (1, 255, 256, 257, 700) for high in (7, 2**31 + 1)] + [(6000, 2**32 - 5)]
)
def test_as_numpy(n: int, high: int) -> None:
    """Around the runs of 256 words; six thousand words have some that fall into the tails of the ziggurats."""
    rng, other = np.random.default_rng(n), np.random.default_rng(n)
    with options(devices="emulated"):
        found = drawn(rng, n, high)
    for one, expected in zip(found, drawn.__wrapped__(other, n, high), strict=True):
        assert np.array_equal(one, expected)
    assert rng.bit_generator.state == other.bit_generator.state


@pytest.mark.skipif(PTXAS is None or NVDISASM is None, reason="ptxas and nvdisasm are not installed")
def test_machine_code(tmp_path: Path) -> None:
    """A word is some 100 multiplications of a thread that needs nothing of the others."""
    text = accelerate(lambda rng, n: rng.random(n)).ptx(np.random.default_rng(1), 1000, target="sm_90")
    code, resources = assembled(text, "sm_90", tmp_path)
    assert all(spilled == 0 and registers <= 64 for spilled, registers in resources.values())
    _, numbers = [names for name, names in sorted(instructions(code).items()) if "_map_" in name]
    assert 50 < sum(name.startswith("IMAD") for name in numbers) < 150
    assert not any(name.startswith(("BAR", "ATOM", "MEMBAR", "CALL")) for name in numbers)
