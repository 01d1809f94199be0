"""What may go wrong around calls: devices that are lost, memory that runs out, streams and arrays that are gone.

The answer stays right, or the exception says what has happened; nothing hangs (the test waits for so long only).
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from parakeet_py import accelerate, asdevice, options
from parakeet_py.base.errors import DeviceWarning
from parakeet_py.call.devices import recorded_calls
from parakeet_py.hybrid.devices.cuda_schedules import CudaRequests
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.ptx import emulator
from tests import driver
from tests.driver import kernels
from tests.driver.machine import Code, Status
from tests.driver.scenarios import Shown, refused, relax


def raised(work: Any, *given: Any) -> str:
    """The text of the device's error."""
    try:
        work(*given)
    except DeviceError as error:
        return str(error)
    raise AssertionError("it has gone well")


def lose(number: int, after: int) -> None:
    """Let a device be gone when it is asked to launch so many kernels more."""
    usual, left = kernels.launched, [after]

    def launched(*given: Any) -> None:
        context = driver.machine.stream(given[4]).context
        if context.number == number:
            left[0] -= 1
            if left[0] < 0:
                context.error = Code.ILLEGAL_ADDRESS
                context.drop()
                raise Status(Code.ILLEGAL_ADDRESS)
        usual(*given)

    kernels.launched = launched


def lost(devices: str, stores: str) -> None:
    """A device is gone in the middle of a schedule: of one that stores into its arrays, and of one that does not."""
    driver.load(devices=3)
    recorded_calls.AFTER = 1
    runs, made = [0], CudaRequests.__call__

    def counted(self: Any, *given: Any) -> Any:
        runs[0] += 1
        return made(self, *given)

    CudaRequests.__call__ = counted  # type: ignore[method-assign]
    mixed = accelerate(lambda x, y: np.sqrt(abs(x[:-2] + y[2:])) * 0.5)
    here = np.random.default_rng(1).random((2, 60, 5))
    work: Any = relax if stores == "stores" else mixed
    with options(devices=devices, check=False):
        there = [asdevice(one) for one in here]
        for _ in range(8):
            found = work(*there)
        assert runs[0] >= 2, runs
        lose(int(devices[-1]), after=1 if stores == "stores" and "," not in devices else 0)
        before = runs[0]
        if stores != "stores" and "," in devices:  # the arrays are elsewhere, too: others do its part
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found = work(*there)
                assert np.allclose(np.asarray(found), mixed.__wrapped__(*here))
            assert ["cuda:1 has failed" in str(one.message) for one in told] == [True]
        else:
            text = raised(lambda: (work(*there), work(*there), np.asarray(there[0])))
            assert "launching" in text and "cannot be used any more" in text, text
        assert runs[0] > before  # it was in a schedule
        del found
    with warnings.catch_warnings(record=True) as caught, options(devices=devices, check=False):
        warnings.simplefilter("always")
        for _ in range(2):  # what is left does it, with arrays of the host
            mine = here.copy()
            try:
                result = work(*mine)
            except DeviceError as error:
                assert "," not in devices and "cannot be used any more" in str(error), error
                continue
            expected = here.copy()
            wanted = work.__wrapped__(*expected)
            assert np.array_equal(mine, expected) and (wanted is None or np.allclose(result, wanted))
    assert stores != "stores" or "," not in devices or [one for one in caught if one.category is DeviceWarning]
    with options(devices="cuda:2"):
        assert np.allclose(mixed(*here), mixed.__wrapped__(*here))


def lost_in_rounds() -> None:
    """A device is gone in a round of a loop that is asked for again; memory runs out in one."""
    driver.load(devices=2, memory=1 << 20)

    @accelerate
    def settled(x: Any, least: Any, times: Any) -> Any:
        for _ in range(times):
            before = x
            x = x * 0.5
            if np.abs(x - before).max() < least:
                break
        return x

    here = np.random.default_rng(1).random(1000)
    with options(devices="cuda:0", check=False):
        there = asdevice(here)
        assert np.array_equal(np.asarray(settled(there, -1.0, 30)), here * 0.5**30)
        taken = asdevice(np.zeros(15 << 13))  # nearly all: what rounds have used is given up for it, and had again
        assert np.array_equal(np.asarray(settled(there[:10], -1.0, 30)), here[:10] * 0.5**30)
        del taken
        lose(0, after=40)
        text = raised(settled, there, -1.0, 30)
        assert "cannot be used any more" in text, text
    with options(devices="cuda:1", check=False):
        assert np.array_equal(settled(here, -1.0, 30), here * 0.5**30)


def no_memory_in_a_window() -> None:
    """One of three devices has room for less than its part and its halos need: what it can't hold others hold, or it is
    computed in pieces."""
    driver.load(devices=3, memory=1 << 21)
    driver.machine.contexts[1].device = emulator.Device(memory_bytes=1 << 14)
    driver.machine.contexts[1].size = 1 << 14
    here = np.random.default_rng(1).random((2, 30, 100))

    @accelerate
    def step(x: Any, y: Any) -> None:
        y[1:-1] = (x[:-2] + x[2:]) * 0.5
        x[1:-1] = (y[:-2] + y[2:]) * 0.5

    with options(devices="cuda", split=1.0, check=False), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeviceWarning)
        for _ in range(2):
            mine, wanted = here.copy(), here.copy()
            step(*mine)
            step.__wrapped__(*wanted)
            assert np.array_equal(mine, wanted)
    assert ("cuMemAllocFromPoolAsync", "OUT_OF_MEMORY") in refused()


def gone() -> None:
    """A stream that has been destroyed, an address that is no device's, an array that has been freed under us."""
    driver.load()
    from cuda.core import Device

    function = accelerate(lambda a, b: a * 2 + b)
    array = asdevice(np.arange(1000.0), "cuda:0")
    stream = Device(0).create_stream()
    number = int(stream.handle)
    stream.close()
    text = raised(function, Shown(array, number), Shown(array, number))
    assert text.startswith("waiting for another stream failed"), text
    assert function(Shown(array, 1), array)[1] == 3  # the device lives

    class Nowhere(Shown):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {**super().__cuda_array_interface__, "data": (1 << 60, False)}

    try:
        function(Nowhere(array, 1), array)
        raise AssertionError("no device has this")
    except DeviceError as error:
        assert str(error) == "the arrays among the arguments do not all live on cuda:0"
    other = asdevice(np.arange(500.0), "cuda:0")
    shown = Shown(other, 1)
    interface = dict(shown.__cuda_array_interface__)

    class Freed:
        __cuda_array_interface__ = interface

    other._place.alone.synchronize()
    driver.machine.contexts[0].device.free(interface["data"][0])
    text = raised(lambda: np.asarray(function(Freed(), asdevice(np.ones(500), "cuda:0"))))
    assert text == "the arrays among the arguments do not all live on cuda:0"
    with options(devices="cuda:1"):
        assert function(np.ones(3), np.ones(3)).tolist() == [3, 3, 3]


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    print("done")
