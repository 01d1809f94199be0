"""Which calls of a function Python runs: found by signature, and for calls that come often, by less than that.

A call whose signature cannot be compiled is *refused*: plain Python runs it, and every later one like it. To find the
signature again takes some thirty microseconds, many times what the NumPy calls in a small function take. So calls are
also told apart by their *kind*, the classes of the arguments with the dtypes and ranks of arrays, which takes one or
two. A kind of which `SETTLED` calls have been refused and none has been compiled goes straight to Python.

A kind says less than a signature (nothing of layouts, of numbers that code is specialized by, of globals), so some
call of a settled kind might be compiled after all. Python's answer is never wrong, only slower; and every now and then,
ever more rarely, a call of a settled kind is looked at in full again.

Calls that compiled code has given up, so that Python runs them from the beginning, are told apart in the same way: the
code has been tried by then, and what remains is to know that nothing else is to be done.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from types import FunctionType
from typing import Any, Final

import numpy as np

from parakeet_py.hybrid.devices.device_detection import some_live_elsewhere
from parakeet_py.signature import Signature

SETTLED: Final = 4  # refused calls of a kind
FIRST_LOOK: Final = 256  # calls of a settled kind until one is looked at in full; then twice as many
MAX_KINDS: Final = 64  # of one function
FEW: Final = 16  # items of a list that are all looked at; Python may run a call with arrays of devices, too
_OWN: Final = frozenset((str, bool, type(None)))  # whose values say which way a function goes
_NUMBERS: Final = frozenset((int, float, complex, np.float64, np.int64))
_MIXED: Final = -1


class _Settling:
    """What is known of the calls of one kind."""

    __slots__ = ("count", "left", "look")

    def __init__(self) -> None:
        self.count = 0  # refused calls, or _MIXED
        self.left = self.look = FIRST_LOOK  # calls that go by until one is looked at in full; of how many

    def note(self) -> None:
        """One more call has been refused."""
        if self.count != _MIXED:
            self.count = min(self.count + 1, SETTLED)

    def goes_by(self) -> bool:
        """Is this call none that is looked at in full?"""
        if self.count != SETTLED:
            return False
        self.left -= 1
        if self.left >= 0:
            return True
        self.look *= 2
        self.left = self.look
        return False


class Refusals:
    """The calls of one function that plain Python runs."""

    __slots__ = ("_kinds", "_left", "_reasons", "everything")

    def __init__(self) -> None:
        self._reasons: dict[Signature, str] = {}
        self._kinds: dict[Hashable, _Settling] = {}
        self._left: dict[Hashable, _Settling] = {}  # of calls that compiled code has given up
        self.everything = False  # no call will be compiled any more

    def __contains__(self, signature: Signature) -> bool:
        return signature in self._reasons

    def __len__(self) -> int:
        return len(self._reasons)

    def __iter__(self) -> Iterator[Signature]:
        return iter(self._reasons)

    def add(self, signature: Signature, reason: str) -> None:
        """No call with this signature is compiled from now on."""
        self._reasons[signature] = reason

    def reason(self, signature: Signature) -> str:
        """Why calls with a signature are refused."""
        return self._reasons[signature]

    def clear(self) -> None:
        """Nothing is refused yet."""
        for found in (self._reasons, self._kinds, self._left):
            found.clear()
        self.everything = False

    def settle(self, normal: Sequence[Any]) -> None:
        """A call in positional form has been refused."""
        _note(self._kinds, kind_of(normal))

    def unsettle(self, normal: Sequence[Any]) -> None:
        """A call in positional form has been compiled."""
        if self._kinds:
            self._kinds.setdefault(kind_of(normal), _Settling()).count = _MIXED
        self._left.clear()

    def cover(self, normal: Sequence[Any]) -> bool:
        """Does a call in positional form go straight to Python?"""
        if self.everything:
            return not some_live_elsewhere(normal)
        if not self._kinds:
            return False
        found = self._kinds.get(kind_of(normal))
        return found is not None and found.goes_by()

    def leave(self, normal: Sequence[Any]) -> None:
        """Compiled code has given a call up; Python runs it."""
        _note(self._left, _closer_kind_of(normal))

    def is_left(self, normal: Sequence[Any]) -> bool:
        """Does a call that no compiled code has taken go straight to Python?"""
        if not self._left:
            return False
        found = self._left.get(_closer_kind_of(normal))
        return found is not None and found.goes_by()


def _note(kinds: dict[Hashable, _Settling], kind: Hashable) -> None:
    """A call of a kind has been refused."""
    found = kinds.get(kind)
    if found is None and kind is not None and len(kinds) < MAX_KINDS:
        found = kinds[kind] = _Settling()
    if found is not None:
        found.note()


def _closer_kind_of(values: Sequence[Any]) -> Hashable:
    """What a call's arguments are, with the order of arrays and whether they are empty; None as `kind_of`."""
    kind = kind_of(values)
    if kind is None:
        return None
    arrays = [value for value in values if type(value) is np.ndarray]
    return kind, *[(one.size == 0, one.flags.c_contiguous, one.flags.f_contiguous) for one in arrays]


def kind_of(values: Sequence[Any]) -> Hashable:
    """What a call's arguments are, roughly; None if some may live on a device."""
    found: list[Any] = []
    for value in values:
        cls = type(value)
        if cls is np.ndarray:
            found.append(value.dtype)
            found.append(value.ndim)
        elif cls in _NUMBERS:
            found.append(cls)
        elif cls in _OWN:
            found.append(value)
        elif cls is list or cls is tuple:
            kind = kind_of(value[:1])
            if kind is None or some_live_elsewhere(value if len(value) <= FEW else (value[-1],)):
                return None
            found.append((cls, kind))
        elif some_live_elsewhere((value,)):
            return None
        else:
            found.append(value.__code__ if cls is FunctionType else cls)
    return tuple(found)
