"""Loops of dot products become matrix products, a group of iterations at a time.

    for i in range(n):                                  for i0 in range(0, n, 128):
        c[i:, i] = c[i, i:] = d[:, i] @ d[:, i:]   ->       i1 = min(i0 + 128, n)
                                                            p = d[:, i0:i1].T @ d[:, i0:]
                                                            for i in range(i0, i1):
                                                                c[i:, i] = c[i, i:] = p[i - i0, i - i0:]

One product of matrices reads its operands once for all iterations of the group, where each of them had read a matrix
for itself. The loop stays as it is but for reading the sums; so nothing has to be known of what it does with them.

Of a loop within a loop, the sums of the inner one are made a product of a vector and a matrix first, and these one of
matrices by the outer one.

*Ranges that differ.* Where the summed range depends on the iteration, the product covers what all iterations of the
group sum up, and each adds what is left of its own (`b[i, j] += a[i + 1:, i] @ b[i + 1:, j]`: rows from i1 on for all,
those from i + 1 to i1 by itself). So no element meets another that the loop does not multiply it with: zero times NaN
is NaN. Results that the loop does not ask for may be computed (the other half of a group's square), and are not read.

*Dependences.* The product reads when its group begins. It must not read what an iteration of its group writes before
the loop would have read it (`sections.Accesses`): `b[i]` above is written in its group, but only rows below the group
are read ahead. What is written after it has been read does not matter: the product is a snapshot.

*Sums.* Only those are taken that may be grouped in any way, `dot` and `@` of inexact numbers; their last bits are
BLAS's. Sums by a loop, by `sum` and of integers keep their order.

*When.* A loop that may raise stays, but for checks of what is known before it, which are tested there. So do steps
other than 1, loops whose sections linear forms do not say, and, tested when it runs, few iterations or short sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYBOOL, PYINT, Array, Scalar, is_complex
from parakeet_py.frontend.ssa import Pos
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO, Block, Const, Function, Let, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.analysis.linear import Linear, atom
from parakeet_py.typed_ir.passes.analysis.sections import (
    ALONG,
    ITERATED,
    SUMMED,
    Accesses,
    Family,
    Scope,
    Section,
    contractions,
    family,
    may_contract,
)
from parakeet_py.typed_ir.passes.scalar.dce import eliminate_dead_code
from parakeet_py.typed_ir.rewrite import Rewriter, fresh_copy, is_const
from parakeet_py.typed_ir.writer import Writer, index_const, linear_value

FEWEST = 16  # iterations, and products in a sum: below, the loop is as fast
NARROWEST = 4  # columns of a product of matrices
GROUP = 128  # iterations whose sums are computed together
GROUP_WITH_REST = 32  # where each computes a part of its own, which grows with the group


def raise_to_products(function: Function) -> Function:
    """Compute the dot products and vector-matrix products of loops by products of matrices, where that is proved to
    read the same elements."""
    if not any(isinstance(let.op, ir.For) and _has_contractions(let.op) for let in function.statements()):
        return function
    raiser = _Raiser(function)
    result = raiser.function(function)
    return eliminate_dead_code(result) if raiser.raised else function


def _has_contractions(op: ir.For) -> bool:
    return any(may_contract(let.op) for let in ir.walk(op.body))


@record
class _Loop:
    """A loop some of whose contractions can be computed before it, or before groups of its iterations."""

    op: ir.For
    families: list[Family]


class _Raiser(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.scope = Scope()
        self.facts = self.scope.facts
        self.raised = False

    # ---- the walk ----

    def block(self, block: Block) -> Block:
        mark = self.facts.push()
        result = super().block(block)
        self.facts.pop(mark)
        return result

    def statement(self, let: Let) -> Sequence[Let] | None:
        self.scope.learn(let)
        op = let.op
        if isinstance(op, ir.PARALLEL):
            return None  # nothing in them is worth a product of matrices
        mark = self.facts.push()
        new: Sequence[Let] | None = None
        if isinstance(op, ir.For) and _has_contractions(op):
            new = self.loop(let, op)
        if new is None and isinstance(op, ir.If):
            new = self.branches(let, op)
        elif new is None:
            self.scope.learn_inside(op)
            new = self.descend(let)
        self.facts.pop(mark)
        return new

    def branches(self, let: Let, op: ir.If) -> Sequence[Let] | None:
        blocks = []
        for block, truth in ((op.then, True), (op.orelse, False)):
            mark = self.facts.push()
            self.facts.learn_condition(op.condition, truth)
            blocks.append(self.block(block))
            self.facts.pop(mark)
        if blocks[0] is op.then and blocks[1] is op.orelse:
            return None
        return [Let(let.outs, ir.If(op.condition, blocks[0], blocks[1], op.seldom), let.pos)]

    # ---- a loop ----

    def loop(self, let: Let, op: ir.For) -> Sequence[Let] | None:
        """The loop in groups, if that is long enough, and the loop as it is."""
        conditions = _invariant_checks(op)
        plain, mark = op, self.facts.push()
        if conditions:
            plain = replace(op, body=_Unchecked(conditions).block(op.body))
            for condition in conditions:
                self.facts.learn_condition(condition, True)
        found = self.of_nest(plain) or self.analyse(plain) if self.eligible(plain) else None
        if found is None:
            self.facts.pop(mark)  # the conditions hold in groups alone
            return None
        self.raised = True
        writer = Writer(let.pos)
        paying = self.pays(writer, found, conditions)
        outs = let.outs
        groups = Writer(let.pos)
        results = self.groups(groups, found, outs)
        original = fresh_copy(Block((let,), outs))
        short = all(self.differs(one, op.index) for one in found.families)  # sums, too, where there are few iterations
        writer.let(ir.If(paying, fresh_copy(groups.block(*results)), original, seldom=short), *outs)
        self.facts.pop(mark)
        return writer.statements

    def eligible(self, op: ir.For) -> bool:
        """A loop that counts by ones, cannot fail and stays in this function; the number of its iterations fits."""
        if op.stoppable or not is_const(op.step, 1):
            return False
        effects = self.aliases.effects(op)
        if effects.fails or effects.overflows or effects.calls:
            return False
        return self.facts.fits(self.facts.form(op.stop) - self.facts.form(op.start))

    def of_nest(self, op: ir.For) -> _Loop | None:
        """A loop around loops whose sums become products of a vector and a matrix."""
        mark = self.facts.push()
        self.scope.learn_index(op)
        statements: list[Let] = []
        changed = False
        for let in op.body.statements:
            made = self.before(let) if isinstance(let.op, ir.For) and _has_contractions(let.op) else None
            for one in made or [let]:
                self.scope.learn(one)
                statements.append(one)
            changed = changed or made is not None
        self.facts.pop(mark)
        return self.analyse(replace(op, body=Block(tuple(statements), op.body.results))) if changed else None

    def before(self, let: Let) -> list[Let] | None:
        """An inner loop whose sums are all computed before it."""
        op = let.op
        assert isinstance(op, ir.For)
        found = self.analyse(op) if self.eligible(op) else None
        count = self.facts.form(op.stop) - self.facts.form(op.start)
        if found is None or not self.facts.nonnegative(count):
            return None
        whole = [one for one in found.families if one.of.width is None and not self.differs(one, op.index)]
        if not whole:
            return None
        writer = Writer(let.pos)
        self.at_once(writer, op, whole, let.outs)
        return writer.statements

    def at_once(self, writer: Writer, op: ir.For, families: Sequence[Family], outs: Sequence[Var]) -> None:
        """All iterations are one group, and the sums a vector."""
        start, stop = self.facts.form(op.start), self.facts.form(op.stop)
        parts = [_Part(self, writer, one, op.index, start, stop) for one in families]
        writer.let(replace(op, body=_with_parts(op, parts)), *outs)

    def differs(self, one: Family, index: Var) -> bool:
        """Does the summed range depend on the iteration?"""
        return bool(one.low.coefficient(index) or one.high.coefficient(index))

    def analyse(self, op: ir.For) -> _Loop | None:
        """The contractions of the body itself that can be computed together."""
        mark = self.facts.push()
        self.scope.learn_index(op)
        for let in op.body.statements:
            self.learn_all(let)
        bound = {op.index, *op.params}
        for let in ir.walk(op.body):
            bound.update(let.outs)
            bound.update(ir.binders_of(let.op))
        families = []
        accesses: Accesses | None = None
        for one in contractions(op.body, self.scope):
            if one.width is not None and not _stays(one.out, op.body):
                continue
            found = family(one, op.index, bound)
            if found is not None:
                accesses = accesses or Accesses(op, self.scope, self.aliases)
                if accesses.apart(found):
                    families.append(found)
        self.facts.pop(mark)
        return _Loop(op, families) if families else None

    def learn_all(self, let: Let) -> None:
        self.scope.learn(let)
        self.scope.learn_inside(let.op)
        for inner in ir.blocks_of(let.op):
            for one in inner.statements:
                self.learn_all(one)

    # ---- what it becomes ----

    def pays(self, writer: Writer, found: _Loop, conditions: Sequence[Var]) -> Operand:
        """Whether the conditions hold and there are enough iterations, with work in each; tested before the loop."""
        op, facts = found.op, self.facts
        start, stop = facts.form(op.start), facts.form(op.stop)
        least = {stop - start: FEWEST}
        for one in found.families:
            if not self.differs(one, op.index):
                least.setdefault(one.high - one.low, FEWEST)
            if one.of.width is not None:
                # The widest group begins at one of the ends.
                slope = (one.last - one.first).coefficient(op.index)
                widest = start if slope <= 0 else stop - Linear(1)
                least.setdefault((one.last - one.first).substitute(op.index, widest), NARROWEST)
        tests: list[Operand] = list(conditions)
        for form, number in least.items():
            tests.append(writer.prim("ge", linear_value(writer, form), index_const(number), type_=PYBOOL))
        condition = tests[0]
        for test in tests[1:]:
            condition = writer.prim("and", condition, test, type_=PYBOOL)
        return condition

    def groups(self, writer: Writer, found: _Loop, outs: Sequence[Var]) -> tuple[Operand, ...]:
        """The loop over groups, each with its products and the loop over its iterations; one group where sums are all
        that is kept of it."""
        op = found.op
        finals = tuple([Var(out.name, out.type) for out in outs])
        if all(one.of.width is None and not self.differs(one, op.index) for one in found.families):
            self.at_once(writer, op, found.families, finals)
            return finals
        size = GROUP_WITH_REST if any(self.differs(one, op.index) for one in found.families) else GROUP
        inner = Writer(writer.pos)
        begin = Var(op.index.name, PYINT)
        params = tuple([Var(param.name, param.type) for param in op.params])
        after = inner.prim("add", begin, index_const(size), title="i", type_=PYINT)
        end = inner.prim("minimum", after, op.stop, title="i", type_=PYINT)
        parts = [_Part(self, inner, one, op.index, atom(begin), atom(end)) for one in found.families]
        results = tuple([Var(out.name, out.type) for out in outs])
        body = _with_parts(op, parts)
        inner.let(replace(op, start=begin, stop=end, inits=params, body=body), *results)
        loop = ir.For(begin, op.start, op.stop, index_const(size), params, op.inits, inner.block(*results))
        writer.let(loop, *finals)
        return finals


class _Part:
    """A family's product for the iterations `begin` <= index < `end`, written before them; and how they read it."""

    def __init__(self, raiser: _Raiser, writer: Writer, one: Family, index: Var, begin: Linear, end: Linear) -> None:
        self.one, self.index, self.begin = one, index, begin
        self.dtype = dtype_of(one.left.array)
        final = end - Linear(1)

        def extreme(form: Linear, greatest: bool) -> Linear:
            rising = form.coefficient(index) > 0
            return form.substitute(index, final if rising == greatest else begin)

        self.low, self.high = one.low, one.high  # what the product sums up
        if raiser.differs(one, index):
            low, high = extreme(one.low, True), extreme(one.high, False)
            size: Operand = linear_value(writer, high - low)
            enough = writer.prim("ge", size, index_const(FEWEST), type_=PYBOOL)
            size = writer.prim("select", enough, size, ZERO, title="n", type_=PYINT)
            # Nothing is left on the side that is the same for all.
            if one.low.coefficient(index):
                low = high - _form(size)
            self.low, self.high = low, low + _form(size)
        self.first = extreme(one.first, False)
        rows = linear_value(writer, end - begin)
        at = {SUMMED: self.low, ALONG: self.first, ITERATED: begin}
        extents = {SUMMED: linear_value(writer, self.high - self.low), ITERATED: rows}
        shape = [rows]
        if one.of.width is not None:
            extents[ALONG] = linear_value(writer, extreme(one.last, True) - self.first)
            shape.append(extents[ALONG])
        left = _view(writer, one.left, (ITERATED, SUMMED), at, extents)
        right = _view(writer, one.right, (SUMMED, ALONG) if one.of.width is not None else (SUMMED,), at, extents)
        self.product = writer.alloc(self.dtype, *shape, title="products")
        writer.let(ir.Matmul(self.product, left, right))

    def rest(self) -> tuple[Linear, Linear] | None:
        """The range that an iteration sums up by itself, if any."""
        if self.one.low.coefficient(self.index):
            return self.one.low, self.low
        if self.one.high.coefficient(self.index):
            return self.high, self.one.high
        return None

    def read(self, pos: Pos) -> list[Let]:
        """The statements of an iteration that stand where the contraction did."""
        writer = Writer(pos)
        one, out, rest = self.one, self.one.of.out, self.rest()
        row = linear_value(writer, atom(self.index) - self.begin)
        if one.of.width is None:
            if rest is None:
                writer.let(ir.Load(self.product, (row,)), out)
            else:
                own = self.own_sum(writer, *rest)
                writer.let(ir.Prim("add", (writer.load(self.product, row), own)), out)
            return writer.statements
        width = linear_value(writer, one.last - one.first)
        offset = one.first - self.first
        if rest is None:
            start = linear_value(writer, offset)
            writer.let(ir.View(self.product, (row, start), (ir.ViewAxis(1, width, ONE),)), out)
            return writer.statements
        at = {SUMMED: rest[0], ALONG: one.first, ITERATED: atom(self.index)}
        extents = {SUMMED: linear_value(writer, rest[1] - rest[0]), ALONG: width}
        own = writer.alloc(self.dtype, width, title="rest")
        left = _view(writer, one.left, (SUMMED,), at, extents)
        right = _view(writer, one.right, (SUMMED, ALONG), at, extents)
        writer.let(ir.Matmul(own, left, right))
        index, inner = Var("i", PYINT), Writer(pos)
        column = linear_value(inner, atom(index) + offset)
        total = inner.prim("add", inner.load(self.product, row, column), inner.load(own, index))
        writer.let(ir.Map((width,), (index,), inner.block(total)), out)
        return writer.statements

    def own_sum(self, writer: Writer, low: Linear, high: Linear) -> Var:
        """The dot product over low <= k < high of this iteration."""
        start, one = low, self.one

        def product(inner: Writer, k: Var) -> Operand:
            at = {SUMMED: start + atom(k), ITERATED: atom(self.index)}
            elements = [inner.load(side.array, *_place(inner, side, at)) for side in (one.left, one.right)]
            return inner.prim("mul", *elements)

        zero = Const(0j if is_complex(self.dtype) else 0.0, Scalar(self.dtype))
        (total,) = writer.reduce((), (linear_value(writer, high - low),), product, "add", (zero,))
        return total


