"""Random functions over arrays on devices, found in all kinds of places, do what they do to arrays of NumPy's."""

from __future__ import annotations

import pytest

from tests.property.device_programs import run

# Drawn in order, and those whose causes have been mended: what Python stores into containers, views of one memory,
# variables of the function and of those that it calls, empty containers, a tuple twice.
SEEDS = [*range(16), 64, 68, 197, 228, 322, 328, 10067, 10078, 10400, 20096]


@pytest.mark.parametrize("seed", SEEDS)
def test_device_programs(seed: int) -> None:
    assert run(seed, calls=2) in ("native", "left", "fell back")
