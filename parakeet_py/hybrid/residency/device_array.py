"""`DeviceArray`: an array that stays on devices between calls.

It lives at a *place*, a device or a team of several. Its bytes are where calls have left them (`persistent_memory`), in
as many memories as have them; only what is missing where it is needed moves. It is what a call gives if one of its
arguments is such an array, and it says what it is by DLPack and `__cuda_array_interface__`, so that other libraries can
use it too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.hybrid.devices.team import Team, team_of
from parakeet_py.hybrid.residency import dlpack
from parakeet_py.hybrid.residency.array_methods import ArrayMethods
from parakeet_py.hybrid.residency.arrays import Buffer, DeviceView, Layout, kept_view, name_of_dtype, span
from parakeet_py.hybrid.residency.blocks import layout_of
from parakeet_py.hybrid.residency.byte_ranges import Spans, bytes_of_box
from parakeet_py.hybrid.residency.persistent_memory import Home


class DeviceArray(ArrayMethods):
    """An array on devices, made by `asdevice` and by calls on such arrays.

    It takes operators, NumPy's functions and ufuncs, slices, assignments and the methods of NumPy's arrays; what they
    give is on the devices, too, an array without axes where NumPy gives a number. `numpy.asarray` makes a copy in
    memory of the host; besides, elements come there where Python asks for a number (`item`, `float`, a condition).

    Attributes
    ----------
    shape, dtype, strides : as NumPy's
    """

    _base: DeviceArray | None = None  # of a view taken of it, which keeps it

    def __init__(
        self,
        home: Home,
        place: Team,
        layout: Layout,
        offset: int,
        host: np.ndarray[Any, Any] | None = None,
    ) -> None:
        self._home, self._place, self._layout, self._offset, self._array = home, place, layout, offset, host
        if home.first is None:
            home.first = ref(self)

    @property
    def base(self) -> DeviceArray | None:
        """The array that it is a view of, which has memory of its own; None if it has."""
        if self._base is None and self._home.first is not None:
            first = self._home.first()
            return None if first is self else first
        return self._base

    @property
    def stand_in(self) -> np.ndarray[Any, Any]:
        """It in the memory of the host, its elements valid or not: what signatures are made of."""
        found = self._array
        if found is None:
            dtype, shape, strides, writeable = self._layout
            memory: Any = (ctypes.c_uint8 * max(self._home.size, 1)).from_address(self._home.address)
            memory.home = self._home  # Python may keep it longer than this array
            found = np.ndarray(shape, dtype, memory, 0 if 0 in shape else self._offset, strides)
            found.flags.writeable = writeable
            self._array = found
        return found

    def take_layout(self) -> None:
        """Be what Python has made of what stands for it (`a.shape = ...`, `a.dtype = ...`, `a.setflags(...)`)."""
        if self._array is not None:
            found = layout_of(self._array)
            if found != self._layout:
                self._layout = found

    @property
    def device(self) -> str:
        """The names of the devices that it lives on, as `options(devices=...)` has them."""
        return self._place.name

    def bring(self, device: Machine | None, part: np.ndarray[Any, Any] | None = None, writes: bool = False) -> None:
        """Make its elements, or those of a view of the host's array, valid on a device or the host (None)."""
        self._home.bring(device, self._spans(self.stand_in if part is None else part), writes)

    def _spans(self, part: np.ndarray[Any, Any]) -> Spans:
        return bytes_of_box(part, self._home.address, tuple((0, extent) for extent in part.shape), False)

    def on(self, device: Machine) -> DeviceView:
        """It on one device, which may change it from now on if it is not read-only."""
        home = self._home
        dtype, shape, strides, writeable = self._layout
        if not home.is_only_on(device):
            self.bring(device, writes=writeable)
        return DeviceView(
            home.copies[device], self._offset, name_of_dtype(dtype), shape, strides, self, readonly=not writeable
        )

    def _view(self, writeable: bool) -> DeviceArray:
        """The same elements as another object."""
        layout = self._layout._replace(writeable=writeable and self._layout.writeable)
        return DeviceArray(self._home, self._place, layout, self._offset)

    def kept(self) -> Callable[[], None]:
        """What puts the elements back as they are now, wherever they are."""
        device = self._place.alone
        if device is not None and self._home.is_only_on(device):
            return kept_view(self.on(device))
        return self._home.kept()

    def _shown(self) -> Machine | None:
        """The device whose memory other libraries can use in place; None if there is none such."""
        device = self._place.alone
        return device if device is not None and device.shows_memory else None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        device = self._shown()
        if device is None:
            raise AttributeError(f"an array on {self.device} has no address that CUDA knows")
        there = self.on(device)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (there.address if self.size else 0, there.readonly),
            "strides": self.strides,
            "stream": device.stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self._shown()
        return (dlpack.CPU, 0) if device is None else (dlpack.CUDA, int(device.name.rpartition(":")[2]))

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        device = self._shown()
        if device is None or dl_device == (dlpack.CPU, 0):
            if copy is False:
                raise BufferError(f"an array on {self.device} is exported as a copy on the host")
            return self.__array__().__dlpack__(max_version=max_version, dl_device=dl_device)
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("an array on a device is exported there or to the host")
        if copy:
            return self.copy().__dlpack__(stream=stream, max_version=max_version)
        if stream != -1:
            device.let_wait(_number_of(stream))
        itemsize = self.dtype.itemsize
        steps = [stride // itemsize for stride in self.strides]
        if any(stride % itemsize for stride in self.strides):
            raise BufferError("DLPack knows strides of whole elements only")
        versioned = max_version is not None and max_version[0] >= 1
        there = self.on(device)
        if there.readonly and not versioned:
            raise BufferError("this array is read-only, which DLPack can say from version 1 on")
        where, kind = self.__dlpack_device__(), self.dtype.str[1:]
        return dlpack.capsule_of(there.address, kind, self.shape, steps, where, there.buffer, versioned, there.readonly)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array on a device becomes one of the host by a copy")
        device = self._place.alone
        if device is not None and self._home.is_only_on(device) and self._is_dense():
            memory, kind = self._home.copies[device], name_of_dtype(self.dtype)
            found = DeviceView(memory, self._offset, kind, self.shape, self.strides).to_host()
            return found if dtype is None else found.astype(dtype, copy=False)
        self.bring(None)
        return np.array(self.stand_in, dtype, order="K")

    def _is_dense(self) -> bool:
        """Whether its elements fill the memory from the first to the last."""
        return span(self.shape, self.strides, self.itemsize)[1] == self.nbytes

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} on {self.device}>"

    def __reduce__(self) -> Any:
        return asdevice, (np.asarray(self), self.device)

    def is_same(self, other: DeviceArray) -> bool:
        """Whether another array has the same elements in the same places."""
        same = self._home is other._home and self._layout[:3] == other._layout[:3]
        return same and (self._offset == other._offset or not self.size)

    def _view_of(self, part: np.ndarray[Any, Any]) -> DeviceArray:
        kind = part.dtype
        if not is_known(kind):
            raise TypeError(f"a device has no elements of dtype {kind}")
        offset = part.__array_interface__["data"][0] - self._home.address if part.size else 0
        made = DeviceArray(self._home, self._place, layout_of(part), offset, part)
        base = self.base
        made._base = self if base is None else base
        return made

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """It on other devices; on "cpu", an array of NumPy's. A `stream`, by its number or as an object that has
        `__cuda_stream__`, waits until it is there."""
        if device == "cpu":
            return np.asarray(self)
        found = asdevice(self, device)
        shown = None if stream is None else found._shown()
        if shown is not None:
            shown.let_wait(_number_of(stream))
        return found


