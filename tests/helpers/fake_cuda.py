"""A stand-in for the packages `cuda.core` and `cuda.bindings`: the calls that `hybrid/devices/cuda.py` makes, on the
emulator.

It has the signatures of cuda.core 1.2 and refuses what that would refuse: streams that are not passed by keyword,
kernel arguments that are no ctypes numbers. Kernels run when a thread waits, so that faults come late, as on a GPU, and
a fault takes the context along.
"""

from __future__ import annotations

import ctypes
import sys
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np

from parakeet_py.hybrid.devices import cuda, cuda_memory
from parakeet_py.ptx import emulator

CTYPES = (
    ctypes.c_bool,
    ctypes.c_int8,
    ctypes.c_int16,
    ctypes.c_int32,
    ctypes.c_int64,
    ctypes.c_uint8,
    ctypes.c_uint16,
    ctypes.c_uint32,
    ctypes.c_uint64,
    ctypes.c_float,
    ctypes.c_double,
)


class CUDAError(Exception):
    pass


NO_MEMORY: tuple[type[Exception], str] = CUDAError, "CUDA_ERROR_OUT_OF_MEMORY: the API call failed"
current: list[Any] = [None]  # the context that calls are for


class Context:
    """One device's state: work that no thread has waited for, the error that has ended it."""

    def __init__(self, memory: int) -> None:
        self.device = emulator.Device(memory_bytes=memory)
        self.queue: list[Callable[[], Any]] = []
        self.error: str | None = None
        self.capturing = False

    def finish(self, event: Event | None = None) -> None:
        """Do what has been given, all of it or as far as an event."""
        if self.error is not None:
            raise CUDAError(self.error)
        assert not self.capturing
        while self.queue and (event is None or event.time is None):
            try:
                self.queue.pop(0)()
            except emulator.KernelFault as fault:
                self.queue.clear()
                self.error = f"CUDA_ERROR_ILLEGAL_ADDRESS: {fault}"
                raise CUDAError(self.error) from fault


class Capability(NamedTuple):
    major: int
    minor: int


class EventOptions(NamedTuple):
    timing_enabled: bool = False


class Event:
    """The time at which a context comes to what it was given before."""

    def __init__(self, context: Context, timing: bool) -> None:
        self.context, self.timing = context, timing
        self.time: float | None = None
        context.queue.append(self.happen)

    def happen(self) -> None:
        self.time = time.perf_counter()

    def sync(self) -> None:
        """Wait until this, and what was given before it, has happened."""
        self.context.finish(self)

    def __sub__(self, other: Event) -> float:
        assert self.timing and other.timing and self.time is not None and other.time is not None
        return (self.time - other.time) * 1e3


class Stream:
    """A stream; `waited` has the streams that it was told to wait for."""

    streams: ClassVar[dict[int, Stream]] = {}

    def __init__(self, context: Context | None, number: int | None = None) -> None:
        self.context: Any = context
        self.number = len(Stream.streams) + 100 if number is None else number
        self.handle = self
        self.waited: list[Stream | Event] = []
        Stream.streams[self.number] = self

    def __int__(self) -> int:
        return self.number

    @staticmethod
    def from_handle(handle: int) -> Stream:
        return Stream.streams[handle]

    def sync(self) -> None:
        self.context.finish()

    def wait(self, event_or_stream: Stream | Event) -> None:
        self.waited.append(event_or_stream)

    def create_graph_builder(self) -> GraphBuilder:
        return GraphBuilder(self)

    def record(self, event: Event | None = None, options: EventOptions | None = None) -> Event:
        if event is None:
            return Event(self.context, options is not None and options.timing_enabled)
        event.time = None
        self.context.queue.append(event.happen)
        return event


