"""What an emulated program can do wrong, each with the place in the PTX text.

Every error names the line of the PTX text, shows it, and says which kernel, which block and which thread. The classes
follow what a reader does next: `PtxSyntaxError` and `UnsupportedPtx` come before anything runs, `LaunchError` is about
the shape of a launch, the rest are faults of the running program. All faults derive from `KernelFault`, so that a
caller that only wants to know that the kernel went wrong catches one class.
"""

from __future__ import annotations

from parakeet_py.base.errors import ParakeetError


class EmulatorError(ParakeetError):
    """Base of all errors of the emulator.

    Parameters
    ----------
    message : str
        What went wrong, as a phrase.
    line : int, optional
        Line of the PTX text, counted from 1.
    source : str
        The text of that line.
    where : str
        Kernel, block and thread in words, when they are known.
    """

    def __init__(self, message: str, line: int | None = None, source: str = "", where: str = "") -> None:
        self.message = message
        self.line = line
        self.source = source.strip()
        self.where = where
        super().__init__(message)

    def __str__(self) -> str:
        text = f"PTX line {self.line}: {self.message}" if self.line is not None else self.message
        if self.where:
            text += f", in {self.where}"
        if self.source:
            text += f"\n    {self.source}"
        return text


class PtxSyntaxError(EmulatorError):
    """The text is not PTX."""


class UnsupportedPtx(EmulatorError):
    """An instruction, modifier or directive that the emulator does not execute; it says which."""


class LaunchError(EmulatorError):
    """Grid, block, shared memory or arguments that no device would accept for this kernel."""


class DeviceOutOfMemory(EmulatorError, MemoryError):
    """An allocation is larger than what the device has left."""


class KernelFault(EmulatorError):
    """Base of everything a running kernel can do wrong."""


class MemoryFault(KernelFault):
    """An access out of bounds, misaligned, to freed memory, or to a pointer that is not the device's."""


class UninitialisedRead(KernelFault):
    """A read of shared, local or (when asked for) device memory that nothing has written."""


class DataRace(KernelFault):
    """Two threads access one place without order between them, and at least one of them writes."""


class BarrierError(KernelFault):
    """A barrier that some threads never reach, or reach in another place."""


class WarpError(KernelFault):
    """A warp-wide operation whose named lanes are not there, or that reads a lane which does not take part."""


class DeadlockError(KernelFault):
    """Threads wait for something that no thread will do."""


class TrapError(KernelFault):
    """The kernel executed `trap`, or an assertion in it failed."""
