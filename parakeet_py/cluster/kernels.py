"""What runs on workers: a part of a region on windows of arrays.

A `Kernel` is a part as a typed function, with machine code once some process has made it: it travels as bytes, and a
worker whose machine, Python or package differs compiles the function anew. A task gives it the place of its block and
*windows*: buffers that hold a box of an array's elements. The part indexes arrays as if they were all there, so the
address that it is given is where element 0 would be; only elements of the box are touched.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base import routines
from parakeet_py.base.config import Config
from parakeet_py.base.config import current as settings
from parakeet_py.base.errors import ParakeetError
from parakeet_py.hybrid.plan.host_parts import HostPart, MachineCode
from parakeet_py.hybrid.plan.host_scalars import ELEMENTARY, elementary
from parakeet_py.llvm.engine import disk_cache
from parakeet_py.typed_ir import semantics
from parakeet_py.typed_ir.interpret import format_failure
from parakeet_py.typed_ir.ir import Failure, Function

Box = tuple[tuple[int, int], ...]
FORMAT = 2  # of what travels


class ScalarSlot(NamedTuple):
    """A scalar argument of a part: known, or the value at a place among those of the task."""

    value: Any
    place: int = -1


class ViewSlot(NamedTuple):
    """An array argument of a part: a view of a window's array.

    Attributes
    ----------
    window : its number; -1 if no element is touched
    starts : where the view begins along each axis of the window's array
    axes : of the view: the axis of the window's array, or -1, and the step along it
    shape, itemsize : of the view
    """

    window: int
    starts: tuple[int, ...]
    axes: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    itemsize: int


class Piece(NamedTuple):
    """What a window takes of a value of its task: a box of the array, whose first element is at `at` in the value."""

    place: int
    box: Box
    at: tuple[int, ...]


class WindowSpec(NamedTuple):
    """A window of one task: its box, where elements come from, and whether the part stores into it."""

    dtype: str
    box: Box
    pieces: tuple[Piece, ...]
    written: bool


class Arguments(NamedTuple):
    """What all tasks of a region have alike: how many arrays are filled, and the arguments after these."""

    filled: tuple[str, ...]
    free: tuple[Any, ...]


class _Window:
    """An array as machine code sees it: the address of element 0, extents and strides."""

    __slots__ = ("__array_interface__", "buffer", "shape", "strides")

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], buffer: Any) -> None:
        self.__array_interface__ = {"data": (address, False)}
        self.shape, self.strides, self.buffer = shape, strides, buffer


class Kernel:
    """A part of a region, compiled once in a process, and once for all processes on machines of one kind.

    Attributes
    ----------
    function : the part
    together : arrays with several axes have to be contiguous in their windows, as the part knows how rows lie
    identity : what it is, the same in every process
    """

    def __init__(self, function: Function, config: Config, together: bool, identity: str) -> None:
        self.function, self.config, self.together, self.identity = function, config, together, identity
        self._native: HostPart | None = None
        self._lock = threading.Lock()

    def native(self) -> HostPart:
        """The machine code, made when it is first asked for."""
        if self._native is None:
            with self._lock:
                if self._native is None:
                    self._native = HostPart(self.function, self.config)
        return self._native

    def __reduce__(self) -> tuple[Any, ...]:
        config = self.config
        flags = {"contract": config.contract, "fastmath": config.fastmath, "check": config.check}
        state = self.function, flags, self.together, self.identity, disk_cache.digest(), self.native().code
        return _arrived, (FORMAT, package_key(), state)

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        return self.native()(arguments, threads_here())


def package_key() -> str:
    """The version of the package that a process runs."""
    return _package_key()


@lru_cache(maxsize=1)
def _package_key() -> str:
    return disk_cache.digest(*disk_cache.package_sizes())


_here: dict[Any, Kernel] = {}  # kernels that have come from other processes
_here_lock = threading.Lock()
MOST = 4096


def _arrived(version: int, package: str, state: tuple[Any, ...]) -> Kernel:
    """A kernel from another process."""
    if version != FORMAT or package != package_key():
        raise ParakeetError(
            "this worker runs another version of parakeet_py than the client: install the same one everywhere"
        )
    function, flags, together, identity, environment, code = state
    assert isinstance(code, MachineCode)
    known = identity, code.object_bytes  # equal code may stand for other messages
    with _here_lock:
        if known in _here:
            return _here[known]
        kernel = Kernel(function, Config(**flags), together, identity)
        if environment == disk_cache.digest():
            kernel._native = HostPart(function, kernel.config, code)
        if len(_here) >= MOST:
            _here.clear()
        _here[known] = kernel
    return kernel


def threads_here() -> int:
    """Threads that a task may use: all where nothing else runs beside it, else its own."""
    try:
        from distributed import get_worker

        return 1 if get_worker().state.nthreads > 1 else max(1, settings().threads or 1)
    except (ImportError, ValueError):
        pass
    return settings().thread_count if threading.current_thread() is threading.main_thread() else 1


# ---- tasks -----------------------------------------------------------------------------------------------------------


def run_part(
    kernel: Kernel,
    common: Arguments,
    los: tuple[int, ...],
    counts: tuple[int, ...],
    windows: tuple[WindowSpec, ...],
    *values: Any,
) -> Any:
    """A part over one block: the arrays that it fills, its results, and the windows that it stores into, in order."""
    buffers = [window(spec, values, kernel.together) for spec in windows]
    filled = [np.empty(counts, dtype) for dtype in common.filled]
    free = [
        _view(slot, windows, buffers)
        if isinstance(slot, ViewSlot)
        else values[slot.place]
        if slot.place >= 0
        else slot[0]
        for slot in common.free
    ]
    results = kernel([*los, *counts, *filled, *free])
    stored = [buffer for buffer, spec in zip(buffers, windows, strict=True) if spec.written]
    found = [*filled, *results, *stored]
    return found[0] if len(found) == 1 else tuple(found)


def window(spec: WindowSpec, values: Sequence[Any], together: bool = False) -> np.ndarray[Any, Any]:
    """The buffer of a window, which nothing else changes if the part stores into it."""
    box = spec.box
    if len(spec.pieces) == 1 and not spec.written and spec.pieces[0].box == box:
        place, _, at = spec.pieces[0]
        found = np.asarray(values[place], spec.dtype)
        if any(at) or found.shape != tuple(hi - lo for lo, hi in box):
            found = found[tuple(slice(a, a + hi - lo) for a, (lo, hi) in zip(at, box, strict=True))]
        rows = found.ndim == 0 or found.size == 0 or found.strides[-1] == found.itemsize
        if rows and found.flags.aligned and not (together and not found.flags.c_contiguous):
            return found
        return np.ascontiguousarray(found).reshape(found.shape)
    made = np.empty([hi - lo for lo, hi in box], spec.dtype)
    for place, inner, at in spec.pieces:
        target = tuple(slice(lo - first, hi - first) for (lo, hi), (first, _) in zip(inner, box, strict=True))
        source = tuple(slice(a, a + hi - lo) for a, (lo, hi) in zip(at, inner, strict=True))
        made[target] = np.asarray(values[place])[source]
    return made


def _view(slot: ViewSlot, windows: Sequence[WindowSpec], buffers: Sequence[np.ndarray[Any, Any]]) -> _Window:
    if slot.window < 0:
        return _Window(0, slot.shape, packed_strides(slot.shape, slot.itemsize), None)
    buffer, box = buffers[slot.window], windows[slot.window].box
    strides = buffer.strides
    address = buffer.__array_interface__["data"][0]
    for start, (lo, _), stride in zip(slot.starts, box, strides, strict=True):
        address += (start - lo) * stride
    own = tuple(0 if axis < 0 else strides[axis] * step for axis, step in slot.axes)
    return _Window(address, slot.shape, own, buffer)


def packed_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides of a C-contiguous array."""
    strides, size = [], itemsize
    for extent in reversed(shape):
        strides.append(size)
        size *= max(extent, 1)
    return tuple(reversed(strides))


