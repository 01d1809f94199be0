"""Blocks of steps to Python functions, one per basic block.

A block is a function of the machine, of the lanes that execute it, and of the registers alive at its entry; it returns
which block comes next with which lanes and registers. So a register that is dead costs nothing, threads that part or
meet only carry what is still needed, and within a block registers are plain local variables.

Each register has one kind in which it passes between blocks: the one most instructions of the function use. In a block
it may be held in several kinds at once; a reinterpretation is made when first wanted. Blocks are compiled to byte code
when first executed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from parakeet_py.ptx.emulator.front.ir import Function, Guard, Instruction, Register, Sink, Symbol
from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE, size_of
from parakeet_py.ptx.emulator.translate.control import (
    barrier_results,
    barrier_values,
    call_results,
    call_values,
    convergence_mask,
    passing_kind,
    return_values,
    site_of,
)
from parakeet_py.ptx.emulator.translate.control_flow import (
    Barrier,
    BasicBlock,
    Branch,
    CallTo,
    End,
    Exit,
    Graph,
    Jump,
    Return,
    Switch,
    successors,
)
from parakeet_py.ptx.emulator.translate.emitter import Emitter, Step, marks_in
from parakeet_py.ptx.emulator.translate.writer import Writer

_NEVER = 0
_STRONG_SPIN = 2
_PLAIN_SPIN = 1 << 16


@dataclass(slots=True)
class BlockText:
    """The source of one block."""

    name: str
    text: str
    line: int


class FunctionAssembler:
    """Writes the blocks of one function; `base` is the number of its first block, the prologue."""

    def __init__(self, emitter: Emitter, graph: Graph, base: int, prologues: dict[str, int]) -> None:
        self.emitter = emitter
        self.function = emitter.function
        self.graph = graph
        self.base = base
        self.prologues = prologues
        self.steps: list[list[Step]] = []
        self.convergences: list[Step | None] = []
        self.ends: list[Step] = []
        self._emit_all()
        self.kinds = self._vote()
        self.computed = self._always_computed()
        self.live_in = self._liveness()

    # -- emission and liveness ------------------------------------------------------------------------------------

    def _emit_all(self) -> None:
        emitter = self.emitter
        for block in self.graph.blocks:
            convergence = None
            if block.converges:
                convergence = self._step_of(convergence_mask(emitter, block.body[0]), block.body[0].line)
            emitter.steps = []
            for instruction in block.body:
                emitter.emit(instruction)
            self.steps.append(emitter.steps)
            self.convergences.append(convergence)
            self.ends.append(self._end_step(block.end))

    def _step_of(self, text: str, line: int) -> Step:
        return Step(text, marks_in(text), [], line, True)

    def _end_step(self, end: End) -> Step:
        """What the end of a block reads, as expressions separated by a mark that no expression contains."""
        emitter = self.emitter
        emitter.steps = []
        match end:
            case Branch(guard):
                return self._step_of(_guard_text(emitter, guard), 0)
            case Switch(instruction, index):
                emitter.instruction = instruction
                return self._step_of(emitter.read(index, "u4"), instruction.line)
            case Return() if not self.function.entry:
                return self._step_of(_join(return_values(emitter)), 0)
            case CallTo(instruction):
                emitter.instruction = instruction
                return self._step_of(_join(call_values(emitter, instruction)), instruction.line)
            case Barrier(instruction):
                emitter.instruction = instruction
                return self._step_of(_join(barrier_values(emitter, instruction)), instruction.line)
            case _:
                return self._step_of("", 0)

    def _all_steps(self, number: int) -> list[Step]:
        convergence = self.convergences[number]
        return [*([convergence] if convergence else []), *self.steps[number], self.ends[number]]

    def _vote(self) -> dict[int, str]:
        """For each register the kind it is mostly used in."""
        votes: dict[int, dict[str, int]] = {register.number: {} for register in self.function.registers}
        for number in range(len(self.steps)):
            for step in self._all_steps(number):
                for register, kind in step.reads:
                    found = votes[register]
                    found[kind] = found.get(kind, 0) + 1
                for target, kind in step.targets:
                    if target.number >= 0:
                        found = votes[target.number]
                        found[kind] = found.get(kind, 0) + 1
        kinds: dict[int, str] = {}
        for one in self.function.registers:
            default = kinds[one.number] = self._default_kind(one)
            if default not in ("bytes", "p"):
                size = size_of(default)
                fitting = [(count, kind) for kind, count in votes[one.number].items() if size_of(kind) == size]
                if fitting:
                    kinds[one.number] = max(fitting)[1]
        return kinds

    def _always_computed(self) -> frozenset[int]:
        """Registers that only ever hold results of float arithmetic (see `Step.computed`)."""
        computed: set[int] = set()
        others: set[int] = set()
        for steps in self.steps:
            for step in steps:
                for target, _ in step.targets:
                    (computed if step.computed else others).add(target.number)
        return frozenset(computed - others)

    @staticmethod
    def _default_kind(register: Register) -> str:
        if register.type.startswith("bytes:"):
            return "bytes"
        kind = KIND_OF_TYPE[register.type]
        return kind if kind == "p" else f"u{size_of(kind)}"

    def _received(self) -> dict[int, list[tuple[Register, str]]]:
        """For each block the registers that it gets as results of the call or barrier before it."""
        found: dict[int, list[tuple[Register, str]]] = {number: [] for number in range(len(self.graph.blocks))}
        for block in self.graph.blocks:
            match block.end:
                case CallTo(instruction, target=target):
                    found[target] = call_results(self.emitter, instruction)
                case Barrier(instruction, target):
                    found[target] = barrier_results(instruction)
        return found

    def _liveness(self) -> list[list[int]]:
        blocks = self.graph.blocks
        count = len(blocks)
        self.received = self._received()
        following = [successors(block.end) for block in blocks]
        read, written = zip(*map(self._reads_and_writes, range(count)), strict=True) if count else ((), ())
        live = [0] * count
        changed = True
        while changed:
            changed = False
            for number in reversed(range(count)):
                now = 0
                for successor in following[number]:
                    now |= live[successor]
                now = (now & ~written[number]) | read[number]
                if now != live[number]:
                    live[number] = now
                    changed = True
        self._live_bits = live
        return [_places(bits) for bits in live]

    def _reads_and_writes(self, number: int) -> tuple[int, int]:
        """The registers whose value at the entry of a block it reads, and those that it sets, as bits."""
        read = written = 0
        for register, _ in self.received[number]:
            written |= 1 << register.number
        for step in self._all_steps(number):
            for register_read, _ in step.reads:
                read |= (1 << register_read) & ~written
            for target, _ in step.targets:
                if target.number >= 0:
                    written |= 1 << target.number
        return read, written

    def ends_of_threads(self) -> list[int]:
        """The blocks that do nothing but end the thread."""
        return [
            self.base + 1 + number
            for number, block in enumerate(self.graph.blocks)
            if not block.body
            and (isinstance(block.end, Exit) or (isinstance(block.end, Return) and self.function.entry))
        ]

    # -- text -----------------------------------------------------------------------------------------------------

    def blocks(self) -> list[BlockText]:
        """The prologue, then the blocks in scheduling order."""
        texts = [BlockText(f"b{self.base}", self._prologue(), self.function.line)]
        for number, block in enumerate(self.graph.blocks):
            line = block.body[0].line if block.body else self.ends[number].line or self.function.line
            texts.append(BlockText(f"b{self.base + 1 + number}", self._block(number, block), line))
        return texts

    def _prologue(self) -> str:
        emitter = self.emitter
        known: dict[int, dict[str, str]] = {}
        parameters = ["M", "L"]
        lines = []
        if self.function.entry:
            base = emitter.constants.number(16, "u8")
            top = emitter.constants.number(16 + emitter.frame_size, "u8")
            lines.append(f"    frame = {base}")
            lines.append(f"    top = {top}")
        else:
            parameters.append("frame")
            size = emitter.constants.number(emitter.frame_size, "u8")
            lines.append(f"    top = frame + {size}")
            for variable in self.function.parameters:
                assert variable.register is not None
                kind = passing_kind(variable)
                name = f"r{variable.register.number}_{kind}"
                parameters.append(name)
                known[variable.register.number] = {kind: name}
        if emitter.frame_size:
            lines.append("    M.reserve_local(top)")
        for register in emitter.addressed:
            (held,) = known[register.number].values()
            offset = emitter.constants.number(emitter.local_offsets[register.name], "u8")
            lines.append(f"    M.spill(L, frame + {offset}, {held})")
        known[emitter.frame.number] = {"u8": "frame"}
        known[emitter.top.number] = {"u8": "top"}
        writer = Writer(self, known, lines)
        arguments = writer.arguments(0)
        lines.append(f"    return {self.base + 1}, L, {arguments}")
        return f"def b{self.base}({', '.join(parameters)}):\n" + "\n".join(lines) + "\n"

    def parameters_of(self, number: int) -> list[tuple[int, str]]:
        """Registers a block takes, with the kinds it takes them in: first what it receives, then what is live."""
        received = [(register.number, kind) for register, kind in self.received[number]]
        return received + [(register, self.kinds[register]) for register in self.live_in[number]]

    def _block(self, number: int, block: BasicBlock) -> str:
        label = self.base + 1 + number
        parameters = self.parameters_of(number)
        names = [f"r{register}_{kind}" for register, kind in parameters]
        lines: list[str] = []
        known = {register: {kind: name} for (register, kind), name in zip(parameters, names, strict=True)}
        own = f"({''.join(name + ', ' for name in names)})"
        spin = self._spin(number)
        if spin:
            lines.append(f"    if M.spins({label}, L, {spin}): return M.push({label}, L, {own})")
        convergence = self.convergences[number]
        writer = Writer(self, known, lines)
        if convergence is not None:
            site = site_of(self.emitter, block.body[0])
            # A mask of all lanes needs no look while all threads in flight are together.
            whole = convergence.text == self.emitter.constants.number(0xFFFFFFFF, "u4")
            lines.append(f"    if {'L.n != M.live' if whole else 'True'}:")
            inner = Writer(self, {k: dict(v) for k, v in known.items()}, lines, indent="        ")
            mask = inner.resolve(convergence)
            lines.append(f"        g = M.converge({label}, L, {mask}, {own}, {site})")
            lines.append("        if g is None: return None")
            lines.append(f"        L, {own if names else '_'} = g")
        if block.body:
            lines.append(f"    M.instructions += {len(block.body) + 1} * L.n")
        alive = self._alive_after(number)
        for step, after in zip(self.steps[number], alive, strict=True):
            writer.step(step, after)
        self._end(number, block.end, writer)
        return f"def b{label}(M, L{''.join(', ' + n for n in names)}):\n" + "\n".join(lines) + "\n"

    def _alive_after(self, number: int) -> list[int]:
        """For each step of a block the registers alive after it."""
        now = 0
        for successor in successors(self.graph.blocks[number].end):
            now |= self._live_bits[successor]
        for register, _ in self.ends[number].reads:
            now |= 1 << register
        result: list[int] = []
        for step in reversed(self.steps[number]):
            result.append(now)
            if not step.effect and step.targets and not any(now >> max(t.number, 0) & 1 for t, _ in step.targets):
                continue
            for target, _ in step.targets:
                if target.number >= 0:
                    now &= ~(1 << target.number)
            for register, _ in step.reads:
                now |= 1 << register
        result.reverse()
        return result

    def _spin(self, number: int) -> int:
        members = self.graph.loops.get(number)
        if members is None:
            return _NEVER
        answer = _NEVER
        for member in members:
            for instruction in self.graph.blocks[member].body:
                if _reads_what_others_write(instruction):
                    return _STRONG_SPIN
                if instruction.opcode in ("ld", "ldu") and not {"param", "const", "nc"} & set(instruction.modifiers):
                    answer = _PLAIN_SPIN
        return answer

    def _end(self, number: int, end: End, writer: Writer) -> None:
        lines = writer.lines
        first = self.base + 1
        values = writer.resolve(self.ends[number])
        parts = values.split("\x03") if values else []
        match end:
            case Jump(target):
                lines.append(f"    return {first + target}, L, {writer.arguments(target)}")
            case Branch(_, taken, other):
                taken_arguments, other_arguments = writer.arguments(taken), writer.arguments(other)
                lines.append(
                    f"    return M.branch(L, {parts[0]}, {first + taken}, {taken_arguments}, "
                    f"{first + other}, {other_arguments})"
                )
            case Switch(instruction, _, targets):
                cases = ", ".join(f"({first + t}, {writer.arguments(t)})" for t in targets)
                site = site_of(self.emitter, instruction)
                lines.append(f"    return M.switch(L, {parts[0]}, ({cases},), {site})")
            case Return() if not self.function.entry:
                lines.append(f"    return M.ret(L, ({''.join(p + ', ' for p in parts)}))")
            case Return() | Exit():
                lines.append("    return M.exit(L)")
            case Barrier(instruction, target):
                site = site_of(self.emitter, instruction)
                saved = writer.arguments(target, skip_received=True)
                lines.append(f"    return M.arrive(L, {site}, {first + target}, {saved}, {', '.join(parts)})")
            case CallTo(instruction, call, target):
                site = site_of(self.emitter, instruction)
                saved = writer.arguments(target, skip_received=True)
                passed = f"({''.join(p + ', ' for p in parts[1:])})"
                if isinstance(call.target, Symbol):
                    callee = self.prologues[call.target.name]
                    lines.append(f"    return M.call(L, {callee}, {passed}, {first + target}, {saved})")
                else:
                    lines.append(
                        f"    return M.call_indirect(L, {parts[0]}, {passed}, {first + target}, {saved}, {site})"
                    )


def _guard_text(emitter: Emitter, guard: Guard) -> str:
    mark = emitter.mark(guard.register, "p")
    return f"~{mark}" if guard.negated else mark


def _places(bits: int) -> list[int]:
    """Which bits are set, in ascending order."""
    found: list[int] = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found


def _join(expressions: Iterable[str]) -> str:
    return "\x03".join(expressions)


def _reads_what_others_write(instruction: Instruction) -> bool:
    modifiers = set(instruction.modifiers)
    if instruction.opcode == "ld":
        return bool(modifiers & {"volatile", "relaxed", "acquire", "mmio"})
    if instruction.opcode == "atom":
        return not isinstance(instruction.operands[0], Sink)
    return instruction.opcode == "mbarrier"


def function_blocks(function: Function, graph: Graph) -> int:
    """How many block numbers a function takes."""
    return len(graph.blocks) + 1
