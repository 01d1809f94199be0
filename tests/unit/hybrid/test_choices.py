"""Who has a call of a team with the CPU: by what is measured, here with a clock that only moves as it is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.bench.chosen import Clock, ModelDevice
from parakeet_py.call.devices.calls import call, team_plan_of
from parakeet_py.call.dispatcher import Dispatcher
from parakeet_py.hybrid.devices import choices
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute import cpu_only_calls
from parakeet_py.hybrid.execute.cpu_only_calls import DEVICES, NATIVE, SHARED, CpuOnlyCalls
from parakeet_py.hybrid.plan.part_cost import Speed


class Told(Clock):
    """A clock that stands still but for what is added to it."""

    def now(self) -> float:
        return self.waited


class Calls:
    """A function, and ways to run it that take so many seconds each."""

    def __init__(self, function: Any, seconds: dict[int, float], speed: float = 1e12) -> None:
        self.clock = Told()
        self.team = Team((ModelDevice("emulated:998", Speed(speed, 1e12, 1e-6), self.clock),), True)  # type: ignore[arg-type]
        self.seconds, self.taken = seconds, [0, 0, 0]
        self.function = accelerate(function)
        self.left = CpuOnlyCalls()

    def __call__(self, *args: Any) -> Any:
        compiled = self.function._dispatcher.compiled_for_normal(args)
        return self.left.run(args, self.team, team_plan_of(compiled), args, lambda: self.run(NATIVE), self.shared)

    def shared(self, team: Team) -> Any:
        return self.run(SHARED if team.only is None else DEVICES)

    def run(self, way: int) -> int:
        self.taken[way] += 1
        self.clock.waited += self.seconds[way]
        return way


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    with options(cache=False, check=False):
        choices.forget()
        yield
        choices.forget()


X = np.ones(100_000)


def doubled(x: Any) -> Any:
    return x * 2


def stored(x: Any) -> None:
    x[:] = x * 2


def summed(x: Any) -> Any:
    return x.sum()


def centred(x: Any) -> None:
    x -= x.sum()


@pytest.mark.parametrize("function", [doubled, summed])
@pytest.mark.parametrize("best", [NATIVE, SHARED, DEVICES])
def test_the_best_way_has_later_calls(function: Any, best: int) -> None:
    """All are tried in the first call, which gives what the best way gives, as all later ones do."""
    calls = Calls(function, {way: 1.0 if way == best else 2.0 for way in range(3)})
    assert calls(X) == best and all(calls.taken)
    before = [*calls.taken]
    assert calls(X) == calls(X) == best
    assert [now - then for now, then in zip(calls.taken, before, strict=True)] == [
        2 * (way == best) for way in range(3)
    ]
    assert calls.left.takes((X,), calls.team) == (best == NATIVE)


class Counting:
    def __init__(self) -> None:
        self.calls, self.total = 0, 0.0

    def add(self, x: Any) -> Any:
        self.calls += 1
        self.total += x.sum()
        return self.total


def test_calls_that_set_attributes_are_made_once() -> None:
    plain, function = Counting(), accelerate(when="now")(Counting.add)
    counting = Counting()
    with options(devices="cpu,emulated*2"):
        for _ in range(4):
            assert function(counting, X) == plain.add(X)
    assert vars(counting) == vars(plain) and not function.fell_back


def test_what_is_quick_is_never_shared() -> None:
    calls = Calls(doubled, {NATIVE: 0.9 * cpu_only_calls.ALONE, SHARED: 0.0, DEVICES: 0.0})
    assert calls(X) == NATIVE and calls.taken == [1, 0, 0] and calls.left.takes((X,), calls.team)
    for best in (NATIVE, DEVICES):  # what takes a little longer, devices may have, but not parts of it
        calls = Calls(doubled, {NATIVE: 0.9 * cpu_only_calls.LEAST, SHARED: 0.0, DEVICES: 1e-4 if best else 1.0})
        assert calls(X) == best and calls.taken[SHARED] == 0 and calls.taken[DEVICES]
        assert calls.left.are_small((X,), calls.team) == (best == NATIVE)


def test_entry_stubs_take_small_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no larger than a call that the CPU has by itself passes no dispatcher; all else does."""
    asked: list[int] = []
    usual = Dispatcher.enter

    def enter(self: Dispatcher, *given: Any) -> Any:
        asked.append(1)
        return usual(self, *given)

    def scaled(x: Any, k: Any, other: Any = None) -> Any:
        return x[:, :7].sum() * k

    monkeypatch.setattr(cpu_only_calls, "ALONE", 1e9)
    monkeypatch.setattr(Dispatcher, "enter", enter)
    function, x = accelerate(scaled), np.ones((20, 30))

    def passed(*args: Any) -> bool:
        """Whether the dispatcher has had a call."""
        asked.clear()
        assert function(*args) == scaled(*args)
        return bool(asked)

    with options(devices="cpu,emulated"):
        for _ in range(8):
            passed(x, 3, 1.0)
        assert not passed(x, 3, 1.0) and not passed(x[:9], 3, 2.0) and not passed(np.ones((20, 5)), 3, 1.0)
        assert passed(x, 4, 1.0) and passed(np.ones((21, 30)), 3, 1.0) and passed(np.ones((20, 31)), 3, 1.0)
        assert passed(x, 1 << 70, 1.0) and passed(x, 3, [1.0]) and passed(x, 3, None)
        assert not passed(x, 3, 1.0)
        with options(enabled=False):
            assert passed(x, 3, 1.0)
        with options(split=0.5):
            assert passed(x, 3, 1.0)
        with options(devices="emulated"):
            assert passed(x, 3, 1.0)
    with options(devices="cpu,emulated*2"):
        assert [passed(x, 3, 1.0) for _ in range(8)][-1] is False
    with options(devices="cpu,emulated"):
        assert passed(x, 3, 1.0)  # sizes are those of one team
    assert not passed(x, 3, 1.0)


