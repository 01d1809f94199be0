"""Calls like one before, on arrays that a device has.

All that stands before the host part of such a call (where arguments live, what overlaps, the signature, which
specialization takes it), and how its results are put together, follows from a few *facts*: the settings, what each
argument is (the layout of an array, the type of a number, the value of what is specialized by value), and which arrays
share memory. The first call with some facts goes the long way (`device_calls`) and what came of it is kept; later ones
read addresses, run the host part, and wrap what it gives. They need no ghosts (`device_arguments`).

Calls that hand something back to Python, or that have something to bring from the host, always go the long way; so does
a call that Python has to begin again.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parakeet_py.base.errors import MissingValue
from parakeet_py.base.types import DTYPES
from parakeet_py.call.compile import kept_arguments
from parakeet_py.call.interpreters import Undo, box
from parakeet_py.call.load import can_be_static, read_source
from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.hybrid.devices.device_detection import lives_elsewhere
from parakeet_py.hybrid.devices.occupancy_limit import examine, plan_for
from parakeet_py.hybrid.execute.device_run import Call, entering
from parakeet_py.hybrid.plan.device_plan import Plan
from parakeet_py.hybrid.residency.array_interfaces import Interface, interface_of
from parakeet_py.hybrid.residency.arrays import Borrowed, Buffer, DeviceView, Layout, kept_view, name_of_dtype
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.hybrid.residency.exported import exported
from parakeet_py.hybrid.residency.persistent_memory import Home
from parakeet_py.signature.results import Result, ResultLeaf, ResultTuple, listed, result_leaves
from parakeet_py.signature.specs import ArraySpec, NoneSpec, ScalarSpec, Spec, StaticSpec, leaves, static_key

if TYPE_CHECKING:
    from parakeet_py.base.config import Config
    from parakeet_py.call.compile import Compiled
    from parakeet_py.call.devices.caller import Dispatcher

MOST = 256  # kinds of calls that are remembered
ALIGNMENT = 16  # of addresses: kernels ask for no more
_BY_TYPE = frozenset((bool, float, complex, NoneType, *(np.dtype(name).type for name in DTYPES)))
_BY_VALUE = frozenset((str, bool, int, float, complex, NoneType))


class Seen(NamedTuple):
    """What a call looks like.

    Attributes
    ----------
    facts : what decides all but addresses and numbers
    values : the arguments, hidden ones included, arrays as they are on the device
    homes : of the memory of those that are our own
    streams : what the others' producers still work in
    kind : the first array; those of the result are of its library
    """

    facts: tuple[Any, ...]
    values: list[Any]
    homes: dict[Buffer, Home]
    streams: list[int]
    kind: Any


class Known(NamedTuple):
    """What is known of calls with the same facts.

    Attributes
    ----------
    plan : of the specialization
    places : which of the arguments each leaf is
    numbers : which of the leaves are numbers, and of what type
    result : how results are put together
    kept : the arguments that Python may want to have back as they were
    views, readonly : the results that are new objects even where they are arguments, and that cannot be written to
    listed : the results that become Python lists
    """

    compiled: Compiled
    plan: Plan
    places: tuple[int, ...]
    numbers: tuple[tuple[int, Any], ...]
    result: Result
    kept: tuple[int, ...]
    views: frozenset[int]
    readonly: frozenset[int]
    listed: frozenset[int]


class Repeated:
    """The calls of one function that may come again, under the settings of the last one."""

    def __init__(self) -> None:
        self._config: Config | None = None
        self._known: dict[tuple[Any, ...], Known] = {}

    def known(self, config: Config, facts: tuple[Any, ...]) -> Known | None:
        """What is known of a call."""
        return self._under(config).get(facts)

    def _under(self, config: Config) -> dict[tuple[Any, ...], Known]:
        if config is not self._config:
            if config != self._config:
                self._known = {}
            self._config = config
        return self._known

    def remember(self, config: Config, seen: Seen, compiled: Compiled, plan: Plan) -> None:
        """A call has gone the long way."""
        if plan.opaque_args or not _is_simple(compiled):
            return
        known = self._under(config)
        if len(known) >= MOST:
            known.clear()
        places = tuple(leaf.path[0] for leaf in leaves(compiled.signature))
        params = plan.function.params
        numbers = tuple(
            (number, param.type)
            for number, (place, param) in enumerate(zip(places, params, strict=True))
            if not isinstance(seen.values[place], DeviceView)
        )
        kept = tuple(places[position] for position in kept_arguments(compiled))
        tree = compiled.specialization.result
        found = result_leaves(tree)
        views, readonly = (
            frozenset(leaf.index for leaf in found if getattr(leaf, flag)) for flag in ("view", "readonly")
        )
        known[seen.facts] = Known(compiled, plan, places, numbers, _plain(tree), kept, views, readonly, listed(tree))


def repeated_of(dispatcher: Dispatcher) -> Repeated:
    """What is remembered of a function's calls."""
    if dispatcher.repeated is None:
        dispatcher.repeated = Repeated()
    found: Repeated = dispatcher.repeated
    return found


def _is_simple(compiled: Compiled) -> bool:
    """Whether facts say all of a call's arguments, and its result is made of nothing but arrays and numbers."""
    signature = compiled.signature
    return all(map(_is_said, (*signature.params, *(hidden.spec for hidden in signature.hidden)))) and _is_plain(
        compiled.specialization.result
    )


def _is_said(spec: Spec) -> bool:
    return isinstance(spec, ArraySpec | ScalarSpec | StaticSpec | NoneSpec)


