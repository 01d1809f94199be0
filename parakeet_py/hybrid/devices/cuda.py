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
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base.cuda_probe import Found as Found
from parakeet_py.base.cuda_probe import probe as probe
from parakeet_py.base.debug_log import log
from parakeet_py.hybrid.devices.cuda_memory import CudaMemory, Lane, is_open, opened
from parakeet_py.hybrid.devices.cuda_schedules import CudaRequests, Parameters, launch_call
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.launches import Group, Launches, call_of, launch_of
from parakeet_py.hybrid.devices.occupancy_limit import Resources
from parakeet_py.hybrid.devices.staging import driver_call
from parakeet_py.hybrid.devices.timeline import KERNEL, span
from parakeet_py.hybrid.libraries import device_routines
from parakeet_py.hybrid.libraries.cublas import Cublas
from parakeet_py.hybrid.libraries.cufft import Cufft
from parakeet_py.hybrid.libraries.cusolver import Cusolver
from parakeet_py.hybrid.residency.arrays import DeviceView
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
OLDEST = (7, 5)  # the least compute capability that kernels are made for

_lock = threading.Lock()


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
        if number not in opened:
            try:
                is_open(number, CudaDevice(number))
            except DeviceError:
                raise
            except Exception as error:  # cuda.core's own
                raise DeviceError(f"cuda:{number} cannot be opened: {error}") from error
        found: CudaDevice = opened[number]
        return found


class _Module(NamedTuple):
    """PTX, the kernels found in it so far and what the driver calls them, the dynamic shared memory of their blocks."""

    ptx: str
    kernels: dict[str, Any]
    handles: dict[str, int]
    shared: int


class CudaDevice(CudaMemory):
    """One CUDA device, see `device.Device`."""

    asynchronous = True
    shows_memory = True

    def __init__(self, number: int) -> None:
        super().__init__(number)
        capability = self._device.compute_capability
        version = int(capability[0]), int(capability[1])
        if version < OLDEST:
            raise DeviceError(f"{self.name} has compute capability {version[0]}.{version[1]}; at least 7.5 is needed")
        self._capability = version
        self.architecture = _architecture(version, probe().driver)
        self.multiprocessors = int(self._device.properties.multiprocessor_count)
        self.cublas, self.cufft, self.cusolver = Cublas(), Cufft(), Cusolver()

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
        return _Module(ptx, {}, {}, shared)

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
        try:
            with span(self, KERNEL, kernel, blocks):
                lane = self._lane()
                lane.launches.add(self._launch_of(lane, module, kernel, blocks, threads, codes, values))
        except Exception as error:
            raise self._failed(f"launching {kernel}", error) from error

    def _launch_of(self, lane: Lane, module: _Module, kernel: str, blocks: int, threads: int, *given: Any) -> Any:
        """A launch, given codes and values, as the lane takes it."""
        found = self._kernel(module, kernel)
        if self.runner is None:
            return launch_of(found, blocks, threads, _arguments(*given))
        handle = module.handles.get(kernel) or self.kernel_handle(module, kernel)
        return call_of(found, handle, blocks, threads, module.shared, lane.handle, *given)

    def round_of(self, launches: Sequence[Sequence[Any]]) -> tuple[Lane, Group] | None:
        """Launches, each as `launch` is given it, that come again and again, for `ask_again`; None if they cannot."""
        if self.runner is None or any("T" in codes for _, _, _, _, codes, _ in launches):
            return None
        self._enter()
        lane = self._lane()
        made, calls, keeps = [], [], []
        for module, kernel, blocks, threads, codes, values in launches:
            parameters, handle = Parameters(self, codes, values), self.kernel_handle(module, kernel)
            calls.append(launch_call(handle, blocks, threads, module.shared, lane.handle, parameters))
            made.append(self._launch_of(lane, module, kernel, blocks, threads, codes, values))
            keeps.append(parameters)
        enter = call_queues.words(driver_call("cuCtxSetCurrent"), int(self._context))
        return lane, Group(made, calls, enter, keeps)

    def ask_again(self, calls: tuple[Lane, Group]) -> bool:
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
            self._enter()
            try:
                self.first_launches.flush()
            except Exception as error:
                raise self._failed("launching kernels", error) from error

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
            return self._lane().handle

    def kernel_handle(self, module: Any, kernel: str) -> int:
        """What the driver calls a kernel."""
        self._enter()
        found = module.handles[kernel] = int(self._kernel(module, kernel).handle)
        return found


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


def _arguments(codes: str, values: Sequence[Any]) -> list[Any]:
    """Machine parameters as cuda-core takes them."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return [_TYPES.get(code, _half)(value) for code, value in zip(codes, plain, strict=True)]


def _half(value: Any) -> Any:
    """Half precision travels as its bits."""
    return ctypes.c_uint16(int(np.float16(value).view(np.uint16)))


def _architecture(version: tuple[int, int], driver: tuple[int, int] | None) -> str:
    """The newest architecture that kernels can be made for, that the device runs, and whose PTX its driver takes."""
    own = 10 * version[0] + version[1]
    known = [name for name in ARCHITECTURES if number(name) == own or (number(name) < own and not name.endswith(OWN))]
    taken = [name for name in known if driver is None or isa(name) <= newest_isa(driver)]
    return (taken or known)[-1]
