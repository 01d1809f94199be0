"""Arrays on a device that leave a call: `OnDevice`, and how other libraries take it for their own."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from parakeet_py.hybrid import dlpack
from parakeet_py.hybrid.arrays import Buffer, DeviceArray, strides_of
from parakeet_py.hybrid.device import Machine


class OnDevice:
    """An array that lives on a device: what a call gives if no other library's arrays were among its arguments.

    It says what it is by `__cuda_array_interface__` and DLPack, is taken as an argument in place, and becomes a NumPy
    array by `numpy.asarray`.
    """

    def __init__(self, device: Machine, array: DeviceArray) -> None:
        self._device, self._array = device, array
        self.shape, self.dtype, self.strides = array.shape, np.dtype(array.dtype), array.strides

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> str:
        """The name of the device."""
        return self._device.name

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._array.address if self.size else 0, self._array.readonly),
            "strides": self.strides,
            "stream": self._device.stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, int(self._device.name.rpartition(":")[2])

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("an array on a device is exported in place only")
        if stream != -1:
            self._device.let_wait(1 if stream is None else stream)
        itemsize = self.dtype.itemsize
        steps = [stride // itemsize for stride in self.strides]
        if any(stride % itemsize for stride in self.strides):
            raise BufferError("DLPack knows strides of whole elements only")
        versioned = max_version is not None and max_version[0] >= 1
        if self._array.readonly and not versioned:
            raise BufferError("this array is read-only, which DLPack can say from version 1 on")
        where = self.__dlpack_device__()
        kind = self.dtype.str[1:]
        array = self._array
        return dlpack.capsule_of(array.address, kind, self.shape, steps, where, array.buffer, versioned, array.readonly)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array on a device becomes one of the host by a copy")
        found = self._array.to_host()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} on {self._device.name}>"


def exported(array: OnDevice, kind: Any) -> Any:
    """An array as the library of `kind` has them."""
    library = type(kind).__module__.partition(".")[0]
    if library in ("cupy", "cupyx"):
        return importlib.import_module("cupy").from_dlpack(array)
    if library == "torch":
        return importlib.import_module("torch").from_dlpack(_forward(array))
    if library in ("jax", "jaxlib"):
        return importlib.import_module("jax.dlpack").from_dlpack(_compact(array))
    if library == "numba":
        return importlib.import_module("numba.cuda").as_cuda_array(array)
    return array


def _forward(array: OnDevice) -> OnDevice:
    """The array, copied if a stride is negative: PyTorch has none such."""
    return array if all(stride >= 0 for stride in array.strides) else _compact(array)


def _compact(array: OnDevice) -> OnDevice:
    """The array, copied if it is not C-contiguous."""
    if not array.size or array.strides == strides_of(array.shape, array.dtype.itemsize):
        return array
    return OnDevice(array._device, uploaded(array._device, np.asarray(array)))


def uploaded(device: Any, array: np.ndarray[Any, Any]) -> DeviceArray:
    """A contiguous copy on a device."""
    data = np.ascontiguousarray(array).reshape(array.shape)
    buffer = Buffer(device, data.nbytes)
    if data.nbytes:
        device.copy_in(buffer.address, data.reshape(-1).view(np.uint8))
    return DeviceArray(buffer, 0, data.dtype.name, data.shape, data.strides)
