"""Intervals of the int64 values of a loop: what its iterations hand on to each other, under assumptions.

    for i in range(n):                       |n|, |x| <= 2^31:  x is in (-2^31, 2^31) in all iterations,
        x = (1103515245 * x + 12345) % m     and the product fits in 64 bits

`Facts` knows what holds at a place from what was computed before it. The parameters of a loop need what comes after,
too: they are guessed to be what they begin with, the body is evaluated on intervals (abstract interpretation), and the
guess grows until it holds all that is handed on. A parameter that moves by a bounded step moves by that times the
number of iterations. What does not settle in a few rounds is taken for any int64.

`versions` of loops (`hoist_checks`) ask what would hold if numbers from outside were small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from parakeet_py.base.types import INTEGERS, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Let, Op, Operand, Var
from parakeet_py.typed_ir.passes.analysis.facts import LARGEST_EXTENT, Facts
from parakeet_py.typed_ir.passes.analysis.intervals import (
    FULL,
    GREATEST,
    LEAST,
    MOST_TURNS,
    Interval,
    hull,
    of_primitive,
)
from parakeet_py.typed_ir.rewrite import free_in_op
from parakeet_py.typed_ir.semantics import integer_bounds

_ROUNDS = 4  # until what has not settled is taken for any number
_LIMITS = (1 << 31, 1 << 20, 1 << 15)
_MOST_ASSUMED = 6
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


class Ranges:
    """Intervals of what a loop computes.

    Parameters
    ----------
    facts : what is known before the loop
    outside : what stands for a variable from outside
    assumed : intervals of variables from outside that are to hold beside what is known

    Attributes
    ----------
    interval : of the int64 variables of the loop, in all of its iterations
    overflowing : the checked primitives that may overflow
    """

    def __init__(
        self, facts: Facts, outside: Callable[[Operand], Operand], assumed: Mapping[Var, Interval] | None = None
    ) -> None:
        self.facts = facts
        self.outside = outside
        self.interval: dict[Var, Interval] = {}
        for var, interval in (assumed or {}).items():
            self.interval[var] = interval
            now = outside(var)
            if isinstance(now, Var):
                self.interval[now] = interval
        self.moved: dict[Var, tuple[Var, int, int]] = {}  # a parameter of a loop around, plus something in [low, high]
        self.comparisons: dict[Var, ir.Prim] = {}
        self.overflowing: set[Var] = set()

    def of(self, operand: Operand) -> Interval:
        if isinstance(operand, Var):
            known = self.interval.get(operand)
            if known is not None:
                return known
            operand = self.outside(operand)
        if isinstance(operand, Const):
            return (operand.value, operand.value) if isinstance(operand.value, int) else FULL
        form = self.facts.form(operand)
        if any(var in self.interval for var in form.variables()):  # assumptions hold for what is made of them
            low = high = form.constant
            for var, k in form.terms:
                ends = [k * end for end in self.of(var)] if var is not operand else [k * e for e in FULL]
                low, high = low + min(ends), high + max(ends)
        else:
            low, high = self.facts.range_of(form)
        return max(low, LEAST), min(high, GREATEST)

    # ---- loops ----

    def loop(self, outs: Sequence[Var], op: ir.For | ir.While) -> None:
        """Evaluate a loop until its parameters settle."""
        skip = 1 if op.stoppable else 0
        turns = self.turns(op) if isinstance(op, ir.For) else MOST_TURNS
        results, outs = op.body.results[skip:], outs[skip:]
        integers = [place for place, param in enumerate(op.params) if _is_integer(param)]
        start = {place: self.of(op.inits[place]) for place in integers}
        around = {place: self.moved.get(op.inits[place]) for place in integers}  # type: ignore[arg-type]
        guess = self.guessed(op, start)
        steps: dict[int, Interval | None] = {}
        for count in range(_ROUNDS + len(integers) + 1):
            for place in integers:
                param = op.params[place]
                self.interval[param] = guess[place]
                self.moved[param] = (param, 0, 0)
            self.turn(op)
            settled = True
            for place in integers:
                found, steps[place] = self.handed_on(op, place, results[place], start[place], turns)
                if not _within(found, guess[place]):
                    settled = False
                    guess[place] = FULL if count >= _ROUNDS else hull(guess[place], found)
            if settled:
                break
        for place in integers:
            self.interval[outs[place]] = guess[place]
            self.moved.pop(outs[place], None)
            step, before = steps.get(place), around[place]
            if step is not None and before is not None and turns is not None:
                low, high = min(0, step[0]) * turns, max(0, step[1]) * turns
                self.moved[outs[place]] = (before[0], before[1] + low, before[2] + high)

    def guessed(self, op: ir.For | ir.While, start: dict[int, Interval]) -> dict[int, Interval]:
        """What the parameters of a loop are taken for at first, which holds what they begin with."""
        return dict(start)

    def turns(self, op: ir.For) -> int | None:
        """The most iterations of a loop; notes the interval of its index."""
        start, stop, step = self.of(op.start), self.of(op.stop), self.of(op.step)
        if step[0] > 0:
            self.interval[op.index] = (start[0], max(start[0], stop[1] - 1))
            return max(0, -(-(stop[1] - start[0]) // step[0]))
        if step[1] < 0:
            self.interval[op.index] = (min(start[1], stop[0] + 1), start[1])
            return max(0, -(-(start[1] - stop[0]) // -step[1]))
        self.interval[op.index] = FULL
        return None

    def turn(self, op: ir.For | ir.While) -> None:
        if isinstance(op, ir.For):
            self.block(op.body)
            return
        self.block(op.condition)
        self.under(op.condition.results[0], True, op.body)

    def handed_on(
        self, op: ir.For | ir.While, place: int, result: Operand, start: Interval, turns: int | None
    ) -> tuple[Interval, Interval | None]:
        """The interval of what a parameter is, as far as this round shows, and the step, if it moves by steps."""
        moved = self.moved.get(result) if isinstance(result, Var) else None
        found = self.of(result)
        if moved is None or moved[0] is not op.params[place]:
            return hull(start, found), None
        _, low, high = moved
        if turns is not None:
            bound = (start[0] + min(0, low) * turns, start[1] + max(0, high) * turns)
            bound = (max(bound[0], LEAST), min(bound[1], GREATEST))
            if _within(bound, hull(start, found)) or not _within(found, self.interval[op.params[place]]):
                return bound, (low, high)
        return hull(start, found), (low, high)

    # ---- blocks ----

    def block(self, block: Block) -> None:
        for let in block.statements:
            self.statement(let)

    def statement(self, let: Let) -> None:
        match let.op:
            case ir.Prim() as op:
                self.primitive(let.outs[0], op)
            case ir.Cast(arg):
                out = let.outs[0]
                if _is_integer(out):
                    self.interval[out] = self.converted(arg)
            case ir.Dim():
                self.interval[let.outs[0]] = (0, LARGEST_EXTENT)
            case ir.If(condition, then, orelse):
                self.branch(let, condition, then, orelse)
            case ir.For() | ir.While() as op:
                self.loop(let.outs, op)
            case _:
                for out in let.outs:
                    if _is_integer(out):
                        self.interval[out] = FULL

    def primitive(self, out: Var, op: ir.Prim) -> None:
        if not _is_integer(out):
            if op.name in _NEGATED:
                self.comparisons[out] = op
            return
        args = op.args[1:] if op.name == "select" else op.args
        if any(not _is_integer(arg) for arg in args):
            self.interval[out] = FULL
            return
        intervals = [self.of(arg) for arg in args]
        exact = of_primitive(op.name, intervals)
        fits = exact[0] >= LEAST and exact[1] <= GREATEST
        if op.name in ir.CHECKED:
            self.overflowing.discard(out)
            if not fits:
                self.overflowing.add(out)
            self.interval[out] = max(exact[0], LEAST), min(exact[1], GREATEST)
        else:
            self.interval[out] = exact if fits else FULL
        self.moved.pop(out, None)
        before = self.moved.get(args[0]) if isinstance(args[0], Var) else None
        match op.name:
            case "add" | "add_checked" if fits or op.name in ir.CHECKED:
                after = self.moved.get(args[1]) if isinstance(args[1], Var) else None
                if before is not None:
                    self.move(out, before, intervals[1])
                elif after is not None:
                    self.move(out, after, intervals[0])
            case "sub" | "sub_checked" if before is not None and (fits or op.name in ir.CHECKED):
                self.move(out, before, (-intervals[1][1], -intervals[1][0]))
            case "select":
                self.either(out, args[0], args[1])

    def move(self, out: Var, before: tuple[Var, int, int], by: Interval) -> None:
        self.moved[out] = (before[0], before[1] + by[0], before[2] + by[1])

    def either(self, out: Var, left: Operand, right: Operand) -> None:
        """One of two values that moved from the same parameter."""
        self.moved.pop(out, None)
        one = self.moved.get(left) if isinstance(left, Var) else None
        two = self.moved.get(right) if isinstance(right, Var) else None
        if one is not None and two is not None and one[0] is two[0]:
            self.moved[out] = (one[0], min(one[1], two[1]), max(one[2], two[2]))

    def converted(self, arg: Operand) -> Interval:
        kind = arg.type
        assert isinstance(kind, Scalar)
        if kind.dtype == "bool":
            return (0, 1)
        if kind.dtype == "int64":
            return self.of(arg)
        return integer_bounds(kind.dtype) if kind.dtype in INTEGERS and kind.dtype != "uint64" else FULL

    def branch(self, let: Let, condition: Operand, then: Block, orelse: Block) -> None:
        left = self.under(condition, True, then)
        right = self.under(condition, False, orelse)
        for place, out in enumerate(let.outs):
            if _is_integer(out):
                self.interval[out] = hull(left[place], right[place])
                self.either(out, then.results[place], orelse.results[place])

    def under(self, condition: Operand, truth: bool, block: Block) -> list[Interval]:
        """Evaluate a block where a condition is known; the intervals of its results there."""
        kept = self.refine(condition, truth)
        self.block(block)
        results = [self.of(result) if _is_integer(result) else FULL for result in block.results]
        for var, interval in kept:
            if interval is None:
                del self.interval[var]
            else:
                self.interval[var] = interval
        return results

    def refine(self, condition: Operand, truth: bool) -> list[tuple[Var, Interval | None]]:
        """Note what a comparison shows of its two sides; what was noted before."""
        test = self.comparisons.get(condition) if isinstance(condition, Var) else None
        if test is None:
            return []
        left, right = test.args
        if not (_is_integer(left) and _is_integer(right)):
            return []
        name = test.name if truth else _NEGATED[test.name]
        kept: list[tuple[Var, Interval | None]] = []
        for order, var, other in ((name, left, right), (_MIRRORED[name], right, left)):
            if not isinstance(var, Var):
                continue
            (low, high), (least, greatest) = self.of(var), self.of(other)
            if order in ("lt", "le", "eq"):
                high = min(high, greatest - (order == "lt"))
            if order in ("gt", "ge", "eq"):
                low = max(low, least + (order == "gt"))
            if low <= high:
                kept.append((var, self.interval.get(var)))
                self.interval[var] = (low, high)
        return kept[::-1]


def handed_on(facts: Facts, outside: Callable[[Operand], Operand], let: Let) -> dict[Var, Interval]:
    """Intervals of a loop's int64 parameters and outs, where there is something to gain by them."""
    op = let.op
    assert isinstance(op, ir.For | ir.While)
    if not any(_is_integer(param) for param in op.params) or not may_overflow(op.body):
        return {}
    ranges = Ranges(facts, outside)
    ranges.loop(let.outs, op)
    wanted = (*op.params, *let.outs)
    found = {var: ranges.interval[var] for var in wanted if var in ranges.interval}
    return {var: interval for var, interval in found.items() if interval != FULL}