def _invariant_checks(op: ir.For) -> list[Var]:
    """The conditions that a loop checks and does not compute."""
    conditions: dict[Var, None] = {}
    bound = {op.index, *op.params}
    for let in ir.walk(op.body):
        bound.update(let.outs)
        bound.update(ir.binders_of(let.op))
        if isinstance(let.op, ir.Check) and isinstance(let.op.condition, Var):
            conditions[let.op.condition] = None
    return [condition for condition in conditions if condition not in bound]


class _Unchecked(Rewriter):
    """Leaves out the checks of what holds."""

    def __init__(self, conditions: Sequence[Var]) -> None:
        super().__init__()
        self.conditions = conditions

    def statement(self, let: Let) -> Sequence[Let] | None:
        if isinstance(let.op, ir.Check) and let.op.condition in self.conditions:
            return ()
        return self.descend(let)


def _form(operand: Operand) -> Linear:
    return atom(operand) if isinstance(operand, Var) else Linear(operand.whole)


def _place(writer: Writer, side: Section, at: dict[str, Linear]) -> list[Operand]:
    """Where the memory of a section begins, if its indices begin as `at` says."""
    return [
        linear_value(writer, start if moves is None else start + at[moves])
        for start, moves in zip(side.starts, side.axes, strict=True)
    ]


