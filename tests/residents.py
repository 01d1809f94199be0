"""Running programs of the corpus with arguments that live on devices: ours, and those of another library.

Every array among the arguments, also in tuples, lists, dicts and dataclasses, is put on devices before the call; those
that share memory share it there. What the call leaves is compared with what Python does to arrays of NumPy's: a second,
equal set of arguments gets the bytes that are on the devices afterwards, and results that lie in the memory of an
argument become views of that set.
"""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from typing import Any
from unittest import mock

import numpy as np

from parakeet_py import asdevice, options
from parakeet_py.call.devices import recorded_calls
from parakeet_py.hybrid.devices.device_detection import is_changeable
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.residency.arrays import memory_of
from parakeet_py.hybrid.residency.blocks import layout_of
from parakeet_py.hybrid.residency.device_array import DeviceArray
from tests.backends import accelerated
from tests.corpus import Case, Outcome, Program, outcome
from tests.late_devices import late_devices

PLACES = ("emulated", "emulated*2", "emulated*3", "cpu,emulated")
KINDS = ("ours", "theirs")


def can_nothing(outcome: Outcome, kind: str) -> bool:
    """Whether a call has ended as `Foreign` can nothing: Python does to arrays of another library as they are."""
    return kind == "theirs" and any(text in str(outcome.exception) for text in ("Foreign", "must be of ArrayType"))


class Foreign:
    """An array of a library that knows `__cuda_array_interface__` and nothing else, in a piece of device memory."""

    def __init__(self, memory: Memory, array: np.ndarray[Any, Any]) -> None:
        self.memory = memory
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.offset = _start(array) - memory.low
        self.readonly = not array.flags.writeable

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.memory.address + self.offset if self.size else 0, self.readonly),
            "strides": self.strides,
            "stream": None,
        }

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __array__(self, *_: Any, **__: Any) -> Any:
        """As arrays of CuPy do: NumPy would take one of unknown class for a number."""
        raise TypeError("a 'Foreign' array does not come to the host by itself")

    __hash__ = None  # type: ignore[assignment]


class Memory:
    """The memory of an array that owns its elements, on a device or a team; `here` is the equal one of the second set.

    Attributes
    ----------
    low, size : its bytes in the first set, whose contents it begins with
    """

    def __init__(self, root: np.ndarray[Any, Any], here: np.ndarray[Any, Any], kind: str) -> None:
        self.low, high = np.lib.array_utils.byte_bounds(root)
        self.here, self.size = here, high - self.low
        self.kind = kind
        self.owner = None
        data = memory_of(self.low, self.size).copy() if root.size else np.empty(0, np.uint8)
        if kind == "ours":
            self.whole = asdevice(data)
            return
        self.owner = open_devices("emulated")[0]
        self.address = self.owner.allocate(max(self.size, 16))
        if self.size:
            self.owner.copy_in(self.address, data)

    def array(self, array: np.ndarray[Any, Any]) -> Any:
        """An array of the first set as it is there."""
        if self.kind != "ours":
            return Foreign(self, array)
        offset = _start(array) - self.low if array.size else 0
        return DeviceArray(self.whole._home, self.whole._place, layout_of(array), offset)

    def fetch(self) -> None:
        """Give the second set the bytes that are there now."""
        if not self.size:
            return
        target = memory_of(np.lib.array_utils.byte_bounds(self.here)[0], self.size)
        if self.owner is None:
            target[:] = np.asarray(self.whole)
        else:
            self.owner.copy_out(target, self.address)

    def has(self, array: DeviceArray) -> int | None:
        """Where in it an array begins; None if it lies elsewhere."""
        if self.owner is None:
            return array._offset if array._home is self.whole._home else None
        copy = array._home.copies.get(self.owner)
        place = None if copy is None else copy.address + array._offset - self.address
        return place if place is not None and 0 <= place < max(self.size, 1) else None

    def close(self) -> None:
        if self.owner is not None:
            self.owner.free(self.address)


