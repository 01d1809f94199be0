"""Extrema and where they are, in vector loops.

The minimum of two floats is several instructions that wait for one another, because a NaN must win. A run has it
cheaper: one accumulator takes the smaller number by a comparison that NaN spoils, a second remembers whether there was
a NaN. `accumulate` writes such loops. (`fmin` and `fmax` leave NaN out by themselves, beginning with one.)

An argmin is a selective combine whose condition says that the new key beats the old one: is smaller, or is a NaN and
the old one is not. `arg_extremum` proves this from the combine's condition: it consists of comparisons of the two keys
alone, so it has one value for each way in which two keys can compare, and these are tried. `arg_run` then needs no
order: it finds the least key of each leaf, and in the leaf that has the least of all the first place where it stands;
or, in short runs, the best of each lane (`extremum_lanes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, INT64, Scalar, is_complex, is_float, itemsize
from parakeet_py.imp.ir import Break, Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import Combination, Conditions, choice, definition, takes
from parakeet_py.imp.lower.extremum_lanes import ArgExtremum, Run, in_lanes
from parakeet_py.typed_ir.ir import COMPARE, Block, Const, Let, Load, Operand, Prim, Var, dtype_of, scalar_type
from parakeet_py.typed_ir.semantics import evaluate, integer_bounds, scalar

ARG_LEAF = 2048  # contributions of which the best key is known before its place; a quarter in short runs
DEPTH = 4  # keys of each lane that are compared before one is remembered, where nothing is computed anew
LONG_BYTES = 2048  # of keys, from which this pays for each of many runs
TRUTH_LEAF = 256
KEYS = 64  # that are computed before they are compared, where that takes long

Loop = Callable[[Callable[[], None]], None]  # writes a loop around the body that the argument writes


Keep = Callable[[Sequence[Operand]], Sequence[Operand | None]]


# ---- accumulating ----------------------------------------------------------------------------------------------------


@record
class _Extremum:
    """Cells for a minimum or maximum of floats: the best of the numbers, and whether a NaN was met."""

    name: str
    best: Cell
    met: Cell

    def take(self, lo: Lowering, value: Operand) -> list[tuple[Cell, Operand]]:
        nan = lo.prim("isnan", value, type_=BOOL)
        best = lo.let("acc", self.best.type, Prim(self.name, (lo.read(self.best), value)), True)
        return [(self.best, best), (self.met, lo.prim("or", lo.read(self.met), nan, type_=BOOL))]

    def result(self, lo: Lowering) -> Operand:
        best = lo.read(self.best)
        nan = Const(float("nan"), scalar_type(best))
        return lo.prim("select", lo.read(self.met), nan, best, type_=self.best.type)


def identity(name: str, dtype: str) -> Const:
    """The number of a dtype that loses every comparison."""
    least = name == "maximum"
    value: float | int | bool
    if dtype == "bool":
        value = not least
    elif is_float(dtype):
        value = -np.inf if least else np.inf
    else:
        value = integer_bounds(dtype)[0 if least else 1]
    return Const(value, Scalar(dtype))


def _special(name: str, dtype: str) -> bool:
    return name in ("minimum", "maximum") and is_float(dtype)


def _extremum(lo: Lowering, name: str, dtype: str) -> _Extremum:
    best = lo.declare("best", Scalar(dtype), identity(name, dtype))
    return _Extremum(name, best, lo.declare("met", BOOL, Const(False, BOOL)))


def accumulate(
    lo: Lowering, with_: Combination, cells: Sequence[Cell], body: Block, loop: Loop, keep: Keep | None = None
) -> None:
    """Combine what a body contributes into cells, in a vector loop, by a combine that may be regrouped; `keep` takes
    what is not to be combined."""
    assert with_.names is not None
    named = list(zip(with_.names, cells, with_.types, strict=True))
    parts = [_extremum(lo, name, dtype) if _special(name, dtype) else None for name, _, dtype in named]

    def step() -> None:
        writes: list[tuple[Cell, Operand]] = []
        contributions = lo.lower_block(body)
        values = contributions if keep is None else keep(contributions)
        for (name, cell, _), part, value in zip(named, parts, values, strict=True):
            if value is None:
                continue
            if part is not None:
                writes += part.take(lo, value)
            else:
                writes.append((cell, lo.let("acc", cell.type, Prim(name, (lo.read(cell), value)), reassoc=True)))
        lo.write_all(writes)

    loop(step)
    for (name, cell, _), part in zip(named, parts, strict=True):
        if part is not None:
            lo.write(cell, lo.let("acc", cell.type, Prim(name, (lo.read(cell), part.result(lo)))))


# ---- where an extremum is --------------------------------------------------------------------------------------------


def arg_extremum(with_: Combination) -> ArgExtremum | None:
    """The extremum whose place a combine finds, if that is what it does."""
    function = with_.function
    places = range(len(with_.inits))
    chosen = {place: choice(function, place) for place in places}
    others = [place for place, found in chosen.items() if found is None]
    taken = tuple(dict.fromkeys(found for found in chosen.values() if found is not None))
    if not taken or len(others) > 1:
        return None
    for key in others or places:
        dtype = with_.types[key]
        if is_complex(dtype):
            continue
        tried = [scalar(value, dtype) for value in ((-1.0, 0.0, np.nan) if is_float(dtype) else (0, 1))]
        table = {(x, y): _taken(with_, taken, key, x, y) for x in tried for y in tried}
        for name in ("minimum", "maximum"):
            proven = all(takes == _beats(name, *pair) for pair, takes in table.items())
            if proven and (not others or _is_extremum(with_, name, key)):
                return ArgExtremum(name, key, taken)
    return None


def _is_extremum(with_: Combination, name: str, place: int) -> bool:
    """Whether a part is an extremum of integers."""
    params, operation = with_.function.params, definition(with_.function, place)
    both = {params[place], params[len(with_.inits) + place]}
    found = isinstance(operation, Prim) and operation.name == name and set(operation.args) == both
    return found and not is_float(with_.types[place])


def _beats(name: str, old: Any, new: Any) -> bool:
    if old != old or new != new:
        return bool(old == old)
    return bool(new < old if name == "minimum" else new > old)


def _taken(with_: Combination, taken: Conditions, key: int, old: Any, new: Any) -> bool | None:
    """Whether a contribution is taken, by the keys; None if that depends on more than how they compare."""
    params = with_.function.params
    values = {params[key]: old, params[len(with_.inits) + key]: new}
    for let in with_.function.body.statements:
        if not isinstance(let.op, Prim):
            continue
        known = [values.get(arg) if isinstance(arg, Var) else None for arg in let.op.args]
        if None in known:
            continue
        if let.op.name in (*COMPARE, "isnan") or all(dtype_of(arg) == "bool" for arg in let.op.args):
            values[let.outs[0]] = evaluate(let.op.name, known)
    found = {bool(values[condition]) == wanted if condition in values else None for condition, wanted in taken}
    return found.pop() if len(found) == 1 else None


def arg_run(lo: Lowering, run: Run, whole: bool) -> None:
    """Combine a run. `whole`: nothing else is reduced, so that what takes much time are long runs."""
    if run.dtype == "bool":
        _truth_run(lo, run)
        return
    if itemsize(run.dtype) < 4:
        _in_leaves(lo, run)
        return
    keys = (run.body.results[run.found.key],)
    plain = any(let.outs == keys and isinstance(let.op, Load) for let in run.body.statements)
    length = lo.subtract(run.stop, run.start)
    left = lo.declare("left", BOOL, Const(True, BOOL))

    def quick(depth: int) -> None:
        met = in_lanes(lo, run, depth)
        lo.write(left, Const(False, BOOL) if met is None else met)

    def from_on(least: int, depth: int, other: Callable[[], None] | None = None) -> None:
        lo.when(lo.compare("ge", length, Const(least, INT64)), lambda: quick(depth), other)

    def short() -> None:
        from_on(run.step(1), 1)

    if not plain:
        short()
    elif whole:
        from_on(run.step(DEPTH), DEPTH)
    else:
        from_on(LONG_BYTES // itemsize(run.dtype), DEPTH, short)
    lo.when(lo.read(left), lambda: _in_leaves(lo, run))


def is_buffered(run: Run) -> bool:
    """Can the keys of a run be computed before they are compared (`buffered_run`)?"""
    parts = enumerate(run.body.results)
    others = all(isinstance(part, Const) or part is run.axis.index for place, part in parts if place != run.found.key)
    return others and run.dtype != "bool" and itemsize(run.dtype) >= 4


Keys = Callable[[Operand, Operand, Callable[[Operand, Operand], None]], None]
"""Writes what computes the keys of [start, stop), given what stores one of a place."""


def buffered_run(lo: Lowering, run: Run, keys_of: Keys) -> None:
    """Combine a run whose keys take long to compute, with loops of their own: first those of a block, then the best of
    them in a vector loop.

    Point by point, a new minimum is a branch that was not foreseen, which waits for all the operations of a key. That
    happens H(n) times, four for 32 random keys, and takes as long as several keys each time.
    """
    place, at, size = run.found.key, run.axis.index, Const(KEYS, INT64)
    keys, first = lo.stack_array("keys", run.dtype, KEYS), lo.index("block")
    result = run.body.results[place]
    pos = run.body.statements[-1].pos
    offset, again = Var("offset", INT64), Var("key", result.type)
    statements = (Let((offset,), Prim("sub", (at, first)), pos), Let((again,), Load(keys, (offset,)), pos))
    results = tuple([again if part is result else part for part in run.body.results])

    def block() -> None:
        end = lo.minimum(lo.add(first, size), run.stop)
        keys_of(first, end, lambda at, key: lo.store(keys, (lo.subtract(at, first),), key))
        here = Run(run.with_, run.found, run.cells, Block(statements, results), run.axis, first, end)
        best = _top(lo, here, first, end)
        old: list[Operand] = [lo.read(cell) for cell in run.cells]
        new = [*old]
        new[place] = best
        better = takes(lo, run.with_, run.found.taken, old, new)
        lo.when(better, lambda: here.take(lo, _first_place(lo, here, first, end, best)))

    lo.loop(first, run.start, run.stop, block, "serial", size)


def _in_leaves(lo: Lowering, run: Run) -> None:
    """The best key of each leaf, and then the first place where the best of them stands."""
    found, cells, start, stop = run.found, run.cells, run.start, run.stop
    first, leaf, key = lo.index("leaf"), _leaf_size(lo, lo.subtract(stop, start)), cells[found.key]
    best = lo.declare("best", key.type, lo.read(key))
    none = Const(-1, INT64)
    where = lo.declare("where", INT64, none)

    def leaf_body() -> None:
        top = _top(lo, run, first, lo.minimum(lo.add(first, leaf), stop))
        before, there = lo.read(best), lo.read(where)
        old: list[Operand] = [lo.read(cell) for cell in cells]
        new = [*old]
        old[found.key], new[found.key] = before, top
        taken = takes(lo, run.with_, found.taken, old, new)
        lo.write(best, lo.prim("select", taken, top, before, type_=key.type))
        lo.write(where, lo.prim("select", taken, first, there))

    lo.loop(first, start, stop, leaf_body, "serial", leaf)
    there, top = lo.read(where), lo.read(best)

    def take() -> None:
        end = lo.minimum(lo.add(there, leaf), stop)
        run.take(lo, _first_place(lo, run, there, end, top))

    lo.when(lo.compare("ne", there, none), take)


def _truth_run(lo: Lowering, run: Run) -> None:
    """The same for truth values: the first True of a maximum ends the search."""
    wanted, first, size = run.found.name == "maximum", lo.index("leaf"), Const(TRUTH_LEAF, INT64)
    start, stop, key = run.start, run.stop, run.found.key

    def decides(value: Operand) -> Operand:
        return value if wanted else lo.prim("not", value, type_=BOOL)

    def leaf_body() -> None:
        end = lo.minimum(lo.add(first, size), stop)
        lo.when(decides(_top(lo, run, first, end)), lambda: visit(end))

    def visit(end: Operand) -> None:
        def step() -> None:
            values = lo.lower_block(run.body)
            lo.when(decides(values[key]), lambda: take(values))

        lo.loop(lo.bind(run.axis.index), first, end, step, "serial")
        lo.emit(Break())

    def take(values: Sequence[Operand]) -> None:
        lo.write_all(list(zip(run.cells, values, strict=True)))
        lo.emit(Break())

    open_ = lo.prim("not", decides(lo.read(run.cells[key])), type_=BOOL)
    lo.when(open_, lambda: lo.loop(first, start, stop, leaf_body, "serial", size))


def _leaf_size(lo: Lowering, length: Operand) -> Operand:
    """A run is scanned once for its best key, and one leaf of it once more for the place."""
    least, most, part = Const(ARG_LEAF // 4, INT64), Const(ARG_LEAF, INT64), Const(8, INT64)
    return lo.maximum(lo.minimum(lo.floor_div(length, part), most), least)


def _top(lo: Lowering, run: Run, start: Operand, stop: Operand) -> Operand:
    """The best key of [start, stop)."""
    kind = run.body.results[run.found.key].type
    assert isinstance(kind, Scalar)
    part = _extremum(lo, run.found.name, kind.dtype) if is_float(kind.dtype) else None
    best = lo.declare("best", kind, identity(run.found.name, kind.dtype)) if part is None else part.best

    def look() -> None:
        value = lo.lower_block(run.body)[run.found.key]
        if part is not None:
            lo.write_all(part.take(lo, value))
        else:
            lo.write(best, lo.let("acc", kind, Prim(run.found.name, (lo.read(best), value)), reassoc=True))

    lo.loop(lo.bind(run.axis.index), start, stop, look, "vector")
    return lo.read(best) if part is None else part.result(lo)


def _first_place(lo: Lowering, run: Run, start: Operand, stop: Operand, top: Operand) -> Operand:
    """The first index of [start, stop) that has the best key (a NaN if any has)."""
    never = Const(integer_bounds("int64")[1], INT64)
    first = lo.declare("first", INT64, never)

    def look() -> None:
        value = lo.lower_block(run.body)[run.found.key]
        same = lo.compare("eq", value, top)
        if is_float(dtype_of(value)):
            same = lo.prim("or", same, lo.prim("isnan", value, type_=BOOL), type_=BOOL)
        place = lo.prim("select", same, lo.operand(run.axis.index), never)
        lo.write(first, lo.let("first", INT64, Prim("minimum", (lo.read(first), place)), reassoc=True))

    lo.loop(lo.bind(run.axis.index), start, stop, look, "vector")
    return lo.read(first)
