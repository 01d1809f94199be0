"""Products of matrices shared in tiles: what everybody has, which bytes move, when the last one is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices.calls import call, team_plan_of
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.simulated_clock import SimulatedDevice
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.run_record import TeamRun
from parakeet_py.hybrid.partition.product_tiles import arranged
from parakeet_py.hybrid.plan.part_cost import Speed

DEVICES = tuple(EmulatedDevice(f"emulated:{100 + number}", memory=1 << 22) for number in range(8))


@accelerate
def product(a: Any, b: Any) -> Any:
    return a @ b


@accelerate
def powers(a: Any, x: Any, times: int) -> Any:
    for _ in range(times):
        x = a @ x
    return x


def on(team: Team, function: Any, *args: Any) -> tuple[Any, TeamRun]:
    result = call(function._dispatcher, args, team, in_regions=True)
    run = team_plan_of(function._dispatcher.compiled_for_normal(args)).last_run
    assert isinstance(run, TeamRun)
    return result, run


def numbers(shape: tuple[int, int], dtype: str, transposed: bool) -> np.ndarray[Any, Any]:
    """Small whole numbers: their products are exact on any device."""
    made = np.random.default_rng(1).integers(-9, 9, shape[::-1] if transposed else shape)
    many = (made + 1j * made[::-1] if dtype.startswith("complex") else made).astype(dtype)
    return many.T if transposed else many


@pytest.mark.parametrize("seed", range(30))
def test_tiles_are_the_product(seed: int) -> None:
    source = np.random.default_rng(seed)
    shares = source.random(source.integers(1, 9)) ** 3 * source.integers(0, 2, 1 if seed == 0 else None)
    shares = np.ones(1) if not shares.sum() else shares / shares.sum()
    rows, columns = (int(extent) for extent in source.integers(1, 40, 2))
    covered = np.zeros((rows, columns), int)
    for tile in arranged(list(enumerate(shares)), rows, columns):
        covered[slice(*tile.rows), slice(*tile.columns)] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize(
    ("dtype", "left", "right"),
    [
        ("float64", False, False),
        ("float32", True, True),
        ("complex128", False, True),
    ],
)
def test_products_in_tiles(dtype: str, left: bool, right: bool) -> None:
    seen = set()
    for rows, inner, columns in ((11, 3, 9), (2, 4, 7)):
        a, b = numbers((rows, inner), dtype, left), numbers((inner, columns), dtype, right)
        for devices, split in ((3, 0.37), (4, 0.97), (4, None)):
            team = Team(DEVICES[:devices], split is not None, split or 1.0)
            result, run = on(team, product, a, b)
            assert np.array_equal(result, a @ b) and result.dtype == a.dtype
            seen.add(bool(run.regions[0].across))
    assert True in seen


def test_tiles_move_fewer_bytes_than_rows() -> None:
    a, b = numbers((40, 32), "float64", False), numbers((32, 40), "float64", False)
    for count, operands in (
        (4, 4.0),
        (8, 6.0),
    ):  # two by two; four by two: each operand as often as others stand beside
        result, run = on(Team(DEVICES[:count], False, 1.0), product, a, b)
        assert np.array_equal(result, a @ b)
        assert sum(run.moved.values()) <= 1.05 * operands * a.nbytes + result.nbytes
    _, run = on(Team(DEVICES[:4], False, 1.0), product, a, b)
    assert run.regions[0].across == ((0, 20), (0, 20), (20, 40), (20, 40))
    assert [one[1:] for one in run.regions[0].ranges] == [(0, 20), (20, 40), (0, 20), (20, 40)]
    for shape, axis in (((400, 4), 0), ((4, 400), 1)):  # of a long product only the long side is cut
        long = np.ones((shape[0], 6)), np.ones((6, shape[1]))
        _, run = on(Team(DEVICES[:4], False, 1.0), product, *long)
        assert not run.regions[0].across and run.regions[0].axis == axis
        assert sum(run.moved.values()) == (400 * 6 + 4 * 6 * 4 + 1600) * 8


def test_tiles_stay_where_they_are() -> None:
    a, x = numbers((32, 32), "float64", False), numbers((32, 32), "float64", True)
    moved = {}
    for times in (1, 2, 4):
        result, run = on(Team(DEVICES[:4], False, 1.0), powers, a, x, times)
        assert np.array_equal(result, powers.__wrapped__(a, x, times))
        moved[times] = sum(run.moved.values())
    assert moved[2] - moved[1] == a.nbytes  # each is brought the other half of its column, a quarter
    assert moved[4] - moved[2] == 2 * a.nbytes


def test_an_array_by_itself_and_one_that_does_not_fit() -> None:
    x = numbers((30, 30), "float64", False)
    result, run = on(Team(DEVICES[:4], True, 0.8), accelerate(lambda x: x @ x), x)
    assert np.array_equal(result, x @ x) and run.regions[-1].across
    small = EmulatedDevice("emulated:110", memory=20 << 10)
    a, b = numbers((160, 40), "float64", False), numbers((40, 40), "float64", False)
    result, run = on(Team((small, *DEVICES[:3]), False, 1.0), product, a, b)  # in pieces, with its columns at once
    assert np.array_equal(result, a @ b) and run.members[1] == "emulated:110"


@pytest.mark.parametrize("rates", [(1, 1, 1, 1), (1, 1, 2)])
def test_products_end_in_nearly_ideal_time(rates: tuple[int, ...]) -> None:
    devices = [SimulatedDevice(f"emulated:{120 + n}", Speed(1e6 * rate, 1e9, 1e-6)) for n, rate in enumerate(rates)]
    a, b = np.random.default_rng(1).random((2, 96, 96))
    before = [device.clock for device in devices]
    with options(check=False):
        result, _ = on(Team(tuple(devices), False), product, a, b)
        taken = max(device.clock - start for device, start in zip(devices, before, strict=True))
        start = devices[0].clock
        on(Team((devices[0],), False), product, a, b)
    assert np.allclose(result, a @ b)
    assert taken <= 1.1 * (devices[0].clock - start) * rates[0] / sum(rates)


def test_explain_tells_tiles() -> None:
    with options(devices="cpu,emulated*4", split=0.8):
        text = str(product.explain(np.ones((20, 5)), np.ones((5, 20))).device)
    assert "axes 0 and 1 cpu [0, 20) x [0, 4), emulated:0 [0, 10) x [4, 12), emulated:1 [10, 20) x [4, 12)," in text
