"""How long teams take, on simulated devices: shares that end together, work that is claimed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.plan.part_cost import Cost, shares
from parakeet_py.hybrid.residency.blocks import HOST, Memories, of_host
from tests.helpers.team_programs import (
    BALANCED,
    DEVICES,
    UNBALANCED,
    alone,
    clocked,
    heavy_rows_first,
    on,
    simulated,
    spmv,
    work,
)


def test_devices_wait_for_no_number_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much each selects is asked when all have begun to count."""
    asked: list[tuple[str, str]] = []

    def watched(kind: str, work: Any) -> Any:
        def do(device: Any, *args: Any) -> Any:
            asked.append((kind, device.name))
            return work(device, *args)

        return do

    for kind in ("launch", "copy_out"):
        monkeypatch.setattr(EmulatedDevice, kind, watched(kind, getattr(EmulatedDevice, kind)))
    x = np.random.default_rng(1).random(4000)
    selected = accelerate(lambda x: x[x > 0.5])
    assert np.array_equal(on(Team(DEVICES[:2], False, 1.0), selected, x)[0], x[x > 0.5])
    before = asked[: next(number for number, (kind, _) in enumerate(asked) if kind == "copy_out")]
    assert {name for kind, name in before if kind == "launch"} == {device.name for device in DEVICES[:2]}


def test_shares_end_at_the_same_time() -> None:
    assert shares(100, [Cost(0.0, 1.0), Cost(0.0, 1.0)]) == [50, 50]
    assert shares(102, [Cost(0.0, 1.0), Cost(0.0, 0.02)]) == [2, 100]
    assert shares(10, [Cost(0.0, 1.0), Cost(50.0, 0.01)]) == [10, 0]
    assert shares(0, [Cost(0.0, 1.0)]) == [0]
    source = np.random.default_rng(1)
    for _ in range(50):
        costs = [Cost(float(f), float(c)) for f, c in source.random((4, 2)) + 1e-3]
        extent = int(source.integers(1, 200))
        counts = shares(extent, costs)
        assert sum(counts) == extent and min(counts) >= 0
        finish = max(cost.of(count) for cost, count in zip(costs, counts, strict=True))
        for cost, count in zip(costs, counts, strict=True):  # one more would have been later on any device
            assert cost.of(count + 1) >= finish - 1e-9


@pytest.mark.parametrize("ratio", [1, 3, 10, 20, 50])
def test_balanced_work_ends_in_nearly_ideal_time(ratio: int) -> None:
    function, args = BALANCED
    slow, fast = alone(function, *args), max(clocked(simulated(ratio * 1e6), function, *args)[1])
    together = simulated(1e6, ratio * 1e6)
    for _ in range(3):  # nothing has been measured before the first
        taken = max(clocked(together, function, *args)[1])
        assert taken <= 1.1 / (1 / slow + 1 / fast)
        assert taken <= 1.05 * min(slow, fast)


def test_short_axes_are_left_whole() -> None:
    """Three rows could not be shared by two devices as they should."""
    images = np.random.default_rng(1).random((3, 1500))
    (whole,) = clocked(simulated(1e6), work, images)[1]
    for _ in range(3):
        result, taken, run = clocked(devices := simulated(1e6, 3e6), work, images)
    assert len(devices) == 2 and run.regions[0].axis == 1 and np.array_equal(result, work.__wrapped__(images))
    assert max(taken) <= 1.1 * whole / 4
    total = accelerate(lambda x: x.sum(axis=1))
    result, _, run = clocked(simulated(1e6, 3e6), total, images)
    assert run.regions[0].join == "combine" and np.allclose(result, images.sum(axis=1))


@pytest.mark.parametrize(
    ("ratio", "name"),
    [*itertools.product((1, 3, 10, 20, 50), UNBALANCED), *((ratio, "heavy rows first") for ratio in (1, 2, 3, 10, 20))],
)
def test_unbalanced_work_is_claimed(ratio: int, name: str) -> None:
    function, args = UNBALANCED[name] if name in UNBALANCED else (spmv, heavy_rows_first())
    wanted = function(*args)
    slow, fast = alone(function, *args), max(clocked(simulated(ratio * 1e6), function, *args)[1])
    together = simulated(1e6, ratio * 1e6)
    for _ in range(2):  # nothing has been measured before the first
        result, taken, run = clocked(together, function, *args)
        assert np.array_equal(result, wanted)
        ranges = run.regions[-1].ranges
        assert ranges[0][1] == 0 and ranges[-1][2] == len(wanted) and len(ranges) <= 2
        assert all(one[2] == other[1] for one, other in itertools.pairwise(ranges))
        assert max(taken) <= 1.15 / (1 / slow + 1 / fast)
        assert max(taken) <= 1.05 * min(slow, fast)
    if ratio == 1:
        assert min(taken) >= 0.9 * max(taken)  # no device waits for long


def test_copies_between_devices_wait_for_what_they_copy() -> None:
    giver, other, reader = simulated(1e6, 1e6, 1e6)
    memories = Memories([giver, other, reader])
    early, late = (of_host(memories, np.zeros(12_500)) for _ in range(2))  # a tenth of a millisecond on the link
    copy = 1e-4 + 1e-5
    for array in (early, late):
        array.root.bring(1, array.spans())
    memories.set_marks()
    giver._free[0] = giver.clock = 1.0  # it computes until then
    for array in (early, late):
        array.root.valid.pop(HOST)
    late.root.wrote(1, late.spans())
    early.root.bring(3, early.spans())
    assert np.isclose(reader.clock, 3 * copy)  # behind what had been brought before the mark
    late.root.bring(2, late.spans(((0, 6250),)))
    assert np.isclose(other.clock, 1.0 + 5e-5 + 1e-5)
    late.root.bring(3, late.spans())  # the link is busy
    assert np.isclose(reader.clock, 1.0 + 5e-5 + 1e-5 + copy) and np.isclose(giver.mark(), reader.clock)
