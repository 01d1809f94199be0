"""Functions in LLVM IR text, made of local variables that may be assigned again and again.

Variables become SSA values as they are met (Braun et al., Simple and Efficient Construction of Static Single Assignment
Form, 2013): reading one in a block looks for its value in the blocks before, and makes a phi where these may differ. A
block is *sealed* when all blocks before it are known; until then its phis are left open. Phis of a single value are
removed in the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

_TEMPORARY = re.compile(r"%v\d+\b")


class Value(NamedTuple):
    """A value: its type, and what stands for it in the text."""

    type: str
    text: str


@dataclass(slots=True, eq=False)
class Block:
    """A basic block; `values` are those of variables at its end, as far as they are known."""

    label: str
    lines: list[str] = field(default_factory=list)
    before: list[Block] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    open_phis: dict[str, Phi] = field(default_factory=dict)
    sealed: bool = False


@dataclass(slots=True, eq=False)
class Phi:
    """The value at the start of a block, by the blocks before it."""

    value: Value
    block: Block
    operands: list[tuple[str, str]] = field(default_factory=list)


class SsaText:
    """Writes the body of one function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.types: dict[str, str] = {}
        self.blocks: list[Block] = []
        self.phis: list[Phi] = []
        self.rooms: list[str] = []
        self.count = 0
        self.present: Block | None = None
        self.start(self.block())
        self.blocks[0].sealed = True

    def text(self) -> str:
        """The blocks that are reached, with labels."""
        final = self._single_values()
        lines: list[str] = []
        for block in self.blocks:
            if block is not self.blocks[0] and not block.before:
                continue
            lines.append(f"{block.label}:")
            for phi in self.phis:
                if phi.block is block and phi.value.text not in final:
                    choices = ", ".join(f"[{text}, %{label}]" for text, label in phi.operands)
                    lines.append(f"  {phi.value.text} = phi {phi.value.type} {choices}")
            lines.extend(f"  {line}" for line in [*(self.rooms if block is self.blocks[0] else []), *block.lines])
        text = "\n".join(lines)
        return _TEMPORARY.sub(lambda match: final.get(match[0], match[0]), text) if final else text

    def _single_values(self) -> dict[str, str]:
        """What stands for the phis of one value."""
        final: dict[str, str] = {}

        def resolved(text: str) -> str:
            while text in final:
                text = final[text]
            return text

        changed = True
        while changed:
            changed = False
            for phi in self.phis:
                own = phi.value.text
                others = {resolved(text) for text, _ in phi.operands} - {own}
                if own not in final and len(others) == 1:
                    final[own] = others.pop()
                    changed = True
        return {name: resolved(name) for name in final}

    # ---- blocks ------------------------------------------------------------------------------------------------------

    def block(self) -> Block:
        """A block that is not placed yet."""
        self.count += 1
        return Block(f"b{self.count}")

    def start(self, block: Block) -> None:
        """Write this block from now on."""
        self.blocks.append(block)
        self.present = block

    def start_sealed(self, block: Block) -> None:
        """The same for a block to which no further jump comes; nothing if there is none at all."""
        for name, phi in block.open_phis.items():
            self._add_operands(name, phi)
        block.sealed = True
        if block.before and block not in self.blocks:
            self.start(block)

    def here(self) -> Block:
        """The present block."""
        if self.present is None:
            raise SyntaxError(f"{self.name}: a statement that is never reached")
        return self.present

    def end(self, line: str, *targets: Block) -> None:
        """End the present block with a jump or return."""
        here = self.here()
        here.lines.append(line)
        for target in targets:
            target.before.append(here)
        self.present = None

    def jump(self, target: Block) -> None:
        """End the present block; go on there."""
        self.end(f"br label %{target.label}", target)

    def put(self, line: str) -> None:
        """An instruction without a value."""
        self.here().lines.append(line)

    def let(self, kind: str, line: str) -> Value:
        """The value of an instruction."""
        made = self._temporary(kind)
        self.put(f"{made.text} = {line}")
        return made

    def room(self, kind: str, align: str) -> Value:
        """Room on the stack."""
        made = self._temporary("ptr")
        self.rooms.append(f"{made.text} = alloca {kind}, align {align}")
        return made

    def _temporary(self, kind: str) -> Value:
        self.count += 1
        return Value(kind, f"%v{self.count}")

    # ---- variables ---------------------------------------------------------------------------------------------------

    def assign(self, name: str, value: Value) -> None:
        """The variable has this value from here on."""
        if self.types.setdefault(name, value.type) != value.type:
            raise SyntaxError(f"{self.name}: {name} is {self.types[name]} and {value.type}")
        self.here().values[name] = value

    def read(self, name: str, block: Block) -> Value:
        """The value of a variable at the end of a block."""
        if name in block.values:
            return block.values[name]
        if block.sealed and len(block.before) == 1:
            block.values[name] = self.read(name, block.before[0])
            return block.values[name]
        if block is self.blocks[0]:
            raise SyntaxError(f"{self.name}: {name} has no value")
        phi = self.phi(self.types[name], block)
        block.values[name] = phi.value
        if block.sealed:
            self._add_operands(name, phi)
        else:
            block.open_phis[name] = phi
        return phi.value

    def phi(self, kind: str, block: Block) -> Phi:
        """A phi whose operands are to come."""
        made = Phi(self._temporary(kind), block)
        self.phis.append(made)
        return made

    def _add_operands(self, name: str, phi: Phi) -> None:
        phi.operands.extend((self.read(name, block).text, block.label) for block in phi.block.before)
