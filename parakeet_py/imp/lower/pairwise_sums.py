"""Sums and products of floats: a fixed tree over the contributions, which is that of NumPy's sums.

NumPy sums a run pairwise. More than `LEAF` = 16 units of contributions (a unit: 8 numbers, or 4 complex ones) are
halved, the left half rounded down to whole units; `pairwise_leaves` has the order within a leaf. So the order depends
on the number of contributions alone, and equal subtrees can be computed anywhere: threads take whole subtrees.

Runs of one leaf are summed in place. In longer ones, a function of our own (Imp's `Pairwise`) sums adjacent numbers in
memory. What has to be computed first is summed as it is computed, leaf by leaf, or is put into a buffer on the stack,
one subtree of at most `NODE_UNITS` units after the other (`pairwise_leaves` says when).

Counted in units, halving m gives m // 2 and m - m // 2. Hence the nodes of one level differ by one unit at most, and
node j of level d, j written in d bits, has (m + r) // 2**d units, where r is j with its bits reversed. The nodes are
visited from left to right; complete subtrees wait on a stack, as the bits of a binary counter.

`Reduce.runs` says which runs there are: their sums are added one after the other. Products, whose order NumPy does not
promise, have the same tree.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import INT64, Array
from parakeet_py.imp.ir import Cell, Pairwise, While
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import declare, fold
from parakeet_py.imp.lower.loops import nest, order_of
from parakeet_py.imp.lower.pairwise_leaves import (
    LEAF,
    Runs,
    Values,
    buffered,
    combined,
    load,
    one_leaf,
    runs_of,
    stack,
    store,
    together,
    widened,
)
from parakeet_py.imp.schedule.loop_order import static_cost, work
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Cast, Const, Load, Operand, Var, dtype_of

__all__ = ["Runs", "in_parallel", "one_result", "runs_of"]

NODE_UNITS = 64  # of what is put into a buffer
PIECE_UNITS = 2048  # of a subtree that a thread takes, at least half of that
PIECES = 512
LEVELS = 60  # of a tree, at most
CHEAP = 40  # scalar operations of a body that is written once more for runs of one leaf
REPEATED = 14  # the same, where this is to save the start of a region


def add(lo: Lowering, runs: Runs, cells: Sequence[Cell], values: Values) -> None:
    """Combine the values of a run into the cells of results."""
    before = [widened(lo, part, lo.read(cell)) for part, cell in zip(runs.parts, cells, strict=True)]
    after = combined(lo, runs.parts, before, values)
    lo.write_all(
        [
            (cell, value if cell.type == part.kind else lo.let("x", cell.type, Cast(value)))
            for part, cell, value in zip(runs.parts, cells, after, strict=True)
        ]
    )


# ---- subtrees --------------------------------------------------------------------------------------------------------


def _in_memory(lo: Lowering, runs: Runs, start: Operand, length: Operand) -> Values | None:
    """Combine contributions that are adjacent elements of an array; None if they are not."""
    if len(runs.axes) != 1 or len(runs.parts) != 1:
        return None
    match runs.body.statements, runs.body.results:
        case (let,), (result,) if isinstance(let.op, Load) and let.outs == (result,):
            load = let.op
        case _:
            return None
    marker = lo.index("marker")
    lo.alias(runs.axes[0].index, marker)
    array, indices = lo.element(load.array, load.indices)
    kind = array.type
    assert isinstance(kind, Array)
    unit = 0 if kind.layout == "F" else kind.rank - 1
    if kind.layout == "A" or kind.dtype != runs.parts[0].kind.dtype:
        return None
    if [axis for axis, index in enumerate(indices) if index is marker] != [unit]:
        return None
    places = tuple([start if index is marker else index for index in indices])
    return [lo.let("sum", runs.parts[0].kind, Pairwise(runs.parts[0].name, array, places, length))]


def _node(lo: Lowering, runs: Runs, start: Operand, units: Operand, more: Operand) -> Values:
    """Combine the contributions of a node: as they are computed where it is a leaf, else by way of a buffer."""
    unit = Const(runs.unit, INT64)
    if runs.direct:
        return _leaf_or_two(lo, runs, start, units, more)
    length = lo.add(lo.multiply(units, unit), more)
    buffers, others = buffered(lo, runs, start, length, NODE_UNITS)
    sums: Values = [
        lo.let("sum", part.kind, Pairwise(part.name, array, (ZERO,), length))
        for part, array in zip(runs.ordered, buffers, strict=True)
    ]
    return together(lo, runs, sums, others)


def _leaf_or_two(lo: Lowering, runs: Runs, start: Operand, units: Operand, more: Operand) -> Values:
    """A leaf; or two of them, where there are a few contributions more than a leaf has."""
    unit, half = Const(runs.unit, INT64), Const(LEAF // 2, INT64)
    two = lo.compare("gt", lo.add(lo.multiply(units, unit), more), Const(LEAF * runs.unit, INT64))
    last = lo.prim("select", two, ONE, ZERO)
    sums = [lo.declare("sum", part.kind, part.neutral) for part in runs.parts]
    leaf = lo.index("leaf")

    def one() -> None:
        before = lo.multiply(leaf, half)
        ends = lo.compare("eq", leaf, last)
        own = lo.prim("select", ends, lo.subtract(units, before), half)
        rest = lo.prim("select", ends, more, ZERO) if more != ZERO else ZERO
        place, length = lo.add(start, lo.multiply(before, unit)), lo.add(lo.multiply(own, unit), rest)
        after = combined(lo, runs.parts, [lo.read(cell) for cell in sums], one_leaf(lo, runs, place, length))
        lo.write_all(list(zip(sums, after, strict=True)))

    lo.loop(leaf, ZERO, lo.add(last, ONE), one, "few")
    return [lo.read(cell) for cell in sums]


# ---- trees -----------------------------------------------------------------------------------------------------------


def _level(lo: Lowering, units: Operand, most: int) -> Operand:
    """How often so many units must be halved for no node to have more than `most` of them."""
    if isinstance(units, Const):
        level = 0
        while -(-units.whole >> level) > most:
            level += 1
        return Const(level, INT64)
    cell, reach = lo.declare("level", INT64, ZERO), lo.declare("reach", INT64, Const(most, INT64))
    lo.push()
    before = lo.read(reach)
    more = lo.compare("gt", units, before)
    head = lo.pop()
    lo.push()
    lo.write(cell, lo.add(lo.read(cell), ONE))
    lo.write(reach, lo.add(before, before))
    lo.emit(While(head, more, lo.pop(), few=True))
    return lo.read(cell)


def _power(lo: Lowering, level: Operand) -> Operand:
    return Const(1 << level.whole, INT64) if isinstance(level, Const) else lo.prim("shl", ONE, level)


def _tree(lo: Lowering, runs: Runs, start: Operand, units: Operand, rest: Operand) -> Values:
    """Combine `units` units of contributions and `rest` more."""
    unit = Const(runs.unit, INT64)
    length = lo.add(lo.multiply(units, unit), rest)
    there = _in_memory(lo, runs, start, length)
    if there is not None:
        return there
    # nodes have a leaf, and a unit more at most, where those above them have more for certain
    level = _level(lo, lo.add(units, ONE), LEAF + 1) if runs.direct else _level(lo, units, NODE_UNITS)
    if level == ZERO:
        return _node(lo, runs, start, units, rest)
    nodes = _power(lo, level)
    least = lo.floor_div(units, nodes) if isinstance(units, Const) else lo.prim("shr", units, level)
    over = lo.subtract(units, lo.multiply(least, nodes))
    last, top = lo.subtract(nodes, ONE), lo.floor_div(nodes, Const(2, INT64))
    waiting = stack(lo, runs.parts, LEVELS)
    place, reverse = lo.declare("place", INT64, start), lo.declare("reverse", INT64, ZERO)
    node = lo.index("node")

    def one(whole: bool) -> None:
        longer = lo.compare("ge", lo.add(over, lo.read(reverse)), nodes)
        own = lo.prim("select", longer, lo.add(least, ONE), least)
        here = lo.read(place)
        if whole:
            sums = one_leaf(lo, runs, here, lo.multiply(own, unit), own)
        else:
            more = lo.prim("select", lo.compare("eq", node, last), rest, ZERO) if rest != ZERO else ZERO
            sums = _node(lo, runs, here, own, more)
        lo.write(place, lo.add(here, lo.multiply(own, unit)))
        cells = [lo.declare("sum", part.kind, value) for part, value in zip(runs.parts, sums, strict=True)]
        height, bits, bit = (
            lo.declare(name, INT64, value) for name, value in (("height", ZERO), ("bits", node), ("bit", top))
        )
        lo.push()
        odd = lo.compare("ne", lo.prim("and", lo.read(bits), ONE), ZERO)
        head = lo.pop()
        lo.push()
        up, weight = lo.read(height), lo.read(bit)
        lo.write_all(
            list(
                zip(
                    cells,
                    combined(lo, runs.parts, load(lo, waiting, up), [lo.read(cell) for cell in cells]),
                    strict=True,
                )
            )
        )
        lo.write(height, lo.add(up, ONE))
        lo.write(bits, lo.floor_div(lo.read(bits), Const(2, INT64)))
        lo.write(reverse, lo.subtract(lo.read(reverse), weight))
        lo.write(bit, lo.floor_div(weight, Const(2, INT64)))
        lo.emit(While(head, odd, lo.pop(), few=True))
        store(lo, waiting, lo.read(height), [lo.read(cell) for cell in cells])
        lo.write(reverse, lo.add(lo.read(reverse), lo.read(bit)))

    before: Operand = ZERO
    if runs.direct and static_cost(runs.body) <= CHEAP:
        # all nodes but the last are leaves of whole units, unless some have one too many: nothing to decide there
        before = lo.prim("select", lo.compare("lt", least, Const(LEAF, INT64)), last, ZERO)
        lo.loop(node, ZERO, before, lambda: one(True), "serial")
        node = lo.index("node")
    lo.loop(node, before, nodes, lambda: one(False), "serial")
    return load(lo, waiting, level)


def _run(lo: Lowering, runs: Runs, start: Operand, length: Operand) -> Values:
    """Combine a run."""
    unit, most = Const(runs.unit, INT64), Const(LEAF * runs.unit, INT64)

    def tree() -> Values:
        units = lo.floor_div(length, unit)
        return _tree(lo, runs, start, units, lo.subtract(length, lo.multiply(units, unit)))

    if isinstance(length, Const) and length.whole <= most.whole:
        return one_leaf(lo, runs, start, length)
    if isinstance(length, Const) or static_cost(runs.body) > CHEAP:
        return tree()
    cells = [lo.declare("sum", part.kind) for part in runs.parts]

    def write(values: Values) -> None:
        lo.write_all(list(zip(cells, values, strict=True)))

    short = lo.compare("le", length, most)
    lo.when(short, lambda: write(one_leaf(lo, runs, start, length)), lambda: write(tree()))
    return [lo.read(cell) for cell in cells]


# ---- all contributions of a result -----------------------------------------------------------------------------------


def one_result(lo: Lowering, runs: Runs) -> list[Cell]:
    """Combine everything here, on one thread."""
    cells = declare(lo, runs.with_)
    if runs.sequential:
        nest(lo, runs.axes, lambda: fold(lo, runs.with_, cells, lo.lower_block(runs.body)), "serial")
        return cells
    whole, row, chunk = _sizes(lo, runs)
    if row is whole and chunk is whole:
        add(lo, runs, cells, _run(lo, runs, ZERO, whole))
        return cells
    first, base = lo.index("chunk"), lo.index("row")

    def one_chunk() -> None:
        start = lo.multiply(first, chunk)
        length = lo.minimum(lo.subtract(row, start), chunk)
        add(lo, runs, cells, _run(lo, runs, lo.add(lo.multiply(base, row), start), length))

    def one_row() -> None:
        lo.loop(first, ZERO, lo.ceil_div(row, chunk), one_chunk, "serial")

    lo.loop(base, ZERO, lo.floor_div(whole, row), one_row, "serial")
    return cells


def _sizes(lo: Lowering, runs: Runs) -> tuple[Operand, Operand, Operand]:
    """All contributions, those of a row, and those of a chunk (divisors that are not zero, where they are other)."""
    whole = lo.product(axis.extent for axis in runs.axes)
    row = whole if runs.row == ZERO else _given(lo, runs.row, whole)
    chunk = row if runs.chunk == ZERO else _given(lo, runs.chunk, row)
    return whole, row if row is whole and chunk is row else lo.maximum(row, ONE), chunk


def _given(lo: Lowering, size: Operand, all_: Operand) -> Operand:
    """A size, or all."""
    if not isinstance(size, Const):
        size = lo.prim("select", lo.compare("eq", size, ZERO), all_, size)
    return lo.maximum(size, ONE)


def in_parallel(lo: Lowering, runs: Runs) -> list[Cell]:
    """Combine everything, threads taking subtrees or whole runs; one leaf in place, in a loop of the program."""
    if runs.sequential:
        return _in_order(lo, runs)
    one_run = runs.direct and runs.row == ZERO and runs.chunk == ZERO
    if not (lo.repeated and one_run and static_cost(runs.body) <= REPEATED):
        return _in_regions(lo, runs)
    length, cells = runs.axes[0].extent, declare(lo, runs.with_)

    def longer() -> None:
        lo.write_all([(cell, lo.read(whole)) for cell, whole in zip(cells, _in_regions(lo, runs), strict=True)])

    short = lo.compare("le", length, Const(LEAF * runs.unit, INT64))
    lo.when(short, lambda: add(lo, runs, cells, one_leaf(lo, runs, ZERO, length)), longer)
    return cells


def _in_regions(lo: Lowering, runs: Runs) -> list[Cell]:
    unit, most = Const(runs.unit, INT64), Const(PIECES, INT64)
    cells = declare(lo, runs.with_)
    whole, row, chunk = _sizes(lo, runs)
    chunks: Operand = ONE if chunk is row else lo.ceil_div(row, chunk)
    count = ONE if row is whole and chunks is ONE else lo.multiply(lo.floor_div(whole, row), chunks)
    # Runs of more than a piece are all of the same length.
    units = lo.floor_div(chunk, unit)
    level = lo.minimum(_level(lo, units, PIECE_UNITS), Const(PIECES.bit_length() - 1, INT64))
    pieces = _power(lo, level)
    together = ONE if count is ONE else lo.floor_div(most, pieces)  # runs whose pieces are computed in one region
    sums = stack(lo, runs.parts, PIECES)

    def some(batch: Operand) -> None:
        before = lo.multiply(batch, together)
        own: Operand = ONE if count is ONE else lo.minimum(lo.subtract(count, before), together)
        piece = lo.index("piece")

        def one() -> None:
            run, number = (ZERO, piece) if count is ONE else _divide(lo, piece, pieces)
            start: Operand = ZERO
            length = chunk
            if count is not ONE:
                at, place = _divide(lo, lo.add(before, run), chunks)
                offset = lo.multiply(place, chunk)
                start = lo.add(lo.multiply(at, row), offset)
                length = lo.minimum(lo.subtract(row, offset), chunk)
            store(lo, sums, piece, _piece(lo, runs, start, length, level, number))

        def region(low: Operand, high: Operand) -> None:
            lo.loop(piece, low, high, one, "independent")

        each = work(lo, runs.found, (lo.ceil_div(chunk, pieces),))
        lo.region(lo.multiply(own, pieces), ONE, each, region, order_of(lo, runs.axes), "reduce")
        _join(lo, runs, sums, lo.multiply(own, pieces), pieces)
        run = lo.index("run")
        lo.loop(run, ZERO, own, lambda: add(lo, runs, cells, load(lo, sums, lo.multiply(run, pieces))), "few")

    if count is ONE:
        some(ZERO)
    else:
        batch = lo.index("batch")
        lo.loop(batch, ZERO, lo.ceil_div(count, together), lambda: some(batch), "serial")
    return cells


def _in_order(lo: Lowering, runs: Runs) -> list[Cell]:
    """Combine everything one after the other: a region of its own, as its loop is worth optimising (`host_loops`)."""
    sums = [lo.stack_array("sums", dtype_of(init), 1) for init in runs.with_.inits]

    def region(low: Operand, high: Operand) -> None:
        store(lo, sums, ZERO, [lo.read(cell) for cell in one_result(lo, runs)])

    lo.region(ONE, ONE, ONE, region, order_of(lo, runs.axes), "reduce")
    cells = declare(lo, runs.with_)
    lo.write_all(list(zip(cells, load(lo, sums, ZERO), strict=True)))
    return cells


def _divide(lo: Lowering, number: Operand, by: Operand) -> tuple[Operand, Operand]:
    quotient = lo.floor_div(number, by)
    return quotient, lo.subtract(number, lo.multiply(quotient, by))


def _piece(lo: Lowering, runs: Runs, start: Operand, length: Operand, level: Operand, number: Operand) -> Values:
    """Combine node `number` of a level of the tree over a run."""
    unit = Const(runs.unit, INT64)
    units = lo.floor_div(length, unit)
    rest = lo.subtract(length, lo.multiply(units, unit))
    if level == ZERO:
        return _tree(lo, runs, start, units, rest)
    begin, size = lo.declare("begin", INT64, ZERO), lo.declare("size", INT64, units)
    step = lo.index("step")

    def down() -> None:
        bit = lo.subtract(lo.subtract(level, ONE), step)
        right = lo.compare("ne", lo.prim("and", lo.prim("shr", number, bit), ONE), ZERO)
        before, own = lo.read(begin), lo.read(size)
        half = lo.floor_div(own, Const(2, INT64))
        lo.write(begin, lo.prim("select", right, lo.add(before, half), before))
        lo.write(size, lo.prim("select", right, lo.subtract(own, half), half))

    lo.loop(step, ZERO, level, down, "few")
    last = lo.compare("eq", number, lo.subtract(_power(lo, level), ONE))
    place = lo.add(start, lo.multiply(lo.read(begin), unit))
    return _tree(lo, runs, place, lo.read(size), lo.prim("select", last, rest, ZERO))


def _join(lo: Lowering, runs: Runs, sums: Sequence[Var], count: Operand, pieces: Operand) -> None:
    """Combine the pieces of each run in place: neighbours, then neighbouring pairs, and so on."""
    if pieces == ONE:
        return
    distance = lo.declare("distance", INT64, ONE)
    lo.push()
    reach = lo.read(distance)
    more = lo.compare("lt", reach, pieces)
    head = lo.pop()
    lo.push()
    twice = lo.add(reach, reach)
    pair = lo.index("pair")

    def one() -> None:
        left = lo.multiply(pair, twice)
        store(lo, sums, left, combined(lo, runs.parts, load(lo, sums, left), load(lo, sums, lo.add(left, reach))))

    lo.loop(pair, ZERO, lo.floor_div(count, twice), one, "few")
    lo.write(distance, twice)
    lo.emit(While(head, more, lo.pop(), few=True))
