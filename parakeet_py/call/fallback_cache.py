"""Which calls of a function Python runs: found by signature, and for calls that come often, by less than that.

A call whose signature cannot be compiled is *refused*: plain Python runs it, and every later one like it. To find the
signature again takes some thirty microseconds, many times what the NumPy calls in a small function take. So calls are
also distinguished by their *kind*, the classes of the arguments with the dtypes and ranks of arrays, which takes one or
two. A kind of which `SETTLED` calls have been refused and none has been compiled goes straight to Python.

A kind says less than a signature (nothing of layouts, of numbers that code is specialized by, of globals), so some
call of a settled kind might be compiled after all. Python's answer is never wrong, only slower; and every now and then,
ever more rarely, a call of a settled kind is looked at in full again.

Where Python refuses such calls too, there is nothing to tell the user of, and no reason to be near the limit of
signatures: a function that raises for ever new arguments (texts that are no numbers) would use it up. Of these, only
those that came last are remembered, until a call like them does not raise, which may be compiled; and when many have
been refused and none was compiled between them, a new one is compiled as rarely as a call of a settled kind, so that an
exception costs what it costs in Python.

Calls that compiled code has given up, so that Python runs them from the beginning, are distinguished in the same way:
the code has been tried by then, and what remains is to know that nothing else is to be done.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from types import FunctionType
from typing import Any, Final

import numpy as np

from parakeet_py.base.types import ARRAYS
from parakeet_py.hybrid.devices.device_detection import some_live_elsewhere
from parakeet_py.signature.specs import MAX_DEPTH, Signature

SETTLED: Final = 4  # refused calls of a kind
FIRST_LOOK: Final = 256  # calls of a settled kind until one is looked at in full; then twice as many
AGAIN: Final = 64  # calls of a settled kind that go by, one after the other, without one that goes well
AT_GATES: Final = FIRST_LOOK // 4  # as how many calls those count that a gate takes between two that it lets pass
MAX_KINDS: Final = 64  # of one function
MAX_RAISED: Final = 64  # signatures of refused calls that raised which are remembered
MAX_FORGIVEN: Final = 8  # times that calls are looked at anew, since one like those that raised has not
LONG: Final = 8  # items of a tuple; of longer ones the length is not looked at
FEW: Final = 16  # items of a list that are all looked at; Python may run a call with arrays of devices, too
LONGEST_TEXT: Final = 64  # characters of a str that says which way a function goes
_OWN: Final = frozenset((str, bool, type(None)))  # whose values say which way a function goes
_NUMBERS: Final = frozenset((int, float, complex, np.float64, np.int64))
_MIXED: Final = -1


class _Settling:
    """What is known of the calls of one kind."""

    __slots__ = ("count", "left", "look", "untold")

    def __init__(self) -> None:
        self.count = 0  # refused calls, or _MIXED
        self.left = self.look = FIRST_LOOK  # calls that go by until one is looked at in full; of how many
        self.untold: str | None = None  # why calls of the kind are refused, if all have raised in Python

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

    __slots__ = (
        "_forgiven",
        "_in_a_row",
        "_kinds",
        "_left",
        "_raised",
        "_raising",
        "_reasons",
        "everything",
        "on_dask",
        "untold",
    )

    def __init__(self) -> None:
        self._reasons: dict[Signature, str] = {}
        self._raised: dict[Signature, str] = {}  # of calls that raised in Python; those that came last
        self._in_a_row = 0  # new signatures of such calls since something was compiled
        self._raising = _Settling()
        self._forgiven = 0
        self._kinds: dict[Hashable, _Settling] = {}
        self._left: dict[Hashable, _Settling] = {}  # of calls that compiled code has given up
        self.on_dask: dict[tuple[type, ...], int] = {}  # calls with Dask arrays, by the classes of their arguments
        self.everything = False  # no call will be compiled any more
        self.untold = False  # of some kind or signature all calls have raised

    def __contains__(self, signature: Signature) -> bool:
        return signature in self._reasons or signature in self._raised

    def __len__(self) -> int:
        """Signatures whose calls Python takes; those of calls that raised do not count."""
        return len(self._reasons)

    def __iter__(self) -> Iterator[Signature]:
        return iter(self._reasons)

    def add(self, signature: Signature, reason: str) -> None:
        """No call with this signature is compiled from now on."""
        self._raised.pop(signature, None)
        self._reasons[signature] = reason

    def add_raised(self, normal: Sequence[Any], signature: Signature, reason: str) -> None:
        """A call in positional form, with this signature, cannot be compiled, and has raised in Python."""
        found = _note(self._kinds, kind_of(normal))
        if found is not None and found.count == 1:
            found.untold = reason
        if signature in self:
            return
        self.untold = True
        if len(self._raised) >= MAX_RAISED:
            del self._raised[next(iter(self._raised))]
        self._raised[signature] = reason
        self._in_a_row += 1
        if self._in_a_row >= MAX_RAISED:
            self._raising.count = SETTLED

    def raises_again(self) -> bool:
        """Have so many new signatures been refused, whose calls raised, that this one is not even compiled?"""
        return self._in_a_row >= MAX_RAISED and self._raising.goes_by()

    def went_well(self, normal: Sequence[Any], signature: Signature | None = None) -> str | None:
        """A refused call has not raised in Python. None if this is nothing new; if all like it had raised, the next
        one is looked at in full, and the result is empty; after some times of that it says why they are refused.

        The signature is not known if the kind of the call was enough to refuse it.
        """
        kind = self._kinds.get(kind_of(normal))
        reason = None if kind is None else kind.untold
        if signature is not None:
            reason = self._raised.get(signature)
        if reason is not None:
            self._forgiven += 1
            if self._forgiven <= MAX_FORGIVEN:
                self._kinds.pop(kind_of(normal), None)
                reason = ""
            elif kind is not None:
                kind.untold = None
            if signature is None:
                self._raised.clear()
            else:
                self._raised.pop(signature, None)
        self._in_a_row = 0
        self.untold = bool(self._raised) or any(found.untold is not None for found in self._kinds.values())
        return reason

    def reason(self, signature: Signature) -> str:
        """Why calls with a signature are refused."""
        return self._reasons.get(signature) or self._raised[signature]

    def clear(self) -> None:
        """Nothing is refused yet."""
        for found in (self._reasons, self._raised, self._kinds, self._left, self.on_dask):
            found.clear()
        self._in_a_row = self._forgiven = 0
        self.everything = self.untold = False

    def settle(self, normal: Sequence[Any]) -> None:
        """A call in positional form has been refused."""
        _note(self._kinds, kind_of(normal))

    def unsettle(self, normal: Sequence[Any]) -> None:
        """A call in positional form has been compiled."""
        if self._kinds:
            self._kinds.setdefault(kind_of(normal), _Settling()).count = _MIXED
        self._left.clear()
        self._in_a_row = 0

    def cover(self, normal: Sequence[Any]) -> bool:
        """Does a call in positional form go straight to Python?"""
        if self.everything:
            return not some_live_elsewhere(normal)
        if not self._kinds:
            return False
        found = self._kinds.get(kind_of(normal))
        return found is not None and found.goes_by()

    def come_again(self, normal: Sequence[Any]) -> bool:
        """Do so many calls like this one come that a gate may take them, although each of them raises?"""
        found = self._kinds.get(kind_of(normal))
        return found is not None and found.look - found.left >= AGAIN

    def pass_by(self, normal: Sequence[Any]) -> None:
        """A gate takes calls like this one for a while, of which none is counted."""
        found = self._kinds.get(kind_of(normal))
        if found is not None:
            found.left -= AT_GATES

    def leave(self, normal: Sequence[Any]) -> None:
        """Compiled code has given a call up; Python runs it."""
        _note(self._left, _closer_kind_of(normal))

    def is_left(self, normal: Sequence[Any]) -> bool:
        """Does a call that no compiled code has taken go straight to Python?"""
        if not self._left:
            return False
        found = self._left.get(_closer_kind_of(normal))
        return found is not None and found.goes_by()


def _note(kinds: dict[Hashable, _Settling], kind: Hashable) -> _Settling | None:
    """A call of a kind has been refused; what is known of the kind."""
    found = kinds.get(kind)
    if found is None and kind is not None and len(kinds) < MAX_KINDS:
        found = kinds[kind] = _Settling()
    if found is not None:
        found.note()
    return found


def _closer_kind_of(values: Sequence[Any]) -> Hashable:
    """What a call's arguments are, with the order of arrays and whether they are empty; None as `kind_of`."""
    kind = kind_of(values)
    if kind is None:
        return None
    arrays = [value for value in values if type(value) in ARRAYS]
    return kind, *[(one.size == 0, one.flags.c_contiguous, one.flags.f_contiguous) for one in arrays]


def kind_of(values: Sequence[Any], depth: int = 0) -> Hashable:
    """What a call's arguments are, roughly; None if some may live on a device. What is in lists in lists is not told
    apart from `MAX_DEPTH` on: a list may be in itself."""
    found: list[Any] = []
    for value in values:
        cls = type(value)
        if cls in ARRAYS:
            found.append(cls)
            found.append(value.dtype)
            found.append(value.ndim)
        elif cls in _NUMBERS:
            found.append(cls)
        elif cls in _OWN:
            found.append(value if cls is not str or len(value) <= LONGEST_TEXT else cls)
        elif cls is list or cls is tuple:
            kind = kind_of(value[:1], depth + 1) if depth < MAX_DEPTH else ()
            if kind is None or some_live_elsewhere(value if len(value) <= FEW else (value[-1],)):
                return None
            found.append((cls, kind) if cls is list else (cls, kind, min(len(value), LONG)))
        elif some_live_elsewhere((value,)):
            return None
        else:
            found.append(value.__code__ if cls is FunctionType else cls)
    return tuple(found)
