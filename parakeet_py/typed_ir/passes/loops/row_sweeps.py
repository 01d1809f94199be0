"""Row sweeps: a loop that walks along rows, with operators across them, walks a few rows at a time instead.

    for k in range(1, n):                              map rows i .. i+3:
        map i < m:                                         y0 = a[i, 0]; y1 = a[i + 1, 0]; ...
            a[i, k] := f(x[i, k], a[i, k - 1])    ->       for k in range(1, n):
                                                               y0 = f(x[i, k], y0); a[i, k] := y0
                                                               y1 = f(x[i + 1, k], y1); a[i + 1, k] := y1; ...

Recurrences along the last axis are written so with whole arrays: recursive filters, vertical solvers of weather models,
tridiagonal systems by columns. Each round of the loop otherwise touches one element of every row, a line of the cache
for each, and all these lines are gone when the next round needs their other elements; and each round starts an
operator. Row by row, memory is read once and in order. A recurrence is bound by the latency of its arithmetic, so
several independent rows are computed side by side, and what a round has read or stored and the next one reads at the
same place stays in variables (`_Rotation`), which LLVM cannot do where rows of one array alternate. LLVM makes vectors
of the same operation in several rows where that pays: of divisions.

The order of points and rounds can be exchanged where the points of the operators do not depend on each other: every
array that is stored to is accessed, in all the operators, at rows that are the points' own (the same form of their
indices in the same axes), and as one array only. Nothing in the loop may fail. It is done where most accesses walk
along rows; loops that walk across them, down whole rows, are vector code already. Elementary functions are computed in
vectors across rows, and what has them stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYBOOL, PYINT, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear, atom
from parakeet_py.typed_ir.passes.analysis.row_walks import Access, accesses, along_rows
from parakeet_py.typed_ir.passes.fusion.cost import cost_of
from parakeet_py.typed_ir.rewrite import Rewriter, fresh_copy, substitute
from parakeet_py.typed_ir.writer import Writer, index_const, linear_value

_ROWS = 4
_MOST_STATEMENTS = 120  # of one row: so many copies of them are made
_DIVIDED_ROWS = 8  # where there are divisions, which take longest and of which vectors are made
_MOST_DIVIDED = 40  # statements of one row, then
_DEAR = 20  # what an elementary function costs
_SCALARS = (ir.Prim, ir.Cast, ir.Dim, ir.Load)

Forms_ = tuple[Linear, ...]


def sweep_rows(function: Function) -> Function:
    """Run loops along rows row by row."""
    if not any(isinstance(let.op, ir.For) and _operators(let.op) for let in function.statements()):
        return function
    return _Sweeper(function).function(function)


def _operators(op: ir.For) -> list[ir.Map]:
    """The operators in a loop, if there is nothing else in it but scalars and nothing is carried."""
    found: list[ir.Map] = []
    for let in op.body.statements:
        if isinstance(let.op, ir.Map) and not let.outs:
            found.append(let.op)
        elif not isinstance(let.op, _SCALARS):
            return []
    return [] if op.stoppable or op.params else found


@record
class _Sweep:
    """A round of a loop: `scalars`, the same for all points, then what is done at one point, in terms of `indices`."""

    loop: ir.For
    extents: tuple[Operand, ...]
    indices: tuple[Var, ...]
    scalars: tuple[Let, ...]
    body: tuple[Let, ...]
    forms: Forms
    inside: frozenset[Var]  # bound in the loop, without its index and `indices`
    changing: frozenset[Var]  # arrays that are stored to

    def accesses(self) -> Iterable[Access]:
        return accesses(Block(self.body), self.indices, self.forms)

    def calculations(self) -> tuple[Let, ...]:
        return tuple([let for let in self.body if isinstance(let.op, ir.Prim)])


class _Sweeper(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.PARALLEL):
            return None if not self.replacement else self.descend(let)
        if isinstance(op, ir.For) and (operators := _operators(op)):
            sweep = self.sweep(op, operators)
            if sweep is not None and along_rows(op.index, sweep.accesses()) and self.own_rows(sweep):
                return _row_by_row(let, sweep)
        return self.descend(let)

    def sweep(self, op: ir.For, operators: list[ir.Map]) -> _Sweep | None:
        extents = operators[0].extents
        effects = self.aliases.effects(op)
        if effects.fails or effects.overflows or effects.calls or not effects.writes or not extents:
            return None
        if any(one.extents != extents for one in operators[1:]):
            return None
        indices = tuple([Var(index.name, PYINT) for index in operators[0].indices])
        scalars: list[Let] = []
        body: list[Let] = []
        for let in op.body.statements:
            if isinstance(let.op, ir.Map):
                renamed: dict[Var, Operand] = dict(zip(let.op.indices, indices, strict=True))
                body += substitute(let.op.body, renamed).statements
            else:
                if isinstance(let.op, ir.Load) and not self.aliases.atoms(let.op.array).isdisjoint(effects.writes):
                    return None
                scalars.append(let)
        if len(body) > _MOST_STATEMENTS or not all(isinstance(let.op, (*_SCALARS, ir.Store)) for let in body):
            return None
        if any(cost_of(Block((let,))).heavy >= _DEAR for let in body if isinstance(let.op, ir.Prim)):
            return None
        inside = frozenset(out for let in (*scalars, *body) for out in let.outs)
        if not inside.isdisjoint(extents) or op.index in extents:
            return None
        definitions = {let.outs[0]: let.op for let in (*scalars, *body) if isinstance(let.op, ir.Prim)}
        touched = {let.op.array for let in body if isinstance(let.op, ir.Load | ir.Store)}
        changing = frozenset(one for one in touched if not self.aliases.atoms(one).isdisjoint(effects.writes))
        return _Sweep(op, extents, indices, tuple(scalars), tuple(body), Forms(definitions), inside, changing)

    def own_rows(self, sweep: _Sweep) -> bool:
        """Is everything that changes touched in rows that belong to one point each, and under one name?"""
        if any(self.aliases.may_alias(one, other) for one in sweep.changing for other in sweep.changing - {one}):
            return False
        rows: dict[Var, tuple[Linear | None, ...]] = {}
        fixed = sweep.inside | {sweep.loop.index}
        for access in sweep.accesses():
            if access.array not in sweep.changing:
                continue
            row: list[Linear | None] = []
            for form in access.forms:
                own = [index for index in sweep.indices if form.coefficient(index)]
                if len(own) > 1 or (own and abs(form.coefficient(own[0])) != 1):
                    return False
                if own and not fixed.isdisjoint(form.variables()):
                    return False
                row.append(form if own else None)
            if rows.setdefault(access.array, tuple(row)) != tuple(row):
                return False
            named = [form for form in row if form is not None]
            if any(sum(1 for form in named if form.coefficient(index)) != 1 for index in sweep.indices):
                return False
        return True


# ---- what stays in variables -----------------------------------------------------------------------------------------

_Place = tuple[Var, Forms_]  # an array, and the forms of an element's indices without what moves with the rounds
_Element = tuple[_Place, int]


class _Rotation:
    """Which loads of a round can be given by the round before it.

    A round's elements of an array are numbered by how far they lie ahead: the next round's element number o is this
    one's number o + 1 (what does not move with the rounds keeps its number). A load of number o need not be made where
    this round has loaded number o + 1, or stored it; before the loop it is made once.

    Of an array that is stored to, all accesses must be to one sequence of elements, and the stores to one number. No
    other element of it then changes in a round.
    """

    def __init__(self, sweep: _Sweep) -> None:
        self.sweep = sweep
        self.step = 0
        if isinstance(sweep.loop.step, Const) and sweep.loop.step.value in (1, -1):
            self.step = int(sweep.loop.step.value.real)
        self.numbers: dict[int, tuple[_Place, int]] = {}  # of loads and stores, by their place in the body
        self.loads: dict[_Place, set[int]] = {}
        self.stores: dict[_Place, set[int]] = {}
        self.moves: dict[_Place, int] = {}
        for at, let in enumerate(sweep.body):
            if isinstance(let.op, ir.Load | ir.Store):
                self.enter(at, let.op)
        places: dict[Var, set[_Place]] = {}
        for place, _ in self.numbers.values():
            places.setdefault(place[0], set()).add(place)
        unknown = {
            let.op.array
            for at, let in enumerate(sweep.body)
            if isinstance(let.op, ir.Load | ir.Store) and at not in self.numbers
        }
        self.excluded = {
            array
            for array, found in places.items()
            if array in sweep.changing
            and (array in unknown or len(found) > 1 or any(len(self.stores.get(one, ())) > 1 for one in found))
        }

    def enter(self, at: int, op: ir.Load | ir.Store) -> None:
        index = self.sweep.loop.index
        forms = [self.sweep.forms.of(one) for one in op.indices]
        if not self.step or any(not self.sweep.inside.isdisjoint(form.variables()) for form in forms):
            return
        moving = [axis for axis, form in enumerate(forms) if form.coefficient(index)]
        number, move = 0, 0
        if moving:
            (axis, *more), form = moving, forms[moving[0]]
            if more or abs(form.coefficient(index)) != 1:
                return
            move = form.coefficient(index) * self.step
            number = form.constant * move
            forms[axis] = Linear(0, form.terms)
        elif op.array not in self.sweep.changing:
            return  # the same in all rounds
        place = op.array, tuple(forms)
        self.numbers[at] = place, number
        self.moves[place] = move
        table = self.stores if isinstance(op, ir.Store) else self.loads
        table.setdefault(place, set()).add(number)

    def of(self, at: int) -> _Element | None:
        """The element of an access, if it may stay in a variable."""
        found = self.numbers.get(at)
        return None if found is None or found[0][0] in self.excluded else found

    def given(self, place: _Place, number: int) -> bool:
        """Whether the round before knows the element."""
        ahead = number + abs(self.moves[place])
        return ahead in self.loads.get(place, ()) if ahead not in self.stores.get(place, ()) else True


# ---- rewriting -------------------------------------------------------------------------------------------------------


def _row_by_row(let: Let, sweep: _Sweep) -> list[Let]:
    loop = sweep.loop
    inside = Writer(let.pos)
    last = sweep.extents[-1]
    divided = len(sweep.body) <= _MOST_DIVIDED and cost_of(Block(sweep.calculations())).heavy
    most = _DIVIDED_ROWS if divided else _ROWS
    count = inside.prim("floordiv", last, index_const(most), type_=PYINT)
    done = inside.prim("mul", count, index_const(most), type_=PYINT)
    rest = inside.prim("sub", last, done, type_=PYINT)
    rotation = _Rotation(sweep)
    for extent, first, rows in ((count, index_const(0), most), (rest, done, 1)):
        indices = tuple([Var(index.name, PYINT) for index in sweep.indices])
        body = Writer(let.pos)
        base: Operand = indices[-1]
        if rows > 1:
            base = body.prim("mul", base, index_const(rows), title="i", type_=PYINT)
        else:
            base = body.prim("add", base, first, title="i", type_=PYINT)
        points = [
            (*indices[:-1], base if row == 0 else body.prim("add", base, index_const(row), title="i", type_=PYINT))
            for row in range(rows)
        ]
        body.statements += _rounds(let, sweep, rotation, points)
        inside.let(ir.Map((*sweep.extents[:-1], extent), indices, body.block()))
    if not rotation.step:
        return inside.statements
    writer = Writer(let.pos)  # before its first round a loop has nothing to keep in variables
    runs = writer.prim("lt" if rotation.step > 0 else "gt", loop.start, loop.stop, type_=PYBOOL)
    writer.let(ir.If(runs, inside.block(), Block((), ())))
    return writer.statements


@record(frozen=False)
class _Row:
    """One of the rows that are computed side by side."""

    point: tuple[Operand, ...]
    known: dict[Var, Operand]  # what stands for the variables of the body
    held: dict[_Element, Operand] = field(default_factory=dict)  # elements that are in variables
    handed_on: dict[_Element, tuple[Var, Operand]] = field(default_factory=dict)  # a parameter, and its first value


def _rounds(let: Let, sweep: _Sweep, rotation: _Rotation, points: Sequence[tuple[Operand, ...]]) -> list[Let]:
    """All rounds of some points side by side."""
    loop = sweep.loop
    index = Var(loop.index.name, PYINT)
    before = Writer(let.pos)
    known: dict[Var, Operand] = {loop.index: index}
    statements = list(fresh_copy(Block(sweep.scalars), known).statements)
    rows = [_Row(point, known | dict(zip(sweep.indices, point, strict=True))) for point in points]
    # The same of all rows side by side, so that LLVM can make vectors of it: operations, and parameters.
    for at, inner in enumerate(sweep.body):
        element = rotation.of(at)
        for row in rows:
            if element is not None and isinstance(inner.op, ir.Load):
                if element not in row.held and rotation.given(*element):  # by the round before
                    param = Var("element", Scalar(ir.dtype_of(inner.op.array)))
                    row.held[element] = param
                    row.handed_on[element] = param, _first(before, sweep, inner.op, row.point)
                if element in row.held:
                    row.known[inner.outs[0]] = row.held[element]
                    continue
            copy = fresh_copy(Block((inner,)), row.known).statements[0]
            statements.append(copy)
            if element is not None:
                row.held[element] = copy.op.value if isinstance(copy.op, ir.Store) else copy.outs[0]
    params, inits, results = [], [], []
    for element in rows[0].handed_on:
        place, number = element
        for row in rows:
            param, first = row.handed_on[element]
            params.append(param)
            inits.append(first)
            results.append(row.held[place, number + abs(rotation.moves[place])])
    body = Block(tuple(statements), tuple(results))
    made = ir.For(index, loop.start, loop.stop, loop.step, tuple(params), tuple(inits), body)
    return [*before.statements, Let(tuple([Var("last", param.type) for param in params]), made, let.pos)]


def _first(writer: Writer, sweep: _Sweep, load: ir.Load, point: tuple[Operand, ...]) -> Operand:
    """The element that a load of the first round gives; there is one."""
    indices: list[Operand] = []
    for one in load.indices:
        form = sweep.forms.of(one)
        start = sweep.loop.start
        form = form.substitute(sweep.loop.index, Linear(start.whole) if isinstance(start, Const) else atom(start))
        for index, place in zip(sweep.indices, point, strict=True):
            assert isinstance(place, Var)
            form = form.substitute(index, atom(place))
        indices.append(linear_value(writer, form))
    return writer.load(load.array, *indices)
