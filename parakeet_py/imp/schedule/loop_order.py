"""What a body does with its index variables, and what follows for the order and kind of its loops.

`study` walks a body of the typed IR once and collects its accesses, checks, stores and operators. From the indices of
the accesses, seen as linear forms in the index variables, it answers the questions of scheduling:

* `stride_cost`: how bad is it to make an index variable the innermost loop (0 for each access that does not move, 1 for
  unit stride, more for larger strides and gathers)? The variable with the least cost becomes the inner loop.
* `simple`: can the body be one vector loop?
* `cost`: about how many scalar operations is one iteration (for deciding when threads pay)?
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Protocol

from parakeet_py.base import exact_loops, grammar
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import INT64, Array, is_complex
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.typed_ir import ir as typed
from parakeet_py.typed_ir.ir import Block, Const, Operand, Var

_SLOW = {
    **dict.fromkeys(typed.ELEMENTARY, 20),
    **dict.fromkeys(("div", "sqrt", "floordiv", "mod"), 4),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"), 15),
    **dict.fromkeys(("pow", "power", "atan2", "hypot", "fmod", "erf", "erfc", "gamma", "lgamma", "nextafter"), 25),
}
_DEAR = frozenset(name for name, cost in _SLOW.items() if cost > 4)


def is_dear(name: str) -> bool:
    """Whether a primitive is an elementary function, or one of NumPy's loops."""
    return name in _DEAR or exact_loops.is_loop(name)


UNKNOWN_TRIPS = 32  # iterations of a nested loop whose count is not known before the region


@record
class Access:
    array: Var
    indices: tuple[Operand, ...]
    store: bool


@record(frozen=False)
class Study:
    """What a body does. `inside` are the variables it binds, `stored` the targets of operators in it.

    `given` are its indices and what else its operator binds for it.
    """

    block: Block
    given: frozenset[Var] = frozenset()
    accesses: list[Access] = field(default_factory=list)
    definitions: dict[Var, typed.Prim | typed.Cast] = field(default_factory=dict)
    views: dict[Var, typed.AnyView] = field(default_factory=dict)
    inside: set[Var] = field(default_factory=set)
    other_uses: set[Var] = field(default_factory=set)  # operands of everything but loads and stores, and results
    has_check: bool = False
    has_loop: bool = False
    has_array: bool = False
    has_opaque: bool = False
    stored: list[Var] = field(default_factory=list)

    @property
    def simple(self) -> bool:
        """Straight-line code, at most with branches: the body of a vector loop once its checks are made."""
        return not (self.has_loop or self.has_array)

    def visible_stores(self, private: Collection[Var] = ()) -> bool:
        """Whether the body stores into memory that exists outside of it, other than into these arrays."""
        targets = [*self.stored, *(access.array for access in self.accesses if access.store)]
        return any(root not in self.inside and root not in private for root in map(self.root, targets))

    def root(self, array: Var) -> Var:
        """The array of which this is a view, as far as the body shows."""
        while array in self.views:
            array = self.views[array].base
        return array


class _Operator(Protocol):
    @property
    def body(self) -> Block: ...


def study(op: _Operator) -> Study:
    """Walk the body of an operator once."""
    result = Study(op.body, frozenset(grammar.binders(op)))
    _walk(op.body, result)
    return result


def _walk(block: Block, found: Study) -> None:
    for let in block.statements:
        op = let.op
        found.inside.update(let.outs)
        match op:
            case typed.Load(array, indices):
                found.accesses.append(Access(array, indices, False))
                continue
            case typed.Store(array, indices, value):
                found.accesses.append(Access(array, indices, True))
                if isinstance(value, Var):
                    found.other_uses.add(value)
                continue
            case typed.Prim():
                found.definitions[let.outs[0]] = op
                found.has_check |= op.name.endswith("_checked")
            case typed.Cast():
                found.definitions[let.outs[0]] = op
            case typed.Dim() | typed.Stride():
                pass
            case typed.AnyView():
                found.views[let.outs[0]] = op
                found.has_array = True
            case typed.Check():
                found.has_check = True
            case typed.If():
                found.has_array |= any(isinstance(out.type, Array) for out in let.outs)
            case typed.Alloc():
                found.has_array = True
            case _ if isinstance(op, typed.CALLS):
                found.has_array = True
                found.has_opaque |= isinstance(op, typed.Opaque | typed.Call)
            case _:
                found.has_loop = True
        found.stored += typed.arrays_written(op)
        found.other_uses.update(operand for operand in typed.operands_of(op) if isinstance(operand, Var))
        for inner in typed.blocks_of(op):
            _walk(inner, found)
    found.other_uses.update(result for result in block.results if isinstance(result, Var))


# ---- indices as linear forms -----------------------------------------------------------------------------------------