def take(value: Any, place: int) -> Any:
    """One of the results of a task."""
    return value[place]


def cut(value: Any, bounds: tuple[tuple[int, int], ...]) -> Any:
    """A slice of a chunk, for another one's window."""
    return np.asarray(value)[tuple(slice(lo, hi) for lo, hi in bounds)]


def assembled(spec: WindowSpec, *values: Any) -> Any:
    """An array, or a chunk of one, from others."""
    return window(spec, values)


def fresh(shape: tuple[int, ...], dtype: str) -> Any:
    """A chunk of an array to which nothing has been stored: its elements are unspecified."""
    return np.zeros(shape, dtype)


def combined(kernel: Kernel, *partials: Any) -> Any:
    """Partial results in index order, combined."""
    function = kernel.function
    count = len(function.params) // 2
    total = _several(partials[0], count)
    for more in partials[1:]:
        total = kernel([*map(_rows, total), *map(_rows, _several(more, count))])
    return total[0] if count == 1 else tuple(total)


def _several(value: Any, count: int) -> list[Any]:
    return [value] if count == 1 else [*value]


def _rows(value: Any) -> Any:
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) and value.ndim else value


def scanned_after(kernel: Kernel, count: int, block: Any, *before: Any) -> Any:
    """A scanned block (its arrays, then its totals) with the totals of the blocks before it taken in."""
    arrays = [np.array(one) for one in block[:count]]
    if before:
        totals = _several(before[0], count)
        kernel([*arrays[0].shape, *map(_rows, totals), *arrays])
    return arrays[0] if count == 1 else tuple(arrays)


