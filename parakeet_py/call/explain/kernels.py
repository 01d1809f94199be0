"""The parallel operators that are left after fusion, as kernels: index space, bytes, operations, a roofline estimate.

What a kernel moves and computes is counted from the typed IR with the extents of the call's arguments: an array that it
reads counts once as a whole (no more than the elements that are loaded), what it stores counts once, operations are
those of the cost model by which fusion decides. The roofline estimate is the longer of the two times that the bytes and
the operations take at the rates of this machine, as `parakeet doctor --calibrate` has measured them, or as assumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array, Scalar, Type, itemsize
from parakeet_py.hybrid.devices import calibration
from parakeet_py.hybrid.plan.part_cost import cpu_speed
from parakeet_py.imp.storage.allocations import Sizes
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.passes.analysis.traffic import OPERATORS, traffic
from parakeet_py.typed_ir.passes.fusion.cost import ENDLESS

_ASSUMED_BANDWIDTH = 1e10  # bytes a second


def statements(block: ir.Block, repeated: bool = False) -> Iterator[tuple[ir.Let, bool]]:
    """The statements of a block and of the loops and branches in it, but not of operators; of each, whether it is in a
    loop."""
    for let in block.statements:
        yield let, repeated
        if not isinstance(let.op, OPERATORS):
            for inner in ir.blocks_of(let.op):
                yield from statements(inner, repeated or isinstance(let.op, ir.For | ir.While))


class Shapes:
    """The extents of the arrays of a function in one call, as far as they follow from its arguments."""

    def __init__(self, function: ir.Function, values: Sequence[object]) -> None:
        self._sizes = Sizes(function.params, (), values)
        self._extents: dict[ir.Var, ir.Indices] = {}
        self._same: dict[ir.Operand, ir.Operand] = {}
        joined: list[tuple[ir.Var, ir.Operand, ir.Operand]] = []  # what may be either of two values
        for let in ir.walk(function.body):
            op = let.op
            if len(let.outs) == 1:
                self._sizes.see(let.outs[0], op)
            if isinstance(op, ir.AnyView | ir.Alloc | ir.Map | ir.Scan | ir.Reduce):
                self._extents |= dict.fromkeys(let.outs, op.extents)
            elif isinstance(op, ir.If):
                joined += zip(let.outs, op.then.results, op.orelse.results, strict=True)
            elif isinstance(op, ir.For | ir.While):
                results = op.body.results[op.stoppable :]
                for outs in (let.outs[op.stoppable :], op.params):
                    joined += zip(outs, op.inits, results, strict=True)
        joined = [one for one in joined if isinstance(one[0].type, Array)]
        self._same.update((out, one) for out, one, _ in joined)
        for out, one, other in reversed(joined):
            if self.of(one) != self.of(other):
                del self._same[out]

    def product(self, extents: Sequence[ir.Operand]) -> int | None:
        return self._sizes.product(extents, 1)

    def of(self, array: ir.Operand) -> tuple[int | None, ...]:
        """The extents of an array; None for those that are not known beforehand."""
        while array in self._same:
            array = self._same[array]
        kind = array.type
        assert isinstance(array, ir.Var) and isinstance(kind, Array)
        if array in self._sizes.shapes:
            return self._sizes.shapes[array]
        extents = self._extents.get(array, ())
        numbers = [self._sizes.number(extent) for extent in extents] or [None] * kind.rank
        return tuple([None if number is None else int(number) for number in numbers])

    def bytes(self, array: ir.Operand) -> int | None:
        kind, shape = array.type, self.of(array)
        assert isinstance(kind, Array)
        count = _product(shape)
        return None if count is None else count * itemsize(kind.dtype)

    def describe(self, var: ir.Var) -> str:
        """Type, shape and size of a value: ``float64[480, 640], 2,457,600 bytes``."""
        if not isinstance(var.type, Array):
            return _scalar(var.type)
        shape, size = self.of(var), self.bytes(var)
        text = f"{var.type.dtype}[{', '.join('?' if extent is None else str(extent) for extent in shape)}]"
        return text if size is None else f"{text}, {size:,} bytes"


def _scalar(kind: Type) -> str:
    return kind.dtype if isinstance(kind, Scalar) and not kind.python else repr(kind).removeprefix("py")


@record
class Rates:
    """How fast this machine is: bytes and operations a second, and whether that was measured here."""

    bandwidth: float
    operations: float
    measured: bool

    @classmethod
    def of_cpu(cls, threads: int) -> Rates:
        stored = calibration.stored("cpu")
        bandwidth = stored[1] if stored is not None else 0.0
        return cls(bandwidth or _ASSUMED_BANDWIDTH, cpu_speed(threads).operations, bandwidth > 0)


@record
class Kernel:
    """One parallel operator.

    Attributes
    ----------
    kind, space : the operator, and the extents of its index space
    let : its statement, whose blocks are the fused computation
    repeated : it is in a loop: all numbers are those of one run
    loaded, stored : bytes; None if they are not known beforehand
    operations : scalar operations; None if they are not known beforehand, or are those of a routine
    """

    kind: str
    space: tuple[int | None, ...]
    let: ir.Let
    repeated: bool
    loaded: int | None
    stored: int | None
    operations: int | None

    @property
    def title(self) -> str:
        space = " × ".join("n" if extent is None else f"{extent:,}" for extent in self.space)
        known = " (n is known when it runs)" if None in self.space else ""
        return f"{self.kind} over {space}{known}" if space else self.kind

    def seconds(self, rates: Rates) -> tuple[float | None, float | None]:
        """Estimates: what its bytes take, and what its operations take."""
        moved = None if self.loaded is None or self.stored is None else (self.loaded + self.stored) / rates.bandwidth
        return moved, None if self.operations is None else self.operations / rates.operations


def kernels_of(function: ir.Function, values: Sequence[object]) -> list[Kernel]:
    """The kernels of a function in order, for a call with these leaf values."""
    shapes = Shapes(function, values)
    lets = [(let, repeated) for let, repeated in statements(function.body) if isinstance(let.op, OPERATORS)]
    return [_kernel(let, repeated, shapes) for let, repeated in lets]


def _kernel(let: ir.Let, repeated: bool, shapes: Shapes) -> Kernel:
    op, moves = let.op, traffic(let)
    match op:
        case ir.Matmul(out, left):
            space: tuple[int | None, ...] = (*shapes.of(out), shapes.of(left)[-1])
        case ir.Routine(outs=outs):
            space = shapes.of(outs[0]) if outs else ()
        case _:
            assert isinstance(op, ir.PARALLEL)
            extents = op.extents + (op.reduced_extents if isinstance(op, ir.Reduce) else ())
            space = tuple([shapes.product((extent,)) for extent in extents])
    points = _product(space)

    def moved(counts: dict[ir.Var, int]) -> int | None:
        each = [(array, count * itemsize(ir.dtype_of(array))) for array, count in counts.items()]
        sizes = [_least(shapes.bytes(array), points, size) for array, size in each]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    operations = None if moves.work >= ENDLESS or points is None else points * moves.work
    name = op.name if isinstance(op, ir.Routine) else type(op).__name__
    return Kernel(name, space, let, repeated, moved(moves.loaded), moved(moves.stored), operations)


def _product(shape: tuple[int | None, ...]) -> int | None:
    known = [extent for extent in shape if extent is not None]
    return math.prod(known) if len(known) == len(shape) else None


def _least(size: int | None, points: int | None, each: int) -> int | None:
    """The bytes of an array, or those that are accessed, so many at each point, if that is less."""
    accessed = None if points is None or each >= ENDLESS else points * each
    return min([one for one in (size, accessed) if one is not None], default=None)
