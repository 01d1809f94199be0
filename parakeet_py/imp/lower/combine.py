"""How contributions combine: what a `combine` function is recognised as, and the cells that accumulate.

A combine whose results are each one primitive of an accumulator and its own contribution (sum, product, minimum,
maximum, any, all, and several of them at once) can be regrouped freely: its loop is a vector loop, and where regrouping
changes the rounding (`inexact`: sums and products of floats) the order is fixed by blocks, see `reductions`. Any other
combine (a user's own) is called point by point in order.

A combine that either takes a contribution or leaves the accumulators as they are, by a condition (argmin and argmax: a
smaller value comes with its index), is `selective`: a run in which the condition holds for no contribution, against the
accumulators before it, changes nothing. That can be found out by a vector loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, is_complex, is_float
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.typed_ir.ir import Cast, Lambda, Operand, Prim, Var, dtype_of

_REGROUPED = frozenset({"add", "mul", "minimum", "maximum", "fmin", "fmax", "and", "or", "xor"})


Conditions = tuple[tuple[Var, bool], ...]  # conditions, and their values that take a contribution


@record
class Combination:
    """A combine function and its identity (lowered); `names`: the primitives it consists of, if it is that simple."""

    function: Lambda
    inits: tuple[Operand, ...]
    names: tuple[str, ...] | None
    inexact: bool
    taken: Conditions | None  # of a selective combine

    @property
    def types(self) -> list[str]:
        return [dtype_of(init) for init in self.inits]

    @property
    def decided(self) -> bool | None:
        """The value after which an any (True) or all (False) cannot change; None for other combines."""
        if self.names in (("or",), ("and",)) and self.types == ["bool"]:
            return self.names == ("or",)
        return None


def combination(lo: Lowering, function: Lambda, inits: Sequence[Operand]) -> Combination:
    names = primitives(function)
    inexact = names is not None and any(
        name in ("add", "mul") and (is_float(dtype_of(init)) or is_complex(dtype_of(init)))
        for name, init in zip(names, inits, strict=True)
    )
    return Combination(function, lo.operands(inits), names, inexact, _conditions(function))


def primitives(function: Lambda) -> tuple[str, ...] | None:
    """The primitives of a combine that applies one to each accumulator and its own contribution, else None."""
    count = len(function.body.results)
    definitions = {let.outs[0]: let.op for let in function.body.statements if let.outs}
    if len(function.body.statements) != count:
        return None
    names = []
    for position, result in enumerate(function.body.results):
        pair = (function.params[position], function.params[count + position])
        match definitions.get(result) if isinstance(result, Var) else None:
            case Prim(name, args) if name in _REGROUPED and (args == pair or args == pair[::-1]):
                names.append(name)
            case _:
                return None
    return tuple(names)


def _conditions(function: Lambda) -> Conditions | None:
    """The conditions of a combine that takes whole contributions or none of them."""
    if not all(isinstance(let.op, Prim | Cast) for let in function.body.statements):
        return None
    chosen = [choice(function, position) for position in range(len(function.body.results))]
    return tuple(dict.fromkeys(pair for pair in chosen if pair is not None)) if None not in chosen else None


def choice(function: Lambda, position: int) -> tuple[Var, bool] | None:
    """The condition by which one result of a combine is its accumulator or its contribution."""
    old, new = function.params[position], function.params[len(function.body.results) + position]
    match definition(function, position):
        case Prim("select", (Var() as condition, first, second)) if {first, second} == {old, new}:
            return condition, first is new
        case _:
            return None


def definition(function: Lambda, position: int) -> object:
    """The operation that gives one result of a combine."""
    result = function.body.results[position]
    return next((let.op for let in function.body.statements if let.outs and let.outs[0] is result), None)


def takes(
    lo: Lowering,
    with_: Combination,
    conditions: Conditions,
    accumulators: Sequence[Operand],
    values: Sequence[Operand],
) -> Operand:
    """Whether a combine would take the values rather than keep the accumulators."""
    for param, value in zip(with_.function.params, (*accumulators, *values), strict=True):
        lo.alias(param, value)
    lo.lower_block(with_.function.body)
    taken: Operand | None = None
    for condition, wanted in conditions:
        holds = lo.operand(condition)
        if not wanted:
            holds = lo.prim("not", holds, type_=BOOL)
        taken = holds if taken is None else lo.prim("or", taken, holds, type_=BOOL)
    assert taken is not None
    return taken


def combine(
    lo: Lowering,
    with_: Combination,
    accumulators: Sequence[Operand],
    values: Sequence[Operand],
) -> tuple[Operand, ...]:
    """Write one application of a combine function."""
    function = with_.function
    if with_.names is not None:
        results = []
        for name, accumulator, value in zip(with_.names, accumulators, values, strict=True):
            out = Var("acc", accumulator.type)
            lo.bound[out] = lo.in_region
            lo.emit_let(out, Prim(name, (accumulator, value)))
            results.append(out)
        return tuple(results)
    for param, value in zip(function.params, (*accumulators, *values), strict=True):
        lo.alias(param, value)
    return lo.lower_block(function.body)


def declare(lo: Lowering, with_: Combination) -> list[Cell]:
    """Cells that hold the identity."""
    return [lo.declare("acc", init.type, init) for init in with_.inits]


def fold(lo: Lowering, with_: Combination, cells: Sequence[Cell], values: Sequence[Operand]) -> None:
    """Combine values into cells."""
    accumulators = [lo.read(cell) for cell in cells]
    lo.write_all(list(zip(cells, combine(lo, with_, accumulators, values), strict=True)))


def fold_in_order(lo: Lowering, with_: Combination, cells: Sequence[Cell], values: Sequence[Operand]) -> None:
    """Combine values into cells, in a loop that a selective combine leaves unchanged mostly: behind a branch, which is
    predicted, an iteration does not wait for the comparisons of the one before."""
    if with_.taken is None or len(with_.taken) != 1:
        fold(lo, with_, cells, values)
        return
    accumulators = [lo.read(cell) for cell in cells]
    taken = takes(lo, with_, with_.taken, accumulators, values)
    lo.when(taken, lambda: lo.write_all(list(zip(cells, values, strict=True))), rare=True)
