"""Arguments that live on devices: `DeviceArray`s, and arrays of CuPy, PyTorch, JAX, numba..., used where they are.

Those of other libraries say so by DLPack or by `__cuda_array_interface__`. For the time of a call each is represented
by a `DeviceArray` in the memory that it has; those that overlap share a home. Signatures are made of what stands for a
`DeviceArray` in the memory of the host (`DeviceArray.stand_in`), which is only reserved: such arrays lie to each other
as those on the device do, so types, overlaps and views need to know nothing of devices, and it makes no difference in
which container, attribute or variable an array is found.

What Python has to do itself (a call that is observed, or that cannot be compiled) it does on the arrays that stand for
those on devices, filled before and given back afterwards. For that time they take the place of the others in lists,
dicts and objects.

Work is ordered by the device's own stream: before the call it waits for the arguments' producers. A call with arrays of
other libraries or of the host waits for it in the end, so that what others do with them comes later; one with
`DeviceArray`s only does not: what looks at them waits, or lets a stream wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.device_detection import is_changeable, items_of, leaves_of
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.residency.array_interfaces import Interface, interface_of
from parakeet_py.hybrid.residency.arrays import Borrowed
from parakeet_py.hybrid.residency.blocks import Root, layout_of, whole_of
from parakeet_py.hybrid.residency.byte_ranges import span
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.hybrid.residency.exported import exported
from parakeet_py.hybrid.residency.function_scopes import Variable, variables_of
from parakeet_py.hybrid.residency.persistent_memory import Home
from parakeet_py.signature import specs
from parakeet_py.signature.device_classes import class_lives_elsewhere
from parakeet_py.signature.results import array_of_numpy

_LINE = 64  # bytes; where an array begins in such a line is the same on the host

_NONE: Mapping[int, tuple[Any, DeviceArray]] = MappingProxyType({})
_foreign: ContextVar[Mapping[int, tuple[Any, DeviceArray]]] = ContextVar("parakeet_py_foreign_arrays", default=_NONE)


def array_of(value: Any) -> DeviceArray | None:
    """A value as an array on devices; None if it is none."""
    if type(value) is DeviceArray:
        return value
    found = _foreign.get().get(id(value))
    return None if found is None else found[1]


_others = specs.stand_in.of


def _stand_in(value: Any) -> np.ndarray[Any, Any] | None:
    found = array_of(value)
    return _others(value) if found is None else found.stand_in


def _kept(value: Any) -> Callable[[], None] | None:
    found = array_of(value)
    return None if found is None else found.kept()


specs.stand_in.of, specs.stand_in.kept = _stand_in, _kept


class Residents:
    """The arguments of one call that live on devices; within it, those of other libraries are known.

    Attributes
    ----------
    team : that the call runs on
    kind : the first of them; arrays of the result are of its library
    of_host : there are arrays of the host's, too, which a device may still be reading
    function : that is called, whose globals and cells may hold such arrays, too
    """

    def __init__(
        self,
        team: Team,
        kind: Any,
        foreign: Mapping[int, tuple[Any, Interface]],
        own: Sequence[Home] = (),
        of_host: bool = False,
        function: Any = None,
    ) -> None:
        self.team, self.kind, self.function = team, kind, function
        self.foreign, self.own, self.of_host = foreign, own, of_host
        self._homes: list[Home] = []

    @classmethod
    def among(
        cls, team: Team, values: Sequence[Any], asked: Mapping[int, Interface] | None = None, function: Any = None
    ) -> Residents:
        """Those among some values, and in containers of these; `asked` has what some have said of themselves."""
        device, kind = team.alone, None
        stream = None if device is None else device.stream
        found: dict[int, tuple[Any, Interface]] = {}
        own: dict[Home, None] = {}
        of_host = False
        for value in leaves_of(values):
            of_host = of_host or isinstance(value, np.ndarray)
            if type(value) is DeviceArray:
                own[value._home] = None
            else:
                if id(value) in found or not class_lives_elsewhere(type(value)):
                    continue
                interface = (asked or {}).get(id(value)) or interface_of(value, stream)
                if interface is None:
                    continue
                if device is None or (0 not in interface.layout.shape and not device.owns(interface.address)):
                    raise DeviceError(f"the arrays among the arguments do not all live on {team.name}")
                found[id(value)] = value, interface
            kind = value if kind is None else kind
        return cls(team, kind, found, [*own], of_host, function)

    def __enter__(self) -> Residents:
        for _, interface in self.foreign.values():
            if interface.stream is not None:
                self.team.alone.wait_for(interface.stream)
        known = self._grouped(self.foreign) if self.foreign else _NONE
        self._token = None if known is _foreign.get() else _foreign.set(known)
        return self

    def __exit__(self, *_: object) -> None:
        """The call has ended: its work is complete."""
        if self._token is not None:
            _foreign.reset(self._token)
        device = self.team.alone
        for home in self._homes:
            if not home.is_only_on(device):
                home.bring(device, span(0, home.size))
        if device is None or self.kind is None:
            return
        if self.foreign or self.of_host:
            device.synchronize()
        else:  # what looks at the results waits
            device.submit()

    def _grouped(self, found: Mapping[int, tuple[Any, Interface]]) -> dict[int, tuple[Any, DeviceArray]]:
        """The arrays of other libraries as arrays of our own, those that overlap in one home."""
        made: dict[int, tuple[Any, DeviceArray]] = {}
        groups: list[tuple[int, int, list[tuple[Any, Interface]]]] = []
        bounded, empty = [], []
        for value, interface in found.values():
            if 0 in interface.layout.shape:  # it has no memory, and perhaps no address
                empty.append((value, interface))
                continue
            low, high = interface.bounds()
            home = next((one for one in self.own if one.lies_at(self.team.alone, low)), None)
            if home is None:
                bounded.append((low, high, value, interface))
            else:  # another library shows memory of ours
                offset = interface.address - home.copies[self.team.alone].address
                made[id(value)] = value, DeviceArray(home, self.team, interface.layout, offset)
        for low, high, value, interface in sorted(bounded, key=itemgetter(0, 1)):
            if groups and low < groups[-1][1]:
                start, end, members = groups.pop()
                groups.append((start, max(end, high), [*members, (value, interface)]))
            else:
                groups.append((low, high, [(value, interface)]))
        groups += [(interface.address, interface.address, [(value, interface)]) for value, interface in empty]
        for low, high, members in groups:
            keep = [interface.keep for _, interface in members]
            home = Home.on(self.team.alone, Borrowed(self.team.alone, low, high - low, keep))
            home.aligned = low % _LINE
            self._homes.append(home)
            for value, interface in members:
                made[id(value)] = value, DeviceArray(home, self.team, interface.layout, interface.address - low)
        return made

    def leaving(self, array: DeviceArray) -> Any:
        """A result as the library of the arguments has it."""
        return exported(array, self.kind)

    def array(self, value: Any, new: bool, readonly: bool) -> Any:
        """An array of a result, see `assemble`."""
        if type(value) is np.ndarray:
            return array_of_numpy(value, new, readonly)
        found = array_of(value)
        assert found is not None
        return self.leaving(found._view(not readonly) if new else found)

    def object(self, value: Any, args: Sequence[Any]) -> Any:
        """An object that Python has made of arguments in the midst of a call, as a result: arrays in it that stand for
        arrays on devices, or are views of them, are such arrays."""
        leaving = Lent(self)
        for one in leaves_of(args):
            found = array_of(one)
            if found is not None:
                leaving.originals[id(found.stand_in)] = found.stand_in, one
                leaving.arrays.append(found)
            elif isinstance(one, np.ndarray):
                leaving.own.append(one)
        return leaving.leaving(value)

    @hidden
    def refused(self, work: Callable[[tuple[Any, ...]], Any], args: Sequence[Any]) -> Any:
        """What Python computes where a call cannot be compiled: other libraries' arrays know what to do there."""
        return work(tuple(args)) if self.foreign else self.by_python(work, args)

    @hidden
    def by_python(self, work: Callable[[tuple[Any, ...]], Any], args: Sequence[Any]) -> Any:
        """What Python computes from arguments."""
        return work(tuple(args)) if self.kind is None else Lent(self).run(work, args)


