"""The threads that execute a block together.

A thread in flight is a *lane*: an index into the tables of the machine, in which each block of threads in flight has a
*slot* of whole warps. `Lanes` is a set of lanes in ascending order with what is known of them, worked out when first
asked for and then shared by every instruction they execute. It also carries their call stack: threads that are in
different functions, or were called from different places, are never in one set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array

if TYPE_CHECKING:
    from parakeet_py.ptx.emulator.execute.launch import Launch

Values = tuple[Array, ...]
Transfer = tuple[int, "Lanes", Values]  # the block that lanes go on with, and what they take along


@dataclass(frozen=True, slots=True)
class Frame:
    """A caller that waits: the block it goes on with, and the registers it wants there after the results."""

    block: int
    saved: Values


def taken(values: Values, chosen: Array, n: int) -> Values:
    """The values of some lanes; a value of one element stands for all lanes and stays."""
    return tuple(v if v.shape[0] == 1 and n != 1 else v.take(chosen, axis=0) for v in values)


class Lanes:
    """A set of lanes; `n` is how many, `index` their numbers, `level` how often they have given way in vain."""

    __slots__ = ("_cache", "index", "level", "machine", "n", "stack", "stack_key")

    def __init__(self, machine: Launch, index: Array, level: int = 0, stack: tuple[Frame, ...] = ()) -> None:
        self.machine = machine
        self.index = index
        self.n = int(index.shape[0])
        self.level = level
        self.stack = stack
        self.stack_key = tuple(frame.block for frame in stack) if stack else ()
        self._cache: dict[str, Array] = {}

    def select(self, chosen: Array) -> Lanes:
        """Some of the lanes, by their places in this set."""
        stack = self.stack
        if stack:
            stack = tuple(Frame(f.block, taken(f.saved, chosen, self.n)) for f in stack)
        return Lanes(self.machine, self.index.take(chosen), self.level, stack)

    def with_stack(self, stack: tuple[Frame, ...]) -> Lanes:
        """The same lanes with another call stack."""
        lanes = Lanes(self.machine, self.index, self.level, stack)
        lanes._cache = self._cache
        return lanes

    def table(self, name: str) -> Array:
        """What a table of the machine says of these lanes."""
        found = self._cache.get(name)
        if found is None:
            whole = self.machine.tables[name]
            if whole.shape[0] == 1 or self.n == whole.shape[0]:
                found = whole
            else:
                found = whole.take(self.index)
            self._cache[name] = found
        return found

    def warps(self) -> Array:
        """The warp of each lane, as an index over all warps in flight."""
        found = self._cache.get("warp")
        if found is None:
            found = self._cache["warp"] = self.index >> 5
        return found

    def slots(self) -> Array:
        """The block of threads of each lane, as an index over those in flight."""
        found = self._cache.get("slot")
        if found is None:
            found = self._cache["slot"] = self.index // self.machine.slot_lanes
        return found

    def bits(self) -> Array:
        """The bit of each lane in a mask of its warp."""
        found = self._cache.get("bit")
        if found is None:
            found = self._cache["bit"] = np.uint32(1) << (self.index & 31).astype(np.uint32)
        return found

    def present(self) -> Array:
        """For every warp in flight the mask of the lanes that are in this set."""
        found = self._cache.get("present")
        if found is None:
            found = np.zeros(self.machine.warp_count, dtype=np.uint32)
            # Lanes ascend, so those of a warp are neighbours.
            warps = self.warps()
            starts = np.flatnonzero(np.diff(warps, prepend=-1))
            found[warps[starts]] = np.bitwise_or.reduceat(self.bits(), starts)
            self._cache["present"] = found
        return found

    def warps_touched(self) -> int:
        """How many warps these lanes belong to."""
        return int(np.count_nonzero(np.diff(self.warps()))) + 1 if self.n else 0


def merged(machine: Launch, parts: Sequence[tuple[Lanes, Values]]) -> tuple[Lanes, Values]:
    """Several disjoint sets of lanes at the same place as one, with their registers."""
    if len(parts) == 1:
        return parts[0]
    index = np.concatenate([lanes.index for lanes, _ in parts])
    order: Array | None = None
    if (np.diff(index) < 0).any():
        order = np.argsort(index, kind="stable")
        index = index.take(order)
    counts = [lanes.n for lanes, _ in parts]
    columns = len(parts[0][1])
    values = tuple(_merged_value([values[k] for _, values in parts], counts, order) for k in range(columns))
    first = parts[0][0]
    stack: list[Frame] = []
    for depth, frame in enumerate(first.stack):
        saved = tuple(
            _merged_value([lanes.stack[depth].saved[k] for lanes, _ in parts], counts, order)
            for k in range(len(frame.saved))
        )
        stack.append(Frame(frame.block, saved))
    level = min(lanes.level for lanes, _ in parts)
    return Lanes(machine, index, level, tuple(stack)), values


def _merged_value(pieces: list[Array], counts: list[int], order: Array | None) -> Array:
    first = pieces[0]
    if all(p is first for p in pieces) and first.shape[0] == 1:
        return first
    if all(p.shape[0] == 1 for p in pieces):
        bits = first.tobytes()
        if all(p.tobytes() == bits for p in pieces):
            return first
    kind = f"u{first.dtype.itemsize}" if first.dtype.kind == "f" else first.dtype
    full = [
        p.view(kind) if p.shape[0] == n else np.broadcast_to(p.view(kind), (n, *p.shape[1:]))
        for p, n in zip(pieces, counts, strict=True)
    ]
    whole = np.concatenate(full)
    if order is not None:
        whole = whole.take(order, axis=0)
    return whole.view(first.dtype)
