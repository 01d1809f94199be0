"""The memory of a CUDA device, and what is asked of it besides kernels: copies, in the order of lanes.

A device has a stream of its own for everything, and more, its lanes, where copies shall overlap kernels. What is freed
may be used again in the same lane at once. Copies go through pinned memory (`staging`).
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.devices.device import Device, DeviceError, DeviceMemoryError
from parakeet_py.hybrid.devices.launches import Launches
from parakeet_py.hybrid.devices.memory_pool import MemoryPool, Stock, rounded
from parakeet_py.hybrid.devices.pinned_pages import PinnedArguments, PinnedPages, Pinning
from parakeet_py.hybrid.devices.staging import MOST_PITCH, Staging
from parakeet_py.hybrid.devices.timeline import COPY_IN, COPY_OUT, COPY_OVER, recorder, span
from parakeet_py.hybrid.residency.byte_ranges import Rows

KEPT = 4  # memory that calls have given up is kept for later ones, up to this part of the device's
_FOR_ALL = 1  # memory is pinned for all devices
SCARCE = 16  # with less than this part of it free, others in the process may need what is kept

opened: dict[int, Any] = {}  # devices, by their numbers


def is_open(number: int, device: CudaMemory) -> None:
    """From now on a device is used."""
    if not opened:
        gc.callbacks.append(_collecting)
    opened[number] = device


def _collecting(phase: str, info: dict[str, int]) -> None:
    """All garbage is about to be collected: by CuPy, say, before it says that a device has no memory."""
    if phase == "start" and info["generation"] == 2:
        for device in [*opened.values()]:
            device.relieve()


def _pin(address: int, size: int) -> bool:
    for device in [*opened.values()]:
        if device.broken is None:
            with device._current():
                status, *_ = device._driver.cuMemHostRegister(address, size, _FOR_ALL)
            return int(status) == 0
    return False


def _unpin(address: int) -> bool:
    for device in [*opened.values()]:
        with device._current():
            status, *_ = device._driver.cuMemHostUnregister(address)
        if int(status) == 0:
            return True
    return False


pinned_pages = PinnedPages(Pinning(_pin, _unpin))
pinned_arguments = PinnedArguments(Pinning(_pin, _unpin))


class Lane(NamedTuple):
    """A stream and its handle, the pinned memory that its copies go through, what it has been asked to launch."""

    stream: Any
    handle: int
    staging: Staging
    launches: Launches


class _InOrder:
    """Something that is asked of a lane besides kernels: what has been launched there goes first, and no other thread
    asks the lane for anything meanwhile (what it is asked while launches are captured as a graph would get into that).

    No generator: from Python 3.13 on its frame would keep the exception, and so the memory of the call, in a cycle.
    """

    def __init__(self, device: CudaMemory, what: str) -> None:
        self.device, self.what = device, what

    def __enter__(self) -> Lane:
        self.device._enter()
        self.lane = self.device._lane()
        self.lane.launches.lock.acquire()
        try:
            self.lane.launches.flush()
        except BaseException as error:
            self.lane.launches.lock.release()
            if not isinstance(error, Exception) or isinstance(error, DeviceError):
                raise
            raise self.device._failed("launching kernels", error) from error
        return self.lane

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.lane.launches.lock.release()
        if isinstance(error, Exception) and not isinstance(error, DeviceError):
            raise self.device._failed(self.what, error) from error


class CudaMemory:
    """The memory of one CUDA device.

    Attributes
    ----------
    broken : what has taken the context along, if that has happened
    """

    def __init__(self, number: int) -> None:
        from cuda.bindings import driver
        from cuda.core import Device as Opened
        from cuda.core import DeviceMemoryResource

        self.name = f"cuda:{number}"
        self._driver = driver
        self._device = Opened(number)
        self._device.set_current()
        _, self._context = driver.cuCtxGetCurrent()
        self._readers: set[str] = set()  # devices that have been let read its memory directly, if they can
        self._admitting = threading.Lock()
        self._here = threading.local()
        self._lanes: dict[int, Lane] = {}
        self._lanes_lock = threading.Lock()
        self._memory = DeviceMemoryResource(number)
        self._buffers: dict[int, tuple[Any, Lane, Stock]] = {}  # and where it goes when it is free
        _, _, total = driver.cuMemGetInfo()
        self.pool = MemoryPool(int(total or 0) // KEPT, self._close)
        self.broken: str | None = None

    def _checked(self, result: Any, what: str) -> Any:
        """The values of a driver call; raises `DeviceError` if it failed."""
        status, *values = result
        if int(status) == 0:
            return values
        _, text = self._driver.cuGetErrorString(status)
        raise self._failed(what, text.decode() if text else str(status))

    def _failed(self, what: str, why: object) -> DeviceError:
        """The error to raise. If the context is gone, that is what this and all later operations say."""
        if self.broken is None:
            text = f"{what} failed: {why}"
            status, *_ = self._driver.cuCtxSynchronize()
            if int(status) == 0:
                return DeviceError(text)
            self.broken = f"{text}; this device cannot be used any more in this process"
        return DeviceError(self.broken)

    def _enter(self) -> None:
        if self.broken is not None:
            raise DeviceError(self.broken)
        self._device.set_current()

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Around what comes at any time, as memory is freed: amid what another device is asked for, say."""
        _, before = self._driver.cuCtxGetCurrent()
        self._driver.cuCtxSetCurrent(self._context)
        try:
            yield
        finally:
            self._driver.cuCtxSetCurrent(before)

    def _lane(self) -> Lane:
        """The lane that this thread asks in."""
        number = getattr(self._here, "lane", 0)
        found = self._lanes.get(number)
        if found is None:
            with self._lanes_lock:
                if number not in self._lanes:
                    self._device.set_current()
                    stream = self._device.create_stream()
                    staging = Staging(self._driver, stream, self._checked, pinned_arguments.has)
                    self._lanes[number] = Lane(stream, int(stream.handle), staging, Launches(stream))
                found = self._lanes[number]
        return found

    @contextmanager
    def lane(self, number: int) -> Iterator[None]:
        before = getattr(self._here, "lane", 0)
        self._here.lane = number
        try:
            yield
        finally:
            self._here.lane = before

    @property
    def _stream(self) -> Any:
        return self._lane().stream

    def _order(self, what: str) -> _InOrder:
        """Around what is asked of this thread's lane besides kernels; `what` failed if something is raised inside."""
        return _InOrder(self, what)

    def failed_with(self, what: str, status: int) -> DeviceError:
        """The error of a driver call that has given this status."""
        self._device.set_current()
        _, text = self._driver.cuGetErrorString(self._driver.CUresult(status))
        return self._failed(what, text.decode() if text else str(status))

    def allocate(self, size: int) -> int:
        number, whole = getattr(self._here, "lane", 0), rounded(size)
        kept = self.pool.take(number, whole) if self.broken is None else None
        if kept is not None:
            return kept
        self._enter()
        try:
            buffer = self._allocated(whole)
            if buffer is None:  # what is not referenced any more may be in cycles, or be freed behind launches
                gc.collect()
                self.trim()
                for other in [*self._lanes]:
                    with self.lane(other):
                        self.synchronize()
                buffer = self._allocated(whole)
        except DeviceError:
            raise
        except Exception as error:
            raise self._failed("getting memory", error) from error
        if buffer is None:
            raise DeviceMemoryError(self.name, size, self.free_bytes())
        address = int(buffer.handle)
        self._buffers[address] = buffer, self._lane(), self.pool.stock(number, whole)
        return address

    def stock(self, size: int) -> Stock:
        """The memory that is kept for so many bytes, where nothing else is under way in lanes."""
        return self.pool.stock(0, rounded(size))

    def _allocated(self, size: int) -> Any:
        """New memory; None if there is none."""
        try:
            lane = self._lane()
            with lane.launches.lock:
                return self._memory.allocate(size, stream=lane.stream)
        except Exception as error:
            if "OUT_OF_MEMORY" in str(error):
                return None
            status, *_ = self._driver.cuCtxSynchronize()
            if not isinstance(error, RuntimeError) or int(status) != 0:
                raise
            return None  # older versions of cuda-core only say that it has failed

    def free(self, address: int) -> None:
        found = self._buffers.get(address)
        if found is None:
            return
        if self.broken is not None:  # a context that is gone has no memory
            del self._buffers[address]
            return
        self.pool.give(found[2], address)

    def _close(self, address: int) -> None:
        """Give memory back to the driver, after what has been launched."""
        buffer, lane, *_ = self._buffers.pop(address)

        def close() -> None:
            with suppress(Exception), self._current():  # the next operation will say it
                buffer.close(lane.stream)  # in the order of the stream

        lane.launches.after(close)

    def trim(self) -> bool:
        """Give all memory back that is kept for later; whether there was any."""
        pinned_pages.trim()
        return self.pool.trim()

    def relieve(self) -> None:
        """Give the memory that is kept for later to others, if there is little left for them; never fails."""
        if not self.pool.bytes or self.broken is not None:
            return
        with self._current(), ExitStack() as locks:
            for lane in [*self._lanes.values()]:
                if not lane.launches.lock.acquire(blocking=False):
                    return
                locks.callback(lane.launches.lock.release)
                if lane.launches.busy:  # this thread is at it
                    return
            status, free, total = self._driver.cuMemGetInfo()
            if int(status) == 0 and int(free) < int(total) // SCARCE and self.trim():
                self._driver.cuCtxSynchronize()  # memory is given back in the order of streams
                _, pool = self._driver.cuDeviceGetMemPool(self._device.device_id)
                self._driver.cuMemPoolTrimTo(pool, 0)

    def host_array(self, shape: Sequence[int], dtype: np.dtype[Any], order: Any) -> np.ndarray[Any, Any]:
        found = None if self.broken is not None else pinned_pages.empty(shape, dtype, order)
        return np.empty(shape, dtype, order) if found is None else found

    def bring_again(self, array: np.ndarray[Any, Any]) -> None:
        pinned_arguments.pin(array)

    def finish_reading(self) -> None:
        for lane in [*self._lanes.values()]:
            lane.staging.finish_reading()

    def free_bytes(self) -> int:
        """Memory that can be had: what the driver has, what its pool keeps for later, and what is kept here."""
        self._enter()
        status, free, _ = self._driver.cuMemGetInfo()
        pool = self._memory.attributes
        kept = int(pool.reserved_mem_current) - int(pool.used_mem_current)
        return self.pool.bytes + kept + (int(free) if int(status) == 0 else 0)

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        with span(self, COPY_IN, "", data.nbytes), self._order("copying to the device") as lane:
            lane.staging.copy_in(address, data, pitch)

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        with span(self, COPY_OUT, "", data.nbytes), self._order("copying from the device") as lane:
            lane.staging.copy_out(data, address, pitch)

    def element(self, address: int, dtype: str, word: int = 0) -> tuple[Any, int]:
        """An element, after everything launched before; and the word at another address."""
        if recorder() is not None:
            found, more = np.empty(1, dtype), np.zeros(1, np.int64)
            self.copy_out(found.view(np.uint8), address)
            if word:
                self.copy_out(more.view(np.uint8), word)
            return found[0], int(more[0])
        with self._order("copying from the device") as lane:
            return lane.staging.element(address, dtype, word)

    def reaches(self, source: Device) -> bool:
        return isinstance(source, CudaMemory)

    def copy_over(self, address: int, source: Device, place: int, rows: Rows, after: Any = None) -> None:
        """By the driver: over the link between the two if there is one, else as it thinks best."""
        assert isinstance(source, CudaMemory)
        what = f"copying from {source.name}"
        ready = after
        if ready is None:
            with source._order(what) as theirs:  # its context is current now, as it must be for its events
                ready = theirs.stream.record()
        self._let_access(source)
        with span(self, COPY_OVER, "", rows.height * rows.width), self._order(what) as lane:
            lane.stream.wait(ready)
            for number in range(rows.height if rows.pitch > MOST_PITCH else 1):
                step = number * rows.pitch
                self._from_peer(address + step, source, place + step, rows if rows.pitch <= MOST_PITCH else rows.first)
            done = lane.stream.record()
        with source._order(what) as theirs:
            theirs.stream.wait(done)  # it is not overwritten before
        self._enter()

    def _from_peer(self, address: int, source: CudaMemory, place: int, rows: Rows) -> None:
        driver, stream = self._driver, self._stream.handle
        if rows.height == 1:
            call = driver.cuMemcpyPeerAsync(address, self._context, place, source._context, rows.width, stream)
        else:
            what = driver.CUDA_MEMCPY3D_PEER()
            what.srcMemoryType = what.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
            what.srcContext, what.srcDevice, what.srcPitch = source._context, place, rows.pitch
            what.dstContext, what.dstDevice, what.dstPitch = self._context, address, rows.pitch
            what.WidthInBytes, what.Height, what.Depth = rows.width, rows.height, 1
            call = driver.cuMemcpy3DPeerAsync(what, stream)
        self._checked(call, f"copying from {source.name}")

    def _let_access(self, source: CudaMemory) -> None:
        """Let this device read another one's memory without the host, if they are so connected: asked once a pair.

        What is set is the whole set of a pool's readers, and the pool is that of all in this process: those that may
        read it already, other libraries' included, are named again.
        """
        if self.name in source._readers:
            return
        with source._admitting:  # each device may be brought something by a thread of its own
            if self.name in source._readers:
                return
            one, other = self._device.device_id, source._device.device_id
            status, able = self._driver.cuDeviceCanAccessPeer(one, other)
            if int(status) == 0 and able:
                with suppress(Exception):  # then the driver copies through its own memory
                    readers = {int(getattr(peer, "device_id", peer)) for peer in source._memory.peer_accessible_by}
                    source._memory.peer_accessible_by = sorted({*readers, one})
            source._readers.add(self.name)

    def synchronize(self) -> None:
        with self._order("a kernel") as lane:
            lane.stream.sync()

    def copy_within(self, target: int, source: int, size: int) -> None:
        with self._order("copying on the device") as lane:
            call = self._driver.cuMemcpyDtoDAsync(target, source, size, lane.stream.handle)
            self._checked(call, "copying on the device")