def small_enough(facts: Facts, outside: Callable[[Operand], Operand], let: Let) -> dict[Var, Interval]:
    """Intervals of numbers from outside that keep what loops compute from overflowing, if some gain by that."""
    op = let.op
    assert isinstance(op, ir.For | ir.While)
    units = list(_units(op))
    if not units:
        return {}
    known = Ranges(facts, outside)
    known.loop(let.outs, op)
    units = [checked for checked in units if not checked.isdisjoint(known.overflowing)]
    free = [var for var in free_in_op(op) if _is_integer(var) and isinstance(outside(var), Var)]
    if not units or not 0 < len(free) <= _MOST_ASSUMED:
        return {}

    def overflowing(assumed: Mapping[Var, Interval]) -> int:
        ranges = Ranges(facts, outside, assumed)
        ranges.loop(let.outs, op)
        return sum(not checked.isdisjoint(ranges.overflowing) for checked in units)

    best, fewest = {}, len(units)
    for limit in _LIMITS:
        assumed: dict[Var, Interval] = {}
        for var in free:
            low, high = known.of(var)
            if (low < -limit or high > limit) and low <= limit and high >= -limit:
                assumed[var] = (max(low, -limit), min(high, limit))
        left = overflowing(assumed)
        if left < fewest:
            best, fewest = assumed, left
        if left == 0:
            break
    for var in list(best) if len(best) > 1 else ():
        others = {other: interval for other, interval in best.items() if other is not var}
        if overflowing(others) == fewest:
            best = others
    needed = {outside(var): interval for var, interval in best.items()}
    return {var: interval for var, interval in needed.items() if isinstance(var, Var)}


