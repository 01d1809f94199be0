"""Asynchronous copies into shared memory that have not been waited for.

A copy belongs to the group that its thread commits next. Waiting for all but the last n groups completes what was
issued before them; until then its bytes must not be read, and a kernel that does is an error.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.execute.lanes import Lanes
from parakeet_py.ptx.emulator.execute.launch import Launch
from parakeet_py.ptx.emulator.front.kinds import Array


class Copies:
    """The copies under way of the blocks in flight; memory is counted in pieces of some bytes."""

    def __init__(self, machine: Launch, piece: int) -> None:
        self.machine = machine
        self.piece = piece
        self._owner: Array | None = None  # of each piece: the lane that copies there, plus one
        self._group: Array = np.zeros(0, dtype=np.int64)
        self._commits: Array = np.zeros(0, dtype=np.int64)

    def _grow(self) -> Array:
        pieces = self.machine.shared_memory.shape[0] // self.piece
        lanes = self.machine.slot_count * self.machine.slot_lanes
        owner = self._owner if self._owner is not None else np.zeros(0, dtype=np.int64)
        if owner.shape[0] < pieces or self._commits.shape[0] < lanes:
            owner = np.concatenate([owner, np.zeros(pieces - owner.shape[0], dtype=np.int64)])
            self._group = np.concatenate([self._group, np.zeros(pieces - self._group.shape[0], dtype=np.int64)])
            self._commits = np.concatenate([self._commits, np.zeros(lanes - self._commits.shape[0], dtype=np.int64)])
        self._owner = owner
        return owner

    def begin(self, lanes: Lanes, target: Array, size: int) -> None:
        """Copies of `size` bytes to an address for each lane."""
        owner = self._grow()
        first = (lanes.table("shared_base") + target.view(np.int64)) // self.piece
        pieces = np.broadcast_to(first, (lanes.n,))[:, None] + np.arange(size // self.piece)
        owner[pieces] = lanes.index[:, None] + 1
        self._group[pieces] = self._commits[lanes.index][:, None]

    def commit(self, lanes: Lanes) -> None:
        """The end of a group."""
        self._grow()
        self._commits[lanes.index] += 1

    def wait(self, lanes: Lanes, left: int | None) -> None:
        """Complete all groups but the last `left`; None: everything issued."""
        owner = self._grow()
        pending = np.flatnonzero(owner)
        whose = owner[pending] - 1
        waits = np.zeros(self._commits.shape[0], dtype=np.bool_)
        waits[lanes.index] = True
        done = waits[whose]
        if left is not None:
            done &= self._group[pending] < self._commits[whose] - left
        owner[pending[done]] = 0
        if not owner.any():
            self._owner = None

    def pending(self, pieces: Array) -> Array | None:
        """Which pieces have copies under way; None if there are none at all."""
        return None if self._owner is None else self._grow().take(pieces) != 0