class Lent:
    """What Python has of a call for some time: what stands for arrays on devices takes their places.

    Attributes
    ----------
    originals : what Python has been given something else for, arrays on devices and tuples with such, by the id of that
    entered : these tuples' places, by the ids of the tuples
    arrays : the arrays on devices that Python has, as our own
    own : arrays of the host among what it has been given, which stay
    seen, left : containers that have been entered, and those that have been gone through on leaving, by id
    made : arrays that Python has made, as it gets them, by id
    homes, roots : memory that arrays which Python has made, or has been shown, may lie in
    variables : of the function, once they have been entered
    """

    def __init__(self, residents: Residents) -> None:
        self.residents = residents
        self.originals: dict[int, tuple[Any, Any]] = {}
        self.entered: dict[int, tuple[Any, Any]] = {}
        self.arrays: list[DeviceArray] = []
        self.own: list[np.ndarray[Any, Any]] = []
        self.seen: dict[int, Any] = {}
        self.left: dict[int, Any] = {}
        self.made: dict[int, tuple[Any, Any]] = {}
        self.homes: list[Home] = []
        self.roots: list[Root] = []
        self.variables: list[Variable] | None = None
        self._waiting: list[Any] = []  # containers that are still to be gone through

    @hidden
    def run(self, work: Callable[[tuple[Any, ...]], Any], args: Sequence[Any]) -> Any:
        """What Python makes of arguments, whose elements are brought to the host before."""
        try:
            given = tuple(map(self.entering, args))
            self.enter_scope()
            for array in self.arrays:
                array.bring(None, writes=array.stand_in.flags.writeable)
            result = self.leaving(work(given))
        finally:
            self.give_back()
        return result

    def give_back(self) -> None:
        """Put arrays on devices back where they have been, and what Python has put beside them on devices, too."""
        for variable in self.variables or ():
            try:
                value = variable.get()
            except (KeyError, ValueError):  # Python has deleted it
                continue
            if (given := self.leaving(value)) is not value:
                variable.set(given)
        for container in self.seen.values():
            _replace(container, self.leaving)
        for array in self.arrays:
            array.take_layout()

    def enter_scope(self) -> None:
        """Let what stands for arrays take their places in variables of the function's, too."""
        if self.variables is not None:
            return
        self.variables = []
        for variable in variables_of(self.residents.function):
            value = variable.get()
            self.variables.append(variable)
            if (given := self.entering(value)) is not value:
                variable.set(given)

    def entering(self, value: Any) -> Any:
        """What takes the place of an argument; the elements of `arrays` must be on the host before it is looked at."""
        return self._through(value, self._entered)

    def leaving(self, value: Any) -> Any:
        """What a caller gets of what Python has computed: arrays on devices."""
        return self._through(value, self._given_back)

    def _through(self, value: Any, change: Callable[[Any], Any]) -> Any:
        """What a value becomes, and all that is in it: containers stay what they are, one after the other."""
        self._waiting.clear()
        found = change(value)
        while self._waiting:
            _replace(self._waiting.pop(), change)
        return found

    def _entered(self, value: Any) -> Any:
        if id(value) in self.originals:
            return value
        found = self.lent(value)
        if found is not None:
            return found
        if isinstance(value, np.ndarray):
            self.own.append(value)
        elif isinstance(value, tuple):
            return self._entered_tuple(value)
        elif id(value) not in self.seen and is_changeable(value):
            self.seen[id(value)] = value
            self._waiting.append(value)
        return value

    def _entered_tuple(self, value: tuple[Any, ...]) -> Any:
        if id(value) not in self.entered:
            made = _tuple_of(value, self._entered)
            self.entered[id(value)] = value, made
            if made is not value:
                self.originals[id(made)] = made, value
        return self.entered[id(value)][1]

    def lent(self, value: Any) -> np.ndarray[Any, Any] | None:
        """What Python gets of an array on devices, in whose place that array leaves; None if it is none."""
        found = array_of(value)
        if found is None:
            return None
        stand_in = found.stand_in
        if id(stand_in) not in self.originals:
            self.originals[id(stand_in)] = stand_in, value
            self.arrays.append(found)
        return stand_in

    def _given_back(self, value: Any) -> Any:
        if id(value) in self.originals:
            return self.originals[id(value)][1]
        if type(value) is np.ndarray:
            if id(value) not in self.made:
                self.made[id(value)] = value, self.array(value)
            return self.made[id(value)][1]
        if isinstance(value, tuple):
            return _tuple_of(value, self._given_back)
        if id(value) not in self.left and id(value) not in self.seen and is_changeable(value):
            self.left[id(value)] = value
            self._waiting.append(value)
        return value

    def array(self, value: np.ndarray[Any, Any]) -> Any:
        """An array of Python's as it leaves: those that share memory share it on devices."""
        if value.dtype.kind not in "biufc" or any(np.may_share_memory(one, value) for one in self.own):
            return value
        homes = [*[one._home for one in self.arrays], *self.homes]
        home = next((one for one in homes if one.has(value)), None) or self._home_of_root(value)
        if home is None:
            whole = whole_of(value)
            low, high = byte_bounds(whole)
            home = Home(low, high - low, (whole,))
            self.homes.append(home)
        offset = value.__array_interface__["data"][0] - home.address if value.size else 0
        return self.residents.leaving(DeviceArray(home, self.residents.team, layout_of(value), offset, value))

    def _home_of_root(self, value: np.ndarray[Any, Any]) -> Home | None:
        """The home of memory that a call has made and shown to Python, an array of which has not left it before."""
        place: int = value.__array_interface__["data"][0]
        for root in self.roots:
            if root.is_on_host and root.address <= place < root.address + max(root.size, 1):
                home: Home = root.home or Home.of(root, self.residents.team.devices)
                return home
        return None


def _tuple_of(value: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    """A tuple of other items; the same if none is another."""
    if not items_of(value):
        return value
    items = [change(item) for item in value]
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def _replace(container: Any, change: Callable[[Any], Any]) -> None:
    """Replace what is in a list, a dict or an object."""
    inside = container if type(container) in (list, dict) else vars(container)
    found = [*enumerate(inside)] if type(inside) is list else [*inside.items()]
    for key, new in [(key, new) for key, old in found if (new := change(old)) is not old]:
        inside[key] = new
