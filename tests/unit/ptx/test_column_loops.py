"""Loops over rows that data chooses are one launch, and leave what Python leaves, exceptions included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices.calls import device_plan_of
from tests.ptxas import NVDISASM, PTXAS, assembled, instructions

Loop = Callable[[Any, Any, Any, Any], Any]


def by_label(sums: Any, counts: Any, labels: Any, x: Any) -> None:
    for i in range(len(labels)):
        sums[labels[i]] += x[i]


def with_counts(sums: Any, counts: Any, labels: Any, x: Any) -> None:
    for i in range(len(labels)):
        sums[labels[i]] += x[i]
        counts[labels[i]] += 1


def backwards(sums: Any, counts: Any, labels: Any, x: Any) -> None:
    for i in range(len(labels) - 1, -1, -2):
        sums[labels[i], 1:] *= x[i, 1:] + 0.5


def recurrence(sums: Any, counts: Any, labels: Any, x: Any) -> Any:
    for i in range(1, len(x)):
        x[i] = 0.5 * x[i - 1] + x[i]
    return x[-1].sum()


def weighted(sums: Any, counts: Any, labels: Any, x: Any) -> None:
    for i in range(len(labels)):
        weight = counts[labels[i]] + 1.5
        sums[labels[i]] = sums[labels[i]] * weight - x[i]


def rounds(sums: Any, counts: Any, labels: Any, x: Any) -> None:
    for k in range(3):
        for i in range(len(labels)):
            sums[labels[i]] += x[i] * k
        sums *= 0.5


def store_then_check(sums: Any, counts: Any, labels: Any, x: Any) -> None:
    for i in range(len(labels)):
        sums[labels[i]] += x[i]
        counts[labels[i] + 1] += 1


def neighbours(sums: Any, counts: Any, labels: Any, x: Any) -> None:
    for i in range(len(labels)):
        sums[labels[i], 1:] += sums[(labels[i] + 1) % 5, :-1]


def counts_decide(sums: Any, counts: Any, labels: Any, x: Any) -> None:
    for i in range(len(labels)):
        counts[labels[i]] += 1
        sums[labels[i]] += x[i] * counts[labels[i]]


def images(sums: Any, counts: Any, labels: Any, x: Any) -> None:
    y, z = sums.reshape(len(sums), 2, -1), x.reshape(len(x), 2, -1)
    for i in range(len(labels)):
        y[labels[i]] -= z[i]


def guarded_behind(sums: Any, counts: Any, labels: Any, x: Any) -> Any:
    for i in range(len(labels)):
        sums[labels[i]] += x[i]
    return x * 2 + 1


TAKEN = {by_label: 1, with_counts: 1, rounds: 6, store_then_check: 1, weighted: 1, recurrence: 2, backwards: 1}
NOT_TAKEN = (neighbours, counts_decide)


def arguments(columns: int = 6, bad: int | None = None) -> list[Any]:
    rng = np.random.default_rng(4)
    labels = rng.integers(-5, 4, 30)
    if bad is not None:
        labels[bad], labels[bad + 2] = 9, -7
    return [rng.random((5, columns)), rng.integers(0, 3, 5) * 1.0, labels, rng.random((30, columns))]


def same(function: Loop, *given: Any) -> None:
    """Results, arguments and exceptions are Python's, bit for bit."""
    here, there = arguments(*given), arguments(*given)
    expected, message, found, said = None, "", None, ""
    try:
        expected = function(*here)
    except IndexError as error:
        message = str(error)
    try:
        found = accelerate(function)(*there)
    except IndexError as error:
        said = str(error)
    assert said == message
    assert found == pytest.approx(expected) if expected is not None else found is None
    for one, other in zip(there, here, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("function", [*TAKEN, *NOT_TAKEN, images], ids=lambda function: function.__name__)
def test_as_python(function: Loop) -> None:
    with options(devices="emulated", check=True):
        for given in ((6, None), (6, 0), (6, 11), (0, None), (0, 3), (300, 5)):
            same(function, *given)
            if function in NOT_TAKEN:
                break


@pytest.mark.parametrize("function", [*TAKEN, *NOT_TAKEN], ids=lambda function: function.__name__)
def test_launches(function: Loop) -> None:
    given = arguments()
    with options(devices="emulated"):
        work = accelerate(function)
        work(*given)
    plan = device_plan_of(work._dispatcher.compiled_for_normal(tuple(given)))
    launches = sum(count for _, count in plan.last_run.launches)
    if function in TAKEN:
        assert any("_columns_" in kernel.name for kernel in plan.kernels) and launches <= TAKEN[function]
    else:
        assert not any("_columns_" in kernel.name for kernel in plan.kernels)


@pytest.mark.skipif(PTXAS is None or NVDISASM is None, reason="there is no ptxas, or no nvdisasm")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_120"])
def test_machine_code(architecture: str, tmp_path: Path) -> None:
    """No spills; a kernel that is guarded looks at the record by one load, before any other."""
    given = arguments()
    ptx = accelerate(guarded_behind).ptx(*given, target=architecture)
    code, resources = assembled(ptx, architecture, tmp_path)
    assert all(spilled == 0 and registers <= 40 for spilled, registers in resources.values())
    (guarded,) = [body for name, body in instructions(code).items() if "_map_" in name and "STRONG" in " ".join(body)]
    loads = [one for one in guarded if one.startswith("LDG")]
    assert ".64" in loads[0] and "STRONG.GPU" in loads[0] and not any("STRONG" in one for one in loads[1:])
