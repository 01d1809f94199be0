"""What a call has asked of its devices, to be asked again: schedules.

What a call does follows from what its arguments are: the sizes of memory it makes, the launches, the copies between
devices. While a `Recorder` is active, everything that is asked of devices is noted besides being done. What comes of it
is a `Schedule`: the same requests for other memory of the same sizes, and other numbers, without anything that finds
out what they are. Where the host has looked at an element, which may decide what comes next, there is none.

Addresses in memory that the call was given, or that outlives it, are *places*: a slot, whose address each call says
anew, and an offset. Memory that is only needed meanwhile stays with the schedule, and its addresses are what they were.
Requests of a device are ordered by its stream, so a call may be asked for before the one before it has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

import numpy as np

from parakeet_py.base.routines import reports
from parakeet_py.hybrid.devices.device import DeviceError, DeviceMemoryError, TensorMap
from parakeet_py.hybrid.devices.simulated_clock import set_clocks
from parakeet_py.hybrid.residency.arrays import AddressOfWindow
from parakeet_py.hybrid.residency.byte_ranges import Rows

MOST = 20_000  # requests of one call
WORKSPACE = 1 << 26  # bytes that a schedule may keep
_LARGEST = 4096  # bytes of the host's that a schedule has a copy of


class Place(NamedTuple):
    """An address that each call has anew."""

    slot: int
    offset: int


class Given(NamedTuple):
    """A number that each call has anew."""

    number: int


class Launch(NamedTuple):
    device: Any
    module: Any
    kernel: str
    blocks: int
    threads: int
    codes: str
    values: Sequence[Any]


class CopyIn(NamedTuple):
    device: Any
    address: Any
    data: np.ndarray[Any, Any]


class CopyOver(NamedTuple):
    device: Any
    address: Any
    source: Any
    place: Any
    rows: Rows


class Operand(NamedTuple):
    """A matrix, as libraries look at it."""

    address: Any
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Multiply(NamedTuple):
    device: Any
    left: Operand
    right: Operand
    out: Operand
    fast: bool


class Routine(NamedTuple):
    """One of NumPy's routines, by a library; `failed`: what it has said of that."""

    device: Any
    name: str
    outs: tuple[Operand, ...]
    ins: tuple[Operand, ...]
    failed: bool


class Expect(NamedTuple):
    """A kernel before may have failed: then its turn stands at an address, not `word`."""

    device: Any
    address: Any
    word: int


class Read(NamedTuple):
    """An element that the call gives."""

    device: Any
    address: Any
    dtype: str


Request = Launch | CopyIn | CopyOver | Multiply | Routine | Expect | Read


class MayFail(NamedTuple):
    """A launch that may fail.

    Attributes
    ----------
    launch : the request, or its number
    at_once : its record says everything at once
    clean : if it has failed, all memory that the call was given is as it was
    """

    launch: Any
    at_once: bool
    clean: bool


OF_LIBRARY = -1  # the turn of a routine that comes out otherwise than it has before


class Failed(Exception):
    """Something has failed in the kernels of a schedule: the launch of a turn, which stands at an address."""

    def __init__(self, device: Any, address: int, turn: int) -> None:
        super().__init__(turn)
        self.device, self.address, self.turn = device, address, turn


class Slot(NamedTuple):
    """Memory of a device that calls say anew."""

    device: Any
    address: int
    size: int