def _is_plain(tree: Result) -> bool:
    match tree:
        case ResultLeaf(kind=kind):
            return kind != "object"
        case ResultTuple(items):
            return all(map(_is_plain, items))
    return True


def _plain(tree: Result) -> Result:
    """A result whose arrays need nothing more."""
    match tree:
        case ResultLeaf():
            return replace(tree, view=False, readonly=False)
        case ResultTuple(items):
            return replace(tree, items=tuple(map(_plain, items)))
    return tree


def look(dispatcher: Dispatcher, normal: Sequence[Any], device: Machine, asked: Mapping[int, Interface]) -> Seen | None:
    """What a call in positional form looks like; None if it has to go the long way.

    `asked` has what some arrays have said already.
    """
    known = dispatcher.knowledge.facts
    given = list(normal)
    facts: list[Any] = [device, len(given)]
    if known.hidden:
        try:
            given += [read_source(dispatcher.function, source, normal) for source in known.hidden]
        except MissingValue:
            return None
        facts += [static_key(value) for value in given[len(normal) :]]
    for place in known.values:
        if isinstance(place, int) and can_be_static(normal[place]):
            facts.append(static_key(normal[place]))
    kind, owned, borrowed = None, 0, 0
    homes: dict[Buffer, Home] = {}
    values: list[Any] = []
    streams: list[int] = []
    for value in given:
        type_ = type(value)
        if type_ is DeviceArray:
            there = value.on(device)
            facts += (value._layout, value._offset % ALIGNMENT)
            homes[there.buffer] = value._home
            owned += 1
            values.append(there)
            kind = value if kind is None else kind
            continue
        values.append(value)
        if type_ in _BY_TYPE or (type_ is int and -(2**63) <= value < 2**63):
            facts.append(type_)
        elif type_ in _BY_VALUE:
            facts.append(value)
        elif type_ is np.ndarray or type_ is tuple or type_ is list:
            return None
        elif lives_elsewhere(value):
            interface = asked.get(id(value))
            if interface is None:
                interface = interface_of(value, device.stream)
                if interface is None or not device.owns(interface.address):
                    return None
            if interface.stream is not None:
                streams.append(interface.stream)
            values[-1] = _lent(device, interface, value)
            facts += (interface.layout, type_, interface.address % ALIGNMENT)
            borrowed += 1
            kind = value if kind is None else kind
        else:
            facts.append(id(value))
    arrays = [value for value in values if isinstance(value, DeviceView)]
    if borrowed and _meet([one.buffer for one in arrays]):
        return None
    if len(homes) < owned:  # which of them share memory
        buffers = [one.buffer for one in arrays]
        facts += [(buffers.index(one.buffer), one.offset) for one in arrays]
    return Seen(tuple(facts), values, homes, streams, kind)


def _lent(device: Machine, interface: Interface, value: Any) -> DeviceView:
    """An array of another library, where it is."""
    low, high = interface.bounds()
    buffer = Borrowed(device, low, high - low, 0)
    buffer.keep.append(interface.keep)
    dtype, shape, strides, writeable = interface.layout
    name = name_of_dtype(dtype)
    return DeviceView(buffer, interface.address - low, name, shape, strides, value, readonly=not writeable)


def _meet(buffers: Sequence[Buffer]) -> bool:
    """Whether some of these have bytes in common; one that several arrays are in counts once."""
    parts = sorted((one.address, one.address + one.size) for one in set(buffers))
    return any(before[1] > after[0] for before, after in itertools.pairwise(parts))


def again(known: Known, seen: Seen, device: Machine, kept: list[Undo]) -> Any:
    """A call like one before; `kept` gets what undoes what it does to its arguments.

    Raises
    ------
    Exception
        As host code does; the device has done all that was launched.
    """
    plan = plan_for(known.plan, device)
    call = _Again(known, plan, device, seen)
    values = [seen.values[place] for place in known.places]
    for number, type_ in known.numbers:
        values[number] = entering(values[number], type_)
    for stream in seen.streams:
        device.wait_for(stream)
    kept += [kept_view(seen.values[place]) for place in known.kept]
    try:
        results = call.supervised(lambda: call.wrapped(values))
    finally:
        device.synchronize()
    if plan is known.plan:
        examine(known.compiled, plan, device)
    return box(known.result, results, call.given)


class _Again(Call):
    """A call whose arrays are all on the device."""

    def __init__(self, known: Known, plan: Plan, device: Machine, seen: Seen) -> None:
        super().__init__(plan, device, None)
        self.shown = True  # others have the arrays
        self.known, self.place, self.homes, self.kind = known, device, seen.homes, seen.kind
        self.given = [value.host for value in seen.values if isinstance(value, DeviceView)]

    def wrapped(self, values: Sequence[Any]) -> list[Any]:
        """What host code gives, as Python shall have it."""
        kinds = [result.type for result in self.plan.function.results]
        return [
            self._array(number, value) if isinstance(value, DeviceView) else self.leaving(value, kinds[number])
            for number, value in enumerate(self.plan.host(self, *values))
        ]

    def _array(self, number: int, value: DeviceView) -> Any:
        if number in self.known.listed:
            return value.to_host()
        if value.host is not None and number not in self.known.views:  # an argument
            return value.host
        home = self.homes.get(value.buffer)
        if home is None:
            home = self.homes[value.buffer] = Home.on(self.place, value.buffer)
        writeable = not value.readonly and number not in self.known.readonly
        layout = Layout(np.dtype(value.dtype), value.shape, value.strides, writeable)
        return exported(DeviceArray(home, self.place, layout, value.offset), self.kind)
