"""`DeviceArray`: data that stays on devices between calls, alone and in teams."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest

from parakeet_py import DeviceArray, accelerate, asdevice, options
from parakeet_py.base.errors import DeviceWarning, FallbackWarning
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute import device_loss
from parakeet_py.hybrid.residency import persistent_memory
from tests.helpers.team_programs import Failing
from tests.unit.hybrid.test_device_calls import LAYOUTS

PLACES: dict[str, dict[str, Any]] = {
    "emulated": {"devices": "emulated"},
    "cpu,emulated*2": {"devices": "cpu,emulated*2", "split": 0.5},
    "emulated*2": {"devices": "emulated*2"},
}


@pytest.fixture(params=PLACES)
def place(request: Any) -> Any:
    with options(**PLACES[request.param]):
        yield request.param


def moved(function: Any, *args: Any) -> int:
    """The bytes that the last call has moved."""
    run = function.explain(*args).device.last_run
    return int(sum(run.moved.values()) if hasattr(run, "moved") else run.bytes_in + run.bytes_out)


@accelerate
def step(x: Any) -> Any:
    return np.cumsum(x * 0.5 + 1.0, axis=1)


@accelerate
def relax(x: Any, y: Any) -> None:
    y[1:-1] = (x[:-2] + x[2:]) * 0.5
    x[1:-1] = (y[:-2] + y[2:]) * 0.5


def test_there_and_back(place: str) -> None:
    for array in LAYOUTS.values():
        there = asdevice(array)
        assert (there.shape, there.dtype, there.ndim, there.size) == (array.shape, array.dtype, array.ndim, array.size)
        back = np.asarray(there)
        assert np.array_equal(back, array) and back.dtype == array.dtype and back.flags.writeable
        assert asdevice(there) is there
    there = asdevice(LAYOUTS["contiguous"])
    base = LAYOUTS["contiguous"]
    assert not asdevice(np.zeros(1), "emulated") and asdevice(2.0, "emulated")
    with pytest.raises(ValueError, match="ambiguous"):
        bool(there)
    assert len(there) == 3 and repr(there) == f"<float64[3, 4, 5] on {there.device}>"
    for key in (1, (0, 2), (slice(None, None, -2), 1), (..., 2), (1, 2, 3), None, [0, 2], base > 30):
        assert np.array_equal(np.asarray(there[key]), base[key]) and isinstance(there[key], DeviceArray)
    assert np.asarray(asdevice(base.T)).strides == base.T.strides
    with pytest.raises(IndexError):
        there[7]


def test_calls_in_a_row_move_nothing(place: str) -> None:
    plain = np.random.default_rng(1).random((40, 6))
    x: Any = asdevice(plain)
    for number in range(4):
        x, plain = step(x), step.__wrapped__(plain)
        assert isinstance(x, DeviceArray) and x.shape == plain.shape
        assert number == 0 or moved(step, x) == 0
    assert step.explain(x).device.foreseen == step.explain(x).device.last_run
    assert np.array_equal(np.asarray(x), plain)
    assert type(accelerate(lambda x: x.max())(x)) is np.float64


def test_stores_and_views(place: str) -> None:
    @accelerate
    def change(x: Any, y: Any) -> Any:
        x[2:] += y[0]
        y[:] = 7
        return x, x[1:3], (y, [x * 2])

    plain, other = np.arange(6.0), np.ones(3)
    x, y = asdevice(plain), other.copy()
    same, part, (host, (double,)) = change(x, y)
    wanted = change.__wrapped__(plain, other)
    assert same is x and host is y and np.array_equal(y, other) and np.array_equal(np.asarray(x), plain)
    assert np.array_equal(np.asarray(double), wanted[2][1][0])
    change(part, np.ones(1))  # a view: x changes with it
    change.__wrapped__(wanted[1], np.ones(1))
    assert np.array_equal(np.asarray(x), plain) and np.array_equal(np.asarray(part), wanted[1])
    plain.flags.writeable = False
    relax(asdevice(np.ones((4, 2))), asdevice(np.ones((4, 2))))
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        accelerate(lambda x, i: x[i])(x, np.array([1, 9]))
    assert np.array_equal(np.asarray(x), plain)


def test_only_halos_move_between_calls() -> None:
    plain = np.random.default_rng(1).random((2, 40, 5))
    with options(devices="cpu,emulated", split=0.5):
        x, y = asdevice(plain[0]), asdevice(plain[1])
        for number in range(3):
            relax(x, y)
            relax.__wrapped__(*plain)
            assert number == 0 or moved(relax, x, y) == 4 * 40  # two half-steps, a row each way
        assert np.array_equal(np.asarray(x), plain[0]) and np.array_equal(np.asarray(y), plain[1])


def test_what_python_does(place: str) -> None:
    @accelerate
    def handed(x: Any) -> Any:
        x += 1
        return np.partition(x * 2, 1) * 2

    def strange(x: Any) -> Any:
        exec("y = x.shape")
        x[0] = 5
        return x[1:]

    plain = np.arange(6.0).reshape(2, 3)
    x = asdevice(plain)
    for _ in range(3):
        found = handed(x)
        assert isinstance(found, DeviceArray) and np.allclose(np.asarray(found), handed.__wrapped__(plain))
    if place != "emulated":  # arrays on one device are given to Python as they are
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            part = accelerate(strange)(x)
        assert isinstance(part, DeviceArray) and np.array_equal(np.asarray(part), strange(plain))
    assert np.array_equal(np.asarray(x), plain)


def test_python_looks_at_what_a_call_before_has_seen() -> None:
    @accelerate
    def handed(x: Any) -> Any:
        return np.partition(x, 1) * 2

    plain = np.arange(6.0)[::-1].reshape(2, 3)
    x = asdevice(plain, "emulated")
    for _ in range(3):  # the first call observes
        assert np.array_equal(np.asarray(step(x)), step.__wrapped__(plain))
        assert np.array_equal(np.asarray(handed(x)), handed.__wrapped__(plain))


def test_views_of_nothing(place: str) -> None:
    function = accelerate(lambda a: ((a + 1)[::-1], np.array([100 // int(v) for v in a if v != 0])))
    for length in (0, 0, 3, 3):
        plain = np.arange(length)
        found = function(asdevice(plain))
        for one, other in zip(found, function.__wrapped__(plain), strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype and np.array_equal(np.asarray(one), other)


def test_lists_have_the_elements(place: str) -> None:
    @accelerate
    def listed(x: Any) -> Any:
        return [value for value in x * 2], x.tolist(), (x + 1).tolist(), list(x[::-1]), x[:2]

    @accelerate
    def refused(x: Any, holder: Any) -> Any:
        holder.value = x.sum()
        return x + 1

    for length in (3, 100, 100):
        plain = np.arange(float(length))
        x = asdevice(plain)
        found, expected = listed(x), listed.__wrapped__(plain)
        assert found[:4] == expected[:4] and np.array_equal(np.asarray(found[4]), expected[4])
        assert isinstance(found[4], DeviceArray)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            assert np.array_equal(np.asarray(refused(x, test_there_and_back)), plain + 1)


def test_from_one_place_to_another() -> None:
    plain = np.arange(24.0).reshape(6, 4)
    x: Any = asdevice(plain, "emulated")
    y = step(x)  # no device is named: it runs where the array is
    assert y.device == "emulated:0" and moved(step, x) == 0
    with options(**PLACES["cpu,emulated*2"]):
        z = step(y)
        assert z.device == "cpu,emulated:0,emulated:1" and moved(step, y) < 2 * plain.nbytes
    with options(devices="emulated*2"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(np.asarray(step(x)), np.asarray(y))
        mixed = accelerate(lambda x, y, z: x + y + z)(z, x, plain)
    assert np.array_equal(np.asarray(mixed), np.asarray(z) + plain + plain)
    assert np.array_equal(np.asarray(asdevice(z, "emulated")), np.asarray(z))
    for one in (x, z):  # names are as the settings take them
        assert asdevice(plain, one.device).device == one.device
    for one in (x, z):  # no other library knows an emulated device's addresses, or all of a team's
        assert np.array_equal(np.from_dlpack(one), np.asarray(one)) and not hasattr(one, "__cuda_array_interface__")
        with pytest.raises(BufferError, match="as a copy on the host"):
            one.__dlpack__(copy=False)
    two: Any = open_devices("emulated*2")[1]
    assert step(asdevice(plain, two)).device == "emulated:1"


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="asdevice needs a device"):
        asdevice(np.ones(3))
    with pytest.raises(ValueError, match="names no device"):
        asdevice(np.ones(3), "gpu")
    for array in (np.array(["a"]), np.ones(3, ">f8"), np.ones(3, np.longdouble)):
        with pytest.raises(TypeError, match="no elements of dtype"):
            asdevice(array, "emulated")
    with pytest.raises(TypeError, match="unsized"):
        len(asdevice(1.5, "emulated"))


def test_what_a_lost_device_had() -> None:
    bad = Failing("emulated:43", 1 << 30)
    team = Team((bad, open_devices("emulated")[0]), True, 0.8)
    plain = np.random.default_rng(1).random((20, 4))
    x = asdevice(plain, team)
    try:
        bad.left = 5
        with pytest.warns(DeviceWarning, match="emulated:43 has failed"):
            y = step(x)  # the host has all of x
        assert np.array_equal(np.asarray(y), step.__wrapped__(plain))
        device_loss.forget_losses()
        bad.left = 1000
        y = step(x)
        bad.left = 0
        with pytest.raises(DeviceError, match="off the bus"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeviceWarning)
            step(y)
        with pytest.raises(DeviceError, match="off the bus"):
            np.asarray(y)
        bad.left = 1000
        assert np.array_equal(np.asarray(y), step.__wrapped__(plain))
        device_loss.forget_losses()
        bad.left = 2
        with pytest.raises(DeviceError, match="off the bus"):  # what it stores to is nowhere else
            relax(x, y)
    finally:
        device_loss.forget_losses()


def test_frozen_arrays_stay(place: str) -> None:
    x = np.random.default_rng(1).random((40, 6))
    x.flags.writeable = False
    wanted = step.__wrapped__(x)
    first = step(x), moved(step, x)
    again = step(x), moved(step, x)
    assert type(again[0]) is np.ndarray and np.array_equal(first[0], wanted) and np.array_equal(again[0], wanted)
    spared = {"emulated": x.nbytes, "cpu,emulated*2": x.nbytes // 2}.get(place)
    assert again[1] < first[1] if spared is None else first[1] - again[1] == spared  # measured rates may move the cut
    key = id(x)
    assert key in persistent_memory._frozen
    x.flags.writeable = True
    x[:] = 3
    assert np.array_equal(step(x), step.__wrapped__(x)) and key not in persistent_memory._frozen
    x.flags.writeable = False
    assert np.array_equal(step(x), step.__wrapped__(x))
    for number in range(3):  # what is read-only changes all the same
        x.flags.writeable = True
        part = x[7:9, 1:]
        x.flags.writeable = False
        assert np.array_equal(step(x), step.__wrapped__(x))
        part[:] = number + 5.0
        assert np.array_equal(step(x), step.__wrapped__(x))
    base = np.ones((6, 4))
    view = base[1:]
    base.flags.writeable = False  # its views are as they were
    both = accelerate(lambda x, y: (y.fill(3.0), x * 1.0)[1])
    assert np.array_equal(both(base, view), base * 1.0) and base.sum() == 4 + 5 * 12
    del x, part
    assert key not in persistent_memory._frozen


def test_nothing_is_left(place: str) -> None:
    device: Any = open_devices("emulated*2")[0]
    gc.collect()
    before = device._device.free_bytes
    x = asdevice(np.ones((40, 6)))
    y = step(step(x))
    del x, y
    gc.collect()
    assert device._device.free_bytes == before
