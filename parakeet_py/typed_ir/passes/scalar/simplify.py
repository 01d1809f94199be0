"""Simplification: one walk that knows, at each statement, how everything it reads was made.

Scalars follow `algebra` and, where they are integers, `integers`; a scalar computed twice in scope is one. Arrays
follow `simplify_arrays`. Of control: a branch on a literal is its block, a loop that never runs its initial values, one
with a single iteration its body, a loop parameter that never changes its initial value. A condition is known to hold in
its branch and after its check.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.grammar import rebuild
from parakeet_py.base.types import BOOL, INT64, PYBOOL, PYINT, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Op, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.intervals import Interval
from parakeet_py.typed_ir.passes.analysis.ranges import handed_on
from parakeet_py.typed_ir.passes.scalar.algebra import constant, simplify_cast, simplify_prim
from parakeet_py.typed_ir.passes.scalar.integers import decide_comparison, enter, leave, simplify_integer
from parakeet_py.typed_ir.passes.scalar.simplify_arrays import ArraySimplifier

_MOST_STEPS = 8  # rules applied to one statement


def simplify(function: Function) -> Function:
    """Fold constants, apply algebraic identities, resolve extents, views and constant control flow."""
    return Simplifier(function).function(function)


class Simplifier(ArraySimplifier):
    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.depth = 0
        self.ranges: list[Interval | None] = []  # of the int64 results of the block rewritten last
        self.spanned: set[Operand] = (
            set()
        )  # extents of operators so far: later ones are equal only if they have them, too

    # ---- the walk ----

    def block(self, block: Block) -> Block:
        outer, self.extra = self.extra, []
        mark = self.facts.push()
        self.depth += 1
        statements: list[Let] = []
        changed = False
        for let in block.statements:
            new = self.statement(let)
            if self.extra:
                changed = True
                statements += self.extra
                self.extra.clear()
            if new is None:
                statements.append(let)
            else:
                changed = True
                statements += new
        results = self.exact(block.results) if self.depth == 1 else self.operands(block.results)
        self.depth -= 1
        self.extra = outer
        self.ranges = [
            self.facts.range_of(self.facts.form(result)) if result.type in (PYINT, INT64) else None
            for result in results
        ]
        self.facts.pop(mark)
        if not changed and results is block.results:
            return block
        return Block(tuple(statements) if changed else block.statements, results)

    def exact(self, items: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """Operands that leave for Python, where the type (and which array object it is) shows."""
        if not any(item in self.replacement for item in items if isinstance(item, Var)):
            return items
        return tuple([item if item in self.kept else self.operand(item) for item in items])

    # ---- statements ----

    def statement(self, let: Let) -> Sequence[Let] | None:
        match let.op:
            case ir.Prim() | ir.Cast():
                return self.scalar(let)
            case ir.Dim():
                return self.dim(let, let.op)
            case ir.Load() | ir.Store():
                return self.access(let, let.op)
            case ir.View():
                return self.view(let, let.op)
            case ir.If():
                return self.branch(let, let.op)
            case ir.For() | ir.While():
                return self.loop(let, let.op)
            case ir.Check():
                return self.check(let, let.op)
            case ir.Opaque(site, args, leaves):
                exact = self.exact(args)
                return None if exact is args else (Let(let.outs, ir.Opaque(site, exact, leaves), let.pos),)
            case ir.Alloc() | ir.Map() | ir.Reduce() | ir.Scan() | ir.Compress() | ir.AnyView():
                new = self.descend(let)
                made = new[0] if new else let
                if isinstance(made.op, ir.Map | ir.Reduce):
                    dropped = self.without_unit_axes(made)
                    if dropped is not None:
                        if len(dropped) != 1:
                            return dropped
                        new, made = dropped, dropped[0]
                for out in let.outs:
                    self.makers[out] = made
                if isinstance(made.op, ir.Compress):
                    self.facts.define_extent(let.outs[0])
                return new
            case _:
                return self.descend(let)

    def scalar(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        (out,) = let.outs
        assert isinstance(out.type, Scalar)
        changed = False
        for _ in range(_MOST_STEPS):
            op = rebuild(op, self.operand)
            if isinstance(op, ir.Prim):
                better = simplify_prim(op.name, op.args, out.type, self.definitions)
            else:
                assert isinstance(op, ir.Cast)
                better = simplify_cast(op.arg, out.type, self.definitions)
            if better is None:
                better = self.integer(out, op)
            if better is None:
                break
            if isinstance(better, Var | Const):
                return self.replace(let, better)
            op = better
            changed = True
        key = (op, out.type)
        known = self.values.get(key)
        if known is not None:
            return self.replace(let, known)
        self.facts.set(self.values, key, out)
        self.definitions[out] = op
        return (Let(let.outs, op, let.pos),) if changed or op is not let.op else None

    def integer(self, out: Var, op: Op) -> Operand | ir.Prim | None:
        """What index arithmetic knows."""
        if dtype_of(out) == "int64":
            if isinstance(op, ir.Cast):
                self.facts.define_cast(out, dtype_of(op.arg))
            elif isinstance(op, ir.Prim):
                return simplify_integer(self.facts, out, op)
        elif isinstance(op, ir.Prim) and op.name in ir.COMPARE:
            return decide_comparison(self.facts, op)
        return None

    def check(self, let: Let, op: ir.Check) -> Sequence[Let] | None:
        new = self.descend(let)
        condition = self.operand(op.condition)
        if condition.__class__ is Const:
            return () if constant(condition) else new
        self.assume(condition, True)
        return new

    def assume(self, condition: Operand, truth: bool) -> None:
        """From here on in the current block a bool is known, and so is what follows from it."""
        if not isinstance(condition, Var):
            return
        self.facts.learn_condition(condition, truth)
        self.facts.set(self.replacement, condition, Const(truth, ir.scalar_type(condition)))
        for part, value in self.facts.implied(condition, truth):
            self.assume(part, value)
        op = self.definitions.get(condition)
        if not isinstance(op, ir.Prim):
            return
        if op.name == ("and" if truth else "or"):
            for part in op.args:
                self.assume(part, truth)
        elif op.name == "not":
            self.assume(op.args[0], not truth)
        elif op.name == ("eq" if truth else "ne") and dtype_of(op.args[0]) == "int64":
            left, right = op.args
            if isinstance(right, Const) and isinstance(left, Var):
                self.facts.set(self.replacement, left, Const(right.value, ir.scalar_type(left)))
            elif isinstance(left, Var) and isinstance(right, Var) and left.type == right.type:
                old, new = sorted((left, right), key=lambda var: (var not in self.spanned, var.uid))
                self.facts.set(self.replacement, new, old)

    def descend(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, (ir.For, *ir.PARALLEL)):
            if isinstance(op, ir.For):
                bounds: tuple[Operand, ...] = (op.start, op.stop, op.step)
            else:
                bounds = (*op.extents, *op.reduced_extents) if isinstance(op, ir.Reduce) else op.extents
            operands = self.operands(bounds)
            if not isinstance(op, ir.For):
                self.spanned.update(operands)
                indices = (*op.indices, *op.reduced_indices) if isinstance(op, ir.Reduce) else op.indices
                for index, extent in zip(indices, operands, strict=True):
                    if extent == ir.ONE:
                        self.replacement[index] = ir.ZERO
        elif isinstance(op, ir.While):
            operands = ()
        else:
            return super().descend(let)
        handed = handed_on(self.facts, self.operand, let) if isinstance(op, ir.For | ir.While) else {}
        mark = self.facts.push()
        enter(self.facts, op, operands, self.original)
        if isinstance(op, ir.For | ir.While):
            self.facts.confine(handed, op.params)
        new = self.while_loop(let, op) if isinstance(op, ir.While) else super().descend(let)
        self.facts.pop(mark)
        leave(self.facts, let, operands, self.original)
        if isinstance(op, ir.For | ir.While):
            self.facts.confine(handed, let.outs)
        return new

    def while_loop(self, let: Let, op: ir.While) -> Sequence[Let] | None:
        """The condition holds in the body."""
        inits = self.operands(op.inits)
        condition = self.block(op.condition)
        body, _ = self.under(op.body, condition.results[0], True)
        if inits is op.inits and condition is op.condition and body is op.body:
            return None
        return (Let(let.outs, ir.While(op.params, inits, condition, body, op.stoppable), let.pos),)

    # ---- control ----

    def branch(self, let: Let, op: ir.If) -> Sequence[Let] | None:
        condition = self.operand(op.condition)
        if condition.__class__ is Const:
            return self.splice(op.then if constant(condition) else op.orelse, let)
        then, ranges = self.under(op.then, condition, True)
        orelse, other_ranges = self.under(op.orelse, condition, False)
        made = op
        if condition is not op.condition or then is not op.then or orelse is not op.orelse:
            made = ir.If(condition, then, orelse, op.seldom)
        new = None if made is op else (Let(let.outs, made, let.pos),)
        for position, (out, one, two) in enumerate(zip(let.outs, ranges, other_ranges, strict=True)):
            if one is not None and two is not None:
                self.facts.set(self.facts.interval, out, (min(one[0], two[0]), max(one[1], two[1])))
            if out.type in (PYBOOL, BOOL):
                self.facts.merges[out] = (condition, made.then.results[position], made.orelse.results[position])
        outs = list(let.outs)
        keep = []
        selects: list[Let] = []
        simple = not made.then.statements and not made.orelse.statements
        for position, (out, left, right) in enumerate(zip(outs, made.then.results, made.orelse.results, strict=True)):
            if left == right and left.type == out.type:
                self.replacement[out] = left
                continue
            if simple and isinstance(out.type, Scalar):
                chosen = Let((out,), ir.Prim("select", (condition, left, right)), let.pos)
                made_select = self.scalar(chosen)
                selects += [chosen] if made_select is None else made_select
            else:
                keep.append(position)
        if len(keep) == len(outs) and not (simple and not outs):
            return new
        if simple and not keep:
            return selects
        then = Block(made.then.statements, tuple([made.then.results[position] for position in keep]))
        orelse = Block(made.orelse.statements, tuple([made.orelse.results[position] for position in keep]))
        branch = Let(tuple([outs[position] for position in keep]), ir.If(condition, then, orelse, op.seldom), let.pos)
        return [*selects, branch]

    def under(self, block: Block, condition: Operand, truth: bool) -> tuple[Block, list[Interval | None]]:
        """A branch rewritten under its condition, and the ranges of its int64 results there."""
        mark = self.facts.push()
        self.assume(condition, truth)
        new = self.block(block)
        self.facts.pop(mark)
        return new, self.ranges

    def splice(self, block: Block, let: Let) -> Sequence[Let]:
        """The statements of a block in place of its operator, whose outs are its results."""
        depth, self.depth = self.depth, 2
        inside = self.block(block)
        self.depth = depth
        statements = list(inside.statements)
        for out, result in zip(let.outs, inside.results, strict=True):
            self.replacement[out] = result
            if result.type != out.type and isinstance(out.type, Scalar):
                self.kept.add(out)
                statements.append(Let((out,), ir.Cast(result), let.pos))
        return statements

    def loop(self, let: Let, op: ir.For | ir.While) -> Sequence[Let] | None:
        skip = 1 if op.stoppable else 0
        if isinstance(op, ir.For):
            bounds = [constant(self.operand(bound)) for bound in (op.start, op.stop, op.step)]
            inits = self.operands(op.inits)
            same_types = all(init.type == out.type for out, init in zip(let.outs[skip:], inits, strict=True))
            if None not in bounds and len(range(*bounds)) == 0 and not op.stoppable and same_types:
                self.replacement.update(zip(let.outs, inits, strict=True))
                return ()
            if self.runs_once(op) and all(
                init.type == param.type for param, init in zip(op.params, inits, strict=True)
            ):
                self.replacement[op.index] = self.operand(op.start)
                self.replacement.update(zip(op.params, inits, strict=True))
                return self.splice(op.body, let)
        results = op.body.results[skip:]
        steady = []
        for param, init, result in zip(op.params, op.inits, results, strict=True):
            steady.append(result is param and init.type == param.type)
        if any(steady):
            for out, param, init, same in zip(let.outs[skip:], op.params, op.inits, steady, strict=True):
                if same:
                    self.replacement[param] = self.replacement[out] = self.operand(init)
            let = _without_params(let, op, steady)
            return self.descend(let) or (let,)
        return self.descend(let)

    def runs_once(self, op: ir.For) -> bool:
        """Whether a loop is known to have exactly one iteration."""
        start, step = self.operand(op.start), constant(self.operand(op.step))
        if op.stoppable or start.type != op.index.type or not isinstance(step, int):
            return False
        length = self.facts.form(self.operand(op.stop)) - self.facts.form(start)
        return not length.terms and 0 < (length.constant if step > 0 else -length.constant) <= abs(step)


def _without_params(let: Let, op: ir.For | ir.While, dropped: list[bool]) -> Let:
    """A loop without some of its parameters."""
    skip = 1 if op.stoppable else 0
    kept = [position for position, drop in enumerate(dropped) if not drop]
    params = tuple([op.params[position] for position in kept])
    inits = tuple([op.inits[position] for position in kept])
    results = op.body.results[:skip] + tuple([op.body.results[skip + position] for position in kept])
    outs = let.outs[:skip] + tuple([let.outs[skip + position] for position in kept])
    body = Block(op.body.statements, results)
    if isinstance(op, ir.For):
        return Let(outs, ir.For(op.index, op.start, op.stop, op.step, params, inits, body, op.stoppable), let.pos)
    return Let(outs, ir.While(params, inits, op.condition, body, op.stoppable), let.pos)
