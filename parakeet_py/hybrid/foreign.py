"""Arguments that live on a device: arrays of CuPy, PyTorch, JAX, numba..., used where they are.

They say so by DLPack or by `__cuda_array_interface__`. For the time of the call each is represented by a *ghost*: a
NumPy array of the same dtype, shape, strides and alignment, in memory of the host that is only reserved. Ghosts lie to
each other as the arrays do, so signatures, overlaps and views need to know nothing of devices; before somebody looks
into a ghost (an operation handed back to Python) it is filled. New arrays of the result are ghosts too, until `leaving`
makes them arrays of the library that the arguments came from (`exported`). The ghost of a `DeviceArray` into which
nobody has looked is kept with it, for the next call.

Work is ordered by the device's own stream: before the call it waits for the arguments' producers, and the call waits
for it in the end, so that what other streams do with arguments and results comes later.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid import dlpack
from parakeet_py.hybrid.arrays import Borrowed, Buffer, DeviceView, host_view, memory_of, name_of_dtype, strides_of
from parakeet_py.hybrid.device import DeviceError, Machine
from parakeet_py.hybrid.device_array import DeviceArray, uploaded
from parakeet_py.hybrid.elsewhere import leaves_of, lives_elsewhere, mapped
from parakeet_py.hybrid.exported import exported
from parakeet_py.hybrid.homes import Home, reserved

_PAGE = 4096


class Interface(NamedTuple):
    """An array on a device; `keep` keeps it there, `stream` is what its producer still works in."""

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    readonly: bool
    keep: Any
    stream: int | None = None

    def bounds(self) -> tuple[int, int]:
        """The first byte and the one after the last; of an array without elements, one byte."""
        if 0 in self.shape:
            return self.address, self.address + 1
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(step for step in steps if step < 0)
        return low, self.address + sum(step for step in steps if step > 0) + self.dtype.itemsize


def interface_of(value: Any, stream: int | None = None) -> Interface | None:
    """How a value says that it is an array on a device; None if it is none, or of a dtype that NumPy lacks.

    Parameters
    ----------
    stream : what the array will be used in; its producer sees to it that it is complete there
    """
    try:
        if value.__dlpack_device__()[0] in (dlpack.CUDA, dlpack.MANAGED):
            return _of_capsule(value, stream)
    except (AttributeError, NotImplementedError):
        pass
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None  # the library refuses: what is part of an automatic derivative, say
    try:
        said = value.__cuda_array_interface__
    except (AttributeError, RuntimeError, TypeError):
        return None
    if said.get("mask") is not None:
        return None
    dtype = np.dtype(said["typestr"])
    shape = tuple(int(extent) for extent in said["shape"])
    strides = said.get("strides")
    if strides is None:
        strides = strides_of(shape, dtype.itemsize)
    address, readonly = said["data"]
    return Interface(int(address), dtype, shape, tuple(strides), bool(readonly), value, said.get("stream"))


def _of_capsule(value: Any, stream: int | None) -> Interface | None:
    try:
        capsule = value.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # from before versions
        capsule = value.__dlpack__(stream=stream)
    tensor = dlpack.read(capsule)
    if tensor is None:
        return None
    immutable = type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
    return Interface(
        tensor.address,
        np.dtype(tensor.dtype),
        tensor.shape,
        tensor.strides,
        tensor.readonly or immutable,
        (capsule, value),
    )


class _Ghost(NamedTuple):
    """What stands for an array at an address of a device; `start`: where its memory on the host begins."""

    device: Machine
    address: int
    array: np.ndarray[Any, Any]
    start: int


class Foreign:
    """The arguments of one call that live on its device.

    Attributes
    ----------
    args : the arguments, with ghosts in place of arrays
    """

    def __init__(self, device: Machine, args: Sequence[Any]) -> None:
        self.device = device
        self.kind: Any = None  # the first of them: results become arrays of its library
        self._regions: list[tuple[int, int, Buffer]] = []  # ghosts from, to; the memory that they stand for
        self._made: list[Buffer] = []
        self._originals: dict[int, tuple[Any, Any]] = {}  # by id of the ghost, which is kept
        self._found: dict[int, Interface] = {}
        self._homes: dict[Buffer, Home] = {}  # of results
        self._kept: list[tuple[DeviceArray, _Ghost, Buffer]] = []  # ghosts for later calls...
        self._filled: set[Buffer] = set()  # ...unless somebody has looked into them
        for value in leaves_of(args):
            if id(value) not in self._found and lives_elsewhere(value):
                interface = _brought_to(device, value)
                if interface is not None:
                    self._add(value, interface)
        self._ghosts = self._reserve()
        self.args = tuple(mapped(value, self._replaced) for value in args)

    def _add(self, value: Any, interface: Interface) -> None:
        ours = isinstance(value, DeviceArray)  # it has come to the device
        if not ours and 0 not in interface.shape and not self.device.owns(interface.address):
            raise DeviceError(f"the arrays among the arguments do not all live on {self.device.name}")
        if interface.stream is not None:
            self.device.wait_for(interface.stream)
        self._found[id(value)] = interface
        if self.kind is None:
            self.kind = value

    def _reserve(self) -> dict[int, np.ndarray[Any, Any]]:
        """The ghosts, by the ids of what they stand for; those of arrays that overlap lie in one piece of memory."""
        groups: list[tuple[int, int, list[tuple[int, Interface]]]] = []
        bounded = [(*interface.bounds(), key, interface) for key, interface in self._found.items()]
        for low, high, key, interface in sorted(bounded, key=itemgetter(0, 1)):
            if groups and low < groups[-1][1]:
                start, end, members = groups.pop()
                groups.append((start, max(end, high), [*members, (key, interface)]))
            else:
                groups.append((low, high, [(key, interface)]))
        ghosts: dict[int, np.ndarray[Any, Any]] = {}
        for low, high, members in groups:
            key, interface = members[0]
            if len(members) == 1 and isinstance(interface.keep, DeviceArray) and 0 not in interface.shape:
                ghosts[key] = self._ghost_of(interface.keep, interface, low, high)
                continue
            shift = low % _PAGE
            memory = reserved(high - low + shift + 1)
            start = _address(memory) + shift
            buffer = Borrowed(self.device, low, high - low, start)
            for key, interface in members:
                ghost = _ghost_in(memory, interface.address - low + shift, interface)
                buffer.owner.append(ghost)
                buffer.keep.append(interface.keep)
                ghosts[key] = ghost
            self._regions.append((start, start + max(high - low, 1), buffer))
        return ghosts

    def _ghost_of(self, value: DeviceArray, interface: Interface, low: int, high: int) -> np.ndarray[Any, Any]:
        """The ghost of one of our own arrays that overlaps no other: that of an earlier call, if nobody else has it."""
        ghost: _Ghost | None = value.__dict__.pop("_ghost", None)  # at once: another thread may ask as well
        if ghost is None or ghost.device is not self.device or ghost.address != interface.address:
            shift = low % _PAGE
            memory = reserved(high - low + shift + 1)
            array = _ghost_in(memory, interface.address - low + shift, interface)
            ghost = _Ghost(self.device, interface.address, array, _address(memory) + shift)
        buffer = Borrowed(self.device, low, high - low, ghost.start)
        buffer.owner.append(ghost.array)
        buffer.keep.append(value)
        self._kept.append((value, ghost, buffer))
        self._regions.append((ghost.start, ghost.start + max(high - low, 1), buffer))
        return ghost.array

    def _replaced(self, value: Any) -> Any:
        if id(value) in self._ghosts:
            ghost = self._ghosts[id(value)]
            self._originals[id(ghost)] = ghost, value
            return ghost
        return value

    # ---- what a call asks --------------------------------------------------------------------------------------------

    def buffer_at(self, address: int) -> Buffer | None:
        """The memory on the device that a ghost, or a view of one, stands for; by where it lies on the host."""
        for start, end, buffer in self._regions:
            if start <= address < end:
                return buffer
        return None

    def resident(self, array: np.ndarray[Any, Any]) -> DeviceView | None:
        """The array on the device that a ghost stands for; None for an array of the host."""
        address = _address(array)
        buffer = self.buffer_at(address)
        if buffer is None:
            return None
        assert buffer.origin is not None
        return DeviceView(
            buffer, address - buffer.origin, name_of_dtype(array.dtype), array.shape, array.strides, array
        )

    def lends(self, buffer: Buffer) -> bool:
        """Whether memory is that of an argument."""
        return isinstance(buffer, Borrowed)

    def adopt(self, buffer: Buffer) -> None:
        """Give memory that the call has made a ghost of its own: `host_view` finds it from now on."""
        memory = reserved(max(buffer.size, 1))
        start = _address(memory)
        buffer.origin, buffer.owner = start, [memory]
        self._made.append(buffer)
        self._regions.append((start, start + max(buffer.size, 1), buffer))

    def fill(self, buffer: Buffer) -> None:
        """Let Python see what is on the device."""
        self._filled.add(buffer)
        if buffer.size:
            self.device.copy_out(_bytes(buffer), buffer.address)

    def empty(self, buffer: Buffer) -> None:
        """Let the device see what Python has done."""
        if buffer.size:
            self.device.copy_in(buffer.address, _bytes(buffer))

    def by_python(self, work: Callable[[], Any]) -> Any:
        """What Python computes from the ghosts."""
        buffers = [buffer for _, _, buffer in self._regions]
        for buffer in buffers:
            self.fill(buffer)
        try:
            return mapped(work(), self._brought)
        finally:
            for buffer in buffers:
                self.empty(buffer)

    def _brought(self, value: Any) -> Any:
        """A result that Python has computed, brought to the device."""
        if type(value) is np.ndarray and self.buffer_at(_address(value)) is None and value.dtype.kind in "biufc":
            return self._ghost(uploaded(self.device, value))
        return value

    def _ghost(self, array: DeviceView) -> Any:
        self.adopt(array.buffer)
        return host_view(array)

    # ---- results -----------------------------------------------------------------------------------------------------

    def leaving(self, value: Any) -> Any:
        """A result, with arrays of the arguments' library in place of ghosts."""
        return mapped(value, self._leaving)

    def _leaving(self, value: Any) -> Any:
        if type(value) is np.ndarray:
            known = self._originals.get(id(value))
            if known is not None:
                return known[1]
            there = self.resident(value)
            if there is None:
                return value
            return exported(self._staying(value, there), self.kind)
        return value

    def _staying(self, ghost: np.ndarray[Any, Any], there: DeviceView) -> DeviceArray:
        """What a ghost stands for, as an array that stays where it is; views of one array have one home."""
        buffer = there.buffer
        for given in buffer.keep if isinstance(buffer, Borrowed) else ():
            if isinstance(given, DeviceArray):
                home = given._home
                place = home.address + there.address - home.copies[self.device].address
                if home.address <= place < home.address + max(home.size, 1):
                    memory = memory_of(home.address, home.size)
                    host: np.ndarray[Any, Any] = np.ndarray(
                        ghost.shape, ghost.dtype, memory.data, place - home.address, ghost.strides
                    )
                    host.flags.writeable = ghost.flags.writeable
                    return DeviceArray(home, host, self.device)
        if buffer not in self._homes:
            assert buffer.origin is not None
            self._homes[buffer] = Home.on(self.device, buffer, buffer.origin, [*buffer.owner])
        return DeviceArray(self._homes[buffer], ghost, self.device)

    def done(self) -> None:
        """The call has ended: its work is complete, ghosts of results are needed no more."""
        for buffer in self._made:
            buffer.origin = buffer.owner = None
        for value, ghost, buffer in self._kept:
            if buffer not in self._filled:
                value._ghost = ghost
        self.device.synchronize()


