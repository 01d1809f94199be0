"""Scalars that only kernels need stay on the device.

    s = load partial, (0)                            launch 1 (n, partial, x, out):
    t = div s, 2.0                     becomes           s = load partial, (0)
    launch 1 (n, t, x, out)                              t = div s, 2.0
                                                         ...

The host would have to wait for everything launched before, to fetch an element that it hands on to the next kernel. So
elements, and what is computed from them by arithmetic that is the same everywhere, move into the kernels that take
them, if nothing else does: not a condition, an extent or a result, and if the element is still the same when the kernel
runs and while it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from parakeet_py.base.grammar import with_blocks
from parakeet_py.base.types import Scalar, is_complex, is_float
from parakeet_py.imp import ir
from parakeet_py.ptx.kernels.codegen import stored_roots
from parakeet_py.ptx.outline import DeviceFunction, Kernel
from parakeet_py.typed_ir.ir import Cast, Load, Operand, Prim, Var

# Rounded in one way only, so that it makes no difference who computes them.
EXACT = frozenset(
    (
        *("add", "sub", "mul", "div", "neg", "abs", "sqrt", "minimum", "maximum", "select"),
        *("at_least", "at_most"),
        *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not"),
    )
)
MOST = 12  # statements that move into one kernel


def keep_scalars(device: DeviceFunction) -> DeviceFunction:
    """Move scalars into the kernels that take them; references must not have been counted yet."""
    study = _Study(device)
    study.block(device.host.body, {})
    study.wanted |= {result for result in device.host.results if isinstance(result, Var)}
    moving = study.moving()
    if not moving:
        return device
    kernels = tuple(_with_scalars(kernel, study.needed(kernel, moving)) for kernel in device.kernels)
    body = _without(device.host.body, moving, kernels)
    return DeviceFunction(replace(device.host, body=body), kernels)


@dataclass(frozen=True, slots=True)
class _Launched:
    """A launch: where it is; of each block that it is in, where the statement there ends that it is or is inside of."""

    kernel: int
    at: int
    ends: dict[int, int]


@dataclass(slots=True)
class _Study:
    """Who computes scalars on the host, who takes them, who stores where. Statements are numbered in program order."""

    device: DeviceFunction
    lets: dict[Var, ir.Let] = field(default_factory=dict)  # those that may move, in order
    places: dict[Var, tuple[int, int]] = field(default_factory=dict)  # of these: the block, the statement
    wanted: set[Var] = field(default_factory=set)  # by the host
    takers: dict[Var, list[Var]] = field(default_factory=dict)
    launches: dict[Var, list[_Launched]] = field(default_factory=dict)
    stores: list[tuple[int, frozenset[int] | None]] = field(default_factory=list)  # None: to whatever there is
    stored_by: dict[int, frozenset[int]] = field(default_factory=dict)  # by the numbers of kernels
    blocks: int = 0
    at: int = 0

    def block(self, block: ir.Block, ends: dict[int, int]) -> None:
        self.blocks += 1
        number = self.blocks
        for statement in block.statements:
            self.at += 1
            inside = sum(1 for inner in ir.blocks_of(statement) for _ in ir.walk(inner))
            within = {**ends, number: self.at + inside}
            self.statement(statement, number, within)
            for inner in ir.blocks_of(statement):
                self.block(inner, within)

    def statement(self, statement: ir.Statement, block: int, ends: dict[int, int]) -> None:
        roots = self.device.host.roots
        taken = [operand for operand in ir.operands_in(statement) if isinstance(operand, Var)]
        match statement:
            case ir.Let(out, rhs) if _may_move(out, rhs):
                self.lets[out] = statement
                self.places[out] = block, self.at
                for operand in taken:
                    self.takers.setdefault(operand, []).append(out)
                return
            case ir.Launch(number, blocks, args):
                if number not in self.stored_by:  # a kernel may be launched at many places
                    self.stored_by[number] = stored_roots(self.device.kernels[number].function)
                self.stores.append((self.at, self.stored_by[number]))
                for arg in args:
                    if isinstance(arg, Var):
                        self.launches.setdefault(arg, []).append(_Launched(number, self.at, ends))
                taken = [blocks] if isinstance(blocks, Var) else []
            case ir.Opaque():
                self.stores.append((self.at, None))
        self.stores += [(self.at, roots.get(array)) for array in ir.arrays_written(statement)]
        self.wanted.update(taken)

    # ---- what moves --------------------------------------------------------------------------------------------------

    def moving(self) -> set[Var]:
        """The scalars that move: elements that the host does not want, and what is computed from them."""
        found: set[Var] = set()
        for out, let in self.lets.items():
            if isinstance(let.rhs, Load) or not found.isdisjoint(_operands(let)):
                found.add(out)
        while True:
            staying = {out for out in found if self.stays(out, found)}
            for kernel in self.device.kernels:
                if len(self.needed(kernel, found)) > MOST:
                    self.wanted |= found & set(kernel.params)
                    staying |= found & set(kernel.params)
            if not staying:
                return found
            found -= staying

    def stays(self, out: Var, found: set[Var]) -> bool:
        """Whether the host has to compute a scalar, given what else moves."""
        takers = self.takers.get(out, ())
        if out in self.wanted or any(taker not in found for taker in takers):
            return True
        let = self.lets[out]
        if not isinstance(let.rhs, Load):
            return found.isdisjoint(_operands(let))
        return any(self.may_change(out, let.rhs, launch) for launch in self.taken_by(out))

    def taken_by(self, out: Var) -> list[_Launched]:
        """The launches that take a scalar, or what is computed from it."""
        found = list(self.launches.get(out, ()))
        for taker in self.takers.get(out, ()):
            found += self.taken_by(taker)
        return found

    def may_change(self, out: Var, load: Load, launch: _Launched) -> bool:
        """Whether an element may be stored to before the end of a launch that takes it."""
        block, start = self.places[out]
        memory = self.device.host.roots.get(load.array)
        if memory is None or block not in launch.ends:
            return True
        end = max(launch.ends[block], launch.at)
        return any(roots is None or bool(roots & memory) for place, roots in self.stores if start < place <= end)

    def needed(self, kernel: Kernel, moving: set[Var]) -> list[ir.Let]:
        """The statements that compute what a kernel takes of the scalars that move, in order."""
        wanted = moving.intersection(kernel.params)
        if not wanted:
            return []
        for out in reversed(self.lets):
            if out in wanted:
                wanted |= moving & _operands(self.lets[out])
        return [let for out, let in self.lets.items() if out in wanted]


def _may_move(out: Var, rhs: ir.Rhs) -> bool:
    kind = out.type
    if not isinstance(kind, Scalar) or is_complex(kind.dtype):
        return False
    match rhs:
        case Load():
            return True
        case Prim(name, args):
            return name in EXACT and not any(_is_complex(arg) for arg in args)
        case Cast(arg):
            return is_float(kind.dtype) and not _is_complex(arg)
    return False


def _is_complex(operand: Operand) -> bool:
    return isinstance(operand.type, Scalar) and is_complex(operand.type.dtype)


def _operands(let: ir.Let) -> set[Var]:
    return {operand for operand in ir.operands_in(let) if isinstance(operand, Var)}


# ---- moving ----------------------------------------------------------------------------------------------------------


def _with_scalars(kernel: Kernel, lets: list[ir.Let]) -> Kernel:
    """A kernel that computes scalars itself, from parameters that it gets in their place."""
    if not lets:
        return kernel
    computed = {let.out for let in lets}
    params = dict.fromkeys(param for param in kernel.params if param not in computed)
    for let in lets:
        params |= dict.fromkeys(operand for operand in ir.operands_in(let) if isinstance(operand, Var))
    function = kernel.function
    body = ir.Block((*lets, *function.body.statements))
    made = replace(function, params=tuple(param for param in params if param not in computed), body=body)
    return replace(kernel, function=made)


def _without(block: ir.Block, moved: set[Var], kernels: tuple[Kernel, ...]) -> ir.Block:
    """A block of the host that leaves scalars to kernels."""
    statements: list[ir.Statement] = []
    for statement in block.statements:
        match statement:
            case ir.Let(out) if out in moved:
                continue
            case ir.Launch(number, blocks, args):
                if not moved.isdisjoint(arg for arg in args if isinstance(arg, Var)):
                    statement = ir.Launch(number, blocks, kernels[number].params)
        statements.append(with_blocks(statement, lambda inner: _without(inner, moved, kernels)))
    return ir.Block(tuple(statements))