class Residents:
    """The arguments of one call on devices, and what stands for them afterwards."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.memories: dict[int, Memory] = {}  # by the id of the array that owns it
        self.kept: list[Any] = []
        self.there: dict[int, Any] = {}  # arrays on devices, by the ids of those of the first set
        self.here: dict[int, Any] = {}  # arrays of the second set, by the ids of those on devices
        self.made: dict[int, tuple[Any, Any]] = {}
        self.gone_through: dict[int, Any] = {}  # objects with attributes

    def put(self, value: Any, here: Any) -> Any:
        """A value of the first set with its arrays on devices; `here` is that of the second set."""
        match value:
            case np.ndarray() if type(value) is np.ndarray and _is_for_devices(value):
                if id(value) not in self.there:
                    root, own = _root(value), _root(here)
                    if root.dtype.kind not in "biufc":
                        return value
                    self.kept += [value, root]
                    if id(root) not in self.memories:
                        self.memories[id(root)] = Memory(root, own, self.kind)
                    self.there[id(value)] = made = self.memories[id(root)].array(value)
                    self.here[id(made)] = here
                return self.there[id(value)]
            case tuple():
                items = [self.put(one, other) for one, other in zip(value, here, strict=True)]
                if all(new is old for new, old in zip(items, value, strict=True)):
                    return value
                return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
            case list() | dict():
                for key in range(len(value)) if isinstance(value, list) else value:
                    value[key] = self.put(value[key], here[key])
            case _ if dataclasses.is_dataclass(value) and hasattr(value, "__dict__") and not isinstance(value, type):
                for key, item in vars(value).items():
                    vars(value)[key] = self.put(item, getattr(here, key))
        return value

    def back(self, value: Any) -> Any:
        """A value after the call as one of the second set, or of its own memory of the host."""
        match value:
            case Foreign() | DeviceArray():
                if id(value) in self.here:
                    here = self.here[id(value)]
                    if isinstance(value, DeviceArray):  # Python may have set what it is taken to be
                        if value.dtype != here.dtype:
                            here.dtype = value.dtype
                        if value.shape != here.shape:
                            here.shape = value.shape
                        if not value._layout.writeable:
                            here.flags.writeable = False
                    return here
                if id(value) not in self.made:
                    assert isinstance(value, DeviceArray)
                    self.made[id(value)] = value, self._array(value)
                return self.made[id(value)][1]
            case tuple():
                items = [self.back(one) for one in value]
                if all(new is old for new, old in zip(items, value, strict=True)):
                    return value
                return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
            case list():
                value[:] = map(self.back, value)
            case dict():
                for key in value:
                    value[key] = self.back(value[key])
            case _ if hasattr(value, "__dict__") and is_changeable(value) and id(value) not in self.gone_through:
                self.gone_through[id(value)] = value
                for key, item in vars(value).items():
                    vars(value)[key] = self.back(item)
        return value

    def _array(self, value: DeviceArray) -> np.ndarray[Any, Any]:
        for memory in self.memories.values():
            offset = memory.has(value)
            if offset is not None and value.size:
                return np.asarray(_View(memory.here, value, offset))
        value.bring(None)
        return value.stand_in

    def close(self) -> None:
        for memory in self.memories.values():
            memory.close()


class _View:
    def __init__(self, owner: np.ndarray[Any, Any], array: DeviceArray, offset: int) -> None:
        self.base = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (np.lib.array_utils.byte_bounds(owner)[0] + offset, not array._layout.writeable),
            "typestr": array.dtype.str,
            "shape": array.shape,
            "strides": array.strides,
        }


def _is_for_devices(array: np.ndarray[Any, Any]) -> bool:
    itemsize = array.dtype.itemsize
    return array.dtype.kind in "biufc" and array.dtype.isnative and itemsize <= 8 + 8 * (array.dtype.kind == "c")


def _root(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that owns the memory of another."""
    found: Any = array
    under = array.base
    while under is not None:
        found = under if isinstance(under, np.ndarray) else found
        under = getattr(under, "base", None)
    return found  # type: ignore[no-any-return]


def _start(array: np.ndarray[Any, Any]) -> int:
    place: int = array.__array_interface__["data"][0]
    return place


def run_with_residents(program: Program, case: Case, kind: str, devices: str, late: bool = False) -> Outcome:
    """What a call does with the arrays of a case on devices; on one device with arrays of ours, what it does from its
    schedule. `late`: nothing is checked, and nothing done before a thread waits for it."""
    return call_with_residents(accelerated(program.function), case, kind, devices, late)


def call_with_residents(function: Any, case: Case, kind: str, devices: str, late: bool = False) -> Outcome:
    """The same of any callable: not of a program's own only."""
    again = kind == "ours" and devices == "emulated"
    with late_devices() if late else nullcontext(), mock.patch.object(recorded_calls, "AFTER", 0):
        for _ in range(again):
            _call_with_residents(function, case, kind, devices, not late)
        return _call_with_residents(function, case, kind, devices, not late)


def _call_with_residents(function: Any, case: Case, kind: str, devices: str, check: bool) -> Outcome:
    args, kwargs = case.make()
    here, named_here = case.make()
    residents = Residents(kind)
    with options(devices=devices, split=0.5 if "cpu" in devices else None, check=check):
        given = tuple(residents.put(one, other) for one, other in zip(args, here, strict=True))
        named = {name: residents.put(value, named_here[name]) for name, value in kwargs.items()}
        found = outcome(function, given, named)
        for memory in residents.memories.values():
            memory.fetch()
        found.args = tuple(map(residents.back, found.args))
        found.result = residents.back(found.result)
    residents.close()
    found.residents = residents  # type: ignore[attr-defined]  # they keep the memory of results
    return found
