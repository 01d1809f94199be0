"""Which mistakes of a kernel the emulator looks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checks:
    """What is an error besides what always is (accesses out of bounds, misaligned, to freed or foreign memory).

    Attributes
    ----------
    races : bool
        Accesses of different threads to one place, in shared or device memory, that nothing orders.
    uninitialised_shared, uninitialised_local : bool
        Reads of shared and local memory that nothing has written.
    uninitialised_global : bool
        Reads of device memory that neither a copy nor a store has written.
    exited_barriers : bool
        A barrier passed although threads of the block have ended before it.
    inactive_shuffles : bool
        Shuffles that read a lane which does not take part.
    max_steps : int
        How many blocks of code a launch may execute before it counts as endless.
    """

    races: bool = True
    uninitialised_shared: bool = True
    uninitialised_local: bool = True
    uninitialised_global: bool = False
    exited_barriers: bool = True
    inactive_shuffles: bool = True
    max_steps: int = 20_000_000


NO_CHECKS = Checks(
    races=False,
    uninitialised_shared=False,
    uninitialised_local=False,
    exited_barriers=False,
    inactive_shuffles=False,
)