def _view(
    writer: Writer, side: Section, order: Sequence[str], at: dict[str, Linear], extents: dict[str, Operand]
) -> Var:
    """A section as an array whose axes are the indices in this order."""
    assert isinstance(side.array.type, Array)
    last = side.axis(order[-1])
    unit = (side.array.type.layout in "CS" and last == side.array.type.rank - 1) or (
        side.array.type.layout == "F" and last == 0
    )
    layout = "A" if not unit else "C" if len(order) == 1 else "S"
    axes = [ir.ViewAxis(side.axis(index), extents[index], ONE) for index in order]
    return writer.view(side.array, _place(writer, side, at), axes, layout)


def _with_parts(op: ir.For, parts: Sequence[_Part]) -> Block:
    """The body of a loop that reads products instead of computing sums."""
    made = {id(part.one.of.let): part for part in parts}
    own = {part.one.of.out for part in parts if part.one.of.width is not None}
    statements: list[Let] = []
    for let in op.body.statements:
        part = made.get(id(let))
        if part is not None:
            statements += part.read(let.pos)
        elif own.isdisjoint(let.outs):  # the memory that had been made for the results
            statements.append(let)
    return Block(tuple(statements), op.body.results)


def _stays(array: Var, body: Block) -> bool:
    """Is an array written by one product and otherwise only read, and not handed on?"""
    products = 0
    for let in ir.walk(body):
        op = let.op
        if isinstance(op, ir.Load | ir.Dim):
            continue
        if isinstance(op, ir.Matmul) and op.out is array:
            products += 1
        elif array in ir.operands_of(op) and not isinstance(op, ir.Matmul):
            return False
        if any(array in inner.results for inner in ir.blocks_of(op)):
            return False
    return products == 1 and array not in body.results
