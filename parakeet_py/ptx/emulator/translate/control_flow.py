"""Control flow of a function: basic blocks, their order, their loops.

A block ends where control can leave the straight line: branches, calls, barriers, the end of the thread. It begins
also before an operation that needs the other lanes of its warp (`shfl.sync` and its kin), because threads may have to
wait there. An instruction with a guard whose effect cannot be masked is put into a block of its own, with a branch
around it.

The order of blocks is the schedule: the emulator always runs the waiting threads with the lowest block, so an order in
which a loop's blocks are contiguous and everything else is topological makes threads come together again at the
earliest place they can. That is a weak topological order (Bourdoncle 1993): strongly connected components in
topological order, each with its header first, and recursively without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from parakeet_py.ptx.emulator.checks.errors import UnsupportedPtx
from parakeet_py.ptx.emulator.front.ir import Call, Function, Guard, Instruction, Operand, Symbol

# Operations on a whole warp: a block begins before each.
WARP_SYNC = frozenset({"shfl", "vote", "match", "redux", "mma", "wgmma", "ldmatrix", "stmatrix", "movmatrix", "elect"})
# Instructions that may be executed under a mask of lanes; any other guarded effect is branched around.
_MASKABLE_EFFECTS = frozenset({"ld", "ldu", "st", "atom", "red"})
_EFFECTS = frozenset(
    {"bar", "barrier", "call", "trap", "brkpt", "nanosleep", "membar", "fence", "prefetch", "prefetchu", "alloca"}
    | {"stackrestore", "cp", "mbarrier", "activemask", "discard", "applypriority", "setmaxnreg", "griddepcontrol"}
)


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on with a block."""

    target: int


@dataclass(frozen=True, slots=True)
class Branch:
    """Threads whose guard holds go to `taken`, the others to `other`."""

    guard: Guard
    taken: int
    other: int


@dataclass(frozen=True, slots=True)
class Switch:
    """An indexed branch."""

    instruction: Instruction
    index: Operand
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Return:
    """Back to the caller; of a kernel, the end of the thread."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of the thread."""


