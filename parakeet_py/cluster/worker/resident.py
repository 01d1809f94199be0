"""Parts of regions on a worker's GPU, and chunks that stay in its memory from task to task.

A worker has a GPU if `CUDA_VISIBLE_DEVICES` names one, as dask-cuda sets it for each of its workers, or the device that
`PARAKEET_DEVICES` names where the worker is started. There a part runs as kernels; what it makes is a `DeviceArray`,
which the next part on that worker reads where it is. A worker that asks for such a chunk gets it by way of the host's
memory, and so does any task that is no part of a region, and who asks for a result.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.config import Config
from parakeet_py.base.types import Scalar
from parakeet_py.cluster.worker.buffers import Box, ScalarSlot, ViewSlot, WindowSpec, packed_strides, window
from parakeet_py.hybrid.plan.host_parts import kept
from parakeet_py.typed_ir.ir import Function

if TYPE_CHECKING:
    from parakeet_py.cluster.worker.tasks import Arguments
    from parakeet_py.hybrid.plan.device_plan import DevicePlan
    from parakeet_py.hybrid.residency.arrays import DeviceView

LEAST = 1 << 16  # bytes of a part's windows and of what it fills: less is done by the CPU
_one_at_a_time = threading.RLock()


def device_here() -> Any:
    """The device of this worker; None if it has none, or this is no worker."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = os.environ.get("PARAKEET_DEVICES", "cpu") if not visible or visible.startswith("-") else "cuda:0"
    if names in ("", "cpu") or not _in_worker():
        return None
    return _opened(names)


def _in_worker() -> bool:
    try:
        from distributed import get_worker

        get_worker()
    except (ImportError, ValueError):
        return False
    return True


@lru_cache(maxsize=4)
def _opened(names: str) -> Any:
    from parakeet_py.hybrid.devices.device import DeviceError
    from parakeet_py.hybrid.devices.selection import open_devices

    try:
        found = open_devices(names)
    except DeviceError:  # CUDA_VISIBLE_DEVICES where there is no driver
        return None
    if found:
        _register()
    return found[0] if found else None


def _stays(value: Any) -> bool:
    """Whether a value is an array on devices."""
    kind: Any = type(value)
    return bool(kind.__module__ == "parakeet_py.hybrid.residency.device_array")


def on_host(value: Any) -> Any:
    """A value in the memory of the host."""
    if _stays(value):
        return np.asarray(value)
    return tuple(map(on_host, value)) if type(value) is tuple else value


def shown(function: Callable[..., Any], *args: Any) -> Any:
    """A chunk of a result, which others than tasks read."""
    return on_host(function(*args))


# ---- parts -----------------------------------------------------------------------------------------------------------


class DevicePart:
    """A part of a region as kernels.

    Raises
    ------
    UnsupportedError
        Devices do not know how.
    """

    def __init__(self, function: Function, config: Config) -> None:
        from parakeet_py.hybrid.plan.device_plan import DevicePlan

        self.plan: DevicePlan = DevicePlan(function, config, function.name)
        self.kinds = [result.type for result in self.plan.function.results]

    def run(
        self,
        device: Any,
        common: Arguments,
        los: Sequence[int],
        counts: tuple[int, ...],
        windows: Sequence[WindowSpec],
        together: bool,
        values: Sequence[Any],
    ) -> list[Any]:
        """See `tasks.run_part`: the arrays that it fills, its results, the windows that it stores into."""
        from parakeet_py.hybrid.execute.device_memory import DeviceMemory

        with _one_at_a_time:
            buffers = [_window(device, spec, values, together) for spec in windows]
            filled = [_new(device, counts, dtype) for dtype in common.filled]
            free = [self._argument(device, slot, windows, buffers, values) for slot in common.free]
            memory = DeviceMemory.of_part(self.plan, device)
            try:
                results = self.plan.host(memory, *los, *counts, *filled, *free)
                memory.look()
            except Exception as error:
                raise memory.first(memory.fault(error)) from None
            if not isinstance(results, tuple | list):
                results = [results]
            stored = [buffer for buffer, spec in zip(buffers, windows, strict=True) if spec.written]
            made = [self._result(value, kind) for value, kind in zip(results, self.kinds, strict=True)]
            return [*map(_kept, filled), *made, *map(_kept, stored)]

    @staticmethod
    def _argument(
        device: Any,
        slot: ScalarSlot | ViewSlot,
        windows: Sequence[WindowSpec],
        buffers: Sequence[DeviceView],
        values: Sequence[Any],
    ) -> Any:
        if isinstance(slot, ScalarSlot):
            return values[slot.place] if slot.place >= 0 else slot.value
        from parakeet_py.hybrid.residency.arrays import DeviceView

        if slot.window < 0:
            return _new(device, slot.shape, f"V{slot.itemsize}", 1)
        base, box = buffers[slot.window], windows[slot.window].box
        offset = base.offset
        for start, (lo, _), stride in zip(slot.starts, box, base.strides, strict=True):
            offset += (start - lo) * stride
        strides = tuple(0 if axis < 0 else base.strides[axis] * step for axis, step in slot.axes)
        return DeviceView(base.buffer, offset, base.dtype, slot.shape, strides)

    @staticmethod
    def _result(value: Any, kind: object) -> Any:
        if isinstance(kind, Scalar):
            return kept(value.to_host()[()] if hasattr(value, "to_host") else value, kind.dtype)
        return _kept(value)


