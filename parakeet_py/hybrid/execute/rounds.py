"""Rounds of a loop on one device: what has been asked once is asked again, without the host part (`plan.rounds`).

A round is known by the sizes, numbers and addresses that it begins with. The third that begins with the same is given
to the device as the list of driver calls that the second was, if it gets the memory that the second made: memory is
the device's all the time, and what has been given up is mostly there.

Launches that may fail are a part of rounds: their turns are counted from the last look at the record of failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from parakeet_py.hybrid.devices.recording import active
from parakeet_py.hybrid.devices.timeline import recorder
from parakeet_py.hybrid.residency.arrays import Buffer, DeviceView, allocated

MOST_KNOWN = 64  # beginnings of a round
MISSES = 16  # one after the other, until no more is asked


class _Known(NamedTuple):
    """A round that can be asked for again.

    Attributes
    ----------
    calls : what the device takes, see `CudaDevice.round_of`
    launched : how often each kernel, by the number of blocks; what an error speaks of
    stores : which of the arrays are stored to
    made : the memory: size, address, where the device keeps such
    gives : what the round leaves: an array of those that it began with, a view of one of them or of what it has made,
        something else
    unseen : the launches that may fail
    """

    key: tuple[Any, ...]
    calls: Any
    launched: tuple[tuple[tuple[int, int], int], ...]
    notes: tuple[tuple[int, int, Sequence[Any]], ...]
    stores: tuple[int, ...]
    made: tuple[tuple[int, int, Any], ...]
    gives: tuple[tuple[int, int, Any], ...]
    unseen: tuple[Any, ...]


class Noted:
    """A round under way that is written down."""

    def __init__(self, key: tuple[Any, ...], arrays: tuple[Any, ...]) -> None:
        self.key, self.arrays = key, arrays
        self.launches: list[tuple[int, int, Any]] = []
        self.stored: set[int] = set()  # addresses of memory
        self.made: dict[int, int] = {}  # sizes, by addresses


_AS_IT_IS, _OF_ARGUMENT, _MADE, _VALUE = range(4)


class KnownRounds:
    """What is known of one round on one device, from all calls: also those that have begun once (None)."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.last: _Known | None = None
        self.known: dict[tuple[Any, ...], _Known | None] = {}


class DeviceRounds:
    """The rounds of one call.

    Attributes
    ----------
    noted : the round that is being written down
    """

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._device = memory.device.device
        self._states: dict[int, KnownRounds] = {}
        self._misses: Counter[int] = Counter()
        self._checks = any(kernel.checked for kernel in memory.plan.kernels)
        self.noted: Noted | None = None

    def again(self, number: int, key: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """What a round leaves that has been asked for again; None if the host part has to."""
        memory = self._memory
        self.noted = None
        state = self._states.get(number)
        if state is None:
            place = id(self._device), number
            state = self._states[number] = memory.plan.rounds.setdefault(place, KnownRounds(self._device))
        if self._misses[number] > MISSES or memory.outdated or recorder() is not None:
            return None
        noting = active()
        if noting is not None and not noting.spoiled:
            return None
        record = memory.failures().address if self._checks else 0
        key = record, memory.turns, len(memory.unseen), *key
        found = state.last
        if found is None or found.key != key:
            found = state.known.get(key)
            if found is None:
                if key in state.known:
                    self.noted = Noted(key, arrays)
                    return None
                self._misses[number] += 1
                if len(state.known) >= MOST_KNOWN:
                    state.known.clear()
                state.known[key] = None
                return None
            state.last = found
        given = self._ask(found, arrays)
        if given is None:  # others have its memory
            state.last = state.known[key] = None
        self._misses[number] = self._misses[number] + 1 if given is None else 0
        return given

    def _ask(self, found: _Known, arrays: tuple[Any, ...]) -> tuple[Any, ...] | None:
        memory = self._memory
        made = []
        for size, address, stock in found.made:
            if not stock.take_this(address):
                return None
            made.append(Buffer.at(memory.device, size, address))
        if not self._device.ask_again(found.calls):
            return None
        meter = memory.device
        for what, times in found.launched:
            meter.launches[what] += times
        meter.unfinished += found.notes
        for size, _, _ in found.made:
            meter.allocated += allocated(size)
        for place in found.stores:
            memory.changed.add(arrays[place].buffer)
        for buffer in made:
            memory.changed.add(buffer)
        given = tuple([_given(one, arrays, made) for one in found.gives])
        if found.unseen:
            used = [array.buffer for array in arrays if array is not None]
            memory.may_have_failed(found.unseen, used + made)
        return given

    def gone(self, number: int, given: tuple[Any, ...]) -> None:
        """A round has been gone through, and leaves this."""
        noted, self.noted = self.noted, None
        if noted is None:
            return
        ways = [_way(value, noted.arrays, [*noted.made]) for value in given]
        calls = self._device.round_of([again for _, _, again in noted.launches])
        if calls is None or None in ways:
            return
        places = Counter((kernel, blocks) for kernel, blocks, _ in noted.launches)
        pool = self._device.stock
        made = [(size, address, pool(allocated(size))) for address, size in noted.made.items()]
        memory = self._memory
        state = self._states[number]
        state.known[noted.key] = _Known(
            noted.key,
            calls,
            tuple(places.items()),
            tuple((kernel, blocks, again.values) for kernel, blocks, again in noted.launches),
            tuple(
                place
                for place, array in enumerate(noted.arrays)
                if array is not None and array.buffer.address in noted.stored
            ),
            tuple(made),
            tuple([way for way in ways if way is not None]),
            tuple(one._replace(args=()) for turn, one in memory.unseen.items() if turn >= noted.key[1]),
        )


def _way(value: Any, arrays: tuple[Any, ...], made: Sequence[int]) -> tuple[int, int, Any] | None:
    """How something that a round leaves comes about; None if that is not known."""
    if type(value) is not DeviceView:
        return _VALUE, 0, value
    for place, array in enumerate(arrays):
        if value is array:
            return _AS_IT_IS, place, None
    layout = value.offset, value.dtype, value.shape, value.strides, None, value.readonly
    for place, array in enumerate(arrays):
        if array is not None and value.buffer is array.buffer:
            return _OF_ARGUMENT, place, layout
    address = value.buffer.address
    return (_MADE, made.index(address), layout) if address in made else None


def _given(way: tuple[int, int, Any], arrays: tuple[Any, ...], made: Sequence[Buffer]) -> Any:
    kind, place, what = way
    if kind == _MADE:
        return DeviceView(made[place], *what)
    if kind == _VALUE:
        return what
    return arrays[place] if kind == _AS_IT_IS else DeviceView(arrays[place].buffer, *what)
