"""A device and the emulator side by side: everything that is done on the one is done on the other, and compared.

After each kernel the memory behind its pointer arguments must have the same bytes on both: its arithmetic is that of
its PTX, which is exact except for the instructions that PTX itself calls approximate, and for what atomics make of
floats, in one instruction or in a loop of compare-and-swap. After kernels with such instructions the emulator gets what
the device has computed, so that the next exact kernel can be compared again. NaNs are equal whatever their bits: PTX
leaves them open.

Kernels run on the emulator first: one that faults never reaches the device, whose context it would take along.
"""

from __future__ import annotations

import bisect
import re
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.devices.device import Device

INEXACT = re.compile(r"\.approx|\bdiv\.full|\b(?:atom|red)\b[.\w:]*\.add(?:\.noftz)?\.(?:f|bf)\d|\b(?:w|wg)?mma\b")
SWAPS, ROUNDS = re.compile(r"\batom\b[.\w:]*\.cas\."), re.compile(r"\b(?:add|sub|mul|fma)\.(?:\w+\.)*f\d")
POISON = 0xA5  # fills new memory on both sides, so that what is read before it is written is the same too


class TwinDifference(AssertionError):
    """A kernel has left something else in the device's memory than in the emulator's."""


class _Module(NamedTuple):
    real: Any
    emulated: Any
    exact: bool


class Twin:
    """A `Device` that is two.

    Attributes
    ----------
    exact, approximate : kernels that have been compared bit for bit, and those that could not be
    """

    def __init__(self, real: Device, emulated: Device) -> None:
        assert real.architecture == emulated.architecture
        self.real, self.emulated = real, emulated
        self.name, self.architecture = real.name, real.architecture
        self.asynchronous = real.asynchronous
        self.exact = self.approximate = 0
        self._lock = threading.RLock()
        self._blocks: dict[int, tuple[int, int]] = {}  # of the real device: size, the same on the emulator
        self._starts: list[int] = []

    element = ask_again = None  # which would pass by the emulated device

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    # ---- memory ------------------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        with self._lock:
            address = self.real.allocate(size)
            poison = np.full(size, POISON, np.uint8)
            other = self.emulated.allocate(size)
            self.real.copy_in(address, poison)
            self.emulated.copy_in(other, poison)
            self._blocks[address] = size, other
            bisect.insort(self._starts, address)
            return address

    def free(self, address: int) -> None:
        with self._lock:
            _, other = self._blocks.pop(address)
            del self._starts[bisect.bisect_left(self._starts, address)]
            self.emulated.free(other)
            self.real.free(address)

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        self.real.copy_in(address, data, pitch)
        self.emulated.copy_in(self.translated(address), data, pitch)

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        self.real.copy_out(data, address, pitch)

    def copy_within(self, target: int, source: int, size: int) -> None:
        self.real.copy_within(target, source, size)  # type: ignore[attr-defined]
        self.emulated.copy_within(self.translated(target), self.translated(source), size)  # type: ignore[attr-defined]

    def block(self, address: int) -> int | None:
        """The start of the memory that an address lies in; None if it lies in none (arrays without elements)."""
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        start = self._starts[place]
        return start if address < start + self._blocks[start][0] else None

    def translated(self, address: int) -> int:
        """The same address in the emulator's memory."""
        start = self.block(address)
        return address if start is None else self._blocks[start][1] + address - start

    def offered(self, *given: Any) -> bool:
        """It is kernels that are tested."""
        return False

    multiply = offered

    # ---- kernels -----------------------------------------------------------------------------------------------------

    def load(self, ptx: str, shared: int = 0) -> Any:
        return _Module(self.real.load(ptx, shared), self.emulated.load(ptx, shared), is_exact(ptx))

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        with self._lock:
            pairs = list(zip(codes, values, strict=True))
            there = [self.translated(value) if code == "P" else value for code, value in pairs]
            there = [
                one._replace(address=self.translated(one.address)) if code == "T" else one
                for code, one in zip(codes, there, strict=True)
            ]
            self.emulated.launch(module.emulated, kernel, blocks, threads, codes, there)
            self.real.launch(module.real, kernel, blocks, threads, codes, values)
            reached = dict.fromkeys(self.block(value) for code, value in pairs if code == "P")
            for start in reached:
                if start is not None:
                    self._compare(kernel, start, module.exact)
            if module.exact:
                self.exact += 1
            else:
                self.approximate += 1

    def resources(self, module: Any, kernel: str, threads: int) -> Any:
        ask = getattr(self.real, "resources", None)
        return None if ask is None else ask(module.real, kernel, threads)

    def _compare(self, kernel: str, start: int, exact: bool) -> None:
        size, other = self._blocks[start]
        here, there = np.empty(size, np.uint8), np.empty(size, np.uint8)
        self.real.copy_out(here, start)
        self.emulated.copy_out(there, other)
        wrong = different(here, there)
        if wrong is None:
            return
        if exact:
            first, count = wrong
            some = slice(first - first % 8, first - first % 8 + 16)
            raise TwinDifference(
                f"{kernel} on {self.name} ({self.architecture}): {count} of {size} bytes differ from the emulator's, "
                f"first byte {first}: {here[some].tobytes().hex()} on the device, {there[some].tobytes().hex()} there"
            )
        self.emulated.copy_in(other, here)

    def synchronize(self) -> None:
        self.real.synchronize()


def is_exact(ptx: str) -> bool:
    """Whether a kernel computes the same bits in every run and on every device: float arithmetic in a loop of
    compare-and-swap rounds in the order in which threads come."""
    return INEXACT.search(ptx) is None and not (SWAPS.search(ptx) and ROUNDS.search(ptx))


def different(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> tuple[int, int] | None:
    """The first byte that differs, and how many do; None if none does, but in NaNs."""
    wrong = one != other
    if not wrong.any():
        return None
    for dtype in ("f8", "f4", "f2"):
        step = np.dtype(dtype).itemsize
        whole = one.size // step * step
        with np.errstate(invalid="ignore"):
            both = np.isnan(one[:whole].view(dtype)) & np.isnan(other[:whole].view(dtype))
        wrong[:whole] &= ~np.repeat(both, step)
    places = np.flatnonzero(wrong)
    return (int(places[0]), int(places.size)) if places.size else None