def _number_of(stream: Any) -> int:
    """The number of a stream, as DLPack has it; None is the default one."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, stream = protocol() if callable(protocol) else protocol  # its version, and the handle
        stream = int(stream) or 1
    return 1 if stream is None else int(stream)


def is_stand_in(value: Any) -> bool:
    """Whether a value is an array of the host's that stands for one on devices, or a view of it."""
    if type(value) is not np.ndarray:
        return False
    base = value.base
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(getattr(base, "home", None), Home)


def asdevice(x: Any, device: str | Machine | Team | None = None) -> DeviceArray:
    """A copy of an array on devices, where it stays between calls.

    A call of an accelerated function with a `DeviceArray` among its arguments gives such arrays, and moves only what is
    missing. It runs on the devices that `options(devices=...)` names; where none are named, on those of the array.

    Parameters
    ----------
    x : anything that `numpy.asarray` takes, of numbers or bools; a `DeviceArray` of the same place is given back
    device : names as in `options(devices=...)`, such as "cuda:0" or "cpu,emulated*2"; those of the settings if left out

    Raises
    ------
    ValueError
        No device is named besides the CPU.
    TypeError
        Devices have no elements of this dtype, or `device` is no name.
    """
    from parakeet_py.base import config as settings
    from parakeet_py.base.device_names import existing
    from parakeet_py.hybrid.devices.selection import chosen

    if device is None or isinstance(device, str):
        config = settings.current()
        names = config.devices or "" if device is None else device
        place = None if names in ("", "cpu") else chosen(names, config.split if device is None else None)
        if place is None:
            raise ValueError(
                "asdevice needs a device besides the CPU: device='emulated', say, or options(devices=...) around it; "
                f"there are {existing()}"
            )
    elif isinstance(device, Team):
        place = device
    elif hasattr(device, "copy_in"):
        place = team_of(device)
    else:
        raise TypeError(f"a device is named, as 'cuda:0' or 'emulated' is, not {device!r}; there are {existing()}")
    if isinstance(x, DeviceArray):
        if x._place == place:
            return x
        x = np.asarray(x)
    array = np.asarray(x)
    if not is_known(array.dtype):
        raise TypeError(f"a device has no elements of dtype {array.dtype}")
    if place.alone is None:
        data = np.array(array, order="K")
        home = Home(data.__array_interface__["data"][0], data.nbytes, (data,))
        return DeviceArray(home, place, layout_of(data), 0, data)
    turned = array.flags.f_contiguous and not array.flags.c_contiguous
    there = uploaded(place.alone, array.T if turned else array)
    shape, strides = (there.shape[::-1], there.strides[::-1]) if turned else (there.shape, there.strides)
    return DeviceArray(Home.on(place.alone, there.buffer), place, Layout(array.dtype, shape, strides, True), 0)


def is_known(dtype: np.dtype[Any]) -> bool:
    """Whether devices have elements of a dtype."""
    return dtype.kind in "biufc" and dtype.isnative and dtype.itemsize <= 16 - 8 * (dtype.kind != "c")


def uploaded(device: Any, array: np.ndarray[Any, Any]) -> DeviceView:
    """A contiguous copy on a device."""
    data = np.ascontiguousarray(array).reshape(array.shape)
    buffer = Buffer(device, data.nbytes)
    if data.nbytes:
        device.copy_in(buffer.address, data.reshape(-1).view(np.uint8))
    return DeviceView(buffer, 0, data.dtype.name, data.shape, data.strides)
