"""Launches are gathered, sequences that repeat become graphs; on the stand-in for CUDA."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices import recorded_calls
from parakeet_py.hybrid.devices.launches import GRAPHS, MOST, Launches, launch_of
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.residency.device_array import asdevice
from tests.helpers import fake_cuda


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[fake_cuda.Context]:
    monkeypatch.setattr(fake_cuda.GraphBuilder, "made", [])
    monkeypatch.setattr(fake_cuda.Graph, "launched", 0)
    with fake_cuda.installed() as found, options(devices="cuda:0", check=False):
        yield found


class Recorded:
    """`Launches` whose driver takes notes: numbers of kernels, and lists of them for graphs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: list[Any] = []
        self.breaks = False
        self.closed = 0
        core: Any = __import__("cuda.core").core
        monkeypatch.setattr(core, "launch", self.launch)
        self.launches = Launches(self)
        self.items: list[Any] | None = None

    def launch(self, where: Any, config: Any, kernel: Any, *arguments: Any) -> None:
        if self.items is not None and self.breaks:
            raise RuntimeError("cannot be captured")
        (self.given if self.items is None else self.items).append(kernel)

    def create_graph_builder(self) -> Any:
        return self

    def begin_building(self) -> Any:
        self.items = []
        return self

    def end_building(self) -> Any:
        return self

    def complete(self) -> Any:
        items, given = self.items, self.given
        return type("Graph", (), {"launch": lambda graph, stream: given.append(items)})()

    def close(self) -> None:
        self.items = None
        self.closed += 1

    def run(self, *kernels: str, value: float = 1.0) -> None:
        import ctypes

        for kernel in kernels:
            self.launches.add(launch_of(kernel, 1, 32, [ctypes.c_double(value)]))
        self.launches.flush()


@pytest.fixture
def recorded(context: fake_cuda.Context, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return Recorded(monkeypatch)


def test_the_second_time_is_a_graph(recorded: Recorded) -> None:
    for _ in range(4):
        recorded.run("a", "b", "a")
    assert recorded.given == [*"aba", list("aba"), list("aba"), list("aba")] and recorded.closed == 1


def test_other_arguments_are_another_sequence(recorded: Recorded) -> None:
    recorded.run("a", "b", "c")
    recorded.run("a", "b", "c", value=2.0)
    recorded.run("a", "b")
    recorded.run("a", "b")
    assert recorded.given == [*"abcabcabab"]


def test_arguments_are_the_same_if_their_bits_are(recorded: Recorded) -> None:
    for value in (0.0, 0.0, -0.0, np.nan, np.nan):
        recorded.run("a", "b", "c", value=value)
    assert recorded.given == [*"abc", list("abc"), *"abc", *"abc", list("abc")]


def test_kernels_live_as_long_as_their_sequences(recorded: Recorded) -> None:
    class Kernel:
        pass

    seen = [Kernel() for _ in range(3)]
    alive = [weakref.ref(kernel) for kernel in seen]
    recorded.run(*seen)  # type: ignore[arg-type]
    seen.clear()
    recorded.given.clear()
    gc.collect()
    assert all(kernel() is not None for kernel in alive)
    for number in range(GRAPHS):
        recorded.run("a", "b", "c", value=number)
    gc.collect()
    assert not any(kernel() is not None for kernel in alive)


def test_long_sequences_are_given_in_parts(recorded: Recorded) -> None:
    for _ in range(2):
        recorded.run(*"x" * (MOST + 2))
    assert recorded.given == [*"x" * (MOST + 2), list("x" * MOST), "x", "x"]


def test_only_so_many_graphs_are_kept(recorded: Recorded) -> None:
    for value in range(3 * GRAPHS):
        recorded.run("a", "b", "c", value=value)
    assert len(recorded.launches._graphs) == GRAPHS


def test_what_cannot_be_captured_is_launched(recorded: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    recorded.breaks = True
    with caplog.at_level(logging.INFO, "parakeet_py"):
        for _ in range(3):
            recorded.run("a", "b", "c")
    assert recorded.given == [*"abcabcabc"] and recorded.closed == 1
    assert "no graph of kernels can be made: cannot be captured" in caplog.text


def test_memory_is_given_back_after_what_uses_it(recorded: Recorded) -> None:
    recorded.launches.add(launch_of("a", 1, 32, []))
    recorded.launches.after(lambda: recorded.given.append("freed"))
    assert recorded.given == []
    recorded.launches.flush()
    assert recorded.given == ["a", "freed"]
    recorded.launches.after(lambda: recorded.given.append("at once"))
    assert recorded.given == ["a", "freed", "at once"]


def test_repeated_calls_on_arrays_in_place(context: fake_cuda.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that are not recorded as a whole. The stand-in gives no address twice, so results are stored into an array
    of the caller."""
    monkeypatch.setattr(recorded_calls, "ATTEMPTS", 0)

    @accelerate
    def sweep(x: Any, y: Any) -> None:
        for _ in range(3):
            y[1:-1] = x[:-2] + x[2:]
            x[1:-1] = (y[:-2] + y[2:]) * 0.5

    device: Any = open_devices("cuda:0")[0]
    plain, other = np.arange(300.0), np.zeros(300)
    x, y = (asdevice(a, device) for a in (plain, other))
    for _ in range(4):
        sweep(x, y)
        sweep.__wrapped__(plain, other)
    assert np.array_equal(np.asarray(x), plain) and np.array_equal(np.asarray(y), other)
    assert fake_cuda.GraphBuilder.made == [6] and fake_cuda.Graph.launched == 3


def test_nothing_is_left(context: fake_cuda.Context) -> None:
    function = accelerate(lambda x: np.cumsum(x * 2) + x.sum())
    for _ in range(3):
        assert np.array_equal(function(np.arange(300.0)), function.__wrapped__(np.arange(300.0)))
    gc.collect()
    (device,) = open_devices("cuda:0")
    device.trim()
    device.synchronize()
    assert context.device.free_bytes == 1 << 30


def test_cycles_are_no_reason_to_run_out_of_memory() -> None:
    with fake_cuda.installed(memory=1 << 20):
        device: Any = open_devices("cuda:0")[0]
        gc.disable()
        gc.freeze()  # what other tests have left is not looked through each time
        try:
            for _ in range(20):
                array = asdevice(np.zeros(50_000), device)
                array.itself = array  # type: ignore[attr-defined]
        finally:
            gc.unfreeze()
            gc.enable()