def test_what_is_hopeless_is_not_tried() -> None:
    """A device that is foreseen to take much longer is asked for nothing."""
    calls = Calls(doubled, {NATIVE: 0.01, SHARED: 0.0, DEVICES: 0.0}, speed=1e3)
    assert calls(X) == NATIVE and calls.taken[1:] == [0, 0]


def test_stores_are_not_done_twice() -> None:
    """Calls take turns then; with sums whose bits would change, the team has them all."""
    calls = Calls(stored, {NATIVE: 1.0, SHARED: 0.5, DEVICES: 0.8})
    ways = [calls(X) for _ in range(12)]
    assert ways == [NATIVE] * 3 + [SHARED] * 3 + [DEVICES] * 3 + [SHARED] * 3
    calls = Calls(centred, {NATIVE: 1.0, SHARED: 5.0, DEVICES: 5.0})
    assert [calls(X) for _ in range(8)] == [SHARED] * 8


def test_decisions_are_kept(tmp_path: Any) -> None:
    """On the disk, for the function, the size class and the devices."""
    with options(cache=True, cache_dir=tmp_path):
        assert Calls(doubled, {NATIVE: 2.0, SHARED: 2.0, DEVICES: 1.0})(X) == DEVICES
        other = Calls(doubled, {NATIVE: 1.0, SHARED: 2.0, DEVICES: 2.0})
        assert other(X[:90_000]) == DEVICES and other.taken == [0, 0, 1]
        assert other(X[:30_000]) == NATIVE
        (tmp_path / choices.FILE).write_bytes(b"{")
        choices.forget()
        assert Calls(doubled, {NATIVE: 1.0, SHARED: 2.0, DEVICES: 2.0})(X) == NATIVE


def test_on_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device of set speed does what calls ask of devices."""
    clock = Told()
    device: Any = ModelDevice("emulated:997", Speed(1e6, 1e9, 1e-5), clock)
    work = accelerate(lambda x: (x * x + 1, x[x > 0].sum()))
    call(work._dispatcher, (X[:1000],), Team((device,), cpu=False), in_regions=True)
    assert 1e-3 < clock.now() < 1.0
