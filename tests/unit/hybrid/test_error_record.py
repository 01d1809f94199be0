"""A call on a device looks once whether kernels have failed: what is behind a failure has done nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.call.devices import recorded_calls
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.recording import Expect, Schedule
from parakeet_py.hybrid.residency.device_array import DeviceArray

N = 40


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(recorded_calls, "AFTER", 1)
    with options(check=False):
        yield


def two_gathers(a: Any, b: Any, i: Any, j: Any) -> Any:
    return a[i] * 2, np.cumsum(b[j])


def stores_before(a: Any, b: Any, i: Any, j: Any) -> Any:
    b += 1
    b[:] = b[i] * a
    a[j] = 7.0
    return a * b


def stores_in_loop(a: Any, b: Any, i: Any, j: Any) -> None:
    for step in range(4):
        a += b[i + step]
        b[j] = a


def host_fails_later(a: Any, b: Any, i: Any, j: Any) -> Any:
    b += a[i]
    return b.reshape(len(j), len(b))


def one_by_one(a: Any, b: Any, i: Any, j: Any) -> None:
    a += 1
    for k in range(len(i)):
        a[i[k]] += b[k]
    b[j] += 1


def rows(a: Any, b: Any, i: Any, j: Any) -> Any:
    s, x = a.reshape(-1, 8), b.reshape(-1, 8)
    b += 1
    for k in range(len(i)):
        s[i[k] // 8] += x[k % 5]
    b[j] += 1
    return a + b


def with_number(a: Any, b: Any, i: Any, j: Any) -> Any:
    total = a[i].sum()
    if total > 1e9:
        return None
    b[j] += total
    return b[i]


def indices(bad: int | None) -> np.ndarray[Any, Any]:
    made = np.random.default_rng(3).permutation(N - 4)[:N]
    made = np.resize(made, N)
    if bad is not None:
        made[bad], made[bad + 5] = 1000 + bad, -2000
    return made


FUNCTIONS = [two_gathers, stores_before, stores_in_loop, host_fails_later, one_by_one, rows, with_number]


def outcome(function: Callable[..., Any], given: list[Any]) -> tuple[Any, str]:
    try:
        return function(*given), ""
    except (IndexError, ValueError) as error:
        return None, f"{type(error).__name__}: {error}"


def values(given: Any) -> Any:
    if isinstance(given, list | tuple):
        return [values(one) for one in given]
    return np.asarray(given).tolist() if isinstance(given, DeviceArray | np.ndarray) else given


@pytest.mark.parametrize("place", ["emulated", "emulated*2"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_failures(function: Callable[..., Any], place: str) -> None:
    """Exception and memory are Python's, in the first calls and from a schedule, and calls go on afterwards."""
    work = accelerate(function)
    rng = np.random.default_rng(1)
    with options(devices=place):
        for bad_i, bad_j in [(None, None)] * 7 + [(3, None), (None, 4), (2, 1), (None, None), (0, 0), (None, None)]:
            here = [rng.integers(0, 50, N) * 1.0, rng.integers(0, 50, N) * 1.0, indices(bad_i), indices(bad_j)]
            there = [asdevice(one) for one in here]
            expected, message = outcome(function, here)
            found, said = outcome(work, there)
            assert said == message
            assert values(found) == values(expected)
            assert values(there) == values(here)


def test_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """One copy of the record a call, and none of it to the device in calls from a schedule."""
    copies: list[tuple[str, int]] = []
    for name in ("copy_in", "copy_out"):
        usual = getattr(EmulatedDevice, name)

        def counted(self: Any, *given: Any, name: str = name, usual: Any = usual) -> Any:
            data = given[name == "copy_in"]
            copies.append((name, data.nbytes))
            return usual(self, *given)

        monkeypatch.setattr(EmulatedDevice, name, counted)
    work = accelerate(stores_in_loop)
    schedules: list[Any] = []
    made = Schedule.__init__

    def remembered(self: Any, *given: Any) -> None:
        made(self, *given)
        schedules.append(self)

    monkeypatch.setattr(Schedule, "__init__", remembered)
    with options(devices="emulated"):
        there = [asdevice(np.ones(N)), asdevice(np.ones(N)), asdevice(indices(None)), asdevice(indices(None))]
        work(*there)
        copies.clear()
        work(*there)
        assert copies == [("copy_in", 72), ("copy_out", 72)]
        for _ in range(3):
            work(*there)
        copies.clear()
        work(*there)
        assert copies == [("copy_out", 8)]
    (schedule,) = schedules
    assert sum(isinstance(one, Expect) for one in schedule.requests) == 1 and len(schedule.failures) >= 8


def test_guards() -> None:
    """Only what may follow a failure asks for one, before anything else."""
    a, i = np.ones(N), indices(None)
    alone = accelerate(lambda a, i: a[i] * 2).ptx(a, i)
    assert alone.count(".entry") == 1 and "ld.relaxed" not in alone
    several = accelerate(stores_before).ptx(a, a.copy(), i, i)
    kernels = several.split(".entry")[1:]
    guarded = ["ld.relaxed" in kernel for kernel in kernels]
    assert not guarded[0] and sum(guarded) >= 2
    for kernel in kernels:
        if "ld.relaxed" in kernel:
            body = kernel[kernel.index("{") :]
            assert "st.global" not in body[: body.index("ld.relaxed")]