def totals_before(kernel: Kernel, count: int, block: Any, *before: Any) -> Any:
    """The totals of all blocks up to a scanned one, this one included, given those before it."""
    totals = [*block[count:]]
    if before:
        totals = kernel([*map(_rows, _several(before[0], count)), *map(_rows, totals)])
    return totals[0] if count == 1 else tuple(totals)


def taken_in(kernel: Kernel, spec: WindowSpec, slot: ViewSlot, total: Any, *values: Any) -> Any:
    """All of an array, with what has been scattered into copies of a view of it combined with that view."""
    made = window(spec, values)
    target = _indexed(made, spec.box, slot)
    (target[...],) = kernel([_rows(np.ascontiguousarray(target).reshape(target.shape)), _rows(total)])
    return made


def stored_element(chunk: Any, at: tuple[int, ...], value: Any) -> Any:
    """A chunk with one element changed."""
    made = np.array(chunk)
    made[at] = value
    return made


def product(left: tuple[WindowSpec, ViewSlot], right: tuple[WindowSpec, ViewSlot], *values: Any) -> Any:
    """A block of a product of matrices."""
    return np.matmul(_numpy_view(*left, values), _numpy_view(*right, values))


def _numpy_view(spec: WindowSpec, slot: ViewSlot, values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """A view of a window's array, as NumPy has it."""
    return _indexed(window(spec, values), spec.box, slot)


def stored(spec: WindowSpec, slot: ViewSlot, given: WindowSpec, *values: Any) -> Any:
    """A window with an array stored into a view of it."""
    made = window(spec, values)
    _indexed(made, spec.box, slot)[...] = window(given, values)
    return made


def added(*values: Any) -> Any:
    """Blocks of products, added in order."""
    total = values[0] + values[1]
    for value in values[2:]:
        total += value
    return total


# ---- scalars ---------------------------------------------------------------------------------------------------------


def kept(value: Any, dtype: str) -> Any:
    """A scalar as host code keeps it: Python's own int or bool, else NumPy's."""
    made = semantics.scalar(value, dtype)
    return made.item() if dtype in ("int64", "bool") else made


def primitive(name: str, dtypes: tuple[str, ...], result: str, *args: Any) -> Any:
    """A scalar primitive of the host part."""
    values = [semantics.scalar(arg, dtype) for arg, dtype in zip(args, dtypes, strict=True)]
    if name in ELEMENTARY and dtypes[0].startswith("float"):
        return kept(elementary(name, values), result)
    return kept(semantics.evaluate(name, values), result)


def converted(given: str, result: str, value: Any) -> Any:
    """A cast of the host part."""
    return kept(semantics.convert(semantics.scalar(value, given), result), result)


def element(chunk: Any, at: tuple[int, ...], dtype: str) -> Any:
    """An element that the host part loads."""
    return kept(np.asarray(chunk)[at], dtype)


def checked(failure: Failure, kinds: tuple[str, ...], condition: Any, *args: Any) -> bool:
    """A check of the host part: raises what it stands for."""
    if not condition:
        raise format_failure(
            failure,
            [
                np.float64(arg) if kind.startswith("float") else np.int64(arg)
                for arg, kind in zip(args, kinds, strict=True)
            ],
        )
    return True


def after(value: Any, *checks: Any) -> Any:
    """A chunk that is given only if checks have passed."""
    return value


def as_array(value: Any, dtype: str) -> Any:
    """A scalar as an array without axes."""
    return np.asarray(value, dtype)


def summed(*values: Any) -> int:
    """Counts, added up."""
    return sum(int(value) for value in values)


def viewed(spec: WindowSpec, slot: ViewSlot, *values: Any) -> Any:
    """A view of a window's array, contiguous."""
    return np.array(np.broadcast_to(_numpy_view(spec, slot, values), slot.shape), order="C")


def _indexed(buffer: np.ndarray[Any, Any], box: Box, slot: ViewSlot) -> np.ndarray[Any, Any]:
    """A view of the array whose box a buffer holds; axes along which memory does not move have extent 1."""
    index: list[Any] = [start - lo for start, (lo, _) in zip(slot.starts, box, strict=True)]
    for (axis, step), extent in zip(slot.axes, slot.shape, strict=True):
        if axis >= 0:
            stop = index[axis] + step * extent
            index[axis] = slice(index[axis], None if stop < 0 else stop, step) if extent else slice(0, 0)
    found = np.asarray(buffer)[(*index, ...)]
    own = [axis for axis, _ in slot.axes if axis >= 0]
    found = np.transpose(found, [sorted(own).index(axis) for axis in own])
    return found[(*(np.newaxis if axis < 0 else slice(None) for axis, _ in slot.axes), ...)]


def strided(base: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> Any:
    """A view by strides of an array in one chunk, contiguous."""
    if 0 in shape:
        return np.empty(shape, dtype)
    flat = np.ascontiguousarray(base).reshape(-1).view(np.uint8)
    return np.array(np.ndarray(shape, dtype, flat, offset, strides), order="C")


def joined_rows(shape: tuple[int, ...], pieces: tuple[tuple[int, int], ...], *values: Any) -> Any:
    """A chunk of a reshaped array, from ranges of elements of others in C order."""
    flat = [np.ascontiguousarray(value).reshape(-1)[lo:hi] for (lo, hi), value in zip(pieces, values, strict=True)]
    return (flat[0] if len(flat) == 1 else np.concatenate(flat)).reshape(shape)


def run_routine(
    name: str, written: int, specs: tuple[WindowSpec, ...], slots: tuple[ViewSlot, ...], *values: Any
) -> tuple[Any, ...]:
    """A compiled loop of NumPy's: whether it has failed, and the windows that it has stored into."""
    buffers = [window(spec, values) for spec in specs]
    arrays = []
    for slot in slots:
        buffer, box = buffers[slot.window], specs[slot.window].box
        offset = sum((start - lo) * s for start, (lo, _), s in zip(slot.starts, box, buffer.strides, strict=True))
        strides = tuple(0 if axis < 0 else buffer.strides[axis] * step for axis, step in slot.axes)
        flat = buffer.reshape(-1).view(np.uint8)
        arrays.append(np.ndarray(slot.shape, buffer.dtype, flat, offset, strides))
    failed = routines.run(name, arrays[:written], arrays[written:])
    return bool(failed), *(buffer for buffer, spec in zip(buffers, specs, strict=True) if spec.written)