def coefficient(found: Study, operand: Operand, index: Var) -> int | None:
    """How much `operand` grows when `index` grows by one; None if that is not a constant."""
    if operand is index:
        return 1
    if isinstance(operand, Const) or operand not in found.inside:
        return 0
    definition = found.definitions.get(operand)
    match definition:
        case typed.Prim("add" | "add_checked", (left, right)):
            a, b = coefficient(found, left, index), coefficient(found, right, index)
            return None if a is None or b is None else a + b
        case typed.Prim("sub" | "sub_checked", (left, right)):
            a, b = coefficient(found, left, index), coefficient(found, right, index)
            return None if a is None or b is None else a - b
        case typed.Prim("mul" | "mul_checked", (left, right)):
            a, b = coefficient(found, left, index), coefficient(found, right, index)
            if a == 0 and b == 0:
                return 0
            if isinstance(right, Const) and a is not None:
                return a * right.whole
            if isinstance(left, Const) and b is not None:
                return b * left.whole
            return None
        case typed.Prim("select", (_, left, right)):
            # A negative index wrapped around: both values move alike.
            a, b = coefficient(found, left, index), coefficient(found, right, index)
            return a if a == b else None
        case typed.Cast(arg):
            return coefficient(found, arg, index)
        case typed.Prim(_, args):
            return 0 if all(coefficient(found, arg, index) == 0 for arg in args) else None
        case _:
            return None


def stride_cost(found: Study, index: Var) -> int:
    """How costly the accesses of the body are in a loop over `index`."""
    return sum(access_cost(found, access, index) for access in found.accesses)


def access_cost(found: Study, access: Access, index: Var) -> int:
    """How costly one access is in a loop over `index`."""
    array, indices = access.array, access.indices
    kind = array.type
    assert isinstance(kind, Array)
    moved = any(coefficient(found, start, index) != 0 for start in _starts(found, array))
    if indices:
        unit = 0 if kind.layout == "F" else len(indices) - 1
        moved |= any(coefficient(found, other, index) != 0 for axis, other in enumerate(indices) if axis != unit)
        step = coefficient(found, indices[unit], index)
    else:
        step = 0
    if moved or step is None:
        return 16 if access.store else 8
    if step == 0:
        return 0
    return 1 if abs(step) == 1 and kind.layout != "A" else 3


def slides(found: Study, index: Var, other: Var) -> bool:
    """Whether an array is read at places that move by one along either of two indices: a window slides along it."""
    return any(
        all(coefficient(found, place, each) in (-1, 1) for each in (index, other))
        for access in found.accesses
        for place in access.indices
    )


def _starts(found: Study, array: Var) -> list[Operand]:
    starts: list[Operand] = []
    while array in found.views:
        view = found.views[array]
        if isinstance(view, typed.View):
            starts += view.starts
        array = view.base
    return starts


# ---- cost ------------------------------------------------------------------------------------------------------------


def static_cost(block: Block) -> int:
    """Scalar operations of one run of a block, nested loops counted as `UNKNOWN_TRIPS` iterations."""
    total = 0
    for let in block.statements:
        total += _op_cost(let.op)
        inner = sum(static_cost(each) for each in typed.blocks_of(let.op))
        match let.op:
            case typed.If():
                total += inner // 2 + 1
            case (
                typed.For()
                | typed.While()
                | typed.Map()
                | typed.Reduce()
                | typed.Scan()
                | typed.Compress()
                | typed.Scatter()
            ):
                total += inner * UNKNOWN_TRIPS
    return total


def _op_cost(op: object) -> int:
    match op:
        case typed.Prim(name, args):
            cost = 20 if exact_loops.is_loop(name) else _SLOW.get(name, 1)
            kind = args[0].type
            return cost * 4 if not isinstance(kind, Array) and is_complex(getattr(kind, "dtype", "")) else cost
        case _ if isinstance(op, typed.CALLS):
            return 1000
        case _:
            return 1


def work(lo: Lowering, found: Study, times: Sequence[Operand] = ()) -> Operand:
    """Emit the number of scalar operations of one run of a body, times `times`, as far as it is known before it."""
    inside = {var for let in typed.walk(found.block) for var in (*let.outs, *typed.binders_of(let.op))} | found.given
    return lo.multiply(_block_work(lo, found.block, inside), lo.product(times))


def _block_work(lo: Lowering, block: Block, inside: set[Var]) -> Operand:
    fixed = 1
    total: Operand = Const(0, INT64)
    for let in block.statements:
        op = let.op
        fixed += _op_cost(op)
        extents: tuple[Operand, ...]
        match op:
            case typed.If(_, then, orelse):
                fixed += static_cost(then) + static_cost(orelse)
                continue
            case (
                typed.Map(extents=extents)
                | typed.Compress(extents=extents)
                | typed.Scan(extents=extents)
                | typed.Scatter(extents=extents)
            ):
                pass
            case typed.Reduce(extents=kept, reduced_extents=reduced):
                extents = (*kept, *reduced)
            case typed.For(start=start, stop=stop, step=Const(1)) if (
                not inside & {start, stop} and _outside(lo, start) and _outside(lo, stop)
            ):
                extents = (lo.subtract(lo.operand(stop), lo.operand(start)),)
            case typed.For() | typed.While():
                extents = (Const(UNKNOWN_TRIPS, INT64),)
            case _:
                continue
        trips = [
            lo.operand(extent) if extent not in inside and _outside(lo, extent) else Const(UNKNOWN_TRIPS, INT64)
            for extent in extents
        ]
        inner: Operand = Const(0, INT64)
        for each in typed.blocks_of(op):
            inner = lo.add(inner, _block_work(lo, each, inside))
        total = lo.add(total, lo.multiply(lo.product(trips), inner))
    return lo.add(total, Const(fixed, INT64))


def _outside(lo: Lowering, operand: Operand) -> bool:
    """Whether an operand of a body has been bound already, before the body."""
    return isinstance(operand, Const) or operand in lo.bound or operand in lo.env
