"""Calls on one device whose extents are others each time go straight to the host part, and give what Python gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.call.devices import direct_calls
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.residency.device_array import DeviceArray
from tests.late_devices import LateDevice, late_devices


@pytest.fixture(autouse=True)
def late() -> Iterator[None]:
    with late_devices(), options(devices="emulated", check=False):
        yield


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the calls that go straight to the host part."""
    found, run = [0], direct_calls.run

    def counted(*given: Any) -> Any:
        found[0] += 1
        return run(*given)

    monkeypatch.setattr(direct_calls, "run", counted)
    return found


def several(a: Any, b: Any, factor: Any) -> Any:
    total = (a * b).sum()
    return {"scaled": a * factor, "same": a, "parts": (b[1:], b[::2]), "total": total, "count": len(a)}


def stored(a: Any, b: Any, factor: Any) -> Any:
    b[1:] = a[:-1] * factor
    return b


def picked(a: Any, b: Any, factor: Any) -> Any:
    """What is stored before an index that does not exist is seen."""
    b += 1
    return a[b.astype(np.int64) * 3] * factor


def whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(map(whole, value))
    return np.asarray(value)


def same(one: Any, other: Any) -> None:
    if isinstance(other, dict):
        one, other = tuple(one.values()), tuple(other.values())
    if isinstance(other, tuple):
        for left, right in zip(one, other, strict=True):
            same(left, right)
        return
    assert one.dtype == other.dtype and one.shape == other.shape
    np.testing.assert_allclose(one, other, 1e-12)


@pytest.mark.parametrize("function", [several, stored, picked])
def test_extents_that_change(function: Any, direct: list[int]) -> None:
    """Short and empty ones among them, numbers of other types, arrays that share memory, other layouts."""
    work = accelerate(function)
    for step, count in enumerate([40, 41, 42, 5, 43, 1, 44, 0, 45, 46, 3, 47, 48]):
        here: list[Any] = [
            np.arange(count, dtype=np.float64),
            np.full(count, step % 3 - 1.0),
            0.5 if step % 5 else np.float32(2),
        ]
        there = [asdevice(one) if isinstance(one, np.ndarray) else one for one in here]
        if step == 9:
            here[1], there[1] = here[0], there[0]
        if step == 11:
            here[0], there[0] = here[0].repeat(2)[::2], asdevice(here[0].repeat(2))[::2]
        try:
            expected = function(*here)
        except (IndexError, ValueError) as error:
            with pytest.raises(type(error), match=str(error)[:20]):
                whole(work(*there))
        else:
            found = work(*there)
            same(whole(found), whole(expected))
            if function is several:
                assert type(found["scaled"]) is DeviceArray and found["same"] is there[0]
                assert found["parts"][0].base is not None
            if function is stored:
                assert found is there[1]
        for one, other in zip(here, there, strict=True):
            assert np.array_equal(one, np.asarray(other))
    assert direct[0] >= 4, direct


def test_parts_of_one_array_that_come_to_overlap() -> None:
    """Where they begin does not say so."""

    def mirrored(x: Any, y: Any) -> None:
        y[:] = x[::-1] * 2

    work = accelerate(mirrored)
    for count in (20, 19, 20, 30, 21, 35):
        here = np.arange(60.0)
        there = asdevice(here)
        work(there[:count], there[20 : 20 + count])
        mirrored(here[:count], here[20 : 20 + count])
        assert np.array_equal(np.asarray(there), here)


def test_calls_that_come_again_are_recorded(direct: list[int]) -> None:
    work: Any = accelerate(several)
    for step in range(12):
        a = np.arange(30.0 + step % 3)
        same(whole(work(asdevice(a), asdevice(a), 2.0)), whole(several(a, a, 2.0)))
    before = direct[0]
    assert before and work._dispatcher.recorded._found
    for step in range(3):
        a = np.arange(30.0 + step)
        same(whole(work(asdevice(a), asdevice(a), 2.0)), whole(several(a, a, 2.0)))
    assert direct[0] == before


def test_what_python_has_to_do(direct: list[int]) -> None:
    """An int that does not fit is Python's to compute, also when a call has gone straight to the host part."""
    work = accelerate(lambda a, n: (a * 2, n * n * n))
    for step, n in enumerate((1, 2, 1 << 22, 3, -(1 << 21), 4)):
        a = np.arange(20.0 + step)
        found = work(asdevice(a), n)
        assert np.array_equal(np.asarray(found[0]), a * 2) and found[1] == n**3
    assert direct[0] >= 3


def test_a_device_that_goes(direct: list[int]) -> None:
    work = accelerate(lambda a: np.cumsum(a) * 2)
    for count in range(50, 54):
        assert np.array_equal(np.asarray(work(asdevice(np.ones(count)))), np.arange(1, count + 1) * 2)
    there = asdevice(np.ones(60))
    gone = open_devices("emulated")[0]
    assert isinstance(gone, LateDevice) and direct[0]
    gone.goes_after = 1
    with pytest.raises(DeviceError, match="emulated:0 has gone"):
        np.asarray(work(there))


def test_memory_that_runs_out(direct: list[int]) -> None:
    with late_devices(memory=1 << 16), options(devices="emulated"):
        work = accelerate(lambda a: a * 2)
        kept = [work(asdevice(np.ones(count))) for count in range(50, 54)]
        with pytest.raises(MemoryError, match="emulated:0 has no memory"):
            for count in range(500, 600):
                kept.append(work(asdevice(np.ones(count))))
        assert direct[0] and all(np.array_equal(np.asarray(one), np.full(one.shape, 2.0)) for one in kept)
