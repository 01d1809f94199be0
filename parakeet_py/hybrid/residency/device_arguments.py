"""Arguments that live on a device: arrays of CuPy, PyTorch, JAX, numba..., used where they are.

They say so by DLPack or by `__cuda_array_interface__`. For the time of the call each is represented by a *ghost*: a
NumPy array of the same dtype, shape, strides and alignment, in memory of the host that is only reserved. Ghosts lie to
each other as the arrays do, so signatures, overlaps and views need to know nothing of devices; before anything looks
into a ghost (an operation handed back to Python) it is filled. New arrays of the result are ghosts too, until `leaving`
makes them arrays of the library that the arguments came from (`exported`).

Work is ordered by the device's own stream: before the call it waits for the arguments' producers, and the call waits
for it in the end, so that what other streams do with arguments and results comes later.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from parakeet_py.hybrid.devices.device import DeviceError, Machine
from parakeet_py.hybrid.devices.device_detection import leaves_of, lives_elsewhere, mapped
from parakeet_py.hybrid.residency.array_interfaces import Interface, interface_of
from parakeet_py.hybrid.residency.arrays import Borrowed, Buffer, DeviceView, host_view, kept_view, name_of_dtype
from parakeet_py.hybrid.residency.device_array import DeviceArray, layout_of, uploaded
from parakeet_py.hybrid.residency.exported import exported
from parakeet_py.hybrid.residency.persistent_memory import Home, reserved

_PAGE = 4096


class Foreign:
    """The arguments of one call that live on its device.

    Attributes
    ----------
    args : the arguments, with ghosts in place of arrays
    listed : the results that become Python lists, so that they are fetched
    """

    def __init__(self, device: Machine, args: Sequence[Any]) -> None:
        self.device = device
        self.listed: frozenset[int] = frozenset()
        self.kind: Any = None  # the first of them: results become arrays of its library
        self._regions: list[tuple[int, int, Buffer]] = []  # ghosts from, to; the memory that they stand for
        self._made: list[Buffer] = []
        self._originals: dict[int, tuple[Any, Any]] = {}  # by id of the ghost, which is kept
        self._found: dict[int, Interface] = {}
        self._homes: dict[Buffer, Home] = {}  # of results
        for value in leaves_of(args):
            if id(value) not in self._found and lives_elsewhere(value):
                interface = _brought_to(device, value)
                if interface is not None:
                    self._add(value, interface)
        self._ghosts = self._reserve()
        self.args = tuple(mapped(value, self._replaced) for value in args)

    def _add(self, value: Any, interface: Interface) -> None:
        ours = isinstance(value, DeviceArray)  # it has come to the device
        if not ours and 0 not in interface.layout.shape and not self.device.owns(interface.address):
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
        if buffer.size:
            self.device.copy_out(_bytes(buffer), buffer.address)

    def empty(self, buffer: Buffer) -> None:
        """Let the device see what Python has done."""
        if buffer.size:
            self.device.copy_in(buffer.address, _bytes(buffer))

    def kept(self, ghost: np.ndarray[Any, Any]) -> Callable[[], None] | None:
        """What puts the elements that a ghost stands for back as they are now; None of an array of the host."""
        there = self.resident(ghost)
        return None if there is None else kept_view(there)

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
        buffer, layout = there.buffer, layout_of(ghost)
        for given in buffer.keep if isinstance(buffer, Borrowed) else ():
            if isinstance(given, DeviceArray):
                home = given._home
                offset = there.address - home.copies[self.device].address
                if 0 <= offset < max(home.size, 1):
                    return DeviceArray(home, self.device, layout, offset)
        if buffer not in self._homes:
            assert buffer.origin is not None
            self._homes[buffer] = Home.on(self.device, buffer, buffer.origin, [*buffer.owner])
        return DeviceArray(self._homes[buffer], self.device, layout, there.offset, ghost)

    def done(self) -> None:
        """The call has ended: its work is complete, ghosts of results are needed no more."""
        for buffer in self._made:
            buffer.origin = buffer.owner = None
        self.device.synchronize()


def _address(array: np.ndarray[Any, Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _ghost_in(memory: np.ndarray[Any, Any], offset: int, interface: Interface) -> np.ndarray[Any, Any]:
    dtype, shape, strides, writeable = interface.layout
    ghost: np.ndarray[Any, Any] = np.ndarray(shape, dtype, memory.data, offset, strides)
    ghost.flags.writeable = writeable
    return ghost


def _bytes(buffer: Buffer) -> np.ndarray[Any, Any]:
    assert buffer.origin is not None
    return np.ctypeslib.as_array((ctypes.c_uint8 * buffer.size).from_address(buffer.origin))


def _brought_to(device: Machine, value: Any) -> Interface | None:
    """`interface_of` a value that will be used on a device; one of our own arrays comes there."""
    if not isinstance(value, DeviceArray):
        return interface_of(value, device.stream)
    there = value.on(device)
    return Interface(there.address, value._layout, value)
