"""CUDA devices, through `cuda.core` (the `cuda` extra; what is asked of it: `tests/unit/hybrid/test_cuda_api.py`).

Nothing of CUDA is imported before libcuda has been found (`cuda_probe`). Every device has a stream of its own for
everything (and more, its lanes, where copies shall overlap kernels), the driver's stream-ordered memory pool and one of
its own before that (`memory_pool`), pinned memory that copies go through (`staging`), kernels that are given to it
together (`launches`), calls that machine code does again (`cuda_schedules`), and modules from PTX that the driver
compiles for it, or has compiled in another process (`ptx.cubins`).

A kernel that faults takes the context of its device along: everything on it fails from then on, in this process. The
device remembers what happened and says it again instead of the driver's later errors.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base.cuda_probe import Found as Found
from parakeet_py.base.cuda_probe import probe as probe
from parakeet_py.base.debug_log import log
from parakeet_py.hybrid.devices.cuda_schedules import CudaRequests, Parameters, launch_call
from parakeet_py.hybrid.devices.device import Device, DeviceError, DeviceMemoryError
from parakeet_py.hybrid.devices.launches import Group, Launches, launch_of
from parakeet_py.hybrid.devices.memory_pool import MemoryPool, Stock, rounded
from parakeet_py.hybrid.devices.occupancy_limit import Resources
from parakeet_py.hybrid.devices.pinned_pages import PinnedArguments, PinnedPages, Pinning
from parakeet_py.hybrid.devices.staging import MOST_PITCH, Staging, driver_call
from parakeet_py.hybrid.devices.timeline import COPY_IN, COPY_OUT, COPY_OVER, KERNEL, recorder, span
from parakeet_py.hybrid.libraries import device_routines
from parakeet_py.hybrid.libraries.cublas import Cublas
from parakeet_py.hybrid.libraries.cufft import Cufft
from parakeet_py.hybrid.libraries.cusolver import Cusolver
from parakeet_py.hybrid.residency.arrays import DeviceView
from parakeet_py.hybrid.residency.byte_ranges import Rows
from parakeet_py.llvm.runtime import call_queues
from parakeet_py.ptx.cubins import cubin_of
from parakeet_py.ptx.target import ARCHITECTURES, OWN, isa, newest_isa, number

_TYPES = {
    "b": ctypes.c_int8,
    "B": ctypes.c_uint8,
    "h": ctypes.c_int16,
    "H": ctypes.c_uint16,
    "i": ctypes.c_int32,
    "I": ctypes.c_uint32,
    "q": ctypes.c_int64,
    "Q": ctypes.c_uint64,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
    "P": ctypes.c_uint64,
}
KEPT = 4  # memory that calls have given up is kept for later ones, up to this part of the device's
_FOR_ALL = 1  # memory is pinned for all devices
SCARCE = 16  # with less than this part of it free, others in the process may need what is kept
OLDEST = (7, 5)  # the least compute capability that kernels are made for

_lock = threading.Lock()
_open: dict[int, CudaDevice] = {}


def devices(number: int | None = None) -> list[CudaDevice]:
    """All CUDA devices that can be used, or one.

    Raises
    ------
    DeviceError
        There is no such device; the message says why.
    """
    found = probe()
    if not found.devices:
        raise DeviceError(f"no CUDA device: {found.reason}")
    if number is not None and number >= found.devices:
        there = ", ".join(f"cuda:{one} ({name})" for one, name in enumerate(found.names))
        raise DeviceError(f"there is no cuda:{number}: the driver finds {found.devices} device(s), {there}")
    if number is not None:
        return [_opened(number)]
    usable, reasons = [], []
    for one in range(found.devices):
        try:
            usable.append(_opened(one))
        except DeviceError as error:
            reasons.append(str(error))
    if not usable:
        raise DeviceError(f"no CUDA device: {'; '.join(reasons)}")
    return usable


def _opened(number: int) -> CudaDevice:
    with _lock:
        if not _open:
            gc.callbacks.append(_collecting)
        if number not in _open:
            try:
                _open[number] = CudaDevice(number)
            except DeviceError:
                raise
            except Exception as error:  # cuda.core's own
                raise DeviceError(f"cuda:{number} cannot be opened: {error}") from error
        return _open[number]


def _collecting(phase: str, info: dict[str, int]) -> None:
    """All garbage is about to be collected: by CuPy, say, before it says that a device has no memory."""
    if phase == "start" and info["generation"] == 2:
        for device in [*_open.values()]:
            device.relieve()


def _pin(address: int, size: int) -> bool:
    for device in [*_open.values()]:
        if device.broken is None:
            with device._current():
                status, *_ = device._driver.cuMemHostRegister(address, size, _FOR_ALL)
            return int(status) == 0
    return False


def _unpin(address: int) -> bool:
    for device in [*_open.values()]:
        with device._current():
            status, *_ = device._driver.cuMemHostUnregister(address)
        if int(status) == 0:
            return True
    return False


pinned_pages = PinnedPages(Pinning(_pin, _unpin))
pinned_arguments = PinnedArguments(Pinning(_pin, _unpin))


class _Module(NamedTuple):
    """PTX, the kernels found in it so far, the dynamic shared memory of their blocks."""

    ptx: str
    kernels: dict[str, Any]
    shared: int


class _Lane(NamedTuple):
    """A stream, the pinned memory that its copies go through, what it has been asked to launch."""

    stream: Any
    staging: Staging
    launches: Launches


class _InOrder:
    """Something that is asked of a lane besides kernels: what has been launched there goes first, and no other thread
    asks the lane for anything meanwhile (what it is asked while launches are captured as a graph would get into that).

    No generator: from Python 3.13 on its frame would keep the exception, and so the memory of the call, in a cycle.
    """

    def __init__(self, device: CudaDevice, what: str) -> None:
        self.device, self.what = device, what

    def __enter__(self) -> _Lane:
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


class CudaDevice:
    """One CUDA device, see `device.Device`.

    Attributes
    ----------
    broken : what has taken the context along, if that has happened
    """

    asynchronous = True
    shows_memory = True

    def __init__(self, number: int) -> None:
        from cuda.bindings import driver
        from cuda.core import Device as Opened
        from cuda.core import DeviceMemoryResource

        self.name = f"cuda:{number}"
        self._driver = driver
        self._device = Opened(number)
        self._device.set_current()
        _, self._context = driver.cuCtxGetCurrent()
        capability = self._device.compute_capability
        version = int(capability[0]), int(capability[1])
        if version < OLDEST:
            raise DeviceError(f"{self.name} has compute capability {version[0]}.{version[1]}; at least 7.5 is needed")
        self._capability = version
        self.architecture = _architecture(version, probe().driver)
        self.multiprocessors = int(self._device.properties.multiprocessor_count)
        self._readers: set[str] = set()  # devices that have been let read its memory directly, if they can
        self._admitting = threading.Lock()
        self._here = threading.local()
        self._lanes: dict[int, _Lane] = {}
        self._lanes_lock = threading.Lock()
        self._memory = DeviceMemoryResource(number)
        self.cublas, self.cufft, self.cusolver = Cublas(), Cufft(), Cusolver()
        self._buffers: dict[int, tuple[Any, _Lane, Stock]] = {}  # and where it goes when it is free
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

    def _lane(self) -> _Lane:
        """The lane that this thread asks in."""
        number = getattr(self._here, "lane", 0)
        found = self._lanes.get(number)
        if found is None:
            with self._lanes_lock:
                if number not in self._lanes:
                    self._device.set_current()
                    stream = self._device.create_stream()
                    staging = Staging(self._driver, stream, self._checked, pinned_arguments.has)
                    self._lanes[number] = _Lane(stream, staging, Launches(stream))
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

    # ---- memory ------------------------------------------------------------------------------------------------------

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
        return isinstance(source, CudaDevice)

    def copy_over(self, address: int, source: Device, place: int, rows: Rows, after: Any = None) -> None:
        """By the driver: over the link between the two if there is one, else as it thinks best."""
        assert isinstance(source, CudaDevice)
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

    def _from_peer(self, address: int, source: CudaDevice, place: int, rows: Rows) -> None:
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

    def _let_access(self, source: CudaDevice) -> None:
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

    def copy_within(self, target: int, source: int, size: int) -> None:
        with self._order("copying on the device") as lane:
            call = self._driver.cuMemcpyDtoDAsync(target, source, size, lane.stream.handle)
            self._checked(call, "copying on the device")

    # ---- time and order ----------------------------------------------------------------------------------------------

    @property
    def stream(self) -> int:
        with self._order("launching kernels") as lane:
            return int(lane.stream.handle)

    def mark(self) -> Any:
        from cuda.core import EventOptions

        with self._order("recording an event") as lane:
            return lane.stream.record(options=EventOptions(True))  # with times; cuda-core 1.0 has renamed this field

    def seconds(self, start: Any, end: Any) -> float:
        self._enter()
        try:
            end.sync()
            return float(end - start) / 1e3
        except Exception as error:
            raise self._failed("a kernel", error) from error

    def owns(self, address: int) -> bool:
        self._enter()
        return bool(_ordinal(self._driver, address) == self._device.device_id)

    def wait_for(self, stream: int) -> None:
        with self._order("waiting for another stream") as lane:
            lane.stream.wait(_stream(stream))

    def let_wait(self, stream: int) -> None:
        with self._order("letting another stream wait") as lane:
            _stream(stream).wait(lane.stream)

    # ---- kernels -----------------------------------------------------------------------------------------------------

    def load(self, ptx: str, shared: int = 0) -> Any:
        self._enter()
        return _Module(ptx, {}, shared)

    def _kernel(self, module: _Module, name: str) -> Any:
        """A kernel of a module, compiled when it is first asked for."""
        found = module.kernels.get(name)
        if found is None:
            found = self._loaded(module.ptx, name)
            if module.shared:  # more than 48 KB have to be asked for
                driver = self._driver
                most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                kernel, device = driver.CUkernel(int(found.handle)), driver.CUdevice(self._device.device_id)
                given = driver.cuKernelSetAttribute(most, module.shared, kernel, device)
                self._checked(given, f"getting {module.shared} bytes of shared memory")
            module.kernels[name] = found
        return found

    def _loaded(self, ptx: str, name: str) -> Any:
        """A kernel from machine code that is kept on disk, else as the driver compiles it."""
        from cuda.core import ObjectCode

        code = cubin_of(self._driver, ptx, self._capability)
        if code is not None:
            try:
                return ObjectCode.from_cubin(code).get_kernel(name)
            except Exception as error:  # the driver does not take what it, or one like it, has made
                log.info("%s: machine code of %s from the disk is not taken: %s", self.name, name, error)
        return ObjectCode.from_ptx(ptx.encode()).get_kernel(name)

    def resources(self, module: Any, kernel: str, threads: int) -> Resources | None:
        """What a kernel takes, and how many of its threads a multiprocessor holds at once; None if unknown."""
        self._enter()
        try:
            found = self._kernel(module, kernel)
            blocks = int(found.occupancy.max_active_blocks_per_multiprocessor(threads, module.shared))
            takes = found.attributes
            most = int(self._device.properties.max_threads_per_multiprocessor)
            registers, local, shared = (
                int(value() if callable(value) else value)  # calls before cuda-core 1.0
                for value in (takes.num_regs, takes.local_size_bytes, takes.shared_size_bytes)
            )
            return Resources(registers, local, shared, blocks * threads / most)
        except Exception as error:
            failed = self._failed(f"asking about {kernel}", error)
            if self.broken is not None:
                raise failed from error
            log.info("%s: %s", self.name, failed)  # no call depends on it
            return None

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        self._enter()
        if "T" in codes:
            self._launch_with_maps(module, kernel, blocks, threads, codes, values)
            return
        arguments = [_argument(code, value) for code, value in zip(codes, values, strict=True)]
        try:
            with span(self, KERNEL, kernel, blocks):
                self._lane().launches.add(self._kernel(module, kernel), blocks, threads, arguments)
        except Exception as error:
            raise self._failed(f"launching {kernel}", error) from error

    def round_of(self, launches: Sequence[Sequence[Any]]) -> tuple[_Lane, Group] | None:
        """Launches, each as `launch` is given it, that come again and again, for `ask_again`; None if they cannot."""
        if self.runner is None or any("T" in codes for _, _, _, _, codes, _ in launches):
            return None
        self._enter()
        lane = self._lane()
        made, calls, keeps = [], [], []
        for module, kernel, blocks, threads, codes, values in launches:
            found, parameters = self._kernel(module, kernel), Parameters(self, codes, values)
            stream = int(lane.stream.handle)
            calls.append(launch_call(int(found.handle), blocks, threads, module.shared, stream, parameters))
            arguments = [_argument(code, value) for code, value in zip(codes, values, strict=True)]
            made.append(launch_of(found, blocks, threads, arguments))
            keeps.append(parameters)
        enter = call_queues.words(driver_call("cuCtxSetCurrent"), int(self._context))
        return lane, Group(made, calls, enter, keeps)

    def ask_again(self, calls: tuple[_Lane, Group]) -> bool:
        """Launch what `round_of` has given; whether it is of this lane."""
        lane, group = calls
        if self.broken is not None or self._lanes.get(getattr(self._here, "lane", 0)) is not lane:
            return False
        try:
            lane.launches.make(group, self._enter)
        except Exception as error:
            self._enter()
            raise self._failed("launching kernels", error) from error
        return True

    def _launch_with_maps(
        self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]
    ) -> None:
        """Launch a kernel that takes tensor maps."""
        found = self._kernel(module, kernel)
        parameters = Parameters(self, codes, values)
        with span(self, KERNEL, kernel, blocks), self._order(f"launching {kernel}") as lane:
            function = self._driver.CUfunction(int(found.handle))
            shape = blocks, 1, 1, threads, 1, 1, module.shared
            call = self._driver.cuLaunchKernel(function, *shape, int(lane.stream.handle), parameters.address, 0)
            self._checked(call, f"launching {kernel}")

    def offered(self, left: DeviceView, right: DeviceView, out: DeviceView) -> bool:
        """Whether cuBLAS takes `out = left @ right`."""
        self._enter()
        return self.cublas.takes(left, right, out)

    def multiply(self, left: DeviceView, right: DeviceView, out: DeviceView, fast: bool) -> bool:
        """Let cuBLAS do `out = left @ right`; whether it could. `fast`: float32 may be rounded to TF32."""
        with span(self, KERNEL, "cuBLAS", 0), self._order("cuBLAS") as lane:
            return self.cublas.multiply(int(lane.stream.handle), left, right, out, fast)

    @contextmanager
    def library_order(self, what: str) -> Iterator[int]:
        """Around calls of a library: the stream in whose order they are made."""
        with span(self, KERNEL, what, 0), self._order(what) as lane:
            yield int(lane.stream.handle)

    def routine(self, name: str, outs: Sequence[DeviceView], ins: Sequence[DeviceView]) -> tuple[str, bool] | None:
        """Let a library do what one of NumPy's routines does, see `device_routines`."""
        self._enter()
        return device_routines.do(self, self.cusolver, self.cufft, name, outs, ins)

    def synchronize(self) -> None:
        with self._order("a kernel") as lane:
            lane.stream.sync()

    def submit(self) -> None:
        if self.first_launches.waiting:
            self.flush()

    # ---- schedules ---------------------------------------------------------------------------------------------------

    runner: Any = CudaRequests

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Around driver calls that a schedule does itself: no other thread asks the first lane for anything."""
        with self.first_launches.lock:
            self.flush()
            yield

    def flush(self) -> None:
        """Give the driver all that the first lane has been asked to launch."""
        if self.broken is not None:
            raise DeviceError(self.broken)
        if self.first_launches.waiting:
            with self._order("launching kernels"):
                pass

    @cached_property
    def first_launches(self) -> Launches:
        """The launches of the first lane."""
        with self.lane(0):
            return self._lane().launches

    @cached_property
    def order_event(self) -> int:
        """What others wait for, recorded anew each time."""
        return self.new_event()

    def new_event(self) -> int:
        self._enter()
        (event,) = self._checked(self._driver.cuEventCreate(2), "making an event")  # without times
        return int(event)

    def drop_event(self, event: int) -> None:
        with suppress(Exception), self._current():
            self._driver.cuEventDestroy(event)

    @cached_property
    def stream_handle(self) -> int:
        """The stream of the first lane."""
        with self.lane(0):
            return int(self._lane().stream.handle)

    def kernel_handle(self, module: Any, kernel: str) -> int:
        """What the driver calls a kernel."""
        self._enter()
        return int(self._kernel(module, kernel).handle)

    def failed_with(self, what: str, status: int) -> DeviceError:
        """The error of a driver call that has given this status."""
        self._device.set_current()
        _, text = self._driver.cuGetErrorString(self._driver.CUresult(status))
        return self._failed(what, text.decode() if text else str(status))


def _ordinal(driver: Any, address: int) -> int | None:
    """The number of the device that an address is on; None for memory of the host."""
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    status, number = driver.cuPointerGetAttribute(attribute, address)
    return int(number) if int(status) == 0 and int(number) >= 0 else None


def _stream(number: int) -> Any:
    """A stream of another library, by its handle; 1 and 2 are the default streams."""
    from cuda.core import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream

    if number == 1:
        return LEGACY_DEFAULT_STREAM
    return PER_THREAD_DEFAULT_STREAM if number == 2 else Stream.from_handle(number)


def owner(address: int) -> CudaDevice | None:
    """The CUDA device whose memory an address is in; None if that is none."""
    if not probe().devices:
        return None
    from cuda.bindings import driver

    number = _ordinal(driver, address)
    return None if number is None else _opened(number)


def _argument(code: str, value: Any) -> Any:
    """A machine parameter as `launch` takes it."""
    if code == "e":  # half precision travels as its bits
        return ctypes.c_uint16(int(np.float16(value).view(np.uint16)))
    return _TYPES[code](value.item() if isinstance(value, np.generic) else value)


def _architecture(version: tuple[int, int], driver: tuple[int, int] | None) -> str:
    """The newest architecture that kernels can be made for, that the device runs, and whose PTX its driver takes."""
    own = 10 * version[0] + version[1]
    known = [name for name in ARCHITECTURES if number(name) == own or (number(name) < own and not name.endswith(OWN))]
    taken = [name for name in known if driver is None or isa(name) <= newest_isa(driver)]
    return (taken or known)[-1]
