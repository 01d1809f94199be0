"""What one call asks of its device: counted for explanations, remembered for errors.

A `Meter` stands between a call and its device. It counts launches and bytes, and keeps the last launches that have
not been waited for yet: a GPU reports a fault when something later waits, and then one of these was it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.devices.device import Device
from parakeet_py.hybrid.devices.recording import Launch, Recorder, active
from parakeet_py.hybrid.residency.byte_ranges import Rows

REMEMBERED = 8  # launches that an error speaks of


class Run(NamedTuple):
    """What a call has done on a device.

    Attributes
    ----------
    device : its name
    launches : how often each kernel was launched with so many blocks, as ((kernel, blocks), times); no blocks: what
        cuBLAS has done in the place of the kernel
    bytes_in, bytes_out : copied to the device and from it
    allocated : bytes of memory made on the device, those of arguments included
    libraries : how often a library has done one of NumPy's routines, as ((library, routine), times)
    """

    device: str
    launches: tuple[tuple[tuple[int, int], int], ...]
    bytes_in: int
    bytes_out: int
    allocated: int
    libraries: tuple[tuple[tuple[str, str], int], ...] = ()


class RecordedDevice:
    """A device to which all is passed on, and told to what records it, if something does (`recording`)."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.name, self.architecture, self.asynchronous = device.name, device.architecture, device.asynchronous

    def recorder(self) -> Recorder | None:
        """What notes that something is asked, if this is to tell it."""
        return active()

    def spoil(self, why: str) -> None:
        """Something happens that is not noted."""
        noting = self.recorder()
        if noting is not None:
            noting.spoil(why)

    def allocate(self, size: int) -> int:
        noting = self.recorder()
        return self.device.allocate(size) if noting is None else noting.allocate(self.device, size)

    def free(self, address: int) -> None:
        noting = self.recorder()
        if noting is None or not noting.free(self.device, address):
            self.device.free(address)

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        self.device.copy_in(address, data, pitch)
        noting = self.recorder()
        if noting is not None:
            noting.copy_in(self.device, address, data, pitch)

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        self.device.copy_out(data, address, pitch)
        noting = self.recorder()
        if noting is not None:
            noting.copied_out()

    def host_array(self, shape: Sequence[int], dtype: np.dtype[Any], order: Any) -> np.ndarray[Any, Any]:
        return self.device.host_array(shape, dtype, order)

    def bring_again(self, array: np.ndarray[Any, Any]) -> None:
        self.device.bring_again(array)

    def finish_reading(self) -> None:
        self.device.finish_reading()

    def reaches(self, source: Device) -> bool:
        return self.device.reaches(source)

    def copy_over(self, address: int, source: Device, place: int, rows: Rows, after: Any = None) -> None:
        self.device.copy_over(address, source, place, rows, after)
        self.spoil("copies")

    def copy_within(self, target: int, source: int, size: int) -> None:
        self.device.copy_within(target, source, size)  # type: ignore[attr-defined]
        self.spoil("copies")

    def load(self, ptx: str, shared: int = 0) -> Any:
        return self.device.load(ptx, shared)

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        self.device.launch(module, kernel, blocks, threads, codes, values)
        noting = self.recorder()
        if noting is not None:
            noting.add(Launch(self.device, module, kernel, blocks, threads, codes, values))

    def synchronize(self) -> None:
        self.device.synchronize()

    def mark(self) -> Any:
        self.spoil("marks")
        return self.device.mark()

    def lane(self, number: int) -> AbstractContextManager[None]:
        self.spoil("lanes")
        return self.device.lane(number)


class Meter(RecordedDevice):
    """A device, for one call; on request it waits for every kernel, so that a fault is that of the kernel it names."""

    def __init__(self, device: Device, wait: bool = False) -> None:
        super().__init__(device)
        self.wait = wait or not device.asynchronous
        self.bytes_in = self.bytes_out = self.allocated = 0
        self.launches: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.libraries: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.unfinished: deque[tuple[int, int, Sequence[Any]]] = deque(maxlen=REMEMBERED)
        self._reads = getattr(device, "element", None) if getattr(device, "runner", None) is not None else None
        self.tells = not isinstance(device, RecordedDevice)  # else that one does

    def recorder(self) -> Recorder | None:
        return active() if self.tells else None

    def launched(self, number: int, blocks: int, values: Sequence[Any]) -> None:
        """To be said before kernel `number` is launched."""
        self.launches[number, blocks] += 1
        self.unfinished.append((number, blocks, values))

    def run(self) -> Run:
        """What has been done so far."""
        libraries = tuple(self.libraries.items())
        return Run(self.name, tuple(self.launches.items()), self.bytes_in, self.bytes_out, self.allocated, libraries)

    # ---- the device --------------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        address = super().allocate(size)
        self.allocated += size
        return address

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        super().copy_in(address, data, pitch)
        self.bytes_in += data.nbytes

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        super().copy_out(data, address, pitch)
        self.bytes_out += data.nbytes
        self.unfinished.clear()

    def element(self, address: int, dtype: str, word: int = 0) -> tuple[Any, int]:
        """An element, after everything launched before, and the word at another address, if there is one."""
        if self._reads is None:
            element, more = np.empty(1, dtype), np.zeros(1, np.int64)
            if word:
                self.copy_out(more.view(np.uint8), word)
            self.copy_out(element.view(np.uint8), address)
            return element[0], int(more[0])
        found: tuple[Any, int] = self._reads(address, dtype, word)
        self.bytes_out += found[0].itemsize + (8 if word else 0)
        self.unfinished.clear()
        noting = self.recorder()
        if noting is not None:
            noting.copied_out()
        return found

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        super().launch(module, kernel, blocks, threads, codes, values)
        if self.wait:
            self.synchronize()

    def offered(self, left: Any, right: Any, out: Any) -> bool:
        """Whether a library would multiply matrices that lie so."""
        ask = getattr(self.device, "offered", None)
        return ask is not None and bool(ask(left, right, out))

    def multiply(self, left: Any, right: Any, out: Any, fast: bool) -> bool:
        """Let a library multiply matrices; whether there is one that can."""
        ask = getattr(self.device, "multiply", None)
        done = ask is not None and bool(ask(left, right, out, fast))
        noting = self.recorder()
        if done and noting is not None:
            noting.multiplied(self.device, left, right, out, fast)
        return done

    def routine(self, name: str, outs: Sequence[Any], ins: Sequence[Any]) -> bool | None:
        """Let a library do one of NumPy's routines; whether that has failed, None if there is none that can."""
        ask = getattr(self.device, "routine", None)
        done = None if ask is None else ask(name, outs, ins)
        if done is None:
            return None
        library, failed = done
        self.libraries[library, name] += 1
        noting = self.recorder()
        if noting is not None:
            noting.by_library(self.device, name, outs, ins, bool(failed))
        return bool(failed)

    def synchronize(self) -> None:
        super().synchronize()
        self.unfinished.clear()
