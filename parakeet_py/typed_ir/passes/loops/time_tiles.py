"""Tiles in time: a loop around sweeps over neighbouring rows runs several rounds on some rows while a cache has them.

    for t in range(rounds):              for each block of rounds:
        map i: b[i] := f(a[i-1:i+2])         for phase in 0, 1:
        map i: a[i] := f(b[i-1:i+2])  ->         map tile:
                                                     for t in the block:
                                                         map i in rows(phase, tile, t): b[i] := f(a[i-1:i+2])
                                                         ...

Relaxations and difference schemes written with whole arrays read and write all of them in every sweep, from memory or
an outer cache. In the first phase the rows of a tile shrink at both ends from sweep to sweep, by as many rows as a
sweep looks beyond its own: all that they need is computed in the tile itself. In the second phase the gaps between
tiles grow by the same rows. Tiles of one phase do not depend on each other, threads share them.

         t |  /------\\    /------\\
           | /  tile  \\gap/  tile  \\
           |/----------\\ /----------\\   rows

*Rows* are what the first index of the arrays counts that change in the loop. A sweep computes the row x from rows x + d
with known d, or one row alone (a border). For sweeps A before B, of one round or of two, every row of A that B has to
follow, as either stores what the other one accesses, is d rows beside it: the ends of B's rows have to lie d rows
further inside. Longest paths through these differences give how far each sweep's ends are moved within a round
(`_Side.within`), and what a round adds (`_Side.round`).

Each point is computed by the same expression from the same numbers as before, so no bit changes. Nothing in the loop
may fail, but for checks of what is known before it, which are tested there; arrays that change have one name each. It
is done where the arrays are larger than the cache, and where tiles are wide enough for two rounds. Lines of numbers
have tiles for the first cache: hundreds of rounds, whose sweeps alone would be too short for threads to share. Where
the second cache has the whole lines, one thread would take a tenth longer than by whole sweeps: it is done if there are
several. Devices run each sweep as a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.base.config import product_parts
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, PYBOOL, PYINT, Array, itemsize
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO, Block, Const, Function, Let, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear
from parakeet_py.typed_ir.rewrite import Rewriter, fresh_copy
from parakeet_py.typed_ir.writer import Writer, index_const, linear_value

FIRST, INNER, OUTER = 32 * 1024, 512 * 1024, 4 * 1024 * 1024  # bytes of a tile, for each of the three caches
ROUNDS = 4  # for so many rounds a tile should be wide enough in the second cache
FIRST_ROUNDS = 64  # and in the first one, as sweeps over less than some hundred rows take as long as what is saved
LARGER = 3  # times as large as a tile are arrays that do not stay in that cache
_FAR = 1 << 48  # beyond all rows
_SCALARS = (ir.Prim, ir.Cast, ir.Dim, ir.Load)


def tile_rounds(function: Function) -> Function:
    """Run loops of sweeps over neighbouring rows tile by tile, several rounds at a time."""
    if not any(isinstance(let.op, ir.For) and _sweeps(let.op) for let in function.statements()):
        return function
    return _Tiler(function).function(function)


def _sweeps(op: ir.For) -> list[ir.Map]:
    """The operators in a loop, if there is nothing else in it but scalars and checks, and nothing is carried."""
    found: list[ir.Map] = []
    for let in op.body.statements:
        if isinstance(let.op, ir.Map) and not let.outs:
            found.append(let.op)
        elif not isinstance(let.op, (*_SCALARS, ir.Check)):
            return []
    return [] if op.stoppable or op.params or op.step != ONE else found


@record
class _Sweep:
    """A `Map` that computes the rows from `base` on, along its index `axis`, or the row `base` alone (axis None).

    `accesses`: arrays that change, how far beside the row that is computed, and whether it is a store.
    """

    op: ir.Map
    axis: int | None
    base: Linear
    accesses: tuple[tuple[Var, int, bool], ...]


@record
class _Side:
    """How far the ends of tiles move on one side: for each sweep within a round, and from round to round."""

    within: tuple[int, ...]
    round: int


class _Tiler(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.forms = Forms({let.outs[0]: let.op for let in function.statements() if isinstance(let.op, ir.Prim)})
        self.unchecked: list[ir.For] = []  # loops without their checks: `Aliases` knows operators by identity

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.PARALLEL):
            return None
        if isinstance(op, ir.For) and (maps := _sweeps(op)):
            checks = [inner.op.condition for inner in op.body.statements if isinstance(inner.op, ir.Check)]
            unchecked = [inner for inner in op.body.statements if not isinstance(inner.op, ir.Check)]
            inner = replace(op, body=Block(tuple(unchecked)))
            self.unchecked.append(inner)
            sweeps = self.sweeps(inner, maps, checks)
            if sweeps:
                return _where_it_pays(let, inner, sweeps, checks)
        return self.descend(let)

    def sweeps(self, op: ir.For, maps: list[ir.Map], checks: list[Operand]) -> list[_Sweep]:
        """The sweeps of a loop whose rows depend on rows beside them only and whose checks do not change, else none."""
        effects = self.aliases.effects(op)
        if effects.fails or effects.overflows or effects.calls or not effects.writes:
            return []
        inside = {op.index, *(out for let in ir.walk(op.body) for out in let.outs)}
        inside.update(index for one in maps for index in one.indices)
        statements = [let for one in maps for let in ir.walk(one.body)]
        if not inside.isdisjoint(checks) or not all(isinstance(let.op, (*_SCALARS, ir.Store)) for let in statements):
            return []
        scalars = [let.op for let in op.body.statements if isinstance(let.op, ir.Load)]
        if any(not self.aliases.atoms(one.array).isdisjoint(effects.writes) for one in scalars):
            return []
        touched = dict.fromkeys(let.op.array for let in statements if isinstance(let.op, ir.Load | ir.Store))
        changing = [one for one in touched if not self.aliases.atoms(one).isdisjoint(effects.writes)]
        if any(self.aliases.may_alias(one, other) for at, one in enumerate(changing) for other in changing[:at]):
            return []
        if not all(isinstance(one.type, Array) and one.type.layout == "C" for one in changing):
            return []
        found = [_sweep(one, frozenset(changing), self.forms, inside) for one in maps]
        return [one for one in found if one is not None] if None not in found else []


def _sweep(op: ir.Map, changing: frozenset[Var], forms: Forms, inside: set[Var]) -> _Sweep | None:
    """An operator as a sweep over rows, if it is one."""
    if not inside.isdisjoint(op.extents):
        return None
    rows: list[tuple[Var, Linear, bool]] = []
    for let in op.body.statements:
        if isinstance(let.op, ir.Load | ir.Store) and let.op.array in changing:
            rows.append((let.op.array, forms.of(let.op.indices[0]), isinstance(let.op, ir.Store)))
    first = next(form for _, form, stored in rows if stored)
    moving = [axis for axis, index in enumerate(op.indices) if first.coefficient(index)]
    if len(moving) > 1 or any(first.coefficient(op.indices[axis]) != 1 for axis in moving):
        return None
    differences = [form - first for _, form, _ in rows]
    base = Linear(first.constant, tuple([term for term in first.terms if term[0] not in op.indices]))
    if any(one.terms for one in differences) or not inside.isdisjoint(base.variables()):
        return None
    if moving and base.terms:
        return None
    accesses = [(array, one.constant, stored) for (array, _, stored), one in zip(rows, differences, strict=True)]
    return _Sweep(op, moving[0] if moving else None, base, tuple(dict.fromkeys(accesses)))


def _side(sweeps: Sequence[_Sweep], sign: int) -> _Side:
    """How far the ends on the left (sign 1) or on the right (-1) have to move."""

    def beside(one: _Sweep, other: _Sweep) -> int:
        """How many rows beyond its own another, later sweep depends on one."""
        found = [0]
        for array, place, stored in one.accesses:
            for also, other_place, also_stored in other.accesses:
                if array is also and (stored or also_stored):
                    found.append(sign * (place - other_place))
        return max(found)

    within: list[int] = []
    for at, sweep in enumerate(sweeps):
        within.append(max([0, *(within[before] + beside(sweeps[before], sweep) for before in range(at))]))
    round_ = max(
        within[before] + beside(one, other) - within[at]
        for before, one in enumerate(sweeps)
        for at, other in enumerate(sweeps)
    )
    return _Side(tuple(within), round_)


# ---- rewriting -------------------------------------------------------------------------------------------------------


def _where_it_pays(let: Let, op: ir.For, sweeps: Sequence[_Sweep], checks: Sequence[Operand]) -> list[Let]:
    """The loop tile by tile where that pays, else as it is."""
    left, right = _side(sweeps, 1), _side(sweeps, -1)
    writer = Writer(let.pos)

    def calculate(name: str, one: Operand, other: Operand) -> Var:
        return writer.prim(name, one, other, type_=PYINT)

    arrays = dict.fromkeys(array for sweep in sweeps for array, *_ in sweep.accesses)
    size: Operand = ZERO  # bytes of a row of all arrays that change
    for array in arrays:
        assert isinstance(array.type, Array)
        row: Operand = index_const(itemsize(dtype_of(array)))
        for axis in range(1, array.type.rank):
            row = calculate("mul", row, writer.dim(array, axis))
        size = calculate("add", size, row)
    size = calculate("maximum", size, ONE)
    rows = writer.dim(next(iter(arrays)))
    slope = 2 * max(1, left.round + right.round)
    budget: Operand = index_const(OUTER)
    for cache, least in ((INNER, ROUNDS), (FIRST, FIRST_ROUNDS)):
        narrow = writer.prim("le", size, index_const(cache // (least * slope)), type_=PYBOOL)
        budget = writer.prim(ir.SELECT, narrow, index_const(cache), budget, type_=PYINT)
    share = calculate("floordiv", rows, index_const(max(2, product_parts())))
    width = calculate("minimum", calculate("floordiv", budget, size), share)
    most = calculate("floordiv", width, index_const(slope))
    beyond = max((abs(place) for sweep in sweeps for _, place, _ in sweep.accesses), default=0)
    fewest = 2 * (max(left.within) + max(right.within) + 2 * beyond + 1)
    rounds = calculate("sub", op.stop, op.start)
    on_device = writer.prim(ir.ON_DEVICE, Const(False, BOOL), type_=BOOL)  # where each sweep is a kernel
    paying = writer.prim("not", on_device, type_=PYBOOL)
    for condition in checks:
        paying = writer.prim("and", paying, condition, type_=PYBOOL)
    total = calculate("mul", size, rows)
    worthwhile = writer.prim("ge", total, index_const(INNER * LARGER), type_=PYBOOL)
    if product_parts() > 1:
        many = writer.prim("ge", rounds, index_const(FIRST_ROUNDS), type_=PYBOOL)
        worthwhile = writer.prim("or", worthwhile, many, type_=PYBOOL)
    paying = writer.prim("and", paying, worthwhile, type_=PYBOOL)
    for one, other in (
        (total, calculate("mul", budget, index_const(LARGER))),
        (width, index_const(fewest)),
        (most, index_const(2)),
        (rounds, index_const(2)),
    ):
        paying = writer.prim("and", paying, writer.prim("ge", one, other, type_=PYBOOL), type_=PYBOOL)
    tiled = Writer(let.pos)
    tiles = tiled.prim("floordiv", tiled.prim("add", rows, tiled.prim("sub", width, ONE)), width)
    _blocks_of_rounds(tiled, op, sweeps, (left, right), (most, width, tiles))
    writer.let(ir.If(paying, tiled.block(), Block((let,), ())))
    return writer.statements


def _blocks_of_rounds(
    writer: Writer,
    op: ir.For,
    sweeps: Sequence[_Sweep],
    sides: tuple[_Side, _Side],
    sizes: tuple[Operand, Operand, Operand],
) -> None:
    most, width, tiles = sizes
    first, phase, tile, turn = (Var(name, PYINT) for name in ("first", "phase", "tile", "turn"))
    block = Writer(writer.pos)
    count = block.prim("minimum", block.prim("sub", op.stop, first), most)
    body = Writer(writer.pos)
    # A tile lies between two multiples of the width; a gap is around the second of them, behind the last tile none.
    gaps = body.prim("eq", phase, ONE, type_=PYBOOL)
    is_first = body.prim("eq", tile, ZERO, type_=PYBOOL)
    is_last = body.prim("eq", tile, body.prim("sub", tiles, ONE), type_=PYBOOL)
    start = body.prim("mul", tile, width)
    end = body.prim(ir.SELECT, is_last, index_const(_FAR), body.prim("add", start, width))
    start = body.prim(ir.SELECT, is_first, index_const(-_FAR), start)
    start = body.prim(ir.SELECT, gaps, end, start)
    rounds = Writer(writer.pos)
    moved = [rounds.prim("mul", turn, index_const(side.round)) for side in sides]
    number = rounds.prim("add", first, turn)
    known: dict[Var, Operand] = {op.index: number}
    order = iter(range(len(sweeps)))
    for let in op.body.statements:
        if not isinstance(let.op, ir.Map):
            rounds.statements += fresh_copy(Block((let,)), known).statements
            continue
        at = next(order)
        left, right = (
            rounds.prim("add", by, index_const(side.within[at])) for by, side in zip(moved, sides, strict=True)
        )
        low = rounds.prim(ir.SELECT, gaps, rounds.prim("neg", right), left)
        high = rounds.prim(ir.SELECT, gaps, left, rounds.prim("neg", right))
        _some_rows(rounds, sweeps[at], rounds.prim("add", start, low), rounds.prim("add", end, high), known)
    body.let(ir.For(turn, ZERO, count, ONE, (), (), rounds.block()))
    phases = Writer(writer.pos)
    phases.let(ir.Map((tiles,), (tile,), body.block()))
    block.let(ir.For(phase, ZERO, index_const(2), ONE, (), (), phases.block()))
    writer.let(ir.For(first, op.start, op.stop, most, (), (), block.block()))


def _some_rows(writer: Writer, sweep: _Sweep, low: Operand, high: Operand, known: dict[Var, Operand]) -> None:
    """What a sweep does in the rows from `low` to `high`."""
    op = sweep.op
    base = linear_value(writer, sweep.base)
    extent: Operand = ONE if sweep.axis is None else op.extents[sweep.axis]
    first = writer.prim("maximum", low, base)
    last = writer.prim("minimum", high, writer.prim("add", base, extent))
    length = writer.prim("maximum", writer.prim("sub", last, first), ZERO)
    row, body = Var("i", PYINT), Writer(writer.pos)
    indices = list(op.indices)
    extents = list(op.extents)
    if sweep.axis is None:
        indices.insert(0, row)
        extents.insert(0, length)
    else:
        place = body.prim("add", row, writer.prim("sub", first, base), title="i")
        known = {**known, indices[sweep.axis]: place}
        indices[sweep.axis] = row
        extents[sweep.axis] = length
    mapping = dict(known)
    renamed = tuple([index if index is row else Var(index.name, PYINT) for index in indices])
    mapping.update({old: new for old, new in zip(indices, renamed, strict=True) if old is not row})
    body.statements += fresh_copy(op.body, mapping).statements
    writer.let(replace(op, extents=tuple(extents), indices=renamed, body=body.block()))
