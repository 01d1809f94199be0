"""Calls like one before, on arrays that a device has.

Which specialization takes such a call, and what its leaf arguments are, follows from a few *facts*: the settings, what
each argument is (the form of an array, the type of a number, the value of what is specialized by value), and which
arrays share memory. The form of an array without gaps is the same whatever its extents, if none of these is short. The
first call with some facts has its signature made, which takes most of the time of a short call (`calls`), and what came
of it is kept; later ones are executed at once.

Calls that hand something back to Python, or that have something to bring from the host, always go the long way.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parakeet_py.base.errors import MissingValue
from parakeet_py.base.types import DTYPES
from parakeet_py.call.give_back import kept_arguments
from parakeet_py.call.load import can_be_static, read_source
from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.hybrid.devices.device_detection import items_of
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.residency.array_interfaces import Interface, interface_of
from parakeet_py.hybrid.residency.arrays import Layout
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.signature.device_classes import class_lives_elsewhere
from parakeet_py.signature.specs import ArraySpec, NoneSpec, ScalarSpec, StaticSpec, leaves, static_key

if TYPE_CHECKING:
    from parakeet_py.base.config import Config
    from parakeet_py.call.compiled import Compiled
    from parakeet_py.call.devices.caller import Dispatcher

MOST = 256  # kinds of calls that are remembered
ALIGNMENT = 16  # of addresses: kernels ask for no more
SHORT = 4  # extents that signatures may speak of are no longer
_BY_TYPE = frozenset((bool, float, complex, NoneType, *(np.dtype(name).type for name in DTYPES)))
_BY_VALUE = frozenset((str, bool, int, float, complex, NoneType))


class Seen(NamedTuple):
    """What a call looks like.

    Attributes
    ----------
    facts : what decides all but addresses and numbers
    values : the arguments, hidden ones included
    foreign : the arrays of other libraries among them, and what they say of themselves
    kind : the first array; those of the result are of its library
    """

    facts: tuple[Any, ...]
    values: list[Any]
    foreign: dict[int, tuple[Any, Interface]]
    kind: Any


class Known(NamedTuple):
    """What is known of calls with the same facts.

    Attributes
    ----------
    places : which of the arguments each leaf is
    direct : the host part is all that there is to do, see `direct_calls`
    """

    compiled: Compiled
    places: tuple[int, ...]
    direct: bool


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

    def remember(self, config: Config, seen: Seen, compiled: Compiled) -> None:
        """A call has gone the long way."""
        if not is_simple(compiled):
            return
        known = self._under(config)
        if len(known) >= MOST:
            known.clear()
        done = compiled.specialization
        direct = not (done.opaque_sites or compiled.listed or kept_arguments(compiled) or config.timeline)
        known[seen.facts] = Known(compiled, tuple(leaf.path[0] for leaf in leaves(compiled.signature)), direct)


def repeated_of(dispatcher: Dispatcher) -> Repeated:
    """What is remembered of a function's calls."""
    if dispatcher.repeated is None:
        dispatcher.repeated = Repeated()
    found: Repeated = dispatcher.repeated
    return found


def is_simple(compiled: Compiled) -> bool:
    """Whether facts say all of a call's arguments."""
    signature = compiled.signature
    return all(
        isinstance(spec, ArraySpec | ScalarSpec | StaticSpec | NoneSpec)
        for spec in (*signature.params, *(hidden.spec for hidden in signature.hidden))
    )


def look(
    dispatcher: Dispatcher, normal: Sequence[Any], place: Machine | Team, asked: Mapping[int, Interface]
) -> Seen | None:
    """What a call in positional form looks like, on a device alone or on a team; None if it has to go the long way.

    `asked` has what some arrays have said already.
    """
    known = dispatcher.knowledge.facts
    given = list(normal)
    facts: list[Any] = [place, len(given)]
    if known.hidden:
        try:
            given += [read_source(dispatcher.function, source, normal) for source in known.hidden]
        except MissingValue:
            return None
        facts += [static_key(value) for value in given[len(normal) :]]
    for number in known.values:
        if isinstance(number, int) and can_be_static(normal[number]):
            facts.append(static_key(normal[number]))
    kind: Any = None
    homes: dict[Any, int] = {}
    parts: list[tuple[int, int, Layout]] = []
    foreign: dict[int, tuple[Any, Interface]] = {}
    for value in given:
        type_ = type(value)
        if type_ is DeviceArray:
            facts += form_of(value._layout, value._offset)
            parts.append((homes.setdefault(value._home, len(homes)), value._offset, value._layout))
            kind = value if kind is None else kind
        elif type_ in _BY_TYPE or (type_ is int and -(2**63) <= value < 2**63):
            facts.append(type_)
        elif type_ in _BY_VALUE:
            facts.append(value)
        elif type_ is np.ndarray or items_of(value):
            return None
        elif class_lives_elsewhere(type_):
            if isinstance(place, Team):
                return None
            interface = asked.get(id(value)) or interface_of(value, place.stream)
            if interface is None or not place.owns(interface.address):
                return None
            foreign[id(value)] = value, interface
            facts += (*form_of(interface.layout, interface.address), type_)
            kind = value if kind is None else kind
        else:
            facts.append(id(value))
    if kind is None or (foreign and not _are_apart(foreign, given, place)):
        return None
    if len(homes) < len(parts):  # which bytes they share follows from extents, too
        facts += parts
    return Seen(tuple(facts), given, foreign, kind)


def form_of(layout: Layout, place: int) -> tuple[Any, ...]:
    """What signatures say of an array: of one without gaps, no extents."""
    dtype, shape, strides, writeable = layout
    step = dtype.itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if stride != step or extent <= SHORT:
            return layout, place % ALIGNMENT
        step *= extent
    return dtype, len(shape), writeable, place % ALIGNMENT


def _are_apart(foreign: Mapping[int, tuple[Any, Interface]], given: Sequence[Any], device: Any) -> bool:
    """Whether no array of another library has bytes in common with another array; none is given twice."""
    parts = [interface.bounds() for _, interface in foreign.values()]
    for value in given:
        if type(value) is DeviceArray and device in value._home.copies:
            buffer = value._home.copies[device]
            parts.append((buffer.address, buffer.address + buffer.size))
    times = sum(id(value) in foreign for value in given)
    parts = sorted(set(parts))
    return times == len(foreign) and all(before[1] <= after[0] for before, after in itertools.pairwise(parts))
