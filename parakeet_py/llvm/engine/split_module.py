"""Dividing a module of LLVM IR text, so that its parts can be compiled side by side.

A compiled function is a host part (the function itself, its gate, its procedures) and regions, which it starts by
address and which call nothing of it. A region can therefore be compiled as a module of its own. What it uses beside
declarations (helper functions, tables) is internal and constant, so that each part has its own copy. `divide` reads
the text as it is written here: what stands on the top level begins at the first column, a function ends with `}`.

    host, regions, regions...       the host declares the regions that it has lost, which are no longer internal

Where the function does nothing but start regions (`imp.schedule.effects.starts_only`), `host_apart` leaves none of them
in the host part: its code needs few of LLVM's passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from parakeet_py.base.fast_dataclass import record

__all__ = ["divide", "host_apart", "is_large", "work_of"]

LOOP = 100
"""What the passes over a loop take, in lines without loops."""
LEAST = 600
"""Work, in lines, that is worth a module and a thread of its own: some 25 ms, of which three are lost by it."""

LONG = 200
"""Lines of a host part that are worth a module of their own (the gate is not optimised anyway)."""

LARGE = 1500
"""Lines of a host part, its gate included, in which selecting instructions and registers with care takes longer than
all its calls would gain: 40 ms, for some 3 % of a call that has next to nothing to do."""

_NAME = r'@(?:"[^"\n]*"|[\w$.]+)'
_ANY = re.compile(_NAME)
_DEFINED = re.compile(rf"(?:define [^@\n]*)?({_NAME})(?: = |\()")
_REGION = re.compile(rf"define internal (void {_NAME})\(ptr %ctx, ptr noalias readonly %frame, i64 %lo, i64 %hi\) ")
_DECLARED = "declare {}(ptr, ptr noalias readonly, i64, i64) nounwind"


@record
class _Regions:
    """A module's top level.

    Attributes
    ----------
    items : what stands there
    definitions : what has a name, by it
    regions : the names of the regions
    movable : regions that may be in another module, and what each needs there
    """

    items: list[str]
    definitions: dict[str, str]
    regions: frozenset[str]
    movable: dict[str, set[str]]

    def parts(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """The modules, with these regions in those behind the first."""
        moved = {name for group in groups for name in group}
        left = [_declaration(item) if _defined(item) in moved else item for item in self.items]
        shared = [item for item in self.items if _defined(item) is None]
        parts = ["\n".join(left) + "\n"]
        for group in groups:
            copied = {other for name in group for other in self.movable[name]}
            own = [
                item.replace("define internal ", "define ", 1)
                for name, item in self.definitions.items()
                if name in group
            ]
            needed = [item for name, item in self.definitions.items() if name in copied]
            parts.append("\n".join([*shared, *needed, *own]) + "\n")
        return parts


def _regions_of(text: str) -> _Regions:
    items = _items(text)
    definitions = {name: item for item in items if (name := _defined(item)) is not None}
    regions = [name for name, item in definitions.items() if _REGION.match(item)]
    uses = {name: _used(item, definitions) - {name} for name, item in definitions.items()}
    everywhere = {name for item in items if _defined(item) is None for name in _used(item, definitions)}
    movable: dict[str, set[str]] = {}
    for name in regions:
        needed = _closure({name} | everywhere, uses) - {name}
        if all(_may_be_copied(definitions[other]) for other in needed):
            movable[name] = needed
    return _Regions(items, definitions, frozenset(regions), movable)


def divide(text: str, most: int) -> list[str]:
    """The module as up to `most` modules, of which the first has all that others may want to call.

    Each of the others defines, as symbols seen from outside, what the first refers to; they refer to none of them. A
    module that is not worth it stays one.
    """
    if most < 2 or work_of(text) < 2 * LEAST:
        return [text]
    found = _regions_of(text)
    works = {name: work_of(found.definitions[name]) for name in found.movable}
    moved = sum(works.values())
    count = min(most, 1 + moved // LEAST, work_of(text) // LEAST)
    if count < 2:
        return [text]
    groups = _shares(works, [work_of(text) - moved, *(0 for _ in range(count - 1))])[1:]
    return found.parts([group for group in groups if group])


def host_apart(text: str, most: int) -> list[str]:
    """The module as up to `most` modules of regions, and before them a module of all the rest; none, if that is short
    or has loops of its own: in functions that may be called in loops, or in those that both need."""
    if text.count("\n") < LONG:
        return []
    found = _regions_of(text)
    rest = [item for name, item in found.definitions.items() if name not in found.regions and not item.startswith("@")]
    helpers = [item for item in rest if item.startswith("define internal ")]
    lines = sum(item.count("\n") for item in rest if " optnone " not in item[: item.index("\n")])
    if lines < LONG or len(found.movable) < len(found.regions) or any(" phi " in item for item in helpers):
        return []
    works = {name: work_of(found.definitions[name]) for name in found.movable}
    groups = _shares(works, [0] * max(1, min(most, sum(works.values()) // LEAST)))
    return found.parts([group for group in groups if group])


def is_large(text: str) -> bool:
    """Is a host part so long that its instructions are selected quickly?"""
    return text.count("\n") >= LARGE


def _items(text: str) -> list[str]:
    """What stands on the top level, one by one."""
    found: list[str] = []
    function: list[str] = []
    for line in text.split("\n"):
        if function:
            function.append(line)
            if line == "}":
                found.append("\n".join(function))
                function = []
        elif line.startswith("define "):
            function = [line]
        elif line:
            found.append(line)
    return found


def _defined(item: str) -> str | None:
    """The name that an item defines; None for what all parts have: declarations, attributes, metadata, and the list of
    declarations that only attributes mention."""
    match = _DEFINED.match(item)
    return None if match is None or match[1].startswith("@llvm.") else match[1]


def _used(item: str, definitions: Iterable[str]) -> set[str]:
    return set(_ANY.findall(item)).intersection(definitions)


def _closure(names: set[str], uses: dict[str, set[str]]) -> set[str]:
    """Definitions and all that they use, directly or not."""
    found = set(names)
    waiting = list(names)
    while waiting:
        for other in uses[waiting.pop()] - found:
            found.add(other)
            waiting.append(other)
    return found


def _may_be_copied(item: str) -> bool:
    """Is it a helper function, or a table, of which there may be several?"""
    if item.startswith("@"):
        return " constant " in item
    helper = item.startswith(("define internal ", "define weak ")) and " fastcc " not in item
    return helper and not _REGION.match(item)


def work_of(item: str) -> int:
    """What compiling some text takes, in lines."""
    return item.count("\n") + LOOP * item.count(" !llvm.loop ")


def _shares(works: Mapping[str, int], sums: list[int]) -> list[list[str]]:
    """The regions of each part, so that the parts are about as much work, with what is in them already (`sums`); the
    longest regions first."""
    groups: list[list[str]] = [[] for _ in sums]
    for name in sorted(works, key=lambda name: -works[name]):
        place = sums.index(min(sums))
        groups[place].append(name)
        sums[place] += works[name]
    return groups


def _declaration(item: str) -> str:
    match = _REGION.match(item)
    assert match is not None
    return _DECLARED.format(match[1])