class Recorder:
    """Notes what is asked of devices.

    Attributes
    ----------
    spoiled : why no schedule comes of it
    values : the leaf arguments as the host part has them
    beginning : what schedules put into memory of theirs once: device, address and data
    failures : the launches that may fail, by their turns
    stored : memory of arguments has been stored to
    late : something may fail after that
    """

    def __init__(self) -> None:
        self.stored = self.late = False
        self.requests: list[Request] = []
        self.spoiled = ""
        self.values: Sequence[Any] = ()
        self._memory: dict[tuple[int, int], tuple[Any, int]] = {}  # that was made, by device and address
        self._freed: dict[tuple[int, int], list[int]] = {}  # by device and size
        self._mine = threading.get_ident()
        self._expected = False
        self.beginning: list[tuple[Any, int, np.ndarray[Any, Any]]] = []
        self.failures: dict[int, MayFail] = {}

    def spoil(self, why: str) -> None:
        self.spoiled = self.spoiled or why

    def add(self, request: Request) -> None:
        if threading.get_ident() != self._mine:
            self.spoil("several threads have asked")
        if len(self.requests) >= MOST:
            self.spoil("too many requests")
        if not self.spoiled:
            self.requests.append(request)

    def allocate(self, device: Any, size: int) -> int:
        """New memory, if it may be some that the call has made and given up."""
        freed = self._freed.get((id(device), size))
        address: int = freed.pop() if freed else self._made(device, size)
        self._memory[id(device), address] = device, size
        return address

    def _made(self, device: Any, size: int) -> int:
        try:
            return int(device.allocate(size))
        except DeviceMemoryError:  # what has been given up is wanted, and then there is no schedule
            self.spoil("memory runs out")
            self.discard()
            return int(device.allocate(size))

    def free(self, device: Any, address: int) -> bool:
        """Whether memory that is given up is kept here."""
        found = self._memory.get((id(device), address))
        if found is None or self.spoiled:
            return False
        self._freed.setdefault((id(device), found[1]), []).append(address)
        return True

    def copy_in(self, device: Any, address: int, data: np.ndarray[Any, Any], pitch: int) -> None:
        if _known.get() == KEPT:
            self.beginning.append((device, address, data.copy()))
        elif pitch or data.nbytes > _LARGEST:
            self.spoil("data of the host's")
        else:
            self.add(CopyIn(device, address, data.copy()))

    def multiplied(self, device: Any, left: Any, right: Any, out: Any, fast: bool) -> None:
        self.add(Multiply(device, _operand(left), _operand(right), _operand(out), fast))

    def by_library(self, device: Any, name: str, outs: Sequence[Any], ins: Sequence[Any], failed: bool) -> None:
        """A library has done one of NumPy's routines."""
        self.add(Routine(device, name, tuple(map(_operand, outs)), tuple(map(_operand, ins)), failed))

    def may_fail(self, turn: int, at_once: bool, clean: bool) -> None:
        """What has been launched last may fail."""
        self.failures[turn] = MayFail(len(self.requests) - 1, at_once, clean)

    def expected(self, device: Any, address: int, word: int, clean: bool) -> None:
        """What is copied out next says whether kernels have failed, and if so, whether they have left memory of
        arguments `clean`."""
        self._expected = True
        self.late |= self.stored or not clean
        self.add(Expect(device, address, word))

    def read(self, device: Any, address: int, dtype: str) -> None:
        """What is copied out next is an element that the call may give."""
        self._expected = True
        self.add(Read(device, address, dtype))

    def copied_out(self) -> None:
        if not self._expected:
            self.spoil("the host looks at elements")
        self._expected = False

    def discard(self) -> None:
        """The call has failed."""
        for device, address, _ in self.close():
            device.free(address)

    def close(self) -> list[tuple[Any, int, int]]:
        """The memory that nothing uses any more, which is for its taker to give back."""
        freed = {(key[0], address): key[1] for key, some in self._freed.items() for address in some}
        found = [(self._memory[key][0], key[1], size) for key, size in freed.items()]
        self._memory, self._freed = {}, {}
        return found


def _operand(array: Any) -> Operand:
    return Operand(array.address, array.dtype, array.shape, array.strides)


_active: ContextVar[Recorder | None] = ContextVar("parakeet_py_recorder", default=None)
active = _active.get


def spoil(why: str) -> None:
    """Something happens that is not noted, or that may come out otherwise the next time."""
    noting = active()
    if noting is not None:
        noting.spoil(why)


# What is known of data that is copied to a device: the same each time, or left as it is, so that once is enough.
AGAIN, KEPT = "again", "kept"
_known: ContextVar[str] = ContextVar("parakeet_py_known", default="")


def stored() -> None:
    """Memory of an argument is stored to."""
    noting = active()
    if noting is not None:
        noting.stored = True


