"""Cutting the regions out of a function: a host part that launches kernels, and the kernels.

    n = dim x, 0                                        kernel 0 (x, y, n):
    grid map, blocks of 256 threads:          becomes       i = this block * 256 + this thread ...
        i = this block * 256 + this thread
        ...                                             host: n = dim x, 0;  launch 0, blocks (x, y, n)

A kernel's parameters are the variables that its body takes from around it; the cells of the outside that it reads are
passed by value. What stands between regions stays with the host: sizes, memory, checks, loops whose iterations launch.
A loop or branch of the host that touches elements of arrays but launches nothing becomes a kernel of one thread (a
*task*), so that data stays where it is; the cells that it writes come back through one element of memory each. So does
a store of what comes from another element. A loop that does something of the host's only where a condition says so that
never changes in it is a task where that does not hold.

A `Parallel` region (an operator lowered as for the CPU) becomes a kernel in which every thread runs one grain of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.grammar import with_blocks
from parakeet_py.base.types import BOOL, INT64, Array, Scalar
from parakeet_py.frontend.ssa import Pos
from parakeet_py.imp import ir
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Cast, Const, Load, Operand, Prim, Var

GRAIN_THREADS = 64  # threads of a block whose threads run a grain each


@record
class Kernel:
    """One kernel: what `threads` threads of every block run, and what it takes from the host.

    Attributes
    ----------
    params : arrays and scalars, in the order of a `Launch`'s args
    checked : it may fail; then it has three more parameters, see `codegen`
    single : it is run by one thread only
    function : the Imp function it is compiled as
    contract : products and sums may be fused whatever the settings
    product : a product of two matrices is all that it computes: the places of left, right and result in `params`
    guarded : it may be launched when others before it may have failed, and does nothing then
    at_once : its threads fail alike, and after stores: the first one says all about it
    """

    name: str
    threads: int
    checked: bool
    single: bool
    function: ir.Function
    contract: bool = False
    product: tuple[int, ...] | None = None
    guarded: bool = False
    at_once: bool = False

    @property
    def divisible(self) -> bool:
        """Whether threads of a block have nothing to do with each other, so that blocks may be smaller."""
        return not self.single and not any(_meets(statement) for statement in ir.walk(self.function.body))

    @property
    def params(self) -> tuple[Var, ...]:
        return self.function.params


@record
class DeviceFunction:
    """A function as a host part and its kernels."""

    host: ir.Function
    kernels: tuple[Kernel, ...]


def outline(function: ir.Function) -> DeviceFunction:
    """Cut the regions out of a function whose references have not been counted yet."""
    cutter = _Cutter(function)
    body = cutter.block(function.body)
    host = ir.Function(function.name, function.params, body, function.results, function.failures, cutter.roots)
    return DeviceFunction(host, tuple(cutter.kernels))


@dataclass(slots=True)
class _Uses:
    """What a block takes from around it, in the order of first use."""

    bound: set[Var | ir.Cell] = field(default_factory=set)
    variables: dict[Var, None] = field(default_factory=dict)
    read: dict[ir.Cell, None] = field(default_factory=dict)
    written: dict[ir.Cell, None] = field(default_factory=dict)

    def block(self, block: ir.Block) -> None:
        for statement in block.statements:
            # what a While looks at may be bound in its head: see below
            for operand in () if isinstance(statement, ir.While) else ir.operands_in(statement):
                if isinstance(operand, Var) and operand not in self.bound:
                    self.variables[operand] = None
            match statement:
                case ir.Let(_, ir.Read(cell)) if cell not in self.bound:
                    self.read[cell] = None
                case ir.Declare(cell):
                    self.bound.add(cell)
                case ir.Write(cell) if cell not in self.bound:
                    self.written[cell] = None
                case ir.For(index=index):
                    self.bound.add(index)
                case ir.Parallel(lo, hi):
                    self.bound |= {lo, hi}
            if isinstance(statement, ir.Let):
                self.bound.add(statement.out)
            if isinstance(statement, ir.While):
                self.block(statement.head)
                if isinstance(statement.condition, Var) and statement.condition not in self.bound:
                    self.variables[statement.condition] = None
                self.block(statement.body)
                continue
            for inner in ir.blocks_of(statement):
                self.block(inner)


class _Cutter:
    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.roots = dict(function.roots)
        self.kernels: list[Kernel] = []
        self.next_root = 1 + max((root for roots in self.roots.values() for root in roots), default=0)
        self.loaded: set[Var] = set()  # elements that the host looks at, and what is computed from them

    def block(self, block: ir.Block) -> ir.Block:
        sink: list[ir.Statement] = []
        for statement in block.statements:
            match statement:
                case ir.Grid(blocks, threads, body, name, contract, product, at_once):
                    self.launch(sink, name, blocks, threads, body, contract, product, at_once)
                case ir.Parallel():
                    self.grains(sink, statement)
                case ir.For() | ir.While() | ir.If() if _is_task(statement):
                    self.task(sink, statement)
                case ir.For() if (apart := _told_apart(statement)) is not None:
                    condition, *loops = apart
                    one, other = (self.block(ir.Block((loop,))) for loop in loops)
                    sink.append(ir.If(condition, one, other))
                case ir.Store(value=value) if value in self.loaded:
                    self.task(sink, statement)
                case ir.Let(out, ir.NewArray(extents, "stack"), pos):
                    sink.append(ir.Let(out, ir.NewArray(extents, "heap"), pos))
                case _:
                    if isinstance(statement, ir.Let) and self.comes_from_memory(statement):
                        self.loaded.add(statement.out)
                    sink.append(with_blocks(statement, self.block))
        return ir.Block(tuple(sink))

    def comes_from_memory(self, let: ir.Let) -> bool:
        """Whether a value is an element of an array, or computed from such: `device_scalars` may keep it there."""
        if isinstance(let.rhs, Load):
            return True
        return isinstance(let.rhs, Prim | Cast) and any(arg in self.loaded for arg in ir.operands_in(let))

    # ---- kernels -----------------------------------------------------------------------------------------------------

    def launch(
        self,
        sink: list[ir.Statement],
        name: str,
        blocks: Operand,
        threads: int,
        body: ir.Block,
        contract: bool = False,
        product: tuple[Var, ...] | None = None,
        at_once: bool = False,
    ) -> None:
        """Make a kernel of a region body, and launch it."""
        uses = _Uses()
        uses.block(body)
        assert not uses.written, f"a region writes {next(iter(uses.written))!r}"
        args = list(dict.fromkeys((*uses.variables, *(product or ()))))
        top: list[ir.Statement] = []
        for cell in uses.read:
            value = Var(cell.name, cell.type)
            if cell in self.roots:
                self.roots[value] = self.roots[cell]
            sink.append(ir.Let(value, ir.Read(cell), self.function.failures[0].pos))
            top.append(ir.Declare(cell, value))
            args.append(value)
        places = None if product is None else tuple(args.index(array) for array in product)
        number = self.kernel(name, threads, tuple(args), ir.Block((*top, *body.statements)), contract, places, at_once)
        sink.append(ir.Launch(number, blocks, tuple(args)))

    def kernel(
        self,
        name: str,
        threads: int,
        params: tuple[Var, ...],
        body: ir.Block,
        contract: bool = False,
        product: tuple[int, ...] | None = None,
        at_once: bool = False,
    ) -> int:
        """Keep a kernel; gives its number."""
        number = len(self.kernels)
        full = f"{self.function.name}_{name.replace(' ', '_')}_{number}"
        function = ir.Function(full, params, body, (), self.function.failures, self.roots)
        checked, single = _may_fail(body), threads == 1
        self.kernels.append(Kernel(full, threads, checked, single, function, contract, product, at_once=at_once))
        return number

    def grains(self, sink: list[ir.Statement], region: ir.Parallel) -> None:
        """A region written for threads that take ranges: a thread for every grain."""
        pos = self.function.failures[0].pos

        def let(into: list[ir.Statement], name: str, *args: Operand, kind: Scalar = INT64) -> Var:
            out = Var("t", kind)
            into.append(ir.Let(out, Prim(name, args), pos))
            return out

        per_block = let(sink, "mul", region.grain, Const(GRAIN_THREADS, INT64))
        last = let(sink, "sub", per_block, ONE)
        blocks = let(sink, "floordiv", let(sink, "add", region.extent, last), per_block)
        body: list[ir.Statement] = []
        thread = this_thread(body, GRAIN_THREADS, pos)
        body.append(ir.Let(region.lo, Prim("mul", (thread, region.grain)), pos))
        end = let(body, "add", region.lo, region.grain)
        inner = (ir.Let(region.hi, Prim("minimum", (end, region.extent)), pos), *region.body.statements)
        some = let(body, "lt", region.lo, region.extent, kind=BOOL)
        body.append(ir.If(some, ir.Block(inner), ir.Block(())))
        self.launch(sink, region.name, blocks, GRAIN_THREADS, ir.Block(tuple(body)))

    def task(self, sink: list[ir.Statement], statement: ir.Statement) -> None:
        """A kernel of one thread for a loop or branch of the host."""
        pos = self.function.failures[0].pos
        uses = _Uses()
        uses.block(ir.Block((statement,)))
        args = list(uses.variables)
        top: list[ir.Statement] = []
        bottom: list[ir.Statement] = []
        after: list[ir.Statement] = []
        for cell in {**uses.read, **uses.written}:
            before = Var(cell.name, cell.type)
            if cell in self.roots:
                self.roots[before] = self.roots[cell]
            sink.append(ir.Let(before, ir.Read(cell), pos))
            top.append(ir.Declare(cell, before))
            args.append(before)
            if cell in uses.written:
                assert isinstance(cell.type, Scalar)
                memory = Var(cell.name, Array(cell.type.dtype, 1, "C"))
                self.roots[memory] = frozenset((self.next_root,))
                self.next_root += 1
                sink.append(ir.Let(memory, ir.NewArray((ONE,)), pos))
                args.append(memory)
                last, final = Var(cell.name, cell.type), Var(cell.name, cell.type)
                bottom += [ir.Let(last, ir.Read(cell), pos), ir.Store(memory, (ZERO,), last, pos)]
                after += [ir.Let(final, Load(memory, (ZERO,)), pos), ir.Write(cell, final)]
        body = ir.Block((*top, *_numbered(ir.Block((statement,))).statements, *bottom))
        number = self.kernel("task", 1, tuple(args), body)
        sink.append(ir.Launch(number, ONE, tuple(args)))
        sink += after


def _numbered(block: ir.Block) -> ir.Block:
    """The block with a number for every check that has none: one thread meets them in order."""
    return ir.Block(tuple(_with_number(statement) for statement in block.statements))


def _with_number(statement: ir.Statement) -> ir.Statement:
    if isinstance(statement, ir.Check) and statement.order is None:
        return replace(statement, order=ZERO)
    return with_blocks(statement, _numbered)


def this_thread(sink: list[ir.Statement], threads: int, pos: Pos) -> Var:
    """Write the number of the present thread in its grid."""
    block, thread, start, number = (Var(name, INT64) for name in ("block", "thread", "start", "thread"))
    for out, rhs in (
        (block, ir.Lane("block")),
        (start, Prim("mul", (block, Const(threads, INT64)))),
        (thread, ir.Lane("thread")),
        (number, Prim("add", (start, thread))),
    ):
        sink.append(ir.Let(out, rhs, pos))
    return number


def _is_task(statement: ir.Statement) -> bool:
    """Whether a compound statement of the host touches elements, and does nothing that only the host can."""
    touches = False
    for inner in ir.walk(ir.Block((statement,))):
        match inner:
            case ir.Grid() | ir.Parallel() | ir.Opaque() | ir.Matmul() | ir.Routine() | ir.Let(rhs=ir.NewArray()):
                return False
            case ir.Declare(cell) | ir.Write(cell) if not isinstance(cell.type, Scalar):
                return False
            case ir.Store() | ir.Let(rhs=Load()):
                touches = True
    return touches and not _breaks_out(statement)


def _told_apart(loop: ir.For) -> tuple[Operand, ir.For, ir.For] | None:
    """A loop whose body asks what never changes there, as a condition and two loops, of which at least one is a task:
    no function has both. None if it is no such loop."""
    uses = _Uses()
    uses.block(loop.body)
    for place, inner in enumerate(loop.body.statements):
        if not isinstance(inner, ir.If) or inner.condition not in uses.variables or inner.condition == loop.index:
            continue
        before, after = loop.body.statements[:place], loop.body.statements[place + 1 :]
        found = [
            replace(loop, body=ir.Block((*before, *branch.statements, *after))) for branch in (inner.then, inner.orelse)
        ]
        if any(map(_is_task, found)):
            return inner.condition, found[0], found[1]
    return None


def _breaks_out(statement: ir.Statement) -> bool:
    """Whether a `Break` inside leaves a loop around the statement."""
    match statement:
        case ir.Break():
            return True
        case ir.For() | ir.While():
            return False
    return any(_breaks_out(inner) for block in ir.blocks_of(statement) for inner in block.statements)


def _meets(statement: ir.Statement) -> bool:
    match statement:
        case (
            ir.Barrier()
            | ir.WarpProduct()
            | ir.BulkProduct()
            | ir.Let(rhs=ir.Shuffle() | ir.Ballot() | ir.Peers() | ir.NewArray())
        ):
            return True
        case ir.Let(rhs=ir.Lane("lane" | "threads" | "groups" | "boxes")):
            return True
    return False


def _may_fail(body: ir.Block) -> bool:
    for statement in ir.walk(body):
        match statement:
            case ir.Check():
                return True
            case ir.Let(rhs=Prim(name=name)) if name.endswith("_checked"):
                return True
    return False
