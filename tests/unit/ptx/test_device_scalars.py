"""Scalars that only kernels need stay on the device; those that the host needs, or that may change, do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices import calls
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.team import team_of


def center(x: Any) -> Any:
    return x - x.mean()


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def normalize(x: Any) -> Any:
    for _ in range(4):
        x = x / np.sqrt((x * x).sum() + 1)
    return x


def two_kernels(x: Any) -> Any:
    s = x.sum()
    return x * s, np.cumsum(x + s * 2)


def integers(x: Any) -> Any:
    return (x * 8).astype(np.int64) - (x * 8).astype(np.int64).max()


def wanted_by_both(x: Any) -> Any:
    s = x.sum()
    return x + s, s


def decides(x: Any) -> Any:
    s = x.sum()
    if s > 3:
        x = x + s
    return x


def changed_before(x: Any) -> Any:
    first = x[0]
    x[:] = x + 1
    return x * first


def changed_meanwhile(x: Any) -> None:
    x[:] = x + x[0]


def changed_later_in_a_loop(x: Any) -> Any:
    first = x[0]
    y = x * 0
    for _ in range(3):
        y = y + first
        x[:] = x * 2
    return y


def changed_after(x: Any) -> Any:
    y = x * x[0]
    x[:] = 7
    return y


def in_a_branch(x: Any, flag: Any) -> Any:
    s = x.sum()
    return x - s if flag else x


def not_exact(x: Any) -> Any:
    return x * np.exp(-x.max())


STAY = [center, softmax, normalize, two_kernels, integers]
FETCHED = [
    wanted_by_both,
    decides,
    changed_after,
    changed_before,
    changed_meanwhile,
    changed_later_in_a_loop,
    not_exact,
]


def run_of(function: Callable[..., Any], *args: Any) -> Any:
    """What a call has moved, once it has given what Python gives."""
    accelerated: Any = accelerate(function)
    mine, plain = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
    found = calls.call(accelerated._dispatcher, mine, team_of(EmulatedDevice("emulated:9", 1 << 24)))
    expected = function(*plain)
    for one, other in zip(_parts((found, mine)), _parts((expected, plain)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    run = calls.device_plan_of(accelerated._dispatcher.compiled_for_normal(tuple(args))).last_run
    assert run is not None
    returned = sum(one.nbytes for one in _parts(expected) if isinstance(one, np.ndarray))
    stored = sum(
        one.nbytes
        for one, other in zip(plain, args, strict=True)
        if isinstance(one, np.ndarray) and (one != other).any()
    )
    return run.bytes_out - returned - stored


def _parts(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [part for item in value for part in _parts(item)]
    return [] if value is None else [value]


@pytest.mark.parametrize("function", STAY)
def test_nothing_is_fetched(function: Callable[..., Any]) -> None:
    assert run_of(function, np.linspace(0.5, 3, 700)) == 0


@pytest.mark.parametrize("function", FETCHED)
def test_what_the_host_needs_is_fetched(function: Callable[..., Any]) -> None:
    assert run_of(function, np.linspace(0.5, 3, 700)) >= 8


@pytest.mark.parametrize("flag", [True, False])
def test_branches(flag: bool) -> None:
    assert run_of(in_a_branch, np.linspace(0.5, 3, 700), flag) <= 0  # an argument that is given back stays where it is


def test_too_much_for_a_kernel_is_the_hosts() -> None:
    def many(x: Any) -> Any:
        s = x.sum()
        for _ in range(1):
            s = s * 2 + 1 - s / 3 + s * s - s / 7 + s * 5 - s / 11 + s * 13 - s / 17
        return x * s

    assert run_of(many, np.linspace(0.5, 3, 700)) == 8


def test_float16_and_float32() -> None:
    for dtype in (np.float16, np.float32):
        x = np.arange(9).astype(dtype)
        accelerated: Any = accelerate(lambda x: x / (x.max() * x.dtype.type(0.3)))
        found = calls.call(accelerated._dispatcher, (x,), team_of(EmulatedDevice("emulated:9", 1 << 24)))
        assert found.dtype == dtype and np.array_equal(found, accelerated.__wrapped__(x))


def test_loops_that_may_ask_python() -> None:
    """Where what never changes in a loop says that it does not, its iterations are one launch. Python sees afterwards
    what the device has stored into the generator's state, which Python has given."""

    def drawn_by_python(rng: Any) -> int:
        eval("1")  # not compiled
        return int(rng.bit_generator.random_raw()) >> 40

    def plain(seed: Any, x: Any) -> Any:
        rng = np.random.default_rng(seed)
        return x + rng.random(len(x)), drawn_by_python(rng)

    drawn = accelerate(plain)
    with options(devices="emulated"):
        for seed in (1, 1, 2):
            for found, wanted in zip(drawn(seed, np.ones(40)), plain(seed, np.ones(40)), strict=True):
                assert np.array_equal(found, wanted)
        assert sum(count for _, count in drawn.explain(1, np.ones(40)).device.last_run.launches) < 10  # not 40
