"""Dividing a module of LLVM IR text, so that its parts can be compiled side by side.

A compiled function is a host part (the function itself, its gate, its procedures) and regions, which it starts by
address and which call nothing of it. A region can therefore be compiled as a module of its own. What it uses beside
declarations (helper functions, tables) is internal and constant, so that each part has its own copy. `divide` reads
the text as it is written here: what stands on the top level begins at the first column, a function ends with `}`.

    host, regions, regions...       the host declares the regions that it has lost, which are no longer internal
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["divide", "work_of"]

LOOP = 100
"""What the passes over a loop take, in lines without loops."""
LEAST = 600
"""Work, in lines, that is worth a module and a thread of its own: some 25 ms, of which three are lost by it."""

_NAME = r'@(?:"[^"\n]*"|[\w$.]+)'
_ANY = re.compile(_NAME)
_DEFINED = re.compile(rf"(?:define [^@\n]*)?({_NAME})(?: = |\()")
_REGION = re.compile(rf"define internal (void {_NAME})\(ptr %ctx, ptr noalias readonly %frame, i64 %lo, i64 %hi\) ")
_DECLARED = "declare {}(ptr, ptr noalias readonly, i64, i64) nounwind"


def divide(text: str, most: int) -> list[str]:
    """The module as up to `most` modules, of which the first has all that others may want to call.

    Each of the others defines, as symbols seen from outside, what the first refers to; they refer to none of them. A
    module that is not worth it stays one.
    """
    if most < 2 or work_of(text) < 2 * LEAST:
        return [text]
    items = _items(text)
    definitions = {name: item for item in items if (name := _defined(item)) is not None}
    regions = {name: item for name, item in definitions.items() if _REGION.match(item)}
    uses = {name: _used(item, definitions) - {name} for name, item in definitions.items()}
    shared = [item for item in items if _defined(item) is None]
    everywhere = {name for item in shared for name in _used(item, definitions)}
    movable: dict[str, set[str]] = {}
    for name in regions:
        needed = _closure({name} | everywhere, uses) - {name}
        if all(_may_be_copied(definitions[other]) for other in needed):
            movable[name] = needed
    groups = _shares({name: work_of(regions[name]) for name in movable}, work_of(text), most)
    if not groups:
        return [text]
    moved = {name for group in groups for name in group}
    left = [_declaration(item) if _defined(item) in moved else item for item in items]
    parts = ["\n".join(left) + "\n"]
    for group in groups:
        copied = {other for name in group for other in movable[name]}
        own = [regions[name].replace("define internal ", "define ", 1) for name in group]
        parts.append("\n".join([*shared, *(definitions[name] for name in definitions if name in copied), *own]) + "\n")
    return parts


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


def _shares(movable: dict[str, int], all_work: int, most: int) -> list[list[str]]:
    """The regions of each part, so that the parts and what stays are about as much work; the longest regions first."""
    work = sum(movable.values())
    count = min(most, 1 + work // LEAST, all_work // LEAST)
    if count < 2:
        return []
    groups: list[list[str]] = [[] for _ in range(count)]  # the first one stays
    sums = [all_work - work, *(0 for _ in range(count - 1))]
    for name in sorted(movable, key=lambda name: -movable[name]):
        place = sums.index(min(sums))
        groups[place].append(name)
        sums[place] += movable[name]
    return [group for group in groups[1:] if group]


def _declaration(item: str) -> str:
    match = _REGION.match(item)
    assert match is not None
    return _DECLARED.format(match[1])
