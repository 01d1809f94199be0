"""`DeviceArray`s among the arguments of a call on a team.

For the call each is represented by its array of the host, valid or not, as everything within such a call is. The roots
of the call come from their homes and go back there, so their bytes stay where they are; arrays that the call makes get
homes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parakeet_py.hybrid.devices.device import Device
from parakeet_py.hybrid.devices.device_detection import leaves_of, mapped
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.residency.blocks import SharedArray
from parakeet_py.hybrid.residency.device_array import DeviceArray, layout_of
from parakeet_py.hybrid.residency.persistent_memory import Home


class Held:
    """The arguments of one call.

    Attributes
    ----------
    team : that the call runs on
    args : the arguments, with arrays of the host in place of `DeviceArray`s
    listed : the results that become Python lists, so that they are fetched
    """

    def __init__(self, team: Team, args: Sequence[Any]) -> None:
        self.team = team
        self.listed: frozenset[int] = frozenset()
        given = [*leaves_of(args)]
        self._arrays = {id(one): one for one in given if isinstance(one, DeviceArray)}
        self._hosts = {id(one._host): one for one in self._arrays.values()}
        self._homes = [*dict.fromkeys(one._home for one in self._arrays.values())]
        self._numpy = [one for one in given if isinstance(one, np.ndarray)]
        self.args = tuple(mapped(arg, lambda one: one._host if isinstance(one, DeviceArray) else one) for arg in args)

    def home_of(self, array: np.ndarray[Any, Any]) -> Home | None:
        """The home that an array of the host is a part of."""
        return next((home for home in self._homes if home.has(array)), None)

    def adopt(self, array: SharedArray, devices: Sequence[Device]) -> None:
        """Give memory that a call has made a home."""
        root = array.root
        if root.size and self.home_of(array.host) is None:
            home = Home(root.address, root.size, root.owner)
            home.leave(root, devices)
            self._homes.append(home)

    def kept(self, array: np.ndarray[Any, Any]) -> Callable[[], None] | None:
        """What puts the elements of an array of the host back as they are now, wherever they are; None if it has no
        home."""
        home = self.home_of(array)
        return None if home is None else home.kept()

    def by_python(self, work: Callable[[], Any]) -> Any:
        """What Python computes from the arrays of the host."""
        for one in self._arrays.values():
            one.bring(None, writes=one._host.flags.writeable)
        return work()

    def leaving(self, value: Any) -> Any:
        """A result, with arrays that stay on the team in place of the call's."""
        return mapped(value, self._leaving)

    def _leaving(self, value: Any) -> Any:
        if type(value) is not np.ndarray or value.dtype.kind not in "biufc":
            return value
        if id(value) in self._hosts:
            return self._hosts[id(value)]
        home = self.home_of(value)
        if home is None:
            if any(one is value or np.may_share_memory(one, value) for one in self._numpy):
                return value
            home = Home(*_extent(value), value)
        offset = value.__array_interface__["data"][0] - home.address if value.size else 0
        return DeviceArray(home, self.team, layout_of(value), offset, value)


def _extent(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    low, high = np.lib.array_utils.byte_bounds(array)
    return low, high - low
