"""Index arithmetic: what `simplify` does with int64 values, given the facts in force.

Values with equal linear forms become one variable; checked arithmetic that provably fits becomes plain; `min`, `max`,
`%` and comparisons that are decided disappear. `enter` and `leave` say what a loop or operator shows of its index
variables, and about parameters that grow by a bounded step each time round.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import INT64, PYINT, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Const, Let, Op, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.facts import Facts
from parakeet_py.typed_ir.passes.analysis.intervals import GREATEST, LEAST, MOST_TURNS, Interval
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear

Result = Operand | ir.Prim | None


def simplify_integer(facts: Facts, out: Var, op: ir.Prim) -> Result:
    """A simpler operand or primitive for an int64 `out = op`; notes what is known of it if there is none."""
    name, args = op.name, op.args
    if name in ir.CHECKED:
        plain = name.removesuffix("_checked")
        if plain != "abs":
            form = facts.arithmetic(plain, args)
            if form is not None:
                if facts.fits(form):
                    return ir.Prim(plain, args)
            elif facts.product_fits(args):
                return ir.Prim(plain, args)
        elif facts.range_of(facts.form(args[0]))[0] > LEAST:
            return ir.Prim("abs", args)
    elif name in ("minimum", "maximum"):
        if facts.at_most(args[0], args[1]):
            return args[0] if name == "minimum" else args[1]
        if facts.at_most(args[1], args[0]):
            return args[1] if name == "minimum" else args[0]
    elif name == "mod":
        if facts.nonnegative(facts.form(args[0])) and facts.less(args[0], args[1]):  # 0 <= x < y: x % y = x
            return args[0]
    elif name == "abs":
        if facts.nonnegative(facts.form(args[0])):
            return args[0]
    elif name == "select":
        return _select(facts, out, args)
    facts.define(out, op)
    form = facts.form_of.get(out)
    if form is None:
        return None
    return _canonical(facts, out, op, form)


def _canonical(facts: Facts, out: Var, op: ir.Prim, form: Linear) -> Result:
    """The variable that already has this form, or the shortest way to compute it."""
    if not form.terms:  # a checked operation that overflows stays one
        return Const(form.constant, ir.scalar_type(out)) if LEAST <= form.constant <= GREATEST else None
    if form.constant == 0 and len(form.terms) == 1 and form.terms[0][1] == 1:
        return form.terms[0][0]
    known = facts.found.get(form)
    if known is not None and known is not out:
        return known
    facts.set(facts.found, form, out)
    short = _one_operation(facts, form)
    return short if short is not None and short != op and op.name not in ir.CHECKED else None


def _one_operation(facts: Facts, form: Linear) -> ir.Prim | None:
    """v + c, v + w or v - w, where that is all there is to a form."""
    terms = form.terms
    if len(terms) == 1 and terms[0][1] == 1:
        return ir.Prim("add", (terms[0][0], Const(form.constant, PYINT)))
    if len(terms) == 2 and form.constant == 0:
        (v, k), (w, h) = terms
        if k == 1 and abs(h) == 1:
            return ir.Prim("add" if h == 1 else "sub", (v, w))
        if k == -1 and h == 1:
            return ir.Prim("sub", (w, v))
    return None


def _select(facts: Facts, out: Var, args: tuple[Operand, ...]) -> Result:
    """A choice between integers: equal ones are one; else `out` has the range of either where it is chosen."""
    condition, left, right = args
    test = facts.definitions.get(condition) if isinstance(condition, Var) else None
    equality = isinstance(test, ir.Prim) and test.name == "eq"
    found: list[tuple[Linear, Interval]] = []
    for truth, operand in ((True, left), (False, right)):
        mark = facts.push()
        facts.learn_condition(condition, truth)
        form = facts.late_form(operand)
        if truth and equality and facts.equal(left, right):  # x if c else y, where c makes x = y, is y
            facts.pop(mark)
            return right
        found.append((form, facts.range_of(facts.resolve(form))))
        facts.pop(mark)
    facts.one_of(out, found[0][0], found[1][0], (found[0][1], found[1][1]))
    return None


def decide_comparison(facts: Facts, op: ir.Prim) -> Const | None:
    """The outcome of a comparison of int64s, if it follows from the facts."""
    if dtype_of(op.args[0]) != "int64":
        return None
    outcome = facts.decide(op.name, op.args[0], op.args[1])
    return None if outcome is None else Const(outcome, Scalar("bool", True))


# ---- loops -----------------------------------------------------------------------------------------------------------


def enter(facts: Facts, op: Op, operands: Sequence[Operand], original: Forms) -> None:
    """What holds inside an operator's blocks; `operands` are its extents, or start, stop and step."""
    if isinstance(op, ir.PARALLEL):
        indices = (*op.indices, *op.reduced_indices) if isinstance(op, ir.Reduce) else op.indices
        for index, extent in zip(indices, operands, strict=True):
            form = facts.form(extent)
            facts.learn(Linear(form.constant - 1, form.terms))
            facts.define_index(index, extent)
    elif isinstance(op, ir.For):
        start, stop, step = operands
        trips = None
        least_step, greatest_step = facts.range_of(facts.form(step))
        if least_step > 0 or greatest_step < 0:
            first, last = facts.late_form(start), facts.late_form(stop)
            ascending = least_step > 0
            low, high = (first, last) if ascending else (last, first)
            shift = (0, -1) if ascending else (1, 0)
            lower, upper = Linear(low.constant + shift[0], low.terms), Linear(high.constant + shift[1], high.terms)
            difference = high - low
            facts.learn(Linear(difference.constant - 1, difference.terms))
            least, greatest = facts.range_of(lower)[0], facts.range_of(upper)[1]
            facts.set(facts.interval, op.index, (max(least, LEAST), max(min(greatest, GREATEST), least)))
            facts.set(facts.lower, op.index, (lower,))
            facts.set(facts.upper, op.index, (upper,))
            slowest = least_step if ascending else -greatest_step
            trips = max(0, -(-facts.range_of(difference)[1] // slowest))
        _parameters(facts, op, trips, original, op.params)
    elif isinstance(op, ir.While):
        _parameters(facts, op, MOST_TURNS, original, op.params)


def leave(facts: Facts, let: Let, operands: Sequence[Operand], original: Forms) -> None:
    """What holds of a loop's outs after it."""
    op = let.op
    if isinstance(op, ir.For | ir.While):
        outs = let.outs[1:] if op.stoppable else let.outs
        trips = None if isinstance(op, ir.For) else MOST_TURNS
        if isinstance(op, ir.For) and isinstance(operands[2], Const) and isinstance(operands[2].value, int):
            difference = facts.form(operands[1]) - facts.form(operands[0])
            if operands[2].value < 0:
                difference = difference.scale(-1)
            trips = max(0, -(-facts.range_of(difference)[1] // abs(operands[2].value)))
        _parameters(facts, op, trips, original, outs)


def _parameters(
    facts: Facts, op: ir.For | ir.While, trips: int | None, original: Forms, targets: Sequence[Var]
) -> None:
    """Bounds of int64 loop parameters that change by a step within [least, most] each time round."""
    results = op.body.results[1:] if op.stoppable else op.body.results
    kept = _stay_nonnegative(facts, op.params, op.inits, results, original)
    for param, init, result, target in zip(op.params, op.inits, results, targets, strict=True):
        if not isinstance(param.type, Scalar) or param.type.dtype != "int64":
            continue
        if param in kept:
            facts.set(facts.interval, target, (0, facts.range(target)[1]))
        step = _step(original, result, param)
        if step is None:
            continue
        least, most, checked = step
        start = facts.form(init)
        low, high = facts.range_of(start)
        if trips is not None:
            low, high = low + min(0, least) * trips, high + max(0, most) * trips
        if trips is None or low < LEAST or high > GREATEST:
            if not checked:
                continue
            low, high = (low if least >= 0 else LEAST), (high if most <= 0 else GREATEST)
            low, high = max(low, LEAST), min(high, GREATEST)
        facts.set(facts.interval, target, (low, high))
        if least >= 0:
            facts.set(facts.lower, target, (start,))
        if most <= 0:
            facts.set(facts.upper, target, (start,))


def _stay_nonnegative(
    facts: Facts, params: Sequence[Var], inits: Sequence[Operand], results: Sequence[Operand], original: Forms
) -> set[Var]:
    """The parameters that begin >= 0 and are handed on as something >= 0 if all of these are: `hi = (lo + hi) // 2`."""
    integers = [
        (param, result)
        for param, init, result in zip(params, inits, results, strict=True)
        if param.type in (PYINT, INT64) and facts.range_of(facts.form(init))[0] >= 0
    ]
    kept = {param for param, _ in integers}
    before = -1
    while kept and len(kept) != before:
        before = len(kept)
        kept = {param for param, result in integers if param in kept and _nonnegative(facts, original, result, kept)}
    return kept


def _nonnegative(facts: Facts, original: Forms, operand: Operand, kept: set[Var], depth: int = 8) -> bool:
    """Whether an int64 is >= 0 by how it is computed, if these variables are."""
    if isinstance(operand, Const):
        return operand.whole >= 0
    if operand in kept or facts.range(operand)[0] >= 0:
        return True
    op = original.definitions.get(operand)
    if depth == 0 or op is None:
        return False
    if isinstance(op, ir.If):
        position = original.positions[operand]
        ways: tuple[Operand, ...] = (op.then.results[position], op.orelse.results[position])
    elif isinstance(op, ir.For | ir.While):  # what a loop makes of its parameter, if that holds of the parameter itself
        position = original.positions[operand] - (1 if op.stoppable else 0)
        if position < 0 or not _nonnegative(facts, original, op.inits[position], kept, depth - 1):
            return False
        ways, kept = (op.body.results[position + (1 if op.stoppable else 0)],), kept | {op.params[position]}
    elif isinstance(op, ir.Prim) and op.name in ("add_checked", "mul_checked", "floordiv", "shr", "mod", "minimum"):
        ways = op.args
    elif isinstance(op, ir.Prim) and op.name == "select":
        ways = op.args[1:]
    elif isinstance(op, ir.Prim) and op.name in ("maximum", "and"):
        return any(_nonnegative(facts, original, way, kept, depth - 1) for way in op.args)
    else:
        return False
    return all(_nonnegative(facts, original, way, kept, depth - 1) for way in ways)


def _step(original: Forms, result: Operand, param: Var, depth: int = 4) -> tuple[int, int, bool] | None:
    """(least, most, whether all steps are checked arithmetic) of result - param."""
    if result is param:
        return (0, 0, True)
    if not isinstance(result, Var) or depth == 0:
        return None
    op = original.definitions.get(result)
    if isinstance(op, ir.Prim):
        if op.name == "select":
            return _either(original, op.args[1], op.args[2], param, depth)
        difference = original.of(result) - original.of(param)
        if not difference.terms:
            return (difference.constant, difference.constant, op.name in ir.CHECKED)
        return None
    if isinstance(op, ir.If):
        position = original.positions[result]
        return _either(original, op.then.results[position], op.orelse.results[position], param, depth)
    return None


def _either(original: Forms, left: Operand, right: Operand, param: Var, depth: int) -> tuple[int, int, bool] | None:
    one, two = _step(original, left, param, depth - 1), _step(original, right, param, depth - 1)
    if one is None or two is None:
        return None
    return (min(one[0], two[0]), max(one[1], two[1]), one[2] and two[2])
