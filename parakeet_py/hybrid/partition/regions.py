"""A function as a host part and the regions that are shared among devices.

Every parallel operator at the host level is taken out of the typed function; what stands in its place is an `Opaque`
call numbered after those of the user's own. So the host part of a function whose regions the executor runs is made like
any other (`host_code`). A loop or branch of the host that touches elements and holds no operator is a region too, one
that cannot be cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array, Object
from parakeet_py.hybrid.partition.access import Touched
from parakeet_py.hybrid.partition.division import Division
from parakeet_py.hybrid.partition.fission import divisions
from parakeet_py.hybrid.partition.part_functions import standalone
from parakeet_py.hybrid.partition.product_parts import tile
from parakeet_py.hybrid.partition.tasks import Group, Stage, Stages, Task, lines_of
from parakeet_py.hybrid.plan.host_code import host_function
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower.function import lower_unmanaged
from parakeet_py.imp.storage import reference_counts
from parakeet_py.ptx.kernels.lowering import lower_map
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Function, Let, Op, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.rewrite import Rewriter, free_in_op, free_variables


@record
class Region:
    """An operator of the host level.

    Attributes
    ----------
    name : of the function and what it is
    line : in the source
    op, outs : itself
    args : what it takes from outside
    whole : (*args) -> outs, the operator as it is
    touched : the elements that it reads and writes
    divisions : the ways to cut it, best first
    uneven : its iterations may differ in cost
    tiled : the way to cut a product of matrices along both axes
    """

    name: str
    line: int
    op: Op
    outs: tuple[Var, ...]
    args: tuple[Var, ...]
    whole: Function
    touched: Touched
    divisions: tuple[Division, ...]
    uneven: bool = False
    tiled: Division | None = None


def cut_regions(function: Function) -> tuple[imp.Function, tuple[Region | Group, ...], int]:
    """The host part of a function, its regions and groups of tasks, and the number of the first of these among opaque
    calls."""
    cutter = _Cutter(function)
    host = cutter.function(function)
    return _managed(host), tuple(cutter.sites), cutter.first


def host_steps(function: Function) -> imp.Function:
    """A function as statements of a host part: it has no operators."""
    return _managed(function)


def _managed(function: Function) -> imp.Function:
    lowered = lower_unmanaged(function, {ir.Map: lower_map})
    body = reference_counts.manage(lowered.body, lowered.results)
    return imp.Function(lowered.name, lowered.params, body, lowered.results, lowered.failures, lowered.roots)


class _Cutter(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.name = function.name
        self.first = 1 + max(
            (let.op.site for let in function.statements() if isinstance(let.op, ir.Opaque)), default=-1
        )
        self.sites: list[Region | Group] = []
        aliases = Aliases(function)
        seen = aliases.world.union(*map(aliases.atoms, function.params))
        self.seen: Callable[[Var], bool] = lambda array: not seen.isdisjoint(aliases.atoms(array))
        self.stages = Stages(aliases, seen, _computes)

    def block(self, block: Block) -> Block:
        statements: list[Let] = []
        found = self.stages.of(block)
        for number, stage in enumerate(found):
            if isinstance(stage, Let):
                statements += self.statement(stage) or (stage,)
                continue
            statements += stage.first
            rest = [
                let
                for later in found[number + 1 :]
                for let in ((later,) if isinstance(later, Let) else later.statements())
            ]
            statements.append(self.group(stage, free_variables(Block(tuple(rest), block.results))))
        return Block(tuple(statements), block.results)

    def group(self, stage: Stage, used: Mapping[Var, None]) -> Let:
        """The call that stands for the tasks of a stage; `used` later are these variables."""
        tasks: list[Task] = []
        for statements in stage.tasks:
            lets = tuple(new for let in statements.lets for new in self.statement(let) or (let,))
            outs = tuple(out for let in lets for out in let.outs if out in used)
            body = Block(lets, outs)
            args = tuple(free_variables(body))
            function = _managed(standalone(f"{self.name}_task_{len(tasks)}", args, body))
            tasks.append(Task(args, outs, function, host_function(function)[0], lines_of(statements.lets)))
        args = tuple(dict.fromkeys(arg for task in tasks for arg in task.args))
        self.sites.append(Group(f"{self.name}_tasks_{len(self.sites)}", args, tuple(tasks)))
        outs = tuple(out for task in tasks for out in task.outs)
        return Let(outs, ir.Opaque(self.first + len(self.sites) - 1, args), stage.tasks[0].lets[0].pos)

    def statement(self, let: Let) -> Sequence[Let] | None:
        if not (isinstance(let.op, (*ir.PARALLEL, ir.Matmul)) or _is_one(let)):
            return self.descend(let)
        if any(isinstance(inner.op, ir.Opaque) for block in ir.blocks_of(let.op) for inner in ir.walk(block)):
            return self.descend(let)  # its points are the host's to run
        args = tuple(free_in_op(let.op))
        kind = type(let.op).__name__.lower()
        name = f"{self.name}_{kind}_{len(self.sites)}"
        whole = standalone(name, args, Block((let,), let.outs))
        found = divisions(let, name, self.seen)
        tiled = tile(let.op, name) if isinstance(let.op, ir.Matmul) else None
        self.sites.append(
            Region(name, let.pos.line, let.op, let.outs, args, whole, Touched(let.op), found, _uneven(let.op), tiled)
        )
        return [Let(let.outs, ir.Opaque(self.first + len(self.sites) - 1, args), let.pos)]


def _uneven(op: Op) -> bool:
    """Whether iterations have loops whose lengths are their own."""
    inside = [inner for block in ir.blocks_of(op) for inner in ir.walk(block)]
    own = {out for inner in inside for out in inner.outs} | {*getattr(op, "indices", ())}
    for inner in inside:
        match inner.op:
            case ir.While() | ir.For(stoppable=True):
                return True
            case ir.For(start=start, stop=stop) if start in own or stop in own:
                return True
            case ir.Map() | ir.Reduce() if not own.isdisjoint(_bounds(inner.op)):
                return True
    return False


def _bounds(op: Op) -> list[Operand]:
    return [*getattr(op, "extents", ()), *getattr(op, "reduced_extents", ())]


def _computes(let: Let) -> bool:
    """Whether a statement is a region, or has regions in it."""
    inside = [let, *(inner for block in ir.blocks_of(let.op) for inner in ir.walk(block))]
    return any(isinstance(one.op, (*ir.PARALLEL, ir.Matmul)) or _is_one(one) for one in inside)


def _is_one(let: Let) -> bool:
    """Whether a loop or branch touches elements, and has nothing in it that the host has to do."""
    if not isinstance(let.op, ir.If | ir.For | ir.While) or _carries_arrays(let):
        return False
    touches = False
    for block in ir.blocks_of(let.op):
        for inner in ir.walk(block):
            match inner.op:
                case ir.Alloc() | ir.Opaque() | ir.Matmul():
                    return False
                case ir.Load() | ir.Store():
                    touches = True
                case _ if isinstance(inner.op, ir.PARALLEL):
                    return False
            if isinstance(inner.op, ir.If | ir.For | ir.While) and any(
                isinstance(out.type, Array | Object) for out in inner.outs
            ):
                return False
    return touches


def _carries_arrays(let: Let) -> bool:
    return any(isinstance(out.type, Array | Object) for out in let.outs)