def _units(op: ir.For | ir.While) -> Iterator[set[Var]]:
    """The checked primitives of each loop that would gain without: of innermost ones, but for those with a division
    that takes longer than all else, and of those that accumulate what loops in them find."""
    inside = [
        let for block in ((op.body,) if isinstance(op, ir.For) else (op.condition, op.body)) for let in ir.walk(block)
    ]
    loops = [let.op for let in inside if isinstance(let.op, ir.For | ir.While)]
    nested = {id(one) for loop in loops for block in ir.blocks_of(loop) for one in _loops(block)}
    for loop in loops:
        if id(loop) not in nested:
            yield from _units(loop)
    inner = {*op.params, *([op.index] if isinstance(op, ir.For) else ()), *[out for let in inside for out in let.outs]}
    checked: set[Var] = set()
    for let in inside:
        match let.op:
            case ir.Prim("floordiv" | "mod", (_, Var() as divisor)) if (
                not loops and divisor in inner and _is_integer(divisor)
            ):
                return
            case ir.Prim(name) if name in ir.CHECKED:
                checked.add(let.outs[0])
    if checked and (not loops or (isinstance(op, ir.For) and any(map(_is_integer, op.params)))):
        yield checked


def _loops(block: Block) -> Iterator[Op]:
    return (let.op for let in ir.walk(block) if isinstance(let.op, ir.For | ir.While))


def may_overflow(block: Block) -> bool:
    for let in block.statements:
        op: Op = let.op
        if isinstance(op, ir.Prim):
            if op.name in ir.CHECKED:
                return True
        elif isinstance(op, ir.If):
            if may_overflow(op.then) or may_overflow(op.orelse):
                return True
        elif isinstance(op, ir.For | ir.While) and may_overflow(op.body):
            return True
    return False


def _is_integer(operand: Operand) -> bool:
    return isinstance(operand.type, Scalar) and operand.type.dtype == "int64"


def _within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