def _address(array: np.ndarray[Any, Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _ghost_in(memory: np.ndarray[Any, Any], offset: int, interface: Interface) -> np.ndarray[Any, Any]:
    ghost: np.ndarray[Any, Any] = np.ndarray(interface.shape, interface.dtype, memory.data, offset, interface.strides)
    ghost.flags.writeable = not interface.readonly
    return ghost


def _bytes(buffer: Buffer) -> np.ndarray[Any, Any]:
    assert buffer.origin is not None
    return np.ctypeslib.as_array((ctypes.c_uint8 * buffer.size).from_address(buffer.origin))


def _brought_to(device: Machine, value: Any) -> Interface | None:
    """`interface_of` a value that will be used on a device; one of our own arrays comes there."""
    if not isinstance(value, DeviceArray):
        return interface_of(value, device.stream)
    there = value.on(device)
    return Interface(there.address, value.dtype, value.shape, value.strides, there.readonly, value)


def device_of(args: Sequence[Any], opened: Sequence[Machine]) -> Machine | None:
    """The device that the first array among these arguments lives on; None if there is none.

    Parameters
    ----------
    opened : devices to look at first
    """
    from parakeet_py.hybrid import cuda

    empty = False
    for value in leaves_of(args):
        ours = isinstance(value, DeviceArray)  # it goes where it is needed
        interface = interface_of(value) if lives_elsewhere(value) and not ours else None
        if interface is None:
            continue
        if 0 not in interface.shape:
            owners = (device for device in opened if device.owns(interface.address))
            return next(owners, None) or cuda.owner(interface.address)
        empty = True  # it has no address
    if not empty:
        return None
    return opened[0] if opened else next(iter(cuda.devices(0)), None) if cuda.probe().devices else None
