"""Calls that are done again from a schedule: on arrays that live on devices, of the same layouts.

The first calls of a kind go the long way, and one of them is recorded (`hybrid.devices.recording`). Later ones need to
know three things: that they are of that kind, where their arrays are, and what their results are made of. A kind is
what decides everything else: the settings, the layout of each array and how they share memory, the values of numbers
(but for those floats that only kernels see), of what is global, and on teams which bytes are valid in which memory.

No thread waits for such a call: its results are ordered by the streams of their devices, and what reads them waits.
A call with checks waits for them once, at its end, as its exception is raised where it was made. If something has
failed, what was launched behind it has done nothing; the call goes the long way then, unless something has been stored
before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base.errors import MissingValue
from parakeet_py.base.frames import tracing
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.types import DTYPES, Scalar
from parakeet_py.call.devices import direct_calls
from parakeet_py.call.devices.call_cache import is_simple
from parakeet_py.call.devices.direct_calls import as_result, is_one_array
from parakeet_py.call.give_back import kept_arguments
from parakeet_py.call.load import read_source
from parakeet_py.hybrid.devices.device import DeviceError, DeviceMemoryError
from parakeet_py.hybrid.devices.recording import OF_LIBRARY, Expect, Failed, Read, Recorder, Schedule, Slot, schedule_of
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.call_arrays import entering, leaving
from parakeet_py.hybrid.execute.device_loss import is_short
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.hybrid.plan.failures import exception_of
from parakeet_py.hybrid.plan.host_code import TO_KERNELS, given_loads
from parakeet_py.hybrid.residency.arrays import GRANULE, Buffer, Layout, Window, allocated, memory_of_copy
from parakeet_py.hybrid.residency.byte_ranges import same
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.hybrid.residency.persistent_memory import Home
from parakeet_py.llvm.runtime.error_state import asks_for_errors, error_state
from parakeet_py.ptx.kernels.codegen import FAILURE_WORDS, TURN
from parakeet_py.signature.results import assemble
from parakeet_py.signature.specs import StaticSpec, leaves, static_key
from parakeet_py.typed_ir.ir import Var

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled
    from parakeet_py.call.devices.caller import Dispatcher
    from parakeet_py.hybrid.plan.host_plan import HostPlan

MOST = 64  # kinds of calls of one function
REQUESTS = 100_000  # of all schedules of one function
AFTER = 2  # calls of a kind before one is recorded: the first compile
ATTEMPTS = 4  # at recording a kind
MISSED: Any = object()  # a call goes the long way

_BY_TYPE = frozenset((bool, int, str, NoneType))
_NUMPY = frozenset(np.dtype(name).type for name in DTYPES)


class _New(NamedTuple):
    """Memory that a call makes and gives: its size, all of its bytes, those valid in each memory, and the slot of each
    copy."""

    size: int
    everything: Any
    valid: dict[Any, Any]
    copies: tuple[tuple[Any, int], ...]


class _Result(NamedTuple):
    """A leaf of the result.

    Attributes
    ----------
    kind : "value", "argument" (its number), "array" (of a home: the number of an argument's, or that of a new one
        behind those), "element" (its number among those that are read, and its type)
    """

    kind: str
    what: Any
    layout: Layout | None = None
    offset: int = 0


class Recorded(NamedTuple):
    """A call that can be done again.

    Attributes
    ----------
    slots : the number of a home, a device, where its window begins if there is one: where the addresses of the first
        slots come from
    new : the memory that is made, whose slots are next; where each device keeps such memory, if it does
    made : the homes of that memory
    valid : for each home of an argument, what is valid before and after, on a team
    numbers : the arguments that kernels get, and their types if they are not float64
    results, tree, given : of what the result is made; the arguments that leaves may be
    kept : what has to stay alive, as the kind knows it by its id
    alone : the new memory, the device and the layout of a result that is one new array; None of others
    """

    schedule: Schedule
    device: Any
    slots: tuple[tuple[int, Any, int | None], ...]
    new: tuple[tuple[Any, int, Any], ...]
    made: tuple[_New, ...]
    valid: tuple[tuple[Any, Any], ...]
    numbers: tuple[tuple[int, Any], ...]
    results: tuple[_Result, ...]
    tree: Any
    given: tuple[int, ...]
    stores: bool
    place: Team
    plan: HostPlan
    run: Any
    kept: tuple[Any, ...]
    alone: tuple[_New, Any, Layout, int] | None


class _Kind(NamedTuple):
    """What a call is like, its arguments (hidden ones last), the homes of its arrays, how many are visible."""

    key: tuple[Any, ...]
    values: Sequence[Any]
    homes: tuple[Home, ...]
    visible: int


class RecordedCalls:
    """The calls of one function that are done from schedules."""

    MISSED = MISSED

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self._settings: settings.Config | None = None
        self._found: dict[tuple[Any, ...], list[Recorded]] = {}  # a list for where bytes may be
        self._same: dict[tuple[Any, ...], tuple[list[Recorded], Any]] = {}  # by identities, with what must not go
        self._seen: dict[tuple[Any, ...], list[int]] = {}  # how often
        self._floats: frozenset[int] | None = None  # positions of floats that only kernels see
        self._errors: Any = None  # a state of NumPy's that asks for no exceptions
        self.alone: tuple[Team, Team] | None = None  # where arrays were of a call on one device, and that device

    def forget(self) -> None:
        """No call is known any more; the memory of schedules is given back."""
        self._found, self._same, self._seen, self._floats = {}, {}, {}, None
        self.alone = None

    # ---- what a call is like -----------------------------------------------------------------------------------------

    def kind(self, args: Sequence[Any], whole: bool = True) -> _Kind | None:
        """What a call in positional form is like; None if it can't be recorded. Without `whole`, layouts and teams are
        what they are by identity."""
        hidden = self.dispatcher.knowledge.facts.hidden
        values = args
        facts: list[Any] = [len(args)]
        if hidden:
            try:
                more = [read_source(self.dispatcher.function, source, args) for source in hidden]
            except MissingValue:
                return None
            values = [*args, *more]
            facts.append(id(hidden))
        floats, count = self._floats or (), len(args)
        homes: dict[Home, int] = {}
        for place, value in enumerate(values):
            kind = type(value)
            if kind is DeviceArray:
                home, layout = value._home, value._layout
                if not homes:
                    facts.append(value._place if whole else id(value._place))
                number = homes.get(home)
                if number is None:
                    number = homes[home] = len(homes)
                facts += (layout if whole else id(layout)), value._offset, number, home.size
            elif kind is float or kind in _NUMPY:
                facts.append(kind)
                if place not in floats:
                    facts.append(np.asarray(value).tobytes())
            elif kind in _BY_TYPE:
                facts += kind, value
            elif place >= count:
                facts.append(static_key(value))
            else:
                return None
        return _Kind(tuple(facts), values, tuple(homes), count) if homes else None

    def _lookup(self, args: Sequence[Any]) -> tuple[_Kind, Sequence[Recorded]] | None:
        """What a call is like, and what may be done then."""
        kind = self.kind(args, False) if self._same else None
        known = None if kind is None else self._same.get(kind.key)
        if kind is not None and known is not None:
            return kind, known[0]
        alike = self.kind(args)
        if alike is None:
            return None
        found = self._found.get(alike.key) if self._found else None
        if found is None:
            return alike, ()
        kind = kind or self.kind(args, False)
        assert kind is not None
        if len(self._same) >= 4 * MOST:
            self._same = {}
        arrays = [value for value in kind.values if type(value) is DeviceArray]
        self._same[kind.key] = found, [(value._layout, value._place) for value in arrays]
        return kind, found

    # ---- doing a call again ------------------------------------------------------------------------------------------

    def run(self, args: Sequence[Any]) -> Any:
        """The result of a call in positional form; `MISSED` if it goes the long way."""
        current = settings.current()
        if current is not self._settings:
            if current != self._settings:
                return MISSED
            self._settings = current
        if not (self._found or self.alone) or tracing.is_watched():
            return MISSED
        state = error_state()
        if state is not self._errors:
            if asks_for_errors():
                return MISSED
            self._errors = state
        known = self._lookup(args)
        if known is None:
            return MISSED
        kind, recorded = known
        for found in recorded:
            if self._are_where(found, kind):
                break
        else:
            return self._directly(args, kind)
        if self.dispatcher.is_patched() or is_short(found.place):
            return MISSED
        try:
            buffers = [_buffer(device, size, stock) for device, size, stock in found.new]
        except DeviceMemoryError:
            self.forget()  # schedules keep memory
            return MISSED
        except DeviceError:
            return MISSED
        homes = kind.homes
        addresses = [memory_of_copy(homes[number].copies[device]).address for number, device, _ in found.slots]
        for buffer in buffers:
            addresses.append(buffer.address)
        try:
            numbers = [
                kind.values[place] if type_ is None else entering(kind.values[place], type_)
                for place, type_ in found.numbers
            ]
            if found.schedule.failures:
                with found.schedule.lock:
                    elements = _checked(found, addresses, numbers)
            else:
                elements = found.schedule.run(addresses, numbers)
        except DeviceError:
            self.forget()
            if found.stores:
                raise
            return MISSED
        except Failed:
            return MISSED
        found.plan.last_run = found.run
        if found.valid:
            for home, (_, after) in zip(homes, found.valid, strict=True):
                home.valid = after
        return _result(found, kind, buffers, elements)

    def _times(self, kind: _Kind) -> int:
        """How often a call of a kind has come, as far as that is known."""
        if len(self._seen) > 16 * MOST:
            self._seen.clear()
        times = self._seen.setdefault(kind.key, [0])
        times[0] += 1
        return times[0]

    @hidden
    def _directly(self, args: Sequence[Any], kind: _Kind) -> Any:
        """The result of a call on one device that is not recorded; `MISSED` if it goes the long way, as one that is to
        be recorded has to."""
        if self.alone is None:
            return MISSED
        times = self._times(kind)
        place, team = self.alone
        if AFTER < times <= AFTER + 2 * ATTEMPTS or team.alone is None or is_short(team):
            return MISSED
        known = direct_calls.known(self.dispatcher, args, team.alone, place)
        return MISSED if known is None else direct_calls.run(self.dispatcher, *known, tuple(args), team)

    def _are_where(self, found: Recorded, kind: _Kind) -> bool:
        """Whether arrays are in the memories that they were in, or can be brought there."""
        device = found.device
        if device is None:
            return all(
                home.valid is before or _same(home.valid, before)
                for home, (before, _) in zip(kind.homes, found.valid, strict=True)
            ) and all(
                (copy := kind.homes[number].copies.get(place)) is not None and _start(copy) == start
                for number, place, start in found.slots
            )
        for home in kind.homes:
            if not home.is_only_on(device):
                for value in kind.values:
                    if type(value) is DeviceArray and value._home is home:
                        value.bring(device, writes=value._layout.writeable)
            copy = home.copies.get(device)
            if copy is None or isinstance(copy, Window) or copy.address % GRANULE:
                return False
        return True

    # ---- recording one -----------------------------------------------------------------------------------------------

    def attempt(
        self, compiled: Compiled, plan: HostPlan, args: Sequence[Any], given: Sequence[Any], team: Team
    ) -> Attempt | None:
        """What records a call that is about to go the long way; None if it is not wanted, or not possible."""
        current = settings.current()
        if current != self._settings:
            self.forget()
        self._settings = current
        config = compiled.config
        if not is_simple(compiled) or compiled.specialization.opaque_sites or config.timeline:
            return None
        if is_short(team):  # it would go on without a device that is tried again soon
            return None
        if config.check and any(device.asynchronous for device in team.devices):
            return None
        floats = _only_for_kernels(compiled, plan)
        if floats != self._floats:
            self.forget()
            self._floats = floats
        kind = self.kind(args)
        if kind is None:
            return None
        recorded = self._found.get(kind.key, ())
        if len(recorded) >= ATTEMPTS or any(self._are_where(one, kind) for one in recorded):
            return None
        if team.alone is not None:
            self.alone = next(value._place for value in kind.values if type(value) is DeviceArray), team
        times = self._times(kind)
        after = AFTER if isinstance(plan, DevicePlan) else 2 * AFTER  # measured parts change how a team shares
        if times <= after or times > after + 2 * ATTEMPTS:
            return None
        return Attempt(self, compiled, plan, kind, given, team)

    def add(self, key: tuple[Any, ...], found: Recorded) -> None:
        """A call has been recorded."""
        others = sum(len(one.schedule.requests) for some in self._found.values() for one in some)
        if len(self._found) >= MOST or others + len(found.schedule.requests) > REQUESTS:
            floats = self._floats
            self.forget()
            self._floats = floats
        self._found.setdefault(key, []).append(found)


class Attempt:
    """A call that goes the long way and is recorded."""

    def __init__(
        self,
        calls: RecordedCalls,
        compiled: Compiled,
        plan: HostPlan,
        kind: _Kind,
        given: Sequence[Any],
        team: Team,
    ) -> None:
        self.calls, self.compiled, self.plan, self.kind, self.given, self.team = (
            calls,
            compiled,
            plan,
            kind,
            given,
            team,
        )
        self.recorder = Recorder()
        self.device = team.alone if isinstance(plan, DevicePlan) else None
        self.before = [dict(home.valid) for home in kind.homes]
        self.copies = [dict(home.copies) for home in kind.homes]

    def finish(self, leaves_: Sequence[Any]) -> None:
        """The call has ended, with these leaves of its result."""
        workspace = self.recorder.close()
        homes = {home: number for number, home in enumerate(self.kind.homes)}
        slots = [
            (number, place)
            for number, (home, before) in enumerate(zip(self.kind.homes, self.copies, strict=True))
            for place in before
            if place is not None and home.copies.get(place) is before[place]
        ]
        if workspace and any(isinstance(copy, Window) for home in homes for copy in home.copies.values()):
            self.recorder.spoil("a schedule would keep memory that is scarce")
        known: set[object] = {None, *self.team.devices}
        places: list[Mapping[Any, Any]] = [*self.before, *self.copies]
        if any(not known.issuperset(before) for before in places):
            self.recorder.spoil("bytes are on other devices")
        if any(home.copies.keys() != before.keys() for home, before in zip(homes, self.copies, strict=True)):
            self.recorder.spoil("arrays have got new memory")
        copies = [(place, memory_of_copy(self.kind.homes[number].copies[place])) for number, place in slots]
        memory = [Slot(place, there.address, there.size) for place, there in copies]
        new: list[tuple[Any, int]] = []
        made: list[_New] = []
        results = [self._result(leaf, number, homes, new, made, memory) for number, leaf in enumerate(leaves_)]
        reads = sum(isinstance(one, Read) for one in self.recorder.requests)
        if reads != sum(one.kind == "element" for one in results):
            self.recorder.spoil("the host looks at elements")
        if kept_arguments(self.compiled) and self._may_fail():
            self.recorder.spoil("what has failed would be undone")
        if self.device is None and self.recorder.late:
            self.recorder.spoil("what has been stored before something fails would be stored again")
        positions = _places(self.compiled)
        numbers: dict[int, int] = {}
        passed: list[tuple[int, Any]] = []
        for leaf, place in enumerate(positions):
            if place in (self.calls._floats or ()):
                value = self.recorder.values[leaf]
                if id(value) in numbers:
                    self.recorder.spoil("one number for several arguments")
                numbers[id(value)] = len(passed)
                type_ = self.plan.function.params[leaf].type
                assert isinstance(type_, Scalar)
                passed.append((place, None if type_.dtype == "float64" else type_))
        schedule = schedule_of(self.recorder, memory, numbers, workspace)
        if schedule is None:
            return
        valid = []
        if self.device is None:
            for home, before in zip(self.kind.homes, self.before, strict=True):
                after = dict(home.valid)
                valid.append((after, after) if _same(before, after) else (before, after))
                home.valid = after
        elif not all(home.is_only_on(self.device) for home in self.kind.homes):
            return
        hidden = self.calls.dispatcher.knowledge.facts.hidden
        simple = tuple(place for place, value in zip(positions, self.given, strict=True) if type(value) is DeviceArray)
        self.calls.add(
            self.kind.key,
            Recorded(
                schedule,
                self.device,
                tuple((number, place, _start(self.kind.homes[number].copies[place])) for number, place in slots),
                tuple((device, size, _stock(device, size)) for device, size in new),
                tuple(made),
                tuple(valid),
                tuple(passed),
                tuple(results),
                self.compiled.specialization.result,
                simple,
                bool(self.compiled.specialization.stored_params),
                self.team,
                self.plan,
                self.plan.last_run,
                (hidden, *(value for value in self.kind.values[self.kind.visible :] if type(value) is not DeviceArray)),
                _alone(self.compiled.specialization.result, results, made, len(self.kind.homes)),
            ),
        )

    def _may_fail(self) -> bool:
        return any(isinstance(one, Expect) for one in self.recorder.requests)

    def _result(
        self,
        leaf: Any,
        number: int,
        homes: dict[Home, int],
        new: list[tuple[Any, int]],
        made: list[_New],
        memory: list[Slot],
    ) -> _Result:
        loads = given_loads(self.plan.function) if isinstance(self.plan, DevicePlan) else []
        result = self.plan.function.results[number]
        if isinstance(result, Var) and result in loads:
            return _Result("element", (loads.index(result), result.type))
        if not isinstance(leaf, DeviceArray):
            if not isinstance(leaf, int | float | complex | str | np.generic | None):
                self.recorder.spoil("a result of another kind")
            return _Result("value", leaf)
        for place, value in enumerate(self.kind.values):
            if value is leaf:
                return _Result("argument", place)
        home = leaf._home
        if home not in homes:
            homes[home] = len(homes)
            copies = []
            for device, buffer in home.copies.items():
                if isinstance(buffer, Window):
                    self.recorder.spoil("an address says nothing of which memory it is in")
                copies.append((device, len(new)))
                new.append((device, buffer.size))
                memory.append(Slot(device, buffer.address, buffer.size))
            if None in home.valid or home.is_on_host:
                self.recorder.spoil("a result is on the host")
            made.append(_New(home.size, home.everything, dict(home.valid), tuple(copies)))
        return _Result("array", homes[home], leaf._layout, leaf._offset)


def _start(copy: Buffer) -> int | None:
    """Where the window of an array begins, if a copy is one."""
    return copy.start if isinstance(copy, Window) else None


@hidden
def _checked(found: Recorded, addresses: Sequence[int], numbers: Sequence[Any]) -> Any:
    """The elements that a schedule reads, some of whose launches may fail.

    Raises
    ------
    Failed
        One has, and all memory that the call was given is as it was.
    """
    schedule = found.schedule
    try:
        return schedule.run(addresses, numbers)
    except Failed as failed:
        if failed.turn == OF_LIBRARY or schedule.failures[failed.turn].clean:
            schedule.begin_again()
            raise
        words = schedule.failed(failed, addresses, numbers, FAILURE_WORDS)
        schedule.begin_again()
    plan = found.plan
    assert isinstance(plan, DevicePlan)
    plan.last_run = found.run
    raise exception_of(plan.function, plan.bodies, int(words[1]), words[2:TURN])


def _alone(
    tree: Any, results: Sequence[_Result], made: Sequence[_New], count: int
) -> tuple[_New, Any, Layout, int] | None:
    """Of a result that is one new array on one device: what is to be known of it."""
    if not is_one_array(tree) or len(made) != 1 or len(made[0].copies) != 1:
        return None
    (result,) = results
    if result.kind != "array" or result.what != count:
        return None
    assert result.layout is not None
    return made[0], made[0].copies[0][0], result.layout, result.offset


def _stock(device: Any, size: int) -> Any:
    """Where a device keeps memory for so many bytes; None if it keeps none."""
    return None if getattr(device, "stock", None) is None else device.stock(allocated(size))


def _buffer(device: Any, size: int, stock: Any) -> Buffer:
    """New memory of a device."""
    address = None if stock is None or device.broken is not None else stock.take()
    return Buffer(device, size) if address is None else Buffer.at(device, size, address)


def _result(found: Recorded, kind: _Kind, buffers: Sequence[Buffer], elements: Sequence[Any]) -> Any:
    """What a call gives."""
    if found.alone is not None:
        new, device, layout, offset = found.alone
        return DeviceArray(Home.made(new[0], new[1], new[2], {device: buffers[0]}), found.place, layout, offset)
    count = len(kind.homes)
    made = []
    for size, everything, valid, copies in found.made:
        made.append(Home.made(size, everything, valid, {device: buffers[slot] for device, slot in copies}))
    leaves_: list[Any] = []
    for how, what, shown, offset in found.results:
        if how == "array":
            home = kind.homes[what] if what < count else made[what - count]
            assert shown is not None
            leaves_.append(DeviceArray(home, found.place, shown, offset))
        elif how == "argument":
            leaves_.append(kind.values[what])
        elif how == "element":
            leaves_.append(leaving(entering(elements[what[0]], what[1]), what[1]))
        else:
            leaves_.append(what)
    tree = found.tree
    if is_one_array(tree):
        return leaves_[tree.index]
    given = [kind.values[place] for place in found.given]
    return assemble(tree, leaves_, given, as_result)


def _same(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
    """Whether the same bytes are valid in the same memories."""
    return one.keys() == other.keys() and all(
        spans is other[place] or same(spans, other[place]) for place, spans in one.items()
    )


def _places(compiled: Compiled) -> list[int]:
    """Which argument each leaf is, the hidden ones behind the others."""
    return [leaf.path[0] for leaf in leaves(compiled.signature)]


def _only_for_kernels(compiled: Compiled, plan: HostPlan) -> frozenset[int]:
    """The positions of floats that the host part only hands on to kernels."""
    if not isinstance(plan, DevicePlan):
        return frozenset()
    head, *lines = plan.host_text.splitlines()
    names = [name.strip() for name in head[head.index("(") + 1 : head.rindex(")")].split(",")][1:]
    found = set()
    count = len(compiled.signature.params)
    for leaf, place in enumerate(_places(compiled)):
        kind = plan.function.params[leaf].type
        if not isinstance(kind, Scalar) or kind.dtype not in ("float64", "float32") or place >= count:
            continue
        word = re.compile(rf"\b{re.escape(names[leaf])}\b")
        if all(line.lstrip().startswith(TO_KERNELS) for line in lines if word.search(line)):
            found.add(place)
    return frozenset(found) - compiled_values(compiled)


def compiled_values(compiled: Compiled) -> frozenset[int]:
    """The positions of arguments whose values decide something."""
    return frozenset(place for place, spec in enumerate(compiled.signature.params) if isinstance(spec, StaticSpec))
