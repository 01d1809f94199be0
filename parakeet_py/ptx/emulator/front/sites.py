"""Instructions as a running launch knows them."""

from __future__ import annotations

from dataclasses import dataclass

from parakeet_py.ptx.emulator.front.ir import Instruction


@dataclass(slots=True, eq=False)
class Site:
    """An instruction of a launch: its line for messages, its place in the order of memory."""

    instruction: Instruction
    source: str
    strong: bool = False
    acquire: bool = False
    release: bool = False
    read_only: bool = False
