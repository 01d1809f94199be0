"""What a call on devices takes of the host: `make bench-host`.

The driver is the stand-in that returns at once (`at_once`), under the published cuda-core, so all that is measured is
work of the host: this package's, and cuda-core's own where one launches with that. Times are CPU time of this process,
the least of several rounds, in which all ways take turns; the machine may be busy.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from parakeet_py import accelerate, asdevice, options
from tests import driver

ROUNDS, CALLS = 15, 200
N = 1 << 16


def one_kernel(a: Any) -> Any:
    return a * 2 + 1


def two_arrays(a: Any, b: Any, x: Any) -> Any:
    return a * x + b


def five_kernels(a: Any, b: Any) -> Any:
    """Of extents that are others each time: two sums and the maps between them."""
    m = a.mean()
    c = (a - m) * b
    return np.sqrt(c * c / c.size).max(), c[1:] - b[:-1]


def in_place(x: Any, y: Any, times: Any) -> None:
    for _ in range(times):
        y[1:-1] = (x[:-2] + x[2:]) * 0.5
        x[1:-1] = (y[:-2] + y[2:]) * 0.5


def relaxed(x: Any, y: Any) -> None:
    y[1:-1] = (x[:-2] + x[2:]) * 0.5


def until_small(x: Any, y: Any, least: Any, most: Any) -> Any:
    change, count = 1.0, 0
    while change >= least and count < most:
        y[1:-1] = (x[:-2] + x[2:]) * 0.5
        x[1:-1] = (y[:-2] + y[2:]) * 0.5
        change = np.abs(x).max()
        count += 1
    return count


def until_near(x: Any, least: Any, most: Any) -> Any:
    change, count = 1.0, 0
    while change >= least and count < most:
        inner = (x[:-2] + x[2:]) * 0.5
        after = np.concatenate((x[:1], inner, x[-1:]))
        change = np.abs(after - x).max()
        x = after
        count += 1
    return x


Work = Callable[[], object]


def least(ways: dict[str, tuple[Work, int]]) -> dict[str, float]:
    """Microseconds of CPU time, by way; each is done so many times a round, in turns."""
    found = dict.fromkeys(ways, float("inf"))
    for work, times in ways.values():
        for _ in range(min(times, 20)):
            work()
    for _ in range(ROUNDS):
        for name, (work, times) in ways.items():
            start = time.thread_time()
            for _ in range(times):
                work()
            found[name] = min(found[name], (time.thread_time() - start) / times * 1e6)
    return found


def raw_launch() -> Work:
    """A launch, with the memory of its result, as a program has it that uses cuda-core itself."""
    from cuda.core import Device, DeviceMemoryResource, LaunchConfig, ObjectCode, launch

    device = Device(0)
    device.set_current()
    stream, memory = device.create_stream(), DeviceMemoryResource(0)
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 n, .param .u64 b) { ret; }
"""
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel("nothing")
    source = memory.allocate(8 * N, stream=stream)
    config = LaunchConfig(grid=N // 256, block=256)

    def work() -> object:
        out = memory.allocate(8 * N, stream=stream)
        launch(stream, config, kernel, int(source.handle), N, int(out.handle))
        return out

    return work


def by_jax() -> Work | None:
    """The same kernel by JAX where that is installed, on its CPU, of eight elements: what is left is its dispatch."""
    if importlib.util.find_spec("jax") is None:
        return None
    jax = importlib.import_module("jax")
    function, array = jax.jit(one_kernel), jax.numpy.ones(8)
    return lambda: function(array)


def changing(work: Any, count: int, calls: int = CALLS * (ROUNDS + 1)) -> Work:
    """Calls on arrays whose extents differ from call to call, of so many calls."""
    extents = range(N // 8, N // 8 + 8 * calls, 8)
    given = itertools.cycle([[asdevice(np.ones(extent)) for _ in range(count)] for extent in extents])
    return lambda: work(*next(given))


def main() -> None:
    driver.load(devices=8, memory=1 << 34, capability=(9, 0), at_once=True)
    print("host time in microseconds of CPU, driver stand-in that returns at once (measured here, no GPU)")
    ways: dict[str, tuple[Work, int]] = {"raw cuda-core: one launch and its result": (raw_launch(), CALLS)}
    jax = by_jax()
    if jax is not None:
        ways["JAX, on the CPU: one kernel of eight elements"] = jax, CALLS
    steps = 500
    with options(devices="cuda:0", check=False):
        a, b, x, y = (asdevice(np.ones(N)) for _ in range(4))
        one, two, loop = accelerate(one_kernel), accelerate(two_arrays), accelerate(in_place)
        kept: dict[str, Any] = {}
        ways["a call of one kernel"] = lambda: kept.update(r=one(a)), CALLS
        ways["a call of two arrays and a number"] = lambda: kept.update(s=two(a, b, 2.0)), CALLS
        ways["a call of one kernel, of another extent each time"] = changing(one, 1), CALLS
        ways["a call of five kernels, of other extents each time"] = changing(accelerate(five_kernels), 2), CALLS
        ways[f"a loop of {2 * steps} kernels, each kernel"] = lambda: loop(x, y, steps), 1
        until = accelerate(until_small)
        ways["a loop whose end an element decides, each round: four kernels and a wait"] = (
            lambda: until(x, y, -1.0, steps),
            1,
        )
        near = accelerate(until_near)
        ways["the same, where each round makes three arrays"] = lambda: near(x, -1.0, steps), 1
        found = least(ways)
    for name, micros in found.items():
        per = micros / (2 * steps) if "each kernel" in name else micros / steps if "round" in name else micros
        print(f"  {name:48s} {per:9.2f}")
    for count in (1, 2, 4, 8):
        names = ",".join(f"cuda:{number}" for number in range(count))
        with options(devices=names, check=False):
            u, v = asdevice(np.ones(N)), asdevice(np.ones(N))
            step = accelerate(relaxed)
            both = accelerate(in_place)
            alone = least({"": (lambda u=u, v=v, step=step: step(u, v), 20)})  # type: ignore[misc]
            found = least({"": (lambda u=u, v=v, both=both: both(u, v, 1), 20)})  # type: ignore[misc]
            others = changing(accelerate(relaxed), 2, 160)
            for _ in range(160):  # brings the arrays; they are not recorded before they have come five times
                others()
            other = least({"": (others, 20)})
        print(f"  {f'a region on {count} device(s), halos that are there':48s} {alone['']:9.2f}")
        print(f"  {f'two regions on {count} device(s) that exchange halos':48s} {found['']:9.2f}")
        print(f"  {f'a region on {count} device(s), of other extents each time':48s} {other['']:9.2f}")
    assert not driver.unknown, driver.unknown[:3]


def counts() -> list[int]:
    """Launches, copies, allocations and waits that the driver has been asked for."""
    library = ctypes.CDLL("libcuda.so.1")
    library.counts.restype = ctypes.POINTER(ctypes.c_longlong)
    return [int(library.counts()[number]) for number in range(4)]


if __name__ == "__main__":
    main()
