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

from parakeet_py.hybrid.elsewhere import some_live_elsewhere
from parakeet_py.signature import Signature

SETTLED: Final = 4  # refused calls of a kind
FIRST_LOOK: Final = 256  # calls of a settled kind until one is looked at in full; then twice as many
MAX_KINDS: Final = 64  # of one function
_OWN: Final = frozenset((str, bool, type(None)))  # whose values say which way a function goes
_MIXED: Final = -1


class Refusals:
    """The calls of one function that plain Python runs."""

    __slots__ = ("_calls", "_count", "_left", "_look", "_reasons", "everything")

    def __init__(self) -> None:
        self._reasons: dict[Signature, str] = {}
        self._count: dict[Hashable, int] = {}  # refused calls of each kind, or _MIXED
        self._left: dict[Hashable, int] = {}  # calls of each kind that compiled code has given up
        self._calls: dict[Hashable, int] = {}  # of settled kinds, since the last look
        self._look: dict[Hashable, int] = {}  # how many calls go by without one
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
        for found in (self._reasons, self._count, self._left, self._calls, self._look):
            found.clear()
        self.everything = False

    def settle(self, normal: Sequence[Any]) -> None:
        """A call in positional form has been refused."""
        kind = kind_of(normal)
        count = self._count.get(kind, 0)
        if kind is None or count == _MIXED or (count == 0 and len(self._count) >= MAX_KINDS):
            return
        self._count[kind] = min(count + 1, SETTLED)

    def unsettle(self, normal: Sequence[Any]) -> None:
        """A call in positional form has been compiled."""
        if self._count:
            self._count[kind_of(normal)] = _MIXED
        self._left.clear()

    def cover(self, normal: Sequence[Any]) -> bool:
        """Does a call in positional form go straight to Python?"""
        if self.everything:
            return not some_live_elsewhere(normal)
        if not self._count:
            return False
        kind = kind_of(normal)
        return self._count.get(kind) == SETTLED and self._goes_by(kind)

    def leave(self, normal: Sequence[Any]) -> None:
        """Compiled code has given a call up; Python runs it."""
        kind = _closer_kind_of(normal)
        if kind is not None and (kind in self._left or len(self._left) < MAX_KINDS):
            self._left[kind] = min(self._left.get(kind, 0) + 1, SETTLED)

    def is_left(self, normal: Sequence[Any]) -> bool:
        """Does a call that no compiled code has taken go straight to Python?"""
        if not self._left:
            return False
        kind = _closer_kind_of(normal)
        return self._left.get(kind) == SETTLED and self._goes_by(kind)

    def _goes_by(self, kind: Hashable) -> bool:
        """Is this call of a settled kind none that is looked at in full?"""
        calls = self._calls.get(kind, 0) + 1
        look = self._look.get(kind, FIRST_LOOK)
        if calls > look:
            calls, self._look[kind] = 0, 2 * look
        self._calls[kind] = calls
        return calls > 0


def _closer_kind_of(values: Sequence[Any]) -> Hashable:
    """What a call's arguments are, with the order of arrays and whether they are empty; None as `kind_of`."""
    kind = kind_of(values)
    if kind is None:
        return None
    arrays = [value for value in values if type(value) is np.ndarray]
    return kind, *[(one.size == 0, one.flags.c_contiguous, one.flags.f_contiguous) for one in arrays]


def kind_of(values: Sequence[Any]) -> Hashable:
    """What a call's arguments are, roughly; None if some may live on a device."""
    if some_live_elsewhere(values):
        return None
    found: list[Any] = []
    for value in values:
        cls = type(value)
        if cls is np.ndarray:
            found.append((value.dtype, value.ndim))
        elif cls in _OWN:
            found.append(value)
        elif cls is list or cls is tuple:
            found.append((cls, kind_of(value[:1])))
        elif cls is FunctionType:
            found.append(value.__code__)
        else:
            found.append(cls)
    return tuple(found)