def _new(device: Any, shape: tuple[int, ...], dtype: str, size: int | None = None) -> DeviceView:
    from parakeet_py.hybrid.residency.arrays import Buffer, DeviceView

    itemsize = np.dtype(dtype).itemsize
    size = itemsize * math.prod(shape) if size is None else size
    return DeviceView(Buffer(device, size), 0, dtype, shape, packed_strides(shape, itemsize))


def _kept(view: DeviceView) -> Any:
    """What a part has made, as a chunk that stays where it is."""
    from parakeet_py.hybrid.devices.team import team_of
    from parakeet_py.hybrid.residency.arrays import Layout
    from parakeet_py.hybrid.residency.device_array import DeviceArray
    from parakeet_py.hybrid.residency.persistent_memory import Home

    layout = Layout(np.dtype(view.dtype), view.shape, view.strides, True)
    device: Any = view.buffer.device
    while hasattr(device, "device"):  # behind what counts
        device = device.device
    return DeviceArray(Home.on(device, view.buffer), team_of(device), layout, view.offset)


# ---- windows ---------------------------------------------------------------------------------------------------------


def _window(device: Any, spec: WindowSpec, values: Sequence[Any], together: bool) -> DeviceView:
    """A window in a device's memory: a chunk that is there already, or one that is put together."""
    there = [_there(device, piece.of(values)) for piece in spec.pieces]
    if len(spec.pieces) == 1 and not spec.written and spec.pieces[0].box == spec.box:
        (found,) = there
        if found is not None and (not together or _shape(spec.box) == found.shape):
            return _part(found, spec.pieces[0].at, _shape(spec.box))
    if all(found is None for found in there):
        return _uploaded(device, window(spec, values))
    made = _new(device, _shape(spec.box), spec.dtype)
    for piece, found in zip(spec.pieces, there, strict=True):  # with what is skipped: copies there are cheap
        inner, at = piece.box, piece.at
        target = _part(
            made, tuple(lo - first for (lo, _), (first, _) in zip(inner, spec.box, strict=True)), _shape(inner)
        )
        if found is None:
            source = tuple(slice(a, a + hi - lo) for a, (lo, hi) in zip(at, inner, strict=True))
            own = _uploaded(device, np.asarray(piece.of(values), spec.dtype)[source])
        else:
            own = _part(found, at, _shape(inner))
        _copy(device, target, own)
    return made


def _there(device: Any, value: Any) -> DeviceView | None:
    """A chunk in the device's memory; None if it is in the host's."""
    if not _stays(value) or value._place.alone is not device:
        return None
    found: DeviceView = value.on(device)
    return found


def _uploaded(device: Any, array: Any) -> DeviceView:
    from parakeet_py.hybrid.residency.device_array import uploaded

    return uploaded(device, array)


def _shape(box: Box) -> tuple[int, ...]:
    return tuple(hi - lo for lo, hi in box)


def _part(view: DeviceView, at: Sequence[int], shape: tuple[int, ...]) -> DeviceView:
    from parakeet_py.hybrid.residency.arrays import DeviceView

    offset = view.offset + sum(first * stride for first, stride in zip(at, view.strides, strict=True))
    return DeviceView(view.buffer, offset, view.dtype, shape, view.strides)


def _copy(device: Any, target: DeviceView, source: DeviceView) -> None:
    """Copy elements, as many at once as lie side by side in both."""
    run = np.dtype(target.dtype).itemsize
    axes = len(target.shape)
    while axes and (target.shape[axes - 1] == 1 or target.strides[axes - 1] == source.strides[axes - 1] == run):
        axes -= 1
        run *= target.shape[axes]
    for index in np.ndindex(*target.shape[:axes]):
        places = [
            view.address + sum(number * stride for number, stride in zip(index, view.strides, strict=False))
            for view in (target, source)
        ]
        if run:
            device.copy_within(*places, run)


# ---- between workers -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _register() -> None:
    """Tell Dask how large chunks on devices are, and how workers send them: as the host's memory has them."""
    from dask.sizeof import sizeof
    from distributed.protocol import dask_deserialize, dask_serialize

    from parakeet_py.hybrid.residency.device_array import DeviceArray

    sizeof.register(DeviceArray, lambda array: int(array.nbytes))
    dask_serialize.register(DeviceArray)(_sent)
    dask_deserialize.register(DeviceArray)(_arrived)


def _sent(array: Any) -> tuple[dict[str, Any], list[Any]]:
    host = np.ascontiguousarray(np.asarray(array)).reshape(array.shape)
    return {"dtype": host.dtype.str, "shape": host.shape}, [host.reshape(-1).view(np.uint8).data]


def _arrived(header: dict[str, Any], frames: Sequence[Any]) -> Any:
    made = np.frombuffer(frames[0], header["dtype"]) if len(frames) else np.empty(0, header["dtype"])
    return made.reshape(header["shape"])