class GraphBuilder:
    """Takes launches from `begin_building` to `end_building`; meanwhile nothing else may be asked of its stream."""

    made: ClassVar[list[int]] = []  # how many launches each graph has

    def __init__(self, stream: Stream) -> None:
        self.context: Any = stream.context
        self.items: list[Callable[[], Any]] | None = None
        self.done = False

    def begin_building(self, mode: str | None = "relaxed") -> GraphBuilder:
        self.items = []
        self.context.capturing = True
        return self

    def end_building(self) -> GraphBuilder:
        assert self.items is not None
        self.context.capturing, self.done = False, True
        return self

    def complete(self) -> Graph:
        assert self.done and self.items
        GraphBuilder.made.append(len(self.items))
        return Graph(self.items)

    def close(self) -> None:
        self.context.capturing = False


class Graph:
    launched = 0

    def __init__(self, items: list[Callable[[], Any]]) -> None:
        self.items = items

    def launch(self, stream: Stream) -> None:
        Graph.launched += 1
        stream.context.queue += self.items


class Buffer:
    def __init__(self, context: Context, size: int) -> None:
        self.context = context
        self.size = size
        self.handle = context.device.alloc(size)

    def close(self, stream: Stream | None = None) -> None:
        assert isinstance(stream, Stream) and current[0] is self.context
        address = self.handle
        assert not self.context.capturing
        self.context.queue.append(lambda: self.context.device.free(address))


class ObjectCode:
    def __init__(self) -> None:
        raise RuntimeError("made by from_ptx")

    @staticmethod
    def from_ptx(module: bytes, *, name: str = "", symbol_mapping: dict[str, str] | None = None) -> ObjectCode:
        assert isinstance(module, bytes)
        made = object.__new__(ObjectCode)
        made.ptx = module.decode()  # type: ignore[attr-defined]
        return made

    def get_kernel(self, name: str) -> Kernel:
        if name not in self.ptx:  # type: ignore[attr-defined]
            raise CUDAError("CUDA_ERROR_NOT_FOUND")
        return Kernel(self, name)


