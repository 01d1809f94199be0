"""Loop versioning: index checks are tested once before a loop, for all its iterations.

    for i in range(n):                       if n <= dim(a):            # and |n| <= 2^47
        check i < dim(a)            ->           for i in range(n): check ...; ...
        ...                                  else:
                                                 for i in range(n): check ...; ...

Under the condition the range analysis of `simplify` proves the checks of the first copy and drops them (and with them
the wrap-around of negative indices and tests for overflow), and the loop may become parallel; the second copy keeps
Python's order of effects: what was stored before the failing iteration stays stored. Checked arithmetic that fits as
long as the numbers from outside are small is tested for by their size.

The condition of a check is brought to linear forms that must be >= 0, and the variables bound in the loop are replaced
by their bounds (those of the innermost `if` first), until only what is known before the loop is left. A check goes to
the outermost loop where that succeeds. The test may be too strict (an inner loop that is empty, a branch never taken):
then the checked copy runs, which is always right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYBOOL
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.facts import LARGEST_EXTENT
from parakeet_py.typed_ir.passes.analysis.intervals import Interval
from parakeet_py.typed_ir.passes.analysis.linear import Linear
from parakeet_py.typed_ir.passes.analysis.ranges import may_overflow, small_enough
from parakeet_py.typed_ir.passes.scalar.simplify import Simplifier
from parakeet_py.typed_ir.rewrite import fresh_copy
from parakeet_py.typed_ir.writer import Writer, index_const, linear_value

_MOST_REPLACEMENTS = 12
_MOST_REQUIREMENTS = 24
_MOST_STATEMENTS = 400  # a larger loop is not copied
_LARGEST_COEFFICIENT = 1 << 10
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def hoist_checks(function: Function) -> Function:
    """Give loops with checks a copy without, for when a test before the loop says they all hold."""
    loops = [let.op for let in function.statements() if isinstance(let.op, ir.For | ir.While)]
    if not any((isinstance(op, ir.For) and _is_checked(op.body)) or may_overflow(op.body) for op in loops):
        return function
    hoister = CheckHoister(function)
    result = hoister.function(function)
    return result if hoister.copied else function


def _is_checked(block: Block) -> bool:
    """Are there checks, and elements accessed one by one (not only checks of extents before whole operators)?"""
    checks, accesses, operators = _kinds(block)
    return checks and (accesses or not operators)


def _kinds(block: Block) -> tuple[bool, bool, bool]:
    checks = accesses = operators = False
    for let in block.statements:
        op = let.op
        if isinstance(op, ir.Check):
            checks = True
        elif isinstance(op, ir.Load | ir.Store | ir.View) or (isinstance(op, ir.Prim) and op.name == "or"):
            accesses = True  # or extents that broadcast
        elif isinstance(op, ir.PARALLEL):
            operators = True
            checks = checks or any(isinstance(inner.op, ir.Check) for inner in ir.walk(Block((let,))))
        for inner_block in () if isinstance(op, ir.PARALLEL) else ir.blocks_of(op):
            inner = _kinds(inner_block)
            checks, accesses, operators = checks or inner[0], accesses or inner[1], operators or inner[2]
    return checks, accesses, operators


@record(frozen=False)
class _Loop:
    """A loop being walked, and the forms that must be >= 0 before it."""

    required: dict[tuple[tuple[Var, int], ...], int] = field(default_factory=dict)  # terms -> constant
    bools: dict[Var, None] = field(default_factory=dict)
    small: dict[Var, Interval] = field(default_factory=dict)  # from outside; so nothing overflows
    size: int = 0
    has_operators: bool = False


class CheckHoister(Simplifier):
    """Finds what the checks of loops need. Where that is tested is another question: see `loop_guards`."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.loops: list[_Loop] = []
        self.copied = False  # has any loop been given two versions?
        self.around = 0  # loops of any kind
        self.level_of: dict[Var, int] = {}  # how many loops were open where a variable was bound

    def statement(self, let: Let) -> Sequence[Let] | None:
        level = len(self.loops)
        for out in let.outs:
            self.level_of[out] = level
        for var in ir.binders_of(let.op):
            self.level_of[var] = level + isinstance(let.op, ir.For)
        for loop in self.loops:
            loop.size += 1
            loop.has_operators = loop.has_operators or isinstance(let.op, ir.PARALLEL)
        if not isinstance(let.op, ir.For | ir.While):
            return super().statement(let)
        loop = _Loop(small={} if self.around else small_enough(self.facts, self.operand, let))
        self.around += 1
        if isinstance(let.op, ir.For):
            self.loops.append(loop)
        new = super().statement(let)
        if isinstance(let.op, ir.For):
            self.loops.pop()
        self.around -= 1
        if loop.size > _MOST_STATEMENTS:
            return new
        if not (loop.required or ((loop.small or loop.bools) and not loop.has_operators)):
            return new  # in a loop of array operations, one more test each time round is nothing
        return self.versions(list(new) if new is not None else [let], loop)

    def level(self, var: Var) -> int:
        """How many loops are around the place where a variable is bound."""
        return self.level_of.get(var, 0)

    def check(self, let: Let, op: ir.Check) -> Sequence[Let] | None:
        new = self.descend(let)
        condition = self.operand(op.condition)
        if self.loops and isinstance(condition, Var) and self.hoist(condition):
            return new  # not assumed: what other checks need must not rest on one that will be gone
        if condition.__class__ is Const:
            return () if condition.value else new
        self.assume(condition, True)
        return new

    # ---- from a check to what must hold before a loop ----

    def hoist(self, condition: Var) -> bool:
        """Add what makes `condition` true in every iteration to the outermost loop where that can be said."""
        for level, loop in enumerate(self.loops):
            if self.level(condition) <= level:
                loop.bools[condition] = None
                return True
            forms = self.as_forms(condition, True)
            if forms is None:
                return False
            found: list[Linear] = []
            for form in forms:
                least = self.least(form, level, _MOST_REPLACEMENTS, found)
                if least is None:
                    break
                found.append(least)
            else:
                if len(loop.required) + len(found) > _MOST_REQUIREMENTS:
                    return False
                for form in found:
                    if form.terms:  # of forms that differ by a constant, the least says it all
                        loop.required[form.terms] = min(form.constant, loop.required.get(form.terms, form.constant))
                return True
        return False

    def as_forms(self, condition: Operand, truth: bool) -> list[Linear] | None:
        """Forms that are all >= 0 exactly when (or only if) the condition has this truth."""
        op = self.definitions.get(condition) if isinstance(condition, Var) else None
        if not isinstance(op, ir.Prim):
            return None
        if op.name == "not":
            return self.as_forms(op.args[0], not truth)
        if op.name == ("and" if truth else "or"):
            left, right = self.as_forms(op.args[0], truth), self.as_forms(op.args[1], truth)
            return None if left is None or right is None else left + right
        if op.name == "or" and truth:  # equal extents, or one of them is 1: the usual case is the first
            return self.equality(op.args[0]) or self.equality(op.args[1])
        if op.name not in _NEGATED or dtype_of(op.args[0]) != "int64":
            return None
        name = op.name if truth else _NEGATED[op.name]
        left_form, right_form = self.facts.form(op.args[0]), self.facts.form(op.args[1])
        difference = right_form - left_form
        match name:
            case "lt":
                return [Linear(difference.constant - 1, difference.terms)]
            case "le":
                return [difference]
            case "gt":
                return [difference.scale(-1) - Linear(1)]
            case "ge":
                return [difference.scale(-1)]
            case "eq":
                return [difference, difference.scale(-1)]
        return None

    def equality(self, condition: Operand) -> list[Linear] | None:
        """Forms for the equality of two variables that is among the alternatives of a condition."""
        op = self.definitions.get(condition) if isinstance(condition, Var) else None
        if not isinstance(op, ir.Prim):
            return None
        if op.name == "or":
            return self.equality(op.args[0]) or self.equality(op.args[1])
        if op.name != "eq" or any(isinstance(arg, Const) for arg in op.args):
            return None
        return self.as_forms(condition, True)

    def least(self, form: Linear, level: int, budget: int, further: list[Linear]) -> Linear | None:
        """A form of variables bound outside the loop at `level` that is nowhere greater than `form` in the loop.

        `further` collects what else must be >= 0 for that to be so.
        """
        facts = self.facts
        form = facts.resolve(form)
        inner = [(self.level(var), var.uid, var, k) for var, k in form.terms if self.level(var) > level]
        if not form.terms:
            return form if form.constant >= 0 else None
        if not inner:
            return form if all(abs(k) <= _LARGEST_COEFFICIENT for _, k in form.terms) else None
        if budget == 0 or (facts.range_of(form)[0] >= 0):
            return Linear(0) if budget else None
        _, _, var, k = max(inner, key=lambda item: item[:2])
        op = self.definitions.get(var)
        if isinstance(op, ir.Prim) and op.name == "select":
            # The wrap-around of a negative index: require that there are none.
            extra = self.as_forms(op.args[0], False)
            if extra is not None:
                required: list[Linear] = []
                for form_needed in extra:
                    least = self.least(form_needed, level, budget - 1, required)
                    if least is None:
                        break
                    required.append(least)
                else:
                    chosen = facts.form(op.args[2])
                    result = self.least(form.substitute(var, chosen), level, budget - 1, required)
                    if result is not None:
                        further += required
                        return result
        cases = facts.cases.get(var)
        if cases is not None and cases[0] == ("minimum" if k > 0 else "maximum"):
            # k * min(a, b) is the less of two: require that both are enough.
            one = self.least(form.substitute(var, cases[1]), level, budget - 1, further)
            two = self.least(form.substitute(var, cases[2]), level, budget - 1, further)
            if one is None or two is None:
                return None
            further.append(one)
            return two
        for bound in reversed((facts.lower if k > 0 else facts.upper).get(var, ())):
            result = self.least(form.substitute(var, bound), level, budget - 1, further)
            if result is not None:
                return result
        return None

    # ---- the two versions ----

    def versions(self, statements: list[Let], loop: _Loop) -> list[Let]:
        """The loop (the last of `statements`) twice, under the test and not."""
        *before, original = statements
        if not isinstance(original.op, ir.For | ir.While):
            return statements
        self.copied = True
        writer = Writer(original.pos)
        condition = self.test(writer, loop)
        outs = original.outs
        slow_outs = tuple([Var(out.name, out.type) for out in outs])
        copies = []
        for let in (Let(outs, original.op, original.pos), Let(slow_outs, original.op, original.pos)):
            copy = fresh_copy(Block((let,), let.outs))
            copies.append(copy)
        writer.let(ir.If(condition, copies[0], copies[1], seldom=True), *outs)
        return [*before, *writer.statements]

    def test(self, writer: Writer, loop: _Loop) -> Operand:
        """One bool: all that is required holds, and no part of it can have overflowed."""
        parts: list[Operand] = list(loop.bools)
        limits: dict[Var, None] = {}
        for terms in loop.required:
            for var, _ in terms:
                low, high = self.facts.range(var)
                if low < -LARGEST_EXTENT or high > LARGEST_EXTENT:
                    limits[var] = None
        for var in limits:
            parts.append(writer.prim("ge", var, index_const(-LARGEST_EXTENT), type_=PYBOOL))
            parts.append(writer.prim("le", var, index_const(LARGEST_EXTENT), type_=PYBOOL))
        for var, (low, high) in loop.small.items():
            parts.append(writer.prim("ge", var, index_const(low), type_=PYBOOL))
            parts.append(writer.prim("le", var, index_const(high), type_=PYBOOL))
        parts += [at_least_zero(writer, Linear(constant, terms)) for terms, constant in loop.required.items()]
        condition = parts[0]
        for part in parts[1:]:
            condition = writer.prim("and", condition, part, type_=PYBOOL)
        return condition


def at_least_zero(writer: Writer, form: Linear) -> Operand:
    """form >= 0, written as one comparison of what is added and what is taken away."""
    positive, negative = form.halves()
    return writer.prim("ge", linear_value(writer, positive), linear_value(writer, negative), type_=PYBOOL)