@dataclass(frozen=True, slots=True)
class CallTo:
    """Call a function of the module, then go on with `target`."""

    instruction: Instruction
    call: Call
    target: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait at a barrier of the block of threads, then go on with `target`."""

    instruction: Instruction
    target: int


End = Jump | Branch | Switch | Return | Exit | CallTo | Barrier


@dataclass(slots=True)
class BasicBlock:
    """Straight-line instructions and how they end; `converges` says that the first one needs its whole warp."""

    body: list[Instruction]
    end: End
    converges: bool = False


@dataclass(slots=True)
class Graph:
    """The reachable blocks in scheduling order; block 0 is the entry. `loops` maps a header to its members."""

    blocks: list[BasicBlock]
    loops: dict[int, frozenset[int]] = field(default_factory=dict)


def successors(end: End) -> tuple[int, ...]:
    """The blocks that can follow within the function."""
    match end:
        case Jump(target) | CallTo(target=target) | Barrier(target=target):
            return (target,)
        case Branch(_, taken, other):
            return (taken, other)
        case Switch(targets=targets):
            return targets
        case _:
            return ()


def is_convergence(instruction: Instruction) -> bool:
    """Does an instruction need other lanes of its warp to have arrived?"""
    if instruction.opcode in WARP_SYNC:
        return (
            instruction.opcode in ("mma", "wgmma", "ldmatrix", "stmatrix", "movmatrix")
            or "sync" in instruction.modifiers
        )
    return instruction.opcode == "bar" and "warp" in instruction.modifiers


def is_block_barrier(instruction: Instruction) -> bool:
    """Is it a barrier at which the threads of a block wait?"""
    return (
        instruction.opcode in ("bar", "barrier")
        and "warp" not in instruction.modifiers
        and "arrive" not in instruction.modifiers
        and "cluster" not in instruction.modifiers
    )


def build(function: Function, system_calls: frozenset[str], lines: Sequence[str]) -> Graph:
    """The control-flow graph of a function.

    Parameters
    ----------
    system_calls : frozenset of str
        Functions that the emulator provides itself; a call of one is an ordinary instruction.
    """
    return _ordered(_Splitter(function, system_calls, lines).split())


class _Splitter:
    def __init__(self, function: Function, system_calls: frozenset[str], lines: Sequence[str]) -> None:
        self.function = function
        self.system_calls = system_calls
        self.lines = lines
        self.blocks: list[BasicBlock] = []
        self.start_of: dict[int, int] = {}
        self.pending: list[tuple[int, int, Instruction]] = []

    def _open(self) -> int:
        self.blocks.append(BasicBlock([], Return()))
        return len(self.blocks) - 1

    def split(self) -> list[BasicBlock]:
        """Blocks in the order of the text; label targets are resolved at the end."""
        function = self.function
        leaders = set(function.labels.values())
        current = self._open()
        closed = False
        for position, instruction in enumerate(function.body):
            if position in leaders or closed or (is_convergence(instruction) and self.blocks[current].body):
                new = self._open()
                if not closed:
                    self.blocks[current].end = Jump(new)
                current, closed = new, False
            self.start_of[position] = current
            guard = instruction.guard
            if guard is not None and self._must_branch_around(instruction):
                inner = self._open()
                self.blocks[current].end = Branch(Guard(guard.register, not guard.negated), -1, inner)
                around = current
                current = self._place(inner, replace(instruction, guard=None))
                join = self._open()
                if current >= 0:
                    self.blocks[current].end = Jump(join)
                end = self.blocks[around].end
                assert isinstance(end, Branch)
                self.blocks[around].end = replace(end, taken=join)
                current, closed = join, False
                continue
            current = self._place(current, instruction)
            closed = current < 0
        if closed or len(function.body) in leaders:
            last = self._open()
            if not closed:
                self.blocks[current].end = Jump(last)
            self.start_of[len(function.body)] = last
        for number, following, instruction in self.pending:
            self._resolve(number, following, instruction)
        return self.blocks

    def _must_branch_around(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        if opcode in ("bra", "brx", "ret", "exit"):
            return opcode == "brx"
        if opcode in _MASKABLE_EFFECTS:
            return False
        return opcode in _EFFECTS or opcode in WARP_SYNC

    def _place(self, current: int, instruction: Instruction) -> int:
        """Append an instruction to a block; the block in which the text goes on, or -1 if control never does."""
        block = self.blocks[current]
        opcode = instruction.opcode
        if is_convergence(instruction):
            block.converges = True
        if opcode in ("bra", "brx"):
            following = self._open() if instruction.guard is not None else -1
            self.pending.append((current, following, instruction))
            return following
        if opcode in ("ret", "exit"):
            end: End = Exit() if opcode == "exit" else Return()
            if instruction.guard is None:
                block.end = end
                return -1
            leave = self._open()
            self.blocks[leave].end = end
            following = self._open()
            block.end = Branch(instruction.guard, leave, following)
            return following
        if opcode == "trap":
            block.body.append(instruction)
            block.end = Exit()
            return -1
        if opcode == "call" and not self._is_system_call(instruction):
            following = self._open()
            assert instruction.call is not None
            block.end = CallTo(instruction, instruction.call, following)
            return following
        if is_block_barrier(instruction):
            following = self._open()
            block.end = Barrier(instruction, following)
            return following
        block.body.append(instruction)
        return current

    def _is_system_call(self, instruction: Instruction) -> bool:
        call = instruction.call
        return call is not None and isinstance(call.target, Symbol) and call.target.name in self.system_calls

    def _resolve(self, number: int, following: int, instruction: Instruction) -> None:
        block = self.blocks[number]
        if instruction.opcode == "bra":
            target = self._target(instruction.operands[0], instruction)
            if instruction.guard is None:
                block.end = Jump(target)
            else:
                block.end = Branch(instruction.guard, target, following)
            return
        index, table = instruction.operands
        names = self.function.branch_targets.get(table.name) if isinstance(table, Symbol) else None
        if names is None:
            line = instruction.line
            raise UnsupportedPtx("brx.idx without a .branchtargets list", line, self.lines[line - 1])
        block.end = Switch(instruction, index, tuple(self._target(Symbol(n), instruction) for n in names))

    def _target(self, operand: Operand, instruction: Instruction) -> int:
        assert isinstance(operand, Symbol)
        if operand.name not in self.function.labels:
            line = instruction.line
            raise UnsupportedPtx(f"branch to unknown label {operand.name}", line, self.lines[line - 1])
        return self.start_of[self.function.labels[operand.name]]


def _ordered(blocks: list[BasicBlock]) -> Graph:
    """Drop what cannot be reached and put the rest into scheduling order."""
    edges = [successors(block.end) for block in blocks]
    loops: dict[int, frozenset[int]] = {}
    order: list[int] = []
    _weak_topological_order(edges, [0], set(range(len(blocks))), order, loops)
    number = {old: new for new, old in enumerate(order)}
    graph = Graph([blocks[old] for old in order])
    for block in graph.blocks:
        block.end = _renumber(block.end, number)
    graph.loops = {number[h]: frozenset(number[m] for m in members) for h, members in loops.items()}
    return graph


def _renumber(end: End, number: dict[int, int]) -> End:
    match end:
        case Jump() | CallTo() | Barrier():
            return replace(end, target=number[end.target])
        case Branch(guard, taken, other):
            return Branch(guard, number[taken], number[other])
        case Switch(instruction, index, targets):
            return Switch(instruction, index, tuple(number[t] for t in targets))
        case _:
            return end


def _weak_topological_order(
    edges: list[tuple[int, ...]],
    roots: list[int],
    allowed: set[int],
    order: list[int],
    loops: dict[int, frozenset[int]],
) -> None:
    for component in _components(edges, roots, allowed):
        header = component[0]
        order.append(header)
        inner = set(component)
        if len(component) == 1:
            if header in edges[header]:
                loops[header] = frozenset(inner)
            continue
        loops[header] = frozenset(inner)
        inner.discard(header)
        _weak_topological_order(edges, [s for s in edges[header] if s in inner], inner, order, loops)


def _components(edges: list[tuple[int, ...]], roots: list[int], allowed: set[int]) -> list[list[int]]:
    """Strongly connected components in topological order (Tarjan); each begins with the block entered first."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in roots:
        if root in index or root not in allowed:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in allowed:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(edges[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    component = stack[cut:]
                    del stack[cut:]
                    on_stack.difference_update(component)
                    found.append(component)
    found.reverse()
    return found