class Kernel:
    """A kernel, and what it takes: as many registers as `registers` says for its name."""

    registers: ClassVar[Callable[[str], int]] = staticmethod(lambda name: 32)

    def __init__(self, code: ObjectCode, name: str) -> None:
        self.code, self.name = code, name
        registers = Kernel.registers(name)
        self.attributes = types.SimpleNamespace(num_regs=registers, local_size_bytes=0, shared_size_bytes=16)
        self.occupancy = types.SimpleNamespace(
            max_active_blocks_per_multiprocessor=lambda threads, shared: min(2048, 65536 // registers) // threads
        )


class LaunchConfig:
    def __init__(self, grid: int | None = None, cluster: int | None = None, block: int | None = None) -> None:
        assert isinstance(grid, int) and isinstance(block, int)
        self.grid, self.block = grid, block


@contextmanager
def installed(
    memory: int = 1 << 30, capability: tuple[int, int] = (8, 0), driver_version: tuple[int, int] = (12, 8)
) -> Iterator[Context]:
    """Two CUDA devices of this memory, as far as `hybrid/devices/cuda.py` can see, inside the block."""
    contexts = [Context(memory), Context(memory)]

    class Device:
        def __init__(self, device_id: int | None = None) -> None:
            self.context = contexts[device_id or 0]
            self.device_id = device_id or 0
            self.compute_capability = Capability(*capability)
            self.properties = types.SimpleNamespace(multiprocessor_count=4, max_threads_per_multiprocessor=2048)

        def set_current(self) -> None:
            current[0] = self.context

        def create_stream(self) -> Stream:
            return Stream(self.context)

    class DeviceMemoryResource:
        def __init__(self, device_id: int) -> None:
            self.context = contexts[device_id]
            self.attributes = types.SimpleNamespace(reserved_mem_current=4096, used_mem_current=1024)
            self.peer_accessible_by: Any = ()

        def allocate(self, size: int, *, stream: Stream) -> Buffer:
            assert stream.context is self.context
            self.context.finish()
            try:
                return Buffer(self.context, size)
            except MemoryError as error:
                raise NO_MEMORY[0](NO_MEMORY[1]) from error

    def launch(stream: Stream | GraphBuilder, config: LaunchConfig, kernel: Kernel, *arguments: Any) -> None:
        assert all(isinstance(argument, CTYPES) for argument in arguments)
        if stream.context.error is not None:
            raise CUDAError(stream.context.error)
        code, name = kernel.code, kernel.name
        module = stream.context.device.load(code.ptx)  # type: ignore[attr-defined]
        values = [argument.value for argument in arguments]
        items = stream.items if isinstance(stream, GraphBuilder) else stream.context.queue
        assert items is not None and stream.context.capturing == isinstance(stream, GraphBuilder)
        items.append(lambda: module.launch(name, config.grid, config.block, values) and None)

    pinned: dict[int, np.ndarray[Any, Any]] = {}

    class LegacyPinnedMemoryResource:
        def allocate(self, size: int, *, stream: Stream | None = None) -> Any:
            data = np.empty(size, np.uint8)
            pinned[data.ctypes.data] = data
            return types.SimpleNamespace(handle=data.ctypes.data)

    current[0] = contexts[0]
    driver: Any = types.ModuleType("cuda.bindings.driver")

    def told(work: Callable[[Context], Any]) -> tuple[Any, ...]:
        try:
            current[0].finish()
            return 0, work(current[0])
        except CUDAError:
            return 700, None

    def memory_of(address: int, size: int) -> np.ndarray[Any, Any]:
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    driver.cuGetErrorString = lambda status: (0, b"an illegal memory access was encountered")
    driver.cuCtxSynchronize = lambda: told(lambda context: None)[:1]
    driver.cuMemGetInfo = lambda: (*told(lambda context: context.device.free_bytes), memory)

    def register(address: int, size: int, flags: int) -> tuple[int]:
        pinned[address] = memory_of(address, size)
        return (0,)

    driver.cuMemHostRegister = register
    driver.cuMemHostUnregister = lambda address: (0 if pinned.pop(address, None) is not None else 1,)
    driver.cuDeviceGetMemPool = lambda number: (0, number)
    driver.cuMemPoolTrimTo = lambda pool, kept: (0,)

    def copied(work: Callable[[emulator.Device], Any], at_once: bool) -> tuple[int]:
        """A copy in the order of the stream; pinned memory is read or written when it is due, other memory now."""
        context = current[0]
        if context.error is not None:
            return (700,)
        context.queue.append(lambda: work(context.device))
        return told(lambda context: None)[:1] if at_once else (0,)

    def to_device(address: int, source: int, size: int, stream: Stream) -> tuple[int]:
        data = memory_of(source, size)
        data = data if source in pinned else data.copy()  # the driver reads what is not pinned before it returns
        return copied(lambda device: device.copy_in(address, data), False)

    def to_host(target: int, address: int, size: int, stream: Stream) -> tuple[int]:
        return copied(lambda device: device.copy_out(address, memory_of(target, size)), target not in pinned)

    driver.cuMemcpyHtoDAsync, driver.cuMemcpyDtoHAsync = to_device, to_host
    driver.cuMemcpyDtoDAsync = lambda target, source, size, stream: told(
        lambda context: context.device.copy_in(target, context.device.copy_out(source, size))
    )[:1]
    driver.cuCtxGetCurrent = lambda: (0, current[0])
    driver.cuCtxSetCurrent = lambda context: (current.__setitem__(0, context) or 0,)
    driver.cuDeviceCanAccessPeer = lambda one, other: (0, 1)

    class Pitched(types.SimpleNamespace):
        """CUDA_MEMCPY2D and CUDA_MEMCPY3D_PEER."""

        def rows(self, memory: str, pitch: int) -> list[int]:
            assert pitch >= self.WidthInBytes and self.Height > 0
            return [getattr(self, memory) + number * pitch for number in range(self.Height)]

    def pitched(what: Pitched, stream: Stream) -> tuple[int]:
        to_device = what.dstMemoryType == 2
        host = what.rows(*(("srcHost", what.srcPitch) if to_device else ("dstHost", what.dstPitch)))
        there = what.rows(*(("dstDevice", what.dstPitch) if to_device else ("srcDevice", what.srcPitch)))
        assert host[0] in pinned  # the driver would wait for other memory

        def work(device: emulator.Device) -> None:
            for one, place in zip(host, there, strict=True):
                data = memory_of(one, what.WidthInBytes)
                device.copy_in(place, data) if to_device else device.copy_out(place, data)

        return copied(work, False)

    def pitched_from_peer(what: Pitched, stream: Stream) -> tuple[int]:
        assert what.srcMemoryType == what.dstMemoryType == 2 and what.Depth == 1
        places = zip(what.rows("dstDevice", what.dstPitch), what.rows("srcDevice", what.srcPitch), strict=True)
        for target, place in places:
            from_peer(target, what.dstContext, place, what.srcContext, what.WidthInBytes, stream)
        return (0,)

    driver.CUDA_MEMCPY2D = driver.CUDA_MEMCPY3D_PEER = Pitched
    driver.cuMemcpy2DAsync, driver.cuMemcpy3DPeerAsync = pitched, pitched_from_peer

    def from_peer(target: int, theirs: Context, place: int, source: Context, size: int, stream: Stream) -> tuple[int]:
        assert stream.context is theirs and stream.waited
        source.finish()  # what it is given from now on comes later
        data = source.device.copy_out(place, size)
        theirs.queue.append(lambda: theirs.device.copy_in(target, data))
        return (0,)

    driver.cuMemcpyPeerAsync = from_peer
    driver.CUpointer_attribute = types.SimpleNamespace(
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE=2, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9
    )
    driver.CUmemorytype = types.SimpleNamespace(CU_MEMORYTYPE_HOST=1, CU_MEMORYTYPE_DEVICE=2)

    def pointer_attribute(attribute: int, address: int) -> tuple[int, int]:
        if attribute == 2:
            return (0, 1) if address in pinned else (1, 0)
        assert attribute == 9
        for number, context in enumerate(contexts):
            if context.device.memory.find(address) is not None:
                return 0, number
        return 1, 0

    driver.cuPointerGetAttribute = pointer_attribute
    core: Any = types.ModuleType("cuda.core")
    core.Device, core.DeviceMemoryResource, core.ObjectCode = Device, DeviceMemoryResource, ObjectCode
    core.LaunchConfig, core.launch = LaunchConfig, launch
    core.LegacyPinnedMemoryResource = LegacyPinnedMemoryResource
    core.EventOptions, core.Stream = EventOptions, Stream
    core.LEGACY_DEFAULT_STREAM, core.PER_THREAD_DEFAULT_STREAM = Stream(None, 1), Stream(None, 2)
    bindings: Any = types.ModuleType("cuda.bindings")
    bindings.driver = driver
    package: Any = types.ModuleType("cuda")
    package.core, package.bindings = core, bindings
    modules = {"cuda": package, "cuda.core": core, "cuda.bindings": bindings, "cuda.bindings.driver": driver}
    before = {name: sys.modules.get(name) for name in modules}
    probe, opened, runner = cuda.probe, dict(cuda_memory.opened), cuda.CudaDevice.runner
    from parakeet_py.hybrid.devices.selection import forget

    try:
        sys.modules.update(modules)
        cuda.probe = lambda: cuda.Found(2, "", ("first", "second"), driver_version)  # type: ignore[assignment]
        cuda_memory.opened.clear()
        cuda.CudaDevice.runner = None  # there is no library whose functions machine code could call
        forget()
        yield contexts[0]
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
        cuda.probe = probe
        cuda.CudaDevice.runner = runner
        cuda_memory.opened.clear()
        cuda_memory.opened.update(opened)
        forget()
