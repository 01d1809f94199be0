"""The arrays of one call: how they enter, where they are, and what leaves.

Arguments enter as arrays that several memories may have (`residency.blocks`): those of the host, those that live on
devices (`DeviceArray`), and read-only ones that stay there from their first call on. On a device alone, all of the host
part works in that device's memory; `there` and `here` are the two forms of an array then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from parakeet_py.base.types import Array, Object, Scalar
from parakeet_py.hybrid.devices.device import Device, DeviceError
from parakeet_py.hybrid.devices.recording import active, spoil
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.device_loss import member_of
from parakeet_py.hybrid.execute.device_memory import DeviceMemory
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.hybrid.residency.arrays import Buffer, DeviceView, Layout
from parakeet_py.hybrid.residency.blocks import (
    HOST,
    Memories,
    Root,
    SharedArray,
    of_arguments,
    of_host,
    whole_of,
)
from parakeet_py.hybrid.residency.byte_ranges import NOTHING, difference
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.hybrid.residency.persistent_memory import Home, homes_of_frozen
from parakeet_py.hybrid.residency.resident_arguments import Lent, array_of
from parakeet_py.typed_ir.semantics import scalar

WASTE = 2  # an array is packed if the memory from its first to its last byte is more than so many times its own
_ARRAYS = DeviceView, SharedArray
LARGE = 1 << 24  # bytes of an array that Python gives a view of, and that is more than WASTE times as large
DEVICE = 1  # the number of the memory of a device alone


class CallArrays:
    """What enters a call, and what leaves it.

    Attributes
    ----------
    alone : the host part works in the memory of one device
    memories : of the team, and which bytes have moved between them
    arguments : the arrays of the host among the arguments
    packed : arguments that lie far apart, and the copies that are together
    entered : the roots of bytes that outlive the call, by where these are between calls
    stays : results stay on the devices, as some argument lives there
    shown : others may have seen what the call has done so far
    visible : the memory that Python has been shown, or has given, that is no argument
    brought, reading : read-only arrays that are not on all devices yet, and those devices
    roots, homes, constant : of a device alone: what its memory is a copy of, where that is between calls, and the
        arguments that are not stored to
    """

    memory: DeviceMemory  # of a device alone
    lent: Lent | None = None  # what Python has, where arguments live on devices

    def __init__(self, plan: Any, team: Team) -> None:
        self.plan, self.team = plan, team
        self.alone = isinstance(plan, DevicePlan)
        self.arguments: list[SharedArray] = []
        self.packed: list[tuple[np.ndarray[Any, Any], SharedArray]] = []
        self.entered: dict[Home, Root] = {}
        self.visible: dict[Root, None] = {}
        self.stays = self.shown = False
        self.constant: set[Root] = set()
        self.reading: list[Device] = []
        self.brought: list[Home] = []
        self.shared: dict[int, tuple[DeviceView, SharedArray]] = {}
        self.roots: dict[Buffer, Root] = {}
        self.homes: dict[Buffer, Home] = {}

    @cached_property
    def memories(self) -> Memories:
        return self.memories_of([self.memory.device] if self.alone else [*map(member_of, self.team.devices)])

    def memories_of(self, devices: Sequence[Any]) -> Memories:
        return Memories(devices)

    def enter(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaf arguments as values of the host part."""
        params = self.plan.function.params
        values: list[Any] = []
        arrays: list[np.ndarray[Any, Any]] = []
        places: list[int] = []
        for number, (leaf, param) in enumerate(zip(leaves, params, strict=True)):
            if not isinstance(param.type, Array):
                values.append(entering(leaf, param.type))
                continue
            resident = leaf if type(leaf) is DeviceArray else None if type(leaf) is np.ndarray else array_of(leaf)
            if resident is not None:
                self.stays = self.shown = True
                values.append(self.resident(resident, leaf))
                continue
            values.append(None)
            places.append(number)
            arrays.append(np.asarray(leaf))
        if not arrays:
            noting = active()
            if noting is not None:
                noting.values = values
            return values
        spoil("arrays of the host's")
        frozen = homes_of_frozen(arrays)
        for number, home in frozen.items():
            values[places[number]] = self.frozen(home, arrays[number])
        places = [place for number, place in enumerate(places) if number not in frozen]
        entered = self.of_arguments([array for number, array in enumerate(arrays) if number not in frozen])
        for place, array in zip(places, entered, strict=True):
            values[place] = array
        if self.alone:
            stored = {values[place].root for place in places if params[place] in self.plan.stored_params}
            self.constant = {array.root for array in entered} - stored
        return values

    def of_arguments(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[SharedArray]:
        """Arrays of the host; on a device alone, what lies far apart is packed if no view of it is asked for."""
        self.arguments = of_arguments(self.memories, arrays)
        if not self.alone or self.plan.gives_views or self.plan.asks_strides or self.plan.opaque_args:
            return self.arguments
        for number, (array, shared) in enumerate(zip(arrays, self.arguments, strict=True)):
            root = shared.root
            if root.size > WASTE * array.nbytes and len(root.owner) == 1:
                together = of_host(self.memories, np.ascontiguousarray(array).reshape(array.shape))
                self.packed.append((array, together))
                self.arguments[number] = together
        return self.arguments

    def resident(self, array: DeviceArray, given: Any) -> Any:
        """An argument that lives on devices."""
        if not self.alone:
            host = array.stand_in if self.plan.opaque_args else array._array
            return SharedArray(self.root_of(array._home), array._layout, array._offset, host, given)
        there = array.on(self.team.alone)
        there.given = given
        self.homes[there.buffer] = array._home
        self.memory.given.add(there.buffer)
        return there

    def frozen(self, home: Home, array: np.ndarray[Any, Any]) -> Any:
        """A read-only array of NumPy's that stays on devices from its first call on, if there is room."""
        missing = [device for device in self.team.devices if not home.is_whole_on(device)]
        if missing and not self.memories.rehearsal:
            if home.brought:
                missing[0].bring_again(array)
            self.reading += missing
            self.brought.append(home)
        home.owner = (array,)
        root = self.root_of(home)
        home.owner = ()
        return SharedArray.of(root, array, array)

    def root_of(self, home: Home) -> Root:
        """The root of bytes that outlive the call."""
        root = self.entered.get(home)
        if root is None:
            root = self.entered[home] = home.enter(self.memories, self.team.devices)
        return root

    def leave_homes(self) -> None:
        """Let bytes that outlive the call be where it has brought them; Python may have put arrays of them anywhere."""
        if self.lent is not None:
            own = {array.root for array in self.arguments}
            self.lent.homes += [home for home in self.entered if not home.frozen]
            self.lent.roots += [root for root in self.visible if root.home is None and root not in own]
        for home, root in self.entered.items():
            home.leave(root, self.team.devices)
        for device in self.reading:
            with suppress(DeviceError):  # the call raises its own
                device.finish_reading()
        self.reading.clear()

    def there(self, array: SharedArray) -> DeviceView:
        """An array in the memory of the device, complete."""
        root = array.root
        root.complete(DEVICE)
        found = array.on_device(DEVICE)
        self.roots[found.buffer] = root
        return found

    def here(self, array: DeviceView) -> SharedArray:
        """An array of the device's memory as one that others may have."""
        if id(array) in self.shared:
            return self.shared[id(array)][1]
        root = self.roots.get(array.buffer)
        if root is None:
            home = self.homes.get(array.buffer)
            root = Root.on(self.memories, DEVICE, array.buffer) if home is None else self.root_of(home)
            self.roots[array.buffer] = root
        layout = Layout(np.dtype(array.dtype), array.shape, array.strides, not array.readonly)
        host = array.given if type(array.given) is np.ndarray else None
        resident = None if array.given is None or host is not None else array_of(array.given)
        if resident is not None:
            host = resident.stand_in  # Python, which sees it, may give it back
        found = SharedArray(root, layout, array.offset, host, array.given)
        self.shared[id(array)] = array, found
        return found

    def lend(self, values: Sequence[Any], kinds: Sequence[object]) -> list[Any]:
        """Values for an operation of Python's, which sees in containers what stands for arrays on devices."""
        given = [
            value.host if isinstance(value, SharedArray) else leaving(value, kind)
            for value, kind in zip(values, kinds, strict=True)
        ]
        lent = self.lent
        if lent is None:
            return given
        entered = len(lent.arrays)
        for value in values:
            if isinstance(value, SharedArray):
                lent.entering(value.given)
        lent.enter_scope()
        found = [
            lent.entering(value) if isinstance(kind, Object) else value
            for value, kind in zip(given, kinds, strict=True)
        ]
        for array in lent.arrays[entered:]:
            self.visible[self.resident_root(array)] = None
        return found

    def resident_root(self, array: DeviceArray) -> Root:
        """The root of an array on devices that Python has given, or has in a container."""
        root = self.root_of(array._home)
        if self.alone and DEVICE in root.copies:
            self.roots[root.copies[DEVICE]] = root
        return root

    def shown_to_python(self, arrays: Iterable[SharedArray]) -> dict[Root, None]:
        """The memory that an operation of Python's may look at and change: that of its operands, of the arguments, and
        what Python has been shown or has given before, as long as it has it."""
        self.visible = {root: None for root in self.visible if root.home is not None or _is_held(root)}
        roots = {array.root: None for array in arrays}
        roots |= {array.root: None for array in self.arguments}
        roots |= self.visible
        self.visible |= {root: None for root in roots if root.home is None}
        return roots

    def leave_to_python(self) -> None:
        """Let arrays on devices be where Python finds them."""
        for home, root in self.entered.items():
            if not home.frozen:
                home.leave(root, self.team.devices)

    def taken_back(self, roots: Iterable[Root]) -> None:
        """Python may have changed this memory of the host, and arrays on devices wherever they are."""
        devices = self.team.devices
        for home, root in self.entered.items():
            if not home.frozen:
                home.again(root, devices)
        if self.alone:
            for buffer, home in self.homes.items():
                if home not in self.entered and not (home.is_only_on(devices[0]) and home.copies[devices[0]] is buffer):
                    root = self.entered[home] = self.roots[buffer] = Root.on(self.memories, DEVICE, buffer)
                    root.home, root.everything = home, home.everything
                    home.again(root, devices)
        for root in roots:
            if root.home is None or not len(difference(root.everything, root.valid.get(HOST, NOTHING))):
                root.wrote_all(HOST)

    def settle(self) -> None:
        """Take down what kernels have stored to."""
        for buffer in self.memory.changed:
            root = self.roots.get(buffer)
            if root is not None and root not in self.constant:
                root.wrote_all(DEVICE)
        self.memory.changed.clear()

    def taken(self, leaf: Any, kind: object, roots: Iterable[Root]) -> Any:
        """What Python has given: an array on devices, a view of memory that is known, or an array that others may have,
        too, and views of it.

        Raises
        ------
        DeviceError
            It shares some memory of a large array with another one that Python has given.
        """
        if not isinstance(kind, Array):
            return entering(leaf, kind)
        resident = None if type(leaf) is np.ndarray else array_of(leaf)
        if resident is not None:
            root = self.resident_root(resident)
            return SharedArray(root, resident._layout, resident._offset, resident.stand_in, leaf)
        array = np.asarray(leaf)
        if not array.size:
            return of_host(self.memories, array)
        known = [*roots, *self.visible]
        low, high = byte_bounds(array)
        for root in known:
            if root.address <= low < high <= root.address + root.size:
                return SharedArray.of(root, array, self._given(leaf))
        whole = whole_of(array)
        if whole.nbytes > max(LARGE, WASTE * array.nbytes) or not whole.flags.forc:
            whole = array
        low, high = min(low, byte_bounds(whole)[0]), max(high, byte_bounds(whole)[1])
        if any(low < root.address + root.size and root.address < high for root in known):
            raise DeviceError("arrays that Python gives in the midst of a call share memory in part")
        root = Root(self.memories, low, high - low, (whole,), False)
        self.visible[root] = None
        return SharedArray.of(root, array)

    def _given(self, leaf: Any) -> Any:
        """The array on devices that an array of the host's stands for, if Python has been lent it."""
        found = None if self.lent is None else self.lent.originals.get(id(leaf))
        return None if found is None else found[1]

    def bring_back(self) -> None:
        """Let the host see what has been stored into its arrays."""
        if self.alone:
            self.settle()
        for array in self.arguments:
            array.on_host()
        for root in self.visible:
            if root.home is None:
                root.complete(HOST)
        for given, together in self.packed:
            if given.flags.writeable and together.root.valid.get(DEVICE) is not None:
                np.copyto(given, together.host)

    def result(self, value: Any, kind: object, stays: bool, known: dict[int, Any]) -> Any:
        """A result as Python sees it; `known` has those that are it already."""
        if isinstance(value, _ARRAYS):
            if id(value) not in known:
                known[id(value)] = value, self.array(value, stays and self.stays)
            return known[id(value)][1]
        return leaving(value, kind)

    def array(self, value: DeviceView | SharedArray, stays: bool) -> Any:
        """An array that leaves; what the call has made `stays` on the devices."""
        given = value.given
        if given is not None and (stays or type(given) is np.ndarray):
            return given
        if isinstance(value, DeviceView):
            if stays and value.buffer not in self.roots:
                home = self.homes.get(value.buffer)
                if home is None:
                    home = self.homes[value.buffer] = Home.on(self.team.alone, value.buffer)
                layout = Layout(np.dtype(value.dtype), value.shape, value.strides, not value.readonly)
                return DeviceArray(home, self.team, layout, value.offset)
            value = self.here(value)
        root = value.root
        if not stays or any(root is one.root for one in self.arguments) or (root.home is not None and root.home.frozen):
            return value.on_host()
        if root.home is None:
            self.entered[Home.of(root, self.team.devices)] = root
        made = DeviceArray(root.home, self.team, value.layout, value.offset)
        if self.lent is not None and value.has_host:
            self.lent.made[id(value.host)] = value.host, self.lent.residents.leaving(made)
        return made


def _references(owner: Sequence[Any]) -> int:
    return sys.getrefcount(owner) + sys.getrefcount(owner[0])


def _alone() -> int:
    """The references to memory of a root that nothing else has."""
    root = Root(Memories(()), None, 0, (np.empty(0),), False)
    return _references(root.owner)


_ALONE = _alone()


def _is_held(root: Root) -> bool:
    """Whether something besides a root has an array in its memory."""
    return len(root.owner) != 1 or _references(root.owner) > _ALONE


def entering(value: Any, kind: object) -> Any:
    """An argument, or what Python has given, as host code keeps values of its type."""
    if not isinstance(kind, Scalar):
        return value
    made = scalar(value, kind.dtype)
    return made.item() if kind.dtype in ("int64", "bool") else made


def leaving(value: Any, kind: object) -> Any:
    """A value of host code as Python sees it."""
    if not isinstance(kind, Scalar):
        return value
    made = scalar(value, kind.dtype)
    return made.item() if kind.python else made