def is_known() -> bool:
    """Whether data that is copied to a device now is the same each time."""
    return bool(_known.get())


@contextmanager
def known(how: str) -> Iterator[None]:
    """Inside, data that is copied to devices is `AGAIN` the same the next time, or `KEPT` there."""
    token = _known.set(how)
    try:
        yield
    finally:
        _known.reset(token)


class recorded:
    """Inside, everything asked of devices is noted."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> Recorder:
        self._token = _active.set(self.recorder)
        return self.recorder

    def __exit__(self, *_: object) -> None:
        _active.reset(self._token)


class Runner(Protocol):
    """Does the requests of a schedule."""

    def __call__(self, addresses: Sequence[int], numbers: Sequence[Any]) -> list[Any]: ...


class Schedule:
    """The requests of one call, to be done again.

    Attributes
    ----------
    run : does them, given the address of each slot and the numbers; gives the elements that are read
    failures : the launches that may fail, by their turns
    lock : held by the thread that runs it, if something may fail
    """

    def __init__(
        self,
        requests: Sequence[Request],
        workspace: Sequence[tuple[Any, int, int]],
        beginning: Sequence[tuple[Any, int, np.ndarray[Any, Any]]] = (),
        failures: Mapping[int, MayFail] | None = None,
    ) -> None:
        self.requests = tuple(requests)
        self.workspace = list(workspace)
        self.beginning, self.lock = beginning, threading.Lock()
        self.failures = {turn: one._replace(launch=requests[one.launch]) for turn, one in (failures or {}).items()}
        devices: dict[int, Any] = {id(one.device): one.device for one in requests}
        self.devices = tuple(devices.values())
        made = {getattr(device, "runner", None) for device in self.devices}
        maker = made.pop() if len(made) == 1 else None
        self.run: Runner = _InPython(self) if maker is None else maker(self.requests)

    def begin_again(self) -> None:
        """Make its own memory what it was when it was recorded."""
        for device, address, data in self.beginning:
            device.copy_in(address, data)

    def failed(self, found: Failed, addresses: Sequence[int], numbers: Sequence[Any], words: int) -> Any:
        """The words of the record of what has failed in a run with these addresses and numbers, complete."""
        launch, at_once, _ = self.failures[found.turn]
        record = np.empty(words, np.int64)
        start = found.address - 8 * (words - 1)
        if not at_once:
            found.device.copy_out(record.view(np.uint8), start)
            do(launch._replace(values=[*launch.values[:-1], int(record[0])]), addresses, numbers)
        found.device.copy_out(record.view(np.uint8), start)
        return record

    def __del__(self) -> None:
        for device, address, _ in self.workspace:
            with suppress(DeviceError):  # what is lost has nothing to give back
                device.free(address)


def schedule_of(
    recorder: Recorder, slots: Sequence[Slot], numbers: Mapping[int, int], workspace: Sequence[tuple[Any, int, int]]
) -> Schedule | None:
    """The schedule of what has been noted; None if there is none.

    Parameters
    ----------
    slots : memory that each call has anew
    numbers : which number of a call an object is, by its `id`
    workspace : what `close` has given, which belongs to the schedule from now on
    """
    places = _Places(slots, workspace)
    try:
        if recorder.spoiled or sum(size for _, _, size in workspace) > WORKSPACE:
            raise LookupError
        requests = [_placed(request, places, numbers) for request in recorder.requests]
    except LookupError:
        for device, address, _ in workspace:
            device.free(address)
        return None
    return Schedule(requests, workspace, recorder.beginning, recorder.failures)


class _Places:
    def __init__(self, slots: Sequence[Slot], workspace: Sequence[tuple[Any, int, int]]) -> None:
        self.slots: dict[int, list[tuple[int, int, int]]] = {}
        for number, (device, address, size) in enumerate(slots):
            self.slots.setdefault(id(device), []).append((address, address + max(size, 1), number))
        self.own: dict[int, list[tuple[int, int]]] = {}
        for device, address, size in workspace:
            self.own.setdefault(id(device), []).append((address, address + max(size, 1)))

    def __call__(self, device: Any, address: int) -> Any:
        if isinstance(address, AddressOfWindow):
            start = address.window.held.address
            place = self(device, start)
            further = int(address) - start
            return place._replace(offset=further) if type(place) is Place else start + further
        for low, high, number in self.slots.get(id(device), ()):
            if low <= address < high:
                return Place(number, address - low)
        for low, high in self.own.get(id(device), ()):
            if low <= address < high:
                return address
        for low, high, number in self.slots.get(id(device), ()):  # where an empty array begins, behind all others
            if address == high:
                return Place(number, address - low)
        raise LookupError(address)


def _placed(request: Request, places: _Places, numbers: Mapping[int, int]) -> Request:
    device = request.device
    match request:
        case Launch(codes=codes, values=values):
            found = [
                places(device, value)
                if code == "P"
                else value._replace(address=places(device, value.address))
                if code == "T"
                else Given(numbers[id(value)])
                if id(value) in numbers
                else value
                for code, value in zip(codes, values, strict=True)
            ]
            return request._replace(values=found)
        case CopyOver():
            return request._replace(
                address=places(device, request.address), place=places(request.source, request.place)
            )
        case Multiply():
            left, right, out = (one._replace(address=places(device, one.address)) for one in request[1:4])
            return Multiply(device, left, right, out, request.fast)
        case Routine(_, _, outs, ins, _):
            sides = [tuple([one._replace(address=places(device, one.address)) for one in side]) for side in (outs, ins)]
            return request._replace(outs=sides[0], ins=sides[1])
    return request._replace(address=places(device, request.address))


def address_of(place: Any, addresses: Sequence[int]) -> int:
    """An address, or that of a place."""
    return addresses[place[0]] + place[1] if type(place) is Place else place


def do(request: Request, addresses: Sequence[int], numbers: Sequence[Any]) -> Any:
    """Do one request; gives the element that is read, if one is.

    Raises
    ------
    Failed
        A kernel has left something else than is expected.
    """
    match request:
        case Launch(device, module, kernel, blocks, threads, codes, values):
            given = [
                address_of(one, addresses)
                if type(one) is Place
                else numbers[one[0]]
                if type(one) is Given
                else one._replace(address=address_of(one.address, addresses))
                if type(one) is TensorMap
                else one
                for one in values
            ]
            device.launch(module, kernel, blocks, threads, codes, given)
        case CopyIn(device, address, data):
            device.copy_in(address_of(address, addresses), data)
        case CopyOver(device, address, source, place, rows):
            device.copy_over(address_of(address, addresses), source, address_of(place, addresses), rows)
        case Multiply(device, left, right, out, fast):
            parts = [one._replace(address=address_of(one.address, addresses)) for one in (left, right, out)]
            if not device.multiply(*parts, fast):
                raise DeviceError(f"the library of {device.name} has refused a product that it has taken before")
        case Routine(device, name, outs, ins, failed):
            sides = [[one._replace(address=address_of(one.address, addresses)) for one in side] for side in (outs, ins)]
            done = device.routine(name, *sides)
            if done is None and not reports(name):
                raise DeviceError(f"the library of {device.name} has refused {name}, which it has done before")
            if done is None or bool(done[1]) is not failed:
                raise Failed(device, 0, OF_LIBRARY)
        case Expect(device, address, word):
            found = np.empty(1, np.int64)
            device.copy_out(found.view(np.uint8), address_of(address, addresses))
            if found[0] != word:
                raise Failed(device, address_of(address, addresses), int(found[0]))
        case Read(device, address, dtype):
            element = np.empty(1, dtype)
            device.copy_out(element.view(np.uint8), address_of(address, addresses))
            return element[0]
    return None


class _InPython:
    """Requests one after the other, of any devices."""

    def __init__(self, schedule: Schedule) -> None:
        self.requests = schedule.requests
        self.devices = schedule.devices

    def __call__(self, addresses: Sequence[int], numbers: Sequence[Any]) -> list[Any]:
        if len(self.devices) > 1:
            set_clocks(self.devices)
        return [
            found for one in self.requests if (found := do(one, addresses, numbers)) is not None or type(one) is Read
        ]
