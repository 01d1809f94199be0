"""What is known of a function before the specializer walks it: a set of facts, which only grows.

The types of a call do not say everything that decides types: which axis `x.sum(axis)` removes is a value. A walk of the
specializer that finds out what it would have had to know ends with facts (`typed_ir.specialize.restarts`); they are
added to the set, and the next walk begins with it. Each fact is a record. Those here are about the function, whatever
the types of a call: they say what the signature of a call looks like, and are kept on the disk. Those of the
specializer (`of_signature`) are about calls of one signature, and are lost with the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, Self, TypeVar

from parakeet_py.base.fast_dataclass import record
from parakeet_py.signature.attribute_sources import OF_ALL, OF_ARGUMENTS, is_of_instances, of_arguments, variable_of
from parakeet_py.signature.specs import Source

Place = int | Source
"""A parameter by its position, or a hidden argument."""


@record
class Fact:
    """Something that a walk has to know."""

    of_signature = False


@record
class HiddenArgument(Fact):
    """The function reads a global, a cell, or an attribute of what an argument or a variable holds."""

    source: Source


@record
class KnownValue(Fact):
    """An argument is part of the signature by its value."""

    place: Place


@record
class WholeList(Fact):
    """A list is that very object, whose items are not looked at."""

    place: Place


@record
class ObjectsInList(Fact):
    """The items of a list are objects, whose attributes are not read as columns."""

    place: Place


@record
class Characters(Fact):
    """A string is read character by character."""

    parameter: int


@record
class FewerAttributes(Fact):
    """Only attributes of arguments (`OF_ARGUMENTS`), or none at all (`OF_NONE`), are hidden arguments."""

    owners: int


@record
class MissingAttribute(Fact):
    """The same where a call has an object without an attribute: others with this signature have to do without, too."""

    owners: int
    of_signature = True


@record
class ItemsOfLists(Fact):
    """Lists, short ones (of at most `MAX_ITEMS` numbers) or long ones, are not read into arrays."""

    long: bool


@record
class ValuesOfStrings(Fact):
    """Strings are known by their values, `Characters` or not."""


_KINDS: dict[str, type[Fact]] = {
    kind.__name__: kind
    for kind in (
        *(HiddenArgument, KnownValue, WholeList, ObjectsInList, Characters),
        *(FewerAttributes, ItemsOfLists, ValuesOfStrings),
    )
}
F = TypeVar("F", bound=Fact)


class Facts:
    """A set of facts, in the order in which they were found.

    Attributes
    ----------
    hidden : where hidden arguments are read from, in order
    fields : whose attributes may be hidden arguments (`attribute_sources`)
    values : places of arguments that are specialized by value
    whole : places of lists that are taken as objects
    texts : positions of parameters whose strings are read character by character; `takes_texts`: may there be any?
    long_lists, short_lists : are lists of more than `MAX_ITEMS` numbers read into arrays, and shorter ones?
    """

    __slots__ = (
        "_known",
        "fields",
        "hidden",
        "long_lists",
        "short_lists",
        "takes_texts",
        "texts",
        "values",
        "whole",
    )

    def __init__(self, known: Iterable[Fact] = ()) -> None:
        self._known = dict.fromkeys(known)
        self._look()

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._known)

    def __contains__(self, fact: Fact) -> bool:
        return fact in self._known

    def add(self, facts: Iterable[Fact]) -> bool:
        """Add facts; is one of them new?"""
        before = len(self._known)
        self._known.update(dict.fromkeys(facts))
        if len(self._known) == before:
            return False
        self._look()
        return True

    def of(self, kind: type[F]) -> tuple[F, ...]:
        """All facts of one kind."""
        return tuple(fact for fact in self._known if type(fact) is kind)

    def _look(self) -> None:
        fewer = [one.owners for one in self.of(FewerAttributes)] + [one.owners for one in self.of(MissingAttribute)]
        self.fields = min(fewer, default=OF_ALL)
        found = (one.source for one in self.of(HiddenArgument))
        self.hidden = [source for source in found if self._is_read(source)]
        self.values = frozenset(one.place for one in self.of(KnownValue))
        self.whole = frozenset(one.place for one in self.of(WholeList))
        self.takes_texts = ValuesOfStrings() not in self._known
        self.texts = [one.parameter for one in self.of(Characters)] if self.takes_texts else []
        self.long_lists = ItemsOfLists(True) not in self._known
        self.short_lists = ItemsOfLists(False) not in self._known

    def _is_read(self, source: Source) -> bool:
        if is_argument(source):
            return True
        if is_of_instances(source[-1]) and ObjectsInList(place_of(source[:-1])) in self._known:
            return False
        if is_held(source):
            return self.fields == OF_ALL
        return self.fields >= OF_ARGUMENTS or not of_arguments(source)

    def to_json(self) -> dict[str, Any]:
        """Those that are about the function."""
        kept = [fact for fact in self._known if not fact.of_signature]
        return {"facts": [[type(one).__name__, *(getattr(one, part.name) for part in fields(one))] for one in kept]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(_KINDS[name](*map(_hashable, held)) for name, *held in data["facts"])


def place_of(source: Source) -> Place:
    """The place of what is read from there: a parameter, or a hidden argument."""
    return int(source[1]) if is_argument(source) else source


def is_argument(source: Source) -> bool:
    """Is a hidden argument one of the arguments themselves, whose object is asked for beside its items?"""
    return source[0] == "field" and len(source) == 2


def is_held(source: Source) -> bool:
    """Is a hidden argument read from an object that a variable holds?"""
    return variable_of(source) != source


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
