"""Selections by intervals that a loop goes through: one pass over the array finds the elements of all of them.

    for i in range(m):                                    for each j, the rounds i where lo(i) <= x[j] < hi(i);
        s = data[(lo(i) <= x) & (x < hi(i))]      ->      positions: the j of the first round, of the second, ...
        ...                                               for i in range(m):
                                                              s = data[positions[starts[i] : starts[i + 1]]]
                                                              ...

As it is written, each round looks at all elements. Here the bounds of all rounds are computed first. Where both rise
from round to round, the rounds of an element are neighbours: the first whose upper bound is above it, and those behind
it whose lower bound is not above it. A table over equal cells of the range of upper bounds leaves few of them to search
(`_Cells`). Then elements are sorted by counting, block by block of the array, and blocks are shared by threads. The
elements of a round come in the order of the index, so that sums of them keep their order, and all comparisons are those
of the mask: an element that is NaN is in no round, and where a bound is NaN, bounds do not rise.

*What is required.* `x` and the bounds are computed from the index of the element, the number of the round and what
does not change in the loop. A test for equality (`labels == i`) is an interval, too. What else the mask asks for is
asked of the elements of the interval. The loop has no `break`; and where it may fail, bounds do not come from memory.
The loop runs as it is written where a check on the way will fail, where bounds do not rise, where intervals overlap so
much that lists would be long, where elements are few, or rounds are few or more than those, and on devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, FLOAT64, PYBOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO, Block, Const, Function, Let, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.rewrite import Rewriter, bound_in, fresh_copy
from parakeet_py.typed_ir.writer import Writer, index_const

ROUNDS = 48  # below, looking at all elements costs less than sorting them
ELEMENTS = 256
BLOCK = 16384  # elements that are counted together, at least
OVERLAP = 4  # elements may be in so many rounds, on average
_CELLS = 4  # for each round
_TRUE, _FALSE = Const(True, PYBOOL), Const(False, PYBOOL)
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def bin_selections(function: Function) -> Function:
    """Find the elements of all intervals that a loop selects by in one pass over the array."""
    loops = [let.op for let in function.statements() if isinstance(let.op, ir.For | ir.Map)]
    if not any(isinstance(let.op, ir.Compress) for op in loops for let in op.body.statements):
        return function
    return _Binner(function).function(function)


@record
class _Expression:
    """A scalar of a loop, with the statements that compute it."""

    value: Operand
    statements: tuple[Let, ...]
    free: frozenset[Var]

    def write(self, writer: Writer, known: Mapping[Var, Operand]) -> Operand:
        made = fresh_copy(Block(self.statements, (self.value,)), dict(known))
        writer.statements += made.statements
        return made.results[0]

    @property
    def loads(self) -> tuple[Var, ...]:
        return tuple([let.op.array for let in self.statements if isinstance(let.op, ir.Load)])


@record
class _Bound:
    """`element test bound`, which is one of lt, le, gt, ge."""

    test: str
    bound: _Expression


@record
class _Selection:
    """A selection by an interval, and maybe by more."""

    let: Let
    op: ir.Compress
    element: _Expression
    lower: _Bound
    upper: _Bound
    whole: bool  # the interval is all that the mask asks for


@record
class _Loop:
    """A loop as rounds that are counted from zero."""

    op: ir.For | ir.Map
    index: Var

    def rounds(self, writer: Writer) -> Operand:
        if isinstance(self.op, ir.Map):
            return self.op.extents[0]
        return writer.prim("sub", self.op.stop, self.op.start, type_=PYINT)

    @property
    def is_short(self) -> bool:
        """Whether its rounds are known to be few."""
        start, stop = (ZERO, self.op.extents[0]) if isinstance(self.op, ir.Map) else (self.op.start, self.op.stop)
        match start, stop:
            case Const(int(first)), Const(int(last)):
                return last - first < ROUNDS
        return False

    def index_of(self, writer: Writer, number: Operand) -> Operand:
        return number if isinstance(self.op, ir.Map) else writer.prim("add", self.op.start, number, type_=PYINT)

    def number(self, writer: Writer) -> Operand:
        return self.index if isinstance(self.op, ir.Map) else writer.prim("sub", self.index, self.op.start, type_=PYINT)


def _loop(op: ir.Op) -> _Loop | None:
    match op:
        case ir.Map(_, (index,)):
            return _Loop(op, index)
        case ir.For(index, step=step) if step == ONE:
            return _Loop(op, index)
    return None


class _Binner(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)

    def statement(self, let: Let) -> Sequence[Let] | None:
        loop = _loop(let.op)
        if (
            loop is not None
            and not loop.is_short
            and any(isinstance(one.op, ir.Compress) for one in loop.op.body.statements)
        ):
            checks, selections = self.selections(loop)
            if selections:
                return _where_it_pays(let, loop, checks, selections)
        return None if isinstance(let.op, ir.PARALLEL) else self.descend(let)

    def selections(self, loop: _Loop) -> tuple[list[Operand], list[_Selection]]:
        """The selections by intervals in a loop, and the checks before them."""
        statements = loop.op.body.statements
        bound = {loop.index, *bound_in(loop.op.body)}
        if isinstance(loop.op, ir.For):
            bound.update(loop.op.params)
        if isinstance(loop.op, ir.For) and loop.op.stoppable:
            return [], []
        written = self.aliases.effects(loop.op).writes
        checks: list[Operand] = []
        found: list[_Selection] = []
        may_fail = False
        for let in statements:
            if isinstance(let.op, ir.Check) and let.op.condition not in bound:
                checks.append(let.op.condition)
            elif isinstance(let.op, ir.Compress) and not may_fail:
                one = _selection(let, let.op, loop, statements, bound)
                if one is not None and all(self.aliases.atoms(array).isdisjoint(written) for array in _loads(one)):
                    found.append(one)
            else:
                may_fail |= self.aliases.effects(let.op).fails
        if may_fail:  # in a round, before others whose bounds cannot be read, maybe
            found = [one for one in found if not (one.lower.bound.loads or one.upper.bound.loads)]
        return checks, found


def _loads(selection: _Selection) -> tuple[Var, ...]:
    expressions = selection.element, selection.lower.bound, selection.upper.bound
    return tuple([array for one in expressions for array in one.loads])


# ---- recognition -----------------------------------------------------------------------------------------------------


def _selection(let: Let, op: ir.Compress, loop: _Loop, statements: Sequence[Let], bound: set[Var]) -> _Selection | None:
    """A selection as one by an interval, if it is that."""
    if len(op.indices) != 1 or not bound.isdisjoint(op.extents):
        return None
    known = {out: one for one in (*statements, *op.body.statements) for out in one.outs}
    order = {id(one): at for at, one in enumerate((*statements, *op.body.statements))}
    tests, pending = [], [op.body.results[0]]
    while pending:
        value = pending.pop()
        definition = known[value].op if isinstance(value, Var) and value in known else None
        if isinstance(definition, ir.Prim) and definition.name == "and":
            pending += reversed(definition.args)
        else:
            tests.append(definition)

    def expression(value: Operand) -> _Expression | None:
        return _expression(value, known, order, bound)

    index = op.indices[0]
    lower: dict[Operand, _Bound] = {}
    upper: dict[Operand, _Bound] = {}
    elements: dict[Operand, _Expression] = {}
    used: dict[Operand, int] = {}
    for test in tests:
        if not isinstance(test, ir.Prim) or test.name not in _MIRRORED:
            continue
        left, right = test.args
        for name, value, limit in ((test.name, left, right), (_MIRRORED[test.name], right, left)):
            element, end = expression(value), expression(limit)
            if element is None or end is None or element.free != {index} or end.free != {loop.index}:
                continue
            if isinstance(value.type, Scalar) and value.type.dtype.startswith("complex"):
                continue
            elements[value] = element
            if name == "eq":  # both bounds, instead of what others have been found
                lower[value], upper[value], used[value] = _Bound("ge", end), _Bound("le", end), 1
                continue
            side = lower if name in ("gt", "ge") else upper
            if value not in side:
                side[value] = _Bound(name, end)
                used[value] = used.get(value, 0) + 1
    for value in lower:
        if value in upper:
            return _Selection(let, op, elements[value], lower[value], upper[value], used[value] == len(tests))
    return None


def _expression(
    value: Operand, known: Mapping[Var, Let], order: Mapping[int, int], bound: set[Var]
) -> _Expression | None:
    """What computes a scalar: `free` are those of the variables of a loop that it begins from."""
    needed: dict[int, Let] = {}
    free: set[Var] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if not isinstance(one, Var) or one not in bound:
            continue
        if one not in known:
            free.add(one)
            continue
        let = known[one]
        if not isinstance(let.op, ir.Prim | ir.Cast | ir.Dim | ir.Load):
            return None
        if isinstance(let.op, ir.Prim) and let.op.name in ir.CHECKED:
            return None
        if order[id(let)] not in needed:
            needed[order[id(let)]] = let
            pending += ir.operands_of(let.op)
    return _Expression(value, tuple([needed[at] for at in sorted(needed)]), frozenset(free))


# ---- rewriting -------------------------------------------------------------------------------------------------------


def _where_it_pays(let: Let, loop: _Loop, checks: Sequence[Operand], selections: Sequence[_Selection]) -> list[Let]:
    """The loop with the elements of its intervals found before it where that pays, else as it is."""
    writer = Writer(let.pos)
    rounds = loop.rounds(writer)
    on_device = writer.prim(ir.ON_DEVICE, Const(False, BOOL), type_=BOOL)  # where each round is some kernels
    paying = writer.prim("not", on_device, type_=PYBOOL)
    lengths = [one.op.extents[0] for one in selections]
    tests = [*checks]
    for length, least in ((rounds, ROUNDS), *((one, ELEMENTS) for one in dict.fromkeys(lengths))):
        tests.append(writer.prim("ge", length, index_const(least), type_=PYBOOL))
        tests.append(writer.prim("lt", length, index_const(2**31), type_=PYBOOL))
    tests += [writer.prim("le", rounds, length, type_=PYBOOL) for length in dict.fromkeys(lengths)]
    for test in tests:
        paying = writer.prim("and", paying, test, type_=PYBOOL)
    sorting, nothing = Writer(let.pos), Writer(let.pos)
    good: Operand = _TRUE
    lists: list[Var] = []
    for one in selections:
        rise, *made = _Sorting(sorting, loop, one, rounds).write(sorting)
        good = sorting.prim("and", good, rise, type_=PYBOOL)
        lists += made
    empty = [nothing.alloc(ir.dtype_of(one), ZERO) for one in lists]
    outs = [Var(one.name, one.type) for one in lists]
    sorted_ = Var("sorted", PYBOOL)
    writer.let(ir.If(paying, sorting.block(good, *lists), nothing.block(_FALSE, *empty)), sorted_, *outs)
    lists_of = {id(one.let): (one, outs[2 * at], outs[2 * at + 1]) for at, one in enumerate(selections)}
    statements: list[Let] = []
    for inner in loop.op.body.statements:
        known = lists_of.get(id(inner))
        statements += [inner] if known is None else _selected(loop, *known)
    fast = replace(loop.op, body=Block(tuple(statements), loop.op.body.results))
    copy = fresh_copy(Block((Let(let.outs, fast, let.pos),), let.outs))
    renamed = tuple([Var(out.name, out.type) for out in let.outs])
    plain = Block((Let(renamed, let.op, let.pos),), renamed)
    writer.let(ir.If(sorted_, copy, plain), *let.outs)
    return writer.statements


def _selected(loop: _Loop, selection: _Selection, starts: Var, positions: Var) -> list[Let]:
    """A selection in a round, from the positions of the elements of its interval."""
    let, op = selection.let, selection.op
    writer, body = Writer(let.pos), Writer(let.pos)
    number = loop.number(writer)
    start = writer.load(starts, number)
    end = writer.load(starts, writer.prim("add", number, ONE, type_=PYINT))
    place = Var("i", PYINT)
    position = body.load(positions, body.prim("add", start, place, type_=PYINT))
    body.let(ir.Cast(position), op.indices[0])
    body.statements += op.body.statements
    if not selection.whole:
        length = writer.prim("sub", end, start, type_=PYINT)
        writer.let(ir.Compress((length,), (place,), body.block(*op.body.results)), *let.outs)
        return writer.statements
    writer.let(ir.Prim("sub", (end, start)), let.outs[0])
    if let.outs[1:]:
        writer.let(ir.Map((let.outs[0],), (place,), body.block(*op.body.results[1:])), *let.outs[1:])
    return writer.statements


class _Cells:
    """How many upper bounds lie in the cells below each one, of cells that divide their range evenly.

    The cell of a value never falls where the value rises, so bounds in lower cells are below a value, and those in
    higher cells above it. That holds for infinite values and bounds, too: what is NaN on the way is the first cell.
    """

    def __init__(self, writer: Writer, bounds: Var, rounds: Operand) -> None:
        last = writer.prim("sub", rounds, ONE, type_=PYINT)
        self.number = writer.prim("mul", rounds, index_const(_CELLS), type_=PYINT)
        self.highest = writer.cast(self.number, "float64")
        self.low = writer.cast(writer.load(bounds, ZERO), "float64")
        width = writer.prim("sub", writer.cast(writer.load(bounds, last), "float64"), self.low)
        self.scale = writer.prim("div", self.highest, width)
        size = writer.prim("add", self.number, index_const(2), type_=PYINT)
        self.below = writer.map1((size,), lambda inner, i: ZERO, title="below")

        def count(body: Writer, i: Var) -> None:
            _increase(body, self.below, body.prim("add", self.cell(body, body.load(bounds, i)), ONE, type_=PYINT))

        _for(writer, ZERO, rounds, count)

        def add(body: Writer, i: Var, before: Operand) -> Operand:
            total = body.prim("add", before, body.load(self.below, i), type_=PYINT)
            body.store(self.below, (i,), total)
            return total

        _counting(writer, ZERO, size, add)

    def cell(self, writer: Writer, value: Operand) -> Operand:
        moved = writer.prim("mul", writer.prim("sub", writer.cast(value, "float64"), self.low), self.scale)
        zero = Const(0.0, FLOAT64)
        moved = writer.prim(ir.SELECT, writer.prim("gt", moved, zero), moved, zero)
        moved = writer.prim(ir.SELECT, writer.prim("lt", moved, self.highest), moved, self.highest)
        return writer.bind(ir.Cast(moved), PYINT)


class _Sorting:
    """The statements that sort the positions of elements by the rounds of a loop that select them."""

    def __init__(self, writer: Writer, loop: _Loop, selection: _Selection, rounds: Operand) -> None:
        self.loop, self.selection, self.rounds = loop, selection, rounds
        self.length = selection.op.extents[0]
        self.last = writer.prim("sub", rounds, ONE, type_=PYINT)
        self.lower, self.upper = writer.map((rounds,), self.bounds, title="bounds")

    def write(self, writer: Writer) -> tuple[Var, Var, Var]:
        """Whether bounds rise and lists are short, where the list of each round starts, and the lists."""
        (rise,) = writer.reduce((), (self.last,), self.rises, "and", (_TRUE,))
        inner, nothing = Writer(writer.pos), Writer(writer.pos)
        outs = Var("sorted", PYBOOL), Var("starts", Array("int64", 1)), Var("positions", Array("int32", 1))
        empty = [nothing.alloc(ir.dtype_of(one), ZERO) for one in outs[1:]]
        writer.let(ir.If(rise, inner.block(*self.sort(inner)), nothing.block(_FALSE, *empty)), *outs)
        return outs

    def sort(self, writer: Writer) -> tuple[Operand, Var, Var]:
        self.cells = _Cells(writer, self.upper, self.rounds)
        least = writer.prim("mul", self.rounds, index_const(16), type_=PYINT)
        self.size = writer.prim("maximum", least, index_const(BLOCK), type_=PYINT)
        more = writer.prim("add", self.length, writer.prim("sub", self.size, ONE, type_=PYINT), type_=PYINT)
        self.blocks = writer.prim("floordiv", more, self.size, type_=PYINT)
        self.counts = writer.map1((self.blocks, self.rounds), lambda inner, b, r: ZERO, title="counts")
        self.first = writer.alloc("int32", self.length, title="first")
        self.starts = writer.alloc("int64", writer.prim("add", self.rounds, ONE, type_=PYINT), title="starts")
        (few,) = writer.map((self.blocks,), self.count, title="few")
        (short,) = writer.reduce((), (self.blocks,), lambda inner, b: inner.load(few, b), "and", (_TRUE,))
        total = _counting(writer, ZERO, self.rounds, self.place)
        writer.store(self.starts, (self.rounds,), total)
        positions = writer.alloc("int32", total, title="positions")
        filling = Writer(writer.pos)
        filling.map((self.blocks,), lambda inner, b: self.fill(inner, b, positions))
        writer.let(ir.If(short, filling.block(), Block(())))
        return short, self.starts, positions

    def bounds(self, inner: Writer, number: Var) -> tuple[Operand, Operand]:
        known = {self.loop.index: self.loop.index_of(inner, number)}
        return self.selection.lower.bound.write(inner, known), self.selection.upper.bound.write(inner, known)

    def rises(self, inner: Writer, number: Var) -> Operand:
        after = inner.prim("add", number, ONE, type_=PYINT)
        lower, upper = (
            inner.prim("le", inner.load(one, number), inner.load(one, after)) for one in (self.lower, self.upper)
        )
        return inner.prim("and", lower, upper)

    def element(self, writer: Writer, position: Operand) -> Operand:
        return self.selection.element.write(writer, {self.selection.op.indices[0]: position})

    def range_of(self, inner: Writer, block: Var) -> tuple[Operand, Operand]:
        start = inner.prim("mul", block, self.size, type_=PYINT)
        end = inner.prim("add", start, self.size, type_=PYINT)
        return start, inner.prim("minimum", end, self.length, type_=PYINT)

    def first_round(self, writer: Writer, element: Operand) -> Operand:
        """The first round whose upper bound is above an element."""
        cell = self.cells.cell(writer, element)
        start = writer.load(self.cells.below, cell)
        end = writer.load(self.cells.below, writer.prim("add", cell, ONE, type_=PYINT))
        low, high, found = Var("low", PYINT), Var("high", PYINT), Var("round", PYINT)
        condition, body = Writer(writer.pos), Writer(writer.pos)
        more = condition.prim("lt", low, high, type_=PYBOOL)
        middle = body.prim("shr", body.prim("add", low, high, type_=PYINT), ONE, type_=PYINT)
        below = body.prim(self.selection.upper.test, element, body.load(self.upper, middle))
        above = body.prim("add", middle, ONE, type_=PYINT)
        results = (
            body.prim(ir.SELECT, below, low, above, type_=PYINT),
            body.prim(ir.SELECT, below, middle, high, type_=PYINT),
        )
        loop = ir.While((low, high), (start, end), condition.block(more), body.block(*results))
        writer.let(loop, found, Var("high", PYINT))
        return found

    def has_begun(self, writer: Writer, number: Operand, element: Operand) -> Operand:
        """Whether a round is one of the loop, whose lower bound is not above an element."""
        place = writer.prim("minimum", number, self.last, type_=PYINT)
        begun = writer.prim(self.selection.lower.test, element, writer.load(self.lower, place))
        return writer.prim("and", writer.prim("lt", number, self.rounds, type_=PYBOOL), begun, type_=PYBOOL)

    def count(self, inner: Writer, block: Var) -> Operand:
        """Count the elements of each round in a block of the array; whether they are few."""
        start, end = self.range_of(inner, block)
        most = inner.prim("mul", inner.prim("sub", end, start, type_=PYINT), index_const(OVERLAP), type_=PYINT)

        def one(body: Writer, position: Var, before: Operand) -> Operand:
            element = self.element(body, position)
            first = self.first_round(body, element)
            body.store(self.first, (position,), body.cast(first, "int32"))
            number, total, after = Var("round", PYINT), Var("total", PYINT), Var("total", PYINT)
            condition, turn = Writer(body.pos), Writer(body.pos)
            few = condition.prim("lt", total, most, type_=PYBOOL)
            more = condition.prim("and", self.has_begun(condition, number, element), few, type_=PYBOOL)
            _increase(turn, self.counts, block, number)
            following = [turn.prim("add", value, ONE, type_=PYINT) for value in (number, total)]
            loop = ir.While((number, total), (first, before), condition.block(more), turn.block(*following))
            body.let(loop, Var("round", PYINT), after)
            return after

        return inner.prim("lt", _counting(inner, start, end, one), most)

    def place(self, body: Writer, number: Var, before: Operand) -> Operand:
        """Where the list of a round starts, and where the blocks of the array store into it."""
        body.store(self.starts, (number,), before)

        def add(inner: Writer, block: Var, start: Operand) -> Operand:
            count = inner.load(self.counts, block, number)
            inner.store(self.counts, (block, number), start)
            return inner.prim("add", start, count, type_=PYINT)

        return _counting(body, ZERO, self.blocks, add, before)

    def fill(self, inner: Writer, block: Var, positions: Var) -> None:
        """Store the positions of a block of the array into the lists."""

        def one(body: Writer, position: Var) -> None:
            element = self.element(body, position)
            number = Var("round", PYINT)
            condition, turn = Writer(body.pos), Writer(body.pos)
            more = self.has_begun(condition, number, element)
            place = _increase(turn, self.counts, block, number)
            turn.store(positions, (place,), turn.cast(position, "int32"))
            first = body.bind(ir.Cast(body.load(self.first, position)), PYINT)
            following = turn.prim("add", number, ONE, type_=PYINT)
            loop = ir.While((number,), (first,), condition.block(more), turn.block(following))
            body.let(loop, Var("round", PYINT))

        _for(inner, *self.range_of(inner, block), one)


def _increase(writer: Writer, array: Var, *indices: Operand) -> Operand:
    """Add one to an element; gives what it was."""
    value = writer.load(array, *indices)
    writer.store(array, indices, writer.prim("add", value, ONE, type_=PYINT))
    return value


def _for(writer: Writer, start: Operand, stop: Operand, body: Callable[[Writer, Var], None]) -> None:
    index, inner = Var("i", PYINT), Writer(writer.pos)
    body(inner, index)
    writer.let(ir.For(index, start, stop, ONE, (), (), inner.block()))


def _counting(
    writer: Writer,
    start: Operand,
    stop: Operand,
    body: Callable[[Writer, Var, Operand], Operand],
    init: Operand = ZERO,
) -> Operand:
    """A loop that carries a count."""
    index, count, out = Var("i", PYINT), Var("count", PYINT), Var("count", PYINT)
    inner = Writer(writer.pos)
    following = body(inner, index, count)
    writer.let(ir.For(index, start, stop, ONE, (count,), (init,), inner.block(following)), out)
    return out
