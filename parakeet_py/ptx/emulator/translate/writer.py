"""The text of one block: steps with names for their marks.

A register may be at hand in several kinds, each under a name of its own. One that is wanted in another kind is
reinterpreted (or widened or cut) when it is first wanted, and the result is remembered until the register is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parakeet_py.ptx.emulator.translate.emitter import MARK, Step

if TYPE_CHECKING:
    from parakeet_py.ptx.emulator.translate.assemble import FunctionAssembler


class Writer:
    """Writes steps of one block, keeping track of the kinds in which each register is at hand."""

    def __init__(
        self, owner: FunctionAssembler, known: dict[int, dict[str, str]], lines: list[str], indent: str = "    "
    ) -> None:
        self.owner = owner
        self.known = known
        self.lines = lines
        self.indent = indent
        self.computed = {register for register in known if register in owner.computed}

    def resolve(self, step: Step) -> str:
        """A step's text with names for its marks."""
        if not step.reads:
            return step.text
        return MARK.sub(lambda m: self._name(int(m[1]), m[2]), step.text)

    def _name(self, register: int, kind: str) -> str:
        forms = self.known.get(register)
        if forms is None:
            forms = self.known[register] = {}
            zero = self._undefined(register)
            forms[zero[1]] = zero[0]
        name = forms.get(kind)
        if name is not None:
            return name
        held, source = next(iter(forms.items()))
        name = f"r{register}_{kind}"
        if kind[0] == "b" or held[0] == "b" or "p" in (kind, held):
            raise TypeError(f"register {register} is held as {held} and wanted as {kind}")
        size, wanted = int(held[1]), int(kind[1])
        if register in self.computed and held in ("f2", "f4") and kind[0] != "f":
            source = f"floats.quiet({source})"
        if size == wanted:
            expression = f"{source}.view({kind.upper()})"
        else:
            unsigned = self._name(register, f"u{size}") if held != f"u{size}" else source
            expression = f"{unsigned}.astype(U{wanted})"
            if kind[0] != "u":
                expression += f".view({kind.upper()})"
        self.lines.append(f"{self.indent}{name} = {expression}")
        forms[kind] = name
        return name

    def _undefined(self, register: int) -> tuple[str, str]:
        """The value of a register that nothing has written."""
        owner = self.owner
        kind = owner.kinds[register]
        if kind == "bytes":
            return f"zero_bytes({owner.function.registers[register].type[6:]})", kind
        return owner.emitter.constants.number(0, kind), kind

    def step(self, step: Step, alive: int) -> None:
        """Write a step unless its result is unused."""
        wanted = [t for t, _ in step.targets if t.number >= 0 and alive >> t.number & 1]
        if step.targets and not step.effect and not wanted:
            return
        text = self.resolve(step).replace("\x04", repr(bool(wanted)))
        if not step.targets:
            self.lines.append(f"{self.indent}{text}")
            return
        names = []
        for target, kind in step.targets:
            if target.number < 0 or not alive >> target.number & 1:
                names.append("_")
                if target.number >= 0:
                    self.known.pop(target.number, None)
            else:
                name = f"r{target.number}_{kind}"
                self.known[target.number] = {kind: name}
                (self.computed.add if step.computed else self.computed.discard)(target.number)
                names.append(name)
        left = names[0] if len(names) == 1 else ", ".join(names)
        self.lines.append(f"{self.indent}{left} = {text}")

    def arguments(self, target: int, *, skip_received: bool = False) -> str:
        """The registers a block wants, as a tuple display."""
        parameters = self.owner.parameters_of(target)
        if skip_received:
            parameters = parameters[len(self.owner.received[target]) :]
        names: list[str] = []
        for register, kind in parameters:
            name = self._name(register, kind)
            if kind[0] == "f" and register in self.computed and register not in self.owner.computed:
                # Elsewhere the register holds values whose bits are their own, and these must not be touched.
                name = f"floats.quiet({name})"
            names.append(f"{name}, ")
        return f"({''.join(names)})"
