"""Simplification: one walk that knows, at each statement, how everything it reads was made.

Scalars follow `algebra`. Of arrays: the extent of what an operator made is the operand it was made with; a view of a
view is one view; loads and stores through a view address its base, so that reads of one array through different slices
become comparable (`a[1:-1][i]` is `a[i + 1]`), and views that only named slices disappear. Of control: a branch on a
literal is its block, a loop that never runs its initial values, a loop parameter that never changes its initial value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parakeet_py.typed_ir.ir import (
    COMPARE,
    PARALLEL,
    Alloc,
    Block,
    Cast,
    Check,
    Compress,
    Const,
    Dim,
    For,
    Function,
    If,
    Let,
    Load,
    Map,
    Op,
    Opaque,
    Operand,
    Prim,
    Reduce,
    Reshape,
    Scan,
    Store,
    Var,
    View,
    ViewAxis,
    While,
    dtype_of,
    walk,
)
from parakeet_py.typed_ir.passes.algebra import constant, is_value, simplify_cast, simplify_prim
from parakeet_py.typed_ir.passes.facts import Facts, Interval
from parakeet_py.typed_ir.passes.integers import decide_comparison, enter, leave, simplify_integer
from parakeet_py.typed_ir.passes.linear import Forms
from parakeet_py.typed_ir.rewrite import Rewriter, rebuild
from parakeet_py.typed_ir.types import BOOL, INT64, PYBOOL, PYINT, Array, Scalar

ZERO, ONE = Const(0, PYINT), Const(1, PYINT)
_MOST_STEPS = 8  # rules applied to one statement
_LAYOUT_STRENGTH = {"C": 2, "F": 2, "S": 1, "A": 0}


def simplify(function: Function) -> Function:
    """Fold constants, apply algebraic identities, resolve extents, views and constant control flow."""
    return Simplifier(function).function(function)


class Simplifier(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.definitions: dict[Var, Op] = {}
        self.facts = Facts(self.definitions)
        self.original = _original_forms(function)
        self.makers: dict[Var, Let] = {}  # arrays made by operators with several outs
        self.values: dict[Any, Var] = {}  # scalars computed in scope
        self.dims: dict[tuple[Var, int], Operand] = {}  # extents in scope
        self.kept: set[Var] = set()  # replaced, but still defined for those to whom the exact type matters
        self.extra: list[Let] = []
        self.depth = 0
        self.ranges: list[Interval | None] = []  # of the int64 results of the block rewritten last

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

    def emit(self, op: Op, name: str, type_: Scalar, like: Let) -> Operand:
        """An extra scalar statement before the current one, simplified."""
        out = Var(name, type_)
        let = Let((out,), op, like.pos)
        new = self.scalar(let)
        if new is None:
            self.extra.append(let)
        else:
            self.extra += new
        return self.operand(out)

    def index(self, name: str, left: Operand, right: Operand, like: Let) -> Operand:
        """Index arithmetic that cannot overflow, because the result is an index in range."""
        return self.emit(Prim(name, (left, right)), "i", PYINT, like)

    def replace(self, let: Let, value: Operand) -> Sequence[Let]:
        """`value` stands for the out of `let` from here on."""
        (out,) = let.outs
        self.replacement[out] = value
        if value.type == out.type and isinstance(out.type, Scalar):
            return ()
        self.kept.add(out)
        if isinstance(out.type, Scalar):
            return (Let(let.outs, Cast(value), let.pos),)
        return (let,)

    # ---- statements ----

    def statement(self, let: Let) -> Sequence[Let] | None:
        match let.op:
            case Prim() | Cast():
                return self.scalar(let)
            case Dim():
                return self.dim(let, let.op)
            case Load() | Store():
                return self.access(let, let.op)
            case View():
                return self.view(let, let.op)
            case If():
                return self.branch(let, let.op)
            case For() | While():
                return self.loop(let, let.op)
            case Check():
                return self.check(let, let.op)
            case Opaque(site, args):
                exact = self.exact(args)
                return None if exact is args else (Let(let.outs, Opaque(site, exact), let.pos),)
            case Alloc() | Map() | Reduce() | Scan() | Compress() | Reshape():
                new = self.descend(let)
                made = new[0] if new else let
                for out in let.outs:
                    self.makers[out] = made
                if isinstance(made.op, Compress):
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
            if isinstance(op, Prim):
                better = simplify_prim(op.name, op.args, out.type, self.definitions)
            else:
                assert isinstance(op, Cast)
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

    def integer(self, out: Var, op: Op) -> Operand | Prim | None:
        """What index arithmetic knows."""
        if out.type.dtype == "int64":  # type: ignore[union-attr]
            if isinstance(op, Prim):
                return simplify_integer(self.facts, out, op)
            self.facts.define_cast(out, dtype_of(op.arg))  # type: ignore[union-attr]
        elif isinstance(op, Prim) and op.name in COMPARE:
            return decide_comparison(self.facts, op)
        return None

    def check(self, let: Let, op: Check) -> Sequence[Let] | None:
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
        self.facts.set(self.replacement, condition, Const(truth, condition.type))  # type: ignore[arg-type]
        for part, value in self.facts.implied(condition, truth):
            self.assume(part, value)
        op = self.definitions.get(condition)
        if not isinstance(op, Prim):
            return
        if op.name == ("and" if truth else "or"):
            for part in op.args:
                self.assume(part, truth)
        elif op.name == "not":
            self.assume(op.args[0], not truth)
        elif op.name == ("eq" if truth else "ne") and dtype_of(op.args[0]) == "int64":
            left, right = op.args
            if isinstance(right, Const) and isinstance(left, Var):
                self.facts.set(self.replacement, left, Const(right.value, left.type))  # type: ignore[arg-type]
            elif isinstance(left, Var) and isinstance(right, Var) and left.type == right.type:
                old, new = sorted((left, right), key=lambda var: var.uid)
                self.facts.set(self.replacement, new, old)

    def descend(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, (For, *PARALLEL)):
            if isinstance(op, For):
                bounds: tuple[Operand, ...] = (op.start, op.stop, op.step)
            else:
                bounds = (*op.extents, *op.reduced_extents) if isinstance(op, Reduce) else op.extents
            operands = self.operands(bounds)
        elif isinstance(op, While):
            operands = ()
        else:
            return super().descend(let)
        mark = self.facts.push()
        enter(self.facts, op, operands, self.original)
        new = self.while_loop(let, op) if isinstance(op, While) else super().descend(let)
        self.facts.pop(mark)
        leave(self.facts, let, operands, self.original)
        return new

    def while_loop(self, let: Let, op: While) -> Sequence[Let] | None:
        """The condition holds in the body."""
        inits = self.operands(op.inits)
        condition = self.block(op.condition)
        body, _ = self.under(op.body, condition.results[0], True)
        if inits is op.inits and condition is op.condition and body is op.body:
            return None
        return (Let(let.outs, While(op.params, inits, condition, body, op.stoppable), let.pos),)

    def extent(self, array: Var, axis: int) -> Operand | None:
        """The operand an array's extent was made with."""
        view = self.definitions.get(array)
        if isinstance(view, View):
            return view.axes[axis].extent
        let = self.makers.get(array)
        if let is None:
            return None
        match let.op:
            case Alloc(extents) | Map(extents=extents) | Reduce(extents=extents) | Scan(extents=extents):
                return extents[axis]
            case Reshape(_, extents):
                return extents[axis]
            case Compress():
                return let.outs[0]
            case _:
                return None

    def dim(self, let: Let, op: Dim) -> Sequence[Let] | None:
        array = self.operand(op.array)
        assert isinstance(array, Var)
        extent = self.extent(array, op.axis)
        if extent is not None:
            return self.replace(let, extent)
        known = self.dims.get((array, op.axis))
        if known is not None:
            return self.replace(let, known)
        self.facts.set(self.dims, (array, op.axis), self.operand(let.outs[0]))
        self.facts.define_extent(let.outs[0])
        return None if array is op.array else (Let(let.outs, Dim(array, op.axis), let.pos),)

    # ---- views ----

    def access(self, let: Let, op: Load | Store) -> Sequence[Let] | None:
        new = rebuild(op, self.operand)
        assert isinstance(new, Load | Store)
        while True:
            view = self.definitions.get(new.array)
            if isinstance(view, View):
                array, indices = view.base, self.through(view, new.indices, let)
            elif isinstance(maker := self.makers.get(new.array), Let) and isinstance(maker.op, Reshape):
                flat = self.flattened(maker.op, new.indices, let)
                if flat is None:
                    break
                array, indices = maker.op.base, flat
            else:
                break
            new = Load(array, indices) if isinstance(new, Load) else Store(array, indices, new.value)
        return None if new is op else (Let(let.outs, new, let.pos),)

    def through(self, view: View, indices: tuple[Operand, ...], like: Let) -> tuple[Operand, ...]:
        """The indices into the base of an element of a view."""
        position = list(view.starts)
        for index, axis in zip(indices, view.axes, strict=True):
            if axis.source is not None:
                offset = self.index("mul", index, axis.step, like)
                position[axis.source] = self.index("add", offset, position[axis.source], like)
        return tuple(position)

    def flattened(self, op: Reshape, indices: tuple[Operand, ...], like: Let) -> tuple[Operand, ...] | None:
        """The index into a one-dimensional base of an element of a reshaped array."""
        assert isinstance(op.base.type, Array)
        if op.base.type.rank != 1 or not indices:
            return None
        position = indices[0]
        for index, extent in zip(indices[1:], op.extents[1:], strict=True):
            position = self.index("add", self.index("mul", position, extent, like), index, like)
        return (position,)

    def view(self, let: Let, op: View) -> Sequence[Let] | None:
        new = rebuild(op, self.operand)
        assert isinstance(new, View)
        (out,) = let.outs
        below = self.definitions.get(new.base)
        if isinstance(below, View):
            starts = self.through(below, new.starts, let)
            axes = []
            for axis in new.axes:
                source, step = None, axis.step
                if axis.source is not None:
                    inner = below.axes[axis.source]
                    source = inner.source
                    if source is not None:
                        step = self.index("mul", axis.step, inner.step, let)
                axes.append(ViewAxis(source, axis.extent, step if source is not None else ZERO))
            new = View(below.base, starts, tuple(axes))
        self.definitions[out] = new
        if self.is_whole(new, out):
            self.replacement[out] = new.base
            self.kept.add(out)
        return None if new is op else (Let(let.outs, new, let.pos),)

    def is_whole(self, view: View, out: Var) -> bool:
        """Does the view show all of its base, axis by axis?"""
        base, kind = view.base.type, out.type
        assert isinstance(base, Array) and isinstance(kind, Array)
        if base.rank != kind.rank or _LAYOUT_STRENGTH[base.layout] < _LAYOUT_STRENGTH[kind.layout]:
            return False
        if base.layout != kind.layout and _LAYOUT_STRENGTH[kind.layout] == 2:
            return False
        for position, axis in enumerate(view.axes):
            if axis.source != position or not is_value(axis.step, 1) or not is_value(view.starts[position], 0):
                return False
            if axis.extent != self.extent(view.base, position):
                return False
        return True

    # ---- control ----

    def branch(self, let: Let, op: If) -> Sequence[Let] | None:
        condition = self.operand(op.condition)
        if condition.__class__ is Const:
            return self.splice(op.then if constant(condition) else op.orelse, let)
        then, ranges = self.under(op.then, condition, True)
        orelse, other_ranges = self.under(op.orelse, condition, False)
        made = op
        if condition is not op.condition or then is not op.then or orelse is not op.orelse:
            made = If(condition, then, orelse)
        new = None if made is op else (Let(let.outs, made, let.pos),)
        for position, (out, one, two) in enumerate(zip(let.outs, ranges, other_ranges, strict=True)):
            if one is not None and two is not None:
                self.facts.set(self.facts.interval, out, (min(one[0], two[0]), max(one[1], two[1])))
            if out.type in (PYBOOL, BOOL):
                self.facts.gates[out] = (condition, made.then.results[position], made.orelse.results[position])
        outs = list(let.outs)
        keep = []
        selects: list[Let] = []
        simple = not made.then.statements and not made.orelse.statements
        for position, (out, left, right) in enumerate(zip(outs, made.then.results, made.orelse.results, strict=True)):
            if left == right and left.type == out.type:
                self.replacement[out] = left
                continue
            if simple and isinstance(out.type, Scalar):
                chosen = Let((out,), Prim("select", (condition, left, right)), let.pos)
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
        branch = Let(tuple([outs[position] for position in keep]), If(condition, then, orelse), let.pos)
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
                statements.append(Let((out,), Cast(result), let.pos))
        return statements

    def loop(self, let: Let, op: For | While) -> Sequence[Let] | None:
        skip = 1 if op.stoppable else 0
        if isinstance(op, For):
            bounds = [constant(self.operand(bound)) for bound in (op.start, op.stop, op.step)]
            inits = self.operands(op.inits)
            same_types = all(init.type == out.type for out, init in zip(let.outs[skip:], inits, strict=True))
            if None not in bounds and len(range(*bounds)) == 0 and not op.stoppable and same_types:
                self.replacement.update(zip(let.outs, inits, strict=True))
                return ()
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


def _without_params(let: Let, op: For | While, dropped: list[bool]) -> Let:
    """A loop without some of its parameters."""
    skip = 1 if op.stoppable else 0
    kept = [position for position, drop in enumerate(dropped) if not drop]
    params = tuple([op.params[position] for position in kept])
    inits = tuple([op.inits[position] for position in kept])
    results = op.body.results[:skip] + tuple([op.body.results[skip + position] for position in kept])
    outs = let.outs[:skip] + tuple([let.outs[skip + position] for position in kept])
    body = Block(op.body.statements, results)
    if isinstance(op, For):
        return Let(outs, For(op.index, op.start, op.stop, op.step, params, inits, body, op.stoppable), let.pos)
    return Let(outs, While(params, inits, op.condition, body, op.stoppable), let.pos)


def _original_forms(function: Function) -> Forms:
    """Linear forms of the program as it is before the walk, which looks ahead into loop bodies."""
    definitions: dict[Var, Op] = {}
    positions: dict[Var, int] = {}
    for let in walk(function.body):
        if isinstance(let.op, Prim | If):
            for position, out in enumerate(let.outs):
                definitions[out] = let.op
                positions[out] = position
    return Forms(definitions, positions)
