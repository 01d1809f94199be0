"""Sections: the elements of an array that a sum of products reads, as linear forms of indices; and whether they meet.

A *section* is a box of one array. Each axis stays at a start, or moves by one with the summation index k or with the
index j along the result. Starts, and how far k and j go, are linear forms of what is known where the sum is computed,
a loop's index among them.

A *contraction* is out[j] = sum over k of one section times another (a dot product where there is no j) of which any
grouping will do: a `Reduce` without `runs`, or a `Matmul` into an array of its own.

`Accesses` collects the elements that the statements of a block write, and answers whether one of them may be read by a
section in a later iteration of the loop around (or, for what is written before the sum, in the same one): by facts on
both positions, which have to be apart along some axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYINT, Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Let, Op, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.analysis.facts import Facts
from parakeet_py.typed_ir.passes.analysis.linear import Linear, atom
from parakeet_py.typed_ir.rewrite import free_variables, is_const

SUMMED, ALONG, ITERATED = "k", "j", "x"  # what an axis moves with; ITERATED: the index of the loop around
_BLAS_DTYPES = frozenset({"float32", "float64", "complex64", "complex128"})


@record
class Section:
    """`starts[a]`, plus the index that axis a moves with (None: it stays)."""

    array: Var
    starts: tuple[Linear, ...]
    axes: tuple[str | None, ...]

    def axis(self, index: str) -> int:
        """The axis that moves with an index."""
        return self.axes.index(index)

    def start(self, index: str) -> Linear:
        return self.starts[self.axis(index)]


@record
class Contraction:
    """out = sum over k < `inner` of left * right; with `width`, right and out also have an index j < width.

    `at` is the place in its block where the operands are read, `let` the statement that gives `out`.
    """

    at: int
    let: Let
    out: Var
    left: Section
    right: Section
    inner: Linear
    width: Linear | None = None


class Scope:
    """What is known at a place: definitions, facts, views. Facts hold until `facts.pop`."""

    def __init__(self) -> None:
        self.definitions: dict[Var, Op] = {}
        self.views: dict[Var, ir.View] = {}
        self.facts = Facts(self.definitions)

    def learn(self, let: Let) -> None:
        """What follows from a statement for those behind it."""
        op = let.op
        match op:
            case ir.Prim():
                self.definitions[let.outs[0]] = op
                if dtype_of(let.outs[0]) == "int64":
                    self.facts.define(let.outs[0], op)
            case ir.Cast():
                if dtype_of(let.outs[0]) == "int64":
                    self.facts.define_cast(let.outs[0], dtype_of(op.arg))
            case ir.Dim():
                self.facts.define_extent(let.outs[0])
            case ir.View():
                self.views[let.outs[0]] = op
            case ir.Check():
                self.facts.learn_condition(op.condition, True)

    def learn_index(self, op: ir.For) -> None:
        """start <= index < stop, for a loop that counts upwards; says nothing of the bounds: it may not run."""
        if isinstance(op.step, ir.Const) and op.step.whole > 0:
            facts = self.facts
            start, last = facts.form(op.start), facts.form(op.stop) - Linear(1)
            facts.set(facts.interval, op.index, (facts.range_of(start)[0], facts.range_of(last)[1]))
            facts.set(facts.lower, op.index, (start,))
            facts.set(facts.upper, op.index, (last,))

    def between(self, form: Linear, low: Linear, high: Linear) -> None:
        """low <= form < high."""
        self.facts.learn(form - low)
        self.facts.learn(high - form - Linear(1))

    def learn_inside(self, op: Op) -> None:
        """The ranges of the indices that an operator binds."""
        if isinstance(op, ir.For):
            self.learn_index(op)
        elif isinstance(op, ir.PARALLEL):
            spaces = [(op.indices, op.extents)]
            if isinstance(op, ir.Reduce):
                spaces.append((op.reduced_indices, op.reduced_extents))
            for indices, extents in spaces:
                for index, extent in zip(indices, extents, strict=True):
                    self.facts.define_index(index, extent)

    def forms(self, operands: Sequence[ir.Operand]) -> tuple[Linear, ...]:
        return tuple([self.facts.resolve(self.facts.form(operand)) for operand in operands])

    def in_base(self, array: Var, position: tuple[Linear, ...]) -> tuple[Var, tuple[Linear, ...]] | None:
        """A position in a view as one in what it is a view of; None for steps that are not constants."""
        view = self.views.get(array)
        while view is not None:
            below = list(self.forms(view.starts))
            for index, axis in zip(position, view.axes, strict=True):
                if axis.source is not None:
                    step = self.facts.form(axis.step)
                    if step.terms:
                        return None
                    below[axis.source] += index.scale(step.constant)
            array, position = view.base, tuple(below)
            view = self.views.get(array)
        return array, position


# ---- contractions ----------------------------------------------------------------------------------------------------


def may_contract(op: Op) -> bool:
    """Whether an operator could be (the end of) a contraction: a quick look."""
    if isinstance(op, ir.Matmul):
        return dtype_of(op.out) in _BLAS_DTYPES and _rank(op.out) == 1
    return (
        isinstance(op, ir.Reduce)
        and not op.extents
        and not op.runs
        and len(op.reduced_extents) == 1
        and len(op.inits) == 1
        and dtype_of(op.inits[0]) in _BLAS_DTYPES
    )


def contractions(block: Block, scope: Scope) -> Iterator[Contraction]:
    """The contractions among the statements of a block; the facts of the block have been learned."""
    makers: dict[Var, int] = {}
    for at, let in enumerate(block.statements):
        if isinstance(let.op, ir.Map | ir.Alloc):
            makers.update(dict.fromkeys(let.outs, at))
        elif isinstance(let.op, ir.Reduce) and may_contract(let.op):
            found = _dot(at, let, let.op, block, makers, scope)
            if found is not None:
                yield found
        elif isinstance(let.op, ir.Matmul) and may_contract(let.op) and let.op.out in makers:
            maker = makers[let.op.out]
            new, between = block.statements[maker].op, Block(block.statements[maker + 1 : at])
            if not isinstance(new, ir.Alloc) or let.op.out in free_variables(between):
                continue
            found = _vector_times_matrix(at, let, let.op, new, scope)
            if found is not None:
                yield found


def _rank(array: Var) -> int:
    assert isinstance(array.type, Array)
    return array.type.rank


def _dot(at: int, let: Let, op: ir.Reduce, block: Block, makers: Mapping[Var, int], scope: Scope) -> Contraction | None:
    """A sum over one index of products of two elements, which the `Reduce` or a `Map` that it reads computes."""
    step = op.combine.body.statements
    zero = op.inits[0]
    if len(step) != 1 or step[0].op != ir.Prim("add", op.combine.params) or not is_const(zero, 0):
        return None
    if op.combine.body.results != step[0].outs:
        return None
    index, body = op.reduced_indices[0], op.body
    if len(body.statements) == 1:
        load = body.statements[0].op
        maker = makers.get(load.array) if isinstance(load, ir.Load) else None
        if not isinstance(load, ir.Load) or maker is None or load.indices != (index,):
            return None
        if body.results != body.statements[0].outs:
            return None
        made = block.statements[maker].op
        if not isinstance(made, ir.Map) or len(made.body.results) != 1:
            return None
        between = Block(block.statements[maker + 1 : at])
        if any(not isinstance(one.op, ir.Pure | ir.Load | ir.Map) for one in ir.walk(between)):
            return None  # what is between could write what the products were made of
        index, body = made.indices[0], made.body
    elements: dict[Var, ir.Load] = {}
    product: ir.Prim | None = None
    for inner in body.statements:
        if isinstance(inner.op, ir.Load):
            elements[inner.outs[0]] = inner.op
        elif isinstance(inner.op, ir.Prim) and inner.op.name == "mul" and body.results == inner.outs:
            product = inner.op
        elif not isinstance(inner.op, ir.Prim) or dtype_of(inner.outs[0]) != "int64":
            return None
    if product is None or len(elements) != 2 or {*product.args} != {*elements}:
        return None
    left, right = (_of_element(elements[arg], index, scope) for arg in product.args if isinstance(arg, Var))
    (inner_extent,) = scope.forms(op.reduced_extents)
    if left is None or right is None:
        return None
    return Contraction(at, let, let.outs[0], left, right, inner_extent)


def _of_element(load: ir.Load, index: Var, scope: Scope) -> Section | None:
    found = scope.in_base(load.array, scope.forms(load.indices))
    if found is None:
        return None
    array, position = found
    moving = [axis for axis, form in enumerate(position) if form.coefficient(index)]
    if len(moving) != 1 or position[moving[0]].coefficient(index) != 1:
        return None
    starts = tuple([form.substitute(index, Linear(0)) for form in position])
    return Section(array, starts, tuple([SUMMED if axis in moving else None for axis in range(len(starts))]))


def _vector_times_matrix(at: int, let: Let, op: ir.Matmul, new: ir.Alloc, scope: Scope) -> Contraction | None:
    vector, matrix = (op.left, op.right) if _rank(op.left) == 1 else (op.right, op.left)
    order = (SUMMED, ALONG) if matrix is op.right else (ALONG, SUMMED)
    left, right = _of_array(vector, (SUMMED,), scope), _of_array(matrix, order, scope)
    view = scope.views.get(vector)
    if left is None or right is None or view is None:
        return None
    (inner, width) = scope.forms((view.axes[0].extent, new.extents[0]))
    return Contraction(at, let, op.out, left, right, inner, width)


def _of_array(array: Var, order: tuple[str, ...], scope: Scope) -> Section | None:
    """The section that an array is, whose axes are these indices."""
    view = scope.views.get(array)
    if view is None:
        return Section(array, (Linear(0),) * len(order), order)
    axes: list[str | None] = [None] * len(view.starts)
    for index, axis in zip(order, view.axes, strict=True):
        if axis.source is None or not is_const(axis.step, 1):
            return None
        axes[axis.source] = index
    return None if view.base in scope.views else Section(view.base, scope.forms(view.starts), tuple(axes))


# ---- contractions over a loop ----------------------------------------------------------------------------------------


@record
class Family:
    """The contractions of all iterations of a loop as one: out[x, j] = sum over k of left[x, k] * right[k, j].

    Here k and j count from a place that is the same in all iterations: in iteration x, `low` <= k < `high` and
    `first` <= j < `last`, forms of the loop's index; at most one of low and high depends on it.
    """

    of: Contraction
    left: Section
    right: Section
    low: Linear
    high: Linear
    first: Linear
    last: Linear


def family(one: Contraction, index: Var, bound: set[Var]) -> Family | None:
    """A contraction in a loop over `index` as part of one over all its iterations; `bound` is what the loop binds."""
    forms = [*one.left.starts, *one.right.starts, one.inner, *(() if one.width is None else (one.width,))]
    if any(var in bound and var is not index for form in forms for var in form.variables()):
        return None
    if one.left.array in bound or one.right.array in bound:
        return None
    shift = one.left.start(SUMMED).coefficient(index)
    if one.right.start(SUMMED).coefficient(index) != shift:
        return None
    slide = one.right.start(ALONG).coefficient(index) if one.width is not None else 0
    shifts = {SUMMED: shift, ALONG: slide, ITERATED: 1}
    for left, right in ((one.left, one.right), (one.right, one.left)):
        rows = [axis for axis, form in enumerate(left.starts) if left.axes[axis] is None and form.coefficient(index)]
        if len(rows) != 1 or left.starts[rows[0]].coefficient(index) != 1 or ALONG in left.axes:
            continue
        if any(form.coefficient(index) for form, moves in zip(right.starts, right.axes, strict=True) if moves is None):
            continue
        left = replace(left, axes=tuple([ITERATED if a in rows else moves for a, moves in enumerate(left.axes)]))
        sides: list[Section] = []
        for side in (left, right):
            starts = [
                form if moves is None else form - Linear(0, ((index, shifts[moves]),) if shifts[moves] else ())
                for form, moves in zip(side.starts, side.axes, strict=True)
            ]
            sides.append(replace(side, starts=tuple(starts)))
        low = atom(index).scale(shift)
        first = atom(index).scale(slide)
        left, right = sides
        found = Family(one, left, right, low, low + one.inner, first, first + (one.width or Linear(1)))
        return None if shift and found.high.coefficient(index) else found
    return None


# ---- dependences -----------------------------------------------------------------------------------------------------


@record
class _Write:
    array: Var
    position: tuple[Linear, ...] | None
    at: int  # the statement of the block it is in


class Accesses:
    """What the body of a loop writes; made where the facts of the body and of all in it have been learned."""

    def __init__(self, op: ir.For, scope: Scope, aliases: Aliases) -> None:
        self.op = op
        self.scope = scope
        self.aliases = aliases
        self.writes: list[_Write] = []
        for at, let in enumerate(op.body.statements):
            self._collect(let, at)

    def _collect(self, let: Let, at: int) -> None:
        for array in ir.arrays_written(let.op):
            position = self.scope.forms(let.op.indices) if isinstance(let.op, ir.Store) else None
            found = None if position is None else self.scope.in_base(array, position)
            self.writes.append(_Write(array, None, at) if found is None else _Write(*found, at))
        for inner in ir.blocks_of(let.op):
            for one in inner.statements:
                self._collect(one, at)

    def apart(self, one: Family) -> bool:
        """Does no iteration write what the contraction of a later one reads, among what all of a group of iterations
        sum up? What is written before the contraction must not meet what the same iteration reads, either."""
        return all(
            self._apart(write, side, one)
            for side in (one.left, one.right)
            for write in self.writes
            if self.aliases.may_alias(write.array, side.array)
        )

    def _apart(self, write: _Write, side: Section, one: Family) -> bool:
        if write.position is None or write.array is not side.array:
            return False
        scope, facts, op = self.scope, self.scope.facts, self.op
        mark = facts.push()
        later, k, j = (Var(name, PYINT) for name in ("later", "k", "j"))
        at_later = atom(later)

        def moved(form: Linear) -> Linear:
            return form.substitute(op.index, at_later)

        scope.between(at_later, facts.form(op.start), facts.form(op.stop))
        facts.learn(at_later - atom(op.index) - Linear(0 if write.at < one.of.at else 1))
        # What all iterations of a group sum up, both do.
        scope.between(atom(k), one.low, one.high)
        scope.between(atom(k), moved(one.low), moved(one.high))
        scope.between(atom(j), moved(one.first), moved(one.last))
        indices = {SUMMED: atom(k), ALONG: atom(j), ITERATED: at_later}
        apart = False
        for start, moves, written in zip(side.starts, side.axes, write.position, strict=True):
            difference = start + (indices[moves] if moves is not None else Linear(0)) - written
            if any(facts.nonnegative(form - Linear(1)) for form in (difference, difference.scale(-1))):
                apart = True
                break
        facts.pop(mark)
        return apart
