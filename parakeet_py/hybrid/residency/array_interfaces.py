"""How arrays of other libraries say that they live on a device: DLPack, and `__cuda_array_interface__`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.hybrid.devices.device_detection import leaves_of
from parakeet_py.hybrid.residency import dlpack
from parakeet_py.hybrid.residency.arrays import Layout, span, strides_of
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.signature.device_classes import class_lives_elsewhere

DEFAULT = 1  # the stream that is meant where none is named


class Interface(NamedTuple):
    """An array on a device; `keep` keeps it there, `stream` is what its producer still works in."""

    address: int
    layout: Layout
    keep: Any
    stream: int | None = None

    def bounds(self) -> tuple[int, int]:
        """The first byte and the one after the last; of an array without elements, one byte."""
        low, high = _reach(self.layout)
        return self.address + low, self.address + high


# What arrays say of themselves is the same in call after call but for their addresses.


@lru_cache(maxsize=256)
def _reach(layout: Layout) -> tuple[int, int]:
    if 0 in layout.shape:
        return 0, 1
    low, size = span(layout.shape, layout.strides, layout.dtype.itemsize)
    return low, low + size


@lru_cache(maxsize=256)
def _layout(dtype: str, shape: tuple[SupportsIndex, ...], strides: tuple[int, ...] | None, writeable: bool) -> Layout:
    extents, kind = tuple(map(int, shape)), np.dtype(dtype)
    return Layout(kind, extents, strides_of(extents, kind.itemsize) if strides is None else strides, writeable)


@lru_cache(maxsize=128)
def _knows_dlpack(kind: Any) -> bool:
    return hasattr(kind, "__dlpack_device__")


def interface_of(value: Any, stream: int | None = None) -> Interface | None:
    """How a value says that it is an array on a device; None if it is none, or of a dtype that NumPy lacks.

    Parameters
    ----------
    stream : what the array will be used in; its producer sees to it that it is complete there
    """
    kind: Any = type(value)
    try:
        if _knows_dlpack(kind) and value.__dlpack_device__()[0] in (dlpack.CUDA, dlpack.MANAGED):
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
    strides = said.get("strides")
    address, readonly = said["data"]
    layout = _layout(said["typestr"], tuple(said["shape"]), strides and tuple(strides), not readonly)
    return Interface(int(address), layout, value, said.get("stream"))


def _of_capsule(value: Any, stream: int | None) -> Interface | None:
    try:
        capsule = value.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # from before versions
        capsule = value.__dlpack__(stream=stream)
    tensor = dlpack.read(capsule)
    if tensor is None:
        return None
    immutable = type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
    layout = _layout(tensor.dtype, tensor.shape, tensor.strides, not (tensor.readonly or immutable))
    return Interface(tensor.address, layout, (capsule, value))


def device_of(
    args: Sequence[Any], opened: Sequence[Machine], asked: dict[int, Interface] | None = None
) -> Machine | None:
    """The device that the first array of another library among these arguments lives on; None if there is none.

    Parameters
    ----------
    opened : devices to look at first
    asked : gets what that array has said, by its `id`, if it says the same to its device
    """
    empty = False
    for value in leaves_of(args):
        if type(value) is DeviceArray or not class_lives_elsewhere(type(value)):  # one of ours goes where it is needed
            continue
        found = _said_by_number(value, opened)
        if found is not None:
            return found
        interface = interface_of(value)
        if interface is None:
            continue
        if 0 not in interface.layout.shape:
            owners = (device for device in opened if device.owns(interface.address))
            owner = next(owners, None) or _cuda().owner(interface.address)
            if asked is not None and (interface.keep is value or (owner is not None and owner.stream == DEFAULT)):
                asked[id(value)] = interface
            return owner
        empty = True  # it has no address
    if not empty:
        return None
    cuda = _cuda()
    return opened[0] if opened else next(iter(cuda.devices(0)), None) if cuda.probe().devices else None


def _cuda() -> Any:
    from parakeet_py.hybrid.devices import cuda

    return cuda


def _said_by_number(value: Any, opened: Sequence[Machine]) -> Machine | None:
    """The CUDA device whose number DLPack says: asking for the array itself would cost its producer something."""
    class_: Any = type(value)
    if not _knows_dlpack(class_):
        return None
    try:
        kind, number = value.__dlpack_device__()
    except (AttributeError, NotImplementedError, BufferError, RuntimeError, TypeError, ValueError):
        return None
    if kind != dlpack.CUDA or not all(device.name.startswith("cuda:") for device in opened):
        return None
    found = next((device for device in opened if device.name == f"cuda:{number}"), None)
    cuda = _cuda()
    if found is None and number < cuda.probe().devices:
        (found,) = cuda.devices(number)
    return found
