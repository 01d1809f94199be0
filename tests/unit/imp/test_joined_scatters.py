"""Scatters that find out the same for each point are one loop, and only where that is right."""

from __future__ import annotations

from typing import Any

import numpy as np

from parakeet_py import accelerate


def loops(function: Any, *args: Any) -> int:
    compiled = accelerate(function, when="now")
    for mine, theirs in zip(compiled(*args), function(*args), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    return str(compiled.imp(*args)).count("parallel scatter")


def test_histograms_of_one_array_are_one_loop() -> None:
    def histograms(x: Any, weights: Any) -> Any:
        return np.histogram(x, 7)[0], np.histogram(x, 7, weights=weights)[0]

    x = np.random.default_rng(0).random(70_000)
    assert loops(histograms, x, x[::-1].copy()) == 1


def test_what_reads_the_first_target_comes_between() -> None:
    def histograms(x: Any, weights: Any) -> Any:
        counts = np.histogram(x, 7)[0]
        return counts, np.histogram(x, 7, weights=weights * counts[0])[0]

    x = np.random.default_rng(0).random(70_000)
    assert loops(histograms, x, x[::-1].copy()) > 1


def test_bodies_with_little_in_common_are_apart() -> None:
    def histograms(x: Any, y: Any) -> Any:
        return np.histogram(x, 7, weights=y)[0], np.histogram(y, 7, weights=x)[0]

    x = np.random.default_rng(0).random(70_000)
    assert loops(histograms, x, x[::-1].copy() / 3) == 2
