"""What ends the walk of the specializer early, each with a way out.

A `Restart` is raised deep inside a function that is being specialized, where a fact (`signature.facts`) is missing
without which the walk cannot go on. Where it can go on with a value that is good enough to look for more, the fact is
noted (`WalkFacts.note`), and the walk starts again at its end with all that it has found. What it has found in time, so
that it need not start again, is known to later walks (`WalkFacts.learned`). `compile.specialize_call` is the loop: it
adds facts to what is known until a walk misses none, which ends because each fact is added once.

`NeedObservation` asks for what only a call can show. `UnsupportedError` (in `errors`) is the one without an answer:
Python runs the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend import ssa
from parakeet_py.signature.facts import Fact
from parakeet_py.signature.specs import Source

STRICT = "with strict=True nothing is handed back to Python"
Site = tuple[Any, ...]
"""Where in a walk something is done: the path of inlined calls, and the place in the source."""


# ---- facts about calls of one signature ------------------------------------------------------------------------------


@record
class OfSignature(Fact):
    of_signature = True


@record
class RealView(OfSignature):
    """An operation gives a view, not a copy that stands for one (`deferred_views`)."""

    site: Site


@record
class ChangingInstance(OfSignature):
    """An instance that is made somewhere changes (`instances`)."""

    site: Site


@record
class InstanceAttribute(OfSignature):
    """An instance that is made somewhere gets an attribute in a branch or loop."""

    site: Site
    name: str


@record
class ListOfPython(OfSignature):
    """A list that an operation done by Python gives is an object, as Python is given it again (`watched_lists`)."""

    key: Any


@record
class RecordsOfPython(OfSignature):
    """What an index of an array of records gives is NumPy's own object, as it is not only its fields that are used
    (`record_arrays`)."""

    site: Site


@record
class ContainerOfPython(OfSignature):
    """A list or dict that a statement makes is an object, as Python is given it and may keep it (`made_containers`)."""

    site: Site


@record
class ReferencedItems(OfSignature):
    """Instances of a class change in lists (`instance_lists`)."""

    cls: Any


@record
class PythonMakesInstances(OfSignature):
    """Python makes the instances, as compiled code could not: it would have raised `error`."""

    error: UnsupportedError = field(compare=False)


@record
class AssignedAttribute(OfSignature):
    """The function assigns an attribute of an argument (`assigned_attributes`)."""

    source: Source


@record
class AssignedColumn(OfSignature):
    """The function assigns an attribute of the items of a list of instances (`instance_columns`)."""

    column: Source


@record
class HandlerOfPython(OfSignature):
    """What a handler of exceptions calls may ask which one is handled: only Python runs the handler (`guarded`)."""

    filename: str
    handler: ssa.Handler


@record
class WrittenOut(OfSignature):
    """A loop is written out, as its index has to be known by value."""

    number: int  # its `id`
    loop: ssa.For = field(compare=False)

    @staticmethod
    def of(loop: ssa.For) -> WrittenOut:
        return WrittenOut(id(loop), loop)


# ---- exceptions ------------------------------------------------------------------------------------------------------


class Restart(Exception):
    """The next walk begins with these facts; if they are known and still asked for, `what` is why the function is not
    compiled."""

    def __init__(self, facts: Sequence[Fact], what: str = "") -> None:
        super().__init__(what)
        self.facts = tuple(facts)
        self.what = what


class NeedObservation(Exception):
    """The result type of an opaque call is not known yet; `error` says so to the user, `reason` why it is one."""

    def __init__(self, key: tuple[Any, ...], reason: str, error: UnsupportedError) -> None:
        super().__init__(error.message)
        self.key = key
        self.reason = reason
        self.error = error


class TooDeep(UnsupportedError):
    """A recursion that inlining does not bring to an end; what called the recursive function first may hand it back."""


class RecordsNeeded(UnsupportedError):
    """Records are used as an object, which Python has not made at this `site`."""

    site: Site = ()


class NotGrown(UnsupportedError):
    """A list whose length depends on values has items that columns cannot hold; a loop that is unrolled may do."""


class ArrayElements(UnsupportedError):
    """A comprehension whose elements are arrays of any shape: a loop makes a list of them."""


class Sequential(UnsupportedError):
    """Something for a loop, met in the body of a parallel operator; a comprehension can be a loop instead."""


class HandBack(Exception):
    """One operation is not compiled: Python does it, the rest stays compiled."""
